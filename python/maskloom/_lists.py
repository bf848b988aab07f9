"""The lists of blocks in a BlockMask: which mask they are, together with its mask_mod.

Invariant: a list that is not its mask_mod's own limits the mask to the listed blocks, as PyTorch's kernels do. Must not
know attention, nor where block masks are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from . import _native
from ._arrays import BOTH, FULL, PARTIAL
from ._call import call
from ._checks import lengths
from ._functions import Mod
from ._mods import traced

CPU = torch.device("cpu")


def effective(block_mask: flex.BlockMask) -> Mod:
    """The mask_mod that a block mask amounts to: its own, or that within the listed blocks where these are others."""
    mod: Mod = block_mask.mask_mod
    if block_mask.__dict__.get("_maskloom_mod") is mod:
        return block_mask.mask_mod
    partial, full = _tables(block_mask)
    block = block_mask.BLOCK_SIZE
    if _lists_are_of(mod, block_mask, partial, full):
        return mod
    many_b, many_h = partial.size(0) > 1, partial.size(1) > 1

    def listed(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        at = (b if many_b else 0, h if many_h else 0, q_idx // block[0], kv_idx // block[1])
        return full[at] | (partial[at] & mod(b, h, q_idx, kv_idx))

    return listed


def _tables(block_mask: flex.BlockMask) -> tuple[torch.Tensor, torch.Tensor]:
    """Which blocks are listed as partial and as full, bool [B, H, rows, columns]."""
    kv_len = lengths(block_mask)[1]
    columns = -(-kv_len // block_mask.BLOCK_SIZE[1])

    def table(counts: torch.Tensor | None, indices: torch.Tensor | None) -> torch.Tensor:
        if counts is None or indices is None:
            return torch.zeros((*block_mask.kv_num_blocks.shape, columns), dtype=torch.bool, device=CPU)
        counts, indices = counts.to(CPU), indices.to(CPU)
        listed = torch.arange(indices.size(-1), device=CPU) < counts.unsqueeze(-1)
        out = torch.zeros((*counts.shape, columns + 1), dtype=torch.bool, device=CPU)
        out.scatter_(-1, torch.where(listed, indices.long(), columns), True)
        out[..., columns] = False
        return out[..., :columns]

    both = (
        table(block_mask.kv_num_blocks, block_mask.kv_indices),
        table(block_mask.full_kv_num_blocks, block_mask.full_kv_indices),
    )
    if both[0].dim() == 4:
        return both
    wide = [t.reshape((1,) * (4 - t.dim()) + tuple(t.shape)) for t in both]
    return wide[0], wide[1]


def _lists_are_of(mod: Mod, block_mask: flex.BlockMask, partial: torch.Tensor, full: torch.Tensor) -> bool:
    """Whether the lists are those that create_block_mask finds for this mask_mod."""
    if mod is flex.noop_mask and bool(full.all()):
        return True
    names = [PARTIAL, FULL] if block_mask.full_kv_num_blocks is not None else [BOTH]
    argument = "block_mask.mask_mod"
    own = tables(mod, partial.shape[:2], lengths(block_mask), block_mask.BLOCK_SIZE, names, argument)
    return all(map(torch.equal, own, (partial, full)))


def tables(
    mod: Mod,
    groups: Sequence[int],
    extents: tuple[int, int],
    block: tuple[int, int],
    kinds: Sequence[int],
    argument: str = "mask_mod",
) -> list[torch.Tensor]:
    """The blocks of each of these kinds, bool [B, H, rows, columns] on the CPU. The same in every PyTorch.

    Errors: those of recording the mod."""
    mask, _ = traced(mod, argument, device=CPU)
    blocks = call(_native.build, mask, (groups[0], groups[1]), extents, block)
    shape = (groups[0], groups[1], -(-extents[0] // block[0]), -(-extents[1] // block[1]))
    found = []
    for which in kinds:
        counts = torch.empty(shape[:3], dtype=torch.int32, device=CPU)
        indices = torch.empty(shape, dtype=torch.int32, device=CPU)
        call(blocks.write, [(False, which, counts.data_ptr(), indices.data_ptr())])
        own = torch.zeros(shape, dtype=torch.bool, device=CPU)
        found.append(own.scatter_(-1, indices.long(), torch.arange(shape[3], device=CPU) < counts.unsqueeze(-1)))
    return found
