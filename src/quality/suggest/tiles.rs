//! Boxes of whole tiles around each tile ("sliding tile attention", arXiv:2502.04507), from the mass between pairs of tiles.
//!
//! Invariant: the mass of every box is exact, including its clipping to the grid; of the boxes that reach the target,
//! the one with the fewest tokens is chosen. Must not know other forms.

use super::form::Form;
use super::{Candidate, Kind, Material, Reason, Target, Wanted, cancelled};
use crate::base::{Control, Diagnostic};
use crate::quality::live::LiveHead;
use crate::quality::profile::Grid;
use crate::quality::scores::{ROWS, RowScratch, STEP, Scorer};
use rayon::prelude::*;

/// Tiles that methods ship with, largest first.
const SHIPPED: [[usize; 3]; 7] = [[6, 8, 8], [4, 8, 8], [1, 8, 16], [1, 8, 8], [4, 4, 4], [2, 4, 4], [1, 4, 4]];
/// Cells of scores that all tiles together may take; two tiles are looked at in any case.
const CELLS: usize = 4 << 30;
/// Sides of other tiles.
const SIDES: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Most tiles of a grid.
const MOST_TILES: usize = 1024;

/// One proposal if the tokens are a grid that tiles divide; otherwise none.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let Some(grid) = wanted.grid.filter(|_| !material.causal) else { return Ok(Vec::new()) };
    let first_frame = wanted.protect.first_frame && grid.extents[0] > 1;
    let mut best: Option<(Fitted, [usize; 3])> = None;
    for tile in tiles(grid, material) {
        let pairs = Pairs::new(material, grid, tile, first_frame, control)?;
        let Some(found) = pairs.fitted(wanted.target, best.as_ref().map(|(b, _)| b.tokens)) else { continue };
        let better = |(b, _): &(Fitted, [usize; 3])| match wanted.target {
            Target::Mass(_) => found.tokens < b.tokens,
            Target::Blocks(_) => found.mass > b.mass,
        };
        if best.as_ref().is_none_or(better) {
            best = Some((found, tile));
        }
    }
    let Some((Fitted { kernel, mass, .. }, tile)) = best else { return Ok(Vec::new()) };
    let why = Reason::Tiles { kernel, tile, mass };
    let form = Form::Tiles { grid, tile, kernel, first_frame };
    Ok(vec![material.judge(Kind::Tiles, why, form, control)?])
}

/// Tiles that divide the grid, first those of known methods, then others, as time allows.
fn tiles(grid: Grid, material: &Material) -> Vec<[usize; 3]> {
    let fits = |tile: &[usize; 3]| {
        let count: usize = grid.extents.iter().zip(tile).map(|(n, t)| n / t).product();
        grid.extents.iter().zip(tile).all(|(n, t)| n % t == 0) && (2..=MOST_TILES).contains(&count)
    };
    let mut all: Vec<[usize; 3]> = SHIPPED.into_iter().filter(fits).collect();
    for t in SIDES {
        for h in SIDES {
            for w in SIDES {
                let tile = [t, h, w];
                if (8..=512).contains(&(t * h * w)) && fits(&tile) && !all.contains(&tile) {
                    all.push(tile);
                }
            }
        }
    }
    let cells = material.lengths().q_len * material.lengths().kv_len * material.heads.len();
    all.truncate((CELLS / cells).max(2));
    all
}

/// A box of tiles.
struct Fitted {
    kernel: [usize; 3],
    mass: f64,
    tokens: usize,
}

/// Mass between tiles.
struct Pairs {
    tile: [usize; 3],
    /// Tiles along each axis.
    counts: [usize; 3],
    /// [tiles of q][tiles of kv], over all rows.
    mass: Vec<f64>,
    /// The protected cells.
    always: f64,
}

impl Pairs {
    fn new(
        material: &Material,
        grid: Grid,
        tile: [usize; 3],
        first_frame: bool,
        control: &Control,
    ) -> Result<Pairs, Diagnostic> {
        let counts = [0, 1, 2].map(|n| grid.extents[n] / tile[n]);
        let count: usize = counts.iter().product();
        let (tokens, frame) = (grid.tokens(), grid.extents[1] * grid.extents[2]);
        let tile_of = |token: usize| {
            let [t, h, w] = grid.place(token);
            ((t / tile[0]) * counts[1] + h / tile[1]) * counts[2] + w / tile[2]
        };
        let lengths = material.lengths();
        // the tile of a token; None outside the grid
        let of: Vec<Option<usize>> = (0..lengths.q_len.max(lengths.kv_len))
            .map(|token| tokens.contains(&token).then(|| tile_of(token)))
            .collect();
        let keys: Vec<Option<usize>> =
            (0..lengths.kv_len).map(|kv| of[kv].filter(|_| !(first_frame && kv < tokens.start + frame))).collect();
        let mut made = Pairs { tile, counts, mass: vec![0.0; count * count], always: 0.0 };
        for head in material.heads.iter() {
            made.add(head, material.heads.len(), (&of[..], &keys[..]), control);
        }
        if control.is_cancelled() { Err(cancelled()) } else { Ok(made) }
    }

