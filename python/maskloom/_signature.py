"""What a function would be recorded from: its code, its numbers and its tensors; an equal one needs no recording.

Invariant: two functions of one signature do the same with their tensors, whose values a signature leaves out. A
function of which that is not sure has no signature and is recorded at each call.
"""

from __future__ import annotations

import functools
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

Signature = tuple[tuple[Any, ...], list[torch.Tensor]]


def signature(fn: Any) -> Signature | None:
    """The function's signature, and its tensors in the order in which it names them; None where it has none."""
    if type(fn) is not types.FunctionType:
        return None
    key: list[Any] = []
    tensors: list[torch.Tensor] = []
    return (tuple(key), tensors) if _function(fn, key, tensors, 0) else None


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
        # which of the former ones it is: tensors that are one may be two in another call
        first = next((at for at, other in enumerate(tensors) if other is value), -1)
        key.append((first, value.shape, value.dtype, value.device))
        tensors.append(value)
        return True
    if kind is types.FunctionType:
        return depth < DEEPEST and _function(value, key, tensors, depth + 1)
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
        return all(_value(item, key, tensors, depth + 1) for item in value)
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
    space = fn.__globals__
    for name in _names(code):
        if name in space:
            key.append(name)
            value = space[name]
            if value is not fn and not _value(value, key, tensors, depth):
                return False
    return True


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """Names that the code and the code in it may look up."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(_names(constant)))
    return tuple(found)
