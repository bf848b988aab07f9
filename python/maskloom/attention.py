"""`flex_attention`: PyTorch's arguments and meaning, with gradients of all that it reads. Its operators, and CPUs.

Invariant: the mask is active in every call and pass, or the call is an error. A block mask that lists other blocks than
its mask_mod keeps is honoured as PyTorch does: unlisted blocks are masked, full ones are not looked at.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Union

import torch
from torch.nn.attention import flex_attention as flex

from . import _gpu, _native
from ._call import call
from ._checks import (
    DTYPES,
    cast,
    check,
    check_aux,
    check_block_mask,
    check_transforms,
    no_second_order,
    number,
    warn_divided,
)
from ._compiled import number_of, template_of, traceable
from ._functions import Mod
from ._lists import effective, replaced
from ._mods import fits, given, readable, traced
from .errors import ArgumentError

__all__ = ["flex_attention"]

CPU = torch.device("cpu")
Result = Union[torch.Tensor, "tuple[torch.Tensor, Any]"]


@traceable
def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Mod | None = None,
    block_mask: flex.BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: Any = None,
) -> Result:
    """Attention with a score mod and a block mask: PyTorch's arguments, PyTorch's result, on CPUs and NVIDIA GPUs.

    Args:
        query: [B, Hq, Q_LEN, E], float32 (CPU only), bfloat16 or float16, on a CPU or an NVIDIA GPU.
        key: [B or 1, Hkv, KV_LEN, E], of the same dtype.
        value: [B or 1, Hkv, KV_LEN, Ev], of the same dtype. E and Ev are 1 to 256.
        score_mod: `(score, b, h, q_idx, kv_idx) -> score`, computed in float32. It is called once, on values that
            record what it does. Float tensors that it reads get gradients where they require them.
        block_mask: of `maskloom.create_block_mask` or of PyTorch. On a CPU its mask_mod is recorded again at each call;
            on a GPU it is the mask that was made, read again where a tensor of it was changed in place.
        scale: factor on the scores; None is 1 / sqrt(E).
        enable_gqa: query head h reads key head h // (Hq / Hkv).
        return_lse: also returns the lse, float32 [B, Hq, Q_LEN], natural logarithm; -inf in a row that keeps nothing.
        kernel_options: has no effect.
        return_aux: an `AuxRequest` (PyTorch 2.9): also returns an `AuxOutput` with lse and largest scores, both
            without gradient.

    Returns:
        The output [B, Hq, Q_LEN, Ev] of query's dtype, 0 in a row that keeps nothing. Gradients flow into query, key,
        value and read tensors, from the output and from the lse. On a CPU the same bits for any number of threads; on a
        GPU the same in every run under `torch.use_deterministic_algorithms(True)`.

    Raises:
        ArgumentError: an argument cannot be used; the message names it.
        RecordingError: a mod does what cannot be recorded; with file, line and way out.
    """
    compiled = torch.compiler.is_compiling()
    if block_mask is not None and not compiled:
        warn_divided()
    if not compiled and isinstance(query, torch.Tensor) and query.is_cuda:
        return _on_gpu(
            query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse, kernel_options, return_aux
        )
    query, key, value = cast(query, key, value)
    check(query, key, value, enable_gqa, kernel_options)
    if return_aux is not None:
        check_aux(return_aux)
        if return_lse:
            raise _both_asked()
    if key.size(0) != query.size(0):
        key, value = key.expand(query.size(0), -1, -1, -1), value.expand(query.size(0), -1, -1, -1)
    if block_mask is not None:
        check_block_mask(block_mask, query, key)
    wants_max = return_aux is not None and bool(return_aux.max_scores)
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else number(scale)
    if compiled:
        out, lse, largest = _compiled(query, key, value, score_mod, block_mask, factor, wants_max)
    else:
        out, lse, largest = _eager(query, key, value, score_mod, block_mask, factor, wants_max)
    if return_aux is not None:
        return out, flex.AuxOutput(lse=lse if return_aux.lse else None, max_scores=largest if wants_max else None)
    return (out, lse) if return_lse else out


def _both_asked() -> ArgumentError:
    message = "return_lse and return_aux are both given"
    return ArgumentError("aux", message, "pass return_aux=AuxRequest(lse=True) alone")


def _on_gpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Mod | None,
    block_mask: flex.BlockMask | None,
    scale: float | None,
    gqa: bool,
    return_lse: bool,
    options: Any,
    aux: Any,
) -> Result:
    """The same on an NVIDIA GPU, in as few steps as a call of a known kind needs."""
    if aux is None:
        found = _gpu.attend(query, key, value, score_mod, block_mask, scale, gqa, options, False, _operated)
        return (found[0], found[1]) if return_lse else found[0]
    check_aux(aux)
    if return_lse:
        raise _both_asked()
    largest = bool(aux.max_scores)
    found = _gpu.attend(query, key, value, score_mod, block_mask, scale, gqa, options, largest, _operated_with_max)
    lse = found[1] if aux.lse else None
    return found[0], flex.AuxOutput(lse=lse, max_scores=found[2] if largest else None)


def _operated(q: Any, k: Any, v: Any, live: Any, plan: Any, scale: float | None, largest: bool = False) -> Any:
    """The operator's results."""
    number = next(_NUMBERS)
    _PLANS[number] = plan
    scale = 1.0 / math.sqrt(q.size(-1)) if scale is None else scale
    try:
        return torch.ops.maskloom.flex_attention(q, k, v, live, (number, 0, 0), scale, largest)
    finally:
        del _PLANS[number]


