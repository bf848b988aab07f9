"""What a function would be recorded from: its code, its numbers and its tensors; an equal one needs no recording.

Invariant: two functions of one signature do the same with their tensors, whose values a signature leaves out. A
function of which that is not sure has no signature and is recorded at each call.
"""

from __future__ import annotations

import dis
import functools
import math
import operator
import types
from typing import Any

import torch

#: Functions that call functions that call functions: deeper ones are recorded at each call.
DEEPEST = 6
_NUMBERS = frozenset({bool, int, str, type(None), torch.dtype, torch.device})
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_BUILTIN = frozenset({types.BuiltinFunctionType, type(torch.where)})
#: Modules whose functions do not change.
_MODULES = frozenset({"math", "operator", "builtins", "functools"})
#: Items of a tuple or a list: to compare more takes longer than to record.
MOST_ITEMS = 64
#: Python's own functions whose results follow from their arguments.
_PYTHON = frozenset(
    {
        *("abs", "min", "max", "sum", "len", "range", "int", "float", "bool", "isinstance", "round", "pow", "divmod"),
        *("zip", "enumerate", "reversed", "sorted", "tuple", "list", "slice", "all", "any", "map"),
    }
)
#: Functions of PyTorch of that kind which are no methods of a tensor, and modules that have more.
_PYTORCH = frozenset(
    {
        *("tensor", "as_tensor", "arange", "linspace", "zeros", "ones", "full", "empty", "eye", "stack", "cat"),
        *("zeros_like", "ones_like", "full_like", "empty_like", "isin", "searchsorted", "bucketize", "meshgrid"),
        *("broadcast_tensors", "cartesian_prod", "nn", "functional", "special", "linalg"),
        *("finfo", "iinfo", "eps", "tiny", "smallest_normal"),
    }
)
#: Beginnings of instructions that change something, or read what is not named.
_UNSTEADY = ("IMPORT_", "STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "DELETE_", "LOAD_SUPER")

Signature = tuple[tuple[Any, ...], list[torch.Tensor]]


def signature(fn: Any) -> Signature | None:
    """The function's signature, and its tensors in the order in which it names them; None where it has none."""
    if type(fn) not in (types.FunctionType, functools.partial):
        return None
    # of which floats are made where a function makes some of ints
    key: list[Any] = [torch.get_default_dtype()]
    tensors: list[torch.Tensor] = []
    return (tuple(key), tensors) if _value(fn, key, tensors, 0) else None


def _value(value: Any, key: list[Any], tensors: list[torch.Tensor], depth: int) -> bool:
    kind = type(value)
    if kind in _NUMBERS:
        key.append(kind)
        key.append(value)
        return True
    if kind is float:  # 0.0 and -0.0 differ, and NaN is itself
        key.append(value.hex())
        return True
    if kind in _TENSORS:
        if value.is_nested or value.layout is not torch.strided:  # refused where it is read
            return False
        # which of the former ones it is: tensors that are one may be two in another call
        first = next((at for at, other in enumerate(tensors) if other is value), -1)
        key.append((first, value.shape, value.dtype, value.device))
        tensors.append(value)
        return True
    if kind is types.FunctionType:
        return depth < DEEPEST and _function(value, key, tensors, depth + 1)
    if kind is functools.partial:
        key.append((kind, len(value.args), *value.keywords))
        parts = (value.func, *value.args, *value.keywords.values())
        return depth < DEEPEST and all(_value(part, key, tensors, depth + 1) for part in parts)
    if kind is types.ModuleType:
        key.append(value)
        name = value.__name__
        return name in _MODULES or name == "torch" or name.startswith("torch.")
    if kind in _BUILTIN:
        key.append(value)
        owner = getattr(value, "__self__", None)
        return owner is None or isinstance(owner, (types.ModuleType, type))
    if kind is tuple or kind is list:
        key.append((kind, len(value)))
        return len(value) <= MOST_ITEMS and all(_value(item, key, tensors, depth + 1) for item in value)
    return False


def _function(fn: types.FunctionType, key: list[Any], tensors: list[torch.Tensor], depth: int) -> bool:
    code = fn.__code__
    key.append(code)
    if fn.__kwdefaults__:
        return False
    try:
        for cell in fn.__closure__ or ():
            if not _value(cell.cell_contents, key, tensors, depth):
                return False
    except ValueError:  # a name that is not bound yet
        return False
    for value in fn.__defaults__ or ():
        if not _value(value, key, tensors, depth):
            return False
    names = _names(code)
    if names is None:
        return False
    space = fn.__globals__
    for name in names:
        if name in space:
            key.append(name)
            value = space[name]
            if value is not fn and not _value(value, key, tensors, depth):
                return False
        elif name not in _PYTHON:
            return False
    return True


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> tuple[str, ...] | None:
    """Globals that the code and the code in it may look up.

    None: it imports or writes something, or asks for what does not follow from what it is given."""
    found: dict[str, None] = {}
    for step in dis.get_instructions(code):
        name = step.argval
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found[name] = None
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if not _steady(name):
                return None
        elif step.opname.startswith(_UNSTEADY):
            return None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names(constant)
            if inner is None:
                return None
            found.update(dict.fromkeys(inner))
    return tuple(found)


def _steady(name: str) -> bool:
    """Whether an attribute of this name, of a tensor or of a module that may be read, follows from its owner alone."""
    if name.endswith("_") and not name.endswith("__"):  # written in place
        return False
    if name in _PYTORCH or hasattr(torch.Tensor, name) or hasattr(math, name) or hasattr(operator, name):
        return True
    of_modules = (torch.nn.functional, torch.special, torch.linalg)
    return isinstance(getattr(torch, name, None), torch.dtype) or any(hasattr(of, name) for of in of_modules)
