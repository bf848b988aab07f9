//! `maskloom bench`: how fast Maskloom itself is. Every row is measured here and now.
//!
//! Invariant: a row is the median of repeated runs with its spread; nothing is recorded or estimated. Must not know the
//! window: the canvas is measured by the raster that draws it.

use super::out::{self, Failure};
use super::table::{self, Table};
use super::work::{Where, Worker};
use super::{race, workloads};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::analysis::examples;
use crate::analysis::raster::Raster;
use crate::backends::stats;
use crate::base::{BlockSize, Control, Lengths, Source};
use crate::document::compile::{BuiltIn, Compiler};
use crate::document::library;
use crate::language::graph::Mod;
use crate::language::outline::outline;
use crate::problem::result::Timing;
use crate::service::machine;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Measure Maskloom itself
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to measure
    what: What,
    /// Lengths in tokens, for blocks and canvas
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    lengths: Vec<usize>,
    /// Only rows whose name contains this
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
    #[command(flatten)]
    at: Where,
    /// Timing rounds of cpu and kernels
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Time for each row of blocks, canvas and language, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300)]
    budget: u64,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Finding block masks
    Blocks,
    /// Drawing pictures
    Canvas,
    /// The kernels on the GPU
    Kernels,
    /// The backends on the cpu
    Cpu,
    /// From text to graph
    Language,
}

/// Runs the command.
pub fn bench(args: Args) -> Result<(), Failure> {
    let (rows, right) = match args.what {
        What::Blocks => (blocks(&args)?, true),
        What::Canvas => (canvas(&args)?, true),
        What::Language => (language(&args), true),
        What::Cpu => races(&args, workloads::cpu(), true)?,
        What::Kernels => races(&args, workloads::kernels(), false)?,
    };
    if args.json {
        out::json(&object(rows))?
    } else {
        out::text(&render(&rows))?
    }
    if right { Ok(()) } else { Err(Failure::Told(Vec::new())) }
}

/// A benchmark's JSON: environment and rows.
pub fn object(rows: Vec<Value>) -> Value {
    json!({ "environment": machine::environment(), "rows": rows })
}

/// Runs again and again for about the budget, at least three times after one untimed run.
fn measure<T>(budget_ms: u64, mut work: impl FnMut() -> T) -> Timing {
    let once = Instant::now();
    std::hint::black_box(work());
    let enough = once.elapsed() > Duration::from_millis(budget_ms);
    let (start, mut samples) = (Instant::now(), Vec::new());
    while samples.len() < 3 || (!enough && start.elapsed() < Duration::from_millis(budget_ms) && samples.len() < 1000) {
        let one = Instant::now();
        std::hint::black_box(work());
        samples.push(one.elapsed().as_secs_f64() * 1e3);
    }
    stats::timing(samples).unwrap_or_default()
}

fn row(name: &str, timing: &Timing, mut parameters: Value) -> Value {
    parameters["name"] = json!(name);
    parameters["median_ms"] = json!(timing.median_ms);
    parameters["spread"] = json!(timing.spread);
    parameters["samples"] = json!(timing.samples_ms.len());
    parameters
}

/// The example masks at each length.
fn examples_at(args: &Args, usual: &[usize]) -> Result<Vec<(Lengths, &'static str, Mod)>, Failure> {
    let lengths = if args.lengths.is_empty() { usual } else { &args.lengths };
    let mut all = Vec::new();
    for n in lengths {
        let lengths = Lengths::new(*n, *n)?;
        let rows = examples::rows(lengths).into_iter().filter(|(name, _)| name.contains(args.only.as_str()));
        all.extend(rows.map(|(name, mask)| (lengths, name, mask)));
    }
    Ok(all)
}

fn blocks(args: &Args) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for (lengths, name, mask) in examples_at(args, &[16_384, 131_072])? {
        let build =
            || BlockMask::build(Some(&mask), MaskShape::broadcast(lengths), BlockSize::DEFAULT, &Control::new());
        let found = build()?;
        let timing = measure(args.budget, build);
        let (full, partial) = listed(&found);
        rows.push(row(name, &timing, json!({ "tokens": lengths.q_len, "block_size": 128, "full": full, "partial": partial, "memory_bytes": found.memory() })));
    }
    Ok(rows)
}

