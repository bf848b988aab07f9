# SPDX-License-Identifier: MIT
"""The exported kernel instead of FlexAttention, for calls without gradients at exactly its compiled shape.

Must not know layers or models.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from . import settings
from .settings import say

if TYPE_CHECKING:
    from torch import Tensor

    from .plan import Brought, Plan

_loaded: dict[Path, Any] = {}


def attend(plan: Plan, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought) -> Tensor | None:
    """The kernel's attention, or None if FlexAttention computes the call."""
    design = plan.taken
    file = design.kernel
    if file is None or not _on(query.device) or not settings.kernel():
        return None
    grads = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    lengths = (query.shape[2], key.shape[2])
    whole = plan.place is None and plan.key == f"{lengths[0]}_{lengths[1]}" and lengths == design.lengths
    alone = all(one is None for one in (brought.own, brought.bias, brought.softcap, brought.sinks))
    if grads or not whole or not alone:
        return None
    if file not in _loaded:
        _loaded[file] = _load(file)
    module = _loaded[file]
    if module is None or not _serves(module, query, key, value):
        return None
    try:
        out: Tensor = module.attend(query, key, value, scale)
    except RuntimeError as why:
        _loaded[file] = None
        say(f"the exported kernel is not used, FlexAttention is: {why}")
        return None
    say("the exported kernel computes calls without gradients")
    return out


def _on(device: torch.device) -> bool:
    return device.type == "cuda"


def _serves(module: Any, query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether shapes and dtype are those of the compiled kernel."""
    try:
        module._check(query, key, value)
    except ValueError as why:
        say(f"the exported kernel is not used here, FlexAttention is: {why}")
        return False
    return True


def _load(file: Path) -> ModuleType | None:
    """The module of a kernel bundle, or None with a message if it cannot be loaded."""
    name = f"maskloom_kernel_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (ImportError, OSError, RuntimeError, KeyError, ValueError) as why:
        say(f"the exported kernel cannot be loaded, FlexAttention is used: {why}")
        return None
    return module
