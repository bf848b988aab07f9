//! Messages as users paste them, and the entries that they find.

use crate::tasks::doctor::explain::*;
use crate::words::{Language, Words};

fn render(text: &str) -> String {
    super::render(text, Words::of(Language::English))
}

fn codes(text: &str) -> Vec<&'static str> {
    match explain(text) {
        Explanation::Known(found) => found.iter().map(|e| e.code).collect(),
        Explanation::Nearest(found) => {
            panic!("{text}: only near {:?}", found.iter().map(|e| e.code).collect::<Vec<_>>())
        }
    }
}

#[test]
fn messages_as_users_paste_them_are_known() {
    for (text, code) in [
        (
            "RuntimeError: Flex Attention backend 'flex' is not usable because of missing package or ...",
            "diffusers-flex-missing",
        ),
        ("ImportError: /x/flash_attn_2_cuda.cpython-311.so: undefined symbol: _ZN3c105ErrorC2E", "flash-attn-abi"),
        ("FlashAttention only supports Ampere GPUs or newer.", "flash-attn-ampere"),
        ("FlashAttention forward only supports head dimension at most 256", "flash-attn-head-dim"),
        ("torch._dynamo hit config.recompile_limit (8)", "recompile-limit"),
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 268", "triton-shared-memory"),
        (
            "The detected CUDA version (11.8) mismatches the version that was used to compile PyTorch (12.1)",
            "cuda-mismatch",
        ),
        ("nvcc fatal : Unsupported gpu architecture 'compute_90a'", "nvcc-too-old"),
        ("ValueError: block_mask was created for a smaller length than you're using it for", "block-mask-length"),
        ("Expect number of query heads to be a multiple of kv heads for GQA but got Hq=8 and Hkv=3.", "gqa-heads"),
        ("AttributeError: module 'torch' has no attribute build_flex_attention_kernels", "flex-helper-missing"),
        ("AssertionError: Expected 4 or 5 positional args, got 3", "mod-arity"),
        ("gqa-heads", "gqa-heads"),
        ("torch.OutOfMemoryError: CUDA out of memory ... in create_block_mask", "block-mask-memory"),
    ] {
        assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
    }
}

#[test]
fn every_pattern_finds_its_own_entry_and_codes_are_unique() {
    for entry in all() {
        for pattern in entry.patterns {
            assert!(
                codes(&pattern.replace("..", " something ").replace('#', "7").replace(" & ", " and "))
                    .contains(&entry.code),
                "{pattern}"
            );
        }
        assert_eq!(all().filter(|e| e.code == entry.code).count(), 1, "{}", entry.code);
    }
}

