//! Hopper's kernel on this processor: its text, as NVRTC receives it, on the machine of `machine/hopper.h`, compared
//! with the f64 reference.
//!
//! It does not test speed, spills and GPU behaviour that the machine does not emulate. Prints skipped without a C++
//! compiler.

use super::hopper::Work;
use crate::backends::compare::compare;
use crate::backends::cuda::choose;
use crate::backends::cuda::choose::tests::{causal, make, window};
use crate::backends::cuda::device::tensors::{arrange, output};
use crate::backends::cuda::emit::run_tests::{PRELUDE, compiled, fill_uniforms};
use crate::backends::cuda::emit::tests::soft_cap;
use crate::backends::cuda::launch::params::Params;
use crate::backends::cuda::lists::kept::Kept;
use crate::backends::cuda::lists::words::words as to_words;
use crate::backends::cuda::toolchain::compile::Draft;
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::{Kernel, KernelSpec, MaskKind};
use crate::backends::gate::{Bars, Rounds};
use crate::backends::reference::{choose_rows, emulated, reference};
use crate::backends::{Inputs, Output, inputs};
use crate::base::tensor::Data;
use crate::base::{BackendName, Control, DType, HostTensor, Layout};
use crate::ir::graph::{BinaryOp, Input, Mod, ModKind, Op, UnaryOp};
use crate::ir::random::Rng;
use crate::problem::{Problem, ProblemSpec};
use maskloom_testing::needs;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::Arc;

pub(in crate::backends::cuda) const MACHINE: &str = include_str!("../machine/hopper.h");

/// Reads what [`input`] wrote, runs all blocks, writes out, lse and the largest scores.
const MAIN: &str = r#"
int main(int count, char **names) {
    FILE *file = fopen(names[1], "rb");
    auto params = read_array<u8>(file), extra = read_array<u8>(file);
    auto numbers = read_array<int>(file);
    auto q = read_array<u16>(file), k = read_array<u16>(file), v = read_array<u16>(file);
    auto tile_order = read_array<u32>(file), row_start = read_array<u32>(file);
    auto runs = read_array<Run>(file);
    auto bitmap_start = read_array<u32>(file), bitmap_ids = read_array<u32>(file), bitmaps = read_array<u32>(file);
    auto kv_num_tiles = read_array<u32>(file);
    auto pieces = read_array<Piece>(file);
    int blocks = numbers[0], head_dim = numbers[1], head_dim_v = numbers[2];
    Params p;
    memcpy(&p, params.data(), sizeof p);
    vector<u16> o(size_t(p.batch) * p.o_b, 0x7fff);
    vector<float> lse(size_t(p.batch) * p.heads * p.q_len, NAN), largest = lse;
    p.q = q.data(), p.k = k.data(), p.v = v.data(), p.o = o.data(), p.lse = lse.data();
    p.tile_order = tile_order.data(), p.row_start = row_start.data(), p.runs = runs.data();
    p.bitmap_start = bitmap_start.data(), p.bitmap_ids = bitmap_ids.data(), p.bitmaps = bitmaps.data();
#if ML_MAX_SCORES
    p.max_scores = largest.data();
#endif
    Hopper x;
    memcpy(&x, extra.data(), sizeof x);
    u32 counter[2] = {0, 0};
    size_t cut = x.units - x.whole;
    vector<float> parts(cut * CONSUMERS * PART + 4, NAN);
    vector<u32> arrived(cut * CONSUMERS + 1, 0);
    x.kv_num_tiles = kv_num_tiles.data(), x.counter = counter, x.pieces = pieces.data();
    x.parts = (float *)((size_t(parts.data()) + 15) / 16 * 16), x.arrived = arrived.data();
    TensorMap q_map = {q.data(), {p.q_s, p.q_h, p.q_b}, head_dim, p.q_len, M};
    TensorMap k_map = {k.data(), {p.k_s, p.k_h, p.k_b}, head_dim, p.kv_len, N};
    TensorMap v_map = {v.data(), {p.v_s, p.v_h, p.v_b}, head_dim_v, p.kv_len, N};
    TensorMap o_map = {o.data(), {p.o_s, p.o_h, p.o_b}, head_dim_v, p.q_len, 64};
    TensorMap bits_map = {(u16 *)bitmaps.data(), {64, 0, 0}, 64, int(bitmaps.size() / 32), 8};
    Mods mods;
    fill(mods);
    run_grid({unsigned(blocks), 1, 1}, 128 * (ML_CONSUMERS + 1), MOST_SHARED, 1,
             [&] { flex_hopper(q_map, k_map, v_map, o_map, bits_map, p, x, mods); });
    if (counter[0] || counter[1]) stop("counters that are not left at 0");
    for (u32 n : arrived) if (n) stop("pieces that are not left at 0");
    FILE *to = fopen(names[2], "wb");
    fwrite(o.data(), 2, o.size(), to), fwrite(lse.data(), 4, lse.size(), to), fwrite(largest.data(), 4, largest.size(), to);
    return fclose(to);
}
"#;

