# SPDX-License-Identifier: MIT
"""The grid of tokens of a model's call: rows and columns of an image, frames of a video.

Invariant: an unreadable grid is None, never a guess. Must not know designs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import torch

from .pickled import Carried

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .aliases import Grid, Grids


class Reader(Carried):
    """Reads the grids of one model's calls from their arguments."""

    def __init__(self, model: nn.Module) -> None:
        self.names = list(inspect.signature(type(model).forward).parameters)[1:]
        self.kind = type(model).__name__
        self.patch = _patch(getattr(model, "config", None))

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Grids | None, Grid | None]:
        """(grids, pyramid): shapes of the grids; `pyramid` (h, w) if layers halve it. Either may be None."""
        given = dict(zip(self.names, args, strict=False)) | kwargs
        if given.get("img_shapes") is not None:
            return _of_shapes(given["img_shapes"]), None
        if given.get("img_ids") is not None:
            return _of_ids(given["img_ids"]), None
        sizes = [given.get(name) for name in ("num_frames", "height", "width")]
        if all(isinstance(n, int) for n in sizes):
            return (tuple(int(n) for n in sizes if n is not None),), None
        for name in ("hidden_states", "sample", "pixel_values"):
            if isinstance(given.get(name), torch.Tensor):
                return self._of_latents(given[name])
        return None, None

    def _of_latents(self, latents: Tensor) -> tuple[Grids | None, Grid | None]:
        # int: a compiled caller has symbolic sizes
        sizes = [fixed(n) for n in latents.shape]
        if len(sizes) == 5 and self.patch is not None:
            # only CogVideoX has its frames before its channels
            frames = sizes[1] if self.kind.startswith("CogVideoX") else sizes[2]
            t, h, w = self.patch
            return ((frames // t, sizes[3] // h, sizes[4] // w),), None
        if len(sizes) == 4 and self.patch is not None:
            return ((sizes[2] // self.patch[1], sizes[3] // self.patch[2]),), None
        if len(sizes) == 4 and self.kind.startswith("UNet"):
            return None, (sizes[2], sizes[3])
        return None, None


def of_level(pyramid: Grid, tokens: int) -> Grids | None:
    """The grid of the pyramid's level with this number of tokens; None if there is none or more than one."""
    height, width = pyramid
    found = []
    while height > 0 and width > 0:
        if height * width == tokens:
            found.append((height, width))
        if height == width == 1:
            break
        height, width = -(-height // 2), -(-width // 2)
    return tuple(found) if len(found) == 1 else None


def tracing() -> bool:
    """Whether torch.compile traces this code, not only other code in another thread."""
    return torch.compiler.is_dynamo_compiling()


def exporting() -> bool:
    """Whether torch.export runs this code on tensors without values."""
    asked = getattr(torch.compiler, "is_exporting", None)
    return asked is not None and asked() and not tracing()


def fixed(n: Any) -> int:
    """A length as a number that a compiled caller is specialised to."""
    if type(n) is int:
        return n
    # int() keeps a symbol symbolic; counting does not
    return next(iter(range(n, n + 1)))


def _patch(config: Any) -> Grid | None:
    """(t, h, w) that a token covers, or None."""
    if config is None:
        return None
    get = config.get if hasattr(config, "get") else lambda name, default=None: getattr(config, name, default)
    size = get("patch_size", None)
    if isinstance(size, int):
        return (get("patch_size_t", None) or 1, size, size)
    if isinstance(size, (tuple, list)) and len(size) in (2, 3):
        return (1, *size) if len(size) == 2 else tuple(size)
    return None


def plain(grids: Iterable[Grid]) -> Grids:
    """Shapes without extents of 1; a shape with fewer than two other extents is not a grid."""
    return tuple(g for g in (tuple(n for n in grid if n > 1) for grid in grids) if len(g) > 1)


def alike(grid: Grid, dims: int) -> Grid | None:
    """A grid with so many dimensions, extents of 1 added in front or removed; None if this is not possible."""
    if len(grid) == dims:
        return grid
    thick = tuple(n for n in grid if n > 1)
    return None if len(thick) > dims else (1,) * (dims - len(thick)) + thick


def _of_shapes(shapes: Any) -> Grids | None:
    """Qwen-Image's: for each sample a list of (frames, height, width)."""
    samples = []
    for sample in shapes:
        sample = [sample] if isinstance(sample[0], int) else sample
        samples.append(tuple(tuple(int(n) for n in grid) for grid in sample))
    return samples[0] if samples and all(s == samples[0] for s in samples) else None


def _uncompiled(function: Callable[[Tensor], Grids | None]) -> Callable[[Tensor], Grids | None]:
    """Runs between compiled parts, because it reads values."""
    reason = 'the grid is read from the values of img_ids: compile without fullgraph, or assume it: grid="assume"'
    has_reason = "reason" in inspect.signature(torch.compiler.disable).parameters
    disable = cast("Callable[..., Callable[[Tensor], Grids | None]]", torch.compiler.disable)
    return disable(function, reason=reason) if has_reason else disable(function)


@_uncompiled
def _of_ids(ids: Tensor) -> Grids | None:
    """Positions of image tokens, [N, axes] or [1, N, axes]: the grid in whose raster order they are."""
    ids = ids.detach().cpu()
    if ids.dim() == 3:
        if not bool((ids == ids[:1]).all()):
            return None
        ids = ids[0]
    axes = [torch.unique(column) for column in ids.unbind(-1)]
    grid = tuple(len(values) for values in axes)
    raster = torch.cartesian_prod(*axes) if len(axes) > 1 else axes[0][:, None]
    if raster.shape != ids.shape or not bool((raster == ids).all()):
        return None
    return (grid,)
