//! The block-sparse flash kernel on the GPU: behind `flex`, and behind `sdpa` and `flash_attention_2` with the masks that
//! those know.
//!
//! Invariant: the block lists are exact at the kernel's own tile; a dense mask makes every tile be computed. Must not know
//! how a backend chose the mask kind.

use super::bitmap::Bitmaps;
use super::compile::Program;
use super::device::{Buffer, Function, Gpu, Grid};
use super::kept::Kept;
use super::limits::Limits;
use super::params::{DeviceMods, Lists, Params, upload_kept};
use super::pieces::Draws;
use super::plan::{self, Plan};
use super::ranges::Ranges;
use super::runner::Pass;
use super::spec::{Kernel, KernelSpec, MaskKind};
use super::tensors::{InputSet, Outputs, padded};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic};
use crate::problem::Problem;
use std::sync::Arc;

/// The flash kernel, loaded, with everything but the tensors.
pub(super) struct Flash {
    function: Function,
    grid: Grid,
    params: Params,
    mods: DeviceMods,
    _lists: Lists,
    _dense: Option<Buffer>,
    _kept: Vec<Buffer>,
    share: f64,
}

/// What the mask is to the launch. A dense mask has one list for all: it skips nothing.
pub(super) fn plan(problem: &Problem, spec: &KernelSpec, control: &Control) -> Result<Plan, Diagnostic> {
    let (q_tiles, kv_len) = (problem.q_len.div_ceil(spec.tile_q), problem.kv_len);
    Ok(match spec.mask {
        MaskKind::None => Plan::unmasked(q_tiles, kv_len, spec.tile_kv),
        MaskKind::Causal => Plan::causal(q_tiles, spec.tile_q, kv_len, spec.tile_kv),
        MaskKind::Dense => Plan::dense(q_tiles, kv_len.div_ceil(spec.tile_kv), 1, 1),
        MaskKind::Formula | MaskKind::Bitmap | MaskKind::Interval => {
            let (batch, heads) = distinct(problem);
            let shape = MaskShape { batch, heads, lengths: problem.lengths() };
            let tile = BlockSize { q: spec.tile_q, kv: spec.tile_kv };
            Plan::of_mask(&BlockMask::build(problem.mask.as_deref(), shape, tile, control)?)
        }
    })
}

/// What the partial tiles keep, where the variant takes the mask as data.
pub(super) fn kept(problem: &Problem, spec: &KernelSpec, plan: &Plan) -> Option<Kept> {
    let mask = problem.mask.as_deref()?;
    match spec.mask {
        MaskKind::Bitmap => {
            let bits = Bitmaps::build(mask, problem.lengths(), plan, spec.tile_q, spec.tile_kv);
            Some(Kept::Bits(if spec.kernel == Kernel::FlexSm90 { bits.swizzled() } else { bits }))
        }
        MaskKind::Interval => {
            let ranges = Ranges::build(mask, problem.lengths(), plan, spec.tile_q);
            Some(Kept::Ranges(ranges.expect("only chosen where every row keeps one range")))
        }
        _ => None,
    }
}

/// Batch entries and heads between which the mask differs; 1 where it does not.
pub(super) fn distinct(problem: &Problem) -> (usize, usize) {
    let batch = if problem.mask_per_batch() { problem.batch } else { 1 };
    (batch, if problem.mask_per_head() { problem.heads } else { 1 })
}

/// Numbers of heads whose keys and values share the L2 cache, of that many batch entries; the preferred one first.
pub(super) fn sections(limits: &Limits, problem: &Problem, batch: usize) -> Vec<usize> {
    let kv_head_bytes = problem.kv_len * (padded(problem.head_dim) + padded(problem.head_dim_v)) * 2;
    plan::sections(limits.l2_bytes, kv_head_bytes, problem.group(), batch * problem.heads)
}

/// How a launch of that many batch entries draws its tiles on a device.
pub(super) fn draws(
    limits: &Limits,
    problem: &Problem,
    batch: usize,
    spec: &KernelSpec,
    plan: &mut Plan,
    kept: Option<&mut Kept>,
) -> Draws {
    let sections = sections(limits, problem, batch);
    Draws::shortest(spec, plan, kept, (batch, problem.heads), &sections, spec.at_once(limits))
}

