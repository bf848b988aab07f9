//! `maskloom suggest`: proposes masks from a capture, each as a document.
//!
//! Invariant: the printed figures were measured on the written mask. Must not know how proposals are found.

use super::proposed::{self, Found};
use super::{Part, Plain};
use crate::base::tensor::Data;
use crate::base::{BlockSize, Control, Diagnostic, HostTensor};
use crate::cli::out::{self, Failure, Progress};
use crate::quality::capture::{Call, Capture};
use crate::quality::profile::Grid;
use crate::quality::suggest::order::gains;
use crate::quality::suggest::{Candidate, Form, Material, Protect, Target, Wanted, least_density, plain_window};
use crate::tasks::lab;
use crate::worker::{files, tensors};
use std::path::{Path, PathBuf};

/// Propose masks from captured q and k, each an editable document
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A capture written by maskloom_capture.py, or a file with q, k and v
    capture: PathBuf,
    #[command(flatten)]
    plain: Plain,
    #[command(flatten)]
    part: Part,
    /// Mass to keep, as a mean over heads and rows (default: 0.95)
    #[arg(long, value_name = "X", conflicts_with_all = ["blocks", "error", "ms"])]
    mass: Option<f64>,
    /// Largest share of the blocks
    #[arg(long, value_name = "X", conflicts_with_all = ["error", "ms"])]
    blocks: Option<f64>,
    /// Largest relative L1 error of the output
    #[arg(long, value_name = "X", conflicts_with = "ms")]
    error: Option<f64>,
    /// Largest milliseconds of flex on this CPU for the captured heads
    #[arg(long, value_name = "MS")]
    ms: Option<f64>,
    /// BLOCK_SIZE: 128 or 64x128; the default is the capture's
    #[arg(long, value_parser = crate::cli::arguments::block_size)]
    block_size: Option<BlockSize>,
    /// Cells that proposals may drop: diagonal, sinks, text, frame, all
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    unprotect: Vec<String>,
    /// Largest number of different masks among the heads; with the number of heads, each has its own
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = crate::cli::arguments::some)]
    masks: usize,
    /// Also time the proposals with flex on this CPU
    #[arg(long)]
    time: bool,
    /// Also measure the proposals on every other call of these lengths: stability, and the calls that should stay dense
    #[arg(long)]
    others: bool,
    /// Also simulate run-time routers; with --others on every call, with --out as documents of the picked blocks
    #[arg(long)]
    routers: bool,
    /// Also compare orders of the grid's tokens on the first head; with --out each order is written as `order` to a
    /// safetensors file
    #[arg(long)]
    orders: bool,
    /// Write each proposal as a document into a folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Page with tables and the plot of loss against blocks
    #[arg(long, value_name = "F.html", value_parser = crate::cli::ending::one_of(&["html"]))]
    page: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn suggest(args: Args) -> Result<(), Failure> {
    args.page.iter().try_for_each(|path| files::can_save(path))?;
    let capture = super::open(&args.capture, &args.plain)?;
    let call = capture.find(args.part.layer.as_deref(), args.part.step, args.part.prompt)?;
    let heads = args.part.heads(&capture, call)?;
    let wanted = wanted(&args, &capture, call).map_err(Failure::WrongUse)?;
    let control = Control::new();
    let progress = Progress::new();
    let said = out::words();
    let n = ("n", heads.len().to_string().into());
    progress.say(&said.with("searching-masses", &[("call", call.key.as_str().into()), n]));
    let block = args.block_size.or(capture.block_size()).unwrap_or(BlockSize::DEFAULT);
    let material = lab::material(&capture, call, args.part.entry, &heads, block, None, &control)?;
    progress.say(said.text("searching-masks"));
    let mut found = look(&args, &material, wanted, &control)?;
    if args.others {
        progress.say(said.text("searching-calls"));
        let lengths = material.lengths();
        let masks: Vec<lab::Mask> =
            found.candidates.iter().map(|c| lab::Mask::of_form(&c.form, lengths)).collect::<Result<_, _>>()?;
        found.others = lab::on_all(&capture, call, args.part.entry, &masks, block, &control)?;
    }
    if args.routers {
        progress.say(said.text("searching-routers"));
        let (routed, layers) = lab::router_layers(&material, found.wanted.target, wanted.grid, &control)?;
        (found.routed, found.layers) = (routed, layers);
        if args.others {
            found.everywhere = lab::routed_calls(&capture, args.part.entry, found.wanted.target, block, &control)?;
        }
    }
    match (args.orders, wanted.grid) {
        (true, Some(grid)) => {
            found.ordered = gains(material.heads[0].scorer.head(), grid, block, 0.95, &control)?;
        }
        (true, None) => {
            let why = Diagnostic::error("capture-axes", "the capture has no axes: its tokens have one order");
            return Err(Failure::WrongUse(why.hint("capture with axes, or leave out --orders")));
        }
        _ => {}
    }
    drop(progress);
    found.written = match &args.out {
        Some(folder) => write(folder, &capture, call, &found, wanted.grid)?,
        None => Vec::new(),
    };
    if let Some(path) = &args.page {
        files::save(path, proposed::page(&capture, call, &found)?.as_bytes())?;
    }
    if args.json {
        return out::json(&proposed::object(&capture, call, &found));
    }
    out::text(&proposed::render(said, &capture, call, &found))
}

