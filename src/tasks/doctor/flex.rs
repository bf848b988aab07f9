//! Messages of FlexAttention, SDPA and tensors around them that public reports and PyTorch's own text name; as a table.
//!
//! Invariant: patterns are words of the real messages; the last text says how the entry was checked. Must not know code.

use super::messages::{Entry, reported};

/// All of them.
pub(super) static MESSAGES: &[Entry] = &[
    reported(
        "flex-same-buffer",
        &["query key value & same buffer", "not supported & query key value & buffer"],
        "FlexAttention compiled for a CPU refused q, k and v that are views of one buffer, such as the chunks of one projection. PyTorch 2.15 copies them.",
        "upgrade to PyTorch 2.15, or key = key.clone() and value = value.clone() before the call",
        "PyTorch before 2.15 on a CPU; pytorch#157612, and 2.15's text read",
    ),
    reported(
        "flex-symbolic-length",
        &[
            "NameError & SPARSE_KV_BLOCK_SIZE",
            "not defined & SPARSE_KV_BLOCK_SIZE",
            "not defined & SPARSE_Q_BLOCK_SIZE",
        ],
        "Compiled for lengths that change, FlexAttention of early PyTorch 2.5 wrote the name of a symbolic length (s0, s1) into its kernel's options.",
        "torch.compile(flex_attention, dynamic=False), or a newer PyTorch",
        "PyTorch 2.5; pytorch#133716, read",
    ),
    reported(
        "captured-gradients-refused",
        &["captured buffers that require grad not yet supported", "captured buffers & require grad & not supported"],
        "PyTorch 2.5 computes no gradients of tensors that a mod captures, such as a learned bias. Later releases do for a score_mod; a mask_mod has none in any release.",
        "upgrade PyTorch for a score_mod's table; tensor.detach() in a mask_mod",
        "PyTorch 2.5 to 2.15; attention-gym#69, and 2.15's text read",
    ),
    reported(
        "flex-on-mps",
        &["not support backward & MPS", "backward & not yet supported & MPS", "flex_attention on MPS"],
        "On Apple's GPU FlexAttention of PyTorch 2.15 is for inference: it has no backward pass there, and takes float32, float16 and bfloat16.",
        "train with sdpa there; for inference torch.no_grad()",
        "PyTorch 2.15; text read",
    ),
    reported(
        "flex-cpu-dtype",
        &["supported in FlexAttention for CPU device", "FlexAttention & CPU device & found input tensors"],
        "Compiled for a CPU FlexAttention takes float32, float16 and bfloat16 only.",
        "query.float(), key.float(), value.float(); float64 runs uncompiled",
        "PyTorch 2.15; text read",
    ),
    reported(
        "dtensor-mixed",
        &["got mixed torch.Tensor and DTensor", "mixed Tensor and DTensor"],
        "Under tensor parallel or FSDP2 one tensor of the operation is a DTensor and another is a plain one, often a mod's captured table, a position table or a mask.",
        "attend on local tensors: q.to_local(), with heads of this rank alone; create tables and BlockMasks as plain tensors inside of that call",
        "PyTorch 2.4 to 2.15; torchtitan#1952, read",
    ),
    reported(
        "mod-not-pickled",
        &[
            "can't pickle local object & mod",
            "can't get local object & mod",
            "not pickle & mask_mod",
            "can't pickle & BlockMask",
            "pickle & BlockMask",
        ],
        "A BlockMask is sent to another process (DataLoader workers, multiprocessing, torch.save) with its mask_mod, and a function inside a function cannot be sent.",
        "send the table, such as document ids, and create the BlockMask in the process that uses it; or define the mod at the top of a module",
        "PyTorch 2.15; run",
    ),
    reported(
        "compile-flag-notice",
        &["_compile flag on create_block_mask", "_compile flag & torch.compile(create_block_mask)"],
        "A notice: create_block_mask(..., _compile=True) still works in PyTorch 2.15 and will be removed later.",
        "torch.compile(create_block_mask)(mask_mod, B, H, q_len, kv_len)",
        "PyTorch 2.15; text read",
    ),
    reported(
        "flash-4-too-old",
        &["scalar captures require flash-attn-4", "CuteDSL template failed"],
        "FlexAttention's FLASH backend builds a kernel of flash-attn 4: that package is too old for a number that a mod captures, or its template does not take this mod.",
        "pip install --pre -U flash-attn-4 (with CUDA 13 \"flash-attn-4[cu13]\"), or kernel_options={\"BACKEND\": \"TRITON\"}",
        "PyTorch 2.15; text read",
    ),
    reported(
        "flash-impl-activated",
        &[
            "unknown flash attention impl",
            "FA4 flash_attention forward unsupported",
            "FA4 flash_attention backward unsupported",
            "FA4 SDPA forward unsupported",
            "FA4 SDPA backward unsupported",
            "FA3 flash_attention forward unsupported",
            "FA3 flash_attention backward unsupported",
            "FA3 SDPA forward unsupported",
            "FA3 SDPA backward unsupported",
            "FA4 not registered",
            "FA3 not registered",
        ],
        "activate_flash_attention_impl put FlashAttention-3 or -4 in the place of SDPA's flash kernel. The end of the message says what it does not take (dropout, a card, a layout), or that the name is unknown.",
        "torch.nn.attention.restore_flash_attention_impl() brings PyTorch's own back; list_flash_attention_impls() names those that are there",
        "PyTorch 2.15; text read",
    ),
    reported(
        "varlen-cudnn",
        &["requested for varlen_attn & constraints not satisfied", "CUDNN_ATTENTION & varlen_attn"],
        "sdpa_kernel allows cuDNN alone, and cuDNN does not take this call of varlen_attn. The lines below the message list the broken conditions.",
        "allow SDPBackend.FLASH_ATTENTION as well, or leave sdpa_kernel out",
        "PyTorch 2.15; text read",
    ),
    reported(
        "gradient-nan",
        &["returned nan values in its # output", "AttentionBackward & returned nan", "anomaly & nan & attention"],
        "detect_anomaly found NaN in a gradient: in attention usually a row whose keys are all hidden by -inf, or float16 that overflowed.",
        "`maskloom check` counts empty rows: let each row keep itself; use bfloat16; clip the scores (soft cap)",
        "PyTorch 2; users' words",
    ),
    reported(
        "mask-is-float",
        &[
            "bitwise_and & not implemented for Float",
            "bitwise_or & not implemented for Float",
            "bitwise_not & not implemented for Float",
            "bitwise_xor & not implemented for Float",
            "bitwise_and & not implemented for Half",
            "bitwise_and & not implemented for BFloat16",
            "operator.invert & only implemented on integer and Boolean",
        ],
        "`&`, `|` and `~` combine bools or integers, and one side is a float: an additive mask, or 0.0 and 1.0 instead of False and True.",
        "mask.bool() where 1 keeps; additive masks: (mask == 0); in a mod compare first: (t[q_idx] > 0) & (q_idx >= kv_idx)",
        "PyTorch 2; run",
    ),
    reported(
        "linear-dtype",
        &[
            "mat1 and mat2 must have the same dtype",
            "expected m1 and m2 to have same dtype",
            "self and mat2 must have the same dtype",
        ],
        "A linear layer has weights of one format and an input of another: often the attention before it returned float32, or this part runs outside of autocast.",
        "cast the attention's output: out.to(weight.dtype); or put the call under torch.autocast",
        "PyTorch 2; users' words",
    ),
];
