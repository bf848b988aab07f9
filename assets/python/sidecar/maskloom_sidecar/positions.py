# SPDX-License-Identifier: MIT
"""Where the tokens of a call stand in the design, if not each where its index says: packed documents, padding at the left.

In a packed sequence the design begins again in each document. In a padded one it begins at each row's first token. Must not know
layers or libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .grids import tracing
from .plan import Brought, Plan
from .planning import block_mask_of
from .reference import attend
from .settings import say

if TYPE_CHECKING:
    from torch import Tensor

    from .aliases import Place


def documents_of(boundaries: Tensor, length: int) -> Tensor:
    """cu_seq_lens [documents + 1] as the number of each token's document, [1, length]."""
    at = torch.arange(length, device=boundaries.device)
    return torch.searchsorted(boundaries.long(), at, right=True)[None]


def packed(plan: Plan, documents: Tensor, q_len: int, kv_len: int) -> Plan:
    """The plan for packed documents: the design starts again in each, and no document attends to another."""
    if plan.place not in (None, (0, 0, q_len)) or q_len != kv_len:
        raise RuntimeError("maskloom: packed sequences with a key-value cache are not known: generate without packing")
    say("packed sequences: each document has the design for itself")
    index = torch.arange(documents.shape[1], device=documents.device)
    first = torch.ones_like(documents, dtype=torch.bool)
    first[:, 1:] = documents[:, 1:] != documents[:, :-1]
    starts = torch.where(first, index, torch.zeros_like(index)).cummax(dim=1).values
    at = index - starts
    keep, score = plan.taken.mods(documents.device)
    one = documents.shape[0] == 1

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        row = b * 0 if one else b
        same = documents[row, q_idx] == documents[row, kv_idx]
        return same if keep is None else same & keep(b, h, at[row, q_idx], at[row, kv_idx])

    def score_mod(value: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        row = b * 0 if one else b
        assert score is not None
        return score(value, b, h, at[row, q_idx], at[row, kv_idx])

    extents = (plan.extents[0] if one else documents.shape[0], plan.extents[1])
    block_mask = None
    if tracing():
        if documents.device.type != "cpu":
            from torch.nn.attention.flex_attention import create_block_mask

            size = plan.taken.module.BLOCK_SIZE
            block_mask = create_block_mask(mask_mod, *extents, q_len, kv_len, device=documents.device, BLOCK_SIZE=size)
    elif not plan.loose:
        block_mask = block_mask_of(plan.taken, mask_mod, extents, q_len, kv_len, documents.device)
    made = Plan("packed", plan.design, None, block_mask, mask_mod, None if score is None else score_mod, extents)
    made.loose = plan.loose
    return made


def padded(plan: Plan, starts: Tensor, q_len: int, kv_len: int) -> Plan:
    """The plan for rows that begin with padding: the design begins at each row's first token. starts [B]: its index."""
    q_offset, kv_offset, end = _place(plan, kv_len)
    keep, score = plan.taken.mods(starts.device)

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        first = starts[b]
        at = kv_idx + kv_offset
        # padding has no place in the design, and a table must not be read before its beginning
        inside = (at < end) & (at >= first) & (q_idx + q_offset >= first)
        if keep is None:
            return inside
        return inside & keep(b, h, (q_idx + q_offset - first).clamp(min=0), (at - first).clamp(min=0))

    def score_mod(value: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        first = starts[b]
        assert score is not None
        return score(value, b, h, (q_idx + q_offset - first).clamp(min=0), (kv_idx + kv_offset - first).clamp(min=0))

    extents = (starts.shape[0], plan.extents[1])
    block_mask = None
    if not tracing() and not plan.loose:
        block_mask = block_mask_of(plan.taken, mask_mod, extents, q_len, kv_len, starts.device)
    score_mod_here = None if score is None else score_mod
    made = Plan("padded", plan.design, None, block_mask, mask_mod, score_mod_here, extents, plan.place)
    made.loose = plan.loose
    return made


def _place(plan: Plan, kv_len: int) -> Place:
    return (0, 0, kv_len) if plan.place is None else plan.place


def packed_by_hand(
    plan: Plan, documents: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought
) -> Tensor:
    """Packed documents one after another, by hand."""
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    for b in range(query.shape[0]):
        row = documents[b if documents.shape[0] > 1 else 0]
        for number in torch.unique(row).tolist():
            here = (row == number).nonzero().flatten()
            first, last = int(here[0]), int(here[-1]) + 1
            q, k, v = (t[b : b + 1, :, first:last] for t in (query, key, value))
            alone = Brought(softcap=brought.softcap, sinks=brought.sinks)
            out[b : b + 1, :, first:last] = attend(plan.taken, None, q, k, v, scale, alone)
    return out


def padded_by_hand(
    plan: Plan, starts: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought
) -> Tensor:
    """Each row without its padding, by hand."""
    q_offset, kv_offset, end = _place(plan, key.shape[2])
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    for first in torch.unique(starts).tolist():
        rows = starts == first
        q_cut, kv_cut = max(first - q_offset, 0), max(first - kv_offset, 0)
        place = (max(q_offset - first, 0), max(kv_offset - first, 0), end - first)
        alone = Brought(_cut(brought.own, q_cut, kv_cut), _cut(brought.bias, q_cut, kv_cut), brought.softcap, brought.sinks)
        given = (query[:, :, q_cut:], key[:, :, kv_cut:], value[:, :, kv_cut:])
        if given[0].shape[2]:
            # all rows are computed, because a design may have a mask for each
            out[rows, :, q_cut:] = attend(plan.taken, place, *given, scale, alone)[rows]
    return out


def _cut(table: Tensor | None, q_cut: int, kv_cut: int) -> Tensor | None:
    """A table [.., Q or 1, KV or 1] without its first rows and columns."""
    if table is None or table.dim() < 2:
        return table
    table = table if table.shape[-2] == 1 else table[..., q_cut:, :]
    return table if table.shape[-1] == 1 else table[..., kv_cut:]
