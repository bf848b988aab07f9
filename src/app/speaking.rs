//! The choice of the window's language.
//!
//! Invariant: each language is named in itself where a font has its letters, so that whoever cannot read the present one finds it. Must not know texts.

use super::action::{Action, Actions};
use super::language::{named, say, say_with};
use super::state::State;
use crate::words::Language;
use egui::{ComboBox, Ui};

/// As a menu.
pub(crate) fn menu(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let menu = ui.menu_button(say(ui, "menu-language"), |ui| {
        if rows(ui, state, actions) {
            ui.close();
        }
    });
    menu.response.on_hover_text(say(ui, "menu-language.tip"));
}

/// As a field.
pub(crate) fn field(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| {
        ui.label(say(ui, "menu-language"));
        let shown = state.view.language.map_or_else(|| of_system(ui, state), |language| named(language).to_string());
        let combo = ComboBox::from_id_salt("language")
            .selected_text(shown)
            .width(190.0_f32.min(ui.available_width()))
            .truncate();
        let response = combo.show_ui(ui, |ui| rows(ui, state, actions)).response;
        response.accessible_name(say(ui, "menu-language")).on_hover_text(say(ui, "menu-language.tip"));
    });
}

fn of_system(ui: &Ui, state: &State) -> String {
    say_with(ui, "setup-language-system", &[("name", named(state.system_language).into())])
}

/// The languages. Whether one was chosen.
fn rows(ui: &mut Ui, state: &State, actions: &mut Actions) -> bool {
    let mut chosen = false;
    let all = Language::ALL.map(|language| (Some(language), named(language).to_string()));
    for (language, name) in [(None, of_system(ui, state))].into_iter().chain(all) {
        if ui.selectable_label(state.view.language == language, name).clicked() {
            actions.push(Action::SetLanguage(language));
            chosen = true;
        }
    }
    chosen
}
