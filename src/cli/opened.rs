//! The document of a command: a preset by name, a document file, or FlexAttention code in `FILE.py:ENTRY`.
//!
//! Invariant: every command finds its document in the same way. Must not know what is done with it.

use super::out::{self, Failure};
use super::overrides::Overrides;
use super::pair;
use super::remarks::Remark;
use crate::base::{BlockSize, Diagnostic, HostTensor, Severity, Source};
use crate::document::compile::{Compiled, Environment, compile};
use crate::document::model::*;
use crate::document::pasted::{Sizes, Tables};
use crate::document::{file, library};
use crate::ir::graph::ModKind;
use crate::problem::Problem;
use crate::python::Chosen;
use crate::python::outline::{Entry, EntryKind, Outline, outline};
use crate::tasks::environment::Files;
use crate::tasks::imports;
use crate::tasks::run_file::{self, RunFile};
use crate::worker::{files, folders};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A document and the folder of its links.
#[derive(Debug)]
pub(super) struct Opened {
    pub document: Document,
    pub files: Files,
    /// For code: the chosen function and the sizes that the text sets.
    pub said: Vec<Remark>,
    /// For code: the chosen function.
    pub chosen: Option<Chosen>,
}

/// Arguments and tensors for `FILE.py`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct CodeArgs {
    /// Argument of a function or missing global, as Python writes it: 512, None, [8,8], torch.tensor([0,1]);
    /// `config.window=9` sets an object's attribute, `pattern:NAME` passes a library pattern
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = super::arguments::assignment)]
    pub args: Vec<(String, ArgValue)>,
    /// Captured tensors by name (or one array as NAME.npy): globals of the code, or parameters of its functions; may be
    /// repeated
    #[arg(long, value_name = "F.safetensors")]
    pub tensors: Vec<PathBuf>,
    /// Folder of Python modules that the code imports
    #[arg(long = "package", value_name = "DIR")]
    pub packages: Vec<PathBuf>,
}

