//! `maskloom quality`: measures the loss of a mask on a capture, head by head, and compares it with thresholds.
//!
//! Invariant: the mask is the document's own; heads are measured one at a time, so that memory holds one head.

use super::page::Page;
use super::{Part, Plain};
use crate::base::provenance::Place;
use crate::base::{Control, Device, Diagnostic, Provenance};
use crate::cli::far::{self, Far};
use crate::cli::opened::{self, CodeArgs};
use crate::cli::out::{self, Failure, Progress};
use crate::cli::overrides::Overrides;
use crate::cli::table::{Table, digits, milliseconds, percent};
use crate::cli::work::Worker;
use crate::document::from_document;
use crate::problem::Problem;
use crate::quality::capture::{Call, Capture};
use crate::quality::loss;
use crate::quality::measure::{self, Measures, Spread};
use crate::quality::suggest::schedule;
use crate::tasks::lab::launched::{self, Asked};
use crate::tasks::lab::{self, JudgedHead, told};
use crate::tasks::origins;
use crate::words::{Language, Value as Figure, Words};
use crate::worker::files;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Measure a mask on captured q, k and v: mass kept, ceiling, output error
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// A capture written by maskloom_capture.py, or a file with q, k and v
    capture: PathBuf,
    #[command(flatten)]
    plain: Plain,
    #[command(flatten)]
    part: Part,
    /// Measure every call of the capture with the document's lengths, and print the spread
    #[arg(long)]
    all: bool,
    /// Measure with flex on this device (cpu, cuda or cuda:N): the mass by two launches, block masses by a picture of the
    /// probabilities; without it the CPU measures in this process
    #[arg(long, value_parser = crate::cli::arguments::device)]
    device: Option<Device>,
    /// Fail if a head's mean mass is below this
    #[arg(long, value_name = "X", value_parser = crate::cli::arguments::share)]
    min_mass: Option<f64>,
    /// Fail if a head's relative L1 error of the output is above this
    #[arg(long, value_name = "X", value_parser = crate::cli::arguments::limit)]
    max_error: Option<f64>,
    /// Write a picture of the lost mass by block of the worst head
    #[arg(long, value_name = "F.png", value_parser = crate::cli::ending::one_of(&["png"]))]
    picture: Option<PathBuf>,
    /// Page of tables and pictures
    #[arg(long, value_name = "F.html", value_parser = crate::cli::ending::one_of(&["html"]))]
    page: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    far: Far,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// A call with the measures of its heads.
struct Seen<'a> {
    call: &'a Call,
    heads: Vec<(usize, Measures)>,
    /// With a device: its name, and the milliseconds of flex under the mask and without it.
    launches: Option<(String, f64, f64)>,
}

/// The head with the largest loss so far.
struct Worst<'a> {
    call: &'a Call,
    head: usize,
    one: JudgedHead,
    lost: Vec<f32>,
    missed: Vec<(usize, f32)>,
}

impl Worst<'_> {
    fn title(&self, said: &'static Words, capture: &Capture) -> String {
        told::head(said, &told::call(said, capture, self.call), self.head)
    }
}

/// Runs the command.
pub(crate) fn quality(args: Args) -> Result<(), Failure> {
    if args.far.is_far() {
        return measured_there(&args);
    }
    args.picture.iter().chain(&args.page).try_for_each(|path| files::can_save(path))?;
    let opened = opened::open(&args.preset, &args.code, &args.overrides)?;
    let problem = from_document(&opened.document, &opened.compile()?)?;
    let capture = super::open(&args.capture, &args.plain)?;
    let calls = calls(&args, &problem, &capture)?;
    out::diagnostics(&calls.first().map(|call| lab::doubts(&opened.document, &capture, call)).unwrap_or_default());
    let mut worker = args.device.map(|_| Worker::connect("")).transpose()?;
    let (mut seen, mut worst) = (Vec::new(), None);
    let mut reported = Vec::new();
    for call in calls {
        if call.info.full_heads().is_empty() {
            bounds(&problem, &capture, call, args.part.entry)?;
            continue;
        }
        let on = (worker.as_mut(), &args);
        seen.push(judge(on, &problem, &capture, call, &mut worst, &mut reported)?);
    }
    out::diagnostics(&reported);
    let missed = missed(&args, &seen);
    let name = opened.document.name.clone();
    if let (Some(path), Some(worst)) = (&args.picture, &worst) {
        files::save(path, &picture(worst)?)?;
    }
    if let Some(path) = &args.page {
        files::save(path, page(&name, &capture, &seen, worst.as_ref(), args.part.entry)?.as_bytes())?;
    }
    if args.json {
        out::json(&object(&name, &capture, &seen, &missed))?;
    } else {
        out::text(&render(out::words(), &capture, &seen, worst.as_ref()))?;
    }
    super::guarded(missed)
}