/// Errors of training, as they are printed.
#[test]
fn messages_of_training_are_known() {
    for (text, code) in [
        ("TypeError: score_mod() takes 4 positional arguments but 5 were given", "mod-arguments"),
        (
            "torch._dynamo.exc.Unsupported: failed to bind arguments when attempting to inline: got too many positional arguments",
            "mod-arguments",
        ),
        ("ImportError: To use a kernel from the hub you need kernels version >= 0.11", "hub-kernels-version"),
        ("torch._inductor.exc.InductorError: NoValidChoicesError: No choices to select", "no-valid-choices"),
        (
            "ValueError: Attention mask should be of size (1, 1, 80, 80), but is torch.Size([1, 1, 40, 40])",
            "mask-shape",
        ),
        (
            "RuntimeError: The expanded size of the tensor (80) must match the existing size (96) at non-singleton dimension 3.",
            "mask-shape",
        ),
        (
            "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass.",
            "checkpoint-metadata",
        ),
        ("RuntimeError: Trying to backward through the graph a second time", "graph-twice"),
        ("You are attempting to use Flash Attention 2 without specifying a torch dtype.", "flash-attn-dtype"),
        ("RuntimeError: FlashAttention only support fp16 and bf16 data type", "flash-attn-dtype"),
        ("Cannot find a working triton installation.", "triton-missing"),
        ("/tmp/x/main.c:5:10: fatal error: Python.h: No such file or directory", "python-headers"),
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "c-compiler-missing"),
        ("train.py: error: argument --attention_mechanism: invalid choice: 'flexx'", "setting-unknown"),
        ("error: unrecognized arguments: --attn_implementation=sdpa", "flag-unknown"),
        ("step 12: loss: nan", "loss-nan"),
        ("torch._dynamo.exc.Unsupported: Skip calling `torch.compiler.disable()`d function", "fullgraph-break"),
        ("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "safetensors-header"),
        ("maskloom: NOT proved: 0 calls masked, 3 left as they are", "not-proved"),
        (
            "NotImplementedError: Using multiple indexing operations on the same tensor that requires gradients in a score_mod function is not currently supported.",
            "capture-read-twice",
        ),
        (
            "RuntimeError: BACKEND='FLASH' but flash attention cannot be used: NYI: score_mod or mask_mod captures a 0-dim CPU tensor scalar.",
            "flash-backend-refused",
        ),
        ("NYI: Flex Flash Attention bwd doesn't support captured grads yet.", "flash-backend-refused"),
        (
            "FLASH backend dLSE is not supported by the SM100/SM110 dedicated head_dim=256 FA4 backward kernel.",
            "flash-backend-refused",
        ),
        ("RuntimeError: CUDA error: no kernel image is available", "no-kernel-image"),
        ("ptxas error   : Entry function 'k' uses too much shared data (0x1 bytes)", "triton-shared-memory"),
        ("maskloom: the sidecar is not loaded: MASKLOOM_SIDECAR_SHAPES is 'x'", "sidecar-not-loaded"),
        ("kernel_root: ~/.cache/torch/kernels", "kernel-folder"),
        ("prototype; recompile when drivers change", "flex-prototype"),
        ("ragged masks are not supported", "ragged-masks"),
        ("Requires Ampere+", "card-too-old"),
    ] {
        assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
    }
}

