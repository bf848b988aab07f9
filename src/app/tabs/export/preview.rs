//! A preview of an export's files: texts, tensors, pictures, and the changes of a configuration.
//!
//! Invariant: it shows the bytes to be written; nothing is written here. Must not know where they go.

use crate::app::changed_lines;
use crate::app::drafts::export::Picture;
use crate::app::exporting::Merged;
use crate::app::language::{say, say_with, words};
use crate::export::ExportFile;
use egui::{RichText, ScrollArea, Ui};

/// Height of a preview, in points.
const HEIGHT: f32 = 220.0;

/// How the configuration changes: lines that go in red, lines that come in green, with the lines around them.
pub(super) fn difference(ui: &mut Ui, merged: &Merged) {
    ui.weak(merged.path.display().to_string());
    let (before, after) = (&merged.before, &merged.after);
    if before == after {
        ui.label(say(ui, "export-has-setting"));
    }
    changed_lines::show(ui, (before, after), 200.0);
}

/// The content of a file: its picture, its tensors, or its text.
pub(super) fn preview(ui: &mut Ui, picture: &mut Option<Picture>, file: &ExportFile) {
    let figures = [("what", words(ui.ctx()).phrase(&file.what).into()), ("bytes", file.bytes.len().into())];
    ui.weak(say_with(ui, "export-file-tip", &figures));
    let height = HEIGHT;
    ScrollArea::both().id_salt("preview").max_height(height).auto_shrink([false, true]).show(ui, |ui| {
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
        ui.add(egui::Label::new(RichText::new(text_of(say(ui, "export-binary"), file)).monospace()).extend());
    });
}

/// A file's text, or a description of its content; `binary` says that it has none.
fn text_of(binary: &str, file: &ExportFile) -> String {
    const SHOWN: usize = 20_000;
    if let Some(tensors) = file.name.ends_with(".safetensors").then(|| tensors_of(&file.bytes)).flatten() {
        return tensors;
    }
    let start = &file.bytes[..file.bytes.len().min(SHOWN)];
    match std::str::from_utf8(start) {
        Ok(text) => text.to_string(),
        // cut inside a character
        Err(e) if e.valid_up_to() + 4 > start.len() => String::from_utf8_lossy(&start[..e.valid_up_to()]).into(),
        Err(_) => binary.into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_has_a_preview() {
        let tensor = crate::base::HostTensor::vector(crate::base::tensor::Data::I32(vec![1, 2, 3]));
        let bytes = crate::worker::tensors::write([("kv_indices".to_string(), &tensor)]).expect("written");
        let shown = |name: &str, bytes: &[u8]| {
            text_of("machine code", &ExportFile::new(crate::export::ExportKind::Module, name, bytes, "what"))
        };
        assert_eq!(shown("a.safetensors", &bytes), "kv_indices: I32 [3]\n");
        assert_eq!(shown("a.py", "# Ünicode".as_bytes()), "# Ünicode");
        assert!(shown("a.cubin", &[0xff, 0xfe, 0x00, 0x80]).starts_with("machine code"));
        let long = "ü".repeat(20_000);
        assert_eq!(shown("a.py", long.as_bytes()), "ü".repeat(10_000));
    }
}