/// The parts of a kernel's text for the machine, in a namespace: those of `own` go, because the machine has their words.
pub(in crate::backends::cuda) fn housed(space: &str, parts: &str, own: &[&str]) -> String {
    const PTX_OF_KEPT: &str = r#"asm("{.reg .pred p; setp.ne.b32 p, %1, 0; selp.f32 %0, %2, 0f00000000, p;}" : "=f"(result) : "r"(kept), "f"(value))"#;
    let mut text = format!("namespace {space} {{\n");
    for part in parts.split("#line 1 \"").skip(1) {
        let (name, body) = part.split_once("\"\n").expect("a mark names its file");
        if own.contains(&name) {
            continue;
        }
        let body = body.replace(PTX_OF_KEPT, "result = kept ? value : 0.0f");
        let body = body.replace("asm volatile(", "asm(").replace("asm(", "machine_asm(");
        let shared = ["1024", "128"].map(|to| format!("extern __shared__ __align__({to}) u8 raw[];"));
        text.push_str(&shared.iter().fold(body, |body, own| body.replace(own, "u8 *const raw = here->raw;")));
        if name == "types.cuh" {
            text.push_str(&["pack16", "unpack16", "larger"].map(|f| format!("#define {f} machine_{f}\n")).concat());
        }
    }
    text + "#undef pack16\n#undef unpack16\n#undef larger\n}\n"
}

/// The draft's text for the machine: the GPU's own words go, and those of the machine come before the rest.
fn program(draft: &Draft) -> String {
    let (head, _) = draft.text.split_once("#line 1 \"").expect("parts are marked");
    let text = housed("text", &draft.text, &["ptx.cuh", "hopper.cuh"]);
    assert!(draft.mods.captures().is_empty(), "the machine is given no tensors");
    let fill = fill_uniforms(&draft.mods);
    format!("{head}{PRELUDE}{MACHINE}{text}using namespace text;\nvoid fill(Mods &m) {{\n{fill}}}\n{MAIN}")
}

/// As many as cut some of these tiles into pieces.
const MULTIPROCESSORS: usize = 5;

