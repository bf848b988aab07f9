//! Unsaved documents that were replaced by others.
//!
//! Invariant: opening one loses nothing; discarding one is announced as final. Must not know how they are stored.

use super::{Action, Actions, Next, title};
use crate::app::drafts::unsaved::UnsavedDialog;
use crate::app::unsaved::{Kept, MOST};
use egui::{ScrollArea, Ui};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn show(ui: &mut Ui, dialog: &mut UnsavedDialog, actions: &mut Actions) -> Next {
    title(ui, "Documents that were not saved");
    ui.label("These documents were replaced before they were saved. The newest are first.");
    ui.add_space(6.0);
    match &dialog.list {
        _ if !dialog.keeps => drop(ui.weak("This window keeps nothing between starts.")),
        None => drop(ui.spinner()),
        Some(list) if list.is_empty() => drop(ui.weak("There are none.")),
        Some(list) => {
            ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
                for kept in list {
                    row(ui, kept, &mut dialog.asked, actions);
                }
            });
            ui.weak(format!("The newest {MOST} are kept until you discard them."));
        }
    }
    ui.add_space(8.0);
    if ui.button("Close").clicked() { Next::Close } else { Next::Stay }
}

fn row(ui: &mut Ui, kept: &Kept, asked: &mut Option<PathBuf>, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let name = format!("Open {}", kept.name);
        if ui.button("Open").accessible_name(name).clicked() {
            actions.push(Action::Reopen(kept.file.clone()));
        }
        let sure = asked.as_ref() == Some(&kept.file);
        let word = if sure { "Discard for good" } else { "Discard" };
        if ui.button(word).accessible_name(format!("{word} {}", kept.name)).clicked() {
            match sure {
                true => actions.push(Action::Discard(kept.file.clone())),
                false => *asked = Some(kept.file.clone()),
            }
        }
        ui.strong(&kept.name);
        let last = kept.last.as_deref().map_or(String::new(), |last| format!("last: {last}, "));
        ui.weak(format!("{last}{}", ago(kept.at)));
        if let Some(path) = &kept.path {
            ui.weak(format!("an older state is in {}", path.display()));
        }
    });
}

fn ago(at: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    match now.saturating_sub(at) {
        s if s < 90 => "a moment ago".into(),
        s if s < 90 * 60 => format!("{} minutes ago", s / 60),
        s if s < 36 * 3600 => format!("{} hours ago", s / 3600),
        s => format!("{} days ago", s / 86_400),
    }
}
