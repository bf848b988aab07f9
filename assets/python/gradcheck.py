"""Checks the gradients of DESIGN.

    python DESIGN_gradcheck.py [--device cuda] [--rows 64] [--seed 0]

The reference is autograd in float64 over some scattered query rows and all keys. With a gradient of zero for all other rows
these determine every gradient. It is compared with central differences. Then the module's attend (uncompiled, if
all scores fit), and on a GPU the exported kernel, are compared with it. Prints each gradient's largest error over its
largest element; exits with status 1 if one is too large.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
import DESIGN as design  # noqa: E402

# The largest number of cells of all scores for a test of the whole attention.
MOST_CELLS = 1 << 26
ALLOWED = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}


def launched() -> Any:
    """The compiled kernel's loader, if it was exported."""
    name = "DESIGN_kernel"
    return importlib.import_module(name) if Path(__file__).with_name(f"{name}.py").exists() else None


def sizes(kernel: Any) -> tuple[int, int, int, int, int]:
    """batch, heads, kv heads, head_dim and head_dim_v of the design."""
    if kernel is not None:
        p = kernel.PROBLEM
        return p["batch"], p["heads"], p["kv_heads"], p["head_dim"], p["head_dim_v"]
    heads = design.HEADS or 2
    return design.BATCH or 1, heads, heads, design.HEAD_DIM, design.HEAD_DIM


def learnt(device: str) -> dict[str, Tensor]:
    """The design's captured tensors with gradients, in float64."""
    mod = design.make_mods(device)[1]
    if mod is None:
        return {}
    code, cells = getattr(mod, "__code__"), getattr(mod, "__closure__") or ()  # noqa: B009
    held = dict(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    return {name: held[name].detach().double() for name in design.LEARNS if name in held}


def attention(rows: Tensor, query: Tensor, key: Tensor, value: Tensor, learned: Mapping[str, Tensor]) -> Tensor:
    """The output of some rows, (b, h, q) each, from the mods alone; zeros in rows that keep no key."""
    mask_mod, score_mod = design._mods(query.device, learned)
    group = query.shape[1] // key.shape[1]
    b, h, q = rows.unbind(1)
    keys = torch.arange(key.shape[2], device=query.device)
    score = torch.einsum("rd,rkd->rk", query[b, h, q], key[b, h // group]) * design.SCALE
    if score_mod is not None:
        every = torch.vmap(torch.vmap(score_mod, (0, None, None, None, 0)), (0, 0, 0, 0, None))
        score = every(score, b, h, q, keys).double()
    keep = torch.ones_like(score, dtype=torch.bool)
    if mask_mod is not None:
        each = torch.vmap(torch.vmap(mask_mod, (None, None, None, 0)), (0, 0, 0, None))
        keep = each(b, h, q, keys)
    score = score.masked_fill(~keep, -torch.inf)
    nothing = ~keep.any(1, keepdim=True)
    weight = torch.softmax(score.masked_fill(nothing, 0.0), 1).masked_fill(nothing, 0.0)
    out: Tensor = torch.einsum("rk,rkd->rd", weight, value[b, h // group])
    return out


Loss = Callable[[dict[str, Tensor]], Tensor]


def gradients(inputs: dict[str, Tensor], loss: Loss) -> dict[str, Tensor]:
    """By name."""
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    found = torch.autograd.grad(loss(leaves), list(leaves.values()), allow_unused=True)
    return {n: torch.zeros_like(t) if g is None else g for (n, t), g in zip(leaves.items(), found, strict=True)}


def parts(inputs: dict[str, Tensor]) -> tuple[list[Tensor], dict[str, Tensor]]:
    return [inputs[n] for n in ("query", "key", "value")], {n: t for n, t in inputs.items() if n in design.LEARNS}


def compare(who: str, got: dict[str, Tensor], want: dict[str, Tensor], allowed: float) -> bool:
    """Whether every gradient is close enough; prints the errors."""
    right = True
    for name, wanted in want.items():
        largest = wanted.abs().max().item()
        error = (got[name].double().cpu() - wanted.cpu()).abs().max().item() / max(largest, 1e-30)
        fine = error <= allowed
        print(f"{who}: {name} {error:.1e}{'' if fine else f', the limit is {allowed:.0e}: WRONG'}")
        right &= fine
    return right


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    kernel = launched()
    batch, heads, kv_heads, dim, dim_v = sizes(kernel)
    # the inputs of 16-bit kernels are exact
    low = kernel.DTYPE if kernel is not None else torch.float32
    drawn = torch.Generator().manual_seed(asked.seed)

    def make(*shape: int) -> Tensor:
        return torch.randn(shape, generator=drawn).to(low).double()

    inputs = {
        "query": make(batch, heads, design.Q_LEN, dim),
        "key": make(batch, kv_heads, design.KV_LEN, dim),
        "value": make(batch, kv_heads, design.KV_LEN, dim_v),
    } | learnt("cpu")
    total = batch * heads * design.Q_LEN
    picked = torch.randperm(total, generator=drawn)[: asked.rows].sort().values
    rows = torch.stack([picked // (heads * design.Q_LEN), picked // design.Q_LEN % heads, picked % design.Q_LEN], 1)
    seed = make(len(rows), dim_v)
    d_out = torch.zeros(batch, heads, design.Q_LEN, dim_v, dtype=torch.float64)
    d_out[tuple(rows.unbind(1))] = seed

    def loss(given: dict[str, Tensor]) -> Tensor:
        (query, key, value), learned = parts(given)
        return (attention(rows, query, key, value, learned) * seed).sum()

    want = gradients(inputs, loss)
    right = True
    for name, tensor in inputs.items():
        step = torch.randn(tensor.shape, generator=drawn, dtype=torch.float64)
        step *= 1e-5 / step.norm()
        moved = [loss(inputs | {name: tensor + sign * step}).item() for sign in (1, -1)]
        slope, wanted = (moved[0] - moved[1]) / 2, (want[name] * step).sum().item()
        fine = abs(slope - wanted) <= 1e-4 * max(want[name].norm().item() * 1e-5, 1e-12)
        print(f"differences: {name} {'agrees' if fine else f'{slope:.6e} instead of {wanted:.6e}: WRONG'}")
        right &= fine
    if total * design.KV_LEN <= MOST_CELLS:

        def whole(given: dict[str, Tensor]) -> Tensor:
            (query, key, value), learned = parts(given)
            out = design.attend(query, key, value, compiled=False, learned=learned or None)
            return (out.double() * d_out.to(out.device)).sum()

        single = {name: tensor.float() for name, tensor in inputs.items()}
        right &= compare(f"{design.__name__}.attend, float32", gradients(single, whole), want, ALLOWED[torch.float32])
    else:
        print(f"{design.__name__}.attend: skipped, all scores would not fit in memory")
    if kernel is None or asked.device == "cpu":
        print("the kernel: skipped, it runs on a GPU")
    else:

        def on_gpu(given: dict[str, Tensor]) -> Tensor:
            (query, key, value), learned = parts(given)
            out: Tensor = kernel.attend(query, key, value, captured=learned or None)
            return (out.double() * d_out.to(out.device)).sum()

        own = {n: t.to(asked.device, torch.float32 if n in design.LEARNS else low) for n, t in inputs.items()}
        right &= compare("the kernel", gradients(own, on_gpu), want, ALLOWED[low])
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
