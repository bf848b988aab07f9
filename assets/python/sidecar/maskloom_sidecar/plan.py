# SPDX-License-Identifier: MIT
"""What one attention call is computed from: a plan of its design, and what the model's own call brings.

Must not know how attention is computed, layers or libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn.attention.flex_attention import BlockMask

    from .aliases import Extents, MaskMod, Place, ScoreMod
    from .designs import AnyDesign


class Brought:
    """The arguments of a model's own call other than q, k and v; None: absent.

    own: its mask for scaled_dot_product_attention, broadcast to [B, H, Q, KV]: bool keeps, float is added.
    bias: a float added before the design's score_mod. softcap: of the scores. sinks: [H], a score in each row's softmax
    without a value. scores: whether the design's score_mod is applied.
    """

    def __init__(
        self, own: Tensor | None = None, bias: Tensor | None = None, softcap: float | None = None, sinks: Tensor | None = None
    ) -> None:
        self.own = own
        self.bias = bias
        self.softcap = softcap
        self.sinks = sinks


class Plan:
    """A design at one call's lengths and positions, or the reason why there is none."""

    def __init__(
        self,
        key: str | None,
        design: AnyDesign | None = None,
        reason: str | None = None,
        block_mask: BlockMask | None = None,
        mask_mod: MaskMod | None = None,
        score_mod: ScoreMod | None = None,
        extents: Extents = (None, None),
        place: Place | None = None,
    ) -> None:
        self.key = key
        self.design = design
        self.reason = reason
        # (q_offset, kv_offset, end) in the design, if the call is a part of it
        self.place = place
        # None: every cell is kept
        self.block_mask = block_mask
        self.mask_mod = mask_mod
        self.score_mod = score_mod
        # batch entries and heads between which the mask differs
        self.extents = extents
        # created for code that is being exported: without block mask, dense
        self.loose = False

    @property
    def taken(self) -> AnyDesign:
        """The design of a plan that has one."""
        assert self.design is not None, "a plan without a design cannot run"
        return self.design
