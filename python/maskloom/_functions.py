"""The user's function as it can be recorded: its parameters counted, and arrays of NumPy or JAX as tensors.

Invariant: the user's function and what it captured stay as they are; arrays are replaced in a copy of it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch

from .errors import ArgumentError, RecordingError, a_kind

#: Functions that call functions that call functions: deeper closures are left as they are.
DEEPEST = 8
#: What is called and may hold arrays.
_FUNCTIONS = (types.FunctionType, functools.partial, types.MethodType)


def check(fn: object, argument: str, wanted: int) -> None:
    """Errors: `ArgumentError` where it is no function, or takes another number of arguments than a mod."""
    names = "b, h, q_idx, kv_idx" if wanted == 4 else "score, b, h, q_idx, kv_idx"
    if not callable(fn):
        hint = f"pass a function of ({names})"
        if type(fn).__name__.endswith("BlockMask"):
            hint = "pass it as block_mask=" if wanted == 5 else "pass its mask_mod"
        raise ArgumentError("not-a-mod", f"{argument} is {a_kind(fn)}, not a function", hint)
    count = positional(fn)
    if count is None or count == wanted:
        return
    other = {4: "a score_mod (score, b, h, q_idx, kv_idx)", 5: "a mask_mod (b, h, q_idx, kv_idx)"}[wanted]
    if count == (5 if wanted == 4 else 4):
        message = f"{argument} takes {count} positional arguments: it is {other}"
    else:
        message = f"{argument}: expected 4 or 5 positional args, got {count}"
    raise ArgumentError("arity", message, f"write it as a function of ({names})")


def positional(fn: Any) -> int | None:
    """Positional parameters without defaults; None where any number is taken or nothing is known."""
    function, bound = (fn.__func__, 1) if isinstance(fn, types.MethodType) else (fn, 0)
    if isinstance(function, types.FunctionType):
        code = function.__code__
        if code.co_flags & inspect.CO_VARARGS:
            return None
        return code.co_argcount - len(function.__defaults__ or ()) - bound
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.default is p.empty and p.kind in kinds for p in parameters)


def with_tensors(fn: Any) -> Any:
    """The function itself, or a copy in which the arrays that it captured are tensors."""
    return _replaced(fn, 0, {})


def is_array(value: object) -> bool:
    """Whether it is an array of NumPy, JAX or another library than PyTorch."""
    kind = type(value)
    module = kind.__module__
    if module == "builtins" or module.startswith("torch") or isinstance(value, torch.Tensor):
        return False
    # a scalar of NumPy is a number to PyTorch: as a tensor its dtype would count
    scalar = getattr(sys.modules.get("numpy"), "generic", None)
    if scalar is not None and isinstance(value, scalar):
        return False
    return hasattr(kind, "__array__") and hasattr(kind, "shape") and hasattr(kind, "dtype")


def as_tensor(array: Any) -> torch.Tensor:
    """The array's memory as a tensor; a copy where it cannot be shared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # read-only memory: nothing writes to it
        try:
            return torch.as_tensor(array, device="cpu")
        except (TypeError, ValueError, RuntimeError) as why:
            numpy = __import__("numpy")
            try:
                return torch.as_tensor(numpy.array(array), device="cpu")
            except (TypeError, ValueError) as other:
                raise RecordingError(
                    "array", f"a captured {type(array).__name__} cannot be read as a tensor: {other}"
                ) from why


#: What a value became, by its number, with the value, which lives so long; one that is being replaced is itself.
_Known = dict[int, tuple[Any, Any]]


def _value(value: Any, depth: int, known: _Known) -> Any:
    if is_array(value):
        return as_tensor(value)
    if depth >= DEEPEST:
        return value
    if isinstance(value, _FUNCTIONS):
        return _replaced(value, depth + 1, known)
    if type(value) not in (tuple, list, dict) or id(value) in known:
        return known[id(value)][1] if id(value) in known else value
    parts = list(value.values()) if type(value) is dict else value
    if not any(is_array(part) or isinstance(part, _FUNCTIONS) for part in parts):
        return value
    known[id(value)] = value, value
    new = _changed(parts, depth + 1, known)
    if new is not None:
        known[id(value)] = value, dict(zip(value, new)) if type(value) is dict else type(value)(new)
    return known[id(value)][1]


def _changed(values: Any, depth: int, known: _Known) -> list[Any] | None:
    new = [_value(value, depth, known) for value in values]
    return new if any(a is not b for a, b in zip(new, values)) else None


def _replaced(fn: Any, depth: int, known: _Known) -> Any:
    if id(fn) not in known:
        known[id(fn)] = fn, fn
        known[id(fn)] = fn, _replaced_once(fn, depth, known)
    return known[id(fn)][1]


def _replaced_once(fn: Any, depth: int, known: _Known) -> Any:
    if isinstance(fn, types.MethodType):
        inner = _replaced(fn.__func__, depth, known)
        return fn if inner is fn.__func__ else types.MethodType(inner, fn.__self__)
    if isinstance(fn, functools.partial):
        inner = _replaced(fn.func, depth, known) if isinstance(fn.func, types.FunctionType) else fn.func
        args = _changed(fn.args, depth, known)
        keywords = _changed(list(fn.keywords.values()), depth, known)
        if inner is fn.func and args is None and keywords is None:
            return fn
        named = dict(zip(fn.keywords, keywords)) if keywords is not None else fn.keywords
        return functools.partial(inner, *(fn.args if args is None else args), **named)
    return _function(fn, depth, known) if isinstance(fn, types.FunctionType) else fn


def _function(fn: types.FunctionType, depth: int, known: _Known) -> types.FunctionType:
    cells = _changed([_content(cell) for cell in fn.__closure__ or ()], depth, known)
    defaults = _changed(fn.__defaults__ or (), depth, known)
    named = fn.__kwdefaults__ or {}
    keywords = _changed(list(named.values()), depth, known)
    space = fn.__globals__
    # PyTorch's `and_masks` holds the user's functions, and reads no arrays of its own
    names = () if (fn.__module__ or "").startswith("torch.") else fn.__code__.co_names
    found = {name: space[name] for name in names if name in space}
    new = {}
    for name, value in found.items():
        other = _value(value, depth, known)
        if other is not value:
            new[name] = other
    if cells is None and defaults is None and keywords is None and not new:
        return fn
    closure = fn.__closure__
    if cells is not None and closure is not None:
        closure = tuple(
            cell if _content(cell) is value else types.CellType(value) for cell, value in zip(closure, cells)
        )
    made = types.FunctionType(fn.__code__, {**space, **new} if new else space, fn.__name__, None, closure)
    made.__defaults__ = fn.__defaults__ if defaults is None else tuple(defaults)
    made.__kwdefaults__ = fn.__kwdefaults__ if keywords is None else dict(zip(named, keywords))
    return made


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


#: What a mod may be.
Mod = Callable[..., Any]
