//! `maskloom presets`: the built-in presets and those of the user's folders; one preset with its recorded runs.
//!
//! Invariant: a preset that does not load is listed with its error; a recorded run is always labelled as recorded. Must
//! not know commands.

use super::opened::{self, CodeArgs, OWN};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::table::{Cell, Table};
use super::{gallery, race, record, verdict};
use crate::base::{BackendName, Diagnostic, Source};
use crate::document::from_document;
use crate::document::model::Document;
use crate::document::{file, library};
use crate::ir::graph::ModKind;
use crate::python::outline::outline;
use crate::tasks::origins;
use crate::tasks::recorded::{self, Recorded};
use crate::worker::{files, folders};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// List presets and the pattern library, show one, record runs
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Only the presets whose name contains this text; a single match is shown with its full description
    word: Option<String>,
    /// List the patterns for layers
    #[arg(long)]
    patterns: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show one preset: the modelled attention, its layers and shapes, and its recorded runs
    Show {
        /// Name of a preset, or FILE.json
        preset: String,
        /// Backend that the others' times are compared with, instead of the fastest SDPA
        #[arg(long, value_name = "BACKEND", value_parser = super::arguments::backend)]
        baseline: Option<BackendName>,
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    Record(record::Args),
    Page(gallery::Args),
}

struct Row {
    name: String,
    document: Result<Document, Vec<Diagnostic>>,
    own: bool,
}

/// Runs the command.
pub(super) fn presets(args: Args) -> Result<(), Failure> {
    match &args.what {
        Some(What::Show { preset, baseline, json }) => return show(preset, *baseline, *json),
        Some(What::Record(args)) => return record::record(args),
        Some(What::Page(args)) => return gallery::page(args),
        None => {}
    }
    let word = args.word.clone().unwrap_or_default();
    if args.patterns {
        return patterns(&word, args.json);
    }
    let mut rows = all();
    tell(folders::wrong("MASKLOOM_PRESETS").into_iter().chain(rows.iter().filter_map(passed_over)).collect());
    rows.retain(|r| r.name.contains(&word));
    if rows.is_empty() {
        let why = Diagnostic::error("unknown-preset", format!("no preset's name contains `{word}`"));
        return Err(Failure::WrongUse(why.hint("`maskloom presets` lists all")));
    }
    if args.json {
        return out::json(&json!({ "presets": rows.iter().map(object).collect::<Vec<_>>() }));
    }
    let mut table = Table::told(&["column-preset", "column-axes", "column-heads", "head_dim", "dtype", "column-about"]);
    for row in &rows {
        table.row(cells(row));
    }
    let mut text = table.render();
    if let ([Row { document: Ok(document), .. }], true) = (&rows[..], args.word.is_some()) {
        text.push('\n');
        text.extend(rows.iter().filter_map(described).map(|line| format!("{line}\n")));
        text.push_str(&format!("{}\n", document.about));
        text.extend(recorded::of(document).into_iter().map(|r| format!("{}\n", recorded_line(r))));
    }
    out::text(&text)
}

fn recorded_line(run: &Recorded) -> String {
    let said = out::words();
    let from = origins::whole(said, &run.provenance());
    let times = run.told(said).unwrap_or_default();
    said.with("show-recorded", &[("from", from.into()), ("times", times.into())])
}

