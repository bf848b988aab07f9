//! The tour replaces the window without a display: presets at small sizes on the best device, with pictures as text,
//! timings and errors.
//!
//! Invariant: it says once why there is no window, and lists each other problem with the command that fixes it. Must
//! not know displays.

use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::work::Worker;
use super::{check, race};
use crate::backends::race::RaceOptions;
use crate::base::{BackendName, Control, Device, Diagnostic};
use crate::document::compile::Compiled;
use crate::document::from_document;
use crate::document::library;
use crate::problem::Problem;
use crate::tasks::plan;
use crate::tasks::run_file::CopyOf;
use crate::tasks::smaller::{self, HEADS, Wish};
use serde_json::{Value, json};

/// Show presets at small sizes on the best device: pictures as text, timings, errors
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Presets; the default is all of them
    presets: Vec<String>,
    /// Largest number of tokens of a preset
    #[arg(long, value_name = "N", value_parser = super::arguments::some_tokens)]
    tokens: Option<usize>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn command(args: Args) -> Result<(), Failure> {
    show_all(args)
}

/// The replacement of the window: all presets, after the reason.
pub(super) fn tour(why: &Diagnostic) -> Result<(), Failure> {
    out::diagnostics(std::slice::from_ref(why));
    show_all(Args { presets: Vec::new(), tokens: None, json: false })
}

/// Largest number of tokens of a preset in the tour, on a CPU.
const SMALL: usize = 1024;
/// The same on a GPU.
const LARGER: usize = 8192;
/// A preset that cannot be shortened to the limit races on a CPU up to this multiple of it.
const PATIENT: usize = 4;

fn show_all(args: Args) -> Result<(), Failure> {
    let mut worker = Worker::connect("")?;
    worker.tell_notes();
    let device = worker.info.devices.iter().find(|d| d.unusable.is_none()).cloned();
    let cpu = || out::words().text("verdict-cpu");
    let device_name = device.as_ref().map_or_else(cpu, |d| d.name.as_str()).to_string();
    let on_gpu = device.is_some_and(|d| d.compute_capability.is_some());
    let limit = args.tokens.unwrap_or(if on_gpu { LARGER } else { SMALL });
    let all = || library::presets().iter().map(|p| p.name.to_string()).collect();
    let names: Vec<String> = if args.presets.is_empty() { all() } else { args.presets };
    let say = |text: &str| if args.json { Ok(()) } else { out::text(text) };
    let figures = [("limit", limit.to_string()), ("heads", HEADS.to_string()), ("device", device_name.clone())];
    say(&out::line("tour-title", &figures.map(|(name, text)| (name, text.into()))))?;
    let (mut failed, mut rows) = (false, Vec::new());
    for name in names {
        match show(&name, limit, &mut worker) {
            Ok(shown) => {
                say(&shown.text)?;
                rows.push(shown.row);
            }
            Err(Failure::Reported(why)) => {
                say(&format!("\n{}", out::line("tour-failed", &[("name", name.as_str().into())])))?;
                out::diagnostics(&why);
                let mut row = out::failure_json(&why);
                row["preset"] = json!(name);
                rows.push(row);
                failed = true;
            }
            Err(other) => return Err(other),
        }
    }
    if args.json {
        out::json(&json!({ "device": device_name, "tokens": limit, "presets": rows }))?;
    }
    let commands = "maskloom presets; maskloom run sliding_window; maskloom --help";
    say(&format!("\n{}", out::line("tour-more", &[("commands", commands.into())])))?;
    if failed { Err(Failure::Reported(Vec::new())) } else { Ok(()) }
}

/// One preset, for people and for scripts.
struct Shown {
    text: String,
    row: Value,
}

fn show(name: &str, limit: usize, worker: &mut Worker) -> Result<Shown, Failure> {
    let opened = opened::open(name, &CodeArgs::default(), &Overrides::default())?;
    let compiled = opened.compile()?;
    let device = plan::choose_device(None, &opened.document, &worker.info);
    let on_cpu = device == Device::Cpu;
    let wish = Wish::up_to(limit, if on_cpu { PATIENT } else { 1 }, on_cpu);
    let copy = match smaller::copy(&opened.document, &compiled, None, &opened.files, wish, &Control::new()) {
        Ok(copy) => copy,
        Err(why) => {
            let problem = from_document(&opened.document, &compiled)?;
            let said = out::words();
            let figures = [
                ("title", opened.document.name.clone()),
                ("sizes", smaller::told(said, problem.batch, [problem.q_len, problem.kv_len], problem.heads)),
                ("why", said.reported(&why.code, &why.message)),
                ("name", name.to_string()),
            ];
            let line = out::line("tour-not-run", &figures.map(|(name, text)| (name, text.into())));
            let text = format!("\n{line}{}", picture(&compiled, &problem));
            return Ok(Shown { text, row: json!({ "preset": name, "not_run": why.message }) });
        }
    };
    let mut request = plan::run_request(&copy.problem, &copy.document.settings, device);
    request.backends = vec![BackendName::Eager, BackendName::Sdpa, BackendName::Flex];
    request.options = RaceOptions { rounds: 3, warmup: 1, reference_rows: 64, ..RaceOptions::USUAL };
    let (report, _) = worker.run(request)?;
    if !race::succeeded(&report) {
        out::note(&race::render(&report));
        return Err(Diagnostic::error("tour-wrong", format!("a backend failed or was wrong on {name}"))
            .hint("please report it, with the lines above")
            .into());
    }
    let title = race::title(&opened.document.name, copy.problem.spec(), &report);
    let is_whole = copy.document == opened.document;
    let of = CopyOf { document: opened.document, kept: copy.kept_of };
    let of = if is_whole { String::new() } else { super::run::copy_words(&of, copy.kept) };
    let picture = picture(&copy.compiled, &copy.problem);
    let mut row = race::json(name, copy.problem.spec(), &report, None);
    row["preset"] = json!(name);
    row["smaller"] = json!(!is_whole);
    Ok(Shown { text: format!("\n{of}{title}{picture}{}", race::render(&report)), row })
}

fn picture(compiled: &Compiled, problem: &Problem) -> String {
    check::small_picture(compiled, problem, 48, 24).iter().map(|line| format!("  |{line}|\n")).collect()
}
