//! Hopper's kernel on the GPU: tensor maps, bitmaps, pieces, and the counter from which persistent blocks take their tiles.
//!
//! Invariant: the kernel resets its counters to zero, so that passes need no reset between them. Must not know how a
//! backend chose the variant.

use super::runner::Pass;
use crate::backends::cuda::device::gpu::{Buffer, Function, Gpu, Grid};
use crate::backends::cuda::device::tensor_map::{Extents, encode};
use crate::backends::cuda::device::tensors::{InputSet, Outputs, Strides};
use crate::backends::cuda::experiment::Experiment;
use crate::backends::cuda::launch::params::{self, DeviceMods, Hopper as Extra, Lists, Params};
use crate::backends::cuda::lists::bitmap::Bitmaps;
use crate::backends::cuda::lists::kept::Kept;
use crate::backends::cuda::lists::of_problem;
use crate::backends::cuda::lists::pieces::{self, Units};
use crate::backends::cuda::lists::plan::Plan;
use crate::backends::cuda::lists::words::words;
use crate::backends::cuda::toolchain::compile::Program;
use crate::backends::cuda::variant::bound;
use crate::backends::cuda::variant::spec::KernelSpec;
use crate::base::{Control, DType, Diagnostic, Layout};
use crate::problem::Problem;
use std::sync::Arc;

/// Rows of the output that one warpgroup stores.
pub(crate) const STORED_ROWS: usize = 64;
/// Bitmaps are copied as lines of so many 16-bit elements.
const BIT_LINE: usize = 64;
/// Lines of one warpgroup's rows, of which each has 16 bytes of bits.
const BIT_LINES: usize = 64 * 16 / (2 * BIT_LINE);

/// The Hopper kernel, loaded, with everything but the tensors.
pub(crate) struct Hopper {
    function: Function,
    grid: Grid,
    params: Params,
    extra: Extra,
    mods: DeviceMods,
    problem: Problem,
    spec: KernelSpec,
    share: f64,
    parts: Option<Buffer>,
    /// The place of bitmaps, if there are any.
    bits_map: Option<Vec<u8>>,
    _lists: Lists,
    _held: Vec<Buffer>,
}

impl Hopper {
    /// Loads the kernel, uploads lists, what partial tiles keep, and captured tensors.
    pub(crate) fn new(gpu: &Arc<Gpu>, problem: &Problem, program: &Program) -> Result<Hopper, Diagnostic> {
        let spec = program.spec;
        let module = gpu.module(&program.artefact.key, &program.cubin)?;
        let function = gpu.function(&module, spec.kernel.entry(), spec.shared_bytes())?;
        let sections = of_problem::sections(gpu.limits(), problem, problem.batch);
        let work = Work::new(problem, &spec, &sections, spec.at_once(gpu.limits()))?;
        let lists = Lists::upload(gpu, &work.plan)?;
        let mut held = params::upload_kept(gpu, work.kept.as_ref().map(Kept::arrays))?;
        let params = work.params(problem).with_lists(&lists).with_kept(&held);
        let bits = work.kept.as_ref().and_then(Kept::bits);
        let bits_map = bits.map(|bits| bits_map(params.bitmaps, bits, problem.dtype)).transpose()?;
        let mut extra = work.extra();
        let parts = work.upload(gpu, &spec, &mut extra, &mut held)?;
        let blocks = extra.units.min(spec.at_once(gpu.limits()) as u32).max(1);
        let grid = Grid { blocks: (blocks, 1, 1), threads: spec.threads() as u32, shared: spec.shared_bytes() as u32 };
        let mods = DeviceMods::upload(gpu, program)?;
        let (problem, share) = (problem.clone(), work.share);
        Ok(Hopper {
            function,
            grid,
            params,
            extra,
            mods,
            problem,
            spec,
            share,
            parts,
            bits_map,
            _lists: lists,
            _held: held,
        })
    }

    /// A description of the pieces.
    pub(crate) fn cut(&self) -> String {
        match self.extra.units - self.extra.whole {
            0 => String::new(),
            n => format!(", the last tiles in {n} pieces"),
        }
    }

