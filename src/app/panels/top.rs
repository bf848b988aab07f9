//! The bar at the top: menus, workspaces, undo, the document's name, device, run.
//!
//! Invariant: every button is a command of the table. Must not know how they are carried out.

use crate::app::action::settings_edit;
use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::language::{self, place, say, say_with};
use crate::app::session::JobKind;
use crate::app::speaking;
use crate::app::state::State;
use crate::app::tabs::cannot_run;
use crate::app::widgets::{command_button, command_entry, primary_button, row_width, tall};
use crate::app::workspace::{Aside, Workspace};
use crate::base::Device;
use crate::words::Language;
use egui::{RichText, Ui};

/// Below these widths the bar gives up the document's name, the row of menus, the names of workspaces.
const NAMELESS: f32 = 1180.0;
const ONE_MENU: f32 = 1060.0;
const NARROW: f32 = 720.0;
/// Room for the device, Run and the theme.
const RIGHT: f32 = 290.0;
/// Room for both ways through the history.
const UNDO: f32 = 110.0;
/// Room for the mark of what no file has.
const MARK: f32 = 72.0;
/// Points of the field beside its text.
const BESIDE: f32 = 20.0;
/// Width of the device's name; with less than the least it is in the menu Run alone; room beside it.
const DEVICE: f32 = 190.0;
const LEAST_DEVICE: f32 = 60.0;
const BESIDE_DEVICE: f32 = 24.0;
/// Widths of the document's name.
const NAME: (f32, f32) = (80.0, 240.0);

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let width = ui.available_width();
        if width < ONE_MENU {
            let response = ui.menu_button(say(ui, "menu"), |ui| tall(ui, |ui| menus(ui, state, actions))).response;
            response.on_hover_text(say(ui, "menu.tip"));
        } else {
            menus(ui, state, actions);
        }
        ui.separator();
        // the document's name is the last to go: first Undo and Redo, then the names of workspaces make room for it
        let named = if width >= NAMELESS { MARK + NAME.0 + BESIDE } else { 0.0 };
        // names of other languages than English are measured
        let names = Workspace::ALL.map(|workspace| workspace.command().text(ui.ctx()));
        let english = language::words(ui.ctx()).language() == Language::English;
        let crowded = !english && row_width(ui, names) > ui.available_width() - RIGHT - named;
        workspaces(ui, state, width < NARROW || crowded, actions);
        ui.separator();
        let history = [Command::Undo, Command::Redo];
        let undo = if english { UNDO } else { row_width(ui, history.map(|command| command.text(ui.ctx()))) };
        if width >= NARROW && ui.available_width() >= RIGHT + undo + named {
            for command in history {
                let response = command_button(ui, command, state.can(command), actions);
                let title = match command {
                    Command::Undo => state.history.undo_title(),
                    _ => state.history.redo_title(),
                };
                if let Some(title) = title {
                    response.on_hover_text(crate::tasks::steps::told(state.words(), title));
                }
            }
        }
        if width >= NAMELESS && ui.available_width() > RIGHT + MARK + NAME.0 {
            ui.separator();
            name(ui, state, actions);
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            run(ui, state, actions);
            device(ui, state, actions);
        });
    });
}

/// The workspaces by name; one field if there is not enough space for a row.
fn workspaces(ui: &mut Ui, state: &State, narrow: bool, actions: &mut Actions) {
    let shown = state.view.workspace;
    if narrow {
        let combo = egui::ComboBox::from_id_salt("workspace").selected_text(shown.command().text(ui.ctx())).width(70.0);
        let response = combo.show_ui(ui, |ui| {
            for workspace in Workspace::ALL {
                if ui.selectable_label(workspace == shown, workspace.command().text(ui.ctx())).clicked() {
                    actions.command(workspace.command());
                }
            }
        });
        response.response.accessible_name(say(ui, "top-workspace"));
        return;
    }
    for workspace in Workspace::ALL {
        let command = workspace.command();
        let text = RichText::new(command.text(ui.ctx())).size(14.5);
        let text = if workspace == shown { text.strong() } else { text };
        let response = ui.selectable_label(workspace == shown, text);
        if workspace == shown {
            let line = response.rect.expand2(egui::vec2(0.0, 2.0));
            let accent = app::theme::palette(ui.visuals()).accent;
            ui.painter().hline(line.x_range(), line.bottom(), (2.0, accent));
        }
        if response.on_hover_text(command.tooltip(ui.ctx())).clicked() {
            actions.command(command);
        }
    }
}

