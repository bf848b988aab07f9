//! `maskloom presets record`: runs presets and stores the results as the recorded runs that ship.
//!
//! Invariant: wrong and failed results are reported and not stored; the file is complete after each preset. Must not
//! know protocols.

use super::arguments::Pass;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::work::{Where, Worker};
use super::{arguments, detach, race};
use crate::base::{BackendName, Device, Diagnostic};
use crate::document::library;
use crate::document::model::Document;
use crate::problem::result::RunReport;
use crate::tasks::plan::{self, ROUNDS};
use crate::tasks::recorded::{Collection, Recorded, fingerprint};
use crate::tasks::run_file::RunFile;
use crate::worker::files;
use crate::worker::protocol::RunRequest;
use crate::worker::protocol::detached::{Batch, Piece, PieceEnd, Step, Work};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Race presets on a GPU and store the results as recorded runs
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Presets; the default is all of them
    presets: Vec<String>,
    /// The file of recorded runs to add to, such as presets/recorded/nvidia_h200.json
    #[arg(long, value_name = "F.json", value_parser = super::ending::one_of(&["json"]))]
    into: PathBuf,
    /// Skip presets that the file already contains, unless they have changed since
    #[arg(long)]
    missing: bool,
    /// Take the results from run files (NAME.json of `maskloom run NAME --save-run`) instead of running
    #[arg(long, value_name = "RUN.json", num_args = 1.., conflicts_with_all = ["presets", "backend"])]
    from: Vec<PathBuf>,
    /// Backends to race; the default is the preset's own
    #[arg(long, value_delimiter = ',', value_parser = arguments::backend)]
    backend: Vec<BackendName>,
    /// Timing rounds
    #[arg(long, default_value_t = ROUNDS)]
    rounds: u32,
    /// Passes to record
    #[arg(long, value_enum, default_value = "forward")]
    pass: Pass,
    #[command(flatten)]
    at: Where,
    /// Go on without this program: `maskloom attach` adds the runs to the file
    #[arg(long, conflicts_with = "from")]
    detach: bool,
}

/// Runs the command.
pub(super) fn record(args: &Args) -> Result<(), Failure> {
    if !args.from.is_empty() {
        return take(args);
    }
    let mut collection = Collection::open(&args.into)?;
    files::alone(&args.into, || files::can_save(&args.into))?;
    let all = || library::presets().iter().map(|p| p.name.to_string()).collect();
    let names: Vec<String> = if args.presets.is_empty() { all() } else { args.presets.clone() };
    let mut worker = Worker::connect(&args.at.target)?;
    let mut waiting = Vec::new();
    let mut failed = Vec::new();
    for name in names {
        let opened = opened::open(&name, &CodeArgs::default(), &Overrides::default())?;
        let known = collection.runs.get(&name).is_some_and(|r| r.fingerprint == fingerprint(&opened.document));
        if args.missing && known {
            continue;
        }
        let device = worker.device(args.at.device, &opened.document);
        if device == Device::Cpu && args.at.device.is_none() {
            let why = Diagnostic::error("record-no-gpu", "presets are recorded on a GPU, and this machine has none");
            return Err(Failure::WrongUse(why.hint("use a machine with one: --target \"ssh HOST maskloom worker\"")));
        }
        let request = request(args, &opened, device)?;
        if args.detach {
            waiting.push(Step { label: name, work: Work::Race { request: Box::new(request) } });
            continue;
        }
        match one(&opened.document, &request, &mut worker) {
            Ok((run, line)) => {
                out::text(&format!("{name}: {line}\n"))?;
                collection = Collection::add(&args.into, [(name, run)])?;
            }
            Err(Failure::Reported(why)) => failed.push(not_recorded(&name, &why)?),
            Err(other) => return Err(other),
        }
    }
    if args.detach {
        return detached(args, &mut worker, waiting);
    }
    end(&collection, &args.into, failed)
}

fn detached(args: &Args, worker: &mut Worker, steps: Vec<Step>) -> Result<(), Failure> {
    let title = format!("record of {} presets", steps.len());
    let into = std::path::absolute(&args.into).unwrap_or_else(|_| args.into.clone());
    let notes = json!({ "into": arguments::as_text(&into)? });
    let batch = Batch { what: "record".into(), title, steps, notes };
    detach::start(&args.at.target, worker, batch)?.tell(false)
}