def _operated_with_max(q: Any, k: Any, v: Any, live: Any, plan: Any, scale: float | None) -> Any:
    return _operated(q, k, v, live, plan, scale, True)


Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _eager(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Mod | None,
    block_mask: flex.BlockMask | None,
    factor: float,
    wants_max: bool,
) -> Three:
    plan = _plan(score_mod, block_mask)
    for tensor in plan.captured[plan.masked :]:
        check_transforms("a tensor of score_mod", tensor)
    plan.learns = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value, *plan.captured))
    number = next(_NUMBERS)
    _PLANS[number] = plan
    try:
        found: Three = torch.ops.maskloom.flex_attention(
            query, key, value, plan.captured, (number, 0, 0), factor, wants_max
        )
    finally:
        del _PLANS[number]
    return found


def _compiled(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Mod | None,
    block_mask: flex.BlockMask | None,
    factor: float,
    wants_max: bool,
) -> Three:
    """The same as one node of a compiled graph, whose inputs are also the tensors that the mods captured."""
    mask = score = 0
    read: list[torch.Tensor] = []
    learned: list[torch.Tensor] = []
    if block_mask is not None:
        if not getattr(block_mask, "_maskloom", False):
            raise ArgumentError(
                "compile",
                "block_mask is not of maskloom.create_block_mask: under torch.compile its lists are not compared",
                "make it with maskloom.create_block_mask, or call flex_attention outside of torch.compile",
            )
        if replaced(block_mask):
            raise ArgumentError(
                "compile",
                "the lists of block_mask were replaced: under torch.compile they are not compared with its mask_mod",
                "write the mask as a mask_mod, or call flex_attention outside of torch.compile",
            )
        if block_mask.mask_mod is not flex.noop_mask:
            mask, read = number_of(block_mask.mask_mod, "block_mask.mask_mod", False)
    if score_mod is not None:
        score, learned = number_of(score_mod, "score_mod", True)
    found: Three = torch.ops.maskloom.flex_attention(
        query, key, value, [*read, *learned], (len(read), mask, score), factor, wants_max
    )
    return found


class Plan:
    """The mods of a call, the tensors that they read, and the problems that were prepared with them."""

    def __init__(
        self,
        mask: _native.Mask | None,
        score: _native.Mask | None,
        captured: list[torch.Tensor],
        masked: int,
    ) -> None:
        self.mask, self.score, self.captured, self.masked = mask, score, captured, masked
        #: whether gradients will be asked for: a score mod without a derivative is refused before the forward pass
        self.learns = False
        #: which of the tensors behind the first `masked` each of the score mod's is
        self.order = list(range(len(captured) - masked))
        self.prepared: dict[Any, _native.Attention] = {}

    def attention(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, largest: bool, differentiable: bool
    ) -> _native.Attention:
        """The problem of these inputs."""
        extents = [q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3), v.size(3)]
        key = (*extents, q.dtype, scale, largest, differentiable)
        found = self.prepared.get(key)
        if found is None:
            found = call(
                _native.prepare, self.mask, self.score, extents, DTYPES[q.dtype], scale, largest, differentiable
            )
            self.prepared[key] = found
        return found


