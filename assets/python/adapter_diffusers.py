"""The attention of DESIGN.py inside a diffusers model.

    import DESIGN_diffusers
    handle = DESIGN_diffusers.use(pipe.transformer)
    handle = DESIGN_diffusers.use(pipe.transformer, layers="single_transformer_blocks", strict=True)
    print(DESIGN_diffusers.verify(pipe.transformer, inputs))
    handle.remove()

Attention over the design's tokens is replaced in the chosen layers, whatever backend is set; the scale and the mask that
the model has of its own stay. Calls over other tokens run as before, are counted and told; `strict=True` makes them an
error. Several designs can be in one model: a call gets the one for its layer, its tokens and their grid. It works for
models that call diffusers' dispatcher and for those that call PyTorch's scaled_dot_product_attention, forward and backward,
compiled (before or after), with gradient checkpointing.
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
