"""Tiny models of random weights, of the families that people train: NAME -> (model, inputs, which layers attend).

Each attends over 80 tokens in 2 heads of 16 in at least one layer: 64 of an image of 8x8 and 16 of text, or 80 of text, or
a video of 5x4x4. ImportError where the installed library has no such model.
"""

import functools

import simpletuner_models
import torch

HEADS = dict(num_attention_heads=2, attention_head_dim=16)


def _ids(width=3):
    ids = torch.zeros(64, width)
    ids[:, 1], ids[:, 2] = torch.arange(64) // 8, torch.arange(64) % 8
    return ids


def _attn(name):
    return name.endswith((".attn", ".attn1", ".attn_processor"))


def _both(name):
    return name.endswith((".attn", ".attn2"))


def flux(kind=None):
    if kind is None:
        from diffusers import FluxTransformer2DModel as kind
    model = kind(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=2, **HEADS, joint_attention_dim=32,
        pooled_projection_dim=32, axes_dims_rope=(4, 4, 8), guidance_embeds=False,
    )
    inputs = dict(
        hidden_states=torch.randn(2, 64, 8), encoder_hidden_states=torch.randn(2, 16, 32),
        pooled_projections=torch.randn(2, 32), timestep=torch.tensor([0.3, 0.7]), img_ids=_ids(), txt_ids=torch.zeros(16, 3),
        return_dict=False,
    )
    return model, inputs, _attn


def flux2():
    from diffusers import Flux2Transformer2DModel

    model = Flux2Transformer2DModel(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, **HEADS, joint_attention_dim=32,
        axes_dims_rope=(4, 4, 4, 4), guidance_embeds=False,
    )
    text = torch.zeros(16, 4)
    text[:, 3] = torch.arange(16)
    inputs = dict(
        hidden_states=torch.randn(1, 64, 8), encoder_hidden_states=torch.randn(1, 16, 32), timestep=torch.tensor([0.3]),
        img_ids=_ids(4)[None], txt_ids=text[None], return_dict=False,
    )
    return model, inputs, _attn


def chroma():
    from diffusers import ChromaTransformer2DModel

    model = ChromaTransformer2DModel(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, **HEADS, joint_attention_dim=32,
        axes_dims_rope=(4, 4, 8), approximator_hidden_dim=32, approximator_layers=1, approximator_num_channels=16,
    )
    mask = torch.ones(2, 80, dtype=torch.bool)
    mask[1, 10:16] = False
    inputs = dict(
        hidden_states=torch.randn(2, 64, 8), encoder_hidden_states=torch.randn(2, 16, 32),
        timestep=torch.tensor([0.3, 0.7]), img_ids=_ids(), txt_ids=torch.zeros(16, 3), attention_mask=mask, return_dict=False,
    )
    return model, inputs, _attn


def wan(grid=(5, 4, 4)):
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(
        patch_size=(1, 2, 2), **HEADS, in_channels=4, out_channels=4, text_dim=16, freq_dim=16, ffn_dim=32, num_layers=2,
        cross_attn_norm=True, rope_max_seq_len=32,
    )
    t, h, w = grid
    # as many tokens of text as of video: cross-attention of the very shape must stay
    inputs = dict(
        hidden_states=torch.randn(1, 4, t, 2 * h, 2 * w), timestep=torch.tensor([5]),
        encoder_hidden_states=torch.randn(1, 80, 16), return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn1")


def qwen(padded=False):
    from diffusers import QwenImageTransformer2DModel

    model = QwenImageTransformer2DModel(
        patch_size=1, in_channels=8, out_channels=8, num_layers=2, **HEADS, joint_attention_dim=32, axes_dims_rope=(4, 6, 6)
    )
    mask = torch.ones(2, 16, dtype=torch.bool)
    if padded:
        mask[1, 9:] = False
    inputs = dict(
        hidden_states=torch.randn(2, 64, 8), encoder_hidden_states=torch.randn(2, 16, 32), encoder_hidden_states_mask=mask,
        timestep=torch.tensor([0.3, 0.7]), img_shapes=[[(1, 8, 8)]] * 2, return_dict=False,
    )
    return model, inputs, _attn


def qwen_padded():
    return qwen(padded=True)


def ltx():
    from diffusers import LTXVideoTransformer3DModel

    model = LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, **HEADS, cross_attention_dim=32, num_layers=2, caption_channels=16
    )
    inputs = dict(
        hidden_states=torch.randn(1, 80, 8), encoder_hidden_states=torch.randn(1, 12, 16), timestep=torch.tensor([5]),
        encoder_attention_mask=torch.ones(1, 12, dtype=torch.bool), num_frames=5, height=4, width=4, return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn1")


def sd3(dual=()):
    from diffusers import SD3Transformer2DModel

    model = SD3Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, out_channels=4, num_layers=2, **HEADS, joint_attention_dim=32,
        caption_projection_dim=32, pooled_projection_dim=32, pos_embed_max_size=16, dual_attention_layers=dual,
    )
    inputs = dict(
        hidden_states=torch.randn(2, 4, 16, 16), encoder_hidden_states=torch.randn(2, 16, 32),
        pooled_projections=torch.randn(2, 32), timestep=torch.tensor([3, 7]), return_dict=False,
    )
    return model, inputs, _attn


