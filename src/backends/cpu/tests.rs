//! The CPU backends compared with the f64 reference: ragged lengths, GQA, odd head dims, empty rows, refusals.

use super::*;
use crate::backends::compare::compare;
use crate::backends::gate::{Bars, Rounds};
use crate::backends::inputs;
use crate::backends::reference::{choose_rows, emulated, reference};
use crate::backends::testing::{causal, distance_score, modulo_rows, problem, spec, with_mods};
use crate::problem::result::OutputName;

/// Every supporting backend within the f32 limit; returns the names of those that ran.
fn check(problem: &Problem) -> Vec<BackendName> {
    let given = inputs::random(problem, 11);
    let rows = choose_rows(problem, u32::MAX);
    let exact = reference(problem, &given, rows, &Control::new()).expect("not cancelled");
    let emulated = emulated(problem, &given, &exact, &Control::new()).expect("not cancelled");
    let own = Bars::new(problem, &exact, &emulated, Rounds::Fused);
    let flat = Bars::flat(&exact, 1e-5, 1e-5, 1e-5);
    let mut ran = Vec::new();
    for mut backend in backends() {
        if backend.support(problem).is_err() {
            continue;
        }
        let mut prepared = backend.prepare(problem, &given).expect("supported");
        for pass in 0..2 {
            let output = prepared.output().expect("it runs");
            let judged = |bars| compare(problem, &output, &exact, bars).expect("shapes agree");
            let error = judged(&flat);
            assert!(error.passed(), "{} pass {pass}: {error:?}", prepared.kernel());
            assert!(judged(&own).passed(), "{} pass {pass}: {:?}", prepared.kernel(), judged(&own));
            let gives = matches!(backend.name(), BackendName::Eager | BackendName::Flex);
            assert_eq!(
                error.output(&OutputName::MaxScores).is_some(),
                problem.max_scores && gives,
                "{}",
                prepared.kernel()
            );
        }
        ran.push(backend.name());
    }
    ran
}

#[test]
fn full_attention_of_ragged_lengths_and_odd_head_dims() {
    use BackendName::{Eager, FlashAttention2, Flex, Sdpa};
    for (q_len, kv_len, dim) in [(1, 1, 1), (1, 300, 64), (65, 63, 24), (130, 257, 80), (64, 64, 256)] {
        let p = problem(2, 4, 2, q_len, kv_len, dim);
        assert_eq!(check(&p), [Eager, Sdpa, FlashAttention2, Flex]);
    }
}

#[test]
fn values_may_have_a_head_dim_of_their_own() {
    let mut s = spec(1, 2, 1, 70, 90, 48);
    s.head_dim_v = 20;
    s.scale = Some(0.31);
    check(&with_mods(s, None, None));
}

#[test]
fn masks_with_empty_rows_and_blocks() {
    for (q_len, kv_len) in [(200, 333), (333, 200), (320, 320)] {
        for mask in [causal(0), causal(-90), causal(40), modulo_rows(5, 3), modulo_rows(2, 0)] {
            let ran = check(&with_mods(spec(1, 4, 2, q_len, kv_len, 32), Some(mask), None));
            assert!(ran.contains(&BackendName::Flex) && ran.contains(&BackendName::Sdpa));
        }
    }
}

#[test]
fn score_mods_run_on_eager_and_flex_and_are_refused_by_the_others() {
    for mask in [None, Some(causal(3))] {
        let p = with_mods(spec(2, 4, 4, 150, 140, 16), mask, Some(distance_score()));
        assert_eq!(check(&p), [BackendName::Eager, BackendName::Flex]);
        let refusal = Cpu::Sdpa.support(&p).unwrap_err();
        assert_eq!(refusal.code, "score-mod-unsupported");
        assert!(refusal.hint.is_some());
    }
}

#[test]
fn the_rows_largest_scores_are_an_output_where_they_are_asked_for() {
    for mask in [None, Some(causal(-9)), Some(modulo_rows(5, 3))] {
        for score in [None, Some(distance_score())] {
            let s = crate::problem::ProblemSpec { max_scores: true, ..spec(2, 4, 2, 150, 340, 16) };
            check(&with_mods(s, mask.clone(), score));
        }
    }
}

