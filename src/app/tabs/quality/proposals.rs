//! Proposals: a target, a plot of lost mass against blocks or time, and one click that applies a candidate as layers.
//!
//! Invariant: a candidate is applied in one undoable step; its figures were measured on the open call. Must not know
//! how candidates are found.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{diagnostic_below, percent, section};
use crate::base::Provenance;
use crate::quality::suggest::{Candidate, Protect, pareto};
use crate::tasks::lab;
use crate::tasks::lab::page::look::{Line as Measured, Seen};
use crate::tasks::lab::page::studies::{Reach, Study, Wish};
use egui::{ComboBox, DragValue, Grid, Slider, Ui};
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
        section(ui, if lossless { "Masks that cost less" } else { "Masks that lose less, or cost less" });
        let mut wished = self.wish(ui, line, seen.capture.grid().is_some(), busy);
        let found = self.found(seen);
        if found.is_empty() {
            if self.known.is_some() {
                ui.weak("The proposals belong to another layer or step.");
            }
            return wished;
        }
        next(ui, actions);
        ui.horizontal(|ui| {
            let words = "Runs flex on this CPU with the captured heads and each proposal, in turns.";
            if ui.add_enabled(!busy, egui::Button::new("Measure times")).on_hover_text(words).clicked() {
                wished = Some(Study::Times(found.clone()));
            }
            if !self.times.is_empty() {
                ui.checkbox(&mut self.by_time, "plot against time");
            }
        });
        if let Some(race) = raced(state) {
            ui.weak(race);
        }
        self.candidates(ui, state, line, &found, actions);
        wished
    }

    /// The target.
    fn wish(&mut self, ui: &mut Ui, line: &Measured, grid: bool, busy: bool) -> Option<Study> {
        let names = [
            (Reach::Mass(0.95), "mass to keep"),
            (Reach::Blocks(0.25), "share of the blocks"),
            (Reach::Error(0.08), "output error"),
            (Reach::Time(10.0), "milliseconds on this CPU"),
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
            combo.response.accessible_name("Target of the proposals");
            let by_decade = matches!(self.reach, Reach::Time(_));
            let (value, range, words) = match &mut self.reach {
                Reach::Mass(x) => (x, 0.5..=0.999, "Mean over heads and rows. Most methods use 0.9 to 0.95."),
                Reach::Blocks(x) => (x, 0.01..=1.0, "Largest share of all blocks. Video models use 0.1 to 0.3."),
                Reach::Error(x) => {
                    (x, 0.005..=0.5, "Largest relative L1 error of the output. SpargeAttn accepts 0.06 to 0.08.")
                }
                Reach::Time(x) => {
                    (x, 0.1..=10_000.0, "Largest time of flex's forward pass on this CPU, for all captured heads.")
                }
            };
            let slider = Slider::new(value, range).logarithmic(by_decade);
            ui.add(slider.fixed_decimals(3)).on_hover_text(words);
        });
        ui.horizontal_wrapped(|ui| {
            ui.label("always keep");
            let p = &mut self.protect;
            ui.checkbox(&mut p.diagonal, "diagonal").on_hover_text("Blocks on the diagonal.");
            ui.checkbox(&mut p.sinks, "sinks").on_hover_text("The first block of keys.");
            if !grid {
                // a language model has neither
                (p.text, p.first_frame) = (false, false);
                return;
            }
            ui.checkbox(&mut p.text, "text").on_hover_text("Tokens outside the grid, as queries and as keys.");
            ui.checkbox(&mut p.first_frame, "first frame").on_hover_text("The grid's first frame, as keys.");
        });
        ui.horizontal(|ui| {
            ui.label("at most");
            let most = line.heads.len().max(1);
            ui.add(DragValue::new(&mut self.most_masks).range(1..=most))
                .on_hover_text("With the number of heads, each head has its own mask; fewer masks group similar heads.")
                .accessible_name("Distinct masks");
            ui.label("distinct masks");
            let words =
                "Searches for masks that reach the target with few blocks. Protected cells stay in every block list.";
            ui.add_enabled(!busy, egui::Button::new("Suggest")).on_hover_text(words).clicked()
        })
        .inner
        .then(|| self.study(line.heads.len()))
    }

    fn candidates(&mut self, ui: &mut Ui, state: &State, line: &Measured, found: &[Candidate], actions: &mut Actions) {
        let front = pareto(found);
        let mut taken = self.plot(ui, line, found, &front);
        let timed = self.times.len() == found.len() + 1;
        Grid::new("candidates").striped(true).num_columns(6).show(ui, |ui| {
            for (name, words) in [
                ("mask", "A star marks a proposal that no other beats in both loss and blocks."),
                ("mass", "Mass kept, mean over heads and rows."),
                ("blocks", "Visited blocks, over all blocks."),
                ("heads", "Number of different masks among the heads."),
            ] {
                ui.strong(name).on_hover_text(words);
            }
            if timed {
                ui.strong("time").on_hover_text("Time of flex on this CPU.");
            }
            ui.end_row();
            for (n, candidate) in found.iter().enumerate() {
                let star = if front[n] { "\u{2605} " } else { "" };
                let words = format!("{}\n{}", candidate.why, candidate.form.words());
                ui.label(format!("{star}{}", candidate.name)).on_hover_text(words);
                ui.label(percent(candidate.mass)).on_hover_text(format!(
                    "Mass kept, mean over heads and rows; one row in twenty keeps less than {}, the worst {}.",
                    percent(candidate.p5),
                    percent(candidate.min)
                ));
                ui.label(percent(candidate.density)).on_hover_text("Visited blocks, over all blocks.");
                match candidate.masks {
                    0 | 1 => ui.weak("one mask").on_hover_text("All heads have the same mask."),
                    n => ui.label(format!("{n} masks")).on_hover_text("Heads have different masks."),
                };
                if timed {
                    ui.label(format!("{:.2} ms", self.times[n]))
                        .on_hover_text("Median of flex on this CPU, forward, all captured heads.");
                }
                let words = "Replaces the enabled layers; undo restores them.";
                let take = ui.button("Take").on_hover_text(words);
                if take.accessible_name(format!("Take {}", candidate.name)).clicked() {
                    taken = Some(n);
                }
                ui.end_row();
            }
        });
        if let Some(dense) = self.times.last().filter(|_| timed) {
            ui.weak(format!("without a mask {dense:.2} ms"));
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
            .x_axis_label(if timed { "ms of flex on this CPU" } else { "blocks, %" })
            .y_axis_label("mass lost, %");
        let shown = plot.show(ui, |plot| {
            let mut best: Vec<[f64; 2]> = (0..found.len()).filter(|n| front[*n]).map(at).collect();
            best.sort_by(|a, b| a[0].total_cmp(&b[0]));
            if !timed {
                plot.line(Line::new("best", PlotPoints::from_iter(best)).color(colours.accent));
            }
            let all = PlotPoints::from_iter((0..found.len()).map(at));
            plot.points(Points::new("proposals", all).color(colours.accent).radius(4.0));
            if !timed {
                let heads = line.heads.len() as f64;
                let mass = line.heads.iter().map(|(_, h)| h.mass.mean).sum::<f64>() / heads;
                let density = line.heads.iter().map(|(_, h)| h.cost.density()).sum::<f64>() / heads;
                let here = PlotPoints::from_iter([[100.0 * density, 100.0 * (1.0 - mass)]]);
                plot.points(Points::new("this document", here).color(colours.warning).radius(5.0));
            }
        });
        let name = if timed { "Lost mass against time" } else { "Lost mass against blocks" };
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
            response.on_hover_text_at_pointer(format!(
                "{}: {}\nClick to apply it.",
                found[nearest].name,
                found[nearest].form.words()
            ));
        }
        (close && clicked).then_some(nearest)
    }
}

