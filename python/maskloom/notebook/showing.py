"""`show` draws a mask, `share` writes it as one file that needs no network.

Invariant: every picture carries its numbers and where they are from.
"""

from __future__ import annotations

import contextlib
import datetime
import html
import json
import math
import os
import platform
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .. import _native
from .._call import call
from .._lengths import Lengths
from ..block_mask import create_block_mask
from ..errors import ArgumentError, a_kind
from .drawing import png
from .subject import Mask, Subject, subject

__all__ = ["Shown", "share", "show"]

#: Pixels of a picture along its longer side.
SIZE = 1024


class Shown:
    """A picture of a mask with its numbers. `_repr_html_` is zoomable, `_repr_png_` is the picture alone."""

    def __init__(self, of: Subject, b: int, h: int, rows: tuple[int, int], cols: tuple[int, int], size: int) -> None:
        self.of, self.b, self.h, self.rows, self.cols = of, b, h, rows, cols
        height, width = rows[1] - rows[0], cols[1] - cols[0]
        step = max(1, math.ceil(max(height, width) / size))
        #: tokens of a pixel's side, rounded up: pixels divide the tokens evenly
        self.tokens_per_pixel = step
        self.height, self.width = math.ceil(height / step), math.ceil(width / step)
        if of.mask is None:
            self.pixels, self.exact = bytes([255]) * (self.height * self.width), True
        else:
            size_here = (self.height, self.width)
            self.pixels, self.exact = call(_native.picture, of.mask[0], (b, h), rows, cols, size_here)
        self._numbers: dict[str, Any] | None = None

    @property
    def numbers(self) -> dict[str, Any]:
        """Kept cells, density, and blocks of the whole mask, over its batch entries and heads."""
        if self._numbers is None:
            self._numbers = _numbers(self.of)
        return self._numbers

    def to_dict(self) -> dict[str, Any]:
        """What is shown, without the pixels."""
        return {
            "name": self.of.name,
            "lengths": [self.of.q_len, self.of.kv_len],
            "b": self.b,
            "h": self.h,
            "rows": list(self.rows),
            "cols": list(self.cols),
            "tokens_per_pixel": self.tokens_per_pixel,
            "exact": self.exact,
            "numbers": self.numbers,
            "code": self.of.texts()[0],
            "provenance": provenance(),
        }

    def png(self) -> bytes:
        """The picture as a PNG file: one pixel for each cell, or for `tokens_per_pixel` in both directions."""
        return png(self.pixels, self.width, self.height)

    def html(self) -> str:
        """A whole page: picture, numbers, code, provenance, and the design, which `maskloom FILE.html` opens. It loads
        nothing."""
        of, said = self.of, {**self.to_dict(), "width": self.width, "height": self.height}
        tokens = {"tokens": f"{of.q_len} queries, {of.kv_len} keys"}
        numbers = {**tokens, **{k.replace("_", " "): v for k, v in said["numbers"].items()}}
        table, made = ([(k, str(v)) for k, v in all.items()] for all in (numbers, said["provenance"]))
        made = [pair for pair in made if pair[0] != "made by"]  # the page says it of itself
        mods = [None if one is None else one[0] for one in (of.mask, of.score)]
        extents = (of.batch if of.per_batch else 1), (of.heads if of.per_head else 1)
        lengths, packed = (of.q_len, of.kv_len), zlib.compress(self.pixels, 9)
        texts = ((table, made), said["code"], json.dumps(said))
        page: str = call(
            _native.shared_page, of.name, self.png(), packed, *texts, *mods, lengths, extents, of.block_size
        )
        return page

    def _repr_html_(self) -> str:
        page = html.escape(self.html(), quote=True)
        style = "width:100%;height:560px;border:1px solid #ccc"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def _repr_png_(self) -> bytes:
        return self.png()

    def __repr__(self) -> str:
        n = self.numbers
        lengths = f"{self.of.q_len} x {self.of.kv_len} tokens"
        return f"{self.of.name} over {lengths}: {n['kept']} of {n['cells']} cells kept, density {n['density']:.4g}"


