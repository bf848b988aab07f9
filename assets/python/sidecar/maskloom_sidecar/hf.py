"""transformers' seam: the design replaces the model's own pattern; the model's other features are kept.

The pattern of a model (causal, sliding, chunked, both ways) is replaced. Padding, packed sequences, sinks, a soft cap and a
position bias are kept. Unknown features are refused by name.
"""

from __future__ import annotations

import inspect
import sys
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.attention.flex_attention import BlockMask, create_mask
from transformers import AttentionInterface, AttentionMaskInterface, cache_utils, masking_utils
from transformers.cache_utils import DynamicCache

from . import layers, proof
from .attention import Brought, Plan, attend
from .carried import Carried
from .grids import fixed, tracing
from .planning import block_mask_of, plan_for
from .seams import accepted
from .settings import say

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .designs import AnyDesign
    from .kinds import Place
    from .tally import Layer

# keyword arguments of attention without effect here: the design replaces the window, and the cache was read before
_HARMLESS = {
    "sliding_window", "is_causal", "output_attentions", "output_hidden_states", "return_dict", "use_cache", "cache_position",
    "position_ids", "position_embeddings", "past_key_values", "past_key_value", "layer_idx", "num_items_in_batch",
    "deterministic", "cache",
    "max_length_q", "max_length_k", "cu_seq_lens_k", "attention_mask", "implementation", "token_type_ids", "training",
    "output_router_logits", "logits_to_keep", "output_attention_mask",
}  # fmt: skip


class _Packing:
    """The document of each token, while a mask is being created."""

    ids: Tensor | None = None
    blockwise = False


_packing = _Packing()


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
    ) -> None:
        self.sizes = shape
        self.own = own
        self.q_offset = q_offset
        self.kv_offset = kv_offset
        self.end = end
        self.padding = padding
        self.documents = documents
        self.unknown = unknown
        self.made: dict[str, Plan] = {}

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
    """Masks are built from functions; packed documents are recorded when their function is created."""
    packed = getattr(masking_utils, "packed_sequence_mask_function", None)
    # transformers before 4.54 does not know packing
    if packed is None or hasattr(packed, "maskloom"):
        return

    def packed_sequence_mask_function(packed_sequence_mask: Tensor) -> Any:
        _packing.ids = packed_sequence_mask
        return packed(packed_sequence_mask)

    cast("Any", packed_sequence_mask_function).maskloom = packed
    masking_utils.packed_sequence_mask_function = packed_sequence_mask_function
    blockwise = getattr(masking_utils, "blockwise_overlay", None)
    if blockwise is not None:

        def blockwise_overlay(block_sequence_ids: Tensor) -> Any:
            _packing.blockwise = True
            return blockwise(block_sequence_ids)

        masking_utils.blockwise_overlay = blockwise_overlay


def _asks(module: nn.Module) -> bool:
    """Whether a layer calls the attention function that transformers selects. Other layers call PyTorch's or their own."""
    files = (sys.modules.get(kind.__module__) for kind in type(module).__mro__)
    return any(isinstance(value, AttentionInterface) for file in files if file is not None for value in vars(file).values())


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
    hook = None
    if changed:
        whole = _WholeCache([own or "eager" for _, own in changed])
        whole.opener = opener
        hook = model.register_forward_pre_hook(whole, with_kwargs=True)

    def undo() -> None:
        for config, own in changed:
            config._attn_implementation = own
        if hook is not None:
            hook.remove()

    return undo


# transformers before 4.54 has caches without layers
_layer = cast("Callable[[], Any]", getattr(cache_utils, "DynamicLayer", None))
_masks = cast("Callable[[], Any]", AttentionMaskInterface)
_attentions = cast("Callable[[], Any]", AttentionInterface)


