//! The predicted time of a backward pass from its kernel's work: products, shared memory, instructions, L2 and memory,
//! each by the card's data sheet.
//!
//! Invariant: a prediction is counted (from the block mask at the kernel's tile size, its buffers and its machine
//! code), never fitted to a measurement; it is the time of the slowest part alone, a lower bound on this card. Must not
//! know tables.

use crate::backends::cuda::toolchain::backward::BackwardDraft;
use crate::backends::cuda::toolchain::compile::Compiler;
use crate::backends::cuda::toolchain::elf::sass::product_loops;
use crate::backends::cuda::toolchain::nvrtc::Nvrtc;
use crate::backends::cuda::variant::backward::{BackwardKernel, BackwardSpec, BackwardWays};
use crate::backends::cuda::variant::limits::Limits;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::problem::Problem;
use crate::problem::roofs::{Roof, least_bytes};

/// Bytes that a multiprocessor's shared memory moves a clock, and those between it and L2.
const SHARED_A_CLOCK: f64 = 128.0;
const L2_A_CLOCK: f64 = 32.0;
/// Instructions that a multiprocessor issues a clock.
const ISSUES: usize = 4;

/// A card: part of its name, architecture, multiprocessors, FLOP of one a clock.
const CARDS: [(&str, &str, usize, f64); 5] = [
    ("H200", "sm_90a", 132, 4096.0),
    ("H100", "sm_90a", 132, 4096.0),
    ("A100", "sm_80", 108, 2048.0),
    ("RTX 4090", "sm_89", 128, 512.0),
    ("RTX 5090", "sm_120", 170, 512.0),
];

/// Clocks of one tile in each part of a multiprocessor, and what the whole pass takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The kernel's name.
    pub kernel: String,
    /// Queries and keys of a tile.
    pub tile: [usize; 2],
    /// Tiles over all heads.
    pub tiles: u64,
    /// For the products of matrices.
    pub products: f64,
    /// For shared memory; None if the kernel's traffic is not counted.
    pub shared: Option<f64>,
    /// For the instructions that all warps issue in the main loop.
    pub issue: f64,
    /// For the traffic between L2 and the multiprocessor: parts of dq, q and d_o.
    pub l2: f64,
    /// Milliseconds of the passes before and after the main one, by the memory's bandwidth.
    pub rows_ms: f64,
    /// Milliseconds of the whole.
    pub ms: f64,
    /// Which part is the slowest.
    pub bound: &'static str,
}

/// Predicts a problem's backward pass on a card of the list. Errors: no such card, no NVRTC, no kernel.
pub fn predict(problem: &Problem, card: &str) -> Result<Prediction, Diagnostic> {
    let unknown = || {
        let names: Vec<&str> = CARDS.iter().map(|card| card.0).collect();
        Diagnostic::error("card", format!("the data sheet of `{card}` is unknown")).hint(names.join(", "))
    };
    let (_, arch, processors, flop) = CARDS.iter().find(|known| card.contains(known.0)).ok_or_else(unknown)?;
    let roof = Roof::of(card, problem.dtype).ok_or_else(unknown)?;
    let clock = roof.flop / (*processors as f64 * flop);
    let limits = Limits { multiprocessors: *processors, ..Limits::of_arch(arch).ok_or_else(unknown)? };
    let (draft, code) = BackwardDraft::made(problem, &limits, BackwardWays::default(), arch, compiler()?, None)?;
    let spec = &draft.spec;
    let tiles = tiles(problem, spec)?;
    let (m, n) = (spec.tile_q as f64, spec.tile_kv as f64);
    let widths = 3.0 * spec.qk_width as f64 + 2.0 * spec.v_width as f64;
    let products = 2.0 * m * n * widths / flop;
    let shared = shared_bytes(spec).map(|bytes| bytes / SHARED_A_CLOCK);
    let loops = product_loops(&code.main.cubin, spec.entry(), arch);
    let issued: usize = loops.iter().map(|l| l.instructions).sum();
    // on Hopper each warpgroup of four warps has its own loop, which every scheduler issues once
    let issue = match spec.is_hopper() {
        true => issued as f64,
        false => (issued * spec.warps).div_ceil(ISSUES) as f64,
    };
    let l2 = (m * spec.qk_width as f64 * 4.0 + m * (spec.qk_width + spec.v_width) as f64 * 2.0) / L2_A_CLOCK;
    let parts = [("products", products), ("shared memory", shared.unwrap_or(0.0)), ("instructions", issue), ("L2", l2)];
    let (bound, slowest) = parts.into_iter().fold(("products", 0.0), |a, b| if b.1 > a.1 { b } else { a });
    let main = tiles as f64 * slowest / (*processors as f64 * clock);
    // o and d_o are read before; the sums of dq are zeroed before, read and written after
    let rows = (problem.batch * problem.heads * problem.q_len) as f64;
    let rows = rows * (2.0 * spec.head_dim_v as f64 * 2.0 + spec.head_dim as f64 * (4.0 + 4.0 + 2.0)) / roof.bytes;
    let memory = 2.0 * least_bytes(problem.spec()) / roof.bytes;
    let (main, bound) = if memory > main { (memory, "memory") } else { (main, bound) };
    Ok(Prediction {
        kernel: spec.name(),
        tile: [spec.tile_q, spec.tile_kv],
        tiles,
        products,
        shared,
        issue,
        l2,
        rows_ms: rows * 1e3,
        ms: (main + rows) * 1e3,
        bound,
    })
}

