"""Tiny models of the installed diffusers over 80 tokens of 2 heads, with inputs: (model, inputs, which layers attend)."""

import torch


def flux(kind):
    """`kind` is FluxTransformer2DModel, from any library."""
    model = kind(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=2, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8), guidance_embeds=False,
    )
    ids = torch.zeros(64, 3)
    ids[:, 1], ids[:, 2] = torch.arange(64) // 8, torch.arange(64) % 8
    inputs = dict(
        hidden_states=torch.randn(2, 64, 8), encoder_hidden_states=torch.randn(2, 16, 32),
        pooled_projections=torch.randn(2, 32), timestep=torch.tensor([0.3, 0.7]), img_ids=ids, txt_ids=torch.zeros(16, 3),
        return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn")


def wan():
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, text_dim=16,
        freq_dim=16, ffn_dim=32, num_layers=2, cross_attn_norm=True, rope_max_seq_len=32,
    )
    # as many tokens of text as of video: cross-attention of the very shape must stay
    inputs = dict(
        hidden_states=torch.randn(1, 4, 5, 8, 8), timestep=torch.tensor([5]), encoder_hidden_states=torch.randn(1, 80, 16),
        return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn1")