def _plan_of(plan: Sequence[int], captured: Sequence[torch.Tensor]) -> Plan:
    """The plan that an operator names: (its number, 0, 0), or (tensors of the mask, template of mask, of score)."""
    first, mask_number, score_number = plan
    if mask_number == 0 and score_number == 0 and first in _PLANS:
        found: Plan = _PLANS[first]
        return found
    captured = list(captured)
    mask, _ = _bound(mask_number, captured[:first])
    score, order = _bound(score_number, captured[first:])
    made = Plan(mask, score, captured, first)
    made.learns, made.order = True, order
    return made


def _bound(number: int, captured: list[torch.Tensor]) -> tuple[_native.Mask | None, list[int]]:
    if number == 0:
        return None, []
    found = template_of(number).over(captured)
    tensors = [readable(captured[at], "a mod") for at in found.order]
    return call(found.mask.rebound, [given(tensor) for tensor in tensors]), found.order


_NUMBERS = itertools.count(1)
#: Plans by number, while an operator that names it runs.
_PLANS: dict[int, Any] = {}


def _plan(score_mod: Mod | None, block_mask: flex.BlockMask | None) -> Plan:
    mask = score = None
    captured: list[torch.Tensor] = []
    masked = 0
    if block_mask is not None:
        mod = effective(block_mask)
        if mod is not flex.noop_mask:
            mask, captured = traced(mod, "block_mask.mask_mod", device=CPU)
            masked = len(captured)
    if score_mod is not None:
        score, read = traced(score_mod, "score_mod", score=True, device=CPU)
        captured = [*captured, *read]
    return Plan(mask, score, captured, masked)


# --- the operators ---

torch.library.define(
    "maskloom::flex_attention",
    "(Tensor query, Tensor key, Tensor value, Tensor[] captured, int[] plan, float scale, bool max_scores)"
    " -> (Tensor, Tensor, Tensor)",
)
torch.library.define(
    "maskloom::flex_attention_backward",
    "(Tensor d_out, Tensor d_lse, Tensor query, Tensor key, Tensor value, Tensor out, Tensor lse, Tensor[] captured,"
    " int[] plan, float scale) -> (Tensor, Tensor, Tensor, Tensor[])",
)


def _given(tensor: torch.Tensor) -> Any:
    return tensor.data_ptr(), tuple(tensor.shape), DTYPES[tensor.dtype]


