//! Several GPUs: which one computes which part of the mask, what travels between them, how long every division takes.
//!
//! Invariant: every number is counted or predicted and says so; while a plan is being made, the last one is marked as of
//! the mask before. Must not know how a plan is found.

mod figures;
mod picture;
#[cfg(test)]
mod tests;
mod work;

use crate::app::background::Latest;
use crate::app::fields::{drag_of, slider_of};
use crate::app::language::{say, say_with};
use crate::app::origins;
use crate::app::recovery::Tab;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::diagnostic_below;
use crate::base::Provenance;
use crate::document::library;
use crate::document::model::Document;
use crate::parallel::links::NVLINK;
use egui::{Label, RichText, ScrollArea, Ui};
use picture::Picture;
use std::sync::Arc;
use work::{Answer, Further, Question};

/// The most ranks of the slider; the command line takes more.
const MOST_RANKS: usize = 64;
/// The most layers of a kind.
const MOST_LAYERS: usize = 1000;

/// Room from which both sliders stand in one row.
const WIDE: f32 = 520.0;
/// Room of a slider's value.
const VALUE: f32 = 64.0;

/// The page's state between frames.
pub(crate) struct ParallelPage {
    ranks: usize,
    bandwidth: f64,
    /// Layers of the open document's mask.
    layers: usize,
    further: Vec<Further>,
    /// The kind whose loads and bytes are shown.
    kind: usize,
    work: Option<Latest<Question, Answer>>,
    asked: Option<Question>,
    answer: Option<Answer>,
    pictures: [Picture; 2],
    /// Counts the answers.
    number: u64,
}

impl Default for ParallelPage {
    fn default() -> Self {
        Self {
            ranks: 4,
            bandwidth: NVLINK,
            layers: 1,
            further: Vec::new(),
            kind: 0,
            work: None,
            asked: None,
            answer: None,
            pictures: Default::default(),
            number: 0,
        }
    }
}

impl ParallelPage {
    /// Asks for a plan of the present mask, if there is none, and takes one that has come.
    fn follow(&mut self, state: &State) {
        let work = self.work.get_or_insert_with(|| work::thread(state.session.wake()));
        if let Some(answer) = work.poll() {
            self.answer = Some(answer);
            self.number += 1;
        }
        let problem = state.session.built.as_ref().and_then(|built| built.problem.as_ref().ok());
        let Some(problem) = problem else { return };
        let (layers, further) = (self.layers, self.further.clone());
        let wanted =
            Question { problem: problem.clone(), layers, further, ranks: self.ranks, bandwidth: self.bandwidth };
        if self.asked.as_ref() != Some(&wanted) {
            work.ask(wanted.clone());
            self.asked = Some(wanted);
        }
    }

    /// Whether the answer is that of the present question.
    fn is_current(&self) -> bool {
        self.answer.as_ref().map(|answer| &answer.question) == self.asked.as_ref()
    }
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, page: &mut ParallelPage) {
    page.follow(state);
    controls(ui, page);
    kinds(ui, state, page);
    let built = state.session.built.as_ref();
    if let Some(why) = built.and_then(|built| built.problem.as_ref().err()) {
        ui.label(say(ui, "gpus-errors"));
        return super::reported(ui, why);
    }
    if !page.is_current() {
        ui.horizontal(|ui| {
            ui.spinner();
            ui.label(say(ui, "gpus-planning"));
            if page.answer.is_some() {
                let colours = palette(ui.visuals());
                let before = origins::whole(ui, &Provenance::Before);
                let words = say_with(ui, "gpus-below", &[("before", before.into())]);
                ui.label(RichText::new(words).strong().color(colours.warning));
            }
        });
    }
    let Some(answer) = &page.answer else { return };
    let seen = match &answer.result {
        Ok(seen) => seen,
        Err(why) => return super::reported(ui, std::slice::from_ref(why)),
    };
    // tables are wider than a narrow page; the pictures keep its width
    let width = ui.available_width();
    // beside the bar that scrolls
    let room = width - ui.spacing().scroll.allocated_width() - ui.spacing().item_spacing.x;
    ScrollArea::new([width < 420.0, true]).id_salt("parallel").auto_shrink([false, false]).show(ui, |ui| {
        for note in &seen.plan.notes {
            diagnostic_below(ui, note);
        }
        figures::divisions(ui, seen);
        let [before, after] = &mut page.pictures;
        let half = (room / 2.0).floor().clamp(80.0, 360.0);
        ui.horizontal_top(|ui| {
            before.show(ui, (say(ui, "gpus-by-rank"), half), &seen.before, (page.number, answer.question.ranks));
            after.show(ui, (say(ui, "gpus-in-order"), half), &seen.after, (page.number, answer.question.ranks));
        });
        let shown = &mut page.kind;
        if seen.kinds.len() > 1 {
            ui.horizontal_wrapped(|ui| {
                ui.label(say(ui, "gpus-figures"));
                for (n, name) in seen.kinds.iter().enumerate() {
                    // the first is the open document's
                    let name = if n == 0 { say(ui, "gpus-this-mask") } else { name.as_str() };
                    ui.selectable_value(shown, n, name);
                }
            });
        }
        *shown = (*shown).min(seen.kinds.len() - 1);
        figures::loads(ui, seen, *shown);
        figures::sent(ui, seen, *shown);
        figures::paths(ui, &seen.paths);
        let source = origins::sentence(ui, &seen.source);
        weak(ui, &source);
    });
}

