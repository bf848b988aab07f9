//! Proposals: a target, a plot of lost mass against blocks or time, and one click that applies a candidate as layers.
//!
//! Invariant: a candidate is applied in one undoable step; its figures were measured on the open call. Must not know
//! how candidates are found.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::fields::{drag_of, slider_of};
use crate::app::language::{say, say_with, words as words_of};
use crate::app::origins;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{diagnostic_below, percent, section};
use crate::base::Provenance;
use crate::quality::suggest::{Candidate, Protect, pareto};
use crate::tasks::lab;
use crate::tasks::lab::page::look::{Line as Measured, Seen};
use crate::tasks::lab::page::studies::{Reach, Study, Wish};
use crate::tasks::lab::told as proposals;
use egui::{ComboBox, Grid, Ui};
use egui_plot::{Line, Plot, PlotPoints, Points};
use std::sync::Arc;

/// The page's state.
pub(super) struct Proposals {
    reach: Reach,
    protect: Protect,
    most_masks: usize,
    /// The call that they are of, and the candidates.
    known: Option<(String, Arc<Vec<Candidate>>)>,
    /// Milliseconds of each, then without a mask; empty before they were measured.
    pub times: Vec<f64>,
    by_time: bool,
}

impl Default for Proposals {
    fn default() -> Self {
        Proposals {
            reach: Reach::Mass(0.95),
            protect: Protect::default(),
            most_masks: 4,
            known: None,
            times: Vec::new(),
            by_time: false,
        }
    }
}

impl Proposals {
    /// New candidates of a call.
    pub(super) fn take(&mut self, call: String, found: Arc<Vec<Candidate>>) {
        (self.known, self.times, self.by_time) = (Some((call, found)), Vec::new(), false);
    }

    /// Those of the call that is open.
    pub(super) fn found(&self, seen: &Seen) -> Arc<Vec<Candidate>> {
        self.known.iter().find(|(call, _)| *call == seen.call).map(|(_, found)| found.clone()).unwrap_or_default()
    }

    /// The search for them as it is set, on so many heads.
    pub(super) fn study(&mut self, heads: usize) -> Study {
        let most_masks = self.most_masks.clamp(1, heads.max(1));
        Study::Proposals(Wish { reach: self.reach, protect: self.protect, most_masks })
    }

