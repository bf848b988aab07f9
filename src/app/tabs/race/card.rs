//! The cost of the mask in one figure: measured here, recorded on a known card, or only counted.
//!
//! Invariant: a time names its place; the time of a smaller copy, or of a failed check, never counts for the document;
//! a ratio is highlighted only if the samples show it. Must not know how a card is drawn.

use super::words::flops;
use crate::analysis::block_mask::Stats;
use crate::app::cards::{Card, Tone};
use crate::app::command::Command;
use crate::app::language::{say, say_with, words};
use crate::app::left;
use crate::app::origins;
use crate::app::state::State;
use crate::app::widgets::milliseconds;
use crate::base::provenance::Basis;
use crate::base::{BackendName, Provenance};
use crate::problem::ProblemSpec;
use crate::problem::result::RunReport;
use crate::tasks::estimate::{self, Known, Work, from_runs};
use crate::tasks::ratios;
use crate::tasks::recorded::Recorded;

/// The card of costs.
pub(in crate::app) fn best_time(ui: &egui::Ui, state: &State, recorded: &[&'static Recorded]) -> Card {
    let title = say(ui, "card-costs");
    let card = |value: String| Card::new(title, value, Command::ShowRace);
    // a race of another document says nothing of this one
    if let Some(running) = state.own_run() {
        let mut card = card(say(ui, "card-costs-racing").into()).detail(left::doing(ui, running));
        card.progress = Some(running.step.fraction);
        return card.tone(Tone::Weak);
    }
    if state.session.built.as_ref().is_some_and(|built| built.problem.is_err()) {
        return card("\u{2013}".into()).detail(say(ui, "card-costs-errors")).tone(Tone::Weak);
    }
    let race = state.session.race.as_ref().filter(|race| !race.stale && race.is_whole());
    if let Some(report) = race.and_then(|race| race.report.as_deref())
        && let Some(card) = of_report(ui, title, report, &Provenance::Measured(report.place()))
    {
        return card;
    }
    // for the active device, if it was recorded; otherwise for the first
    let here = state.session.worker.as_ref().map(|w| w.devices.iter().map(|d| d.name.clone()).collect::<Vec<_>>());
    let mine = |run: &&&Recorded| here.as_ref().is_some_and(|names| names.contains(&run.report.device_name));
    if let Some(run) = recorded.iter().find(mine).or(recorded.first())
        && let Some(card) = of_report(ui, title, &run.report, &run.provenance())
    {
        return card;
    }
    // a copy's time is not the document's: what was known before it raced stays
    let copied = state.session.race.as_ref().is_some_and(|race| !race.stale && !race.is_whole());
    let why = say(ui, if copied { "card-costs-smaller" } else { "card-costs-race" });
    match counted(ui, title, state) {
        Some(card) if copied => card.more_lines(Some(why.to_string())),
        Some(card) => card,
        None => card(say(ui, "card-costs-untimed").into()).tone(Tone::Weak).detail(why),
    }
}

/// The fastest backend that was right.
fn of_report(ui: &egui::Ui, title: &'static str, report: &RunReport, from: &Provenance) -> Option<Card> {
    let timed = report.backends.iter().filter_map(|r| Some((r.backend, r.outcome.right()?)));
    let (backend, timing) = timed.min_by(|a, b| a.1.median_ms.total_cmp(&b.1.median_ms))?;
    let baseline = report.baseline();
    let versus = baseline.as_ref().zip(report.versus(backend));
    let said = words(ui.ctx());
    let versus = versus.map(|(base, versus)| {
        let rival = ratios::ran_briefly(said, &base.ran);
        (ratios::versus(said, &versus, Some(&base.ran)), rival, versus)
    });
    let mut value = milliseconds(timing.median_ms);
    let mut tone = Tone::Plain;
    let mut than = None;
    let mut winner = None;
    if let Some((_, base, versus)) = versus.as_ref().filter(|(.., v)| v.shown && v.ratio > 1.0) {
        let ratio = format!("{:.1}", versus.ratio);
        value = say_with(ui, "card-costs-faster", &[("time", value.into()), ("ratio", ratio.into())]);
        tone = if versus.is_clear() { Tone::Good } else { Tone::Plain };
        than = Some(base.to_string());
        winner = Some((1.0 / versus.ratio) as f32);
    }
    let doubt = versus.as_ref().filter(|(.., v)| v.shown).and_then(|(.., v)| v.doubts.first());
    let doubt = doubt.map_or(String::new(), |doubt| format!("{}; ", ratios::doubt(said, doubt)));
    // the rival is named first: the rest of a long line is seen on a hover
    let who = [("what", name(backend).into()), ("more", origins::brief(ui, from).into())];
    let rest = format!("{doubt}{}", say_with(ui, "origin-and", &who));
    let detail = match than {
        Some(base) => say_with(ui, "card-costs-than", &[("base", base.into()), ("rest", rest.into())]),
        None => rest,
    };
    let card = Card { winner, ..Card::new(title, value, Command::ShowRace).detail(detail).tone(tone) };
    Some(match versus {
        Some((words, ..)) => {
            card.more(say_with(ui, "card-costs-forward", &[("backend", name(backend).into()), ("words", words.into())]))
        }
        None => card,
    })
}

fn name(backend: BackendName) -> &'static str {
    backend.as_str()
}

