//! Dialogs over the window: one at a time, closed by Escape, each with its own small draft.
//!
//! Invariant: a dialog changes nothing but its draft; what it decides goes out as actions. Must not know how actions are
//! carried out.

mod connect;
mod export;
mod fetch;
mod gallery;
mod lists;
mod palette;
mod paste;
mod path;
mod resize;
mod trainer;

pub(crate) use trainer::advice_ui;

use super::action::{Action, Actions};
use super::exporting::{ExportWish, Pieces};
use super::state::State;
use super::widgets;
use crate::base::Diagnostic;
use crate::document::model::Axes;
use crate::service::doctor::mend::FetchPlan;
use egui::Ui;
use std::path::PathBuf;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Dialog {
    Path(path::PathDialog),
    Paste(paste::PasteDialog),
    Connect(connect::ConnectDialog),
    Gallery(gallery::GalleryDialog),
    Export(export::ExportDialog),
    /// New axes while painted cells exist.
    Resize(Axes),
    Trainer(Box<trainer::TrainerDialog>),
    Palette(palette::PaletteDialog),
    /// Something failed; what was asked before comes back after it.
    Failure {
        title: String,
        why: Vec<Diagnostic>,
        behind: Option<Box<Dialog>>,
    },
    /// Fetching NVRTC, after a yes.
    Fetch(FetchPlan),
    Shortcuts,
    Messages,
}

impl Dialog {
    pub fn open() -> Self {
        Dialog::Path(path::PathDialog::new(path::Purpose::Open, ""))
    }

    pub fn open_config() -> Self {
        Dialog::Path(path::PathDialog::new(path::Purpose::Config, ""))
    }

    pub fn link(score: bool) -> Self {
        Dialog::Path(path::PathDialog::new(path::Purpose::Link { score }, ""))
    }

    pub fn save_as(state: &State) -> Self {
        let known = state.path.as_ref().map(|p| p.display().to_string());
        let suggestion = known.unwrap_or_else(|| path::beside_home(&path::file_name(&state.document.name, "json")));
        Dialog::Path(path::PathDialog::new(path::Purpose::Save, &suggestion))
    }

    pub fn save_run(state: &State) -> Self {
        let name = path::file_name(&format!("{} run", state.document.name), "json");
        Dialog::Path(path::PathDialog::new(path::Purpose::SaveRun, &path::beside_home(&name)))
    }

    pub fn paste(state: &State) -> Self {
        Dialog::Paste(paste::PasteDialog::new(state.path.is_none()))
    }

    pub fn connect(state: &State) -> Self {
        let command = state.view.target.command.clone();
        Dialog::Connect(connect::ConnectDialog { command, python: state.view.python.clone().unwrap_or_default() })
    }

    /// Starts drawing the small pictures too.
    pub fn gallery(state: &mut State) -> Self {
        Dialog::Gallery(gallery::GalleryDialog::new(state))
    }

    pub fn export(state: &State) -> Self {
        Dialog::Export(export::ExportDialog::new(state))
    }

    pub fn palette() -> Self {
        Dialog::Palette(palette::PaletteDialog::default())
    }

    pub fn trainer(path: PathBuf, text: &str) -> Self {
        Dialog::Trainer(Box::new(trainer::TrainerDialog::new(path, text)))
    }

    pub fn failure(title: &str, why: Vec<Diagnostic>, behind: Option<Dialog>) -> Self {
        Dialog::Failure { title: title.into(), why, behind: behind.map(Box::new) }
    }
}

/// What becomes of a dialog after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Stay,
    Close,
}

/// Shows the open dialog. Returns it unless it was closed.
pub(super) fn show(ctx: &egui::Context, state: &State, mut dialog: Dialog, actions: &mut Actions) -> Option<Dialog> {
    let wide = matches!(dialog, Dialog::Gallery(_) | Dialog::Export(_) | Dialog::Paste(_) | Dialog::Shortcuts);
    let width: f32 = if wide { 760.0 } else { 520.0 };
    let modal = egui::Modal::new(widgets::id("dialog")).show(ctx, |ui| {
        ui.set_width(width.min(ctx.content_rect().width() - 60.0));
        // whatever does not fit into a small window is scrolled to
        let height = room(ui, 40.0);
        let scroll = egui::ScrollArea::vertical().id_salt("dialog").auto_shrink([false, true]);
        // the dialog grows with its contents, not only from the height of the frame before
        let scroll = scroll.max_height(height).min_scrolled_height(height);
        scroll.show(ui, |ui| contents(ui, state, &mut dialog, actions)).inner
    });
    // it is placed by the size of the frame before, which may have been another
    if (modal.response.rect.center().y - ctx.content_rect().center().y).abs() > 1.0 {
        ctx.request_repaint();
    }
    let closed = modal.inner == Next::Close || modal.should_close();
    match (closed, dialog) {
        (false, dialog) => Some(dialog),
        (true, Dialog::Failure { behind, .. }) => behind.map(|b| *b),
        (true, _) => None,
    }
}

fn contents(ui: &mut Ui, state: &State, dialog: &mut Dialog, actions: &mut Actions) -> Next {
    match dialog {
        Dialog::Path(dialog) => path::show(ui, state, dialog, actions),
        Dialog::Paste(dialog) => paste::show(ui, dialog, actions),
        Dialog::Connect(dialog) => connect::show(ui, state, dialog, actions),
        Dialog::Gallery(dialog) => gallery::show(ui, dialog, actions),
        Dialog::Export(dialog) => export::show(ui, state, dialog, actions),
        Dialog::Resize(axes) => resize::show(ui, state, axes, actions),
        Dialog::Trainer(dialog) => trainer::show(ui, dialog, actions),
        Dialog::Palette(dialog) => palette::show(ui, state, dialog, actions),
        Dialog::Failure { title, why, .. } => lists::failure(ui, title, why),
        Dialog::Fetch(plan) => fetch::show(ui, plan, actions),
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

/// A native dialog has answered. None: cancelled, or there is none on this system; the field is there either way.
pub(super) fn picked(state: &mut State, picked: Option<PathBuf>) {
    let Some(picked) = picked else { return };
    match &mut state.dialog {
        Some(Dialog::Path(dialog)) => dialog.pick(&picked),
        Some(Dialog::Export(dialog)) => dialog.pick(picked),
        _ => {}
    }
}

/// A small picture has come.
pub(super) fn thumbnail(state: &mut State, preset: String, size: usize, pixels: Vec<f32>) {
    if let Some(Dialog::Gallery(dialog)) = &mut state.dialog {
        dialog.put(preset, size, pixels);
    }
}

/// The files of an export have been made.
pub(super) fn exported(state: &mut State, wish: &ExportWish, pieces: Pieces) {
    if let Some(Dialog::Export(dialog)) = &mut state.dialog {
        dialog.put(wish, pieces);
    }
}

/// Files that an export would replace: the user is asked.
pub(super) fn ask_overwrite(state: &mut State, existing: Vec<String>) {
    if let Some(Dialog::Export(dialog)) = &mut state.dialog {
        dialog.existing = existing;
    }
}

/// A row of buttons at the end; true when the one that does it was clicked.
fn buttons(ui: &mut Ui, yes: &str, enabled: bool, next: &mut Next) -> bool {
    ui.add_space(8.0);
    let mut done = false;
    ui.horizontal(|ui| {
        let button = widgets::primary_button(ui, yes, enabled);
        done = ui.add_enabled(enabled, button).clicked();
        if ui.button("Cancel").clicked() {
            *next = Next::Close;
        }
    });
    done
}
