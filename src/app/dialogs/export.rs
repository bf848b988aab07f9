//! Export: where to, which config.json to change, and every file shown before it is written.
//!
//! Invariant: nothing is written before the user decides; existing files are asked about; how a configuration changes is
//! shown line by line. Must not know file formats.

use super::{Action, Actions, Next, State, buttons, path, title};
use crate::app::action::Pick;
use crate::app::exporting::{ExportWish, Made, Merged, Pieces};
use crate::app::theme;
use crate::app::widgets::diagnostic_below;
use crate::app::writing::Order;
use crate::base::{BackendName, Diagnostic};
use crate::export::ExportFile;
use crate::export::Trainer;
use crate::problem::result::{BackendReport, Outcome, RunReport};
use egui::{RichText, ScrollArea, TextEdit, Ui};
use std::path::PathBuf;

/// What the user asks for; the next export begins with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExportChoices {
    folder: String,
    config: String,
    /// The configuration is changed where it lies; else a changed copy goes into the folder.
    in_place: bool,
    trainer: Trainer,
    backend: Option<BackendName>,
    kernels: bool,
}

impl ExportChoices {
    /// The trainer's file.
    pub fn config_path(&self) -> Option<PathBuf> {
        Some(self.config.trim()).filter(|c| !c.is_empty()).map(path::expand)
    }

    /// Whether a copy in the folder would be the very file.
    fn beside(&self) -> bool {
        let folder = self.config_path().and_then(|c| c.parent().map(PathBuf::from));
        folder.is_some_and(|f| f == path::expand(&self.folder))
    }

    fn changes_file(&self) -> bool {
        self.config_path().is_some() && (self.in_place || self.beside())
    }
}

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct ExportDialog {
    choices: ExportChoices,
    /// What the pieces are, or will be, made for.
    wish: Option<ExportWish>,
    pieces: Option<Pieces>,
    /// Files are being made, perhaps for an older wish: one export at a time.
    making: bool,
    shown: usize,
    /// The picture that was shown last.
    picture: Option<Picture>,
    /// Files that would be replaced; the user is asked.
    pub existing: Vec<String>,
    /// It is being written.
    pub writing: bool,
    /// Which field a native dialog fills.
    picking_config: bool,
}

impl ExportDialog {
    pub fn new(state: &State) -> Self {
        Self {
            choices: state.export.clone().unwrap_or_else(|| Self::first(state)),
            wish: None,
            pieces: None,
            making: false,
            shown: 0,
            picture: None,
            existing: Vec::new(),
            writing: false,
            picking_config: false,
        }
    }

    /// What a document's first export begins with.
    fn first(state: &State) -> ExportChoices {
        let config = state.config.as_ref().map(|c| c.display().to_string()).unwrap_or_default();
        let beside = state.config.as_ref().or(state.path.as_ref()).and_then(|p| p.parent());
        let folder = match beside {
            Some(folder) if state.config.is_some() => folder.display().to_string(),
            Some(folder) => folder.join("export").display().to_string(),
            None => path::beside_home("maskloom-export"),
        };
        let trainer = Trainer::SimpleTuner;
        ExportChoices { folder, config, in_place: true, trainer, backend: None, kernels: false }
    }

    /// Whether the files are there, or why they cannot be.
    #[cfg(test)]
    pub fn is_ready(&self) -> bool {
        self.pieces.is_some()
    }

    /// What is asked for now.
    pub fn choices(&self) -> ExportChoices {
        self.choices.clone()
    }

    /// A native dialog has answered.
    pub fn pick(&mut self, picked: PathBuf) {
        let field = if self.picking_config { &mut self.choices.config } else { &mut self.choices.folder };
        *field = picked.display().to_string();
    }

    /// The files have been made.
    pub fn put(&mut self, wish: &ExportWish, pieces: Pieces) {
        self.making = false;
        if self.wish.as_ref() == Some(wish) {
            self.pieces = Some(pieces);
        }
    }

