//! `maskloom atlas`: all layers and heads of a capture in one table and one picture.
//!
//! Invariant: table and picture list the same heads in the same order. Must not know how heads are analysed.

use super::page::Page;
use super::{Plain, atlas_far};
use crate::base::{BlockSize, Control, Diagnostic};
use crate::cli::far::{self, Far};
use crate::cli::figures;
use crate::cli::out::{self, Failure, Progress};
use crate::cli::table::{Cell, Table, percent};
use crate::export::figure::Figure;
use crate::export::figure::plots::sheet;
use crate::quality::capture::{Call, Capture};
use crate::tasks::lab::told::character;
use crate::tasks::lab::{self, AtlasHead, Sort};
use crate::words::{Language, Words};
use crate::worker::files;
use serde_json::{Value, json};
use std::path::PathBuf;

/// List all layers and heads of a capture, and where their attention goes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A capture written by maskloom_capture.py, or a file with q, k and v
    capture: PathBuf,
    #[command(flatten)]
    plain: Plain,
    /// Order: capture, keys (fewest effective keys first), sinks, local, needed (fewest blocks for 95% first), cluster
    #[arg(long, value_name = "BY", default_value = "capture")]
    sort: String,
    /// Only layers whose name contains this text
    #[arg(long, value_name = "TEXT")]
    layer: Option<String>,
    /// Only this step
    #[arg(long, value_name = "N")]
    step: Option<usize>,
    /// Only this prompt, by number
    #[arg(long, value_name = "N")]
    prompt: Option<usize>,
    /// Only heads of this kind: sinks, prefix, local, sparse, spread
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Largest number of groups of heads with similar block masses
    #[arg(long, value_name = "K", default_value_t = 6, value_parser = crate::cli::arguments::some)]
    groups: usize,
    /// Batch entry
    #[arg(long = "entry", value_name = "N", default_value_t = 0)]
    batch: usize,
    /// BLOCK_SIZE if the capture has no statistics: 128 or 64x128
    #[arg(long, value_parser = crate::cli::arguments::block_size)]
    block_size: Option<BlockSize>,
    /// Picture: a thumbnail of block masses for each head; in the order of the capture, one line for each call. A .svg or .pdf has their
    /// names, a legend and a caption, and the table beside it as .csv; a .csv or .tex is the table
    #[arg(long, value_name = "F.png|svg|pdf|csv|tex", value_parser = crate::cli::ending::one_of(&["png", "svg", "pdf", "csv", "tex"]))]
    out: Option<PathBuf>,
    /// Page with the table and the picture
    #[arg(long, value_name = "F.html", value_parser = crate::cli::ending::one_of(&["html"]))]
    page: Option<PathBuf>,
    /// Run where the capture is: name of a target (`maskloom target list`), or the launch command of a worker; the capture is a path
    /// there and stays there. Several share its calls, and each must have the file
    #[arg(long = "target", value_name = "NAME|COMMAND")]
    targets: Vec<String>,
    /// With several targets: calls as they come, in a file that the same command takes up after a kill
    #[arg(long, value_name = "F.jsonl", value_parser = crate::cli::ending::one_of(&["jsonl"]))]
    journal: Option<PathBuf>,
    /// Go on without this program: `maskloom attach` shows the results
    #[arg(long, conflicts_with = "journal")]
    detach: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// The caption of the picture.
const PICTURE: &str = "A thumbnail of block masses for each head; the bar is the mass on the diagonal.";

