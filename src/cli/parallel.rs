//! `maskloom parallel`: a plan of attention over several GPUs, beside the divisions that others use.
//!
//! Invariant: every figure is counted or predicted, never measured, and the output says so. Must not know how a plan is
//! found.

use super::check;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::table::{self, Cell, Table};
use crate::base::{Control, Diagnostic};
use crate::document::from_document;
use crate::parallel::cost::{CARD, Cost};
use crate::parallel::figures::{Exchange, Figures};
use crate::parallel::json as forms;
use crate::parallel::links::{Links, NVLINK};
use crate::parallel::paths::{Path as FarPath, paths};
use crate::parallel::plan::Plan;
use crate::parallel::request::{Kind, Request, Shape, check_ranks};
use crate::parallel::rivals::{Rival, rivals};
use crate::parallel::rows::MaskRows;
use crate::tasks::{divisions, origins};
use crate::words::Words;
use crate::worker::files;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Plan attention over several GPUs: which rank computes what, which keys travel, how long it takes
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Preset, FILE.json or FILE.py:ENTRY; several are kinds of layers of one model, over one sequence
    #[arg(value_name = "PRESET", required_unless_present = "request")]
    presets: Vec<String>,
    /// Ranks: GPUs over which the sequence is divided
    #[arg(long, value_name = "N", default_value_t = 4)]
    ranks: usize,
    /// Layers of each kind, in the order of the presets; the default is 1 each
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    layers: Vec<usize>,
    /// GB/s that a rank receives: one number, or a file with a JSON matrix, [from][to]
    #[arg(long, value_name = "GB/S|F.json", default_value_t = NVLINK.to_string())]
    bandwidth: String,
    /// Ranks of one host; others are reached at --network
    #[arg(long, value_name = "N", requires = "network")]
    per_host: Option<usize>,
    /// GB/s between hosts
    #[arg(long, value_name = "GB/S", requires = "per_host")]
    network: Option<f64>,
    /// Card whose measured block times predict, as its driver names it
    #[arg(long, value_name = "NAME", default_value = CARD)]
    card: String,
    /// Plan the forward pass alone
    #[arg(long)]
    forward: bool,
    /// Instead of presets: block lists as JSON, from another program; - is stdin
    #[arg(long, value_name = "F.json", conflicts_with_all = ["presets", "ranks", "layers", "bandwidth", "per_host", "card", "forward"])]
    request: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Print one JSON object: the plan with all lists and local block masks, and all figures
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn parallel(args: Args) -> Result<(), Failure> {
    // of a request nobody knows whether its blocks are a causal mask's
    let (request, paths) = match &args.request {
        Some(path) => (forms::request(&written(path)?)?, Vec::new()),
        None => asked(&args)?,
    };
    let plan = Plan::new(&request);
    let others = rivals(&request);
    if args.json {
        let mut value = forms::plan(&request, &plan);
        value["others"] = others.iter().map(other).collect();
        value["paths"] = json!(paths);
        return out::json(&value);
    }
    out::diagnostics(&plan.notes);
    out::text(&(render(&request, &plan, &others) + &reported(&paths)))
}

/// What the ways of other libraries do with these masks.
fn reported(paths: &[FarPath]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let mut table = Table::told(&["column-way", "column-read", "column-mask", "column-how"]);
    for path in paths {
        let fate = Cell::told(|said| divisions::fate(said, path.fate).into());
        let how = Cell::told(|said| divisions::how(said, path.how).into());
        table.row([path.name.into(), path.release.into(), fate, how]);
    }
    format!("\n{}{}", out::line("plan-ways", &[]), table.render())
}

fn written(path: &Path) -> Result<String, Failure> {
    if path != Path::new("-") {
        return Ok(files::read_text(path)?);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|why| {
        Diagnostic::error("cannot-read", format!("cannot read stdin: {why}")).hint("pipe a request into the command")
    })?;
    Ok(text)
}

