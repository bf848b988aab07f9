//! The race: a bar for each backend, speed-ups against SDPA, errors against the float64 reference.
//!
//! Invariant: a time stands beside its error; what failed its check is never shown as a time to compare with. Must not
//! know how a race is run.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::dialogs::advice_ui;
use crate::app::session::Race;
use crate::app::smaller::{is_heavy, words};
use crate::app::state::State;
use crate::app::theme::{Palette, palette};
use crate::app::widgets::{command_button, milliseconds, percent, primary_button};
use crate::base::{BackendName, Device};
use crate::export::advice::{Measured, Question, advise};
use crate::problem::result::{BackendReport, ErrorStats, Outcome, RunReport, Timing};
use crate::problem::verdict::{Baseline, Busy, Versus, baseline, what_ran};
use crate::service::recorded::Recorded;
use egui::{Color32, RichText, ScrollArea, Sense, Ui, Vec2};

/// Height of a bar.
const BAR: f32 = 20.0;

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(race) = &state.session.race else { return empty(ui, state, actions) };
    header(ui, state, race, actions);
    let lines = lines(&race.reports, race.report.as_deref());
    let longest = lines.iter().filter_map(|l| l.median()).fold(0.0, f64::max);
    ScrollArea::both().auto_shrink([false, false]).show(ui, |ui| {
        for line in &lines {
            line.show(ui, longest, race.stale);
        }
        if let Some(report) = &race.report {
            for note in &report.notes {
                ui.weak(&note.message);
            }
        }
        advice(ui, state, race);
    });
}

/// What the race means for the trainer's configuration that was opened.
fn advice(ui: &mut Ui, state: &State, race: &Race) {
    let (Some(config), Some(report)) = (&state.trainer, &race.report) else { return };
    let whole = race.request.as_ref().zip(race.of.as_ref()).is_some_and(|((r, _), of)| r.problem == *of.spec());
    if race.stale || !whole {
        return;
    }
    let here = Some(Measured { report, recorded: false });
    let has_design = !state.document.layers.is_empty() || !state.document.scores.is_empty();
    ui.add_space(6.0);
    advice_ui(
        ui,
        &advise(&Question {
            trainer: config.trainer,
            family: config.family.as_deref(),
            current: config.setting.as_deref(),
            precision: config.precision.as_deref(),
            plain: here.filter(|_| !has_design),
            designed: here.filter(|_| has_design),
            has_design,
            command: "open the config.json again and race the choices that need no mask",
        }),
    );
}

fn empty(ui: &mut Ui, state: &State, actions: &mut Actions) {
    if state.session.run_when_built.is_some() || state.session.shrinking || state.session.is_racing() {
        ui.weak("The race starts…");
        return;
    }
    ui.add_space(10.0);
    // a row that overflows would widen all that stands below it
    ui.horizontal_wrapped(|ui| {
        let errors = state.session.built.as_ref().is_some_and(|b| b.problem.is_err());
        let button = primary_button(ui, "Race the backends", !errors).min_size(Vec2::new(150.0, 30.0));
        if ui.add_enabled(!errors, button).on_hover_text(Command::Run.tooltip(ui.ctx())).clicked() {
            actions.command(Command::Run);
        }
        let names: Vec<_> = state.document.settings.backends.iter().map(|b| b.as_str()).collect();
        ui.weak(format!("{} on {}", names.join(", "), state.session.device(&state.document)));
    });
    let heavy = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok()).is_some_and(|p| is_heavy(p.spec()));
    if heavy && state.session.device(&state.document) == Device::Cpu {
        ui.horizontal_wrapped(|ui| {
            ui.weak("On the CPU a smaller copy of it races, in seconds.");
            command_button(ui, Command::RunWhole, state.can(Command::RunWhole), actions);
        });
    }
    ui.weak("Each is checked against the float64 reference first, then timed round by round.");
    recorded(ui, state);
}