fn compiler() -> Result<&'static dyn Compiler, Diagnostic> {
    Nvrtc::get().map(|nvrtc| nvrtc as &dyn Compiler)
}

/// Tiles that keep something, over all batch entries and heads.
fn tiles(problem: &Problem, spec: &BackwardSpec) -> Result<u64, Diagnostic> {
    let size = BlockSize { q: spec.tile_q, kv: spec.tile_kv };
    let mask = problem.block_mask(size, &Control::new())?;
    let shape = mask.shape();
    let (rows, _) = mask.grid();
    let mut listed = 0u64;
    for (b, h) in (0..shape.batch).flat_map(|b| (0..shape.heads).map(move |h| (b, h))) {
        let row = |row| mask.runs(b, h, row).map(|run| (run.end - run.start) as u64).sum::<u64>();
        listed += (0..rows).map(row).sum::<u64>();
    }
    Ok(listed * (problem.batch * problem.heads / (shape.batch * shape.heads)) as u64)
}

/// Bytes that a tile of Hopper's kernel moves through shared memory: operands of products as each of two warpgroups
/// reads them, and the other writes. None for the other kernels.
fn shared_bytes(spec: &BackwardSpec) -> Option<f64> {
    if spec.kernel != BackwardKernel::Hopper {
        return None;
    }
    let (m, n, qk, v) = (spec.tile_q, spec.tile_kv, spec.qk_width, spec.v_width);
    let own = n / 2;
    let scores = (own + m) * (qk + v);
    let (dv, dk, dq) = (m * v, own * m + m * qk, m * n + n * (qk / 2));
    let products = 2 * 2 * (scores + dv + dk + dq);
    // q and d_o come, dS goes in, the part of dq goes in and out in float32
    let besides = 2 * m * (qk + v) + 2 * n * m + 2 * 4 * m * qk;
    Some((products + besides) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::cuda::emit::tests::nvrtc;
    use crate::backends::testing::{causal, spec, with_mods};
    use crate::base::DType;
    use crate::problem::ProblemSpec;

    #[test]
    fn a_tile_of_64_by_128_at_head_dim_128_is_what_a_count_by_hand_gives() {
        if nvrtc().is_none() {
            return;
        }
        let shape = ProblemSpec { dtype: DType::BF16, ..spec(2, 4, 4, 1024, 1024, 128) };
        let full = predict(&with_mods(shape.clone(), None, None), "NVIDIA H200").expect("a prediction");
        assert_eq!((full.tile, full.tiles), ([64, 128], 2 * 4 * 16 * 8));
        // 272 KB for the products and 112 KB for the rest, at 128 bytes per clock
        assert_eq!((full.products, full.shared), (2560.0, Some(384.0 * 1024.0 / 128.0)));
        assert_eq!(full.bound, "shared memory");
        assert!((800.0..2000.0).contains(&full.issue), "{full:?}");
        let half = predict(&with_mods(shape, Some(causal(0)), None), "NVIDIA H200").expect("a prediction");
        assert_eq!(half.tiles, 2 * 4 * (16 * 8 / 2 + 8));
        assert!(half.ms < full.ms);
        for card in ["NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 5090"] {
            let slower = predict(&with_mods(spec_of(), None, None), card).expect("a prediction");
            assert!(slower.shared.is_none() && slower.ms > full.ms && slower.issue > 100.0, "{card}: {slower:?}");
        }
        assert_eq!(predict(&with_mods(spec_of(), None, None), "Abacus").unwrap_err().code, "card");
    }

    fn spec_of() -> ProblemSpec {
        ProblemSpec { dtype: DType::BF16, ..spec(2, 4, 4, 1024, 1024, 128) }
    }
}
