//! `maskloom doctor`: examines this machine, reports and fixes problems, and explains error messages.
//!
//! Invariant: nothing is installed without consent. Must not know how checks are made.

use super::out::{self, Failure};
use super::table::{Cell, Table};
use super::work::Worker;
use crate::base::Diagnostic;
use crate::tasks::doctor::{explain, guide, mend};
use crate::words::{Language, Words};
use crate::worker::protocol::{DoctorReport, Health};
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

/// Check driver, NVRTC, Python and display; explain an error message
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Explain this message of PyTorch, diffusers, flash-attn, CUDA or Maskloom; a whole page or a line with its bullet is
    /// taken too. `-` alone reads the text from stdin
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    explain: Option<String>,
    /// Print a guide that uses the results of the checks: flash-attn (benefit, installation, verification, removal)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["explain", "fix", "json"])]
    guide: Option<String>,
    /// Install what can be installed (NVRTC, with pip, into Maskloom's own folder) after asking
    #[arg(long, conflicts_with = "explain")]
    fix: bool,
    /// Answer yes to every question of --fix
    #[arg(long, requires = "fix")]
    yes: bool,
    /// Name of a target, or the launch command of a worker: examine that machine
    #[arg(long, value_name = "COMMAND", default_value = "")]
    target: String,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn doctor(args: Args) -> Result<(), Failure> {
    if let Some(text) = &args.explain {
        let page = if text == "-" { Some(pasted()?) } else { None };
        return explained(page.as_deref().unwrap_or(text), args.json);
    }
    if let Some(name) = &args.guide {
        // an unknown guide is reported before a worker starts
        guide::guide(name, &DoctorReport::default()).map_err(Failure::WrongUse)?;
        return out::text(&guide::guide(name, &Worker::connect(&args.target)?.doctor()?)?);
    }
    let report = Worker::connect(&args.target)?.doctor()?;
    if args.json {
        out::json(&report)?;
    } else {
        out::text(&render(&report))?;
    }
    if args.fix {
        return fix(&args, &report);
    }
    // only red means that work is impossible
    if report.worst() == Health::Red { Err(Failure::Exit(ExitCode::FAILURE)) } else { Ok(()) }
}

/// The longest text that is read from stdin, in bytes.
const PAGE: u64 = 4 << 20;

/// The text on stdin.
fn pasted() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(PAGE).read_to_end(&mut bytes);
    read.map_err(|e| Diagnostic::error("explain-stdin", format!("stdin cannot be read: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The meaning of a message. The exit code says whether the message is known.
fn explained(text: &str, json: bool) -> Result<(), Failure> {
    if text.trim().is_empty() {
        let why = Diagnostic::error("explain-nothing", "--explain needs a message");
        return Err(Failure::WrongUse(why.hint("maskloom doctor --explain \"the printed line\"")));
    }
    let found = explain::explain(text);
    let (known, entries) = match &found {
        explain::Explanation::Known(entries) => (true, entries),
        explain::Explanation::Nearest(entries) => (false, entries),
    };
    if json {
        let entry = |e: &&explain::Entry| serde_json::json!({ "code": e.code, "cause": e.cause, "fix": e.fix, "patterns": e.patterns, "as_of": explain::checked(e) });
        let entries: Vec<_> = entries.iter().map(entry).collect();
        out::json(&serde_json::json!({ "known": known, "entries": entries }))?;
    } else {
        out::text(&explain::render(text, Words::of(Language::chosen())))?;
    }
    if known { Ok(()) } else { Err(Failure::Exit(ExitCode::FAILURE)) }
}

pub(super) fn render(report: &DoctorReport) -> String {
    let mut table = Table::told(&["", "column-check", "column-found"]);
    for check in &report.checks {
        let light = match check.health {
            Health::Green => "ok",
            Health::Amber => "--",
            Health::Red => "!!",
        };
        table.row([light.into(), check.name.as_str().into(), Cell::told(|said| said.phrase(&check.found))]);
    }
    let mut text = table.render();
    let mends = report.checks.iter().filter_map(|c| Some((&c.name, c.mend.as_ref()?)));
    for (at, (name, mend)) in mends.enumerate() {
        let title = if at == 0 { format!("\n{}", out::line("mend-title", &[])) } else { String::new() };
        let mend = out::words().way_out("", Some(mend)).unwrap_or_else(|| mend.clone());
        text.push_str(&format!("{title}  {name}: {mend}\n"));
    }
    text
}

fn fix(args: &Args, report: &DoctorReport) -> Result<(), Failure> {
    if !args.target.trim().is_empty() {
        let why = Diagnostic::error("fix-elsewhere", "--fix changes this machine only");
        return Err(Failure::WrongUse(why.hint("run `maskloom doctor --fix` on the other machine")));
    }
    if report.check("nvrtc").is_some_and(|c| c.health == Health::Green) {
        return out::text(&format!("\n{}", out::line("mend-nothing", &[])));
    }
    let plan = mend::nvrtc_plan()?;
    out::note(&format!("\n{}  {}", out::line("mend-would", &[]), plan.words()));
    if !(args.yes || agreed()?) {
        return out::text(&out::line("mend-unchanged", &[]));
    }
    let found = mend::fetch_nvrtc(&plan)?;
    out::text(&out::line("mend-done", &[("path", out::path(&found).into())]))
}

fn agreed() -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        let why = Diagnostic::error("no-answer", "cannot ask: stdin is not a terminal");
        return Err(Failure::WrongUse(why.hint("confirm in advance: maskloom doctor --fix --yes")));
    }
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "install it? [y/N] ");
    let _ = stderr.flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
