//! Dialogs over the window: one at a time, closed by Escape, each with its own small draft.
//!
//! Invariant: a dialog changes only its draft; its decisions are sent as actions; a click outside a dialog with typed
//! text does not close it. Must not know how actions are carried out.

mod connect;
mod difference;
mod fetch;
mod gallery;
mod jobs;
mod leave;
mod lists;
mod palette;
mod paste;
mod path;
mod resize;
mod trainer;
mod unsaved;

pub(crate) use trainer::advice_ui;

use super::action::{Action, Actions};
use super::drafts::Dialog;
use super::drafts::connect::ConnectDialog;
use super::drafts::gallery::GalleryDialog;
use super::drafts::paste::PasteDialog;
use super::drafts::path::{PathDialog, Purpose, beside_home, file_name};
use super::drafts::unsaved::UnsavedDialog;
use super::hosts::Names;
use super::language::say;
use super::opening::Thumbnail;
use super::state::State;
use super::unsaved::Kept;
use super::widgets;
use crate::base::Diagnostic;
use crate::worker::protocol::folder::{FolderAsk, Listing};
use egui::Ui;
use std::path::PathBuf;

pub(super) fn save_as(state: &State) -> Dialog {
    let known = state.path.as_ref().map(|p| p.display().to_string());
    let suggestion = known.unwrap_or_else(|| beside_home(&file_name(&state.document.name, "json")));
    Dialog::Path(PathDialog::new(Purpose::Save, &suggestion))
}

pub(super) fn save_run(state: &State) -> Dialog {
    let name = file_name(&format!("{} run", state.document.name), "json");
    Dialog::Path(PathDialog::new(Purpose::SaveRun, &beside_home(&name)))
}

pub(super) fn paste(state: &State) -> Dialog {
    Dialog::Paste(PasteDialog::new(state.path.is_none()))
}

/// Starts reading the names of the ssh configuration too.
pub(super) fn connect(state: &State) -> Dialog {
    state.session.errands.ssh_names();
    Dialog::Connect(ConnectDialog::new(&state.view))
}

/// Starts drawing the small pictures too.
pub(super) fn gallery(state: &mut State) -> Dialog {
    let (made, presets, own) = GalleryDialog::new(&state.view.recent);
    state.session.errands.thumbnails(presets, own, gallery::SIZE);
    Dialog::Gallery(made)
}

/// Starts listing them too.
pub(super) fn list_unsaved(state: &State) -> Dialog {
    if let Some(root) = state.recovery.folder() {
        state.session.errands.unsaved(root.to_path_buf());
    }
    Dialog::Unsaved(UnsavedDialog::new(state.recovery.folder().is_some()))
}

/// What was typed and left is no value: the command that needs it waits.
pub(super) fn not_taken(state: &State, wrong: widgets::NotTaken) -> Dialog {
    let figures = [("name", wrong.name.into()), ("text", wrong.text.into())];
    Dialog::failure(&state.words().with("typed-not-taken", &figures), vec![wrong.why], None)
}

/// The state of a dialog after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Stay,
    Close,
}

/// Points between the window's upper edge and a dialog's.
const TOP: f32 = 24.0;

/// Shows the open dialog. Returns it unless it was closed.
pub(super) fn show(ctx: &egui::Context, state: &State, mut dialog: Dialog, actions: &mut Actions) -> Option<Dialog> {
    let width: f32 = match dialog {
        // pictures to look through: as many as fit
        Dialog::Gallery(_) => 1300.0,
        Dialog::Paste(_) | Dialog::Shortcuts | Dialog::Difference { .. } => 760.0,
        _ => 520.0,
    };
    // anchored at the top: the text field stays in its place while lines appear and disappear below
    let area = egui::Modal::default_area(widgets::id("dialog")).anchor(egui::Align2::CENTER_TOP, [0.0, TOP]);
    let modal = egui::Modal::new(widgets::id("dialog")).area(area).show(ctx, |ui| {
        ui.set_width(width.min(ctx.content_rect().width() - 60.0));
        // what does not fit into a small window can be scrolled to
        let height = room(ui, 40.0 + TOP);
        let scroll = egui::ScrollArea::vertical().id_salt("dialog").auto_shrink([false, true]);
        // the dialog grows with its contents, not only from the height of the frame before
        let scroll = scroll.max_height(height).min_scrolled_height(height);
        scroll.show(ui, |ui| contents(ui, state, &mut dialog, actions)).inner
    });
    // it is placed by the size of the frame before, which may have been another
    if (modal.response.rect.center().x - ctx.content_rect().center().x).abs() > 1.0 {
        ctx.request_repaint();
    }
    let escape = || ctx.input_mut(|i| i.consume_key(egui::Modifiers::NONE, egui::Key::Escape));
    let left = modal.response.should_close() || modal.is_top_modal && !modal.any_popup_open && escape();
    let beside = dialog.is_light() && modal.backdrop_response.clicked();
    match (modal.inner == Next::Close || left || beside, dialog) {
        (false, dialog) => Some(dialog),
        (true, Dialog::Failure { behind, .. } | Dialog::Leave { behind, .. }) => behind.map(|b| *b),
        (true, Dialog::Connect(_)) => {
            actions.push(Action::CancelConnect);
            None
        }
        (true, _) => None,
    }
}