fn show(name: &str, baseline: Option<BackendName>, as_json: bool) -> Result<(), Failure> {
    let opened = opened::open(name, &CodeArgs::default(), &Overrides::default())?;
    let document = &opened.document;
    let compiled = opened.compile()?;
    let problem = from_document(document, &compiled)?;
    let runs = recorded::of(document);
    if as_json {
        let run = |r: &&Recorded| json!({ "recorded": r.report, "conditions": r.conditions });
        let runs: Vec<_> = runs.iter().map(run).collect();
        return out::json(&json!({ "preset": name, "document": document, "recorded_runs": runs }));
    }
    let said = out::words();
    let own = library::preset(name).and_then(|preset| said.preset(preset.name));
    let own = own.map(|line| format!("{line}\n")).unwrap_or_default();
    let mut text = format!("{}\n{own}{}\n\n", document.name, document.about);
    let mut table = Table::told(&["", "column-layer", "column-made"]);
    for layer in document.layers.iter().filter(|l| l.enabled) {
        let name = Cell::told(|said| match &layer.heads {
            None => layer.name.clone(),
            Some(heads) => {
                let figures = [("layer", layer.name.as_str().into()), ("heads", heads.to_string().into())];
                said.with("show-layer-heads", &figures)
            }
        });
        table.row([Cell::text("row-mask"), name, made_of(&json!(layer.content)).into()]);
    }
    for score in document.scores.iter().filter(|s| s.enabled) {
        table.row([Cell::text("row-score"), score.name.as_str().into(), made_of(&json!(score.content)).into()]);
    }
    if table.is_empty() {
        text.push_str(&out::line("show-no-mask", &[]));
    } else {
        text.push_str(&table.render());
    }
    let axes =
        document.axes.kv.as_ref().map_or(document.axes.q.to_string(), |kv| format!("{} -> {kv}", document.axes.q));
    text.push_str(&(out::line("show-axes", &[("axes", axes.into())]) + &verdict::learns(said, &problem)));
    for run in &runs {
        let from = origins::whole(said, &run.provenance());
        let id = if run.report.gradients.is_empty() { "show-run-forward" } else { "show-run" };
        text.push_str(&format!("\n{}", out::line(id, &[("from", from.into())])));
        let title = race::title(&document.name, problem.spec(), &run.report);
        text.push_str(&format!(
            "{title}{}{}",
            race::render_against(&run.report, baseline),
            race::gradients(&run.report)
        ));
    }
    if runs.is_empty() {
        text.push_str(&format!("\n{}", out::line("show-no-run", &[("name", name.into())])));
    }
    out::text(&text)
}

/// `sliding_window {"window":1024}`.
fn made_of(content: &Value) -> String {
    let kind = content["name"].as_str().or(content["kind"].as_str()).unwrap_or_default();
    let args = content["args"].as_object().filter(|a| !a.is_empty()).map(|a| format!(" {}", json!(a)));
    format!("{kind}{}", args.unwrap_or_default()).chars().take(120).collect()
}

fn all() -> Vec<Row> {
    let built_in = library::presets().iter().map(|p| Row { name: p.name.into(), document: p.document(), own: false });
    built_in.chain(own()).collect()
}

/// `*.json` of the user's preset folder.
fn own() -> Vec<Row> {
    let row = |path: PathBuf| {
        let document = files::read_named_text(&path).map_err(|d| vec![d]).and_then(|text| file::from_json(&text));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // the name alone is the built-in one's
        let name = if library::preset(&name).is_some() { format!("{OWN}{name}") } else { name };
        Row { name, document, own: true }
    };
    files_of(folders::presets(), "json").into_iter().map(row).collect()
}

/// What a preset of the library is, in the reader's language.
fn described(row: &Row) -> Option<&'static str> {
    out::words().preset(&row.name).filter(|_| !row.own)
}

fn cells(row: &Row) -> Vec<Cell> {
    match &row.document {
        Ok(d) => {
            let axes = match &d.axes.kv {
                Some(kv) => format!("{} -> {kv}", d.axes.q),
                None => d.axes.q.to_string(),
            };
            let s = &d.settings;
            let heads = if s.kv_heads == s.heads { s.heads.to_string() } else { format!("{}/{}", s.heads, s.kv_heads) };
            let title = Cell::told(|said| match row.own {
                true => said.with("show-yours", &[("name", d.name.as_str().into())]),
                false => d.name.clone(),
            });
            let plain = [row.name.clone(), axes, heads, s.head_dim.to_string(), s.dtype.to_string()];
            plain.into_iter().map(Cell::from).chain([title]).collect()
        }
        Err(why) => [&*row.name, "", "", "", "", &*first(why)].map(Cell::from).to_vec(),
    }
}

/// The file of a row that does not load, why, and what helps.
fn passed_over(row: &Row) -> Option<Diagnostic> {
    let why = row.document.as_ref().err()?.first()?;
    let name = format!("{}.json", row.name.trim_start_matches(OWN));
    let file = folders::presets().filter(|_| row.own).map_or(name.clone().into(), |folder| folder.join(name));
    Some(of_file("preset", &file, why))
}

