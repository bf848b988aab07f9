# SPDX-License-Identifier: MIT
"""The plan of a call: the design and its block mask, or the reason why the call is not masked.

A caller that torch.compile traces gets plans that were created during tracing, and is specialised to their lengths, grid and
layer. Must not know libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, cast

import torch
from torch.nn.attention.flex_attention import create_block_mask

from . import layers
from .counts import numbered, plans
from .designs import choose
from .grids import exporting, of_level, tracing
from .plan import Plan
from .settings import say

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn.attention.flex_attention import BlockMask

    from .aliases import Extents, Grid, Grids, MaskMod, Mods, Place
    from .counts import Layer
    from .designs import AnyDesign


P = ParamSpec("P")
# a traced caller treats the result of such a function as a constant
_constant = cast("Callable[[Callable[P, str]], Callable[P, str]]", torch.compiler.assume_constant_result)


def plan_for(
    layer: Layer,
    q_len: int,
    kv_len: int,
    batch: int,
    heads: int,
    device: torch.device,
    crosses: bool,
    place: Place | None = None,
    lead: int | None = None,
) -> Plan:
    """The plan for a call in a layer.

    `place`: (q_offset, kv_offset, end) in the design of a call of one sequence. `lead`: tokens of padding that every row begins
    with, if rows begin with different numbers of them: the plan has no block mask then, because each row has its own.
    """
    if not tracing():
        return _plan(layer, q_len, kv_len, batch, heads, device, crosses, place, layers.grids_of(layer.model), lead)
    model = layer.model
    key = _key(layer.number, q_len, kv_len, batch, heads, str(device), crosses, place, model.grids, model.pyramid)
    return cast("Plan", getattr(plans, key))


def _plan(
    layer: Layer,
    q_len: int,
    kv_len: int,
    batch: int,
    heads: int,
    device: torch.device,
    crosses: bool,
    place: Place | None,
    grids: Callable[[int], Grids | None],
    lead: int | None = None,
) -> Plan:
    if torch._C._current_graph_task_id() != -1 and layer.model.wants_grid():
        layer.model.check_recomputed()
    # the end of a part decides whether it fits
    lengths = (q_len, kv_len) if place is None else (place[2] - (lead or 0),) * 2
    part = None if place is None else q_len
    found = choose(layer.designs, *lengths, crosses, grids, batch, heads, layer.model.assume, part)
    design = found.design
    if design is None:
        return Plan(None, reason=found.reason)
    extents = (design.module.BATCH, design.module.HEADS)
    if lead is not None:
        mask_mod, score_mod = design.mods(device)
        plan = Plan(None, design, None, None, mask_mod, score_mod, extents, place)
        plan.loose = exporting()
        return plan
    if exporting():
        # values created during tracing are not tensors, so none of them is cached
        mods = design.mods(device) if place is None else shifted(design.mods(device), *place)
        plan = Plan(None, design, None, None, mods[0], mods[1], extents, place)
        plan.loose = True
        return plan
    if place is None or place == (0, 0, q_len) == (0, 0, kv_len):
        mask_mod, score_mod = design.mods(device)
        block_mask = design.block_mask(device, q_len, kv_len)
        return Plan(f"{q_len}_{kv_len}", design, None, block_mask, mask_mod, score_mod, extents)
    key = (str(device), q_len, kv_len, *place)
    return cast("Plan", design.keep(key, lambda: _part(design, device, q_len, kv_len, place, extents)))


def _part(design: AnyDesign, device: torch.device, q_len: int, kv_len: int, place: Place, extents: Extents) -> Plan:
    """The plan for a part of the design: queries from q_offset, keys from kv_offset, none at `end` or beyond."""
    mask_mod: MaskMod | None
    mask_mod, score_mod = shifted(design.mods(device), *place)
    block_mask: BlockMask | None
    if design.mods(device)[0] is None and place[2] >= place[1] + kv_len:
        mask_mod = block_mask = None
    else:
        assert mask_mod is not None
        block_mask = block_mask_of(design, mask_mod, extents, q_len, kv_len, device)
    name = "_".join(map(str, (q_len, kv_len, *place)))
    return Plan(name, design, None, block_mask, mask_mod, score_mod, extents, place)


def block_mask_of(
    design: AnyDesign, mask_mod: MaskMod, extents: Extents, q_len: int, kv_len: int, device: torch.device
) -> BlockMask:
    """A BlockMask of another mask_mod at the design's BLOCK_SIZE."""
    if hasattr(design.module, "block_mask_of"):
        return cast("BlockMask", design.module.block_mask_of(mask_mod, *extents, q_len, kv_len, device))
    size = design.module.BLOCK_SIZE
    return create_block_mask(mask_mod, *extents, q_len, kv_len, device=str(device), BLOCK_SIZE=size)


def shifted(mods: Mods, q_offset: int, kv_offset: int, end: int) -> Mods:
    """mask_mod and score_mod of a part."""
    keep, score = mods

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        inside = kv_idx + kv_offset < end
        return inside if keep is None else inside & keep(b, h, q_idx + q_offset, kv_idx + kv_offset)

    def score_mod(value: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        assert score is not None
        return score(value, b, h, q_idx + q_offset, kv_idx + kv_offset)

    return mask_mod, None if score is None else score_mod


@_constant
def _key(
    number: int,
    q_len: int,
    kv_len: int,
    batch: int,
    heads: int,
    device: str,
    crosses: bool,
    place: Place | None,
    grids: Grids | None,
    pyramid: Grid | None,
) -> str:
    """Creates the plan while a caller is traced; returns its name in the cache."""
    layer = numbered(number)

    def of(tokens: int) -> Grids | None:
        return grids if pyramid is None else of_level(pyramid, tokens)

    plan = _plan(layer, q_len, kv_len, batch, heads, torch.device(device), crosses, place, of)
    words = (number, q_len, kv_len, batch, heads, device, crosses, place, grids, pyramid)
    name = "plan_" + "".join(c if c.isalnum() else "_" for c in repr(words))
    setattr(plans, name, plan)
    layer.plans.put(name, plan)
    if plan.design is not None:
        layer.compiled += 1
        layer.model.note_sparsity(plan.block_mask)
        layer.model.compiled_in(layer)
    elif plan.reason is not None:
        layer.left[f"compiled: {plan.reason}"] += 1
        say(plan.reason)
    return name
