"""What a call of flex_attention costs on an NVIDIA GPU: the host's time and the GPU's, beside PyTorch's.

python package_costs_on_a_card.py FILE.json

It needs a GPU, PyTorch with CUDA and Triton, NVRTC and the installed package. Medians; nothing is compared.
"""

import json
import statistics
import sys
import time
import traceback
from functools import partial
from pathlib import Path

import maskloom
import torch
import torch._functorch.config as functorch_config
from maskloom import create_block_mask, flex_attention
from torch.nn.attention.flex_attention import flex_attention as torchs_attention

DEVICE, BF16 = torch.device("cuda", 0), torch.bfloat16


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def inputs(shape):
    batch, heads, kv_heads, q_len, kv_len, dim, dim_v = shape
    make = lambda *size: torch.randn(size, device=DEVICE).to(BF16).requires_grad_()
    return make(batch, heads, q_len, dim), make(batch, kv_heads, kv_len, dim), make(batch, kv_heads, kv_len, dim_v)


def host_us(call, count=60, rounds=7):
    """Microseconds of a call on the host: the median of rounds, none of which waits for the GPU."""
    for _ in range(10):
        call()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - begin) / count * 1e6)
    torch.cuda.synchronize()
    return round(statistics.median(found), 1)


def gpu_ms(call, count=20):
    """Milliseconds of calls one after another."""
    for _ in range(3):
        call()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    found = []
    for _ in range(5):
        torch.cuda.synchronize()
        marks[0].record()
        for _ in range(count):
            call()
        marks[1].record()
        torch.cuda.synchronize()
        found.append(marks[0].elapsed_time(marks[1]) / count)
    return round(statistics.median(found), 4)


class Nothing(torch.autograd.Function):
    """What autograd itself costs: three inputs, one output, gradients that are there already."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return q.detach()

    @staticmethod
    def backward(ctx, d_out):
        return ctx.saved_tensors


def costs_of(name, attend, shape, learns=True):
    q, k, v = inputs(shape)
    d_out = torch.randn(*q.shape, device=DEVICE).to(BF16)
    row = {"name": name}

    def forward():
        with torch.no_grad():
            attend(q, k, v)

    row["forward_host_us"], row["forward_ms"] = host_us(forward), gpu_ms(forward)
    if learns:
        row["training_forward_host_us"] = host_us(lambda: attend(q, k, v))
        out = attend(q, k, v)
        back = lambda: torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True)
        row["backward_host_us"] = host_us(back)
        row["backward_ms"] = gpu_ms(back)
        row["both_ms"] = gpu_ms(lambda: torch.autograd.grad(attend(q, k, v), (q, k, v), d_out))
    return row


def costs():
    rows = []
    tiny, large = (1, 4, 4, 256, 256, 64, 64), (2, 16, 16, 4096, 4096, 128, 128)
    near_keys = lambda b, h, q, k: (q >= k) & (q - k < 1024)
    # several backward passes of one forward pass
    functorch_config.donated_buffer = False
    compiled = torch.compile(torchs_attention)
    for size, shape in (("tiny", tiny), ("4k", large)):
        for name, mask in (("causal", causal), ("window 1024", near_keys)):
            if size == "tiny" and name != "causal":
                continue
            own = create_block_mask(mask, None, None, *shape[3:5], device=DEVICE)
            rows.append(costs_of(f"maskloom {size} {name}", partial(flex_attention, block_mask=own), shape))
            of_torch = f"torch.compile(flex_attention) {size} {name}"
            rows.append(costs_of(of_torch, partial(compiled, block_mask=own), shape))
        sdpa = lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        rows.append(costs_of(f"SDPA {size} causal", sdpa, shape))
    q, k, v = inputs(tiny)
    out, d_out = Nothing.apply(q, k, v), torch.randn_like(q)
    nothing = {
        "name": "an autograd Function that does nothing",
        "training_forward_host_us": host_us(lambda: Nothing.apply(q, k, v)),
    }
    nothing["backward_host_us"] = host_us(lambda: torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True))
    rows.append(nothing)
    bias = torch.linspace(0, 1, 4, device=DEVICE)
    alibi = lambda score, b, h, q, k: score + bias[h] * (k - q)
    rows.append(costs_of("maskloom tiny score mod", lambda q, k, v: flex_attention(q, k, v, alibi), tiny))
    return rows


def new_masks():
    """Milliseconds of the first call with a new mask of a kind that is compiled: packed documents of new lengths."""
    found = []
    q, k, v = (t.detach() for t in inputs((1, 16, 16, 16384, 16384, 128, 128)))
    for seed in range(6):
        ends = torch.randint(1, 16384, (15,), generator=torch.Generator().manual_seed(seed)).sort().values
        lengths = torch.diff(ends, prepend=torch.tensor([0]), append=torch.tensor([16384]))
        torch.cuda.synchronize()
        begin = time.perf_counter()
        mask = maskloom.packed_documents(lengths[lengths > 0].tolist(), device=DEVICE)
        made = time.perf_counter()
        flex_attention(q, k, v, block_mask=mask)
        found.append([round((made - begin) * 1e3, 2), round((time.perf_counter() - made) * 1e3, 2)])
    return {"block_mask_ms_and_first_call_ms": found[1:]}


reported = {"card": torch.cuda.get_device_name(), "torch": torch.__version__}
for part in (costs, new_masks):
    try:
        reported[part.__name__] = part()
    except Exception:
        reported[part.__name__] = traceback.format_exc(limit=5)
Path(sys.argv[1]).write_text(json.dumps(reported, indent=1))
print(json.dumps(reported, indent=1))
sys.exit(0)
