//! A fully specified run: validated shapes, mods, dtype and layout; and the types of a run's results.
//!
//! Invariant: a [`Problem`] exists only if every backend-independent rule holds; every refusal is a diagnostic with a
//! suggested fix. Must not know any backend, device or file.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as problem;
use maskloom_analysis as analysis;
use maskloom_base as base;
use maskloom_ir as ir;

pub mod card;
mod doing;
pub mod facts;
mod fingerprint;
mod outputs;
pub mod pattern;
mod plans;
#[cfg(test)]
mod problem_tests;
mod ran;
pub mod random;
pub mod result;
pub mod roofs;
mod validate;
pub mod verdict;

pub use fingerprint::Fingerprint;
pub use plans::MaskPlans;

use crate::base::{BlockSize, DType, Layout, Lengths};
use crate::ir::graph::{Input, Mod, captured_bytes};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The specification of a run, before validation. Lengths in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // FlexAttention's own names
pub struct ProblemSpec {
    pub batch: usize,
    /// Query heads (Hq).
    pub heads: usize,
    /// Key and value heads (Hkv); query head h reads kv head h / (heads / kv_heads).
    pub kv_heads: usize,
    pub q_len: usize,
    pub kv_len: usize,
    /// For q and k (E).
    pub head_dim: usize,
    /// For v and the output (Ev).
    pub head_dim_v: usize,
    /// For q, k, v and the output: BF16, F16, or (CPU only) F32.
    pub dtype: DType,
    pub layout: Layout,
    /// Factor on q.k; None is 1/sqrt(head_dim).
    pub scale: Option<f64>,
    /// BLOCK_SIZE of picture, statistics, export and torch:flex; kernels use their own tiles.
    pub block_size: BlockSize,
    pub mask: Option<Arc<Mod>>,
    pub score: Option<Arc<Mod>>,
    /// Whether the rows' largest scores are an output too, as with `AuxRequest(max_scores=True)`.
    #[serde(default)]
    pub max_scores: bool,
}

impl ProblemSpec {
    /// Without mods: bf16, [B, H, S, D], the usual scale and block size, v as wide as q and k.
    pub fn plain(
        batch: usize,
        (heads, kv_heads): (usize, usize),
        (q_len, kv_len): (usize, usize),
        head_dim: usize,
    ) -> ProblemSpec {
        ProblemSpec {
            batch,
            heads,
            kv_heads,
            q_len,
            kv_len,
            head_dim,
            head_dim_v: head_dim,
            dtype: DType::BF16,
            layout: Layout::Bhsd,
            scale: None,
            block_size: BlockSize::DEFAULT,
            mask: None,
            score: None,
            max_scores: false,
        }
    }

    /// Bytes of the tensors that the mods read, each once, in their own dtypes.
    pub fn captured_bytes(&self) -> u64 {
        captured_bytes([&self.mask, &self.score].into_iter().flatten().map(|of| &**of))
    }
}

/// A validated problem. Read-only; make one with [`Problem::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    spec: ProblemSpec,
    lengths: Lengths,
    plans: MaskPlans,
}

impl Problem {
    /// The validated lengths.
    pub fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// Factor on q.k, resolved.
    pub fn scale(&self) -> f64 {
        self.spec.scale.unwrap_or(1.0 / (self.spec.head_dim as f64).sqrt())
    }

    /// Query heads a kv head.
    pub fn group(&self) -> usize {
        self.spec.heads / self.spec.kv_heads
    }

    /// Whether the mask differs between batch entries, by its graph.
    pub fn mask_per_batch(&self) -> bool {
        self.mask.as_ref().is_some_and(|m| m.depends().on(Input::B))
    }

    /// Whether the mask differs between heads, by its graph.
    pub fn mask_per_head(&self) -> bool {
        self.mask.as_ref().is_some_and(|m| m.depends().on(Input::H))
    }

    /// Bytes of the tensors that the mods read, each once, in their own dtypes.
    pub fn captured_bytes(&self) -> u64 {
        self.spec.captured_bytes()
    }

    /// The same without outputs that only some ask for.
    pub fn without_aux(&self) -> Problem {
        self.with_max_scores(false)
    }

    /// The same with or without the rows' largest scores as an output.
    pub fn with_max_scores(&self, max_scores: bool) -> Problem {
        let spec = ProblemSpec { max_scores, ..self.spec.clone() };
        Problem { spec, lengths: self.lengths, plans: self.plans.clone() }
    }

    /// Its specification.
    pub fn spec(&self) -> &ProblemSpec {
        &self.spec
    }
}

impl std::ops::Deref for Problem {
    type Target = ProblemSpec;
    fn deref(&self) -> &ProblemSpec {
        &self.spec
    }
}
