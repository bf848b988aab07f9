//! What a command works on: a preset by name, a document file, or FlexAttention code in `FILE.py:ENTRY`.
//!
//! Invariant: every command finds its document the same way. Must not know what is done with it.

use super::out::{self, Failure};
use super::overrides::Overrides;
use crate::base::{Diagnostic, HostTensor, Severity, Source};
use crate::document::compile::{Compiled, Environment, compile};
use crate::document::model::*;
use crate::document::{file, library};
use crate::language::graph::ModKind;
use crate::language::outline::{Entry, EntryKind, outline};
use crate::service::environment::Files;
use crate::service::run_file::{self, RunFile};
use crate::service::{files, folders, imports};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A document and where its names lead.
#[derive(Debug)]
pub struct Opened {
    pub document: Document,
    pub files: Files,
}

/// Arguments and tensors for `FILE.py`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CodeArgs {
    /// Argument of a factory, as Python writes it; `pattern:NAME` passes a library pattern
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = super::arguments::assignment)]
    pub args: Vec<(String, ArgValue)>,
    /// Captured tensors by name (or one array as NAME.npy): globals of the code, or tensor parameters of its factory
    #[arg(long, value_name = "F.safetensors")]
    pub tensors: Option<PathBuf>,
    /// Folder of Python modules that the code imports
    #[arg(long = "package", value_name = "DIR")]
    pub packages: Vec<PathBuf>,
}

/// Opens what the user named, and applies the overrides.
pub fn open(name: &str, code: &CodeArgs, overrides: &Overrides) -> Result<Opened, Failure> {
    let python = python(name);
    // a module that was exported is a document, other code is linked
    let exported = match &python {
        Some((path, "")) => imports::import(path)?,
        _ => None,
    };
    let mut opened = match (python, exported) {
        (Some((path, entry)), None) => from_code(&path, entry, code, overrides, None)?,
        (_, exported) => {
            let mut opened = match exported {
                Some(imported) => from_import(imported, code),
                None => from_document(name, code)?,
            };
            overrides.apply(&mut opened.document)?;
            give_arguments(&mut opened.document, code)?;
            opened
        }
    };
    overrides.apply_settings(&mut opened.document);
    Ok(opened)
}

impl Opened {
    /// Compiles; warnings go to stderr. Errors: those of the layers.
    pub fn compile(&self) -> Result<Compiled, Failure> {
        self.compile_telling(Severity::Warning)
    }

    /// The same, telling what is at least so severe.
    pub fn compile_telling(&self, least: Severity) -> Result<Compiled, Failure> {
        let compiled = compile(&self.document, &self.files);
        let (errors, mut others): (Vec<_>, Vec<_>) =
            compiled.all_diagnostics().cloned().partition(Diagnostic::is_error);
        others.retain(|d| d.severity >= least);
        out::diagnostics(&others);
        if errors.is_empty() { Ok(compiled) } else { Err(errors.into()) }
    }
}

/// Whether a name leads to a preset or a file.
pub fn exists(name: &str) -> bool {
    let code = python(name).is_some_and(|(path, _)| path.exists());
    let own = || folders::presets().is_some_and(|f| f.join(format!("{name}.json")).is_file());
    code || library::preset(name).is_some() || Path::new(name).exists() || own()
}

/// Path and entry of `FILE.py` or `FILE.py:ENTRY`.
pub fn python(name: &str) -> Option<(PathBuf, &str)> {
    if let Some(at) = name.rfind(".py:") {
        return Some((name[..at + 3].into(), &name[at + 4..]));
    }
    name.ends_with(".py").then(|| (name.into(), ""))
}

fn from_import(imported: imports::Imported, code: &CodeArgs) -> Opened {
    out::diagnostics(&imported.notes);
    Opened { document: imported.document, files: Files::new(None, code.packages.clone()) }
}

fn from_document(name: &str, code: &CodeArgs) -> Result<Opened, Failure> {
    let with = |document, base| Opened { document, files: Files::new(base, code.packages.clone()) };
    if let Some(preset) = library::preset(name) {
        return Ok(with(preset.document()?, None));
    }
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let own = folders::presets().filter(|_| plain).map(|f| f.join(format!("{name}.json"))).filter(|p| p.is_file());
    let path = own.unwrap_or_else(|| PathBuf::from(name));
    if plain && !path.exists() {
        return Err(Failure::WrongUse(unknown_preset(name)));
    }
    if let Some(imported) = imports::import(&path)? {
        return Ok(from_import(imported, code));
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("safetensors")) {
        let tensors = crate::service::tensors::read(&path)?;
        return Err(imports::no_mask(&path, tensors.iter().map(|(name, t)| (name.as_str(), t.shape()))).into());
    }
    let text = files::read_text(&path)?;
    if run_file::is_run(&text) {
        return Ok(with(RunFile::open(&path)?.document, path.parent().map(Path::to_path_buf)));
    }
    let document =
        file::from_json(&text).map_err(|all| all.into_iter().map(|d| in_file(d, &path)).collect::<Vec<_>>())?;
    Ok(with(document, path.parent().map(Path::to_path_buf)))
}

