//! `maskloom export`: writes a trainer's config with its attention setting, and every exported form of a design.
//!
//! Invariant: either all files are written or none; an existing file is replaced only with --force, except the config
//! named by --merge. Must not know trainers.

use super::arguments;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::table::{self, Cell, Table};
use crate::base::{BackendName, Diagnostic};
use crate::document::from_document;
use crate::export::ExportFile;
use crate::export::lowered::Target;
use crate::tasks::exporting;
use crate::tasks::kernel_files::USUAL_ARCHITECTURES;
use crate::tasks::placing;
use crate::tasks::run_file::RunFile;
use crate::trainers::{ConfigRequest, Trainer};
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;

/// Write a trainer's config.json, and the design as preset, PyTorch module, adapters, sidecar, block lists and picture
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// Folder to write into; created if missing
    #[arg(long, alias = "out", value_name = "DIR")]
    to: PathBuf,
    /// A trainer's config to merge the setting into: its copy in --to has the setting, all other bytes are unchanged
    #[arg(long, value_name = "config.json")]
    merge: Option<PathBuf>,
    /// Backend that the config selects; the default is SDPA, because no config key holds a mask
    #[arg(long, value_parser = arguments::backend)]
    backend: Option<BackendName>,
    /// The config's trainer
    #[arg(long, value_enum, default_value_t = TrainerName::Simpletuner)]
    trainer: TrainerName,
    /// Name of the files and of the Python module; the default is the design's name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Also export the CUDA kernel as a PyTorch operator, compiled for these architectures
    #[arg(long, value_name = "sm_N,...", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_values = USUAL_ARCHITECTURES)]
    kernels: Option<Vec<String>>,
    /// With --kernels: gradients have the same bits in every run
    #[arg(long, requires = "kernels")]
    deterministic: bool,
    /// Also write the mask for cudnn.flex_attention, as the ends of each row's ranges of keys, with its plan and call
    #[arg(long)]
    to_cudnn: bool,
    /// Also write the mask for FlashMask, as startend_row_indices
    #[arg(long)]
    to_flashmask: bool,
    /// Also write the mask for MagiAttention, as slices: q_ranges, k_ranges, attn_type_map
    #[arg(long)]
    to_magi: bool,
    /// A saved run; the report uses its timings and errors
    #[arg(long, value_name = "F.json")]
    run: Option<PathBuf>,
    /// List the files without writing them
    #[arg(long)]
    preview: bool,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TrainerName {
    /// `attention_mechanism`
    Simpletuner,
    /// `attn_implementation`
    Transformers,
}

impl Args {
    fn lowered(&self) -> Vec<Target> {
        let all =
            [(self.to_cudnn, Target::Cudnn), (self.to_flashmask, Target::FlashMask), (self.to_magi, Target::Magi)];
        all.into_iter().filter(|(wanted, _)| *wanted).map(|(_, target)| target).collect()
    }
}

/// Runs the command.
pub(super) fn export(args: Args) -> Result<(), Failure> {
    let opened = opened::open(&args.preset, &args.code, &args.overrides)?;
    let compiled = opened.compile()?;
    let problem = from_document(&opened.document, &compiled)?;
    let existing = args.merge.as_deref().map(exporting::config_at).transpose()?;
    let config = ConfigRequest {
        trainer: match args.trainer {
            TrainerName::Simpletuner => Trainer::SimpleTuner,
            TrainerName::Transformers => Trainer::Transformers,
        },
        backend: args.backend,
        measured: None,
        designed: true,
        existing: existing.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    };
    let run = args.run.as_deref().map(RunFile::open).transpose()?;
    if run.as_ref().is_some_and(|r| r.document != opened.document) {
        let why = Diagnostic::warning(
            "export-run",
            "the saved run belongs to another document; the report uses its timings nevertheless",
        );
        out::diagnostics(&[why.hint("save one of this document: maskloom run ... --save-run F.json")]);
    }
    let kernels: Vec<&str> = args.kernels.iter().flatten().map(String::as_str).collect();
    let wish = exporting::Wish {
        config,
        run: run.as_ref().map(|r| &r.report),
        name: args.name.as_deref(),
        shown: (0, 0),
        kernels: &kernels,
        deterministic: args.deterministic,
        lowered: &args.lowered(),
    };
    let exported = exporting::make(&opened.document, &problem, &opened.files, &wish)?;
    if let Some(why) = exported.no_kernel {
        // requested by name: without it the command would be incomplete
        return Err(why.into());
    }
    let made = exported.bundle;
    if args.preview {
        out::diagnostics(&made.notes);
        return tell(&args, &made.files);
    }
    let all = made.files;
    refuse_to_replace(&args, &all)?;
    placing::place(&args.to, &all)?;
    out::diagnostics(&made.notes);
    tell(&args, &all)
}

/// Lists every file in the way before anything is written.
fn refuse_to_replace(args: &Args, all: &[ExportFile]) -> Result<(), Failure> {
    let merged = args.merge.as_deref().and_then(|p| std::fs::canonicalize(p).ok());
    let mut others = placing::in_the_way(&args.to, all);
    others.retain(|path| merged.is_none() || std::fs::canonicalize(path).ok() != merged);
    let names: Vec<String> = others.iter().map(|path| path.display().to_string()).collect();
    if args.force || names.is_empty() {
        return Ok(());
    }
    let message = format!("already exists: {}; nothing was written", names.join(", "));
    Err(Diagnostic::error("export-exists", message)
        .hint("--force replaces them; --merge FILE keeps a config's other settings")
        .into())
}

fn tell(args: &Args, all: &[ExportFile]) -> Result<(), Failure> {
    if args.json {
        let one = |f: &ExportFile| json!({ "path": out::path(&args.to.join(&f.name)), "bytes": f.bytes.len(), "what": f.what });
        return out::json(&json!({ "files": all.iter().map(one).collect::<Vec<_>>() }));
    }
    let mut table = Table::default();
    for f in all {
        let path = args.to.join(&f.name).display().to_string();
        let what = Cell::told(|said| said.phrase(&f.what));
        table.row([path.into(), table::bytes(f.bytes.len() as u64).into(), what]);
    }
    out::text(&table.render())
}
