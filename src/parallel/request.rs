//! What is to be planned: masks with their layers, ranks, links, shapes, cost.
//!
//! Invariant: a [`Request`] exists only if it can be planned; every refusal is a diagnostic with a suggested fix. Must
//! not know assignments.

use crate::base::{BlockSize, DType, Diagnostic, Lengths};
use crate::cost::{Cost, Pass};
use crate::links::Links;
use crate::problem::ProblemSpec;
use crate::rows::MaskRows;
use serde::Serialize;

/// The most ranks of a plan.
pub const MAX_RANKS: usize = 1024;

/// Layers that share one mask.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What they are called.
    pub name: String,
    /// How many there are.
    pub layers: usize,
    /// Their mask.
    pub rows: MaskRows,
}

/// The tensors of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // FlexAttention's own names
pub struct Shape {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub head_dim_v: usize,
    pub dtype: DType,
}

impl From<&ProblemSpec> for Shape {
    fn from(problem: &ProblemSpec) -> Shape {
        let ProblemSpec { batch, heads, kv_heads, head_dim, head_dim_v, dtype, .. } = *problem;
        Shape { batch, heads, kv_heads, head_dim, head_dim_v, dtype }
    }
}

impl Shape {
    /// Bytes of the keys and values of one token.
    pub fn kv_bytes(&self) -> u64 {
        (self.batch * self.kv_heads * (self.head_dim + self.head_dim_v) * self.dtype.size()) as u64
    }

    /// Bytes of the query and the output of one token.
    pub fn qo_bytes(&self) -> u64 {
        (self.batch * self.heads * (self.head_dim + self.head_dim_v) * self.dtype.size()) as u64
    }
}

/// A request that can be planned. Make one with [`Request::new`].
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) links: Links,
    pub(crate) shape: Shape,
    pub(crate) cost: Cost,
    pub(crate) backward: bool,
}

impl Request {
    /// Ranks are those of `links`; `cost` is for blocks of 128 x 128, as [`Cost::of_card`] returns it. Errors: no ranks
    /// or too many, no masks, masks of different extents or block sizes, no layers, heads that keys cannot be shared by.
    pub fn new(
        kinds: Vec<Kind>,
        links: Links,
        shape: Shape,
        cost: &Cost,
        backward: bool,
    ) -> Result<Request, Diagnostic> {
        check_ranks(links.ranks())?;
        let Some(first) = kinds.first() else {
            return Err(Diagnostic::error("parallel-no-mask", "there is no mask to plan")
                .hint("give the mask of at least one kind of layer"));
        };
        for kind in &kinds {
            check_kind(first, kind)?;
            let (batch, heads) = kind.rows.distinct;
            if ![1, shape.batch].contains(&batch) || ![1, shape.heads].contains(&heads) {
                let message = format!(
                    "the mask `{}` has {batch} batch entries and {heads} heads, the layer {} and {}",
                    kind.name, shape.batch, shape.heads
                );
                return Err(Diagnostic::error("parallel-mask-heads", message)
                    .hint("make the mask for the layer's batch entries and heads, or for 1 to share it"));
            }
        }
        if shape.kv_heads == 0 || shape.heads == 0 || !shape.heads.is_multiple_of(shape.kv_heads) {
            let message = format!("{} query heads cannot share {} key heads", shape.heads, shape.kv_heads);
            return Err(Diagnostic::error("parallel-heads", message)
                .hint("give a number of key heads that divides the query heads"));
        }
        let cost = cost.shaped(first.rows.block_size, shape.head_dim + shape.head_dim_v, shape.dtype);
        Ok(Request { kinds, links, shape, cost, backward })
    }

    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.links.ranks()
    }

    /// The kinds of layers.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Tensors of a layer.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The links.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// What a block costs.
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Tokens of queries and of keys.
    pub fn lengths(&self) -> Lengths {
        self.kinds[0].rows.lengths
    }

    /// The blocks of all masks.
    pub fn block_size(&self) -> BlockSize {
        self.kinds[0].rows.block_size
    }

    /// Whether queries and keys are the same tokens, so that one rank owns both.
    pub fn coupled(&self) -> bool {
        self.lengths().q_len == self.lengths().kv_len
    }

    /// Nanoseconds of a row of query blocks over all heads, in one pass.
    pub(crate) fn row_ns(&self, kind: &Kind, pass: Pass, row: usize) -> f64 {
        let copies = kind.rows.copies(self.shape.batch, self.shape.heads);
        let one = |group: &crate::rows::Group| {
            let (full, partial) = group.counts(row);
            let any = if full + partial > 0 { pass.row } else { 0.0 };
            full as f64 * pass.full + partial as f64 * pass.partial + any
        };
        copies * kind.rows.groups.iter().map(one).sum::<f64>()
    }
}

/// Errors: no ranks, or more than can be planned.
pub fn check_ranks(ranks: usize) -> Result<(), Diagnostic> {
    if ranks == 0 {
        return Err(Diagnostic::error("parallel-ranks", "0 ranks compute nothing").hint("give at least 1 rank"));
    }
    if ranks > MAX_RANKS {
        let message = format!("{ranks} ranks are more than the {MAX_RANKS} that can be planned");
        return Err(Diagnostic::error("parallel-ranks", message).hint(format!("give at most {MAX_RANKS} ranks")));
    }
    Ok(())
}

fn check_kind(first: &Kind, kind: &Kind) -> Result<(), Diagnostic> {
    if kind.layers == 0 {
        let message = format!("0 layers have the mask `{}`", kind.name);
        return Err(Diagnostic::error("parallel-layers", message).hint("leave this mask out, or give its layers"));
    }
    let (a, b) = (&first.rows, &kind.rows);
    if a.lengths != b.lengths || a.block_size != b.block_size {
        let of = |rows: &MaskRows| {
            format!("{} x {} tokens in blocks of {}", rows.lengths.q_len, rows.lengths.kv_len, rows.block_size)
        };
        let message = format!("`{}` covers {}, `{}` {}", first.name, of(a), kind.name, of(b));
        return Err(Diagnostic::error("parallel-extents", message)
            .hint("plan masks of one sequence and one block size together, and others by plans of their own"));
    }
    Ok(())
}
