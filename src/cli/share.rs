//! `maskloom share`: a design as one file to hand on.
//!
//! Invariant: the file alone shows the design and gives it back. Must not know workers.

use super::figures::{self, Shown};
use super::opened::{self, CodeArgs, Opened};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::render::check_head;
use super::table;
use crate::analysis::raster::{self, Picture, Region};
use crate::base::Control;
use crate::export::{ExportFile, file_stem};
use crate::ir::graph::Mod;
use crate::tasks::run_file::{self, RunFile};
use crate::tasks::sharing;
use crate::words::Language;
use crate::worker::files;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pixels of a figure's longer side, at most.
const PIXELS: usize = 1024;

/// Write a design as one HTML file: a picture that zooms, numbers, runs, code, and the design itself
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a preset, FILE.json, FILE.py:ENTRY, or a saved run, whose times the page shows
    design: String,
    /// File of the page, by default the design's name in the current folder; `maskloom FILE.html` opens its design. A .svg or .pdf is a figure: of
    /// the run where there is one, of the mask otherwise
    #[arg(long, alias = "to", value_name = "F.html|svg|pdf", value_parser = super::ending::one_of(&["html", "htm", "svg", "pdf"]))]
    out: Option<PathBuf>,
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
pub(super) fn share(args: Args) -> Result<(), Failure> {
    let opened = opened::open(&args.design, &args.code, &args.overrides)?;
    let compiled = opened.compile()?;
    let problem = opened.problem(&compiled)?;
    check_head(&opened.document, args.b, args.h)?;
    let out = args.out.clone().unwrap_or_else(|| format!("{}.html", file_stem(&opened.document.name)).into());
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
    if figures::is_figure(&out) {
        let written = figure(&args, &out, &opened, compiled.mask.clone(), run.as_ref())?;
        return match args.json {
            true => out::json(&json!({ "files": written, "name": opened.document.name })),
            false => Ok(()),
        };
    }
    let report = run.as_ref().map(|run| &run.report);
    let (shown, language) = ((args.b, args.h), Language::chosen());
    let made = sharing::html(&opened.document, &problem, &opened.files, report, shown, language, &Control::new())?;
    files::save(&out, &made.bytes)?;
    match args.json {
        true => out::json(&json!({ "page": out::path(&out), "bytes": made.bytes.len(), "name": opened.document.name })),
        false => told(&out, &made),
    }
}

/// Where the page is.
fn told(out: &Path, made: &ExportFile) -> Result<(), Failure> {
    let size = table::bytes(made.bytes.len() as u64);
    out::text(&format!("{}  {size}  {}\n", out.display(), out::words().phrase(&made.what)))
}

/// The figure, and the files that were written.
fn figure(
    args: &Args,
    out: &Path,
    opened: &Opened,
    mask: Option<Arc<Mod>>,
    run: Option<&RunFile>,
) -> Result<Vec<String>, Failure> {
    if let Some(run) = run {
        return figures::write(&figures::race(run), out);
    }
    let lengths = opened.document.axes.lengths()?;
    let [high, wide] = lengths.in_pixels(PIXELS.min(lengths.longer()));
    let region = Region::whole([args.b, args.h], lengths, [high, wide]);
    let Picture { pixels, exact } = raster::picture(mask.as_ref(), &region, &Control::new());
    let (q, kv) = (0..lengths.q_len, 0..lengths.kv_len);
    let shown = Shown { document: &opened.document, place: [args.b, args.h], q, kv, pixels: [wide, high] };
    figures::write(&shown.mask(&pixels, exact), out)
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
