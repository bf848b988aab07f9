//! Hopper's kernel on the GPU: tensor maps, bitmaps and the counter from which persistent blocks draw their tiles.
//!
//! Invariant: the kernel leaves the counter at zero, so that passes follow each other without a reset. Must not know how
//! a backend chose the variant.

use super::bitmap::Bitmaps;
use super::compile::Program;
use super::device::{Buffer, Function, Gpu, Grid};
use super::flash;
use super::params::{self, DeviceMods, Hopper as Extra, Lists, Params};
use super::plan::Plan;
use super::runner::Pass;
use super::spec::{KernelSpec, MaskKind};
use super::tensor_map::{Extents, encode};
use super::tensors::{InputSet, Outputs, Strides};
use crate::base::{Control, Diagnostic};
use crate::problem::Problem;
use std::sync::Arc;

/// Rows of the output that one warpgroup stores.
pub(super) const STORED_ROWS: usize = 64;

/// The Hopper kernel, loaded, with everything but the tensors.
pub(super) struct Hopper {
    function: Function,
    grid: Grid,
    params: Params,
    extra: Extra,
    mods: DeviceMods,
    problem: Problem,
    spec: KernelSpec,
    share: f64,
    _lists: Lists,
    _held: Vec<Buffer>,
}

impl Hopper {
    /// Loads the kernel, uploads lists, bitmaps and captured tensors.
    pub fn new(gpu: &Arc<Gpu>, problem: &Problem, program: &Program) -> Result<Hopper, Diagnostic> {
        let spec = program.spec;
        let module = gpu.module(&program.artefact.key, &program.cubin)?;
        let function = gpu.function(&module, spec.kernel.entry(), spec.shared_bytes())?;
        let plan = flash::plan(problem, &spec, &Control::new())?;
        let tiles = problem.batch * problem.heads * plan.q_tiles;
        let lists = Lists::upload(gpu, &plan)?;
        let mut params = Params::of_problem(problem).with_lists(&lists);
        params.section = flash::section(gpu, problem) as i32;
        let mut extra = Extra { tiles: tiles as u32, ..Extra::default() };
        let counter = gpu.upload(&[0u32; 2], "the tile counter")?;
        extra.counter = counter.address();
        let mut held = vec![counter];
        if spec.mask == MaskKind::Bitmap {
            held.extend(upload_bitmaps(gpu, problem, &spec, &plan, &mut extra)?);
        }
        let blocks = tiles.min(gpu.limits().multiprocessors).max(1) as u32;
        let grid = Grid { blocks: (blocks, 1, 1), threads: spec.threads() as u32, shared: spec.shared_bytes() as u32 };
        let all = plan.rows() * problem.kv_len.div_ceil(spec.tile_kv);
        let share = plan.total_work() as f64 / all.max(1) as f64;
        let mods = DeviceMods::upload(gpu, program)?;
        let problem = problem.clone();
        Ok(Hopper { function, grid, params, extra, mods, problem, spec, share, _lists: lists, _held: held })
    }

    /// Share of the tiles that are computed, 0..=1.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Resident blocks a multiprocessor.
    pub fn occupancy(&self, gpu: &Gpu) -> Option<u32> {
        gpu.occupancy(&self.function, self.grid.threads, self.grid.shared as usize)
    }

    /// The maps of q, k, v and the output, in the kernel's order.
    fn maps(&self, set: &InputSet, outputs: &Outputs) -> Result<[Vec<u8>; 4], Diagnostic> {
        let p = self.problem.spec();
        let map = |address, heads, tokens, dim, rows| {
            let extents = Extents { batch: p.batch, heads, tokens, dim };
            encode(address, p.dtype, extents, Strides::new(p.layout, heads, tokens, dim), rows)
        };
        Ok([
            map(set.q.address(), p.heads, p.q_len, p.head_dim, self.spec.tile_q)?,
            map(set.k.address(), p.kv_heads, p.kv_len, p.head_dim, self.spec.tile_kv)?,
            map(set.v.address(), p.kv_heads, p.kv_len, p.head_dim_v, self.spec.tile_kv)?,
            map(outputs.out.address(), p.heads, p.q_len, p.head_dim_v, STORED_ROWS)?,
        ])
    }
}

/// Evaluates and uploads the bitmaps of the partial tiles, and points `extra` at them.
fn upload_bitmaps(
    gpu: &Arc<Gpu>,
    problem: &Problem,
    spec: &KernelSpec,
    plan: &Plan,
    extra: &mut Extra,
) -> Result<[Buffer; 3], Diagnostic> {
    let mask = problem.mask.as_deref().expect("bitmaps are only chosen where there is a mask");
    let bitmaps = Bitmaps::build(mask, problem.lengths(), plan, spec.tile_q, spec.tile_kv);
    let buffers = params::upload_bitmaps(gpu, &bitmaps)?;
    [extra.bitmap_start, extra.bitmap_ids, extra.bitmaps] = [0, 1, 2].map(|i: usize| buffers[i].address());
    Ok(buffers)
}

impl Pass for Hopper {
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic> {
        let [q, k, v, o] = self.maps(set, outputs)?;
        let (params, extra) = (self.params.with_tensors(set, outputs).bytes(), self.extra.bytes());
        gpu.launch(&self.function, self.grid, &[&q, &k, &v, &o, &params, &extra, self.mods.argument()])
    }
}
