//! Emitted CUDA compiles with the real NVRTC, if found, for every supported architecture.

use super::functions::emit;
use super::mods::LiftedMods;
use crate::backends::cuda::choose::tests::{causal, make, problem, window};
use crate::backends::cuda::toolchain::compile::{Compiler, Form, Program, compile};
use crate::backends::cuda::toolchain::nvrtc::Nvrtc;
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::{Kernel, KernelSpec, MaskKind, ScoreKind, Shape};
use crate::base::tensor::Data;
use crate::base::{BackendName, DType, HostTensor, Source, SourceId, Span};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, Ty, UnaryOp};
use crate::problem::Problem;
use smallvec::smallvec;
use std::sync::Arc;

/// NVRTC, or a word in the test's output that it is absent.
pub(crate) fn nvrtc() -> Option<&'static Nvrtc> {
    let found = Nvrtc::get();
    if let Err(why) = &found {
        maskloom_testing::needs::missing("nvrtc", &format!("no NVRTC ({})", why.message));
    }
    found.ok()
}

/// Every unary and binary operation on every type it takes, joined into one bool.
fn everything() -> Arc<Mod> {
    use BinaryOp::*;
    use UnaryOp::*;
    make(ModKind::Mask, |g| {
        let q = g.input(Input::QIdx);
        let k = g.input(Input::KvIdx);
        let float = g.unary(ToFloat, q);
        let other = g.float(-1.5e-40);
        let huge = g.float(f64::NEG_INFINITY);
        let other = g.binary(Max, other, huge);
        let yes = g.binary(Lt, q, k);
        let no = g.bool(false);
        let (double, number) = (g.unary(ToDouble, k), g.float(0.1));
        let number = g.unary(ToDouble, number);
        let pairs = [(q, k), (float, other), (yes, no), (double, number)];
        let mut all = yes;
        for (a, b) in pairs {
            let unaries = UnaryOp::all().into_iter().map(|op| Op::Unary(op, a));
            let binaries = BinaryOp::ALL.iter().map(|op| Op::Binary(*op, a, b));
            for op in unaries.chain(binaries).chain([Op::Where(yes, a, b)]) {
                if g.type_of(&op).is_ok() {
                    let node = g.add(op, None);
                    let node = if g.ty(node) == Ty::Bool { node } else { g.unary(ToBool, node) };
                    all = g.binary(Xor, all, node);
                }
            }
        }
        let divisor = g.int(64);
        let divided = g.binary(FloorDiv, k, divisor);
        let divided = g.unary(ToBool, divided);
        g.binary(And, all, divided)
    })
}

/// A score mod that reads captured tensors of every dtype and rank, at indices that leave them.
fn captured() -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let (b, h, q, k) = (g.input(Input::B), g.input(Input::H), g.input(Input::QIdx), g.input(Input::KvIdx));
        let distance = g.binary(BinaryOp::Sub, q, k);
        let docs = g.add_capture("docs", HostTensor::vector(Data::I64(vec![0, 1, 1])));
        let keep = g.add_capture("keep", HostTensor::new([2, 3], Data::Bool(vec![1; 6])).unwrap());
        let bias = g.add_capture("bias", HostTensor::new([1, 2, 3, 3], Data::F16(vec![half::f16::ONE; 18])).unwrap());
        let cap = g.add_capture("cap", HostTensor::new([], Data::F64(vec![20.0])).unwrap());
        let doc = g.add(Op::Load(docs, smallvec![distance]), None);
        let kept = g.add(Op::Load(keep, smallvec![doc, k]), None);
        let added = g.add(Op::Load(bias, smallvec![b, h, q, doc]), None);
        let wide = g.add(Op::Load(cap, smallvec![]), None);
        let cap = g.unary(UnaryOp::ToFloat, wide);
        let score = g.input(Input::Score);
        let sum = g.binary(BinaryOp::Add, score, added);
        let ratio = g.binary(BinaryOp::Div, sum, cap);
        let capped = g.unary(UnaryOp::Tanh, ratio);
        g.add(Op::Where(kept, capped, score), None)
    })
}

