//! The bars of a race: one per backend, fastest first, with its time, its comparison and its correctness.
//!
//! Invariant: a time is shown with its error; a failed check is never shown as a time for comparison. Must not know how
//! a race runs.

use super::roof::{self, Run};
use super::words::flops;
use crate::app::language::{say, say_with, words as words_of};
use crate::app::origins;
use crate::app::theme::{Palette, palette};
use crate::app::widgets::milliseconds;
use crate::base::{BackendName, Provenance, words};
use crate::problem::facts::KernelReport;
use crate::problem::result::{BackendReport, ErrorStats, Outcome, RunReport, Timing};
use crate::problem::verdict::{Baseline, Ran, Versus, baseline, versus};
use crate::tasks::why::Why;
use crate::tasks::{ratios, why};
use egui::{Align, Layout, RichText, Sense, Ui, Vec2};

/// Height of a bar.
const BAR: f32 = 16.0;

/// One backend.
pub(super) struct Line<'a> {
    report: &'a BackendReport,
    /// The baseline of the others: what the user would run instead.
    baseline: Option<Baseline<'a>>,
    /// It against that.
    versus: Option<Versus>,
    flop: Option<f64>,
}

/// All of them, the fastest first; rows without a time keep their order below.
pub(super) fn lines<'a>(reports: &'a [BackendReport], whole: Option<&RunReport>) -> Vec<Line<'a>> {
    let baseline = baseline(reports);
    let (flop, busy) = (whole.map(|r| r.work.flop), whole.and_then(RunReport::busy));
    let line = |report: &'a BackendReport| {
        let versus = versus(reports, report.backend, busy);
        Line { report, baseline: baseline.clone(), versus, flop }
    };
    let mut lines: Vec<Line<'_>> = reports.iter().map(line).collect();
    // the fastest first; rows without a time keep their order below
    lines.sort_by(|a, b| a.median().unwrap_or(f64::INFINITY).total_cmp(&b.median().unwrap_or(f64::INFINITY)));
    lines
}

