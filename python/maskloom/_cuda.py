"""Attention on an NVIDIA GPU: passes prepared once for each kind of call, launched on PyTorch's current stream.

Invariant: a call of a known kind writes addresses and launches: it waits for nothing, and all memory is PyTorch's.
Calls may run at once in threads, on streams and in captured graphs: none shares counters or scratch memory with
another. Must not know how a mask or a score mod was read.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

from . import _native
from ._call import call
from ._checks import no_second_order
from ._held import Mods
from .errors import ArgumentError

DTYPES = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
#: Kinds of calls kept for each pair of mods; the oldest goes first.
MOST = 64
#: Streams whose counters a pass keeps.
LANES = 64
Tensors = Sequence[torch.Tensor]
#: See `forward`.
How = tuple[Any, ...]

_PLAIN = {torch.Tensor, torch.nn.Parameter}
# by which PyTorch tells who watches a call; a PyTorch without one of them gets no call past its dispatcher
_WATCHERS = [
    getattr(torch._C, name, None)
    for name in ("_len_torch_dispatch_stack", "_are_functorch_transforms_active", "_get_tracing_state")
]
_modes, _transforms, _tracing = _WATCHERS
_KNOWN = None not in _WATCHERS
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_guards: Any = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
_short: Any = getattr(_guards, "_empty_strided_cuda", None)
_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None) or torch.cuda.is_current_stream_capturing
_deterministic: Any = getattr(torch._C, "_get_deterministic_algorithms", torch.are_deterministic_algorithms_enabled)
#: The current device. Where it is asked for there are tensors on a GPU, so that PyTorch has begun with it.
current_device: Any = getattr(torch._C, "_cuda_getDevice", None) or torch.cuda.current_device
_LOCK = threading.Lock()
#: Locks of what is being prepared.
_MAKING: dict[Any, threading.Lock] = {}
#: What captured graphs read; it lives as long as the process.
_PINNED: set[Any] = set()


def alone(*tensors: torch.Tensor) -> bool:
    """Whether a call may go past PyTorch's dispatcher: plain tensors on one GPU, seen by no compiler, tracer, mode or
    transform."""
    if not _KNOWN or _modes() or _transforms() or _tracing() is not None:  # type: ignore[misc]
        return False
    if forward_ad._current_level >= 0:
        return False
    for tensor in tensors:  # noqa: SIM110, a generator takes longer
        if type(tensor) not in _PLAIN or not tensor.is_cuda or tensor.is_neg():
            return False
    return True


def stream_of(index: int) -> int:
    """The driver's number of a device's current stream."""
    return _raw_stream(index) if _raw_stream is not None else torch.cuda.current_stream(index).cuda_stream


def empty(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, index: int) -> torch.Tensor:
    """New memory of a device, which is the current one."""
    if _short is not None:
        made: torch.Tensor = _short(shape, strides, dtype)
        return made
    return torch.empty_strided(shape, strides, dtype=dtype, device=torch.device("cuda", index))


def _contiguous(shape: Sequence[int], row: int) -> tuple[int, int, int, int]:
    return shape[1] * shape[2] * row, shape[2] * row, row, 1


def _padded(dim: int) -> int:
    return -(-dim // 8) * 8


class Ready:
    """A pass on a device, with its lists there."""

    __slots__ = (
        *("arena", "counter", "cut", "event", "index", "kernel", "lanes", "launches"),
        *("learned", "live", "results", "scratch", "stream", "without"),
    )

    def __init__(self, made: _native.Pass, like: torch.Tensor, results: list[Any], cut: bool = False) -> None:
        """A pass on a tensor's device, and shapes, strides and dtypes of what it computes.

        cut: whether results are wider than what was asked for."""
        self.cut = cut
        index = like.get_device()
        lists, self.scratch, self.counter = made.bytes()
        host = torch.empty(max(lists, 16), dtype=torch.uint8, device="cpu")
        self.arena = torch.empty(max(lists, 16), dtype=torch.uint8, device=like.device)
        call(made.write, self.arena.data_ptr(), host.data_ptr())
        self.arena.copy_(host)
        self.event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.stream = torch.cuda.current_stream(index)
        self.event.record(self.stream)
        self.launches = call(made.load, self.arena.data_ptr())
        self.learned, self.live, self.kernel = made.learned(), made.live(), made.kernel()
        self.index, self.results = index, results
        self.lanes: dict[int, int | torch.Tensor] = {}
        self.without = self.counter == 0

    def lane(self, stream: int) -> int | torch.Tensor:
        """Counters for a stream, on which the lists can be read from now on."""
        if _capturing():
            # a graph may run beside others and at any time: it has counters of its own, which it clears
            _PINNED.add(self)
            return 0 if self.without else torch.zeros(self.counter, dtype=torch.uint8, device=self.arena.device)
        with _LOCK:
            found = self.lanes.get(stream)
            if found is None:
                current = torch.cuda.current_stream(self.index)
                if current != self.stream:
                    current.wait_event(self.event)
                    self.arena.record_stream(current)
                found = 0
                if not self.without:
                    found = torch.zeros(self.counter, dtype=torch.uint8, device=self.arena.device)
                if len(self.lanes) >= LANES:
                    self.lanes.pop(next(iter(self.lanes)))
                self.lanes[stream] = found
        return found

    def run(self, addresses: list[int], more: Sequence[int] = ()) -> list[torch.Tensor]:
        """Makes the results, and enqueues the pass: `addresses`, those of the results, `more`."""
        index = self.index
        stream = stream_of(index)
        lane = None if _capturing() else self.lanes.get(stream)
        if lane is None:
            lane = self.lane(stream)
        results = [empty(shape, strides, dtype, index) for shape, strides, dtype in self.results]
        addresses += [tensor.data_ptr() for tensor in results]
        addresses += more
        counter = 0 if self.without else lane.data_ptr()  # type: ignore[union-attr]
        if self.scratch:
            scratch = empty((self.scratch,), (1,), torch.uint8, index)
            call(self.launches.run, stream, scratch.data_ptr(), counter, addresses)
        else:
            call(self.launches.run, stream, 0, counter, addresses)
        return results


def _packages() -> list[str]:
    """Folders of packages in which NVIDIA's wheels may lie."""
    folders = [os.path.dirname(os.path.dirname(torch.__file__))]
    folders += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return list(dict.fromkeys(folders))