/// Compiles the mods alone, without a kernel around them.
fn compile_mods(nvrtc: &Nvrtc, mask: Option<&Mod>, score: Option<&Mod>, arch: &str) {
    let emitted = emit(&LiftedMods::new(mask, score).template());
    let text = super::source::probe(&emitted.text, mask.is_some(), score.is_some());
    nvrtc.compile(&text, arch, Form::Kernel).unwrap_or_else(|d| panic!("{d}\n{}", emitted.text));
}

#[test]
fn every_operation_compiles_for_every_architecture() {
    let Some(nvrtc) = nvrtc() else { return };
    for arch in ["sm_80", "sm_89", "sm_90a"] {
        compile_mods(nvrtc, Some(&everything()), Some(&captured()), arch);
    }
}

#[test]
fn random_mods_compile() {
    let Some(nvrtc) = nvrtc() else { return };
    for seed in 0..12 {
        let options = crate::ir::random::Options::new(300, 200);
        let (mask, score) = (crate::ir::random::mask(seed, &options), crate::ir::random::score(seed, &options));
        compile_mods(nvrtc, Some(&mask), Some(&score), "sm_80");
    }
}

#[test]
fn every_backend_compiles_and_reports_its_resources() {
    let Some(nvrtc) = nvrtc() else { return };
    for backend in [BackendName::Flex, BackendName::Eager, BackendName::Sdpa] {
        let score = (backend != BackendName::Sdpa).then(captured);
        let (artefact, cubin) = compile(&problem(Some(window()), score), backend, "sm_80", nvrtc).unwrap();
        assert!(cubin.len() > 1000 && artefact.registers > 0, "{}", artefact.log);
        // flex takes the mask as bitmaps
        let mods = if backend == BackendName::Flex { "score_mod" } else { "mask_mod" };
        assert!(artefact.mods.contains(mods) && artefact.source.contains(&artefact.mods));
    }
}

/// Every mask kind with every score kind, in both formats and over the widths, on each architecture: not every
/// combination, but each pair of neighbours in the lists meets.
#[test]
fn every_kind_of_kernel_compiles_for_every_architecture() {
    let Some(nvrtc) = nvrtc() else { return };
    let widths = [(64, 64), (128, 128), (80, 80), (256, 256), (20, 72), (128, 64)];
    let mut at = 0;
    for arch in ["sm_80", "sm_89", "sm_90a"] {
        let limits = Limits::of_arch(arch).unwrap();
        for mask in [MaskKind::None, MaskKind::Formula, MaskKind::Dense, MaskKind::Causal] {
            for kernel in Kernel::ALL {
                let score = [ScoreKind::Folded, ScoreKind::Scaled, ScoreKind::Mod][at % 3];
                let (head_dim, head_dim_v) = widths[at % widths.len()];
                let dtype = if at.is_multiple_of(2) { DType::BF16 } else { DType::F16 };
                let q_len = if at % 5 == 4 { 64 } else { 8192 };
                let shape = Shape {
                    dtype,
                    head_dim,
                    head_dim_v,
                    q_len,
                    kv_len: 8192,
                    pairs: 64,
                    group: 1,
                    score_weight: 20,
                    score_bounded: false,
                };
                let spec = match kernel {
                    Kernel::Eager => KernelSpec::eager(&shape, &limits, mask, score),
                    Kernel::FlexSm80 => KernelSpec::flash(&shape, &limits, mask, score),
                    // `spill_tests` compiles the first in every width, `bundle` both
                    Kernel::FlexSm90 | Kernel::DecodeSm80 => continue,
                };
                let window = window();
                let mask_mod = matches!(mask, MaskKind::Formula | MaskKind::Dense).then_some(&*window);
                let score_mod = captured();
                let mods = LiftedMods::new(mask_mod, (score == ScoreKind::Mod).then_some(&*score_mod));
                let program = kernel_of(spec, mods, arch, nvrtc);
                assert!(program.artefact.registers > 0, "{}", program.artefact.log);
                at += 1;
            }
        }
    }
}