impl Line<'_> {
    /// Its time, if it has one.
    pub(super) fn median(&self) -> Option<f64> {
        self.report.outcome.forward().map(|timing| timing.median_ms)
    }

    /// Whether it did not run.
    fn is_out(&self) -> bool {
        !matches!(self.report.outcome, Outcome::Done { .. })
    }

    fn name(&self) -> &'static str {
        self.report.backend.as_str()
    }

    fn show(&self, ui: &mut Ui, longest: f64, run: Option<Run<'_>>, stale: bool) {
        let Outcome::Done { kernel, error, timings, .. } = &self.report.outcome else { return };
        let timing = timings.forward();
        let colours = palette(ui.visuals());
        let passed = error.passed();
        ui.horizontal(|ui| {
            self.title(ui, self.ran(ui, kernel), run.filter(|_| passed && timing.is_some()));
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| match timing {
                Some(timing) => {
                    let samples = timing.samples_ms.len();
                    let words = sampled(ui, timing);
                    if samples > 1 {
                        let spread = format!("\u{b1}{:.0}%", timing.spread * 100.0);
                        ui.label(RichText::new(spread).weak()).on_hover_text(&words);
                    }
                    ui.label(RichText::new(milliseconds(timing.median_ms)).strong().size(15.0)).on_hover_text(words);
                }
                None => drop(ui.weak(say(ui, "race-untimed"))),
            });
        });
        if let Some(timing) = timing {
            let share = (timing.median_ms / longest.max(1e-9)) as f32;
            let fill = match self.report.backend {
                _ if !passed => colours.error.gamma_multiply(0.5),
                BackendName::Flex => colours.accent,
                _ => colours.bar,
            };
            bar(ui, share, if stale { fill.gamma_multiply(0.45) } else { fill });
        }
        // a long comparison goes on below: it must not push the bars out of the panel
        ui.horizontal_wrapped(|ui| {
            if let Some(timing) = timing {
                let (speed, about) = self.speed(ui, kernel, passed, timing, &colours);
                ui.label(speed).on_hover_text(about);
            }
            check(ui, error, passed, &colours);
            if let Some(words) = timing.and_then(Timing::launch_bound) {
                let words = ratios::waits(words_of(ui.ctx()), words);
                ui.label(RichText::new(words).small().weak()).on_hover_text(say(ui, "race-launch-bound"));
            }
            if let Some(bytes) = self.report.outcome.memory() {
                ui.label(
                    RichText::new(say_with(ui, "race-holds", &[("bytes", words::bytes(bytes).into())])).small().weak(),
                )
                .on_hover_text(say_with(
                    ui,
                    "race-memory",
                    &[("how", ratios::memory(words_of(ui.ctx())).into())],
                ));
            }
        });
        let reason = self.baseline.as_ref().filter(|_| passed && timing.is_some());
        let reason = reason.and_then(|base| why::between_runs(self.report, base));
        let explains = |why: &Why| self.versus.as_ref().is_none_or(|versus| why.explains(versus));
        if let Some(words) = reason.filter(explains) {
            ui.add(
                egui::Label::new(
                    RichText::new(say_with(ui, "race-why", &[("why", ratios::why(words_of(ui.ctx()), &words).into())]))
                        .small(),
                )
                .wrap(),
            );
        }
        ui.add(egui::Label::new(RichText::new(&kernel.words).small().weak()).truncate()).on_hover_text(&kernel.words);
        if let Some(run) = run.filter(|run| roof::is_open(ui, *run, self.report.backend)) {
            roof::row(ui, run, self.report.backend);
        }
        ui.add_space(6.0);
    }

    /// What ran, in the spoken language.
    fn ran(&self, ui: &Ui, kernel: &KernelReport) -> String {
        ratios::ran(words_of(ui.ctx()), &Ran::of(self.report.backend, kernel))
    }

    /// Its name; a click says what limits it.
    fn title(&self, ui: &mut Ui, what: String, run: Option<Run<'_>>) {
        let text = RichText::new(self.name()).strong().size(15.0);
        let Some(run) = run else {
            ui.label(text).on_hover_text(what);
            return;
        };
        let open = roof::is_open(ui, run, self.report.backend);
        let words = say_with(ui, "race-limits-tip", &[("what", what.into())]);
        let button = ui.selectable_label(open, text).on_hover_text(words);
        if button.accessible_name(say_with(ui, "race-limits", &[("name", self.name().into())])).clicked() {
            roof::toggle(ui, run, self.report.backend);
        }
    }

    /// `3.42x our dense-mask kernel`, and its useful work; and the same in full. A ratio is highlighted only if nothing
    /// makes it doubtful; a ratio without a difference is grey and says so.
    fn speed(
        &self,
        ui: &Ui,
        kernel: &KernelReport,
        passed: bool,
        timing: &Timing,
        colours: &Palette,
    ) -> (RichText, String) {
        if !passed {
            return (RichText::new(say(ui, "race-wrong")).color(colours.error), say(ui, "race-wrong.tip").into());
        }
        let (said, ran) = (words_of(ui.ctx()), self.ran(ui, kernel));
        let rate = |f: f64| flops(f / (timing.median_ms * 1e-3), "FLOP/s");
        let rate = self.flop.map(|flop| say_with(ui, "race-rate", &[("rate", rate(flop).into())])).unwrap_or_default();
        match (&self.baseline, &self.versus) {
            (Some(base), _) if base.backend == self.report.backend => (
                RichText::new(say_with(ui, "race-baseline", &[("rate", rate.into())])),
                say_with(ui, "race-baseline-tip", &[("ran", ran.into())]),
            ),
            (Some(base), Some(versus)) => {
                let (full, rival) = (ratios::versus(said, versus, Some(&base.ran)), ratios::ran(said, &base.ran));
                let short = match versus.shown {
                    true => full.clone(),
                    false => {
                        let ratio = format!("{:.2}", versus.ratio);
                        let figures = [("ratio", ratio.into()), ("base", (&*rival).into())];
                        say_with(ui, "race-no-difference-of", &figures)
                    }
                };
                let colour = if versus.is_clear() && versus.ratio > 1.0 { colours.good } else { colours.weak };
                let text = RichText::new(format!("{short}  {rate}")).color(colour);
                let text = if versus.is_clear() { text.strong() } else { text };
                (
                    text,
                    say_with(
                        ui,
                        "race-against",
                        &[
                            ("ran", ran.into()),
                            ("base", rival.into()),
                            ("words", ratios::versus(said, versus, None).into()),
                        ],
                    ),
                )
            }
            _ => (RichText::new(rate), format!("{ran}.")),
        }
    }
}

