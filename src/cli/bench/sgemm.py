"""GFLOP/s of float32 matrix products in PyTorch: `THREADS`."""

import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
size = 2048
a, b = torch.randn(size, size), torch.randn(size, size)
out = torch.empty(size, size)
torch.mm(a, b, out=out)
times = []
for _ in range(15):
    start = time.perf_counter()
    torch.mm(a, b, out=out)
    times.append(time.perf_counter() - start)
print(2 * size**3 / sorted(times)[len(times) // 2] / 1e9)