def place(index: int) -> tuple[int, None, list[str]]:
    return index, None, _packages()


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with rows of whole 16-byte chunks, padded with zeros, at any other strides."""
    if tensor.shape[-1] % 8:
        tensor = F.pad(tensor, (0, -tensor.shape[-1] % 8))
    strides = tensor.stride()
    aligned = tensor.data_ptr() % 16 == 0 and strides[-1] == 1 and all(s % 8 == 0 and s > 0 for s in strides[:-1])
    return tensor if aligned else tensor.clone(memory_format=torch.contiguous_format)


def _read(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A captured tensor as kernels read it."""
    wanted = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    return tensor.detach().to(device=device, dtype=wanted).contiguous()


def _addresses(live: Tensors, device: torch.device) -> tuple[list[int], list[torch.Tensor]]:
    held = []
    for tensor in live:
        ready = tensor.dtype is torch.float32 and tensor.is_cuda and tensor.is_contiguous() and not tensor.is_neg()
        held.append(tensor if ready and tensor.device == device else _read(tensor, device))
    return [tensor.data_ptr() for tensor in held], held


def keep(known: dict[Any, Ready], kind: Any, make: Any) -> Ready:
    """What was prepared for a kind of call. Errors: it has to be prepared while a graph is captured."""
    with _LOCK:
        making = _MAKING.setdefault((id(known), kind), threading.Lock())
    # others compile meanwhile
    with making:
        found = known.get(kind)
        if found is None:
            if _capturing():
                raise ArgumentError(
                    "capture",
                    "this call is prepared at its first use, and a CUDA graph is being captured",
                    "call it once before the capture, with tensors of the same shapes and strides",
                )
            found = make()
            with _LOCK:
                while len(known) >= MOST:
                    known.pop(next(iter(known)))
                known[kind] = found
    with _LOCK:
        _MAKING.pop((id(known), kind), None)
    return found


def forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mods: Mods,
    live: Tensors,
    how: How,
    check: Callable[[], None] | None,
) -> list[torch.Tensor]:
    """Output, lse and, where asked for, the rows' largest scores. Tensors [B, H, S, D] of 16-bit numbers on one GPU.

    how: scale, whether largest scores are asked for, whether gradients will be, and what else a check depends on;
    check: raises what a call of this kind is refused for; it is called where none of this kind was made before."""
    index = query.get_device()
    if index != current_device():
        with torch.cuda.device(index):
            return forward(query, key, value, mods, live, how, check)
    kind = (
        *(query.shape, query.stride(), key.shape, key.stride(), value.shape, value.stride()),
        *(query.dtype, key.dtype, value.dtype, index, key.get_device(), value.get_device(), how),
    )
    ready = mods.forward.get(kind)
    addresses = [query.data_ptr(), key.data_ptr(), value.data_ptr()]
    if ready is None or (addresses[0] | addresses[1] | addresses[2]) & 15:
        if check is not None:
            check()
        if key.shape[0] != query.shape[0]:
            key, value = (t.expand(query.shape[0], -1, -1, -1) for t in (key, value))
        given = [_rows(tensor) for tensor in (query, key, value)]
        dims = query.shape[-1], value.shape[-1]
        if any(a is not b for a, b in zip(given, (query, key, value))):
            return _forward_padded(given, dims, mods, live, how, index)
        ready = keep(mods.forward, kind, lambda: _forward_of(given, dims, mods, how, index))
    if live:
        more, held = _addresses(live, query.device)
        results = ready.run(addresses, more if how[1] else [0, *more])
        del held
        return results
    return ready.run(addresses, () if how[1] else (0,))


def _forward_padded(given: Any, dims: Any, mods: Mods, live: Tensors, how: How, index: int) -> list[torch.Tensor]:
    kind = ("padded", dims, *[(t.shape, t.stride()) for t in given], given[0].dtype, index, *how)
    ready = keep(mods.forward, kind, lambda: _forward_of(given, dims, mods, how, index))
    more, held = _addresses(live, given[0].device)
    results = ready.run([t.data_ptr() for t in given], more if how[1] else [0, *more])
    del held
    if dims[1] % 8:
        results[0] = results[0][..., : dims[1]].contiguous()
    return results


def _extents(q: torch.Tensor, k: torch.Tensor, dims: tuple[int, int]) -> list[int]:
    return [q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), *dims]


def _strides(*tensors: torch.Tensor) -> list[list[int]]:
    return [list(tensor.stride()[:3]) for tensor in tensors]


def _forward_of(given: Tensors, dims: tuple[int, int], mods: Mods, how: Any, index: int) -> Ready:
    q, k, v = given
    factor, largest, learns = how[:3]
    made = call(
        _native.forward_pass,
        *(mods.mask, mods.score, _extents(q, k, dims), DTYPES[q.dtype], factor, largest, learns),
        *(_strides(q, k, v), place(index)),
    )
    rows = tuple(q.shape[:3])
    wide = (*rows, _padded(dims[1]))
    lse = (rows, (rows[1] * rows[2], rows[2], 1), torch.float32)
    results = [(wide, _contiguous(wide, wide[3]), q.dtype), lse, *([lse] if largest else [])]
    return Ready(made, q, results)


def backward(
    saved: Tensors,
    lse: torch.Tensor,
    d_out: torch.Tensor,
    d_lse: torch.Tensor | None,
    mods: Mods,
    live: Tensors,
    factor: float | None,
) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    """Gradients of query, key and value, `saved` with the output, and of the live tensors."""
    query, key, value, out = saved
    shape, of_keys = query.shape, key.shape
    if of_keys[0] != shape[0]:
        key, value = (t.expand(shape[0], -1, -1, -1) for t in (key, value))
        return backward((query, key, value, out), lse, d_out, d_lse, mods, live, factor)
    index = query.get_device()
    if index != current_device():
        with torch.cuda.device(index):
            return backward(saved, lse, d_out, d_lse, mods, live, factor)
    ways = (_deterministic(), d_lse is not None)
    # each question about a tensor takes a share of a microsecond: the output's shape follows from these
    kind: Any = (
        *(shape, query.stride(), of_keys, key.stride(), value.shape, value.stride(), out.stride()),
        *(d_out.stride(), d_out.dtype, query.dtype, index, factor, ways),
    )
    ready = mods.backward.get(kind)
    addresses = [query.data_ptr(), key.data_ptr(), value.data_ptr(), out.data_ptr(), d_out.data_ptr()]
    held: Any = None
    if ready is None or (addresses[0] | addresses[1] | addresses[2] | addresses[3] | addresses[4]) & 15:
        ready, held = _backward_prepared((*saved, d_out), mods, factor, ways, index, kind)
        addresses = [tensor.data_ptr() for tensor in held]
    lse = lse if lse.is_contiguous() else lse.contiguous()
    addresses.append(lse.data_ptr())
    if d_lse is not None:
        d_lse = d_lse.to(torch.float32).contiguous()
    addresses.append(0 if d_lse is None else d_lse.data_ptr())
    if live:
        gradients, found = _run_learning(ready, addresses, live, query.device)
    else:
        gradients, found = ready.run(addresses), []
    if ready.cut:
        gradients = [g[..., : t.shape[-1]].contiguous() for g, t in zip(gradients, saved)]
    return gradients, found


