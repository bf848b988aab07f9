//! Every pattern of the library compared with its formula, cell by cell at small lengths.
//!
//! Invariant: the formulas are written independently from papers and tables, in plain arithmetic, never from the
//! pattern's text; a pattern without a formula fails. Only compiled for tests.

mod grids;
mod masks;
mod scores;

use super::compile::{BuiltIn, compile};
use super::library;
use super::model::*;
use super::testing::{empty, layer, score};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::ModKind;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A mask, and whether it keeps (b, h, q_idx, kv_idx).
struct MaskCase {
    name: &'static str,
    /// Query axis, and the key axis after `->`.
    axes: &'static str,
    args: Value,
    keeps: Box<dyn Fn(i64, i64, i64, i64) -> bool>,
}

/// A score mod, and its result at (score, b, h, q_idx, kv_idx).
struct ScoreCase {
    name: &'static str,
    axes: &'static str,
    args: Value,
    gives: Box<dyn Fn(f64, i64, i64, i64, i64) -> f64>,
}

fn mask(
    name: &'static str,
    axes: &'static str,
    args: Value,
    keeps: impl Fn(i64, i64, i64, i64) -> bool + 'static,
) -> MaskCase {
    MaskCase { name, axes, args, keeps: Box::new(keeps) }
}

fn score_case(
    name: &'static str,
    axes: &'static str,
    args: Value,
    gives: impl Fn(f64, i64, i64, i64, i64) -> f64 + 'static,
) -> ScoreCase {
    ScoreCase { name, axes, args, gives: Box::new(gives) }
}

/// An argument that is a tensor of ints or floats.
fn ints(shape: &[usize], values: &[i64]) -> Value {
    let tensor = HostTensor::new(shape, Data::I64(values.to_vec())).expect("a tensor");
    json!({ "tensor": tensor })
}

fn floats(shape: &[usize], values: &[f32]) -> Value {
    let tensor = HostTensor::new(shape, Data::F32(values.to_vec())).expect("a tensor");
    json!({ "tensor": tensor })
}

const BATCH: i64 = 2;
const HEADS: i64 = 4;

fn document(axes: &str) -> Document {
    let (q, kv) = axes.split_once(" -> ").map_or((axes, None), |(q, kv)| (q, Some(kv)));
    let mut document = empty(q);
    document.axes.kv = kv.map(|kv| Axis::parse(kv).expect("axis"));
    document.settings.batch = BATCH as usize;
    document.settings.heads = HEADS as usize;
    document
}

fn code(name: &str, args: &Value) -> CodeRef {
    let args: BTreeMap<String, ArgValue> = serde_json::from_value(args.clone()).expect("arguments");
    CodeRef { name: name.into(), args }
}

fn cells(document: &Document) -> Vec<Cell> {
    let lengths = document.axes.lengths().expect("lengths");
    let mut cells = Vec::new();
    for b in 0..BATCH {
        for h in 0..HEADS {
            for q_idx in 0..lengths.q_len as i64 {
                let row = (0..lengths.kv_len as i64).map(|kv_idx| Cell { b, h, q_idx, kv_idx, score: 0.0 });
                cells.extend(row);
            }
        }
    }
    cells
}

fn reported(diagnostics: &[&Diagnostic]) -> String {
    diagnostics.iter().map(|d| d.render()).collect::<Vec<_>>().join("\n")
}

fn check_mask(case: &MaskCase) -> Result<(), String> {
    let mut document = document(case.axes);
    document.layers.push(layer(1, MaskContent::Pattern(code(case.name, &case.args))));
    let compiled = compile(&document, &BuiltIn);
    let Some(mask) = &compiled.mask else { return Err(reported(&compiled.all_diagnostics().collect::<Vec<_>>())) };
    let mut kept = 0;
    let all = cells(&document);
    for cell in &all {
        let (found, wanted) = (eval(mask, cell).as_bool(), (case.keeps)(cell.b, cell.h, cell.q_idx, cell.kv_idx));
        kept += usize::from(wanted);
        if found != wanted {
            return Err(format!("{} {}: {cell:?} is {found}, not {wanted}", case.name, case.args));
        }
    }
    // a case that keeps all or nothing would show little
    if kept == 0 || kept == all.len() { Err(format!("{}: the case says nothing", case.name)) } else { Ok(()) }
}

fn check_score(case: &ScoreCase) -> Result<(), String> {
    let mut document = document(case.axes);
    document.scores.push(score(1, ScoreContent::Pattern(code(case.name, &case.args))));
    let compiled = compile(&document, &BuiltIn);
    let Some(score) = &compiled.score else { return Err(reported(&compiled.all_diagnostics().collect::<Vec<_>>())) };
    for (at, mut cell) in cells(&document).into_iter().enumerate() {
        cell.score = ((at * 37) % 101) as f64 * 0.13 - 6.0;
        let found = eval(score, &cell).as_float();
        let wanted = (case.gives)(cell.score, cell.b, cell.h, cell.q_idx, cell.kv_idx);
        let near = (found - wanted).abs() <= 2e-5 * (1.0 + wanted.abs());
        if !(near || found == wanted || (found.is_nan() && wanted.is_nan())) {
            return Err(format!("{} {}: {cell:?} gives {found}, not {wanted}", case.name, case.args));
        }
    }
    Ok(())
}

fn names(kind: ModKind) -> BTreeSet<&'static str> {
    library::patterns().filter(|p| p.kind == kind).map(|p| p.name).collect()
}

#[test]
fn every_mask_keeps_what_its_formula_says() {
    let cases: Vec<MaskCase> = masks::cases().into_iter().chain(grids::cases()).collect();
    let failed: Vec<String> = cases.iter().filter_map(|c| check_mask(c).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert_eq!(cases.iter().map(|c| c.name).collect::<BTreeSet<_>>(), names(ModKind::Mask));
}

#[test]
fn every_score_mod_gives_what_its_formula_says() {
    let cases = scores::cases();
    let failed: Vec<String> = cases.iter().filter_map(|c| check_score(c).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert_eq!(cases.iter().map(|c| c.name).collect::<BTreeSet<_>>(), names(ModKind::Score));
}
