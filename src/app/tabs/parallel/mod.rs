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
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::diagnostic_below;
use crate::parallel::links::NVLINK;
use egui::{Label, RichText, ScrollArea, Slider, Ui};
use picture::Picture;
use work::{Answer, Question};

/// The most ranks of the slider; the command line takes more.
const MOST_RANKS: usize = 64;

/// The page's state between frames.
pub(crate) struct ParallelPage {
    ranks: usize,
    bandwidth: f64,
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
        let wanted = Question { problem: problem.clone(), ranks: self.ranks, bandwidth: self.bandwidth };
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
    let built = state.session.built.as_ref();
    if let Some(why) = built.and_then(|built| built.problem.as_ref().err()) {
        ui.label("There is no plan for a document with errors.");
        return super::told(ui, why);
    }
    if !page.is_current() {
        ui.horizontal(|ui| {
            ui.spinner();
            ui.label("planning");
            if page.answer.is_some() {
                let colours = palette(ui.visuals());
                ui.label(RichText::new("below: before the last change").strong().color(colours.warning));
            }
        });
    }
    let Some(answer) = &page.answer else { return };
    let seen = match &answer.result {
        Ok(seen) => seen,
        Err(why) => return super::told(ui, std::slice::from_ref(why)),
    };
    ScrollArea::vertical().id_salt("parallel").auto_shrink([false, false]).show(ui, |ui| {
        for note in &seen.plan.notes {
            diagnostic_below(ui, note);
        }
        figures::divisions(ui, seen);
        let [before, after] = &mut page.pictures;
        let half = ((ui.available_width() - 12.0) / 2.0).clamp(80.0, 360.0);
        ui.horizontal_top(|ui| {
            before.show(ui, ("The mask by rank", half), &seen.before, (page.number, answer.question.ranks));
            after.show(ui, ("In the order of ranks", half), &seen.after, (page.number, answer.question.ranks));
        });
        figures::loads(ui, seen);
        figures::sent(ui, seen);
        weak(ui, &format!("Predicted, not run: block times {}.", seen.source));
        weak(
            ui,
            "A document is one kind of layer. Kinds of layers under one division: maskloom parallel A B --layers 1,5.",
        );
    });
}

fn weak(ui: &mut Ui, text: &str) {
    ui.add(Label::new(RichText::new(text).small().weak()).wrap());
}

fn controls(ui: &mut Ui, page: &mut ParallelPage) {
    ui.horizontal_wrapped(|ui| {
        let name = ui.label("GPUs");
        ui.add(Slider::new(&mut page.ranks, 1..=MOST_RANKS).logarithmic(true)).labelled_by(name.id);
        ui.separator();
        let name = ui.label("GB/s received");
        let words = "What a GPU receives of the others: about 214 with NVLink inside of one host, 45 over a 400 Gbit/s network.";
        let slider = Slider::new(&mut page.bandwidth, 1.0..=1000.0).logarithmic(true).fixed_decimals(0);
        ui.add(slider).labelled_by(name.id).on_hover_text(words);
    });
}
