//! How one text differs from another, line by line, as a person reads it.
//!
//! Invariant: lines that go are red and marked `-`, lines that come are green and marked `+`. Must not know what the texts are.

use super::theme;
use egui::{RichText, ScrollArea, Ui};

/// Draws the lines that differ and those around them, `height` points of them at once.
pub(super) fn show(ui: &mut Ui, (before, after): (&[u8], &[u8]), height: f32) {
    let colours = theme::palette(ui.visuals());
    let lines = changed_lines(before, after);
    ScrollArea::both().id_salt("difference").max_height(height).auto_shrink([false, true]).show(ui, |ui| {
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
}
