//! Synthetic heads with planted structure, and plain float64 attention as the reference of measures.
//!
//! Invariant: the plain computation shares no code with the tested code. Only compiled for tests.

use super::head::{Head, Own};
use crate::ir::random::Rng;

/// Attention of a head in float64: probabilities [q_len][kv_len], lse, output [q_len][dim_v].
pub struct Dense {
    /// Probabilities.
    pub p: Vec<f64>,
    /// Natural logarithms of the rows' sums.
    pub lse: Vec<f64>,
    /// Outputs.
    pub out: Vec<f64>,
}

/// A standard normal number.
pub fn normal(rng: &mut Rng) -> f32 {
    let uniform = |rng: &mut Rng| (rng.below(1 << 24) as f64 + 0.5) / f64::from(1 << 24);
    let (a, b) = (uniform(rng), uniform(rng));
    ((-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()) as f32
}

/// A random head with v; `sharp` scales q.
pub fn head(seed: u64, q_len: usize, kv_len: usize, dim: usize, sharp: f32) -> Head {
    let mut rng = Rng::new(seed);
    let q = (0..q_len * dim).map(|_| sharp * normal(&mut rng)).collect();
    let k = (0..kv_len * dim).map(|_| normal(&mut rng)).collect();
    let v = (0..kv_len * (dim + 3)).map(|_| normal(&mut rng)).collect();
    Head::new((q_len, kv_len), dim, q, k, Some(v)).expect("a head")
}

/// Plain attention over the cells that `keeps`.
pub fn dense_under(head: &Head, keeps: impl Fn(usize, usize) -> bool) -> Dense {
    let (q_len, kv_len) = (head.lengths().q_len, head.lengths().kv_len);
    let (dim, dim_v) = (head.dim(), head.dim_v());
    let mut found = Dense { p: vec![0.0; q_len * kv_len], lse: vec![0.0; q_len], out: vec![0.0; q_len * dim_v] };
    for q in 0..q_len {
        let score = |kv: usize| {
            let dot: f64 = (0..dim).map(|e| f64::from(head.q()[q * dim + e]) * f64::from(head.k()[kv * dim + e])).sum();
            let mut s = dot * head.scale;
            if let Some(cap) = head.softcap {
                s = f64::from(cap) * (s / f64::from(cap)).tanh();
            }
            let hidden = match &head.own {
                Own::None => false,
                Own::Causal => kv > q,
                Own::Keep(table) => table[q * kv_len + kv] == 0,
                Own::Bias(table) => {
                    s += f64::from(table[q * kv_len + kv]);
                    false
                }
            };
            if hidden || !keeps(q, kv) { f64::NEG_INFINITY } else { s }
        };
        let scores: Vec<f64> = (0..kv_len).map(score).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if max == f64::NEG_INFINITY {
            found.lse[q] = max;
            continue;
        }
        let sum: f64 = scores.iter().map(|s| (s - max).exp()).sum();
        found.lse[q] = max + sum.ln();
        let with_sink = sum + head.sink.map_or(0.0, |sink| (f64::from(sink) - max).exp());
        for kv in 0..kv_len {
            let e = (scores[kv] - max).exp();
            found.p[q * kv_len + kv] = e / sum;
            if let Some(v) = head.v() {
                for d in 0..dim_v {
                    found.out[q * dim_v + d] += e / with_sink * f64::from(v[kv * dim_v + d]);
                }
            }
        }
    }
    found
}

/// Plain attention over all cells.
pub fn dense(head: &Head) -> Dense {
    dense_under(head, |_, _| true)
}
