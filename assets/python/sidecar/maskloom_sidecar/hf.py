# SPDX-License-Identifier: MIT
"""Models of transformers: the design replaces the model's own pattern; the model's other features are kept.

The pattern of a model (causal, sliding, chunked, both ways) is replaced. Padding, packed sequences, sinks, a soft cap and a
position bias are kept. Unknown features are refused by name; blocks that attend both ways and mask functions of its own are
replaced only where the settings say so. A cache whose prompt was left as it is stays so: a sequence is masked as a whole or
not at all.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.attention.flex_attention import BlockMask, create_mask
from transformers import AttentionInterface, AttentionMaskInterface, cache_utils, masking_utils
from transformers.cache_utils import DynamicCache

from . import layers, positions, settings, verified
from .attention import attend
from .calls import Call
from .grids import exporting, fixed, tracing
from .patched import accepted, of_tokens, planned
from .pickled import Carried
from .plan import Brought, Plan
from .settings import say

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .aliases import Place
    from .counts import Layer
    from .designs import AnyDesign

# keyword arguments of attention without effect here: the design replaces the window, and the cache was read before
_HARMLESS = {
    "sliding_window", "is_causal", "output_attentions", "output_hidden_states", "return_dict", "use_cache", "cache_position",
    "position_ids", "position_embeddings", "past_key_values", "past_key_value", "layer_idx", "num_items_in_batch",
    "deterministic", "cache",
    "max_length_q", "max_length_k", "cu_seq_lens_k", "attention_mask", "implementation", "token_type_ids", "training",
    "output_router_logits", "logits_to_keep", "output_attention_mask",
}  # fmt: skip


class _Creation(threading.local):
    """What is known of the mask that a model creates now: the document of each token, and blocks that attend both ways.

    It belongs to one mask of one model: every creation begins with a new state, also where its mask is not ours.
    """

    def __init__(self) -> None:
        self.ids: Tensor | None = None
        self.blocks: Tensor | None = None
        # of the model's pass: whether a mask of it was left as it is, and whether one of its cache was before
        self.left = False
        self.was_left = False


class _TracedCreation:
    """The same for torch.compile, which cannot trace thread-local values."""

    ids: Tensor | None = None
    blocks: Tensor | None = None
    left = False
    was_left = False


_now, _traced = _Creation(), _TracedCreation()


def _creation() -> _Creation | _TracedCreation:
    return _traced if tracing() else _now


class _Given(BlockMask):
    """A placeholder for a model's mask: the model's features, and the positions of queries and keys.

    It is a BlockMask by name only, because models pass those on unchanged.
    """

    def __init__(
        self,
        own: Any,
        q_offset: Any,
        kv_offset: int,
        end: Any,
        padding: Tensor | None,
        documents: Tensor | None,
        unknown: str | None,
        shape: tuple[int, ...] = (1, 1, 1, 1),
        starts: Tensor | None = None,
        lead: int | None = None,
    ) -> None:
        self.sizes = shape
        # the index of each row's first token that is no padding, and the smallest of them; None: 0 in each
        self.starts = starts
        self.lead = lead
        self.own = own
        self.q_offset = q_offset
        self.kv_offset = kv_offset
        self.end = end
        self.padding = padding
        self.documents = documents
        self.unknown = unknown
        self.made: dict[object, Plan] = {}

    def once(self, key: object, make: Callable[[], Plan]) -> Plan:
        """The plan with a key, made once for each mask: the layers of a model share it."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sizes

    def contiguous(self) -> _Given:
        return self


_names: dict[str, str] = {}


def _name_for(original: str) -> str:
    """The name of our implementation for a model whose own is `original`; registered once.

    It is the same in every process, because pickled models contain it. It omits the original name.
    """
    if original not in _names:
        name = f"maskloom_{zlib.crc32(original.encode())}"
        AttentionInterface.register(name, _attention_beside(original))
        AttentionMaskInterface.register(name, _mask_beside(original))
        _names[original] = name
        _patch_packing()
    return _names[original]


def _patch_packing() -> None:
    """Masks are built from functions; documents and blocks are recorded when their functions are created."""
    begins = getattr(masking_utils, "_preprocess_mask_arguments", None)
    packed = getattr(masking_utils, "packed_sequence_mask_function", None)
    # transformers before 4.54 does not know packing
    if begins is None or packed is None or hasattr(begins, "maskloom"):
        return

    @functools.wraps(begins)
    def _preprocess_mask_arguments(*args: Any, **kwargs: Any) -> Any:
        made = _creation()
        made.ids = made.blocks = None
        return begins(*args, **kwargs)

    def packed_sequence_mask_function(packed_sequence_mask: Tensor) -> Any:
        _creation().ids = packed_sequence_mask
        return packed(packed_sequence_mask)

    cast("Any", _preprocess_mask_arguments).maskloom = begins
    masking_utils._preprocess_mask_arguments = _preprocess_mask_arguments
    masking_utils.packed_sequence_mask_function = packed_sequence_mask_function
    blockwise = getattr(masking_utils, "blockwise_overlay", None)
    if blockwise is not None:

        def blockwise_overlay(block_sequence_ids: Tensor) -> Any:
            _creation().blocks = block_sequence_ids
            return blockwise(block_sequence_ids)

        masking_utils.blockwise_overlay = blockwise_overlay


