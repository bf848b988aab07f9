//! Families whose own mask is not plain causal attention: what a design must contain to be the model's mask, read in transformers' text.
//!
//! Invariant: a line names what the family does, in which release it was read, and a preset or a mod that draws it. Must not know
//! configs' formats.

use serde_json::{Map, Value};

/// The release that was read.
const READ: &str = "transformers 5.24";

/// What a family does besides causal attention, and how to draw it.
const FAMILIES: [(&[&str], &str, &str); 9] = [
    (
        &["gemma3", "shieldgemma2", "gemma4", "gemma4_unified"],
        "the tokens of one image see each other in both directions, in layers with a window too; text stays causal",
        "(q_idx >= kv_idx) & window | (image[q_idx] == image[kv_idx]) & (image[q_idx] >= 0)",
    ),
    (
        &["paligemma", "colpali"],
        "image and prompt are a prefix that every token sees, in both directions; only the answer is causal",
        "preset prefix_lm with the prefix's length",
    ),
    (
        &["pi0"],
        "image and prompt see each other in both directions, and so do the action tokens behind them",
        "preset prefix_lm, with `| ((q_idx >= actions) & (kv_idx >= actions))`",
    ),
    (
        &["molmo2", "git", "deepseek_ocr2", "unlimited_ocr", "step3p7", "diffusion_gemma"],
        "the tokens of an image (or of a block that is denoised together) see each other in both directions; the rest is causal",
        "(q_idx >= kv_idx) | (block[q_idx] == block[kv_idx]) & (block[q_idx] >= 0)",
    ),
    (
        &["gpt_oss", "granite_swa", "mimo_v2_flash", "deepseek_v4"],
        "some layers are causal, others see a window, and every head has a learned sink in its softmax",
        "presets gpt_oss_window and gpt_oss_sinks, one design for each kind of layer",
    ),
    (
        &["llama4"],
        "three of four layers see only the chunk of their query (8,192 tokens), the fourth the whole past",
        "preset llama4_chunked, one design for each kind of layer",
    ),
    (
        &["t5", "mt5", "umt5", "t5gemma", "t5gemma2", "bart", "mbart", "pegasus", "marian", "whisper"],
        "the encoder sees everything in both directions, the decoder is causal and reads the encoder by cross-attention",
        "a design for each of the three, chosen by layer",
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
        "every token sees every other: the model has no causal mask",
        "an empty document, or padding as `keep[b, kv_idx]`",
    ),
    (
        &["modernbert", "embedding_gemma2", "ultrabert"],
        "every third layer (as its config says) sees everything, the others a window on both sides; none is causal",
        "preset modernbert_local",
    ),
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

/// What a family's own mask is, one line each. `values` are the config's; `batch` is the trainer's.
pub(crate) fn own_masks(family: &str, values: &Map<String, Value>, batch: usize) -> Vec<String> {
    let mut reported = Vec::new();
    let inner = values.get("text_config").and_then(Value::as_object);
    let get = |key: &str| inner.and_then(|c| c.get(key)).or_else(|| values.get(key)).filter(|v| !v.is_null());
    let both_ways = get("use_bidirectional_attention");
    if both_ways.is_some_and(|v| *v == Value::Bool(true) || v.as_str() == Some("all")) {
        reported.push(format!(
            "its own mask is not causal: use_bidirectional_attention lets every token see every other ({READ}): a causal design is another \
             model"
        ));
    } else if let Some((_, what, draw)) = FAMILIES.iter().find(|(names, ..)| names.contains(&family)) {
        reported.push(format!("its own mask is not plain causal: {what} ({READ}, read). To draw it: {draw}"));
    }
    if let Some(window) = get("sliding_window").and_then(Value::as_u64) {
        let kinds = get("layer_types").and_then(Value::as_array).map(|kinds| {
            let local = kinds.iter().filter(|k| k.as_str().is_some_and(|k| k.contains("sliding"))).count();
            format!("{local} of {} layers", kinds.len())
        });
        let pattern = get("sliding_window_pattern")
            .and_then(Value::as_u64)
            .map(|n| format!("{} of {n} layers", n.saturating_sub(1)));
        let which = kinds.or(pattern).unwrap_or_else(|| match ALTERNATING.contains(&family) {
            true => "some layers, as layer_types says,".into(),
            false => "all layers".into(),
        });
        let share = window as f64 * (2.0 * 32_768.0 - window as f64 + 1.0) / (32_768.0 * 32_769.0);
        reported.push(format!(
            "{which} see a window of {window} tokens: {:.1}% of the causal cells at 32,768 tokens. One mask for all layers is wrong: name \
             the layers of each design",
            100.0 * share.min(1.0)
        ));
    }
    let ranks = get("cp_size").or_else(|| get("context_parallel_size")).and_then(Value::as_u64).unwrap_or(1);
    if ranks > 1 && (get("sliding_window").is_some() || FAMILIES.iter().any(|(names, ..)| names.contains(&family))) {
        reported.push(format!(
            "over {ranks} ranks accelerate before its refusal threw each layer's mask away and trained full causal attention (accelerate#4177, \
             read): use a context parallel that takes a BlockMask, or Maskloom's plans (maskloom parallel)"
        ));
    }
    if batch > 1 && PADDED_TEXT.contains(&family) {
        reported.push(format!(
            "captions of {batch} samples have different lengths: each sample needs its own mask of the text (batch {batch}, read at `b`), and \
             the picture's tokens stay free. One mask for the whole batch hides text of one sample or shows padding of another; \
             variable-length attention for each sample is the fast form. Presets qwen_image_padding and flux_text_padding"
        ));
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(family: &str, config: Value, batch: usize) -> String {
        own_masks(family, config.as_object().expect("an object"), batch).join("\n")
    }

    #[test]
    fn families_whose_mask_is_not_causal_are_named_with_what_draws_it() {
        use serde_json::json;
        let gemma = json!({"text_config": {"sliding_window": 1024, "sliding_window_pattern": 6}});
        let gemma = reported("gemma3", gemma, 1);
        assert!(
            gemma.contains("one image see each other") && gemma.contains("5 of 6 layers see a window of 1024"),
            "{gemma}"
        );
        assert!(gemma.contains(": 6.2% of the causal cells"), "{gemma}");
        assert!(reported("paligemma", json!({}), 1).contains("prefix_lm"));
        assert!(reported("pi0", json!({}), 1).contains("action tokens"));
        let embedding = reported("gemma3_text", json!({"use_bidirectional_attention": true}), 1);
        assert!(embedding.contains("every token see every other"), "{embedding}");
        let kinds = json!({"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"]});
        assert!(reported("gpt_oss", kinds, 1).contains("1 of 2 layers see a window of 128"));
        assert!(reported("mistral", json!({"sliding_window": 4096, "cp_size": 2}), 1).contains("over 2 ranks"));
        assert_eq!(reported("llama", json!({"sliding_window": null}), 8), "");
        assert_eq!(reported("qwen_image", json!({}), 1), "");
        assert!(reported("qwen_image", json!({}), 4).contains("batch 4, read at `b`"));
    }
}
