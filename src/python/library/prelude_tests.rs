//! The shipped Python compared with PyTorch's results (tests/data/torch_prelude.json), at setup and inside mods.

use super::torch_tests::{Case, compare, run};
use crate::base::{Diagnostic, Source};
use crate::ir::cell::{self, Cell};
use crate::ir::graph::{Mod, ModKind};
use crate::python::trace::{TraceRequest, trace};
use base64::Engine;
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    cells: [i64; 4],
    scored: [i64; 4],
    head: String,
    mods: Vec<Reported>,
    setup: Vec<Case>,
}

/// A text with a mod, and what PyTorch makes of it.
#[derive(Deserialize)]
struct Reported {
    kind: String,
    text: String,
    want: Want,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Want {
    /// A mask's cells, a row of the last dimension a string.
    Rows(Vec<String>),
    /// A score's values in double precision.
    Score(String),
    Error(String),
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../../tests/data/torch_prelude.json")).expect("the fixture parses")
}

fn cells([b, h, q, k]: [i64; 4]) -> impl Iterator<Item = Cell> {
    (0..b * h * q * k).map(move |at| Cell {
        b: at / (h * q * k),
        h: at / (q * k) % h,
        q_idx: at / k % q,
        kv_idx: at % k,
        score: 0.0,
    })
}

fn traced(head: &str, reported: &Reported) -> Result<Mod, String> {
    let kind = if reported.kind == "score" { ModKind::Score } else { ModKind::Mask };
    let text = format!("{head}{}", reported.text);
    let traced = trace(&TraceRequest::new(Source::new("mod.py", text), "mod", kind));
    let said = traced.diagnostics.iter().map(Diagnostic::render).collect::<Vec<_>>().join("\n");
    assert!(!said.contains("panicked"));
    for diagnostic in &traced.diagnostics {
        let main = diagnostic.labels.iter().all(|l| l.span.source.0 == 0);
        assert!(main, "a label points into what ships:\n{said}");
    }
    traced.result.ok_or(said)
}

fn holds(fixture: &Fixture, reported: &Reported) -> Result<(), String> {
    let mod_ = match (traced(&fixture.head, reported), &reported.want) {
        (Err(_), Want::Error(_)) => return Ok(()),
        (Ok(_), Want::Error(error)) => return Err(format!("PyTorch raises {error}")),
        (Err(said), _) => return Err(said),
        (Ok(mod_), _) => mod_,
    };
    assert!(mod_.graph.nodes().iter().all(|n| n.span.is_none_or(|s| s.source.0 == 0)), "{}", reported.text);
    match &reported.want {
        Want::Rows(rows) => {
            let wanted: Vec<bool> = rows.concat().bytes().map(|c| c == b'1').collect();
            let other = cells(fixture.cells).zip(wanted).filter(|(c, w)| cell::eval(&mod_, c).as_bool() != *w);
            let other: Vec<Cell> = other.map(|(c, _)| c).collect();
            if other.is_empty() { Ok(()) } else { Err(format!("{} cells differ, first {:?}", other.len(), other[0])) }
        }
        Want::Score(data) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(data).map_err(|e| e.to_string())?;
            let wanted = bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes")));
            for (mut cell, wanted) in cells(fixture.scored).zip(wanted) {
                let at = (cell.b * 7 + cell.h * 5 + cell.q_idx * 3 + cell.kv_idx * 11) % 41;
                cell.score = at as f64 / 4.0 - 5.0;
                let got = cell::eval(&mod_, &cell).as_float();
                let near = got == wanted || (got - wanted).abs() <= 1e-6 * wanted.abs().max(1e-3);
                if !(near || got.is_nan() && wanted.is_nan()) {
                    return Err(format!("{got} instead of {wanted} at {cell:?}"));
                }
            }
            Ok(())
        }
        Want::Error(_) => Ok(()),
    }
}

#[test]
fn functions_inside_mods_agree_with_pytorch() {
    let fixture = fixture();
    assert!(fixture.mods.len() > 150);
    let failed = fixture.mods.iter().filter_map(|reported| {
        let why = holds(&fixture, reported).err()?;
        Some(format!("{}\n    {why}", reported.text.trim()))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{} of {} differ:\n{}", failed.len(), fixture.mods.len(), failed.join("\n"));
}

#[test]
fn functions_at_setup_agree_with_pytorch() {
    let cases = fixture().setup;
    let failed = cases.iter().filter_map(|case| {
        let why = compare(&run(&case.code), &case.want, case.exact).err()?;
        Some(format!("{}\n    {why}", case.code))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{} of {} differ:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
