//! A path to open or save: a field, the content of its folder, a native dialog, the recent files.
//!
//! Invariant: works without a native dialog; nothing is opened or written before the user decides. Must not know the
//! files' meaning.

use super::{Action, Actions, Next, State, buttons, title};
use crate::app::action::Pick;
use crate::app::drafts::path::{PathDialog, Purpose, expand, home};
use crate::app::widgets::{diagnostic_below, id};
use egui::text::{CCursor, CCursorRange};
use egui::text_edit::TextEditState;
use egui::{ScrollArea, TextEdit, Ui};
use std::path::{Path, PathBuf};

/// The folder of the path as it is typed: of `a/b` it is `a`, of `a/` too.
fn typed_folder(dialog: &PathDialog, state: &State) -> PathBuf {
    let text = dialog.text.trim();
    let typed = expand(text);
    let folder = if text.ends_with(['/', '\\']) { Some(typed.as_path()) } else { typed.parent() };
    let typed = folder.filter(|f| !f.as_os_str().is_empty()).map(Path::to_path_buf);
    let known = || state.path.as_ref().or(state.view.recent.first())?.parent().map(Path::to_path_buf);
    typed.or_else(known).or_else(home).unwrap_or_else(|| PathBuf::from("."))
}

/// The request to the system's dialog.
fn native(dialog: &PathDialog) -> Pick {
    match dialog.purpose {
        Purpose::Open => Pick::File("documents, code, tensors", &["json", "py", "html", "safetensors"]),
        Purpose::Config => Pick::File("config.json", &["json"]),
        Purpose::Link { .. } => Pick::File("Python", &["py"]),
        Purpose::Save | Purpose::SaveRun | Purpose::SaveRecorder | Purpose::SaveHtml => {
            let name = PathBuf::from(&dialog.text).file_name().map(|n| n.to_string_lossy().into_owned());
            Pick::Save(name.unwrap_or_else(|| "mask.json".into()))
        }
    }
}

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut PathDialog, actions: &mut Actions) -> Next {
    let (heading, yes) = dialog.words();
    title(ui, heading);
    let entered = field(ui, dialog, actions);
    let mut next = Next::Stay;
    let path = expand(&dialog.text);
    let exists = dialog.saves() && path.exists() && state.path.as_ref() != Some(&path);
    let asked = dialog.asked.as_ref() == Some(&dialog.text);
    if exists && asked {
        ui.colored_label(ui.visuals().warn_fg_color, "This file exists. Save again to replace it.");
    }
    let ready = !dialog.text.trim().is_empty();
    let decided = buttons(ui, yes, ready, &mut next) || (entered && ready);
    // below the buttons, which then stay in their place while folders appear and disappear
    if matches!(dialog.purpose, Purpose::Open | Purpose::Config) {
        recent(ui, state, actions, &mut next);
    }
    folder(ui, state, dialog, actions);
    if !decided && !dialog.decided {
        return next;
    }
    // a native dialog has asked about replacing already
    if exists && !dialog.decided && !asked {
        dialog.asked = Some(dialog.text.clone());
        return Next::Stay;
    }
    dialog.decided = false;
    actions.push(dialog.action());
    // a save closes the dialog when it has worked
    if dialog.saves() { Next::Stay } else { Next::Close }
}

/// The field; true when Enter was pressed in it.
fn field(ui: &mut Ui, dialog: &mut PathDialog, actions: &mut Actions) -> bool {
    let row = ui.horizontal(|ui| {
        let label = ui.label("Path");
        let width = ui.available_width() - 90.0;
        // a field of its own for each purpose: the caret of another text means nothing here
        let field = TextEdit::singleline(&mut dialog.text).id(id("path").with(dialog.purpose)).desired_width(width);
        let response = ui.add(field).labelled_by(label.id);
        if !dialog.focused {
            response.request_focus();
            dialog.focused = true;
            select_stem(ui, response.id, dialog);
        }
        if ui.button("Browse…").on_hover_text("Opens the system's file dialog, if there is one.").clicked() {
            actions.push(Action::Pick(native(dialog)));
        }
        response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter))
    });
    row.inner
}

/// Selects the name without its folder and ending, so that typing names a file.
fn select_stem(ui: &Ui, field: egui::Id, dialog: &PathDialog) {
    let text = &dialog.text;
    let start = text.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let end = text[start..].rfind('.').filter(|at| *at > 0).map_or(text.len(), |at| start + at);
    let place = |at: usize| CCursor::new(text[..at].chars().count());
    let range = match dialog.saves() {
        true => CCursorRange::two(place(start), place(end)),
        false => CCursorRange::one(place(text.len())),
    };
    let mut state = TextEditState::load(ui.ctx(), field).unwrap_or_default();
    state.cursor.set_char_range(Some(range));
    state.store(ui.ctx(), field);
}

/// The content of the path's folder: a click chooses an entry.
fn folder(ui: &mut Ui, state: &State, dialog: &mut PathDialog, actions: &mut Actions) {
    let folder = typed_folder(dialog, state);
    if dialog.folder.as_ref() != Some(&folder) {
        actions.push(Action::ListFolder(folder.clone(), dialog.extensions()));
        dialog.folder = Some(folder.clone());
    }
    let Some(listing) = dialog.listing.as_ref().filter(|l| l.folder == folder) else { return };
    ui.add_space(6.0);
    ui.weak(folder.display().to_string());
    let items = match &listing.items {
        Ok(items) => items,
        Err(why) => return diagnostic_below(ui, why),
    };
    let mut taken = None;
    ScrollArea::vertical().id_salt("folder").max_height(150.0).show(ui, |ui| {
        if folder.parent().is_some() && ui.link("..").accessible_name("The folder above").clicked() {
            taken = folder.parent().map(|p| format!("{}/", p.display().to_string().trim_end_matches('/')));
        }
        for item in items {
            let name = if item.is_file { item.name.clone() } else { format!("{}/", item.name) };
            if ui.link(&name).clicked() {
                taken = Some(folder.join(name).display().to_string());
            }
        }
    });
    if let Some(taken) = taken {
        dialog.text = taken;
    }
}

fn recent(ui: &mut Ui, state: &State, actions: &mut Actions, next: &mut Next) {
    if state.view.recent.is_empty() {
        return;
    }
    ui.add_space(6.0);
    ui.weak("Recent");
    for path in &state.view.recent {
        if ui.link(path.display().to_string()).clicked() {
            actions.push(Action::Open(path.clone()));
            *next = Next::Close;
        }
    }
}