class _WholeCache(Carried):
    """Before a model's call: its new cache keeps the keys that a sliding window would drop, because watched layers need them.

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
        given = kwargs.get("cache")
        cache = kwargs.get("past_key_values") if given is None else given
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


def _cache_name(model: nn.Module) -> str:
    """The argument that takes a cache: `cache` from transformers 5.24 on."""
    return "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"


def _slides(config: Any) -> bool:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    types = getattr(text, "layer_types", None) or ()
    return getattr(text, "sliding_window", None) is not None or any("sliding" in t for t in types)


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
        documents, _packing.ids = _packing.ids, None
        blockwise, _packing.blockwise = _packing.blockwise, False
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
        if blockwise:
            unknown = "blocks of tokens that attend both ways (block_sequence_ids)"
        elif more.get("use_vmap"):
            unknown = "its own mask function (or_mask_function or and_mask_function)"
        padding = None
        if attention_mask is not None:
            padding = attention_mask.to(device=device, dtype=torch.bool)
            short = kv_length + kv_offset - padding.shape[-1]
            # a cache of fixed size is longer than the seen tokens
            padding = torch.nn.functional.pad(padding, (0, short)) if short > 0 else padding
            padding = padding[:, None, None, kv_offset : kv_offset + kv_length]
        shape = (batch_size, 1, q_length, kv_length)
        return _Given(own, q_offset, kv_offset, q_offset + q_length, padding, documents, unknown, shape)

    return mask


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
    unknown = None if is_mask else f"a {type(mask).__name__} as its mask"
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
    unknown = given.unknown or _unknown(kwargs)
    if unknown is not None:
        reason = f"left as it is: the model brings {unknown}, which the runtime does not know"
        accepted(layer, Plan(None, reason=reason), dropout)
        return None
    batch, heads, q_len, kv_len = fixed(query.shape[0]), fixed(query.shape[1]), fixed(query.shape[2]), fixed(key.shape[2])
    documents = given.documents
    if documents is None and kwargs.get("cu_seq_lens_q") is not None and layers.current().layer is not None:
        documents = _documents_of(kwargs["cu_seq_lens_q"], q_len)
    brought = Brought(
        own=given.padding, bias=kwargs.get("position_bias"), softcap=kwargs.get("softcap"), sinks=kwargs.get("s_aux")
    )
    if isinstance(given.q_offset, torch.Tensor):
        reason = "left as it is: a compiled model with a cache of fixed size: compile without the cache, or generate uncompiled"
        accepted(layer, Plan(None, reason=reason), dropout)
        return None
    crossing = bool(getattr(module, "is_cross_attention", False)) or layers.crosses_by_name(layer.name, module)
    place = None if crossing else _place(given, q_len, kv_len)
    plan = plan_for(layer, q_len, kv_len, batch, heads, query.device, crossing, place)
    plan = _checked(plan, brought, place)
    if not accepted(layer, plan, dropout):
        return None
    if documents is not None:
        plan = _packed(plan, documents, q_len, kv_len, given)
    if proof.by_hand_now():
        return _by_hand(plan, documents, query, key, value, scaling, brought)
    return attend(plan, query, key, value, scaling, brought)


def _unknown(kwargs: dict[str, Any]) -> str | None:
    known = _HARMLESS | {"position_bias", "softcap", "s_aux", "cu_seq_lens_q"}
    for name, value in kwargs.items():
        if name not in known and value is not None and value is not False:
            return f"`{name}`"
    return None


def _place(given: _Given, q_len: int, kv_len: int) -> Place | None:
    """(q_offset, kv_offset, end) of a call that is a part of a longer sequence, or has a longer cache; None: the whole."""
    # the mask is created for all layers; the cache of a layer may be shorter or longer
    q_offset, end = fixed(given.q_offset), fixed(given.end)
    kv_offset = fixed(given.kv_offset)
    return None if (q_offset, kv_offset, end) == (0, 0, q_len) and q_len == kv_len else (q_offset, kv_offset, end)


def _checked(plan: Plan, brought: Brought, place: Place | None) -> Plan:
    """The plan, or one with the reason why such a call cannot have it."""
    if plan.design is None:
        return plan
    if brought.bias is not None and plan.score_mod is not None and not bool_constant(brought.bias):
        reason = "left as it is: the model adds a position bias and the design has a score_mod: which one counts is not said"
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

        cells = create_mask(moved, design.module.BATCH, design.module.HEADS, max(end - q_offset, 1), kv_offset, device="cpu")
        return bool(cells.any())

    return bool(design.keep(("dropped", *place), look))


def _documents_of(boundaries: Tensor, length: int) -> Tensor:
    """cu_seq_lens [documents + 1] as the number of each token's document, [1, length]."""
    at = torch.arange(length, device=boundaries.device)
    return torch.searchsorted(boundaries.long(), at, right=True)[None]


def _packed(plan: Plan, documents: Tensor, q_len: int, kv_len: int, given: _Given) -> Plan:
    """The plan for packed documents: the design starts again in each, and no document attends to another."""
    if plan.place is not None:
        raise RuntimeError("maskloom: packed sequences with a key-value cache are not known: generate without packing")
    made = given.made.get(plan.taken.key)
    if made is not None:
        return made
    say("packed sequences: each document has the design for itself")
    index = torch.arange(documents.shape[1], device=documents.device)
    first = torch.ones_like(documents, dtype=torch.bool)
    first[:, 1:] = documents[:, 1:] != documents[:, :-1]
    starts = torch.where(first, index, torch.zeros_like(index)).cummax(dim=1).values
    at = index - starts
    keep, score = plan.taken.mods(documents.device)
    one = documents.shape[0] == 1

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        row = b * 0 if one else b
        same = documents[row, q_idx] == documents[row, kv_idx]
        return same if keep is None else same & keep(b, h, at[row, q_idx], at[row, kv_idx])

    def score_mod(value: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        row = b * 0 if one else b
        assert score is not None
        return score(value, b, h, at[row, q_idx], at[row, kv_idx])

    extents = (plan.extents[0] if one else documents.shape[0], plan.extents[1])
    block_mask = None
    if tracing():
        if documents.device.type != "cpu":
            from torch.nn.attention.flex_attention import create_block_mask

            size = plan.taken.module.BLOCK_SIZE
            block_mask = create_block_mask(mask_mod, *extents, q_len, kv_len, device=documents.device, BLOCK_SIZE=size)
    else:
        block_mask = block_mask_of(plan.taken, mask_mod, extents, q_len, kv_len, documents.device)
    made = Plan("packed", plan.design, None, block_mask, mask_mod, None if score is None else score_mod, extents)
    given.made[plan.taken.key] = made
    return made


def _by_hand(
    plan: Plan, documents: Tensor | None, query: Tensor, key: Tensor, value: Tensor, scale: float | None, brought: Brought
) -> Tensor:
    """The same by hand; packed documents one after another."""
    if documents is None:
        return proof.attend(plan, query, key, value, scale, brought)
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    for b in range(query.shape[0]):
        row = documents[b if documents.shape[0] > 1 else 0]
        for number in torch.unique(row).tolist():
            here = (row == number).nonzero().flatten()
            first, last = int(here[0]), int(here[-1]) + 1
            q, k, v = (t[b : b + 1, :, first:last] for t in (query, key, value))
            alone = Brought(softcap=brought.softcap, sinks=brought.sinks)
            whole = Plan(None, plan.design)
            out[b : b + 1, :, first:last] = proof.attend(whole, q, k, v, scale, alone)
    return out
