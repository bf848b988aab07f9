//! One query head of a capture: its q, k and v, and the model's own changes of its scores.
//!
//! Invariant: lengths of the tensors agree; values are float32 for every dtype of the file. Must not know files or
//! masks.

use crate::base::{Diagnostic, Lengths};
use crate::ir::graph::Mod;
use std::sync::Arc;

/// The model's own mask, which decides what full attention is.
#[derive(Clone, Debug, Default)]
pub enum Own {
    /// Every query sees every key.
    #[default]
    None,
    /// `kv_idx <= q_idx`, aligned to the top left as SDPA's `is_causal`.
    Causal,
    /// A byte a cell, `[q_len][kv_len]`; 0 hides.
    Keep(Arc<[u8]>),
    /// Added to the scores, `[q_len][kv_len]`.
    Bias(Arc<[f32]>),
}

/// One head's tensors. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Head {
    pub(super) lengths: Lengths,
    pub(super) dim: usize,
    pub(super) dim_v: usize,
    /// [q_len][dim]
    pub(super) q: Arc<[f32]>,
    /// [kv_len][dim]
    pub(super) k: Arc<[f32]>,
    /// [kv_len][dim_v]
    pub(super) v: Option<Arc<[f32]>>,
    /// Factor on q.k.
    pub scale: f64,
    /// `cap * tanh(score / cap)`, before the model's mask.
    pub softcap: Option<f32>,
    /// The model's own mask.
    pub own: Own,
    /// Logit of a key without a value, as GPT-OSS has one a head.
    pub sink: Option<f32>,
    /// A score mod, applied with and without the mask that is judged.
    pub score: Option<Arc<Mod>>,
    /// Batch entry and query head, as mods see them.
    pub place: (usize, usize),
}

impl Head {
    /// A head of q `[q_len][dim]`, k `[kv_len][dim]` and v `[kv_len][dim_v]` with the usual scale and nothing else. Errors: extents that
    /// do not agree.
    pub fn new(
        (q_len, kv_len): (usize, usize),
        dim: usize,
        q: Vec<f32>,
        k: Vec<f32>,
        v: Option<Vec<f32>>,
    ) -> Result<Head, Diagnostic> {
        let lengths = Lengths::new(q_len, kv_len)?;
        let dim_v = v.as_ref().map_or(0, |v| v.len() / kv_len);
        let whole = v.as_ref().is_none_or(|v| v.len() == dim_v * kv_len && dim_v > 0);
        if dim == 0 || q.len() != q_len * dim || k.len() != kv_len * dim || !whole {
            let message = format!(
                "q with {} and k with {} values do not match {q_len} and {kv_len} tokens of head_dim {dim}",
                q.len(),
                k.len()
            );
            return Err(Diagnostic::error("capture-shape", message).hint("capture the model again"));
        }
        Ok(Head {
            lengths,
            dim,
            dim_v,
            q: q.into(),
            k: k.into(),
            v: v.map(Into::into),
            scale: 1.0 / (dim as f64).sqrt(),
            softcap: None,
            own: Own::None,
            sink: None,
            score: None,
            place: (0, 0),
        })
    }

    /// Tokens.
    pub fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// head_dim of q and k.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// head_dim of v; 0 without v.
    pub fn dim_v(&self) -> usize {
        self.dim_v
    }

    /// `[q_len][dim]`
    pub fn q(&self) -> &[f32] {
        &self.q
    }

    /// `[kv_len][dim]`
    pub fn k(&self) -> &[f32] {
        &self.k
    }

    /// `[kv_len][dim_v]`
    pub fn v(&self) -> Option<&[f32]> {
        self.v.as_deref()
    }

    /// The same head with its tokens in another order: token `n` of the result is token `order[n]` of this one. Its own mask moves
    /// along. Errors: q and k of different lengths, or an order of another length.
    pub fn reordered(&self, order: &[usize]) -> Result<Head, Diagnostic> {
        let n = self.lengths.q_len;
        if self.lengths.kv_len != n || order.len() != n {
            return Err(Diagnostic::error("token-order", "reordering needs the same tokens as queries and keys")
                .hint("use a head of self-attention"));
        }
        let rows = |from: &[f32], width: usize| -> Arc<[f32]> {
            order.iter().flat_map(|at| from[at * width..(at + 1) * width].iter().copied()).collect()
        };
        let cells = |at: usize| (order[at / n], order[at % n]);
        let own = match &self.own {
            Own::None => Own::None,
            Own::Causal => Own::Keep((0..n * n).map(|at| u8::from(cells(at).1 <= cells(at).0)).collect()),
            Own::Keep(table) => Own::Keep((0..n * n).map(|at| table[cells(at).0 * n + cells(at).1]).collect()),
            Own::Bias(table) => Own::Bias((0..n * n).map(|at| table[cells(at).0 * n + cells(at).1]).collect()),
        };
        Ok(Head {
            q: rows(&self.q, self.dim),
            k: rows(&self.k, self.dim),
            v: self.v.as_ref().map(|v| rows(v, self.dim_v)),
            own,
            score: None,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::cell::{Cell, Value, eval};
    use crate::quality::own;
    use crate::quality::testing::{dense, head};

    #[test]
    fn attention_of_reordered_tokens_is_the_reordered_attention() {
        let n = 12;
        let order: Vec<usize> = (0..n).map(|at| (5 * at + 3) % n).collect();
        let keep: Arc<[u8]> = (0..n * n).map(|at| u8::from(at % 3 != 1)).collect();
        let bias: Arc<[f32]> = (0..n * n).map(|at| at as f32 / 50.0).collect();
        for own in [Own::None, Own::Causal, Own::Keep(keep), Own::Bias(bias)] {
            let given = Head { own, ..head(3, n, n, 4, 1.0) };
            let (before, after) = (dense(&given), dense(&given.reordered(&order).expect("self-attention")));
            let dim_v = given.dim_v();
            for q in 0..n {
                for kv in 0..n {
                    assert!((after.p[q * n + kv] - before.p[order[q] * n + order[kv]]).abs() < 1e-12);
                }
                for e in 0..dim_v {
                    assert!((after.out[q * dim_v + e] - before.out[order[q] * dim_v + e]).abs() < 1e-12);
                }
            }
        }
        assert!(
            head(3, n, n, 4, 1.0).reordered(&order[1..]).is_err()
                && head(3, n, n + 1, 4, 1.0).reordered(&order).is_err()
        );
        // a score mod reads places that are no longer those of its tokens
        let mod_ = Arc::new(crate::ir::random::score(1, &crate::ir::random::Options::new(n, n)));
        let scored = Head { score: Some(mod_), ..head(3, n, n, 4, 1.0) };
        assert!(scored.reordered(&order).expect("self-attention").score.is_none());
    }

    #[test]
    fn a_models_bias_is_a_score_mod() {
        let plain = head(3, 2, 3, 4, 1.0);
        assert!(own::score(&plain).expect("none").is_none());
        let biased = Head { own: Own::Bias(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.5].into()), softcap: None, ..plain };
        let added = own::score(&biased).expect("a table of the head's size").expect("a mod");
        let cell = Cell { b: 0, h: 0, q_idx: 1, kv_idx: 2, score: 0.25 };
        assert_eq!(eval(&added, &cell), Value::Float(5.75));
    }
}
