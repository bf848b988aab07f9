//! Export: where to, merged into which config.json, and every file shown before it is written.
//!
//! Invariant: nothing is written before the user decides; existing files are asked about. Must not know file formats.

use super::{Action, Actions, Next, State, buttons, path, title};
use crate::app::action::Pick;
use crate::app::exporting::{Piece, pieces};
use crate::app::widgets::diagnostic_below;
use crate::base::Diagnostic;
use egui::{ScrollArea, TextEdit, Ui};
use std::path::PathBuf;

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct ExportDialog {
    folder: String,
    config: String,
    /// What the pieces were made for.
    made_for: Option<(String, u64)>,
    pieces: Result<Vec<Piece>, Vec<Diagnostic>>,
    shown: usize,
    /// Files that would be replaced; the user is asked.
    pub existing: Vec<String>,
    /// Which field a native dialog fills.
    picking_config: bool,
}

impl ExportDialog {
    pub fn new(state: &State) -> Self {
        let config = state.config.as_ref().map(|c| c.display().to_string()).unwrap_or_default();
        let beside = state.config.as_ref().or(state.path.as_ref()).and_then(|p| p.parent());
        let folder = match beside {
            Some(folder) if state.config.is_some() => folder.display().to_string(),
            Some(folder) => folder.join("export").display().to_string(),
            None => path::beside_home("maskloom-export"),
        };
        Self {
            folder,
            config,
            made_for: None,
            pieces: Ok(Vec::new()),
            shown: 0,
            existing: Vec::new(),
            picking_config: false,
        }
    }

    /// A native dialog has answered.
    pub fn pick(&mut self, picked: PathBuf) {
        let field = if self.picking_config { &mut self.config } else { &mut self.folder };
        *field = picked.display().to_string();
    }

    /// Makes the files anew where the configuration or the document has changed.
    fn follow(&mut self, state: &State) {
        let wanted = (self.config.clone(), state.session.built.as_ref().map_or(0, |b| b.revision));
        if self.made_for.as_ref() == Some(&wanted) {
            return;
        }
        self.made_for = Some(wanted);
        let config = Some(self.config.trim()).filter(|c| !c.is_empty()).map(path::expand);
        self.pieces = pieces(state, config.as_deref());
        self.existing.clear();
    }
}

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut ExportDialog, actions: &mut Actions) -> Next {
    title(ui, "Export");
    fields(ui, dialog, actions);
    dialog.follow(state);
    let mut next = Next::Stay;
    let files = match &dialog.pieces {
        Ok(files) => files.clone(),
        Err(why) => {
            why.iter().for_each(|d| diagnostic_below(ui, d));
            buttons(ui, "Export", false, &mut next);
            return next;
        }
    };
    preview(ui, &mut dialog.shown, &files);
    let overwrite = !dialog.existing.is_empty();
    if overwrite {
        let names = dialog.existing.join(", ");
        ui.colored_label(ui.visuals().warn_fg_color, format!("These exist and would be replaced: {names}."));
    }
    let yes = if overwrite { "Replace them" } else { "Write the files" };
    if buttons(ui, yes, !dialog.folder.trim().is_empty() && !files.is_empty(), &mut next) {
        let files = files.into_iter().map(|f| (f.name, f.bytes)).collect();
        actions.push(Action::Export { folder: path::expand(&dialog.folder), files, overwrite });
    }
    next
}

fn fields(ui: &mut Ui, dialog: &mut ExportDialog, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let label = ui.label("Folder");
        let width = ui.available_width() - 90.0;
        let response = ui.add(TextEdit::singleline(&mut dialog.folder).desired_width(width)).labelled_by(label.id);
        if response.changed() {
            dialog.existing.clear();
        }
        if ui.button("Browse…").on_hover_text("Chooses the folder.").clicked() {
            dialog.picking_config = false;
            actions.push(Action::Pick(Pick::Folder));
        }
    });
    ui.horizontal(|ui| {
        let label = ui.label("Merge into config.json");
        let width = ui.available_width() - 90.0;
        let field = TextEdit::singleline(&mut dialog.config).desired_width(width).hint_text("none: a new one");
        ui.add(field).labelled_by(label.id);
        if ui.button("Browse…").on_hover_text("Chooses the configuration.").clicked() {
            dialog.picking_config = true;
            actions.push(Action::Pick(Pick::File("config.json", &["json"])));
        }
    });
}

fn preview(ui: &mut Ui, shown: &mut usize, files: &[Piece]) {
    const SHOWN: usize = 20_000;
    ui.add_space(6.0);
    ui.horizontal_wrapped(|ui| {
        for (at, file) in files.iter().enumerate() {
            ui.selectable_value(shown, at, &file.name).on_hover_text(&file.what);
        }
    });
    let Some(file) = files.get((*shown).min(files.len().saturating_sub(1))) else { return };
    ui.weak(format!("{} ({} bytes)", file.what, file.bytes.len()));
    ScrollArea::both().max_height(260.0).auto_shrink([false, false]).show(ui, |ui| {
        let start = &file.bytes[..file.bytes.len().min(SHOWN)];
        let text = match std::str::from_utf8(start) {
            Ok(text) => text.to_string(),
            // cut inside a character
            Err(e) if e.valid_up_to() + 4 > start.len() => String::from_utf8_lossy(&start[..e.valid_up_to()]).into(),
            Err(_) => "not text".into(),
        };
        ui.add(egui::Label::new(egui::RichText::new(text).monospace()).extend());
    });
}
