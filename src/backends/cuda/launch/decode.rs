//! Decoding on the GPU: one kernel computes pieces of the keys, another joins them.
//!
//! Invariant: every joined part was written in the same pass. Must not know how a backend chose the variant.

use super::runner::Pass;
use crate::backends::cuda::device::gpu::{Buffer, Function, Gpu, Grid};
use crate::backends::cuda::device::tensors::{InputSet, Outputs};
use crate::backends::cuda::launch::params::{Decode as Extra, DeviceMods, Lists, Params, upload_kept};
use crate::backends::cuda::lists::bitmap::Bitmaps;
use crate::backends::cuda::lists::decode_plan::{self, Cut};
use crate::backends::cuda::toolchain::compile::Program;
use crate::base::Diagnostic;
use crate::problem::Problem;
use std::sync::Arc;

/// Threads of a block that joins the parts of a row; decode_sm80.cu has the same.
pub(crate) const JOIN_THREADS: u32 = 256;
/// The kernel that joins.
pub(crate) const JOIN_ENTRY: &str = "decode_join";

/// Both kernels, loaded, with everything but the tensors.
pub(crate) struct Decode {
    forward: Function,
    join: Function,
    grid: Grid,
    join_grid: Grid,
    params: Params,
    extra: Extra,
    mods: DeviceMods,
    share: f64,
    parts: Vec<Buffer>,
    _lists: Lists,
    _bitmaps: Vec<Buffer>,
}

impl Decode {
    /// Loads the kernels, uploads the pieces' lists and bits, and takes memory for the parts.
    pub(crate) fn new(gpu: &Arc<Gpu>, problem: &Problem, program: &Program) -> Result<Decode, Diagnostic> {
        let spec = &program.spec;
        let module = gpu.module(&program.artefact.key, &program.cubin)?;
        let forward = gpu.function(&module, spec.kernel.entry(), spec.shared_bytes())?;
        let join = gpu.function(&module, JOIN_ENTRY, 0)?;
        let cut = Cut::new(problem, spec, spec.at_once(gpu.limits()))?;
        let plan = &cut.plan;
        let lists = Lists::upload(gpu, plan)?;
        let mut extra = Extra::of(problem, &cut);
        let held = upload_kept(gpu, cut.bits.as_ref().map(Bitmaps::arrays))?;
        let blocks = cut.blocks(problem);
        let rows = problem.batch * problem.heads * problem.q_len;
        let parts = take_parts(gpu, rows * cut.parts(), decode_plan::part_width(problem), spec.max_scores)?;
        [extra.parts, extra.part_lse, extra.part_max] =
            [0, 1, 2].map(|i: usize| parts.get(i).map_or(0, Buffer::address));
        let grid =
            Grid { blocks: (blocks as u32, 1, 1), threads: spec.threads() as u32, shared: spec.shared_bytes() as u32 };
        let join_grid = Grid { blocks: (rows as u32, 1, 1), threads: JOIN_THREADS, shared: 0 };
        let share = plan.share(plan.batch * plan.heads * problem.kv_len.div_ceil(spec.tile_kv));
        let params = Params::of_problem(problem).with_lists(&lists).with_kept(&held);
        let mods = DeviceMods::upload(gpu, program)?;
        Ok(Decode { forward, join, grid, join_grid, params, extra, mods, share, parts, _lists: lists, _bitmaps: held })
    }

    /// Share of the tiles that are computed, 0..=1.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// In words: how the keys are split.
    pub(crate) fn cut(&self) -> String {
        match self.extra.splits {
            1 => "keys in one piece".to_string(),
            n => format!("keys in {n} pieces"),
        }
    }

    /// Resident blocks a multiprocessor.
    pub(crate) fn occupancy(&self, gpu: &Gpu) -> Option<u32> {
        gpu.occupancy(&self.forward, self.grid.threads, self.grid.shared as usize)
    }
}

impl Extra {
    /// Everything that the problem and its pieces decide; addresses are still 0.
    pub(crate) fn of(problem: &Problem, cut: &Cut) -> Extra {
        Extra {
            kv_heads: problem.kv_heads as i32,
            rows: cut.packing.rows as i32,
            row_tiles: cut.packing.row_tiles as i32,
            splits: cut.splits as i32,
            ..Extra::default()
        }
    }
}

/// Memory for parts, their log-sum-exps and, if requested, their rows' largest scores.
fn take_parts(gpu: &Arc<Gpu>, parts: usize, width: usize, max_scores: bool) -> Result<Vec<Buffer>, Diagnostic> {
    let floats = [parts * width, parts].into_iter().chain(max_scores.then_some(parts));
    floats.map(|n| gpu.alloc(n * 4, "the parts that are joined")).collect()
}

impl Pass for Decode {
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic> {
        let (params, extra) = (self.params.with_tensors(set, outputs).bytes(), self.extra.bytes());
        gpu.launch(&self.forward, self.grid, &[&params, &extra, self.mods.argument()])?;
        gpu.launch(&self.join, self.join_grid, &[&params, &extra])
    }

    fn poison(&self, gpu: &Gpu) -> Result<(), Diagnostic> {
        self.parts.iter().try_for_each(|part| gpu.poison(part))
    }
}
