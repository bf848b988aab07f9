# SPDX-License-Identifier: MIT
"""The attention functions of PyTorch and diffusers, and their replacements while a watched layer runs."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any, cast

import torch

from . import divided, layers, pickled, verified
from .attention import attend
from .calls import Call, of_lengths
from .grids import fixed, tracing
from .plan import Brought, Plan
from .planning import plan_for
from .settings import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from .counts import Layer


def instead(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
    parallel_config: object = None,
) -> Tensor | None:
    """The design's attention on [B, H, S, D], or None if the call is not masked. Errors: the call must be masked."""
    layer = layers.current().layer
    if layer is None or query.dim() != 4:
        return None
    q_len, kv_len = fixed(query.shape[-2]), fixed(key.shape[-2])
    batch, heads = fixed(query.shape[0]), fixed(query.shape[1])
    call = of_tokens(query, key, parallel_config) or of_lengths(layer, q_len, kv_len)
    plan = planned(layer, call, q_len, kv_len, batch, heads, query.device)
    if plan is None or not accepted(layer, plan, dropout):
        return None
    if attn_mask is not None:
        say("the model's own mask applies too: a cell is kept if both masks keep it")
        if layer.model.sequential:
            say("the design's positions count from the first key here, also where a mask hides it as padding")
    elif is_causal:
        say("the model requests a causal mask by a flag: the design replaces it")
    brought = Brought(own=attn_mask)
    if verified.by_hand_now():
        return verified.attend(plan, query, key, value, scale, brought)
    return attend(plan, query, key, value, scale, brought)


def of_tokens(query: Tensor, key: Tensor, parallel_config: object = None) -> Call | None:
    """The call as one that is left, where another library has divided its tokens over ranks: a design has other positions."""
    why = None if tracing() else divided.of_call(query, key, parallel_config)
    return None if why is None else Call(reason=f"left as it is: {why}")


def planned(
    layer: Layer, call: Call, q_len: int, kv_len: int, batch: int, heads: int, device: torch.device, lead: int | None = None
) -> Plan | None:
    """The plan of a call, or None if the call reads another sequence. `lead`: tokens of padding that every row begins with."""
    if not tracing():
        layers.now.calls += 1
    if call.aside:
        if not tracing() and not verified.plain_now():
            layer.aside += 1
        return None
    if call.reason is not None:
        return Plan(None, reason=call.reason)
    return plan_for(layer, q_len, kv_len, batch, heads, device, call.crosses, call.place, lead)


def accepted(layer: Layer, plan: Plan, dropout: float) -> bool:
    """Whether a plan is used; both results are counted. Errors: RuntimeError if it must be used and cannot."""
    if plan.design is None:
        reason = plan.reason or "left as it is: no design is meant for this call"
        if not tracing():
            if not verified.plain_now():
                layer.leaves(reason)
        elif layer.model.strict:
            raise RuntimeError(f"maskloom: {reason}")
        return False
    if dropout:
        raise RuntimeError(f"maskloom: {layer.name} uses dropout {dropout}; FlexAttention has none: set it to 0")
    if not tracing():
        if verified.plain_now():
            return False
        layer.took()
        layer.model.note_sparsity(plan.block_mask)
    return True


# the functions that were wrapped, with their wrappers: a trainer that changes between two of them gets the same ones back
_WRAPPED = 8
_wrappers: list[tuple[object, Any]] = []


def _own(function: object) -> bool:
    """Whether a function is one of the runtime's. A function that copied a wrapper's attributes is none."""
    return getattr(function, "maskloom_itself", None) is function