fn asked(args: &Args) -> Result<(Request, Vec<FarPath>), Failure> {
    check_ranks(args.ranks).map_err(Failure::WrongUse)?;
    if !args.layers.is_empty() && args.layers.len() != args.presets.len() {
        let message =
            format!("--layers has {} for {}", words(args.layers.len(), "number"), words(args.presets.len(), "mask"));
        let why = Diagnostic::error("parallel-layers", message).hint("give one number for each preset: --layers 1,5");
        return Err(Failure::WrongUse(why));
    }
    let links = links(args)?;
    let cost = Cost::of_card(&args.card).map_err(Failure::WrongUse)?;
    let (mut kinds, mut patterns, mut shape) = (Vec::new(), Vec::new(), None);
    for (n, name) in args.presets.iter().enumerate() {
        let opened = opened::open(name, &args.code, &args.overrides)?;
        let problem = from_document(&opened.document, &opened.compile()?)?;
        let rows = MaskRows::from(&check::block_mask(&problem)?);
        patterns.push(problem.pattern(&Control::new())?);
        let layers = args.layers.get(n).copied().unwrap_or(1);
        kinds.push(Kind { name: opened.document.name.clone(), layers, rows });
        let own = Shape::from(problem.spec());
        if *shape.get_or_insert(own) != own {
            let message = format!("`{name}` has other heads, head dims or dtype than `{}`", args.presets[0]);
            let why = Diagnostic::error("parallel-shape", message)
                .hint("give --heads, --kv-heads, --head-dim, --batch and --dtype for all of them");
            return Err(why.into());
        }
    }
    let shape = shape.ok_or_else(|| Diagnostic::error("parallel-no-mask", "there is no mask to plan"))?;
    Ok((Request::new(kinds, links, shape, &cost, !args.forward)?, paths(&patterns)))
}

fn links(args: &Args) -> Result<Links, Failure> {
    let made = match (args.bandwidth.parse::<f64>(), args.per_host.zip(args.network)) {
        (Ok(rate), None) => Links::uniform(args.ranks, rate),
        (Ok(rate), Some((per_host, network))) => Links::hosts(args.ranks, per_host, rate, network),
        (Err(_), Some(_)) => {
            Err(Diagnostic::error("parallel-bandwidth", "a matrix has the rates between hosts already")
                .hint("leave out --per-host and --network"))
        }
        (Err(_), None) => matrix(args),
    };
    made.map_err(Failure::WrongUse)
}

fn matrix(args: &Args) -> Result<Links, Diagnostic> {
    let path = Path::new(&args.bandwidth);
    let text = files::read_text(path).map_err(|why| {
        Diagnostic::error(
            "parallel-bandwidth",
            format!("`{}` is neither GB/s nor a file: {}", args.bandwidth, why.message),
        )
        .hint(format!("give a number, such as {NVLINK}, or a file with a JSON matrix"))
    })?;
    let matrix: Vec<Vec<f64>> = serde_json::from_str(&text).map_err(|why| {
        Diagnostic::error("parallel-bandwidth", format!("{} is not a matrix of numbers: {why}", path.display()))
            .hint("write [[0, 200], [200, 0]], in GB/s, [from][to]")
    })?;
    if matrix.len() != args.ranks {
        let message = format!("a bandwidth matrix of {} rows is not of {} ranks", matrix.len(), args.ranks);
        return Err(Diagnostic::error("parallel-bandwidth", message).hint("give a row and a column for each rank"));
    }
    Links::matrix(matrix)
}

fn other(rival: &Rival) -> Value {
    match &rival.figures {
        Ok(figures) => json!({ "name": rival.name, "about": rival.about.words(), "figures": figures }),
        Err(why) => json!({ "name": rival.name, "about": rival.about.words(), "refused": why.message }),
    }
}

pub(super) fn render(request: &Request, plan: &Plan, others: &[Rival]) -> String {
    let (lengths, shape) = (request.lengths(), request.shape());
    let figures = [
        ("q", lengths.q_len.to_string()),
        ("kv", lengths.kv_len.to_string()),
        ("size", request.block_size().to_string()),
        ("ranks", request.ranks().to_string()),
        ("batch", shape.batch.to_string()),
        ("heads", shape.heads.to_string()),
        ("few", shape.kv_heads.to_string()),
        ("dim", shape.head_dim.to_string()),
        ("dtype", shape.dtype.to_string()),
    ];
    let mut out = out::line("plan-title", &figures.map(|(name, text)| (name, text.into())));
    out.push_str(&format!("{}\n\n", origins::sentence(out::words(), &request.cost().source)));
    out.push_str(&divisions(plan, others));
    if request.ranks() > 1 {
        let times = [("alone", plan.figures.alone_ms()), ("divided", plan.figures.ms())];
        let times = times.map(|(name, ms)| (name, format!("{ms:.3}").into()));
        let id = if plan.figures.pays() { "plan-alone" } else { "plan-alone-faster" };
        out.push_str(&format!("\n{}", out::line(id, &times)));
    }
    if request.kinds().len() > 1 {
        out.push_str(&by_kind(request, plan, others));
    }
    for (n, kind) in request.kinds().iter().enumerate() {
        let name = ("name", kind.name.as_str().into());
        out.push_str(&format!(
            "\n{}",
            match kind.layers {
                1 => out::line("plan-kind-one", &[name]),
                n => out::line("plan-kind", &[name, ("n", n.to_string().into())]),
            }
        ));
        out.push_str(&loads(&plan.figures, n));
        if request.ranks() > 1 {
            out.push_str(&format!("\n{}", out::line("plan-sent", &[])));
            out.push_str(&sent(&plan.figures, n));
        }
    }
    out
}

