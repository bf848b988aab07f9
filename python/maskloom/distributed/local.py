"""Attention of one rank's queries over the keys of one stage, with its logsumexp.

Invariant: a full block is not asked for its mask, a partial one is, and a block that is not listed is skipped,
exactly as in FlexAttention. Must not know ranks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.overrides import TorchFunctionMode

__all__ = ["Stage", "attend"]

Mod = Callable[..., Tensor]


@dataclass
class Stage:
    """The keys of one exchange at this rank, and the mask over them."""

    #: Ranks and their key blocks, in the order of this stage's keys.
    sources: list[tuple[int, list[int]]]
    #: For each mask of its own (batch entries and heads) and row of query blocks: runs of key blocks.
    rows: list[list[list[tuple[int, int, bool]]]]
    #: Batch entries and heads between which the mask differs.
    distinct: tuple[int, int]
    block_size: tuple[int, int]
    #: The token of the whole sequence at each local query and key.
    q_positions: Tensor
    kv_positions: Tensor
    mask_mod: Mod
    #: The local queries that take part; None: all.
    picked: Tensor | None = None
    _block_mask: BlockMask | None = None

    def at(self, mod: Mod) -> Mod:
        """A mask mod of the whole sequence at local indices."""
        q, kv = self.q_positions, self.kv_positions
        return lambda b, h, q_idx, kv_idx: mod(b, h, q[q_idx], kv[kv_idx])

    def score_at(self, mod: Mod) -> Mod:
        """A score mod of the whole sequence at local indices."""
        q, kv = self.q_positions, self.kv_positions
        return lambda score, b, h, q_idx, kv_idx: mod(score, b, h, q[q_idx], kv[kv_idx])

    def block_mask(self) -> BlockMask:
        """The same as PyTorch's BlockMask over local indices."""
        if self._block_mask is None:
            batch, heads = self.distinct
            columns = max(1, -(-len(self.kv_positions) // self.block_size[1]))
            arrays: list[Tensor] = []
            for wanted in (False, True):
                counts, indices = [], []
                for rows in self.rows:
                    for runs in rows:
                        listed = [n for start, end, full in runs if full == wanted for n in range(start, end)]
                        counts.append(len(listed))
                        indices.append(listed + [0] * (columns - len(listed)))
                shape = (batch, heads, len(self.rows[0]))
                device = self.q_positions.device
                arrays.append(torch.tensor(counts, dtype=torch.int32, device=device).view(shape))
                arrays.append(torch.tensor(indices, dtype=torch.int32, device=device).view(*shape, columns))
            more: dict[str, Any] = {"BLOCK_SIZE": self.block_size, "mask_mod": self.at(self.mask_mod)}
            if "seq_lengths" in inspect.signature(BlockMask.from_kv_blocks).parameters:  # from PyTorch 2.6 on
                more["seq_lengths"] = (len(self.q_positions), len(self.kv_positions))
            self._block_mask = BlockMask.from_kv_blocks(arrays[0], arrays[1], arrays[2], arrays[3], **more)
        return self._block_mask

    def dense(self, batch: int, heads: int) -> Tensor:
        """Which cells are kept: bool [batch, heads, queries, keys]."""
        full, listed = (self._listed(wanted) for wanted in (True, False))
        if not bool(listed.any()):
            return full.expand(batch, heads, -1, -1)
        kept = _over(self.mask_mod, batch, heads, self.q_positions, self.kv_positions)
        return full | (listed & kept)

    def _listed(self, wanted: bool) -> Tensor:
        (block_q, block_kv), (batch, heads) = self.block_size, self.distinct
        out = torch.zeros(
            batch * heads,
            len(self.q_positions),
            len(self.kv_positions),
            dtype=torch.bool,
            device=self.q_positions.device,
        )
        for n, rows in enumerate(self.rows):
            for row, runs in enumerate(rows):
                for start, end, full in runs:
                    if full == wanted:
                        out[n, row * block_q : (row + 1) * block_q, start * block_kv : end * block_kv] = True
        return out.view(batch, heads, *out.shape[1:])


def attend(
    q: Tensor, k: Tensor, v: Tensor, stage: Stage, score_mod: Mod | None, scale: float | None
) -> tuple[Tensor, Tensor]:
    """Output and logsumexp, differentiable. q [B, Hq, L, D], k [B, Hkv, S, D], v [B, Hkv, S, Dv].

    Compiled FlexAttention on a GPU. On a CPU, where FlexAttention has no backward pass, the same in plain PyTorch."""
    if q.is_cuda:
        return _flex(q, k, v, stage, score_mod, scale)
    return _eager(q, k, v, stage, score_mod, scale)


_compiled: Any = None


def _flex(
    q: Tensor, k: Tensor, v: Tensor, stage: Stage, score_mod: Mod | None, scale: float | None
) -> tuple[Tensor, Tensor]:
    global _compiled
    if _compiled is None:
        _compiled = torch.compile(flex_attention)
    own = None if score_mod is None else stage.score_at(score_mod)
    out, lse = _compiled(
        q,
        k,
        v,
        score_mod=own,
        block_mask=stage.block_mask(),
        scale=scale,
        enable_gqa=q.shape[1] != k.shape[1],
        return_lse=True,
    )
    return out, lse


def _eager(
    q: Tensor, k: Tensor, v: Tensor, stage: Stage, score_mod: Mod | None, scale: float | None
) -> tuple[Tensor, Tensor]:
    batch, heads = q.shape[:2]
    group = heads // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    scores = (q.to(exact) @ k.to(exact).transpose(-1, -2)) * (
        scale if scale is not None else 1 / math.sqrt(q.shape[-1])
    )
    if score_mod is not None:
        scores = _over(score_mod, batch, heads, stage.q_positions, stage.kv_positions, scores)
    kept = stage.dense(batch, heads)
    scores = scores.masked_fill(~kept, -math.inf)
    lse = torch.logsumexp(scores, dim=-1)
    empty = ~kept.any(dim=-1)
    # a row without keys: output 0, and no gradient through exp(-inf - -inf)
    weights = torch.exp(scores - lse.masked_fill(empty, 0.0).unsqueeze(-1))
    return (weights @ v.to(exact)).to(q.dtype), lse


def _over(mod: Mod, batch: int, heads: int, q: Tensor, kv: Tensor, scores: Tensor | None = None) -> Tensor:
    """A mod at every (b, h, q_idx, kv_idx). Every PyTorch: before 2.9 an index of vmap reads no element of a tensor."""
    if len(q) == 0 or len(kv) == 0:
        return (
            torch.zeros(batch, heads, len(q), len(kv), dtype=torch.bool, device=q.device) if scores is None else scores
        )
    first = () if scores is None else (0,)
    fn = mod
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        fn = torch.vmap(fn, in_dims=(*first, *dims))
    indices = (torch.arange(batch, device=q.device), torch.arange(heads, device=q.device), q, kv)
    with _Elements():
        found: Tensor = fn(*indices) if scores is None else fn(scores, *indices)
    return found


class _Elements(TorchFunctionMode):
    """Reads `tensor[index, ..]` by the operator that has a rule of vmap, where all indices are ints of a cell."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is Tensor.__getitem__:
            table, index = args
            items = index if isinstance(index, tuple) else (index,)
            if any(isinstance(item, Tensor) for item in items) and all(map(_is_of_a_cell, items)):
                places = [torch.as_tensor(item, device=table.device) for item in items]
                return torch.ops.aten.index(table, places)
        return func(*args, **(kwargs or {}))


def _is_of_a_cell(item: Any) -> bool:
    if isinstance(item, Tensor):
        return item.dtype not in (torch.bool, torch.uint8)
    return type(item) is int