fn in_file(mut why: Diagnostic, path: &Path) -> Diagnostic {
    why.message = format!("{}: {}", path.display(), why.message);
    why
}

fn unknown_preset(name: &str) -> Diagnostic {
    let near = library::did_you_mean(name, library::presets().iter().map(|p| p.name));
    Diagnostic::error("unknown-preset", format!("there is no preset named `{name}`, and no such file"))
        .hint(format!("{near}`maskloom presets` lists all; FILE.json and FILE.py:ENTRY work too"))
}

/// A document around a linked file: one layer or score mod over plain tokens.
pub fn from_code(
    path: &Path,
    entry: &str,
    code: &CodeArgs,
    overrides: &Overrides,
    kind: Option<ModKind>,
) -> Result<Opened, Failure> {
    let files = Files::new(path.parent().map(Path::to_path_buf), code.packages.clone());
    let file_name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let text = files.linked(&file_name)?;
    let outline = outline(&Source::new(path.display().to_string(), text));
    let found = match entry {
        "" => outline.entries.last(),
        name => outline.entries.iter().rev().find(|e| e.name == name),
    };
    let (args, tensors) = split_tensors(code, found)?;
    let linked = LinkedCode { path: file_name, entry: entry.to_string(), args, tensors };
    let mut attempts = kinds(kind, found).into_iter().map(|kind| {
        let mut document = around(path, linked.clone(), kind);
        overrides.apply(&mut document).map(|()| document)
    });
    let first = attempts.next().expect("at least one kind")?;
    // a factory's kind shows only when it is traced
    if let Some(second) = attempts.next()
        && compile(&first, &files).has_errors()
    {
        let second = second?;
        if !compile(&second, &files).has_errors() {
            return Ok(Opened { document: second, files });
        }
    }
    Ok(Opened { document: first, files })
}

fn kinds(asked: Option<ModKind>, found: Option<&Entry>) -> Vec<ModKind> {
    match (asked, found.map(|e| e.kind)) {
        (Some(kind), _) => vec![kind],
        (None, Some(EntryKind::MaskMod)) => vec![ModKind::Mask],
        (None, Some(EntryKind::ScoreMod)) => vec![ModKind::Score],
        (None, Some(EntryKind::Factory) | None) => vec![ModKind::Mask, ModKind::Score],
    }
}

fn around(path: &Path, linked: LinkedCode, kind: ModKind) -> Document {
    let entry = if linked.entry.is_empty() { "code".to_string() } else { linked.entry.clone() };
    let name = format!("{} of {}", entry, path.display());
    let mut document = Document::new(name, Axes::same(Axis::tokens(4096)), Settings::new(8, 64));
    match kind {
        ModKind::Mask => {
            let content = MaskContent::Linked(linked);
            document.layers.push(Layer { id: 1, name: entry, enabled: true, combine: Combine::And, content });
        }
        ModKind::Score => {
            let content = ScoreContent::Linked(linked);
            document.scores.push(ScoreLayer { id: 1, name: entry, enabled: true, content });
        }
    }
    document
}

type Split = (BTreeMap<String, ArgValue>, BTreeMap<String, HostTensor>);

/// Tensors that name a parameter become arguments, the others globals.
fn split_tensors(code: &CodeArgs, entry: Option<&Entry>) -> Result<Split, Failure> {
    let mut args: BTreeMap<String, ArgValue> = code.args.iter().cloned().collect();
    let mut globals = BTreeMap::new();
    let Some(path) = &code.tensors else { return Ok((args, globals)) };
    let is_param = |name: &str| entry.is_some_and(|e| e.params.iter().any(|p| p.name == name));
    for (name, tensor) in crate::service::tensors::read(path)? {
        if is_param(&name) && !args.contains_key(&name) {
            args.insert(name, ArgValue::Tensor { tensor });
        } else {
            globals.insert(name, tensor);
        }
    }
    Ok((args, globals))
}

/// `--arg` on a preset goes to its only layer with code.
fn give_arguments(document: &mut Document, code: &CodeArgs) -> Result<(), Failure> {
    if code.args.is_empty() {
        return Ok(());
    }
    let masks = document.layers.iter_mut().filter(|l| l.enabled).filter_map(|l| match &mut l.content {
        MaskContent::Pattern(code) => Some(&mut code.args),
        MaskContent::Text(code) => Some(&mut code.args),
        MaskContent::Linked(code) => Some(&mut code.args),
        _ => None,
    });
    let scores = document.scores.iter_mut().filter(|s| s.enabled).filter_map(|s| match &mut s.content {
        ScoreContent::Pattern(code) => Some(&mut code.args),
        ScoreContent::Text(code) => Some(&mut code.args),
        ScoreContent::Linked(code) => Some(&mut code.args),
        ScoreContent::Curve { .. } => None,
    });
    let mut layers: Vec<_> = masks.chain(scores).collect();
    let [args] = &mut layers[..] else {
        let message = format!("--arg needs a document with one layer of code; this one has {}", layers.len());
        return Err(Failure::WrongUse(
            Diagnostic::error("argument-layer", message).hint("edit the layers' `args` in the document's file"),
        ));
    };
    args.extend(code.args.iter().cloned());
    Ok(())
}