/// Arithmetic alone: no time is known.
fn counted(ui: &egui::Ui, title: &'static str, state: &State) -> Option<Card> {
    let stats = state.session.current_stats()?.result.as_ref().ok()?;
    let problem = state.session.built.as_ref()?.problem.as_ref().ok()?;
    let p = problem.spec();
    let computed = Work::of(p, stats.density, stats.computed).computed;
    if let Some(card) = estimated(ui, title, state, p, stats, &flops(computed, "FLOP")) {
        return Some(card);
    }
    let less = match stats.computed {
        0.0 => say(ui, "card-costs-nothing").into(),
        share if share < 0.995 => say_with(ui, "card-costs-less", &[("ratio", format!("{:.1}", 1.0 / share).into())]),
        _ => say(ui, "card-costs-same").into(),
    };
    let card = Card::new(title, flops(computed, "FLOP"), Command::ShowRace).detail(less);
    Some(card.more(say(ui, "card-costs-arithmetic")))
}

/// What a race would take, marked as an estimate: by the last race of a design like this on this machine, else by recorded runs.
fn estimated(
    ui: &egui::Ui,
    title: &'static str,
    state: &State,
    p: &ProblemSpec,
    stats: &Stats,
    arithmetic: &str,
) -> Option<Card> {
    let cards = estimate::on_cards(p, stats.density, stats.computed);
    let here = state.session.race.as_ref().filter(|race| race.is_whole()).and_then(|race| {
        let (of, report) = (race.of.as_ref()?.spec(), race.report.as_deref()?);
        let alike = (of.head_dim, of.dtype, of.score.is_some()) == (p.head_dim, p.dtype, p.score.is_some());
        let known = Known::of(of, report).filter(|_| alike)?;
        let ms = from_runs(&Work::of(p, stats.density, stats.computed), &[known])?;
        Some((ms, report.device_name.clone()))
    });
    let (ms, from) = match (here, cards.first()) {
        (Some((ms, name)), _) => (ms, Provenance::estimated(name, Basis::LastRace)),
        (None, Some(first)) => (first.ms, first.provenance()),
        (None, None) => return None,
    };
    let value = format!("\u{2248} {}", milliseconds(ms));
    let mut card = Card::new(title, value, Command::ShowRace).detail(origins::whole(ui, &from)).tone(Tone::Weak);
    card.more.push(say_with(ui, "card-costs-arithmetic-is", &[("flop", arithmetic.into())]));
    for one in &cards {
        let basis = origins::basis(ui, &one.basis);
        let figures = [("card", (&*one.card).into()), ("time", milliseconds(one.ms).into()), ("basis", basis.into())];
        card.more.push(say_with(ui, "card-costs-about", &figures));
    }
    // measured by leaving each recorded run out
    card.more.push(say(ui, "card-costs-estimates").into());
    Some(card)
}
