//! The block-sparse flash kernel on the GPU: used by `flex`, and by `sdpa` and `flash_attention_2` with the masks that
//! those support.
//!
//! Invariant: the block lists are exact at the kernel's own tile size; with a dense mask every tile is computed. Must
//! not know how a backend chose the mask kind.

use super::dense;
use super::runner::Pass;
use crate::backends::cuda::device::gpu::{Buffer, Function, Gpu, Grid};
use crate::backends::cuda::device::tensors::{InputSet, Outputs};
use crate::backends::cuda::launch::params::{DeviceMods, Lists, Params, upload_kept};
use crate::backends::cuda::lists::kept::Kept;
use crate::backends::cuda::lists::of_problem::{kept, plan, units};
use crate::backends::cuda::toolchain::compile::Program;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::{Control, Diagnostic};
use crate::problem::Problem;
use std::sync::Arc;

/// The flash kernel, loaded, with everything but the tensors.
pub(crate) struct Flash {
    function: Function,
    grid: Grid,
    params: Params,
    mods: DeviceMods,
    _lists: Lists,
    _dense: Option<Buffer>,
    _kept: Vec<Buffer>,
    share: f64,
}

impl Flash {
    /// Loads the kernel, uploads lists and captured tensors, writes the dense mask if there is one.
    pub(crate) fn new(gpu: &Arc<Gpu>, problem: &Problem, program: &Program) -> Result<Flash, Diagnostic> {
        let spec = &program.spec;
        let module = gpu.module(&program.artefact.key, &program.cubin)?;
        let function = gpu.function(&module, spec.kernel.entry(), spec.shared_bytes())?;
        let mut plan = plan(problem, spec, &Control::new())?;
        let share = plan.share(plan.rows() * problem.kv_len.div_ceil(spec.tile_kv));
        let units = units(gpu.limits(), problem, problem.batch, spec, &mut plan, None);
        let lists = Lists::upload(gpu, &plan)?;
        let mods = DeviceMods::upload(gpu, program)?;
        let kept = upload_kept(gpu, kept(problem, spec, &plan).as_ref().map(Kept::arrays))?;
        let mut params = Params::of_problem(problem).with_lists(&lists).with_kept(&kept);
        params.section = units.section as i32;
        let filled = match spec.mask {
            MaskKind::Dense => Some(dense::fill(gpu, problem, spec, &module, &mods, &mut params)?),
            _ => None,
        };
        let blocks = (problem.batch * problem.heads * lists.q_tiles) as u64;
        let blocks = u32::try_from(blocks).ok().filter(|n| *n <= i32::MAX as u32).ok_or_else(|| {
            Diagnostic::error("gpu-grid", format!("{blocks} tiles of queries are more than one launch takes"))
                .hint("make the batch, the heads or the sequence smaller")
        })?;
        let grid = Grid { blocks: (blocks, 1, 1), threads: spec.threads() as u32, shared: spec.shared_bytes() as u32 };
        Ok(Flash { function, grid, params, mods, _lists: lists, _dense: filled, _kept: kept, share })
    }

    /// Share of the tiles that are computed, 0..=1.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// Resident blocks a multiprocessor.
    pub(crate) fn occupancy(&self, gpu: &Gpu) -> Option<u32> {
        gpu.occupancy(&self.function, self.grid.threads, self.grid.shared as usize)
    }
}

impl Pass for Flash {
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic> {
        let params = self.params.with_tensors(set, outputs).bytes();
        gpu.launch(&self.function, self.grid, &[&params, self.mods.argument()])
    }
}
