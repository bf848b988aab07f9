//! A path to open or save: a field, the content of its folder, a native dialog, the recent files.
//!
//! Invariant: works without a native dialog; nothing is opened or written before the user decides. Must not know the
//! files' meaning.

use super::{Action, Actions, Next, State, buttons, title};
use crate::app::action::Pick;
use crate::app::drafts::path::{PathDialog, Purpose, expand, home};
use crate::app::language::{place as named, say, say_with};
use crate::app::session::JobKind;
use crate::app::widgets::{diagnostic_below, id};
use crate::base::words;
use crate::worker::protocol::folder::{FolderAsk, Item};
use egui::text::{CCursor, CCursorRange};
use egui::text_edit::TextEditState;
use egui::{ScrollArea, TextEdit, Ui};
use std::path::{Path, PathBuf};

/// The folder of the path as it is typed: of `a/b` it is `a`, of `a/` too.
fn typed_folder(dialog: &PathDialog, state: &State) -> String {
    let text = dialog.text.trim();
    if dialog.far {
        // nothing: the home there
        return match text.rfind('/') {
            Some(0) => "/".into(),
            Some(at) => text[..at].into(),
            None => String::new(),
        };
    }
    let typed = expand(text);
    let folder = if text.ends_with(['/', '\\']) { Some(typed.as_path()) } else { typed.parent() };
    let typed = folder.filter(|f| !f.as_os_str().is_empty()).map(Path::to_path_buf);
    let known = || state.path.as_ref().or(state.view.recent.first())?.parent().map(Path::to_path_buf);
    typed.or_else(known).or_else(home).unwrap_or_else(|| PathBuf::from(".")).display().to_string()
}

