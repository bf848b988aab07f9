//! The open documents as tabs, if there is more than one.
//!
//! Invariant: the active document keeps its place among the others. Must not know the effect of a switch.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::language::say;
use crate::app::recovery::Tab;
use crate::app::state::State;
use crate::app::titles::{Named, told_apart};
use crate::app::widgets::id;
use egui::{RichText, ScrollArea, Ui};

/// The same as entries of a menu, where the window has no room for a row.
pub(super) fn in_a_menu(ui: &mut Ui, state: &State, actions: &mut Actions) {
    for (n, (name, about, dirty)) in named(ui, state).into_iter().enumerate() {
        let words = format!("{name}{}", if dirty { " *" } else { "" });
        if ui.selectable_label(n == state.tab, words).on_hover_text(about).clicked() {
            actions.push(Action::ShowDocument(n));
            ui.close();
        }
    }
}

/// Name, what else there is to say, and whether it has changes that no file has.
fn named(ui: &Ui, state: &State) -> Vec<(String, String, bool)> {
    let mut tabs = state.tabs().iter().map(|tab| words(ui, tab)).collect::<Vec<_>>();
    tell_apart(state, &mut tabs);
    tabs
}

/// Draws them.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ScrollArea::horizontal().id_salt("documents").auto_shrink([false, true]).show(ui, |ui| {
        ui.horizontal(|ui| {
            let tabs = named(ui, state);
            let at = state.tab.min(tabs.len() - 1);
            // the one in work is seen; where one scrolled to afterwards stays
            let shown = ui.data_mut(|d| std::mem::replace(d.get_temp_mut_or(id("tab shown"), 0), state.id));
            for (n, (name, about, dirty)) in tabs.iter().enumerate() {
                let words = format!("{}{}", name.chars().take(40).collect::<String>(), if *dirty { " *" } else { "" });
                let text = if n == at { RichText::new(words).strong() } else { RichText::new(words) };
                let response = ui.selectable_label(n == at, text);
                if response.on_hover_text(about).clicked() {
                    actions.push(Action::ShowDocument(n));
                }
                if n == at {
                    let close = ui.small_button("\u{d7}").on_hover_text(Command::CloseTab.tooltip(ui.ctx()));
                    if shown != state.id {
                        close.scroll_to_me(None);
                    }
                    if close.accessible_name(say(ui, "tabs-close")).clicked() {
                        actions.command(Command::CloseTab);
                    }
                }
                ui.separator();
            }
            let new = ui.small_button("+").on_hover_text(Command::NewTab.tooltip(ui.ctx()));
            if new.accessible_name(say(ui, "tabs-new")).clicked() {
                actions.command(Command::NewTab);
            }
        });
    });
}

/// Tabs of one name get the folder or the number of each.
fn tell_apart(state: &State, tabs: &mut [(String, String, bool)]) {
    let paths = state.tabs().into_iter().map(|tab| tab.place.path);
    let named: Vec<Named> = tabs.iter().map(|tab| tab.0.clone()).zip(paths).collect();
    for (tab, title) in tabs.iter_mut().zip(told_apart(state.words(), &named)) {
        tab.0 = title;
    }
}

/// A tab's name, what tells it from another of the same name, and whether it has changes that no file has.
fn words(ui: &Ui, tab: &Tab<'_>) -> (String, String, bool) {
    let name = &tab.document.name;
    match tab.place.path.as_deref().and_then(|path| Some((path, path.file_name()?.to_string_lossy()))) {
        Some((path, file)) => (file.into_owned(), format!("{name}\n{}", path.display()), tab.place.dirty),
        None => (name.clone(), format!("{name}\n{}", say(ui, "tabs-no-file")), tab.place.dirty),
    }
}
