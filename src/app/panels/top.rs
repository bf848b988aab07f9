//! The bar at the top: menu, file, undo, run, device, theme.
//!
//! Invariant: every button is a command of the table. Must not know how they are carried out.

use crate::app::act::settings_edit;
use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::tabs::cannot_run;
use crate::app::theme::ThemeChoice;
use crate::app::widgets::{command_button, command_entry, primary_button};
use crate::base::Device;
use egui::{RichText, Ui};

/// Room for the device, Run and the theme.
const RIGHT: f32 = 420.0;
/// Below this the bar has no room for what the File menu has too.
const NARROW: f32 = 900.0;
/// Widths of the document's name.
const NAME: (f32, f32) = (80.0, 260.0);

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let narrow = ui.available_width() < NARROW;
        menu(ui, state, actions);
        ui.separator();
        let buttons = [Command::Open, Command::Save, Command::Undo, Command::Redo];
        for command in buttons.into_iter().skip(if narrow { 2 } else { 0 }) {
            let response = command_button(ui, command, state.can(command), actions);
            let title = match command {
                Command::Undo => state.history.undo_title(),
                Command::Redo => state.history.redo_title(),
                _ => None,
            };
            if let Some(title) = title {
                response.on_hover_text(title);
            }
        }
        // what stands to the right of it comes first in a narrow window
        if ui.available_width() > RIGHT + NAME.0 {
            ui.separator();
            name(ui, state, actions);
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            theme(ui, state, actions);
            ui.separator();
            run(ui, state, actions);
            device(ui, state, actions);
        });
    });
}

fn menu(ui: &mut Ui, state: &State, actions: &mut Actions) {
    use Command::*;
    let groups: &[(&str, &[&[Command]])] = &[
        (
            "File",
            &[&[New, Open, OpenConfig, PasteCode, Gallery], &[Save, SaveAs, SaveRun, Export], &[Unsaved], &[Quit]],
        ),
        ("Edit", &[&[Undo, Redo], &[DuplicateLayer, ToggleLayer, LayerUp, LayerDown, DeleteLayer], &[ReadLinked]]),
        (
            "View",
            &[
                &[ShowTiming, ShowMap, ShowCell, ShowCode, ShowProblems, ShowDoctor],
                &[ToggleLeft, ToggleRight, ToggleBottom, StartStrip, ResetLayout],
                &[NextHead, PreviousHead],
            ],
        ),
        ("Run", &[&[Run, RunWhole, Cancel], &[Compile, Examine, Connect]]),
        ("Help", &[&[Palette, Shortcuts, Messages]]),
    ];
    for (name, groups) in groups {
        ui.menu_button(*name, |ui| {
            for (at, group) in groups.iter().enumerate() {
                if at > 0 {
                    ui.separator();
                }
                for command in *group {
                    command_entry(ui, *command, state.can(*command), actions);
                }
            }
        });
    }
}

/// The document's name, with a mark when no file has its changes.
fn name(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let width = (ui.available_width() - RIGHT).clamp(NAME.0, NAME.1);
    let (response, changed) = crate::app::widgets::text_field(ui, "Document name", &state.document.name, width);
    let file = state.path.as_ref().map_or("no file yet".into(), |p| p.display().to_string());
    response.on_hover_text(file);
    if let Some(name) = changed {
        crate::app::widgets::text_field_took(ui, "Document name", &name);
        actions.edit(crate::document::edit::Edit::Rename(name));
    }
    if state.is_dirty() {
        ui.weak("changed")
            .on_hover_text("There are changes that no file has. They come back at the next start anyway.");
    }
}

fn run(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let racing = state.session.is_racing() || state.session.shrinking;
    if state.session.is_racing() {
        let button = egui::Button::new(Command::Cancel.text()).min_size(egui::vec2(64.0, 24.0));
        if ui.add(button).on_hover_text(Command::Cancel.tooltip(ui.ctx())).clicked() {
            actions.command(Command::Cancel);
        }
        return;
    }
    let why = cannot_run(state);
    let errors = why.is_some();
    let button = primary_button(ui, "Run", !racing && !errors).min_size(egui::vec2(64.0, 24.0));
    let response = ui.add_enabled(!racing && !errors, button).on_hover_text(Command::Run.tooltip(ui.ctx()));
    let response = response.on_disabled_hover_text(if racing {
        "A race is running.".to_string()
    } else {
        why.unwrap_or_default()
    });
    if response.clicked() {
        actions.command(Command::Run);
    }
}

/// Which device runs: the best there is unless one is chosen.
fn device(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let settings = &state.document.settings;
    let in_force = state.session.device(&state.document);
    let infos = state.session.worker.as_ref().map(|w| w.devices.clone()).unwrap_or_default();
    let name = |device: Device| infos.iter().find(|d| d.device == device).map(|d| d.name.clone());
    let shown = name(in_force).unwrap_or_else(|| match state.session.has(JobKind::Hello) {
        true => "starting…".into(),
        false => in_force.to_string(),
    });
    let shown: String = shown.chars().take(28).collect();
    let combo = egui::ComboBox::from_id_salt("device").selected_text(shown).width(150.0);
    let response = combo.show_ui(ui, |ui| {
        let best = ui.selectable_label(settings.device.is_none(), "The best there is");
        if best.clicked() {
            actions.edit(settings_edit(settings, |s| s.device = None));
        }
        for info in &infos {
            let text = format!("{}: {}", info.device, info.name);
            let chosen = settings.device == Some(info.device);
            let button = egui::Button::selectable(chosen, text);
            let mut response = ui.add_enabled(info.unusable.is_none(), button);
            if let Some(why) = &info.unusable {
                response = response.on_disabled_hover_text(why.render());
            }
            if response.clicked() {
                actions.edit(settings_edit(settings, |s| s.device = Some(info.device)));
            }
        }
        ui.separator();
        if ui.button(Command::Connect.text()).clicked() {
            actions.command(Command::Connect);
            ui.close();
        }
    });
    response.response.accessible_name("Device").on_hover_text(format!("Runs on {}", state.view.target));
}

fn theme(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let (text, command) = match state.view.theme {
        ThemeChoice::System => ("Theme: system", Command::ThemeDark),
        ThemeChoice::Dark => ("Theme: dark", Command::ThemeLight),
        ThemeChoice::Light => ("Theme: light", Command::ThemeSystem),
    };
    if ui.button(RichText::new(text).small()).on_hover_text("Switches between system, dark and light.").clicked() {
        actions.command(command);
    }
}
