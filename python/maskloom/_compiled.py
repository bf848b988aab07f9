"""Mods under torch.compile: which tensors and numbers a function captured, and its recording for any of such tensors.

Invariant: what a mod reads is an input of the compiled graph (tensors) or guarded (numbers), so that a compiled call is
never older than what it reads; what is neither is refused while it is compiled.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Sequence
from typing import Any

import torch

from . import _native
from ._call import F, reads_closures, uncompiled
from ._functions import Mod, check
from ._mods import Place, Places, bounded, given, kept_of, place_of, readable, record, stand_in, translated
from .errors import ArgumentError, a_kind

DEEPEST = 8
#: Shapes of tensors for which a template keeps its mod; the oldest goes first.
MOST = 64
OUTSIDE = "call flex_attention outside of torch.compile, or pass the value through the mod's closure"


def traceable(function: F) -> F:
    """The function; where torch.compile cannot read what mods captured, one that it calls between two graphs."""
    return function if reads_closures() else uncompiled(function)


def shapes_of(tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """What a mod over tensors depends on besides their values."""
    return tuple([(tensor.shape, tensor.dtype) for tensor in tensors])


class Bound:
    """A mod over tensors of some shapes; `order` says which of the function's tensors each captured one is."""

    __slots__ = ("mask", "order", "score")

    def __init__(self, mask: _native.Mask, order: list[int]) -> None:
        self.mask, self.order = mask, order
        #: as it is prepared on a GPU
        self.score: Any = None


class Template:
    """The recording of a mod, for any tensors: another length in a compiled graph is another shape of what it reads."""

    def __init__(self, text: str, lines: Places, place: Place, score: bool, reads: list[int]) -> None:
        self.text, self.lines, self.place, self.score = text, lines, place, score
        #: which of the function's tensors each of the recording is
        self.reads = reads
        self.known: dict[Any, Bound] = {}

    def over(self, captured: Sequence[torch.Tensor]) -> Bound:
        """The mod over tensors of these shapes, for `rebound` to take their values.

        Errors: `RecordingError` where it cannot read tensors of these shapes."""
        tensors = [captured[at] for at in self.reads]
        shapes = shapes_of(tensors)
        found = self.known.get(shapes)
        if found is None:
            found = self._translated(tensors)
            # equal tensors become one: others of these shapes may differ
            if len(found.order) == len(tensors):
                bounded(self.known, MOST)
                self.known[shapes] = found
        return found

    def _translated(self, tensors: list[torch.Tensor]) -> Bound:
        argument = "score_mod" if self.score else "block_mask.mask_mod"
        values = [
            # each may get a gradient of its own, so that no two are equal
            stand_in(tensor, at) if self.score and tensor.is_floating_point() else readable(tensor, argument)
            for at, tensor in enumerate(tensors)
        ]
        given_all = [given(value) for value in values]
        mask = translated(self.text, self.lines, self.score, given_all, self.place, argument)
        names = mask.captures()
        if any(not name[1:].isdigit() for name in names):
            message = f"{argument} reads a tensor of this shape as a whole"
            raise ArgumentError("compile", message, OUTSIDE)
        return Bound(mask, [self.reads[int(name[1:])] for name in names])


#: Compiled graphs name these by number, so that they live as long as the process.
TEMPLATES: dict[int, Template] = {}


def template_of(number: int) -> Template:
    """Errors: ArgumentError where another process made the graph."""
    found = TEMPLATES.get(number)
    if found is None:
        raise ArgumentError(
            "exported",
            "this graph was made in another process: it names a mod that was not recorded here",
            "compile or export a call with the same mods here first, or make the graph in this process",
        )
    return found


def _number(made: Template, sized: bool) -> int:
    """The same for the same recording in every process, and for no other: a graph may be loaded elsewhere."""
    content = repr((made.text, made.score, made.reads)).encode()
    digest = int.from_bytes(hashlib.sha256(content).digest()[:7], "big")
    return -2 * (digest + 1) - int(sized)


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
    """The number of the function's template, odd if it holds for tensors of these shapes alone. Runs while a graph is
    compiled; its result is a constant of the graph."""
    _check(fn, argument, 0)
    known: list[torch.Tensor] = []
    captured(fn, known, [])
    check(fn, argument, 5 if score else 4)
    tape, result = record(fn, score, torch.device("cpu"))
    text = tape.text_of(result)
    mask, order, read, whole = kept_of(fn, argument, tape, text, score=score)
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
    if tape.looked is not None:
        message = f"{argument} asks `{tape.looked}` of a tensor, whose changes a compiled graph does not see"
        raise ArgumentError("compile", message, OUTSIDE)
    made = Template(text, tape.places, place_of(fn), score, places)
    made.known[shapes_of(read)] = Bound(mask, [places[at] for at in order])
    number = _number(made, tape.sized)
    TEMPLATES[number] = made
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
        message = f"{argument} captures {a_kind(fn)}, whose changes a compiled graph does not see"
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
    number = template(fn, argument, score, *constants)
    if number % 2 == 1:
        for tensor in tensors:
            for size in tensor.shape:
                constants.append(list({size: None})[0])  # noqa: RUF015, guards the graph as in `captured`
    return number, tensors