def _contiguous(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [readable(tensor, "flex_attention") for tensor in tensors]


@torch.library.impl("maskloom::flex_attention", "CPU")
def _forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    captured: Sequence[torch.Tensor],
    plan: Sequence[int],
    scale: float,
    max_scores: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, k, v = _contiguous(query, key, value)
    out, lse, largest = _empty(query, value, max_scores)
    own = _plan_of(plan, captured)
    attention = own.attention(q, k, v, scale, max_scores, own.learns)
    address = largest.data_ptr() if max_scores else 0
    call(attention.forward, (_given(q), _given(k), _given(v)), out.data_ptr(), lse.data_ptr(), address)
    return out, lse, largest


def _empty(q: torch.Tensor, v: torch.Tensor, max_scores: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows = (q.size(0), q.size(1), q.size(2))
    if q.device.type == "cpu":  # made here, and by the kernel
        fits("the output of flex_attention", 2 * math.prod(rows) * (v.size(3) * q.element_size() + 4))
    out = torch.empty((*rows, v.size(3)), dtype=q.dtype, device=q.device)
    lse = torch.empty(rows, dtype=torch.float32, device=q.device)
    largest = torch.empty(rows if max_scores else (0,), dtype=torch.float32, device=q.device)
    return out, lse, largest


@torch.library.impl("maskloom::flex_attention", "CUDA")
def _forward_gpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    captured: Sequence[torch.Tensor],
    plan: Sequence[int],
    scale: float,
    max_scores: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    own = _gpu.plan_of(plan, captured, _PLANS)
    return _gpu.operator_forward(query, key, value, captured, own, scale, max_scores)


@torch.library.register_fake("maskloom::flex_attention")  # type: ignore[untyped-decorator]
def _forward_fake(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    captured: Sequence[torch.Tensor],
    plan: Sequence[int],
    scale: float,
    max_scores: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return _empty(query, value, max_scores)


@torch.library.impl("maskloom::flex_attention_backward", "CPU")
def _backward(
    d_out: torch.Tensor,
    d_lse: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    captured: Sequence[torch.Tensor],
    plan: Sequence[int],
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    own = _plan_of(plan, captured)
    q, k, v, out, lse, d_out, d_lse = _contiguous(query, key, value, out, lse, d_out, d_lse)
    attention = own.attention(q, k, v, scale, False, True)
    fits("the gradients of flex_attention", 2 * sum(t.nbytes for t in (q, k, v)))
    dq, dk, dv = (torch.empty_like(t, memory_format=torch.contiguous_format) for t in (q, k, v))
    names = own.score.captures() if own.score is not None else []
    at = {name: own.masked + own.order[place] for place, name in enumerate(names)}
    learned = {
        name: torch.zeros(captured[at[name]].shape, dtype=torch.float32, device=CPU) for name in attention.learned()
    }
    call(
        attention.backward,
        (_given(q), _given(k), _given(v)),
        (_given(out), _given(lse)),
        _given(d_out),
        _given(d_lse),
        (dq.data_ptr(), dk.data_ptr(), dv.data_ptr()),
        [gradient.data_ptr() for gradient in learned.values()],
    )
    gradients = [torch.zeros_like(tensor) for tensor in captured]
    for name, gradient in learned.items():
        gradients[at[name]] = gradient.to(captured[at[name]].dtype)
    return dq, dk, dv, gradients


@torch.library.impl("maskloom::flex_attention_backward", "CUDA")
def _backward_gpu(
    d_out: torch.Tensor,
    d_lse: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    captured: Sequence[torch.Tensor],
    plan: Sequence[int],
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    own = _gpu.plan_of(plan, captured, _PLANS)
    return _gpu.operator_backward(d_out, d_lse, (query, key, value, out), lse, captured, own, scale)


@torch.library.register_fake("maskloom::flex_attention_backward")  # type: ignore[untyped-decorator]
def _backward_fake(
    d_out: torch.Tensor,
    d_lse: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    captured: Sequence[torch.Tensor],
    plan: Sequence[int],
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    dq, dk, dv = (torch.empty_like(t, memory_format=torch.contiguous_format) for t in (query, key, value))
    return dq, dk, dv, [torch.empty_like(tensor) for tensor in captured]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    query, key, value, captured, plan, scale, _ = inputs
    out, lse, largest = output
    ctx.mark_non_differentiable(largest)
    ctx.save_for_backward(query, key, value, out, lse, *captured)
    # the number lives as long as the call alone: the plan lives as long as this
    ctx.number, ctx.plan, ctx.scale = plan, _PLANS.get(plan[0]) if plan[1:] == [0, 0] else None, scale


def _gradients(ctx: Any, d_out: torch.Tensor, d_lse: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
    no_second_order()
    query, key, value, out, lse, *captured = ctx.saved_tensors
    if ctx.plan is not None:
        _PLANS[ctx.number[0]] = ctx.plan
    try:
        dq, dk, dv, learned = torch.ops.maskloom.flex_attention_backward(
            d_out, d_lse, query, key, value, out, lse, captured, ctx.number, ctx.scale
        )
    finally:
        if ctx.plan is not None:
            _PLANS.pop(ctx.number[0], None)
    found = [g if t.dtype.is_floating_point else None for g, t in zip(learned, captured)]
    return dq, dk, dv, found, None, None, None


torch.library.register_autograd("maskloom::flex_attention", _gradients, setup_context=_save)
