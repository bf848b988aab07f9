//! Families whose own mask is not plain causal attention: what a design must contain to be the model's mask, read in transformers' text.
//!
//! Invariant: a fact names what the family does, as the release [`READ`] does it; the words that tell it name a preset or a mod that draws
//! it. Must not know configs' formats, nor words.

use serde_json::{Map, Value};

/// The release that was read.
pub const READ: &str = "transformers 5.24";

/// What a family's own mask is besides causal attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OwnMask {
    /// The config lets every token see every other.
    BothWays,
    /// The family's own kind.
    Of(Kind),
    /// Layers with a window of so many tokens, which keeps this share of the causal cells at 32,768 tokens.
    Window(Layers, u64, f64),
    /// So many ranks, over which accelerate threw the masks away.
    Ranks(u64),
    /// Captions of so many samples of different lengths.
    Captions(usize),
}

/// The kinds of families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The tokens of one image see each other, in layers with a window too.
    ImagesAndWindows,
    /// Image and prompt are a prefix.
    Prefix,
    /// Image and prompt, and behind them the actions.
    PrefixAndActions,
    /// The tokens of an image or a denoised block see each other.
    Blocks,
    /// Causal layers and windows, with learned sinks.
    Sinks,
    /// Chunks in three of four layers.
    Chunks,
    /// An encoder, a decoder and cross-attention.
    EncoderDecoder,
    /// No causal mask.
    Encoder,
    /// Windows on both sides in two of three layers.
    LocalEncoder,
}

/// Which layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// So many of all.
    Of(u64, u64),
    /// Those that `layer_types` names.
    Some,
    /// Every one.
    All,
}

const FAMILIES: [(&[&str], Kind); 9] = [
    (&["gemma3", "shieldgemma2", "gemma4", "gemma4_unified"], Kind::ImagesAndWindows),
    (&["paligemma", "colpali"], Kind::Prefix),
    (&["pi0"], Kind::PrefixAndActions),
    (&["molmo2", "git", "deepseek_ocr2", "unlimited_ocr", "step3p7", "diffusion_gemma"], Kind::Blocks),
    (&["gpt_oss", "granite_swa", "mimo_v2_flash", "deepseek_v4"], Kind::Sinks),
    (&["llama4"], Kind::Chunks),
    (
        &["t5", "mt5", "umt5", "t5gemma", "t5gemma2", "bart", "mbart", "pegasus", "marian", "whisper"],
        Kind::EncoderDecoder,
    ),
    (
        &[
            "bert",
            "roberta",
            "xlm-roberta",
            "deberta",
            "esm",
            "vit",
            "siglip",
            "siglip2",
            "clip_vision_model",
            "nomic_bert",
            "eurobert",
        ],
        Kind::Encoder,
    ),
    (&["modernbert", "embedding_gemma2", "ultrabert"], Kind::LocalEncoder),
];

/// Families whose layers alternate between a window and the whole past.
const ALTERNATING: [&str; 12] = [
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gemma3n",
    "gemma4",
    "cohere2",
    "gpt_oss",
    "olmo3",
    "exaone4",
    "ministral",
    "vaultgemma",
    "mimo_v2_flash",
];

/// Image and video families of trainers whose batches pad their captions.
const PADDED_TEXT: [&str; 9] =
    ["qwen_image", "flux", "flux2", "chroma", "sd3", "z_image", "hunyuanvideo", "lumina2", "ltxvideo2"];

