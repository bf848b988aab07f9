//! Simulated run-time routers of other frameworks on a captured head: the blocks that they would keep, compared with
//! the true masses.
//!
//! Invariant: a router reads q and k only; its measures (recall, ceiling) come from the exact masses. Must not know
//! documents.

mod pooled;
pub mod settings;
#[cfg(test)]
mod tests;

use super::head::{Head, Own};
use super::masses::{Masses, masses};
use super::profile::Grid;
use super::suggest::order::Order;
use crate::base::{BlockSize, Control, Diagnostic};
use serde::{Deserialize, Serialize};

/// How a router ranks key blocks for a block of queries. Each source was read for the formula, not for its code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ranking {
    /// `mean(Q_I) . mean(K_J) * scale`: MInference's block-sparse heads, MoBA, VSA, SLA (whose k minus its mean ranks the same).
    MeanPool,
    /// `log sum_ab exp(mean(Q_Ia) . mean(K_Jb) * scale)` over `parts` sub-blocks each: SGLang's SubBlock.
    SubBlock {
        /// Sub-blocks of a block, in queries and in keys.
        parts: usize,
    },
    /// Sums along antidiagonals of every `stride`-th token, softmax, summed by block: XAttention (arXiv:2503.16428).
    Antidiagonal {
        /// Tokens between the looked-at ones.
        stride: usize,
    },
    /// Mean pooling, where blocks whose tokens differ (mean pairwise cosine below the threshold) are always kept: SpargeAttn
    /// (arXiv:2502.18137).
    SelfSimilar {
        /// Threshold on the mean cosine.
        threshold: f32,
    },
    /// `sum_d max(q_d kmin_d, q_d kmax_d)` of a page, meaned over the queries of a block: Quest (arXiv:2406.10774), which itself
    /// decides for one query.
    Quest,
}

/// How many of the ranked blocks are kept in a row of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Budget {
    /// This share of the blocks that the model may see, at least one.
    TopK(f64),
    /// This number of blocks.
    Count(usize),
    /// The fewest whose softmax of rankings sums to this.
    TopP(f64),
}

/// A router with its settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Router {
    /// As the frameworks call it.
    pub name: &'static str,
    /// Ranking.
    pub ranking: Ranking,
    /// Budget.
    pub budget: Budget,
    /// Order of the tokens in which it cuts blocks; needs a grid unless raster.
    pub order: Order,
    /// BLOCK_SIZE; None is the capture's.
    pub block: Option<BlockSize>,
    /// Whether the diagonal and the first block are kept in any case.
    pub forced: bool,
}

/// A router as it comes from another machine.
#[derive(Deserialize)]
struct Reported {
    name: String,
    ranking: Ranking,
    budget: Budget,
    order: Order,
    block: Option<BlockSize>,
    forced: bool,
}

impl TryFrom<Reported> for Router {
    type Error = String;

    fn try_from(reported: Reported) -> Result<Router, String> {
        let grid = Grid { extents: [1, 1, 1], start: 0 };
        let known = routers(0.5, 0.5, Some(grid)).into_iter().find(|router| router.name == reported.name);
        let name = known.ok_or_else(|| format!("there is no router `{}`", reported.name))?.name;
        let Reported { ranking, budget, order, block, forced, .. } = reported;
        Ok(Router { name, ranking, budget, order, block, forced })
    }
}

