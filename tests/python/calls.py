"""What a call of an exported kernel costs on a GPU: python calls.py EXPORT STEM [OUT.json]

EXPORT is of the preset sliding_window with a window of 1024, B2 H16 S4096 D128 (docs/kernels/calls.md has the command). Of the export, SDPA
and compiled flex are measured, in one run: the host's time of a call while the GPU is busy, calls one after another, and replayed
graphs. Outputs and gradients of two heads are compared with float64 first. Without a GPU it says "skipped".
"""

import gc
import importlib
import json
import math
import statistics
import sys
import time

import torch
import torch._functorch.config
import torch.nn.functional as F

B, H, S, D, W = 2, 16, 4096, 128, 1024
HEADS = [(0, 0), (1, 11)]
# a compiled backward pass is timed again and again on one forward pass
torch._functorch.config.donated_buffer = False


def drawn():
    return [torch.randn(B, H, S, D, device="cuda", dtype=torch.bfloat16).requires_grad_() for _ in range(3)]


def told():
    """What `maskloom bench recorded` prints above the table."""
    environment = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "date": time.strftime("%Y-%m-%d")}
    problem = {"mask": f"sliding window {W}", "batch": B, "heads": H, "tokens": S, "head_dim": D, "dtype": "bf16"}
    return {"environment": environment, "problem": problem}


def kept():
    at = torch.arange(S, device="cuda")
    gap = at[:, None] - at
    return (gap >= 0) & (gap < W)


def is_right(attend):
    """Output and gradients of some heads, against float64."""
    q, k, v = drawn()
    d_out = torch.randn_like(q)
    out = attend(q, k, v)
    found, mask = (out, *torch.autograd.grad(out, (q, k, v), d_out)), kept()
    for b, h in HEADS:
        one = [t[b, h].detach().double().requires_grad_() for t in (q, k, v)]
        score = (one[0] @ one[1].T / math.sqrt(D)).masked_fill(~mask, -torch.inf)
        want = torch.softmax(score, -1) @ one[2]
        wanted = (want.detach(), *torch.autograd.grad(want, one, d_out[b, h].double()))
        for got, exact in zip(found, wanted):
            off = ((got[b, h].double() - exact).norm() / exact.norm()).item()
            assert off < 8e-3, off


def host(call, rounds=8, calls=40):
    """Microseconds until a call has returned, behind a kernel that keeps the GPU busy meanwhile: median and 10th percentile."""
    for _ in range(10):
        call()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        torch.cuda._sleep(int(1.5e9 * 400e-6 * calls))
        for _ in range(calls):
            begin = time.perf_counter()
            call()
            found.append((time.perf_counter() - begin) * 1e6)
    torch.cuda.synchronize()
    found.sort()
    return statistics.median(found), found[len(found) // 10]


def wall(call, calls=100, rounds=9):
    """Milliseconds of a call of many, one after another: median, least, most."""
    for _ in range(10):
        call()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) * 1e3 / calls)
    return statistics.median(found), min(found), max(found)


def replayed(make, side):
    """Milliseconds of the same as a CUDA graph, or None. A backward pass runs on the stream of its forward pass, which `make` makes."""
    graph = held = call = None
    try:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            call = make()
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            held = call()
        return wall(graph.replay)[0]
    except RuntimeError as why:
        print(f"not captured: {str(why)[:100]}")
        return None
    finally:
        torch.cuda.synchronize()
        del graph, held, call
        gc.collect()
        torch.cuda.empty_cache()


def contestants(kernel):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    within = lambda b, h, i, j: (i - j >= 0) & (i - j < W)
    mask = create_block_mask(within, None, None, S, S, device="cuda", BLOCK_SIZE=128)
    flex = torch.compile(flex_attention, fullgraph=True)
    yield "sdpa causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    yield "flex", lambda q, k, v: flex(q, k, v, block_mask=mask)
    yield "exported", kernel.attend
    yield "exported, compiled", torch.compile(kernel.attend, fullgraph=True)


def main():
    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        sys.exit(77)
    sys.path.insert(0, sys.argv[1])
    kernel = importlib.import_module(f"{sys.argv[2]}_kernel")
    torch.manual_seed(0)
    is_right(kernel.attend)
    (q, k, v), side, rows = drawn(), torch.cuda.Stream(), []
    plain, d_out = [t.detach() for t in (q, k, v)], torch.randn_like(q).detach()
    for who, attend in contestants(kernel):

        def backward(attend=attend):
            out = attend(q, k, v)
            return lambda: torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True)

        passes = {
            "forward, no grad": lambda attend=attend: lambda: attend(*plain),
            "forward, to train": lambda attend=attend: lambda: attend(q, k, v),
            "backward": backward,
            "both": lambda attend=attend: lambda: torch.autograd.grad(attend(q, k, v), (q, k, v), d_out),
        }
        for what, make in passes.items():
            gc.collect()
            torch.cuda.empty_cache()
            with torch.set_grad_enabled(what != "forward, no grad"):
                call = make()
                on_host, calls = host(call), wall(call)
                del call
                graph = replayed(make, side) if what in ("forward, no grad", "backward") else None
            rows.append({"who": who, "what": what, "host_us": on_host[0], "host_us_p10": on_host[1], "call_ms": calls[0],
                         "call_ms_range": calls[1:], "graph_ms": graph})  # fmt: skip
            alone = f"   graph {graph:.4f} ms" if graph else ""
            print(f"{who:18} {what:18} host {on_host[0]:6.1f} us   call {calls[0]:.4f} ms{alone}", flush=True)
    if sys.argv[3:]:
        with open(sys.argv[3], "w", encoding="utf-8") as file:
            json.dump({**told(), "calls": rows}, file, indent=1)


main()
