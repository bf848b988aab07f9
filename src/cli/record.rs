//! `maskloom presets record`: runs presets and stores the results as the recorded runs that ship.
//!
//! Invariant: wrong and failed results are reported and not stored; the file is complete after each preset. Must not
//! know protocols.

use super::arguments::Pass;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::work::{Where, Worker};
use super::{arguments, race};
use crate::base::{BackendName, Device, Diagnostic};
use crate::document::library;
use crate::document::model::Document;
use crate::tasks::plan::{self, ROUNDS};
use crate::tasks::recorded::{Collection, RECORDED_VERSION, Recorded, fingerprint};
use crate::tasks::run_file::RunFile;
use std::path::{Path, PathBuf};

/// Race presets on a GPU and store the results as recorded runs
#[derive(Debug, clap::Args)]
pub struct Args {
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
}

/// Runs the command.
pub fn record(args: &Args) -> Result<(), Failure> {
    let mut collection = Collection::open(&args.into)?;
    collection.maskloom_recorded = RECORDED_VERSION;
    if !args.from.is_empty() {
        return take(args, &mut collection);
    }
    let all = || library::presets().iter().map(|p| p.name.to_string()).collect();
    let names: Vec<String> = if args.presets.is_empty() { all() } else { args.presets.clone() };
    let mut worker = Worker::connect(&args.at.target)?;
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
        match one(args, &opened, device, &mut worker) {
            Ok((run, line)) => {
                out::text(&format!("{name}: {line}\n"))?;
                collection.runs.insert(name, run);
                collection.save(&args.into)?;
            }
            Err(Failure::Told(why)) => {
                out::text(&format!("{name}: not recorded\n"))?;
                out::diagnostics(&why);
                failed.push(name);
            }
            Err(other) => return Err(other),
        }
    }
    end(&collection, &args.into, failed)
}

fn one(
    args: &Args,
    opened: &opened::Opened,
    device: Device,
    worker: &mut Worker,
) -> Result<(Recorded, String), Failure> {
    let compiled = opened.compile()?;
    let mut request = plan::run_request(&opened.problem(&compiled)?, &opened.document.settings, device);
    request.options.rounds = args.rounds;
    if !args.backend.is_empty() {
        request.backends = args.backend.clone();
    }
    args.pass.ask(&mut request, 0, false);
    let (report, _) = worker.run(request.clone())?;
    race::notes(&report);
    let run = Recorded::new(&opened.document, &request, &report)?;
    let line = run.summary().unwrap_or_else(|| "flex was not timed".into());
    Ok((run, line))
}

/// Stores runs that were saved before.
fn take(args: &Args, collection: &mut Collection) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for path in &args.from {
        let run = RunFile::open(path)?;
        match preset_of(&run.document, path).and_then(|name| Ok((name, Recorded::of_run(&run)?))) {
            Ok((name, run)) => {
                out::text(&format!("{name}: {}\n", run.summary().unwrap_or_default()))?;
                collection.runs.insert(name.to_string(), run);
            }
            Err(why) => {
                out::diagnostics(&[why]);
                failed.push(path.display().to_string());
            }
        }
    }
    collection.save(&args.into)?;
    end(collection, &args.into, failed)
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
    out::text(&format!("{} recorded runs in {}\n", collection.runs.len(), path.display()))?;
    if failed.is_empty() { Ok(()) } else { Err(Failure::Told(Vec::new())) }
}