def patch_torch() -> None:
    """scaled_dot_product_attention, for models that call it themselves. It may be called again at any time."""
    functional = torch.nn.functional
    original = functional.scaled_dot_product_attention
    # PyTorch's context_parallel puts its own function back only if it is still there
    if _own(original) or divided.region() is not None:
        return
    for known, wrapper in _wrappers:
        if known is original:
            functional.scaled_dot_product_attention = wrapper
            return
    wrapper = _wrapped(original, bool(_wrappers))
    if _wrappers:
        name = getattr(original, "__name__", type(original).__name__)
        of = getattr(original, "__module__", None) or "another module"
        what = f"scaled_dot_product_attention was replaced by `{name}` of {of}"
        say(f"{what}: watched layers keep the design, all other calls go there")
    _wrappers.append((original, wrapper))
    del _wrappers[1:-_WRAPPED]
    functional.scaled_dot_product_attention = wrapper
    _replace("scaled_dot_product_attention", original, wrapper)
    layers.before_calls[:] = [look_again]


def _wrapped(original: Any, replaces: bool) -> Any:
    """The function that masks calls of watched layers. `replaces`: the original is another program's replacement."""

    @functools.wraps(original)
    def scaled_dot_product_attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        given: dict[str, Any] = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
        if layers.current().layer is not None:
            out = instead(query, key, value, attn_mask, dropout_p, is_causal, scale)
            if out is not None:
                return out
            if replaces:
                # it may call the function that it replaced, which is the runtime's: one call counts once
                with layers.hidden():
                    return cast("Tensor", original(query, key, value, **given, enable_gqa=enable_gqa))
        return cast("Tensor", original(query, key, value, **given, enable_gqa=enable_gqa))

    own = cast("Any", scaled_dot_product_attention)
    own.maskloom, own.maskloom_itself = original, own
    return own


def patch() -> None:
    """Both, as far as they are imported. It may be called again at any time."""
    patch_torch()
    dispatch = sys.modules.get("diffusers.models.attention_dispatch")
    if dispatch is not None:
        patch_diffusers(dispatch)


def look_again() -> None:
    """Before a call of a watched model or layer: a trainer may have replaced a function in the meantime."""
    if tracing():
        _look_while_traced()
    else:
        patch()


def _patched() -> str:
    patch_torch()
    return ""


# a tracer runs this function itself, and reads the attributes of modules afterwards
_look_while_traced: Callable[[], str] = cast("Any", torch.compiler).assume_constant_result(_patched)


def patch_diffusers(dispatch: Any) -> None:
    """diffusers' dispatcher, with any backend set."""
    original = dispatch.dispatch_attention_fn
    if _own(original):
        return

    @functools.wraps(original)
    def dispatch_attention_fn(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Tensor:
        if layers.current().layer is None:
            return cast("Tensor", original(query, key, value, attn_mask, dropout_p, is_causal, scale, *args, **kwargs))
        # the dispatcher's layout is [B, S, H, D], and its 2-D masks are of keys
        mask = attn_mask
        if mask is not None and mask.dim() == 2:
            mask = mask[:, None, None, :]
        q, k, v = (t.transpose(1, 2) for t in (query, key, value))
        out = instead(q, k, v, mask, dropout_p, is_causal, scale, kwargs.get("parallel_config"))
        if out is not None:
            return out.transpose(1, 2)
        with layers.hidden():
            return cast("Tensor", original(query, key, value, attn_mask, dropout_p, is_causal, scale, *args, **kwargs))

    own = cast("Any", dispatch_attention_fn)
    own.maskloom, own.maskloom_itself = original, own
    dispatch.dispatch_attention_fn = dispatch_attention_fn
    _replace("dispatch_attention_fn", original, dispatch_attention_fn)


def _replace(name: str, original: object, own: object) -> None:
    """Replaces the function in modules that imported it by name before."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict) and names.get(name) is original and not module.__name__.startswith("torch"):
            setattr(module, name, own)


def remade(module: str, name: str, *given: Any) -> Any:
    """An object of a class of the runtime, without its state, or the result of a function of the runtime.

    A loaded model runs with its design, so attention is patched.
    """
    patch()
    found = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found(*given) if given else found.__new__(found)


pickled.remade = remade