#[test]
fn the_largest_score_of_a_row_with_nan_is_nan_and_of_one_with_infinity_infinite() {
    use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, UnaryOp};
    // log(q_idx - 2) + score: NaN in rows 0 and 1, -inf in row 2; and score / 0 makes infinities in the second problem
    let of = |build: &dyn Fn(&mut Graph) -> crate::ir::graph::NodeId| {
        let mut graph = Graph::new();
        let root = build(&mut graph);
        let score = Mod { kind: ModKind::Score, graph, root, sources: Vec::new() };
        let s = crate::problem::ProblemSpec { max_scores: true, ..spec(1, 1, 1, 5, 70, 8) };
        let p = with_mods(s, None, Some(score));
        let given = inputs::random(&p, 3);
        let tops = |mut b: Cpu| {
            let output = b.prepare(&p, &given).expect("supported").output().expect("it runs");
            let tops = output.max_scores.expect("given");
            (0..5).map(|q| tops.float_at(q)).collect::<Vec<_>>()
        };
        let exact =
            reference(&p, &given, choose_rows(&p, u32::MAX), &Control::new()).expect("not cancelled").max_scores;
        let same = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).all(|(a, b)| (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() < 1e-5)
        };
        assert!(same(&tops(Cpu::Flex), &exact) && same(&tops(Cpu::Eager), &exact), "{:?} {exact:?}", tops(Cpu::Flex));
        exact
    };
    let logs = of(&|g| {
        let (score, q, two) = (g.input(Input::Score), g.input(Input::QIdx), g.int(2));
        let row = g.binary(BinaryOp::Sub, q, two);
        let row = g.unary(UnaryOp::ToFloat, row);
        let log = g.unary(UnaryOp::Log, row);
        g.binary(BinaryOp::Add, score, log)
    });
    assert!(logs[..2].iter().all(|x| x.is_nan()) && logs[2] == f64::NEG_INFINITY && logs[3].is_finite(), "{logs:?}");
    let infinite = of(&|g| {
        let (score, zero) = (g.input(Input::Score), g.float(0.0));
        g.binary(BinaryOp::Div, score, zero)
    });
    assert!(infinite.iter().all(|x| *x == f64::INFINITY), "{infinite:?}");
}

#[test]
fn flash_attention_aligns_causal_to_the_bottom_right_or_refuses() {
    let code = |q_len, kv_len, mask| {
        let p = with_mods(spec(1, 1, 1, q_len, kv_len, 16), Some(mask), None);
        Cpu::Flash.support(&p).err().map(|d| d.code.to_string())
    };
    assert_eq!(code(100, 100, causal(0)), None);
    assert_eq!(code(100, 150, causal(50)), None);
    assert_eq!(code(100, 150, causal(0)).as_deref(), Some("flash-causal-alignment"));
    assert_eq!(code(100, 100, modulo_rows(5, 3)).as_deref(), Some("flash-mask-unsupported"));
}

#[test]
fn eager_refuses_scores_that_would_not_fit() {
    let p = problem(4, 64, 64, 1 << 20, 1 << 20, 64);
    let refusal = Cpu::Eager.support(&p).unwrap_err();
    assert_eq!(refusal.code, "out-of-memory");
    assert!(refusal.message.contains("GiB") && refusal.hint.is_some(), "{refusal}");
}

#[test]
fn a_kernel_says_what_it_did() {
    let p = with_mods(spec(1, 1, 1, 80, 80, 16), Some(causal(0)), None);
    let given = inputs::random(&p, 0);
    let kernel = |mut b: Cpu| b.prepare(&p, &given).expect("supported").kernel();
    assert!(kernel(Cpu::Sdpa).words.ends_with("causal"), "{}", kernel(Cpu::Sdpa));
    assert!(kernel(Cpu::Flex).words.ends_with("block-sparse"));
}