/// Every message that trainers' and libraries' users are known to meet, as it is printed.
const MET: [(&str, &str); 51] = [
    (
        "Flex Attention backend 'flex' is not usable because of missing package or the version is too old. Please install `torch>=2.5.0`.",
        "diffusers-flex-missing",
    ),
    ("RuntimeError: Could not compile flex_attention kernels", "flex-compile"),
    (
        "AttributeError: module 'torch.nn.attention' has no attribute build_flex_attention_kernels",
        "flex-helper-missing",
    ),
    ("ValueError: Query, key, and value must be on a CUDA device.", "cuda-tensors"),
    ("ValueError: Query, key, and value must be either bfloat16 or float16.", "dtype"),
    ("training never switches backend", "backend-never-switches"),
    ("RuntimeError: FlashAttention is only supported on CUDA 11.7 and above. nvcc was not found.", "cuda-home"),
    ("OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.", "cuda-home"),
    (
        "The detected CUDA version (12.4) mismatches the version that was used to compile PyTorch (13.0).",
        "cuda-mismatch",
    ),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "nvcc-too-old"),
    ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", "driver-too-old"),
    ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "driver-too-old"),
    ("ImportError: flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c10", "flash-attn-abi"),
    ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "flash-attn-ampere"),
    ("Flash Attention 3 requires compute capability >= 9.0", "flash-attn-3-hopper"),
    ("FlashAttention forward only supports head dimension at most 256", "flash-attn-head-dim"),
    ("head_size should be a multiple of 8", "flash-attn-head-dim"),
    (
        "UserWarning: flex_attention called without torch.compile() - this will use an unfused implementation",
        "flex-uncompiled",
    ),
    ("torch._dynamo hit config.recompile_limit (8)", "recompile-limit"),
    ("torch._dynamo hit config.cache_size_limit (8)", "recompile-limit"),
    (
        "block_mask was created for block_mask.shape=(1, 1, 128, 128) but got q_len=256 and kv_len=256. As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask.",
        "block-mask-length",
    ),
    (
        "block_mask was created for block_mask.shape=(1, 1, 512, 512) but got q_len=256. As the block mask was created for a larger length",
        "block-mask-length",
    ),
    (
        "OutOfResources: out of resource: shared memory, Required: 268288, Hardware limit: 232448",
        "triton-shared-memory",
    ),
    ("RuntimeError: No valid triton configs. OutOfMemoryError: out of resource", "triton-shared-memory"),
    ("RuntimeError: No available kernel. Aborting execution.", "sdpa-no-kernel"),
    (
        "torch.OutOfMemoryError: CUDA out of memory. File \"flex_attention.py\", line 900, in create_block_mask",
        "block-mask-memory",
    ),
    ("Building wheels for collected packages: flash-attn ... (hangs)", "flash-attn-build-slow"),
    ("cuda runtime version mismatch", "cuda-mismatch"),
    ("CUDA version mismatch between torch and the toolkit", "cuda-mismatch"),
    ("ninja: build stopped: out of memory during compilation", "flash-attn-build-memory"),
    ("environment broken after installing flash-attn", "flash-attn-broke-environment"),
    ("NotImplementedError: NYI: query, key, and value must be 4D tensors", "not-4d"),
    (
        "ValueError: Expect query and key/value to have the same embedding dimension but got E=64 and E=128.",
        "head-dim-differs",
    ),
    (
        "ValueError: Expect query and key/value to have the same number of heads but got Hq=32 and Hkv=8. Try setting enable_gqa=True for GQA.",
        "heads-differ",
    ),
    (
        "ValueError: Expect number of query heads to be a multiple of kv heads for GQA but got Hq=8 and Hkv=3.",
        "gqa-heads",
    ),
    ("AssertionError: Expected 4 or 5 positional args, got 3", "mod-arity"),
    ("RuntimeError: All inputs should be callable mask_mods: (None,)", "mods-callable"),
    ("ValueError: Query length must be greater than 0 / Key length must be greater than 0", "zero-length"),
    (
        "RuntimeError: No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math kernel and the fused kernels.",
        "sdpa-no-kernel",
    ),
    (
        "create_block_mask mask_tensor = create_mask( RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 70368744177664 bytes.",
        "block-mask-memory",
    ),
    (
        "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate",
        "host-out-of-memory",
    ),
    (
        "in flex_attention max_scores = torch.max(post_mod_scores, dim=-1)[0] IndexError: max(): Expected reduction dim 3 to have non-zero size.",
        "zero-length",
    ),
    (
        "Sage Attention backend 'sage' is not usable because of missing package or the version is too old. Please install `sageattention>=2.1.1`.",
        "diffusers-backend-missing",
    ),
    (
        "Xformers Attention backend 'xformers' is not usable because of missing package or the version is too old.",
        "diffusers-backend-missing",
    ),
    (
        "torch._dynamo.exc.UserError: Data-dependent branching. Developer debug context: attempted to jump with TensorVariable()",
        "branch-on-index",
    ),
    (
        "in flex_attention return s + t[i] IndexError: index 10 is out of bounds for dimension 0 with size 10",
        "device-assert",
    ),
    (
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the package for FlashAttention2 doesn't seem to be installed.",
        "transformers-flash-missing",
    ),
    (
        "ValueError: Specified `attn_implementation=\"flex\"` is not supported. The only possible arguments are `attn_implementation=\"eager\"`",
        "transformers-unknown-setting",
    ),
    (
        "ValueError: `backend='flash_attention_2'` must be one of the following: _flash_3_hub, flex",
        "diffusers-unknown-backend",
    ),
    ("ptxas fatal   : Value 'sm_130' is not defined for option 'gpu-name'", "nvcc-too-old"),
    ("block_mask = create_block_mask( TypeError: tensor([1., 1., 1.]) is not a callable object", "block-mask-no-mod"),
];

