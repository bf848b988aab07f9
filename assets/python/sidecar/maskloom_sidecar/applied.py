# SPDX-License-Identifier: MIT
"""The adapters: apply a design to one model on demand, and remove it again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import layers, patched, settings
from .designs import design_of
from .learning import learning, parameter_name
from .learning import reported as not_learned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from .aliases import Inputs, Wanted
    from .counts import Model
    from .designs import Design
    from .difference import Difference
    from .verified import Proof


class Handle:
    """A design in a model. `layers` lists its layers; `report()` returns the counts; `remove()` removes it.

    `learned` has the tensors that learn, by name: one of each for all layers.
    """

    def __init__(
        self, model: nn.Module, design: Design, names: list[str], watched: Model, back: list[Callable[[], None]]
    ) -> None:
        self.model = model
        self.design = design
        self.layers = names
        self.learned = dict(design.learned)
        self._watched = watched
        self._back = back

    def report(self) -> dict[str, dict[str, Any]]:
        """{layer: {"masked": calls, "compiled": times, "left": {reason: calls}}}."""
        return {name: one for name, one in self._watched.report().items() if name in self.layers}

    def verify(self, inputs: Inputs, tolerance: float | None = None) -> Proof:
        """See `maskloom_sidecar.verify`."""
        from . import verified

        return verified.verify(self.model, inputs, tolerance)

    def compare(self, inputs: Inputs) -> Difference:
        """See `maskloom_sidecar.compare`."""
        from . import verified

        return verified.compare(self.model, inputs)

    def remove(self) -> None:
        """Restores the layers; other designs stay in them."""
        modules = dict(self.model.named_modules())
        for name in self.layers:
            layer = layers.record(modules[name])
            if layer is None or self.design not in layer.designs:
                continue
            layer.designs.remove(self.design)
            if not layer.designs:
                layers.unwatch(modules[name])
        if not self._watched.layers:
            layers.unwatch_model(self.model)
            for undo in self._back:
                undo()
        for name, tensor in self.learned.items():
            own = parameter_name(self.design, name)
            if self.model._parameters.get(own) is tensor:
                del self.model._parameters[own]
        layers.forget_compiled()


def use(
    model: nn.Module,
    module: ModuleType,
    settings_file: Path,
    wanted: Wanted | None = None,
    strict: bool = False,
    grid: str | None = None,
    adapter: str | None = None,
    learned: Mapping[str, Tensor] | bool = False,
) -> Handle:
    """Applies a design to layers of `model`; returns a Handle.

    module: the exported module. wanted: a regular expression or a function of layers' names; default: all of the design's kind
    except parts outside the model's main sequence. strict: an unmasked watched call raises an error.
    grid: "assume" uses the design's grid if the model's grid of tokens cannot be read. A design for the same tokens and
    grid in a layer is replaced. adapter: the calling module, which a pickled model imports when it is loaded.
    learned: tensors instead of the exported ones that LEARNS names, float, of their shapes, on the model's device; True: new
    parameters of the model with the exported values. One of each serves all layers; a model that shards its parameters must
    leave them whole. Errors: ValueError if no layer is found, or for a wrong name or shape in `learned`.
    """
    if grid not in (None, "assume"):
        raise ValueError(f'grid is {grid!r}: it must be None or "assume"')
    design = design_of(settings_file, module)
    design.opener = adapter
    if learned:
        design = learning(design, model, learned)
    elif not_learned(design):
        settings.say(not_learned(design))
    wanted = settings.pattern(wanted, "layers") if isinstance(wanted, str) else wanted
    found = layers.find(model, wanted if wanted is not None else design.layers, design.cross)
    chosen = wanted is not None or design.layers is not None
    beside = "" if chosen else layers.reported(model)
    if not found:
        kind = "cross-attention" if design.cross else "self-attention"
        raise ValueError(f"maskloom: no {kind} layer was found in {type(model).__name__}, or none that `layers` accepts{beside}")
    patched.patch()
    replaced = 0
    for _, part in found:
        layer = layers.record(part)
        if layer is not None:
            same = [d for d in layer.designs if d.cross == design.cross and _alike(d, design) and d is not design]
            replaced += bool(same)
            layer.designs = [d for d in layer.designs if d not in same]
    if replaced:
        settings.say(f"{design.name} replaces another design for the same tokens in {replaced} layers", again=True)
    watched = layers.watch(model, {name: (part, [design]) for name, part in found}, strict, grid == "assume")
    back = []
    if _is_transformers(model):
        from . import hf

        back.append(hf.take_over(model, adapter))
    where = f"{len(found)} layers of {type(model).__name__}{beside}"
    settings.say(f"{design.name} ({design.lengths[0]} x {design.lengths[1]}) waits in {where}")
    return Handle(model, design, [name for name, _ in found], watched, back)


def _alike(a: Design, b: Design) -> bool:
    return (a.lengths, a.grids) == (b.lengths, b.grids)


def _is_transformers(model: nn.Module) -> bool:
    modeling = sys.modules.get("transformers.modeling_utils")
    return modeling is not None and any(isinstance(m, modeling.PreTrainedModel) for m in model.modules())