/// A variant, compiled; panics with its name on failure.
pub(crate) fn kernel_of(spec: KernelSpec, mods: LiftedMods, arch: &str, nvrtc: &Nvrtc) -> Program {
    backends::cuda::toolchain::compile::Draft::of(spec, mods, arch)
        .finish(nvrtc, None)
        .unwrap_or_else(|why| panic!("{} {arch}: {why}", spec.name()))
}

#[test]
fn common_kernels_do_not_spill() {
    let Some(nvrtc) = nvrtc() else { return };
    for (arch, head_dim) in [("sm_80", 128), ("sm_89", 128), ("sm_90a", 128), ("sm_80", 64)] {
        let mut spec = problem(Some(causal()), None).spec().clone();
        (spec.head_dim, spec.head_dim_v, spec.q_len, spec.kv_len, spec.batch) = (head_dim, head_dim, 8192, 8192, 4);
        let problem = Problem::new(spec).unwrap();
        let (artefact, _) = compile(&problem, BackendName::Flex, arch, nvrtc).unwrap();
        assert_eq!(artefact.spill_bytes, 0, "{arch} {}\n{}", artefact.name, artefact.log);
    }
}

#[test]
fn a_huge_mod_becomes_a_called_function() {
    let chain = make(ModKind::Score, |g| {
        let (mut sum, q) = (g.input(Input::Score), g.input(Input::QIdx));
        for i in 0..600 {
            let literal = g.int(i);
            let equal = g.binary(BinaryOp::Eq, q, literal);
            let float = g.unary(UnaryOp::ToFloat, equal);
            sum = g.binary(BinaryOp::Add, sum, float);
        }
        sum
    });
    let emitted = emit(&LiftedMods::new(None, Some(&chain)).template());
    assert!(emitted.text.contains("__noinline__"));
    if let Some(nvrtc) = nvrtc() {
        compile_mods(nvrtc, None, Some(&chain), "sm_80");
    }
}

#[test]
fn a_moved_slider_runs_the_same_text() {
    let window = |width: i64, slope: f64| {
        let mask = make(ModKind::Mask, |g| {
            let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
            let (distance, width) = (g.binary(BinaryOp::Sub, q, k), g.int(width));
            g.binary(BinaryOp::Le, distance, width)
        });
        let score = make(ModKind::Score, |g| {
            let (score, slope) = (g.input(Input::Score), g.float(slope));
            g.binary(BinaryOp::Mul, score, slope)
        });
        LiftedMods::new(Some(&mask), Some(&score))
    };
    let (a, b) = (window(40, 0.5), window(4096, -0.25));
    assert_eq!(emit(&a.template()), emit(&b.template()));
    assert_eq!((a.ints, a.floats, b.ints, b.floats), (vec![40], vec![0.5], vec![4096], vec![-0.25]));
}

/// Another mask is another launch of the same kernel: nothing is compiled.
#[test]
fn every_mask_runs_the_same_text() {
    use super::source;
    use crate::backends::cuda::choose;
    let text = |mask: Arc<Mod>, arch: &str, q_len: usize, kv_len: usize| {
        let spec = crate::problem::ProblemSpec { q_len, kv_len, ..problem(Some(mask), None).spec().clone() };
        let problem = Problem::new(spec).unwrap();
        let choice = choose::choose(&problem, BackendName::Flex).unwrap();
        let spec = choose::spec(&problem, &choice, &Limits::of_arch(arch).unwrap());
        let mods = choose::Choice { mask: spec.mask, ..choice }.mods(&problem);
        source::assemble(&spec, &emit(&mods.template()).text)
    };
    for arch in ["sm_80", "sm_89", "sm_90a", "sm_120"] {
        for (q_len, kv_len) in [(300, 300), (2000, 999), (1, 1024), (64, 500), (40, 77)] {
            let plain = text(causal(), arch, q_len, kv_len);
            assert!(!plain.contains("bool mask_mod("), "{arch} {q_len}x{kv_len}");
            assert_eq!(plain, text(window(), arch, q_len, kv_len), "{arch} {q_len}x{kv_len}");
            for seed in 0..3 {
                let options =
                    crate::ir::random::Options { heads: 4, batch: 2, ..crate::ir::random::Options::new(q_len, kv_len) };
                let mask = Arc::new(crate::ir::random::mask(seed, &options));
                assert_eq!(plain, text(mask, arch, q_len, kv_len), "{arch} {q_len}x{kv_len} seed {seed}");
            }
        }
    }
}

