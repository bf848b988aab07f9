"""What a call of `flex_attention` may be given: refusals in words, before anything is computed.

Invariant: every refusal names the argument. Must not know who computes.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn.attention import flex_attention as flex

from . import _divided
from .errors import ArgumentError, DividedWarning, a_kind

#: Numbers of a head at most.
HEAD_DIM = 256
DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


def known_lengths(block_mask: flex.BlockMask) -> tuple[int, int] | None:
    """Queries and keys that a block mask was made for. None: PyTorch 2.5, which keeps whole blocks alone, made it."""
    lengths = getattr(block_mask, "seq_lengths", None)
    if lengths is None:
        lengths = block_mask.__dict__.get("_maskloom_lengths")
    return None if lengths is None else (int(lengths[0]), int(lengths[1]))


def lengths(block_mask: flex.BlockMask) -> tuple[int, int]:
    """The same; where they are not known, those of its whole blocks."""
    known = known_lengths(block_mask)
    if known is not None:
        return known
    counts, block = block_mask.kv_num_blocks, block_mask.BLOCK_SIZE
    # not of kv_indices, which a LongBlockMask would make for it
    columns = block_mask.q_num_blocks if block_mask.q_num_blocks is not None else block_mask.kv_indices
    return counts.size(-1) * block[0], columns.size(-1) * block[1]


def check_aux(asked: Any) -> None:
    """Errors: ArgumentError where this PyTorch has no AuxRequest, or it is none."""
    if not hasattr(flex, "AuxOutput"):
        message = f"return_aux is not known to torch {torch.__version__}"
        raise ArgumentError("torch-version", message, "pass return_lse=True, or use PyTorch 2.9 or newer")
    if not (hasattr(asked, "lse") and hasattr(asked, "max_scores")):
        message = f"return_aux is {a_kind(asked)}"
        raise ArgumentError("aux", message, "pass an AuxRequest of torch.nn.attention.flex_attention, or None")


def cast(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """As autocast asks for."""
    for name, tensor in zip(("query", "key", "value"), tensors):
        if not isinstance(tensor, torch.Tensor):
            raise ArgumentError("not-a-tensor", f"{name} is {a_kind(tensor)}", "pass a tensor [B, H, S, D]")
    kind = tensors[0].device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return tensors
    if any(t.dtype not in DTYPES for t in tensors):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(tensor.to(dtype) for tensor in tensors)


def check_transforms(name: str, tensor: torch.Tensor) -> None:
    """Errors: ArgumentError where a transform or tracer sees the tensor, which this package does not know."""
    if torch._C._functorch.is_batchedtensor(tensor):
        raise ArgumentError("vmap", f"{name} is inside torch.vmap", "pass the batch as B: attention has it already")
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:  # type: ignore[no-untyped-call]
        message = f"{name} has a tangent (torch.func.jvp, forward-mode differentiation): flex_attention has none"
        raise ArgumentError("forward-mode", message, "use torch.autograd.grad, or another attention there")
    if torch._C._functorch.is_gradtrackingtensor(tensor):
        message = f"{name} is inside torch.func.grad, vjp or jacrev, which flex_attention does not know"
        raise ArgumentError("functorch", message, "use torch.autograd.grad")
    if torch._C._get_tracing_state() is not None:
        message = f"{name} is traced by torch.jit.trace: its graph would not hold the mask"
        raise ArgumentError("tracing", message, "use torch.compile")


def warn_divided() -> None:
    """Says once that a masked call is made where another library has divided the sequence over ranks."""
    why = _divided.region()
    # a step of the ring brings its own mask
    if why is None or why in _WARNED or _divided.ringed():
        return
    _WARNED.add(why)
    hint = "a block mask of this rank's tokens counts positions from its first one: use maskloom.plan_context_parallel"
    warnings.warn(f"{why}; {hint}", DividedWarning, stacklevel=3)


_WARNED: set[str] = set()


def no_second_order() -> None:
    """Errors: ArgumentError in a backward pass whose own gradient is asked for."""
    if torch.is_grad_enabled():
        raise ArgumentError(
            "double-backward",
            "a gradient of a gradient is asked for (create_graph=True): flex_attention has none",
            "leave create_graph out, or use another attention there",
        )


def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gqa: bool, options: object) -> None:
    for name, tensor in (("query", q), ("key", k), ("value", v)):
        if not torch.compiler.is_compiling():
            check_transforms(name, tensor)
        placements = getattr(tensor, "placements", None)
        if isinstance(placements, tuple):
            message = f"{name} is a DTensor ({', '.join(map(str, placements))}), which flex_attention does not know"
            hint = f"pass {name}.to_local() where heads or batch are divided, plan_context_parallel for divided tokens"
            raise ArgumentError("dtensor", message, hint)
        if tensor.is_nested or tensor.layout is not torch.strided:
            raise ArgumentError(
                "tensor-layout", f"{name} is nested or sparse", "pad it, or pack documents into one row"
            )
        if tensor.device.type not in ("cpu", "cuda", "meta"):
            raise ArgumentError(
                "device",
                f"{name} is on {tensor.device}: attention is computed on CPUs and NVIDIA GPUs",
                "use torch.nn.attention.flex_attention.flex_attention there",
            )
        if tensor.device != q.device:
            message = f"query is on {q.device} and {name} on {tensor.device}"
            raise ArgumentError("device", message, f"{name}.to(query.device)")
        if tensor.is_cuda and torch.version.hip is not None:
            message = f"{name} is on an AMD GPU: the kernels are for NVIDIA's"
            raise ArgumentError("device", message, "use torch.nn.attention.flex_attention.flex_attention there")
        if tensor.dim() != 4:
            message = f"NYI: query, key, and value must be 4D tensors; {name} has {tensor.dim()} dimensions"
            raise ArgumentError("dimensions", message, "pass [B, H, S, D]")
        if tensor.dtype not in DTYPES:
            raise ArgumentError("dtype", f"{name} is {tensor.dtype}", "pass float32, bfloat16 or float16")
        if tensor.is_cuda and tensor.dtype == torch.float32:
            message = f"{name} is torch.float32: on a GPU the kernels compute products of 16-bit numbers"
            raise ArgumentError("dtype", message, f"{name}.to(torch.bfloat16), or torch.autocast")
        if tensor.dtype != q.dtype:
            message = f"query, key and value must have one dtype; {name} is {tensor.dtype}, query {q.dtype}"
            raise ArgumentError("dtype", message, f"{name}.to({q.dtype})")
    if options is not None and not isinstance(options, dict):
        raise ArgumentError("kernel-options", f"kernel_options is {a_kind(options)}", "pass a dict or None")
    for name, tensor in (("query", q), ("key", k)):
        if 0 in tensor.shape[:3]:
            message = f"{name} is {tuple(tensor.shape)}: a batch, a head and a token are the least"
            raise ArgumentError("shape", message, "leave the call out where nothing is attended to")
    if not (0 < q.size(-1) <= HEAD_DIM and 0 < v.size(-1) <= HEAD_DIM):
        message = f"query, key and value have E={q.size(-1)} and Ev={v.size(-1)}"
        raise ArgumentError("head-dim", message, "pass heads of 1 to 256 numbers")
    if q.size(-1) != k.size(-1):
        sizes = f"E={q.size(-1)} and E={k.size(-1)}"
        message = f"Expect query and key/value to have the same embedding dimension but got {sizes}."
        raise ArgumentError("head-dim", message, "project them to one size")
    if k.size(0) != v.size(0) or k.size(1) != v.size(1) or k.size(2) != v.size(2):
        message = f"key is {tuple(k.shape)} and value {tuple(v.shape)}: B, H and S must agree"
        raise ArgumentError("shape", message, "pass value [B, Hkv, KV_LEN, Ev]")
    if k.size(0) not in (1, q.size(0)):
        message = f"query has batch {q.size(0)} and key {k.size(0)}"
        raise ArgumentError("shape", message, "pass equal batches, or key and value of batch 1")
    heads, kv_heads = q.size(1), k.size(1)
    if heads != kv_heads and not gqa:
        message = (
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
        raise ArgumentError("gqa-heads", message, "pass enable_gqa=True")


def _anywhere(block_mask: Any, q: torch.Tensor) -> bool:
    """Whether the lists are not looked at: those of create_block_mask are the mask_mod's."""
    return q.is_cuda and bool(getattr(block_mask, "_maskloom", False))


