//! `maskloom bench`: the speed of Maskloom itself. Every row is measured in this run; each benchmark has its own file.
//!
//! Invariant: a row is the median of repeated runs with its spread; nothing is recorded or estimated. Must not know the
//! window.

mod backward;
mod blocks;
mod canvas;
mod chart;
mod dense;
mod edits;
mod first_output;
mod gym;
mod kernels;
mod lab;
mod language;
mod large;
mod parallel;
mod peer;
mod predict;
mod raced;
mod races;
mod recorded;
mod saves;
mod sgemm;
mod tables;

use super::arguments::Pass;
use super::out::{self, Failure};
use super::table::{self, Table};
use super::work::Where;
use super::workloads;
use super::{figures, race};
use crate::analysis::examples;
use crate::backends::stats;
use crate::base::{BackendName, Diagnostic, Lengths};
use crate::ir::graph::Mod;
use crate::problem::result::Timing;
use crate::worker::files;
use crate::worker::machine;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Measure Maskloom itself
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Benchmark to run
    what: What,
    /// Lengths in tokens, for blocks and canvas
    #[arg(long, value_delimiter = ',', value_name = "N,...", value_parser = super::arguments::some_tokens)]
    lengths: Vec<usize>,
    /// Only rows whose name contains this
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
    /// For kernels: skip rows whose name contains one of these
    #[arg(long, value_delimiter = ',', value_name = "WORD,...")]
    without: Vec<String>,
    #[command(flatten)]
    at: Where,
    /// Timing rounds of cpu and kernels
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Backends for cpu and kernels; the default is all of them, without those of PyTorch for cpu
    #[arg(long, value_delimiter = ',', value_parser = super::arguments::backend)]
    backend: Vec<BackendName>,
    /// Python of the PyTorch environment for torch:* in kernels; cpu then races PyTorch's scaled_dot_product_attention too
    #[arg(long, value_name = "PYTHON")]
    python: Option<String>,
    /// Time for each row of blocks, canvas and language, in milliseconds; a row of the window's frames takes 8 s, or less with a smaller budget
    #[arg(long, value_name = "MS", default_value_t = 300)]
    budget: u64,
    /// For recorded: the run to print
    #[arg(long, value_name = "F.json")]
    from: Option<std::path::PathBuf>,
    /// For recorded: draw the ratios to PyTorch as a chart into this file; without --from, of the shipped runs with most of PyTorch
    #[arg(long, value_name = "F.svg|pdf", value_parser = crate::cli::ending::one_of(&["svg", "pdf"]))]
    chart: Option<std::path::PathBuf>,
    /// For kernels: file of the run, complete after every workload, so that an interrupted run leaves its results
    #[arg(long, value_name = "F.json", value_parser = crate::cli::ending::one_of(&["json"]))]
    out: Option<std::path::PathBuf>,
    /// For kernels: passes to run; backward has its own workloads
    #[arg(long, value_enum, default_value = "forward")]
    pass: Pass,
    /// For cpu: the backward pass, compared with PyTorch's scaled_dot_product_attention
    #[arg(long)]
    backward: bool,
    /// For predict: the card, as its driver names it; the default is NVIDIA H200
    #[arg(long, value_name = "NAME")]
    card: Option<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Finding block masks
    Blocks,
    /// The window's frames, and pictures
    Canvas,
    /// The kernels on the GPU
    Kernels,
    /// From an edited mod to its first output on the GPU
    Edits,
    /// The backends on the CPU
    Cpu,
    /// From text to graph, and to dense masks, compared with PyTorch's
    Language,
    /// Block masses of captured heads, and the measures after a stroke
    Lab,
    /// Plans of attention over 4 and 8 ranks: their time, their balance and the keys that travel, by simulation
    Parallel,
    /// Run nothing: count the work of the backward kernels and predict their time on a card; --from adds measured times
    Predict,
    /// Run nothing: print the run in the --from file as the table of the documentation
    Recorded,
}

/// The requested measurement of the window's frames, which the command line cannot open itself.
#[derive(Debug)]
pub struct Frames {
    args: Args,
}

/// The request, if the command measures frames; otherwise the arguments.
pub(super) fn frames(args: Args) -> Result<Frames, Args> {
    if args.what == What::Canvas { Ok(Frames { args }) } else { Err(args) }
}

impl Frames {
    /// Lengths in tokens, the longest first.
    pub fn lengths(&self) -> Vec<usize> {
        if self.args.lengths.is_empty() { vec![1 << 20, 131_072] } else { self.args.lengths.clone() }
    }

    /// Part of the names of the masks.
    pub fn only(&self) -> &str {
        &self.args.only
    }

    /// Seconds for each row: frames come at the rate of a screen, so each row needs enough of them. A budget below the usual shortens them.
    pub fn seconds(&self) -> f64 {
        let (budget, usual) = (self.args.budget as f64 / 1e3, 0.3);
        budget.max(8.0 * (budget / usual).min(1.0)).max(1.0)
    }

    /// Prints the rows of the frames, then those of the canvas's pictures.
    pub fn tell(self, mut rows: Vec<Value>) -> ExitCode {
        let reported = canvas::rows(&self.args).and_then(|pictures| {
            rows.extend(pictures);
            tell(&self.args, rows)
        });
        super::exit(reported)
    }
}