impl Flash {
    /// Loads the kernel, uploads lists and captured tensors, writes the dense mask where there is one.
    pub fn new(gpu: &Arc<Gpu>, problem: &Problem, program: &Program) -> Result<Flash, Diagnostic> {
        let spec = &program.spec;
        let module = gpu.module(&program.artefact.key, &program.cubin)?;
        let function = gpu.function(&module, spec.kernel.entry(), spec.shared_bytes())?;
        let mut plan = plan(problem, spec, &Control::new())?;
        let share = plan.share(plan.rows() * problem.kv_len.div_ceil(spec.tile_kv));
        let draws = draws(gpu.limits(), problem, problem.batch, spec, &mut plan, None);
        let lists = Lists::upload(gpu, &plan)?;
        let mods = DeviceMods::upload(gpu, program)?;
        let kept = upload_kept(gpu, kept(problem, spec, &plan).as_ref().map(Kept::arrays))?;
        let mut params = Params::of_problem(problem).with_lists(&lists).with_kept(&kept);
        params.section = draws.section as i32;
        let mut dense = None;
        if spec.mask == MaskKind::Dense {
            let fill = gpu.function(&module, "fill_dense", 0)?;
            dense = Some(fill_dense(gpu, problem, spec, &fill, &mods, &mut params)?);
        }
        let blocks = (problem.batch * problem.heads * lists.q_tiles) as u64;
        let blocks = u32::try_from(blocks).ok().filter(|n| *n <= i32::MAX as u32).ok_or_else(|| {
            Diagnostic::error("gpu-grid", format!("{blocks} tiles of queries are more than one launch takes"))
                .hint("make the batch, the heads or the sequence smaller")
        })?;
        let grid = Grid { blocks: (blocks, 1, 1), threads: spec.threads() as u32, shared: spec.shared_bytes() as u32 };
        Ok(Flash { function, grid, params, mods, _lists: lists, _dense: dense, _kept: kept, share })
    }

    /// Share of the tiles that are computed, 0..=1.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Resident blocks a multiprocessor.
    pub fn occupancy(&self, gpu: &Gpu) -> Option<u32> {
        gpu.occupancy(&self.function, self.grid.threads, self.grid.shared as usize)
    }
}

/// Writes the mask as bytes, [b, h, q_len, dense_q], and points `params` at it.
fn fill_dense(
    gpu: &Arc<Gpu>,
    problem: &Problem,
    spec: &KernelSpec,
    fill: &Function,
    mods: &DeviceMods,
    params: &mut Params,
) -> Result<Buffer, Diagnostic> {
    let (batch, heads) = distinct(problem);
    let width = problem.kv_len.next_multiple_of(spec.tile_kv);
    let rows = batch * heads * problem.q_len;
    gpu.check_memory("the dense mask, a byte for every query and key,", rows as u128 * width as u128)?;
    let buffer = gpu.alloc(rows * width, "the dense mask")?;
    params.dense = buffer.address();
    params.dense_q = width as i64;
    params.dense_h = if heads == 1 { 0 } else { (problem.q_len * width) as i64 };
    params.dense_b = if batch == 1 { 0 } else { (heads * problem.q_len * width) as i64 };
    let writing =
        Params { scratch: buffer.address(), mask_batch: batch as i32, mask_heads: heads as i32, ..*params }.bytes();
    let grid = Grid { blocks: (rows.min(1 << 16) as u32, 1, 1), threads: 256, shared: 0 };
    gpu.launch(fill, grid, &[&writing, mods.argument()])?;
    gpu.finish("writing the dense mask")?;
    Ok(buffer)
}

impl Pass for Flash {
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic> {
        let params = self.params.with_tensors(set, outputs).bytes();
        gpu.launch(&self.function, self.grid, &[&params, self.mods.argument()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::cuda::choose::{self, Choice};
    use crate::backends::cuda::spec::Kernel;
    use crate::backends::testing::{causal, spec, with_mods};
    use crate::base::DType;
    use crate::language::graph::Mod;
    use crate::language::interpret::{Cell, eval};
    use crate::language::random;
    use crate::problem::ProblemSpec;

    /// Cells that the lists keep: a full tile keeps all its cells, a partial one those of the mask.
    fn check(problem: &Problem, mask: &Mod, kind: MaskKind) {
        let choice = Choice { kernel: Kernel::FlexSm80, mask: kind, score: false };
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
