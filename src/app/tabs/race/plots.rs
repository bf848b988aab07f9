//! Time over length as a plot.
//!
//! Invariant: a point is a checked, timed result of the shown problem. Must not know how a race runs.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::language::{say, say_with, words as words_of};
use crate::app::left;
use crate::app::state::State;
use crate::app::sweeps::{Step, Sweep};
use crate::app::theme::{Palette, palette};
use crate::app::widgets::{command_button, milliseconds, percent};
use crate::base::BackendName;
use crate::problem::result::RunReport;
use crate::problem::verdict::baseline;
use crate::tasks::ratios;
use egui::{Color32, Grid, RichText, Ui};
use egui_plot::{GridInput, GridMark, Legend, Line, Plot, PlotPoints, Points};

/// Height of a plot, in points.
const HEIGHT: f32 = 230.0;

/// Draws it.
pub(super) fn over_lengths(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let problem = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok());
    let sweep = state.session.races.sweep.as_ref().filter(|sweep| Some(&sweep.of) == problem || !sweep.is_over());
    // it opens by itself when a sweep begins, and can be folded afterwards
    let open = sweep.filter(|sweep| !sweep.is_over()).map(|_| true);
    egui::CollapsingHeader::new(say(ui, "lengths-title")).id_salt("over lengths").open(open).show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            let can = state.can(Command::RaceLengths) && super::cannot_run(state).is_none();
            command_button(ui, Command::RaceLengths, can, actions);
            match sweep {
                None => drop(ui.weak(say(ui, "lengths-question"))),
                Some(sweep) => progress(ui, state, sweep),
            }
        });
        let Some(sweep) = sweep else { return };
        let of_another = Some(&sweep.of) != problem;
        let words = if of_another { say(ui, "lengths-before") } else { &sweep.words };
        ui.add(egui::Label::new(RichText::new(words).weak()).wrap());
        let lines = series(sweep);
        if lines.iter().any(|(_, points)| !points.is_empty()) {
            times(ui, &lines);
            table(ui, sweep);
        }
        for point in &sweep.points {
            if let Step::Not(why) = &point.step {
                let text = say_with(
                    ui,
                    "lengths-refused",
                    &[
                        ("tokens", point.tokens.into()),
                        ("why", words_of(ui.ctx()).reported(&why.code, &why.message).into()),
                    ],
                );
                ui.add(egui::Label::new(RichText::new(text).small().weak()).wrap()).on_hover_text(why.render());
            }
        }
    });
}

fn progress(ui: &mut Ui, state: &State, sweep: &Sweep) {
    let (over, all) = sweep.progress();
    if over == all {
        return;
    }
    let within = state.session.running().filter(|_| state.session.is_racing()).map_or(0.0, |r| r.step.fraction);
    ui.add(egui::ProgressBar::new((over as f32 + within) / all as f32).desired_width(120.0));
    let left = state.session.running().and_then(|r| left::told(ui, r.since.elapsed(), f64::from(r.step.fraction)));
    let id = if left.is_some() { "lengths-progress-left" } else { "lengths-progress" };
    let figures = [("over", over.into()), ("all", all.into()), ("left", left.unwrap_or_default().into())];
    ui.weak(say_with(ui, id, &figures));
}

/// For each backend its tokens and milliseconds.
fn series(sweep: &Sweep) -> Vec<(BackendName, Vec<[f64; 2]>)> {
    let mut out: Vec<(BackendName, Vec<[f64; 2]>)> = Vec::new();
    for (tokens, report) in sweep.measured() {
        for backend in &report.backends {
            let Some(timing) = backend.outcome.right() else { continue };
            let point = [tokens as f64, timing.median_ms];
            match out.iter_mut().find(|(name, _)| *name == backend.backend) {
                Some((_, points)) => points.push(point),
                None => out.push((backend.backend, vec![point])),
            }
        }
    }
    out
}

