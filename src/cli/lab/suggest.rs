//! `maskloom suggest`: masks proposed from a capture, each as a document.
//!
//! Invariant: what is printed was measured on the very mask that is written. Must not know how proposals are found.

use super::Part;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::cli::out::{self, Failure, Progress};
use crate::cli::table::{Table, percent};
use crate::quality::capture::{Call, Capture};
use crate::quality::profile::Grid;
use crate::quality::routers::settings::settings;
use crate::quality::routers::{Routed, route, routers};
use crate::quality::suggest::order::{Gain, gains};
use crate::quality::suggest::{Candidate, Material, Protect, Target, Wanted, distinct, pareto, plain_window};
use crate::service::{files, lab};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Propose masks from captured q and k, each an editable document
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Written by maskloom_capture.py
    capture: PathBuf,
    #[command(flatten)]
    part: Part,
    /// Mass to keep, as a mean over heads and rows (the default: 0.95)
    #[arg(long, value_name = "X", conflicts_with_all = ["blocks", "error"])]
    mass: Option<f64>,
    /// Share of the blocks to use at most
    #[arg(long, value_name = "X", conflicts_with = "error")]
    blocks: Option<f64>,
    /// Relative L1 error of the output that may not be exceeded
    #[arg(long, value_name = "X")]
    error: Option<f64>,
    /// BLOCK_SIZE: 128 or 64x128; the capture's without it
    #[arg(long, value_parser = crate::cli::arguments::block_size)]
    block_size: Option<BlockSize>,
    /// Do not keep these in any case: diagonal, sinks, text, frame
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    unprotect: Vec<String>,
    /// Most masks that heads may differ by
    #[arg(long, value_name = "K", default_value_t = 4)]
    masks: usize,
    /// Also simulate run-time routers on the first head
    #[arg(long)]
    routers: bool,
    /// Also compare orders of the grid's tokens on the first head
    #[arg(long)]
    orders: bool,
    /// Write each proposal as a document into a folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn suggest(args: Args) -> Result<(), Failure> {
    let capture = super::open(&args.capture)?;
    let call = capture.find(args.part.layer.as_deref(), args.part.step, args.part.prompt)?;
    let heads = args.part.heads(&capture, call)?;
    let control = Control::new();
    let progress = Progress::new();
    progress.say(&format!("{}: masses of {} heads", call.key, heads.len()));
    let block = args.block_size.or(capture.block_size()).unwrap_or(BlockSize::DEFAULT);
    let material = lab::material(&capture, call, args.part.entry, &heads, block, None, &control)?;
    let wanted = wanted(&args, &capture, call).map_err(Failure::WrongUse)?;
    progress.say("looking for masks");
    let found = match args.error {
        Some(error) => lab::suggest_for_error(&material, &wanted, error, &control)?,
        None => crate::quality::suggest::suggest(&material, &wanted, &control)?,
    };
    let plain = plain_window(&material, &wanted, &control)?;
    let routed = if args.routers { routed(&material, &wanted)? } else { Vec::new() };
    let ordered = match (args.orders, wanted.grid) {
        (true, Some(grid)) => gains(material.heads[0].scorer.head(), grid, block, 0.95, &control)?,
        (true, None) => {
            return Err(Failure::WrongUse(
                Diagnostic::error("capture-axes", "the capture has no axes: its tokens have one order")
                    .hint("capture with axes, or leave out --orders"),
            ));
        }
        _ => Vec::new(),
    };
    drop(progress);
    let written = match &args.out {
        Some(folder) => write(folder, &capture, call, &found)?,
        None => vec![None; found.len()],
    };
    if args.json {
        return out::json(&object(&capture, call, &found, &plain, &routed, &ordered, &written));
    }
    out::text(&render(&capture, call, &found, &plain, &routed, &ordered, &written))
}

fn wanted(args: &Args, capture: &Capture, call: &Call) -> Result<Wanted, Diagnostic> {
    let share = |name: &str, x: f64| {
        if x > 0.0 && x <= 1.0 {
            return Ok(x);
        }
        Err(Diagnostic::error("share", format!("--{name} {x} is no share")).hint("a number above 0 and up to 1"))
    };
    let target = match (args.blocks, args.mass) {
        (Some(blocks), _) => Target::Blocks(share("blocks", blocks)?),
        (None, mass) => Target::Mass(share("mass", mass.unwrap_or(0.95))?),
    };
    let mut protect = Protect::default();
    for name in &args.unprotect {
        match name.as_str() {
            "diagonal" => protect.diagonal = false,
            "sinks" => protect.sinks = false,
            "text" => protect.text = false,
            "frame" => protect.first_frame = false,
            "all" => protect = Protect::NONE,
            other => {
                return Err(Diagnostic::error("unprotect", format!("`{other}` is not protected"))
                    .hint("diagonal, sinks, text, frame or all"));
            }
        }
    }
    let grid: Option<Grid> = capture.grid().filter(|g| g.tokens().end <= call.info.q_len.min(call.info.kv_len));
    Ok(Wanted { target, protect, grid, most_masks: args.masks })
}

