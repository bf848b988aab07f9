"""The time of maskloom.create_block_mask beside PyTorch's in the same run, as one JSON object.

python package_bench.py [TOKENS]   (TOKENS: the longest length, 2^20 without it)

Every time includes the recording of the mod and all arrays, but for a mask whose index arrays are made at their first
use: that row says so and has their time, too. "blocks_ms" is what `maskloom bench blocks` measures.
"""

import json
import platform
import sys
import time

import package
import torch
from torch.nn.attention.flex_attention import create_block_mask

maskloom = package.found()
from maskloom import _mods, _native  # noqa: E402

LONGEST = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20
CPU = torch.device("cpu")


def median(action, seconds=0.5, least=5):
    """The median time in ms of runs that take `seconds` in all."""
    action()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return round(sorted(times)[len(times) // 2] * 1e3, 4)


def masks(tokens):
    """The masks of the bars; documents are of 1,024 tokens on average."""
    draw = torch.Generator().manual_seed(tokens)
    cuts = torch.randint(1, tokens, (max(tokens // 1024 - 1, 1),), generator=draw).sort().values
    doc = torch.searchsorted(cuts, torch.arange(tokens), right=True)
    return {
        "causal": lambda b, h, q, kv: q >= kv,
        "window": lambda b, h, q, kv: (q >= kv) & (q - kv < 1024),
        "prefix": lambda b, h, q, kv: (q >= kv) | (kv < 2048),
        "documents": lambda b, h, q, kv: (doc[q] == doc[kv]) & (q >= kv),
    }


def row(name, mod, tokens, beside_torch):
    """One mask: ours, our lists alone, and PyTorch's."""

    def make():
        return maskloom.create_block_mask(mod, None, None, tokens, tokens, device="cpu")

    def lists():
        _native.build(mask, (1, 1), (tokens, tokens), (128, 128))

    mask, _ = _mods.traced(mod, "mask_mod", device=CPU)
    out = {"name": name, "tokens": tokens, "ms": median(make), "blocks_ms": median(lists)}
    made = make()
    if isinstance(made, maskloom.LongBlockMask):
        start = time.perf_counter()
        made.plain()
        out["index_arrays_ms"] = round((time.perf_counter() - start) * 1e3, 3)
    if beside_torch:
        theirs = lambda: create_block_mask(mod, None, None, tokens, tokens, device="cpu")
        package.same_block_masks(theirs(), made, name)
        out["torch_ms"] = median(theirs, least=3)
        out["times_torch"] = round(out["torch_ms"] / out["ms"], 1)
    return out


def batches(count=8, tokens=32_768):
    """Packed batches, each with other documents: what a training loop does before each step."""
    all_of = []
    for seed in range(count * 8):
        draw = torch.Generator().manual_seed(seed)
        cuts = torch.randint(1, tokens, (40,), generator=draw).sort().values
        all_of.append(torch.searchsorted(cuts, torch.arange(tokens), right=True))
    at = 0

    def make():
        nonlocal at
        for _ in range(count):
            doc = all_of[at % len(all_of)]
            at += 1
            mod = lambda b, h, q, kv, doc=doc: (doc[q] == doc[kv]) & (q >= kv)
            maskloom.create_block_mask(mod, None, None, tokens, tokens, device="cpu")

    return {"name": f"{count} packed batches", "tokens": tokens, "ms": median(make)}


rows = [
    row(name, mod, tokens, tokens <= 16_384)
    for tokens in (2048, 16_384, 131_072, 1 << 20)
    if tokens <= LONGEST
    for name, mod in masks(tokens).items()
]
rows.append(batches())
environment = {
    "torch": torch.__version__,
    "date": time.strftime("%Y-%m-%d"),
    "threads": torch.get_num_threads(),
    "machine": platform.processor(),
}
print(json.dumps({"environment": environment, "rows": rows}, indent=1))
