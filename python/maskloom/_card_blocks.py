"""The lists of a block mask found on the GPU where the mask's tensors lie: nothing comes to the host.

Invariant: the lists are those that the host finds for the same contents; nothing waits for the GPU. Must not know how a
mask was recorded.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from . import _native
from ._arrays import PAIRS, Place, Wanted, parts, places
from ._call import call
from ._cuda import Ready, current_device, keep, place
from ._mods import bounded
from .errors import ArgumentError

#: Dtypes that the kernel reads.
READ = frozenset({torch.bool, torch.int64, torch.float32, torch.float64})
#: Refusals for which the host finds the blocks.
GIVEN_UP = {"block-mask-on-card", "nvrtc-missing"}
_READY: dict[Any, Ready] = {}
_GIVEN_UP: dict[Any, None] = {}


def lists_on_card(
    mask: _native.Mask, tensors: list[torch.Tensor], wanted: Wanted, device: torch.device
) -> dict[str, torch.Tensor] | None:
    """The arrays of a BlockMask by PyTorch's names, int32 on the device.

    mask: of a recording, with whichever contents; tensors: its captured ones, all on the device. None: the host is to
    find the blocks. Errors: those of preparing a kind of block mask while a CUDA graph is captured."""
    index = device.index
    if index != current_device():
        with torch.cuda.device(index):
            return lists_on_card(mask, tensors, wanted, device)
    kind = (mask, wanted, index)
    ready = _READY.get(kind)
    if ready is None:
        if kind in _GIVEN_UP:
            return None
        try:
            ready = keep(_READY, kind, lambda: _ready(mask, tensors[0], wanted, index))
        except ArgumentError as why:
            if why.code not in GIVEN_UP:
                raise
            bounded(_GIVEN_UP)
            _GIVEN_UP[kind] = None
            return None
    held = [_as_read(tensor) for tensor in tensors]
    whole = ready.run([], [tensor.data_ptr() for tensor in held])[0]
    return parts(whole, _laid(wanted)[0])


@functools.lru_cache(maxsize=64)
def _laid(wanted: Wanted) -> tuple[tuple[Place, ...], int]:
    return places(wanted.shapes())


def _ready(mask: _native.Mask, like: torch.Tensor, wanted: Wanted, index: int) -> Ready:
    laid, end = _laid(wanted)
    begin = {name: at for name, _, _, at in laid}
    names = [f"{pair}_{what}" for pair in PAIRS for what in ("num_blocks", "indices")]
    given = [begin.get(name) for name in names]
    made = call(_native.block_mask_pass, mask, wanted.groups, wanted.lengths, wanted.block, given, place(index))
    return Ready(made, like, [((end,), (1,), torch.int32)])


def _as_read(tensor: torch.Tensor) -> torch.Tensor:
    """A captured tensor as the kernel reads it."""
    if tensor.dtype in READ and tensor.is_contiguous() and not tensor.is_neg():
        return tensor
    tensor = tensor.detach()
    if tensor.dtype not in (torch.bool, torch.float64):
        tensor = tensor.to(torch.float32 if tensor.is_floating_point() else torch.int64)
    tensor = tensor.resolve_neg() if tensor.is_neg() else tensor
    return tensor.contiguous()