def _backward_prepared(
    given: Tensors, mods: Mods, factor: float | None, ways: Any, index: int, kind: Any
) -> tuple[Ready, list[torch.Tensor]]:
    """A pass of a kind that is not known or whose tensors kernels cannot read, and the tensors as it reads them."""
    query, _, value = given[:3]
    dims = query.shape[-1], value.shape[-1]
    rows = [_rows(tensor.to(query.dtype)) for tensor in given]
    if any(a is not b for a, b in zip(rows, given)):
        kind = ("padded", dims, *[(t.shape, t.stride()) for t in rows], query.dtype, index, factor, ways)
    return keep(mods.backward, kind, lambda: _backward_of(rows, dims, mods, factor, ways, index)), rows


def _run_learning(
    ready: Ready, addresses: list[int], live: Tensors, device: torch.device
) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    """Runs a backward pass with the gradients of the live tensors."""
    found: list[torch.Tensor | None] = [None] * len(live)
    more, held = _addresses(live, device)
    # each gradient is a sum of float32 numbers
    sums = [empty((count,), (1,), torch.float32, ready.index) for _, count in ready.learned]
    gradients = ready.run(addresses, [*more, *[each.data_ptr() for each in sums]])
    del held
    for (number, _), each in zip(ready.learned, sums):
        at = ready.live.index(number)
        shape = live[at].shape
        each = each[: shape.numel()].view(shape)
        found[at] = each if each.dtype == live[at].dtype and each.device == live[at].device else each.to(live[at])
    return gradients, found


def _backward_of(given: Tensors, dims: Any, mods: Mods, factor: float | None, ways: Any, index: int) -> Ready:
    q, k, v, out, d_out = given
    made = call(
        _native.backward_pass,
        *(mods.mask, mods.score, _extents(q, k, dims), DTYPES[q.dtype], factor, ways),
        *(_strides(q, k, v, out, d_out), place(index)),
    )
    results = []
    for tensor, dim in ((q, dims[0]), (k, dims[0]), (v, dims[1])):
        shape = (*tensor.shape[:3], _padded(dim))
        results.append((shape, _contiguous(shape, shape[3]), q.dtype))
    return Ready(made, q, results, bool(dims[0] % 8 or dims[1] % 8))


_MERGES: dict[Any, Ready] = {}


def merge(out: torch.Tensor, lse: torch.Tensor, part: torch.Tensor, part_lse: torch.Tensor, rows: Any) -> None:
    """Adds attention over more keys to that over some, in place: out [B, H, S, D] and lse [B, H, S] with the part's at
    the query tokens `rows`, int64 (None: all). All are contiguous, on the current device."""
    index = out.get_device()
    sizes = (out.shape[0] * out.shape[1], out.shape[2], part.shape[2], out.shape[3])
    kind = (out.dtype, *sizes, index)
    ready = _MERGES.get(kind)
    if ready is None:
        make = lambda: Ready(call(_native.merge_pass, DTYPES[out.dtype], list(sizes), place(index)), out, [])
        ready = keep(_MERGES, kind, make)
    places = 0 if rows is None else rows.data_ptr()
    ready.run([out.data_ptr(), lse.data_ptr(), part.data_ptr(), part_lse.data_ptr(), places])


class Attend(torch.autograd.Function):
    """Attention without PyTorch's dispatcher, where nothing but autograd watches a call."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, mods: Mods, how: How, check: Any, *live: Any) -> Any:
        results = forward(query, key, value, mods, live, how, check)
        ctx.mods, ctx.factor = mods, how[0]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, key, value, results[0], results[1], *live)
        if how[1]:
            ctx.mark_non_differentiable(results[2])
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, d_out: Any, d_lse: Any = None, *_: Any) -> Any:
        no_second_order()
        query, key, value, out, lse, *live = ctx.saved_tensors
        if d_out is None:
            d_out = torch.zeros_like(out)
        (dq, dk, dv), learned = backward((query, key, value, out), lse, d_out, d_lse, ctx.mods, live, ctx.factor)
        if key.shape[0] != query.shape[0]:
            dk, dv = dk.sum(0, keepdim=True), dv.sum(0, keepdim=True)
        return dq, dk, dv, None, None, None, *learned
