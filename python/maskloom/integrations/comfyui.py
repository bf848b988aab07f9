"""ComfyUI: an override of one model's attention.

    override = maskloom.integrations.comfyui.override(block_mask)
    model.model_options.setdefault("transformer_options", {})["optimized_attention_override"] = override

Invariant: calls of other lengths, and calls with what Maskloom does not know, go to ComfyUI's own function and are
counted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from .._checks import lengths as lengths_of
from .._functions import Mod
from ..errors import ArgumentError
from ._calls import added, attend, extents_of

__all__ = ["Override", "override"]

_HARMLESS = {"attn_precision", "transformer_options", "_inside_attn_wrapper", "low_precision_attention"}


def override(
    block_mask: flex.BlockMask | None = None, score_mod: Mod | None = None, lengths: tuple[int, int] | None = None
) -> Override:
    """A function for `transformer_options["optimized_attention_override"]`: calls over the mask's tokens have it.

    Args:
        block_mask: of `maskloom.create_block_mask`; the mask that ComfyUI gives applies as well.
        score_mod: `(score, b, h, q_idx, kv_idx) -> score`.
        lengths: (q, kv) of the calls; the block mask's without them.

    Raises:
        ArgumentError: neither block_mask nor lengths is given.
    """
    if lengths is None:
        if block_mask is None:
            raise ArgumentError("lengths", "neither block_mask nor lengths is given", "pass lengths=(q, kv)")
        lengths = lengths_of(block_mask)
    return Override(block_mask, score_mod, lengths)


class Override:
    """Called by ComfyUI in place of its attention. `calls` had the mask; `others` is {reason: calls} of those that
    had not."""

    def __init__(self, block_mask: flex.BlockMask | None, score_mod: Mod | None, lengths: tuple[int, int]) -> None:
        self.block_mask, self.score_mod, self.lengths = block_mask, score_mod, lengths
        self.calls = 0
        self.others: dict[str, int] = {}

    def __call__(
        self,
        func: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        heads: int,
        mask: torch.Tensor | None = None,
        attn_precision: Any = None,
        skip_reshape: bool = False,
        skip_output_reshape: bool = False,
        **more: Any,
    ) -> torch.Tensor:
        """q, k, v: [B, S, heads * D], or [B, heads, S, D] with skip_reshape. Returns [B, S, heads * D], or as q with
        skip_output_reshape."""
        axis = 2 if skip_reshape else 1
        lengths = (q.size(axis), k.size(axis))
        unknown = [name for name in more if name not in _HARMLESS | {"scale", "enable_gqa"}]
        reason = None
        if lengths != self.lengths:
            reason = f"{lengths[0]} x {lengths[1]} tokens"
        elif unknown:
            reason = f"the call brings {', '.join(unknown)}"
        if reason is not None:
            self.others[reason] = self.others.get(reason, 0) + 1
            given = {"skip_reshape": skip_reshape, "skip_output_reshape": skip_output_reshape, **more}
            found: torch.Tensor = func(q, k, v, heads, mask=mask, attn_precision=attn_precision, **given)
            return found
        self.calls += 1
        if not skip_reshape:
            width = q.size(-1) // heads
            q, k, v = (t.reshape(*t.shape[:-1], -1, width).transpose(1, 2) for t in (q, k, v))
        score_mod = self.score_mod
        if mask is not None:
            score_mod = added(_bias(mask, q.dtype), extents_of(q, k), score_mod)
        out, _ = attend(q, k, v, self.block_mask, score_mod, more.get("scale"))
        return out if skip_output_reshape else out.transpose(1, 2).flatten(2)


def _bias(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """ComfyUI's mask, [Q, K], [B, Q, K] or [B, H, Q, K], as a float that is added."""
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)
    return mask.unsqueeze(1) if mask.dim() == 3 else mask
