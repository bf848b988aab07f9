# SPDX-License-Identifier: MIT
"""Checks the gradients of DESIGN.

    python DESIGN_gradcheck.py [--device cuda] [--rows 64] [--seed 0]

The reference is autograd in float64 over some scattered query rows and all keys. With a gradient of zero for all other rows
these determine every gradient. It is compared with central differences. Then the module's attend (uncompiled, if
all scores fit), and on a GPU the exported kernel, are compared with it. Prints each gradient's largest error over its
largest element. Exits with status 1 if one is too large, and with 2 and one sentence if gradients cannot be computed here.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn


def stop(sentence: str) -> NoReturn:
    """Ends the check without a result."""
    print(sentence, file=sys.stderr)
    sys.exit(2)


sys.path.insert(0, str(Path(__file__).parent))
try:
    import torch
    from torch import Tensor

    import DESIGN as design
except (ImportError, OSError) as why:
    together = isinstance(why, OSError) or why.name == "DESIGN"
    way = "keep all files of the export in one folder" if together else "install PyTorch 2.5 or newer and safetensors here"
    stop(f"DESIGN.py cannot be imported ({why}): {way}")

# The largest number of cells of all scores for a test of the whole attention.
MOST_CELLS = 1 << 26
ALLOWED = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}


class Refused(Exception):
    """Gradients that cannot be computed: what, why and the way out in one sentence."""


def launched() -> Any:
    """The compiled kernel's loader, if it was exported."""
    name = "DESIGN_kernel"
    if not Path(__file__).with_name(f"{name}.py").exists():
        return None
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as why:
        raise Refused(f"{name}.py cannot be imported ({why}): without this file the module alone is checked") from why


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
    score = torch.einsum("rd,rkd->rk", query[b, h, q], key[b, h // group]) * design.SCALE
    # broadcast: the vmap of PyTorch 2.5 reads no tensor at an index
    at = (b[:, None], h[:, None], q[:, None], torch.arange(key.shape[2], device=query.device))
    if score_mod is not None:
        score = score_mod(score, *at).double().expand_as(score)
    keep = torch.ones_like(score, dtype=torch.bool)
    if mask_mod is not None:
        keep = mask_mod(*at).expand_as(score)
    score = score.masked_fill(~keep, -torch.inf)
    nothing = ~keep.any(1, keepdim=True)
    weight = torch.softmax(score.masked_fill(nothing, 0.0), 1).masked_fill(nothing, 0.0)
    out: Tensor = torch.einsum("rk,rkd->rd", weight, value[b, h // group])
    return out


Loss = Callable[[dict[str, Tensor]], Tensor]


def gradients(who: str, inputs: dict[str, Tensor], loss: Loss) -> dict[str, Tensor]:
    """By name. Errors: Refused."""
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    try:
        found = torch.autograd.grad(loss(leaves), list(leaves.values()), allow_unused=True)
    except (RuntimeError, ValueError, MemoryError) as why:
        raise Refused(f"{who}: {refusal(leaves, loss, why)}") from why
    return {n: torch.zeros_like(t) if g is None else g for (n, t), g in zip(leaves.items(), found, strict=True)}


def refusal(leaves: Mapping[str, Tensor], loss: Loss, why: Exception) -> str:
    """What has no gradient, PyTorch's reason and the way out."""
    reason = next(iter(str(why).splitlines()), type(why).__name__).rstrip(". ")
    if reason.startswith("maskloom: "):
        # the kernel's own refusals name a way out
        return reason.removeprefix("maskloom: ")
    if isinstance(why, MemoryError) or "out of memory" in reason or "allocate" in reason:
        return f"the memory is too small ({reason}): pass fewer --rows, or check the design at smaller lengths"
    names = " and ".join(name for name in leaves if not differentiable(name, leaves, loss)) or "all tensors together"
    if "derivative" in reason:
        way = "replace this function in the design's score_mod, or exclude it from the gradient with .detach()"
    elif "CPU" in reason:
        way = "train it on a GPU"
    else:
        way = f"call {design.__name__} under torch.no_grad(), or try another PyTorch than {torch.__version__}"
    return f"no gradient of {names} ({reason}): {way}"


def differentiable(name: str, leaves: Mapping[str, Tensor], loss: Loss) -> bool:
    """Whether the loss has a gradient of this tensor alone."""
    given = {n: t.detach().requires_grad_(n == name) for n, t in leaves.items()}
    try:
        found = loss(given)
        if found.requires_grad:
            torch.autograd.grad(found, [given[name]], allow_unused=True)
    except (RuntimeError, ValueError):
        return False
    return True


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


def differences(inputs: dict[str, Tensor], loss: Loss, want: dict[str, Tensor], drawn: torch.Generator) -> bool:
    """Whether central differences of the loss agree with every gradient."""
    right = True
    for name, tensor in inputs.items():
        step = torch.randn(tensor.shape, generator=drawn, dtype=torch.float64)
        step *= 1e-5 / step.norm()
        moved = [loss(inputs | {name: tensor + sign * step}).item() for sign in (1, -1)]
        slope, wanted = (moved[0] - moved[1]) / 2, (want[name] * step).sum().item()
        fine = abs(slope - wanted) <= 1e-4 * max(want[name].norm().item() * 1e-5, 1e-12)
        print(f"differences: {name} {'agrees' if fine else f'{slope:.6e} instead of {wanted:.6e}: WRONG'}")
        right &= fine
    return right


def module(inputs: dict[str, Tensor], d_out: Tensor, want: dict[str, Tensor]) -> bool:
    """Whether the exported module's gradients are close enough, or too large to be computed."""
    who = f"{design.__name__}.attend"
    if d_out.shape[:3].numel() * design.KV_LEN > MOST_CELLS:
        print(f"{who}: skipped, all scores would not fit in memory")
        return True

    def whole(given: dict[str, Tensor]) -> Tensor:
        (query, key, value), learned = parts(given)
        out = design.attend(query, key, value, compiled=False, learned=learned or None)
        return (out.double() * d_out.to(out.device)).sum()

    who += ", float32"
    single = {name: tensor.float() for name, tensor in inputs.items()}
    return compare(who, gradients(who, single, whole), want, ALLOWED[torch.float32])


def compiled(kernel: Any, device: str, inputs: dict[str, Tensor], d_out: Tensor, want: dict[str, Tensor]) -> bool:
    """Whether the exported kernel's gradients are close enough, if there is one and a GPU."""
    if kernel is None or device == "cpu":
        print("the kernel: skipped, it runs on a GPU")
        return True

    def on_gpu(given: dict[str, Tensor]) -> Tensor:
        (query, key, value), learned = parts(given)
        out: Tensor = kernel.attend(query, key, value, captured=learned or None)
        return (out.double() * d_out.to(out.device)).sum()

    own = {n: t.to(device, torch.float32 if n in design.LEARNS else kernel.DTYPE) for n, t in inputs.items()}
    return compare("the kernel", gradients("the kernel", own, on_gpu), want, ALLOWED[kernel.DTYPE])


def check(device: str, some: int, seed: int) -> bool:
    """Whether every gradient is right; prints what was compared. Errors: Refused."""
    kernel = launched()
    batch, heads, kv_heads, dim, dim_v = sizes(kernel)
    # the inputs of 16-bit kernels are exact
    low = kernel.DTYPE if kernel is not None else torch.float32
    drawn = torch.Generator().manual_seed(seed)

    def make(*shape: int) -> Tensor:
        return torch.randn(shape, generator=drawn).to(low).double()

    inputs = {
        "query": make(batch, heads, design.Q_LEN, dim),
        "key": make(batch, kv_heads, design.KV_LEN, dim),
        "value": make(batch, kv_heads, design.KV_LEN, dim_v),
    } | learnt("cpu")
    picked = torch.randperm(batch * heads * design.Q_LEN, generator=drawn)[:some].sort().values
    rows = torch.stack([picked // (heads * design.Q_LEN), picked // design.Q_LEN % heads, picked % design.Q_LEN], 1)
    d_rows = make(len(rows), dim_v)
    d_out = torch.zeros(batch, heads, design.Q_LEN, dim_v, dtype=torch.float64)
    d_out[tuple(rows.unbind(1))] = d_rows

    def loss(given: dict[str, Tensor]) -> Tensor:
        (query, key, value), learned = parts(given)
        return (attention(rows, query, key, value, learned) * d_rows).sum()

    want = gradients("autograd in float64", inputs, loss)
    right = differences(inputs, loss, want, drawn)
    right &= module(inputs, d_out, want)
    return compiled(kernel, device, inputs, d_out, want) and right


def device_here(name: str) -> str:
    """A device of this machine. Errors: argparse's, for one that it lacks."""
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as why:
        raise argparse.ArgumentTypeError(f"{name}: {next(iter(str(why).splitlines()), 'not here')}") from why
    return name


def count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=device_here, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=count, default=64)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    try:
        right = check(asked.device, asked.rows, asked.seed)
    except Refused as why:
        stop(str(why))
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
