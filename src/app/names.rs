//! The accessible names of what the window shows, written to a file if `MASKLOOM_NAMES` is set: a script finds a button by its name.
//!
//! Invariant: without the variable nothing is recorded or written; with it the file is that of the newest frame, whole, and is
//! written only when it changes. It is what a screen reader is told. Must not know what is drawn.

use egui::accesskit::{Node, Role, TreeUpdate};
use std::fmt::Write;
use std::path::PathBuf;

/// The variable that names the file.
const VARIABLE: &str = "MASKLOOM_NAMES";

/// Writes the names after each frame.
struct Names {
    file: PathBuf,
    written: String,
}

/// Records names for the variable's file, if it is set.
pub(super) fn begin(ctx: &egui::Context) {
    if let Some(file) = std::env::var_os(VARIABLE).filter(|file| !file.is_empty()) {
        ctx.enable_accesskit();
        ctx.add_plugin(Names { file: file.into(), written: String::new() });
    }
}

impl egui::Plugin for Names {
    fn debug_name(&self) -> &'static str {
        "names"
    }

    fn output_hook(&mut self, ctx: &egui::Context, output: &mut egui::FullOutput) {
        let Some(update) = &output.platform_output.accesskit_update else { return };
        let text = lines(update, ctx.pixels_per_point());
        if text != self.written && write(&self.file, &text).is_ok() {
            self.written = text;
        }
    }
}

/// A reader never meets half a file. Unlike `files::save` it does not wait for the disk, at each frame.
fn write(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    let beside = file.with_extension("part");
    std::fs::write(&beside, text)?;
    std::fs::rename(beside, file)
}

/// One line for each named part: role, x and y of its centre, width and height in pixels of the window, "on" or "off" (whether it can
/// be used), name.
fn lines(update: &TreeUpdate, scale: f32) -> String {
    let mut out = String::new();
    let name_of = |node: &Node| -> Option<String> {
        let label = node.label().map(String::from);
        let by_another = || {
            let by = node.labelled_by().first()?;
            let (_, other) = update.nodes.iter().find(|(id, _)| id == by)?;
            other.label().or(other.value()).map(String::from)
        };
        label.or_else(by_another).or_else(|| node.value().map(String::from)).filter(|name| !name.is_empty())
    };
    for (_, node) in &update.nodes {
        let (Some(name), Some(bounds)) = (name_of(node), node.bounds()) else { continue };
        if matches!(node.role(), Role::Window | Role::GenericContainer) {
            continue;
        }
        let pixels = |points: f64| points * f64::from(scale);
        let (x, y) = (pixels(bounds.x0 + bounds.x1) / 2.0, pixels(bounds.y0 + bounds.y1) / 2.0);
        let (width, height) = (pixels(bounds.x1 - bounds.x0), pixels(bounds.y1 - bounds.y0));
        let usable = if node.is_disabled() { "off" } else { "on" };
        let name = name.replace(['\n', '\t'], " ");
        writeln!(out, "{:?}\t{x:.0}\t{y:.0}\t{width:.0}\t{height:.0}\t{usable}\t{name}", node.role())
            .expect("a string takes every text");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui_kittest::Harness;

    #[test]
    fn a_script_finds_a_button_by_its_name_and_sees_whether_it_can_be_pressed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join("names");
        let plugin = Names { file: file.clone(), written: String::new() };
        let mut text = String::from("64");
        let mut pressed = false;
        let mut window = Harness::builder().with_size([200.0, 100.0]).build_ui(|ui| {
            let label = ui.label("tokens").id;
            ui.text_edit_singleline(&mut text).labelled_by(label);
            ui.add_enabled(pressed, egui::Button::new("Undo"));
            pressed |= ui.button("Write\nthe files").clicked();
        });
        window.ctx.add_plugin(plugin);
        window.run();
        let names = std::fs::read_to_string(&file).expect("names");
        let row =
            |end: &str| names.lines().find(|line| line.ends_with(end)).unwrap_or_else(|| panic!("no {end}:\n{names}"));
        assert!(row("\ttokens").len() > 6 && names.contains("TextInput\t"), "{names}");
        assert!(row("\toff\tUndo").starts_with("Button\t"), "{names}");
        let place: Vec<f32> =
            row("\ton\tWrite the files").split('\t').skip(1).take(2).map(|n| n.parse().expect("pixels")).collect();
        let at = egui::pos2(place[0], place[1]);
        window.drag_at(at);
        window.drop_at(at);
        window.run();
        let names = std::fs::read_to_string(&file).expect("names");
        assert!(names.lines().any(|line| line.ends_with("\ton\tUndo")), "{names}");
    }
}