fn words(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn divisions(plan: &Plan, others: &[Rival]) -> String {
    let mut table = Table::told(&[
        "column-division",
        "column-imbalance",
        "column-keys-received",
        "column-keys-needed",
        "column-forward-ms",
        "column-backward-ms",
        "column-exposed-ms",
        "column-most-memory",
    ]);
    let mut row = |name: &dyn Fn(&'static Words) -> String, f: &Figures| {
        let most = f.peak_bytes.iter().max().copied().unwrap_or(0);
        let how = match f.exchange {
            Exchange::AllGather => " (all-gather)",
            _ => "",
        };
        table.row([
            Cell::told(|said| format!("{}{how}", name(said))),
            format!("{:.3}", f.imbalance).into(),
            table::percent(f.received).into(),
            table::percent(f.needed).into(),
            format!("{:.3}", f.forward_ms).into(),
            format!("{:.3}", f.backward_ms).into(),
            format!("{:.3}", f.exposed_ms).into(),
            table::bytes(most).into(),
        ]);
    };
    row(&|said| said.text("row-this-plan").into(), &plan.figures);
    let mut refused = String::new();
    for rival in others {
        match &rival.figures {
            Ok(figures) => {
                let name = |said: &'static Words| {
                    let about = divisions::about(said, rival.about).into();
                    said.with("row-rival", &[("name", rival.name.into()), ("about", about)])
                };
                row(&name, figures)
            }
            Err(why) => {
                let why = out::words().reported(&why.code, &why.message);
                refused.push_str(&out::line("row-rival", &[("name", rival.name.into()), ("about", why.into())]));
            }
        }
    }
    table.render() + &refused
}

/// Each division's imbalance in each kind of layer: a plan that balances one mask may leave another one crooked.
fn by_kind(request: &Request, plan: &Plan, others: &[Rival]) -> String {
    let names = request.kinds().iter().map(|kind| kind.name.as_str());
    let head = std::iter::once(Cell::text("column-by-kind")).chain(names.map(Cell::from));
    let mut table = Table::new(&head.collect::<Vec<_>>());
    let own = std::iter::once((Cell::text("row-this-plan"), &plan.figures));
    for (name, figures) in own.chain(others.iter().filter_map(|r| Some((r.name.into(), r.figures.as_ref().ok()?)))) {
        let cells = figures.kinds.iter().map(|kind| format!("{:.3}", kind.imbalance).into());
        table.row(std::iter::once(name).chain(cells));
    }
    format!("\n{}", table.render())
}

fn loads(figures: &Figures, kind: usize) -> String {
    let of = &figures.kinds[kind];
    let mut table = Table::told(&[
        "column-rank",
        "column-queries-of",
        "column-forward-ms",
        "column-backward-ms",
        "column-received",
    ]);
    for (rank, tokens) in figures.tokens.iter().enumerate() {
        let received: u64 = of.bytes.iter().map(|row| row[rank]).sum();
        table.row([
            rank.to_string(),
            tokens.to_string(),
            format!("{:.3}", of.forward.compute_ms[rank]),
            of.backward.as_ref().map_or("-".into(), |pass| format!("{:.3}", pass.compute_ms[rank])),
            table::bytes(received),
        ]);
    }
    table.render()
}

fn sent(figures: &Figures, kind: usize) -> String {
    let of = &figures.kinds[kind];
    let head: Vec<String> =
        std::iter::once("MB".to_string()).chain((0..of.bytes.len()).map(|rank| rank.to_string())).collect();
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for (from, row) in of.bytes.iter().enumerate() {
        let cell =
            |(to, bytes): (usize, &u64)| if to == from { "-".into() } else { format!("{:.1}", *bytes as f64 / 1e6) };
        table.row(std::iter::once(from.to_string()).chain(row.iter().enumerate().map(cell)));
    }
    table.render()
}
