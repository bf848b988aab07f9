//! Masks and score mods of an installed attention-gym, traced unmodified and compared with PyTorch's results.
//!
//! Runs if `MASKLOOM_ATTN_GYM` names the folder of `attn_gym` and a Python with PyTorch is found; otherwise prints
//! skipped. `tests/data/make_gym_cases.py` computes the cases again in every run.

use crate::blocks::check_all;
use crate::scripts::python_with;
use base64::Engine;
use maskloom::analysis::block_mask::MaskShape;
use maskloom::base::tensor::Data;
use maskloom::base::{BlockSize, DType, HostTensor, Lengths, Source};
use maskloom::ir::cell::{Cell, eval};
use maskloom::ir::graph::{Mod, ModKind};
use maskloom::python::{Arg, Call, Limits, ModuleLoader, TraceRequest, trace};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Modules by their files under a folder.
pub(crate) struct Folder(pub PathBuf);

impl ModuleLoader for Folder {
    fn load(&self, dotted: &str) -> Option<Source> {
        let stem = self.0.join(dotted.replace('.', "/"));
        let files = [stem.with_extension("py"), stem.join("__init__.py")];
        let file = files.into_iter().find(|f| f.is_file())?;
        Some(Source::new(file.display().to_string(), std::fs::read_to_string(&file).ok()?))
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("base64 text");
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

fn dtype(name: &str) -> DType {
    use DType::*;
    let all = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64];
    all.into_iter().find(|d| d.torch_name() == name).expect("a dtype")
}

/// A keyword argument of a case; modules are found through the folder.
fn argument(value: &Value, folder: &Folder) -> Arg {
    match value {
        Value::Null => Arg::None,
        Value::Bool(b) => Arg::Bool(*b),
        Value::Number(n) => n.as_i64().map(Arg::Int).unwrap_or_else(|| Arg::Float(n.as_f64().expect("a number"))),
        Value::String(s) => Arg::Str(s.clone()),
        Value::Array(items) => Arg::List(items.iter().map(|v| argument(v, folder)).collect()),
        Value::Object(map) => {
            if let Some(tensor) = map.get("tensor") {
                let shape: Vec<usize> = serde_json::from_value(tensor["shape"].clone()).expect("a shape");
                let data =
                    Data::from_le_bytes(dtype(tensor["dtype"].as_str().expect("a dtype")), &bytes(&tensor["data"]));
                return Arg::Tensor(HostTensor::new(shape, data.expect("elements")).expect("a tensor"));
            }
            if let Some(items) = map.get("tuple").and_then(Value::as_array) {
                return Arg::Tuple(items.iter().map(|v| argument(v, folder)).collect());
            }
            let inner = &map["mod"];
            let source = folder.load(inner["module"].as_str().expect("a module")).expect("the module's file");
            let entry = inner["function"].as_str().expect("a name").to_string();
            let call = inner["factory"].as_bool().expect("a flag");
            Arg::Mod { source, entry, call, args: arguments(&inner["kwargs"], folder) }
        }
    }
}

fn arguments(value: &Value, folder: &Folder) -> Vec<(String, Arg)> {
    let map = value.as_object().cloned().unwrap_or_default();
    map.iter().map(|(name, value)| (name.clone(), argument(value, folder))).collect()
}

/// The traced mod of a case and the seconds it took, or the messages.
fn traced(case: &Value, folder: &Folder) -> Result<(Mod, f64), String> {
    let text = |field: &str| case[field].as_str().unwrap_or_default().to_string();
    let (source, entry, call) = match case["source"].as_str() {
        Some(source) => (Source::new("case.py", source), text("entry"), Call::Mod),
        None => {
            let call = if case["factory"] == true { Call::Factory } else { Call::Mod };
            (folder.load(&text("module")).ok_or("no such module")?, text("function"), call)
        }
    };
    let kind = if case["score"] == true { ModKind::Score } else { ModKind::Mask };
    let args = arguments(&case["kwargs"], folder);
    let request = TraceRequest {
        source,
        entry,
        kind,
        args,
        globals: Vec::new(),
        call,
        loader: folder,
        limits: Limits::default(),
    };
    let started = Instant::now();
    let traced = trace(&request);
    let seconds = started.elapsed().as_secs_f64();
    let messages = || traced.diagnostics.iter().map(|d| d.render()).collect::<Vec<_>>().join("\n");
    match &traced.result {
        Some(result) => Ok((result.clone(), seconds)),
        None => Err(messages()),
    }
}

/// How many cells differ, and the first of them.
fn differing(case: &Value, mod_: &Mod) -> (usize, String) {
    let size = |field: &str| case[field].as_i64().expect("a size");
    let (want, score) = (bytes(&case["want"]), case["score"] == true);
    let single = |data: &[u8], i: usize| f32::from_le_bytes(data[4 * i..4 * i + 4].try_into().expect("four bytes"));
    let input = if score { bytes(&case["input"]) } else { Vec::new() };
    let (mut flat, mut wrong, mut first) = (0, 0, String::new());
    for b in 0..size("B") {
        for h in 0..size("H") {
            for q_idx in 0..size("q_len") {
                for kv_idx in 0..size("kv_len") {
                    let given = if score { f64::from(single(&input, flat)) } else { 0.0 };
                    let got = eval(mod_, &Cell { b, h, q_idx, kv_idx, score: given });
                    let same = if score {
                        let (x, y) = (got.as_float(), f64::from(single(&want, flat)));
                        x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 2e-6 * (1.0 + y.abs())
                    } else {
                        got.as_bool() == (want[flat] != 0)
                    };
                    if !same {
                        wrong += 1;
                        if first.is_empty() {
                            first = format!("b {b} h {h} q {q_idx} kv {kv_idx}: {got}");
                        }
                    }
                    flat += 1;
                }
            }
        }
    }
    (wrong, first)
}

/// Every block of a case's mask, at three block sizes, against its cells.
fn all_blocks(name: &str, case: &Value, mod_: &Mod) {
    let size = |field: &str| case[field].as_u64().expect("a size") as usize;
    let lengths = Lengths::new(size("q_len"), size("kv_len")).expect("lengths");
    let shape = MaskShape { batch: size("B"), heads: size("H"), lengths };
    for (q, kv) in [(16, 16), (7, 13), (32, 5)] {
        check_all(name, mod_, shape, BlockSize { q, kv });
    }
}

/// PyTorch's results for the package's masks and score mods, at parameters drawn by a seed.
fn cases(python: &Path, package: &Path, seed: u64) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/make_gym_cases.py");
    let made = Command::new(python)
        .arg(script)
        .arg(seed.to_string())
        .env("PYTHONPATH", package)
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
    print!("{said}");
    serde_json::from_slice(&made.stdout).expect("a list of cases")
}

#[test]
fn attention_gym_traces_unmodified() {
    let Ok(package) = std::env::var("MASKLOOM_ATTN_GYM") else {
        maskloom_testing::needs::missing("gym", "MASKLOOM_ATTN_GYM names no folder with the attn_gym package");
        return;
    };
    let Some(python) = python_with(&["torch"]) else { return };
    let folder = Folder(package.into());
    let cases = cases(&python.path, &folder.0, 47);
    assert!(cases.len() >= 28, "{} cases", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap_or_default();
        match traced(case, &folder) {
            Err(messages) => failures.push(format!("{name}: not traced\n{messages}")),
            Ok((mod_, seconds)) => {
                let (wrong, first) = differing(case, &mod_);
                println!("{name}: {} nodes, {:.2} ms", mod_.graph.nodes().len(), seconds * 1e3);
                if mod_.kind == ModKind::Mask {
                    all_blocks(name, case, &mod_);
                }
                if wrong > 0 {
                    failures.push(format!("{name}: {wrong} cells differ, first {first}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}