def _asks(module: nn.Module) -> bool:
    """Whether a layer calls the attention function that transformers selects, with the mask that it was given.

    Other layers call PyTorch's or their own. Layers with an indexer of keys, and Doge's, put a mask of their own together with
    the given one, which must be numbers: the design goes into PyTorch's function, beside that mask.
    """
    files = [file for kind in type(module).__mro__ if (file := sys.modules.get(kind.__module__)) is not None]
    if hasattr(module, "prepare_dynamic_mask") or any(name.endswith("Indexer") for file in files for name in vars(file)):
        return False
    return any(isinstance(value, AttentionInterface) for file in files for value in vars(file).values())


def take_over(model: nn.Module, opener: str | None = None) -> Callable[[], None]:
    """Lets the watched layers of a model call ours; returns a function that undoes it."""
    configs = {}
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if layers.record(module) is not None and hasattr(config, "_attn_implementation") and _asks(module):
            configs[id(config)] = config
    changed = []
    for config in configs.values():
        own = config._attn_implementation
        if own not in _names.values():
            config._attn_implementation = _name_for(own or "eager")
            changed.append((config, own))
    hooks = []
    if changed:
        whole = _WholeCache([own or "eager" for _, own in changed])
        begins, ends = _Begins(), _Ends()
        whole.opener = begins.opener = ends.opener = opener
        hooks = [
            model.register_forward_pre_hook(whole, with_kwargs=True),
            model.register_forward_pre_hook(begins, with_kwargs=True),
            model.register_forward_hook(ends, with_kwargs=True),
        ]

    def undo() -> None:
        for config, own in changed:
            config._attn_implementation = own
        for hook in hooks:
            hook.remove()

    return undo


# transformers before 4.54 has caches without layers
_layer = cast("Callable[[], Any]", getattr(cache_utils, "DynamicLayer", None))
_masks = cast("Callable[[], Any]", AttentionMaskInterface)
_attentions = cast("Callable[[], Any]", AttentionInterface)


class _WholeCache(Carried):
    """Before a model's call: its new cache keeps the keys that a window or chunks would drop, because watched layers need them.

    originals: the original names for ours in the model's configs.
    """

    def __init__(self, originals: list[str]) -> None:
        self.originals = originals

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for original in self.originals:
            _name_for(original)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        config = getattr(module, "config", None)
        if config is None or not _slides(config):
            return None
        cache = _cache_of(kwargs)
        if cache is None:
            wanted = kwargs.get("use_cache")
            wanted = getattr(config, "use_cache", False) if wanted is None else wanted
            if not wanted or module.training:
                return None
            return args, kwargs | {_cache_name(module): DynamicCache()}
        kept: list[Any] = getattr(cache, "layers", None) or []
        empty = isinstance(cache, DynamicCache) and kept and cache.get_seq_length() == 0
        if empty and any(getattr(layer, "is_sliding", False) for layer in kept):
            say("the model's cache keeps all keys, not a sliding window of them: the design may keep older ones")
            cache.layers = [_layer() if getattr(layer, "is_sliding", False) else layer for layer in kept]
        return None


class _Begins(Carried):
    """Before a model's call: whether the prompt in its cache was left as it is. Its next tokens are left, too."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not tracing():
            _now.left = False
            _now.was_left = bool(getattr(_cache_of(kwargs), "maskloom_left", False))


class _Ends(Carried):
    """After a model's call: its cache knows whether a mask of this call was left as it is."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if tracing():
            return
        left = _now.left or _now.was_left
        _now.left = _now.was_left = False
        if not left:
            return
        cache = _cache_of(kwargs)
        names = () if cache is not None else ("cache", "past_key_values")
        cache = next((found for name in names if (found := getattr(output, name, None)) is not None), cache)
        if hasattr(cache, "__dict__"):
            cache.maskloom_left = True


def _cache_of(kwargs: dict[str, Any]) -> Any:
    given = kwargs.get("cache")
    return kwargs.get("past_key_values") if given is None else given


def _cache_name(model: nn.Module) -> str:
    """The argument that takes a cache: `cache` from transformers 5.24 on."""
    return "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"


