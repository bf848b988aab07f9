//! Run-time routers on the captured heads, orders of the grid's tokens, and masks on the other calls.
//!
//! Invariant: a table names its call. Must not know how routers rank.

use crate::app::action::Actions;
use crate::app::state::State;
use crate::app::widgets::{percent, section};
use crate::quality::routers::Routed;
use crate::quality::suggest::order::Gain;
use crate::quality::suggest::{Candidate, Target};
use crate::tasks::lab::page::look::Seen;
use crate::tasks::lab::page::studies::Study;
use crate::tasks::lab::{self, OfCall};
use egui::{Grid, Slider, Ui};
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
        section(ui, "Routers of other frameworks");
        ui.horizontal_wrapped(|ui| {
            ui.label("blocks to keep");
            ui.add(Slider::new(&mut self.share, 0.02..=1.0).fixed_decimals(2))
                .on_hover_text("Share of the blocks for routers with a budget; the others aim at a mass of 0.9.");
            let words =
                "Simulates each router on the captured heads, and compares it with the true ranking and the ceiling.";
            if ui.add_enabled(!busy, egui::Button::new("Simulate")).on_hover_text(words).clicked() {
                wished = Some(Study::Routers(Target::Blocks(self.share)));
            }
        });
        if let Some((call, routed, layers)) = &self.routed {
            ui.weak(format!("mean over heads of {call}"));
            if let Some(layer) = table(ui, routed, layers) {
                super::proposals::take(ui, state, layer, actions);
            }
        }
        section(ui, "Order of the tokens");
        let words = "Counts the blocks that hold 95% of the mass under each order, on the first listed head.";
        if ui.add_enabled(!busy, egui::Button::new("Compare orders")).on_hover_text(words).clicked() {
            wished = Some(Study::Orders);
        }
        if let Some((call, ordered)) = &self.ordered {
            orders(ui, call, ordered);
        }
        section(ui, "Other captures");
        let words = "Measures the document's mask and the proposals on every call of these lengths, without changes.";
        let problem = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok());
        let button = ui.add_enabled(!busy && problem.is_some(), egui::Button::new("Measure on all calls"));
        if button.on_hover_text(words).clicked()
            && let Some(problem) = problem
        {
            wished = Some(Study::Others(problem.clone(), found.clone()));
        }
        if let Some((_, others)) = &self.others {
            stability(ui, others, &found);
        }
        if seen.file.calls.len() < 2 {
            ui.weak("This capture has one call: capture more steps or prompts to see how well a mask generalises.");
        }
        wished
    }
}

/// Draws them; returns the one to apply.
fn table<'a>(ui: &mut Ui, routed: &[Routed], layers: &'a [Candidate]) -> Option<&'a Candidate> {
    let mut taken = None;
    Grid::new("routers").striped(true).num_columns(7).show(ui, |ui| {
        for (name, words) in [
            ("router", "Its name in the framework."),
            ("blocks", "Kept blocks over all blocks."),
            ("mass", "Mass kept, mean over rows and heads."),
            ("ceiling", "The mass that the best blocks of the same number keep."),
            ("recall", "Share of the truly largest blocks that the router found."),
            ("cost", "Multiply-adds of the ranking over those of dense scores."),
        ] {
            ui.strong(name).on_hover_text(words);
        }
        ui.end_row();
        for r in routed {
            ui.label(r.router.name).on_hover_text(format!("at blocks of {}", r.block));
            for value in [r.density, r.mass, r.ceiling, r.recall, r.cost] {
                ui.label(percent(value));
            }
            let layer = layers.iter().find(|layer| layer.name.strip_prefix("router ") == Some(r.router.name));
            let words = "Replaces the enabled layers by the blocks that the router picked on this capture.";
            if let Some(layer) = layer
                && ui.button("Take").on_hover_text(words).accessible_name(format!("Take {}", r.router.name)).clicked()
            {
                taken = Some(layer);
            }
            ui.end_row();
        }
    });
    for r in routed {
        for s in lab::settings_of(r, None) {
            ui.collapsing(format!("{}: {}", r.router.name, s.framework), |ui| {
                ui.weak(format!("keys read from {}", s.read_from));
                ui.code(&s.text);
                if ui.button("Copy").clicked() {
                    ui.ctx().copy_text(s.text.clone());
                }
            });
        }
    }
    taken
}

fn orders(ui: &mut Ui, call: &str, ordered: &[Gain]) {
    ui.weak(format!("blocks for 95% of the mass, {call}"));
    let raster = ordered.first().map_or(1.0, |g| g.density);
    Grid::new("orders").striped(true).num_columns(3).show(ui, |ui| {
        for gain in ordered {
            ui.label(gain.order.name());
            ui.label(percent(gain.density));
            ui.label(format!("{:.2} of raster", gain.density / raster));
            ui.end_row();
        }
    });
    ui.weak("`maskloom suggest --orders --out DIR` writes each order as a permutation.");
}

fn stability(ui: &mut Ui, others: &[OfCall], found: &[Candidate]) {
    let names = std::iter::once("this document").chain(found.iter().map(|c| c.name.as_str()));
    let count = others.first().map_or(0, |o| o.mass.len());
    Grid::new("others").striped(true).num_columns(4).show(ui, |ui| {
        for (name, words) in [
            ("mask", "Unchanged, fitted on one call."),
            ("mean", "Mean mass over calls."),
            ("from", "The call with the least mass kept."),
            ("to", "The call with the most mass kept."),
        ] {
            ui.strong(name).on_hover_text(words);
        }
        ui.end_row();
        for (n, name) in names.enumerate().take(count) {
            let spread = lab::spread(others, n);
            ui.label(name).on_hover_text(lab::words(&lab::dense_places(others, n, 0.95)));
            for value in [spread.mean, spread.min, spread.max] {
                ui.label(percent(value));
            }
            ui.end_row();
        }
    });
    ui.label(format!("At a mass of 95% for this document: {}.", lab::words(&lab::dense_places(others, 0, 0.95))));
    ui.weak(format!("{} calls", others.len()));
}
