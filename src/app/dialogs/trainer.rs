//! A trainer's config.json: its attention setting, the effect of the setting, and races for its model.
//!
//! Invariant: the file is only read; export merges into it later, after asking. Must not know how a document opens.

use super::{Action, Actions, Next, title};
use crate::app::action::Fit;
use crate::app::drafts::trainer::TrainerDialog;
use crate::app::language::{say, say_with, words as spoken};
use crate::app::widgets::{diagnostic_below, primary_button, section};
use crate::base::Diagnostic;
use crate::document::library;
use crate::tasks::advising::{self, Reader};
use crate::tasks::settings;
use crate::trainers::advice::{Advice, Reason};
use crate::trainers::read::TrainerConfig;
use egui::Ui;

pub(super) fn show(ui: &mut Ui, dialog: &mut TrainerDialog, actions: &mut Actions) -> Next {
    title(ui, say(ui, "trainer-title"));
    ui.label(dialog.path.display().to_string());
    let mut next = Next::Stay;
    match &dialog.read {
        Err(why) => diagnostic_below(ui, why),
        Ok(config) => next = found(ui, dialog, config, actions),
    }
    if ui.button(say(ui, "cancel")).clicked() { Next::Close } else { next }
}

fn found(ui: &mut Ui, dialog: &TrainerDialog, config: &TrainerConfig, actions: &mut Actions) -> Next {
    egui::Grid::new("trainer").num_columns(2).show(ui, |ui| {
        for (name, value) in [
            ("family", &config.family),
            (config.trainer.key(), &config.setting),
            ("mixed_precision", &config.precision),
        ] {
            ui.weak(name);
            ui.label(value.as_deref().unwrap_or(say(ui, "trainer-unset")));
            ui.end_row();
        }
    });
    ui.label(say_with(ui, "trainer-today", &[("words", settings::told(spoken(ui.ctx()), &config.meaning()).into())]));
    for note in &dialog.notes {
        // there is no export yet whose folder could stand there
        let hint = note.hint.as_ref().map(|hint| hint.replace("EXPORT", "FOLDER_OF_THE_EXPORT"));
        diagnostic_below(ui, &Diagnostic { hint, ..note.clone() });
    }
    let mut next = Next::Stay;
    let mut fit = |start: Fit| {
        let (path, trainer) = (dialog.path.clone(), Box::new(config.clone()));
        actions.push(Action::FitConfig { path, trainer, start });
        next = Next::Close;
    };
    section(ui, say(ui, "trainer-first"));
    match &dialog.plain {
        Some(plain) => {
            let s = &plain.settings;
            let tokens = plain.axes.q.len();
            ui.label(say_with(
                ui,
                "trainer-shape",
                &[
                    ("axis", plain.axes.q.to_string().into()),
                    ("tokens", tokens.into()),
                    ("heads", s.heads.into()),
                    ("kv", s.kv_heads.into()),
                    ("dim", s.head_dim.into()),
                ],
            ));
            let names: Vec<_> = s.backends.iter().map(|b| b.as_str()).collect();
            let button = primary_button(ui, say(ui, "trainer-race"), true);
            let hover = say_with(ui, "trainer-race-tip", &[("names", names.join(", ").into())]);
            if ui.add(button).on_hover_text(hover).clicked() {
                fit(Fit::Plain(Box::new(plain.clone())));
            }
        }
        None => drop(ui.weak(say(ui, "trainer-unknown"))),
    }
    if let Some(advice) = &dialog.advice {
        // what a note has said is not said again
        let said = |of: &Diagnostic| dialog.notes.iter().any(|note| note.message.contains(&of.message));
        let mut advice = advice.clone();
        advice.why.retain(|why| !matches!(why, Reason::Noted(of) if said(of)));
        beside(ui, &advice, &dialog.notes);
    }
    let known = dialog.plain.is_some();
    section(ui, if known { say(ui, "trainer-or-preset") } else { say(ui, "trainer-preset") });
    egui::ScrollArea::vertical().max_height(220.0).show(ui, |ui| {
        for name in dialog.presets() {
            let Some(document) = library::preset(name).and_then(|p| p.document().ok()) else { continue };
            ui.horizontal(|ui| {
                if ui.button(&document.name).on_hover_text(&document.about).clicked() {
                    fit(Fit::Preset(name.into()));
                }
                ui.weak(document.axes.q.to_string());
            });
        }
    });
    ui.add_space(6.0);
    ui.weak(say(ui, "trainer-export"));
    next
}

/// Advice in the window, here and below a race.
pub(crate) fn advice_ui(ui: &mut Ui, advice: &Advice) {
    beside(ui, advice, &[]);
}

/// The same without the lines that these notes are.
fn beside(ui: &mut Ui, advice: &Advice, notes: &[Diagnostic]) {
    let told = advising::told(spoken(ui.ctx()), Reader::Window, advice);
    ui.add(egui::Label::new(egui::RichText::new(told.headline).strong()).wrap());
    let is_new = |line: &String| !notes.iter().any(|note| note.message == *line);
    for line in told.why.into_iter().chain(told.next).filter(is_new) {
        ui.add(egui::Label::new(egui::RichText::new(line).weak()).wrap());
    }
}
