//! The menu of what the window has no room for: heads, open documents, figures, running work, the worker.
//!
//! Invariant: what the tabs, the headline and the status bar leave out is here, behind what the row of tools does. Must not know when they leave it out.

use super::{documents, headline, status};
use crate::app::action::Actions;
use crate::app::language::say;
use crate::app::state::State;
use crate::app::widgets::tall;
use egui::containers::menu::{MenuButton, MenuConfig};
use egui::{PopupCloseBehavior, Ui};

/// A small button with the menu; `first` draws what stands before the rest.
pub(super) fn menu(ui: &mut Ui, state: &State, actions: &mut Actions, first: impl FnOnce(&mut Ui, &mut Actions)) {
    // it has fields, which are clicked into
    let config = MenuConfig::new().close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let (response, _) = MenuButton::new("\u{2026}").config(config).ui(ui, |ui| {
        ui.set_max_width(320.0);
        tall(ui, |ui| {
            first(ui, actions);
            if state.given_up.documents {
                documents::in_a_menu(ui, state, actions);
                ui.separator();
            }
            if state.given_up.headline {
                headline::in_a_menu(ui, state, actions);
            }
            if state.given_up.status {
                ui.separator();
                status::in_a_menu(ui, state, actions);
            }
        });
    });
    response.accessible_name(say(ui, "tools-more")).on_hover_text(say(ui, "tools-more.tip"));
}