/// What known cards gave for exactly this document: shown paler than a race, and said to be recorded.
fn recorded(ui: &mut Ui, state: &State) {
    // looking a document up means writing it out: once a revision
    let memory = crate::app::widgets::id("recorded runs");
    type Known = (u64, Vec<&'static Recorded>);
    let known = ui.data(|d| d.get_temp::<Known>(memory)).filter(|k| k.0 == state.revision);
    let (revision, runs) = known.unwrap_or_else(|| (state.revision, crate::service::recorded::of(&state.document)));
    ScrollArea::both().auto_shrink([false, false]).show(ui, |ui| {
        for run in &runs {
            ui.add_space(8.0);
            ui.horizontal(|ui| {
                ui.label(RichText::new(format!("recorded on {}", run.report.device_name)).strong());
                let date = run.report.environment.get("date").cloned().unwrap_or_default();
                ui.weak(format!("{date}; not measured here, forward only"));
                environment(ui, &run.report);
            });
            let lines = lines(&run.report.backends, Some(&run.report));
            let longest = lines.iter().filter_map(|l| l.median()).fold(0.0, f64::max);
            lines.iter().for_each(|line| line.show(ui, longest, true));
        }
    });
    ui.data_mut(|d| d.insert_temp::<Known>(memory, (revision, runs)));
}

fn header(ui: &mut Ui, state: &State, race: &Race, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        let colours = palette(ui.visuals());
        if race.stale {
            ui.label(RichText::new("stale").strong().color(colours.warning))
                .on_hover_text("The document has changed since: these are the numbers of the mask before.");
            let button = egui::Button::new("Run again");
            let errors = state.session.built.as_ref().is_some_and(|b| b.problem.is_err());
            if ui.add_enabled(state.can(Command::Run) && !errors, button).clicked() {
                actions.command(Command::Run);
            }
        }
        if let (Some((request, _)), Some(of)) = (&race.request, &race.of)
            && request.problem != *of.spec()
        {
            ui.label(RichText::new("smaller copy").strong().color(colours.warning)).on_hover_text(format!(
                "Raced: {}, of {}. On a GPU, or with Run all of it, the whole is raced.",
                words(&request.problem),
                words(of.spec())
            ));
            ui.weak(words(&request.problem));
            command_button(ui, Command::RunWhole, state.can(Command::RunWhole), actions);
        }
        if let Some((path, _)) = &race.file {
            ui.label(RichText::new("recorded").strong()).on_hover_text(path.display().to_string());
        }
        match &race.report {
            Some(report) => {
                ui.strong(&report.device_name);
                ui.weak(format!("{} of cells, {}", percent(report.work.density), flops(report.work.flop, "FLOP")));
                command_button(ui, Command::SaveRun, true, actions);
                environment(ui, report);
            }
            None if state.session.is_racing() => {
                ui.weak("running…");
            }
            None => {
                ui.colored_label(colours.warning, "stopped before its end");
            }
        }
    });
}

fn environment(ui: &mut Ui, report: &RunReport) {
    ui.label(RichText::new("environment").weak().underline()).on_hover_ui(|ui| {
        for (name, value) in &report.environment {
            ui.label(format!("{name}: {value}"));
        }
    });
}

/// One backend.
struct Line<'a> {
    report: &'a BackendReport,
    /// What the others are compared with: SDPA where one took the problem, else eager.
    baseline: Option<Baseline<'a>>,
    busy: Option<Busy>,
    flop: Option<f64>,
}

fn lines<'a>(reports: &'a [BackendReport], whole: Option<&RunReport>) -> Vec<Line<'a>> {
    let baseline = baseline(reports);
    let (flop, busy) = (whole.map(|r| r.work.flop), whole.and_then(RunReport::busy));
    reports.iter().map(|report| Line { report, baseline: baseline.clone(), busy, flop }).collect()
}