/// Runs the command.
pub(super) fn bench(args: Args) -> Result<(), Failure> {
    args.out.iter().chain(&args.chart).try_for_each(|path| files::can_save(path))?;
    let (rows, right) = match args.what {
        What::Blocks => (blocks::rows(&args)?, true),
        What::Canvas => (canvas::rows(&args)?, true),
        What::Language => language::rows(&args),
        What::Lab => (lab::rows(&args)?, true),
        What::Parallel => parallel::rows(&args)?,
        What::Cpu => {
            let (rows, right) =
                if args.backward { backward::rows(&args)? } else { races::rows(&args, workloads::cpu())? };
            if args.json {
                out::json(&object(rows))?;
            } else {
                out::text(&raced::render(&rows))?;
            }
            return if right { Ok(()) } else { Err(Failure::Reported(Vec::new())) };
        }
        What::Edits => first_output::rows(&args)?,
        What::Recorded => return printed(&args),
        What::Predict => {
            let right = predict::run(&args)?;
            return if right { Ok(()) } else { Err(Failure::Reported(Vec::new())) };
        }
        What::Kernels => {
            let right = kernels::run(&args)?;
            return if right { Ok(()) } else { Err(Failure::Reported(Vec::new())) };
        }
    };
    tell(&args, rows)?;
    if right { Ok(()) } else { Err(Failure::Reported(Vec::new())) }
}

/// A recorded run: its chart into a file, or its table.
fn printed(args: &Args) -> Result<(), Failure> {
    match (&args.chart, &args.from) {
        (Some(chart), from) => {
            let drawn = chart::of(from.as_deref(), &args.only)?;
            figures::write(&drawn, chart)?;
            if args.json { out::json(&json!({ "chart": out::path(chart) })) } else { Ok(()) }
        }
        (None, Some(from)) => out::text(&recorded::table(from)?),
        (None, None) => Err(Diagnostic::error("no-run", "recorded needs a file to print")
            .hint("add --from docs/measurements/NAME.json, or --chart F.svg for a chart of the shipped runs")
            .into()),
    }
}

fn tell(args: &Args, rows: Vec<Value>) -> Result<(), Failure> {
    if args.json {
        out::json(&object(rows))?
    } else {
        out::text(&render(&rows))?
    }
    Ok(())
}

/// A benchmark's JSON: environment and rows.
pub(super) fn object(rows: Vec<Value>) -> Value {
    json!({ "environment": machine::environment(), "rows": rows })
}

/// Runs repeatedly for about the budget, at least three times after one untimed run.
fn measure<T>(budget_ms: u64, mut work: impl FnMut() -> T) -> Timing {
    measure_after(budget_ms, || (), |()| work())
}

/// The same, each run after untimed preparations.
fn measure_after<P, T>(budget_ms: u64, mut prepare: impl FnMut() -> P, mut work: impl FnMut(P) -> T) -> Timing {
    let (mut samples, mut spent, budget) = (Vec::new(), Duration::ZERO, Duration::from_millis(budget_ms));
    let first = Instant::now();
    std::hint::black_box(work(prepare()));
    let enough = first.elapsed() > budget;
    while samples.len() < 3 || (!enough && spent < budget && samples.len() < 1000) {
        let whole = Instant::now();
        let ready = prepare();
        let one = Instant::now();
        std::hint::black_box(work(ready));
        samples.push(one.elapsed().as_secs_f64() * 1e3);
        spent += whole.elapsed();
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

/// The row of samples in milliseconds, with the 95th percentile next to the median.
fn row_with_late(name: &str, mut samples_ms: Vec<f64>, mut parameters: Value) -> Value {
    let timing = stats::timing(samples_ms.clone()).unwrap_or_default();
    samples_ms.sort_by(f64::total_cmp);
    parameters["p95_ms"] = json!(stats::quantile(&samples_ms, 0.95));
    row(name, &timing, parameters)
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

fn render(rows: &[Value]) -> String {
    const FIRST: [&str; 1] = ["name"];
    const LAST: [&str; 3] = ["median_ms", "spread", "samples"];
    if rows.is_empty() {
        return "no rows\n".into();
    }
    let mut columns: Vec<&str> = FIRST.to_vec();
    // rows of different steps have different parameters
    for key in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !columns.contains(&key.as_str()) && !LAST.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    columns.extend(["median_ms", "spread"]);
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(columns.iter().map(|c| match *c {
            "spread" if !row["spread"].is_null() => race::spread(row),
            c => cell(c, &row[c]),
        }));
    }
    table.render()
}

fn cell(column: &str, value: &Value) -> String {
    match (column, value) {
        ("density", Value::Number(n)) => table::percent(n.as_f64().unwrap_or(f64::NAN)),
        ("max_abs_error" | "allowed", Value::Number(n)) => table::error(n.as_f64().unwrap_or(f64::NAN)),
        (_, Value::Number(n)) if n.is_f64() => table::digits(n.as_f64().unwrap_or(f64::NAN)),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Null) => String::new(),
        (_, other) => other.to_string(),
    }
}