/// A launch, as MAIN reads it.
fn input(problem: &Problem, spec: &KernelSpec, given: &Inputs) -> Vec<u8> {
    let work = Work::new(problem, spec, &[problem.group()], MULTIPROCESSORS).expect("lists");
    let (plan, extra) = (&work.plan, work.extra());
    let params = Params {
        q_tiles: plan.q_tiles as i32,
        mask_batch: plan.batch as i32,
        mask_heads: plan.heads as i32,
        ..work.params(problem)
    };
    let numbers = [extra.units.min(MULTIPROCESSORS as u32), problem.head_dim as u32, problem.head_dim_v as u32];
    let mut file = Vec::new();
    let mut put = |bytes: Vec<u8>| {
        file.extend((bytes.len() as u64).to_le_bytes());
        file.extend(bytes);
    };
    let words = |values: &[u32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    put(params.bytes());
    put(extra.bytes());
    put(words(&numbers));
    for tensor in [&given.q, &given.k, &given.v] {
        put(arrange(tensor, problem.layout).expect("16 bits").iter().flat_map(|v| v.to_le_bytes()).collect());
    }
    let runs = plan.runs.concat();
    let lists: [&[u32]; 3] = [&plan.tile_order, &plan.row_start, &runs];
    for list in lists.into_iter().chain(work.kept.as_ref().map_or([&[][..]; 3], Kept::arrays)) {
        put(words(list));
    }
    put(words(&plan.kv_num_tiles()));
    put(words(&to_words(&work.units.pieces)));
    file
}

/// One problem by one variant; `fault` changes the kernel's text. None without a compiler. Errors: an output that
/// differs from the reference, or the machine's message.
fn run(what: &str, spec: ProblemSpec, wanted: MaskKind, fault: impl Fn(&str) -> String) -> Option<Result<(), String>> {
    run_in(what, spec, wanted, 0, fault)
}

/// The same with the variant's own tiles (0), or with the smaller ones of that number.
fn run_in(
    what: &str,
    spec: ProblemSpec,
    wanted: MaskKind,
    tiles: usize,
    fault: impl Fn(&str) -> String,
) -> Option<Result<(), String>> {
    let problem = Problem::new(spec).expect("a valid problem");
    let limits = Limits::of_arch("sm_90a").expect("known");
    let chosen = Draft::new(&problem, BackendName::Flex, &limits, "sm_90a").expect("a variant");
    assert_eq!(chosen.spec.kernel, Kernel::FlexSm90, "{what}");
    assert!(wanted == MaskKind::Interval || chosen.spec.mask == wanted, "{what}");
    // ranges are chosen for more tiles than this machine would come to the end of, and small tiles for some masks
    let own = KernelSpec::hopper(&choose::shape(&problem), &limits, wanted, chosen.spec.score).expect("it suits");
    let own = own.with_max_scores(problem.max_scores);
    let spec = match tiles.checked_sub(1) {
        None => own,
        Some(at) => own.finer(&limits).nth(at).expect("smaller tiles").0,
    };
    let mut draft = Draft::of(spec, chosen.mods, "sm_90a");
    draft.text = fault(&draft.text);
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let kernel = compiled(&program(&draft), folder.path(), &mut quiet("c++"), &["-O2"])?;
    let given = inputs::random(&problem, 7);
    let control = Control::new();
    let exact = reference(&problem, &given, choose_rows(&problem, u32::MAX), &control).expect("a reference");
    let emulated = emulated(&problem, &given, &exact, &control).expect("emulated");
    let bars = Bars::new(&problem, &exact, &emulated, Rounds::Fused);
    std::fs::write(file("in"), input(&problem, &draft.spec, &given)).expect("written");
    let ran = quiet(&kernel).arg(file("in")).arg(file("out")).output().expect("runs");
    if !ran.status.success() {
        return Some(Err(format!("{what}: {} {}", ran.status, String::from_utf8_lossy(&ran.stderr))));
    }
    let found = found(&problem, &std::fs::read(file("out")).expect("an output"));
    let error = compare(&problem, &found, &exact, &bars).expect("comparable");
    Some(if error.passed() { Ok(()) } else { Err(format!("{what}: {error:?}")) })
}

/// Behind others: a program computes for minutes, and other tests wait for a child or a server.
pub(in crate::backends::cuda) fn quiet(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

/// The output of MAIN.
fn found(problem: &Problem, left: &[u8]) -> Output {
    let rows = problem.batch * problem.heads * problem.q_len;
    let (out, floats) = left.split_at(left.len() - 8 * rows);
    let out: Vec<u16> = out.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
    let floats: Vec<f32> = floats.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let (lse, largest) = floats.split_at(rows);
    output(problem, &out, lse.to_vec(), problem.max_scores.then(|| largest.to_vec())).expect("an output")
}

/// The kernel as it is, of the taken cases.
fn check(cases: impl IntoIterator<Item = (&'static str, ProblemSpec, MaskKind)>) {
    for (what, spec, wanted) in needs::taken(cases) {
        run(what, spec, wanted, str::to_string).unwrap_or(Ok(())).unwrap_or_else(|why| panic!("{why}"));
    }
}

fn spec(q_len: usize, kv_len: usize, head_dim: usize) -> ProblemSpec {
    ProblemSpec::plain(1, (2, 1), (q_len, kv_len), head_dim)
}

/// Some of every tile, no two tiles alike: `(q_idx * q_idx + 3 * kv_idx + h) % 7 != 0`
pub(super) fn scattered() -> Arc<Mod> {
    make(ModKind::Mask, |g| {
        let (q, kv, h) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.input(Input::H));
        let (three, seven, zero) = (g.int(3), g.int(7), g.int(0));
        let (square, triple) = (g.binary(BinaryOp::Mul, q, q), g.binary(BinaryOp::Mul, kv, three));
        let sum = g.binary(BinaryOp::Add, square, triple);
        let sum = g.binary(BinaryOp::Add, sum, h);
        let rest = g.binary(BinaryOp::Mod, sum, seven);
        g.binary(BinaryOp::Ne, rest, zero)
    })
}

/// Rows that keep one range each, from anywhere to anywhere: `ends[q_idx, 0] <= kv_idx < ends[q_idx, 1]`
pub(super) fn ragged(q_len: usize, kv_len: usize) -> Arc<Mod> {
    let mut rng = Rng::new(5);
    let ends: Vec<i64> = (0..2 * q_len).map(|_| rng.below(kv_len + 1) as i64).collect();
    make(ModKind::Mask, |g| {
        let ends = g.add_capture("ends", HostTensor::new([q_len, 2], Data::I64(ends)).expect("a tensor"));
        let (q, kv, zero, one) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(0), g.int(1));
        let [first, past] = [zero, one].map(|which| g.add(Op::Load(ends, [q, which].into_iter().collect()), None));
        let (behind, before) = (g.binary(BinaryOp::Ge, kv, first), g.binary(BinaryOp::Lt, kv, past));
        g.binary(BinaryOp::And, behind, before)
    })
}

pub(super) fn masked(mask: Arc<Mod>, spec: ProblemSpec) -> ProblemSpec {
    ProblemSpec { mask: Some(mask), ..spec }
}

#[test]
fn hoppers_kernel_computes_attention() {
    let half = |s| ProblemSpec { dtype: DType::F16, layout: Layout::Bshd, ..s };
    check([
        ("d128", spec(200, 400, 128), MaskKind::None),
        ("d64", half(spec(250, 300, 64)), MaskKind::None),
        ("d128 causal", masked(causal(), spec(400, 400, 128)), MaskKind::Bitmap),
        ("d64 window", half(masked(window(), spec(400, 400, 64))), MaskKind::Bitmap),
        ("d128 scattered", half(masked(scattered(), spec(200, 500, 128))), MaskKind::Bitmap),
        ("d256 scattered", masked(scattered(), spec(130, 250, 256)), MaskKind::Bitmap),
    ]);
}

/// Each row of the tables of smaller tiles: one consumer without turns, two blocks of a multiprocessor, narrow tiles of keys.
#[test]
fn hoppers_small_tiles_compute_attention() {
    let half = |s| ProblemSpec { dtype: DType::F16, ..s };
    let capped = |s: ProblemSpec| ProblemSpec { score: Some(soft_cap(3.0)), ..s };
    let cases = [
        ("d64, 64 x 128", 1, masked(scattered(), spec(200, 300, 64)), MaskKind::Bitmap),
        ("d64, 64 x 64", 2, half(masked(ragged(200, 250), spec(200, 250, 64))), MaskKind::Interval),
        ("d128, 128 x 64", 1, capped(masked(window(), spec(200, 300, 128))), MaskKind::Bitmap),
        ("d128, 64 x 64", 2, masked(scattered(), spec(200, 250, 128)), MaskKind::Bitmap),
    ];
    for (what, tiles, spec, wanted) in needs::taken(cases) {
        run_in(what, spec, wanted, tiles, str::to_string).unwrap_or(Ok(())).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn hoppers_kernel_makes_bits_of_ranges() {
    let half = |s| ProblemSpec { dtype: DType::F16, ..s };
    let steep = |s: ProblemSpec| ProblemSpec { scale: Some(5.0), ..s };
    check([
        ("d128 ragged", masked(ragged(700, 650), spec(700, 650, 128)), MaskKind::Interval),
        ("d128 window", masked(window(), spec(400, 400, 128)), MaskKind::Interval),
        ("d64 window", half(masked(window(), spec(300, 500, 64))), MaskKind::Interval),
        ("d256 causal", masked(causal(), spec(200, 250, 256)), MaskKind::Interval),
        ("d128 rising, causal", steep(masked(causal(), spec(300, 300, 128))), MaskKind::Interval),
        (
            "d128 soft cap, window",
            ProblemSpec { score: Some(soft_cap(3.0)), ..masked(window(), spec(300, 300, 128)) },
            MaskKind::Interval,
        ),
    ]);
}

#[test]
fn hoppers_kernel_follows_rows_that_rise() {
    let steep = |s: ProblemSpec, by: f64| ProblemSpec { scale: Some(by / (s.head_dim as f64).sqrt()), ..s };
    check([
        ("d128 rising", steep(spec(130, 600, 128), 30.0), MaskKind::None),
        ("d64 rising", steep(masked(scattered(), spec(130, 600, 64)), 60.0), MaskKind::Bitmap),
    ]);
}

/// Long enough to be called, and none of its terms the same in two cells of a row or column.
fn called() -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let (mut sum, q, kv) = (g.input(Input::Score), g.input(Input::QIdx), g.input(Input::KvIdx));
        let (prime, small) = (g.int(101), g.float(0.002));
        for i in 1..40 {
            let i = g.int(i);
            let (left, right) = (g.binary(BinaryOp::Mul, q, i), g.binary(BinaryOp::Mul, kv, kv));
            let both = g.binary(BinaryOp::Add, left, right);
            let rest = g.binary(BinaryOp::Mod, both, prime);
            let rest = g.unary(UnaryOp::ToFloat, rest);
            let term = g.binary(BinaryOp::Mul, rest, small);
            sum = g.binary(BinaryOp::Add, sum, term);
        }
        sum
    })
}

