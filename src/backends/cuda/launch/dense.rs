//! A mask as bytes in the device's memory, for kernels that skip nothing.
//!
//! Invariant: a byte is 1 if the host keeps the cell: a formula that the device may round differently is evaluated on
//! the host. Must not know which kernel reads it.

use crate::analysis::block_mask::MaskShape;
use crate::backends::cuda::device::gpu::{Buffer, Gpu, Grid, Module};
use crate::backends::cuda::launch::params::{DeviceMods, Params};
use crate::backends::cuda::variant::exact;
use crate::backends::cuda::variant::spec::KernelSpec;
use crate::base::Diagnostic;
use crate::ir::graph::Mod;
use crate::ir::tiles::Program;
use crate::problem::Problem;
use rayon::prelude::*;
use std::sync::Arc;

/// Writes the mask, [b, h, q_len, dense_q], and points `params` at it.
pub(crate) fn fill(
    gpu: &Arc<Gpu>,
    problem: &Problem,
    spec: &KernelSpec,
    module: &Arc<Module>,
    mods: &DeviceMods,
    params: &mut Params,
) -> Result<Buffer, Diagnostic> {
    if let Some(mask) = problem.mask.as_deref().filter(|mask| !exact::by_formula(problem, mask)) {
        return fill_from_host(gpu, problem, mask, spec.tile_kv, params);
    }
    let (MaskShape { batch, heads, .. }, width) = (problem.mask_shape(), place(problem, spec.tile_kv, params));
    let rows = batch * heads * problem.q_len;
    gpu.check_memory("the dense mask, a byte for every query and key,", rows as u128 * width as u128)?;
    let buffer = gpu.alloc(rows * width, "the dense mask")?;
    params.dense = buffer.address();
    let fill = gpu.function(module, "fill_dense", 0)?;
    let writing =
        Params { scratch: buffer.address(), mask_batch: batch as i32, mask_heads: heads as i32, ..*params }.bytes();
    let grid = Grid { blocks: (rows.min(1 << 16) as u32, 1, 1), threads: 256, shared: 0 };
    gpu.launch(&fill, grid, &[&writing, mods.argument()])?;
    gpu.finish("writing the dense mask")?;
    Ok(buffer)
}

/// The same with the cells that the host keeps.
pub(crate) fn fill_from_host(
    gpu: &Arc<Gpu>,
    problem: &Problem,
    mask: &Mod,
    tile_kv: usize,
    params: &mut Params,
) -> Result<Buffer, Diagnostic> {
    let (MaskShape { batch, heads, .. }, width) = (problem.mask_shape(), place(problem, tile_kv, params));
    let bytes = (batch * heads * problem.q_len) as u128 * width as u128;
    gpu.check_memory("the dense mask, a byte for every query and key,", bytes)?;
    let buffer = gpu.upload(&on_host(problem, mask, (batch, heads), width), "the dense mask")?;
    params.dense = buffer.address();
    Ok(buffer)
}

/// Computes a cell's byte; returns the bytes of a row.
pub(crate) fn place(problem: &Problem, tile_kv: usize, params: &mut Params) -> usize {
    let MaskShape { batch, heads, .. } = problem.mask_shape();
    let width = problem.kv_len.next_multiple_of(tile_kv);
    params.dense_q = width as i64;
    params.dense_h = if heads == 1 { 0 } else { (problem.q_len * width) as i64 };
    params.dense_b = if batch == 1 { 0 } else { (heads * problem.q_len * width) as i64 };
    width
}

/// The bytes as the host has them: 0 beyond the keys.
pub(super) fn on_host(problem: &Problem, mask: &Mod, (batch, heads): (usize, usize), width: usize) -> Vec<u8> {
    let program = Program::new(mask);
    let (q_len, kv_len) = (problem.q_len, problem.kv_len);
    let mut bytes = vec![0; batch * heads * q_len * width];
    bytes.par_chunks_exact_mut(width).enumerate().for_each(|(row, cells)| {
        let (list, q) = (row / q_len, row % q_len);
        program.mask_rows(list / heads, list % heads, q..q + 1, 0..kv_len, cells, width);
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::{spec, with_mods};
    use crate::base::DType;
    use crate::ir::cell::{Cell, eval};
    use crate::ir::random;
    use crate::problem::ProblemSpec;

    #[test]
    fn the_hosts_bytes_are_the_masks_cells() {
        for seed in 0..8 {
            let options = random::Options { batch: 2, heads: 3, ..random::Options::new(37, 45) };
            let mask = random::mask(seed, &options);
            let shape = ProblemSpec { dtype: DType::BF16, ..spec(2, 3, 3, 37, 45, 32) };
            let problem = with_mods(shape, Some(mask.clone()), None);
            let MaskShape { batch, heads, .. } = problem.mask_shape();
            let bytes = on_host(&problem, &mask, (batch, heads), 64);
            for (at, byte) in bytes.iter().enumerate() {
                let (list, q, kv) = (at / 64 / 37, at / 64 % 37, at % 64);
                let [b, h, q_idx, kv_idx] = [list / heads, list % heads, q, kv].map(|x| x as i64);
                let kept = kv < 45 && eval(&mask, &Cell { b, h, q_idx, kv_idx, score: 0.0 }).as_bool();
                assert_eq!(*byte, u8::from(kept), "seed {seed} b {b} h {h} q {q} kv {kv}");
            }
        }
    }
}
