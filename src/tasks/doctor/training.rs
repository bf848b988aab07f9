//! The messages about training that `doctor --explain` knows: trainers' settings, compilers, gradients, masks of the
//! wrong shape; as a table.
//!
//! Invariant: patterns are parts of the real messages; every fix is something that the reader can do. Must not know
//! code.

use super::messages::{Entry, entry};

/// All of them.
pub(super) static MESSAGES: &[Entry] = &[
    entry(
        "mod-arguments",
        &[
            "mod() takes..positional arguments but",
            "too many positional arguments",
            "failed to bind arguments when attempting to inline",
        ],
        "A mod takes other arguments than FlexAttention passes: (b, h, q_idx, kv_idx) to a mask_mod, (score, b, h, q_idx, kv_idx) to a score_mod.",
        "use these parameter names; call a factory first and pass the mod that it returns",
    ),
    entry(
        "hub-kernels-version",
        &[
            "kernels version & hub",
            "need kernels version",
            "`kernels` is not installed",
            "requires kernels>=#",
            "install kernels>=#",
        ],
        "Backends with names ending in -hub download their kernels through the package `kernels`. It is missing or too old.",
        "pip install -U kernels; or choose a backend that needs no download (`diffusers`, which is SDPA)",
    ),
    entry(
        "no-valid-choices",
        &["NoValidChoicesError", "No choices to select"],
        "None of FlexAttention's kernel configurations fits the card's memory for this head_dim and BLOCK_SIZE, usually in the backward pass with BLOCK_SIZE 64 or under autocast.",
        "make the BlockMask with BLOCK_SIZE 128; cast q, k and v to one 16-bit dtype before the call; pass kernel_options={\"BLOCK_M\": 64, \"BLOCK_N\": 64}",
    ),
    entry(
        "cudnn-refused",
        &["cudnn SDPA does not support", "cuDNN Frontend error", "No valid execution plans built", "_native_cudnn"],
        "cuDNN's fused attention does not support this mask, head_dim, dtype or layout.",
        "go back to `diffusers` or `native`, which let PyTorch choose the kernel",
    ),
    entry(
        "mask-shape",
        &[
            "Attention mask should be of size",
            "must match the existing size..at non-singleton dimension",
            "must match the size of tensor..at non-singleton dimension",
            "Attention mask must match the key's",
        ],
        "A dense mask was created for another number of tokens than in this call: another resolution, another length of the text, or a cache.",
        "create it for the call's own q_len and kv_len, as [batch or 1, heads or 1, q_len, kv_len]; an exported module has make_mask(device, q_len, kv_len)",
    ),
    entry(
        "checkpoint-metadata",
        &[
            "Recomputed values for the following tensors have different metadata",
            "A different number of tensors was saved",
        ],
        "Gradient checkpointing ran a layer again in the backward pass with a different result: another mask, another backend, or a compiled function used for the first time.",
        "choose the attention by the lengths of the call, not by a counter or a global; run one step without compilation to see the layer's name",
    ),
    entry(
        "graph-twice",
        &["Trying to backward through the graph a second time"],
        "A tensor that needs gradients was computed once and used in two steps, such as a learned bias that a mod captures.",
        "compute it again in each step, inside the function that creates the score_mod",
    ),
    entry(
        "flash-attn-dtype",
        &[
            "Flash Attention 2 without specifying a torch dtype",
            "FlashAttention only support fp16 and bf16 data type",
            "FlashAttention only supports fp16 and bf16",
        ],
        "flash-attn supports float16 and bfloat16, but the model is in float32.",
        "load the model with dtype=torch.bfloat16 or train with mixed_precision bf16",
    ),
    entry(
        "triton-missing",
        &["Cannot find a working triton installation", "No module named 'triton'", "triton not found"],
        "Compiled FlexAttention needs Triton, which PyTorch's CUDA wheels for Linux install; other builds lack it.",
        "install PyTorch's CUDA wheel; on Windows pip install triton-windows",
    ),
    entry(
        "python-headers",
        &["Python.h: No such file", "fatal error: Python.h"],
        "Triton builds its launcher with the C compiler and finds no headers of this Python.",
        "install them: apt install python3-dev, or the headers of your own Python's version",
    ),
    entry(
        "c-compiler-missing",
        &["Failed to find C compiler", "command 'gcc' failed", "gcc: command not found", "InvalidCxxCompiler"],
        "Triton and Inductor build small programs with a C compiler, and none is installed.",
        "apt install build-essential, or set one: CC=clang",
    ),
    entry(
        "setting-unknown",
        &[
            "invalid choice..attention_mechanism",
            "attention_mechanism: invalid choice",
            "attention_mechanism..invalid choice",
        ],
        "The trainer does not know this attention_mechanism: it accepts only its own names.",
        "use diffusers, native, flash-attn, flash-attn-3-hub, flex, cudnn or sageattention; `maskloom export --backend` writes the name",
    ),
    entry(
        "flag-unknown",
        &[
            "unrecognized arguments: --att",
            "unrecognized arguments: --_attn",
            "unexpected keyword argument 'attn_implementation'",
        ],
        "This program has no such setting: attention_mechanism is SimpleTuner's, attn_implementation transformers'.",
        "see its own --help; the exported sidecar applies a mask without a setting",
    ),
    entry(
        "loss-nan",
        &["loss is nan", "loss: nan", "loss=nan", "loss became NaN", "NaN detected in loss"],
        "A row without any key gives NaN in attention without a rule for such rows: SDPA with a dense mask that drops a whole row, or an additive mask of -inf.",
        "`maskloom check` and the block statistics count empty rows; keep at least the token itself (a band from 0 to 0). FlexAttention returns 0 for such rows",
    ),
    entry(
        "fullgraph-break",
        &["Skip calling `torch.compiler.disable()`d function", "Skip inlining `torch.compiler.disable()`d function"],
        "The model is compiled with fullgraph=True and calls code that cannot be traced. The sidecar does this if it reads a grid from the values of tensors (img_ids).",
        "compile without fullgraph; if the grid is the design's, MASKLOOM_SIDECAR_GRID=assume or use(model, grid=\"assume\") reads no tensor",
    ),
    entry(
        "flex-cpu-training",
        &["does not support cpu backward", "not support backward on cpu"],
        "FlexAttention computes no gradients on the CPU.",
        "train on a GPU; for tests on the CPU use the exported adapter or sidecar, which materialise all scores there",
    ),
    entry(
        "safetensors-header",
        &[
            "HeaderTooLarge",
            "Error while deserializing header",
            "InvalidHeaderDeserialization",
            "MetadataIncompleteBuffer",
        ],
        "The file is not a safetensors file or is truncated. It is often a Git LFS pointer of a few hundred bytes.",
        "check its size; download it again (git lfs pull, huggingface-cli download)",
    ),
    entry(
        "dropout-refused",
        &[
            "uses dropout..FlexAttention has none",
            "dropout..not supported..flex",
            "`flex_attention` does not support `dropout`",
        ],
        "The model trains with attention dropout, which FlexAttention does not support.",
        "set it to 0: attention_dropout in the model's config, dropout in the layer",
    ),
    entry(
        "two-designs",
        &["are made for the same..tokens and layers: choose one"],
        "Two exported designs are for the same tokens, grid and layers, so neither is used.",
        "name only one in MASKLOOM_SIDECAR, or write \"layers\" into the sidecar.json of each",
    ),
    entry(
        "not-proved",
        &["NOT proved"],
        "verify ran the model with the design and with its mask passed by hand. The results differ, or some calls ran without the design.",
        "the line names the unmasked calls with the reason; if all were masked, send the line and the model's config to Maskloom's developers",
    ),
    entry(
        "capture-read-twice",
        &["multiple indexing operations on the same tensor", "multiple indexing operations"],
        "FlexAttention's backward pass supports one read of a captured tensor that needs gradients, but the score_mod reads it twice.",
        "read a clone the second time: `other = bias.clone()` before the mod; autograd adds both gradients",
    ),
    entry(
        "flash-backend-refused",
        &[
            "BACKEND='FLASH' but flash attention..cannot be used",
            "flash attention cannot be used",
            "FLASH backend..not supported",
            "doesn't support captured grads",
            "FLASH backend captured grads",
            "dLSE is not supported",
            "logsumexp (dLSE)",
        ],
        "kernel_options selects FlexAttention's FLASH backend. It has no gradients of captured tensors, and on some cards none through the logsumexp. The end of the message names the reason.",
        "remove BACKEND, or set kernel_options={\"BACKEND\": \"TRITON\"}; `maskloom verdict` lists, before a run, the backends that support the design forward and backward",
    ),
    entry(
        "kernel-folder",
        &["kernel_root", ".cache/torch/kernels"],
        "Trainers' guides name this folder for built flex kernels. PyTorch has no such folder: torch.compile and Triton write to TORCHINDUCTOR_CACHE_DIR and ~/.triton/cache.",
        "remove the setting; to compile again, delete those two folders",
    ),
    entry(
        "flex-prototype",
        &[
            "flex_attention' is a prototype feature",
            "recompile when drivers",
            "recompile..drivers change",
            "prototype; recompile",
        ],
        "FlexAttention's interface may change between PyTorch releases. Its kernels are compiled on the first call and cached for the versions of PyTorch, Triton and the driver that made them.",
        "no rebuild by hand is needed: after an update the first step compiles again, which takes a minute or two",
    ),
    entry(
        "ragged-masks",
        &["ragged mask", "ragged masks", "ragged attention masks"],
        "A BlockMask has one q_len and kv_len for the whole batch. Samples of different lengths need documents in one sequence, or padding.",
        "pack them and mask by document: preset `packed_documents`, or a mask_mod with `doc[q_idx] == doc[kv_idx]`; padding that the model itself passes is combined with the design",
    ),
    entry(
        "card-too-old",
        &["Ampere+", "Ampere or newer", "Requires Ampere", "requires compute capability 8.0", "SM 8.0"],
        "bfloat16 on tensor cores and the fused kernels of flash-attn need compute capability 8.0 (A100, RTX 30 and newer).",
        "`maskloom doctor` names the card and its capability; on older cards use sdpa with fp16",
    ),
    entry(
        "sidecar-not-loaded",
        &["the sidecar is not loaded:"],
        "The environment loads Maskloom's sidecar, but a setting is wrong: the script runs without the mask.",
        "the end of the line names the setting; correct it and start again. MASKLOOM_SIDECAR names an exported folder",
    ),
];
