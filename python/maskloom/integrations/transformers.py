"""transformers: attention and masks by both of its registries.

    import maskloom.integrations.transformers as plugged

    plugged.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="maskloom")

The model's own pattern (causal, sliding, chunked, packed, both ways), padding, sinks, soft cap and position bias are
kept.
`register("near", mask_mod=...)` gives an implementation whose mask takes the pattern's place.

Invariant: a name is in both registries, and a causal call whose mask did not arrive is an error. Must not know models.
"""

from __future__ import annotations

import importlib.metadata
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from .. import _divided
from .._call import uncompiled
from .._functions import Mod
from .._lists import version
from .._mods import traced
from ..block_mask import create_block_mask
from ..errors import ArgumentError, DividedWarning, MaskloomError
from ._calls import PLANNED, MaskLost, added, attend, capped, extents_of, of_dense, refuse_divided

__all__ = ["register"]

# keyword arguments without effect here: the mask has the window and packing, and the cache was read before
_HARMLESS = {
    *(
        "sliding_window",
        "is_causal",
        "output_attentions",
        "output_hidden_states",
        "return_dict",
        "use_cache",
        "cache",
        "training",
    ),
    *(
        "cache_position",
        "position_ids",
        "position_embeddings",
        "past_key_values",
        "past_key_value",
        "layer_idx",
        "deterministic",
    ),
    *(
        "num_items_in_batch",
        "cu_seq_lens_q",
        "cu_seq_lens_k",
        "max_length_q",
        "max_length_k",
        "kernel_options",
        "logits_to_keep",
    ),
    *("token_type_ids", "output_router_logits", "implementation", "attention_mask"),
}


def register(name: str = "maskloom", mask_mod: Mod | None = None, score_mod: Mod | None = None) -> str:
    """Registers an implementation of attention; returns its name, for `attn_implementation`.

    Args:
        name: what `attn_implementation` is to be. It may be registered again.
        mask_mod: `(b, h, q_idx, kv_idx) -> bool`, in place of each layer's pattern. Positions count from each row's
            first token
            that is no padding, and in packed documents from each document's beginning. None keeps the pattern.
        score_mod: `(score, b, h, q_idx, kv_idx) -> score`, after the model's soft cap and position bias. Positions
            are the call's.

    Raises:
        ArgumentError: the name is one of transformers' own.
        MaskloomError: this transformers has not both registries (before 4.53), or there is none.
    """
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
    except ImportError as why:
        message = f"{_installed()} has no registry of attention and of masks: {why}"
        raise MaskloomError("transformers", message, "use transformers 4.53 or newer") from None

    own = {"eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention"}
    if name in own:
        raise ArgumentError("name", f"{name!r} is an implementation of transformers", "choose another name")
    divided = _divided.of_process()
    if divided is not None:
        warnings.warn(f"{divided}; calls of {name!r} will be refused: {PLANNED}", DividedWarning, stacklevel=2)
    AttentionInterface.register(name, _attention(score_mod, mask_mod is not None))
    AttentionMaskInterface.register(name, _mask(mask_mod))
    return name


def _installed() -> str:
    try:
        return f"transformers {importlib.metadata.version('transformers')}"
    except importlib.metadata.PackageNotFoundError:
        return "this Python, without transformers,"


def _mask(own: Mod | None) -> Any:
    @uncompiled
    def mask(
        batch_size: Any = None,
        q_length: Any = None,
        kv_length: Any = None,
        q_offset: Any = 0,
        kv_offset: Any = 0,
        mask_function: Any = None,
        attention_mask: torch.Tensor | None = None,
        device: Any = "cpu",
        **more: Any,
    ) -> flex.BlockMask:
        """transformers calls this once for each pattern of a forward pass."""
        config = more.get("config")
        if config is not None and _puts_together(type(config).__module__.replace(".configuration_", ".modeling_")):
            raise _not_alone(type(config).__name__)
        if "cache_position" in more:  # transformers before 5
            positions = more["cache_position"]
            q_length, q_offset = positions.shape[0], int(positions[0])
        q_offset = int(q_offset)
        padding = None
        if attention_mask is not None:
            real = attention_mask.to(device=device, dtype=torch.bool)
            short = kv_length + kv_offset - real.size(-1)
            real = torch.nn.functional.pad(real, (0, short)) if short > 0 else real
            padding = None if bool(real.all()) else real
        pattern = mask_function
        if own is not None:
            pattern = _in_place(own, mask_function, padding, bool(more.get("use_vmap")))
        mod = _whole(pattern, padding, q_offset, kv_offset)
        per_batch, per_head = traced(mod, "mask_mod", device=torch.device(device))[0].depends()
        heads = more["config"].num_attention_heads if per_head else None
        batch = batch_size if per_batch else None
        made = create_block_mask(mod, batch, heads, q_length, kv_length, device=device)
        made.__dict__["_maskloom_packed"] = "packed_sequence_mask_function" in dict(_parts(mask_function))
        return made

    return mask