fn listed(mask: &BlockMask) -> (usize, usize) {
    use crate::analysis::block_mask::BlockKind;
    let runs = (0..mask.grid().0).flat_map(|row| mask.runs(0, 0, row).collect::<Vec<_>>());
    runs.fold((0, 0), |(full, partial), run| match run.kind {
        BlockKind::Full => (full + run.end - run.start, partial),
        BlockKind::Partial => (full, partial + run.end - run.start),
    })
}

fn canvas(args: &Args) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for (lengths, name, mask) in examples_at(args, &[8_192, 1 << 20])? {
        let raster = Raster::new(Arc::new(mask));
        let n = lengths.q_len;
        let middle = n / 2;
        for (view, range) in [("whole", 0..n), ("zoomed", middle..(middle + 2048).min(n))] {
            let (h, w) = (range.len().min(512), range.len().min(512));
            let draw = || raster.picture(0, 0, range.clone(), range.clone(), h, w, &Control::new());
            let exact = draw().exact;
            let timing = measure(args.budget, draw);
            rows.push(row(name, &timing, json!({ "tokens": n, "view": view, "pixels": [h, w], "exact": exact })));
        }
    }
    Ok(rows)
}

fn language(args: &Args) -> Vec<Value> {
    let mut rows = Vec::new();
    for pattern in library::patterns().filter(|p| p.name.contains(args.only.as_str())) {
        let source: Source = pattern.source();
        let timing = measure(args.budget / 10, || outline(&source));
        rows.push(row(pattern.name, &timing, json!({ "step": "outline", "bytes": pattern.text.len() })));
    }
    for preset in library::presets().iter().filter(|p| p.name.contains(args.only.as_str())) {
        let Ok(document) = preset.document() else { continue };
        let compile = || Compiler::default().compile(&document, &BuiltIn);
        let compiled = compile();
        let nodes =
            [&compiled.mask, &compiled.score].into_iter().flatten().map(|m| m.graph.nodes().len()).sum::<usize>();
        let timing = measure(args.budget / 10, compile);
        rows.push(row(
            preset.name,
            &timing,
            json!({ "step": "compile", "nodes": nodes, "errors": compiled.has_errors() }),
        ));
    }
    rows
}

/// Races of workloads; whether all were right.
fn races(args: &Args, workloads: Vec<workloads::Workload>, on_cpu: bool) -> Result<(Vec<Value>, bool), Failure> {
    let mut worker = Worker::connect(&args.at.target)?;
    let (mut rows, mut right) = (Vec::new(), true);
    for workload in workloads.into_iter().filter(|w| w.name.contains(args.only.as_str())) {
        let mut request = workload.request()?;
        request.device = match (args.at.device, on_cpu) {
            (Some(device), _) => device,
            (None, true) => crate::base::Device::Cpu,
            (None, false) => workloads::gpu(&worker)?,
        };
        request.rounds = args.rounds.max(1);
        request.reference_rows = 128;
        let (report, _) = worker.run(request.clone())?;
        right &= race::succeeded(&report);
        rows.extend(race::rows(workload.name, &request.problem, &report));
    }
    Ok((rows, right))
}

fn render(rows: &[Value]) -> String {
    const FIRST: [&str; 1] = ["name"];
    const LAST: [&str; 3] = ["median_ms", "spread", "samples"];
    let Some(Value::Object(any)) = rows.first() else { return "no rows\n".into() };
    let middle = any.keys().map(String::as_str).filter(|k| !FIRST.contains(k) && !LAST.contains(k));
    let columns: Vec<&str> = FIRST.into_iter().chain(middle).chain(["median_ms", "spread"]).collect();
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(columns.iter().map(|c| cell(c, &row[*c])));
    }
    table.render()
}

fn cell(column: &str, value: &Value) -> String {
    match (column, value) {
        ("spread" | "density", Value::Number(n)) => table::percent(n.as_f64().unwrap_or(f64::NAN)),
        ("max_abs_error" | "allowed", Value::Number(n)) => table::error(n.as_f64().unwrap_or(f64::NAN)),
        (_, Value::Number(n)) if n.is_f64() => table::digits(n.as_f64().unwrap_or(f64::NAN)),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Null) => String::new(),
        (_, other) => other.to_string(),
    }
}
