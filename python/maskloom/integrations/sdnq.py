"""SDNQ's attention, which SimpleTuner uses: a mask as its `block_mask`.

    given = maskloom.integrations.sdnq.block_mask(near, 4096, 4096)
    out = sdnq_triton_atten(query, key, value, **given)

Invariant: SDNQ keeps or skips whole blocks. A mask that cuts a block is refused, or becomes another mask that is said.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from .._arrays import FULL, PARTIAL
from .._checks import lengths
from .._functions import Mod
from .._lists import effective, tables
from ..block_mask import default_device
from ..errors import ArgumentError, MaskloomError

__all__ = ["block_mask"]


def block_mask(
    mask: Mod | flex.BlockMask,
    q_len: int | None = None,
    kv_len: int | None = None,
    *,
    B: int | None = None,
    H: int | None = None,
    block: tuple[int, int] = (64, 64),
    partial: str = "error",
    device: torch.device | str | int | None = None,
) -> dict[str, Any]:
    """The arguments `block_mask`, `block_mask_m` and `block_mask_n` of SDNQ's attention.

    Args:
        mask: a mask_mod, with q_len and kv_len; or a BlockMask, whose mask_mod and lengths are taken.
        B, H: batch entries and heads, if the mask differs between them.
        block: queries and keys of a block.
        partial: what becomes of a block that the mask cuts: "error", "keep" (whole), "drop" (whole).
        device: of the tensor; None: the current accelerator, or else the CPU.

    Returns:
        `block_mask` is int8 [B or 1, H or 1, ceil(q_len / block[0]), ceil(kv_len / block[1])], 1 where a block is kept.

    Raises:
        MaskloomError: the mask cuts blocks and `partial` is "error".
        ArgumentError: lengths are missing, or `partial` is another word.
    """
    if partial not in ("error", "keep", "drop"):
        raise ArgumentError("partial", f"partial is {partial!r}", 'pass "error", "keep" or "drop"')
    if isinstance(mask, flex.BlockMask):
        B, H = mask.kv_num_blocks.shape[:2]
        (q_len, kv_len), mask = lengths(mask), effective(mask)
    if q_len is None or kv_len is None:
        raise ArgumentError("lengths", "q_len and kv_len are not given", "pass them, or a BlockMask")
    on = default_device(device)
    own, last = mask, (q_len - 1, kv_len - 1)

    def edged(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        # a block that the lengths end in is whole if all its tokens are
        return own(b, h, q_idx.clamp(max=last[0]), kv_idx.clamp(max=last[1]))

    whole = (-(-q_len // block[0]) * block[0], -(-kv_len // block[1]) * block[1])
    cut, full = tables(edged, (B or 1, H or 1), whole, block, (PARTIAL, FULL))
    count = int(cut.sum())
    if count and partial == "error":
        message = f"the mask cuts {count} blocks of {block[0]} x {block[1]}, {int(full.sum())} are kept whole"
        raise MaskloomError("partial-blocks", message, 'pass partial="keep" or "drop", or smaller blocks')
    if count:
        warnings.warn(
            f"{count} blocks that the mask cuts are {'kept' if partial == 'keep' else 'dropped'} whole", stacklevel=2
        )
    kept = full | cut if partial == "keep" else full
    return {"block_mask": kept.to(on, torch.int8), "block_mask_m": block[0], "block_mask_n": block[1]}