// derived, it would take a borrowed name
impl<'de> Deserialize<'de> for Router {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Router, D::Error> {
        Router::try_from(Reported::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// A router's result on a head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Routed {
    /// The router.
    pub router: Router,
    /// BLOCK_SIZE that it ran at.
    pub block: BlockSize,
    /// Kept blocks, [q blocks][kv blocks], in the router's order of tokens.
    pub blocks: Vec<u8>,
    /// Kept blocks over all blocks.
    #[serde(with = "crate::base::float")]
    pub density: f64,
    /// Mass kept, mean over rows.
    #[serde(with = "crate::base::float")]
    pub mass: f64,
    /// The mass that the best blocks of the same numbers would keep.
    #[serde(with = "crate::base::float")]
    pub ceiling: f64,
    /// Share of the truly largest blocks that it found, mean over rows of blocks.
    #[serde(with = "crate::base::float")]
    pub recall: f64,
    /// Multiply-adds of ranking over those of dense scores.
    #[serde(with = "crate::base::float")]
    pub cost: f64,
}

/// The compared routers, at a share of blocks if they have one. Those for video need a grid.
pub fn routers(share: f64, mass: f64, grid: Option<Grid>) -> Vec<Router> {
    let raster =
        |name, ranking, budget, forced| Router { name, ranking, budget, order: Order::Raster, block: None, forced };
    let mut all = vec![
        raster("mean pool top-k", Ranking::MeanPool, Budget::TopK(share), false),
        raster("mean pool top-p", Ranking::MeanPool, Budget::TopP(mass), false),
        raster("sub-block LSE", Ranking::SubBlock { parts: 4 }, Budget::TopK(share), false),
        raster("antidiagonal", Ranking::Antidiagonal { stride: 8 }, Budget::TopP(mass), true),
        raster("self-similarity gate", Ranking::SelfSimilar { threshold: 0.6 }, Budget::TopP(0.98), false),
        Router { block: Some(BlockSize::square(64)), ..raster("SLA", Ranking::MeanPool, Budget::TopK(share), false) },
        raster("Quest", Ranking::Quest, Budget::TopK(share), false),
    ];
    if grid.is_some() {
        let video = |name, tile: [usize; 3], budget| Router {
            order: Order::Tiles(tile),
            block: Some(BlockSize::square(tile.iter().product())),
            ..raster(name, Ranking::MeanPool, budget, false)
        };
        all.push(video("moba3d", [1, 8, 16], Budget::TopK(share)));
        all.push(video("VSA", [4, 4, 4], Budget::Count(32)));
    }
    all
}

/// Runs a router. Errors: `cancelled`, tokens that cannot be put into its order.
pub fn route(
    head: &Head,
    known: &Masses,
    router: &Router,
    grid: Option<Grid>,
    control: &Control,
) -> Result<Routed, Diagnostic> {
    let moved = match (router.order, grid) {
        (Order::Raster, _) | (_, None) => None,
        (order, Some(grid)) => Some(head.reordered(&order.permutation(grid, head.lengths().q_len))?),
    };
    let block = router.block.unwrap_or(known.block);
    let own = (moved.is_some() || block != known.block)
        .then(|| masses(moved.as_ref().unwrap_or(head), block, false, control))
        .transpose()?;
    let (head, known) = (moved.as_ref().unwrap_or(head), own.as_ref().unwrap_or(known));
    let (rows, columns) = known.grid();
    let visible = visible(head, known);
    let (mut rank, always) = pooled::rank(head, block, router.ranking);
    rank.iter_mut().zip(&visible).filter(|(_, v)| !**v).for_each(|(s, _)| *s = f32::NEG_INFINITY);
    let mut blocks = vec![0u8; rows * columns];
    let beside = beside(router, grid, known);
    for i in 0..rows {
        let at = i * columns..(i + 1) * columns;
        let kept = &mut blocks[at.clone()];
        let forced = router.forced && matches!(head.own, Own::Causal);
        if forced {
            let q = i * block.q..(i + 1) * block.q;
            kept[0] = 1;
            (0..columns).filter(|j| q.start < (j + 1) * block.kv && j * block.kv < q.end).for_each(|j| kept[j] = 1);
        }
        for (j, keep) in kept.iter_mut().enumerate() {
            if (always[at.start + j] || beside.0[i] || beside.1[j]) && visible[at.start + j] {
                *keep = 1;
            }
        }
        choose(&rank[at], router.budget, forced, kept);
    }
    Ok(judged(router, known, block, blocks, pooled::cost(head, block, router.ranking)))
}

/// Rows and columns of blocks with tokens outside the grid: routers for video keep them dense.
fn beside(router: &Router, grid: Option<Grid>, known: &Masses) -> (Vec<bool>, Vec<bool>) {
    let (rows, columns) = known.grid();
    let Some(tokens) = grid.filter(|_| router.order != Order::Raster).map(|g| g.tokens()) else {
        return (vec![false; rows], vec![false; columns]);
    };
    let outside =
        |at: usize, size: usize, len: usize| at * size < tokens.start || ((at + 1) * size).min(len) > tokens.end;
    let lengths = known.lengths;
    (
        (0..rows).map(|i| outside(i, known.block.q, lengths.q_len)).collect(),
        (0..columns).map(|j| outside(j, known.block.kv, lengths.kv_len)).collect(),
    )
}

/// Blocks of which the model itself sees a cell.
fn visible(head: &Head, known: &Masses) -> Vec<bool> {
    let (rows, columns) = known.grid();
    let causal = matches!(head.own, Own::Causal);
    let see = |at: usize| {
        let (i, j) = (at / columns, at % columns);
        if causal {
            j * known.block.kv < (i + 1) * known.block.q
        } else {
            matches!(head.own, Own::None) || known.blocks[at] > 0.0
        }
    };
    (0..rows * columns).map(see).collect()
}

/// Adds the highest ranked blocks of a row to `kept`. `counted`: what is kept already counts towards the budget.
fn choose(rank: &[f32], budget: Budget, counted: bool, kept: &mut [u8]) {
    let mut order: Vec<usize> = (0..rank.len()).filter(|j| rank[*j] > f32::NEG_INFINITY).collect();
    let before = |j: &usize| counted && kept[*j] == 1;
    order.sort_by(|a, b| before(b).cmp(&before(a)).then(rank[*b].total_cmp(&rank[*a])));
    let count = match budget {
        Budget::TopK(share) => ((share * order.len() as f64).round() as usize).max(1),
        Budget::Count(n) => n,
        Budget::TopP(p) => {
            let top = order.iter().map(|j| rank[*j]).fold(f32::NEG_INFINITY, f32::max);
            let top = if top.is_finite() { top } else { 0.0 };
            let weight = |j: &usize| f64::from(rank[*j] - top).exp();
            let total: f64 = order.iter().map(weight).sum();
            let mut sum = 0.0;
            order
                .iter()
                .position(|j| {
                    sum += weight(j);
                    sum >= p * total
                })
                .map_or(order.len(), |at| at + 1)
        }
    };
    order.iter().take(count).for_each(|j| kept[*j] = 1);
}

fn judged(router: &Router, known: &Masses, block: BlockSize, blocks: Vec<u8>, cost: f64) -> Routed {
    let (rows, columns) = known.grid();
    let (mut mass, mut ceiling, mut recall, mut total) = (0.0, 0.0, 0.0, 0.0);
    for i in 0..rows {
        let (row, kept) = (known.row(i), &blocks[i * columns..(i + 1) * columns]);
        let weight = known.judged(i) as f64;
        total += weight;
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        let count = kept.iter().filter(|k| **k == 1).count();
        let sum = |of: &mut dyn Iterator<Item = usize>| of.map(|j| f64::from(row[j])).sum::<f64>();
        mass += weight * sum(&mut (0..columns).filter(|j| kept[*j] == 1));
        ceiling += weight * sum(&mut order[..count].iter().copied());
        recall += order[..count].iter().filter(|j| kept[**j] == 1).count() as f64 / count.max(1) as f64;
    }
    let density = blocks.iter().filter(|k| **k == 1).count() as f64 / blocks.len() as f64;
    Routed {
        router: router.clone(),
        block,
        blocks,
        density,
        mass: mass / total.max(1.0),
        ceiling: ceiling / total.max(1.0),
        recall: recall / rows as f64,
        cost,
    }
}
