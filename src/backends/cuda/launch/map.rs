//! One head's scores or probabilities as a picture, on the GPU: the GPU version of `backends/attention_map.rs`.
//!
//! Invariant: the same formula, pixels and rows as on the host, in float32; only the number of sampled rows per pixel
//! may be larger, because rows cost less. The host draws a mask whose formula a GPU may round differently. The kernel
//! is compiled for the first picture that needs it, and cached like the others. Must not know colours or the protocol.

use crate::backends::Inputs;
use crate::backends::attention_map::{Region, Values, rows_a_pixel};
use crate::backends::cuda::device::gpu::{Gpu, Grid};
use crate::backends::cuda::device::tensors;
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::backends::cuda::emit::{functions, source};
use crate::backends::cuda::launch::params::{DeviceMods, packed};
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::{self, Compiler, Form};
use crate::backends::cuda::variant::exact;
use crate::base::{DType, Diagnostic};
use crate::problem::Problem;
use std::sync::Arc;

/// Multiply-adds that one picture may cost: some hundredths of a second.
const BUDGET: u128 = 1 << 38;
/// Query rows that a block computes at a time, and its threads, as map.cu has them.
const ROWS: usize = 8;
const THREADS: u32 = 256;
/// Bytes of scores that blocks may keep together.
const SCRATCH: usize = 256 << 20;

packed! {
    /// kernels/map.cu's struct.
    Picture {
        q: u64, k: u64, scores: u64, pixels: u64, kept: u64,
        b: i32, h: i32, kv_len: i32, height: i32, width: i32,
        q_start: i32, q_end: i32, kv_start: i32, kv_end: i32,
        most: i32, probabilities: i32, scale: f32,
    }
}

/// The pixels, row by row, as [`crate::backends::attention_map::map`] gives them. Errors: float32 inputs, a mask whose formula
/// would keep other cells here, the compiler's message, what the device reported; the host can draw the picture then.
pub fn map(
    gpu: &Arc<Gpu>,
    (compiler, cache): (&dyn Compiler, Option<&Cache>),
    problem: &Problem,
    inputs: &Inputs,
    region: &Region,
    values: Values,
) -> Result<Vec<f32>, Diagnostic> {
    check_exact(problem)?;
    let mods = LiftedMods::new(problem.mask.as_deref(), problem.score.as_deref());
    let emitted = functions::emit(&mods.template());
    let text = text(problem, &mods, &emitted.text);
    let made = compile::obtain(&text, &gpu.limits().arch(), Form::Kernel, compiler, cache, &mods.sources)?;
    let module = gpu.module(&made.key, &made.cubin)?;
    let function = gpu.function(&module, "map_pixels", 0)?;
    let arguments = DeviceMods::of(gpu, &mods, &emitted, false)?;
    let kv_head = region.b * problem.kv_heads + region.h / problem.group();
    let q = gpu.upload(&tensors::head_rows(&inputs.q, region.b * problem.heads + region.h)?, "a head's queries")?;
    let k = gpu.upload(&tensors::head_rows(&inputs.k, kv_head)?, "a head's keys")?;
    let count = region.height * region.width;
    let pixels = gpu.upload(&vec![0f32; count], "the picture")?;
    let kept = gpu.upload(&vec![0u32; count], "the picture's counts")?;
    let blocks = blocks(region.height, problem.kv_len, gpu.limits().multiprocessors);
    let scores = gpu.alloc(blocks * ROWS * problem.kv_len * 4, "the picture's scores")?;
    let int = |n: usize| n as i32; // lengths fit in 31 bits
    let picture = Picture {
        q: q.address(),
        k: k.address(),
        scores: scores.address(),
        pixels: pixels.address(),
        kept: kept.address(),
        b: int(region.b),
        h: int(region.h),
        kv_len: int(problem.kv_len),
        height: int(region.height),
        width: int(region.width),
        q_start: int(region.q.start),
        q_end: int(region.q.end),
        kv_start: int(region.kv.start),
        kv_end: int(region.kv.end),
        most: int(rows_a_pixel(problem, region, BUDGET).min(problem.q_len)),
        probabilities: i32::from(values == Values::Probabilities),
        scale: problem.scale() as f32,
    };
    let grid = Grid { blocks: (blocks as u32, 1, 1), threads: THREADS, shared: 0 };
    gpu.launch(&function, grid, &[&picture.bytes(), arguments.argument()])?;
    gpu.download(&pixels, count, "drawing the attention map")
}

