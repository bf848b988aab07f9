"""This package's kernels as the local attention of a plan.

Invariant: a stage whose mods cannot be recorded is left to PyTorch's compiled FlexAttention. Must not know ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _cuda
from .._held import Mods, held_of, recorded, with_score
from ..errors import RecordingError
from .local import Mod, Stage
from .staged import Kernels

__all__ = ["CARDS", "fits"]


def fits(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the kernels take these tensors: 16-bit numbers on an NVIDIA GPU, heads of whole chunks of 8."""
    return _cuda.alone(q, k, v) and q.dtype in _cuda.DTYPES and q.shape[3] % 8 == 0 == v.shape[3] % 8


class _Cards:
    """`Kernels` of this package."""

    def ready(self, stage: Stage, score_mod: Mod | None) -> tuple[Mods, list[Tensor]] | None:
        """None: a mod cannot be recorded."""
        try:
            held = held_of(stage.block_mask())
            if score_mod is None:
                found = held.mods.get(None)
                if found is None:
                    found = held.mods[None] = Mods(held.mask, None, [], [])
                return found, []
            score, tensors = recorded(stage.score_at(score_mod))
            return with_score(held.mask, held.mods, score, tensors)
        except RecordingError:
            return None

    def forward(
        self, of: Any, q: Tensor, k: Tensor, v: Tensor, scale: float | None, learns: bool
    ) -> tuple[Tensor, Tensor]:
        mods, live = of
        out, lse = _cuda.forward(q, k, v, mods, live, (scale, False, learns, "ranks"), None)
        return out, lse

    def backward(
        self, of: Any, saved: tuple[Tensor, ...], lse: Tensor, d_out: Tensor, d_lse: Tensor | None, scale: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        mods, live = of
        (dq, dk, dv), _ = _cuda.backward(saved, lse, d_out, d_lse, mods, [t.detach() for t in live], scale)
        return dq, dk, dv

    def merge(self, out: Tensor, lse: Tensor, part: Tensor, part_lse: Tensor, rows: Tensor | None) -> None:
        _cuda.merge(out, lse, part, part_lse, rows)


#: There is one, for all cards.
CARDS = _Cards()


def all_ready(
    kernels: Kernels, stages: list[Stage], score_mod: Mod | None
) -> list[tuple[Any, torch.Tensor | None]] | None:
    """What each stage computes; None where one is left to PyTorch."""
    made = []
    for stage in stages:
        empty = len(stage.q_positions) == 0 or len(stage.kv_positions) == 0
        of = () if empty else kernels.ready(stage, score_mod)
        if of is None:
            return None
        made.append((of, stage.picked))
    return made