def unet():
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=(8, 10), in_channels=4, out_channels=4, block_out_channels=(32,), layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D",), up_block_types=("CrossAttnUpBlock2D",), attention_head_dim=2,
        cross_attention_dim=16, norm_num_groups=8,
    )
    inputs = dict(
        sample=torch.randn(2, 4, 8, 10), timestep=torch.tensor(5), encoder_hidden_states=torch.randn(2, 12, 16),
        return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn1")


def pixart():
    from diffusers import PixArtTransformer2DModel

    model = PixArtTransformer2DModel(
        sample_size=20, patch_size=2, in_channels=4, out_channels=8, num_layers=2, **HEADS, cross_attention_dim=32,
        caption_channels=16, use_additional_conditions=False,
    )
    inputs = dict(
        hidden_states=torch.randn(2, 4, 16, 20), encoder_hidden_states=torch.randn(2, 12, 16),
        timestep=torch.tensor([3, 7]), added_cond_kwargs=dict(resolution=None, aspect_ratio=None), return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn1")


def hunyuan():
    from diffusers import HunyuanVideoTransformer3DModel

    model = HunyuanVideoTransformer3DModel(
        in_channels=4, out_channels=4, **HEADS, num_layers=1, num_single_layers=1, num_refiner_layers=1, patch_size=1,
        patch_size_t=1, guidance_embeds=False, text_embed_dim=16, pooled_projection_dim=8, rope_axes_dim=(4, 6, 6),
    )
    mask = torch.ones(2, 16, dtype=torch.bool)
    mask[1, 9:] = False
    inputs = dict(
        hidden_states=torch.randn(2, 4, 4, 4, 4), timestep=torch.tensor([3, 7]), encoder_hidden_states=torch.randn(2, 16, 16),
        encoder_attention_mask=mask, pooled_projections=torch.randn(2, 8), return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn") and "refiner" not in name


def cogvideox():
    from diffusers import CogVideoXTransformer3DModel

    model = CogVideoXTransformer3DModel(
        **HEADS, in_channels=4, out_channels=4, time_embed_dim=8, text_embed_dim=16, num_layers=2, sample_width=8,
        sample_height=8, sample_frames=13, patch_size=2, temporal_compression_ratio=4, max_text_seq_length=16,
    )
    inputs = dict(
        hidden_states=torch.randn(1, 4, 4, 8, 8), encoder_hidden_states=torch.randn(1, 16, 16), timestep=torch.tensor([5]),
        return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn1")


def auraflow():
    from diffusers import AuraFlowTransformer2DModel

    model = AuraFlowTransformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, out_channels=4, num_mmdit_layers=1, num_single_dit_layers=1, **HEADS,
        joint_attention_dim=32, caption_projection_dim=32, pos_embed_max_size=64,
    )
    # 8 register tokens go before the 8 of text
    inputs = dict(
        hidden_states=torch.randn(2, 4, 16, 16), encoder_hidden_states=torch.randn(2, 8, 32),
        timestep=torch.tensor([0.3, 0.7]), return_dict=False,
    )
    return model, inputs, _attn


def lumina2():
    from diffusers import Lumina2Transformer2DModel

    model = Lumina2Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, hidden_size=32, num_layers=2, num_refiner_layers=1, num_attention_heads=2,
        num_kv_heads=2, multiple_of=16, norm_eps=1e-5, axes_dim_rope=(4, 6, 6), axes_lens=(64, 64, 64), cap_feat_dim=16,
    )
    mask = torch.ones(2, 16, dtype=torch.bool)
    mask[1, 9:] = False
    inputs = dict(
        hidden_states=torch.randn(2, 4, 16, 16), timestep=torch.tensor([0.3, 0.7]),
        encoder_hidden_states=torch.randn(2, 16, 16), encoder_attention_mask=mask, return_dict=False,
    )
    return model, inputs, lambda name: name.endswith(".attn") and "refiner" not in name


def sd3_dual():
    """Its first layer attends over the image alone as well: 64 tokens, where a formula means the same."""
    model, inputs, _ = sd3(dual=(0,))
    return model, inputs, _both


DIFFUSERS = dict(
    flux=flux, flux2=flux2, chroma=chroma, wan=wan, qwen=qwen, qwen_padded=qwen_padded, ltx=ltx, sd3=sd3, unet=unet,
    pixart=pixart, hunyuan=hunyuan, cogvideox=cogvideox, auraflow=auraflow, lumina2=lumina2, sd3_dual=sd3_dual,
)  # fmt: skip

SIMPLETUNER = {
    f"simpletuner_{name}": functools.partial(simpletuner_models.made, name, DIFFUSERS[name])
    for name in simpletuner_models.CLASSES
}

SIZES = dict(
    hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, vocab_size=32,
    pad_token_id=0,
)  # fmt: skip


def _text(model, padded=True, **more):
    real = torch.ones(2, 80, dtype=torch.long)
    if padded:
        real[1, :7] = 0
    inputs = dict(input_ids=torch.randint(3, 32, (2, 80)), attention_mask=real, **more)
    return model, inputs, None


def _causal(config, model, **more):
    import transformers

    if not hasattr(transformers, model):
        raise ImportError(f"transformers has no {model}")
    return _text(getattr(transformers, model)(getattr(transformers, config)(**SIZES | more)))


def llama():
    return _causal("LlamaConfig", "LlamaForCausalLM", head_dim=16)


def llama_gqa():
    return _causal("LlamaConfig", "LlamaForCausalLM", head_dim=16, num_key_value_heads=1)


def mistral():
    return _causal("MistralConfig", "MistralForCausalLM", head_dim=16, sliding_window=32)


def qwen3():
    return _causal("Qwen3Config", "Qwen3ForCausalLM", head_dim=16)


def phi3():
    return _causal("Phi3Config", "Phi3ForCausalLM")


def gemma2():
    return _causal(
        "Gemma2Config", "Gemma2ForCausalLM", head_dim=16, query_pre_attn_scalar=16, attn_logit_softcapping=0.05, sliding_window=64
    )


def gemma3():
    return _causal("Gemma3TextConfig", "Gemma3ForCausalLM", head_dim=16, query_pre_attn_scalar=16, sliding_window=64)


def gpt_oss():
    model, inputs, chosen = _causal(
        "GptOssConfig", "GptOssForCausalLM", head_dim=16, num_local_experts=2, num_experts_per_tok=1, sliding_window=64
    )
    for name, weight in model.named_parameters():
        if name.endswith("sinks"):
            weight.data.normal_(1.0, 1.0)
    return model, inputs, chosen


def bert():
    from transformers import BertConfig, BertForMaskedLM

    sizes = {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}
    return _text(BertForMaskedLM(BertConfig(**sizes)))


def modernbert():
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    sizes = {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}
    return _text(ModernBertForMaskedLM(ModernBertConfig(**sizes, local_attention=16, global_attn_every_n_layers=2)))


def t5_encoder():
    from transformers import T5Config, T5EncoderModel

    model = T5EncoderModel(T5Config(d_model=32, d_kv=16, d_ff=32, num_layers=2, num_heads=2, vocab_size=32))
    for name, weight in model.named_parameters():
        if name.endswith("relative_attention_bias.weight"):
            weight.data.normal_(0.0, 2.0)
    return _text(model)


TRANSFORMERS = dict(
    llama=llama, llama_gqa=llama_gqa, mistral=mistral, qwen3=qwen3, phi3=phi3, gemma2=gemma2, gemma3=gemma3, gpt_oss=gpt_oss,
    bert=bert, modernbert=modernbert, t5_encoder=t5_encoder,
)  # fmt: skip


def built(name, seed=0):
    """(model, inputs, chosen) of a family, in inference mode, with weights that matter."""
    torch.manual_seed(seed)
    model, inputs, chosen = (DIFFUSERS | SIMPLETUNER | TRANSFORMERS)[name]()
    torch.manual_seed(seed + 1)
    for parameter in model.parameters():
        if parameter.dim() > 1 and parameter.abs().max() == 0:
            # layers that begin as zeros would hide what attention does
            torch.nn.init.normal_(parameter, std=0.2)
    return model.eval(), inputs, chosen
