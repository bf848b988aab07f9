# SPDX-License-Identifier: MIT
"""Counts: the masked and the unmasked calls of each watched layer, with reasons.

They count what ran, not what was planned. Code from torch.compile counts as compiled, because it runs without the runtime.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

from .cache import Newest
from .pickled import Carried
from .settings import say, wanted

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

    from .aliases import Grid, Grids
    from .designs import Design

# why a watched layer without a watched call is left
SILENT = "left as it is: the layer's forward called no watched attention: another attention function took its place"

# what strict mode refused in this process
refusals: list[str] = []
_models: list[Model] = []
_numbers = itertools.count()
_numbered: weakref.WeakValueDictionary[int, Layer] = weakref.WeakValueDictionary()


def numbered(number: int) -> Layer:
    """The layer with a number: compiled callers refer to layers by number."""
    return _numbered[number]


class _Plans:
    """Plans for compiled callers, as attributes: a tracer reads their values at trace time."""


plans = _Plans()
# plans of each layer; layers with equal block masks share them
KEPT_PLANS = 32


def _without(name: Any, _: Any) -> None:
    vars(plans).pop(name, None)


def forget_plans() -> None:
    """Drops the plans, because the code compiled with them is compiled again."""
    for layer in list(_numbered.values()):
        layer.plans.clear()


class Layer(Carried):
    """One watched layer."""

    def __init__(self, name: str, model: Model | None) -> None:
        self.name = name
        self._model = model
        self.designs: list[Design] = []
        self.hooks: list[Any] = []
        self.reached = False
        self.masked = 0
        self.compiled = 0
        self.left: Counter[str] = Counter()
        # calls that read another sequence, which no design of this layer is meant for
        self.aside = 0
        self._join()

    def _join(self) -> None:
        self.number = next(_numbers)
        self.plans = Newest(KEPT_PLANS, _without)
        _numbered[self.number] = self
        # a deleted layer is compiled into nothing
        weakref.finalize(self, self.plans.clear).atexit = False

    def join(self, model: Model | None, name: str) -> None:
        """Moves the layer to another model's record, or to none: a model inside another is part of it."""
        if self._model is not None:
            self._model.layers = [other for other in self._model.layers if other is not self]
        self._model, self.name = model, name
        if model is not None:
            model.layers.append(self)

    def carries(self) -> dict[str, Any]:
        # the handle of a hook belongs to its module
        return {name: value for name, value in self.__dict__.items() if name != "plans"} | {"hooks": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._join()

    @property
    def model(self) -> Model:
        """The record of the model that it is a layer of."""
        assert self._model is not None, "the layer is watched no more"
        return self._model

    def of_cross_attention(self) -> bool:
        """Whether its designs are of attention from one sequence to another."""
        # a list, because PyTorch 2.5 traces no generator
        return bool(self.designs) and all([design.cross for design in self.designs])

    def took(self) -> None:
        """Counts a masked call."""
        self.masked += 1

    def leaves(self, reason: str) -> None:
        """Counts an unmasked call. Errors: RuntimeError if the call must be masked."""
        self.left[reason] += 1
        say(reason)
        if self.model.strict:
            refusals.append(reason)
            raise RuntimeError(f"maskloom: {self.name} of {self.model.name}: {reason}")

    @property
    def active(self) -> bool:
        return bool(self.masked or self.compiled)


class Model(Carried):
    """A model whose layers are watched."""

    def __init__(self, name: str, strict: bool = False, assume: bool = False) -> None:
        self.name = name
        self.strict = strict
        self.assume = assume
        # its calls over fewer tokens are beginnings: those of a text are, those of a picture are not
        self.sequential = False
        self.layers: list[Layer] = []
        self.hooks: list[Any] = []
        self.sparsity: float | None = None
        self.reported = False
        # the grid of the present or the last call
        self.grids: Grids | None = None
        self.pyramid: Grid | None = None
        self.pending: list[tuple[Grids | None, Grid | None]] = []
        self.consumed = False
        _models.append(self)

    def carries(self) -> dict[str, Any]:
        return self.__dict__ | {"hooks": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _models.append(self)

    def wants_grid(self) -> bool:
        """Whether any layer's design needs a grid."""
        # a list, because PyTorch 2.5 traces no generator
        return any([design.grids for layer in self.layers for design in layer.designs])

    def remember_grid(self) -> None:
        """Stores the grids of forward passes whose backward pass may still run layers again."""
        import torch

        if self.consumed:
            self.pending, self.consumed = [], False
        if torch.is_grad_enabled() and (self.grids, self.pyramid) not in self.pending:
            self.pending.append((self.grids, self.pyramid))

    def check_recomputed(self) -> None:
        """Restores the grid of the forward pass for a layer that the backward pass runs again. Errors: the pass is unknown."""
        self.consumed = True
        if len(self.pending) > 1:
            raise RuntimeError(
                "maskloom: the backward pass runs checkpointed layers of several forward passes over different grids again, and "
                "does not identify the pass: call backward after each forward pass, or switch gradient checkpointing off"
            )

    def ended(self) -> None:
        """After a forward pass: logs its result once."""
        reached = [layer for layer in self.layers if layer.reached]
        if not self.reported and reached:
            self.reported = True
            say(self.line())
            if not any(layer.active for layer in self.layers):
                say("the mask is active in no layer: the lines above say why, or the model has its own attention function")

    def compiled_in(self, layer: Layer) -> None:
        """Counts a layer traced with the design; logs after the last one, because compiled code does not report its end."""
        if not self.reported and all(other.compiled for other in self.layers):
            self.reported = True
            say(self.line() + ", compiled in")

    def line(self) -> str:
        """The number of layers with the mask, in words."""
        active = sum(layer.active for layer in self.layers)
        of = "" if active == len(self.layers) else f" of {len(self.layers)}"
        sparsity = "" if self.sparsity is None else f", sparsity {self.sparsity:.1f}%"
        return f"mask active in {active}{of} layers of {self.name}{sparsity}"

    def note_sparsity(self, block_mask: BlockMask | None) -> None:
        """PyTorch's sparsity of a block mask; at least 0 for a sequence shorter than a block."""
        if self.sparsity is None:
            self.sparsity = 0.0 if block_mask is None else max(block_mask.sparsity(), 0.0)

    def report(self) -> dict[str, dict[str, Any]]:
        """Calls masked, compiled, left and of another sequence, as {layer: {"masked", "compiled", "left", "aside"}}.

        "left" is {reason: calls}."""
        return {
            layer.name: {"masked": layer.masked, "compiled": layer.compiled, "left": dict(layer.left), "aside": layer.aside}
            for layer in self.layers
        }

    def summary(self) -> str:
        """The counts on one line."""
        masked = sum(layer.masked for layer in self.layers)
        compiled = sum(bool(layer.compiled) for layer in self.layers)
        left: Counter[str] = Counter()
        where: dict[str, list[str]] = {}
        for layer in self.layers:
            left += layer.left
            for reason in layer.left:
                where.setdefault(reason, []).append(layer.name)
        text = f"{self.name}: {masked} calls masked in {sum(bool(layer.masked) for layer in self.layers)} layers"
        if compiled:
            text += f", compiled into {compiled} layers"
        silent = sum(not layer.active and not layer.left for layer in self.layers)
        if silent:
            text += f", {silent} layers called no attention"
        text += f"; {left.total()} calls left as they are"
        apart = sum(layer.aside for layer in self.layers)
        if apart:
            text += f", {apart} of another sequence"
        return text + "".join(f"; {n} times in {_named(where[reason])}: {reason}" for reason, n in left.most_common())


def _named(names: list[str]) -> str:
    """A few names of layers, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def watched() -> list[Model]:
    """Every model that is watched."""
    return [model for model in _models if model.layers]


def forget(model: Model) -> None:
    """Removes a model from the lines at the end."""
    _models[:] = [other for other in _models if other is not model]


def _helper_process() -> bool:
    """Whether this process is a launcher or worker, which runs no model itself."""
    import multiprocessing

    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = main.name if main else os.path.basename(sys.argv[0] or "")
    launcher = name.startswith(("accelerate.commands", "torch.", "accelerate", "torchrun", "pip"))
    # the processes that compile for PyTorch are started by the path of their file
    launcher = launcher or os.path.join("torch", "_inductor") in (sys.argv[0] or "")
    return launcher or multiprocessing.parent_process() is not None


def at_end(names: str) -> None:
    """One line for each model at the end of the process, and one if there was none. `names`: the loaded designs."""
    atexit.register(tell, names)


def tell(names: str) -> None:
    """The lines of the end. A process in which strict mode refused a call ends with status 1, also if its program went on."""
    _lines(names)
    if refusals and wanted() and not _helper_process():
        say("at the end: strict mode refused calls that the design could not have, so the process fails", again=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _lines(names: str) -> None:
    models = [m for m in watched() if any(layer.reached for layer in m.layers)]
    for model in models:
        say(f"at the end: {model.summary()}", again=True)
    if models or _helper_process():
        return
    if watched():
        kinds = ", ".join(dict.fromkeys(m.name for m in watched()))
        say(f"at the end: no watched layer ran, so {names} masked nothing; the watched layers belong to {kinds}", again=True)
    else:
        say(
            f"at the end: no layer was watched, so {names} masked nothing. The sidecar watches models of diffusers, and of "
            "transformers if diffusers is not in use; name others in MASKLOOM_SIDECAR_MODELS",
            again=True,
        )
