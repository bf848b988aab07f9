//! The messages that `doctor --explain` knows, as a table.
//!
//! Invariant: patterns are parts of the real messages; every fix is something that the reader can do. Must not know
//! code.

use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One message that users meet.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    /// Stable kebab-case name.
    pub code: &'static str,
    /// Words of the message: `..` stands for anything between two pieces in order, `&` joins parts in any order, `#` is a
    /// number. Compared without regard to case, quotes and endings.
    pub patterns: &'static [&'static str],
    /// Its meaning.
    pub cause: &'static str,
    /// The fix.
    pub fix: &'static str,
    /// The versions that it is about, and how that was checked. Empty: see [`checked`].
    pub source: &'static str,
}

/// Where an entry's words were found: which package's text of which version, or which public report.
pub fn checked(entry: &Entry) -> &'static str {
    static FOUND: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../../../assets/trainers/messages.json")).expect("made by a script")
    });
    match entry.source {
        "" => FOUND.get(entry.code).map_or("users' words; in no package's text", String::as_str),
        source => source,
    }
}

/// One entry.
pub(super) const fn entry(
    code: &'static str,
    patterns: &'static [&'static str],
    cause: &'static str,
    fix: &'static str,
) -> Entry {
    Entry { code, patterns, cause, fix, source: "" }
}

/// One entry of public reports, with the versions and how they were checked.
pub(super) const fn reported(
    code: &'static str,
    patterns: &'static [&'static str],
    cause: &'static str,
    fix: &'static str,
    source: &'static str,
) -> Entry {
    Entry { code, patterns, cause, fix, source }
}

