"""Maskloom's runtime: exported designs inside a model, with no change to the model.

As a sidecar in a trainer that knows nothing of it:

    export PYTHONPATH=/path/to/export/sidecar:$PYTHONPATH
    export MASKLOOM_SIDECAR=/path/to/export
    accelerate launch train.py ...

The environment reaches every process that the trainer starts. With MASKLOOM_SIDECAR unset nothing happens. It may name
several folders (separated like PATH): of all designs the one made for a call's tokens, grid and layer is taken; where two
are made for the same, none is, and a line says so.

MASKLOOM_SIDECAR_LAYERS   regular expression: the layers to change, by name ("single_transformer_blocks"); all by default.
                          `"layers"` in a folder's sidecar.json says the same for its design alone
MASKLOOM_SIDECAR_MODELS   class names of models, comma-separated, `*` stands for anything; without it the models of
                          diffusers but autoencoders, and those of transformers only where diffusers is not in use
MASKLOOM_SIDECAR_SHAPES   `any`: the design's formula also at other lengths than its own; `exact`: only at its own
MASKLOOM_SIDECAR_STRICT   `1`: a watched call that the design cannot take is an error, not a line
MASKLOOM_SIDECAR_GRID     `assume`: a model whose grid of tokens cannot be read has the design's
MASKLOOM_SIDECAR_KERNEL   `0`: FlexAttention also where the folder has an exported kernel (calls without gradients)

A line at load says which designs wait, one after the first step how many layers the mask is active in, one at the end how
many calls were masked and how many were not, and why. `maskloom_sidecar.verify(model, inputs)` proves it for a model;
`maskloom_sidecar.compare(model, inputs)` says what the design changes in its output, loss and perplexity. A whole script runs
once without the design and once with it by

    PYTHONPATH=/path/to/export/sidecar python -m maskloom_sidecar --layers "blocks" train.py --steps 10

As an adapter: DESIGN_diffusers.py and DESIGN_transformers.py beside the folder call `use` here.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from torch import nn

    from .difference import Difference
    from .kinds import Inputs, Wanted
    from .proof import Proof
    from .using import Handle

Callback = Callable[[ModuleType], None]
VERSION = "MASKLOOM_VERSION"


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls back when one of the named modules has been imported. Nothing is imported for its sake."""

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


def _seam(name: str) -> Callback:
    # the seams need torch: they are imported when torch is
    def callback(module: ModuleType) -> None:
        from . import construction

        getattr(construction, name)(module)

    return callback


def install() -> None:
    """Makes every seam ready; each is patched when its library is imported. Errors: a setting is wrong."""
    from . import settings

    settings.check()
    callbacks = {
        "torch": _seam("torch_ready"),
        "diffusers.models.attention_dispatch": _seam("diffusers_dispatch"),
        "diffusers.models.modeling_utils": _seam("diffusers_models"),
        "transformers.modeling_utils": _seam("transformers_models"),
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
) -> Handle:
    """Gives the design of an exported module to a model: see `using.use`."""
    from . import using

    return using.use(model, module, settings_file, layers, strict, grid, adapter)


def verify(model: nn.Module, inputs: Inputs, tolerance: float | None = None) -> Proof:
    """Proves that a watched model computes what its own attention does with the mask given by hand: see `proof.verify`."""
    from . import proof

    return proof.verify(model, inputs, tolerance)


def compare(model: nn.Module, inputs: Inputs) -> Difference:
    """What the design changes in a watched model's output, loss and perplexity: see `proof.compare`."""
    from . import proof

    return proof.compare(model, inputs)
