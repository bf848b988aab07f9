//! `maskloom share`: a design as one file to hand on.
//!
//! Invariant: the file alone shows the design and gives it back. Must not know workers.

use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::render::check_head;
use crate::base::Control;
use crate::tasks::run_file::{self, RunFile};
use crate::tasks::sharing;
use crate::worker::files;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write a design as one HTML file: a picture that zooms, numbers, runs, code, and the design itself
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a preset, FILE.json, FILE.py:ENTRY, or a saved run, whose times the page shows
    design: String,
    /// File of the page; `maskloom FILE.html` opens its design
    #[arg(long, value_name = "F.html", value_parser = super::ending::one_of(&["html", "htm"]))]
    out: PathBuf,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// A saved run of this design, whose times the page shows
    #[arg(long, value_name = "RUN.json")]
    run: Option<PathBuf>,
    /// Batch entry of the picture
    #[arg(long, default_value_t = 0)]
    b: usize,
    /// Query head of the picture
    #[arg(long, default_value_t = 0)]
    h: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn share(args: Args) -> Result<(), Failure> {
    let opened = opened::open(&args.design, &args.code, &args.overrides)?;
    let compiled = opened.compile()?;
    let problem = opened.problem(&compiled)?;
    check_head(&opened.document, args.b, args.h)?;
    let run = match &args.run {
        Some(path) => Some(RunFile::open(path)?),
        None => own_run(&args.design)?,
    };
    // changed lengths or heads are another problem, whose times these are not
    if let Some(run) = &run
        && run.fingerprint.as_ref().is_some_and(|own| *own != problem.fingerprint())
    {
        return Err(run_file::of_another(args.run.as_deref().unwrap_or(Path::new(&args.design))).into());
    }
    let report = run.as_ref().map(|run| &run.report);
    let made = sharing::html(&opened.document, &problem, &opened.files, report, (args.b, args.h), &Control::new())?;
    files::save(&args.out, &made.bytes)?;
    match args.json {
        true => out::json(&json!({ "page": args.out, "bytes": made.bytes.len(), "name": opened.document.name })),
        false => Ok(()),
    }
}

/// The run that the design was opened from.
fn own_run(name: &str) -> Result<Option<RunFile>, Failure> {
    let path = Path::new(name);
    if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) || !path.is_file() {
        return Ok(None);
    }
    match run_file::is_run(&files::read_text(path)?) {
        true => Ok(Some(RunFile::open(path)?)),
        false => Ok(None),
    }
}
