//! The saved data of a document: axes, layers, score mods, settings.
//!
//! Invariant: plain data with serde; a saved document loads equal. Must not know the window, devices or files; linked
//! files are named here and read elsewhere.

use super::heads::Heads;
use super::schema_parts as parts;
use crate::base::{BackendName, BlockSize, DType, Device, HostTensor, Layout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version written to new files. Readers accept this and every older one.
pub const DOCUMENT_VERSION: u32 = 1;

/// A document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Maskloom document")]
pub struct Document {
    /// Format version of the file, [`DOCUMENT_VERSION`] when saved.
    #[schemars(range(min = 1, max = DOCUMENT_VERSION))]
    pub maskloom: u32,
    /// Title.
    pub name: String,
    /// Its description with sources; Markdown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The meaning of the token indices.
    pub axes: Axes,
    /// Mask layers, bottom first. None enabled: everything is kept.
    #[serde(default)]
    pub layers: Vec<Layer>,
    /// Score mods, applied first to last.
    #[serde(default)]
    pub scores: Vec<ScoreLayer>,
    /// Shapes, formats, what to race.
    pub settings: Settings,
}

impl Document {
    /// A document that keeps every cell.
    pub fn new(name: impl Into<String>, axes: Axes, settings: Settings) -> Document {
        let (about, layers, scores) = (String::new(), Vec::new(), Vec::new());
        Document { maskloom: DOCUMENT_VERSION, name: name.into(), about, axes, layers, scores, settings }
    }
}

/// Query and key axes; self-attention has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axes {
    /// Query axis, and the key axis too when `kv` is None.
    #[schemars(with = "String")]
    pub q: Axis,
    /// Key axis of cross-attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub kv: Option<Axis>,
}

impl Axes {
    /// The key axis.
    pub fn kv(&self) -> &Axis {
        self.kv.as_ref().unwrap_or(&self.q)
    }
}

/// Named segments in token order. Written as `text 512 | image 64x64`, in files too.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// At least one.
    pub segments: Vec<Segment>,
}

/// A run of tokens with a grid shape, row-major: `[n]` for text, `[h, w]` for an image, `[t, h, w]` for a video.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Shown on rulers.
    pub name: String,
    /// Extents, slowest first; every one at least 1.
    pub grid: Vec<usize>,
}

/// How a layer joins the mask made by those below it. The bottom layer replaces "everything kept"; a bottom
/// `AndNot` keeps everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// below & layer
    #[default]
    And,
    /// below | layer
    Or,
    /// below & ~layer
    AndNot,
}

impl Combine {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Combine; 3] = [Combine::And, Combine::Or, Combine::AndNot];
}

/// One mask layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Stable within the document; never reused.
    #[schemars(range(max = i64::MAX))]
    pub id: u64,
    /// Shown in the list.
    pub name: String,
    /// Whether it takes part.
    pub enabled: bool,
    /// How it joins.
    pub combine: Combine,
    /// For which query heads it is; None: all. For the others it is as if it were not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<[usize; 2]>>", inner(inner(range(max = 1 << 20))))]
    pub heads: Option<Heads>,
    /// The kept cells.
    pub content: MaskContent,
}

impl Layer {
    /// Whether it is for this head.
    pub fn is_for(&self, head: usize) -> bool {
        self.heads.as_ref().is_none_or(|heads| heads.contains(head))
    }

    /// Whether it is for any of these heads; None: all.
    pub fn meets(&self, heads: Option<&Heads>) -> bool {
        self.heads.as_ref().zip(heads).is_none_or(|(mine, others)| mine.meets(others))
    }
}

/// The content of a mask layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum MaskContent {
    /// A factory from `assets/patterns` or the user's pattern folder.
    Pattern(CodeRef),
    /// Cells with q_idx in `q` and kv_idx in `kv` (half-open, tokens).
    Rectangle {
        /// Rows.
        #[schemars(inner(range(max = 1 << 30)))]
        q: [usize; 2],
        /// Columns.
        #[schemars(inner(range(max = 1 << 30)))]
        kv: [usize; 2],
    },
    /// Cells with `lo <= q_idx - kv_idx <= hi` (tokens; either may be open).
    Band {
        /// Smallest distance kept.
        #[schemars(range(min = -(1 << 30), max = 1 << 30))]
        lo: Option<i64>,
        /// Largest distance kept.
        #[schemars(range(min = -(1 << 30), max = 1 << 30))]
        hi: Option<i64>,
    },
    /// Cells painted by hand.
    Painted(Painted),
    /// FlexAttention text held in the document. `name` in the reference is the entry (function or factory).
    Text(TextCode),
    /// FlexAttention code in a file of the user's.
    Linked(LinkedCode),
}

/// A named factory and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeRef {
    /// Pattern name: the file's stem in the pattern library.
    pub name: String,
    /// Arguments by parameter name; those absent take their defaults or their axis binding.
    #[serde(default)]
    pub args: BTreeMap<String, ArgValue>,
}

/// Code in the document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextCode {
    /// The whole text.
    pub source: String,
    /// Function, lambda or factory to use; empty: the only or last one of the right kind.
    #[serde(default)]
    pub entry: String,
    /// Arguments by parameter name.
    #[serde(default)]
    pub args: BTreeMap<String, ArgValue>,
    /// Captured tensors, visible to the text as globals.
    #[serde(default)]
    #[schemars(schema_with = "parts::tensors")]
    pub tensors: BTreeMap<String, HostTensor>,
}

