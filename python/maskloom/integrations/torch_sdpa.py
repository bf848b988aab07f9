"""PyTorch's scaled_dot_product_attention: Maskloom behind its registry of flash attention.

    import maskloom.integrations.torch_sdpa as plugged
    from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl

    plugged.register(window=4096)
    activate_flash_attention_impl("maskloom")

PyTorch asks it for calls without a mask and for causal ones; `window` makes the causal ones a sliding window.

Invariant: a call that the registry hands over is computed as asked, or is an error. Masks never come this way:
PyTorch's flash attention
has none on a GPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from .. import _divided
from ..block_mask import create_block_mask
from ..errors import ArgumentError, MaskloomError
from ._calls import PLANNED, MaskLost, added, attend, extents_of, of_dense

__all__ = ["register"]

NAME = "maskloom"


class _Handle:
    """What is registered with the dispatcher until `restore_flash_attention_impl()`."""

    def __init__(self, libraries: list[Any]) -> None:
        self.libraries = libraries

    def remove(self) -> None:
        """PyTorch's own functions again."""
        for library in self.libraries:
            library._destroy()
        self.libraries = []


def register(window: int | None = None) -> None:
    """Makes "maskloom" an implementation of PyTorch's registry. It has an effect after
    `activate_flash_attention_impl("maskloom")`.

    A call keeps the gradients of its own forward pass, whatever is active later; a compiled one needs "maskloom" active
    in both passes.

    On a CPU every call of scaled_dot_product_attention over [B, H, S, D] in float32, bfloat16 and float16 goes there,
    on a GPU those
    that PyTorch would give to flash attention.

    Args:
        window: a causal call lets each query see so many keys, itself included. None: all before it.

    Raises:
        MaskloomError: this PyTorch has no registry (before 2.11).
        ArgumentError: `window` is no number of tokens.
    """
    if window is not None and (not isinstance(window, int) or window < 1):
        raise ArgumentError("window", f"window is {window!r}", "pass a number of tokens, at least 1, or None")
    try:
        from torch.nn.attention import register_flash_attention_impl as registers
    except ImportError:
        hint = "use PyTorch 2.11 or newer, or maskloom.flex_attention"
        raise MaskloomError(
            "torch-registry", f"PyTorch {torch.__version__} has no registry of flash attention", hint
        ) from None
    registers(NAME, register_fn=lambda: _activated(window))


def _activated(window: int | None) -> _Handle:
    active = _replaced("CPU", "_scaled_dot_product_flash_attention_for_cpu", *_cpu(window))
    if torch.cuda.is_available() and _takes_cuda():
        active += _replaced("CUDA", "_scaled_dot_product_flash_attention", *_cuda(window))
    return _Handle(active)


def _replaced(device: str, name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> list[Any]:
    """Both passes of an operator, replaced on a device. PyTorch warns of it, which is what the caller asked for."""
    libraries: Any = torch.library
    kernels = libraries.Library("aten", "IMPL", device)
    kernels.impl(name, forward, allow_override=True)
    kernels.impl(f"{name}_backward", backward, allow_override=True)
    if not hasattr(libraries, "get_kernel"):
        return [kernels]
    key = f"Autograd{device}"
    theirs = libraries.get_kernel(f"aten::{name}", key)

    def owned(keys: Any, query: Any, key: Any, value: Any, *args: Any, **named: Any) -> Any:
        qkv = (query, key, value)
        learns = torch.is_grad_enabled() and any(t.requires_grad for t in qkv)
        if not learns or _traced(*qkv):
            return theirs.call_boxed(keys, *qkv, *args, **named)
        # a graph of this package: its backward pass is not another operator, which may be replaced by then
        out, lse, *more = forward(*qkv, *args, **named)
        return (out, lse.detach(), *more)

    autograd = libraries.Library("aten", "IMPL", key)
    autograd.impl(name, owned, with_keyset=True, allow_override=True)
    return [autograd, kernels]


def _traced(*tensors: torch.Tensor) -> bool:
    """Whether a compiler or a mode of PyTorch's dispatcher watches: it is to see PyTorch's own operator."""
    plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors)
    watched: bool = torch._C._len_torch_dispatch_stack() > 0 or torch.compiler.is_compiling()
    return not plain or watched or any(torch._C._functorch.is_functorch_wrapped_tensor(t) for t in tensors)


def _takes_cuda() -> bool:
    """Whether `flex_attention` computes on this GPU."""
    probe = torch.zeros(1, 1, 16, 64, dtype=torch.bfloat16, device="cuda")
    try:
        attend(probe, probe, probe, None)
    except MaskloomError:
        return False
    return True