/// Runs the command.
pub(crate) fn atlas(args: Args) -> Result<(), Failure> {
    let by = Sort::ALL.iter().find(|(_, name)| *name == args.sort).map(|(by, _)| *by).ok_or_else(|| {
        let names = Sort::ALL.map(|(_, name)| name).join(", ");
        Failure::WrongUse(
            Diagnostic::error("atlas-sort", format!("there is no order `{}`", args.sort))
                .hint(format!("one of {names}")),
        )
    })?;
    args.out.iter().chain(&args.page).try_for_each(|path| files::can_save(path))?;
    let far = Far { target: args.targets.first().cloned().unwrap_or_default(), detach: args.detach };
    if args.targets.len() > 1 || args.journal.is_some() {
        if args.detach {
            let why =
                Diagnostic::error("detach-targets", "a detached atlas runs on one machine, and several are named");
            return Err(Failure::WrongUse(why.hint("name one --target, or leave out --detach and use --journal")));
        }
        let (capture, rows) = spread(&args, by)?;
        return show(&args, &capture, &rows, by);
    }
    if far.is_far() {
        let title = format!("atlas of {}", args.capture.display());
        let written = args.out.iter().chain(&args.page).cloned().collect();
        return far::command(&far, far::Command { what: "atlas", title, document: None, written }, args.json);
    }
    let capture = super::open(&args.capture, &args.plain)?;
    let rows = heads(&args, &capture, by)?;
    show(&args, &capture, &rows, by)
}

/// The heads, looked at by several machines.
fn spread(args: &Args, by: Sort) -> Result<(Capture, Vec<AtlasHead>), Failure> {
    let targets = if args.targets.is_empty() { vec![String::new()] } else { args.targets.clone() };
    let block = args.block_size.unwrap_or(BlockSize::square(64));
    let of =
        atlas_far::Asked { targets, path: &args.capture, entry: args.batch, block, journal: args.journal.as_deref() };
    let (capture, mut rows) = atlas_far::heads(&of, &|call| is_wanted(args, call))?;
    lab::cluster(&mut rows, args.groups);
    lab::sort(&mut rows, by);
    if let Some(kind) = &args.kind {
        rows.retain(|r| r.kind() == kind);
    }
    Ok((capture, rows))
}

fn is_wanted(args: &Args, c: &Call) -> bool {
    args.layer.as_ref().is_none_or(|l| c.key.contains(l.as_str()))
        && args.step.is_none_or(|s| s == c.info.step)
        && args.prompt.is_none_or(|p| p == c.info.prompt)
}

fn show(args: &Args, capture: &Capture, rows: &[AtlasHead], by: Sort) -> Result<(), Failure> {
    let across = match by {
        Sort::Capture if args.kind.is_none() => capture.calls().iter().map(|c| c.info.heads).max().unwrap_or(1),
        _ => 12.min(rows.len().max(1)),
    };
    let picture = || picture(rows, by == Sort::Capture && args.kind.is_none(), across);
    if let Some(path) = &args.out {
        let ending = crate::cli::ending::of(path).unwrap_or_default();
        match table(rows).file(&ending) {
            Some(text) => files::save(path, text.as_bytes())?,
            None if figures::is_figure(path) => {
                let by_call = by == Sort::Capture && args.kind.is_none();
                drop(figures::write(&figure(rows, by_call, across, capture), path)?);
            }
            None => files::save(path, &picture()?)?,
        }
    }
    if let Some(path) = &args.page {
        let mut page = Page::new(&format!("Atlas of {}", capture.name()), &capture.provenance());
        page.picture(&picture()?, PICTURE);
        page.lines(&table(rows).render_in(Words::of(Language::English)));
        files::save(path, page.end().as_bytes())?;
    }
    if args.json {
        return out::json(
            &json!({"capture": capture.name(), "provenance": capture.provenance(), "heads": rows.iter().map(object).collect::<Vec<_>>()}),
        );
    }
    out::text(&table(rows).render())
}

fn heads(args: &Args, capture: &Capture, by: Sort) -> Result<Vec<AtlasHead>, Failure> {
    let calls: Vec<&Call> = capture.calls().iter().filter(|call| is_wanted(args, call)).collect();
    if calls.is_empty() {
        let message = format!("{} has no call of that layer, step and prompt", capture.name());
        return Err(Diagnostic::error("capture-call", message).hint("leave out --layer, --step or --prompt").into());
    }
    let progress = Progress::new();
    progress.say(&format!("{} calls", calls.len()));
    let block = args.block_size.unwrap_or(BlockSize::square(64));
    let mut rows = lab::atlas(capture, &calls, args.batch, block, args.groups, &Control::new())?;
    drop(progress);
    lab::sort(&mut rows, by);
    if let Some(kind) = &args.kind {
        rows.retain(|r| r.kind() == kind);
    }
    Ok(rows)
}

