//! Messages about models, trainers and the libraries beside PyTorch: what their classes take, what they replace; as a table.
//!
//! Invariant: patterns are words of the real messages; the last text says how the entry was checked. Must not know code.

use super::messages::{Entry, reported};

/// All of them.
pub(super) static MESSAGES: &[Entry] = &[
    reported(
        "model-without-flash",
        &["not support Flash Attention & yet", "not support Flash Attention & model hub page"],
        "This class of transformers is not written for flash-attn: each class has a flag of its own.",
        "attn_implementation=\"sdpa\" or \"eager\"; a newer transformers may have it",
        "transformers 5.24; text read",
    ),
    reported(
        "model-without-sdpa",
        &["not support an attention implementation through torch.nn.functional.scaled_dot_product_attention"],
        "This class of transformers has no SDPA path, as SDPA cannot do what it needs: gpt-oss has sinks.",
        "attn_implementation=\"eager\" or \"flex_attention\"; the export's adapter and `maskloom.integrations` have sinks, too",
        "transformers 5.24; text read",
    ),
    reported(
        "model-names-flash-kernels",
        &[
            "compatible with the following flash attention implementations",
            "model compatible & flash attention implementations & falling back",
        ],
        "A warning: this model runs only with the flash kernels that the message lists (gpt-oss: those with sinks), and transformers took one of them instead of yours.",
        "nothing needs to be done; name one of the list in attn_implementation, and the warning is gone",
        "transformers 5.24; text read",
    ),
    reported(
        "flash-model-on-cpu",
        &["Flash Attention & model not initialized on GPU", "FlashAttention # not available on CPU"],
        "The model was loaded into the computer's memory first, where flash-attn cannot run. With a card this is a warning, without one an error.",
        "device_map=\"cuda\" or model.to(\"cuda\"); without a card attn_implementation=\"sdpa\"",
        "transformers 5.24; text read",
    ),
    reported(
        "flash-casts-notice",
        &["casting fp32 inputs back & flash", "casting fp32 inputs back"],
        "A notice: norms that are kept in float32 (peft does so) made q, k and v float32, and transformers casts them for flash-attn in each layer. Results are right; it costs some time.",
        "load the norms in bfloat16 as well, or leave it",
        "transformers 5.24; text read",
    ),
    reported(
        "attention-not-exchangeable",
        &[
            "not support setting its attention implementation dynamically",
            "not follow functional approach based on AttentionInterface",
        ],
        "The class was written before transformers' table of attentions (often remote code), so that set_attn_implementation and a registered attention do not reach it.",
        "pass attn_implementation to from_pretrained, or use the class of transformers itself (trust_remote_code=False); the exported adapter watches calls of SDPA in such models, and its report says which layers were masked",
        "transformers 5.24; text read",
    ),
    reported(
        "patch-of-another-transformers",
        &[
            "no attribute _flash_attention_forward",
            "cannot import name..from transformers.models",
            "cannot import name & modeling_flash_attention_utils",
            "cannot import name & masking_utils",
        ],
        "A trainer or plug-in changes classes and functions of transformers by name, and this release names them otherwise: 4.43 moved _flash_attention_forward out of the classes, 4.48 removed the classes ...FlashAttention2.",
        "install the transformers that the trainer's requirements name, or a newer trainer",
        "transformers 4.43 and 4.48; flash-attention#1246 and ms-swift#2107, read",
    ),
    reported(
        "attention-class-of-another-diffusers",
        &[
            "FluxAttention object no attribute",
            "WanAttention object no attribute",
            "QwenImageAttention object no attribute",
            "name Attention not defined",
        ],
        "Code written for diffusers' common class Attention meets a release whose models have classes of their own (FluxAttention, WanAttention): they lack attributes such as `scale`. Code for 0.33 fails so with 0.35.",
        "pip install diffusers==0.33.1 for that code, or read attn.head_dim ** -0.5 instead of `scale`; an exported adapter works with both",
        "diffusers 0.33 to 0.42.1; syncd#6 read, and the class of 0.42.1 read",
    ),
    reported(
        "processors-count",
        &[
            "dict of processors passed & number of processors",
            "number of processors & not match & number of attention layers",
        ],
        "set_attn_processor got a dict with another number of entries than the model has attention layers; cross-attention layers count as well.",
        "build it from model.attn_processors.keys(), or pass one processor for all layers",
        "diffusers 0.42.1; text read",
    ),
    reported(
        "torch-libraries-not-loaded",
        &[
            "libc10.so & cannot open shared object",
            "libtorch & cannot open shared object",
            "libc10_cuda.so & cannot open",
        ],
        "The extension was imported before torch, whose libraries it needs. With torch imported first another error often appears, which is the true one.",
        "python -c \"import torch, flash_attn\" shows it; `maskloom doctor --explain` takes that message",
        "flash-attn 2.7.4 with torch 2.7; flash-attention#1644, read",
    ),
    reported(
        "flash-heads-divide",
        &["heads in key value must divide number of heads in query"],
        "The query heads are no multiple of the key heads, or the head axis stands at another place than the kernel wants: then the message compares tokens. Up to diffusers 0.39 `_native_flash` transposed k and v twice in its backward pass under context parallel.",
        "flash-attn wants [batch, tokens, heads, head_dim], SDPA [batch, heads, tokens, head_dim]; upgrade diffusers, or use `flash` or `native` with Ulysses",
        "flash-attn 2, diffusers up to 0.39 and 0.42.1; NeMo Automodel#3157, and 0.42.1's text read",
    ),
    reported(
        "flash-backward-head-dim",
        &["backward for head dim > 192 requires", "FlashAttention backward & head dim & requires A100"],
        "The backward pass of this flash-attn does not fit into the shared memory of consumer cards above head_dim 192. Since flash-attn 2.5.5 it does without dropout.",
        "upgrade flash-attn and set dropout to 0; or sdpa or flex",
        "flash-attn 2; its text read",
    ),
    reported(
        "packed-model-without-flex",
        &[
            "block masks not implemeted yet",
            "block masks not implemented yet",
            "NotImplementedError & block masks & packed=False",
        ],
        "torchtune packs with BlockMasks wherever FlexAttention is installed, and this model's attention (Gemma 2) takes dense masks only.",
        "packed=False in the dataset's config, or another model",
        "torchtune; torchtune#2056 and its text read",
    ),
    reported(
        "selective-checkpointing",
        &["FlexAttention not compatible with selective AC", "flex & selective activation checkpoint"],
        "torchtitan of 2025 refuses FlexAttention beside selective activation checkpointing, for which PyTorch had no rule (pytorch#147879).",
        "activation_checkpoint.mode = \"full\", or a newer torchtitan with its PyTorch",
        "torchtitan of 2025; its text read",
    ),
    reported(
        "transformer-engine-no-backend",
        &["no dot product attention backend available", "NVTE_DEBUG & attention backend"],
        "TransformerEngine disabled each of its kernels for these inputs: sinks (learnable softmax) in packed `thd` layout or under context parallel, a mask or bias, fp8 attention, or a flash-attn outside of its range of versions.",
        "NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 prints the reason for each kernel; for sinks use `bshd` without packing",
        "TransformerEngine 2; its text and Pai-Megatron-Patch#729 read",
    ),
    reported(
        "video-without-attention-package",
        &["no attn installed", "attn installed or batch_size > 1"],
        "FramePack's and musubi-tuner's attention needs flash-attn, SageAttention or xformers for a batch of captions of different lengths, and none is there.",
        "batch 1; or --sdpa --split_attn in musubi-tuner; or install flash-attn",
        "FramePack, musubi-tuner; their texts and musubi-tuner#245 read",
    ),
    reported(
        "image-black",
        &["invalid value encountered in cast", "black image & sage", "black video & sage", "black output & sage"],
        "The picture contains NaN. Often SageAttention's 8-bit scores do not carry this model or its fp8 weights, or a VAE overflows in float16.",
        "run once without SageAttention (it is a setting of the program or a node); the VAE in bfloat16 or float32",
        "SageAttention 1 and 2; ComfyUI#9077 and CogVideoXWrapper#257, read",
    ),
    reported(
        "xfuser-processor",
        &["Attention Processor class & not supported by xFuser"],
        "xDiT replaces attention processors by the names of their classes and does not know this one: its release is for another diffusers.",
        "install the diffusers that xDiT's requirements name, or a newer xDiT",
        "xDiT with diffusers 0.30; xDiT#282, read",
    ),
    reported(
        "diffusers-cp-takes",
        &[
            "causal attention not yet supported for templated attention",
            "RingAnythingAttention not support & attn_mask",
            "not yet supported & ring_degree > 1",
            "hub kernels must expose & context parallel",
        ],
        "diffusers' context parallel refuses is_causal and grouped heads; ring_anything and variable-length backends with ring_degree above 1 take no mask; a hub kernel must have the entries that it calls.",
        "ulysses_degree instead of ring_degree for masks, with `native` or `_native_cudnn`; for a hub kernel pip install -U kernels and delete its snapshot",
        "diffusers 0.42.1; text read",
    ),
    reported(
        "accelerate-parallel",
        &[
            "ParallelismConfig & only compatible & DistributedType",
            "parallelism & not used with pure data parallelism",
            "invalid sp_attn_implementation",
        ],
        "accelerate's context parallel (cp_size) runs inside FSDP2 with dp_shard_size above 1 or as the only dimension; its sequence parallel (sp_size, DeepSpeed) takes sdpa and flash-attn, neither eager nor flex, so that no BlockMask gets through.",
        "accelerate config with FSDP version 2; dp_replicate_size=1; for a mask of your own PyTorch's context parallel or Maskloom's plans",
        "accelerate 1.15; text read",
    ),
    reported(
        "rocm-experimental",
        &["attention on Navi & experimental", "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"],
        "On this AMD card PyTorch's fused attention is off unless it is asked for, and SDPA materialises the scores.",
        "export TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1 before Python starts; compare one step with and without it",
        "PyTorch 2.4 and newer on ROCm; users' words",
    ),
    reported(
        "model-takes-no-block-mask",
        &["forward got unexpected keyword argument & block_mask", "forward got unexpected keyword argument & mask_mod"],
        "The model's forward has no such parameter: models of transformers and diffusers take attention_mask, and pass a BlockMask on only if they call flex_attention.",
        "attention_mask=block_mask with attn_implementation=\"flex_attention\" (transformers); or the exported adapter's use(model)",
        "transformers 5.24; text read",
    ),
];
