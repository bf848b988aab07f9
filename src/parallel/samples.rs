//! The sequences that plans are judged by: packed documents, video, windows, painted masks.
//!
//! Invariant: a seed gives the same sequence on every machine. Must not know plans.

use crate::analysis::examples::{self, Builder};
use crate::base::HostTensor;
use crate::base::rng::Rng;
use crate::base::tensor::Data;
use crate::ir::graph::Mod;

/// Lengths of documents with this mean, drawn from a lognormal distribution and cut at a quarter of the sequence.
pub fn documents(tokens: usize, mean: usize, sigma: f64, seed: u64) -> Vec<usize> {
    let mut rng = Rng::new(seed);
    let count = (tokens / mean.max(1)).max(1);
    let mut draw = || {
        let (u, v) = (rng.unit().max(1e-12), rng.unit());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (sigma * normal - sigma * sigma / 2.0).exp() * mean as f64
    };
    let drawn: Vec<f64> = (0..count).map(|_| draw()).collect();
    // scaled to the sequence, then cut; the rest goes to the shorter ones
    let scale = tokens as f64 / drawn.iter().sum::<f64>();
    let most = (tokens / 4).max(1);
    let mut out: Vec<usize> = drawn.iter().map(|x| ((x * scale) as usize).clamp(1, most)).collect();
    let mut left = tokens as i64 - out.iter().sum::<usize>() as i64;
    let mut at = 0;
    while left != 0 {
        let n = out.len();
        let slot = &mut out[at % n];
        let change =
            if left > 0 { left.min((most - *slot) as i64).min(64) } else { -((-left).min(*slot as i64 - 1).min(64)) };
        *slot = (*slot as i64 + change) as usize;
        left -= change;
        at += 1;
        if at > 1_000_000 {
            out.push(left.max(1) as usize);
            break;
        }
    }
    out
}

/// Frames attend to themselves and to the frames before, as far as a window reaches, and to the first.
pub fn video(frame: i64, window: i64) -> Mod {
    let mut g = Builder::new();
    let (q, k) = (g.q, g.k);
    let (of_q, of_k) = (g.div_by(q, frame), g.div_by(k, frame));
    let (causal, distance) = (g.ge(of_q, of_k), g.sub(of_q, of_k));
    let (near, sink) = (g.below(distance, window), g.below(of_k, 1));
    let kept = g.or(near, sink);
    let root = g.and(causal, kept);
    g.mask(root)
}

/// Blocks kept at random.
pub fn painted(tokens: usize, block: usize, percent: usize, seed: u64) -> Mod {
    let n = tokens.div_ceil(block);
    let mut rng = Rng::new(seed);
    let cells = (0..n * n).map(|_| u8::from(rng.chance(percent))).collect();
    let mut g = Builder::new();
    let tensor = HostTensor::new([n, n], Data::Bool(cells)).expect("n by n");
    let table = g.graph.add_capture("painted", tensor);
    let (q, k) = (g.q, g.k);
    let (row, col) = (g.div_by(q, block as i64), g.div_by(k, block as i64));
    let root = g.load(table, &[row, col]);
    g.mask(root)
}

/// The masks of the bars at a length, with the share of the all-gather that each may need.
pub fn bars(tokens: usize) -> Vec<(String, Mod, Option<f64>)> {
    let docs = |mean, seed| examples::documents(&documents(tokens, mean, 1.2, seed));
    let mut half = vec![tokens / 2];
    half.extend(std::iter::repeat_n(2048, tokens / 4096));
    half.push((tokens - half.iter().sum::<usize>()).max(1));
    let mut rows = Vec::new();
    for seed in 1..=4 {
        rows.push((format!("documents, mean 4k, seed {seed}"), docs(4096, seed), Some(0.15)));
    }
    for seed in 1..=4 {
        rows.push((format!("documents, mean 16k, seed {seed}"), docs(16_384, seed), Some(0.20)));
    }
    rows.push(("half one document, half 2k ones".into(), examples::documents(&half), Some(0.45)));
    rows.push(("video, frames of 1,536, window 8, sink".into(), video(1536, 8), Some(0.25)));
    rows.push(("window 1,024".into(), examples::sliding_window(1023), Some(0.03)));
    rows.push(("causal".into(), examples::causal(), None));
    rows.push(("prefix of a quarter".into(), examples::prefix_lm(tokens as i64 / 4), None));
    rows
}
