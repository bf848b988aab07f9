//! `maskloom run`: race backends on a preset, a document or code.
//!
//! Invariant: status 0 only if a backend ran and every one that ran was right. Must not know the protocol.

use super::arguments;
use super::inputs::InputArgs;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::race;
use super::work::{Where, Worker};
use crate::base::BackendName;
use crate::service::plan::{self, ROUNDS};
use crate::service::run_file::RunFile;
use crate::service::transport::Payload;
use crate::service::{files, tensors};
use std::path::{Path, PathBuf};

/// Race backends on a preset, a document (FILE.json) or code (FILE.py:ENTRY)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// Who races, in order: eager, sdpa, flash_attention_2, flex, torch:eager, torch:sdpa, torch:flex, torch:flex-flash
    #[arg(long, value_delimiter = ',', value_parser = arguments::backend)]
    backend: Vec<BackendName>,
    #[command(flatten)]
    at: Where,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Timing rounds, interleaved over the backends; 0: correctness only
    #[arg(long, default_value_t = ROUNDS)]
    rounds: u32,
    /// Query rows compared with the float64 reference at most; small problems are compared whole
    #[arg(long, value_name = "N", default_value_t = 1024)]
    reference_rows: u32,
    /// Python with your PyTorch, for torch:* backends
    #[arg(long, value_name = "PATH")]
    python: Option<String>,
    /// Ask for the rows' largest scores too, as flex_attention's AuxRequest(max_scores=True) does: prints the largest of each
    /// head (for QK-clip), and --out saves BACKEND.max_scores
    #[arg(long)]
    max_scores: bool,
    /// Save every backend's output and lse: tensors BACKEND.out and BACKEND.lse
    #[arg(long, value_name = "F.safetensors")]
    out: Option<PathBuf>,
    /// Save the run: environment, preset, every sample, errors, small pictures
    #[arg(long, value_name = "F.json")]
    save_run: Option<PathBuf>,
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<(), Failure> {
    let mut opened = opened::open(&args.preset, &args.code, &args.overrides)?;
    let inputs = args.inputs.source(&mut opened.document, &args.overrides, args.at.target.trim().is_empty())?;
    let compiled = opened.compile()?;
    // a problem that is none is told before a worker starts
    let mut request = plan::run_request(&opened.document, &compiled, crate::base::Device::Cpu)?;
    let mut worker = Worker::connect(&args.at.target)?;
    request.device = worker.device(args.at.device, &opened.document);
    request.inputs = inputs;
    request.rounds = args.rounds;
    request.problem.max_scores = args.max_scores;
    request.reference_rows = args.reference_rows;
    request.keep_outputs = args.out.is_some();
    request.python = args.python;
    if !args.backend.is_empty() {
        request.backends = args.backend;
    }
    let (report, payloads) = worker.run(request.clone())?;
    race::notes(&report);
    if let Some(path) = &args.out {
        save_outputs(path, &payloads)?;
    }
    if let Some(path) = &args.save_run {
        RunFile::new(&opened.document, &compiled, &request, report.clone()).save(path)?;
    }
    let name = &opened.document.name;
    if args.json {
        out::json(&race::json(name, &request.problem, &report))?;
    } else {
        let heads = if args.max_scores { race::max_scores(&report) } else { String::new() };
        out::text(&format!("{}\n{}{heads}", race::title(name, &request.problem, &report), race::render(&report)))?;
    }
    if race::succeeded(&report) { Ok(()) } else { Err(Failure::Told(Vec::new())) }
}

fn save_outputs(path: &Path, payloads: &[Payload]) -> Result<(), Failure> {
    let all = payloads.iter().map(|(info, bytes)| (info.name.clone(), info.dtype, &info.shape[..], &bytes[..]));
    Ok(files::save(path, &tensors::write_raw(all)?)?)
}
