//! `maskloom sweep`: one preset over lists of lengths, heads and head dims, on one machine or several.
//!
//! Invariant: a failing point is reported and does not stop the others; each row names its machine. Must not know how points are
//! spread over machines.

use super::arguments::{self, Pass};
use super::bench;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::race;
use super::slurm::{self, Array, SlurmArgs};
use super::spread::{self, Point, Spread};
use super::table::{self, Table};
use super::work::Worker;
use super::{detach, ray};
use crate::base::{BackendName, Device, Diagnostic};
use crate::tasks::plan;
use crate::worker::protocol::detached::{Batch, Piece, PieceEnd, Step, Work};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Race a preset over lists of lengths, heads and head dims
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// Lengths, such as 1024,4096,16384; the default is the document's own
    #[arg(long = "lengths", value_name = "N,...", value_delimiter = ',', value_parser = super::arguments::tokens)]
    lengths: Vec<usize>,
    /// Numbers of query heads
    #[arg(long = "head-counts", value_name = "N,...", value_delimiter = ',')]
    head_counts: Vec<usize>,
    /// Head dims
    #[arg(long = "head-dims", value_name = "N,...", value_delimiter = ',')]
    head_dims: Vec<usize>,
    /// Backends to race
    #[arg(long, value_delimiter = ',', value_parser = arguments::backend)]
    backend: Vec<BackendName>,
    /// cpu, cuda or cuda:N; the default is the best device of each machine
    #[arg(long, value_parser = super::arguments::device)]
    device: Option<Device>,
    /// Name of a target (`maskloom target list`), or the launch command of a worker; several share the points
    #[arg(long = "target", value_name = "NAME|COMMAND")]
    targets: Vec<String>,
    /// File to which each point's rows are added when they are known; points that it has are not run again
    #[arg(long, value_name = "F.jsonl", value_parser = super::ending::one_of(&["jsonl"]))]
    journal: Option<PathBuf>,
    /// Go on without this program: `maskloom attach` shows the results
    #[arg(long, conflicts_with = "journal")]
    detach: bool,
    #[command(flatten)]
    array: SlurmArgs,
    /// Run through Ray (`pip install ray`): an address of a cluster (auto, ray://HOST:10001), or `local` for workers of this machine
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["targets", "detach", "slurm"])]
    ray: Option<String>,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Timing rounds
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Passes to run: forward, backward, or both
    #[arg(long, value_name = "PASS", default_value = "forward")]
    pass: Pass,
    /// Python with your PyTorch, for torch:* backends
    #[arg(long, value_name = "PATH")]
    python: Option<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn sweep(args: Args) -> Result<(), Failure> {
    let (mut planned, mut failed) = (Vec::new(), Vec::new());
    for point in points(&args) {
        match plan_at(&args, &point) {
            Ok(point) => planned.push(point),
            Err(Failure::Reported(why)) => failed.extend(why),
            Err(other) => return Err(other),
        }
    }
    let targets = if args.targets.is_empty() { vec![String::new()] } else { args.targets.clone() };
    if args.detach {
        return detached(&args, &targets, planned, failed);
    }
    let ends = if let Some(folder) = &args.array.slurm {
        match slurm::array(&args.array, folder, &planned, args.device)? {
            Array::Ends(ends) => ends,
            Array::Submitted if failed.is_empty() => return Ok(()),
            Array::Submitted => return Err(failed.into()),
        }
    } else if let Some(address) = &args.ray {
        ray::run(address, &planned, args.device, args.journal.as_deref())?
    } else {
        Spread { targets, device: args.device, journal: args.journal.clone() }.run(&planned)?
    };
    let mut rows = Vec::new();
    for (point, end) in planned.iter().zip(ends) {
        match end {
            Ok(done) => {
                rows.extend(done.rows);
                if !done.right {
                    failed.push(wrong(&point.label, &done.why));
                }
            }
            Err(why) => failed.extend(why),
        }
    }
    show(rows, failed, args.json)
}

/// Starts it as a job on one machine.
fn detached(args: &Args, targets: &[String], planned: Vec<Point>, failed: Vec<Diagnostic>) -> Result<(), Failure> {
    let [target] = targets else {
        let why = Diagnostic::error("detach-targets", "a detached sweep runs on one machine, and several are named");
        return Err(Failure::WrongUse(why.hint("start one job on each, or leave out --detach and give a --journal")));
    };
    out::diagnostics(&failed);
    let mut worker = Worker::connect(target)?;
    let title = format!("sweep of {}, {} points", args.preset, planned.len());
    let notes = json!({ "name": planned.first().map(|point| point.document.name.clone()), "target": target });
    let step = |point: Point| {
        let mut request = point.request;
        request.device = worker.device(args.device, &point.document);
        Step { label: point.label, work: Work::Race { request: Box::new(request) } }
    };
    let steps = planned.into_iter().map(step).collect();
    let batch = Batch { what: "sweep".into(), title, steps, notes };
    detach::start(target, &mut worker, batch)?.tell(args.json)
}

/// The rows of a detached sweep.
pub(super) fn show_job(batch: &Batch, pieces: &[Piece], how: &detach::Show) -> Result<(), Failure> {
    let name = batch.notes["name"].as_str().unwrap_or_default();
    let (mut rows, mut failed) = (Vec::new(), detach::failures(pieces));
    for piece in pieces {
        let Some(Step { label, work: Work::Race { request } }) = batch.steps.get(piece.step) else { continue };
        if let PieceEnd::Ran { report } = &piece.end {
            rows.extend(spread::rows(name, &how.target, &request.problem, report));
            if !race::succeeded(report) {
                failed.push(wrong(label, &race::shortfalls(report)));
            }
        }
    }
    show(rows, failed, how.json)
}