/// Proposals, the plain window, and requested times.
fn look(args: &Args, material: &Material, wanted: Wanted, control: &Control) -> Result<Found, Diagnostic> {
    let (wanted, candidates) = match (args.error, args.ms) {
        (Some(error), _) => (wanted, lab::suggest_for_error(material, &wanted, error, control)?),
        (_, Some(ms)) => lab::suggest_for_time(material, &wanted, ms, control)?,
        _ => (wanted, crate::quality::suggest::suggest(material, &wanted, control)?),
    };
    let plain = plain_window(material, &wanted, control)?;
    let least = least_density(material, plain.mass - proposed::AS_MUCH);
    let known = material.numbers();
    let unseen = (0..material.model_heads).filter(|h| !known.contains(h)).collect();
    let mut found = Found { candidates, least, unseen, ..Found::new(wanted, plain) };
    if args.time || args.ms.is_some() {
        let forms: Vec<&Form> = found.candidates.iter().map(|c| &c.form).collect();
        found.times = lab::times(material, &forms, control)?;
    }
    Ok(found)
}

fn wanted(args: &Args, capture: &Capture, call: &Call) -> Result<Wanted, Diagnostic> {
    let share = |name: &str, x: f64| {
        if x > 0.0 && x <= 1.0 {
            return Ok(x);
        }
        Err(Diagnostic::error("share", format!("--{name} {x} is not a share")).hint("a number above 0 and up to 1"))
    };
    for (name, value) in [("error", args.error), ("ms", args.ms)] {
        if let Some(x) = value.filter(|x| !(*x > 0.0 && x.is_finite())) {
            let why = Diagnostic::error("target", format!("--{name} {x} cannot be reached"));
            return Err(why.hint("a number above 0"));
        }
    }
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
                return Err(Diagnostic::error("unprotect", format!("`{other}` is not a protected part"))
                    .hint("diagonal, sinks, text, frame or all"));
            }
        }
    }
    let grid: Option<Grid> = capture.grid().filter(|g| g.tokens().end <= call.info.q_len.min(call.info.kv_len));
    Ok(Wanted { target, protect, grid, most_masks: args.masks })
}

/// A document for each proposal, in their order, then the orders of tokens.
fn write(
    folder: &Path,
    capture: &Capture,
    call: &Call,
    found: &Found,
    grid: Option<Grid>,
) -> Result<Vec<String>, Diagnostic> {
    let word = |name: &str| {
        let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        words.join("_")
    };
    let document = |candidate: &Candidate| {
        let document = lab::document(capture, call, candidate)?;
        let text = crate::document::file::to_json(&document);
        let path = files::save_under(folder, &format!("{}.json", word(&candidate.kind.to_string())), text.as_bytes())?;
        Ok(path.display().to_string())
    };
    let mut written: Vec<String> =
        found.candidates.iter().chain(&found.layers).map(document).collect::<Result<_, Diagnostic>>()?;
    for gain in found.ordered.iter().filter(|_| grid.is_some()) {
        let Some(grid) = grid else { continue };
        let order = gain.order.permutation(grid, call.info.q_len);
        let tensor = HostTensor::vector(Data::I64(order.iter().map(|n| *n as i64).collect()));
        let bytes = tensors::write([("order".to_string(), &tensor)])?;
        let path = files::save_under(folder, &format!("order_{}.safetensors", word(&gain.order.name())), &bytes)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}
