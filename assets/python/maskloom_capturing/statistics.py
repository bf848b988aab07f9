# SPDX-License-Identifier: MIT
"""Exact statistics of attention over strips of rows: block masses, row statistics, column masses, offset histograms.

Invariant: every row and every key counts, in float32 with float64 sums; memory is bounded by `STRIP` cells, never by the
full matrix. Must not know models or files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .calls import Scores

# the mass of a code c in 1..255 is 2^((c - 255) * STEP)
STEP = 1 / 12
# the number of cells of scores in memory at a time
STRIP = {"cpu": 1 << 23, "cuda": 1 << 27}
# distances within this have one bin each; larger bins grow by 1/64 octave
NEAR = 1024
# the largest number of entries of a head's offset histogram with a sign on every axis
SIGNED = 2**18


@dataclass(frozen=True)
class Axes:
    """A grid of tokens in raster order: its axes' names and extents, and the index of its first token."""

    names: tuple[str, ...]
    extents: tuple[int, ...]
    start: int = 0

    @property
    def tokens(self) -> int:
        return math.prod(self.extents)

    def fits(self, q_len: int, kv_len: int) -> bool:
        return self.start + self.tokens <= min(q_len, kv_len)

    def signed(self) -> list[bool]:
        """Whether offsets of an axis have a sign: all axes, or only the first one in big grids."""
        if math.prod(2 * n - 1 for n in self.extents) <= SIGNED:
            return [True] * len(self.extents)
        return [i == 0 for i in range(len(self.extents))]

    def bins(self) -> list[int]:
        return [2 * n - 1 if s else n for n, s in zip(self.extents, self.signed(), strict=True)]


def encoded(mass: Tensor) -> Tensor:
    """Masses as codes: code 0 is 0, code 1 also represents smaller masses than its own."""
    code = (255 + torch.log2(mass.double().clamp(min=1e-300)) / STEP).round().clamp(1, 255)
    return torch.where(mass > 0, code, torch.zeros_like(code)).to(torch.uint8)


def decoded(code: Tensor) -> Tensor:
    """The masses of codes, in float64."""
    return torch.where(code > 0, torch.exp2((code.double() - 255) * STEP), 0.0)


def edges(q_len: int, kv_len: int) -> list[int]:
    """Bounds of the bins of q_idx - kv_idx, which is in -(kv_len - 1) ..= q_len - 1."""

    def up_to(last: int) -> list[int]:
        found = list(range(0, min(last, NEAR) + 1))
        while found[-1] < last:
            found.append(min(last, max(found[-1] + 1, round(found[-1] * 2 ** (1 / 64)))))
        return found

    # a bin of negative distances -b+1 ..= -a is [-b + 1, -a + 1)
    return [1 - d for d in reversed(up_to(kv_len)[1:])] + [d for d in up_to(q_len) if d > 0]


