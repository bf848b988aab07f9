//! The lists of a problem's launch: its tiles, the kept cells of partial tiles, and the order in which blocks take
//! them.
//!
//! Invariant: block lists are exact at the kernel's own tile size; a dense mask has one list for all and skips nothing.
//! Must not touch a device.

use super::bitmap::Bitmaps;
use super::kept::Kept;
use super::pieces::Units;
use super::plan::{self, Plan};
use super::ranges::Ranges;
use crate::backends::cuda::device::tensors::padded;
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::{Copies, KernelSpec, MaskKind};
use crate::base::{BlockSize, Control, Diagnostic};
use crate::problem::Problem;

/// The mask kind of the launch. A dense mask has one list for all, because it skips nothing.
pub(crate) fn plan(problem: &Problem, spec: &KernelSpec, control: &Control) -> Result<Plan, Diagnostic> {
    let (q_tiles, kv_len) = (problem.q_len.div_ceil(spec.tile_q), problem.kv_len);
    Ok(match spec.mask {
        MaskKind::None => Plan::unmasked(q_tiles, kv_len, spec.tile_kv),
        MaskKind::Causal => Plan::causal(q_tiles, spec.tile_q, kv_len, spec.tile_kv),
        MaskKind::Dense => Plan::dense(q_tiles, kv_len.div_ceil(spec.tile_kv), 1, 1),
        MaskKind::Formula | MaskKind::Bitmap | MaskKind::Interval => {
            let tile = BlockSize { q: spec.tile_q, kv: spec.tile_kv };
            Plan::of_mask(&problem.block_mask(tile, control)?)
        }
    })
}

/// The kept cells of partial tiles, if the variant takes the mask as data.
pub(crate) fn kept(problem: &Problem, spec: &KernelSpec, plan: &Plan) -> Option<Kept> {
    let mask = problem.mask.as_deref()?;
    match spec.mask {
        MaskKind::Bitmap => {
            let bits = Bitmaps::build(mask, problem.lengths(), plan, spec.tile_q, spec.tile_kv);
            Some(Kept::Bits(match spec.kernel.copies() {
                Copies::Tensors => bits.swizzled(),
                Copies::Threads => bits,
            }))
        }
        MaskKind::Interval => {
            let ranges = Ranges::build(mask, problem.lengths(), plan, spec.tile_q);
            Some(Kept::Ranges(ranges.expect("only chosen where every row keeps one range")))
        }
        _ => None,
    }
}

/// Numbers of heads whose keys and values share the L2 cache, of that many batch entries; the preferred one first.
pub(crate) fn sections(limits: &Limits, problem: &Problem, batch: usize) -> Vec<usize> {
    let kv_head_bytes = problem.kv_len * (padded(problem.head_dim) + padded(problem.head_dim_v)) * 2;
    plan::sections(limits.l2_bytes, kv_head_bytes, problem.group(), batch * problem.heads)
}

/// How a launch of that many batch entries takes its tiles on a device.
pub(crate) fn units(
    limits: &Limits,
    problem: &Problem,
    batch: usize,
    spec: &KernelSpec,
    plan: &mut Plan,
    kept: Option<&mut Kept>,
) -> Units {
    let sections = sections(limits, problem, batch);
    Units::shortest(spec, plan, kept, (batch, problem.heads), &sections, spec.at_once(limits))
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::choose::{self, Choice, Want};
    use crate::backends::cuda::lists::of_problem::*;
    use crate::backends::testing::{causal, spec, with_mods};
    use crate::base::DType;
    use crate::ir::cell::{Cell, eval};
    use crate::ir::graph::Mod;
    use crate::ir::random;
    use crate::problem::ProblemSpec;

    /// Cells that the lists keep: a full tile keeps all its cells, a partial one those of the mask.
    fn check(problem: &Problem, mask: &Mod, kind: MaskKind) {
        let choice = Choice { want: Want::Flash, mask: kind, score: false };
        let spec = choose::spec(problem, &choice, &Limits::of_arch("sm_80").unwrap());
        let plan = plan(problem, &spec, &Control::new()).unwrap();
        for b in 0..problem.batch {
            for h in 0..problem.heads {
                let list = plan.list(b, h);
                for row in 0..plan.q_tiles {
                    check_row(problem, mask, &spec, &plan, (b, h), list * plan.q_tiles + row, row);
                }
            }
        }
    }

    fn check_row(
        problem: &Problem,
        mask: &Mod,
        spec: &KernelSpec,
        plan: &Plan,
        (b, h): (usize, usize),
        at: usize,
        row: usize,
    ) {
        let runs = &plan.runs[plan.row_start[at] as usize..plan.row_start[at + 1] as usize];
        for q in (row * spec.tile_q..(row + 1) * spec.tile_q).take_while(|q| *q < problem.q_len) {
            for kv in 0..problem.kv_len {
                let tile = (kv / spec.tile_kv) as u32;
                let run = runs.iter().find(|[start, end]| *start <= tile && tile < end & !(1 << 31));
                let cell = Cell { b: b as i64, h: h as i64, q_idx: q as i64, kv_idx: kv as i64, ..Cell::default() };
                let keep = eval(mask, &cell).as_bool();
                match run {
                    None => assert!(!keep, "cell {b},{h},{q},{kv} is skipped"),
                    Some([_, end]) if end >> 31 == 1 => assert!(keep, "cell {b},{h},{q},{kv} is kept unasked"),
                    Some(_) => {}
                }
            }
        }
    }

    #[test]
    fn lists_at_the_kernels_tile_agree_with_the_interpreter() {
        for seed in 0..6 {
            let options = random::Options { batch: 2, heads: 3, ..random::Options::new(150, 170) };
            let mask = random::mask(seed, &options);
            let problem =
                with_mods(ProblemSpec { dtype: DType::BF16, ..spec(2, 3, 3, 150, 170, 32) }, Some(mask.clone()), None);
            check(&problem, &mask, MaskKind::Formula);
            check(&problem, &mask, MaskKind::Dense);
        }
        let mask = causal(0);
        let problem =
            with_mods(ProblemSpec { dtype: DType::BF16, ..spec(1, 1, 1, 300, 200, 64) }, Some(mask.clone()), None);
        check(&problem, &mask, MaskKind::Causal);
    }
}
