"""`flex_attention` on an NVIDIA GPU: past PyTorch's dispatcher where nobody watches, else by the package's operators.

Invariant: both ways run the same passes. Must not know what a pass consists of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from ._call import call
from ._checks import cast, check, check_block_mask, number
from ._compiled import template_of
from ._cuda import Attend, alone, backward, forward
from ._functions import Mod
from ._held import BARE, Held, Mods, Score, held_of, recorded, tokens_of, with_score
from ._mods import bounded, given, readable

#: Masks of compiled graphs that are kept, by their tensors.
MOST = 64


class Plan:
    """What an operator's call is of."""

    __slots__ = ("live", "mods")

    def __init__(self, mods: Mods, live: list[int]) -> None:
        self.mods = mods
        #: which of the operator's tensors kernels read
        self.live = live


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Mod | None,
    block_mask: flex.BlockMask | None,
    scale: Any,
    gqa: bool,
    options: Any,
    largest: bool,
    operate: Any,
) -> Sequence[torch.Tensor]:
    """Output, lse and, where asked for, the rows' largest scores.

    operate: runs the package's operator for a `Plan`. Errors: those of `flex_attention`."""
    if torch.is_autocast_enabled("cuda"):
        query, key, value = cast(query, key, value)
    if scale is not None and type(scale) is not float:
        scale = number(scale)

    def refuse() -> None:
        check(query, key, value, gqa, options)
        if block_mask is not None:
            check_block_mask(block_mask, query, key)

    if type(key) is not type(query) and not (isinstance(key, torch.Tensor) and isinstance(value, torch.Tensor)):
        refuse()
    if block_mask is not None and not isinstance(block_mask, flex.BlockMask):
        refuse()
    held = held_of(block_mask)
    if score_mod is None:
        live: list[torch.Tensor] = []
        mods = held.mods.get(None)
        if mods is None:
            mods = held.mods[None] = Mods(held.mask, None, [], [])
    else:
        score, tensors = recorded(score_mod)
        mods, live = with_score(held.mask, held.mods, score, tensors)
    learns = torch.is_grad_enabled() and (
        query.requires_grad or key.requires_grad or value.requires_grad or any([t.requires_grad for t in live])
    )
    if not alone(query, key, value, *live):
        refuse()
        if key.size(0) != query.size(0):
            key, value = (t.expand(query.size(0), -1, -1, -1) for t in (key, value))
        results: Sequence[torch.Tensor] = operate(query, key, value, live, Plan(mods, list(range(len(live)))), scale)
        return results
    how = (scale, largest, learns, gqa, type(options), held.shape)
    if learns:
        found: Sequence[torch.Tensor] = Attend.apply(query, key, value, mods, how, refuse, *live)
        return found
    return forward(query, key, value, mods, live, how, refuse)


# --- the operators on a GPU ---


def plan_of(plan: Sequence[int], captured: Sequence[torch.Tensor], known: dict[int, Any]) -> Plan:
    """What an operator names: (its number, 0, 0), or (tensors of the mask, template of mask, of score)."""
    first, mask_number, score_number = plan
    if mask_number == 0 and score_number == 0 and first in known:
        found: Plan = known[first]
        return found
    captured = list(captured)
    held = _masked(mask_number, captured[:first])
    if score_number == 0:
        mods = held.mods.get(None)
        if mods is None:
            mods = held.mods[None] = Mods(held.mask, None, [], [])
        return Plan(mods, [])
    bound = template_of(score_number).over(captured[first:])
    score = bound.score
    own = [captured[first + at] for at in bound.order]
    if score is None:
        ints = [at for at, tensor in enumerate(own) if not tensor.is_floating_point()]
        score = bound.score = Score(bound.mask, bound.order, ints, [])
    mods, _ = with_score(held.mask, held.mods, score, own)
    return Plan(mods, [first + bound.order[at] for at in mods.live])


_MASKS: dict[Any, Held] = {}


def _masked(number: int, tensors: list[torch.Tensor]) -> Held:
    """The mask of a template over these tensors. Their values are read where they were not read before."""
    if number == 0:
        return BARE
    template = template_of(number)
    read = [tensors[at] for at in template.reads]
    tokens = tokens_of(read)
    key = (number, tokens, tuple([tensor.shape for tensor in read]))
    found = _MASKS.get(key)
    if found is None or any(token[1] == -1 for token in tokens):
        bound = template.over(tensors)
        mask = bound.mask
        if bound.order:
            mask = call(mask.rebound, [given(readable(tensors[at], "a mod")) for at in bound.order])
        bounded(_MASKS, MOST)
        found = _MASKS[key] = Held(mask, None, read)
    return found


def operator_forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, captured: Any, plan: Plan, scale: float, largest: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    live = [captured[at].detach() for at in plan.live]
    how = (scale, largest, True, "operator")
    out, lse, *more = forward(query, key, value, plan.mods, live, how, None)
    return out, lse, more[0] if largest else lse.new_empty(0)


def operator_backward(
    d_out: torch.Tensor, d_lse: torch.Tensor, saved: Any, lse: torch.Tensor, captured: Any, plan: Plan, scale: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    live = [captured[at].detach() for at in plan.live]
    (dq, dk, dv), learned = backward(saved, lse, d_out, d_lse, plan.mods, live, scale)
    gradients = [torch.zeros_like(tensor) for tensor in captured]
    for at, gradient in zip(plan.live, learned):
        if gradient is not None:
            gradients[at] = gradient
    return dq, dk, dv, gradients
