//! `doctor --explain TEXT`: the meaning of a message of PyTorch, diffusers, flash-attn, CUDA or Maskloom, and a fix.
//!
//! Invariant: an entry matches if one of its patterns is in the text, with all its words joined by `..` in order;
//! unknown text gets the nearest entries, marked as guesses. Must not know the machine.

use super::messages::Entry;
use super::{messages, training};

/// The result of an explanation.
#[derive(Clone, Debug)]
pub enum Explanation {
    /// These entries match.
    Known(Vec<&'static Entry>),
    /// None matches; these share the most words, nearest first. May be empty.
    Nearest(Vec<&'static Entry>),
}

/// Every message that is known.
fn all() -> impl Iterator<Item = &'static Entry> {
    messages::MESSAGES.iter().chain(training::MESSAGES)
}

/// Looks a text up.
pub fn explain(text: &str) -> Explanation {
    let text = plain(text);
    let known: Vec<&Entry> =
        all().filter(|e| names(&text, e.code) || e.patterns.iter().any(|p| contains(&text, p))).collect();
    if !known.is_empty() {
        return Explanation::Known(known);
    }
    let asked = words(&text);
    let mut scored: Vec<(f64, &Entry)> = all().map(|e| (likeness(&asked, e), e)).collect();
    scored.retain(|(score, _)| *score > 0.2);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    Explanation::Nearest(scored.into_iter().take(3).map(|(_, e)| e).collect())
}

/// A code alone, or as diagnostics write it: `error[nvrtc-missing]`.
fn names(text: &str, code: &str) -> bool {
    text == code || text.contains(&format!("[{code}]"))
}

/// Lower case, quotes made alike, white space joined.
fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace(['’', '`', '"'], "'");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn contains(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    for piece in plain(pattern).split("..").map(str::trim) {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

fn words(text: &str) -> Vec<String> {
    let split = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut words: Vec<String> = split.filter(|w| w.len() > 2 && !COMMON.contains(w)).map(str::to_string).collect();
    words.sort();
    words.dedup();
    words
}

/// Words that say nothing about which message it is.
const COMMON: [&str; 16] = [
    "the",
    "and",
    "not",
    "for",
    "with",
    "was",
    "are",
    "error",
    "torch",
    "you",
    "but",
    "this",
    "that",
    "runtimeerror",
    "valueerror",
    "file",
];

/// Share of the asked words that the entry's patterns and code have.
fn likeness(asked: &[String], entry: &Entry) -> f64 {
    let own = words(&plain(&format!("{} {}", entry.patterns.join(" "), entry.code.replace('-', " "))));
    let shared = asked.iter().filter(|w| own.contains(w)).count() as f64;
    shared / (asked.len().clamp(1, 12) as f64)
}

/// The explanation as text for the terminal.
pub fn render(text: &str) -> String {
    let one = |e: &Entry| format!("{}\n  means: {}\n  do:    {}\n", e.code, e.cause, e.fix);
    match explain(text) {
        Explanation::Known(entries) => entries.into_iter().map(one).collect::<Vec<_>>().join("\n"),
        Explanation::Nearest(entries) if entries.is_empty() => {
            "This message is unknown, and no known message is similar.\n  do:    run `maskloom doctor`, which checks driver, NVRTC, Python and display\n"
                .into()
        }
        Explanation::Nearest(entries) => {
            let list = entries.into_iter().map(one).collect::<Vec<_>>().join("\n");
            format!("This message is unknown. The most similar known messages:\n\n{list}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (
                "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 268",
                "triton-shared-memory",
            ),
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
                assert!(codes(&pattern.replace("..", " something ")).contains(&entry.code), "{pattern}");
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
            (
                "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
                "c-compiler-missing",
            ),
            ("train.py: error: argument --attention_mechanism: invalid choice: 'flexx'", "setting-unknown"),
            ("error: unrecognized arguments: --attn_implementation=sdpa", "flag-unknown"),
            ("step 12: loss: nan", "loss-nan"),
            ("torch._dynamo.exc.Unsupported: Skip calling `torch.compiler.disable()`d function", "fullgraph-break"),
            (
                "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
                "safetensors-header",
            ),
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
        (
            "block_mask = create_block_mask( TypeError: tensor([1., 1., 1.]) is not a callable object",
            "block-mask-no-mod",
        ),
    ];

    #[test]
    fn every_message_users_meet_is_known_with_a_cause_and_a_fix() {
        for (text, code) in MET {
            assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
            let told = render(text);
            assert!(told.contains("means: ") && told.contains("do:    "), "{told}");
        }
        assert!(codes("error[nvrtc-missing]: NVRTC was not found").contains(&"nvrtc-missing"));
    }

    #[test]
    fn unknown_text_gets_the_nearest_or_says_so() {
        let Explanation::Nearest(near) = explain("my flash wheel takes for ever while it builds") else { panic!() };
        assert!(near.iter().any(|e| e.code.starts_with("flash-attn")), "{near:?}");
        assert!(render("qwertyuiop").starts_with("This message is unknown, and no known"));
    }
}
