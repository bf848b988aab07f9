"""The arrays of a BlockMask: their names, shapes and places in one piece of memory.

Invariant: on another device than the host, and where they are large, they are parts of one tensor. Must not know who
fills them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

#: Kinds of blocks that a pair of arrays lists: partial ones, full ones, both.
PARTIAL, FULL, BOTH = 0, 1, 2
#: PyTorch's names of a pair of arrays: whether seen from the kv blocks, and which blocks.
PAIRS = {
    "kv": (False, PARTIAL),
    "full_kv": (False, FULL),
    "q": (True, PARTIAL),
    "full_q": (True, FULL),
}
#: Bytes of the index arrays from which on they are made at their first use.
LONG = 256 << 20
#: Elements of all arrays from which on they lie in one piece of memory on the host, too.
LARGE = 1 << 18
#: Elements to which parts are aligned: compiled kernels expect 16 bytes.
ALIGNED = 16


class Wanted(NamedTuple):
    """A block mask: (B, H), (Q_LEN, KV_LEN) in tokens, tokens of a block, and whether full blocks have arrays of their
    own."""

    groups: tuple[int, int]
    lengths: tuple[int, int]
    block: tuple[int, int]
    separate: bool

    def grid(self) -> tuple[int, int]:
        """Blocks along the queries and along the keys."""
        return -(-self.lengths[0] // self.block[0]), -(-self.lengths[1] // self.block[1])

    def long(self) -> bool:
        """Whether the index arrays are made at their first use."""
        entries = math.prod(self.groups) * math.prod(self.grid())
        return entries * 4 * (4 if self.separate else 2) > LONG

    def pairs(self) -> dict[str, tuple[bool, int]]:
        """The pairs of arrays, as in `PAIRS`."""
        return PAIRS if self.separate else {"kv": (False, BOTH), "q": (True, BOTH)}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of counts [B, H, rows] and indices [B, H, rows, columns] by PyTorch's names."""
        found: dict[str, tuple[int, ...]] = {}
        for name, (side, _) in self.pairs().items():
            own, others = self.grid()[::-1] if side else self.grid()
            found[f"{name}_num_blocks"] = (*self.groups, own)
            found[f"{name}_indices"] = (*self.groups, own, others)
        return found


#: Of an array in the tensor that holds all: its name, shape, strides and first element.
Place = tuple[str, tuple[int, ...], tuple[int, ...], int]


def places(shapes: dict[str, tuple[int, ...]]) -> tuple[tuple[Place, ...], int]:
    """Where each array lies in the tensor that holds them, and where the last ends."""
    found, at = [], 0
    for name, shape in shapes.items():
        found.append((name, shape, contiguous(shape), at))
        at += -(-math.prod(shape) // ALIGNED) * ALIGNED
    return tuple(found), at


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor without gaps."""
    return tuple([math.prod(shape[at + 1 :]) for at in range(len(shape))])


def parts(whole: torch.Tensor, at: Sequence[Place]) -> dict[str, torch.Tensor]:
    """The arrays in the tensor that holds them, at one operation each."""
    return {name: whole.as_strided(shape, strides, begin) for name, shape, strides, begin in at}