#[test]
fn a_broken_text_is_an_error_of_the_compiler() {
    let Some(nvrtc) = nvrtc() else { return };
    let why = nvrtc.compile("this is no CUDA", "sm_80", Form::Kernel).unwrap_err();
    assert_eq!(why.code, backends::cuda::toolchain::compile::COMPILE_ERROR);
    assert_eq!(nvrtc.compile("", "sm_35", Form::Kernel).unwrap_err().code, "nvrtc-arch");
}

#[test]
fn lines_point_into_the_users_text() {
    let text = "def f(b, h, q, k):\n    d = q - k\n    return d >= 0\n";
    let mut graph = Graph::new();
    let span = |what: &str| {
        let start = text.find(what).unwrap() as u32;
        Some(Span::new(SourceId(0), start, start + what.len() as u32))
    };
    let (q, k, zero) = (graph.input(Input::QIdx), graph.input(Input::KvIdx), graph.int(0));
    let d = graph.add(Op::Binary(BinaryOp::Sub, q, k), span("q - k"));
    let root: NodeId = graph.add(Op::Binary(BinaryOp::Ge, d, zero), span("d >= 0"));
    let made = Mod { kind: ModKind::Mask, graph, root, sources: vec![Source::new("mine.py", text)] };
    let emitted = emit(&LiftedMods::new(Some(&made), None).template());
    assert!(emitted.text.contains("// mod_source_0 is mine.py"), "{}", emitted.text);
    assert!(emitted.text.contains("#line 2 \"mod_source_0\"\n    const int v2 = q_idx - kv_idx;"), "{}", emitted.text);
    assert!(emitted.text.contains("#line 3 \"mod_source_0\"\n    const bool v4 = v2 >= 0;"), "{}", emitted.text);
}

/// `tanh(score / cap) * cap`
pub(crate) fn soft_cap(cap: f64) -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let (score, cap) = (g.input(Input::Score), g.float(cap));
        let ratio = g.binary(BinaryOp::Div, score, cap);
        let bent = g.unary(UnaryOp::Tanh, ratio);
        g.binary(BinaryOp::Mul, bent, cap)
    })
}

#[test]
fn hoppers_variants_compile_without_spills() {
    let Some(nvrtc) = nvrtc() else { return };
    let of = |head_dim: usize, head_dim_v: usize, dtype: DType, mask: Option<Arc<Mod>>, score: Option<Arc<Mod>>| {
        let mut spec = problem(mask, score).spec().clone();
        (spec.head_dim, spec.head_dim_v, spec.dtype) = (head_dim, head_dim_v, dtype);
        Problem::new(spec).unwrap()
    };
    let cases = [
        (of(64, 64, DType::BF16, Some(window()), None), "mask:bitmap"),
        (of(128, 128, DType::F16, None, Some(soft_cap(20.0))), "mask:none score:mod"),
        (of(80, 80, DType::BF16, Some(causal()), None), "d80 bf16 mask:bitmap"),
        (of(192, 128, DType::BF16, Some(causal()), None), "d192/128"),
        (of(192, 192, DType::F16, Some(causal()), None), "d192 f16"),
        (of(256, 256, DType::BF16, Some(causal()), None), "d256 bf16 mask:bitmap"),
    ];
    for (problem, words) in cases {
        let (artefact, _) = compile(&problem, BackendName::Flex, "sm_90a", nvrtc).unwrap();
        assert!(artefact.name.starts_with("flex_sm90") && artefact.name.contains(words), "{}", artefact.name);
        assert_eq!(artefact.spill_bytes, 0, "{}: {}", artefact.name, artefact.log);
    }
}
