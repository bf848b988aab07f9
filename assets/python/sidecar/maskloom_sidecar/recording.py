# SPDX-License-Identifier: MIT
"""Recording in a compared script: the outputs of each model's forward passes, and the losses, written into a folder.

`python -m maskloom_sidecar SCRIPT` runs a script twice with recording. Must not know the comparison.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import random
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from . import settings
from .counts import watched
from .difference import seen
from .settings import say

if TYPE_CHECKING:
    from torch import Tensor, nn


class _Record:
    """Of this process."""

    def __init__(self) -> None:
        self.calls = 0
        # of every forward pass with a loss: model, loss, whether it is a mean over tokens
        self.losses: list[tuple[str, float, bool]] = []
        # the losses whose backward was called
        self.trained: list[float] = []
        self.hooks: weakref.WeakKeyDictionary[nn.Module, Any] = weakref.WeakKeyDictionary()
        self.folder: Path | None = None

    def place(self) -> Path:
        """This process's own folder."""
        if self.folder is None:
            self.folder = Path(settings.record_folder(), f"{os.getpid()}")
            self.folder.mkdir(parents=True, exist_ok=True)
            atexit.register(self.finish)
        return self.folder

    def finish(self) -> None:
        """The results of the whole run, other than its calls."""
        report = [model.report() for model in watched()]
        found = {"calls": self.calls, "losses": self.losses, "trained": self.trained, "layers": report}
        self.place().joinpath("run.json").write_text(json.dumps(found), encoding="utf-8")


_record = _Record()


def begin() -> None:
    """Runs after torch was imported: sets the same seed in both runs, and records the trained losses."""
    seed = os.environ.get("MASKLOOM_SIDECAR_SEED", "0")
    if seed != "none":
        random.seed(int(seed))
        torch.manual_seed(int(seed))
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(int(seed))
    backward: Any = torch.Tensor.backward
    compiled: Any = torch.compile

    @functools.wraps(backward)
    def noting(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.numel() == 1:
            _record.trained.append(float(self.detach()))
        return backward(self, *args, **kwargs)

    @functools.wraps(compiled)
    def in_parts(model: Any = None, **kwargs: Any) -> Any:
        # the result of a forward pass cannot be written from inside a graph
        owner = getattr(model, "__self__", model)
        if kwargs.get("fullgraph") and isinstance(owner, torch.nn.Module) and owner in _record.hooks:
            say("a model compiled with fullgraph=True is compiled in parts here, so that its outputs can be recorded")
            kwargs["fullgraph"] = False
        return compiled(model, **kwargs)

    library: Any = torch
    library.Tensor.backward = noting
    library.compile = in_parts


def attach(model: nn.Module) -> None:
    """Records the outputs of a model's forward passes; a model inside it, attached before, is part of it."""
    if os.environ.get("RANK", "0") != "0" or model in _record.hooks:
        return
    for part in model.modules():
        hook = _record.hooks.pop(part, None)
        if hook is not None:
            hook.remove()
    # code that writes files is not compiled
    disable: Any = torch.compiler.disable
    _record.hooks[model] = model.register_forward_hook(disable(_keep), with_kwargs=True)


def _keep(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
    with torch.no_grad():
        found = seen(module, args, kwargs, output)
    if found is None:
        return
    folder = _record.place()
    if found.loss is not None:
        _record.losses.append((found.model, found.loss, found.of_tokens))
    if _record.calls < int(os.environ.get("MASKLOOM_SIDECAR_CALLS", "16")):
        torch.save(found.state(), folder / f"{_record.calls:06}.pt")
    _record.calls += 1
