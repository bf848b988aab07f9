//! Gradients of captured tensors in bins (`bins.cuh`): the sums themselves, compared with exact ones, and every kernel on
//! the machine of `backward_tests.rs`, in several orders of blocks and threads.
//!
//! Invariant: the same orders give other bits where floats are added, so that the comparison sees an order. Prints
//! skipped without a C++ compiler.

use super::backward_tests::{Case, IN_ORDER, Programs, case, check, half, learned, program, scored, spec, with_holes};
use super::hopper_tests::{masked, scattered};
use crate::backends::cuda::choose::tests::causal;
use crate::backends::cuda::emit::run_tests::{PRELUDE, compiled};
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::rng::Rng;
use crate::base::tensor::Data;
use crate::base::{HostTensor, Layout};
use crate::ir::graph::Mod;
use crate::ir::text::parse;
use crate::problem::ProblemSpec;
use std::fmt::Write;
use std::process::Command;
use std::sync::Arc;

const BINS: &str = include_str!("../../../../kernels/bins.cuh");
/// The addition to a bin, and what would stand there without bins.
const ADDED: &str = "atomicAdd(sums.bins + (u64(x / 8) * u32(sums.count) + u32(element)), u64(i64(with_sign)));";
const AS_FLOAT: &str = "atomicAdd(sums.total + element, part);";

fn in_bins(case: Case) -> Case {
    Case { ways: IN_ORDER, ..case }
}

fn adds(s: ProblemSpec) -> ProblemSpec {
    scored(learned(s.q_len, s.kv_len, false), s)
}

fn gated(s: ProblemSpec) -> ProblemSpec {
    scored(learned(s.q_len, s.kv_len, true), s)
}

fn own(q_len: usize, kv_len: usize, dim: usize) -> ProblemSpec {
    ProblemSpec { layout: Layout::Bshd, ..ProblemSpec::plain(2, (2, 1), (q_len, kv_len), dim) }
}

/// One tensor, read in every way that shares elements.
fn shared() -> Arc<Mod> {
    let table = HostTensor::vector(Data::F32((0..200).map(|i| (i * 29 % 32) as f32 / 16.0 - 0.9).collect()));
    let text = "(add (add (add (add (mul score (load t h)) (load t q_idx)) (load t kv_idx)) (load t (sub q_idx kv_idx))) \
                (load t (mul q_idx kv_idx)))";
    Arc::new(parse(text, &[("t", table)]).expect("a score mod"))
}

/// So many reads of one tensor that Hopper's kernels are not tried.
fn many() -> Arc<Mod> {
    let table = HostTensor::vector(Data::F32((0..50).map(|i| (i % 7) as f32 / 8.0).collect()));
    let text = (0..33).fold("score".to_string(), |sum, i| format!("(add {sum} (load t (mod (add kv_idx {i}) 50)))"));
    Arc::new(parse(&text, &[("t", table)]).expect("a score mod"))
}

#[test]
fn captured_tensors_get_the_same_bits_in_any_order() {
    let ampere = |case: Case| Case { arch: "sm_80", ..case };
    check(
        [
            case("d64 adds in bins", adds(masked(with_holes(), own(100, 300, 64))), MaskKind::Bitmap),
            case("d128 adds in bins", adds(half(spec(70, 140, 128))), MaskKind::None),
            case("d128 gated in bins", gated(masked(causal(), half(spec(70, 140, 128)))), MaskKind::Formula),
            case("d256 adds in bins", adds(masked(causal(), spec(100, 100, 256))), MaskKind::Bitmap),
            case("d128 shared in bins", scored(shared(), own(100, 150, 128)), MaskKind::None),
            case("d192 gated in bins", gated(masked(with_holes(), own(70, 140, 192))), MaskKind::Bitmap),
            case("d64 many in bins", scored(many(), spec(70, 140, 64)), MaskKind::None),
            ampere(case("d64 gated in bins, Ampere", gated(masked(scattered(), own(100, 100, 64))), MaskKind::Bitmap)),
            Case {
                arch: "sm_86",
                ..case("d256 gated in bins, Ampere", gated(half(spec(70, 100, 256))), MaskKind::None)
            },
        ]
        .map(in_bins),
    );
}

