//! Backward kernels with emitted derivatives compile with the real NVRTC, and those of Hopper keep everything in registers.

use super::tests::{nvrtc, soft_cap};
use crate::backends::cuda::choose::tests::{causal, make, problem};
use crate::backends::cuda::toolchain::backward::BackwardDraft;
use crate::backends::cuda::toolchain::ptxas;
use crate::backends::cuda::variant::arch::NAMES;
use crate::backends::cuda::variant::backward::BackwardWays;
use crate::backends::cuda::variant::limits::Limits;
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::graph::{BinaryOp, Input, Mod, ModKind, Op};
use crate::ir::text::parse;
use crate::problem::{Problem, ProblemSpec};
use maskloom_testing::needs;
use smallvec::smallvec;
use std::sync::Arc;

/// `score * rows[q_idx] * keys[kv_idx]`
fn gates() -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let vector = HostTensor::vector(Data::F32((0..300).map(|i| i as f32 * 0.01).collect()));
        let [rows, keys] = ["rows", "keys"].map(|name| g.add_capture(name, vector.clone()));
        let [q, kv, score] = [Input::QIdx, Input::KvIdx, Input::Score].map(|i| g.input(i));
        let rows = g.add(Op::Load(rows, smallvec![q]), None);
        let keys = g.add(Op::Load(keys, smallvec![kv]), None);
        let first = g.binary(BinaryOp::Mul, score, rows);
        g.binary(BinaryOp::Mul, first, keys)
    })
}

/// `score * gate[h] + table[q_idx - kv_idx] + bias[kv_idx]`; without a gate it only adds.
fn learned(gated: bool) -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let vector = |n: usize| HostTensor::vector(Data::F32((0..n).map(|i| i as f32 * 0.1).collect()));
        let [gate, table, bias] =
            [("gate", 4), ("table", 50), ("bias", 300)].map(|(name, n)| g.add_capture(name, vector(n)));
        let [h, q, kv, score] = [Input::H, Input::QIdx, Input::KvIdx, Input::Score].map(|i| g.input(i));
        let gate = g.add(Op::Load(gate, smallvec![h]), None);
        let first = g.binary(if gated { BinaryOp::Mul } else { BinaryOp::Add }, score, gate);
        let distance = g.binary(BinaryOp::Sub, q, kv);
        let table = g.add(Op::Load(table, smallvec![distance]), None);
        let bias = g.add(Op::Load(bias, smallvec![kv]), None);
        let sum = g.binary(BinaryOp::Add, first, table);
        g.binary(BinaryOp::Add, sum, bias)
    })
}

fn with(score: Option<Arc<Mod>>, dim: usize) -> Problem {
    let base = problem(Some(causal()), score);
    Problem::new(ProblemSpec { head_dim: dim, head_dim_v: dim, ..base.spec().clone() }).expect("a valid problem")
}

fn draft(problem: &Problem, arch: &str, deterministic: bool) -> BackwardDraft {
    let ways = BackwardWays { deterministic, d_lse: deterministic };
    BackwardDraft::new(problem, &Limits::of_arch(arch).expect("an architecture"), ways).expect("a draft")
}

#[test]
fn sums_stay_in_a_thread_where_their_cells_share_an_element() {
    let text = draft(&with(Some(learned(true)), 64), "sm_90a", false).emitted.text;
    assert!(text.contains("float score_grad("));
    // by head one sum, by key two, by the distance those of a warp's diagonals
    let reads: Vec<bool> = (0..3).map(|at| text.contains(&format!("float sum{at}"))).collect();
    assert_eq!(reads.iter().filter(|held| **held).count(), 2, "{text}");
    assert_eq!(text.matches("[2] = {0.0f, 0.0f}").count(), 1);
    assert_eq!((text.matches("DiagonalSums sum").count(), text.matches("float sum1[2]").count()), (1, 0));
    let plain = draft(&with(Some(learned(false)), 64), "sm_90a", false).emitted.text;
    assert!(!plain.contains("score_grad") && plain.contains("struct CaptureSums"));
    assert!(!draft(&with(None, 64), "sm_90a", false).emitted.text.contains("CaptureSums"));
}

/// `score + bias[indices]`, of a tensor of that shape.
fn reads(shape: &[usize], indices: &[Input]) -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let tensor = HostTensor::new(shape, Data::F32(vec![0.5; shape.iter().product()])).expect("a tensor");
        let bias = g.add_capture("bias", tensor);
        let at = indices.iter().map(|i| g.input(*i)).collect();
        let (score, bias) = (g.input(Input::Score), g.add(Op::Load(bias, at), None));
        g.binary(BinaryOp::Add, score, bias)
    })
}

