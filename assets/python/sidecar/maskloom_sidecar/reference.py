# SPDX-License-Identifier: MIT
"""Attention with a design step by step, with all scores in memory, in float64: what `verify` compares `attend` with.

It computes everything itself and imports no code of this package, so that no fault of `attention` or `planning` is on both sides.
What it shares with them is what both are given: the exported module's mask and score_mod, the call's place in the design, and the
tensors of the call. Must not know block masks, plans, layers or libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from .aliases import Place
    from .designs import AnyDesign
    from .plan import Brought

# Number of scores that are held at once.
_HELD = 2**25


def attend(
    design: AnyDesign, place: Place | None, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought
) -> Tensor:
    """The design's attention. query [B, Hq, Q, E], key [B, Hkv, KV, E], value [B, Hkv, KV, Ev]; forward alone.

    place: (q_offset, kv_offset, end) of the call in the design; None: both begin at 0. The model's features are applied in this
    order: softcap, bias, the design's score_mod, the model's own mask, the design's mask, sinks. A row without a key is 0.
    """
    batch, heads, q_len, width = query.shape
    kv_heads, kv_len = key.shape[1], key.shape[2]
    device = query.device
    q_offset, kv_offset, end = (0, 0, kv_len) if place is None else place
    # cells of the design that the call has: rows from q_offset, columns from kv_offset, none at `end` or beyond
    mask = design.dense(device, max(q_offset + q_len, end), max(kv_offset + kv_len, end))
    mask = mask[..., q_offset : q_offset + q_len, kv_offset : kv_offset + kv_len]
    columns = torch.arange(kv_offset, kv_offset + kv_len, device=device)
    score_mod = design.mods(device)[1]
    # every query head with the key head of its group
    heads_of_keys = torch.arange(heads, device=device) // (heads // kv_heads)
    keys, values = key.double()[:, heads_of_keys], value.double()[:, heads_of_keys]

    def rows_of(table: Tensor, first: int, last: int) -> Tensor:
        while table.dim() < 4:
            table = table.unsqueeze(0)
        return table if table.shape[2] == 1 else table[:, :, first:last]

    parts = []
    step = max(1, _HELD // max(1, batch * heads * kv_len))
    for first in range(0, q_len, step):
        last = min(first + step, q_len)
        scores = torch.einsum("bhqe,bhke->bhqk", query[:, :, first:last].double(), keys)
        scores = scores / width**0.5 if scale is None else scores * scale
        if brought.softcap is not None:
            scores = brought.softcap * (scores / brought.softcap).tanh()
        if brought.bias is not None:
            scores = scores + rows_of(brought.bias, first, last)
        if score_mod is not None:
            b = torch.arange(batch, device=device).reshape(batch, 1, 1, 1)
            h = torch.arange(heads, device=device).reshape(1, heads, 1, 1)
            rows = torch.arange(q_offset + first, q_offset + last, device=device).reshape(1, 1, last - first, 1)
            scores = score_mod(scores.float(), b, h, rows, columns.reshape(1, 1, 1, kv_len)).double()
        if brought.own is not None:
            own = rows_of(brought.own, first, last)
            scores = torch.where(own, scores, float("-inf")) if own.dtype == torch.bool else scores + own
        scores = torch.where(rows_of(mask, first, last) & (columns < end), scores, float("-inf"))
        # softmax, with the sink as one more score that has no value
        largest = scores.amax(dim=-1, keepdim=True)
        sink = None if brought.sinks is None else brought.sinks.double().reshape(1, heads, 1, 1)
        if sink is not None:
            largest = torch.maximum(largest, sink)
        weights = (scores - torch.where(largest.isinf(), 0.0, largest)).exp()
        total = weights.sum(dim=-1, keepdim=True)
        if sink is not None:
            total = total + (sink - largest).exp()
        parts.append(torch.einsum("bhqk,bhkv->bhqv", weights / torch.where(total == 0.0, 1.0, total), values))
    return torch.cat(parts, dim=2).to(query.dtype)
