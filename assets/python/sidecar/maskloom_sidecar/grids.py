"""The grid of tokens that a call of a model runs over: rows and columns of an image, frames of a video.

Invariant: what cannot be read is None, never a guess. Must not know designs.
"""

import inspect

import torch


class Reader:
    """Reads the grid of one model's calls from their arguments."""

    def __init__(self, model):
        self.names = list(inspect.signature(type(model).forward).parameters)[1:]
        self.kind = type(model).__name__
        self.patch = _patch(getattr(model, "config", None))

    def read(self, args, kwargs):
        """(grids, pyramid): shapes without extents of 1; `pyramid` (h, w) where layers halve it. Either may be None."""
        given = dict(zip(self.names, args)) | kwargs
        if given.get("img_shapes") is not None:
            return _of_shapes(given["img_shapes"]), None
        if given.get("img_ids") is not None:
            return _of_ids(given["img_ids"]), None
        sizes = [given.get(name) for name in ("num_frames", "height", "width")]
        if all(isinstance(n, int) for n in sizes):
            return _plain([tuple(sizes)]), None
        for name in ("hidden_states", "sample", "pixel_values"):
            if isinstance(given.get(name), torch.Tensor):
                return self._of_latents(given[name])
        return None, None

    def _of_latents(self, latents):
        # int: a compiled caller has sizes that are symbols
        sizes = [fixed(n) for n in latents.shape]
        if len(sizes) == 5 and self.patch is not None:
            # CogVideoX alone has its frames before its channels
            frames = sizes[1] if self.kind.startswith("CogVideoX") else sizes[2]
            t, h, w = self.patch
            return _plain([(frames // t, sizes[3] // h, sizes[4] // w)]), None
        if len(sizes) == 4 and self.patch is not None:
            return _plain([(sizes[2] // self.patch[1], sizes[3] // self.patch[2])]), None
        if len(sizes) == 4 and self.kind.startswith("UNet"):
            return None, (sizes[2], sizes[3])
        return None, None


def of_level(pyramid, tokens):
    """The grid of the level of a pyramid that has so many tokens; None if there is none or more than one."""
    height, width = pyramid
    found = []
    while height > 0 and width > 0:
        if height * width == tokens:
            found.append((height, width))
        if height == width == 1:
            break
        height, width = -(-height // 2), -(-width // 2)
    return _plain(found) if len(found) == 1 else None


def tracing():
    """Whether torch.compile traces this code: not merely whether it compiles something in another thread."""
    return torch.compiler.is_dynamo_compiling()


def fixed(n):
    """A length as a number that a compiled caller is specialised to."""
    if type(n) is int:
        return n
    # int() leaves a symbol a symbol; counting does not
    for number in range(n, n + 1):
        return number


def _patch(config):
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


def _plain(grids):
    return tuple(g for g in (tuple(n for n in grid if n > 1) for grid in grids) if len(g) > 1)


def _of_shapes(shapes):
    """Qwen-Image's: for each sample a list of (frames, height, width)."""
    samples = []
    for sample in shapes:
        sample = [sample] if isinstance(sample[0], int) else sample
        samples.append(tuple(tuple(int(n) for n in grid) for grid in sample))
    return _plain(samples[0]) if samples and all(s == samples[0] for s in samples) else None


@torch.compiler.disable
def _of_ids(ids):
    """Positions of image tokens, [N, axes] or [1, N, axes]: the grid that they are the raster of."""
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
    return _plain([grid])
