//! `maskloom atlas`: all layers and heads of a capture in one table and one picture.
//!
//! Invariant: a head without block masses in the file gets them from its q and k; one that has neither is left blank. Memory is that
//! of one head and the thumbnails.

use super::page::Page;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::cli::out::{self, Failure, Progress};
use crate::cli::table::{Table, percent};
use crate::quality::capture::{Call, Capture};
use crate::quality::masses::{Masses, of_scorer};
use crate::quality::profile::profile;
use crate::service::files;
use crate::service::lab::{self, Tile};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Show all layers and heads of a capture: where their attention goes
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Written by maskloom_capture.py
    capture: PathBuf,
    /// Order of the rows: capture, keys (fewest effective keys first), sinks, local
    #[arg(long, value_name = "BY", default_value = "capture")]
    sort: String,
    /// Only layers whose name holds this text
    #[arg(long, value_name = "TEXT")]
    layer: Option<String>,
    /// Batch entry
    #[arg(long = "entry", value_name = "N", default_value_t = 0)]
    batch: usize,
    /// BLOCK_SIZE where the capture has no statistics: 128 or 64x128
    #[arg(long, value_parser = crate::cli::arguments::block_size)]
    block_size: Option<BlockSize>,
    /// Picture: a line for each call, a thumbnail of block masses for each head
    #[arg(long, value_name = "F.png")]
    out: Option<PathBuf>,
    /// Page with the table and the picture
    #[arg(long, value_name = "F.html")]
    page: Option<PathBuf>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// What the atlas says of a head.
struct Row {
    call: String,
    layer: usize,
    step: usize,
    head: usize,
    /// Mean effective keys over keys; None where it is not known.
    keys: Option<f64>,
    /// Mass in the first key block.
    sinks: f64,
    /// Mass on the blocks of the diagonal.
    local: f64,
    /// Blocks that hold 95% of the mass, over all.
    needed: f64,
    tile: Tile,
}

/// Runs the command.
pub fn atlas(args: Args) -> Result<(), Failure> {
    let capture = super::open(&args.capture)?;
    let calls: Vec<&Call> =
        capture.calls().iter().filter(|c| args.layer.as_ref().is_none_or(|l| c.key.contains(l.as_str()))).collect();
    if calls.is_empty() {
        let message = format!("{} has no call of that name", capture.name());
        return Err(Diagnostic::error("capture-call", message).hint("leave out --layer").into());
    }
    let progress = Progress::new();
    let mut rows = Vec::new();
    for call in &calls {
        for head in 0..call.info.heads {
            progress.say(&format!("{} head {head}", call.key));
            rows.extend(look(&args, &capture, call, head)?);
        }
    }
    drop(progress);
    let most = calls.iter().map(|c| c.info.heads).max().unwrap_or(1);
    let picture = || picture(&rows, &calls, most);
    if let Some(path) = &args.out {
        files::save(path, &picture()?)?;
    }
    if let Some(path) = &args.page {
        let mut page = Page::new(&format!("Atlas of {}", capture.name()));
        page.picture(
            &picture()?,
            "A line for each call, a thumbnail of block masses for each head; the bar is the mass on the diagonal.",
        );
        page.lines(&render(&rows));
        files::save(path, page.end().as_bytes())?;
    }
    sort(&mut rows, &args.sort).map_err(Failure::WrongUse)?;
    if args.json {
        return out::json(&json!({"capture": capture.name(), "heads": rows.iter().map(object).collect::<Vec<_>>()}));
    }
    out::text(&render(&rows))
}

