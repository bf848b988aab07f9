//! Gradients of tensors from which a factory computes a score mod's tables, compared with PyTorch's autograd
//! (tests/data/torch_factories.json, which make_torch_factories.py writes).

use super::*;
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::cell::{Cell, Uniforms, Value, eval_with};
use crate::ir::graph::Mod;
use crate::ir::made::Made;
use crate::ir::passes::derive::derive;
use crate::ir::passes::simplify::simplify;
use serde::Deserialize;
use std::collections::BTreeMap;

const RECORDED: &str = include_str!("../../../../tests/data/torch_factories.json");

#[derive(Deserialize)]
struct Recorded {
    tensors: BTreeMap<String, Recording>,
    cells: Vec<(i64, i64, i64)>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Recording {
    shape: Vec<usize>,
    values: Vec<f32>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    gradients: BTreeMap<String, Vec<f64>>,
}

/// The mod that a factory gives of these tensors.
fn made(text: &str, tensors: &[(String, HostTensor)]) -> Result<Mod, String> {
    let text = format!("import torch\nimport torch.nn.functional as F\ndef make(table, slopes, wide):\n    {text}\n");
    let request = TraceRequest {
        args: tensors.iter().map(|(n, t)| (n.clone(), Arg::Tensor(t.clone()))).collect(),
        call: Call::Factory,
        ..TraceRequest::new(Source::new("factory.py", text), "make", ModKind::Score)
    };
    let traced = trace(&request);
    traced.result.ok_or_else(|| traced.diagnostics.first().map_or(String::new(), |d| d.message.clone()))
}

/// The gradient of each tensor by its name: those of what the mod reads, led back.
fn gradients(score: &Mod, cells: &[(i64, i64, i64)]) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let derived = derive(score, |_| true).map_err(|why| why.message)?;
    let mut read: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (n, (h, q_idx, kv_idx)) in cells.iter().enumerate() {
        let cell = Cell { b: 0, h: *h, q_idx: *q_idx, kv_idx: *kv_idx, score: 0.25 * n as f64 - 3.0 };
        let at = |id| eval_with(&derived.graph, id, &cell, Uniforms::default());
        for part in &derived.reads {
            let tensor = &score.graph.capture(part.capture).tensor;
            let index: Vec<i64> = part.index.iter().map(|i| at(*i).as_int()).collect();
            let Value::Float(by) = at(part.value) else { panic!("no float") };
            let sums = read.entry(part.capture).or_insert_with(|| vec![0.0; tensor.numel()]);
            sums[tensor.clamped_offset(&index)] += by * (1 + n % 5) as f64;
        }
    }
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (capture, own) in read {
        let held = score.graph.capture(capture);
        match held.made.as_deref() {
            None => {
                let to = found.entry(held.name.clone()).or_insert_with(|| vec![0.0; own.len()]);
                to.iter_mut().zip(own).for_each(|(to, x)| *to += x);
            }
            Some(Made::Of(parts)) => {
                for part in parts {
                    let to = found.entry(part.name.clone()).or_insert_with(|| vec![0.0; part.tensor.numel()]);
                    part.give(&own, to);
                }
            }
            Some(Made::Lost(lost)) => return Err(format!("lost: {lost:?}")),
        }
    }
    Ok(found)
}

fn fault(case: &Case, recorded: &Recorded, tensors: &[(String, HostTensor)]) -> Option<String> {
    let found = match made(&case.text, tensors).and_then(|m| gradients(&simplify(&m), &recorded.cells)) {
        Ok(found) => found,
        Err(why) => return Some(why),
    };
    for (name, tensor) in tensors {
        let zeros = vec![0.0; tensor.numel()];
        let (got, want) = (found.get(name).unwrap_or(&zeros), case.gradients.get(name).unwrap_or(&zeros));
        let largest = want.iter().fold(0.0f64, |a, x| a.max(x.abs()));
        let half = if case.text.contains("bfloat16") { 4e-3 } else { 2e-5 };
        let off =
            got.iter().zip(want).position(|(g, w)| g.is_nan() != w.is_nan() || (g - w).abs() > half * largest + 1e-9);
        if let Some(at) = off {
            return Some(format!("{name}[{at}] gets {} instead of {}", got[at], want[at]));
        }
    }
    if ["no_grad", "detach()", ".data"].iter().any(|way| case.text.contains(way)) {
        // a value computed without a gradient is a separate tensor
        return None;
    }
    let unknown = found.keys().find(|name| !tensors.iter().any(|(n, _)| n == *name));
    unknown.map(|name| format!("`{name}` is none of the parameters"))
}

#[test]
fn what_a_factory_computes_gives_its_gradient_to_the_parameters() {
    let recorded: Recorded = serde_json::from_str(RECORDED).expect("the recording is valid JSON");
    let tensor = |r: &Recording| HostTensor::new(r.shape.clone(), Data::F32(r.values.clone())).expect("a tensor");
    let tensors: Vec<(String, HostTensor)> = recorded.tensors.iter().map(|(n, r)| (n.clone(), tensor(r))).collect();
    assert!(recorded.cases.len() > 120, "{} cases", recorded.cases.len());
    let wrong: Vec<String> = recorded
        .cases
        .iter()
        .filter_map(|case| fault(case, &recorded, &tensors).map(|why| format!("{}\n        -> {why}", case.text)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), recorded.cases.len(), wrong.join("\n"));
}

#[test]
fn what_is_not_followed_is_refused_by_name() {
    let tensors = [("table".to_string(), HostTensor::new([90, 100], Data::F32(vec![0.5; 9000])).expect("a tensor"))];
    let lost = |text: &str| {
        let text =
            format!("import torch\ndef make(table):\n    {text}\n    return lambda s, b, h, q, k: s + t[h, k]\n");
        let request = TraceRequest {
            args: tensors.iter().map(|(n, t)| (n.clone(), Arg::Tensor(t.clone()))).collect(),
            call: Call::Factory,
            ..TraceRequest::new(Source::new("factory.py", text), "make", ModKind::Score)
        };
        let traced = trace(&request);
        derive(&traced.result.expect("a mod"), |_| true).map(drop).map_err(|why| (why.code.to_string(), why.message))
    };
    for text in
        ["t = table * 2", "t = torch.zeros(9, 9)\n    t[:5] = table[:5, :9]", "t = table[:50] * 1\n    t[0] = 1.0"]
    {
        let (code, message) = lost(text).expect_err("no way back");
        assert_eq!(code, "gradient-lost", "{text}");
        assert!(message.contains("`table`"), "{message}");
    }
    // views are followed at any size, and a detached tensor has no gradient to lose
    for text in ["t = table[1:].t()", "t = table.detach() * 2", "with torch.no_grad():\n        t = table * 2"] {
        assert_eq!(lost(text), Ok(()), "{text}");
    }
}
