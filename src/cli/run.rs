//! `maskloom run`: race backends on a preset, a document or code.
//!
//! Invariant: the status is 0 only if a backend ran and all that ran were right. Must not know the protocol.

use super::arguments::{self, Pass};
use super::detach;
use super::inputs::InputArgs;
use super::opened::{self, CodeArgs, Opened};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::race;
use super::work::{Where, Worker};
use crate::backends::race::RaceOptions;
use crate::base::{BackendName, Control, Diagnostic};
use crate::document::compile::Compiled;
use crate::problem::result::RunReport;
use crate::tasks::detached::RunNotes;
use crate::tasks::plan::{self, ROUNDS};
use crate::tasks::run_file::{CopyOf, RunFile};
use crate::tasks::smaller::{self, Wish};
use crate::worker::protocol::detached::{Batch, Piece, PieceEnd, Work};
use crate::worker::protocol::{InputSource, RunRequest, SeedSource};
use crate::worker::transport::Payload;
use crate::worker::{files, machine, tensors};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Race backends on a preset, a document (FILE.json) or code (FILE.py:ENTRY)
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// Backends to race, in order: eager, sdpa, flash_attention_2, flex, torch:eager, torch:sdpa, torch:flex,
    /// torch:flex-flash (or fa4), cudnn:flex
    #[arg(long, value_delimiter = ',', value_parser = arguments::backend)]
    backend: Vec<BackendName>,
    /// Backend that the others' times are compared with, instead of the fastest SDPA: eager for the tables of guides
    #[arg(long, value_name = "BACKEND", value_parser = arguments::backend)]
    baseline: Option<BackendName>,
    #[command(flatten)]
    at: Where,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Race a smaller copy of the same mask: windows and lengths shrink with the axes, and the share of kept cells
    /// stays. Refused
    /// if no such copy exists
    #[arg(long)]
    smaller: bool,
    /// Timing rounds, interleaved over the backends; 0: correctness only
    #[arg(long, default_value_t = ROUNDS)]
    rounds: u32,
    /// Largest number of query rows compared with the float64 reference; small problems are compared whole
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = super::arguments::rows)]
    reference_rows: u32,
    /// Python with your PyTorch, for torch:* and cudnn:flex
    #[arg(long, value_name = "PATH")]
    python: Option<String>,
    /// Also compute the largest score of each row, like flex_attention's AuxRequest(max_scores=True): prints the
    /// largest of each
    /// head (for QK-clip), and --out saves BACKEND.max_scores
    #[arg(long)]
    max_scores: bool,
    /// Passes to run: forward, backward, or both. Gradients are compared with the float64 reference
    #[arg(long, value_name = "PASS", default_value = "forward")]
    pass: Pass,
    /// Gradients must have the same bits in every run: a second run is compared, and the time of a free order of addition is shown
    #[arg(long)]
    deterministic: bool,
    /// Save every backend's output and lse, with --pass both also its gradients: tensors BACKEND.out, .lse, .dq, .dk and .dv
    #[arg(long, value_name = "F.safetensors", value_parser = super::ending::one_of(&["safetensors"]))]
    out: Option<PathBuf>,
    /// Save the run: environment, preset, every sample, errors, small pictures
    #[arg(long, alias = "save", value_name = "F.json", value_parser = super::ending::one_of(&["json"]))]
    save_run: Option<PathBuf>,
    /// Go on without this program: `maskloom attach` shows the results
    #[arg(long, conflicts_with_all = ["out", "save_run"])]
    detach: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

fn given_gradient(seeds: &SeedSource) -> String {
    match seeds {
        SeedSource::File { path, d_out, .. } => {
            format!("note[inputs-do]: the output's gradient is `{d_out}` of {path}")
        }
        SeedSource::Random { seed } => format!("note[inputs-do]: the output's gradient is random, of seed {seed}"),
    }
}

fn only_gradients() -> Failure {
    Diagnostic::error(
        "run-deterministic",
        "--deterministic concerns gradients, and the forward pass alone computes none",
    )
    .hint("add --pass both or --pass backward")
    .into()
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    // a race of hours has its results on the screen, and the file that they are for is known to have a place
    args.out.iter().chain(&args.save_run).try_for_each(|path| files::can_save(path))?;
    let mut opened = opened::open(&args.preset, &args.code, &args.overrides)?;
    let inputs = args.inputs.source(&mut opened.document, &args.overrides, args.at.target.trim().is_empty())?;
    let mut compiled = opened.compile()?;
    let copy = if args.smaller { Some(shrink(&mut opened, &mut compiled, &inputs)?) } else { None };
    // an invalid problem is reported before a worker starts
    let problem = opened.problem(&compiled)?.with_max_scores(args.max_scores);
    let seeds = args.inputs.seeds(&inputs, args.at.target.trim().is_empty())?;
    let mut worker = Worker::connect(&args.at.target)?;
    let device = worker.device(args.at.device, &opened.document);
    let mut request = plan::run_request(&problem, &opened.document.settings, device);
    if copy.is_none() {
        tell_patience(&request);
    }
    request.inputs = inputs;
    request.options = RaceOptions { rounds: args.rounds, reference_rows: args.reference_rows, ..RaceOptions::USUAL };
    args.pass.ask(&mut request, opened.document.settings.seed, args.out.is_some());
    match request.gradients.as_mut() {
        Some(asked) => {
            asked.deterministic = args.deterministic;
            if let Some(given) = seeds {
                out::note(&given_gradient(&given));
                asked.seeds = given;
            }
        }
        None if args.deterministic => return Err(only_gradients()),
        None => {}
    }
    request.keep_outputs = args.out.is_some();
    request.python = args.python;
    if !args.backend.is_empty() {
        request.backends = args.backend;
    }
    if let Some(base) = args.baseline.filter(|base| !request.backends.contains(base)) {
        request.backends.insert(0, base);
    }
    let (name, document) = (opened.document.name.clone(), Some(opened.document.clone()));
    let view = RunNotes { name, baseline: args.baseline, max_scores: args.max_scores, copy, document };
    if args.detach {
        return detach::start(&args.at.target, &mut worker, view.batch(request))?.tell(args.json);
    }
    let (report, payloads) = worker.run(request.clone())?;
    let shown = show(&view, &request, &report, args.json);
    if let Some(path) = &args.out {
        save_outputs(path, &payloads)?;
    }
    if let Some(path) = &args.save_run {
        let mut run = RunFile::new(&opened.document, &compiled, &request, report);
        run.copy_of = view.copy.map(Box::new);
        run.save(path)?;
    }
    shown
}

