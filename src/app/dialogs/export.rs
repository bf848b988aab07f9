//! Export: where to, merged into which config.json, and every file shown before it is written.
//!
//! Invariant: nothing is written before the user decides; existing files are asked about. Must not know file formats.

use super::{Action, Actions, Next, State, buttons, path, title};
use crate::app::action::Pick;
use crate::app::exporting::{ExportWish, Pieces};
use crate::app::widgets::diagnostic_below;
use crate::base::BackendName;
use crate::export::ExportFile;
use crate::export::Trainer;
use crate::problem::result::{BackendReport, Outcome, RunReport};
use egui::{ScrollArea, TextEdit, Ui};
use std::path::PathBuf;

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct ExportDialog {
    folder: String,
    config: String,
    trainer: Trainer,
    backend: Option<BackendName>,
    kernels: bool,
    /// What the pieces are, or will be, made for.
    wish: Option<ExportWish>,
    pieces: Option<Pieces>,
    shown: usize,
    /// The picture that was shown last.
    picture: Option<Picture>,
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
            trainer: Trainer::SimpleTuner,
            backend: None,
            kernels: false,
            wish: None,
            pieces: None,
            shown: 0,
            picture: None,
            existing: Vec::new(),
            picking_config: false,
        }
    }

    /// A native dialog has answered.
    pub fn pick(&mut self, picked: PathBuf) {
        let field = if self.picking_config { &mut self.config } else { &mut self.folder };
        *field = picked.display().to_string();
    }

    /// The files have been made.
    pub fn put(&mut self, wish: &ExportWish, pieces: Pieces) {
        if self.wish.as_ref() == Some(wish) {
            self.pieces = Some(pieces);
        }
    }

    /// Asks for the files anew where the choices or the document have changed.
    fn follow(&mut self, state: &State, actions: &mut Actions) {
        let Some(built) = &state.session.built else { return };
        let wish = ExportWish {
            revision: built.revision,
            config: Some(self.config.trim()).filter(|c| !c.is_empty()).map(path::expand),
            trainer: self.trainer,
            backend: self.backend,
            measured: measured(state),
            kernels: self.kernels,
            run: race(state),
            shown: (state.focus.b, state.focus.h),
        };
        if self.wish.as_ref() != Some(&wish) {
            (self.wish, self.pieces) = (Some(wish.clone()), None);
            self.existing.clear();
            actions.push(Action::MakeExport(wish));
        }
    }
}

/// The last race, where it still is of the document.
fn race(state: &State) -> Option<Box<RunReport>> {
    state.session.race.as_ref().filter(|race| !race.stale)?.report.clone()
}

/// The fastest right backend of the last race, where it ran without a mask.
fn measured(state: &State) -> Option<BackendName> {
    let race = state.session.race.as_ref()?;
    let (request, _) = race.request.as_ref()?;
    if request.problem.mask.is_some() || request.problem.score.is_some() {
        return None;
    }
    let time = |report: &BackendReport| match &report.outcome {
        Outcome::Done { timing: Some(timing), error, .. } if error.passed() => Some(timing.median_ms),
        _ => None,
    };
    let timed = race.reports.iter().filter_map(|r| Some((r.backend, time(r)?)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(backend, _)| backend)
}

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut ExportDialog, actions: &mut Actions) -> Next {
    title(ui, "Export");
    fields(ui, dialog, actions);
    setting(ui, dialog);
    dialog.follow(state, actions);
    let mut next = Next::Stay;
    let (files, notes) = match &dialog.pieces {
        Some(Ok((files, notes))) => (files.clone(), notes.clone()),
        Some(Err(why)) => {
            why.iter().for_each(|d| diagnostic_below(ui, d));
            buttons(ui, "Write the files", false, &mut next);
            return next;
        }
        None => {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label("making the files");
            });
            buttons(ui, "Write the files", false, &mut next);
            return next;
        }
    };
    let at = dialog.shown.min(files.len().saturating_sub(1));
    dialog.shown = choice(ui, at, &files);
    if let Some(file) = files.get(dialog.shown) {
        preview(ui, &mut dialog.picture, file);
    }
    ScrollArea::vertical().id_salt("notes").max_height(90.0).show(ui, |ui| {
        notes.iter().for_each(|note| diagnostic_below(ui, note));
    });
    let overwrite = !dialog.existing.is_empty();
    if overwrite {
        ui.colored_label(ui.visuals().warn_fg_color, would_be_replaced(&dialog.existing))
            .on_hover_text(dialog.existing.join("\n"));
    }
    let yes = if overwrite { "Replace them" } else { "Write the files" };
    if buttons(ui, yes, !dialog.folder.trim().is_empty() && !files.is_empty(), &mut next) {
        let files = files.into_iter().map(|f| (f.name, f.bytes)).collect();
        actions.push(Action::Export { folder: path::expand(&dialog.folder), files, overwrite });
    }
    next
}

/// The first few names; the dialog must not grow out of the window.
fn would_be_replaced(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} exist and would be replaced: {}{more}.", names.len(), names[..names.len().min(SHOWN)].join(", "))
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