def _slides(config: Any) -> bool:
    """Whether a cache of the model drops keys: of a sliding window, or of chunks that ended."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    types = getattr(text, "layer_types", None) or ()
    if any(getattr(text, name, None) is not None for name in ("sliding_window", "attention_chunk_size")):
        return True
    return any(kind in t for t in types for kind in ("sliding", "chunked"))


def _mask_beside(original: str) -> Callable[..., _Given]:
    def mask(
        batch_size: Any = None,
        q_length: Any = None,
        kv_length: Any = None,
        q_offset: Any = 0,
        kv_offset: Any = 0,
        attention_mask: Tensor | None = None,
        device: Any = "cpu",
        **more: Any,
    ) -> _Given:
        """transformers calls this once per forward pass."""
        made = _creation()
        documents, blocks = made.ids, made.blocks
        made.ids = made.blocks = None
        places = {"q_length": q_length, "q_offset": q_offset}
        if "cache_position" in more:
            # transformers before 5
            position = more["cache_position"]
            q_length, q_offset = position.shape[0], int(position[0])
            places = {}
        if isinstance(q_offset, torch.Tensor) and not tracing():
            # the position of a cache of fixed size is updated in place
            q_offset = int(q_offset)
        given = {"batch_size": batch_size, "kv_length": kv_length, "kv_offset": kv_offset, "attention_mask": attention_mask}
        make = _masks().get(original)
        own = None if make is None else make(**given, **places, device=device, **more)
        unknown = None
        if blocks is not None:
            unknown = "blocks of tokens that attend both ways (block_sequence_ids)"
        elif more.get("use_vmap"):
            unknown = "its own mask function (or_mask_function or and_mask_function)"
        if settings.replaces():
            unknown = None
        elif unknown is not None:
            made.left = True
            unknown += f" beside its pattern: {settings.REPLACE}=1 puts the design in the place of both"
        elif made.was_left:
            unknown = "a cache whose first tokens were left as they are"
        padding = starts = lead = None
        if attention_mask is not None:
            starts, lead = _starts(attention_mask.to(device=device))
            padding = attention_mask.to(device=device, dtype=torch.bool)
            short = kv_length + kv_offset - padding.shape[-1]
            # a cache of fixed size is longer than the seen tokens
            padding = torch.nn.functional.pad(padding, (0, short)) if short > 0 else padding
            padding = padding[:, None, None, kv_offset : kv_offset + kv_length]
        shape = (batch_size, 1, q_length, kv_length)
        return _Given(own, q_offset, kv_offset, q_offset + q_length, padding, documents, unknown, shape, starts, lead)

    return mask


def _starts(real: Tensor) -> tuple[Tensor | None, int | None]:
    """The index of each row's first token, and the smallest of them; None where every row begins with one. real [B, tokens]."""
    if tracing() and real.device.type != "cpu":
        # a block mask of each batch's padding would be made in every compiled call
        say(
            "compiled: the design's positions count padding at the left as tokens: pad at the right, or compile without padding"
        )
        return None, None
    starts = real.long().argmax(dim=-1)
    if tracing() or exporting():
        return starts, 0
    values = starts.tolist()
    return (starts, min(values)) if any(values) else (None, None)