/// Code in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkedCode {
    /// As the user gave it; relative paths are relative to the document.
    pub path: String,
    /// As in [`TextCode`].
    #[serde(default)]
    pub entry: String,
    /// Arguments by parameter name.
    #[serde(default)]
    pub args: BTreeMap<String, ArgValue>,
    /// Captured tensors, visible to the text as globals.
    #[serde(default)]
    #[schemars(schema_with = "parts::tensors")]
    pub tensors: BTreeMap<String, HostTensor>,
}

/// An argument of a factory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum ArgValue {
    /// `null`: Python's None.
    None,
    /// `true`
    Bool(bool),
    /// `4`
    Int(i64),
    /// `0.5`
    Float(f64),
    /// `"text"`
    Text(String),
    /// `[1, 2]`: a tuple.
    List(Vec<ArgValue>),
    /// `{"tensor": {...}}`
    Tensor {
        /// Its values.
        #[schemars(schema_with = "parts::tensor")]
        tensor: HostTensor,
    },
    /// `{"python": "torch.arange(40)"}`: an expression, evaluated where the code runs.
    Python {
        /// Its text.
        python: String,
    },
    /// `{"mask": {"name": "causal"}}`: another pattern as an argument.
    Mask {
        /// Which.
        mask: CodeRef,
    },
}

/// Painted cells: a list of strokes over a grid of `cell` tokens, the last stroke over a place decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Painted {
    /// Tokens a painted cell covers, rows and columns (block or single-token painting).
    #[schemars(schema_with = "parts::block_size")]
    pub cell: BlockSize,
    /// Lengths for which it was painted, [q_len, kv_len]: what "keep, scale or repeat" starts from.
    #[schemars(inner(range(min = 1, max = 1 << 30)))]
    pub lengths: [usize; 2],
    /// In the order they were made.
    pub strokes: Vec<Stroke>,
}

/// One stroke: rectangles in cell units, half-open [q0, q1, kv0, kv1], all painted or all erased.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stroke {
    /// Paint (true) or erase.
    pub paint: bool,
    /// Covered cells; rectangles may overlap.
    #[schemars(inner(inner(range(max = 1 << 30))))]
    pub rects: Vec<[u32; 4]>,
}

/// One score mod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreLayer {
    /// Stable within the document, shared numbering with mask layers.
    #[schemars(range(max = i64::MAX))]
    pub id: u64,
    /// Shown in the list.
    pub name: String,
    /// Whether it takes part.
    pub enabled: bool,
    /// Its effect.
    pub content: ScoreContent,
}

/// The content of a score mod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum ScoreContent {
    /// A factory from the pattern library (ALiBi, soft cap and others live there).
    Pattern(CodeRef),
    /// A bias by distance, drawn with the mouse: piecewise linear in `q_idx - kv_idx`, constant beyond the ends.
    Curve {
        /// (distance in tokens, bias added to the score), distances rising.
        points: Vec<(f64, f64)>,
    },
    /// FlexAttention text held in the document.
    Text(TextCode),
    /// FlexAttention code in a file of the user's.
    Linked(LinkedCode),
}

/// Shapes and formats, and what to race. Lengths come from the axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // FlexAttention's own names; see ProblemSpec
pub struct Settings {
    #[schemars(range(min = 1, max = 1 << 16))]
    pub batch: usize,
    #[schemars(range(min = 1, max = 1 << 12))]
    pub heads: usize,
    #[schemars(range(min = 1, max = 1 << 12))]
    pub kv_heads: usize,
    #[schemars(range(min = 1, max = 1 << 12))]
    pub head_dim: usize,
    /// None: the same as head_dim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1 << 12))]
    pub head_dim_v: Option<usize>,
    #[schemars(schema_with = "parts::dtype")]
    pub dtype: DType,
    #[serde(default)]
    #[schemars(schema_with = "parts::layout")]
    pub layout: Layout,
    /// None: 1/sqrt(head_dim).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    #[schemars(schema_with = "parts::block_size")]
    pub block_size: BlockSize,
    /// Whether score mods may use the GPU's approximate tanh (relative error below 2^-11).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast_math: bool,
    /// Seed of random inputs.
    #[serde(default)]
    #[schemars(range(max = i64::MAX))]
    pub seed: u64,
    /// Backends to race, in order.
    #[schemars(schema_with = "parts::backends")]
    pub backends: Vec<BackendName>,
    /// None: the best there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::device")]
    pub device: Option<Device>,
}

impl Settings {
    /// Other query heads: key and value heads that were as many stay as many.
    pub fn set_heads(&mut self, heads: usize) {
        if self.kv_heads == self.heads {
            self.kv_heads = heads;
        }
        self.heads = heads;
    }

    /// The settings of a new document: one batch entry of bfloat16, every query head with its own keys, raced by the
    /// backends that need no PyTorch.
    pub fn new(heads: usize, head_dim: usize) -> Settings {
        Settings {
            batch: 1,
            heads,
            kv_heads: heads,
            head_dim,
            head_dim_v: None,
            dtype: DType::BF16,
            layout: Layout::Bhsd,
            scale: None,
            block_size: BlockSize::DEFAULT,
            fast_math: false,
            seed: 0,
            backends: BackendName::ALL.into_iter().filter(|backend| !backend.is_torch()).collect(),
            device: None,
        }
    }
}