def sizes(shape: Sequence[int], kv_len: int, block: tuple[int, int], axes: Axes | None, mass_bytes: int) -> int:
    """Bytes of the statistics of a call; `shape` is q's [B, H, Q, D]."""
    b, h, q_len, _ = shape
    blocks = -(-q_len // block[0]) * -(-kv_len // block[1])
    cells = blocks * mass_bytes + 12 * q_len + 2 * kv_len + 4 * (len(edges(q_len, kv_len)) - 1)
    cells += 2 * math.prod(axes.bins()) if axes and axes.fits(q_len, kv_len) else 0
    return b * h * cells


def statistics(scores: Scores, block: tuple[int, int], axes: Axes | None) -> tuple[dict[str, Tensor], int]:
    """Statistics of a call and how many of its rows have scores of NaN or plus infinity, which count as mass 0.

    mass [B, H, nQ, nK] in float32; lse, max, entropy [B, H, Q]; columns [B, H, KV]; distance [B, H, bins]; offsets
    [B, H, bins of each axis] where the grid of `axes` fits.
    """
    entries = [_Entry(scores, block, axes, b) for b in range(scores.q.shape[0])]
    made = [entry.run() for entry in entries]
    return {name: torch.stack([one[name] for one in made]) for name in made[0]}, sum(entry.bad for entry in entries)


class _Entry:
    """One batch entry's statistics, filled strip by strip."""

    def __init__(self, scores: Scores, block: tuple[int, int], axes: Axes | None, b: int) -> None:
        self.scores, self.block, self.b, self.bad = scores, block, b, 0
        heads, self.q_len = scores.q.shape[1], scores.q.shape[2]
        self.kv_len = scores.k.shape[2]
        self.axes = axes if axes is not None and axes.fits(self.q_len, self.kv_len) else None
        device = scores.q.device
        wide = torch.float32 if device.type == "mps" else torch.float64
        blocks = -(-self.q_len // block[0]), -(-self.kv_len // block[1])
        self.mass = torch.zeros(heads, *blocks, device=device, dtype=wide)
        self.rows = {name: torch.zeros(heads, self.q_len, device=device) for name in ("lse", "max", "entropy")}
        self.columns = torch.zeros(heads, self.kv_len, device=device, dtype=wide)
        self.distance = torch.zeros(heads, self.q_len + self.kv_len - 1, device=device, dtype=wide)
        self.offsets = None
        if self.axes is not None:
            full = [2 * n - 1 for n in self.axes.extents]
            self.offsets = torch.zeros(heads, *full, device=device, dtype=torch.float32)

    @torch.no_grad()
    def run(self) -> dict[str, Tensor]:
        heads = self.scores.q.shape[1]
        budget = STRIP.get(self.scores.q.device.type, STRIP["cpu"])
        height = max(1, min(self.block[0], budget // self.kv_len))
        together = max(1, min(heads, budget // (height * self.kv_len)))
        with torch.autocast(self.scores.q.device.type, enabled=False):
            for first in range(0, heads, together):
                some = slice(first, min(first + together, heads))
                for top in range(0, self.q_len, self.block[0]):
                    end = min(top + self.block[0], self.q_len)
                    for row in range(top, end, height):
                        self._strip(some, slice(row, min(row + height, end)))
        return self._finished()

    def _strip(self, heads: slice, rows: slice) -> None:
        # offsets need all keys, so that the view has the grid's shape
        keys = self.kv_len if self.axes is not None else self.scores.keys_until(rows.stop)
        s = self.scores.strip(self.b, heads, rows, keys)
        top = s.amax(-1)
        usable = top.isfinite()
        p = torch.exp(s - torch.where(usable, top, 0.0)[..., None])
        total = p.sum(-1)
        p *= torch.where(usable, 1 / total, 0.0)[..., None]
        if not bool(usable.all()):
            # 0 * NaN would stay NaN
            p.masked_fill_(~usable[..., None], 0.0)
            self.bad += int((~usable & (top != -math.inf)).sum())
        self.rows["max"][heads, rows] = top
        self.rows["lse"][heads, rows] = torch.where(usable, top + total.log(), top)
        self.rows["entropy"][heads, rows] = -torch.xlogy(p, p).sum(-1)
        self._sums(heads, rows, p)
        if self.axes is not None:
            self._offsets(heads, rows, p)

    def _sums(self, heads: slice, rows: slice, p: Tensor) -> None:
        keys, width = p.shape[2], self.block[1]
        column = p.sum(1).to(self.columns.dtype)
        self.columns[heads, :keys] += column
        blocks = -(-keys // width)
        padded = torch.nn.functional.pad(column, (0, blocks * width - keys))
        self.mass[heads, rows.start // self.block[0], :blocks] += padded.view(-1, blocks, width).sum(-1)
        # the diagonals of the strip, from its last row's first key to its first row's last
        along = diagonals(p)
        last = rows.stop - 1 + self.kv_len - 1
        first = last - along.shape[1] + 1
        self.distance[heads, first : last + 1] += along.flip(1)

    def _offsets(self, heads: slice, rows: slice, p: Tensor) -> None:
        """Adds each line of the grid's last axis, shifted row by row, at its place."""
        assert self.axes is not None and self.offsets is not None
        start, extents = self.axes.start, self.axes.extents
        *lead, width = extents
        first, end = max(rows.start, start), min(rows.stop, start + self.axes.tokens)
        while first < end:
            line, at = divmod(first - start, width)
            run = min(width - at, end - first)
            grid = p[:, first - rows.start : first - rows.start + run, start : start + self.axes.tokens]
            lines = grid.reshape(len(p), run, -1, width).transpose(1, 2).reshape(-1, run, width)
            sums = diagonals(lines).flip(1).view(len(p), *lead, -1).flip(list(range(1, len(lead) + 1)))
            place: list[slice] = []
            for extent in reversed(lead):
                line, coordinate = divmod(line, extent)
                place.insert(0, slice(coordinate, coordinate + extent))
            self.offsets[(heads, *place, slice(at, at + run + width - 1))] += sums
            first += run

    def _finished(self) -> dict[str, Tensor]:
        tall = self.block[0]
        height = torch.tensor([min(tall, self.q_len - top) for top in range(0, self.q_len, tall)], device=self.mass.device)
        made = {"mass": (self.mass / height[:, None]).float(), **self.rows, "columns": (self.columns / self.q_len).bfloat16()}
        bounds = torch.tensor(edges(self.q_len, self.kv_len), device=self.mass.device) + self.kv_len - 1
        run = torch.nn.functional.pad(self.distance.cumsum(1), (1, 0))
        made["distance"] = (run[:, bounds].diff(dim=1) / self.q_len).clamp(min=0).float()
        if self.axes is not None and self.offsets is not None:
            made["offsets"] = folded(self.offsets, self.axes).div(self.axes.tokens).bfloat16()
        return {name: tensor.cpu() for name, tensor in made.items()}


def diagonals(p: Tensor) -> Tensor:
    """Sums [n, R + C - 1] over diagonals of [n, R, C]: entry i is the sum of the cells with column - row = i - (R - 1)."""
    n, rows, columns = p.shape
    wide = p.new_zeros(n, rows, columns + rows)
    wide[:, :, :columns] = p.flip(1)
    # read with one column less, every row starts one column further to the right than the row above
    skewed = wide.view(n, -1)[:, : rows * (columns + rows - 1)].view(n, rows, columns + rows - 1)
    return skewed.sum(1)


def folded(offsets: Tensor, axes: Axes) -> Tensor:
    """Signed offsets [H, 2 n - 1, ...] with those axes folded to |offset| whose sign is not kept."""
    for axis, (extent, signed) in enumerate(zip(axes.extents, axes.signed(), strict=True), start=1):
        if not signed:
            back = offsets.narrow(axis, 0, extent - 1).flip(axis)
            offsets = offsets.narrow(axis, extent - 1, extent).clone()
            offsets.narrow(axis, 1, extent - 1).add_(back)
    return offsets
