//! Unsaved documents that were replaced by others.
//!
//! Invariant: opening one loses nothing; discarding one is announced as final. Must not know how they are stored.

use super::{Action, Actions, Next, title};
use crate::app::drafts::unsaved::UnsavedDialog;
use crate::app::language::{say, say_with, words};
use crate::app::unsaved::{Kept, MOST};
use crate::tasks::steps;
use egui::{ScrollArea, Ui};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn show(ui: &mut Ui, dialog: &mut UnsavedDialog, actions: &mut Actions) -> Next {
    title(ui, say(ui, "unsaved-title"));
    ui.label(say(ui, "unsaved-words"));
    ui.add_space(6.0);
    match &dialog.list {
        _ if !dialog.keeps => drop(ui.weak(say(ui, "unsaved-nothing"))),
        None => drop(ui.spinner()),
        Some(list) if list.is_empty() => drop(ui.weak(say(ui, "there-are-none"))),
        Some(list) => {
            ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
                for kept in list {
                    row(ui, kept, &mut dialog.asked, actions);
                }
            });
            ui.weak(say_with(ui, "unsaved-most", &[("n", MOST.into())]));
        }
    }
    ui.add_space(8.0);
    if ui.button(say(ui, "close")).clicked() { Next::Close } else { Next::Stay }
}

fn row(ui: &mut Ui, kept: &Kept, asked: &mut Option<PathBuf>, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let name = say_with(ui, "unsaved-open-name", &[("name", (&*kept.name).into())]);
        if ui.button(say(ui, "open")).accessible_name(name).clicked() {
            actions.push(Action::Reopen(kept.file.clone()));
        }
        let sure = asked.as_ref() == Some(&kept.file);
        let [word, name] = match sure {
            true => ["unsaved-for-good", "unsaved-for-good-name"],
            false => ["unsaved-discard", "unsaved-discard-name"],
        };
        let name = say_with(ui, name, &[("name", (&*kept.name).into())]);
        if ui.button(say(ui, word)).accessible_name(name).clicked() {
            match sure {
                true => actions.push(Action::Discard(kept.file.clone())),
                false => *asked = Some(kept.file.clone()),
            }
        }
        ui.strong(&kept.name);
        let ago = ago(ui, kept.at);
        ui.weak(match &kept.last {
            Some(step) => {
                let step = steps::told(words(ui.ctx()), step);
                say_with(ui, "unsaved-last", &[("step", step.into()), ("ago", ago.into())])
            }
            None => ago,
        });
        if let Some(path) = &kept.path {
            ui.weak(say_with(ui, "unsaved-older", &[("path", path.display().to_string().into())]));
        }
    });
}

fn ago(ui: &Ui, at: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    match now.saturating_sub(at) {
        s if s < 90 => say(ui, "unsaved-moment").into(),
        s if s < 90 * 60 => say_with(ui, "unsaved-minutes", &[("n", (s / 60).into())]),
        s if s < 36 * 3600 => say_with(ui, "unsaved-hours", &[("n", (s / 3600).into())]),
        s => say_with(ui, "unsaved-days", &[("n", (s / 86_400).into())]),
    }
}