    /// Draws them; returns the requested study.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        state: &State,
        seen: &Seen,
        line: &Measured,
        busy: bool,
        actions: &mut Actions,
    ) -> Option<Study> {
        let lossless = line.heads.iter().all(|(_, head)| head.mass.mean >= 1.0 - super::NOTHING);
        section(ui, if lossless { say(ui, "propose-cheaper") } else { say(ui, "propose-better") });
        let mut wished = self.wish(ui, line, seen.capture.grid().is_some(), busy);
        let found = self.found(seen);
        if found.is_empty() {
            if self.known.is_some() {
                ui.weak(say(ui, "propose-of-another"));
            }
            return wished;
        }
        next(ui, actions);
        ui.horizontal(|ui| {
            let words = say(ui, "propose-times.tip");
            if ui.add_enabled(!busy, egui::Button::new(say(ui, "propose-times"))).on_hover_text(words).clicked() {
                wished = Some(Study::Times(found.clone()));
            }
            if !self.times.is_empty() {
                ui.checkbox(&mut self.by_time, say(ui, "propose-by-time"));
            }
        });
        if let Some(race) = raced(ui, state) {
            ui.weak(race);
        }
        self.candidates(ui, state, line, &found, actions);
        wished
    }

    /// The target.
    fn wish(&mut self, ui: &mut Ui, line: &Measured, grid: bool, busy: bool) -> Option<Study> {
        let names = [
            (Reach::Mass(0.95), say(ui, "propose-mass")),
            (Reach::Blocks(0.25), say(ui, "propose-share")),
            (Reach::Error(0.08), say(ui, "propose-error")),
            (Reach::Time(10.0), say(ui, "propose-ms")),
        ];
        let same = |a: &Reach, b: &Reach| std::mem::discriminant(a) == std::mem::discriminant(b);
        ui.horizontal_wrapped(|ui| {
            let now = names.iter().find(|(reach, _)| same(reach, &self.reach)).map_or("", |(_, name)| name);
            let combo = ComboBox::from_id_salt("target").selected_text(now).width(150.0).show_ui(ui, |ui| {
                for (reach, name) in names {
                    if ui.selectable_label(same(&reach, &self.reach), name).clicked() && !same(&reach, &self.reach) {
                        self.reach = reach;
                    }
                }
            });
            combo.response.accessible_name(say(ui, "propose-target"));
            let by_decade = matches!(self.reach, Reach::Time(_));
            let (value, range, words) = match &mut self.reach {
                Reach::Mass(x) => (x, 0.5..=0.999, say(ui, "propose-mass.tip")),
                Reach::Blocks(x) => (x, 0.01..=1.0, say(ui, "propose-share.tip")),
                Reach::Error(x) => (x, 0.005..=0.5, say(ui, "propose-error.tip")),
                Reach::Time(x) => (x, 0.1..=10_000.0, say(ui, "propose-ms.tip")),
            };
            let slider = slider_of(value, range).logarithmic(by_decade);
            ui.add(slider.fixed_decimals(3)).on_hover_text(words);
        });
        ui.horizontal_wrapped(|ui| {
            ui.label(say(ui, "propose-always"));
            let p = &mut self.protect;
            ui.checkbox(&mut p.diagonal, say(ui, "propose-diagonal")).on_hover_text(say(ui, "propose-diagonal.tip"));
            ui.checkbox(&mut p.sinks, say(ui, "propose-sinks")).on_hover_text(say(ui, "propose-sinks.tip"));
            if !grid {
                // a language model has neither
                (p.text, p.first_frame) = (false, false);
                return;
            }
            ui.checkbox(&mut p.text, say(ui, "propose-text")).on_hover_text(say(ui, "propose-text.tip"));
            ui.checkbox(&mut p.first_frame, say(ui, "propose-first-frame"))
                .on_hover_text(say(ui, "propose-first-frame.tip"));
        });
        ui.horizontal(|ui| {
            ui.label(say(ui, "propose-at-most"));
            let most = line.heads.len().max(1);
            ui.add(drag_of(&mut self.most_masks).range(1..=most))
                .on_hover_text(say(ui, "propose-distinct-tip"))
                .accessible_name(say(ui, "propose-distinct-name"));
            ui.label(say(ui, "propose-distinct"));
            let words = say(ui, "propose-suggest.tip");
            ui.add_enabled(!busy, egui::Button::new(say(ui, "propose-suggest"))).on_hover_text(words).clicked()
        })
        .inner
        .then(|| self.study(line.heads.len()))
    }

    fn candidates(&mut self, ui: &mut Ui, state: &State, line: &Measured, found: &[Candidate], actions: &mut Actions) {
        let front = pareto(found);
        let mut taken = self.plot(ui, line, found, &front);
        let timed = self.times.len() == found.len() + 1;
        let said = words_of(ui.ctx());
        Grid::new("candidates").striped(true).num_columns(6).show(ui, |ui| {
            for (name, words) in [
                (say(ui, "propose-mask"), say(ui, "propose-mask.tip")),
                (say(ui, "propose-mass-column"), say(ui, "propose-mass-column.tip")),
                (say(ui, "propose-blocks"), say(ui, "propose-blocks.tip")),
                (say(ui, "propose-heads"), say(ui, "propose-heads.tip")),
            ] {
                ui.strong(name).on_hover_text(words);
            }
            if timed {
                ui.strong(say(ui, "propose-time")).on_hover_text(say(ui, "propose-time.tip"));
            }
            ui.end_row();
            for (n, candidate) in found.iter().enumerate() {
                let star = if front[n] { "\u{2605} " } else { "" };
                let name = proposals::kind(said, &candidate.kind);
                let (why, form) = (proposals::reason(said, &candidate.why), proposals::form(said, &candidate.form));
                let words = format!("{why}\n{form}");
                ui.label(format!("{star}{name}")).on_hover_text(words);
                ui.label(percent(candidate.mass)).on_hover_text(say_with(
                    ui,
                    "propose-kept-tip",
                    &[("p5", percent(candidate.p5).into()), ("min", percent(candidate.min).into())],
                ));
                ui.label(percent(candidate.density)).on_hover_text(say(ui, "propose-blocks.tip"));
                match candidate.masks {
                    0 | 1 => ui.weak(say(ui, "propose-one-mask")).on_hover_text(say(ui, "propose-one-mask.tip")),
                    n => ui
                        .label(say_with(ui, "propose-masks", &[("n", n.into())]))
                        .on_hover_text(say(ui, "propose-masks-tip")),
                };
                if timed {
                    ui.label(format!("{:.2} ms", self.times[n])).on_hover_text(say(ui, "propose-median"));
                }
                let words = say(ui, "propose-take-tip");
                let take = ui.button(say(ui, "propose-take")).on_hover_text(words);
                if take.accessible_name(say_with(ui, "propose-take-name", &[("name", name.into())])).clicked() {
                    taken = Some(n);
                }
                ui.end_row();
            }
        });
        if let Some(dense) = self.times.last().filter(|_| timed) {
            ui.weak(say_with(ui, "propose-without", &[("ms", format!("{:.2}", dense).into())]));
        }
        if let Some(candidate) = taken.and_then(|n| found.get(n)) {
            take(ui, state, candidate, actions);
        }
    }

    /// Lost mass against blocks or time; a click gives the nearest candidate.
    fn plot(&self, ui: &mut Ui, line: &Measured, found: &[Candidate], front: &[bool]) -> Option<usize> {
        let colours = palette(ui.visuals());
        let timed = self.by_time && self.times.len() == found.len() + 1;
        let at = |n: usize| {
            let x = if timed { self.times[n] } else { 100.0 * found[n].density };
            [x, 100.0 * (1.0 - found[n].mass)]
        };
        let plot = Plot::new("pareto")
            .height(210.0)
            .allow_drag(false)
            .allow_zoom(false)
            .allow_scroll(false)
            .x_axis_label(if timed { say(ui, "propose-x-time") } else { say(ui, "propose-x-blocks") })
            .y_axis_label(say(ui, "propose-y"));
        let [series, this] = ["propose-series", "propose-this"].map(|id| say(ui, id));
        let shown = plot.show(ui, |plot| {
            let mut best: Vec<[f64; 2]> = (0..found.len()).filter(|n| front[*n]).map(at).collect();
            best.sort_by(|a, b| a[0].total_cmp(&b[0]));
            if !timed {
                plot.line(Line::new("best", PlotPoints::from_iter(best)).color(colours.accent));
            }
            let all = PlotPoints::from_iter((0..found.len()).map(at));
            plot.points(Points::new(series, all).color(colours.accent).radius(4.0));
            if !timed {
                let heads = line.heads.len() as f64;
                let mass = line.heads.iter().map(|(_, h)| h.mass.mean).sum::<f64>() / heads;
                let density = line.heads.iter().map(|(_, h)| h.cost.density()).sum::<f64>() / heads;
                let here = PlotPoints::from_iter([[100.0 * density, 100.0 * (1.0 - mass)]]);
                plot.points(Points::new(this, here).color(colours.warning).radius(5.0));
            }
        });
        let name = if timed { say(ui, "propose-plot-time") } else { say(ui, "propose-plot-blocks") };
        let response = shown.response.accessible_name(name);
        let pointer = response.hover_pos().or(response.interact_pointer_pos())?;
        let apart = |n: usize| {
            let [x, y] = at(n);
            shown.transform.position_from_point(&egui_plot::PlotPoint::new(x, y)).distance(pointer)
        };
        let nearest = (0..found.len()).min_by(|a, b| apart(*a).total_cmp(&apart(*b)))?;
        let close = apart(nearest) < 14.0;
        let clicked = response.clicked();
        if close {
            let (candidate, click, said) = (&found[nearest], say(ui, "propose-click"), words_of(ui.ctx()));
            let (name, form) = (proposals::kind(said, &candidate.kind), proposals::form(said, &candidate.form));
            response.on_hover_text_at_pointer(format!("{name}: {form}\n{click}"));
        }
        (close && clicked).then_some(nearest)
    }
}