fn menus(ui: &mut Ui, state: &State, actions: &mut Actions) {
    use Command::*;
    let groups: &[(&str, &[&[Command]])] = &[
        (
            "menu-file",
            &[
                &[New, Open, OpenConfig, PasteCode, Gallery],
                &[Save, SaveAs, SaveRun, ShowExport],
                &[CopyPicture, CopyChart, CopyCode, SaveHtml],
                &[OpenSample, SaveRecorder],
                &[NewTab, NextTab, PreviousTab, CloseTab],
                &[Unsaved],
                &[Quit],
            ],
        ),
        (
            "menu-edit",
            &[
                &[Undo, Redo],
                &[DuplicateLayer, MirrorLayer, ToggleLayer, LayerUp, LayerDown, DeleteLayer],
                &[ReadLinked],
            ],
        ),
        (
            "menu-view",
            &[
                &[],
                &[ToggleLeft, ToggleRight, CanvasOnly, SwapSides, ResetLayout, StartStrip],
                &[ZoomIn, ZoomOut, FitMask, GoToCell, Present],
                &[Compare, StopComparing],
                &[NextHead, PreviousHead],
            ],
        ),
        ("menu-run", &[&[Run, RunWhole, RaceLengths, Detach, Jobs, Cancel], &[Compile, Examine, Connect]]),
        ("menu-help", &[&[ShowLearn, Tour], &[Palette, Shortcuts, Messages]]),
    ];
    for (name, groups) in groups {
        ui.menu_button(say(ui, name), |ui| tall(ui, |ui| entries(ui, state, name, groups, actions)));
    }
}

fn entries(ui: &mut Ui, state: &State, name: &str, groups: &[&[Command]], actions: &mut Actions) {
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            ui.separator();
        }
        for command in *group {
            command_entry(ui, *command, state.can(*command), actions);
        }
        match (name, at) {
            ("menu-file", 0) => recent(ui, state, actions),
            ("menu-view", 0) => submenu(ui, state, "menu-go-to", &go_to(), actions),
            ("menu-view", 1) => {
                ui.menu_button(say(ui, "menu-dock"), |ui| docks(ui, state, actions));
                submenu(ui, state, "menu-looks", LOOKS, actions);
                speaking::menu(ui, state, actions);
            }
            ("menu-run", 1) => {
                // a narrow bar has no field of them
                ui.menu_button(say(ui, "top-device"), |ui| devices(ui, state, actions));
            }
            _ => {}
        }
    }
}

/// Workspaces and pages.
fn go_to() -> Vec<Command> {
    let workspaces = Workspace::ALL.map(Workspace::command);
    let pages = Aside::ALL.map(Aside::command);
    workspaces.into_iter().chain(pages).chain([Command::SwitchFocus]).collect()
}
/// Sizes and colours.
const LOOKS: &[Command] = {
    use Command::*;
    &[LargerText, SmallerText, NormalText, ThemeSystem, ThemeLight, ThemeDark]
};

fn submenu(ui: &mut Ui, state: &State, name: &str, commands: &[Command], actions: &mut Actions) {
    let entries =
        |ui: &mut Ui| commands.iter().for_each(|command| command_entry(ui, *command, state.can(*command), actions));
    ui.menu_button(say(ui, name), |ui| tall(ui, entries));
}

/// The positions of the panels, with the present ones marked.
pub(super) fn docks(ui: &mut Ui, state: &State, actions: &mut Actions) {
    use crate::app::layout::{Dock, Part};
    use Command::*;
    let rows = [
        (Part::Layers, [(LayersLeft, Dock::Left), (LayersRight, Dock::Right), (LayersBelow, Dock::Below)]),
        (Part::Page, [(PageLeft, Dock::Left), (PageRight, Dock::Right), (PageBelow, Dock::Below)]),
    ];
    for (part, commands) in rows {
        if part == Part::Page {
            ui.separator();
        }
        for (command, dock) in commands {
            let now = state.view.docks.of(part) == dock;
            let button = ui.selectable_label(now, command.text(ui.ctx())).on_hover_text(command.tip(ui.ctx()));
            if button.clicked() {
                actions.command(command);
                ui.close();
            }
        }
    }
}