/// All of them.
pub(super) static MESSAGES: &[Entry] = &[
    entry(
        "diffusers-flex-missing",
        &["Flex Attention backend 'flex' is not usable because of missing package"],
        "diffusers needs torch 2.5 or newer with CUDA for its flex backend.",
        "install a newer CUDA wheel: pip install -U torch --index-url https://download.pytorch.org/whl/cu128",
    ),
    entry(
        "flex-compile",
        &["Could not compile flex_attention kernels"],
        "A trainer's guide blames the toolkit, but Triton compiles FlexAttention with its own compiler and needs no nvcc. Neither PyTorch nor diffusers contains this message.",
        "read the lines above it: they name the step that failed in Triton (a missing Python.h or gcc, shared memory, an old driver); `maskloom doctor --explain` knows those",
    ),
    entry(
        "flex-helper-missing",
        &["has no attribute build_flex_attention_kernels", "has no attribute 'build_flex_attention_kernels"],
        "This torch has no such helper, although trainers' guides name it: Triton compiles FlexAttention on the first call.",
        "remove the helper; wrap the call: torch.compile(flex_attention). Upgrade torch if the guide requires it",
    ),
    entry(
        "cuda-tensors",
        &["Query, key, and value must be on a CUDA device"],
        "The chosen attention backend runs on CUDA only; this run is on Apple silicon, ROCm or the CPU.",
        "remove the attention backend setting (`attention_mechanism`) for this run",
    ),
    entry(
        "dtype",
        &["Query, key, and value must be either bfloat16 or float16"],
        "Fused kernels need 16-bit inputs; these are float32 or float8.",
        "set mixed_precision to bf16 or fp16 (in Maskloom: dtype bfloat16; float32 runs on the CPU)",
    ),
    entry(
        "backend-never-switches",
        &[
            "never switches & backend",
            "never switch & training",
            "backend & not used & flex",
            "flex not being used",
            "flex has no effect",
            "nunca cambia & backend",
            "nunca usa & backend",
            "no cambia & backend",
            "从不切换",
            "从未切换",
            "不会切换",
            "未切换",
            "没有切换",
            "后端 & 没有生效",
            "backend & स्विच नहीं",
            "बैकएंड & स्विच नहीं",
            "बैकएंड & नहीं बदल",
            "कभी भी बैकएंड",
            "attention_mechanism has no effect",
            "flex changes nothing",
        ],
        "The model family calls PyTorch's SDPA itself instead of diffusers' dispatcher, so that values which set the dispatcher alone (flex, flash-attn) do not reach it: sd1x, sd2x, sdxl, sd3, flux, lumina2, omnigen and others. Values that replace SDPA (sageattention, sla, kohaku-fa) or restrict it (cudnn and native-* from SimpleTuner 4.10) do reach it.",
        "`maskloom advise config.json` says it for your family and value; use a family that dispatches (wan, ltxvideo, qwen_image, flux2, hunyuanvideo, z_image, chroma), or the exported sidecar, which masks every family",
    ),
    entry(
        "cuda-home",
        &[
            "nvcc was not found",
            "nvcc not found",
            "CUDA_HOME environment variable is not set",
            "nvcc: command not found",
        ],
        "A package compiles CUDA code with the toolkit, and none is installed. Maskloom's own kernels need neither nvcc nor CUDA_HOME.",
        "install the CUDA toolkit that matches torch.version.cuda, or export CUDA_HOME=/usr/local/cuda",
    ),
    entry(
        "cuda-mismatch",
        &[
            "The detected CUDA version..mismatches",
            "cuda runtime version mismatch",
            "CUDA version mismatch",
            "CUDA driver version is insufficient for CUDA runtime version",
        ],
        "torch was built for another CUDA version than that of the installed toolkit or driver.",
        "compare torch.version.cuda with `nvcc --version` and `nvidia-smi`; install torch for that CUDA; build extensions with pip install --no-build-isolation",
    ),
    entry(
        "nvcc-too-old",
        &[
            "Unsupported gpu architecture 'compute_",
            "is not defined for option 'gpu-name'",
            "invalid value for --gpu-architecture",
        ],
        "The compiler (nvcc, ptxas or NVRTC) is older than the card.",
        "install a newer toolkit and set CUDA_HOME to it, or compile for an older architecture (TORCH_CUDA_ARCH_LIST=\"8.0\")",
    ),
    entry(
        "driver-too-old",
        &["unsupported toolchain", "UNSUPPORTED_PTX_VERSION", "provided PTX was compiled with an unsupported"],
        "The driver is older than the toolkit that compiled the kernel.",
        "update the driver, or use an older compiler: NVRTC 12.x for drivers 525 to 579 (pip install nvidia-cuda-nvrtc-cu12)",
    ),
    entry(
        "flash-attn-abi",
        &["flash_attn_2_cuda..undefined symbol"],
        "The flash-attn wheel was built for another torch.",
        "pip uninstall flash-attn, then install a wheel whose torch, CUDA, Python and C++ ABI tags match yours",
    ),
    entry(
        "flash-attn-ampere",
        &["FlashAttention only supports Ampere GPUs or newer"],
        "The card's compute capability is below 8.0.",
        "use sdpa on this card",
    ),
    entry(
        "flash-attn-3-hopper",
        &["Flash Attention 3 requires compute capability >= 9.0"],
        "FlashAttention-3 runs on Hopper only.",
        "use flash_attention_2 or sdpa on this card",
    ),
    entry(
        "flash-attn-head-dim",
        &[
            "head dimension at most 256",
            "head_dim should be a multiple of 8",
            "head_size should be a multiple of 8",
            "multiple of 8",
        ],
        "FlashAttention-2 takes head dimensions that are multiples of 8, up to 256.",
        "pad head_dim to the next multiple of 8, or use flex or sdpa (Maskloom's own kernels pad by themselves)",
    ),
    entry(
        "flash-attn-mask",
        &["does not support attn_mask", "attn_mask is not supported", "flash..attn_mask..not supported"],
        "FlashAttention-2 computes only full or causal attention and refuses other masks.",
        "use flex for block-sparse masks, or sdpa with a dense mask",
    ),
    entry(
        "flash-attn-build-slow",
        &[
            "Building wheel for flash-attn",
            "Building wheel for flash_attn",
            "Building wheels for collected packages: flash",
            "flash-attn..hangs",
            "flash attention..hangs",
            "flash-attn wheel build",
        ],
        "The build takes 10 to 30 minutes and can use over 8 GB of memory; it does not hang.",
        "wait, or use a prebuilt wheel whose torch, CUDA, Python and ABI tags match",
    ),
    entry(
        "flash-attn-build-memory",
        &[
            "out of memory during compilation",
            "c++: fatal error: Killed signal terminated program cc1plus",
            "nvcc error..Killed",
        ],
        "The parallel build of flash-attn needs more than 8 GB of memory.",
        "MAX_JOBS=2 pip install flash-attn --no-build-isolation, or use a prebuilt wheel",
    ),
    entry(
        "flash-attn-broke-environment",
        &["No module named 'flash_attn'", "environment broken after installing flash-attn"],
        "flash-attn is missing, or its installation replaced torch.",
        "create a new virtual environment without flash-attn and keep sdpa; verify one with python -c \"import flash_attn; print(flash_attn.__version__)\"",
    ),
    entry(
        "flex-uncompiled",
        &["flex_attention called without torch.compile()"],
        "Uncompiled FlexAttention materialises all scores, which is slow and gives no warning.",
        "flex_attention = torch.compile(flex_attention) once at module level; with diffusers compile the model",
    ),
    entry(
        "recompile-limit",
        &["recompile_limit", "cache_size_limit"],
        "torch.compile saw too many different mods or shapes and fell back to the slow path.",
        "create the mask_mod once and reuse it, keep shapes static, or raise torch._dynamo.config.recompile_limit",
    ),
    entry(
        "block-mask-length",
        &["block_mask was created for"],
        "The BlockMask was created for other lengths than those of q and k.",
        "create it for the exact lengths: create_block_mask(mask_mod, B, H, q_len, kv_len)",
    ),
    entry(
        "triton-shared-memory",
        &["out of resource: shared memory", "No valid triton configs", "ptxas error..uses too much shared data"],
        "The Triton kernel's tiles do not fit into the card's shared memory.",
        "pass smaller tiles: kernel_options={\"BLOCK_M\": 64, \"BLOCK_N\": 32, \"num_stages\": 1}",
    ),
    entry(
        "sdpa-no-kernel",
        &["No available kernel. Aborting execution", "No viable backend for scaled_dot_product_attention was found"],
        "The SDPA backend that was forced rejects these inputs (mask, dtype, head_dim or layout).",
        "allow another one (torch.nn.attention.sdpa_kernel with several backends); the warnings above the error name the reason",
    ),
    entry(
        "block-mask-memory",
        &[
            "out of memory..create_block_mask",
            "create_block_mask..out of memory",
            "create_block_mask..can't allocate memory",
        ],
        "create_block_mask evaluates B x H x Q x KV booleans at once unless it is compiled.",
        "create_block_mask(..., _compile=True), pass None for B and H if the mask does not read them, or export the block lists from Maskloom, which never materialises the dense mask",
    ),
    entry(
        "cuda-out-of-memory",
        &["CUDA out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"],
        "The card's memory is full. Materialised scores (eager, uncompiled flex) need q_len x kv_len values for each head.",
        "use flex or sdpa instead of eager, shorten the sequence or lower the batch; check that flex_attention is compiled",
    ),
    entry(
        "host-out-of-memory",
        &["DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory"],
        "The memory of the computer (not of the card) is full: one tensor needs more than is free.",
        "the number of bytes in the message identifies the tensor: q_len x kv_len values are a dense mask or all scores; use a BlockMask and compiled flex, or shorter sequences",
    ),
    entry(
        "illegal-address",
        &["an illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS"],
        "A kernel read outside its tensors. With FlexAttention the usual cause is a captured tensor indexed beyond its end, because score_mod also runs at masked positions.",
        "make captured tensors as long as the padded length or clamp the index; `maskloom check FILE.py` lists the reads that can be out of bounds",
    ),
    entry(
        "device-assert",
        &[
            "device-side assert triggered",
            "index out of bounds: 0 <= ",
            "flex_attention..is out of bounds for dimension",
        ],
        "An index is out of bounds in a compiled kernel. The usual cause is a captured tensor shorter than the sequence.",
        "make captured tensors as long as the padded length, or clamp the index",
    ),
    entry(
        "not-4d",
        &["NYI: query, key, and value must be 4D tensors", "must be 4D tensors"],
        "FlexAttention takes q, k and v as [batch, heads, tokens, head_dim].",
        "add the missing dimension with unsqueeze, or transpose(1, 2) tensors that are [batch, tokens, heads, head_dim]",
    ),
    entry(
        "head-dim-differs",
        &["Expect query and key/value to have the same embedding dimension but got"],
        "The last dimensions of query and key differ.",
        "project both to one head_dim (only v may have another)",
    ),
    entry(
        "heads-differ",
        &["Expect query and key/value to have the same number of heads but got"],
        "There are fewer key heads than query heads.",
        "pass enable_gqa=True for grouped queries",
    ),
    entry(
        "gqa-heads",
        &["Expect number of query heads to be a multiple of kv heads for GQA but got"],
        "Grouped queries need a whole number of query heads for each kv head.",
        "choose kv heads that divide the query heads",
    ),
    entry(
        "mods-callable",
        &["All inputs should be callable mask_mods"],
        "and_masks and or_masks take functions, not tensors or BlockMasks.",
        "pass the mask_mods themselves, and create the BlockMask from the result",
    ),
    entry(
        "zero-length",
        &[
            "Query length must be greater than 0",
            "Key length must be greater than 0",
            "flex_attention..Expected reduction dim 3 to have non-zero size",
            "Tensor query has shape..with a zero dimension",
        ],
        "A sequence is empty. (FlexAttention compiled for the CPU then ends the process with a floating point exception.)",
        "skip empty sequences, or use axes of at least one token",
    ),
    entry(
        "diffusers-flash-missing",
        &["Flash Attention backend..is not usable because of missing package", "Please install `flash-attn>="],
        "diffusers found no flash-attn, or one older than 2.6.3.",
        "maskloom doctor --guide flash-attn; or go back to attention_mechanism \"diffusers\", which is SDPA",
    ),
    entry(
        "diffusers-flash-3-missing",
        &["Flash Attention 3 backend..is not usable because of missing package"],
        "diffusers found no FlashAttention-3. It is built from source and runs on Hopper only.",
        "use flash-attn-3-hub, which downloads a prebuilt one, or attention_mechanism \"diffusers\"",
    ),
    entry(
        "diffusers-backend-missing",
        &[
            "Sage Attention backend..is not usable",
            "Xformers Attention backend..is not usable",
            "AITER Attention backend..is not usable",
        ],
        "diffusers found no package for the requested attention backend, or one that is too old.",
        "install the package named in the message (sageattention has no backward pass: do not train with it), or go back to attention_mechanism \"diffusers\"",
    ),
    entry(
        "transformers-flash-missing",
        &["FlashAttention2 has been toggled on, but", "FlashAttention3 has been toggled on, but"],
        "attn_implementation requests flash-attn. This environment lacks it or cannot use it (the end of the message says which).",
        "go back to attn_implementation=\"sdpa\", which is often as fast; or maskloom doctor --guide flash-attn",
    ),
    entry(
        "transformers-unknown-setting",
        &["Specified `attn_implementation=..is not supported", "attn_implementation..The only possible arguments are"],
        "transformers does not know this attn_implementation; it is not registered, or it is a name of a trainer or of diffusers.",
        "use eager, sdpa, flash_attention_2, flash_attention_3 or flex_attention; an exported adapter registers its own in use(model)",
    ),
    entry(
        "diffusers-unknown-backend",
        &["backend=..must be one of the following: "],
        "diffusers' set_attention_backend does not know this name; trainers' and transformers' names differ from its own.",
        "flash-attn is \"flash\", cudnn is \"_native_cudnn\", sdpa is \"native\", flex is \"flex\"",
    ),
    entry(
        "diffusers-kernels-missing",
        &["`kernels` package isn't available", "needs to be used with a `kernels` version"],
        "The -hub backends download their kernels with the package `kernels`. It is missing or too old.",
        "pip install -U kernels",
    ),
    entry(
        "diffusers-capability",
        &["must be on a CUDA device with compute capability >="],
        "The chosen backend needs a newer card than this one.",
        "use attention_mechanism \"diffusers\" or \"flex\" on this card",
    ),
    entry(
        "diffusers-mask-refused",
        &["`attn_mask` is not yet supported for"],
        "The chosen dense backend supports no mask, but the model passes one.",
        "use attention_mechanism \"diffusers\" (SDPA with a dense mask) or \"flex\"",
    ),
    entry(
        "diffusers-mask-shape",
        &[
            "Unsupported attention mask shape",
            "for 2D attention mask",
            "for 4D attention mask",
            "Normalized attention mask shape mismatch",
        ],
        "The backend cannot broadcast the mask's shape over batch, heads, queries and keys.",
        "pass it as [batch, 1, 1 or q_len, kv_len]; a BlockMask needs no change",
    ),
    entry(
        "block-mask-sliced",
        &["Cannot use mask_mod from a sliced BlockMask", "mask_mod & sliced BlockMask", "mask_mod & slicing BlockMask"],
        "Slicing a BlockMask drops its mask_mod.",
        "set it again from the original mask: part.mask_mod = block_mask.mask_mod, shifted by the slice's first query",
    ),
    entry(
        "block-mask-batch",
        &["Expect query and key/value to have the same batch size"],
        "q has another batch size than k, v or the block mask.",
        "expand k and v to the batch of q, or make the block mask with B=None",
    ),
    entry(
        "block-mask-device",
        &["Expect q/k/v and block_mask to be on the same device"],
        "The block mask is on another device than q, k and v.",
        "create_block_mask(..., device=query.device), or block_mask.to(query.device)",
    ),
    entry(
        "block-mask-no-mod",
        &[
            "create-block_mask requires a mask_mod function",
            "create_block_mask requires a mask_mod",
            "create_block_mask..is not a callable object",
        ],
        "The argument of create_block_mask is not a function of (b, h, q_idx, kv_idx).",
        "pass the mask_mod itself; call a factory first: create_block_mask(sliding_window(1024), ...)",
    ),
    entry(
        "flex-cpu-backward",
        &["FlexAttention does not support backward on CPU"],
        "FlexAttention's CPU kernel is forward only.",
        "train on a GPU, or use sdpa on the CPU",
    ),
    entry(
        "flex-device",
        &["FlexAttention is only supported on CUDA"],
        "FlexAttention has no kernel for this device. Apple's mps has one for inference in PyTorch 2.15, older releases have none.",
        "use sdpa there: attention_mechanism \"diffusers\", attn_implementation \"sdpa\"",
    ),
    entry(
        "flex-backend-option",
        &["Invalid BACKEND value", "BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION"],
        "kernel_options name a backend that this torch does not have, or two at once.",
        "remove BACKEND from kernel_options, or set it alone to AUTO, TRITON, FLASH or TRITON_DECODE",
    ),
    entry(
        "branch-on-index",
        &[
            "GuardOnDataDependentSymNode",
            "data-dependent control flow",
            "Data-dependent branching",
            "attempted to jump with TensorVariable",
            "Boolean value of Tensor with more than one value is ambiguous",
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow",
        ],
        "A mod branches (`if`, `and`, `or`, `not`) on an index or on a tensor.",
        "use & | ~ between comparisons, and torch.where(condition, a, b) instead of if",
    ),
    entry(
        "padding-mask-2d",
        &["2-D attention mask", "attention_mask..shape..(batch, seq)", "padding mask..flex"],
        "diffusers' flex backend applies a 2-D (batch, tokens) mask to queries, its native backend applies it to keys.",
        "pass a 4-D mask [batch, 1, 1, tokens], or a BlockMask",
    ),
    entry(
        "nvrtc-missing",
        &["libnvrtc.so", "nvrtc64_"],
        "NVRTC, the compiler library, was not found.",
        "maskloom doctor --fix installs it with pip into Maskloom's own folder; or pip install nvidia-cuda-nvrtc-cu12; or set MASKLOOM_NVRTC to its path",
    ),
    entry(
        "driver-missing",
        &[
            "libcuda.so",
            "NVIDIA-SMI has failed",
            "no CUDA-capable device is detected",
            "Found no NVIDIA driver on your system",
        ],
        "There is no NVIDIA driver, or this container has no access to the card.",
        "install the driver; in a container start it with --gpus all. Maskloom runs on the CPU without one",
    ),
    entry(
        "winit-library",
        &["libxkbcommon", "XKBNotFound", "XOpenDisplayFailed", "WaylandError"],
        "The window needs a library or server that is missing.",
        "sudo apt-get install -y libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon0 libxkbcommon-x11-0 libgl1; `maskloom doctor` shows which",
    ),
    entry(
        "devices-differ",
        &["Expected all tensors to be on the same device", "Query, key, and value must be on the same device"],
        "Two tensors of one operation are on different devices, often a mask or a table created on the CPU.",
        "create the mask on the queries' device: make_block_mask(query.device); move the model before the design is applied",
    ),
    entry(
        "index-out-of-bounds",
        &["is out of bounds for dimension", "device-side assert triggered"],
        "A mod reads a captured tensor beyond its end: the sequence is longer than the table.",
        "export the design for the length that the model uses; exported modules refuse other lengths with a message",
    ),
    entry(
        "mask-dtype",
        &["mask.dtype must be torch.bool", "Expected attn_mask dtype to be bool or float"],
        "The mask contains whole numbers; PyTorch accepts bool (keep) or float (added).",
        "pass mask.bool(), or an additive mask in the queries' dtype",
    ),
    entry(
        "vmap-item",
        &["vmap: It looks like you're calling .item()", "data-dependent control flow"],
        "The mod branches on an index or reads a number from a tensor; mods run on all cells at once.",
        "write torch.where(condition, a, b) and `&` instead of `if` and `and`; `maskloom check FILE.py` shows the rewrite",
    ),
    entry(
        "mod-arity",
        &[
            "Expected 4 or 5 positional args, got",
            "missing 1 required positional argument..score_mod",
            "requires a mask_mod function! Got",
        ],
        "A mask_mod takes (b, h, q_idx, kv_idx), a score_mod (score, b, h, q_idx, kv_idx), each as a named parameter; *args does not count.",
        "name all parameters; if the trace is in maskloom_sidecar, export again: older sidecars did this on models with masks",
    ),
    entry(
        "diffusers-mask-unsupported",
        &["attn_mask not supported for"],
        "The chosen diffusers backend supports no mask, but the model passes one. (`_native_flash` prints the name of aiter by mistake: diffusers falls back to it under context parallel, because native-efficient and flex cannot do that.)",
        "choose `native` or `cudnn` (they also run under context parallel, `flex` does not); with an exported adapter or sidecar any backend works",
    ),
    entry(
        "backend-not-registered",
        &["Backend..is not registered", "is not a valid AttentionBackendName"],
        "This diffusers does not know the backend, or its package is not installed.",
        "list them: python -c \"from diffusers.models.attention_dispatch import AttentionBackendName as A; print(*A)\"",
    ),
    entry(
        "kernels-version",
        &["kernels' package..version", "requires the 'kernels' library", "pip install kernels"],
        "The backend needs the Hugging Face package `kernels`. It is missing or too old.",
        "pip install -U kernels; or choose `native`, which needs none",
    ),
    entry(
        "no-kernel-image",
        &["no kernel image is available"],
        "This build of PyTorch, or of the extension in the trace, contains no code for the card's architecture.",
        "install a build for the card: newer cards need newer CUDA wheels; Maskloom's bundle: export with --kernels sm_N",
    ),
    entry(
        "build-hangs",
        &[
            "Build hangs",
            "build freezes",
            "stuck at Building wheel",
            "la compilación se cuelga",
            "构建卡住",
            "बिल्ड अटक",
        ],
        "The build of flash-attn takes 10 to 30 minutes and over 8 GB of memory, without any output.",
        "wait, or set MAX_JOBS=4; or use a prebuilt wheel whose torch, CUDA, Python and ABI tags match",
    ),
    entry(
        "environment-broken",
        &[
            "Installation breaks virtual environment",
            "can corrupt packages",
            "rompe el entorno virtual",
            "破坏虚拟环境",
            "वर्चुअल एनवायरनमेंट",
        ],
        "Installing flash-attn replaced torch or other packages.",
        "create a new virtual environment without flash-attn and keep sdpa; then verify: python -c \"import torch; print(torch.__version__)\"",
    ),
    entry(
        "sidecar-left",
        &["is left as it is: the design is made for", "left as it is: as many tokens, but of a grid"],
        "A call of a watched layer has other tokens, or another grid of tokens, than the design, so it runs without the mask.",
        "export the design for that resolution too and name both folders in MASKLOOM_SIDECAR; MASKLOOM_SIDECAR_STRICT=1 makes it an error",
    ),
    entry(
        "sidecar-unwatched",
        &["no layer was watched", "no watched layer ran"],
        "The sidecar is loaded, but no model of this process has watched layers, or none of them ran.",
        "name the model's class in MASKLOOM_SIDECAR_MODELS and its layers in MASKLOOM_SIDECAR_LAYERS; in a process that imports diffusers, models of transformers must be named",
    ),
    entry(
        "sidecar-unknown-argument",
        &["which the runtime does not know"],
        "The model passes an argument to its attention that the runtime cannot combine with the design, so the call runs without the mask.",
        "choose layers that do not need it (layers=, MASKLOOM_SIDECAR_LAYERS), and report its name to Maskloom's developers",
    ),
    entry(
        "sidecar-beside-pattern",
        &["beside its pattern: MASKLOOM_SIDECAR_REPLACE"],
        "The model brings more than a pattern, such as images whose tokens attend both ways (PaliGemma, Gemma-3), so its calls run without the \
         design, and so do the tokens that it generates after them.",
        "set MASKLOOM_SIDECAR_REPLACE=1 where the design alone is to count, with the images drawn into it; MASKLOOM_SIDECAR_STRICT=1 makes \
         such a call an error",
    ),
    entry(
        "sidecar-grid-unknown",
        &["this model's grid cannot be read"],
        "The design needs a grid of tokens, and the model's arguments do not contain one.",
        "if the grid is the design's: MASKLOOM_SIDECAR_GRID=assume, or use(model, grid=\"assume\")",
    ),
];
