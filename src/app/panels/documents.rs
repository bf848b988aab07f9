//! The open documents as tabs, if there is more than one.
//!
//! Invariant: the active document keeps its place among the others. Must not know the effect of a switch.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::state::State;
use egui::{RichText, ScrollArea, Ui};

/// Draws them.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ScrollArea::horizontal().id_salt("documents").auto_shrink([false, true]).show(ui, |ui| {
        ui.horizontal(|ui| {
            let waiting = state.parked.iter().filter_map(|p| Some((p.document.as_ref()?.name.as_str(), p.dirty)));
            let mut tabs: Vec<(&str, bool)> = waiting.collect();
            let at = state.tab.min(tabs.len());
            tabs.insert(at, (&state.document.name, state.is_dirty()));
            for (n, (name, dirty)) in tabs.iter().enumerate() {
                let words = format!("{}{}", name.chars().take(32).collect::<String>(), if *dirty { " *" } else { "" });
                let text = if n == at { RichText::new(words).strong() } else { RichText::new(words) };
                let response = ui.selectable_label(n == at, text);
                if response.on_hover_text(*name).clicked() {
                    actions.push(Action::ShowDocument(n));
                }
                if n == at {
                    let close = ui.small_button("\u{d7}").on_hover_text(Command::CloseTab.tooltip(ui.ctx()));
                    if close.accessible_name("Close this document").clicked() {
                        actions.command(Command::CloseTab);
                    }
                }
                ui.separator();
            }
            let new = ui.small_button("+").on_hover_text(Command::NewTab.tooltip(ui.ctx()));
            if new.accessible_name("New document in a tab").clicked() {
                actions.command(Command::NewTab);
            }
        });
    });
}
