//! Derivatives of score mods compared with PyTorch's autograd (tests/data/torch_grads.json, which make_torch_grads.py
//! writes): by the score, and by every captured element.

use super::*;
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::cell::{Cell, Uniforms, Value, eval_with};
use crate::ir::passes::derive::derive;
use crate::ir::passes::simplify::simplify;
use half::bf16;
use serde::Deserialize;
use std::collections::BTreeMap;

const RECORDED: &str = include_str!("../../../../tests/data/torch_grads.json");

#[derive(Deserialize)]
struct Recorded {
    tensors: BTreeMap<String, Recording>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Recording {
    dtype: String,
    shape: Vec<usize>,
    values: Vec<f64>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    cells: Vec<Recall>,
}

/// Score, h, q_idx, kv_idx, the value, the derivative by the score and by captured elements.
#[derive(Deserialize)]
struct Recall(Number, i64, i64, i64, Number, Number, BTreeMap<String, BTreeMap<usize, Number>>);

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Other(String),
}

impl Number {
    fn get(&self) -> f64 {
        match self {
            Number::Finite(x) => *x,
            Number::Other(text) => text.parse().expect("inf or nan"),
        }
    }
}

impl Recording {
    fn tensor(&self) -> HostTensor {
        let v = &self.values;
        let data = match self.dtype.as_str() {
            "float32" => Data::F32(v.iter().map(|x| *x as f32).collect()),
            "float64" => Data::F64(v.clone()),
            "bfloat16" => Data::BF16(v.iter().map(|x| bf16::from_f64(*x)).collect()),
            _ => Data::I64(v.iter().map(|x| *x as i64).collect()),
        };
        HostTensor::new(self.shape.clone(), data).expect("as many values as the shape says")
    }
}

/// Texts whose infinities and NaN are others than autograd's: one operation there is several here, or is simplified. Cells of
/// finite numbers are as exact as those of other texts.
const FINITE_ONLY: [&str; 15] = [
    "torch.sign(score * w[h] + s0)",
    "torch.i0(score)",
    "torch.special.i1(score)",
    "F.elu(score)",
    "F.elu(score - m[h, kv_idx])",
    "F.elu(score, 0.5)",
    "torch.maximum(score, score)",
    "torch.minimum(score, score)",
    "score ** -0.5",
    "score ** -2",
    "score ** 1.5",
    "torch.div(score, w[h], rounding_mode=\"trunc\") + score",
    "torch.stack([score, w[h]]).amax()",
    "torch.stack([score, s0]).prod()",
    "torch.rsqrt(score * score + s0)",
];

/// Within float32's rounding of a few operations, or within that of halves; infinities and NaN exactly.
fn near(got: f64, want: f64, within: f64) -> bool {
    if !want.is_finite() || !got.is_finite() {
        return got == want || (got.is_nan() && want.is_nan());
    }
    (got - want).abs() <= within * want.abs() + 1e-12
}

/// The results of a case's text at its cells, as faults in words.
fn check(case: &Case, tensors: &[(String, HostTensor)]) -> Vec<String> {
    let text = format!(
        "import torch\nimport torch.nn.functional as F\ndef mod(score, b, h, q_idx, kv_idx):\n    return {}\n",
        case.text
    );
    let source = Source::new("case.py", text);
    let request = TraceRequest { globals: tensors.to_vec(), ..TraceRequest::new(source, "mod", ModKind::Score) };
    let traced = trace(&request);
    let Some(given) = traced.result else { return vec![format!("is not traced: {:?}", traced.diagnostics)] };
    let mut wrong = Vec::new();
    for given in [simplify(&given), given] {
        let derived = match derive(&given, |_| true) {
            Ok(_) if case.refused => return vec!["PyTorch refuses it, and here it has a derivative".into()],
            Ok(derived) => derived,
            Err(_) if case.refused => continue,
            Err(why) => return vec![why.render()],
        };
        for Recall(score, h, q_idx, kv_idx, value, by_score, elements) in &case.cells {
            let cell = Cell { b: 0, h: *h, q_idx: *q_idx, kv_idx: *kv_idx, score: score.get() };
            let finite = [score, value, by_score].iter().all(|x| x.get().is_finite());
            if !finite && FINITE_ONLY.contains(&case.text.as_str()) {
                continue;
            }
            let at = |graph, root| eval_with(graph, root, &cell, Uniforms::default());
            let mut same = |what: String, got: f64, want: f64, within: f64| {
                if !near(got, want, within) {
                    wrong.push(format!("{what} at {cell:?}: {got} against {want}"));
                }
            };
            same("the value".into(), at(&given.graph, given.root).as_float(), value.get(), 4e-6);
            same("by the score".into(), at(&derived.graph, derived.score).as_float(), by_score.get(), 4e-6);
            let mut found: BTreeMap<(&str, usize), f64> = BTreeMap::new();
            for read in &derived.reads {
                let tensor = &given.graph.capture(read.capture).tensor;
                let index: Vec<i64> = read.index.iter().map(|i| at(&derived.graph, *i).as_int()).collect();
                let given = tensors.iter().find(|(_, t)| t.same_storage(tensor));
                let (name, _) = given.unwrap_or_else(|| panic!("`{}` reads what was not given", case.text));
                let Value::Float(part) = at(&derived.graph, read.value) else { panic!("no float") };
                *found.entry((name, tensor.clamped_offset(&index))).or_default() += part;
            }
            for (name, tensor) in tensors {
                let within = if matches!(tensor.data(), Data::BF16(_)) { 1.0 / 128.0 } else { 4e-6 };
                for flat in 0..tensor.numel() {
                    let want = elements.get(name).and_then(|e| e.get(&flat)).map_or(0.0, Number::get);
                    let got = found.get(&(name.as_str(), flat)).copied().unwrap_or(0.0);
                    same(format!("by {name}[{flat}]"), got, want, within);
                }
            }
        }
    }
    wrong
}

#[test]
fn derivatives_are_those_of_autograd() {
    let recorded: Recorded = serde_json::from_str(RECORDED).expect("the recording is valid JSON");
    let tensors: Vec<(String, HostTensor)> = recorded.tensors.iter().map(|(n, r)| (n.clone(), r.tensor())).collect();
    assert!(recorded.cases.len() > 200, "{} cases", recorded.cases.len());
    let mut wrong = Vec::new();
    for case in &recorded.cases {
        let faults = check(case, &tensors);
        if let Some(first) = faults.first() {
            wrong.push(format!("{}: {} faults, first {first}", case.text, faults.len()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), recorded.cases.len(), wrong.join("\n"));
}
