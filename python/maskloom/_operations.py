"""How PyTorch's functions and Python's operators are written in a recording.

Invariant: what is written means what was called. Must not know recordings.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

#: Operators by their methods' names: the text between the operands, and the function that does the same.
INFIX: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("+", operator.add),
    "sub": ("-", operator.sub),
    "mul": ("*", operator.mul),
    "truediv": ("/", operator.truediv),
    "div": ("/", operator.truediv),
    "floordiv": ("//", operator.floordiv),
    "mod": ("%", operator.mod),
    "pow": ("**", operator.pow),
    "lshift": ("<<", operator.lshift),
    "rshift": (">>", operator.rshift),
    "and": ("&", operator.and_),
    "or": ("|", operator.or_),
    "xor": ("^", operator.xor),
    "eq": ("==", operator.eq),
    "ne": ("!=", operator.ne),
    "lt": ("<", operator.lt),
    "le": ("<=", operator.le),
    "gt": (">", operator.gt),
    "ge": (">=", operator.ge),
}
PREFIX: dict[str, tuple[str, Callable[..., Any]]] = {
    "neg": ("-", operator.neg),
    "pos": ("+", operator.pos),
    "invert": ("~", operator.invert),
}
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
#: Methods that ask for the value of an index, which has none while a mod is recorded.
VALUES = frozenset(
    {"item", "tolist", "numpy", "nonzero", "data_ptr", "untyped_storage", "storage", "backward", "is_nonzero", "equal"}
)
#: Functions that may give several tensors.
SEVERAL = frozenset(
    {
        *("topk", "sort", "max", "min", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin", "aminmax"),
        *("unbind", "split", "split_with_sizes", "tensor_split", "chunk", "hsplit", "vsplit", "dsplit", "meshgrid"),
        *("var_mean", "std_mean", "frexp", "broadcast_tensors", "unravel_index", "svd", "qr", "eigh", "slogdet"),
    }
)
#: Python's types where PyTorch takes a dtype.
TYPES: dict[Any, str] = {bool: "torch.bool", int: "torch.int64", float: "torch.float64"}


_NAMES: dict[Any, tuple[str, str]] = {}


def written(func: Any) -> tuple[str, str]:
    """How a function of PyTorch is written: as an operator, a method or a dotted name."""
    known = _NAMES.get(func)
    if known is None:
        known = _NAMES[func] = _named(func)
    return known


def _named(func: Any) -> tuple[str, str]:
    name: str = getattr(func, "__name__", "function")
    if name.startswith("__") and name.endswith("__"):
        bare = name[2:-2]
        if bare == "getitem":
            return "read", bare
        if bare == "setitem":
            return "write", bare
        if bare in INFIX:
            return "infix", bare
        if bare[:1] in "ri" and bare[1:] in INFIX:
            return ("swapped" if bare[0] == "r" else "infix"), bare[1:]
        if bare in PREFIX:
            return "prefix", bare
        if bare == "abs":
            return "function", "abs"
        return "value", f"`{name}`"
    module = getattr(func, "__module__", None) or ""
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)) or module == "torch._tensor":
        return "method", name
    for prefix in ("special_", "linalg_", "fft_"):
        if name.startswith(prefix):
            return "function", f"torch.{prefix[:-1]}.{name[len(prefix) :]}"
    if module.startswith("torch.nn") or name in ("gelu", "softplus", "silu", "mish"):
        return "function", f"torch.nn.functional.{name}"
    return "function", f"torch.{name}"
