//! Masks proposed from captured heads: each a form with adjustable numbers and a reason.
//!
//! Invariant: a proposal's measures are those of its form's mask, counted on all heads; every form keeps protected
//! places. Must not know documents: a form becomes a layer elsewhere.

mod assign;
mod blocks;
mod budget;
mod columns;
mod form;
mod grid;
mod heads;
mod lines;
pub mod order;
mod radial;
mod reasons;
pub mod schedule;
#[cfg(test)]
mod tests;
mod tiles;
mod window;

pub use form::{Beside, BlockSet, Form};
pub use heads::{distinct, medoids};
pub use reasons::{First, Kind, Reach, Reason};

use super::cancelled;
use super::live::{Live, LiveHead};
use super::profile::{Grid, Profile};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The target of a proposal, as a mean over heads and rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// At least this mass kept, with as few blocks as possible.
    Mass(f64),
    /// At most this share of the blocks, with as much mass as possible.
    Blocks(f64),
}

/// Places that every proposal keeps unless they are switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protect {
    /// Blocks on the diagonal.
    pub diagonal: bool,
    /// The first block of keys.
    pub sinks: bool,
    /// Tokens outside the grid, as queries and as keys.
    pub text: bool,
    /// The grid's first frame, as keys.
    pub first_frame: bool,
}

impl Default for Protect {
    fn default() -> Self {
        Protect { diagonal: true, sinks: true, text: true, first_frame: true }
    }
}

impl Protect {
    /// Nothing is protected.
    pub const NONE: Protect = Protect { diagonal: false, sinks: false, text: false, first_frame: false };
}

/// The request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The target.
    pub target: Target,
    /// The protected cells.
    pub protect: Protect,
    /// The tokens' grid.
    pub grid: Option<Grid>,
    /// Most masks that heads may differ by.
    pub most_masks: usize,
}

/// A proposed mask and its measures on the heads that it was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// What kind of mask.
    pub kind: Kind,
    /// Why it looks as it does.
    pub why: Reason,
    /// The mask.
    pub form: Form,
    /// Mean over heads and rows of the mass kept.
    #[serde(with = "crate::base::float")]
    pub mass: f64,
    /// Smallest 5th percentile of a head.
    #[serde(with = "crate::base::float")]
    pub p5: f64,
    /// Smallest row of all heads.
    #[serde(with = "crate::base::float")]
    pub min: f64,
    /// Visited blocks over all blocks, over all heads.
    #[serde(with = "crate::base::float")]
    pub density: f64,
    /// Mean mass of each head, in the order of the heads.
    #[serde(with = "crate::base::float::list")]
    pub heads: Vec<f64>,
    /// Different masks among those heads.
    pub masks: usize,
}

/// The heads of a layer with all that proposals are made from. Heads have one extent and one block size.
pub struct Material {
    /// The heads.
    pub heads: Arc<Vec<LiveHead>>,
    /// Their profiles, in the same order.
    pub profiles: Vec<Profile>,
    /// Whether the model hides later keys in every head.
    pub causal: bool,
    /// Query heads of the model. Those without q and k keep everything in masks that differ between heads.
    pub model_heads: usize,
}

impl Material {
    /// Checks that the heads belong together. Errors: no head, other extents.
    pub fn new(heads: Arc<Vec<LiveHead>>, profiles: Vec<Profile>) -> Result<Material, Diagnostic> {
        let alike =
            |a: &LiveHead, b: &LiveHead| a.masses.lengths == b.masses.lengths && a.masses.block == b.masses.block;
        if heads.is_empty() || profiles.len() != heads.len() || heads.iter().any(|h| !alike(h, &heads[0])) {
            return Err(Diagnostic::error(
                "suggest-heads",
                "a proposal needs at least one head, and all heads must have the same length",
            )
            .hint("choose heads of one layer that have q and k in the capture"));
        }
        if heads.iter().all(|h| h.masses.lse.iter().all(|lse| !lse.is_finite())) {
            let message =
                "no row of these heads can be measured: their scores are NaN or infinite, or the rows keep no key";
            return Err(Diagnostic::error("suggest-rows", message)
                .hint("float16 overflows above 65504: capture in bfloat16 or float32"));
        }
        let causal = heads.iter().all(|h| is_causal(&h.masses.lengths, profiles_of(&profiles, &heads, h)));
        let model_heads = heads.iter().map(|h| h.scorer.head().place.1 + 1).max().unwrap_or(1);
        Ok(Material { heads, profiles, causal, model_heads })
    }

    /// Tokens.
    pub fn lengths(&self) -> Lengths {
        self.heads[0].masses.lengths
    }

    /// BLOCK_SIZE.
    pub fn block(&self) -> BlockSize {
        self.heads[0].masses.block
    }

