"""What a mask is made of: the tensors and numbers that its mask_mod reads, and whether they are still the same.

Invariant: what is only named like something that is read is not watched. Must not know plans or ranks."""

from __future__ import annotations

import contextlib
import ctypes
import dis
import functools
import types
import zlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from .._functions import as_tensor, is_array

__all__ = ["Watched", "contents", "tensors_of"]

#: Numbers of a tensor that are compared between ranks; of larger ones every n-th.
MOST = 1 << 22


class Watched:
    """Whether a mask's lists, or what its mask_mod reads, were written to or replaced since."""

    def __init__(self, mask: BlockMask) -> None:
        self._mask, self._mod = mask, mask.mask_mod
        self._lists = [(x, _version(x)) for x in _lists(mask)]
        self._reads = [(name, value, _version(value)) for name, value in _read(mask.mask_mod)]

    def changed(self) -> str:
        """What was; empty if nothing."""
        if self._mask.mask_mod is not self._mod:
            return "its mask_mod"
        now = _lists(self._mask)
        if len(now) != len(self._lists) or any(
            x is not y or _version(y) != version for x, (y, version) in zip(now, self._lists)
        ):
            return "its block lists"
        reads = list(_read(self._mod))
        if len(reads) != len(self._reads):
            return "what its mask_mod reads"
        found = set()
        for (name, value), (_, before, version) in zip(reads, self._reads):
            if isinstance(before, Tensor) or is_array(before):
                if value is not before or _version(before) != version:
                    found.add(f"the {'tensor' if isinstance(before, Tensor) else 'array'} {name}")
            elif value is not before and value != before:
                found.add(f"{name}, which was {before}")
        return ", ".join(sorted(found))


def tensors_of(fn: Any) -> list[tuple[str, Tensor]]:
    """The tensors that a function reads, by name."""
    return [(name, value) for name, value in _read(fn) if isinstance(value, Tensor)]


def contents(mask: BlockMask) -> list[tuple[Any, ...]]:
    """What tells masks with the same block lists apart: their numbers, and each tensor's shape, dtype and checksum."""
    out: list[tuple[Any, ...]] = []
    for name, value in _read(mask.mask_mod):
        if is_array(value):
            value = as_tensor(value)
        if not isinstance(value, Tensor):
            out.append((name, repr(value)))
            continue
        some = value.detach().flatten()
        some = some[:: max(1, -(-some.numel() // MOST))].contiguous()
        out.append((name, tuple(value.shape), str(value.dtype), _checksum(some.cpu())))
    return out


def _checksum(some: Tensor) -> int:
    # PyTorch may be without NumPy
    return zlib.crc32((ctypes.c_char * some.nbytes).from_address(some.data_ptr())) if some.nbytes else 0


def _lists(mask: BlockMask) -> list[Tensor]:
    every = (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices)
    return [x for x in every if isinstance(x, Tensor)]


def _version(value: Any) -> int:
    # arrays of other libraries count no versions, tensors of inference mode neither
    if is_array(value):
        return _checksum(as_tensor(value).contiguous())
    return value._version if isinstance(value, Tensor) and not value.is_inference() else 0


@functools.lru_cache(maxsize=256)
def _globals_of(code: types.CodeType) -> tuple[str, ...]:
    """The globals that a function's code loads. `co_names` has the names of attributes, too."""
    return tuple(dict.fromkeys(op.argval for op in dis.get_instructions(code) if op.opname == "LOAD_GLOBAL"))


def _read(fn: Any, depth: int = 6) -> Iterator[tuple[str, Any]]:
    """The tensors and numbers that a function reads, by name: of its closure, globals, defaults and its object, and
    those of functions among them, also in a tuple, as `and_masks` has them."""
    for name, value in _named(fn):
        for part, one in enumerate(value) if isinstance(value, (tuple, list)) else ((None, value),):
            if isinstance(one, (Tensor, bool, int, float)) or is_array(one):
                yield name if part is None else f"{name}[{part}]", one
            elif depth > 1 and callable(one) and not isinstance(one, type):
                yield from _read(one, depth - 1)


_FUNCTIONS = (functools.partial, types.FunctionType, types.MethodType)


def _named(fn: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(fn, functools.partial):
        yield "function", fn.func
        yield from ((f"argument {n}", x) for n, x in enumerate(fn.args))
        yield from fn.keywords.items()
        return
    if not isinstance(fn, _FUNCTIONS) and not isinstance(fn, type):
        # an object that is called
        fn = getattr(fn, "__call__", fn)  # noqa: B004
    if isinstance(fn, types.MethodType):
        own, fn = getattr(fn.__self__, "__dict__", {}), fn.__func__
        used = getattr(getattr(fn, "__code__", None), "co_names", ())
        yield from ((name, own[name]) for name in used if name in own)
    if not isinstance(fn, types.FunctionType):
        return
    if not (fn.__module__ or "").startswith("torch."):
        # what PyTorch's own functions read of their modules is no part of a mask
        yield from ((name, fn.__globals__[name]) for name in _globals_of(fn.__code__) if name in fn.__globals__)
    yield from ((f"default {n}", x) for n, x in enumerate(fn.__defaults__ or ()))
    yield from (fn.__kwdefaults__ or {}).items()
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        with contextlib.suppress(ValueError):
            yield name, cell.cell_contents