def _with_documents(mask: Any, starts: torch.Tensor, query: torch.Tensor, key: torch.Tensor, own: bool) -> Any:
    """A model's mask with packed documents, which came as `cu_seq_lens_q` alone. They are in the mask where the model
    found them by its position_ids; not all models look.

    Errors: MaskLost where a mask cannot be made of them."""
    if starts.numel() < 3 or getattr(mask, "_maskloom_packed", False):
        return mask
    tokens = query.size(2)
    if own or torch.compiler.is_compiling() or not isinstance(mask, flex.BlockMask) or key.size(2) != tokens:
        message = "packed documents arrived as cu_seq_lens_q, and the mask that arrived does not have them"
        hint = "give the model position_ids that begin at 0 in each document, and no attention_mask"
        raise MaskLost("mask-lost", message, hint)
    known = mask.__dict__.get("_maskloom_documents")
    if known is not None and known[0] is starts and known[1] == version(starts) != -1:
        return known[2]
    document = torch.bucketize(torch.arange(tokens, device=starts.device), starts[1:].contiguous(), right=True)
    pattern = mask.mask_mod

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return pattern(b, h, q_idx, kv_idx) & (document[q_idx] == document[kv_idx])

    batch, heads = mask.kv_num_blocks.shape[:2]
    made = create_block_mask(mask_mod, batch, heads, tokens, tokens, device=query.device)
    mask.__dict__["_maskloom_documents"] = starts, version(starts), made
    return made


def _whole(pattern: Mod, padding: torch.Tensor | None, q_offset: int, kv_offset: int) -> Mod:
    """A pattern and padding at the positions of a call."""

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        q_idx, kv_idx = q_idx + q_offset, kv_idx + kv_offset
        kept = pattern(b, h, q_idx, kv_idx)
        return kept if padding is None else kept & padding[b, kv_idx]

    return mask_mod


