//! The menus that add a layer or a score mod.
//!
//! Invariant: offers every pattern of the library with its help. Must not know how they are added.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::language::{say, words};
use crate::app::widgets::{command_entry, tall};
use crate::document::library;
use crate::ir::graph::ModKind;
use egui::{ScrollArea, Ui};

/// For mask layers.
pub(super) fn mask_menu(ui: &mut Ui, actions: &mut Actions) {
    use Command::*;
    let commands = [AddRectangle, AddBand, AddPainted, AddText, AddLinked, PasteCode];
    let button = ui.menu_button(say(ui, "layers-add"), |ui| {
        tall(ui, |ui| entries(ui, &commands, ModKind::Mask, actions));
    });
    button.response.accessible_name(say(ui, "layers-add-mask"));
}

/// For score mods.
pub(super) fn score_menu(ui: &mut Ui, actions: &mut Actions) {
    use Command::*;
    let commands = [AddCurve, AddScoreText, AddScoreLinked];
    let button = ui.menu_button(say(ui, "layers-add"), |ui| {
        tall(ui, |ui| entries(ui, &commands, ModKind::Score, actions));
    });
    button.response.accessible_name(say(ui, "layers-add-score"));
}

fn entries(ui: &mut Ui, commands: &[Command], kind: ModKind, actions: &mut Actions) {
    commands.iter().for_each(|command| command_entry(ui, *command, true, actions));
    ui.separator();
    patterns(ui, kind, actions);
}

fn patterns(ui: &mut Ui, kind: ModKind, actions: &mut Actions) {
    ScrollArea::vertical().max_height(340.0).show(ui, |ui| {
        for pattern in library::patterns().filter(|p| p.kind == kind) {
            let summary = words(ui.ctx()).pattern(pattern.name).unwrap_or_else(|| pattern.summary());
            if ui.button(pattern.title()).on_hover_text(summary).clicked() {
                actions.push(Action::AddPattern(pattern.name.into()));
                ui.close();
            }
        }
    });
}
