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
    // scaled to the sequence, then cut; what is left over goes to the next ones that have room
    let scale = tokens as f64 / drawn.iter().sum::<f64>();
    let most = tokens.div_ceil(4);
    let mut out: Vec<usize> = drawn.iter().map(|x| ((x * scale) as usize).clamp(1, most)).collect();
    let mut left = tokens as i64 - out.iter().sum::<usize>() as i64;
    while left != 0 {
        let before = left;
        for length in &mut out {
            let room = if left > 0 {
                left.min((most - *length) as i64).min(64)
            } else {
                left.max(1 - *length as i64).max(-64)
            };
            *length = (*length as i64 + room) as usize;
            left -= room;
        }
        if left == before {
            // fewer documents than quarters
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

/// A sequence by which plans are judged.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What it is.
    pub name: &'static str,
    /// Its masks: several draws where the lengths are random.
    pub masks: Vec<Mod>,
    /// The share of the all-gather that a plan may receive, on the mean of the draws. None: balance alone counts.
    pub received: Option<f64>,
}

/// The sequences at a length.
pub fn bars(tokens: usize) -> Vec<Bar> {
    let docs = |mean| (1..=4).map(|seed| examples::documents(&documents(tokens, mean, 1.2, seed))).collect();
    let mut half = vec![tokens / 2];
    half.extend(std::iter::repeat_n(2048, tokens / 4096));
    let rest = tokens.saturating_sub(half.iter().sum());
    half.extend((rest > 0).then_some(rest));
    let bar = |name, masks, received| Bar { name, masks, received };
    vec![
        bar("documents, mean 4k", docs(4096), Some(0.15)),
        bar("documents, mean 16k", docs(16_384), Some(0.20)),
        bar("half one document, half 2k", vec![examples::documents(&half)], Some(0.45)),
        bar("video, frames of 1,536, window 8", vec![video(1536, 8)], Some(0.25)),
        bar("window 1,024", vec![examples::sliding_window(1023)], Some(0.03)),
        bar("causal", vec![examples::causal()], None),
        bar("prefix of a quarter", vec![examples::prefix_lm(tokens as i64 / 4)], None),
    ]
}

/// Three kinds of layers over packed documents: the documents, a window, frames.
pub fn three(tokens: usize, seed: u64) -> Vec<(&'static str, usize, Mod)> {
    vec![
        ("documents", 1, examples::documents(&documents(tokens, 4096, 1.2, seed))),
        ("window 1,024", 5, examples::sliding_window(1023)),
        ("frames", 1, video(1536, 8)),
    ]
}
