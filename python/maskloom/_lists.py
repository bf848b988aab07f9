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


#: The arrays that say which blocks are computed.
LISTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")


def version(tensor: torch.Tensor) -> int:
    """Counts changes in place; -1 where PyTorch does not count them."""
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode
        return -1


def note(block_mask: flex.BlockMask) -> None:
    """Keeps which arrays a block mask has now, for `noted`."""
    own = block_mask.__dict__
    own["_maskloom_lists"] = [(name, own.get(name), _version_of(own.get(name))) for name in LISTS]


def noted(block_mask: flex.BlockMask) -> bool:
    """Whether the arrays are still those of `note`, unchanged. Those made in inference mode count no changes."""
    own = block_mask.__dict__
    lists = own.get("_maskloom_lists")
    if lists is None:
        return False
    for name, array, known in lists:
        now = own.get(name)
        if now is not array:
            # a LongBlockMask makes its indices at their first use
            if array is not None or own.get("_maskloom_made", {}).get(name) is not now:
                return False
        elif now is not None and known != -1 and now._version != known:
            return False
    return True


def replaced(block_mask: Any) -> bool:
    """Whether an array is another one than at `note`. torch.compile traces this, which sees no changes in place."""
    for name, array, _ in block_mask._maskloom_lists:  # noqa: SIM110
        if array is not None and getattr(block_mask, name) is not array:
            return True
    return False


def _version_of(array: torch.Tensor | None) -> int:
    return -1 if array is None else version(array)


def effective(block_mask: flex.BlockMask) -> Mod:
    """The mask_mod that a block mask amounts to: its own, or that within the listed blocks where these are others."""
    mod: Mod = block_mask.mask_mod
    if block_mask.__dict__.get("_maskloom_mod") is mod and noted(block_mask):
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
