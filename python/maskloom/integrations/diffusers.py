"""diffusers: a backend of its dispatcher.

    import maskloom.integrations.diffusers as plugged

    plugged.install()
    pipe.transformer.set_attention_backend("maskloom")
    with plugged.masked(block_mask):
        pipe(...)

Invariant: every argument of the dispatcher is honoured or refused. Context parallelism is refused:
`maskloom.distributed` has it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from .._checks import lengths as lengths_of
from .._functions import Mod
from .._lengths import pair
from .._lists import effective
from ..block_mask import create_block_mask
from ..errors import ArgumentError, MaskloomError, a_kind
from . import _again
from ._calls import MaskLost, added, attend, extents_of, of_dense, refuse_divided

__all__ = ["install", "masked"]

NAME = "maskloom"


class _Given:
    """A mask for the calls of its lengths, and how many had it."""

    def __init__(
        self, block_mask: flex.BlockMask | None, score_mod: Mod | None, lengths: tuple[int, int] | None
    ) -> None:
        self.block_mask, self.score_mod, self.lengths = block_mask, score_mod, lengths
        self.calls = 0
        self.others: dict[tuple[int, int], int] = {}


_given: ContextVar[_Given | None] = ContextVar("maskloom_diffusers", default=None)
#: Lengths of calls that had a mask outside of PyTorch's checkpoints.
_plain: set[tuple[int, int]] = set()
#: Those of all `masked`: where there are none, no call needs to be looked at.
_entered: set[tuple[int, int]] = set()


def _of_call(lengths: tuple[int, int]) -> _Given | None:
    """What is set around a call: where a backward pass makes it again, what was set around the first one.

    Errors: MaskLost where that is not known."""
    given = _given.get()
    if not _again.backward():
        watched = bool(_entered) and not torch.compiler.is_compiling()
        if watched and not _again.first(given) and given is not None:
            _plain.add(lengths)
        return given
    found, before = _again.known()
    if found:
        return before  # type: ignore[no-any-return]
    if given is None and lengths in _plain:
        message = f"a backward pass makes a call over {lengths[0]} x {lengths[1]} tokens again, outside of `masked`"
        raise MaskLost("mask-lost", message, "call backward() inside of `with masked(...)`")
    return given


def install() -> None:
    """Adds the backend "maskloom" to diffusers' dispatcher; a second call has no effect.

    Raises:
        MaskloomError: this diffusers has no dispatcher (before 0.35), or another one.
    """
    try:
        from diffusers.models import attention_dispatch as dispatch

        names, registry = dispatch.AttentionBackendName, dispatch._AttentionBackendRegistry
    except (ImportError, AttributeError) as why:
        message = f"this diffusers has no attention dispatcher: {why}"
        raise MaskloomError("diffusers", message, "use diffusers 0.35 or newer") from None
    member: Any = names._value2member_map_.get(NAME)
    if member is None:
        # the enum is closed: its own constructor makes a member that it does not list
        member = str.__new__(names, NAME)
        member._name_, member._value_ = NAME.upper(), NAME
        member.__objclass__, member._sort_order_ = names, len(names._member_names_)
        names._member_map_[NAME.upper()] = member
        names._value2member_map_[NAME] = member
        names._member_names_.append(NAME.upper())
        # Python 3.12 looks members up as attributes, which an enum does not let others set
        type.__setattr__(names, NAME.upper(), member)
    registry.register(member)(_attention)


@contextlib.contextmanager
def masked(
    block_mask: flex.BlockMask | None = None, score_mod: Mod | None = None, lengths: tuple[int, int] | None = None
) -> Iterator[Any]:
    """Calls of the backend over the mask's tokens have the mask, beside the one that the model gives.

    Args:
        block_mask: of `maskloom.create_block_mask`. None: `lengths` are those of `score_mod`.
        score_mod: `(score, b, h, q_idx, kv_idx) -> score`, in the same calls.
        lengths: (q, kv) of the calls; the block mask's without them.

    Yields an object with `calls`, the number of calls that had it, and `others`, {(q, kv): calls} that had not.

    Raises:
        MaskLost: at the end, if no call had the mask.
    """
    if block_mask is not None and not isinstance(block_mask, flex.BlockMask):
        hint = "pass one of maskloom.create_block_mask"
        raise ArgumentError("block-mask", f"block_mask is {a_kind(block_mask)}, not a BlockMask", hint)
    lengths = pair(lengths)
    if lengths is None:
        if block_mask is None:
            raise ArgumentError("lengths", "neither block_mask nor lengths is given", "pass lengths=(q, kv)")
        lengths = lengths_of(block_mask)
    given = _Given(block_mask, score_mod, lengths)
    _entered.add(lengths)
    token = _given.set(given)
    try:
        yield given
    finally:
        _given.reset(token)
    if not given.calls:
        other = ", ".join(f"{q} x {kv}" for q, kv in given.others) or "none at all"
        message = f"no call over {lengths[0]} x {lengths[1]} tokens had the mask; calls of the backend: {other}"
        raise MaskLost(
            "mask-lost", message, 'model.set_attention_backend("maskloom"), and a mask of the calls\' lengths'
        )


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    _parallel_config: Any = None,
) -> Any:
    """The dispatcher calls this on [B, S, H, D]."""
    query, key, value = (t.transpose(1, 2) for t in (query, key, value))
    refuse_divided(query, key, _parallel_config)
    if query.size(1) != key.size(1) and not enable_gqa:
        message = f"query has {query.size(1)} heads and key has {key.size(1)}"
        raise ArgumentError("heads", message, "pass enable_gqa=True")
    lengths = (query.size(2), key.size(2))
    masks: list[Mod] = []
    score_mod: Mod | None = None
    given = _of_call(lengths)
    block_mask = None
    if given is not None:
        if lengths == given.lengths:
            given.calls += 1
            block_mask, score_mod = given.block_mask, given.score_mod
        else:
            given.others[lengths] = given.others.get(lengths, 0) + 1
    if is_causal:
        masks.append(_causal)
    if attn_mask is not None:
        # 2-D masks of the dispatcher are of keys
        table = attn_mask[:, None, None, :] if attn_mask.dim() == 2 else attn_mask
        if table.dtype != torch.bool:
            score_mod = added(table, extents_of(query, key), score_mod)
        elif block_mask is None and not masks:
            block_mask = of_dense(table, query.size(0), query.size(1), *lengths)
        else:
            masks.append(of_dense(table, query.size(0), query.size(1), *lengths).mask_mod)
    if masks:
        block_mask = _together(block_mask, masks, query, lengths)
    out, lse = attend(query, key, value, block_mask, score_mod, scale, None, dropout_p)
    out = out.transpose(1, 2)
    return (out, lse.transpose(1, 2)) if return_lse else out


def _causal(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx >= kv_idx


def _together(
    block_mask: flex.BlockMask | None, masks: list[Mod], query: torch.Tensor, lengths: tuple[int, int]
) -> flex.BlockMask:
    from .._mods import traced

    every = masks if block_mask is None else [effective(block_mask), *masks]

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        kept = every[0](b, h, q_idx, kv_idx)
        for one in every[1:]:
            kept = kept & one(b, h, q_idx, kv_idx)
        return kept

    per_batch, per_head = traced(mask_mod, "mask_mod", device=query.device)[0].depends()
    extents = (query.size(0) if per_batch else None, query.size(1) if per_head else None)
    return create_block_mask(mask_mod, *extents, *lengths, device=query.device)
