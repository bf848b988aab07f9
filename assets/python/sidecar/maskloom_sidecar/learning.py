# SPDX-License-Identifier: MIT
"""A design whose score_mod reads tensors of a model instead of the exported ones, so that they learn.

Invariant: one tensor serves all layers that the design is in. Must not know layers or libraries.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch

from .cache import Newest
from .designs import KEPT, Design

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .aliases import Mods

_numbers = itertools.count()


class Learning(Design):
    """A design with other tensors: replaces a Design in a layer."""

    def __init__(self, design: Design, learned: Mapping[str, Tensor]) -> None:
        self.__dict__.update(design.__dict__)
        self.learned = dict(learned)
        # an exported kernel has no gradients of them, and patterns over other axes have tensors of their own
        self.kernel = self.follows = None
        self.key = f"{design.key}_{next(_numbers)}"
        self.keep = Newest(KEPT)
        self.design = design

    def __reduce__(self) -> tuple[Any, ...]:
        return Learning, (self.design, self.learned)

    def __deepcopy__(self, memo: Any) -> Learning:
        return Learning(self.design, {name: copy.deepcopy(tensor, memo) for name, tensor in self.learned.items()})

    def mods(self, device: torch.device) -> Mods:
        """mask_mod and score_mod on a device. Errors: RuntimeError if a learned tensor is on another one."""
        for name, tensor in self.learned.items():
            if tensor.device != device:
                raise RuntimeError(f"maskloom: the learned {name} is on {tensor.device}, the call on {device}: move it there")
        return cast("Mods", self.keep(("mods", str(device)), lambda: self.module._mods(device, self.learned)))


def learning(design: Design, model: nn.Module, learned: Mapping[str, Tensor] | bool) -> Learning:
    """The design with tensors that learn. `learned`: the tensors by name; True: parameters of `model` with the exported values.

    Errors: ValueError for names that the design has not, and for tensors of another shape.
    """
    exported = exported_values(design)
    if learned is True:
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        made = {name: torch.nn.Parameter(tensor.clone().to(device)) for name, tensor in exported.items()}
        for name, parameter in made.items():
            model.register_parameter(parameter_name(design, name), parameter)
        learned = made
    given = cast("Mapping[str, Tensor]", learned)
    for name, tensor in given.items():
        if name not in exported:
            has = ", ".join(exported) or "none"
            raise ValueError(f"maskloom: learned: the design has no tensor {name} with gradients; it has {has}")
        if tensor.shape != exported[name].shape:
            raise ValueError(f"maskloom: learned: {name} is {tuple(tensor.shape)}, the design's is {tuple(exported[name].shape)}")
    return Learning(design, given)


def parameter_name(design: Design, name: str) -> str:
    """The name of a learned tensor among the parameters of a model."""
    return f"maskloom_{design.module.__name__}_{name}".replace(".", "_")


def exported_values(design: Design) -> dict[str, Tensor]:
    """The tensors of the exported score_mod that can learn, by name."""
    found: dict[str, Tensor] = {}
    score = design.module.make_mods("cpu")[1]
    names = getattr(design.module, "LEARNS", ())
    if score is not None and names:
        cells = zip(score.__code__.co_freevars, score.__closure__ or (), strict=True)
        found = {name: cell.cell_contents for name, cell in cells if name in names}
    return found


def reported(design: Design) -> str:
    """What is to be said of a design whose tensors could learn and do not; empty if there are none."""
    names = ", ".join(getattr(design.module, "LEARNS", ()))
    if not names:
        return ""
    return f"{design.name}: {names} keeps its exported values: an adapter's use(model, learned=True) lets it learn"