/// Errors if the mask's formula may keep other cells on a GPU: the picture would show another mask than the race.
fn check_exact(problem: &Problem) -> Result<(), Diagnostic> {
    match problem.mask.as_deref() {
        Some(mask) if !exact::by_formula(problem, mask) => {
            let message =
                "the GPU would round this mask's formula otherwise than the host: its picture would show other cells";
            Err(Diagnostic::error("mask-not-exact", message))
        }
        _ => Ok(()),
    }
}

/// The kernel's text for a problem's mods.
fn text(problem: &Problem, mods: &LiftedMods, emitted: &str) -> String {
    let values = [
        ("BF16", usize::from(problem.dtype == DType::BF16)),
        ("HEAD_DIM", problem.head_dim),
        ("HAS_MASK", usize::from(mods.mask.is_some())),
        ("HAS_SCORE", usize::from(mods.score.is_some())),
    ];
    source::assemble_map(&values, emitted)
}

/// Blocks that take lines in turn: two a multiprocessor, within the memory for their scores.
fn blocks(height: usize, kv_len: usize, multiprocessors: usize) -> usize {
    height.min(2 * multiprocessors).min(SCRATCH / (ROWS * kv_len * 4)).max(1)
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::Nvrtc;
    use crate::backends::cuda::choose::tests::make;
    use crate::backends::cuda::launch::map::*;
    use crate::backends::cuda::launch::params;
    use crate::backends::testing::{causal, distance_score, spec, with_mods};
    use crate::ir::graph::{BinaryOp, Input, Mod, ModKind, UnaryOp};
    use crate::problem::ProblemSpec;

    #[test]
    fn the_struct_is_the_kernels() {
        let text = include_str!("../../../../kernels/map.cu");
        let fields: Vec<_> = Picture::fields().into_iter().map(|(name, size)| (name.to_string(), size)).collect();
        assert_eq!(fields, params::declared(text, "Picture"));
        assert_eq!(Picture::default().bytes().len() % 8, 0);
    }

    #[test]
    fn a_mask_that_a_gpu_rounds_otherwise_is_left_to_the_host() {
        let of = |bend: UnaryOp| {
            let mask = make(ModKind::Mask, |g| {
                let place = g.input(Input::QIdx);
                let float = g.unary(UnaryOp::ToFloat, place);
                let (bent, half) = (g.unary(bend, float), g.float(0.5));
                g.binary(BinaryOp::Gt, bent, half)
            });
            check_exact(&with_mods(spec(1, 2, 1, 300, 300, 64), Some(Mod::clone(&mask)), None))
        };
        assert!(of(UnaryOp::Abs).is_ok());
        assert_eq!(of(UnaryOp::Sin).unwrap_err().code, "mask-not-exact");
    }

    #[test]
    fn blocks_stay_within_their_memory() {
        assert_eq!(blocks(800, 8192, 132), 264);
        assert_eq!(blocks(5, 8192, 132), 5);
        assert_eq!(blocks(800, 1 << 20, 132), 8);
        assert_eq!(blocks(800, 1 << 30, 132), 1);
    }

    #[test]
    fn it_compiles_with_any_mods_where_nvrtc_is() {
        let Ok(nvrtc) = Nvrtc::get() else { return maskloom_testing::needs::missing("nvrtc", "no NVRTC") };
        for (head_dim, mask, score) in
            [(128, None, None), (72, Some(causal(3)), None), (256, Some(causal(0)), Some(distance_score()))]
        {
            let p = ProblemSpec { dtype: DType::F16, ..spec(1, 2, 1, 300, 300, head_dim) };
            let p = with_mods(p, mask, score);
            let mods = LiftedMods::new(p.mask.as_deref(), p.score.as_deref());
            let text = text(&p, &mods, &functions::emit(&mods.template()).text);
            for arch in ["sm_90a", "sm_80"] {
                let made =
                    nvrtc.compile(&text, arch, Form::Kernel).unwrap_or_else(|why| panic!("{head_dim} {arch}: {why}"));
                assert!(!made.cubin.is_empty());
            }
        }
    }
}