/// What the user can do with an accepted mask.
fn next(ui: &mut Ui, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        ui.weak(say(ui, "propose-next"));
        for (command, text) in [
            (Command::ShowDesign, say(ui, "propose-edit")),
            (Command::Run, say(ui, "propose-race")),
            (Command::ShowExport, say(ui, "propose-export")),
        ] {
            if ui.small_button(text).on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
    });
}

/// Takes a candidate in one undoable step.
pub(super) fn take(ui: &mut Ui, state: &State, candidate: &Candidate, actions: &mut Actions) {
    match lab::take(&state.document, candidate) {
        Ok(edit) => actions.push(Action::TakeProposal(edit)),
        Err(why) => diagnostic_below(ui, &why),
    }
}

/// The time of the document's own mask, if it was raced unchanged.
fn raced(ui: &Ui, state: &State) -> Option<String> {
    let race = state.session.race.as_ref().filter(|race| !race.stale && race.is_whole())?;
    let report = race.report.as_deref()?;
    let timed = report.backends.iter().filter_map(|r| Some((r.backend, r.outcome.right()?)));
    let (backend, timing) = timed.min_by(|a, b| a.1.median_ms.total_cmp(&b.1.median_ms))?;
    let (name, from) = (backend.as_str(), Provenance::Measured(report.place()));
    let ms = format!("{:.3}", timing.median_ms);
    let figures = [("ms", ms.into()), ("name", name.into()), ("from", origins::whole(ui, &from).into())];
    Some(say_with(ui, "propose-raced", &figures))
}