def _run(
    qkv: list[torch.Tensor],
    dropout: float,
    causal: bool,
    mask: torch.Tensor | None,
    scale: float | None,
    window: int | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    query, key, value = qkv
    lengths = (query.size(2), key.size(2))
    block_mask = score_mod = None
    if window is not None and _divided.ringed():
        message = f"PyTorch's ring asks for parts of a divided sequence: a window of {window} cannot be kept in them"
        raise MaskLost("context-parallel", message, PLANNED)
    if causal:

        def near(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            kept = q_idx >= kv_idx
            return kept if window is None else kept & (q_idx - kv_idx < window)

        block_mask = create_block_mask(near, None, None, *lengths, device=query.device)
    if mask is not None and mask.dtype == torch.bool:
        block_mask = of_dense(mask, query.size(0), query.size(1), *lengths)
    elif mask is not None:
        score_mod = added(mask, extents_of(query, key))
    return attend(query, key, value, block_mask, score_mod, scale, None, dropout, whole=True)


def _again(
    qkv: list[torch.Tensor],
    d_out: torch.Tensor,
    dropout: float,
    causal: bool,
    mask: torch.Tensor | None,
    scale: float | None,
    window: int | None,
) -> tuple[torch.Tensor, ...]:
    """The gradients, from the forward pass computed again."""
    with _autograd(), torch.enable_grad():
        leaves = [t.detach().requires_grad_() for t in qkv]
        out, _ = _run(leaves, dropout, causal, mask, scale, window)
        return torch.autograd.grad(out, leaves, d_out)


def _autograd() -> Any:
    """A kernel runs below autograd; here it records again."""
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in ("AutogradFunctionality", "AutogradCPU", "AutogradCUDA", "AutogradOther", "ADInplaceOrView"):
        excluded = excluded.remove(getattr(torch._C.DispatchKey, key))
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded)


#: Memory of the lse of forward passes with a window, by its address.
_windows: dict[int, tuple[Any, int]] = {}


def _made(lse: torch.Tensor, window: int | None) -> None:
    """Notes a forward pass with a window."""
    if window is not None:
        for address, (alive, _) in list(_windows.items()):
            if alive() is None:
                _windows.pop(address, None)
        _windows[lse.data_ptr()] = (weakref.ref(lse.untyped_storage()), window)


def _refuse_other(lse: torch.Tensor, causal: bool, window: int | None) -> None:
    """Errors: MaskLost in a backward pass whose forward pass had another window."""
    alive, known = _windows.get(lse.data_ptr(), (lambda: None, None))
    known = known if alive() is not None else None
    if causal and known != window:
        message = f"the forward pass of this call had {_words(known)}, its backward pass has {_words(window)}"
        raise MaskLost("mask-lost", message, 'keep "maskloom" active, with one window, from forward to backward pass')


def _words(window: int | None) -> str:
    return "no window of Maskloom" if window is None else f"a window of {window}"


Pair = tuple[Callable[..., Any], Callable[..., Any]]


def _cpu(window: int | None) -> Pair:
    def forward(
        query: Any,
        key: Any,
        value: Any,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        attn_mask: Any = None,
        scale: Any = None,
    ) -> Any:
        out, lse = _run([query, key, value], dropout_p, is_causal, attn_mask, scale, window)
        _made(lse, window)
        return out, lse

    def backward(
        grad_out: Any,
        query: Any,
        key: Any,
        value: Any,
        out: Any,
        logsumexp: Any,
        dropout_p: float,
        is_causal: bool,
        *,
        attn_mask: Any = None,
        scale: Any = None,
    ) -> Any:
        _refuse_other(logsumexp, is_causal, window)
        return _again([query, key, value], grad_out, dropout_p, is_causal, attn_mask, scale, window)

    return forward, backward


def _cuda(window: int | None) -> Pair:
    def forward(
        query: Any,
        key: Any,
        value: Any,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        return_debug_mask: bool = False,
        *,
        scale: Any = None,
    ) -> Any:
        out, lse = _run([query, key, value], dropout_p, is_causal, None, scale, window)
        _made(lse, window)
        none = torch.empty(0, dtype=torch.int64, device=query.device)
        # PyTorch's own places for a random state, which an attention without dropout has not
        return out, lse, None, None, query.size(2), key.size(2), none, none, none

    def backward(grad_out: Any, query: Any, key: Any, value: Any, *rest: Any, scale: Any = None) -> Any:
        # out, lse, cu_seqlens (2), lengths (2), dropout, causal, random state (2)
        dropout, causal = rest[6], rest[7]
        _refuse_other(rest[1], causal, window)
        return _again([query, key, value], grad_out, dropout, causal, None, scale, window)

    return forward, backward
