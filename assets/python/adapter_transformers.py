"""The attention of DESIGN.py inside a transformers model (transformers 5, or 4.53 and newer).

    import DESIGN_transformers
    handle = DESIGN_transformers.use(model)
    handle = DESIGN_transformers.use(model, layers=r"layers\\.(0|2)\\.", strict=True)
    print(DESIGN_transformers.verify(model, {"input_ids": ids}))
    handle.remove()

The design replaces the pattern of the chosen layers (causal, sliding, both ways). What the model brings stays: padding, packed
sequences (each document has the design for itself), sinks, a soft cap where the design has no score_mod, a position bias;
with a key-value cache the queries keep their places, and the cache keeps all keys. What is not known is left as it is and
told, `strict=True` makes it an error. At other lengths the design is used where it means the same: a formula at any, tables
and drawings at shorter ones.
SPDX-License-Identifier: MIT. Written by Maskloom MASKLOOM_VERSION.
"""

import importlib.util
import sys
from pathlib import Path

import DESIGN as design

_FOLDER = Path(__file__).resolve().with_name("sidecar")


def _runtime():
    """The package maskloom_sidecar of the folder beside this file."""
    found = sys.modules.get("maskloom_sidecar")
    if found is None:
        file = _FOLDER / "maskloom_sidecar" / "__init__.py"
        if not file.is_file():
            raise ImportError(f"{file} is not there: keep the folder `sidecar` of the export beside this file")
        spec = importlib.util.spec_from_file_location(file.parent.name, file, submodule_search_locations=[str(file.parent)])
        found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    if found.VERSION != "MASKLOOM_VERSION":
        raise ImportError(f"{found.__file__} is of Maskloom {found.VERSION}, this file of MASKLOOM_VERSION: export both anew")
    return found


def use(model, layers=None, strict=False, grid=None):
    """Gives the design to layers of `model`; a handle with `layers`, `report()`, `verify(inputs)` and `remove()`.

    layers: a regular expression or a function that accepts layers' names; all of the main sequence by default. strict: a call
    that is left as it is raises an error. grid: "assume" where the model's grid of tokens cannot be read. Errors: ValueError
    where no layer is found.
    """
    return _runtime().use(model, design, _FOLDER / "sidecar.json", layers, strict, grid)


def verify(model, inputs, tolerance=None):
    """Runs the model with the design, with its mask given by hand, and without; says how far the outputs are apart."""
    return _runtime().verify(model, inputs, tolerance)
