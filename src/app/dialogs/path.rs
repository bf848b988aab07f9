//! A path to open or save: a field, what lies in its folder, a native dialog, the recent files.
//!
//! Invariant: works without any native dialog; nothing is opened or written before the user decides. Must not know what
//! files mean.

use super::{Action, Actions, Next, State, buttons, title};
use crate::app::action::Pick;
use crate::app::browse::Listing;
use crate::app::widgets::diagnostic_below;
use egui::{ScrollArea, TextEdit, Ui};
use std::path::{Path, PathBuf};

/// What the path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Open,
    Config,
    Save,
    SaveRun,
    /// The capture script.
    SaveRecorder,
    Link {
        score: bool,
    },
}

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct PathDialog {
    purpose: Purpose,
    text: String,
    /// A native dialog has decided.
    decided: bool,
    focused: bool,
    /// The path that would be overwritten, asked about.
    asked: Option<String>,
    /// The folder that was asked for last, and what lies in it.
    folder: Option<PathBuf>,
    listing: Option<Listing>,
}

impl PathDialog {
    pub fn new(purpose: Purpose, text: &str) -> Self {
        Self { purpose, text: text.into(), decided: false, focused: false, asked: None, folder: None, listing: None }
    }

    /// A native dialog has answered.
    pub fn pick(&mut self, picked: &Path) {
        (self.text, self.decided) = (picked.display().to_string(), true);
    }

    /// A folder has been listed.
    pub fn listed(&mut self, listing: Listing) {
        if self.folder.as_ref() == Some(&listing.folder) {
            self.listing = Some(listing);
        }
    }

    /// The folder of the path as it is typed: of `a/b` it is `a`, of `a/` too.
    fn typed_folder(&self, state: &State) -> PathBuf {
        let text = self.text.trim();
        let typed = expand(text);
        let folder = if text.ends_with(['/', '\\']) { Some(typed.as_path()) } else { typed.parent() };
        let typed = folder.filter(|f| !f.as_os_str().is_empty()).map(Path::to_path_buf);
        let known = || state.path.as_ref().or(state.view.recent.first())?.parent().map(Path::to_path_buf);
        typed.or_else(known).or_else(home).unwrap_or_else(|| PathBuf::from("."))
    }

    fn extensions(&self) -> &'static [&'static str] {
        match self.purpose {
            Purpose::Open => &["json", "py", "safetensors", "npy", "pt", "txt"],
            Purpose::Config | Purpose::Save | Purpose::SaveRun => &["json"],
            Purpose::Link { .. } | Purpose::SaveRecorder => &["py"],
        }
    }

    pub fn saves(&self) -> bool {
        matches!(self.purpose, Purpose::Save | Purpose::SaveRun | Purpose::SaveRecorder)
    }

    fn native(&self) -> Pick {
        match self.purpose {
            Purpose::Open => Pick::File("documents, code, tensors", &["json", "py", "safetensors"]),
            Purpose::Config => Pick::File("config.json", &["json"]),
            Purpose::Link { .. } => Pick::File("Python", &["py"]),
            Purpose::Save | Purpose::SaveRun | Purpose::SaveRecorder => {
                let name = PathBuf::from(&self.text).file_name().map(|n| n.to_string_lossy().into_owned());
                Pick::Save(name.unwrap_or_else(|| "mask.json".into()))
            }
        }
    }

    fn action(&self) -> Action {
        let path = expand(&self.text);
        match self.purpose {
            Purpose::Open => Action::Open(path),
            Purpose::Config => Action::OpenConfig(path),
            Purpose::Save => Action::SaveTo(path),
            Purpose::SaveRun => Action::SaveRunTo(path),
            Purpose::SaveRecorder => Action::SaveRecorderTo(path),
            Purpose::Link { score } => Action::LinkCode { path: path.display().to_string(), score },
        }
    }

    fn words(&self) -> (&'static str, &'static str) {
        match self.purpose {
            Purpose::Open => ("Open a document, code, a run or tensors", "Open"),
            Purpose::Config => ("Open a trainer's config.json", "Open"),
            Purpose::Save => ("Save the document", "Save"),
            Purpose::SaveRun => ("Save the run", "Save"),
            Purpose::SaveRecorder => ("Save the capture script", "Save"),
            Purpose::Link { .. } => ("Link a Python file with FlexAttention code", "Link"),
        }
    }
}

/// `~` is the home folder, as in a shell.
pub(crate) fn expand(text: &str) -> PathBuf {
    let text = text.trim();
    match (text.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

fn home() -> Option<PathBuf> {
    directories::UserDirs::new().map(|dirs| dirs.home_dir().to_path_buf())
}

/// A place for a new file: the folder the window was started in, or the home folder.
pub(crate) fn beside_home(name: &str) -> String {
    let folder = std::env::current_dir().ok().filter(|f| f.parent().is_some()).or_else(home).unwrap_or_default();
    folder.join(name).display().to_string()
}

/// A title as a file name.
pub(super) fn file_name(title: &str, extension: &str) -> String {
    let plain: String = title.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    format!("{}.{extension}", if plain.is_empty() { "mask" } else { plain })
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
    // below the buttons, which so stay where they are while folders come and go
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
        let response = ui.add(TextEdit::singleline(&mut dialog.text).desired_width(width)).labelled_by(label.id);
        if !dialog.focused {
            response.request_focus();
            dialog.focused = true;
        }
        if ui.button("Browse…").on_hover_text("Opens the system's file dialog, if there is one.").clicked() {
            actions.push(Action::Pick(dialog.native()));
        }
        response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter))
    });
    row.inner
}

/// What lies in the folder of the path: a click takes it.
fn folder(ui: &mut Ui, state: &State, dialog: &mut PathDialog, actions: &mut Actions) {
    let folder = dialog.typed_folder(state);
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
