//! Flags that change a document before it is used: lengths, heads, dtype, block size.
//!
//! Invariant: an absent flag changes nothing; painted cells are scaled with the lengths. Must not know commands.

use super::arguments;
use super::out::Failure;
use super::remarks::{Remark, Size};
use crate::base::{BlockSize, DType, Diagnostic, Layout};
use crate::document::model::{Axes, Axis, Document};
use crate::document::pasted::Tables;
use crate::document::{edit, resize};
use crate::python::TextSizes;

/// The flags.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Changes to the document")]
pub(super) struct Overrides {
    /// Tokens of an axis with one segment, for queries and keys: 8192, 8_192 or 8k
    #[arg(long, value_name = "N", value_parser = arguments::tokens, conflicts_with = "axes")]
    pub seq: Option<usize>,
    /// Key tokens, if they differ from the queries
    #[arg(long, value_name = "N", value_parser = arguments::tokens, conflicts_with = "axes")]
    pub kv_seq: Option<usize>,
    /// Query axis in words: "text 512 | image 64x64"
    #[arg(long, value_name = "AXIS")]
    pub axes: Option<String>,
    /// Key axis of cross-attention in words
    #[arg(long, value_name = "AXIS")]
    pub kv_axes: Option<String>,
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Query heads
    #[arg(long, value_name = "N")]
    pub heads: Option<usize>,
    /// Key and value heads; without it, --heads sets both if they were equal
    #[arg(long, value_name = "N")]
    pub kv_heads: Option<usize>,
    #[arg(long, value_name = "N")]
    pub head_dim: Option<usize>,
    /// bf16, f16, or f32 (CPU only)
    #[arg(long, value_parser = arguments::dtype)]
    pub dtype: Option<DType>,
    /// BLOCK_SIZE of picture and statistics: 128 or 64x128
    #[arg(long, value_parser = arguments::block_size)]
    pub block_size: Option<BlockSize>,
    /// Order of dimensions in device memory: bhsd or bshd
    #[arg(long, value_parser = arguments::layout)]
    pub memory_layout: Option<Layout>,
    /// Factor on q.k; the default is the document's, or 1/sqrt(head_dim)
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    /// Approximate tanh in score mods on the GPU: relative error up to 2^-11, one instruction
    #[arg(long)]
    pub fast_math: bool,
    /// Seed of random inputs
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl Overrides {
    /// Changes the axes. Errors: invalid lengths, or lengths that do not fit the document's segments.
    pub(super) fn apply(&self, document: &mut Document) -> Result<(), Failure> {
        if let Some(axes) = self.axes_of(&document.axes).map_err(Failure::WrongUse)? {
            set_axes(document, axes)?;
        }
        Ok(())
    }

    /// Changes the settings.
    pub(super) fn apply_settings(&self, document: &mut Document) {
        let s = &mut document.settings;
        if let Some(heads) = self.heads {
            if s.kv_heads == s.heads && self.kv_heads.is_none() {
                s.kv_heads = heads;
            }
            s.heads = heads;
        }
        if let Some(dim) = self.head_dim {
            s.head_dim = dim;
            s.head_dim_v = None;
        }
        s.kv_heads = self.kv_heads.unwrap_or(s.kv_heads);
        s.batch = self.batch.unwrap_or(s.batch);
        s.dtype = self.dtype.unwrap_or(s.dtype);
        s.block_size = self.block_size.unwrap_or(s.block_size);
        s.layout = self.memory_layout.unwrap_or(s.layout);
        s.scale = self.scale.or(s.scale);
        s.fast_math |= self.fast_math;
        s.seed = self.seed.unwrap_or(s.seed);
    }

    /// Takes the sizes of the text's own create_block_mask if no flag sets them, and reports them.
    pub(super) fn take_sizes(&self, document: &mut Document, sizes: &TextSizes, line: usize) -> Option<Remark> {
        let mut taken = Vec::new();
        let no_axes = self.axes.is_none() && self.seq.is_none();
        if let (true, Some(q), Some(kv)) = (no_axes, sizes.q_len, sizes.kv_len) {
            document.axes = Axes::same(Axis::tokens(q));
            if q != kv && self.kv_seq.is_none() && self.kv_axes.is_none() {
                document.axes.kv = Some(Axis::tokens(kv));
            }
            taken.push(Size::Tokens(q, kv));
        }
        let settings = &mut document.settings;
        if let (None, Some(batch)) = (self.batch, sizes.batch) {
            settings.batch = batch;
            taken.push(Size::Batch(batch));
        }
        if let (None, None, Some(heads)) = (self.heads, self.kv_heads, sizes.heads) {
            (settings.heads, settings.kv_heads) = (heads, heads);
            taken.push(Size::Heads(heads));
        }
        if let (None, Some(size)) = (self.block_size, sizes.block_size) {
            settings.block_size = size;
            taken.push(Size::Blocks(size));
        }
        (!taken.is_empty()).then_some(Remark::Sizes { line, sizes: taken })
    }

    /// Takes lengths, heads and batch from the tables that the code reads at `q_idx`, `kv_idx`, `h` and `b` themselves, where neither
    /// a flag nor the text's own create_block_mask says them, as a pasted text does in the window; reports what was taken.
    pub(super) fn take_tables(&self, document: &mut Document, stated: &TextSizes, tables: &Tables) -> Option<Remark> {
        let (mut taken, mut names) = (Vec::new(), Vec::new());
        let mut of = |table: &Option<(usize, String)>| {
            let (len, name) = table.clone().filter(|(len, _)| *len > 0)?;
            names.push(name);
            Some(len)
        };
        let no_axes = self.axes.is_none() && self.seq.is_none() && self.kv_seq.is_none() && self.kv_axes.is_none();
        if no_axes && stated.q_len.is_none() && stated.kv_len.is_none() {
            let (q, kv) = (of(&tables.q_len), of(&tables.kv_len));
            if let (Some(q), Some(kv)) = (q.or(kv), kv.or(q)) {
                document.axes = Axes { q: Axis::tokens(q), kv: (q != kv).then(|| Axis::tokens(kv)) };
                taken.push(Size::Tokens(q, kv));
            }
        }
        let settings = &mut document.settings;
        let no_heads = self.heads.is_none() && self.kv_heads.is_none() && stated.heads.is_none();
        if let Some(heads) = no_heads.then(|| of(&tables.heads)).flatten() {
            (settings.heads, settings.kv_heads) = (heads, heads);
            taken.push(Size::Heads(heads));
        }
        let no_batch = self.batch.is_none() && stated.batch.is_none();
        if let Some(batch) = no_batch.then(|| of(&tables.batch)).flatten() {
            settings.batch = batch;
            taken.push(Size::Batch(batch));
        }
        names.dedup();
        (!taken.is_empty()).then_some(Remark::Tables { names, sizes: taken })
    }

    fn axes_of(&self, now: &Axes) -> Result<Option<Axes>, Diagnostic> {
        let mut axes = now.clone();
        if let Some(text) = &self.axes {
            axes = Axes::same(Axis::parse(text)?);
        } else if let Some(n) = self.seq {
            axes.q = with_length(&now.q, n, "--axes")?;
            if let (Some(kv), None) = (&now.kv, self.kv_seq) {
                axes.kv = Some(with_length(kv, n, "--kv-axes")?);
            }
        }
        if let Some(text) = &self.kv_axes {
            axes.kv = Some(Axis::parse(text)?);
        } else if let Some(n) = self.kv_seq {
            axes.kv = Some(with_length(now.kv(), n, "--kv-axes")?);
        }
        axes.lengths()?;
        Ok((axes != *now).then_some(axes))
    }
}

/// The same axis with `n` tokens, if it has one plain segment.
fn with_length(axis: &Axis, n: usize, flag: &str) -> Result<Axis, Diagnostic> {
    match &axis.segments[..] {
        [segment] if segment.grid.len() == 1 => {
            let mut axis = axis.clone();
            axis.segments[0].grid = vec![n];
            Ok(axis)
        }
        _ => {
            let message =
                format!("the axis `{axis}` has segments and grids; a single length does not name the one to change");
            Err(Diagnostic::error("axis-segments", message).hint(format!("write the whole axis: {flag} \"{axis}\"")))
        }
    }
}

/// Sets new axes and scales painted cells.
pub(super) fn set_axes(document: &mut Document, axes: Axes) -> Result<(), Diagnostic> {
    let change = resize::set_axes(document, axes, resize::Resize::Scale)?;
    edit::apply(document, change).map(drop)
}
