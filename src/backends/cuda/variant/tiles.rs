//! The tuned tile tables of the forward kernels: one row a variant, best first. The figures behind the order are in
//! docs/kernels.
//!
//! Invariant: no table is empty, and its last row fits one block of any supported device. Must not know shapes.

/// The tiles of a kernel whose threads copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    /// Query rows of a block.
    pub q: usize,
    /// Keys of one step.
    pub kv: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Buffers for k, and as many for v.
    pub stages: usize,
    /// Blocks a multiprocessor that registers are limited for.
    pub blocks: usize,
}

const fn tiles(q: usize, kv: usize, warps: usize, stages: usize, blocks: usize) -> Tiles {
    Tiles { q, kv, warps, stages, blocks }
}

/// Head dims up to 64.
pub(super) const NARROW: &[Tiles] = &[tiles(128, 64, 4, 2, 2), tiles(128, 64, 4, 1, 2), tiles(128, 64, 4, 1, 1)];
/// Head dims up to 128.
pub(super) const MIDDLE: &[Tiles] =
    &[tiles(128, 64, 4, 2, 2), tiles(128, 64, 4, 1, 2), tiles(128, 64, 8, 1, 1), tiles(64, 32, 4, 1, 1)];
/// Wider heads.
pub(super) const WIDE: &[Tiles] = &[tiles(128, 64, 8, 1, 1), tiles(64, 64, 4, 1, 1), tiles(64, 32, 4, 1, 1)];
/// Where 128-row tiles would leave multiprocessors idle, or a mod is heavy.
pub(super) const SHORT: &[Tiles] = &[tiles(64, 64, 4, 2, 2), tiles(64, 64, 4, 1, 1), tiles(64, 32, 4, 1, 1)];
/// Linked mods: small tiles, because a thread's scores wait in memory for the call. The first is for narrow heads.
pub(super) const LINKED: &[Tiles] = &[tiles(64, 64, 4, 1, 1), tiles(64, 32, 4, 1, 1)];
/// Materialised scores. The first is for narrow heads.
pub(super) const EAGER: &[Tiles] = &[tiles(128, 64, 4, 1, 1), tiles(64, 64, 4, 1, 1), tiles(64, 32, 4, 1, 1)];

/// Decoding: the query rows are as many as the problem has. Two blocks keep copies on their way while one of them computes.
pub(super) const DECODE: &[Tiles] = &[
    tiles(0, 64, 4, 4, 2),
    tiles(0, 64, 4, 3, 2),
    tiles(0, 64, 4, 2, 2),
    tiles(0, 64, 4, 3, 1),
    tiles(0, 64, 4, 2, 1),
    tiles(0, 32, 4, 2, 1),
    tiles(0, 32, 2, 2, 1),
    tiles(0, 16, 4, 2, 1),
];

/// A variant of Hopper's kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopperTiles {
    /// Widest q and k, padded to 64.
    pub widest_qk: usize,
    /// Widest v, padded to 64.
    pub widest_v: usize,
    /// Warpgroups that compute, each for 64 query rows.
    pub consumers: usize,
    /// Keys of one step.
    pub kv: usize,
    /// The same under a score mod that needs registers.
    pub kv_under_a_mod: usize,
    /// Buffers for k.
    pub stages: usize,
    /// Buffers for v.
    pub v_stages: usize,
    /// Buffers for q.
    pub q_stages: usize,
    /// Whether the running maximum may lag, so that most tiles rescale nothing.
    pub lag: bool,
    /// Smaller tiles, for masks whose cells lie in small blocks.
    pub finer: &'static [Finer],
}

/// Smaller tiles of a variant of Hopper's kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finer {
    /// Warpgroups that compute.
    pub consumers: usize,
    /// Keys of one step.
    pub kv: usize,
    /// Buffers for k, v and q.
    pub stages: [usize; 3],
    /// Blocks of a multiprocessor.
    pub blocks: usize,
    /// Time of a cell of a full tile over that with the variant's own tiles.
    pub cost: f64,
}

const fn hopper(width: [usize; 2], consumers: usize, kv: [usize; 2], stages: [usize; 3], lag: bool) -> HopperTiles {
    let ([widest_qk, widest_v], [kv, kv_under_a_mod], [stages, v_stages, q_stages]) = (width, kv, stages);
    HopperTiles { widest_qk, widest_v, consumers, kv, kv_under_a_mod, stages, v_stages, q_stages, lag, finer: &[] }
}

const fn finer(consumers: usize, kv: usize, stages: [usize; 3], blocks: usize, cost: f64) -> Finer {
    Finer { consumers, kv, stages, blocks, cost }
}

/// Two blocks of a multiprocessor take turns by themselves. Costs: full and causal attention, painted blocks (H200, 2026-11-28).
const FINER_NARROW: &[Finer] = &[finer(1, 128, [2, 2, 2], 2, 1.12), finer(1, 64, [4, 4, 2], 2, 1.35)];
const FINER_MIDDLE: &[Finer] = &[finer(2, 64, [4, 6, 2], 1, 1.12), finer(1, 64, [2, 3, 1], 2, 1.22)];

/// Hopper's variants, by the widths of the heads.
pub(super) const HOPPER: &[HopperTiles] = &[
    HopperTiles { finer: FINER_NARROW, ..hopper([64, 64], 3, [128, 96], [3, 3, 2], false) },
    HopperTiles { finer: FINER_MIDDLE, ..hopper([128, 128], 2, [128, 128], [2, 3, 2], false) },
    hopper([192, 128], 2, [128, 128], [2, 2, 1], false),
    hopper([192, 192], 2, [80, 80], [2, 2, 1], true),
    hopper([256, 256], 2, [80, 80], [2, 2, 1], true),
];