/// The result of a detached run.
pub(super) fn show_job(batch: &Batch, pieces: &[Piece], how: &detach::Show) -> Result<(), Failure> {
    let view: RunNotes = serde_json::from_value(batch.notes.clone())
        .map_err(|e| Diagnostic::error("job-file", format!("the job's notes cannot be read: {e}")))?;
    let step = batch.steps.first().map(|step| &step.work);
    match (step, pieces.first().map(|piece| &piece.end)) {
        (Some(Work::Race { request }), Some(PieceEnd::Ran { report })) => show(&view, request, report, how.json),
        _ => Err(detach::failures(pieces).into()),
    }
}

/// Prints a run. Errors: no backend ran, or one was wrong.
fn show(view: &RunNotes, request: &RunRequest, report: &RunReport, as_json: bool) -> Result<(), Failure> {
    let RunNotes { name, baseline, max_scores, copy, .. } = view;
    race::notes(report);
    if as_json {
        let mut value = race::json(name, &request.problem, report, *baseline);
        if let Some(of) = copy {
            value["smaller_copy_of"] = json!({"sizes": smaller::sizes(&of.document), "kept": of.kept});
        }
        out::json(&value)?;
    } else {
        let heads = if *max_scores { race::max_scores(report) } else { String::new() };
        let of = copy.as_ref().map(|of| copy_words(of, report.work.density)).unwrap_or_default();
        let title = race::title(name, &request.problem, report);
        let back = race::gradients(report);
        out::text(&format!("{of}{title}\n{}{heads}{back}", race::render_against(report, *baseline)))?;
    }
    if race::succeeded(report) { Ok(()) } else { Err(Failure::Reported(Vec::new())) }
}

/// Replaces the document by a smaller copy. Returns a description of the original.
fn shrink(opened: &mut Opened, compiled: &mut Compiled, inputs: &InputSource) -> Result<CopyOf, Failure> {
    if matches!(inputs, InputSource::File { .. }) {
        let message = "a smaller copy cannot use the inputs of a file, which have the full lengths";
        return Err(Failure::WrongUse(
            Diagnostic::error("smaller-inputs", message).hint("leave out --smaller or --inputs"),
        ));
    }
    let (whole, control) = (&opened.document, Control::new());
    let copy = smaller::copy(whole, compiled, None, &opened.files, Wish::quick(), &control).map_err(|why| vec![why])?;
    *compiled = copy.compiled;
    let whole = std::mem::replace(&mut opened.document, copy.document);
    Ok(CopyOf { document: whole, kept: copy.kept_of })
}

/// `smaller copy of 8192 x 8192 tokens, 32 heads, which keeps 11.7% of its cells`.
pub(super) fn copy_words(of: &CopyOf, kept: f64) -> String {
    let (axes, settings, said) = (&of.document.axes, &of.document.settings, out::words());
    let sizes = smaller::told(said, settings.batch, [axes.q.len(), axes.kv().len()], settings.heads);
    let all = super::table::percent(of.kept);
    let figures = [("sizes", sizes), ("kept", super::table::percent(kept)), ("all", all)];
    said.with("line-copy", &figures.map(|(name, text)| (name, text.into()))) + "\n"
}

/// For a heavy problem on a CPU: its estimated time, and a quicker alternative.
fn tell_patience(request: &RunRequest) {
    if !smaller::is_heavy(&request.problem) {
        return;
    }
    let (threads, passes) = (machine::threads(), request.options.rounds + request.options.warmup + 1);
    let time = smaller::estimate(&request.problem, request.device, request.backends.len(), passes, threads);
    if let Some(time) = time {
        let message = format!("this takes about {} on a CPU, assuming 20 GFLOP/s per thread", smaller::about(time));
        let why = Diagnostic::note("heavy-on-cpu", message);
        out::diagnostics(&[why.hint("--smaller races a copy of the same mask in seconds")]);
    }
}

fn save_outputs(path: &Path, payloads: &[Payload]) -> Result<(), Failure> {
    let all = payloads.iter().map(|(info, bytes)| (info.name.clone(), info.dtype, &info.shape[..], &bytes[..]));
    Ok(files::save(path, &tensors::write_raw(all)?)?)
}
