//! `maskloom blocks`: counts of a mask's blocks, and PyTorch's BlockMask arrays as a file.
//!
//! Invariant: exact at any length; only the arrays need memory for every block. Must not know workers.

use super::check;
use super::ending;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::table::{self, Cell, Table};
use crate::analysis::block_mask::{BlockMask, Stats, TorchBlockMask};
use crate::base::Diagnostic;
use crate::document::from_document;
use crate::problem::Problem;
use crate::worker::{files, tensors};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// Count a mask's blocks and write PyTorch's BlockMask arrays
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Write kv_num_blocks, kv_indices, ... as int32 tensors (F.safetensors) or as lists (F.json)
    #[arg(long, value_name = "F", value_parser = super::ending::one_of(&["safetensors", "json"]))]
    out: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn blocks(args: Args) -> Result<(), Failure> {
    let opened = opened::open(&args.preset, &args.code, &args.overrides)?;
    let compiled = opened.compile()?;
    let problem = from_document(&opened.document, &compiled)?;
    let start = Instant::now();
    let mask = check::block_mask(&problem)?;
    let build_ms = start.elapsed().as_secs_f64() * 1e3;
    let stats = check::counted(&mask);
    if let Some(path) = &args.out {
        let arrays = mask.torch_arrays()?;
        let as_json = ending::of(path).is_some_and(|e| e == "json");
        let bytes = if as_json { json_arrays(&arrays, &mask)? } else { safetensors(&arrays)? };
        files::save(path, &bytes)?;
    }
    let name = &opened.document.name;
    if args.json {
        return out::json(&object(name, &problem, &mask, &stats, build_ms));
    }
    out::text(&render(name, &problem, &mask, &stats, build_ms))
}

fn safetensors(arrays: &TorchBlockMask) -> Result<Vec<u8>, Diagnostic> {
    tensors::write(arrays.fields().into_iter().map(|(name, tensor)| (name.to_string(), tensor)))
}

/// Nested lists, as `tolist()` returns them.
fn json_arrays(arrays: &TorchBlockMask, mask: &BlockMask) -> Result<Vec<u8>, Diagnostic> {
    fn nested(shape: &[usize], values: &[i64]) -> Value {
        match shape {
            [] => json!(values.first()),
            [_] => json!(values),
            [n, rest @ ..] => {
                values.chunks((values.len() / (*n).max(1)).max(1)).map(|part| nested(rest, part)).collect()
            }
        }
    }
    let mut object = serde_json::Map::new();
    object.insert("BLOCK_SIZE".into(), json!([mask.block_size().q, mask.block_size().kv]));
    for (name, tensor) in arrays.fields() {
        object.insert(name.into(), nested(tensor.shape(), &tensor.to_i64_vec()));
    }
    serde_json::to_vec(&object).map_err(|e| Diagnostic::error("json-output", e.to_string()))
}

fn object(name: &str, problem: &Problem, mask: &BlockMask, s: &Stats, build_ms: f64) -> Value {
    json!({
        "name": name, "problem": super::race::problem(problem.spec()), "block_size": [mask.block_size().q, mask.block_size().kv],
        "grid": [mask.grid().0, mask.grid().1], "full": s.full, "partial": s.partial, "empty": s.empty,
        "sparsity": s.sparsity, "padded_sparsity": s.padded_sparsity(), "density": s.density, "computed": s.computed, "wasted": s.wasted,
        "kept_cells": s.kept_cells as f64, "empty_rows": s.empty_rows, "load": s.load,
        "memory_bytes": mask.memory(), "build_ms": build_ms,
    })
}

fn render(name: &str, problem: &Problem, mask: &BlockMask, s: &Stats, build_ms: f64) -> String {
    let (rows, cols) = mask.grid();
    let shape = mask.shape();
    let mut table = Table::default();
    let mut row = |id: &str, value: Cell| table.row([Cell::text(id), value]);
    let told = |id: &'static str, figures: Vec<(&'static str, String)>| {
        let figures: Vec<_> = figures.into_iter().map(|(name, value)| (name, value.into())).collect();
        Cell::told(move |said| said.with(id, &figures))
    };
    row("blocks-tokens", format!("{} x {}", problem.q_len, problem.kv_len).into());
    let grid = [("rows", rows), ("columns", cols), ("batch", shape.batch), ("heads", shape.heads)];
    let size = ("size", mask.block_size().to_string());
    row(
        "blocks-grid",
        told("blocks-grid-is", grid.map(|(name, n)| (name, n.to_string())).into_iter().chain([size]).collect()),
    );
    row("blocks-full", s.full.to_string().into());
    row("blocks-partial", s.partial.to_string().into());
    row("blocks-empty", s.empty.to_string().into());
    row(
        "blocks-sparsity",
        Cell::told(|said| said.with("blocks-sparsity-is", &[("sparsity", said.phrase(&s.sparsity_words()).into())])),
    );
    row("blocks-kept", format!("{} ({})", s.kept_cells, table::percent(s.density)).into());
    let computed = vec![("share", table::percent(s.computed)), ("masked", table::percent(s.wasted))];
    row("blocks-computed", told("blocks-computed-is", computed));
    row("blocks-rows", s.empty_rows.to_string().into());
    let (least, most) = (s.load.min.to_string(), s.load.max.to_string());
    let load = vec![("min", least), ("max", most), ("mean", format!("{:.1}", s.load.mean))];
    row("blocks-load", told("blocks-load-is", load));
    let stored = vec![("size", table::bytes(mask.memory() as u64)), ("time", table::milliseconds(build_ms))];
    row("blocks-stored", told("blocks-stored-is", stored));
    format!("{name}\n{}", table.render())
}
