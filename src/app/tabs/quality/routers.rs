//! Run-time routers on the captured heads, orders of the grid's tokens, and masks on the other calls.
//!
//! Invariant: a table names its call. Must not know how routers rank.

use crate::app::action::Actions;
use crate::app::fields::slider_of;
use crate::app::language::{say, say_with, words as words_of};
use crate::app::state::State;
use crate::app::widgets::{percent, section};
use crate::quality::routers::Routed;
use crate::quality::suggest::order::Gain;
use crate::quality::suggest::{Candidate, Kind, Target};
use crate::tasks::lab::page::look::Seen;
use crate::tasks::lab::page::studies::Study;
use crate::tasks::lab::{self, OfCall, told};
use egui::{Grid, Ui};
use std::sync::Arc;

/// The page's state: each result with its call.
pub(super) struct Routers {
    share: f64,
    pub routed: Option<(String, Vec<Routed>, Vec<Candidate>)>,
    pub ordered: Option<(String, Vec<Gain>)>,
    pub others: Option<(String, Vec<OfCall>)>,
}

impl Default for Routers {
    fn default() -> Self {
        Routers { share: 0.25, routed: None, ordered: None, others: None }
    }
}

impl Routers {
    /// Draws them; returns the requested study.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        state: &State,
        seen: &Seen,
        (found, busy): (Arc<Vec<Candidate>>, bool),
        actions: &mut Actions,
    ) -> Option<Study> {
        let mut wished = None;
        section(ui, say(ui, "routers-title"));
        ui.horizontal_wrapped(|ui| {
            ui.label(say(ui, "routers-share"));
            ui.add(slider_of(&mut self.share, 0.02..=1.0).fixed_decimals(2))
                .on_hover_text(say(ui, "routers-share.tip"));
            let words = say(ui, "routers-simulate.tip");
            if ui.add_enabled(!busy, egui::Button::new(say(ui, "routers-simulate"))).on_hover_text(words).clicked() {
                wished = Some(Study::Routers(Target::Blocks(self.share)));
            }
        });
        if let Some((call, routed, layers)) = &self.routed {
            ui.weak(say_with(ui, "routers-mean", &[("call", call.into())]));
            if let Some(layer) = table(ui, routed, layers) {
                super::proposals::take(ui, state, layer, actions);
            }
        }
        section(ui, say(ui, "routers-order"));
        let words = say(ui, "routers-orders.tip");
        if ui.add_enabled(!busy, egui::Button::new(say(ui, "routers-orders"))).on_hover_text(words).clicked() {
            wished = Some(Study::Orders);
        }
        if let Some((call, ordered)) = &self.ordered {
            orders(ui, call, ordered);
        }
        section(ui, say(ui, "routers-others"));
        let words = say(ui, "routers-all.tip");
        let problem = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok());
        let button = ui.add_enabled(!busy && problem.is_some(), egui::Button::new(say(ui, "routers-all")));
        if button.on_hover_text(words).clicked()
            && let Some(problem) = problem
        {
            wished = Some(Study::Others(problem.clone(), found.clone()));
        }
        if let Some((_, others)) = &self.others {
            stability(ui, others, &found);
        }
        if seen.file.calls.len() < 2 {
            ui.weak(say(ui, "routers-one-call"));
        }
        wished
    }
}

/// Draws them; returns the one to apply.
fn table<'a>(ui: &mut Ui, routed: &[Routed], layers: &'a [Candidate]) -> Option<&'a Candidate> {
    let mut taken = None;
    Grid::new("routers").striped(true).num_columns(7).show(ui, |ui| {
        for (name, words) in [
            (say(ui, "routers-router"), say(ui, "routers-router.tip")),
            (say(ui, "routers-blocks"), say(ui, "routers-blocks.tip")),
            (say(ui, "routers-mass"), say(ui, "routers-mass.tip")),
            (say(ui, "routers-ceiling"), say(ui, "routers-ceiling.tip")),
            (say(ui, "routers-recall"), say(ui, "routers-recall.tip")),
            (say(ui, "routers-cost"), say(ui, "routers-cost.tip")),
        ] {
            ui.strong(name).on_hover_text(words);
        }
        ui.end_row();
        for r in routed {
            ui.label(r.router.name).on_hover_text(say_with(ui, "routers-at", &[("block", r.block.to_string().into())]));
            for value in [r.density, r.mass, r.ceiling, r.recall, r.cost] {
                ui.label(percent(value));
            }
            let layer = layers.iter().find(|layer| layer.kind == Kind::Router(r.router.name.into()));
            let words = say(ui, "routers-take-tip");
            let name = say_with(ui, "propose-take-name", &[("name", r.router.name.into())]);
            if let Some(layer) = layer
                && ui.button(say(ui, "propose-take")).on_hover_text(words).accessible_name(name).clicked()
            {
                taken = Some(layer);
            }
            ui.end_row();
        }
    });
    for r in routed {
        for s in lab::settings_of(r, None) {
            ui.collapsing(format!("{}: {}", r.router.name, s.framework), |ui| {
                ui.weak(say_with(ui, "routers-read", &[("where", s.read_from.into())]));
                ui.code(&s.text);
                if ui.button(say(ui, "copy")).clicked() {
                    ui.ctx().copy_text(s.text.clone());
                }
            });
        }
    }
    taken
}

fn orders(ui: &mut Ui, call: &str, ordered: &[Gain]) {
    ui.weak(say_with(ui, "routers-holding", &[("call", call.into())]));
    let raster = ordered.first().map_or(1.0, |g| g.density);
    Grid::new("orders").striped(true).num_columns(3).show(ui, |ui| {
        for gain in ordered {
            ui.label(told::order(words_of(ui.ctx()), gain.order));
            ui.label(percent(gain.density));
            ui.label(say_with(ui, "routers-raster", &[("times", format!("{:.2}", gain.density / raster).into())]));
            ui.end_row();
        }
    });
    ui.weak(say(ui, "routers-permutation"));
}

fn stability(ui: &mut Ui, others: &[OfCall], found: &[Candidate]) {
    let said = words_of(ui.ctx());
    let kinds = found.iter().map(|candidate| told::kind(said, &candidate.kind));
    let names = std::iter::once(say(ui, "propose-this").to_string()).chain(kinds);
    let count = others.first().map_or(0, |o| o.mass.len());
    Grid::new("others").striped(true).num_columns(4).show(ui, |ui| {
        for (name, words) in [
            (say(ui, "routers-mask"), say(ui, "routers-mask.tip")),
            (say(ui, "routers-call-mean"), say(ui, "routers-call-mean.tip")),
            (say(ui, "routers-from"), say(ui, "routers-from.tip")),
            (say(ui, "routers-to"), say(ui, "routers-to.tip")),
        ] {
            ui.strong(name).on_hover_text(words);
        }
        ui.end_row();
        for (n, name) in names.enumerate().take(count) {
            let spread = lab::spread(others, n);
            let places = told::schedule(words_of(ui.ctx()), &lab::dense_places(others, n, 0.95));
            ui.label(name).on_hover_text(places);
            for value in [spread.mean, spread.min, spread.max] {
                ui.label(percent(value));
            }
            ui.end_row();
        }
    });
    let places = told::schedule(words_of(ui.ctx()), &lab::dense_places(others, 0, 0.95));
    ui.label(say_with(ui, "routers-at-mass", &[("words", places.into())]));
    ui.weak(say_with(ui, "routers-calls", &[("n", others.len().into())]));
}
