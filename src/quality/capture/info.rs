//! The description of a call in a capture file's metadata.
//!
//! Invariant: unknown keys are ignored. Must not know tensors.

use serde::Deserialize;

/// A call's description. Lengths in tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[allow(missing_docs)] // the format's own names
pub struct CallInfo {
    #[serde(default)]
    pub source: String,
    /// Number within the forward pass.
    pub layer: usize,
    /// Class of the outermost module.
    #[serde(default)]
    pub model: String,
    pub heads: usize,
    pub kv_heads: usize,
    pub q_len: usize,
    pub kv_len: usize,
    pub head_dim: usize,
    /// None is 1/sqrt(head_dim).
    #[serde(default)]
    pub scale: Option<f64>,
    #[serde(default)]
    pub is_causal: bool,
    /// The model's own mask in words.
    #[serde(default)]
    pub mask: String,
    #[serde(default)]
    pub mask_tensor: Option<String>,
    /// Query heads whose q, k and v are there; None is all.
    #[serde(default)]
    pub captured_heads: Option<Vec<usize>>,
    #[serde(default)]
    pub softcap: Option<f32>,
    /// Module name.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub step: usize,
    #[serde(default)]
    pub prompt: usize,
    #[serde(default = "one")]
    pub batch: usize,
    #[serde(default)]
    pub dtype: String,
    /// Whether q, k and v are in the file.
    #[serde(default = "yes")]
    pub qkv: bool,
    #[serde(default)]
    pub statistics: Option<StatisticsInfo>,
    /// A score mod of the model changed the scores; it is not in the file.
    #[serde(default, rename = "mod")]
    pub score_mod: bool,
}

/// Names of the tensors with statistics.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct StatisticsInfo {
    pub mass: Option<String>,
    pub lse: Option<String>,
    pub max: Option<String>,
    pub entropy: Option<String>,
    pub columns: Option<String>,
    pub distance: Option<String>,
    pub distance_edges: Option<String>,
    pub offsets: Option<String>,
    pub own_mask: String,
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

impl CallInfo {
    /// Files of version 1 have name and step in the key alone.
    pub(super) fn named(mut self, key: &str) -> CallInfo {
        if self.name.is_empty() {
            let (name, rest) = key.rsplit_once(".step").unwrap_or((key, ""));
            self.name = name.to_string();
            self.step = rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
        }
        self
    }

    /// Whether full q and k of a query head are there.
    pub fn has_head(&self, head: usize) -> bool {
        self.qkv && head < self.heads && self.captured_heads.as_ref().is_none_or(|heads| heads.contains(&head))
    }

    /// Query heads with full q and k.
    pub fn full_heads(&self) -> Vec<usize> {
        (0..self.heads).filter(|h| self.has_head(*h)).collect()
    }
}