fn look(args: &Args, capture: &Capture, call: &Call, head: usize) -> Result<Option<Row>, Diagnostic> {
    let control = Control::new();
    if let Some(of) = capture.statistics(call, args.batch, head)? {
        let judged: Vec<f64> = of.entropy.iter().map(|h| f64::from(h.exp())).collect();
        let keys = (!judged.is_empty()).then(|| judged.iter().sum::<f64>() / (judged.len() * call.info.kv_len) as f64);
        return Ok(Some(row(call, head, &of.masses, keys)));
    }
    if !call.info.has_head(head) {
        return Ok(None);
    }
    let scorer = lab::scorer(capture, call, args.batch, head, None)?;
    let found = of_scorer(&scorer, args.block_size.unwrap_or(BlockSize::square(64)), false, &control)?;
    let keys = profile(&scorer, &found, None, &control)?.effective_share();
    Ok(Some(row(call, head, &found, Some(keys))))
}

fn row(call: &Call, head: usize, masses: &Masses, keys: Option<f64>) -> Row {
    let (rows, columns) = masses.grid();
    let judged: Vec<f64> = (0..rows).map(|i| masses.judged(i) as f64).collect();
    let total = judged.iter().sum::<f64>().max(1.0);
    let mean = |of: &dyn Fn(usize) -> f64| (0..rows).map(|i| judged[i] * of(i)).sum::<f64>() / total;
    let diagonal = |i: usize| -> f64 {
        let q = i * masses.block.q..(i + 1) * masses.block.q;
        let near = |j: &usize| q.start < (j + 1) * masses.block.kv && j * masses.block.kv < q.end;
        (0..columns).filter(near).map(|j| f64::from(masses.row(i)[j])).sum()
    };
    let needed = |i: usize| -> f64 {
        let mut row = masses.row(i).to_vec();
        row.sort_unstable_by(|a, b| b.total_cmp(a));
        let (mut sum, all) = (0.0, row.iter().sum::<f32>());
        let reached = |m: &f32| {
            sum += m;
            sum >= 0.95 * all
        };
        row.iter().position(reached).map_or(columns, |at| at + 1) as f64 / columns as f64
    };
    let local = mean(&diagonal);
    Row {
        call: call.key.clone(),
        layer: call.info.layer,
        step: call.info.step,
        head,
        keys,
        sinks: mean(&|i| f64::from(masses.row(i)[0])),
        local,
        needed: mean(&needed),
        tile: Tile { values: masses.blocks.clone(), columns, mark: local as f32 },
    }
}

fn sort(rows: &mut [Row], by: &str) -> Result<(), Diagnostic> {
    match by {
        "capture" => {}
        "keys" => rows.sort_by(|a, b| a.keys.unwrap_or(2.0).total_cmp(&b.keys.unwrap_or(2.0))),
        "sinks" => rows.sort_by(|a, b| b.sinks.total_cmp(&a.sinks)),
        "local" => rows.sort_by(|a, b| b.local.total_cmp(&a.local)),
        other => {
            return Err(Diagnostic::error("atlas-sort", format!("there is no order `{other}`"))
                .hint("capture, keys, sinks or local"));
        }
    }
    Ok(())
}

fn picture(rows: &[Row], calls: &[&Call], across: usize) -> Result<Vec<u8>, Diagnostic> {
    let mut tiles = vec![None; calls.len() * across];
    for (n, call) in calls.iter().enumerate() {
        for row in rows.iter().filter(|r| r.call == call.key) {
            tiles[n * across + row.head] = Some(row.tile.clone());
        }
    }
    lab::sheet(&tiles, across, 96)
}

fn render(rows: &[Row]) -> String {
    let mut table = Table::new(&["call", "head", "effective keys", "first block", "diagonal", "blocks for 95%"]);
    for r in rows {
        let keys = r.keys.map_or("-".into(), percent);
        table.row([r.call.clone(), r.head.to_string(), keys, percent(r.sinks), percent(r.local), percent(r.needed)]);
    }
    table.render()
}

fn object(r: &Row) -> Value {
    json!({"call": r.call, "layer": r.layer, "step": r.step, "head": r.head, "effective_keys": r.keys, "first_block": r.sinks,
        "diagonal": r.local, "blocks_for_95": r.needed})
}
