//! Rankings of key blocks from pooled q and k.
//!
//! Invariant: formulas as documented at [`Ranking`]; last blocks pool over their existing tokens. Must not know masses.

use super::Ranking;
use crate::base::BlockSize;
use crate::quality::head::Head;
use rayon::prelude::*;

/// Rankings [q blocks][kv blocks], and blocks that are kept at any rank.
pub(super) fn rank(head: &Head, block: BlockSize, ranking: Ranking) -> (Vec<f32>, Vec<bool>) {
    let (dim, scale) = (head.dim(), head.scale as f32);
    let grid = block.grid(head.lengths());
    let none = vec![false; grid.0 * grid.1];
    match ranking {
        Ranking::MeanPool => {
            let (q, k) = (means(head.q(), dim, block.q), means(head.k(), dim, block.kv));
            (products(&q, &k, dim, scale), none)
        }
        Ranking::SelfSimilar { threshold } => {
            let (q, k) = (means(head.q(), dim, block.q), means(head.k(), dim, block.kv));
            let smooth = less_mean(head.k(), dim);
            let (alike_q, alike_k) = (similarity(head.q(), dim, block.q), similarity(&smooth, dim, block.kv));
            let always = (0..grid.0 * grid.1)
                .map(|at| alike_q[at / grid.1] < threshold || alike_k[at % grid.1] < threshold)
                .collect();
            (products(&q, &k, dim, scale), always)
        }
        Ranking::SubBlock { parts } => {
            // blocks are cut one by one: sub-blocks never reach into the next block
            let cut = |of: &[f32], size: usize| -> (Vec<f32>, usize) {
                let part = size.div_ceil(parts);
                (of.chunks(size * dim).flat_map(|block| means(block, dim, part)).collect(), size.div_ceil(part))
            };
            let ((q, rows), (k, columns)) = (cut(head.q(), block.q), cut(head.k(), block.kv));
            (log_sums(&products(&q, &k, dim, scale), k.len() / dim, [rows, columns], grid), none)
        }
        Ranking::Antidiagonal { stride } => (antidiagonal(head, block, stride), none),
        Ranking::Quest => (quest(head, block), none),
    }
}

/// Multiply-adds of a ranking over those of all scores.
pub(super) fn cost(head: &Head, block: BlockSize, ranking: Ranking) -> f64 {
    let (q, k) = (head.lengths().q_len as f64, head.lengths().kv_len as f64);
    match ranking {
        Ranking::MeanPool => 1.0 / (block.q * block.kv) as f64 + 1.0 / q + 1.0 / k,
        Ranking::SelfSimilar { .. } => 1.0 / (block.q * block.kv) as f64 + 2.0 / q + 2.0 / k,
        Ranking::SubBlock { parts } => (parts * parts) as f64 / (block.q * block.kv) as f64 + 1.0 / q + 1.0 / k,
        Ranking::Antidiagonal { stride } => 1.0 / stride as f64,
        Ranking::Quest => 2.0 / block.kv as f64,
    }
}

/// Mean of each stretch of `count` tokens.
fn means(of: &[f32], dim: usize, count: usize) -> Vec<f32> {
    of.chunks(count * dim)
        .flat_map(|part| {
            let tokens = (part.len() / dim) as f32;
            (0..dim).map(move |e| part.chunks_exact(dim).map(|t| t[e]).sum::<f32>() / tokens)
        })
        .collect()
}

fn less_mean(of: &[f32], dim: usize) -> Vec<f32> {
    let mean = means(of, dim, of.len() / dim);
    of.iter().enumerate().map(|(at, x)| x - mean[at % dim]).collect()
}

/// `a . b * scale`, [a][b].
fn products(a: &[f32], b: &[f32], dim: usize, scale: f32) -> Vec<f32> {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>() * scale;
    a.par_chunks_exact(dim).flat_map_iter(|x| b.chunks_exact(dim).map(move |y| dot(x, y))).collect()
}

