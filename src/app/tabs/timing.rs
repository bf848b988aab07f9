//! The race: a bar for each backend, speed-ups against SDPA, errors against the float64 reference.
//!
//! Invariant: a time stands beside its error; what failed its check is never shown as a time to compare with. Must not
//! know how a race is run.

use crate::app::action::Actions;
use crate::app::canvas::colors;
use crate::app::command::Command;
use crate::app::dialogs::advice_ui;
use crate::app::races::{Race, SmallerCopy};
use crate::app::state::State;
use crate::app::theme::{Palette, palette};
use crate::app::widgets::{command_button, milliseconds, percent, primary_button};
use crate::base::{BackendName, Device};
use crate::export::advice::{Measured, Question, advise};
use crate::problem::result::{BackendReport, ErrorStats, Outcome, RunReport, Timing};
use crate::problem::verdict::{Baseline, Busy, Versus, baseline, what_ran};
use crate::service::recorded::{Recorded, of_problem};
use crate::service::smaller::{self, is_heavy};
use egui::{Color32, ColorImage, RichText, ScrollArea, Sense, TextureHandle, TextureOptions, Ui, Vec2};

/// Height of a bar.
const BAR: f32 = 20.0;
/// Longer side of the picture of a smaller copy.
const PICTURE: f32 = 84.0;
/// Passes of a race beside those that are timed: warming up, and the one that is checked.
const MORE_PASSES: u32 = 3;

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    no_copy(ui, state, actions);
    let Some(race) = &state.session.race else { return empty(ui, state, actions) };
    ScrollArea::both().auto_shrink([false, false]).show(ui, |ui| {
        // what is stale never stands in the way of what fits
        if race.stale && recorded(ui, state) {
            ui.separator();
        }
        header(ui, state, race, actions);
        ui.horizontal_top(|ui| {
            if let Some(copy) = &race.copy {
                copy_ui(ui, race.id, copy);
            }
            ui.vertical(|ui| bars(ui, state, race));
        });
    });
}

fn bars(ui: &mut Ui, state: &State, race: &Race) {
    let lines = lines(&race.reports, race.report.as_deref());
    let longest = lines.iter().filter_map(|l| l.median()).fold(0.0, f64::max);
    for line in &lines {
        line.show(ui, longest, race.stale);
    }
    if let Some(report) = &race.report {
        for note in &report.notes {
            ui.weak(&note.message);
        }
    }
    advice(ui, state, race);
}

/// What was raced in place of the whole: its own picture, sizes and share.
fn copy_ui(ui: &mut Ui, race: u64, copy: &SmallerCopy) {
    ui.vertical(|ui| {
        ui.set_width(PICTURE + 76.0);
        let dark = ui.visuals().dark_mode;
        let memory = crate::app::widgets::id("smaller copy").with((race, dark));
        let texture = ui.data(|d| d.get_temp::<TextureHandle>(memory)).unwrap_or_else(|| {
            let made = ui.ctx().load_texture("smaller copy", copy_image(copy, dark), TextureOptions::NEAREST);
            ui.data_mut(|d| d.insert_temp(memory, made.clone()));
            made
        });
        let size = texture.size_vec2();
        let image = egui::Image::new((texture.id(), size * (PICTURE / size.max_elem())));
        ui.add(image.alt_text("Picture of the smaller copy"));
        ui.small(&copy.words);
        let shares = format!("keeps {} of its cells; the whole keeps {}", percent(copy.kept), percent(copy.kept_of));
        ui.label(RichText::new(shares).small().weak());
    });
}

fn copy_image(copy: &SmallerCopy, dark: bool) -> ColorImage {
    let palette = colors::Palette::dark(dark);
    let Some(picture) = &copy.picture else { return ColorImage::new([1, 1], vec![palette.full]) };
    let pixels: Vec<Color32> = picture.pixels().iter().map(|share| palette.blocks(*share)).collect();
    ColorImage::new([picture.width, pixels.len() / picture.width.max(1)], pixels)
}

/// Why there is no smaller copy to race, and the way out.
fn no_copy(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(none) = state.session.no_copy.as_ref().filter(|none| none.revision == state.revision) else { return };
    ui.horizontal_wrapped(|ui| {
        let colours = palette(ui.visuals());
        ui.colored_label(colours.warning, &none.why.message);
        command_button(ui, Command::RunWhole, state.can(Command::RunWhole), actions);
        if let Some(time) = time_of_all(state) {
            ui.weak(time);
        }
    });
}

/// `takes about 3 min`, where all of it is to run on a CPU.
fn time_of_all(state: &State) -> Option<String> {
    let problem = state.session.built.as_ref()?.problem.as_ref().ok()?;
    let device = state.session.device(&state.document);
    let threads = |name: &str| name.rsplit_once('(')?.1.split_once(" threads")?.0.parse().ok();
    let info = state.session.worker.as_ref().and_then(|w| w.devices.iter().find(|d| d.device == device));
    let threads: usize = info.and_then(|d| threads(&d.name)).unwrap_or(1);
    let (backends, passes) = (state.document.settings.backends.len(), state.view.rounds + MORE_PASSES);
    let time = smaller::estimate(problem.spec(), device, backends, passes, threads)?;
    Some(format!("takes about {}, at a guess of 20 GFLOP/s a thread on {threads}", smaller::about(time)))
}

