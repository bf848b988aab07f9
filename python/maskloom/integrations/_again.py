"""Calls that a backward pass makes again, because their activations were not kept: gradient checkpointing.

Invariant: a call that is made again has what was set around the first one, in whichever thread and wherever the
backward pass runs. Must not know masks.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["backward", "first", "known"]

#: PyTorch's file of both kinds of checkpoints.
_FILE = "torch/utils/checkpoint.py"
#: How far above a call they are looked for.
_FRAMES = 400
#: What was set, by PyTorch's object for a part of a model that is run again.
_of_part: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def backward() -> bool:
    """Whether this thread runs a backward pass."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1


def first(given: Any) -> bool:
    """Keeps what is set around a call for when it is made again; whether a checkpoint is around it."""
    found = False
    for again, part in _parts():
        if again:
            break
        _of_part[part] = given
        found = True
    return found


def known() -> tuple[bool, Any]:
    """Whether it is known what was set around the first one of a call that is made again, and that."""
    inner: list[Any] = []
    for again, part in _parts():
        if not again:
            inner.append(part)
        elif part in _of_part:
            given = _of_part[part]
            # a checkpoint in what is run again is another one each time
            for one in inner:
                _of_part[one] = given
            return True, given
        else:
            break
    return False, None


def _parts() -> Iterator[tuple[bool, Any]]:
    """The checkpoints around this call from the inside: whether each runs its part again, and its object."""
    frame: Any = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is None:
            return
        if frame.f_code.co_filename.replace("\\", "/").endswith(_FILE):
            name, here = frame.f_code.co_name, frame.f_locals
            running = getattr(here.get("gen"), "gi_frame", None)
            if name == "unpack_hook" and "frame" in here:
                yield True, here["frame"]
            elif name in ("forward", "backward") and "ctx" in here:
                yield name == "backward", here["ctx"]
            elif running is not None and "new_frame" in running.f_locals:
                yield False, running.f_locals["new_frame"]
        frame = frame.f_back