#[test]
fn an_element_of_one_cell_alone_is_written_and_any_other_added_to() {
    use Input::{B, H, KvIdx, QIdx};
    let base = with(None, 64);
    let (b, h, q, kv) = (base.batch, base.heads, base.q_len, base.kv_len);
    let text = |shape: &[usize], indices: &[Input]| {
        draft(&with(Some(reads(shape, indices)), 64), "sm_90a", false).emitted.text
    };
    let is_written = |text: String| {
        let (written, added) = (text.contains("*(m.g0 + read_place0"), text.contains("atomicAdd(m.g0 + read_place0"));
        assert!(written != added, "{text}");
        written
    };
    assert!(is_written(text(&[b, h, q, kv], &[B, H, QIdx, KvIdx])));
    assert!(is_written(text(&[kv, q, h, b], &[KvIdx, QIdx, H, B])));
    // the same element for every batch entry or head; an index beyond the tensor is clamped
    assert!(!is_written(text(&[h, q, kv], &[H, QIdx, KvIdx])));
    assert!(!is_written(text(&[b, q, kv], &[B, QIdx, KvIdx])) || h == 1);
    assert!(!is_written(text(&[b, h, q, kv - 1], &[B, H, QIdx, KvIdx])));
}

#[test]
fn backward_kernels_compile_for_every_architecture() {
    let Some(nvrtc) = nvrtc() else { return };
    for arch in NAMES {
        let limits = Limits::of_arch(arch).expect("an architecture");
        for (n, dim) in [64, 128, 192, 256].into_iter().enumerate() {
            for (at, (name, score)) in [
                ("none", None),
                ("soft cap", Some(soft_cap(20.0))),
                ("adds", Some(learned(false))),
                ("gated", Some(learned(true))),
                ("gates", Some(gates())),
            ]
            .into_iter()
            .enumerate()
            {
                if !needs::is_one_of(3, n + at) {
                    continue;
                }
                // the others differ from sm_80 by the compiler alone
                let is_alike = !["sm_90a", "sm_80"].contains(&arch);
                if is_alike && !(["none", "gated"].contains(&name) && [64, 256].contains(&dim)) {
                    continue;
                }
                let ordered = name == "none" && dim == 128;
                let ways = BackwardWays { deterministic: ordered, d_lse: ordered };
                let made = BackwardDraft::made(&with(score, dim), &limits, ways, arch, nvrtc, None);
                let (draft, code) = made.unwrap_or_else(|why| panic!("{arch} d{dim} {name}: {why}"));
                let shared = draft.spec.shared_bytes();
                assert!(shared <= limits.shared_per_block, "{arch} d{dim} {name}: {shared} bytes of shared memory");
                // a gate, a table of distances and a bias at once want more registers than Hopper's kernel has at width 128
                if arch == "sm_90a" && dim <= 128 {
                    assert_eq!(draft.spec.is_hopper(), name != "gated" || dim == 64, "d{dim} {name}");
                }
                let found = ptxas::resources(&code.main.log, draft.spec.entry());
                println!("{arch} d{dim} {name}: {} registers, {} bytes spilled", found.registers, found.spill_bytes);
                assert!(found.registers > 0);
                // the wide kernel spills 32 bytes with NVRTC 13.0
                if arch == "sm_90a" && (name == "none" && dim <= 128 || dim == 64) {
                    assert_eq!(found.spill_bytes, 0, "d{dim} {name}");
                }
                // a few words a thread while P is made: gates of 16 rows are read ahead
                if arch == "sm_90a" && name == "gates" && dim <= 128 {
                    assert!(draft.spec.is_hopper() && found.spill_bytes <= 16, "d{dim}: {}", found.spill_bytes);
                }
            }
        }
    }
}

/// Designs that learn a tensor each: by head, by the distance, by key, by query, and by cells that share elements.
fn one_tensor_each() -> Vec<(&'static str, Arc<Mod>)> {
    let values = |shape: &[usize]| {
        let n: usize = shape.iter().product();
        HostTensor::new(shape, Data::F32((0..n).map(|i| (i % 9) as f32 * 0.1).collect())).expect("a tensor")
    };
    let designs: [(&str, &str, &[usize]); 5] = [
        ("slopes", "(sub score (mul (load t h) (to_float (sub q_idx kv_idx))))", &[4]),
        ("table", "(add score (load t h (add (sub q_idx kv_idx) 299)))", &[4, 600]),
        ("key bias", "(add score (load t kv_idx))", &[300]),
        ("query gate", "(mul score (load t q_idx))", &[300]),
        ("pairs", "(add score (load t q_idx kv_idx))", &[300, 300]),
    ];
    let made = |text, shape| Arc::new(parse(text, &[("t", values(shape))]).expect("a score mod"));
    designs.into_iter().map(|(name, text, shape)| (name, made(text, shape))).collect()
}

