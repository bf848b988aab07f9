"""Where libraries call attention, and what takes its place there while a watched layer runs."""

import functools
import sys

from . import layers, masks
from .settings import say, wants_model

NAME = "maskloom"


def _instead(query, key, value, attn_mask, dropout, scale):
    """The design's attention on [B, H, S, D], or None: the call is left as it is."""
    layer = layers.now.layer
    q_len, kv_len = query.shape[-2], key.shape[-2]
    if layer is None or query.dim() != 4 or layers.crosses(q_len, kv_len):
        return None
    design = masks.design_for(q_len, kv_len)
    if design is None or not masks.suits(design, query.shape[0], query.shape[1]):
        return None
    if dropout:
        raise RuntimeError(f"maskloom: {layer.name} uses dropout {dropout}; FlexAttention has none: set it to 0")
    kept = None
    if attn_mask is not None:
        kept = masks.as_kept(attn_mask, query.shape[0])
        say("the model's own mask counts as well: a cell is kept where both keep it")
    out, mask = masks.attend(design, query, key, value, scale, kept)
    _note(layer, design, mask, query.device, q_len, kv_len)
    return out


def _note(layer, design, mask, device, q_len, kv_len):
    layer.active = True
    if layer.model.sparsity is None and not layer.model.told:
        mask = design.block_mask(device, q_len, kv_len) if mask is None else mask
        # PyTorch counts whole blocks: a sequence shorter than one would be below 0
        layer.model.sparsity = 0.0 if mask is None else max(mask.sparsity(), 0.0)


def torch_functional(functional):
    """scaled_dot_product_attention, for models that call it themselves."""
    original = functional.scaled_dot_product_attention

    @functools.wraps(original)
    def scaled_dot_product_attention(
        query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ):
        if layers.now.layer is not None:
            out = _instead_uncompiled(query, key, value, attn_mask, dropout_p, scale)
            if out is not None:
                return out
        return original(
            query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
        )

    functional.scaled_dot_product_attention = scaled_dot_product_attention


@functools.cache
def _disabled():
    import torch

    # torch.compile goes around it: it chooses by shape and makes masks
    return torch.compiler.disable(_instead)


def _instead_uncompiled(*args):
    return _disabled()(*args)


def torch_module(module):
    """Plain modules, where their class was named."""
    layers.at_first_call(module)


def diffusers_dispatch(dispatch):
    """diffusers' dispatcher, whatever backend is set."""
    original = dispatch.dispatch_attention_fn

    @functools.wraps(original)
    def dispatch_attention_fn(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, *args, **kwargs):
        if layers.now.layer is not None:
            # the dispatcher's layout is [B, S, H, D], and its 2-D masks are of keys
            mask = attn_mask
            if mask is not None and mask.dim() == 2:
                mask = mask[:, None, None, :]
            out = _instead_uncompiled(*(t.transpose(1, 2) for t in (query, key, value)), mask, dropout_p, scale)
            if out is not None:
                return out.transpose(1, 2)
        return original(query, key, value, attn_mask, dropout_p, is_causal, scale, *args, **kwargs)

    dispatch.dispatch_attention_fn = dispatch_attention_fn


def diffusers_models(modeling):
    """Every diffusers model that is built; autoencoders only where they are asked for."""

    def built(model):
        kind = type(model).__name__
        wanted = wants_model(kind)
        if wanted is None:
            wanted = not any(part in kind for part in ("Autoencoder", "VAE", "VQModel"))
        if wanted:
            layers.watch(model)

    layers.after_construction(modeling.ModelMixin, built)


def transformers_models(modeling):
    """Models of transformers: those asked for, else all where diffusers is not in use (there they encode the text)."""

    def built(model):
        wanted = wants_model(type(model).__name__)
        if wanted is None:
            wanted = "diffusers" not in sys.modules and model.can_generate()
        if wanted and layers.watch(model):
            _register()
            model.set_attn_implementation(NAME)

    layers.after_construction(modeling.PreTrainedModel, built)


class _Masks:
    """The design's mask for the watched layers, and the model's own for the others."""

    def __init__(self, design, block_mask, own):
        self.design = design
        self.block_mask = block_mask
        self.own = own


@functools.cache
def _register():
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, _mask)


def _mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, attention_mask=None, device="cpu", **kwargs):
    """What transformers calls once a forward pass."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask
    from transformers.masking_utils import sdpa_mask

    places = {"q_offset": q_offset, "kv_offset": kv_offset, "attention_mask": attention_mask, "device": device}
    own = sdpa_mask(batch_size, q_length, kv_length, **places, **kwargs)
    q_offset, kv_offset = int(q_offset), int(kv_offset)
    design = masks.design_for(*2 * (max(q_offset + q_length, kv_offset + kv_length),))
    if design is None:
        return _Masks(None, None, own)
    keep = design.module.make_mods(device)[0]
    padding = None if attention_mask is None else attention_mask.to(device=device, dtype=torch.bool)

    def mask_mod(b, h, q_idx, kv_idx):
        q_at, kv_at = q_idx + q_offset, kv_idx + kv_offset
        kept = kv_at >= 0 if keep is None else keep(b, h, q_at, kv_at)
        return kept if padding is None else kept & padding[b, kv_at]

    batch = design.module.BATCH if padding is None else batch_size
    block_mask = create_block_mask(
        mask_mod, batch, design.module.HEADS, q_length, kv_length, device=device, BLOCK_SIZE=design.module.BLOCK_SIZE
    )
    return _Masks(design, block_mask, own)


def _attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    """What transformers calls in each layer, on [B, H, S, D]."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    layer = module.__dict__.get("_maskloom")
    given = attention_mask
    own = given.own if isinstance(given, _Masks) else given
    design = given.design if isinstance(given, _Masks) else None
    if layer is None or design is None or not masks.suits(design, query.shape[0], query.shape[1]):
        # no layer: the call underneath must not be taken for one
        before, layers.now.layer = layers.now.layer, None
        try:
            return sdpa_attention_forward(module, query, key, value, own, dropout=dropout, scaling=scaling, **kwargs)
        finally:
            layers.now.layer = before
    if dropout > 0:
        raise RuntimeError(f"maskloom: {layer.name} uses dropout {dropout}; FlexAttention has none: set it to 0")
    out = masks.attend_with(design, given.block_mask, query, key, value, scaling)
    _note(layer, design, given.block_mask, query.device, query.shape[2], key.shape[2])
    return out.transpose(1, 2).contiguous(), None