def show(
    mask: Mask,
    lengths: Lengths = None,
    *,
    b: int = 0,
    h: int = 0,
    rows: tuple[int, int] | None = None,
    cols: tuple[int, int] | None = None,
    score_mod: Callable[..., Any] | None = None,
    batch: int = 1,
    heads: int = 1,
    size: int = SIZE,
) -> Shown:
    """Draws a mask. In a notebook the result is a picture that zooms; `.png()` and `.html()` are files.

    Args:
        mask: a mod, a BlockMask, a design of `from_design`, a preset's name or a document's path.
        lengths: tokens, or (q, kv): needed for a mod.
        b, h: batch entry and head.
        rows, cols: (from, to) tokens; None: all.
        score_mod: shown as code beside the mask.
        batch, heads: how many a mod differs between; a BlockMask and a design say it themselves.
        size: pixels along the longer side. Up to so many tokens each pixel is a cell.

    Raises:
        ArgumentError: no mask, lengths are missing, rows or columns that it has not.
        RecordingError: a mod does what cannot be recorded.
    """
    of = subject(mask, lengths, score_mod, (batch, heads))
    of.check_place(b, h)
    rows, cols = _part(rows, of.q_len, "rows"), _part(cols, of.kv_len, "cols")
    if not isinstance(size, int) or not 16 <= size <= 4096:
        raise ArgumentError("size", f"size is {size!r}", "pass 16 to 4096 pixels")
    return Shown(of, b, h, rows, cols, size)


def share(mask: Mask | Shown, path: str | os.PathLike[str], lengths: Lengths = None, **options: Any) -> Path:
    """Writes one HTML file: picture that zooms, numbers, code, provenance. It needs no network. Returns its path.

    Args:
        mask, lengths, options: those of `show`, or its result.
        path: of the file; an existing one is replaced.

    Raises:
        ArgumentError: those of `show`; a path that cannot be written.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError("path", f"path is {a_kind(path)}", "pass the path of the HTML file to write")
    if isinstance(mask, Shown) and (lengths is not None or options):
        given = ", ".join([*(["lengths"] if lengths is not None else []), *options])
        raise ArgumentError("shown", f"{given} is given beside what was shown", "pass it to show, or share the mask")
    shown = mask if isinstance(mask, Shown) else show(mask, lengths, **options)
    out = Path(path)
    if not out.name:
        raise ArgumentError("path", f"path is {str(path)!r}", "pass the path of the HTML file to write")
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        part.write_text(shown.html(), encoding="utf-8")
        os.replace(part, out)
    except OSError as why:
        with contextlib.suppress(OSError):
            part.unlink()
        message = f"{out} cannot be written: {why.strerror}"
        raise ArgumentError("path", message, "pass the path of a file in a folder that there is") from None
    return out


def provenance() -> dict[str, str]:
    """What made a picture, and when."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return {
        "made by": f"Maskloom {_native.__version__}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "at": now,
        "method": "the recorded function, evaluated by intervals; no dense mask",
    }


def _part(part: tuple[int, int] | None, tokens: int, what: str) -> tuple[int, int]:
    if part is None:
        return 0, tokens
    pair = tuple(part) if isinstance(part, (tuple, list)) else ()
    if len(pair) != 2 or not all(isinstance(at, int) for at in pair) or not 0 <= pair[0] < pair[1] <= tokens:
        raise ArgumentError(what, f"{what} is {part!r}, of {tokens} tokens", "pass (from, to)")
    return pair[0], pair[1]


def _numbers(of: Subject) -> dict[str, Any]:
    batch, heads = (of.batch if of.per_batch else 1), (of.heads if of.per_head else 1)
    cells = batch * heads * of.q_len * of.kv_len
    q, kv = of.block_size
    out: dict[str, Any] = {"batch entries": batch, "heads": heads, "cells": cells}
    if of.mask is None or of.mask_mod is None:
        return {**out, "kept": cells, "density": 1.0}
    blocks = call(_native.build, of.mask[0], (batch, heads), (of.q_len, of.kv_len), of.block_size)
    kept = blocks.kept_cells()
    out |= {"kept": kept, "density": kept / cells, "block_size": f"{q} x {kv}"}
    found = create_block_mask(of.mask_mod, batch, heads, of.q_len, of.kv_len, device="cpu", BLOCK_SIZE=of.block_size)
    full = found.full_kv_num_blocks
    partial, whole = int(found.kv_num_blocks.sum()), 0 if full is None else int(full.sum())
    every = batch * heads * -(-of.q_len // q) * -(-of.kv_len // kv)
    return {**out, "full_blocks": whole, "partial_blocks": partial, "empty_blocks": every - whole - partial}