/// The request to the system's dialog.
fn native(ui: &Ui, dialog: &PathDialog) -> Pick {
    match dialog.purpose {
        Purpose::Open => Pick::File(say(ui, "path-kinds"), &["json", "py", "html", "safetensors"]),
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
    title(ui, say(ui, heading));
    place(ui, state, dialog);
    let entered = field(ui, dialog, actions) && !taken_by_keys(dialog);
    let mut next = Next::Stay;
    let path = expand(&dialog.text);
    let exists = dialog.saves() && path.exists() && state.path.as_ref() != Some(&path);
    let asked = dialog.asked.as_ref() == Some(&dialog.text);
    if exists && asked {
        ui.colored_label(ui.visuals().warn_fg_color, say(ui, "path-exists"));
    }
    let ready = !dialog.text.trim().is_empty();
    let decided = buttons(ui, say(ui, yes), ready, &mut next) || (entered && ready);
    // below the buttons, which then stay in their place while folders appear and disappear
    if matches!(dialog.purpose, Purpose::Open | Purpose::Config) && !dialog.far {
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

/// Which machine the path is on, where there are two.
fn place(ui: &mut Ui, state: &State, dialog: &mut PathDialog) {
    let connected = !state.view.target.is_local() && state.session.worker.is_some();
    if dialog.purpose != Purpose::Open || !(connected || dialog.far) {
        return;
    }
    ui.horizontal(|ui| {
        ui.label(say(ui, "path-on"));
        for (far, name) in [(false, say(ui, "connect-command.hint").to_string()), (true, named(ui, &state.view.target))]
        {
            let on = say_with(ui, "path-on-name", &[("name", (&*name).into())]);
            let label = ui.selectable_label(dialog.far == far, &name).accessible_name(on);
            if label.clicked() && dialog.far != far {
                dialog.change_place(far);
            }
        }
    });
    if dialog.far {
        ui.weak(say(ui, "path-stays"));
    }
}

/// Enter takes the entry that the arrow keys are at.
fn taken_by_keys(dialog: &mut PathDialog) -> bool {
    let entry = dialog.at.and_then(|at| Some((dialog.listing.as_ref()?, at)));
    let Some((listing, at)) = entry else { return false };
    let Some(item) = listing.items.as_ref().ok().and_then(|items| items.get(at)) else { return false };
    dialog.text = entry_path(&listing.folder, item);
    (dialog.at, dialog.focused) = (None, false);
    // a folder is looked into, a file is opened
    !item.is_file
}

/// The text of an entry that was chosen.
fn entry_path(folder: &str, item: &Item) -> String {
    let end = if item.is_file { "" } else { "/" };
    format!("{}/{}{end}", folder.trim_end_matches('/'), item.name)
}

/// The field; true when Enter was pressed in it.
fn field(ui: &mut Ui, dialog: &mut PathDialog, actions: &mut Actions) -> bool {
    let row = ui.horizontal(|ui| {
        let label = ui.label(say(ui, "path-path"));
        let width = ui.available_width() - 90.0;
        // a field of its own for each purpose: the caret of another text means nothing here
        let field = TextEdit::singleline(&mut dialog.text).id(id("path").with(dialog.purpose)).desired_width(width);
        let response = ui.add(field).labelled_by(label.id);
        if !dialog.focused {
            response.request_focus();
            dialog.focused = true;
            select_stem(ui, response.id, dialog);
        }
        let native_too = ui.add_enabled(!dialog.far, egui::Button::new(say(ui, "export-browse")));
        if native_too.on_hover_text(say(ui, "path-browse-tip")).clicked() {
            actions.push(Action::Pick(native(ui, dialog)));
        }
        if response.has_focus() {
            arrows(ui, dialog);
        }
        if response.changed() {
            dialog.at = None;
        }
        response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter))
    });
    row.inner
}

/// The arrow keys go through the entries.
fn arrows(ui: &Ui, dialog: &mut PathDialog) {
    let count = dialog.listing.as_ref().and_then(|listing| listing.items.as_ref().ok()).map_or(0, Vec::len);
    let none = egui::Modifiers::NONE;
    let down = ui.input_mut(|i| i.consume_key(none, egui::Key::ArrowDown));
    let up = ui.input_mut(|i| i.consume_key(none, egui::Key::ArrowUp));
    if count == 0 || !(down || up) {
        return;
    }
    dialog.at = match dialog.at {
        None if down => Some(0),
        None | Some(0) if up => None,
        None => None,
        Some(at) => Some(if down { (at + 1).min(count - 1) } else { at - 1 }),
    };
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
    let endings = dialog.extensions().iter().map(|ending| ending.to_string()).collect();
    let ask = FolderAsk { path: typed_folder(dialog, state), endings, hidden: dialog.hidden };
    if !dialog.folder.as_ref().is_some_and(|(far, asked)| *far == dialog.far && *asked == ask) {
        actions.push(Action::ListFolder { far: dialog.far, ask: ask.clone() });
        // what was listed stays until the answer has come over a slow line
        dialog.folder = Some((dialog.far, ask));
    }
    ui.add_space(6.0);
    ui.horizontal(|ui| {
        if let Some(listing) = &dialog.listing {
            ui.weak(&listing.folder);
        }
        if dialog.far && state.session.has(JobKind::Files) {
            ui.spinner();
        }
        ui.checkbox(&mut dialog.hidden, say(ui, "path-hidden"));
    });
    let Some(listing) = &dialog.listing else { return };
    let items = match &listing.items {
        Ok(items) => items,
        Err(why) => return diagnostic_below(ui, why),
    };
    let above = listing.folder.trim_end_matches('/').rfind('/').map(|at| listing.folder[..=at].to_string());
    let mut taken = None;
    ScrollArea::vertical().id_salt("folder").max_height(150.0).show(ui, |ui| {
        if let Some(above) = above.filter(|_| listing.folder.len() > 1)
            && ui.link("..").accessible_name(say(ui, "path-above")).clicked()
        {
            taken = Some(above);
        }
        for (n, item) in items.iter().enumerate() {
            let name = if item.is_file { item.name.clone() } else { format!("{}/", item.name) };
            let row = ui.horizontal(|ui| {
                let chosen = dialog.at == Some(n);
                let link = if chosen { ui.selectable_label(true, &name) } else { ui.link(&name) };
                if chosen {
                    link.scroll_to_me(None);
                }
                if item.is_file {
                    ui.weak(words::bytes(item.bytes));
                }
                link.clicked()
            });
            if row.inner {
                taken = Some(entry_path(&listing.folder, item));
            }
        }
        if items.is_empty() {
            ui.weak(say(ui, "path-none"));
        }
        if listing.left_out > 0 {
            ui.weak(say_with(ui, "path-more", &[("n", listing.left_out.into())]));
        }
    });
    if let Some(taken) = taken {
        (dialog.text, dialog.at) = (taken, None);
    }
}

fn recent(ui: &mut Ui, state: &State, actions: &mut Actions, next: &mut Next) {
    if state.view.recent.is_empty() {
        return;
    }
    ui.add_space(6.0);
    ui.weak(say(ui, "menu-recent"));
    for path in &state.view.recent {
        if ui.link(path.display().to_string()).clicked() {
            actions.push(Action::Open(path.clone()));
            *next = Next::Close;
        }
    }
}