/// The orders of this machine are others indeed: the same kernels that add floats give other bits.
#[test]
#[ignore = "a minute: run it when the machine or bins.cuh change"]
fn an_order_of_floats_would_be_seen() {
    let cases = [
        case("d128", scored(shared(), own(100, 200, 128)), MaskKind::None),
        case("d256", adds(masked(causal(), spec(100, 140, 256))), MaskKind::Bitmap),
        Case { arch: "sm_80", ..case("d64, Ampere", gated(masked(scattered(), own(100, 140, 64))), MaskKind::Bitmap) },
    ];
    let mut programs = Programs::default();
    for case in cases.map(in_bins) {
        let ready = case.ready(3);
        let mut bits = |text: String| {
            let runs = (0..5).map(|seed| programs.run_text(&ready, text.clone(), seed));
            let runs: Option<Vec<_>> = runs.collect();
            Some(runs?.into_iter().map(|run| run.unwrap_or_else(|why| panic!("{why}"))).collect::<Vec<_>>())
        };
        let Some(whole) = bits(program(&ready.draft, str::to_string)) else { return };
        assert!(whole.iter().all(|run| *run == whole[0]), "{}: other bits", ready.what);
        let as_floats = |text: &str| text.replace(ADDED, AS_FLOAT);
        assert!(ready.draft.text.contains(ADDED));
        let floats = bits(program(&ready.draft, as_floats)).expect("there is a compiler");
        assert!(floats.iter().any(|run| *run != floats[0]), "{}: the order of floats was not seen", ready.what);
    }
}

/// Random floats with exponents from `low` on, a few of them with huge ones that another takes away again.
fn numbers(rng: &mut Rng, low: u32) -> Vec<f32> {
    let one = |rng: &mut Rng, low: u32, steps: usize| {
        let exponent = low + rng.below(steps) as u32;
        f32::from_bits((rng.next_u64() as u32 & 0x807f_ffff) | exponent << 23)
    };
    let count = rng.below(60);
    let mut all: Vec<f32> = (0..count).map(|_| one(rng, low, 40)).collect();
    for _ in 0..rng.below(4) {
        let huge = one(rng, 225, 30);
        all.insert(rng.below(all.len() + 1), huge);
        all.insert(rng.below(all.len() + 1), -huge);
    }
    all
}

/// The sum of floats that are multiples of the smallest with exponent `low`, rounded once.
fn rounded(numbers: &[f32], low: u32) -> f32 {
    // huge ones are there with both signs
    let small = numbers.iter().filter(|x| x.to_bits() >> 23 & 0xff < low + 40);
    let step = low.max(1) - 1;
    let whole: i128 = small
        .map(|x| {
            let exponent = x.to_bits() >> 23 & 0xff;
            let m = i128::from(x.to_bits() & 0x7f_ffff) + if exponent == 0 { 0 } else { 1 << 23 };
            (if x.is_sign_negative() { -m } else { m }) << (exponent.max(1) - 1 - step)
        })
        .sum();
    (f64::from(whole as f32) * 2f64.powi(step as i32 - 149)) as f32
}

#[test]
fn sums_in_bins_are_exact_and_rounded_once() {
    let mut rng = Rng::new(8);
    let lists: Vec<(u32, Vec<f32>)> = (0..400)
        .map(|i| {
            let low = [0, 1, 90, 120, 150, 180][i % 6];
            (low, numbers(&mut rng, low))
        })
        .collect();
    let mut text = format!("{PRELUDE}#include <vector>\ntypedef unsigned long long u64;\n");
    text += "template <class T, class By> T atomicAdd(T *to, By by) { T old = *to; *to += by; return old; }\n";
    text += BINS;
    text += "static const vector<vector<u32>> lists = {\n";
    for (_, list) in &lists {
        let bits: Vec<String> = list.iter().map(|x| format!("{}u", x.to_bits())).collect();
        let _ = writeln!(text, "{{{}}},", bits.join(", "));
    }
    // three elements, of which the second is summed forwards and the third backwards
    text += r#"};
int main() {
    for (auto &list : lists) {
        vector<float> total(3, 0.0f);
        vector<u64> bins(3 * BINS, 0);
        const BinSums sums = {total.data(), bins.data(), 3};
        for (size_t i = 0; i < list.size(); ++i) {
            add_to_element(sums, 1, __uint_as_float(list[i]));
            add_to_element(sums, 2, __uint_as_float(list[list.size() - 1 - i]));
        }
        for (int i = 0; i < 3; ++i) printf("%u ", __float_as_uint(total[i] + sum_of_bins(sums, i)));
        printf("\n");
    }
}
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["-O1", "-ffp-contract=off"];
    let Some(binary) = compiled(&text, folder.path(), &mut Command::new("c++"), &options) else { return };
    let ran = Command::new(&binary).output().expect("runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found = String::from_utf8(ran.stdout).expect("numbers");
    let mut seen = 0;
    for ((low, list), line) in lists.iter().zip(found.lines()) {
        let sums: Vec<f32> = line.split(' ').filter_map(|bits| bits.parse().ok()).map(f32::from_bits).collect();
        let want = rounded(list, *low);
        assert_eq!(sums, [0.0, want, want], "{list:?}");
        seen += usize::from(want != 0.0);
    }
    assert!(found.lines().count() == lists.len() && seen > 300, "{seen}");
}