/// Log-sum-exp of boxes of `parts` scores, [grid].
fn log_sums(scores: &[f32], width: usize, parts: [usize; 2], grid: (usize, usize)) -> Vec<f32> {
    let height = scores.len() / width.max(1);
    (0..grid.0 * grid.1)
        .map(|at| {
            let (i, j) = (at / grid.1, at % grid.1);
            let rows = i * parts[0]..((i + 1) * parts[0]).min(height);
            let columns = j * parts[1]..((j + 1) * parts[1]).min(width);
            let cells = rows.flat_map(|r| columns.clone().map(move |c| r * width + c));
            let top = cells.clone().map(|c| scores[c]).fold(f32::NEG_INFINITY, f32::max);
            if top == f32::NEG_INFINITY { top } else { top + cells.map(|c| (scores[c] - top).exp()).sum::<f32>().ln() }
        })
        .collect()
}

/// Mean pairwise cosine of the tokens of each block: `|sum of unit vectors|^2 / n^2`.
fn similarity(of: &[f32], dim: usize, count: usize) -> Vec<f32> {
    let block = |part: &[f32]| {
        let mut sum = vec![0.0f32; dim];
        for token in part.chunks_exact(dim) {
            let norm = token.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-12);
            sum.iter_mut().zip(token).for_each(|(s, x)| *s += x / norm);
        }
        let tokens = (part.len() / dim) as f32;
        sum.iter().map(|s| s * s).sum::<f32>() / (tokens * tokens)
    };
    of.chunks(count * dim).map(block).collect()
}

/// XAttention's estimate as logarithms of summed probabilities: groups of `stride` tokens, the queries of a group reversed.
fn antidiagonal(head: &Head, block: BlockSize, stride: usize) -> Vec<f32> {
    let dim = head.dim();
    let groups = |of: &[f32], reversed: bool| -> Vec<f32> {
        let padded = (of.len() / dim).next_multiple_of(stride);
        let token = |n: usize| -> &[f32] { of.get(n * dim..(n + 1) * dim).unwrap_or(&[]) };
        (0..padded)
            .flat_map(|n| {
                let at = if reversed { n / stride * stride + stride - 1 - n % stride } else { n };
                let mut row = token(at).to_vec();
                row.resize(dim, 0.0);
                row
            })
            .collect()
    };
    let (q, k) = (groups(head.q(), true), groups(head.k(), false));
    let wide = dim * stride;
    let (rows, columns) = (q.len() / wide, k.len() / wide);
    let grid = block.grid(head.lengths());
    let causal = matches!(head.own, quality::head::Own::Causal);
    let mut sums = vec![0.0f64; grid.0 * grid.1];
    let scores = products(&q, &k, wide, head.scale as f32 / stride as f32);
    for (r, row) in scores.chunks_exact(columns).enumerate().take(rows) {
        let reach = if causal { (r + 1).min(columns) } else { columns };
        let top = row[..reach].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = row[..reach].iter().map(|s| f64::from(s - top).exp()).sum();
        let i = (r * stride / block.q).min(grid.0 - 1);
        for (c, s) in row[..reach].iter().enumerate() {
            sums[i * grid.1 + (c * stride / block.kv).min(grid.1 - 1)] += f64::from(s - top).exp() / total;
        }
    }
    sums.iter().map(|s| s.ln() as f32).collect()
}

/// Mean over a block's queries of the bound of each page.
fn quest(head: &Head, block: BlockSize) -> Vec<f32> {
    let (dim, scale) = (head.dim(), head.scale as f32);
    let bound = |page: &[f32]| -> (Vec<f32>, Vec<f32>) {
        let fold = |start: f32, pick: fn(f32, f32) -> f32| {
            (0..dim).map(|e| page.chunks_exact(dim).map(|t| t[e]).fold(start, pick)).collect()
        };
        (fold(f32::INFINITY, f32::min), fold(f32::NEG_INFINITY, f32::max))
    };
    let pages: Vec<(Vec<f32>, Vec<f32>)> = head.k().chunks(block.kv * dim).map(bound).collect();
    let of = |q: &[f32], (low, high): &(Vec<f32>, Vec<f32>)| -> f32 {
        q.iter().zip(low.iter().zip(high)).map(|(q, (low, high))| (q * low).max(q * high)).sum()
    };
    head.q()
        .par_chunks(block.q * dim)
        .flat_map_iter(|part| {
            let count = (part.len() / dim) as f32;
            pages.iter().map(move |page| part.chunks_exact(dim).map(|q| of(q, page)).sum::<f32>() * scale / count)
        })
        .collect()
}
