//! Messages of public reports and of PyTorch's, transformers' and diffusers' own texts, as they are printed: the entry that explains
//! each stands first.
//!
//! Invariant: a message is as a program prints it, with its numbers and names. Must not know patterns.

use crate::tasks::doctor::explain::{Explanation, explain};

/// Each message and its entry.
const PRINTED: &[(&str, &str)] = &[
    // FlexAttention, SDPA and what is around them
    (
        "torch._inductor.exc.InductorError: LoweringException: NotImplementedError: Unsupported for now if query, key, value are the same buffer.",
        "flex-same-buffer",
    ),
    ("'SPARSE_KV_BLOCK_SIZE': 128*(((s1 + 127)//128))}\nNameError: name 's1' is not defined", "flex-symbolic-length"),
    ("AssertionError: Captured buffers that require grad are not yet supported.", "captured-gradients-refused"),
    ("Captured buffers from mask mod that require grad are not supported.", "score-mod-without-score"),
    (
        "NotImplementedError: flex_attention backward is not yet supported on MPS. Use torch.no_grad() for inference.",
        "flex-on-mps",
    ),
    (
        "FlexAttention does not support backward on MPS. Please set the input requires_grad to False or use another device.",
        "flex-on-mps",
    ),
    (
        "ValueError: FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices. Found input tensors on xla device.",
        "flex-device",
    ),
    (
        "`torch.float` , `torch.float16` and `torch.bfloat16` are supported in FlexAttention for CPU device. Found input tensors are `torch.float64`.",
        "flex-cpu-dtype",
    ),
    (
        "ValueError: Invalid FlexAttention forward kernel options: Q and KV block sizes must be divisible by the selected tile sizes. Got SPARSE_Q_BLOCK_SIZE=96",
        "flex-block-divides-tile",
    ),
    (
        "RuntimeError: aten.index.Tensor: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators!",
        "dtensor-mixed",
    ),
    ("AttributeError: Can't pickle local object 'document_mask.<locals>.mask_mod'", "mod-not-pickled"),
    ("AttributeError: Can't get local object 'generate_doc_mask_mod.<locals>.doc_mask_mod'", "mod-not-pickled"),
    (
        "DeprecationWarning: _compile flag on create_block_mask was originally added to work around a torch.compile limitation.",
        "compile-flag-notice",
    ),
    ("RuntimeError: CUTE flash attention scalar captures require flash-attn-4>=4.0.0b17.", "flash-4-too-old"),
    ("RuntimeError: CuteDSL template failed: unsupported operation", "flash-4-too-old"),
    (
        "ValueError: Unknown flash attention impl 'FA5'. Available implementations: ['FA3', 'FA4']",
        "flash-impl-activated",
    ),
    ("RuntimeError: FA4 SDPA forward unsupported: dropout_p must be 0", "flash-impl-activated"),
    (
        "SDPBackend.CUDNN_ATTENTION was requested for varlen_attn, but its constraints are not satisfied:",
        "varlen-cudnn",
    ),
    (
        "RuntimeError: Function 'ScaledDotProductFlashAttentionBackward0' returned nan values in its 0th output.",
        "gradient-nan",
    ),
    ("NotImplementedError: \"bitwise_and_cuda\" not implemented for 'Float'", "mask-is-float"),
    ("TypeError: ~ (operator.invert) is only implemented on integer and Boolean-type tensors", "mask-is-float"),
    ("RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16", "linear-dtype"),
    ("ValueError: Attention mask must match the key's second to last dimension.", "mask-shape"),
    ("ValueError: Attention mask must be of type bool, got torch.float32.", "mask-format"),
    (
        "ValueError: Tensor query has shape torch.Size([1, 0, 8, 64]) with a zero dimension. FlashAttention does not support inputs with dim=0.",
        "zero-length",
    ),
    (
        "ValueError: `flex_attention` does not support `dropout`. Please use it with inference only (`model.eval()`) or turn off the attention dropout in the respective config.",
        "dropout-refused",
    ),
    // models, trainers and other libraries
    (
        "ValueError: Gemma3ForConditionalGeneration does not support Flash Attention 2.0 yet. Please request to add support where the model is hosted, on its model hub page",
        "model-without-flash",
    ),
    (
        "ValueError: BertModel does not support Flash Attention yet, so it cannot use the `kernels-community/flash-attn2` kernel.",
        "model-without-flash",
    ),
    (
        "ValueError: GptOssForCausalLM does not support an attention implementation through torch.nn.functional.scaled_dot_product_attention yet.",
        "model-without-sdpa",
    ),
    (
        "This model is compatible with the following flash attention implementations: `['kernels-community/vllm-flash-attn3']`. Automatically falling back to it.",
        "model-names-flash-kernels",
    ),
    (
        "You are attempting to use Flash Attention 2 with a model not initialized on GPU. Make sure to move the model to GPU after initializing it on CPU",
        "flash-model-on-cpu",
    ),
    ("Casting fp32 inputs back to torch.bfloat16 for flash-attn compatibility.", "flash-casts-notice"),
    (
        "InternLM2 does not support setting its attention implementation dynamically, because it does not follow the functional approach based on AttentionInterface",
        "attention-not-exchangeable",
    ),
    (
        "AttributeError: 'Qwen2FlashAttention2' object has no attribute '_flash_attention_forward'",
        "patch-of-another-transformers",
    ),
    (
        "ImportError: cannot import name 'LlamaFlashAttention2' from 'transformers.models.llama.modeling_llama'",
        "patch-of-another-transformers",
    ),
    ("AttributeError: 'FluxAttention' object has no attribute 'scale'", "attention-class-of-another-diffusers"),
    (
        "NameError: name 'Attention' is not defined. Did you mean: 'WanAttention'?",
        "attention-class-of-another-diffusers",
    ),
    (
        "ValueError: A dict of processors was passed, but the number of processors 16 does not match the number of attention layers: 32.",
        "processors-count",
    ),
    ("ImportError: libc10.so: cannot open shared object file: No such file or directory", "torch-libraries-not-loaded"),
    ("RuntimeError: Number of heads in key/value must divide number of heads in query", "flash-heads-divide"),
    (
        "RuntimeError: FlashAttention backward for head dim > 192 requires A100/A800 or H100/H800",
        "flash-backward-head-dim",
    ),
    ("NotImplementedError: Block masks are not implemeted yet, use packed=False.", "packed-model-without-flex"),
    ("ValueError: FlexAttention is not compatible with selective AC yet.", "selective-checkpointing"),
    (
        "ValueError: No dot product attention backend is available for the provided inputs. Please run with NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2",
        "transformer-engine-no-backend",
    ),
    ("NotImplementedError: No Attn Installed!", "video-without-attention-package"),
    (
        "RuntimeWarning: invalid value encountered in cast\n  img = Image.fromarray(np.clip(i, 0, 255).astype(np.uint8))",
        "image-black",
    ),
    ("ValueError: Attention Processor class FluxSingleAttnProcessor2_0 is not supported by xFuser", "xfuser-processor"),
    ("ValueError: Causal attention is not yet supported for templated attention.", "diffusers-cp-takes"),
    ("`attn_mask` is not yet supported for the FLASH_VARLEN_HUB backend with `ring_degree > 1`.", "diffusers-cp-takes"),
    ("ValueError: Invalid sp_attn_implementation: flex_attention.", "accelerate-parallel"),
    (
        "Tensor/Context parallelism (tp/cp_size > 1) cannot be used with pure data parallelism (dp_replicate_size > 1 and dp_shard_size == 1).",
        "accelerate-parallel",
    ),
    (
        "UserWarning: Memory Efficient attention on Navi31 GPU is still experimental. Enable it with TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1.",
        "rocm-experimental",
    ),
    ("TypeError: WanModel.forward() got an unexpected keyword argument 'block_mask'", "model-takes-no-block-mask"),
    // a path decides nothing
    (
        "FileNotFoundError: Kernel at /home/me/.cache/hub/x does not have build: torch28-cxx11-cu128-x86_64-linux",
        "hub-kernel-stale",
    ),
    (
        "Kernel at ~/.cache/huggingface/hub/models--kernels-community--flash-attn2/snapshots/3f0a does not have build: torch29-cxx11-cu130-x86_64-linux",
        "hub-kernel-stale",
    ),
    ("OSError: [Errno 13] Permission denied: '/home/me/.triton/cache/k1'", "read-only-cache"),
    ("kernel_root: ~/.cache/torch/kernels", "kernel-folder"),
    // the same causes in other words
    ("'BlockMask' has no attribute 'dtype'", "block-mask-arithmetic"),
    ("AttributeError: BlockMask doesn't have the attribute `ndim`", "block-mask-arithmetic"),
    ("Requires Flash-Attention >=2.7.1,<=2.7.4 but 2.8.3 is installed", "xformers-flash-version"),
    ("xformers requires flash-attn >=2.7.1, <=2.8.2, but 2.8.3.post1 is installed", "xformers-flash-version"),
    ("head dim must be one of [64, 96, 128]", "sage-head-dim"),
    ("AssertionError: head_size must be in (64, 96, 128), got 40", "sage-head-dim"),
    ("AssertionError: varlen only support head_dim [64, 128].", "sage-head-dim"),
    ("flex_attention doesn't support nested tensors", "nested-tensor"),
    (
        "NotImplementedError: flex_attention does not support NestedTensor inputs, including torch.compile(flex_attention) with jagged NestedTensor inputs.",
        "nested-tensor",
    ),
    ("nested tensors are not supported by flex_attention", "nested-tensor"),
    ("mask_mod is not defined for a sliced BlockMask", "block-mask-sliced"),
    ("RuntimeError: Cannot use mask_mod from a sliced BlockMask", "block-mask-sliced"),
    ("after slicing the BlockMask its mask_mod raises an error", "block-mask-sliced"),
    ("deterministic backward requires SM100", "deterministic-flash"),
    (
        "NotImplementedError: Deterministic backward for flex_attention with block_mask and BACKEND='FLASH' requires SM100+ (compute capability >= 10.0). Use BACKEND='TRITON' for deterministic backward on older architectures.",
        "deterministic-flash",
    ),
    ("the deterministic backward pass needs compute capability 10.0", "deterministic-flash"),
    ("FA4 backward refuses head dim 192 with BLOCK_SIZE 128", "flash-backward-tiles"),
    ("ValueError: Block sparsity requires sparse_block_size[1]=128 to match tile_n=96.", "flash-backward-tiles"),
    ("ValueError: Block sparsity expects sparse_block_size[1]=96 for kv_subtile_factor=1.", "flash-backward-tiles"),
    (
        "ValueError: Block sparsity expects sparse_block_size[1] to be a multiple of tile_n=96; got 128.",
        "flash-backward-tiles",
    ),
    (
        "RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: File \"/x/torch/nn/attention/flex_attention.py\", line 903, in create_block_mask",
        "flex-cuda-graphs",
    ),
    ("flex_attention under torch.compile(mode=\"reduce-overhead\") sees an old mask", "flex-cuda-graphs"),
    (
        "{\"attention_mechanism\": \"flex\", \"dynamo_backend\": \"inductor\", \"dynamo_mode\": \"reduce-overhead\"}",
        "flex-cuda-graphs",
    ),
    ("a BlockMask and CUDA graphs: the mask never changes", "flex-cuda-graphs"),
    ("ModuleNotFoundError: No module named 'torch'", "torch-missing"),
    ("No module named torch", "torch-missing"),
    ("PyTorch is not installed in this environment", "torch-missing"),
    ("Building wheel for flash-attn: ModuleNotFoundError: No module named 'torch'", "build-without-isolation"),
    ("ModuleNotFoundError: No module named 'maskloom'", "maskloom-missing"),
    ("No module named 'maskloom._native'", "maskloom-missing"),
    ("maskloom isn't installed in this kernel", "maskloom-missing"),
    ("libcudart.so.13: cannot open shared object file", "cuda-runtime-library"),
    ("libcudart.so.13 not found while importing flash_attn_2_cuda", "cuda-runtime-library"),
    ("position_ids 0..5, 0..3 with a 2-D attention_mask: plain causal is used", "packed-beside-mask"),
    (
        "two packed samples with restarting position_ids and an attention_mask of ones see each other",
        "packed-beside-mask",
    ),
];

/// Words that programs print beside their own messages, and that explain nothing.
#[test]
fn a_notice_about_linux_is_none_about_hub_kernels() {
    let notice = "Detected kernel version 4.18.0, which is below the recommended minimum of 5.5.0; this can cause the process to hang.";
    assert!(matches!(explain(notice), Explanation::Nearest(_)), "{:?}", explain(notice));
    let Explanation::Known(found) = explain(PRINTED.iter().find(|(_, code)| *code == "hub-kernel-stale").unwrap().0)
    else {
        panic!("known")
    };
    assert_eq!(found.iter().map(|e| e.code).collect::<Vec<_>>(), ["hub-kernel-stale"]);
}

#[test]
fn printed_messages_are_explained_by_their_own_entry_first() {
    let mut wrong = Vec::new();
    for (text, code) in PRINTED {
        match explain(text) {
            Explanation::Known(found) if found[0].code == *code => {}
            Explanation::Known(found) => wrong.push((text, code, found.iter().map(|e| e.code).collect())),
            Explanation::Nearest(_) => wrong.push((text, code, Vec::new())),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