def check_block_mask(block_mask: Any, q: torch.Tensor, k: torch.Tensor) -> None:
    if not isinstance(block_mask, flex.BlockMask):
        raise ArgumentError(
            "block-mask", f"block_mask is {a_kind(block_mask)}", "make one with maskloom.create_block_mask"
        )
    counts = block_mask.kv_num_blocks
    if counts.device != q.device and not counts.is_meta and not q.is_meta and not _anywhere(block_mask, q):
        hint = f"block_mask.to('{q.device}')"
        raise ArgumentError("device", f"block_mask is on {counts.device}, query on {q.device}", hint)
    used = (q.size(2), k.size(2))
    made, wanted = known_lengths(block_mask), used
    if made is None:  # PyTorch 2.5 names blocks of 128 in a block mask of other blocks, too
        made = lengths(block_mask)
        wanted = (_whole(used[0], block_mask.BLOCK_SIZE[0]), _whole(used[1], block_mask.BLOCK_SIZE[1]))
    if made != wanted:
        word = "smaller" if made[0] < used[0] or made[1] < used[1] else "larger"
        message = f"block_mask was created for a {word} length than you're using it for: {made} and {used}"
        raise ArgumentError("block-mask-length", message, "make a block mask for these lengths")
    own = tuple(counts.shape[:-1])
    for name, size, extent in zip(("B", "H"), own[-2:], q.shape[:2]):
        if size not in (1, extent):
            message = f"block_mask has {name}={size}, query {name}={extent}"
            raise ArgumentError("block-mask-shape", message, f"make it with {name}={extent} or None")


def _whole(tokens: int, block: int) -> int:
    return -(-tokens // block) * block


def number(scale: object) -> float:
    if isinstance(scale, torch.Tensor) and scale.requires_grad and torch.is_grad_enabled():
        message = "scale is a tensor that requires a gradient, and would get none"
        raise ArgumentError("scale", message, "pass query * scale, and scale=1.0")
    try:
        found = float(scale)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ArgumentError("scale", f"scale is {a_kind(scale)}", "pass a number or None") from None
    if not math.isfinite(found):
        raise ArgumentError("scale", f"scale is {found}", "pass a finite number, or None for 1 / sqrt(E)")
    return found
