"""Designs of the workbench in Python: the mask and the score mod of a document as functions that FlexAttention takes.

Invariant: the functions have the meaning of the document at the lengths asked for.
"""

from __future__ import annotations

import linecache
import os
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from . import _native
from ._call import call
from ._functions import Mod
from ._lengths import Lengths, pair
from .block_mask import create_block_mask
from .errors import ArgumentError, a_kind

__all__ = ["Design", "from_design"]


class Design:
    """A document: its mods and sizes.

    `mask_mod` and `score_mod` are functions, or None where the document has none; `text` defines them. `q_len` and
    `kv_len` are tokens, `batch`, `heads`, `kv_heads`, `BLOCK_SIZE` and `scale` the document's settings."""

    def __init__(self, found: _native.Design, name: str) -> None:
        self.name, self.text = found.name, found.text
        self.q_len, self.kv_len = found.lengths
        self.batch, self.scale = found.batch, found.scale
        self.heads, self.kv_heads = found.heads
        self.BLOCK_SIZE = found.block_size
        file = f"<maskloom design {name}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        #: the tensors that the functions read, by name
        self.tensors: dict[str, torch.Tensor] = {
            key: _tensor(dtype, shape, content) for key, dtype, shape, content in found.tensors.all()
        }
        space: dict[str, Any] = dict(self.tensors)
        exec(compile(self.text, file, "exec"), space)
        self.mask_mod: Mod | None = space.get("mask_mod")
        self.score_mod: Mod | None = space.get("score_mod")

    def block_mask(self, device: torch.device | str | int | None = None, **options: Any) -> flex.BlockMask:
        """The BlockMask of the mask, at the document's lengths, for all batch entries and heads that differ.

        Args: those of `create_block_mask` by name; `BLOCK_SIZE` is the document's without one."""
        mod = self.mask_mod if self.mask_mod is not None else flex.noop_mask
        options.setdefault("BLOCK_SIZE", self.BLOCK_SIZE)
        batch, heads = options.pop("B", None), options.pop("H", None)
        from ._mods import traced

        per_batch, per_head = traced(mod, "mask_mod", device=torch.device("cpu"))[0].depends()
        batch = self.batch if batch is None and per_batch else batch
        heads = self.heads if heads is None and per_head else heads
        return create_block_mask(mod, batch, heads, self.q_len, self.kv_len, device=device, **options)

    def __repr__(self) -> str:
        return f"Design({self.name!r}, {self.q_len} x {self.kv_len} tokens)"


def from_design(design: str | os.PathLike[str], lengths: Lengths = None) -> Design:
    """Reads a document that the workbench saved, or a preset.

    Args:
        design: the path of a `.json` file, or the name of a preset (`maskloom presets` lists them).
        lengths: other tokens than the document's: one number, or (q, kv); "8k" is 8,192. Painted cells are scaled.

    Raises:
        ArgumentError: no such file or preset, an error in the document, lengths that its axes do not have.
    """
    if not isinstance(design, (str, os.PathLike)):
        message = f"design is {a_kind(design)}"
        raise ArgumentError("design-file", message, "pass the path of a .json file or the name of a preset")
    name = os.fspath(design)
    text: str | None = None
    if name.endswith(".json"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as why:
            raise ArgumentError(
                "design-file", f"design {name!r} cannot be read: {why}", "pass the path of a .json file"
            ) from None
    found = call(_native.design, text, name, pair(lengths))
    return Design(found, name)


def _tensor(dtype: str, shape: list[int], content: bytes) -> torch.Tensor:
    if not content:
        return torch.zeros(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(bytearray(content), dtype=getattr(torch, dtype)).reshape(shape)
