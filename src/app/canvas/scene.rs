//! The content of a frame of the canvas.
//!
//! Invariant: borrowed from the caller; nothing here is kept between frames. Must not know how it is drawn.

use super::Tool;
use super::handles::Extent;
use super::heat::HeatData;
use super::texts::Texts;
use crate::app::region::Region;
use crate::base::{BlockSize, Lengths};
use crate::document::heads::Heads;
use crate::document::model::{Axis, Combine};
use crate::ir::graph::Mod;
use crate::quality::profile::Grid;
use crate::words::Words;
use std::sync::Arc;

/// The content of a frame.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// What is said is of this language.
    pub said: &'static Words,
    /// The open document: what is typed for one is in no other.
    pub document: u64,
    /// The mask; None keeps everything.
    pub mask: Option<Arc<Mod>>,
    /// Enabled layers that the mask is made of, bottom first, for the read-out.
    pub layers: Vec<SceneLayer<'a>>,
    /// The score mod, drawn by [`Picture::Bias`].
    pub score: Option<Arc<Mod>>,
    /// Rows and columns.
    pub lengths: Lengths,
    /// BLOCK_SIZE of the blocks that are shown.
    pub block_size: BlockSize,
    /// The meaning of rows.
    pub q_axis: &'a Axis,
    /// The meaning of columns.
    pub kv_axis: &'a Axis,
    /// The grid of the open capture, if its length is the columns'.
    pub grid: Option<Grid>,
    /// The texts of rows and columns, if known.
    pub texts: [Option<Texts<'a>>; 2],
    /// Batch entries.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Shown batch entry.
    pub b: usize,
    /// Shown head.
    pub h: usize,
    /// Heads that are painted on; None: all.
    pub picked: Option<&'a Heads>,
    /// Changes whenever the mask, the score mod or the lengths do, and only then.
    pub revision: u64,
    /// The effect of the primary button.
    pub tool: Tool,
    /// Cells of the painted layer that the brush would paint on; None: blocks of `block_size`.
    pub painted_cell: Option<BlockSize>,
    /// The cell (q_idx, kv_idx) that is looked at: the pinned one, or the last under the pointer.
    pub at: [usize; 2],
    /// The cell (q_idx, kv_idx) that a cross stays on.
    pub pinned: Option<[usize; 2]>,
    /// The area whose figures are told.
    pub area: Option<&'a Region>,
    /// The selected rectangle, rows and columns in tokens; its handles are drawn with the pan tool.
    pub selected: Option<Extent>,
    /// The kind of picture.
    pub picture: Picture,
    /// The compared mask of [`Picture::Difference`].
    pub against: Option<Against<'a>>,
    /// The numbers of [`Picture::Map`] and [`Picture::Loss`].
    pub map: Option<Numbers<'a>>,
    /// The mass that rows keep, drawn next to [`Picture::Loss`].
    pub loss: Option<Loss<'a>>,
    /// A walk over a row of blocks, marked on the picture.
    pub walk: Option<Walk<'a>>,
    /// The label of an outdated picture after an error: `state before the error in Window`.
    pub before: Option<String>,
}

/// Numbers of cells over the mask's own rows and columns.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// None: they are not there.
    pub data: Option<&'a HeatData>,
    /// The reason if they are missing, or that others follow; empty without a message.
    pub words: &'a str,
    /// Colours by the logarithm.
    pub log: bool,
}

/// The attention mass that rows keep.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// Mass kept of each row; NaN if it is not measured.
    pub rows: &'a [f32],
    /// A row that is marked.
    pub row: Option<usize>,
    /// Keys that it misses most, with their probabilities.
    pub missed: &'a [(usize, f32)],
}

/// Another mask, for the difference.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// Identifies the compared mask; never reused.
    pub number: u64,
    /// Its name.
    pub name: &'a str,
    /// None keeps everything.
    pub mask: &'a Option<Arc<Mod>>,
    /// Its rows and columns.
    pub lengths: Lengths,
}

/// A row of query blocks that walks over its kv blocks.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    /// Row of blocks.
    pub q_block: usize,
    /// kv blocks in the order in which they are stepped.
    pub tiles: &'a [usize],
    /// How many of them are done; the last of these is the present one.
    pub step: usize,
}

/// One layer of the mask.
#[derive(Clone, Copy, Debug)]
pub struct SceneLayer<'a> {
    /// Which.
    pub id: u64,
    /// As listed.
    pub name: &'a str,
    /// How it joins those below.
    pub combine: Combine,
    /// The cells that it alone keeps.
    pub mask: &'a Arc<Mod>,
}

/// The kinds of pictures on the canvas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Picture {
    /// Kept share of each pixel.
    Mask,
    /// The same, coloured by full, partial and empty blocks.
    #[default]
    Blocks,
    /// The score mod's result for a score of zero.
    Bias,
    /// Cells kept now but not in another mask, and the reverse.
    Difference,
    /// Numbers of cells: scores, probabilities or what else [`Scene::map`] has.
    Map,
    /// Attention mass outside the mask, from [`Scene::map`], with the mass that rows keep next to it.
    Loss,
}

impl Picture {
    /// Whether it is drawn from numbers, not from tiles of the mask.
    pub fn is_numbers(self) -> bool {
        matches!(self, Picture::Map | Picture::Loss)
    }
}