/// Adds the atlas of calls to a page.
pub(crate) fn put(page: &mut Page, capture: &Capture, calls: &[&Call], entry: usize) -> Result<(), Diagnostic> {
    let rows = lab::atlas(capture, calls, entry, BlockSize::square(64), 6, &Control::new())?;
    let across = calls.iter().map(|c| c.info.heads).max().unwrap_or(1);
    page.heading("Atlas");
    page.picture(&picture(&rows, true, across)?, PICTURE);
    page.lines(&table(&rows).render_in(Words::of(Language::English)));
    Ok(())
}

/// A thumbnail for each head; `by_call`: one line for each call, heads in their columns.
fn picture(rows: &[AtlasHead], by_call: bool, across: usize) -> Result<Vec<u8>, Diagnostic> {
    if !by_call {
        let tiles: Vec<_> = rows.iter().map(|r| Some(r.tile.clone())).collect();
        return lab::sheet(&tiles, across, 96);
    }
    let lines: Vec<&[AtlasHead]> = rows.chunk_by(|a, b| a.call == b.call).collect();
    let mut tiles = vec![None; lines.len() * across];
    for (n, line) in lines.iter().enumerate() {
        line.iter().for_each(|r| tiles[n * across + r.head] = Some(r.tile.clone()));
    }
    lab::sheet(&tiles, across, 96)
}

/// The same as a figure with names, legend and caption.
fn figure(rows: &[AtlasHead], by_call: bool, across: usize, capture: &Capture) -> Figure {
    let tile = |r: &AtlasHead| {
        let (rgb, size) = r.tile.colours();
        (format!("{} h{}", r.call, r.head), Some((rgb, size)))
    };
    let tiles = match by_call {
        false => rows.iter().map(tile).collect(),
        true => {
            let lines: Vec<&[AtlasHead]> = rows.chunk_by(|a, b| a.call == b.call).collect();
            let mut tiles = vec![(String::new(), None); lines.len() * across];
            for (n, line) in lines.iter().enumerate() {
                line.iter().for_each(|r| tiles[n * across + r.head] = tile(r));
            }
            tiles
        }
    };
    let caption = format!(
        "Block masses of {} heads: rows are blocks of queries, columns blocks of keys, on a logarithmic scale over four decades.",
        rows.len()
    );
    let legend = [1.0, 1e-1, 1e-2, 1e-3, 0.0].map(|mass| (lab::colour(mass), format!("{mass}")));
    let title = format!("Atlas of {}", capture.name());
    let mut made = sheet(&title, &tiles, across, &legend, &caption, &capture.provenance());
    made.data = Some(table(rows).cells());
    made
}

fn table(rows: &[AtlasHead]) -> Table {
    let heads = [
        "column-call",
        "column-head",
        "column-kind",
        "column-group",
        "column-effective",
        "column-first-block",
        "column-prefix",
        "column-diagonal",
        "column-needed",
    ];
    let several = rows.iter().any(|r| r.machine.is_some());
    let machine = several.then_some("column-machine");
    let heads: Vec<&str> = machine.into_iter().chain(heads).collect();
    let mut table = Table::told(&heads);
    for r in rows {
        let machine = several.then(|| Cell::from(r.machine.clone().unwrap_or_default()));
        let cells: [Cell; 9] = [
            r.call.clone().into(),
            r.head.to_string().into(),
            Cell::told(|said| character(said, r.kind()).into()),
            r.cluster.to_string().into(),
            r.keys.map_or("-".into(), percent).into(),
            percent(r.sinks).into(),
            r.prefix.map_or("-".into(), percent).into(),
            percent(r.local).into(),
            percent(r.needed).into(),
        ];
        table.row(machine.into_iter().chain(cells));
    }
    table
}

fn object(r: &AtlasHead) -> Value {
    let mut value = json!({"call": r.call, "layer": r.layer, "step": r.step, "prompt": r.prompt, "head": r.head, "kind": r.kind(),
        "group": r.cluster, "effective_keys": r.keys, "first_block": r.sinks, "prefix": r.prefix, "diagonal": r.local,
        "blocks_for_95": r.needed});
    if let Some(machine) = &r.machine {
        value["target"] = json!(machine);
    }
    value
}
