//! The tour: what stands in for the window where there is none. Presets at small sizes on the best device, with pictures
//! as text, timings and errors.
//!
//! Invariant: says once why there is no window, and what else is missing with the command that mends it. Must not know
//! displays.

use super::opened::{self, CodeArgs, Opened};
use super::out::{self, Failure};
use super::overrides::{self, Overrides};
use super::work::Worker;
use super::{check, race};
use crate::base::{BackendName, Device, Diagnostic};
use crate::document::library;
use crate::document::model::{Axes, Axis, Document};
use crate::problem;
use crate::service::plan;

/// Show presets at small sizes on the best device: pictures as text, timings, errors
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Presets; without any, all of them
    presets: Vec<String>,
    /// Tokens that a preset has at most
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
}

/// Runs the command.
pub fn command(args: Args) -> Result<(), Failure> {
    show_all(args)
}

/// What stands in for the window: all presets, after the reason.
pub fn tour(why: &Diagnostic) -> Result<(), Failure> {
    out::diagnostics(std::slice::from_ref(why));
    show_all(Args { presets: Vec::new(), tokens: None })
}

/// Tokens that a preset of the tour has at most, on a cpu.
const SMALL: usize = 1024;
/// The same on a GPU.
const LARGER: usize = 8192;
/// A preset that cannot be made so short races on a cpu up to this many times the limit.
const PATIENT: usize = 4;
/// Heads of the tour.
const HEADS: usize = 4;

fn show_all(args: Args) -> Result<(), Failure> {
    let mut worker = Worker::connect("")?;
    worker.tell_notes();
    let device = worker.info.devices.iter().find(|d| d.unusable.is_none()).cloned();
    let name = device.as_ref().map_or("the cpu", |d| d.name.as_str()).to_string();
    let on_gpu = device.is_some_and(|d| d.compute_capability.is_some());
    let limit = args.tokens.unwrap_or(if on_gpu { LARGER } else { SMALL });
    let all = || library::presets().iter().map(|p| p.name.to_string()).collect();
    let names: Vec<String> = if args.presets.is_empty() { all() } else { args.presets };
    out::text(&format!("The tour: presets at up to {limit} tokens and {HEADS} heads on {name}\n"))?;
    let mut failed = Vec::new();
    for name in names {
        match show(&name, limit, &mut worker) {
            Ok(()) => {}
            Err(Failure::Told(why)) => {
                out::text(&format!("\n{name}: failed\n"))?;
                out::diagnostics(&why);
                failed.push(name);
            }
            Err(other) => return Err(other),
        }
    }
    out::text("\nmore: maskloom presets; maskloom run sliding_window; maskloom --help\n")?;
    if failed.is_empty() { Ok(()) } else { Err(Failure::Told(Vec::new())) }
}

fn show(name: &str, limit: usize, worker: &mut Worker) -> Result<(), Failure> {
    let mut opened = opened::open(name, &CodeArgs::default(), &Overrides::default())?;
    shrink(&mut opened, limit);
    let compiled = opened.compile()?;
    let problem = problem::from_document(&opened.document, &compiled)?;
    let device = plan::choose_device(None, &opened.document, &worker.info);
    let picture: String =
        check::small_picture(&compiled, &problem, 48, 24).iter().map(|line| format!("  |{line}|\n")).collect();
    if device == Device::Cpu && longest(&opened.document) > PATIENT * limit {
        // its tiles or documents fix the length
        return out::text(&format!(
            "\n{}: {} x {} tokens, too long to race on a cpu here: maskloom run {name}\n{picture}",
            opened.document.name, problem.q_len, problem.kv_len
        ));
    }
    let mut request = plan::run_request(&opened.document, &compiled, device)?;
    request.backends = vec![BackendName::Eager, BackendName::Sdpa, BackendName::Flex];
    request.rounds = 3;
    request.warmup = 1;
    request.reference_rows = 64;
    let (report, _) = worker.run(request)?;
    let title = race::title(&opened.document.name, problem.spec(), &report);
    out::text(&format!("\n{title}{picture}{}", race::render(&report)))?;
    if race::succeeded(&report) {
        return Ok(());
    }
    Err(Diagnostic::error("tour-wrong", format!("a backend failed or was wrong on {name}"))
        .hint("please report it, with the lines above")
        .into())
}

/// Fewer heads, and axes halved until they are short, as long as the document still compiles (tiles must divide grids).
fn shrink(opened: &mut Opened, limit: usize) {
    let full = opened.document.clone();
    let fits = |document: &Document| {
        let compiled = crate::document::compile::compile(document, &opened.files);
        problem::from_document(document, &compiled).is_ok()
    };
    let mut small = full.clone();
    let group = (full.settings.heads / full.settings.kv_heads.max(1)).max(1);
    small.settings.batch = 1;
    small.settings.heads = HEADS.max(group).min(full.settings.heads);
    small.settings.kv_heads = (small.settings.heads / group).max(1);
    if !fits(&small) {
        small.settings = full.settings.clone();
    }
    let mut best = small.clone();
    for factor in [2, 4, 8, 16, 32, 64] {
        if longest(&best) <= limit {
            break;
        }
        let mut next = small.clone();
        let axes = Axes { q: divided(&full.axes.q, factor), kv: full.axes.kv.as_ref().map(|kv| divided(kv, factor)) };
        if overrides::set_axes(&mut next, axes).is_ok() && fits(&next) {
            best = next;
        }
    }
    opened.document = best;
}

fn longest(document: &Document) -> usize {
    document.axes.q.len().max(document.axes.kv().len())
}

/// Every segment with about `factor` times fewer tokens; grids keep their proportions.
fn divided(axis: &Axis, factor: usize) -> Axis {
    let mut axis = axis.clone();
    for segment in &mut axis.segments {
        let mut left = factor;
        // the longest side first, by twos
        while left > 1 {
            let Some(longest) = segment.grid.iter_mut().max() else { break };
            if *longest < 2 {
                break;
            }
            *longest = longest.div_ceil(2);
            left /= 2;
        }
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_shrink_evenly() {
        let axis = |text: &str| Axis::parse(text).unwrap();
        assert_eq!(divided(&axis("text 512 | image 64x64"), 4), axis("text 128 | image 32x32"));
        assert_eq!(divided(&axis("tokens 1"), 8), axis("tokens 1"));
    }
}