/// Adds the runs of a detached job to the file.
pub(super) fn show_job(batch: &Batch, pieces: &[Piece], how: &detach::Show) -> Result<(), Failure> {
    let named = || batch.notes["into"].as_str().map(PathBuf::from);
    let Some(into) = how.into.clone().or_else(named) else {
        let why = Diagnostic::error("record-into", "the job does not say which file its runs are for");
        return Err(Failure::WrongUse(why.hint("name it: --into presets/recorded/nvidia_h200.json")));
    };
    let (mut runs, mut failed) = (Vec::new(), Vec::new());
    for piece in pieces {
        let Some(Step { label: name, work: Work::Race { request } }) = batch.steps.get(piece.step) else { continue };
        let kept = match &piece.end {
            PieceEnd::Ran { report } => {
                let opened = opened::open(name, &CodeArgs::default(), &Overrides::default())?;
                race::notes(report);
                recorded(&opened.document, request, report).map_err(|why| vec![why])
            }
            PieceEnd::Failed { why } => Err(why.clone()),
            PieceEnd::Said { .. } => Err(Vec::new()),
        };
        match kept {
            Ok((run, line)) => {
                out::text(&format!("{name}: {line}\n"))?;
                runs.push((name.clone(), run));
            }
            Err(why) => failed.push(not_recorded(name, &why)?),
        }
    }
    end(&Collection::add(&into, runs)?, &into, failed)
}

fn not_recorded(name: &str, why: &[Diagnostic]) -> Result<String, Failure> {
    out::text(&out::line("record-not", &[("name", name.into())]))?;
    out::diagnostics(why);
    Ok(name.to_string())
}

fn request(args: &Args, opened: &opened::Opened, device: Device) -> Result<RunRequest, Failure> {
    let compiled = opened.compile()?;
    let mut request = plan::run_request(&opened.problem(&compiled)?, &opened.document.settings, device);
    request.options.rounds = args.rounds;
    if !args.backend.is_empty() {
        request.backends = args.backend.clone();
    }
    args.pass.ask(&mut request, 0, false);
    Ok(request)
}

fn one(document: &Document, request: &RunRequest, worker: &mut Worker) -> Result<(Recorded, String), Failure> {
    let (report, _) = worker.run(request.clone())?;
    race::notes(&report);
    Ok(recorded(document, request, &report)?)
}

fn recorded(document: &Document, request: &RunRequest, report: &RunReport) -> Result<(Recorded, String), Diagnostic> {
    let run = Recorded::new(document, request, report)?;
    let said = out::words();
    let line = run.told(said).unwrap_or_else(|| said.text("recorded-untimed").into());
    Ok((run, line))
}

/// Stores runs that were saved before.
fn take(args: &Args) -> Result<(), Failure> {
    let (mut runs, mut failed) = (Vec::new(), Vec::new());
    for path in &args.from {
        let run = RunFile::open(path)?;
        match preset_of(&run.document, path).and_then(|name| Ok((name, Recorded::of_run(&run)?))) {
            Ok((name, run)) => {
                out::text(&format!("{name}: {}\n", run.told(out::words()).unwrap_or_default()))?;
                runs.push((name.to_string(), run));
            }
            Err(why) => {
                out::diagnostics(&[why]);
                failed.push(path.display().to_string());
            }
        }
    }
    end(&Collection::add(&args.into, runs)?, &args.into, failed)
}

/// The preset of a run's document. Errors: there is none, or it has changed since.
fn preset_of(document: &Document, path: &Path) -> Result<&'static str, Diagnostic> {
    let wanted = fingerprint(document);
    let same = |p: &&library::Preset| p.document().is_ok_and(|d| fingerprint(&d) == wanted);
    library::presets().iter().find(same).map(|p| p.name).ok_or_else(|| {
        let message = format!("{}: the run's document `{}` differs from every preset", path.display(), document.name);
        Diagnostic::error("record-no-preset", message).hint("only runs of unchanged presets can be recorded")
    })
}

fn end(collection: &Collection, path: &Path, failed: Vec<String>) -> Result<(), Failure> {
    let n = ("n", collection.runs.len().to_string().into());
    out::text(&out::line("record-sum", &[n, ("file", out::path(path).into())]))?;
    if failed.is_empty() { Ok(()) } else { Err(Failure::Reported(Vec::new())) }
}
