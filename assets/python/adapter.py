"""The attention of DESIGN.py inside ADAPTER_MODEL.

    import DESIGN_ADAPTER_KIND as adapter

    handle = adapter.use(ADAPTER_OBJECT)
    handle = adapter.use(ADAPTER_OBJECT, layers=ADAPTER_LAYERS, strict=True)
    print(adapter.verify(ADAPTER_OBJECT, ADAPTER_INPUTS))
    print(adapter.compare(ADAPTER_OBJECT, ADAPTER_INPUTS))
    handle.remove()

ADAPTER_ABOUT
SPDX-License-Identifier: MIT. Written by Maskloom MASKLOOM_VERSION.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

import DESIGN as design

if TYPE_CHECKING:
    from sidecar.maskloom_sidecar.applied import Handle
    from sidecar.maskloom_sidecar.difference import Difference
    from sidecar.maskloom_sidecar.verified import Proof

_FOLDER = Path(__file__).resolve().with_name("sidecar")
_VERSION = "MASKLOOM_VERSION"


def _runtime() -> ModuleType:
    """The package maskloom_sidecar of the folder next to this file."""
    if _FOLDER.with_name(".maskloom-unfinished").exists():
        raise ImportError(f"{_FOLDER.parent} holds files of two exports, because one was interrupted: export again")
    found = sys.modules.get("maskloom_sidecar")
    if found is None:
        file = _FOLDER / "maskloom_sidecar" / "__init__.py"
        spec = importlib.util.spec_from_file_location(file.parent.name, file, submodule_search_locations=[str(file.parent)])
        if not file.is_file() or spec is None or spec.loader is None:
            raise ImportError(f"{file} does not exist: keep the folder `sidecar` of the export next to this file")
        found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    if found.PACKAGE != "MASKLOOM_PACKAGE":
        raise ImportError(f"{found.__file__} is from Maskloom {found.VERSION}, this file {_VERSION}: export both again")
    return found


def _remade(module: str, name: str, *given: object) -> object:
    """Restores the runtime's part of a pickled model, in a process that may not have imported the runtime."""
    return cast("object", importlib.import_module(f"{_runtime().__name__}.patched").remade(module, name, *given))


def use(
    model: nn.Module,
    layers: str | re.Pattern[str] | Callable[[str], object] | None = None,
    strict: bool = False,
    grid: str | None = None,
    learned: Mapping[str, Tensor] | bool = False,
) -> Handle:
    """Applies the design to layers of `model`. Returns a handle with `layers`, `report()`, `verify(inputs)` and `remove()`.

    layers: a regular expression or a function that accepts layers' names; default: all of the main sequence. strict: an unmasked
    call raises an error. grid: "assume" if the model's grid of tokens cannot be read. learned: tensors in place of those that
    `design.LEARNS` names, or True for new parameters of the model with their values: they learn, and `handle.learned` has them.
    Errors: ValueError if no layer is found, or for a wrong name or shape in `learned`.
    """
    return cast("Handle", _runtime().use(model, design, _FOLDER / "sidecar.json", layers, strict, grid, __name__, learned))


def verify(model: nn.Module, inputs: Mapping[str, Any] | Sequence[Any], tolerance: float | None = None) -> Proof:
    """Runs the model with the design, with its mask passed by hand, and without; compares the outputs."""
    return cast("Proof", _runtime().verify(model, inputs, tolerance))


def compare(model: nn.Module, inputs: Mapping[str, Any] | Sequence[Any]) -> Difference:
    """Runs the model without the design and with it; reports the changes of its output, loss and perplexity."""
    return cast("Difference", _runtime().compare(model, inputs))
