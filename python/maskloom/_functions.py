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
    return _replaced(fn, 0)


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


def _value(value: Any, depth: int) -> Any:
    if is_array(value):
        return as_tensor(value)
    if depth < DEEPEST and isinstance(value, (types.FunctionType, functools.partial, types.MethodType)):
        return _replaced(value, depth + 1)
    if type(value) in (tuple, list) and any(map(is_array, value)):
        return type(value)(_value(item, depth) for item in value)
    return value


def _changed(values: Any, depth: int) -> list[Any] | None:
    new = [_value(value, depth) for value in values]
    return new if any(a is not b for a, b in zip(new, values)) else None


def _replaced(fn: Any, depth: int) -> Any:
    if isinstance(fn, types.MethodType):
        inner = _replaced(fn.__func__, depth)
        return fn if inner is fn.__func__ else types.MethodType(inner, fn.__self__)
    if isinstance(fn, functools.partial):
        inner = _replaced(fn.func, depth) if isinstance(fn.func, types.FunctionType) else fn.func
        args = _changed(fn.args, depth)
        keywords = _changed(list(fn.keywords.values()), depth)
        if inner is fn.func and args is None and keywords is None:
            return fn
        named = dict(zip(fn.keywords, keywords)) if keywords is not None else fn.keywords
        return functools.partial(inner, *(fn.args if args is None else args), **named)
    if not isinstance(fn, types.FunctionType) or (fn.__module__ or "").startswith("torch."):
        return fn
    return _function(fn, depth)


def _function(fn: types.FunctionType, depth: int) -> types.FunctionType:
    cells = _changed([_content(cell) for cell in fn.__closure__ or ()], depth)
    defaults = _changed(fn.__defaults__ or (), depth)
    space = fn.__globals__
    found = {name: space[name] for name in fn.__code__.co_names if name in space}
    new: dict[str, Any] = {}
    for name, value in found.items():
        if is_array(value) or (depth < DEEPEST and isinstance(value, types.FunctionType) and value is not fn):
            other = _value(value, depth)
            if other is not value:
                new[name] = other
    if cells is None and defaults is None and not new:
        return fn
    closure = fn.__closure__
    if cells is not None and closure is not None:
        closure = tuple(
            cell if _content(cell) is value else types.CellType(value) for cell, value in zip(closure, cells)
        )
    made = types.FunctionType(fn.__code__, {**space, **new} if new else space, fn.__name__, None, closure)
    made.__defaults__ = fn.__defaults__ if defaults is None else tuple(defaults)
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


#: What a mod may be.
Mod = Callable[..., Any]
