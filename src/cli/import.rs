//! `maskloom import`: turns another program's mask, or an exported folder, into a document.
//!
//! Invariant: nothing is replaced without --force; missing information is reported. Must not know file formats.

use super::arguments;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use crate::base::Diagnostic;
use crate::document::compile::compile;
use crate::document::file;
use crate::document::model::{Document, LinkedCode, MaskContent, ScoreContent, TextCode};
use crate::tasks::environment::Files;
use crate::tasks::imports;
use crate::worker::files;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Make a document from a dense mask (.npy, .safetensors, .png), block lists, FlexAttention code or an exported
/// config.json
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// mask.npy, mask.png, NAME.safetensors, FILE.py:ENTRY, NAME.maskloom.json, or a config.json with a preset next to
    /// it
    file: String,
    /// Document to write; the default is the file's name with .maskloom.json, in the current folder
    #[arg(long, alias = "out", value_name = "FILE.json", value_parser = super::ending::one_of(&["json"]))]
    to: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn import(args: Args) -> Result<(), Failure> {
    let name = preset_of_config(&args.file)?.unwrap_or_else(|| args.file.clone());
    let opened = opened::open(&name, &args.code, &args.overrides)?;
    let mut document = opened.document.clone();
    if let Some((path, _)) = opened::python(&name) {
        embed(&mut document, &path, &opened.files)?;
    }
    // compile first, so that an error is reported before the file is written
    let lengths = document.axes.lengths()?;
    opened.compile()?;
    let stem =
        Path::new(name.split(".py:").next().unwrap_or(&name)).file_stem().map(|s| s.to_string_lossy().into_owned());
    let stem = stem.map_or("imported".into(), |s| s.trim_end_matches(".maskloom").to_string());
    let to = args.to.clone().unwrap_or_else(|| format!("{stem}.maskloom.json").into());
    if to.exists() && !args.force {
        let message = format!("already exists: {}; nothing was written", to.display());
        return Err(Diagnostic::error("import-exists", message).hint("--force replaces it; --to names another").into());
    }
    files::save_with_folders(&to, file::to_json(&document).as_bytes())?;
    let layers = document.layers.len() + document.scores.len();
    if args.json {
        let object =
            json!({ "file": out::path(&to), "q_len": lengths.q_len, "kv_len": lengths.kv_len, "layers": layers });
        return out::json(&object);
    }
    let figures = [
        ("file", out::path(&to)),
        ("layers", layers.to_string()),
        ("q", lengths.q_len.to_string()),
        ("kv", lengths.kv_len.to_string()),
        ("command", format!("maskloom {}", out::word(&out::path(&to)))),
    ];
    out::text(&out::line("import-done", &figures.map(|(name, text)| (name, text.into()))))
}

/// The preset next to a trainer's configuration. Errors: the file is a configuration, and no preset is next to it.
fn preset_of_config(name: &str) -> Result<Option<String>, Failure> {
    let path = Path::new(name);
    if path.file_name().is_none_or(|n| n != "config.json") {
        return Ok(None);
    }
    match imports::preset_beside(path) {
        Ok(Some(preset)) => Ok(Some(arguments::as_text(&preset)?)),
        none => {
            let why = match none {
                Err(why) => format!("and {why}"),
                _ => format!("and there is not exactly one preset next to {name}"),
            };
            let message = format!("a trainer's configuration contains no mask, {why}");
            Err(Diagnostic::error("import-config", message).hint("name the NAME.maskloom.json of the design").into())
        }
    }
}

/// Linked code becomes text of the document if it works without its folder; otherwise the link becomes a full path.
fn embed(document: &mut Document, path: &Path, from: &Files) -> Result<(), Failure> {
    let linked = arguments::as_text(&std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))?;
    let source = files::read_text(path)?;
    let text = |code: &LinkedCode| {
        let LinkedCode { entry, args, tensors, .. } = code.clone();
        TextCode { source: source.clone(), entry, args, tensors }
    };
    let with_link = document.clone();
    for layer in &mut document.layers {
        if let MaskContent::Linked(code) = &layer.content {
            layer.content = MaskContent::Text(text(code));
        }
    }
    for layer in &mut document.scores {
        if let ScoreContent::Linked(code) = &layer.content {
            layer.content = ScoreContent::Text(text(code));
        }
    }
    if !compile(document, &Files::new(None, Vec::new())).has_errors() || compile(&with_link, from).has_errors() {
        return Ok(());
    }
    *document = with_link;
    for layer in &mut document.layers {
        if let MaskContent::Linked(code) = &mut layer.content {
            code.path = linked.clone();
        }
    }
    for layer in &mut document.scores {
        if let ScoreContent::Linked(code) = &mut layer.content {
            code.path = linked.clone();
        }
    }
    let note =
        Diagnostic::note("import-linked", format!("the document reads {linked}, because it imports other files"));
    out::diagnostics(&[note]);
    Ok(())
}