    /// Share of the tiles that are computed, 0..=1.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// Resident blocks a multiprocessor.
    pub(crate) fn occupancy(&self, gpu: &Gpu) -> Option<u32> {
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

/// Extents, strides and rows of the map of bitmaps, as one head's tokens. The elements are plain bits with the kernel's element width.
pub(crate) fn bits_geometry(bits: &Bitmaps) -> (Extents, Strides, usize) {
    let lines = bits.words.len() * 2 / BIT_LINE;
    let extents = Extents { batch: 1, heads: 1, tokens: lines, dim: BIT_LINE };
    (extents, Strides::new(Layout::Bhsd, 1, lines, BIT_LINE), BIT_LINES)
}

/// The map of bitmaps at `address`.
fn bits_map(address: u64, bits: &Bitmaps, dtype: DType) -> Result<Vec<u8>, Diagnostic> {
    let (extents, strides, rows) = bits_geometry(bits);
    encode(address, dtype, extents, strides, rows)
}

/// The content of a launch: lists and the kept cells of partial tiles, and the order of its tiles.
pub(crate) struct Work {
    pub plan: Plan,
    pub kept: Option<Kept>,
    pub units: Units,
    /// Share of the tiles that are computed, 0..=1; the rows of pieces do not count.
    share: f64,
}

impl Work {
    /// For so many tiles at once, with heads in one of these sections.
    pub(crate) fn new(
        problem: &Problem,
        spec: &KernelSpec,
        sections: &[usize],
        at_once: usize,
    ) -> Result<Work, Diagnostic> {
        let mut plan = of_problem::plan(problem, spec, &Control::new())?;
        let share = plan.share(plan.rows() * problem.kv_len.div_ceil(spec.tile_kv));
        let mut kept = of_problem::kept(problem, spec, &plan);
        let pairs = (problem.batch, problem.heads);
        let units = if Experiment::Whole.is_on() {
            Units::whole(&plan, pairs, sections[0])
        } else {
            Units::shortest(spec, &mut plan, kept.as_mut(), pairs, sections, at_once)
        };
        Ok(Work { plan, kept, units, share })
    }

    /// Everything but addresses and lists.
    pub(crate) fn params(&self, problem: &Problem) -> Params {
        let lowest = bound::lowest(problem).unwrap_or_default();
        Params { section: self.units.section as i32, lowest, ..Params::of_problem(problem) }
    }

    /// How much there is to take; addresses are still 0.
    pub(crate) fn extra(&self) -> Extra {
        let Units { pieces, whole, .. } = &self.units;
        Extra { units: (whole + pieces.len()) as u32, whole: *whole as u32, ..Extra::default() }
    }

    /// Uploads what `extra` points at, the counter first, and takes memory for what pieces leave each other.
    fn upload(
        &self,
        gpu: &Arc<Gpu>,
        spec: &KernelSpec,
        extra: &mut Extra,
        held: &mut Vec<Buffer>,
    ) -> Result<Option<Buffer>, Diagnostic> {
        let counter = gpu.upload(&[0u32; 2], "the tile counter")?;
        let kv_num_tiles = gpu.upload(&self.plan.kv_num_tiles(), "the block lists")?;
        [extra.counter, extra.kv_num_tiles] = [&counter, &kv_num_tiles].map(Buffer::address);
        held.extend([counter, kv_num_tiles]);
        let cut = &self.units.pieces;
        if cut.is_empty() {
            return Ok(None);
        }
        let what = "the pieces of the last tiles";
        let list = gpu.upload(&words(cut), what)?;
        let arrived = gpu.upload(&vec![0u32; cut.len() * spec.consumers()], what)?;
        let parts = gpu.alloc(cut.len() * pieces::part_bytes(spec), what)?;
        [extra.pieces, extra.arrived, extra.parts] = [&list, &arrived, &parts].map(Buffer::address);
        held.extend([list, arrived]);
        Ok(Some(parts))
    }
}

impl Pass for Hopper {
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic> {
        let [q, k, v, o] = self.maps(set, outputs)?;
        // without bitmaps nothing is read by their map
        let bits = self.bits_map.as_ref().unwrap_or(&k);
        let (params, extra) = (self.params.with_tensors(set, outputs).bytes(), self.extra.bytes());
        gpu.launch(&self.function, self.grid, &[&q, &k, &v, &o, bits, &params, &extra, self.mods.argument()])
    }

    fn poison(&self, gpu: &Gpu) -> Result<(), Diagnostic> {
        self.parts.iter().try_for_each(|parts| gpu.poison(parts))
    }
}