/// Opens what the user named, and applies the overrides.
pub(super) fn open(name: &str, code: &CodeArgs, overrides: &Overrides) -> Result<Opened, Failure> {
    let python = python(name);
    // an exported module is a document, other code is linked
    let exported = match &python {
        Some((path, "")) => imports::import(path)?,
        Some((path, entry)) if pair::is_whole_module(entry) => {
            imports::import(path)?.filter(|i| !i.document.layers.is_empty() && !i.document.scores.is_empty())
        }
        Some((path, entry @ ("mask_mod" | "score_mod"))) => {
            imports::import(path)?.and_then(|whole| alone(whole, entry))
        }
        _ => None,
    };
    let mut opened = match (python, exported) {
        (Some((path, entry)), None) => from_code(&path, entry, code, overrides, None)?,
        (_, exported) => {
            if !code.tensors.is_empty() {
                let message = format!("--tensors goes with FILE.py, and `{name}` is none");
                let why = Diagnostic::error("tensors-unused", message);
                return Err(Failure::WrongUse(
                    why.hint("a document has the tensors of its code in itself, or as links to files"),
                ));
            }
            let mut opened = match exported {
                Some(imported) => from_import(imported, code),
                None => from_document(name, code, overrides.block_size)?,
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
    /// A document and the folder of its links.
    pub(super) fn new(document: Document, files: Files) -> Opened {
        Opened { document, files, said: Vec::new(), chosen: None }
    }

    /// The problem of a compiled document. Errors: those of the layers, and every broken rule.
    pub(super) fn problem(&self, compiled: &Compiled) -> Result<Problem, Failure> {
        Ok(crate::document::from_document(&self.document, compiled)?)
    }

    /// Compiles; warnings go to stderr. Errors: those of the layers.
    pub(super) fn compile(&self) -> Result<Compiled, Failure> {
        self.compile_telling(Severity::Warning)
    }

    /// The same, with a minimum severity of the printed diagnostics.
    pub(super) fn compile_telling(&self, least: Severity) -> Result<Compiled, Failure> {
        let compiled = compile(&self.document, &self.files);
        out::remember(&self.files.passed_over());
        let (errors, mut others): (Vec<_>, Vec<_>) =
            compiled.all_diagnostics().cloned().partition(Diagnostic::is_error);
        others.retain(|d| d.severity >= least);
        // a report of notes contains them already
        if least > Severity::Note {
            self.said.iter().for_each(|remark| out::note(&remark.told(out::words())));
        }
        out::diagnostics(&others);
        if errors.is_empty() { Ok(compiled) } else { Err(errors.into()) }
    }
}

/// Whether a name refers to a preset or a file.
pub(super) fn exists(name: &str) -> bool {
    let code = python(name).is_some_and(|(path, _)| path.exists());
    let own = own_preset(name.strip_prefix(OWN).unwrap_or(name));
    code || library::preset(name).is_some() || Path::new(name).exists() || own.is_some()
}

/// Before the name of a preset of the user's own: also where a built-in one has the same name.
pub(super) const OWN: &str = "own:";

/// The file of a preset in the user's folder.
fn own_preset(name: &str) -> Option<PathBuf> {
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    folders::presets().filter(|_| plain).map(|f| f.join(format!("{name}.json"))).filter(|p| p.is_file())
}

/// Path and entry of `FILE.py`, `FILE.py:ENTRY` or `FILE.py:MASK,SCORE`; a notebook's code cells are such a file.
pub(super) fn python(name: &str) -> Option<(PathBuf, &str)> {
    [".py", ".ipynb"].into_iter().find_map(|ending| match name.rfind(&format!("{ending}:")) {
        Some(at) => Some((name[..at + ending.len()].into(), &name[at + ending.len() + 1..])),
        None => name.ends_with(ending).then(|| (name.into(), "")),
    })
}

/// One of the two mods of an exported module; None if it has no mod of this name.
fn alone(mut imported: imports::Imported, entry: &str) -> Option<imports::Imported> {
    let document = &mut imported.document;
    match entry {
        "mask_mod" => document.scores.clear(),
        _ => document.layers.clear(),
    }
    (!document.layers.is_empty() || !document.scores.is_empty()).then_some(imported)
}

fn from_import(imported: imports::Imported, code: &CodeArgs) -> Opened {
    out::diagnostics(&imported.notes);
    Opened::new(imported.document, Files::new(None, code.packages.clone()))
}

fn from_document(name: &str, code: &CodeArgs, block_size: Option<BlockSize>) -> Result<Opened, Failure> {
    let with = |document, base| Opened::new(document, Files::new(base, code.packages.clone()));
    let (name, asked) = name.strip_prefix(OWN).map_or((name, false), |own| (own, true));
    let own = own_preset(name);
    if let Some(preset) = library::preset(name).filter(|_| !asked) {
        if let Some(own) = own {
            let message = format!("`{name}` is the built-in preset, not {}", own.display());
            let hint = format!("{OWN}{name} opens yours; another name for the file ends the confusion");
            out::diagnostics(&[Diagnostic::warning("preset-hidden", message).hint(hint)]);
        }
        return Ok(with(preset.document()?, None));
    }
    // a folder that cannot be listed may hold it
    let unread = || out::diagnostics(&Vec::from_iter(folders::wrong("MASKLOOM_PRESETS")));
    if asked && own.is_none() {
        unread();
        let folder = folders::presets().map(|folder| folder.display().to_string()).unwrap_or_default();
        let why = Diagnostic::error("unknown-preset", format!("there is no preset `{name}` of your own in {folder}"));
        return Err(Failure::WrongUse(why.hint("`maskloom presets` lists all")));
    }
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let path = own.unwrap_or_else(|| PathBuf::from(name));
    if plain && !files::is_there(&path)? {
        unread();
        return Err(Failure::WrongUse(unknown_preset(name)));
    }
    if let Some(imported) = imports::import_blocks(&path, block_size)? {
        return Ok(from_import(imported, code));
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("safetensors")) {
        let tensors = crate::worker::tensors::read(&path)?;
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
pub(super) fn from_code(
    path: &Path,
    entry: &str,
    code: &CodeArgs,
    overrides: &Overrides,
    kind: Option<ModKind>,
) -> Result<Opened, Failure> {
    let files = Files::new(path.parent().map(Path::to_path_buf), code.packages.clone());
    let file_name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let text = files.linked(&file_name)?;
    let outline = outline(&Source::new(path.display().to_string(), text.as_str()));
    let both = pair::names(entry, &outline)?.filter(|_| kind.is_none() || !entry.is_empty());
    if let Some([a, b]) = both {
        let one = |own, other| from_code(path, own, &arguments_of(code, &outline, own, other), overrides, None);
        return joined(path, [one(a, b)?, one(b, a)?], !entry.is_empty());
    }
    let found = match entry {
        "" => outline.entries.last(),
        name => outline.entries.iter().rev().find(|e| e.name == name),
    };
    let (args, tensors) = split_tensors(code, found, &text)?;
    let linked = LinkedCode { path: file_name, entry: entry.to_string(), args, tensors };
    let mut best: Option<(Document, Compiled)> = None;
    for kind in kinds(kind, found) {
        let mut document = around(path, linked.clone(), kind);
        overrides.apply(&mut document)?;
        let compiled = compile(&document, &files);
        let failed = compiled.has_errors();
        if !failed || best.as_ref().is_none_or(|(_, before)| is_other_kind(before) && !is_other_kind(&compiled)) {
            best = Some((document, compiled));
        }
        if !failed {
            break;
        }
    }
    let (mut document, compiled) = best.expect("at least one kind");
    let layer = compiled.layers.first();
    let chosen = layer.and_then(|l| l.chosen.clone());
    let mut said = Vec::new();
    if let Some(chosen) = &chosen {
        name_after(&mut document, path, &chosen.entry);
        said.extend(taken(chosen));
    }
    let source = Source::new("", text.as_str());
    let stated = layer.and_then(|l| l.sizes).map(|sizes| Sizes::of(&sizes, &source)).unwrap_or_default();
    let tables = layer.and_then(|l| l.result.as_deref()).map(Tables::of).unwrap_or_default();
    said.extend(overrides.take_sizes(&mut document, &stated, tables)?);
    Ok(Opened { document, files, said, chosen })
}

/// The arguments for one of two functions: those that are parameters of the other alone are left out.
fn arguments_of(code: &CodeArgs, outline: &Outline, own: &str, other: &str) -> CodeArgs {
    let has = |function: &str, name: &str| {
        let root = name.split('.').next().unwrap_or(name);
        let entry = outline.entries.iter().rev().find(|e| e.name == function);
        entry.is_some_and(|e| e.params.iter().any(|p| p.name == root))
    };
    let mut code = code.clone();
    code.args.retain(|(name, _)| has(own, name) || !has(other, name));
    code
}

/// One document of the two. Errors: those of the code; both are of one kind.
fn joined(path: &Path, [first, second]: [Opened; 2], asked: bool) -> Result<Opened, Failure> {
    let is_mask = |opened: &Opened| opened.document.scores.is_empty();
    let (mut mask, score) = match (is_mask(&first), is_mask(&second)) {
        (true, false) => (first, second),
        (false, true) => (second, first),
        (masks, _) => {
            // a function that has errors may be of the other kind
            first.compile()?;
            second.compile()?;
            let kind = if masks { "mask_mods" } else { "score_mods" };
            let (a, b) = (entry_of(&first), entry_of(&second));
            let message = format!("`{a}` and `{b}` are both {kind}; an attention takes one mask_mod and one score_mod");
            let hint = match masks {
                true => "join them in the code: mask_mod = and_masks(first, second), or or_masks",
                false => "join them in the code: a score_mod that calls one on the result of the other",
            };
            return Err(Diagnostic::error("entry-pair", message).hint(hint).into());
        }
    };
    let (mask_name, score_name) = (entry_of(&mask), entry_of(&score));
    mask.document.name = format!("{mask_name} and {score_name} of {}", path.display());
    add_scores(&mut mask.document, score.document);
    mask.said.extend(score.said);
    mask.said.dedup();
    if !asked {
        mask.said.insert(0, Remark::Pair(mask_name.clone(), score_name.clone()));
    }
    let entry = format!("{mask_name},{score_name}");
    mask.chosen = Some(Chosen { entry, asked, ..Chosen::default() });
    Ok(mask)
}

fn entry_of(opened: &Opened) -> String {
    let document = &opened.document;
    let layer = document.layers.first().map(|l| &l.name);
    layer.or(document.scores.first().map(|s| &s.name)).cloned().unwrap_or_default()
}

fn add_scores(document: &mut Document, of: Document) {
    let next = document.layers.iter().map(|l| l.id).max().unwrap_or(0) + 1;
    document.scores.extend(of.scores.into_iter().zip(next..).map(|(mut score, id)| {
        score.id = id;
        score
    }));
}

/// The chosen function if none was named, and how to choose another.
fn taken(chosen: &Chosen) -> Option<Remark> {
    let Chosen { entry, others, meant, .. } = chosen;
    if chosen.asked || others.is_empty() && !entry.contains('.') {
        return None;
    }
    Some(match &others[..] {
        [] => Remark::Taken(entry.clone()),
        others => Remark::Chosen { entry: entry.clone(), meant: meant.clone(), others: others.to_vec() },
    })
}

fn name_after(document: &mut Document, path: &Path, entry: &str) {
    document.name = format!("{entry} of {}", path.display());
    document.layers.iter_mut().for_each(|l| l.name = entry.to_string());
    document.scores.iter_mut().for_each(|s| s.name = entry.to_string());
}

/// Whether code failed because it is a mod of the other kind.
fn is_other_kind(compiled: &Compiled) -> bool {
    let codes = ["wrong-arity", "bool-score", "float-mask", "entry-not-found"];
    compiled.all_diagnostics().any(|d| d.is_error() && codes.contains(&&*d.code))
}

/// The kinds to try, the likelier first: tracing shows what kind of mod a factory or a partial returns.
fn kinds(asked: Option<ModKind>, found: Option<&Entry>) -> Vec<ModKind> {
    match (asked, found.map(|e| e.kind)) {
        (Some(kind), _) => vec![kind],
        (None, Some(EntryKind::ScoreMod)) => vec![ModKind::Score, ModKind::Mask],
        (None, _) => vec![ModKind::Mask, ModKind::Score],
    }
}

fn around(path: &Path, linked: LinkedCode, kind: ModKind) -> Document {
    let entry = if linked.entry.is_empty() { "code".to_string() } else { linked.entry.clone() };
    let name = format!("{} of {}", entry, path.display());
    let mut document = Document::new(name, Axes::same(Axis::tokens(4096)), Settings::new(8, 64));
    match kind {
        ModKind::Mask => {
            let content = MaskContent::Linked(linked);
            document.layers.push(Layer {
                id: 1,
                name: entry,
                enabled: true,
                combine: Combine::And,
                heads: None,
                content,
            });
        }
        ModKind::Score => {
            let content = ScoreContent::Linked(linked);
            document.scores.push(ScoreLayer { id: 1, name: entry, enabled: true, content });
        }
    }
    document
}

type Split = (BTreeMap<String, ArgValue>, BTreeMap<String, HostTensor>);

/// A tensor named like a parameter becomes an argument, others become globals. An unknown name is reported.
fn split_tensors(code: &CodeArgs, entry: Option<&Entry>, text: &str) -> Result<Split, Failure> {
    let mut args: BTreeMap<String, ArgValue> = code.args.iter().cloned().collect();
    let mut globals = BTreeMap::new();
    let is_param = |name: &str| entry.is_some_and(|e| e.params.iter().any(|p| p.name == name));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for path in &code.tensors {
        for (name, tensor) in crate::worker::tensors::read(path)? {
            if !text.split(|c| !is_word(c)).any(|word| word == name) {
                let reported = Diagnostic::warning(
                    "unused-tensor",
                    format!("the code reads no name `{name}`, the name of the tensor in {}", path.display()),
                );
                out::diagnostics(&[reported
                    .hint("name the tensor like the variable that the code reads; an array file is named NAME.npy")]);
            }
            if is_param(&name) && !args.contains_key(&name) {
                args.insert(name, ArgValue::Tensor { tensor });
            } else {
                globals.insert(name, tensor);
            }
        }
    }
    Ok((args, globals))
}

/// `--arg` on a preset sets an argument of its only code layer.
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
    args.extend(code.args.iter().cloned().map(|(name, value)| (name, super::arguments::kept(value))));
    Ok(())
}
