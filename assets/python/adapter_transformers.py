"""The attention of DESIGN.py inside a transformers model (transformers 5).

    import DESIGN_transformers
    DESIGN_transformers.use(model)

The design replaces the mask that the model would make; padding (a 2-D attention_mask) still counts, and with a key-value
cache the queries keep their places. Its score_mod replaces the model's own soft cap. The design is used as it is for
other lengths than it was drawn for: captured tables are read at their last entry beyond their end.
"""

import DESIGN as design
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from transformers import AttentionInterface, AttentionMaskInterface

NAME = "maskloom_DESIGN"


def use(model):
    """Gives every attention layer of `model` the design; `model.set_attn_implementation("sdpa")` takes it back."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)
    model.set_attn_implementation(NAME)
    return model


def mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, attention_mask=None, device="cpu", **_):
    """What transformers calls once a forward pass: the design's BlockMask at these lengths."""
    keep = design.make_mods(device)[0]
    padding = None if attention_mask is None else attention_mask.to(device=device, dtype=torch.bool)

    def mask_mod(b, h, q_idx, kv_idx):
        q_at, kv_at = q_idx + q_offset, kv_idx + kv_offset
        kept = kv_at >= 0 if keep is None else keep(b, h, q_at, kv_at)
        return kept if padding is None else kept & padding[b, kv_at]

    batch = design.BATCH if padding is None else batch_size
    return create_block_mask(mask_mod, batch, design.HEADS, q_length, kv_length, device=device, BLOCK_SIZE=design.BLOCK_SIZE)


_compiled = torch.compile(flex_attention)


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
    """What transformers calls in each layer, on [B, H, S, D]."""
    if dropout > 0:
        raise ValueError("FlexAttention has no dropout: set the model's attention_dropout to 0")
    run = flex_attention if query.device.type == "cpu" else _compiled
    out = run(
        query,
        key,
        value,
        score_mod=design.make_mods(query.device)[1],
        block_mask=attention_mask,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return out.transpose(1, 2).contiguous(), None