impl Line<'_> {
    fn median(&self) -> Option<f64> {
        match &self.report.outcome {
            Outcome::Done { timing: Some(timing), .. } => Some(timing.median_ms),
            _ => None,
        }
    }

    fn show(&self, ui: &mut Ui, longest: f64, stale: bool) {
        let colours = palette(ui.visuals());
        ui.horizontal(|ui| {
            let name = RichText::new(self.report.backend.as_str()).monospace().strong();
            let ran = match &self.report.outcome {
                Outcome::Done { kernel, .. } => Some(what_ran(self.report.backend, kernel)),
                _ => None,
            };
            fixed(ui, 130.0, |ui| {
                let label = ui.label(name);
                if let Some(ran) = ran {
                    label.on_hover_text(ran);
                }
            });
            match &self.report.outcome {
                Outcome::Done { kernel, error, timing, .. } => {
                    self.done(ui, kernel, error, timing.as_ref(), longest, stale, &colours);
                }
                Outcome::Refused { why } => {
                    ui.weak("refused").on_hover_text(why.render());
                    ui.add(egui::Label::new(RichText::new(&why.message).weak()).truncate());
                }
                Outcome::Failed { why } => {
                    ui.colored_label(colours.error, "failed").on_hover_text(why.render());
                    ui.add(egui::Label::new(&why.message).truncate());
                }
            }
        });
        if let Outcome::Refused { why } | Outcome::Failed { why } = &self.report.outcome
            && let Some(hint) = &why.hint
        {
            ui.horizontal(|ui| {
                ui.add_space(138.0);
                ui.add(egui::Label::new(RichText::new(hint).small().weak()).wrap());
            });
        }
    }

    fn done(
        &self,
        ui: &mut Ui,
        kernel: &str,
        error: &ErrorStats,
        timing: Option<&Timing>,
        longest: f64,
        stale: bool,
        colours: &Palette,
    ) {
        let passed = error.passed();
        let room = (ui.available_width() - 620.0).max(80.0);
        if let Some(timing) = timing {
            let share = (timing.median_ms / longest.max(1e-9)) as f32;
            let fill = match self.report.backend {
                _ if !passed => colours.error.gamma_multiply(0.5),
                BackendName::Flex => colours.accent,
                _ => colours.bar,
            };
            bar(ui, room, share, if stale { fill.gamma_multiply(0.45) } else { fill });
            let spread = format!("{} ±{:.0}%", milliseconds(timing.median_ms), timing.spread * 50.0);
            let samples = timing.samples_ms.len();
            let words = format!("Median and half the interquartile range of {samples} samples.");
            fixed(ui, 120.0, |ui| drop(ui.monospace(spread).on_hover_text(words)));
            let (speed, about) = self.speed(kernel, passed, timing, colours);
            fixed(ui, 260.0, |ui| drop(ui.add(egui::Label::new(speed).truncate()).on_hover_text(about)));
        } else {
            ui.weak("checked, not timed");
        }
        check(ui, error, passed, colours);
        ui.add(egui::Label::new(RichText::new(kernel).small().weak()).truncate()).on_hover_text(kernel);
    }

    /// `3.42x our dense-mask kernel`, and what it does of work that counts; and the same in full. A ratio is praised only
    /// where nothing makes it doubtful; one that shows no difference is grey and says so.
    fn speed(&self, kernel: &str, passed: bool, timing: &Timing, colours: &Palette) -> (RichText, String) {
        if !passed {
            return (RichText::new("wrong result").color(colours.error), "It is not timed.".into());
        }
        let ran = what_ran(self.report.backend, kernel);
        let rate = |f: f64| flops(f / (timing.median_ms * 1e-3), "FLOP/s");
        let rate = self.flop.map(rate).unwrap_or_default();
        match &self.baseline {
            Some(base) if base.backend == self.report.backend => {
                (RichText::new(format!("baseline  {rate}")), format!("The others are compared with this: {ran}."))
            }
            Some(base) => {
                let versus = Versus::new(timing, base.timing, self.busy);
                let full = versus.words_of(&base.words);
                let short = match versus.shown {
                    true => full.clone(),
                    false => format!("no difference shown ({:.2}x {})", versus.ratio, base.words),
                };
                let colour = if versus.is_clear() && versus.ratio > 1.0 { colours.good } else { colours.weak };
                let text = RichText::new(format!("{short}  {rate}")).color(colour);
                let text = if versus.is_clear() { text.strong() } else { text };
                (text, format!("{ran} against {}: {}.", base.words, versus.words()))
            }
            None => (RichText::new(rate), format!("{ran}.")),
        }
    }
}

/// `1.25 TFLOP/s`, `310 GFLOP`.
fn flops(flop: f64, unit: &str) -> String {
    match flop {
        f if f >= 1e14 => format!("{:.0} T{unit}", f / 1e12),
        f if f >= 1e12 => format!("{:.2} T{unit}", f / 1e12),
        f if f >= 1e9 => format!("{:.1} G{unit}", f / 1e9),
        f => format!("{:.1} M{unit}", f / 1e6),
    }
}

/// A column of the table: from the left, whatever it holds.
fn fixed(ui: &mut Ui, width: f32, contents: impl FnOnce(&mut Ui)) {
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    ui.allocate_ui_with_layout(Vec2::new(width, BAR), layout, |ui| {
        ui.set_width(width);
        contents(ui);
    });
}

fn bar(ui: &mut Ui, room: f32, share: f32, fill: Color32) {
    let (rect, _) = ui.allocate_exact_size(Vec2::new(room, BAR), Sense::hover());
    ui.painter().rect_filled(rect, 3.0, ui.visuals().faint_bg_color);
    let width = (rect.width() * share.clamp(0.0, 1.0)).max(2.0);
    let filled = egui::Rect::from_min_size(rect.min, Vec2::new(width, rect.height()));
    ui.painter().rect_filled(filled, 3.0, fill);
}

/// The error in words: whether it may be trusted, and against what.
fn check(ui: &mut Ui, error: &ErrorStats, passed: bool, colours: &Palette) {
    let (text, colour) = if passed {
        (format!("error {:.1e} ok", error.max_abs), colours.good)
    } else if error.nan_mismatch > 0 {
        (format!("{} wrong NaN", error.nan_mismatch), colours.error)
    } else {
        (format!("error {:.1e}: wrong", error.max_abs), colours.error)
    };
    let lse = error.lse_max_abs.map_or("none given".to_string(), |e| format!("{e:.1e}"));
    let rows = format!("{} of {} rows", error.rows_checked, error.rows_total);
    let verdict = error.fault().map(|fault| format!("Wrong: {fault}.\n")).unwrap_or_default();
    ui.label(RichText::new(text).small().color(colour)).on_hover_text(format!(
        "{verdict}Largest error against the float64 reference: {:.3e}; relative rms {:.2e}, lse {lse}.\n\
         Each row is judged by its own bar, the largest of which is {:.3e}: {}.\nCompared: {rows}.",
        error.max_abs, error.relative_rms, error.allowed, error.allowed_from
    ));
}