/// Measures where the capture is.
fn measured_there(args: &Args) -> Result<(), Failure> {
    if !(args.code.tensors.is_empty() && args.code.packages.is_empty()) {
        let why = Diagnostic::error("detach-files", "the files of --tensors and --package stay on this machine");
        return Err(Failure::WrongUse(why.hint("put them into a document first: `maskloom import`")));
    }
    let title = format!("quality of {} on {}", args.preset, args.capture.display());
    let written = args.picture.iter().chain(&args.page).cloned().collect();
    let document = Some(args.preset.clone());
    far::command(&args.far, far::Command { what: "quality", title, document, written }, args.json)
}

fn calls<'a>(args: &Args, problem: &Problem, capture: &'a Capture) -> Result<Vec<&'a Call>, Diagnostic> {
    if !args.all {
        return Ok(vec![capture.find(args.part.layer.as_deref(), args.part.step, args.part.prompt)?]);
    }
    let found: Vec<&Call> = capture.calls().iter().filter(|call| lab::check(problem, capture, call).is_ok()).collect();
    match (found.is_empty(), capture.calls().first()) {
        (true, Some(first)) => Err(lab::check(problem, capture, first)
            .err()
            .unwrap_or_else(|| Diagnostic::error("capture-call", "no call fits"))),
        _ => Ok(found),
    }
}

fn judge<'a>(
    (worker, args): (Option<&mut Worker>, &Args),
    problem: &Problem,
    capture: &Capture,
    call: &'a Call,
    worst: &mut Option<Worst<'a>>,
    reported: &mut Vec<Diagnostic>,
) -> Result<Seen<'a>, Failure> {
    let control = Control::new();
    let kept = lab::blocks(problem, capture, call, &control)?;
    let progress = Progress::new();
    let (mut heads, mut launches) = (Vec::new(), None);
    let chosen = args.part.heads(capture, call)?;
    let mut measured = Vec::new().into_iter();
    if let (Some(worker), Some(device)) = (worker, args.device) {
        let asked = Asked { capture, call, batch: args.part.entry, heads: &chosen, problem, kept: &kept, device };
        let found = launched::judge(worker, &asked)?;
        let name = worker.info.devices.iter().find(|d| d.device == device).map(|d| d.name.clone());
        launches = Some((name.unwrap_or_else(|| device.to_string()), found.masked_ms, found.full_ms));
        measured = found.heads.into_iter();
    }
    for (n, head) in chosen.iter().enumerate() {
        progress.say(&format!("{} ({}/{})", told::head(out::words(), &call.key, *head), n + 1, chosen.len()));
        let one = match measured.next() {
            Some(one) => one,
            None => lab::judge(capture, call, (args.part.entry, *head), problem, &kept, &control)?,
        };
        if let Some(words) = measure::troubles(one.judge.scorer.head(), &one.judge.masses) {
            reported.push(Diagnostic::warning("capture-rows", format!("{} head {head}: {words}", call.key)));
        }
        let measures = one.judged.measures.clone();
        // a head without a measured row gives way to any other
        let worse = |than: f64| than.is_nan() || measures.mass.mean < than;
        if worst.as_ref().is_none_or(|w| worse(w.one.judged.measures.mass.mean)) {
            let lost = loss::by_block(&one.judge.scorer, &one.judge.masses, &kept, &control)?;
            let row = measures.mass.worst_row;
            let missed = loss::missed(&one.judge.scorer, &one.judge.masses, &kept, row, 5);
            *worst = Some(Worst { call, head: *head, one, lost, missed });
        }
        heads.push((*head, measures));
    }
    Ok(Seen { call, heads, launches })
}

