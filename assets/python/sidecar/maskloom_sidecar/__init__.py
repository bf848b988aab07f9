# SPDX-License-Identifier: MIT
"""Maskloom's runtime: exported designs inside a model, with no change to the model.

As a sidecar in an unchanged trainer:

    export PYTHONPATH=/path/to/export/sidecar:$PYTHONPATH
    export MASKLOOM_SIDECAR=/path/to/export
    accelerate launch train.py ...

The environment reaches every process that the trainer starts. Without MASKLOOM_SIDECAR nothing happens. It may name
several folders (separated like PATH): the runtime uses the design for a call's tokens, grid and layer; if two
designs match, it uses none and prints a line.

MASKLOOM_SIDECAR_LAYERS   regular expression: the layers to change, by name ("single_transformer_blocks"); default: all.
                          `"layers"` in a folder's sidecar.json sets this for its design only
MASKLOOM_SIDECAR_MODELS   class names of models, comma-separated, `*` matches anything; default: the models of
                          diffusers except autoencoders, and those of transformers only if diffusers is not in use
MASKLOOM_SIDECAR_REPLACE  1: the design also takes the place of images that attend both ways (PaliGemma, Gemma-3)
MASKLOOM_SIDECAR_SHAPES   `any`: use the design's formula at other lengths too; `exact`: only at its own lengths
MASKLOOM_SIDECAR_STRICT   `1`: an unmasked watched call is an error, not a line
MASKLOOM_SIDECAR_GRID     `assume`: use the design's grid if the model's grid of tokens cannot be read
MASKLOOM_SIDECAR_KERNEL   `0`: use FlexAttention even if the folder has an exported kernel (calls without gradients)

A line at load lists the designs, one after the first step counts the layers with the mask, one at the end counts the
masked and the unmasked calls, with reasons. `maskloom_sidecar.verify(model, inputs)` checks a model.
`maskloom_sidecar.compare(model, inputs)` reports the design's effect on its output, loss and perplexity. A whole script runs
once without the design and once with it by

    PYTHONPATH=/path/to/export/sidecar python -m maskloom_sidecar --layers "blocks" train.py --steps 10

As an adapter: DESIGN_diffusers.py and DESIGN_transformers.py next to the folder call `use`.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .aliases import Inputs, Wanted
    from .applied import Handle
    from .difference import Difference
    from .verified import Proof

Callback = Callable[[ModuleType], None]
VERSION = "MASKLOOM_VERSION"
# a hash of these files: builds of Maskloom with the same one have the same runtime
PACKAGE = "MASKLOOM_PACKAGE"


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls back when one of the named modules has been imported. It imports none of them itself."""

    def __init__(self, callbacks: dict[str, Callback]) -> None:
        self.callbacks = callbacks

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        callback = self.callbacks.get(name)
        if callback is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None and spec.loader is not None:
                _call_after(spec.loader, callback)
                return cast("ModuleSpec", spec)
        return None


def _call_after(loader: Any, callback: Callback) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        callback(module)

    loader.exec_module = exec_module


def _after(name: str) -> Callback:
    # what patches attention needs torch, so it is imported together with it
    def callback(module: ModuleType) -> None:
        from . import construction

        getattr(construction, name)(module)

    return callback


def install() -> None:
    """Prepares to patch each library when it is imported. Errors: a setting is wrong."""
    from . import settings

    settings.check()
    callbacks = {
        "torch": _after("torch_ready"),
        "diffusers.models.attention_dispatch": _after("diffusers_dispatch"),
        "diffusers.models.modeling_utils": _after("diffusers_models"),
        "transformers.modeling_utils": _after("transformers_models"),
    }
    for name in list(callbacks):
        if name in sys.modules:
            callbacks.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, _AfterImport(callbacks))


def use(
    model: nn.Module,
    module: ModuleType,
    settings_file: Path,
    layers: Wanted | None = None,
    strict: bool = False,
    grid: str | None = None,
    adapter: str | None = None,
    learned: Mapping[str, Tensor] | bool = False,
) -> Handle:
    """Applies the design of an exported module to a model: see `applied.use`."""
    from . import applied

    return applied.use(model, module, settings_file, layers, strict, grid, adapter, learned)


def verify(model: nn.Module, inputs: Inputs, tolerance: float | None = None) -> Proof:
    """Checks that a watched model equals its own attention with the mask passed by hand: see `verified.verify`."""
    from . import verified

    return verified.verify(model, inputs, tolerance)


def compare(model: nn.Module, inputs: Inputs) -> Difference:
    """The design's effect on a watched model's output, loss and perplexity: see `verified.compare`."""
    from . import verified

    return verified.compare(model, inputs)
