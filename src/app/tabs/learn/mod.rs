//! Lessons that drive the real window: each step is done here, on a real document.
//!
//! Invariant: a step changes the window only through the actions of buttons. Must not know how actions are carried out.

mod lessons;
mod tiles;

pub(in crate::app) use tiles::shown as shown_trace;

use crate::app::action::{Action, Actions};
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{id, primary_button};
use egui::{RichText, Ui};
use lessons::{LESSONS, Lesson, Step};

/// Which step of which lesson; None: the list of lessons.
type Place = Option<(usize, usize)>;
/// The number of the lesson that walks over tiles: it is behind the others.
const TILES: usize = LESSONS.len();

/// Whether a lesson was begun and not ended.
pub(in crate::app) fn is_on(ui: &Ui) -> bool {
    ui.data(|d| d.get_temp::<Place>(id("lesson"))).flatten().is_some()
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let memory = id("lesson");
    let mut place = ui.data(|d| d.get_temp::<Place>(memory)).unwrap_or_default();
    match place.and_then(|(lesson, step)| Some((LESSONS.get(lesson)?, lesson, step))) {
        None if place.is_some() => {
            ui.label(RichText::new(say(ui, "tiles-title")).heading());
            tiles::show(ui, state, actions);
            ui.add_space(10.0);
            if ui.button(say(ui, "learn-all")).clicked() {
                place = None;
                actions.push(Action::Step(None));
            }
        }
        None => list(ui, &mut place, actions),
        Some((lesson, at, step)) => one(ui, state, lesson, (at, step), &mut place, actions),
    }
    ui.data_mut(|d| d.insert_temp(memory, place));
}

fn list(ui: &mut Ui, place: &mut Place, actions: &mut Actions) {
    ui.label(RichText::new(say(ui, "learn-title")).heading());
    ui.label(say(ui, "learn-words"));
    ui.add_space(8.0);
    let all = LESSONS.iter().map(|lesson| lesson.id).chain(["tiles-title"]);
    for (at, lesson) in all.enumerate() {
        let (title, about) = (say(ui, lesson), say(ui, &format!("{lesson}.about")));
        ui.horizontal(|ui| {
            let start = ui.add(primary_button(ui, say(ui, "learn-start"), at == 0));
            let start = start.accessible_name(say_with(ui, "learn-start-name", &[("title", title.into())]));
            if start.clicked() {
                *place = Some((at, 0));
                if at == TILES {
                    actions.push(Action::Step(Some(0)));
                }
            }
            ui.vertical(|ui| {
                ui.label(RichText::new(title).strong().size(15.0));
                ui.add(egui::Label::new(RichText::new(about).weak()).wrap());
            });
        });
        ui.add_space(6.0);
    }
}

fn one(ui: &mut Ui, state: &State, lesson: &Lesson, at: (usize, usize), place: &mut Place, actions: &mut Actions) {
    let (lesson_at, step_at) = (at.0, at.1.min(lesson.steps.len() - 1));
    let step = &lesson.steps[step_at];
    ui.label(RichText::new(say(ui, lesson.id)).heading());
    ui.weak(say_with(ui, "lesson-step", &[("n", (step_at + 1).into()), ("all", lesson.steps.len().into())]));
    ui.add_space(6.0);
    // above the words, whose length differs: the buttons stay where they are
    ui.horizontal(|ui| {
        let last = step_at + 1 == lesson.steps.len();
        if ui.add(primary_button(ui, say(ui, if last { "learn-done" } else { "learn-next" }), true)).clicked() {
            *place = (!last).then_some((lesson_at, step_at + 1));
        }
        if ui.add_enabled(step_at > 0, egui::Button::new(say(ui, "learn-back"))).clicked() {
            *place = Some((lesson_at, step_at.saturating_sub(1)));
        }
        if ui.button(say(ui, "learn-all")).clicked() {
            *place = None;
        }
    });
    ui.add_space(8.0);
    ui.add(egui::Label::new(RichText::new(say(ui, step.id)).size(15.5)).wrap());
    ui.add_space(8.0);
    done(ui, state, step, actions);
}

/// The button that does what the step speaks of, and whether it is done.
fn done(ui: &mut Ui, state: &State, step: &Step, actions: &mut Actions) {
    let Some(does) = &step.does else { return };
    let words = say(ui, &format!("{}.button", step.id));
    ui.horizontal_wrapped(|ui| {
        if ui.button(RichText::new(words).size(14.5)).clicked() {
            does.actions(state).into_iter().for_each(|action: Action| actions.push(action));
        }
        if does.holds(state) {
            ui.label(RichText::new(say(ui, does.said())).color(palette(ui.visuals()).good));
        }
    });
}