/// Statistics only: bounds of the mass.
fn bounds(problem: &Problem, capture: &Capture, call: &Call, batch: usize) -> Result<(), Failure> {
    let control = Control::new();
    let kept = lab::blocks(problem, capture, call, &control)?;
    for head in 0..call.info.heads {
        let Some(of) = capture.statistics(call, batch, head)? else {
            let message = format!("{} of {} holds neither q and k nor block masses", call.key, capture.name());
            return Err(Diagnostic::error("capture-head", message).hint("capture with statistics or q and k").into());
        };
        if of.masses.block != kept.blocks.block_size() {
            let message = format!(
                "the block masses are of {}, the document's blocks of {}",
                of.masses.block,
                kept.blocks.block_size()
            );
            return Err(Diagnostic::error("capture-block-size", message)
                .hint(format!("give --block-size {}", of.masses.block))
                .into());
        }
        let (low, high) = measure::bounds(&of.masses, &kept, (batch, head));
        let [low, high] = [low, high].map(|mass| format!("{mass:.4}"));
        let head = told::head(out::words(), &call.key, head);
        out::text(&out::line("loss-bounds", &[("head", head.into()), ("low", low.into()), ("high", high.into())]))?;
    }
    Ok(())
}

fn missed(args: &Args, seen: &[Seen]) -> Vec<Diagnostic> {
    let mut reported = Vec::new();
    for (call, head, m) in seen.iter().flat_map(|s| s.heads.iter().map(|(h, m)| (s.call, h, m))) {
        if let Some(least) = args.min_mass.filter(|least| m.mass.mean < *least || m.mass.mean.is_nan()) {
            let message = format!("{} head {head} keeps {:.4} of its mass, below {least}", call.key, m.mass.mean);
            reported.push(
                Diagnostic::error("mass-too-low", message).hint("`maskloom suggest` proposes masks that keep it"),
            );
        }
        match (args.max_error, &m.error) {
            (Some(most), Some(e)) if e.relative_l1 > most || e.relative_l1.is_nan() => {
                let message = format!(
                    "{} head {head}: the output error is {:.4} (relative L1), above {most}",
                    call.key, e.relative_l1
                );
                reported.push(
                    Diagnostic::error("error-too-high", message)
                        .hint("`maskloom suggest --error` proposes masks below it"),
                );
            }
            (Some(_), None) => reported.push(
                Diagnostic::error("capture-no-v", format!("{} holds no v: the output error is unknown", call.key))
                    .hint("capture v too"),
            ),
            _ => {}
        }
    }
    reported
}