    fn add(&mut self, head: &LiveHead, heads: usize, tiles: (&[Option<usize>], &[Option<usize>]), control: &Control) {
        let (of, keys) = tiles;
        let (count, kv_len) = (self.counts.iter().product::<usize>(), head.masses.lengths.kv_len);
        let judged = head.masses.lse.iter().filter(|x| x.is_finite()).count().max(1);
        let weight = 1.0 / (judged * heads) as f64;
        let sums = || (vec![0.0f64; count * count], 0.0f64);
        let rows = |mut sums: (Vec<f64>, f64), (at, lse): (usize, &[f64])| {
            let (mut query, mut running) = (Vec::new(), RowScratch::default());
            let rows = at * ROWS..at * ROWS + lse.len();
            let mut tile = vec![0.0; lse.len() * STEP];
            for from in (0..if control.is_cancelled() { 0 } else { kv_len }).step_by(STEP) {
                let (from, columns) = Scorer::columns(&(from..(from + STEP).min(kv_len)));
                let cells = &mut tile[..lse.len() * columns];
                head.scorer.tile(&rows, from, columns, &mut query, cells);
                head.scorer.probabilities(lse, columns, cells, &mut running);
                for (q, p) in rows.clone().zip(cells.chunks_exact(columns)) {
                    for (key, p) in keys[from..].iter().zip(p) {
                        match (of[q], key) {
                            (Some(i), Some(j)) => sums.0[i * count + j] += f64::from(*p),
                            _ => sums.1 += f64::from(*p),
                        }
                    }
                }
            }
            sums
        };
        let found = head.masses.lse.par_chunks(ROWS).enumerate().fold(sums, rows).reduce(sums, |mut a, b| {
            a.0.iter_mut().zip(&b.0).for_each(|(to, x)| *to += x);
            (a.0, a.1 + b.1)
        });
        self.mass.iter_mut().zip(&found.0).for_each(|(to, x)| *to += weight * x);
        self.always += weight * found.1;
    }

    /// The box with fewest tokens, fewer than `below`, that reaches a mass; or with most mass within a budget.
    fn fitted(&self, target: Target, below: Option<usize>) -> Option<Fitted> {
        let [t, h, w] = self.counts;
        let tokens = |kernel: [usize; 3]| kernel.iter().zip(self.tile).map(|(k, n)| k * n).product::<usize>();
        let all = tokens(self.counts);
        let mut kernels: Vec<[usize; 3]> = (1..=t)
            .flat_map(|t| (1..=h).flat_map(move |h| (1..=w).map(move |w| [t, h, w])))
            .filter(|kernel| tokens(*kernel) < all)
            .collect();
        kernels.sort_by_key(|kernel| tokens(*kernel));
        let made = |kernel: [usize; 3]| Fitted { kernel, mass: self.kept(kernel), tokens: tokens(kernel) };
        match target {
            Target::Mass(mass) => {
                let fewer = kernels.into_iter().take_while(|k| below.is_none_or(|below| tokens(*k) < below));
                fewer.map(made).find(|found| found.mass >= mass - 5e-7)
            }
            Target::Blocks(share) => {
                let within = kernels.into_iter().filter(|k| tokens(*k) as f64 <= share * all as f64);
                within.map(made).max_by(|a, b| a.mass.total_cmp(&b.mass))
            }
        }
    }

    /// Mass that a box keeps.
    fn kept(&self, kernel: [usize; 3]) -> f64 {
        let [t, h, w] = self.counts;
        let range = |axis: usize, at: usize| {
            let (left, right) = (kernel[axis] / 2, (kernel[axis] - 1) / 2);
            let centre = at.clamp(left, self.counts[axis] - 1 - right);
            centre - left..centre + right + 1
        };
        let mut sum = self.always;
        for i in 0..t * h * w {
            let row = &self.mass[i * t * h * w..(i + 1) * t * h * w];
            for a in range(0, i / (h * w)) {
                for b in range(1, i / w % h) {
                    let line = (a * h + b) * w;
                    let columns = range(2, i % w);
                    sum += row[line + columns.start..line + columns.end].iter().sum::<f64>();
                }
            }
        }
        sum
    }
}
