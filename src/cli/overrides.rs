//! Flags that change a document before it is used: lengths, heads, dtype, block size.
//!
//! Invariant: an absent flag changes nothing; painted cells are scaled with the lengths. Must not know commands.

use super::arguments;
use super::out::Failure;
use super::remarks::{Remark, Size};
use crate::base::{BlockSize, DType, Diagnostic, Layout};
use crate::document::model::{Axes, Axis, Document};
use crate::document::pasted::{Sizes, Tables};
use crate::document::{edit, resize};

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
    #[arg(long, value_name = "N", value_parser = arguments::some)]
    pub batch: Option<usize>,
    /// Query heads
    #[arg(long, value_name = "N", value_parser = arguments::some)]
    pub heads: Option<usize>,
    /// Key and value heads; without it, --heads sets both if they were equal
    #[arg(long, value_name = "N", value_parser = arguments::some)]
    pub kv_heads: Option<usize>,
    #[arg(long, value_name = "N", value_parser = arguments::some)]
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
            s.set_heads(heads);
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

    /// Takes the sizes that code is made for where no flag sets them, and reports them: those of the text's own create_block_mask,
    /// then those of the tables that it reads, as a paste does in the window.
    pub(super) fn take_sizes(
        &self,
        document: &mut Document,
        stated: &Sizes,
        tables: Tables,
    ) -> Result<Vec<Remark>, Failure> {
        let (stated, tables) = self.left_to_code(stated, tables);
        let own = tables.made_for(&stated);
        let (mut said, mut read) = (Vec::new(), Vec::new());
        let mut tell = |is_stated: bool, size: Size| if is_stated { said.push(size) } else { read.push(size) };
        if let Some((q, kv)) = own.lengths() {
            document.axes = Axes { q: Axis::tokens(q), kv: (q != kv).then(|| Axis::tokens(kv)) };
            self.apply(document)?;
            let lengths = Size::Tokens(document.axes.q.len(), document.axes.kv().len());
            tell(stated.q_len.or(stated.kv_len).is_some(), lengths);
        }
        let settings = &mut document.settings;
        if let Some(batch) = own.batch {
            settings.batch = batch;
            tell(stated.batch == own.batch, Size::Batch(batch));
        }
        if let Some(heads) = own.heads {
            (settings.heads, settings.kv_heads) = (heads, heads);
            tell(stated.heads == own.heads, Size::Heads(heads));
        }
        if let Some(size) = stated.block_size {
            settings.block_size = size;
            tell(true, Size::Blocks(size));
        }
        let said = (!said.is_empty()).then_some(Remark::Sizes { line: stated.line, sizes: said });
        let read = (!read.is_empty()).then_some(Remark::Tables { names: own.tables, sizes: read });
        Ok(said.into_iter().chain(read).collect())
    }

    /// What no flag sets.
    fn left_to_code(&self, stated: &Sizes, tables: Tables) -> (Sizes, Tables) {
        let axes = self.axes.is_none() && self.seq.is_none();
        let keys = axes && self.kv_seq.is_none() && self.kv_axes.is_none();
        let heads = self.heads.is_none() && self.kv_heads.is_none();
        let batch = self.batch.is_none();
        let stated = Sizes {
            line: stated.line,
            q_len: stated.q_len.filter(|_| axes),
            kv_len: stated.kv_len.filter(|_| keys),
            heads: stated.heads.filter(|_| heads),
            batch: stated.batch.filter(|_| batch),
            block_size: stated.block_size.filter(|_| self.block_size.is_none()),
        };
        let tables = Tables {
            q_len: tables.q_len.filter(|_| axes),
            kv_len: tables.kv_len.filter(|_| keys),
            heads: tables.heads.filter(|_| heads),
            batch: tables.batch.filter(|_| batch),
        };
        (stated, tables)
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