fn render(said: &'static Words, capture: &Capture, seen: &[Seen], worst: Option<&Worst>) -> String {
    let line = |id: &str, figures: &[(&str, Figure<'_>)]| said.with(id, figures) + "\n";
    let mut out = String::new();
    for s in seen {
        out.push_str(&super::title(said, capture, s.call));
        let mut table = Table::told(&[
            "column-head",
            "column-mass",
            "p5",
            "min",
            "column-worst-row",
            "column-ceiling",
            "column-regret",
            "rel L1",
            "column-cosine",
            "column-row-p99",
            "column-blocks",
            "column-efficiency",
        ]);
        for (head, m) in &s.heads {
            let error = |of: &dyn Fn(&measure::OutputError) -> f64| {
                m.error.as_ref().map_or("-".into(), |e| format!("{:.4}", of(e)))
            };
            table.row([
                head.to_string(),
                format!("{:.4}", m.mass.mean),
                format!("{:.4}", m.mass.p5),
                format!("{:.4}", m.mass.min),
                m.mass.worst_row.to_string(),
                format!("{:.4}", m.ceiling),
                format!("{:.4}", m.regret),
                error(&|e| e.relative_l1),
                error(&|e| e.cosine),
                error(&|e| e.row_p99),
                percent(m.cost.density()),
                percent(m.cost.efficiency),
            ]);
        }
        out.push_str(&table.render_in(said));
        if let Some((device, masked, full)) = &s.launches {
            let from = Provenance::Measured(Place { device: device.to_string(), ..Place::default() });
            let from = origins::whole(said, &from).into();
            let [masked, full] = [masked, full].map(|ms| milliseconds(*ms).into());
            out.push_str(&line("loss-times", &[("from", from), ("masked", masked), ("full", full)]));
        }
        let empty: usize = s.heads.iter().map(|(_, m)| m.mass.empty_rows).sum();
        if let Some((head, m)) = s.heads.iter().find(|(_, m)| m.mass.empty_rows > 0) {
            let figures = [("n", empty), ("q", m.mass.first_empty.unwrap_or(0)), ("head", *head)];
            out.push_str(&line("loss-empty", &figures.map(|(name, n)| (name, n.to_string().into()))));
        }
    }
    if let Some(w) = worst.filter(|w| w.one.judged.measures.mass.rows > 0) {
        let keys: Vec<String> = w.missed.iter().map(|(kv, p)| format!("{kv} ({})", percent(f64::from(*p)))).collect();
        let row = w.one.judged.measures.mass.worst_row.to_string();
        let figures = [("head", w.title(said, capture).into()), ("row", row.into())];
        out.push_str(&match keys.is_empty() {
            true => line("loss-worst", &figures),
            false => {
                let [head, row] = figures;
                line("loss-worst-misses", &[head, row, ("keys", keys.join(", ").into())])
            }
        });
    }
    if seen.len() > 1 {
        let spread = spread(seen);
        let figures = [("mean", spread.mean), ("min", spread.min), ("max", spread.max)];
        let [mean, min, max] = figures.map(|(name, mass)| (name, digits4(mass).into()));
        out.push_str(&line("loss-calls", &[("n", spread.count.to_string().into()), mean, min, max]));
        out.push_str(&format!("{}\n", told::schedule(said, &dense(seen))));
    }
    out
}

fn digits4(x: f64) -> String {
    if x.is_finite() { format!("{x:.4}") } else { digits(x) }
}

/// Layers and first steps that should stay dense for a mass of 0.95.
fn dense(seen: &[Seen]) -> schedule::Schedule {
    let of: Vec<schedule::Seen> = seen
        .iter()
        .map(|s| schedule::Seen {
            layer: (s.call.info.layer, s.call.info.name.clone()),
            step: s.call.info.step,
            mass: s.heads.iter().map(|(_, m)| m.mass.mean).sum::<f64>() / s.heads.len().max(1) as f64,
        })
        .collect();
    schedule::schedule(&of, 0.95)
}

/// Mean mass of each call: how far the mask holds on other captures.
fn spread(seen: &[Seen]) -> Spread {
    let mean = |s: &Seen| s.heads.iter().map(|(_, m)| m.mass.mean).sum::<f64>() / s.heads.len().max(1) as f64;
    Spread::of(seen.iter().map(mean))
}

fn object(name: &str, capture: &Capture, seen: &[Seen], missed: &[Diagnostic]) -> Value {
    let calls: Vec<Value> = seen
        .iter()
        .map(|s| {
            let heads: Vec<Value> = s.heads.iter().map(|(head, m)| json!({"head": head, "measures": m})).collect();
            let mut call = json!({"call": s.call.key, "layer": s.call.info.name, "step": s.call.info.step, "prompt": s.call.info.prompt, "heads": heads});
            if let Some((device, masked_ms, full_ms)) = &s.launches {
                call["launches"] = json!({"device": device, "masked_ms": masked_ms, "full_ms": full_ms});
            }
            call
        })
        .collect();
    let missed: Vec<Value> = missed.iter().map(|d| json!({"code": d.code, "message": d.message})).collect();
    json!({"name": name, "capture": capture.name(), "provenance": capture.provenance(), "calls": calls, "stability": spread(seen), "missed": missed})
}

fn picture(worst: &Worst) -> Result<Vec<u8>, Diagnostic> {
    lab::heat(&worst.lost, worst.one.judge.masses.grid().1, 768)
}

fn page(
    name: &str,
    capture: &Capture,
    seen: &[Seen],
    worst: Option<&Worst>,
    entry: usize,
) -> Result<String, Diagnostic> {
    // files are English
    let said = Words::of(Language::English);
    let mut page = Page::new(&format!("{name} on {}", capture.name()), &capture.provenance());
    page.text("Mass kept is the share of full attention's probability on the kept keys. The ceiling is the largest mass that the same number of blocks could keep. The regret is the ceiling minus the mass kept.");
    for s in seen {
        page.heading(&s.call.title(capture));
        page.lines(&render(said, capture, std::slice::from_ref(s), None));
    }
    if let Some(worst) = worst {
        page.heading(&format!("Lost mass by block: {}", worst.title(said, capture)));
        page.picture(
            &picture(worst)?,
            "Rows are query blocks, columns are key blocks. Lighter means more lost mass, over four decades.",
        );
    }
    // calls with block masses cost nothing more
    let has_masses = |call: &&Call| call.info.statistics.is_some();
    let mut calls: Vec<&Call> = capture.calls().iter().filter(has_masses).collect();
    if calls.is_empty() {
        calls = seen.iter().map(|s| s.call).collect();
    }
    super::atlas::put(&mut page, capture, &calls, entry)?;
    Ok(page.end())
}

impl Clone for Seen<'_> {
    fn clone(&self) -> Self {
        Seen { call: self.call, heads: self.heads.clone(), launches: self.launches.clone() }
    }
}