/// What the user can do with an accepted mask.
fn next(ui: &mut Ui, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        ui.weak("An applied proposal is a layer with sliders. Then");
        for (command, text) in
            [(Command::ShowDesign, "edit it"), (Command::Run, "race it"), (Command::ShowExport, "export it")]
        {
            if ui.small_button(text).on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
    });
}

/// Takes a candidate in one undoable step.
pub(super) fn take(ui: &mut Ui, state: &State, candidate: &Candidate, actions: &mut Actions) {
    match lab::take(&state.document, candidate) {
        Ok(edit) => actions.push(Action::Edit(edit)),
        Err(why) => diagnostic_below(ui, &why),
    }
}

/// The time of the document's own mask, if it was raced unchanged.
fn raced(state: &State) -> Option<String> {
    let race = state.session.race.as_ref().filter(|race| !race.stale && race.is_whole())?;
    let report = race.report.as_deref()?;
    let timed = report.backends.iter().filter_map(|r| Some((r.backend, r.outcome.right()?)));
    let (backend, timing) = timed.min_by(|a, b| a.1.median_ms.total_cmp(&b.1.median_ms))?;
    let (name, from) = (backend.as_str(), Provenance::Measured(report.place()));
    Some(format!("This document raced: {:.3} ms by {name}, {from}.", timing.median_ms))
}