/// Recently opened files.
fn recent(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.add_enabled_ui(!state.view.recent.is_empty(), |ui| {
        ui.menu_button(say(ui, "menu-recent"), |ui| {
            for path in &state.view.recent {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
                if ui.button(name).on_hover_text(path.display().to_string()).clicked() {
                    actions.push(Action::Open(path.clone()));
                    ui.close();
                }
            }
        });
    });
}

/// The document's name, with a mark when no file has its changes.
fn name(ui: &mut Ui, state: &State, actions: &mut Actions) {
    // without the mark its room is the name's; what the name does not need is the device's
    let mark = if state.is_dirty() { MARK } else { 0.0 };
    let most = (ui.available_width() - RIGHT - mark).clamp(NAME.0, NAME.1);
    let own = app::widgets::text_width(ui, RichText::new(&state.document.name)) + BESIDE;
    let width = own.clamp(NAME.0, most);
    let (response, changed) = app::widgets::text_field(ui, say(ui, "top-name"), &state.document.name, width);
    let file = state.path.as_ref().map_or(say(ui, "top-no-file").into(), |p| p.display().to_string());
    response.on_hover_text(format!("{}: {file}", state.document.name));
    if let Some(name) = changed {
        app::widgets::text_field_took(ui, say(ui, "top-name"), &name);
        actions.edit(crate::document::edit::Edit::Rename(name));
    }
    if state.is_dirty() {
        ui.weak(say(ui, "top-changed")).on_hover_text(say(ui, "top-changed.tip"));
    }
}

fn run(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let racing = state.session.is_racing() || state.session.shrinking.is_some();
    if state.session.is_racing() {
        let button = egui::Button::new(Command::Cancel.text(ui.ctx())).min_size(egui::vec2(64.0, 24.0));
        if ui.add(button).on_hover_text(Command::Cancel.tooltip(ui.ctx())).clicked() {
            actions.command(Command::Cancel);
        }
        return;
    }
    let why = cannot_run(state);
    let errors = why.is_some();
    let button = primary_button(ui, say(ui, "top-run"), !racing && !errors).min_size(egui::vec2(64.0, 24.0));
    let response = ui.add_enabled(!racing && !errors, button).on_hover_text(Command::Run.tooltip(ui.ctx()));
    let response = response.on_disabled_hover_text(if racing {
        say(ui, "top-racing").to_string()
    } else {
        why.unwrap_or_default()
    });
    if response.clicked() {
        actions.command(Command::Run);
    }
}

/// Which device runs: the best there is unless one is chosen.
fn device(ui: &mut Ui, state: &State, actions: &mut Actions) {
    // beside the button that runs it leaves what stands before it
    let width = DEVICE.min(ui.available_width() - BESIDE_DEVICE);
    if width < LEAST_DEVICE {
        return;
    }
    let in_force = state.session.device(&state.document);
    let infos = state.session.worker.as_ref().map_or(&[][..], |worker| &worker.devices);
    let name = |device: Device| infos.iter().find(|d| d.device == device).map(|d| d.name.clone());
    let shown = name(in_force).unwrap_or_else(|| match state.session.has(JobKind::Hello) {
        true => say(ui, "top-starting").into(),
        false => in_force.to_string(),
    });
    let combo = egui::ComboBox::from_id_salt("device").selected_text(&shown).width(width).truncate();
    let response = combo.show_ui(ui, |ui| devices(ui, state, actions));
    let figures = [("device", shown.into()), ("target", place(ui, &state.view.target).into())];
    let tip = say_with(ui, "top-device-where", &figures);
    response.response.accessible_name(say(ui, "top-device")).on_hover_text(tip);
}

/// The devices to choose from.
fn devices(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let settings = &state.document.settings;
    let infos = state.session.worker.as_ref().map_or(&[][..], |worker| &worker.devices);
    let best = ui.selectable_label(settings.device.is_none(), say(ui, "top-device-best"));
    if best.clicked() {
        actions.edit(settings_edit(settings, |s| s.device = None));
    }
    for info in infos {
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
    if ui.button(Command::Connect.text(ui.ctx())).clicked() {
        actions.command(Command::Connect);
        ui.close();
    }
}
