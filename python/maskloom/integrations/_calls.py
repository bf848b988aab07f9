"""One attention call of any library, as `maskloom.flex_attention` takes it, and the record of calls that `proof` reads.

Invariant: what a call brings (a mask, a soft cap, sinks, a bias) is applied or refused in words. Must not know the
libraries.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from .. import _divided
from .._checks import lengths
from .._functions import Mod
from .._lists import effective, version
from ..attention import flex_attention
from ..block_mask import create_block_mask
from ..errors import ArgumentError, MaskloomError


class MaskLost(MaskloomError, RuntimeError):
    """A call or a model without the mask that it was said to have."""


class Seen:
    """A call that was made: its lengths and its mask."""

    def __init__(self, lengths: tuple[int, int], block_mask: flex.BlockMask | None) -> None:
        self.lengths = lengths
        self.block_mask = block_mask

    def dense(self) -> torch.Tensor:
        """The kept cells, bool [Q_LEN, KV_LEN], of all batch entries and heads together, on the CPU."""
        if self.block_mask is None:
            return torch.ones(self.lengths, dtype=torch.bool)
        batch, heads = self.block_mask.kv_num_blocks.shape[:2]
        device = self.block_mask.kv_num_blocks.device
        cells = flex.create_mask(effective(self.block_mask), batch, heads, *self.lengths, device=str(device))
        return cells.flatten(0, 1).any(0).cpu()


_seen: ContextVar[list[Seen] | None] = ContextVar("maskloom_calls", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[list[Seen]]:
    """The calls that are made inside, in their order."""
    found: list[Seen] = []
    token = _seen.set(found)
    try:
        yield found
    finally:
        _seen.reset(token)


#: What to do about a divided sequence.
PLANNED = (
    "divide it by maskloom.plan_context_parallel, whose attention has the mask, or run without context parallelism"
)


def extents_of(query: torch.Tensor, key: torch.Tensor) -> tuple[int, int, int, int]:
    """[B, H, Q_LEN, KV_LEN] of a call on [B, H, S, D]."""
    return query.size(0), query.size(1), query.size(2), key.size(2)


def refuse_divided(query: torch.Tensor, key: torch.Tensor, parallel_config: Any = None, module: Any = None) -> None:
    """Errors: MaskLost where another library has divided the tokens over ranks: a mask has other positions there."""
    if torch.compiler.is_compiling():
        return
    why = _divided.of_call(query, key, parallel_config, module)
    if why is not None:
        raise MaskLost("context-parallel", why, PLANNED)


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    block_mask: flex.BlockMask | None,
    score_mod: Mod | None = None,
    scale: float | None = None,
    sinks: torch.Tensor | None = None,
    dropout: float = 0.0,
    whole: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention and its lse. query [B, Hq, Q, E], key [B, Hkv, KV, E], value [B, Hkv, KV, Ev]; sinks [Hq]. whole: the
    caller knows that the mask is of these tokens.

    Errors: MaskloomError for dropout, MaskLost in a divided sequence, ArgumentError for what `flex_attention`
    refuses."""
    if not whole:
        refuse_divided(query, key)
    if dropout:
        raise MaskloomError("dropout", f"attention dropout is {dropout}", "Maskloom's attention has none: set it to 0")
    seen = _seen.get()
    if seen is not None and not torch.compiler.is_compiling():
        seen.append(Seen((query.size(2), key.size(2)), block_mask))
    gqa = query.size(1) != key.size(1)
    found: Any = flex_attention(query, key, value, score_mod, block_mask, scale, gqa, return_lse=True)
    out, lse = found
    if sinks is not None:
        # the sink takes exp(sink) / (exp(sink) + exp(lse)) of each row's weight
        kept = torch.sigmoid(lse - sinks.to(lse.dtype).view(1, -1, 1))
        out = (out.to(lse.dtype) * kept.unsqueeze(-1)).to(out.dtype)
    return out, lse


def capped(limit: float, then: Mod | None = None) -> Mod:
    """A score mod: limit * tanh(score / limit), then another."""

    def score_mod(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        score = torch.tanh(score / limit) * limit
        return score if then is None else then(score, b, h, q_idx, kv_idx)

    return score_mod


def added(bias: torch.Tensor, extents: tuple[int, int, int, int], then: Mod | None = None) -> Mod:
    """A score mod: score + bias, then another. bias is broadcast to extents, [B, H, Q_LEN, KV_LEN]; it gets gradients.

    Errors: those of `check_dense`."""
    check_dense(bias, *extents)
    while bias.dim() < 4:
        bias = bias.unsqueeze(0)
    small, varying = _varying(bias)

    def score_mod(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        at = (b, h, q_idx, kv_idx)
        score = score + small[tuple(at[axis] for axis in varying)]
        return score if then is None else then(score, b, h, q_idx, kv_idx)

    return score_mod


def _varying(table: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
    """A table without its axes of extent 1, and the others."""
    varying = [axis for axis in range(4) if table.size(axis) > 1] or [3]
    return table.reshape([table.size(axis) for axis in varying]), varying


#: Block masks of dense ones: a model gives the same tensor to all its layers.
_blocks: dict[int, tuple[Any, int, flex.BlockMask]] = {}


def of_dense(mask: torch.Tensor, batch: int, heads: int, q_len: int, kv_len: int) -> flex.BlockMask:
    """The block mask of a bool tensor that is broadcast to [B, H, Q_LEN, KV_LEN]. Errors: those of `check_dense`."""
    check_dense(mask, batch, heads, q_len, kv_len)
    whole, changes = mask, version(mask)
    known = _blocks.get(id(whole))
    if known is not None and known[0]() is whole and known[1] == changes != -1 and lengths(known[2]) == (q_len, kv_len):
        return known[2]
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    small, varying = _varying(mask)

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        at = (b, h, q_idx, kv_idx)
        return small[tuple(at[axis] for axis in varying)]

    rows = None if mask.size(0) == 1 else batch
    columns = None if mask.size(1) == 1 else heads
    made = create_block_mask(mask_mod, rows, columns, q_len, kv_len, device=mask.device)
    # a copy: other threads make block masks meanwhile
    for number, (alive, _, _) in list(_blocks.items()):
        if alive() is None:
            _blocks.pop(number, None)
    _blocks[id(whole)] = (weakref.ref(whole), changes, made)
    return made


def check_dense(mask: torch.Tensor, batch: int, heads: int, q_len: int, kv_len: int) -> None:
    """Errors: ArgumentError where a mask is neither bool nor float, or cannot be broadcast to [B, H, Q_LEN, KV_LEN]."""
    if mask.dtype != torch.bool and not mask.is_floating_point():
        message = f"the mask is {mask.dtype}, which could be kept cells or a bias"
        raise ArgumentError("mask-dtype", message, "pass `mask.bool()`, or a float mask that is added to the scores")
    wanted = (batch, heads, q_len, kv_len)
    axes = list(mask.shape)[::-1]
    if len(axes) > 4 or any(size not in (1, extent) for size, extent in zip(axes, wanted[::-1])):
        message = f"the mask is {tuple(mask.shape)}, the call is over [B, H, Q, KV] = {wanted}"
        raise ArgumentError("mask-shape", message, "pass a mask that is broadcast to it")
