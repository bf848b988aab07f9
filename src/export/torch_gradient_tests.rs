//! The user's own PyTorch computes gradients of the exported module, and they equal the reference's.

use crate::backends::gradient_race::race;
use crate::backends::testing::{causal, modulo_rows, spec, with_mods};
use crate::backends::torch::open;
use crate::backends::{gradients, inputs};
use crate::base::tensor::Data;
use crate::base::{BackendName, Control, DType, Device, HostTensor, Layout};
use crate::export::module_text;
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, Op, UnaryOp};
use crate::problem::result::GradientOutcome;
use crate::problem::{Problem, ProblemSpec};
use smallvec::smallvec;

/// `score * factor + table[h, kv_idx] * near`, where `factor` learns and the rest only adds; 1 as a factor makes it a bias.
fn learned(heads: usize, kv_len: usize, factor: bool) -> Mod {
    let mut g = Graph::new();
    let values = (0..heads * kv_len).map(|i| ((i * 37 % 23) as f32 - 11.0) * 0.05).collect();
    let table = HostTensor::new([heads, kv_len], Data::F32(values)).expect("as many values");
    let table = g.add_capture("table", table);
    let near = g.add_capture("near", HostTensor::new([0; 0], Data::F32(vec![0.75])).expect("a scalar"));
    let gate = g.add_capture("gate", HostTensor::vector(Data::F32((0..heads).map(|h| 1.0 + h as f32 * 0.1).collect())));
    let [h, kv, score] = [Input::H, Input::KvIdx, Input::Score].map(|i| g.input(i));
    let table = g.add(Op::Load(table, smallvec![h, kv]), None);
    let near = g.add(Op::Load(near, smallvec![]), None);
    let bias = g.binary(BinaryOp::Mul, table, near);
    let gate = g.add(Op::Load(gate, smallvec![h]), None);
    let gate = g.unary(UnaryOp::Tanh, gate);
    let score = if factor { g.binary(BinaryOp::Mul, score, gate) } else { score };
    let root = g.binary(BinaryOp::Add, score, bias);
    Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() }
}

#[test]
fn autograd_of_the_exported_module_is_compared_and_timed() {
    use BackendName::{TorchEager, TorchFlex, TorchSdpa};
    let torch = match open(None, Device::Cpu, module_text) {
        Ok(torch) => torch,
        Err(why) => {
            return maskloom_testing::needs::missing(
                "torch",
                &format!("no Python with torch ({}); set MASKLOOM_PYTHON", why.message),
            );
        }
    };
    let given = |kv_heads, dtype| ProblemSpec { dtype, layout: Layout::Bshd, ..spec(2, 4, kv_heads, 50, 40, 16) };
    let problems = [
        (with_mods(given(2, DType::F32), Some(modulo_rows(5, 3)), Some(learned(4, 40, true))), vec![TorchEager]),
        (
            with_mods(given(4, DType::F32), Some(modulo_rows(5, 3)), Some(learned(4, 40, false))),
            vec![TorchEager, TorchSdpa],
        ),
        (with_mods(given(2, DType::BF16), Some(causal(0)), None), vec![TorchEager, TorchSdpa]),
        (with_mods(given(1, DType::F32), None, None), vec![TorchEager, TorchSdpa]),
    ];
    for (p, names) in &problems {
        let (inputs, seeds) = (inputs::random(p, 5), gradients::random(p, 5));
        let all = [TorchEager, TorchSdpa, TorchFlex];
        let mut backends: Vec<_> = all.iter().map(|n| torch.backend(*n).expect("one of its names")).collect();
        let found =
            race(p, &inputs, &seeds, (&mut backends, Vec::new()), (2, false), &Control::new()).expect("it runs");
        for r in &found.reports {
            match &r.outcome {
                GradientOutcome::Done { kernel, errors, timing, .. } => {
                    assert!(names.contains(&r.backend), "{kernel}");
                    assert!(errors.iter().all(|e| e.passed()), "{kernel}: {errors:?}");
                    assert_eq!(errors.len(), 3 + learns(p), "{kernel}");
                    assert_eq!(timing.as_ref().map(|t| t.samples_ms.len()), Some(2), "{kernel}");
                }
                GradientOutcome::Refused { why } => {
                    assert!(!names.contains(&r.backend) && why.hint.is_some(), "{}: {why:?}", r.backend);
                    let flex = r.backend == TorchFlex;
                    assert!(
                        !flex || (why.code == "torch-flex-no-backward" && why.message.contains("backward on CPU")),
                        "{why:?}"
                    );
                }
                GradientOutcome::Failed { why } => panic!("{}: {}", r.backend, why.render()),
            }
        }
    }
}

fn learns(p: &Problem) -> usize {
    p.score.as_deref().map_or(0, |score| crate::backends::learning(score).expect("a derivative").len())
}
