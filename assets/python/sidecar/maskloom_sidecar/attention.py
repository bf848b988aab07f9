# SPDX-License-Identifier: MIT
"""Attention with a design and the model's own features, by FlexAttention, or with all scores in memory (short calls, CPU).

Must not know layers or libraries.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.attention.flex_attention import create_mask, flex_attention

from . import kernels
from .cache import Newest
from .grids import tracing

if TYPE_CHECKING:
    from torch import Tensor

    from .aliases import MaskMod, ScoreMod
    from .plan import Brought, Plan


def _reader(table: Tensor) -> MaskMod:
    """A function of (b, h, q_idx, kv_idx) that reads a tensor broadcast to [B, H, Q, KV]."""
    while table.dim() < 4:
        table = table[None]
    varying = [i for i, n in enumerate(table.shape) if n > 1]
    small = table.reshape([table.shape[i] for i in varying])

    def read(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        index = (b, h, q_idx, kv_idx)
        return small[tuple(index[i] for i in varying)]

    return read


def composed(design_score: ScoreMod | None, brought: Brought) -> ScoreMod | None:
    """One score_mod from the design's and the model's own; None if there is neither."""
    own, bias, cap = brought.own, brought.bias, brought.softcap
    if design_score is None and own is None and bias is None and cap is None:
        return None
    read_own = None if own is None else _reader(own)
    read_bias = None if bias is None else _reader(bias)
    is_bool = own is not None and own.dtype == torch.bool

    # PyTorch counts the parameters, so all five need names
    def score_mod(score: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        if cap is not None:
            score = torch.tanh(score / cap) * cap
        if read_bias is not None:
            score = score + read_bias(b, h, q_idx, kv_idx)
        if design_score is not None:
            score = design_score(score, b, h, q_idx, kv_idx)
        if read_own is not None:
            at = read_own(b, h, q_idx, kv_idx)
            score = torch.where(at, score, -float("inf")) if is_bool else score + at
        return score

    return score_mod


def attend(plan: Plan, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought) -> Tensor:
    """The design's attention. query [B, Hq, Q, E], key [B, Hkv, KV, E], value [B, Hkv, KV, Ev]; forward and backward."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    compiling = tracing() or plan.loose
    if not compiling:
        by_kernel = kernels.attend(plan, query, key, value, scale, brought)
        if by_kernel is not None:
            return by_kernel
    on_cpu = query.device.type == "cpu"
    learned = plan.taken.learned.values()
    grads = torch.is_grad_enabled() and any([t.requires_grad for t in (query, key, value, *learned)])
    # each step of a generation has other lengths, so a kernel would be compiled for every token
    step = not compiling and plan.place is not None and query.shape[2] <= _STEP
    if plan.loose or step or (on_cpu and (compiling or grads)):
        # FlexAttention has no backward pass on the CPU, and its compiled CPU kernel supports few masks
        return dense(plan, query, key, value, scale, brought)
    score_mod = composed(plan.score_mod, brought)
    given: dict[str, Any] = {"score_mod": score_mod, "block_mask": plan.block_mask, "scale": scale}
    given["enable_gqa"] = query.shape[1] != key.shape[1]
    if brought.sinks is not None:
        given |= _WITH_LSE
    out: Any
    if compiling or on_cpu:
        out = flex_attention(query, key, value, **given)
    else:
        out = _fused(plan, query, key, value, brought)(query, key, value, **given)
    if brought.sinks is None:
        return cast("Tensor", out)
    return _with_sinks(out[0], out[1], brought.sinks, query.dtype)


# The largest number of queries of a generation step: with few rows all scores fit in memory.
_STEP = 16


def _lse_arguments() -> dict[str, Any]:
    names = inspect.signature(flex_attention).parameters
    if "return_aux" in names:
        from torch.nn.attention.flex_attention import AuxRequest

        return {"return_aux": AuxRequest(lse=True)}
    return {"return_lse": True}


_WITH_LSE = _lse_arguments()


def _with_sinks(out: Tensor, lse: Any, sinks: Tensor, dtype: torch.dtype) -> Tensor:
    lse = getattr(lse, "lse", lse)
    # the sink takes exp(sink) / (exp(sink) + exp(lse)) of each row's weight
    kept = torch.sigmoid(lse.float() - sinks.float().view(1, -1, 1))
    return (out.float() * kept.unsqueeze(-1)).to(dtype)


def _call(query: Tensor, key: Tensor, value: Tensor, **given: Any) -> Any:
    return flex_attention(query, key, value, **given)


# compiled functions, the newest: one for each kind of call
_compiled = Newest(128)
_numbers = itertools.count()


def _fused(plan: Plan, query: Tensor, key: Tensor, value: Tensor, brought: Brought) -> Callable[..., Any]:
    """Compiled FlexAttention for calls of this kind."""
    tables = tuple(None if t is None else (tuple(t.shape), t.dtype, t.requires_grad) for t in (brought.own, brought.bias))
    kind = (
        plan.taken.key, plan.key if plan.block_mask is not None else None, brought.softcap, tables, brought.sinks is not None,
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        *((tuple(t.shape), t.stride(), t.dtype, t.device, t.requires_grad) for t in (query, key, value)),
    )  # fmt: skip

    def make() -> Callable[..., Any]:
        # PyTorch stops compiling a function after 8 compilations and runs it uncompiled: each kind has its own code
        code = _call.__code__.replace(co_name=f"maskloom_attention_{next(_numbers)}")
        own = types.FunctionType(code, globals(), code.co_name)
        return torch.compile(own, dynamic=False)

    return cast("Callable[..., Any]", _compiled(kind, make))


def dense(plan: Plan, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought) -> Tensor:
    """The same with all scores in memory: for generation steps, and for tests on the CPU."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    _, heads, q_len, _ = query.shape
    kv_len, device = key.shape[2], query.device
    group = heads // key.shape[1]
    key, value = (t.repeat_interleave(group, dim=1) if group > 1 else t for t in (key, value))
    exact = torch.promote_types(query.dtype, torch.float32)
    scores = (query.to(exact) @ key.to(exact).transpose(-1, -2)).float() * scale
    score_mod = composed(plan.score_mod, brought)
    if score_mod is not None:
        scores = score_mod(scores, *_places(scores))
    if plan.mask_mod is not None:
        if plan.loose:
            # torch.export cannot write tensors that are read under vmap
            mask = plan.mask_mod(*_places(scores))
        else:
            mask = create_mask(plan.mask_mod, *plan.extents, q_len, kv_len, device=device)
        scores = scores.masked_fill(~mask, -float("inf"))
    return _weighted(scores, value, brought.sinks)


def _places(scores: Tensor) -> list[Tensor]:
    """b, h, q_idx and kv_idx, broadcast over all cells."""
    indices = [torch.arange(n, device=scores.device) for n in scores.shape]
    return [index.view([-1 if axis == at else 1 for axis in range(4)]) for at, index in enumerate(indices)]


def _weighted(scores: Tensor, value: Tensor, sinks: Tensor | None) -> Tensor:
    """softmax(scores) @ value; a row without a finite score is 0. scores [B, H, Q, KV] float32, value [B, H, KV, Ev]."""
    if sinks is not None:
        sinks = sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.softmax(torch.cat([scores, sinks], dim=-1), dim=-1)[..., :-1]
    else:
        empty = (scores == -float("inf")).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return weights.to(value.dtype) @ value
