//! Mask mods of mixed dtypes compared, cell by cell, with PyTorch's masks (tests/data/torch_masks.json, which
//! make_torch_masks.py writes).

use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::passes::simplify::simplify;
use crate::ir::tiles::Program;
use crate::python::trace::tests::*;
use half::{bf16, f16};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Recorded {
    batch: usize,
    heads: usize,
    q_len: usize,
    kv_len: usize,
    tensors: BTreeMap<String, Recording>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Recording {
    dtype: String,
    shape: Vec<usize>,
    values: Vec<serde_json::Value>,
}

/// An expression, and the cells it keeps: row-major, the first cell in the lowest bit.
#[derive(Deserialize)]
struct Case {
    text: String,
    kept: String,
}

impl Recording {
    fn tensor(&self) -> HostTensor {
        let int = |v: &serde_json::Value| v.as_i64().expect("an int");
        let float = |v: &serde_json::Value| v.as_f64().expect("a float");
        let v = self.values.iter();
        let data = match self.dtype.as_str() {
            "bool" => Data::Bool(v.map(|v| u8::from(v.as_bool().expect("a bool"))).collect()),
            "uint8" => Data::U8(v.map(|v| int(v) as u8).collect()),
            "int8" => Data::I8(v.map(|v| int(v) as i8).collect()),
            "int16" => Data::I16(v.map(|v| int(v) as i16).collect()),
            "int32" => Data::I32(v.map(|v| int(v) as i32).collect()),
            "int64" => Data::I64(v.map(int).collect()),
            "float16" => Data::F16(v.map(|v| f16::from_f64(float(v))).collect()),
            "bfloat16" => Data::BF16(v.map(|v| bf16::from_f64(float(v))).collect()),
            "float32" => Data::F32(v.map(|v| float(v) as f32).collect()),
            "float64" => Data::F64(v.map(float).collect()),
            other => panic!("{other} is no dtype"),
        };
        HostTensor::new(self.shape.clone(), data).expect("as many values as the shape says")
    }
}

impl Case {
    fn keeps(&self, at: usize) -> bool {
        let digit = self.kept.len().checked_sub(1 + at / 4).map_or(0, |i| self.kept.as_bytes()[i]);
        (digit as char).to_digit(16).unwrap_or(0) >> (at % 4) & 1 == 1
    }
}

/// Traced and simplified, interpreted and in tiles: equal, or refused in words.
#[test]
fn masks_of_mixed_dtypes_keep_the_cells_that_pytorch_keeps() {
    let recorded: Recorded =
        serde_json::from_str(include_str!("../../../../tests/data/torch_masks.json")).expect("json");
    let tensors: Vec<(String, HostTensor)> = recorded.tensors.iter().map(|(n, t)| (n.clone(), t.tensor())).collect();
    let (mut wrong, mut refused) = (Vec::new(), Vec::new());
    for case in &recorded.cases {
        let text = format!("import torch\ndef mod(b, h, q, k):\n    return {}\n", case.text);
        let asked = TraceRequest { globals: tensors.clone(), ..request(&text, ModKind::Mask) };
        let traced = trace(&asked);
        let Some(given) = traced.result else {
            refused.push(format!("{}: {}", case.text, traced.diagnostics.first().map_or("", |d| d.message.as_str())));
            continue;
        };
        for (how, mod_) in [("traced", &given), ("simplified", &simplify(&given))] {
            let program = Program::new(mod_);
            let area = recorded.q_len * recorded.kv_len;
            let mut tile = vec![0; area];
            let differs = (0..recorded.batch * recorded.heads).find_map(|head| {
                let (b, h) = (head / recorded.heads, head % recorded.heads);
                program.mask_tile(b, h, 0..recorded.q_len, 0..recorded.kv_len, &mut tile);
                (0..area).find_map(|at| {
                    let (q, k) = (at / recorded.kv_len, at % recorded.kv_len);
                    let cell = Cell { b: b as i64, h: h as i64, q_idx: q as i64, kv_idx: k as i64, score: 0.0 };
                    let (one, want) = (cell::eval(mod_, &cell).as_bool(), case.keeps(head * area + at));
                    let same = one == want && tile[at] == u8::from(want);
                    (!same).then(|| format!("at {b}, {h}, {q}, {k}: {one}, tile {}, PyTorch {want}", tile[at]))
                })
            });
            if let Some(differs) = differs {
                wrong.push(format!("{how} {} {differs}", case.text));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recorded.cases.len(), wrong.join("\n"));
    assert!(refused.len() * 50 <= recorded.cases.len(), "{} refused:\n{}", refused.len(), refused.join("\n"));
}
