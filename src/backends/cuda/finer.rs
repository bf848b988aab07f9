//! Smaller tiles for masks whose cells lie in blocks smaller than the tiles that are fastest where everything is kept.
//!
//! Invariant: a pure function of the mask, the shape and the device's limits; a variant is taken only if its estimate is clearly lower.
//! Must not know mods' text, devices or compilers.

use super::choose::with_mask_as_data;
use super::experiment::Experiment;
use super::lists::of_problem;
use super::lists::plan::Plan;
use super::variant::limits::Limits;
use super::variant::spec::{KernelSpec, MaskKind};
use crate::base::Control;
use crate::problem::Problem;

/// Share of the computed tiles that are partial, from which on smaller tiles may leave out many cells.
const PARTIAL: f64 = 0.3;
/// Tiles of a launch from which on a mask's own variant is worth the compiler's second.
const MANY: u64 = 512;
/// A variant's estimated time over that of the first one, up to which it is taken. Estimates were within 10%, but for launches of few waves.
const WORTH: f64 = 0.93;

/// `own`, or the variant with smaller tiles that leaves out more time than it costs.
pub(super) fn variant(problem: &Problem, own: KernelSpec, limits: &Limits) -> KernelSpec {
    let as_data = matches!(own.mask, MaskKind::Bitmap | MaskKind::Interval | MaskKind::Formula);
    if !as_data || Experiment::Coarse.is_on() {
        return own;
    }
    let plan = |spec: &KernelSpec| of_problem::plan(problem, spec, &Control::new()).ok();
    let Some(first) = plan(&own) else { return own };
    let launched = first.total_work() * (problem.batch / first.batch * (problem.heads / first.heads)) as u64;
    if launched < MANY || (first.partial_total() as f64) < PARTIAL * first.total_work() as f64 {
        return own;
    }
    let formula = |spec: KernelSpec| KernelSpec { mask: MaskKind::Formula, ..spec };
    let estimated = |(spec, cost): (KernelSpec, f64)| Some((cost * cells(&spec, &plan(&formula(spec))?), spec));
    let best = own.finer(limits).filter_map(estimated).min_by(|(a, _), (b, _)| a.total_cmp(b));
    match best {
        Some((time, spec)) if time <= WORTH * cells(&own, &first) => with_mask_as_data(problem, formula(spec)),
        _ => own,
    }
}

/// Cells that are computed.
fn cells(spec: &KernelSpec, plan: &Plan) -> f64 {
    plan.total_work() as f64 * (spec.tile_q * spec.tile_kv) as f64
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::choose;
    use crate::backends::cuda::choose::tests::{causal, make};
    use crate::backends::cuda::finer::*;
    use crate::base::BackendName;
    use crate::ir::graph::{BinaryOp, Input, Mod, ModKind};
    use crate::problem::ProblemSpec;
    use std::sync::Arc;

    /// Blocks of `size` tokens, of which each row keeps one in eight, here and there.
    fn scattered(size: i64) -> Arc<Mod> {
        make(ModKind::Mask, |g| {
            let (q, k, size) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(size));
            let (row, column) = (g.binary(BinaryOp::FloorDiv, q, size), g.binary(BinaryOp::FloorDiv, k, size));
            let (three, five, eight, zero) = (g.int(3), g.int(5), g.int(8), g.int(0));
            let (row, column) = (g.binary(BinaryOp::Mul, row, three), g.binary(BinaryOp::Mul, column, five));
            let sum = g.binary(BinaryOp::Add, row, column);
            let rest = g.binary(BinaryOp::Mod, sum, eight);
            g.binary(BinaryOp::Eq, rest, zero)
        })
    }

    /// Documents of `size` tokens.
    fn diagonal(size: i64) -> Arc<Mod> {
        make(ModKind::Mask, |g| {
            let (q, k, size) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(size));
            let (row, column) = (g.binary(BinaryOp::FloorDiv, q, size), g.binary(BinaryOp::FloorDiv, k, size));
            g.binary(BinaryOp::Eq, row, column)
        })
    }

    /// Tiles and blocks of a multiprocessor.
    fn tiles(mask: Option<Arc<Mod>>, head_dim: usize, arch: &str) -> (usize, usize, usize) {
        of_problem(ProblemSpec { mask, ..ProblemSpec::plain(1, (16, 16), (4096, 4096), head_dim) }, arch)
    }

    fn of_problem(spec: ProblemSpec, arch: &str) -> (usize, usize, usize) {
        let problem = Problem::new(spec).expect("a valid problem");
        let choice = choose::choose(&problem, BackendName::Flex).expect("flex takes it");
        let limits = Limits::of_arch(arch).expect("an architecture");
        let spec = choose::spec(&problem, &choice, &limits);
        assert!((spec.shared_bytes() + 1024) * spec.min_blocks <= limits.shared_per_sm, "{}", spec.name());
        (spec.tile_q, spec.tile_kv, spec.min_blocks)
    }

    #[test]
    fn masks_of_small_blocks_take_small_tiles_and_others_large_ones() {
        let of = |mask: Arc<Mod>, head_dim| tiles(Some(mask), head_dim, "sm_90a");
        // one block in eight is kept: of tiles of 128 rows and 128 keys nearly half have one
        assert_eq!(of(scattered(64), 128), (64, 64, 2));
        assert_eq!(of(scattered(64), 64), (64, 64, 2));
        assert_eq!(of(scattered(128), 128), (128, 128, 1));
        // 192 rows meet two documents of 256
        assert_eq!(of(diagonal(256), 64), (64, 128, 2));
        assert_eq!(of(diagonal(256), 128), (128, 128, 1));
        for head_dim in [64, 128] {
            let whole = (if head_dim == 64 { 192 } else { 128 }, 128, 1);
            assert_eq!(of(causal(), head_dim), whole);
            assert_eq!(tiles(None, head_dim, "sm_90a"), whole);
        }
        // a launch that hardly takes time
        let short = ProblemSpec { mask: Some(scattered(64)), ..ProblemSpec::plain(1, (1, 1), (1024, 1024), 128) };
        assert_eq!(of_problem(short, "sm_90a"), (128, 128, 1));
        // wide heads and other architectures have no smaller ones
        assert_eq!(of(scattered(64), 256), (128, 80, 1));
        assert_eq!(tiles(Some(scattered(64)), 128, "sm_80"), (128, 64, 2));
    }
}