#[test]
fn deterministic_additions_go_to_bins_and_others_to_floats() {
    for (name, score) in one_tensor_each() {
        let text = |deterministic| draft(&with(Some(score.clone()), 64), "sm_90a", deterministic).emitted.text;
        let (free, bins) = (text(false), text(true));
        assert!(free.contains("float *g0;") && !free.contains("add_to_element"), "{name}: {free}");
        assert!(bins.contains("BinSums g0;") && !bins.contains("atomicAdd"), "{name}: {bins}");
        assert!(bins.contains("add_to_element(m.g0, ") != bins.contains("DiagonalSums"), "{name}: {bins}");
    }
    let base = with(None, 64);
    let shape = [base.batch, base.heads, base.q_len, base.kv_len];
    let score = reads(&shape, &[Input::B, Input::H, Input::QIdx, Input::KvIdx]);
    let alone = draft(&with(Some(score), 64), "sm_90a", true);
    assert!(alone.emitted.text.contains("*(m.g0.total + read_place0"));
    assert_eq!(alone.mods.gradient.expect("it learns").with_bins(), [false]);
}

/// An element's bins hold 2^32 additions.
#[test]
fn more_additions_than_bins_hold_are_refused_with_their_number() {
    let refused = |text: &str, shape: &[usize], tokens: usize| {
        let tensor = HostTensor::new(shape, Data::F32(vec![0.5; shape.iter().product()])).expect("a tensor");
        let score = Arc::new(parse(text, &[("t", tensor)]).expect("a score mod"));
        let spec = ProblemSpec { score: Some(score), ..ProblemSpec::plain(2, (4, 4), (tokens, tokens), 64) };
        let problem = Problem::new(spec).expect("a valid problem");
        let ways = |deterministic| BackwardWays { deterministic, d_lse: false };
        let limits = Limits::of_arch("sm_90a").expect("an architecture");
        assert!(BackwardDraft::new(&problem, &limits, ways(false)).is_ok());
        BackwardDraft::new(&problem, &limits, ways(true)).err()
    };
    let buckets = "(add score (load t (mod (mul q_idx kv_idx) 32)))";
    let why = refused(buckets, &[32], 32_768).expect("2 * 4 * 2^30 additions");
    assert_eq!(why.code, "no-fixed-order");
    assert!(why.message.contains(&(1u64 << 33).to_string()), "{}", why.message);
    assert!(why.hint.is_some_and(|hint| hint.contains("eager")));
    // with elements of each head, and with fewer cells, they fit
    let by_head = "(add score (load t h (mod (mul q_idx kv_idx) 32)))";
    assert!(refused(by_head, &[4, 32], 32_768).is_none());
    assert!(refused(buckets, &[32], 16_384).is_none());
    assert!(refused("(mul score (load t h))", &[4], 1 << 16).is_none());
}

#[test]
fn captured_tensors_in_bins_compile_for_every_architecture() {
    let Some(nvrtc) = nvrtc() else { return };
    let ways = BackwardWays { deterministic: true, d_lse: true };
    for arch in NAMES {
        let limits = Limits::of_arch(arch).expect("an architecture");
        for (at, (name, score)) in one_tensor_each().into_iter().chain([("gated", learned(true))]).enumerate() {
            for (n, dim) in [64, 128, 256].into_iter().enumerate() {
                // the others differ by the compiler alone
                if arch != "sm_90a" && (name != "gated" || dim != 128) || !needs::is_one_of(3, n + at) {
                    continue;
                }
                let made = BackwardDraft::made(&with(Some(score.clone()), dim), &limits, ways, arch, nvrtc, None);
                let (draft, code) = made.unwrap_or_else(|why| panic!("{arch} d{dim} {name}: {why}"));
                let found = ptxas::resources(&code.main.log, draft.spec.entry());
                let last = ptxas::resources(&code.rows.log, "backward_captured");
                println!(
                    "{arch} d{dim} {name}, {}: {} registers, {} bytes spilled; afterwards {} and {}",
                    draft.spec.name(),
                    found.registers,
                    found.spill_bytes,
                    last.registers,
                    last.spill_bytes
                );
                assert!(found.registers > 0 && last.registers > 0 && last.spill_bytes == 0, "{arch} d{dim} {name}");
                // NVRTC 13.0: 88 bytes with slopes, 32 with a table, else none
                if draft.spec.entry() == "backward_hopper" {
                    assert!(found.spill_bytes <= 96, "d{dim} {name}: {} bytes spilled", found.spill_bytes);
                }
            }
        }
    }
}
