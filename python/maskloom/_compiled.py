"""Mods under torch.compile: which tensors and numbers a function captured, and its recording for any of such tensors.

Invariant: what a mod reads is an input of the compiled graph (tensors) or guarded (numbers), so that a compiled call is
never older than what it reads; what is neither is refused while it is compiled.
"""

from __future__ import annotations

import itertools
import types
from typing import Any

import torch

from . import _native
from ._call import F, reads_closures, uncompiled
from ._functions import Mod
from ._mods import kept
from .errors import ArgumentError

DEEPEST = 8
OUTSIDE = "call flex_attention outside of torch.compile, or pass the value through the mod's closure"


def traceable(function: F) -> F:
    """The function; where torch.compile cannot read what mods captured, one that it calls between two graphs."""
    return function if reads_closures() else uncompiled(function)


class Template:
    """A mod for any tensors of the shapes with which it was recorded; `order` says which captured one goes where."""

    def __init__(self, mask: _native.Mask, order: list[int]) -> None:
        self.mask, self.order = mask, order
        #: as it is prepared on a GPU
        self.score: Any = None


_NUMBERS = itertools.count(1)
#: Compiled graphs name these by number, so that they live as long as the process.
TEMPLATES: dict[int, Template] = {}


def captured(fn: Any, tensors: list[torch.Tensor], constants: list[Any], depth: int = 0) -> None:
    """Lists the tensors and numbers in the closures of a function. torch.compile traces this."""
    if isinstance(fn, torch.Tensor):
        tensors.append(fn)
    elif isinstance(fn, (tuple, list)):
        for item in fn:
            captured(item, tensors, constants, depth)
    elif isinstance(fn, types.FunctionType):
        if depth < DEEPEST:
            closure = fn.__closure__
            if closure is not None:
                for cell in closure:
                    captured(cell.cell_contents, tensors, constants, depth + 1)
            defaults = fn.__defaults__
            if defaults is not None:
                captured(defaults, tensors, constants, depth + 1)
    elif isinstance(fn, (bool, int, float, str)):
        # as the key of a dict a number of a compiled graph becomes its value, and the graph is guarded by it
        constants.append(list({fn: None})[0])  # noqa: RUF015


def template(fn: Any, argument: str, score: bool, *constants: Any) -> int:
    """The number of the function's template. Runs while a graph is compiled; its result is a constant of the graph."""
    _check(fn, argument, 0)
    known: list[torch.Tensor] = []
    captured(fn, known, [])
    mask, order, read, whole = kept(fn, argument, score=score, device=torch.device("cpu"))
    places = []
    for tensor in read:
        found = [at for at, other in enumerate(known) if other is tensor]
        if not found:
            message = f"{argument} reads a tensor that is not in its closure, or that it makes itself"
            raise ArgumentError("compile", message, OUTSIDE)
        places.append(found[0])
    if whole or -1 in order or len(order) != len(read):
        message = f"{argument} reads a tensor as a whole, or two tensors that are equal"
        raise ArgumentError("compile", message, OUTSIDE)
    number = -next(_NUMBERS)
    TEMPLATES[number] = Template(mask, [places[at] for at in order])
    return number


# what torch.compiler.assume_constant_result does, without importing the compiler
template._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _check(fn: Any, argument: str, depth: int) -> None:
    """Errors: `ArgumentError` where the function reads what the graph does not guard."""
    if isinstance(fn, (tuple, list)):
        for item in fn:
            _check(item, argument, depth)
        return
    if fn is None or isinstance(fn, (torch.Tensor, bool, int, float, str, torch.dtype, types.ModuleType)):
        return
    if not isinstance(fn, types.FunctionType) or depth == DEEPEST:
        message = f"{argument} captures a {type(fn).__name__}, whose changes a compiled graph does not see"
        raise ArgumentError("compile", message, OUTSIDE)
    if (fn.__module__ or "").startswith("torch."):
        _check_closure(fn, argument, depth)
        return
    for name in fn.__code__.co_names:
        value = fn.__globals__.get(name)
        if value is None or isinstance(value, (types.ModuleType, torch.dtype, type)):
            continue
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            module = getattr(value, "__module__", None) or ""
            if module.startswith("torch") or isinstance(value, types.BuiltinFunctionType):
                continue
        message = f"{argument} reads the global `{name}`, whose changes a compiled graph does not see"
        raise ArgumentError("compile", message, OUTSIDE)
    _check_closure(fn, argument, depth)


def _check_closure(fn: types.FunctionType, argument: str, depth: int) -> None:
    for cell in fn.__closure__ or ():
        _check(cell.cell_contents, argument, depth + 1)
    for value in fn.__defaults__ or ():
        _check(value, argument, depth + 1)


def number_of(fn: Mod, argument: str, score: bool) -> tuple[int, list[torch.Tensor]]:
    """The function's template and its captured tensors. torch.compile traces this."""
    tensors: list[torch.Tensor] = []
    constants: list[Any] = []
    captured(fn, tensors, constants)
    return template(fn, argument, score, *constants), tensors
