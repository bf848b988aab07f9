//! `maskloom sweep`: one preset over lists of lengths, heads and head dims.
//!
//! Invariant: a failing point is reported and does not stop the others. Must not know the protocol.

use super::arguments::{self, Pass};
use super::bench;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::race;
use super::table::{self, Table};
use super::work::{Where, Worker};
use crate::base::{BackendName, Diagnostic};
use crate::tasks::plan;
use serde_json::{Value, json};

/// Race a preset over lists of lengths, heads and head dims
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// Lengths, such as 1024,4096,16384; the default is the document's own
    #[arg(long = "lengths", value_name = "N,...", value_delimiter = ',')]
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
    #[command(flatten)]
    at: Where,
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
pub fn sweep(args: Args) -> Result<(), Failure> {
    let mut worker = Worker::connect(&args.at.target)?;
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for point in points(&args) {
        match race_at(&args, &point, &mut worker) {
            Ok((more, right)) => {
                rows.extend(more);
                if !right {
                    failed.push(wrong(&point));
                }
            }
            Err(Failure::Told(why)) => failed.extend(why),
            Err(other) => return Err(other),
        }
    }
    if args.json {
        out::json(&bench::object(rows))?;
    } else {
        out::text(&render(&rows))?;
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.into()) }
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

fn race_at(args: &Args, point: &Overrides, worker: &mut Worker) -> Result<(Vec<Value>, bool), Failure> {
    let opened = opened::open(&args.preset, &args.code, point)?;
    let compiled = opened.compile()?;
    let device = worker.device(args.at.device, &opened.document);
    let mut request = plan::run_request(&opened.problem(&compiled)?, &opened.document.settings, device);
    request.options.rounds = args.rounds.max(1);
    args.pass.ask(&mut request, opened.document.settings.seed, false);
    request.python = args.python.clone();
    if !args.backend.is_empty() {
        request.backends = args.backend.clone();
    }
    let (report, _) = worker.run(request.clone())?;
    Ok((race::rows(&opened.document.name, &request.problem, &report), race::succeeded(&report)))
}

fn wrong(point: &Overrides) -> Diagnostic {
    let at = json!({ "seq": point.seq, "heads": point.heads, "head_dim": point.head_dim });
    Diagnostic::error("sweep-point", format!("at {at} a backend failed, was wrong, or none could run"))
        .hint("`maskloom run` with these values shows the reason")
}

fn render(rows: &[Value]) -> String {
    let mut titles =
        vec!["q_len", "kv_len", "heads", "head_dim", "kept", "backend", "median", "spread", "TFLOP/s", "memory"];
    let backward = rows.iter().any(|row| row.get("backward_ms").is_some() || row.get("backward_refused").is_some());
    if backward {
        titles.extend(["backward", "both", "memory of both", "worst gradient"]);
    }
    let mut table = Table::new(&titles);
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