#[test]
fn every_message_users_meet_is_known_with_a_cause_and_a_fix() {
    for (text, code) in MET {
        assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
        let reported = render(text);
        assert!(reported.contains("means: ") && reported.contains("do:    "), "{reported}");
    }
    assert!(codes("error[nvrtc-missing]: NVRTC was not found").contains(&"nvrtc-missing"));
}

#[test]
fn unknown_text_gets_the_nearest_or_says_so() {
    let Explanation::Nearest(near) = explain("my flash wheel takes for ever while it builds") else { panic!() };
    assert!(near.iter().any(|e| e.code.starts_with("flash-attn")), "{near:?}");
    assert!(render("qwertyuiop").starts_with("This message is unknown, and no known"));
}

/// Messages of public reports and of other versions, in other words, with other numbers and quotes.
#[test]
fn rewordings_find_the_same_entries() {
    for (text, code) in [
        ("ValueError: Block sparse tensors have block size 64, which must be a multiple of 128.", "fa4-block-size"),
        (
            "RuntimeError: Cannot find a build variant for this system in kernels-community/flash-attn3: Torch version (2.14) does not match",
            "hub-kernel-no-variant",
        ),
        (
            "FileNotFoundError: Kernel at path /x does not have build: torch29-cxx11-cu130-x86_64-linux",
            "hub-kernel-stale",
        ),
        (
            "attention_dispatch.py, line 450, in dispatch_attention_fn\nTypeError: 'NoneType' object is not callable",
            "hub-kernel-not-loaded",
        ),
        ("ValueError: `attn_mask` is not supported for flash-attn 3.", "flash-mask-refused-since-037"),
        ("ValueError: `attn_mask` is not supported for aiter attention", "aiter-mask"),
        ("AttributeError: 'BlockMask' object has no attribute 'ndim'", "block-mask-arithmetic"),
        ("Expect q/k/v and block_mask to be on the same device but got cpu and cuda:3.", "block-mask-device-default"),
        ("torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment", "vmap-index"),
        ("RuntimeError: shape '[4, 77, 64]' is invalid for input of size 157696", "reshape-lost-heads"),
        (
            "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
            "cuda-runtime-library",
        ),
        ("urllib.error.HTTPError: HTTP Error 404: Not Found", "wheel-not-found"),
        ("ImportError: Requires Flash-Attention version >=2.7.1,<=2.8.2 but got 2.8.3.", "xformers-flash-version"),
        ("AssertionError: headdim should be in [64, 96, 128].", "sage-head-dim"),
        ("ValueError: Unsupported head_dim: 160", "sage-head-dim"),
        ("AssertionError: s44 (could be from ['L']) not in {s1: [...]}", "nested-tensor"),
        ("ValueError: too many values to unpack (expected 2) in _flash_attention_3", "flash-3-unpack"),
        ("BlockMask(shape=(1, 1, 100, 100), sparsity=-63.84%", "negative-sparsity"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate", "gpu-out-of-memory"),
        ("RuntimeError: CUDA error: out of memory", "gpu-out-of-memory"),
        ("OutOfResources: out of resource: tensor memory, Required: 768, Hardware limit: 512", "tensor-memory"),
        ("TypeError: m() missing 1 required positional argument: 'kv_idx'", "mod-argument-missing"),
        ("create-block_mask requires a mask_mod function! Got <bound method A.mask of <x>>", "mod-is-method"),
        ("The NVIDIA driver on your system is too old (found version 11040)", "driver-old-for-torch"),
        ("/usr/bin/ld: cannot find -lcuda: No such file or directory", "link-libcuda"),
        (
            "RuntimeError: Expected query, key, and value to have the same dtype, but got query.dtype: float",
            "dtypes-differ",
        ),
        ("Expected attn_mask dtype to be bool or to match query dtype, but got attn_mask.dtype: double", "mask-format"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED", "cudnn-status"),
        ("RuntimeError: CUDA error: device kernel image is invalid", "kernel-image-invalid"),
        (
            "ValueError: XForCausalLM does not support an attention implementation through torch's flex_attention yet",
            "flex-not-supported-by-model",
        ),
        ("NotImplementedError: NYI: L must be a multiple of 128", "flex-multiple-of-128"),
        ("ValueError: `is_causal` cannot be True when `attn_mask` is not None.", "causal-flag-and-mask"),
        ("RuntimeError: kohaku-fa requires nvidia-cutlass-dsl >= 4.8", "kohaku"),
        (
            "Using sageattention for attention calculations during training. Your attention layers will not be trained.",
            "sage-in-training",
        ),
        ("set PYTORCH_ALLOC_CONF=expandable_segments:True", "allocator-setting"),
    ] {
        assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
    }
}

/// Symptoms in users' own words, in the languages of trainers' guides, with the bullet in front.
#[test]
fn symptoms_are_found_in_four_languages_and_with_bullets() {
    for (text, code) in [
        ("- the training run never switches to my backend", "backend-never-switches"),
        ("* flex has no effect on SDXL", "backend-never-switches"),
        ("| El entrenamiento nunca cambia a otro backend | usa otra familia |", "backend-never-switches"),
        ("训练从未切换到这个后端", "backend-never-switches"),
        ("训练始终未切换到该后端", "backend-never-switches"),
        ("Training कभी backend पर स्विच नहीं होता", "backend-never-switches"),
        ("- Solo is_causal=False está soportado", "causal-flag-and-mask"),
        ("- 仅支持 is_causal=False", "causal-flag-and-mask"),
        ("- केवल is_causal=False समर्थित है", "causal-flag-and-mask"),
        ("- `is_causal=False` only", "causal-flag-and-mask"),
        ("- las máscaras irregulares no están soportadas", "ragged-in-words"),
        ("- 不支持不规则的注意力掩码", "ragged-in-words"),
        ("- API प्रोटोटाइप है, ड्राइवर बदलने पर फिर compile करें", "prototype-in-words"),
        ("- la función es un prototipo; recompila al cambiar los controladores", "prototype-in-words"),
    ] {
        assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
    }
}

#[test]
fn a_division_that_explains_a_shape_is_done() {
    let reported = render("RuntimeError: shape '[2, 24731, 128]' is invalid for input of size 151947264");
    assert!(reported.contains("151947264 / (2 x 24731 x 128) = 24"), "{reported}");
    assert!(!render("shape '[2, 0]' is invalid for input of size 8").contains(" = "));
}

/// Text that is no message finds none, and nothing that leads astray.
#[test]
fn other_text_is_unknown() {
    for text in [
        "The quick brown fox jumps over the lazy dog",
        "KeyError: 'transformer.blocks.7.attn.to_q.lora_A.weight'",
        "wandb: Run summary: loss 0.12 learning_rate 1e-4",
        "ModuleNotFoundError: No module named 'datasets'",
        "def mask_mod(b, h, q_idx, kv_idx): return q_idx >= kv_idx",
        "a multiple of 128 tokens of a mask that I like",
    ] {
        match explain(text) {
            Explanation::Known(found) => panic!("{text}: {:?}", found.iter().map(|e| e.code).collect::<Vec<_>>()),
            Explanation::Nearest(near) => {
                assert!(near.len() < 3, "{text}: {:?}", near.iter().map(|e| e.code).collect::<Vec<_>>())
            }
        }
    }
}

#[test]
fn every_entry_says_how_it_was_checked() {
    for entry in all() {
        assert!(!checked(entry).is_empty(), "{}", entry.code);
    }
    assert!(render("No available kernel. Aborting execution").contains("as of: "));
}

/// Messages of public reports in the words of a search box or of another version: the entry about them stands first.
#[test]
fn the_entry_that_says_most_stands_first() {
    let mut wrong: Vec<(&str, &str, String)> = Vec::new();
    for (text, code) in [
        ("block_sparsity.py: sparse block size (128) is not divisible by 256 on this arch", "fa4-block-size"),
        ("FLASH backend with BlockMask under context parallel fails on B200", "fa4-block-size"),
        ("no compatible build variant of flash-attn2 for torch 2.13", "hub-kernel-no-variant"),
        ("kernels-community/flash-attn2 has no build that fits torch213-cxx11-cu130", "hub-kernel-no-variant"),
        ("Kernel at path /x does not have build: torch28-cxx11-cu128-x86_64-linux", "hub-kernel-stale"),
        ("the kernel in my hub cache lacks the build torch28-cxx11-cu128", "hub-kernel-stale"),
        ("set_attention_backend on one block with sage_hub: NoneType is not callable", "hub-kernel-not-loaded"),
        ("flash-attn 2 does not support attn_mask since diffusers 0.37", "flash-mask-refused-since-037"),
        ("aiter attention does not support attn_mask on my NVIDIA card", "aiter-mask"),
        ("TypeError: unsupported operand type(s) for +: 'Tensor' and 'BlockMask'", "block-mask-is-no-tensor"),
        ("q, k, v are on cpu but block_mask is on cuda:0", "block-mask-device-default"),
        ("TypeError: list indices must be integers or slices, not Tensor", "vmap-index"),
        ("shape [4, 100, 64] invalid, input has size 614400", "reshape-lost-heads"),
        ("cannot reshape tensor of 151947264 elements into shape [2, 24731, 128]", "reshape-lost-heads"),
        ("libcudart.so.11.0 not found when importing flash_attn_2_cuda", "cuda-runtime-library"),
        ("pip install flash-attn: Guessing wheel URL ... HTTP Error 404", "wheel-not-found"),
        ("xformers: flash-attention version 2.8.3 is not in the supported range", "xformers-flash-version"),
        ("sageattn: head dimension 40 not supported", "sage-head-dim"),
        ("cannot import name 'create_nested_block_mask'", "nested-tensor"),
        ("flash_attn_interface returns a tensor instead of a tuple", "flash-3-unpack"),
        ("77 GiB allocated by uncompiled flex_attention at 16384 tokens", "flex-eager-memory"),
        ("create_block_mask takes 65 ms per step", "block-mask-slow"),
        ("scaled_dot_product_attention() got an unexpected keyword argument 'enable_gqa'", "sdpa-keyword"),
        ("RuntimeError: Bq and Bkv must broadcast. Got Bq=4 and Bkv=2", "block-mask-broadcast"),
        (
            "NYI: embedding dimension of the query, key, and value must be at least 16 but got E=8",
            "flex-head-dim-small",
        ),
        ("Q and KV block size must be divisible by BLOCK_M and BLOCK_N", "flex-block-divides-tile"),
        ("Number of shared query heads sharing the same KV head must be power of 2.", "flex-decode-groups"),
        ("DDPOptimizer backend: Found a higher order op in the graph. This is not supported.", "ddp-optimizer"),
        ("There was no rule registered for HOP flex_attention and mode <FlopCounterMode>", "higher-order-op-rule"),
        ("Detected that you are using FX to symbolically trace a dynamo-optimized function.", "fx-on-compiled"),
        ("UserWarning: 1Torch was not compiled with flash attention. (Triggered internally", "flash-not-compiled-in"),
        ("Flash Attention does not support non-null attn_mask.", "sdpa-why-not"),
        ("RuntimeError: p.attn_bias_ptr is not correctly aligned", "attn-bias-aligned"),
        ("RuntimeError: cutlassF: no kernel found to launch!", "cutlass-no-kernel"),
        ("NotImplementedError: No operator found for `memory_efficient_attention_forward`", "xformers-no-operator"),
        ("RuntimeError: CUDA error: invalid configuration argument", "grid-limit"),
        ("AssertionError: expected size 64==64, stride 4096==64 at dim=1", "stride-changed"),
        ("RuntimeError: cu_seqlens_q must have shape (batch_size + 1)", "varlen-offsets"),
        ("Backward pass is not implemented for Sage attention.", "diffusers-no-backward"),
        ("flash_attn is installed but failed to import: x. Falling back to native", "diffusers-import-failed"),
        ("The product of `ring_degree` (4) and `ulysses_degree` (4) must not exceed the world size (8)", "cp-degrees"),
        ("Q_LEN 4100 is not divisible by CP mesh world size 4 * Q_BLOCK_SIZE 128.", "cp-length"),
        ("Load balancing requires `is_causal=True`.", "cp-what-it-takes"),
        ("`sdpa` attention does not support `output_attentions=True`.", "output-attentions"),
        (
            "Sliding Window Attention is enabled but not implemented for `sdpa`; unexpected results may be encountered.",
            "window-not-applied",
        ),
        (
            "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
            "card-newer-than-torch",
        ),
        ("AssertionError: Torch not compiled with CUDA enabled", "torch-without-cuda"),
        ("RuntimeError: No CUDA GPUs are available", "no-gpu-visible"),
        (
            "Getting requirements to build wheel ... ModuleNotFoundError: No module named 'torch'",
            "build-without-isolation",
        ),
        ("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found", "glibc-too-old"),
        ("ImportError: DLL load failed while importing flash_attn_2_cuda", "dll-load-failed"),
        (
            "ImportError: This modeling file requires the following packages that were not found in your environment: flash_attn.",
            "flash-import-name",
        ),
        ("ModuleNotFoundError: No module named 'torch.nn.attention.flex_attention'", "flex-import-name"),
        ("TypeError: create_block_mask() got an unexpected keyword argument 'separate_full_blocks'", "flex-keyword"),
        ("AssertionError: SM89 kernel is not available.", "sage-build"),
        ("RuntimeError: PassManager::run failed", "triton-failed"),
        ("CUDA error: unspecified launch failure", "launch-failure"),
        ("[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)", "nccl"),
        ("OSError: [Errno 28] No space left on device", "read-only-cache"),
    ] {
        match explain(text) {
            Explanation::Known(found) if found[0].code == code => {}
            other => wrong.push((text, code, format!("{other:?}").chars().take(160).collect())),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// One slip of the fingers in a word, the colours of a terminal around the message.
#[test]
fn typing_errors_and_colours_do_not_hide_a_message() {
    for (text, code) in [
        ("ValueError: Block sparse tensors have block size 128, which must be a mutliple of 256.", "fa4-block-size"),
        ("AttributeError: 'BolckMask' object has no attribute 'dtype'", "block-mask-arithmetic"),
        ("ValueError: not enough values to unapck (expected 2, got 1) in _flash_3", "flash-3-unpack"),
        ("\u{1b}[31mheaddim should be in [64, 96, 128].\u{1b}[0m", "sage-head-dim"),
        ("\u{1b}[1;91mRequires Flash-Attention version >=2.7.1 but got 2.8.0\u{1b}[0m", "xformers-flash-version"),
    ] {
        assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
    }
}

#[test]
fn a_division_is_done_whatever_the_words_around_it() {
    for (text, want) in [
        ("shape [4, 100, 64] invalid, input has size 614400", "614400 / (4 x 100 x 64) = 24"),
        ("cannot reshape tensor of 151947264 elements into shape [2, 24731, 128]", "= 24: an axis"),
        ("shape '[4, 77, 64]' is invalid for input of size 157697", "8.000, no whole number"),
    ] {
        assert!(render(text).contains(want), "{text}: {}", render(text));
    }
}