/// What the race means for the trainer's configuration that was opened.
fn advice(ui: &mut Ui, state: &State, race: &Race) {
    let (Some(config), Some(report)) = (&state.trainer, &race.report) else { return };
    if race.stale || !race.is_whole() || race.request.is_none() {
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
    if state.session.run_when_built.is_some() || state.session.shrinking {
        ui.weak("The race starts…");
        return;
    }
    if state.session.is_racing() {
        ui.weak("A race of another document is running.");
    }
    ui.add_space(10.0);
    // a row that overflows would widen all that stands below it
    ui.horizontal_wrapped(|ui| {
        let why = cannot_run(state);
        let can = why.is_none() && state.can(Command::Run);
        let button = primary_button(ui, "Race the backends", can).min_size(Vec2::new(150.0, 30.0));
        if ui.add_enabled(can, button).on_hover_text(Command::Run.tooltip(ui.ctx())).clicked() {
            actions.command(Command::Run);
        }
        if let Some(why) = why {
            ui.colored_label(palette(ui.visuals()).error, why);
        }
        let names: Vec<_> = state.document.settings.backends.iter().map(|b| b.as_str()).collect();
        ui.weak(format!("{} on {}", names.join(", "), state.session.device(&state.document)));
    });
    let heavy = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok()).is_some_and(|p| is_heavy(p.spec()));
    if heavy && state.session.device(&state.document) == Device::Cpu {
        ui.horizontal_wrapped(|ui| {
            ui.weak("On the CPU a smaller copy of the same mask races, in seconds.");
            command_button(ui, Command::RunWhole, state.can(Command::RunWhole), actions);
            if let Some(time) = time_of_all(state) {
                ui.weak(time);
            }
        });
    }
    ui.weak("Each is checked against the float64 reference first, then timed round by round.");
    ScrollArea::both().auto_shrink([false, false]).show(ui, |ui| recorded(ui, state));
}

/// Why the document cannot run, in a few words.
pub(in crate::app) fn cannot_run(state: &State) -> Option<String> {
    let built = state.session.built.as_ref()?;
    let why = built.problem.as_ref().err()?.first()?;
    let (layers, _) = built.broken();
    let place = if layers.is_empty() { String::new() } else { format!("{}: ", layers.join(", ")) };
    Some(format!("cannot run: {place}{}", why.message))
}

/// What known cards gave for exactly this document: shown paler than a race, and said to be recorded. Returns whether there is
/// any.
fn recorded(ui: &mut Ui, state: &State) -> bool {
    let Some(Ok(problem)) = state.session.built.as_ref().map(|b| &b.problem) else { return false };
    let density = state.session.current_stats().and_then(|c| c.result.as_ref().ok()).map(|stats| stats.density);
    // looking a document up means writing it out: once a revision, and when its cells are counted
    let memory = crate::app::widgets::id("recorded runs");
    type Known = ((u64, Option<u64>), Vec<&'static Recorded>);
    let wanted = (state.revision, density.map(f64::to_bits));
    let known = ui.data(|d| d.get_temp::<Known>(memory)).filter(|k| k.0 == wanted);
    let (wanted, runs) = known.unwrap_or_else(|| (wanted, of_problem(&state.document, problem.spec(), density)));
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
    let some = !runs.is_empty();
    ui.data_mut(|d| d.insert_temp::<Known>(memory, (wanted, runs)));
    some
}

fn header(ui: &mut Ui, state: &State, race: &Race, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        let colours = palette(ui.visuals());
        if race.stale {
            ui.label(RichText::new("stale").strong().color(colours.warning))
                .on_hover_text("The document has changed since: these are the numbers of the mask before.");
            let button = egui::Button::new("Run again");
            let why = cannot_run(state);
            if ui.add_enabled(state.can(Command::Run) && why.is_none(), button).clicked() {
                actions.command(Command::Run);
            }
            if let Some(why) = why {
                ui.colored_label(colours.error, why);
            }
        }
        if let Some(copy) = &race.copy {
            let words = format!(
                "Raced: {}, of {}: the same mask, its windows and lengths shortened with its axes. On a GPU, or with Run all \
                 of it, the whole is raced.",
                copy.words, copy.of
            );
            ui.label(RichText::new("smaller copy").strong().color(colours.warning)).on_hover_text(words);
            ui.weak(format!("{}, not {}", copy.words, copy.of));
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
    let line = |report| Line { report, baseline: baseline.clone(), busy, flop };
    let mut lines: Vec<Line<'_>> = reports.iter().map(line).collect();
    // the fastest first; what has no time keeps its order below
    lines.sort_by(|a, b| a.median().unwrap_or(f64::INFINITY).total_cmp(&b.median().unwrap_or(f64::INFINITY)));
    lines
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