    /// Asks for the files anew where the choices or the document have changed.
    fn follow(&mut self, state: &State, actions: &mut Actions) {
        let Some(built) = &state.session.built else { return };
        let wish = ExportWish {
            revision: built.revision,
            config: self.choices.config_path(),
            trainer: self.choices.trainer,
            backend: self.choices.backend,
            measured: measured(state),
            kernels: self.choices.kernels,
            run: race(state),
            shown: (state.focus.b, state.focus.h),
        };
        if self.wish.as_ref() != Some(&wish) {
            (self.wish, self.pieces) = (Some(wish.clone()), None);
            self.existing.clear();
        }
        // a path that is typed is a new wish with every key
        if self.pieces.is_none() && !self.making {
            self.making = true;
            actions.push(Action::MakeExport(wish));
        }
    }
}

/// The last race, where it still is of the document, all of it.
fn race(state: &State) -> Option<Box<RunReport>> {
    state.session.race.as_ref().filter(|race| !race.stale && race.is_whole())?.report.clone()
}

/// The fastest right backend of the last race, where it ran without a mask.
fn measured(state: &State) -> Option<BackendName> {
    let race = state.session.race.as_ref().filter(|race| !race.stale && race.is_whole())?;
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
    setting(ui, &mut dialog.choices);
    dialog.follow(state, actions);
    let mut next = Next::Stay;
    let made = match &dialog.pieces {
        Some(Ok(made)) => made.clone(),
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
    let at = dialog.shown.min(made.files.len().saturating_sub(1));
    dialog.shown = choice(ui, at, &made.files);
    match (dialog.shown, &made.merged) {
        (0, Some(merged)) => difference(ui, merged),
        (at, _) => {
            if let Some(file) = made.files.get(at) {
                preview(ui, &mut dialog.picture, file);
            }
        }
    }
    ScrollArea::vertical().id_salt("notes").max_height(90.0).show(ui, |ui| {
        made.notes.iter().for_each(|note| diagnostic_below(ui, &with_folder(note, &dialog.choices.folder)));
    });
    let overwrite = !dialog.existing.is_empty();
    if overwrite {
        ui.colored_label(ui.visuals().warn_fg_color, would_be_replaced(&dialog.existing))
            .on_hover_text(dialog.existing.join("\n"));
    }
    let yes = if overwrite { "Replace them" } else { "Write the files" };
    let ready = !dialog.choices.folder.trim().is_empty() && !made.files.is_empty() && !dialog.writing;
    if buttons(ui, yes, ready, &mut next) {
        actions.push(Action::Export(order(&dialog.choices, made, overwrite)));
        dialog.writing = true;
    }
    next
}

/// What is to be written: a configuration that is changed where it lies does not go into the folder too.
fn order(choices: &ExportChoices, made: Made, overwrite: bool) -> Order {
    let merged = made.merged.filter(|_| choices.changes_file());
    let skipped = usize::from(merged.is_some());
    let files = made.files.into_iter().skip(skipped).map(|f| (f.name, f.bytes)).collect();
    Order { folder: path::expand(&choices.folder), files, merged, overwrite }
}

/// Words that speak of the export's folder name the real one.
fn with_folder(note: &Diagnostic, folder: &str) -> Diagnostic {
    let folder = path::expand(folder).display().to_string();
    let hint = note.hint.as_ref().map(|hint| hint.replace("EXPORT", &folder));
    Diagnostic { hint, ..note.clone() }
}

/// How the configuration changes: lines that go in red, lines that come in green, with the lines around them.
fn difference(ui: &mut Ui, merged: &Merged) {
    let colours = theme::palette(ui.visuals());
    ui.weak(merged.path.display().to_string());
    let lines = changed_lines(&merged.before, &merged.after);
    if lines.iter().all(|(mark, _)| *mark == ' ') {
        ui.label("The file has the setting already: it is not touched.");
    }
    ScrollArea::both().id_salt("difference").max_height(200.0).auto_shrink([false, true]).show(ui, |ui| {
        for (mark, line) in lines {
            let text = RichText::new(format!("{mark} {line}")).monospace();
            let text = match mark {
                '-' => text.color(colours.error),
                '+' => text.color(colours.good),
                _ => text.weak(),
            };
            ui.add(egui::Label::new(text).extend());
        }
    });
}

/// The lines that differ, marked `-` and `+`, and three on either side of them.
fn changed_lines(before: &[u8], after: &[u8]) -> Vec<(char, String)> {
    const AROUND: usize = 3;
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let shorter = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(|(a, b)| a == b).count();
    let mut out: Vec<(char, String)> = Vec::new();
    let mut put = |mark: char, lines: &[&str]| out.extend(lines.iter().map(|line| (mark, line.to_string())));
    put(' ', &old[start.saturating_sub(AROUND)..start]);
    put('-', &old[start..old.len() - end]);
    put('+', &new[start..new.len() - end]);
    put(' ', &old[old.len() - end..(old.len() - end + AROUND).min(old.len())]);
    out
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
        let response =
            ui.add(TextEdit::singleline(&mut dialog.choices.folder).desired_width(width)).labelled_by(label.id);
        if response.changed() {
            dialog.existing.clear();
        }
        if ui.button("Browse…").on_hover_text("Chooses the folder.").clicked() {
            dialog.picking_config = false;
            actions.push(Action::Pick(Pick::Folder));
        }
    });
    ui.horizontal(|ui| {
        let label = ui.label("The trainer's config.json");
        let width = ui.available_width() - 90.0;
        let field = TextEdit::singleline(&mut dialog.choices.config).desired_width(width).hint_text("none: a new one");
        ui.add(field).labelled_by(label.id);
        if ui.button("Browse…").on_hover_text("Chooses the configuration.").clicked() {
            dialog.picking_config = true;
            actions.push(Action::Pick(Pick::File("config.json", &["json"])));
        }
    });
    let choices = &mut dialog.choices;
    let Some(config) = choices.config_path() else { return };
    let name = config.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let copy = path::expand(&choices.folder).join(&name);
    let beside = choices.beside();
    ui.horizontal_wrapped(|ui| {
        let words = format!("{} gets the value; what it was stays beside it as {name}.bak.", config.display());
        ui.radio_value(&mut choices.in_place, true, "Change this file").on_hover_text(words);
        ui.add_enabled_ui(!beside, |ui| {
            let words = format!("Write a changed copy: {}", copy.display());
            ui.radio_value(&mut choices.in_place, false, words).on_hover_text("The file itself stays as it is.");
        });
    });
}

/// Whose setting, and which backend it selects.
fn setting(ui: &mut Ui, dialog: &mut ExportChoices) {
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
        ui.add(egui::Label::new(RichText::new(text_of(file)).monospace()).extend());
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
    fn a_change_is_shown_by_its_lines() {
        let lines = |before: &str, after: &str| -> Vec<String> {
            let marked = changed_lines(before.as_bytes(), after.as_bytes());
            marked.into_iter().map(|(mark, line)| format!("{mark}{line}")).collect()
        };
        let before = "{\n a\n b\n c\n d\n \"x\": 1,\n e\n}\n";
        let after = before.replace("\"x\": 1", "\"x\": 2");
        assert_eq!(lines(before, &after), ["  b", "  c", "  d", "- \"x\": 1,", "+ \"x\": 2,", "  e", " }"]);
        assert_eq!(lines("a\n", "a\nb\n"), [" a", "+b"]);
        assert_eq!(lines("a\na\n", "a\n"), [" a", "-a"]);
        assert_eq!(lines("a\n", "a\n"), [" a"]);
        assert_eq!(lines("", "{}\n"), ["+{}"]);
    }

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