/// The layers of the model: the open document's, and those of other documents and presets under the same division.
fn kinds(ui: &mut Ui, state: &State, page: &mut ParallelPage) {
    ui.horizontal_wrapped(|ui| {
        let name = ui.label(say(ui, "gpus-layers"));
        ui.add(drag_of(&mut page.layers).range(1..=MOST_LAYERS)).labelled_by(name.id);
        let mut gone = None;
        for (n, further) in page.further.iter_mut().enumerate() {
            ui.separator();
            let name = ui.label(&further.name);
            ui.add(drag_of(&mut further.layers).range(1..=MOST_LAYERS)).labelled_by(name.id);
            let words = say_with(ui, "gpus-leave-out", &[("name", (&*further.name).into())]);
            if ui.small_button("×").on_hover_text(&words).accessible_name(words).clicked() {
                gone = Some(n);
            }
        }
        gone.map(|n| page.further.remove(n));
        ui.separator();
        ui.menu_button(say(ui, "gpus-add"), |ui| {
            ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
                if let Some((name, document)) = further_masks(ui, state) {
                    page.further.push(Further { name, layers: 1, document: Arc::new(document) });
                    ui.close();
                }
            });
        });
    });
}

/// The masks that can be added: the other open documents, and the presets. The one that was pressed.
fn further_masks(ui: &mut Ui, state: &State) -> Option<(String, Document)> {
    let others: Vec<Tab<'_>> = state.tabs().into_iter().filter(|tab| tab.id != state.id).collect();
    let mut pressed = None;
    for tab in &others {
        if ui.button(&tab.document.name).clicked() {
            pressed = Some((tab.document.name.clone(), tab.document.clone()));
        }
    }
    if !others.is_empty() {
        ui.separator();
    }
    for preset in library::presets() {
        if ui.button(preset.name).clicked() {
            pressed = preset.document().ok().map(|document| (preset.name.to_string(), document));
        }
    }
    pressed
}

fn weak(ui: &mut Ui, text: &str) {
    ui.add(Label::new(RichText::new(text).small().weak()).wrap());
}

/// A slider does not go into the next row, and a row that is too long widens all below it.
fn controls(ui: &mut Ui, page: &mut ParallelPage) {
    if ui.available_width() < WIDE {
        ui.horizontal(|ui| ranks(ui, page));
        ui.horizontal(|ui| bandwidth(ui, page));
    } else {
        ui.horizontal(|ui| {
            ranks(ui, page);
            ui.separator();
            bandwidth(ui, page);
        });
    }
}

fn ranks(ui: &mut Ui, page: &mut ParallelPage) {
    let name = ui.label(say(ui, "gpus-count"));
    fit(ui);
    ui.add(slider_of(&mut page.ranks, 1..=MOST_RANKS).logarithmic(true)).labelled_by(name.id);
}

fn bandwidth(ui: &mut Ui, page: &mut ParallelPage) {
    let name = ui.label(say(ui, "gpus-bandwidth"));
    let words = say(ui, "gpus-bandwidth.tip");
    fit(ui);
    let slider = slider_of(&mut page.bandwidth, 1.0..=1000.0).logarithmic(true).fixed_decimals(0);
    ui.add(slider).labelled_by(name.id).on_hover_text(words);
}

/// A slider takes no more than what its name and its value leave.
fn fit(ui: &mut Ui) {
    let room = (ui.available_width() - VALUE).max(30.0);
    let spacing = ui.spacing_mut();
    spacing.slider_width = spacing.slider_width.min(room);
}
