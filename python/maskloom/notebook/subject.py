"""A mask in any of its forms as one thing with lengths.

Invariant: the functions are the caller's own, recorded by `_mods` as `create_block_mask` records them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Union

import torch
from torch.nn.attention import flex_attention as flex

from .. import _native
from .._call import call
from .._checks import lengths as lengths_of
from .._lengths import Lengths
from .._lengths import pair as pair_of
from .._lists import effective
from .._mods import traced
from ..design import Design, from_design
from ..errors import ArgumentError, a_kind

CPU = torch.device("cpu")
#: a mod, a BlockMask, a design, a preset's name or a document's path
Mask = Union["Subject", Design, flex.BlockMask, str, "os.PathLike[str]", Callable[..., Any]]


class Subject:
    """A mask and a score mod, either of them None, over q_len x kv_len tokens."""

    def __init__(
        self,
        mask_mod: Callable[..., Any] | None,
        score_mod: Callable[..., Any] | None,
        lengths: tuple[int, int],
        name: str,
        batch: int = 1,
        heads: int = 1,
        block_size: tuple[int, int] = (128, 128),
    ) -> None:
        self.mask_mod, self.score_mod, self.name = mask_mod, score_mod, name
        self.q_len, self.kv_len = lengths
        self.block_size = block_size
        self.mask = None if mask_mod is None else traced(mask_mod, "mask", device=CPU)
        self.score = None if score_mod is None else traced(score_mod, "score_mod", score=True, device=CPU)
        both = [one[0].depends() for one in (self.mask, self.score) if one is not None]
        self.per_batch, self.per_head = any(one[0] for one in both), any(one[1] for one in both)
        self.batch, self.heads = batch, heads

    def texts(self) -> tuple[str, dict[str, torch.Tensor]]:
        """PyTorch code that defines mask_mod and score_mod, and the tensors that it reads as globals.

        Tensors of the score mod that are called as others of the mask get another name."""
        text = "import math\n\nimport torch\n"
        tensors: dict[str, torch.Tensor] = {}
        for one in (self.mask, self.score):
            if one is not None:
                printed, read = call(_native.printed, one[0])
                before = text
                text += f"\n\n{printed}"
                for name, dtype, shape, content in read.all():
                    tensor = torch.frombuffer(bytearray(content), dtype=getattr(torch, dtype)).reshape(shape)
                    if name in tensors and not torch.equal(tensors[name], tensor):
                        # recordings number their tensors, so both mods have a first one
                        text = before + re.sub(rf"\b{name}\b", f"score_{name}", text[len(before) :])
                        name = f"score_{name}"
                    tensors[name] = tensor
        return text, tensors

    def check_place(self, b: int, h: int) -> None:
        """Errors: ArgumentError for a batch entry or head that the mask has not."""
        for what, at, extent, differs in (
            ("b", b, self.batch, self.per_batch),
            ("h", h, self.heads, self.per_head),
        ):
            if not isinstance(at, int) or at < 0 or (differs and at >= extent and extent > 1):
                raise ArgumentError("place", f"{what} is {at!r}, of {extent}", "pass the number of one that there is")


def subject(
    mask: Mask,
    lengths: Lengths = None,
    score_mod: Callable[..., Any] | None = None,
    extents: tuple[int, int] = (1, 1),
) -> Subject:
    """A Subject of anything that is a mask. `extents`: batch entries and heads of a function.

    Errors: ArgumentError for another object, and for a function without lengths."""
    pair = pair_of(lengths)
    for name, count in zip(("batch", "heads"), extents):
        if not isinstance(count, int) or not 1 <= count <= 1 << 20:
            raise ArgumentError("count", f"{name} is {count!r}", f"pass a number from 1 to {1 << 20}")
    if isinstance(mask, Subject):
        return mask
    if isinstance(mask, (str, os.PathLike)):
        mask = from_design(mask, pair)
    if isinstance(mask, Design):
        own = score_mod if score_mod is not None else mask.score_mod
        sizes = mask.heads if isinstance(mask.heads, tuple) else (mask.heads, mask.heads)
        given = pair or (mask.q_len, mask.kv_len)
        return Subject(mask.mask_mod, own, given, mask.name, mask.batch, sizes[0], mask.BLOCK_SIZE)
    if isinstance(mask, flex.BlockMask):
        batch, heads = mask.kv_num_blocks.shape[:2]
        given = pair or lengths_of(mask)
        size = mask.BLOCK_SIZE
        blocks = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        return Subject(effective(mask), score_mod, given, _named(mask.mask_mod), batch, heads, blocks)
    if callable(mask):
        if pair is None:
            raise ArgumentError("lengths", f"{_named(mask)} is a function, which has no lengths", "pass lengths=4096")
        return Subject(mask, score_mod, pair, _named(mask), *extents)
    message = f"{a_kind(mask)} is no mask"
    raise ArgumentError("mask", message, "pass a mod, a BlockMask, a design, a preset's name or a document's path")


def _named(mod: Any) -> str:
    own = getattr(mod, "func", mod)
    return str(getattr(own, "__name__", type(own).__name__))