fn routed(material: &Material, wanted: &Wanted) -> Result<Vec<Routed>, Diagnostic> {
    let head = &material.heads[0];
    let (share, mass) = match wanted.target {
        Target::Mass(mass) => (0.25, mass),
        Target::Blocks(share) => (share, 0.9),
    };
    let grid = wanted.grid.filter(|g| head.masses.lengths.q_len == head.masses.lengths.kv_len && g.count() > 0);
    routers(share, mass, grid)
        .iter()
        .map(|router| route(head.scorer.head(), &head.masses, router, grid, &Control::new()))
        .collect()
}

fn write(
    folder: &std::path::Path,
    capture: &Capture,
    call: &Call,
    found: &[Candidate],
) -> Result<Vec<Option<String>>, Diagnostic> {
    let word = |name: &str| name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect::<String>();
    found
        .iter()
        .map(|candidate| {
            let document = lab::document(capture, call, candidate)?;
            let text = crate::document::file::to_json(&document);
            let path = files::save_under(folder, &format!("{}.json", word(&candidate.name)), text.as_bytes())?;
            Ok(Some(path.display().to_string()))
        })
        .collect()
}

/// Whether a proposal does better than the plain window, in words.
fn against(found: &[Candidate], plain: &Candidate) -> String {
    let better = found
        .iter()
        .find(|c| c.mass >= plain.mass.min(c.mass) && c.density < plain.density - 1e-9 && c.name != plain.name);
    match better.filter(|c| c.mass >= plain.mass - 5e-3) {
        Some(best) => format!(
            "`{}` executes {:.2} of the blocks of the best plain window with sinks ({}), which keeps {:.4}",
            best.name,
            best.density / plain.density,
            plain.form.words(),
            plain.mass
        ),
        None => format!("nothing is better than the plain window with sinks ({})", plain.form.words()),
    }
}

#[allow(clippy::too_many_arguments)]
fn render(
    capture: &Capture,
    call: &Call,
    found: &[Candidate],
    plain: &Candidate,
    routed: &[Routed],
    ordered: &[Gain],
    written: &[Option<String>],
) -> String {
    let mut out = format!("{}, {} x {} tokens\n", call.title(capture), call.info.q_len, call.info.kv_len);
    let mut table = Table::new(&["proposal", "mass", "p5", "min", "blocks", "masks", "best", "numbers"]);
    for (c, front) in found.iter().zip(pareto(found)) {
        table.row([
            c.name.clone(),
            format!("{:.4}", c.mass),
            format!("{:.4}", c.p5),
            format!("{:.4}", c.min),
            percent(c.density),
            distinct(&c.form).to_string(),
            if front { "*".into() } else { String::new() },
            c.form.words(),
        ]);
    }
    out.push_str(&table.render());
    out.push_str("* no other keeps more with fewer blocks\n");
    for c in found {
        out.push_str(&format!("{}: {}\n", c.name, c.why));
    }
    out.push_str(&against(found, plain));
    out.push('\n');
    if !routed.is_empty() {
        let mut table = Table::new(&["router", "blocks", "mass", "ceiling", "recall", "cost", "block size"]);
        for r in routed {
            table.row([
                r.router.name.to_string(),
                percent(r.density),
                format!("{:.4}", r.mass),
                format!("{:.4}", r.ceiling),
                format!("{:.4}", r.recall),
                percent(r.cost),
                r.block.to_string(),
            ]);
        }
        out.push_str(&table.render());
        for r in routed {
            for s in settings(&r.router, 0, 0) {
                out.push_str(&format!(
                    "{} as settings of {}, read from {}:\n{}\n",
                    r.router.name, s.framework, s.read_from, s.text
                ));
            }
        }
    }
    if !ordered.is_empty() {
        let mut table = Table::new(&["order", "blocks for 95% mass"]);
        ordered.iter().for_each(|g| table.row([g.order.name(), percent(g.density)]));
        out.push_str(&table.render());
    }
    written.iter().flatten().for_each(|path| out.push_str(&format!("wrote {path}\n")));
    out
}

#[allow(clippy::too_many_arguments)]
fn object(
    capture: &Capture,
    call: &Call,
    found: &[Candidate],
    plain: &Candidate,
    routed: &[Routed],
    ordered: &[Gain],
    written: &[Option<String>],
) -> Value {
    let of = |c: &Candidate| {
        json!({"name": c.name, "why": c.why, "numbers": c.form.words(), "mass": c.mass, "p5": c.p5, "min": c.min,
            "density": c.density, "heads": c.heads, "masks": distinct(&c.form)})
    };
    let front = pareto(found);
    let proposals: Vec<Value> = found
        .iter()
        .zip(front.iter().zip(written))
        .map(|(c, (front, path))| {
            let mut value = of(c);
            value["pareto"] = json!(front);
            value["document"] = json!(path);
            value
        })
        .collect();
    let routers: Vec<Value> = routed
        .iter()
        .map(|r| {
            json!({"name": r.router.name, "density": r.density, "mass": r.mass, "ceiling": r.ceiling, "recall": r.recall,
                "cost": r.cost, "block_size": [r.block.q, r.block.kv]})
        })
        .collect();
    let orders: Vec<Value> = ordered.iter().map(|g| json!({"order": g.order.name(), "density": g.density})).collect();
    json!({"capture": capture.name(), "call": call.key, "proposals": proposals, "plain_window": of(plain),
        "verdict": against(found, plain), "routers": routers, "orders": orders})
}