/// Both axes in steps of doubling and of ten.
fn times(ui: &mut Ui, lines: &[(BackendName, Vec<[f64; 2]>)]) {
    let colours = palette(ui.visuals());
    let all = lines.iter().flat_map(|(_, points)| points);
    let mut lengths: Vec<f64> = all.map(|p| p[0].log2()).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let marks = move |_: GridInput| lengths.iter().map(|x| GridMark { value: *x, step_size: 1.0 }).collect();
    let plot = plain("time over length")
        .x_axis_label(say(ui, "lengths-tokens"))
        .y_axis_label(say(ui, "lengths-time"))
        .x_grid_spacer(marks)
        .y_grid_spacer(tens)
        .x_axis_formatter(|mark, _| format!("{:.0}", mark.value.exp2()))
        .y_axis_formatter(|mark, _| power(mark.value, milliseconds));
    let shown = plot.show(ui, |plot| {
        for (backend, points) in lines {
            let colour = colour(*backend, &colours);
            let at: Vec<[f64; 2]> = points.iter().map(|p| [p[0].log2(), p[1].log10()]).collect();
            let name = backend.as_str();
            plot.line(Line::new(name, PlotPoints::from_iter(at.iter().copied())).color(colour).width(2.0));
            plot.points(Points::new(name, PlotPoints::from_iter(at)).color(colour).radius(3.5));
        }
    });
    shown.response.accessible_name(say(ui, "lengths-name"));
}

/// The same in numbers, with the ratio to the baseline at each length.
fn table(ui: &mut Ui, sweep: &Sweep) {
    let colours = palette(ui.visuals());
    Grid::new("lengths").striped(true).num_columns(4).show(ui, |ui| {
        for title in
            [say(ui, "lengths-tokens"), say(ui, "lengths-kept"), say(ui, "lengths-fastest"), say(ui, "lengths-against")]
        {
            ui.weak(title);
        }
        ui.end_row();
        for (tokens, report) in sweep.measured() {
            ui.label(tokens.to_string());
            ui.label(percent(report.work.density));
            match fastest(report) {
                None => drop(ui.weak(say(ui, "lengths-nothing"))),
                Some((backend, ms)) => {
                    ui.label(format!("{backend} {}", milliseconds(ms)));
                    let versus = report.versus(backend).zip(baseline(&report.backends));
                    match versus.filter(|(_, base)| base.backend != backend) {
                        None => drop(ui.weak("\u{2013}")),
                        Some((versus, base)) => {
                            let (clear, said) = (versus.is_clear() && versus.ratio > 1.0, words_of(ui.ctx()));
                            let short = match versus.shown {
                                true => format!("{:.2}x {}", versus.ratio, ratios::ran(said, &base.ran)),
                                false => say(ui, "race-no-difference").to_string(),
                            };
                            let text = RichText::new(short);
                            let text = if clear { text.color(colours.good) } else { text.weak() };
                            ui.label(text).on_hover_text(ratios::versus(said, &versus, Some(&base.ran)));
                        }
                    }
                }
            }
            ui.end_row();
        }
    });
}

fn fastest(report: &RunReport) -> Option<(BackendName, f64)> {
    let timed = report.backends.iter().filter_map(|r| Some((r.backend, r.outcome.right()?.median_ms)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// A plot without pan and zoom.
pub(super) fn plain(name: &str) -> Plot<'_> {
    Plot::new(name)
        .height(HEIGHT)
        .allow_drag(false)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .legend(Legend::default().position(egui_plot::Corner::LeftTop))
        .label_formatter(|_| None)
}

/// Marks at whole powers of ten.
pub(super) fn tens(input: GridInput) -> Vec<GridMark> {
    // a mark outside would be drawn next to the plot
    let (from, to) = (input.bounds.0.ceil() as i32, input.bounds.1.floor() as i32);
    (from..=to).map(|n| GridMark { value: f64::from(n), step_size: 1.0 }).collect()
}

/// The number of which a mark is the power of ten.
pub(super) fn power(mark: f64, words: impl Fn(f64) -> String) -> String {
    words(10_f64.powi(mark.round() as i32))
}

/// A colour for each backend, the same in every plot.
pub(super) fn colour(backend: BackendName, colours: &Palette) -> Color32 {
    match backend {
        BackendName::Flex => colours.accent,
        BackendName::Sdpa => colours.name,
        BackendName::FlashAttention2 => colours.warning,
        BackendName::Eager => colours.keyword,
        BackendName::TorchFlex => colours.string,
        BackendName::TorchSdpa => colours.number,
        BackendName::TorchEager => colours.error,
        BackendName::TorchFlexFlash => colours.bar,
        BackendName::CudnnFlex => colours.comment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_as_numbers() {
        assert_eq!([-1.0, 0.0, 2.0].map(|n| power(n, milliseconds)), ["100.0 \u{b5}s", "1.00 ms", "100 ms"]);
    }
}
