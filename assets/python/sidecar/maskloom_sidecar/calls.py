# SPDX-License-Identifier: MIT
"""What an attention call in a watched layer is: the whole sequence, its newest tokens, or attention to another sequence.

The rule of every patched function: a call of a watched layer is masked, or left with a reason; only a call that evidently reads
another sequence is neither, and is counted apart. Must not know designs, libraries or tensors' values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import layers

if TYPE_CHECKING:
    from .aliases import Place
    from .counts import Layer


class Call:
    """A call's part in its sequence.

    place: (q_offset, kv_offset, end) of a call of one sequence; None: the design's own lengths alone. crosses: from one sequence
    to another. aside: such a call in a layer of self-attention, which no design is meant for. reason: why it is left.
    """

    def __init__(
        self, place: Place | None = None, crosses: bool = False, aside: bool = False, reason: str | None = None
    ) -> None:
        self.place = place
        self.crosses = crosses
        self.aside = aside
        self.reason = reason


def of_lengths(layer: Layer, q_len: int, kv_len: int) -> Call:
    """The call of a model that calls attention itself, by its lengths and what its layer was given."""
    if layer.of_cross_attention():
        return Call(crosses=True)
    if layers.reads_another(q_len, kv_len):
        return Call(aside=True)
    if q_len == kv_len:
        # the beginning of a design is that of a text, never of a picture
        return Call(place=(0, 0, q_len) if layer.model.sequential else None)
    if q_len < kv_len and layers.given(q_len):
        # the layer was given the queries' tokens alone: the other keys are of earlier calls
        return Call(place=(kv_len - q_len, 0, kv_len))
    what = f"{q_len} queries over {kv_len} keys in a layer of self-attention"
    return Call(reason=f"left as it is: {what}: which tokens of the design they are is not said")