/// What a family's own mask is. `values` are the config's; `batch` is the trainer's.
pub(crate) fn own_masks(family: &str, values: &Map<String, Value>, batch: usize) -> Vec<OwnMask> {
    let mut found = Vec::new();
    let inner = values.get("text_config").and_then(Value::as_object);
    let get = |key: &str| inner.and_then(|c| c.get(key)).or_else(|| values.get(key)).filter(|v| !v.is_null());
    let number = |key: &str| get(key).and_then(Value::as_u64);
    let both_ways = get("use_bidirectional_attention");
    let of_family = FAMILIES.iter().find(|(names, ..)| names.contains(&family));
    if both_ways.is_some_and(|v| *v == Value::Bool(true) || v.as_str() == Some("all")) {
        found.push(OwnMask::BothWays);
    } else if let Some((_, kind)) = of_family {
        found.push(OwnMask::Of(*kind));
    }
    if let Some(window) = number("sliding_window") {
        let kinds = get("layer_types").and_then(Value::as_array).map(|kinds| {
            let local = kinds.iter().filter(|k| k.as_str().is_some_and(|k| k.contains("sliding"))).count();
            Layers::Of(local as u64, kinds.len() as u64)
        });
        let pattern = number("sliding_window_pattern").map(|n| Layers::Of(n.saturating_sub(1), n));
        let which = match kinds.or(pattern) {
            Some(Layers::Of(local, all)) if local == all => Layers::All,
            Some(of) => of,
            None if ALTERNATING.contains(&family) => Layers::Some,
            None => Layers::All,
        };
        let share = window as f64 * (2.0 * 32_768.0 - window as f64 + 1.0) / (32_768.0 * 32_769.0);
        found.push(OwnMask::Window(which, window, share.min(1.0)));
    }
    let accelerate = ranks_of_accelerate(values);
    let ranks = accelerate.or_else(|| number("context_parallel_size")).unwrap_or(1);
    // a config of accelerate alone does not say which model it is for
    let unknown = family.is_empty() && accelerate.is_some();
    if ranks > 1 && (get("sliding_window").is_some() || of_family.is_some() || unknown) {
        found.push(OwnMask::Ranks(ranks));
    }
    if batch > 1 && PADDED_TEXT.contains(&family) {
        found.push(OwnMask::Captions(batch));
    }
    found
}

/// The size of accelerate's context parallel: an argument of ParallelismConfig, or a key of the file that `accelerate config` writes.
fn ranks_of_accelerate(values: &Map<String, Value>) -> Option<u64> {
    let inner = values.get("parallelism_config").and_then(Value::as_object);
    let keys = ["cp_size", "parallelism_config_cp_size"];
    [Some(values), inner].into_iter().flatten().find_map(|of| keys.iter().find_map(|key| of.get(*key)?.as_u64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(family: &str, config: Value, batch: usize) -> Vec<OwnMask> {
        own_masks(family, config.as_object().expect("an object"), batch)
    }

    #[test]
    fn families_whose_mask_is_not_causal_are_found_with_their_windows() {
        use serde_json::json;
        let gemma = json!({"text_config": {"sliding_window": 1024, "sliding_window_pattern": 6}});
        let gemma = found("gemma3", gemma, 1);
        let [OwnMask::Of(Kind::ImagesAndWindows), OwnMask::Window(Layers::Of(5, 6), 1024, share)] = gemma[..] else {
            panic!("{gemma:?}")
        };
        assert_eq!(format!("{:.1}", 100.0 * share), "6.2");
        assert_eq!(found("paligemma", json!({}), 1), [OwnMask::Of(Kind::Prefix)]);
        assert_eq!(found("pi0", json!({}), 1), [OwnMask::Of(Kind::PrefixAndActions)]);
        let embedding = found("gemma3_text", json!({"use_bidirectional_attention": true}), 1);
        assert_eq!(embedding, [OwnMask::BothWays]);
        let kinds = json!({"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"]});
        assert!(matches!(found("gpt_oss", kinds, 1)[1], OwnMask::Window(Layers::Of(1, 2), 128, _)));
        assert!(matches!(found("gemma2", json!({"sliding_window": 9}), 1)[0], OwnMask::Window(Layers::Some, ..)));
        let mistral = found("mistral", json!({"sliding_window": 4096, "cp_size": 2}), 1);
        assert!(matches!(mistral[..], [OwnMask::Window(Layers::All, ..), OwnMask::Ranks(2)]), "{mistral:?}");
        for config in [
            json!({"parallelism_config": {"parallelism_config_cp_size": 4}}),
            json!({"parallelism_config": {"cp_size": 4}, "context_parallel_size": 2}),
            json!({"parallelism_config_cp_size": 4}),
        ] {
            assert_eq!(found("", config.clone(), 1), [OwnMask::Ranks(4)], "accelerate's file names no model");
            assert_eq!(found("llama", config, 1), [], "a causal model loses no mask");
        }
        assert_eq!(found("", json!({"context_parallel_size": 4}), 1), [], "another program's ranks");
        let every = json!({"sliding_window": 4096, "layer_types": ["sliding_attention", "sliding_attention"]});
        assert!(matches!(found("qwen2", every, 1)[..], [OwnMask::Window(Layers::All, 4096, _)]));
        assert_eq!(found("llama", json!({"sliding_window": null}), 8), []);
        assert_eq!(found("qwen_image", json!({}), 1), []);
        assert_eq!(found("qwen_image", json!({}), 4), [OwnMask::Captions(4)]);
    }
}
