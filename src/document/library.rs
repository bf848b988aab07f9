//! The embedded patterns and presets.
//!
//! Invariant: every file of `assets/patterns` and `presets` is listed here (a test reads the folders), and each loads,
//! compiles and validates. Must not know the user's own folder; that is the environment of tasks.

use super::file;
use super::model::Document;
use crate::base::nearest::nearest;
use crate::base::{Diagnostic, Source};
use crate::ir::graph::ModKind;

/// A pattern of the library: one FlexAttention factory of the same name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// The file's stem and the factory's name.
    pub name: &'static str,
    /// Whether it makes a mask or a score mod.
    pub kind: ModKind,
    /// The file's text.
    pub text: &'static str,
}

impl Pattern {
    /// As a source, named like its file.
    pub fn source(self) -> Source {
        Source::new(format!("patterns/{}.py", self.name), self.text)
    }

    /// First sentence of its help.
    pub fn summary(&self) -> &'static str {
        let doc = self.text.split("\"\"\"").nth(1).unwrap_or("");
        doc.lines().next().unwrap_or("").trim()
    }

    /// `sliding_window` as `Sliding window`.
    pub fn title(&self) -> String {
        let mut title = self.name.replace('_', " ");
        title[..1].make_ascii_uppercase();
        title
    }
}

/// A preset: a ready document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The file's stem.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

impl Preset {
    /// The document.
    pub fn document(&self) -> Result<Document, Vec<Diagnostic>> {
        file::from_json(self.text)
    }
}

macro_rules! patterns {
    ($kind:ident: $($name:literal),* $(,)?) => {
        &[$(Pattern {
            name: $name,
            kind: ModKind::$kind,
            text: include_str!(concat!("../../assets/patterns/", $name, ".py")),
        }),*]
    };
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../../presets/", $name, ".json")) }),*]
    };
}

/// In the order of the menus: from common to special.
const MASKS: &[Pattern] = patterns![Mask:
    "causal", "sliding_window", "local_window", "prefix_lm", "packed_documents", "text_padding", "key_padding",
    "attention_sinks", "window_sinks", "block_stripes", "chunked_causal", "block_causal", "next_scale", "dilated_window", "global_window", "strided", "bigbird",
    "natten_2d", "natten_3d", "natten_tiled", "natten_morton", "sta_2d", "sta_3d", "shifted_windows", "axial",
    "radial", "svg_spatial", "svg_temporal", "joint_blocks", "regional_prompting", "vision_cross_attention",
    "shared_prefix", "shared_prefixes", "document_mask", "batched", "block_diffusion", "block_topk", "tree_decoding",
    "token_tree", "packed_targets", "speculative_training", "alternate_heads",
];

const SCORES: &[Pattern] = patterns![Score:
    "alibi", "soft_cap", "t5_bias", "relative_bias_2d", "sandwich", "distance_penalty", "forget_gate", "temperature", "region_bias",
    "learned_sinks", "activation", "mla_rope", "graphormer_spatial", "graphormer_edge",
];

/// The first is the document of the first screen.
const PRESETS: &[Preset] = presets![
    "sliding_window",
    "causal",
    "prefix_lm",
    "packed_documents",
    "natten_2d",
    "alibi",
    "gemma2_softcap_window",
    "flux_text_padding",
    "forgetting_transformer",
    "painted_blocks",
    "gqa_llama3",
    "llama3_70b",
    "qwen3_30b_a3b",
    "qwen3_padded_batch",
    "mistral_window",
    "gemma2_27b_global",
    "gemma3_local",
    "gemma3_global",
    "gpt_oss_window",
    "gpt_oss_sinks",
    "llama4_chunked",
    "deepseek_mla",
    "deepseek_mla_rope",
    "flux_joint",
    "flux_regional",
    "flux_prompt_weight",
    "qwen_image_joint",
    "qwen_image_padding",
    "sd3_joint",
    "sdxl_self",
    "sdxl_cross",
    "wan_full",
    "wan_natten_3d",
    "wan_sta_3d",
    "wan_radial",
    "wan_720p_radial",
    "wan_5b_natten",
    "wan_block_causal",
    "wan_self_forcing",
    "var_512",
    "ltx_video_full",
    "ltx_video",
    "ltx_video_13b",
    "hunyuan_sta_3d",
    "hunyuan_text_padding",
    "svg_heads",
    "streaming_llm",
    "bigbird",
    "longformer",
    "dilated_window",
    "strided",
    "vertical_slash",
    "encoder_window_sinks",
    "modernbert_local",
    "block_topk",
    "block_diffusion",
    "shared_prefix",
    "shared_prefixes",
    "packed_prefix_lm",
    "packed_images",
    "tree_decoding",
    "tree_depth_first",
    "tree_breadth_first",
    "packed_hstu",
    "sink_local",
    "speculative_training",
    "llama32_vision_cross",
    "natten_tiled",
    "natten_morton",
    "sta_image",
    "swin_window",
    "axial_image",
    "t5_encoder",
    "sandwich",
    "kerple",
    "yarn_temperature",
    "relu_attention",
    "graphormer",
];

/// All patterns, masks first.
pub fn patterns() -> impl Iterator<Item = &'static Pattern> {
    MASKS.iter().chain(SCORES)
}

/// One pattern.
pub fn pattern(name: &str) -> Option<Pattern> {
    patterns().find(|p| p.name == name).copied()
}

/// All presets, the first screen's first.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// One preset.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

/// `did you mean ...? ` for an unknown name, if it is a typing error of a known one.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("did you mean `{near}`? "))
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