    /// Query heads that masks must distinguish.
    pub fn head_count(&self) -> usize {
        self.model_heads
    }

    /// Numbers of the heads.
    pub fn numbers(&self) -> Vec<usize> {
        self.heads.iter().map(|h| h.scorer.head().place.1).collect()
    }

    /// The same of some heads, by their places.
    pub fn only(&self, places: &[usize]) -> Material {
        let heads = places.iter().map(|at| self.heads[*at].clone()).collect();
        let profiles = places.iter().map(|at| self.profiles[*at].clone()).collect();
        Material { heads: Arc::new(heads), profiles, causal: self.causal, model_heads: self.model_heads }
    }

    /// A form's blocks for these heads. Errors: `cancelled`, a form that makes no mask.
    pub fn blocks(&self, form: &Form, control: &Control) -> Result<BlockMask, Diagnostic> {
        let mask = form.mask(self.lengths())?;
        let heads = if form.per_head() { self.head_count() } else { 1 };
        let batch = self.heads.iter().map(|h| h.scorer.head().place.0 + 1).max().unwrap_or(1);
        BlockMask::build(Some(&mask), MaskShape { batch, heads, lengths: self.lengths() }, self.block(), control)
    }

    /// Judges a form on all heads. Errors: `cancelled`, a form that makes no mask.
    pub fn judge(&self, kind: Kind, why: Reason, form: Form, control: &Control) -> Result<Candidate, Diagnostic> {
        let blocks = self.blocks(&form, control)?;
        let line = Live::new(self.heads.clone(), blocks, control)?.line();
        let visited: usize = line.iter().map(|l| l.cost.blocks).sum();
        let all: usize = line.iter().map(|l| l.cost.all_blocks).sum();
        let least = |of: &dyn Fn(&super::live::LineHead) -> f64| line.iter().map(of).fold(f64::INFINITY, f64::min);
        let masks = distinct(&form.only(&self.numbers()));
        Ok(Candidate {
            masks,
            kind,
            why,
            form,
            mass: line.iter().map(|l| l.mass.mean).sum::<f64>() / line.len() as f64,
            p5: least(&|l| l.mass.p5),
            min: least(&|l| l.mass.min),
            density: visited as f64 / all as f64,
            heads: line.iter().map(|l| l.mass.mean).collect(),
        })
    }
}

fn profiles_of<'a>(profiles: &'a [Profile], heads: &[LiveHead], head: &LiveHead) -> &'a Profile {
    let at = heads.iter().position(|h| std::ptr::eq(h, head)).unwrap_or(0);
    &profiles[at]
}

/// Whether no later key has any mass, as in a causal model.
fn is_causal(lengths: &Lengths, profile: &Profile) -> bool {
    lengths.q_len == lengths.kv_len && lengths.q_len > 1 && profile.within(-(lengths.kv_len as i64), -1) == 0.0
}

/// All proposals for a target, the cheapest first among those that reach it. Errors: `cancelled`.
pub fn suggest(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    type Maker = fn(&Material, &Wanted, &Control) -> Result<Vec<Candidate>, Diagnostic>;
    let makers: [Maker; 9] = [
        window::propose,
        columns::propose,
        lines::propose,
        grid::propose,
        tiles::propose,
        radial::propose,
        blocks::propose,
        heads::propose,
        assign::propose,
    ];
    let mut found = Vec::new();
    for (n, make) in makers.iter().enumerate() {
        found.extend(make(material, wanted, control)?);
        control.set_progress((n + 1) as f64 / makers.len() as f64);
    }
    match wanted.target {
        Target::Mass(mass) => found.sort_by(|a, b| {
            let missed = |c: &Candidate| c.mass < mass - 1e-6;
            missed(a).cmp(&missed(b)).then(a.density.total_cmp(&b.density))
        }),
        Target::Blocks(_) => found.sort_by(|a, b| b.mass.total_cmp(&a.mass)),
    }
    Ok(found)
}

/// Which candidates no other beats in both lost mass and density.
pub fn pareto(candidates: &[Candidate]) -> Vec<bool> {
    let beats = |a: &Candidate, b: &Candidate| {
        a.mass >= b.mass && a.density <= b.density && (a.mass > b.mass || a.density < b.density)
    };
    candidates.iter().map(|c| !candidates.iter().any(|other| beats(other, c))).collect()
}

/// The least share of the blocks in which any mask of blocks keeps `mass`, nothing being protected: no proposal goes below.
pub fn least_density(material: &Material, mass: f64) -> f64 {
    blocks::least_density(material, mass)
}

/// The plain windows with sinks that a target is compared with: the cheapest that reaches it. Errors: `cancelled`.
pub fn plain_window(material: &Material, wanted: &Wanted, control: &Control) -> Result<Candidate, Diagnostic> {
    window::Windows::new(material, wanted, false, control)?.best(wanted.target, control)
}