def _attention_beside(original: str) -> Callable[..., tuple[Tensor, Tensor | None]]:
    def attention(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        scaling: float | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> Any:
        """transformers calls this in each layer, on [B, H, S, D]."""
        given = attention_mask if isinstance(attention_mask, _Given) else _without_places(attention_mask, query, key)
        layer = layers.record(module)
        out = None
        if layer is not None:
            out = _instead(layer, module, query, key, value, given, scaling, dropout, kwargs)
        if out is None:
            with layers.hidden():
                run = _own(original, module)
                return run(module, query, key, value, given.own, scaling=scaling, dropout=dropout, **kwargs)
        return out.transpose(1, 2).contiguous(), None

    return attention


def _own(original: str, module: nn.Module) -> Callable[..., Any]:
    """The model's own implementation."""
    if original != "eager":
        return cast("Callable[..., Any]", _attentions()[original])
    return cast("Callable[..., Any]", sys.modules[type(module).__module__].eager_attention_forward)


def _without_places(mask: Any, query: Tensor, key: Tensor) -> _Given:
    """A mask that is not ours: the caller's own, or none."""
    q_len, kv_len = fixed(query.shape[2]), fixed(key.shape[2])
    is_mask = mask is None or isinstance(mask, torch.Tensor)
    unknown = None if is_mask else f"a {type(mask).__name__} as its mask, which the runtime does not know"
    # the queries are the newest tokens
    return _Given(mask, max(kv_len - q_len, 0), 0, kv_len, mask if is_mask else None, None, unknown)


def _instead(
    layer: Layer,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    given: _Given,
    scaling: float | None,
    dropout: float,
    kwargs: dict[str, Any],
) -> Tensor | None:
    """The design's attention, or None."""
    batch, heads, q_len, kv_len = (fixed(n) for n in (*query.shape[:3], key.shape[2]))
    documents = given.documents
    if documents is None and kwargs.get("cu_seq_lens_q") is not None and layers.current().layer is not None:
        documents = positions.documents_of(kwargs["cu_seq_lens_q"], q_len)
    brought = Brought(
        own=given.padding, bias=kwargs.get("position_bias"), softcap=kwargs.get("softcap"), sinks=kwargs.get("s_aux")
    )
    call = of_tokens(query, key) or _call(layer, module, given, q_len, kv_len, kwargs)
    padded = call.place is not None and given.starts is not None
    plan = planned(layer, call, q_len, kv_len, batch, heads, query.device, given.lead if padded else None)
    if plan is None:
        return None
    plan = _checked(plan, brought, call.place)
    if not accepted(layer, plan, dropout):
        return None
    by_hand = verified.by_hand_now()
    whole = plan
    if documents is not None:
        if by_hand:
            return positions.packed_by_hand(plan, documents, query, key, value, scaling, brought)
        plan = given.once(("packed", plan.taken.key), lambda: positions.packed(whole, documents, q_len, kv_len))
    elif padded and given.starts is not None:
        starts = given.starts
        if by_hand:
            return positions.padded_by_hand(plan, starts, query, key, value, scaling, brought)
        key_here = ("padded", plan.taken.key, q_len, kv_len, plan.place)
        plan = given.once(key_here, lambda: positions.padded(whole, starts, q_len, kv_len))
    elif by_hand:
        return verified.attend(plan, query, key, value, scaling, brought)
    return attend(plan, query, key, value, scaling, brought)


def _call(layer: Layer, module: nn.Module, given: _Given, q_len: int, kv_len: int, kwargs: dict[str, Any]) -> Call:
    """What a call is; a reason where it cannot have a design."""
    unknown = given.unknown or _unknown(kwargs)
    if unknown is not None:
        return Call(reason=f"left as it is: the model brings {unknown}")
    if isinstance(given.q_offset, torch.Tensor):
        reason = "a compiled model with a cache of fixed size: compile without the cache, or generate uncompiled"
        return Call(reason=f"left as it is: {reason}")
    if bool(getattr(module, "is_cross_attention", False)) or layers.crosses_by_name(layer.name, module):
        return Call(crosses=True, aside=not layer.of_cross_attention())
    # the mask is created for all layers; the cache of a layer may be shorter or longer
    return Call(place=(fixed(given.q_offset), fixed(given.kv_offset), fixed(given.end)))


def _unknown(kwargs: dict[str, Any]) -> str | None:
    known = _HARMLESS | {"position_bias", "softcap", "s_aux", "cu_seq_lens_q"}
    for name, value in kwargs.items():
        if name not in known and value is not None and value is not False:
            return f"`{name}`, which the runtime does not know"
    return None


def _checked(plan: Plan, brought: Brought, place: Place | None) -> Plan:
    """The plan, or one with the reason why such a call cannot have it."""
    if plan.design is None:
        return plan
    if brought.bias is not None and plan.score_mod is not None and not bool_constant(brought.bias):
        reason = (
            "left as it is: the model adds a position bias and the design has a score_mod: which one counts is not said"
        )
        return Plan(None, reason=reason)
    if brought.softcap is not None and plan.score_mod is not None:
        say(f"the design's score_mod takes the place of the model's soft cap of {brought.softcap}")
        brought.softcap = None
    if place is not None and place[1] > 0 and _needs_dropped(plan.design, place):
        reason = (
            "left as it is: the model's sliding cache has dropped keys that the design keeps: pass a DynamicCache() of "
            "transformers, made without the model's config, as past_key_values (as cache from transformers 5.24 on)"
        )
        return Plan(None, reason=reason)
    return plan


def bool_constant(bias: Tensor) -> bool:
    """Whether a position bias is the zero tensor that T5 passes instead of none."""
    return not tracing() and not bias.requires_grad and not bool(bias.any())


def _needs_dropped(design: AnyDesign, place: Place) -> bool:
    """Whether the design keeps any cell of this call's queries with a key before kv_offset."""
    q_offset, kv_offset, end = place

    def look() -> bool:
        mask_mod = design.mods(torch.device("cpu"))[0]
        if mask_mod is None:
            return True

        def moved(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
            return mask_mod(b, h, q_idx + q_offset, kv_idx)

        cells = create_mask(
            moved, design.module.BATCH, design.module.HEADS, max(end - q_offset, 1), kv_offset, device="cpu"
        )
        return bool(cells.any())

    return bool(design.keep(("dropped", *place), look))
