//! Eager attention on the GPU: scores materialised, softmax over rows, probabilities times values.
//!
//! Invariant: every score of the problem is computed and written to memory; the free memory decides only how many
//! (batch, head) pairs run at a time. Must not skip anything.

use super::dense;
use super::runner::Pass;
use crate::backends::cuda::device::gpu::{Buffer, Function, Gpu, Grid};
use crate::backends::cuda::device::tensors::{InputSet, Outputs};
use crate::backends::cuda::launch::params::{DeviceMods, Params};
use crate::backends::cuda::toolchain::compile::Program;
use crate::backends::cuda::variant::spec::{KernelSpec, MaskKind};
use crate::base::Diagnostic;
use crate::problem::Problem;
use std::sync::Arc;

/// Threads of a row's softmax, as eager.cu has them.
const SOFTMAX_THREADS: u32 = 256;
/// Most blocks along the launch's y and z.
const GRID_YZ: usize = 65_535;

/// The three kernels, loaded, with everything but the tensors.
pub(crate) struct Eager {
    scores: Function,
    softmax: Function,
    values: Function,
    params: Params,
    mods: DeviceMods,
    scratch: Buffer,
    _dense: Option<Buffer>,
    /// (batch, head) pairs in all and at a time.
    pairs: usize,
    at_once: usize,
    kv_tiles: usize,
    threads: u32,
    shared: u32,
}

/// Bytes of the scores (f32) and probabilities (16 bits) of one (batch, head) pair.
pub(crate) fn pair_bytes(problem: &Problem, tile_kv: usize) -> u128 {
    problem.q_len as u128 * problem.kv_len.next_multiple_of(tile_kv) as u128 * 6
}

/// Pairs whose scores fit into half of the free memory, at least one.
fn pairs_at_once(pairs: usize, pair_bytes: u128, free: usize) -> usize {
    let fitting = (free as u128 / 2 / pair_bytes.max(1)) as usize;
    fitting.clamp(1, pairs.clamp(1, GRID_YZ))
}

/// Bytes that the forward pass takes for scores where so much memory is free.
pub(crate) fn scratch_bytes(problem: &Problem, tile_kv: usize, free: usize) -> u128 {
    let one = pair_bytes(problem, tile_kv);
    one * pairs_at_once(problem.batch * problem.heads, one, free) as u128
}

impl Eager {
    /// Loads the kernels and takes memory for scores.
    pub(crate) fn new(gpu: &Arc<Gpu>, problem: &Problem, program: &Program) -> Result<Eager, Diagnostic> {
        let spec = &program.spec;
        let pairs = problem.batch * problem.heads;
        let one = pair_bytes(problem, spec.tile_kv);
        gpu.check_memory("eager attention's scores of a single head", one)?;
        let at_once = pairs_at_once(pairs, one, gpu.memory()?.0);
        let module = gpu.module(&program.artefact.key, &program.cubin)?;
        let shared = spec.shared_bytes();
        let load = |entry, shared| gpu.function(&module, entry, shared);
        let mut params = Params::of_problem(problem);
        params.q_tiles = check_tiles(problem, spec)? as i32;
        params.section = at_once as i32;
        let mods = DeviceMods::upload(gpu, program)?;
        let dense = match spec.mask {
            MaskKind::Dense => Some(dense::fill(gpu, problem, spec, &module, &mods, &mut params)?),
            _ => None,
        };
        let scratch = gpu.alloc(one as usize * at_once, "eager attention's scores")?;
        params.scratch = scratch.address();
        Ok(Eager {
            scores: load("eager_scores", shared)?,
            softmax: load("eager_softmax", 0)?,
            values: load("eager_values", shared)?,
            params,
            mods,
            scratch,
            _dense: dense,
            pairs,
            at_once,
            kv_tiles: problem.kv_len.div_ceil(spec.tile_kv),
            threads: spec.threads() as u32,
            shared: shared as u32,
        })
    }

    /// Resident blocks a multiprocessor.
    pub(crate) fn occupancy(&self, gpu: &Gpu) -> Option<u32> {
        gpu.occupancy(&self.scores, self.threads, self.shared as usize)
    }

    /// In words: how the problem is cut.
    pub(crate) fn cut(&self) -> String {
        if self.at_once == self.pairs {
            return "all scores materialised".to_string();
        }
        format!("scores materialised for {} of {} heads at a time", self.at_once, self.pairs)
    }
}

fn check_tiles(problem: &Problem, spec: &KernelSpec) -> Result<usize, Diagnostic> {
    let tiles = problem.q_len.div_ceil(spec.tile_q);
    if tiles <= GRID_YZ {
        return Ok(tiles);
    }
    let message = format!("eager takes at most {} query tokens on a GPU", GRID_YZ * spec.tile_q);
    Err(Diagnostic::error("eager-q-len", message).hint("use flex, which never holds Q_LEN x KV_LEN values"))
}

impl Pass for Eager {
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic> {
        let whole = self.params.with_tensors(set, outputs);
        let (q_tiles, q_len) = (whole.q_tiles as u32, whole.q_len as u32);
        for first in (0..self.pairs).step_by(self.at_once) {
            let pairs = self.at_once.min(self.pairs - first) as u32;
            let params = Params { first: first as i32, ..whole }.bytes();
            let (threads, shared) = (self.threads, self.shared);
            let grid = Grid { blocks: (self.kv_tiles as u32, q_tiles, pairs), threads, shared };
            gpu.launch(&self.scores, grid, &[&params, self.mods.argument()])?;
            let grid = Grid { blocks: (q_len, pairs, 1), threads: SOFTMAX_THREADS, shared: 0 };
            gpu.launch(&self.softmax, grid, &[&params])?;
            let grid = Grid { blocks: (q_tiles, pairs, 1), threads, shared };
            gpu.launch(&self.values, grid, &[&params, self.mods.argument()])?;
        }
        Ok(())
    }

    fn poison(&self, gpu: &Gpu) -> Result<(), Diagnostic> {
        gpu.poison(&self.scratch)
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::launch::eager::*;
    use crate::backends::testing::problem;

    #[test]
    fn chunks_follow_the_free_memory() {
        let gib = 1usize << 30;
        assert_eq!(pairs_at_once(64, gib as u128, 20 * gib), 10);
        assert_eq!(pairs_at_once(4, gib as u128, 20 * gib), 4);
        assert_eq!(pairs_at_once(4, 100 * gib as u128, 20 * gib), 1);
        assert_eq!(pairs_at_once(1 << 20, 1, 20 * gib), GRID_YZ);
        assert_eq!(pair_bytes(&problem(1, 1, 1, 100, 65, 16), 64), 100 * 128 * 6);
    }
}