def _in_place(own: Mod, pattern: Any, padding: torch.Tensor | None, custom: bool) -> Mod:
    """A user's mask in place of a model's pattern. Errors: MaskloomError where the model's mask is more than a
    pattern."""
    parts = dict(_parts(pattern))
    if custom or "blockwise_overlay" in parts:
        what = (
            "blocks of tokens that attend both ways" if "blockwise_overlay" in parts else "a mask function of its own"
        )
        raise MaskloomError(
            "pattern", f"the model brings {what}", "register without mask_mod, which keeps the model's mask"
        )
    documents = parts.get("packed_sequence_mask_function")
    if documents is not None:
        index = torch.arange(documents.size(-1), device=documents.device)
        first = torch.ones_like(documents, dtype=torch.bool)
        first[:, 1:] = documents[:, 1:] != documents[:, :-1]
        at = index - torch.where(first, index, 0).cummax(-1).values

        def packed(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            same = documents[b, q_idx] == documents[b, kv_idx]
            return same & own(b, h, at[b, q_idx], at[b, kv_idx])

        return packed
    if padding is None or bool(padding[:, 0].all()):
        return own
    starts = padding.long().argmax(-1)

    def padded(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        first = starts[b]
        inside = (q_idx >= first) & (kv_idx >= first)
        return inside & own(b, h, (q_idx - first).clamp(min=0), (kv_idx - first).clamp(min=0))

    return padded


def _parts(function: Any) -> Iterator[tuple[str, Any]]:
    """The tensors that parts of transformers' mask function have in their closures, by the names of the parts."""
    closure = getattr(function, "__closure__", None) or ()
    for cell in closure:
        held = cell.cell_contents
        if isinstance(held, torch.Tensor):
            yield function.__qualname__.split(".", 1)[0], held
        for part in held if isinstance(held, tuple) else (held,):
            if callable(part):
                yield from _parts(part)


def _puts_together(name: str) -> bool:
    """Whether layers of a file of transformers put a mask of their own together with the one that they are given, as
    numbers: those with an indexer of keys, and Doge's. Some of them pass on their own alone where the other is none."""
    kinds = vars(sys.modules[name]).items() if name in sys.modules else ()
    return any(key.endswith("Indexer") or hasattr(kind, "prepare_dynamic_mask") for key, kind in kinds)


def _not_alone(name: str) -> MaskLost:
    message = f"layers of {name} choose keys themselves, by numbers that they add to the model's mask"
    return MaskLost("mask-lost", message, 'use attn_implementation="sdpa" or "eager" for this model')


def _across(module: Any) -> bool:
    """Whether a layer may attend to another sequence, where transformers gives no mask and a pattern has no meaning."""
    if any(getattr(module, name, False) for name in ("is_cross_attention", "is_cross_attn")):
        return True
    config = getattr(module, "config", None)
    both = any(getattr(config, name, False) for name in ("is_encoder_decoder", "add_cross_attention"))
    return both and bool(getattr(module, "is_decoder", True))


def _attention(own: Mod | None, masked: bool = False) -> Any:
    def attention(
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: Any,
        scaling: float | None = None,
        dropout: float = 0.0,
        softcap: float | None = None,
        s_aux: torch.Tensor | None = None,
        position_bias: torch.Tensor | None = None,
        **more: Any,
    ) -> tuple[torch.Tensor, None]:
        """transformers calls this in each layer, on [B, H, S, D]."""
        # where accelerate took the mask away, it is said who did
        refuse_divided(query, key, module=module if attention_mask is None else None)
        unknown = [
            name for name, given in more.items() if name not in _HARMLESS and given is not None and given is not False
        ]
        if unknown:
            message = f"{type(module).__name__} gives its attention {', '.join(unknown)}, which Maskloom does not know"
            raise MaskloomError("unknown-argument", message, 'use attn_implementation="eager" for this model')
        q_len, kv_len = query.size(2), key.size(2)
        score_mod = own
        block_mask = attention_mask
        if isinstance(attention_mask, torch.Tensor):
            # a mask that the caller made, or an older model's
            if masked and _puts_together(type(module).__module__):
                raise _not_alone(type(module).__name__)
            mask = attention_mask[..., :kv_len]
            block_mask = None
            if mask.dtype == torch.bool:
                block_mask = of_dense(mask, query.size(0), query.size(1), q_len, kv_len)
            else:
                score_mod = added(mask, extents_of(query, key), score_mod)
        elif attention_mask is None:
            causal = more.get("is_causal")
            causal = getattr(module, "is_causal", False) if causal is None else causal
            if causal and q_len > 1:
                message = f"no mask arrived in a causal layer, {type(module).__name__}, over {q_len} x {kv_len} tokens"
                raise MaskLost("mask-lost", message, "give the model its attention_mask, or use its own implementation")
            if masked and q_len == kv_len > 1 and not _across(module):
                message = f"{type(module).__name__} asks for no mask: the one of mask_mod did not arrive"
                hint = (
                    "give this part of the model another implementation: attn_implementation={'vision_config': 'sdpa'}"
                )
                raise MaskLost("mask-lost", message, hint)
        starts = more.get("cu_seq_lens_q")
        if starts is not None and not isinstance(attention_mask, torch.Tensor):
            block_mask = _with_documents(block_mask, starts, query, key, masked)
        if position_bias is not None:
            score_mod = added(position_bias[..., :kv_len], extents_of(query, key), score_mod)
        if softcap is not None:
            score_mod = capped(softcap, score_mod)
        out, _ = attend(query, key, value, block_mask, score_mod, scaling, s_aux, dropout)
        return out.transpose(1, 2).contiguous(), None

    return attention