/// Whose setting, and which backend it selects.
fn setting(ui: &mut Ui, dialog: &mut ExportDialog) {
    ui.horizontal(|ui| {
        ui.radio_value(&mut dialog.trainer, Trainer::SimpleTuner, "SimpleTuner");
        ui.radio_value(&mut dialog.trainer, Trainer::Transformers, "transformers");
        ui.separator();
        ui.label(dialog.trainer.key());
        let name = |backend: Option<BackendName>| match backend {
            None => "the safe one".to_string(),
            Some(backend) => format!("{} ({backend})", dialog.trainer.value(backend).0),
        };
        let choices = [BackendName::Eager, BackendName::Sdpa, BackendName::FlashAttention2, BackendName::Flex];
        let combo = egui::ComboBox::from_id_salt("setting").selected_text(name(dialog.backend)).width(200.0);
        let shown = combo.show_ui(ui, |ui| {
            let mut chosen = dialog.backend;
            for choice in [None].into_iter().chain(choices.map(Some)) {
                ui.selectable_value(&mut chosen, choice, name(choice));
            }
            chosen
        });
        let words = "The value that the trainer's configuration gets. flex is never chosen unasked.";
        shown.response.accessible_name("Attention setting").on_hover_text(words);
        if let Some(chosen) = shown.inner {
            dialog.backend = chosen;
        }
        ui.checkbox(&mut dialog.kernels, "our kernel").on_hover_text(
            "Also the CUDA kernel, compiled for sm_80 and sm_90a, as a PyTorch operator. Needs NVRTC here, no GPU.",
        );
    });
}

/// The files' names; the chosen one.
fn choice(ui: &mut Ui, mut shown: usize, files: &[ExportFile]) -> usize {
    ui.add_space(6.0);
    ui.horizontal_wrapped(|ui| {
        for (at, file) in files.iter().enumerate() {
            ui.selectable_value(&mut shown, at, &file.name).on_hover_text(&file.what);
        }
    });
    shown
}

/// What is in a file: its picture, its tensors, or its text.
fn preview(ui: &mut Ui, picture: &mut Option<Picture>, file: &ExportFile) {
    ui.weak(format!("{} ({} bytes)", file.what, file.bytes.len()));
    // in a small window the notes and the buttons below stay in sight
    const BELOW: f32 = 170.0;
    let height = (super::room(ui, 40.0) - ui.min_rect().height() - BELOW).clamp(60.0, 240.0);
    ScrollArea::both().id_salt("preview").max_height(height).auto_shrink([false, false]).show(ui, |ui| {
        if file.name.ends_with(".png") {
            let is_it = |p: &Picture| p.bytes == file.bytes;
            if !picture.as_ref().is_some_and(is_it) {
                *picture = Picture::decode(ui.ctx(), file);
            }
            if let Some(picture) = picture {
                let size = picture.texture.size_vec2();
                let shown = size * (height / size.y).min(ui.available_width() / size.x).min(1.0);
                return drop(ui.image((picture.texture.id(), shown)));
            }
        }
        ui.add(egui::Label::new(egui::RichText::new(text_of(file)).monospace()).extend());
    });
}

/// A file's text, or what it holds in words.
fn text_of(file: &ExportFile) -> String {
    const SHOWN: usize = 20_000;
    if let Some(tensors) = file.name.ends_with(".safetensors").then(|| tensors_of(&file.bytes)).flatten() {
        return tensors;
    }
    let start = &file.bytes[..file.bytes.len().min(SHOWN)];
    match std::str::from_utf8(start) {
        Ok(text) => text.to_string(),
        // cut inside a character
        Err(e) if e.valid_up_to() + 4 > start.len() => String::from_utf8_lossy(&start[..e.valid_up_to()]).into(),
        Err(_) => "machine code or other bytes: there is no text to show".into(),
    }
}

/// A tensor a line: name, dtype, shape.
fn tensors_of(bytes: &[u8]) -> Option<String> {
    let file = safetensors::SafeTensors::deserialize(bytes).ok()?;
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let line = |(name, view): &(String, safetensors::tensor::TensorView)| {
        format!("{name}: {:?} {:?}\n", view.dtype(), view.shape())
    };
    Some(tensors.iter().map(line).collect())
}

/// A picture of the export on the graphics card.
#[derive(Clone)]
struct Picture {
    bytes: Vec<u8>,
    texture: egui::TextureHandle,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({} bytes)", self.bytes.len())
    }
}

impl Picture {
    fn decode(ctx: &egui::Context, file: &ExportFile) -> Option<Picture> {
        let image = image::load_from_memory_with_format(&file.bytes, image::ImageFormat::Png).ok()?.to_rgba8();
        let size = [image.width() as usize, image.height() as usize];
        let pixels = egui::ColorImage::from_rgba_unmultiplied(size, &image);
        let texture = ctx.load_texture(&file.name, pixels, egui::TextureOptions::LINEAR);
        Some(Picture { bytes: file.bytes.clone(), texture })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_has_a_preview() {
        let tensor = crate::base::HostTensor::vector(crate::base::tensor::Data::I32(vec![1, 2, 3]));
        let bytes = crate::service::tensors::write([("kv_indices".to_string(), &tensor)]).expect("written");
        let shown = |name: &str, bytes: &[u8]| text_of(&ExportFile::new(name, bytes, "what"));
        assert_eq!(shown("a.safetensors", &bytes), "kv_indices: I32 [3]\n");
        assert_eq!(shown("a.py", "# Ünicode".as_bytes()), "# Ünicode");
        assert!(shown("a.cubin", &[0xff, 0xfe, 0x00, 0x80]).starts_with("machine code"));
        let long = "ü".repeat(20_000);
        assert_eq!(shown("a.py", long.as_bytes()), "ü".repeat(10_000));
    }
}