fn contents(ui: &mut Ui, state: &State, dialog: &mut Dialog, actions: &mut Actions) -> Next {
    match dialog {
        Dialog::Path(dialog) => path::show(ui, state, dialog, actions),
        Dialog::Paste(dialog) => paste::show(ui, state, dialog, actions),
        Dialog::Connect(dialog) => connect::show(ui, state, dialog, actions),
        Dialog::Gallery(dialog) => gallery::show(ui, dialog, actions),
        Dialog::Resize(axes) => resize::show(ui, state, axes, actions),
        Dialog::Trainer(dialog) => trainer::show(ui, dialog, actions),
        Dialog::Palette(dialog) => palette::show(ui, state, dialog, actions),
        Dialog::Failure { title, why, .. } => lists::failure(ui, title, why),
        Dialog::Fetch(plan) => fetch::show(ui, plan, actions),
        Dialog::Leave { of, why, names, .. } => leave::show(ui, *of, why, names, actions),
        Dialog::Unsaved(dialog) => unsaved::show(ui, dialog, actions),
        Dialog::Difference { path, theirs, mine } => difference::show(ui, path, [theirs, mine], actions),
        Dialog::Jobs => jobs::show(ui, state, actions),
        Dialog::Shortcuts => lists::shortcuts(ui),
        Dialog::Messages => lists::messages(ui, state),
    }
}

/// Height of the window without `taken`, points.
fn room(ui: &Ui, taken: f32) -> f32 {
    (ui.ctx().content_rect().height() - taken).max(60.0)
}

/// A title and what follows it.
fn title(ui: &mut Ui, text: &str) {
    ui.heading(text);
    ui.add_space(4.0);
}

/// A native dialog has answered. None: cancelled, or (not `shown`) the system has none, which is reported.
pub(super) fn picked(state: &mut State, picked: Option<PathBuf>, shown: bool) {
    let Some(picked) = picked else {
        if !shown {
            let why = Diagnostic::warning("no-file-dialog", "this system has no file dialog (no XDG portal answers)");
            state.tell(why.hint("type the path; Open and Save list the folder below the field"));
        }
        return;
    };
    match &mut state.dialog {
        Some(Dialog::Path(dialog)) => dialog.pick(&picked),
        Some(_) => {}
        None => state.export.pick(picked),
    }
}

/// Names of the ssh configuration have been read.
pub(super) fn ssh_names(state: &mut State, mut names: Names) {
    names.unread.drain(..).for_each(|why| state.tell(why));
    if let Some(Dialog::Connect(dialog)) = &mut state.dialog {
        dialog.put(names);
    }
}

/// A folder has been listed.
pub(super) fn listed(state: &mut State, far: bool, ask: &FolderAsk, listing: Listing) {
    if let Some(Dialog::Path(dialog)) = &mut state.dialog {
        dialog.listed(far, ask, listing);
    }
}

/// Documents that were kept unsaved, or why they cannot be listed.
pub(super) fn unsaved(state: &mut State, list: Result<Vec<Kept>, Diagnostic>) {
    let Some(Dialog::Unsaved(dialog)) = &mut state.dialog else { return };
    match list {
        Ok(list) => dialog.put(list),
        Err(why) => {
            let title = state.words().text("unsaved-title");
            state.dialog = Some(Dialog::failure(title, vec![why], None));
        }
    }
}

/// A small picture has arrived, or the reason why there is none.
pub(super) fn thumbnail(state: &mut State, preset: String, picture: Result<Thumbnail, Diagnostic>) {
    if let Some(Dialog::Gallery(dialog)) = &mut state.dialog {
        dialog.put(preset, picture);
    }
}

/// The user's preset folder has been listed.
pub(super) fn own_presets(state: &mut State, folder: Option<PathBuf>, own: Vec<PathBuf>, why: Option<Diagnostic>) {
    why.into_iter().for_each(|why| state.tell(why));
    if let Some(Dialog::Gallery(dialog)) = &mut state.dialog {
        dialog.add(folder, own);
    }
}

/// A row of buttons at the end; true if the confirming button was clicked.
fn buttons(ui: &mut Ui, yes: &str, enabled: bool, next: &mut Next) -> bool {
    buttons_or(ui, yes, enabled, say(ui, "cancel"), next)
}

/// The same, with another word for closing.
fn buttons_or(ui: &mut Ui, yes: &str, enabled: bool, no: &str, next: &mut Next) -> bool {
    ui.add_space(8.0);
    let mut done = false;
    ui.horizontal(|ui| {
        let button = widgets::primary_button(ui, yes, enabled);
        // Enter belongs to a text with several lines
        let keys = ui.input_mut(|i| i.consume_key(egui::Modifiers::COMMAND, egui::Key::Enter));
        done = ui.add_enabled(enabled, button).on_hover_text("Ctrl+Enter").clicked() || (keys && enabled);
        if ui.button(no).clicked() {
            *next = Next::Close;
        }
    });
    done
}
