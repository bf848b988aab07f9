//! Smaller tiles for masks whose cells lie in blocks smaller than the tiles that are fastest where everything is kept.
//!
//! Invariant: a pure function of the mask, the shape and the device's limits; a variant is taken only if its estimate is clearly lower.
//! Must not know mods' text, devices or compilers.

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

/// The variant with smaller tiles that leaves out more time than it costs, if there is one: with the mask by formula, as it was asked for.
pub(super) fn variant(problem: &Problem, own: &KernelSpec, limits: &Limits) -> Option<KernelSpec> {
    let as_data = matches!(own.mask, MaskKind::Bitmap | MaskKind::Interval | MaskKind::Formula);
    if !as_data || Experiment::Coarse.is_on() {
        return None;
    }
    let plan = |spec: &KernelSpec| of_problem::plan(problem, spec, &Control::new()).ok();
    let first = plan(own)?;
    let launched = first.total_work() * (problem.batch / first.batch * (problem.heads / first.heads)) as u64;
    if launched < MANY || (first.partial_total() as f64) < PARTIAL * first.total_work() as f64 {
        return None;
    }
    let formula = |spec: KernelSpec| KernelSpec { mask: MaskKind::Formula, ..spec };
    let estimated = |(spec, cost): (KernelSpec, f64)| Some((cost * cells(&spec, &plan(&formula(spec))?), spec));
    let best = own.finer(limits).filter_map(estimated).min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 <= WORTH * cells(own, &first)).then(|| formula(best.1))
}

/// Cells that are computed.
fn cells(spec: &KernelSpec, plan: &Plan) -> f64 {
    plan.total_work() as f64 * (spec.tile_q * spec.tile_kv) as f64
}