fn of_file(what: &str, file: &Path, why: &Diagnostic) -> Diagnostic {
    let message = format!("the {what} {} is passed over: {}", file.display(), why.message);
    let mend = "mend the file or remove it";
    let help = why.hint.as_ref().map_or(mend.into(), |hint| format!("{hint}; {mend}"));
    Diagnostic::warning("file-passed-over", message).hint(help)
}

fn tell(all: Vec<Diagnostic>) {
    out::remember(&all);
    out::diagnostics(&all);
}

fn first(why: &[Diagnostic]) -> String {
    why.first().map(Diagnostic::summary).unwrap_or_default()
}

fn object(row: &Row) -> Value {
    match &row.document {
        Ok(d) => json!({
            "recorded": recorded::of(d).into_iter().map(recorded_line).collect::<Vec<_>>(), "name": row.name, "title": d.name, "about": d.about, "axes": d.axes, "settings": d.settings,
            "layers": d.layers.len(), "scores": d.scores.len(), "own": row.own,
        }),
        Err(why) => json!({ "name": row.name, "own": row.own, "error": first(why) }),
    }
}

fn patterns(word: &str, as_json: bool) -> Result<(), Failure> {
    let found: Vec<_> = library::patterns().filter(|p| p.name.contains(word)).collect();
    let own: Vec<_> = own_patterns().into_iter().filter(|p| p.name.contains(word)).collect();
    let unread = own.iter().filter_map(|p| Some(of_file("pattern", &p.path, p.help.as_ref().err()?.first()?)));
    tell(folders::wrong("MASKLOOM_PATTERNS").into_iter().chain(unread).collect());
    if as_json {
        let object = |p: &&library::Pattern| json!({ "name": p.name, "kind": p.kind, "summary": p.summary() });
        let of_user = |p: &OwnPattern| match &p.help {
            Ok(help) => json!({ "name": p.name, "own": true, "summary": help }),
            Err(why) => json!({ "name": p.name, "own": true, "error": first(why) }),
        };
        let all: Vec<_> = found.iter().map(object).chain(own.iter().map(of_user)).collect();
        return out::json(&json!({ "patterns": all }));
    }
    let mut table = Table::told(&["column-pattern", "column-kind", "column-does"]);
    for p in found {
        let kind = match p.kind {
            ModKind::Mask => "row-mask",
            ModKind::Score => "row-score",
        };
        let does = Cell::told(|said| said.pattern(p.name).unwrap_or(p.summary()).into());
        table.row([p.name.into(), Cell::text(kind), does]);
    }
    for p in own {
        let help = p.help.unwrap_or_else(|why| first(&why));
        table.row([p.name.into(), Cell::text("row-yours"), help.into()]);
    }
    out::text(&table.render())
}

/// A pattern of the user's folder: the first line of its help, or why it is none.
struct OwnPattern {
    name: String,
    path: PathBuf,
    help: Result<String, Vec<Diagnostic>>,
}

fn own_patterns() -> Vec<OwnPattern> {
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let help = files::read_named_text(&path).map_err(|why| vec![why]).and_then(|text| {
            let found = outline(&Source::new(path.display().to_string(), text));
            let errors: Vec<_> = found.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
            // as the built-in ones, the factory is called as its file
            let own = found.entries.iter().find(|entry| entry.name == name).or(found.entries.last());
            let doc = own.map(|entry| entry.doc.lines().next().unwrap_or_default().to_string());
            if errors.is_empty() { Ok(doc.unwrap_or_default()) } else { Err(errors) }
        });
        OwnPattern { name, path, help }
    };
    files_of(folders::patterns(), "py").into_iter().map(read).collect()
}

/// The files of a folder with this ending, sorted.
fn files_of(folder: Option<PathBuf>, ending: &str) -> Vec<PathBuf> {
    // a folder that cannot be listed is told beside the list
    let mut paths = folder.and_then(|folder| folders::entries(&folder).ok()).unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|e| e == ending));
    paths
}
