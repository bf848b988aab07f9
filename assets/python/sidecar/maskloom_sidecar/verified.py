# SPDX-License-Identifier: MIT
"""Check of a user's model: its output with the design, compared with its own attention and the mask passed by hand."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from . import layers, reference
from .difference import compared
from .grids import tracing
from .settings import say

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .aliases import Inputs
    from .difference import Difference
    from .plan import Brought, Plan


class _Mode(threading.local):
    def __init__(self) -> None:
        self.now: str | None = None


_mode = _Mode()


def by_hand_now() -> bool:
    """Whether attention runs with the dense mask passed by hand."""
    return not tracing() and _mode.now == "by hand"


def plain_now() -> bool:
    """Whether the model runs without the design."""
    return _mode.now == "plain"


class _run:
    def __init__(self, mode: str) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        _mode.now = self.mode

    def __exit__(self, *_: Any) -> None:
        _mode.now = None


def attend(plan: Plan, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought) -> Tensor:
    """Attention by hand: of the plan it takes the design and the call's place in it."""
    return reference.attend(plan.taken, plan.place, query, key, value, scale, brought)


class Proof:
    """The result of `verify`: largest differences of the outputs, and the calls of one forward pass."""

    def __init__(self, off: float, from_dense: float, allowed: float, masked: int, left: dict[str, int]) -> None:
        self.off = off
        self.from_dense = from_dense
        self.allowed = allowed
        self.masked = masked
        self.left = left

    @property
    def ok(self) -> bool:
        return self.masked > 0 and not self.left and self.off <= self.allowed

    def __str__(self) -> str:
        left = "".join(f"; {n} times: {reason}" for reason, n in self.left.items())
        word = "proved" if self.ok else "NOT proved"
        return (
            f"{word}: {self.masked} calls masked, {sum(self.left.values())} left as they are{left}; output off by {self.off:.1e} "
            f"(allowed {self.allowed:.1e}) from the mask given by hand, {self.from_dense:.3g} from the model without the design"
        )


def verify(model: nn.Module, inputs: Inputs, tolerance: float | None = None) -> Proof:
    """Runs a watched model three times on `inputs` (keyword arguments, or a tuple): with the design, with its dense mask given
    by hand to the same calls in float64, and without it. Returns a Proof and logs it.

    tolerance: the largest allowed difference, as a part of the largest output; default: 1e-4 for float32, 3e-2 for
    bfloat16 and float16. Errors: ValueError for a model that is not watched, RuntimeError for one that is compiled.
    """
    records = [record for m in model.modules() if (record := layers.record(m)) is not None]
    watched = {id(record.model): record.model for record in records}
    if not watched:
        raise ValueError("maskloom: no layer of this model is watched: apply the design first")
    if hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None:
        raise RuntimeError("maskloom: verify runs a model step by step: pass the uncompiled model")
    before = [(layer, layer.masked, dict(layer.left)) for m in watched.values() for layer in m.layers]
    outputs = {}
    for mode in ("design", "by hand", "plain"):
        outputs[mode] = _outputs(model, inputs, mode)
        if mode == "design":
            masked = sum(layer.masked - n for layer, n, _ in before)
            left: dict[str, int] = {}
            for layer, _, known in before:
                for reason, n in layer.left.items():
                    if n > known.get(reason, 0):
                        left[reason] = left.get(reason, 0) + n - known.get(reason, 0)
    got, want, dense = (outputs[mode] for mode in ("design", "by hand", "plain"))
    if tolerance is None:
        tolerance = 1e-4 if all(t.dtype in (torch.float32, torch.float64) for t in want) else 3e-2
    allowed = tolerance * max(t.abs().max().item() for t in want)
    off = max(_apart(a, b) for a, b in zip(got, want, strict=True))
    found = Proof(off, max(_apart(a, b) for a, b in zip(got, dense, strict=True)), allowed, masked, left)
    say(str(found), again=True)
    return found


def compare(model: nn.Module, inputs: Inputs) -> Difference:
    """Runs a watched model without the design and with it on `inputs` (keyword arguments, or a tuple); logs the changes.

    Returns a Difference: of the logits, of a predicted velocity or noise, or of the first output; of the loss if
    `inputs` contain `labels`; of perplexity in a language model. Errors: ValueError for a model that is not watched.
    """
    if not any(layers.record(m) is not None for m in model.modules()):
        raise ValueError("maskloom: no layer of this model is watched: apply the design first")

    def run(mode: str) -> Any:
        state = torch.random.get_rng_state()
        try:
            with torch.no_grad(), _run(mode):
                return model(**inputs) if isinstance(inputs, Mapping) else model(*inputs)
        finally:
            torch.random.set_rng_state(state)

    found = compared(run, model, inputs)
    say(str(found), again=True)
    return found


def _apart(a: Tensor, b: Tensor) -> float:
    # NaN on both sides counts as equal, NaN on one side as an infinite difference
    a, b = a.double(), b.double()
    both = a.isnan() & b.isnan()
    apart = (a - b).abs().masked_fill(both, 0.0)
    return apart.nan_to_num(nan=float("inf")).max().item()


def _outputs(model: nn.Module, inputs: Inputs, mode: str) -> list[Tensor]:
    state = torch.random.get_rng_state()
    try:
        with torch.no_grad(), _run(mode):
            out = model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    finally:
        torch.random.set_rng_state(state)
    found = [t.detach() for t in _tensors(out) if t.is_floating_point()]
    if not found:
        raise ValueError("maskloom: the model's output contains no tensor to compare")
    return found


def _tensors(out: Any) -> list[Tensor]:
    if isinstance(out, torch.Tensor):
        return [out]
    parts = out.values() if hasattr(out, "values") else out if isinstance(out, (tuple, list)) else ()
    return [t for part in parts for t in _tensors(part)]