/// Draws all lines; refusals fold into one, for it is what did run that one looks for.
pub(super) fn show(ui: &mut Ui, lines: &[Line<'_>], run: Option<Run<'_>>, stale: bool) {
    let longest = lines.iter().filter_map(Line::median).fold(0.0, f64::max);
    lines.iter().for_each(|line| line.show(ui, longest, run, stale));
    out(ui, lines, "race-refused-by", |o| matches!(o, Outcome::Refused { .. }));
    out(ui, lines, "race-failed-by", |o| matches!(o, Outcome::Failed { .. }));
}

/// Backends that did not run, and why, on a click.
fn out(ui: &mut Ui, lines: &[Line<'_>], title: &str, is_it: impl Fn(&Outcome) -> bool) {
    let these: Vec<_> = lines.iter().filter(|line| line.is_out() && is_it(&line.report.outcome)).collect();
    if these.is_empty() {
        return;
    }
    let names: Vec<_> = these.iter().map(|line| line.name()).collect();
    let shown = RichText::new(say_with(ui, title, &[("names", names.join(", ").into())])).weak();
    egui::CollapsingHeader::new(shown).id_salt((title, names.len())).show(ui, |ui| {
        for line in these {
            let (Outcome::Refused { why } | Outcome::Failed { why }) = &line.report.outcome else { continue };
            ui.strong(line.name());
            app::widgets::refusal(ui, why);
            ui.add(egui::Label::new(&*why.message).wrap()).on_hover_text(why.render());
            if let Some(hint) = app::widgets::english_way_out(ui, why) {
                ui.add(egui::Label::new(RichText::new(hint).weak()).wrap());
            }
        }
    });
}

/// What the samples of a time are.
fn sampled(ui: &Ui, timing: &Timing) -> String {
    let samples = ("n", timing.samples_ms.len().into());
    let Some(calls) = timing.calls else { return say_with(ui, "race-samples", &[samples]) };
    let call = ("call", milliseconds(calls.median_ms).into());
    let clock = ratios::clock(words_of(ui.ctx()), calls.clock);
    say_with(ui, "race-samples-calls", &[samples, ("clock", clock.into()), call])
}

fn bar(ui: &mut Ui, share: f32, fill: egui::Color32) {
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), BAR), Sense::hover());
    ui.painter().rect_filled(rect, 3.0, ui.visuals().faint_bg_color);
    let width = (rect.width() * share.clamp(0.0, 1.0)).max(2.0);
    ui.painter().rect_filled(egui::Rect::from_min_size(rect.min, Vec2::new(width, rect.height())), 3.0, fill);
}

/// The error in words: whether it may be trusted, and against what.
fn check(ui: &mut Ui, error: &ErrorStats, passed: bool, colours: &Palette) {
    let (text, colour) = if passed && error.nan_rows > 0 {
        (
            say_with(ui, "race-nan-rows", &[("n", error.nan_rows.into()), ("all", error.rows_checked.into())]),
            colours.warning,
        )
    } else if passed {
        (say_with(ui, "race-error-ok", &[("error", format!("{:.1e}", error.max_abs()).into())]), colours.good)
    } else if error.nan_mismatch() > 0 {
        (say_with(ui, "race-wrong-nan", &[("n", error.nan_mismatch().into())]), colours.error)
    } else {
        (say_with(ui, "race-error-wrong", &[("error", format!("{:.1e}", error.max_abs()).into())]), colours.error)
    };
    let given = error.outputs.iter().skip(1).map(|row| format!(", {} {:.1e}", row.name, row.max_abs));
    let relative = error.outputs.first().and_then(|row| row.relative_rms).unwrap_or_default();
    let given = given.collect::<String>();
    let rows = say_with(ui, "race-rows-of", &[("n", error.rows_checked.into()), ("all", error.rows_total.into())]);
    let fault = error.fault().map(|fault| say_with(ui, "race-check-fault", &[("fault", fault.to_string().into())]));
    let largest = [
        ("reference", origins::whole(ui, &Provenance::Reference).into()),
        ("error", format!("{:.3e}", error.max_abs()).into()),
        ("rms", format!("{relative:.2e}").into()),
        ("more", given.into()),
    ];
    let limit = [
        ("limit", format!("{:.3e}", error.allowed()).into()),
        ("from", words_of(ui.ctx()).phrase(error.allowed_from()).into()),
    ];
    let said = [
        say_with(ui, "race-check-error", &largest),
        say_with(ui, "race-check-limit", &limit),
        say_with(ui, "race-check-rows", &[("rows", rows.into())]),
    ];
    let words: Vec<String> = fault.into_iter().chain(said).collect();
    ui.label(RichText::new(text).small().color(colour)).on_hover_text(words.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::result::Timings;

    /// Two backends whose comparison is a long sentence.
    fn reports() -> Vec<BackendReport> {
        let done = |backend, median_ms: f64| {
            let timing = Timing { samples_ms: vec![median_ms; 9], median_ms, spread: 0.5, calls: None };
            let kernel = "cpu flex avx2 f32 64x64 d128, block-sparse, with a name that nobody can read at once".into();
            let (error, timings) = (ErrorStats::default(), Timings::forward_only(Some(timing)));
            let outcome = Outcome::Done {
                kernel,
                error,
                timings,
                artefact: None,
                ready_ms: None,
                settled_ms: None,
                max_scores: Vec::new(),
                memory_bytes: None,
            };
            BackendReport { backend, outcome }
        };
        vec![done(BackendName::Sdpa, 12.5), done(BackendName::Flex, 2.5)]
    }

    #[test]
    fn a_long_comparison_stays_inside_the_panel() {
        let (reports, ctx) = (reports(), egui::Context::default());
        let mut widths = Vec::new();
        for _ in 0..2 {
            let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
                ui.set_max_width(260.0);
                let at = ui.max_rect().left();
                show(ui, &lines(&reports, None), None, false);
                widths.push(ui.min_rect().right() - at);
            });
            output.textures_delta.clear();
        }
        assert!(widths.iter().all(|w| *w <= 261.0 && *w > 100.0), "{widths:?}");
    }
}