fn show(rows: Vec<Value>, failed: Vec<Diagnostic>, as_json: bool) -> Result<(), Failure> {
    out::diagnostics(&cards(&rows).into_iter().collect::<Vec<_>>());
    if as_json {
        let mut object = bench::object(rows);
        if !failed.is_empty() {
            // one object, which holds the rows that there are and why others are not
            let mut why = out::failure_json(&failed);
            for key in ["error", "diagnostics"] {
                object[key] = why[key].take();
            }
        }
        out::json(&object)?;
    } else {
        out::text(&render(&rows))?;
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.into()) }
}

/// Said where rows are of different cards.
fn cards(rows: &[Value]) -> Option<Diagnostic> {
    let cards: BTreeSet<&str> = rows.iter().filter_map(|row| row["device"].as_str()).collect();
    let named = cards.iter().copied().collect::<Vec<_>>().join("; ");
    let why =
        format!("the rows are of {} different devices, whose times say nothing about each other: {named}", cards.len());
    (cards.len() > 1).then(|| {
        Diagnostic::warning("sweep-cards", why)
            .hint("compare rows of one device; run the whole sweep on one target to compare points")
    })
}

/// Every combination as overrides.
fn points(args: &Args) -> Vec<Overrides> {
    fn or_none(list: &[usize]) -> Vec<Option<usize>> {
        if list.is_empty() { vec![None] } else { list.iter().map(|n| Some(*n)).collect() }
    }
    let mut points = Vec::new();
    for seq in or_none(&args.lengths) {
        for heads in or_none(&args.head_counts) {
            for head_dim in or_none(&args.head_dims) {
                let base = args.overrides.clone();
                points.push(Overrides {
                    seq: seq.or(base.seq),
                    heads: heads.or(base.heads),
                    head_dim: head_dim.or(base.head_dim),
                    ..base
                });
            }
        }
    }
    points
}

/// A point's request, but for its device: that is the machine's.
fn plan_at(args: &Args, point: &Overrides) -> Result<Point, Failure> {
    let opened = opened::open(&args.preset, &args.code, point)?;
    let compiled = opened.compile()?;
    let mut request = plan::run_request(&opened.problem(&compiled)?, &opened.document.settings, Device::Cpu);
    request.options.rounds = args.rounds.max(1);
    args.pass.ask(&mut request, opened.document.settings.seed, false);
    request.python = args.python.clone();
    if !args.backend.is_empty() {
        request.backends = args.backend.clone();
    }
    let said = [("seq", point.seq), ("heads", point.heads), ("head_dim", point.head_dim)];
    let said: Vec<String> = said.iter().filter_map(|(name, n)| n.map(|n| format!("{name} {n}"))).collect();
    let label = if said.is_empty() { "the document's own sizes".into() } else { said.join(", ") };
    Ok(Point { label, document: opened.document, request })
}

fn wrong(point: &str, why: &[String]) -> Diagnostic {
    let said =
        if why.is_empty() { "a backend failed, was wrong, or none could run".to_string() } else { why.join("; ") };
    Diagnostic::error("sweep-point", format!("at {point} {said}")).hint("`maskloom run` with these values shows more")
}

fn render(rows: &[Value]) -> String {
    let mut titles = vec![
        "q_len",
        "kv_len",
        "column-heads",
        "head_dim",
        "column-kept",
        "column-backend",
        "column-median",
        "column-spread",
        "TFLOP/s",
        "column-memory",
    ];
    let backward = rows.iter().any(|row| row.get("backward_ms").is_some() || row.get("backward_refused").is_some());
    if backward {
        titles.extend(["column-backward", "column-sum", "column-both-memory", "column-worst"]);
    }
    let machines: BTreeSet<&str> = rows.iter().filter_map(|row| row["target"].as_str()).collect();
    if machines.len() > 1 {
        titles.insert(0, "column-machine");
    }
    let mut table = Table::told(&titles);
    for row in rows {
        let number = |k: &str| row[k].as_f64().unwrap_or(f64::NAN);
        let word = |k: &str| row[k].as_str().map_or_else(|| row[k].to_string(), String::from);
        let time = |k: &str| row[k].as_f64().map_or("-".into(), table::milliseconds);
        let mut cells = vec![
            word("q_len"),
            word("kv_len"),
            word("heads"),
            word("head_dim"),
            table::percent(number("density")),
            word("backend"),
            time("median_ms"),
            race::spread(row),
            row["tflops"].as_f64().map_or("-".into(), table::digits),
            table::memory(row["memory_bytes"].as_u64()),
        ];
        if machines.len() > 1 {
            cells.insert(0, format!("{}: {}", word("target"), word("device")));
        }
        if backward {
            let worst = || row["worst_gradient"].as_f64().map_or("-".into(), table::error);
            let why = row["backward_refused"].as_str().map(String::from);
            let memory = table::memory(row["both_memory_bytes"].as_u64());
            cells.extend([time("backward_ms"), time("both_ms"), memory, why.unwrap_or_else(worst)]);
        }
        table.row(cells);
    }
    table.render()
}