#[test]
fn hoppers_kernel_calls_long_score_mods() {
    let long = |s: ProblemSpec| ProblemSpec { score: Some(called()), ..s };
    let text = |t: &str| {
        assert!(t.contains("SCORE_PASS = 1;"), "not called");
        t.to_string()
    };
    for (what, s) in [("d128 called", spec(200, 300, 128)), ("d64 called", masked(window(), spec(250, 300, 64)))] {
        let kind = if s.mask.is_some() { MaskKind::Bitmap } else { MaskKind::None };
        run(what, long(s), kind, text).unwrap_or(Ok(())).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn hoppers_kernel_applies_score_mods() {
    let capped = |s: ProblemSpec| ProblemSpec { score: Some(soft_cap(3.0)), ..s };
    let largest = ProblemSpec { max_scores: true, ..masked(scattered(), spec(200, 300, 128)) };
    check([
        ("d128 soft cap, window", capped(masked(window(), spec(300, 300, 128))), MaskKind::Bitmap),
        ("d128 soft cap, largest scores", capped(largest), MaskKind::Bitmap),
    ]);
}

/// Scores in the thousands of which no tile raises the maximum: a tile's addition to a sum has the same base as the
/// sum.
#[test]
fn hoppers_kernel_keeps_lse_over_many_tiles() {
    let far = make(ModKind::Mask, |g| {
        let (kv, from) = (g.input(Input::KvIdx), g.int(700));
        g.binary(BinaryOp::Ge, kv, from)
    });
    let falling = make(ModKind::Score, |g| {
        let (score, kv, slope) = (g.input(Input::Score), g.input(Input::KvIdx), g.float(3.0));
        let kv = g.unary(UnaryOp::ToFloat, kv);
        let penalty = g.binary(BinaryOp::Mul, kv, slope);
        g.binary(BinaryOp::Sub, score, penalty)
    });
    let falling = |s: ProblemSpec| ProblemSpec { score: Some(falling.clone()), ..masked(far.clone(), s) };
    check([
        ("d64 falling", falling(spec(130, 6000, 64)), MaskKind::Bitmap),
        ("d128 falling", falling(spec(130, 6000, 128)), MaskKind::Interval),
    ]);
}

/// The machine is late enough for what would go wrong on a GPU now and then.
#[test]
fn what_is_not_waited_for_is_seen() {
    let faults = [
        ("                wgmma_wait<1>();", ""),
        (" mbarrier_wait(s.bits_full(group), step.parity());", ";"),
        ("                mbarrier_wait(s.bits_empty(group), partial_tiles % 2 ^ 1);\n", ""),
        ("    mbarrier_wait(s.k_full(k.at()), k.phase());\n    Step", "    Step"),
    ];
    for (right, wrong) in faults {
        let fault = |text: &str| {
            assert!(text.contains(right), "{right}");
            text.replace(right, wrong)
        };
        let Some(ran) = run(right, masked(scattered(), spec(200, 400, 128)), MaskKind::Bitmap, fault) else { return };
        ran.expect_err(right);
    }
}
