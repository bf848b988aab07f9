//! The palette: every command, preset and pattern, found by typing.
//!
//! Invariant: fed by the command table; the keyboard alone suffices. Must not know how commands are carried out.

use super::{Action, Actions, Next, State};
use crate::app::command::Command;
use crate::document::library;
use egui::{Key, Modifiers, RichText, ScrollArea, TextEdit, Ui};

/// The draft.
#[derive(Clone, Debug, Default)]
pub(crate) struct PaletteDialog {
    text: String,
    chosen: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    Command(Command),
    Preset(&'static str),
    Pattern(&'static str),
}

impl Entry {
    fn text(self) -> String {
        match self {
            Entry::Command(command) => command.text().trim_end_matches('…').to_string(),
            Entry::Preset(name) => format!("Open the preset {}", name.replace('_', " ")),
            Entry::Pattern(name) => format!("Add the pattern {}", name.replace('_', " ")),
        }
    }

    fn action(self) -> Action {
        match self {
            Entry::Command(command) => Action::Command(command),
            Entry::Preset(name) => Action::OpenPreset(name.into()),
            Entry::Pattern(name) => Action::AddPattern(name.into()),
        }
    }
}

/// Entries that hold the letters in order, the closest first.
fn found(text: &str) -> Vec<Entry> {
    let commands = Command::all().filter(|c| *c != Command::Palette).map(Entry::Command);
    let presets = library::presets().iter().map(|p| Entry::Preset(p.name));
    let patterns = library::patterns().map(|p| Entry::Pattern(p.name));
    let all = commands.chain(presets).chain(patterns);
    let mut scored: Vec<(u32, Entry)> = all.filter_map(|e| Some((distance(text, &e.text())?, e))).collect();
    scored.sort_by_key(|(score, _)| *score);
    scored.into_iter().map(|(_, entry)| entry).collect()
}

/// How far the letters of `wanted` lie apart in `text`, starts of words counting less; None where they are not all there.
fn distance(wanted: &str, text: &str) -> Option<u32> {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let wanted: Vec<char> = wanted.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
    if wanted.is_empty() {
        return Some(0);
    }
    let starts_word = |at: usize| at == 0 || !text[at - 1].is_alphanumeric();
    let from = |start: usize| {
        let (mut at, mut cost) = (start, if starts_word(start) { 0 } else { 20 });
        for letter in &wanted {
            let next = (at..text.len()).find(|i| text[*i] == *letter)?;
            let gap = (next - at) as u32;
            cost += match (gap, starts_word(next)) {
                (0, _) => 0,
                (_, true) => 2,
                (gap, false) => 5 + gap,
            };
            at = next + 1;
        }
        Some(cost * 10 + (text.len() - wanted.len()) as u32 / 2)
    };
    (0..text.len()).filter(|at| text[*at] == wanted[0]).filter_map(from).min()
}

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut PaletteDialog, actions: &mut Actions) -> Next {
    let (down, up) = ui.input_mut(|i| {
        let down = i.count_and_consume_key(Modifiers::NONE, Key::ArrowDown);
        (down, i.count_and_consume_key(Modifiers::NONE, Key::ArrowUp))
    });
    let field = TextEdit::singleline(&mut dialog.text).desired_width(f32::INFINITY).hint_text("Type a command…");
    let response = ui.add(field).accessible_name("Command");
    let entered = ui.input(|i| i.key_pressed(Key::Enter));
    if !entered {
        response.request_focus();
    }
    if response.changed() {
        dialog.chosen = 0;
    }
    let found = found(&dialog.text);
    dialog.chosen = (dialog.chosen + down).saturating_sub(up).min(found.len().saturating_sub(1));
    if found.is_empty() {
        ui.weak("No command has these letters.");
    }
    let mut next = Next::Stay;
    ScrollArea::vertical().max_height(380.0).auto_shrink([false, true]).show(ui, |ui| {
        for (at, entry) in found.iter().enumerate() {
            let clicked = row(ui, state, *entry, at == dialog.chosen, up + down > 0);
            if clicked || (entered && at == dialog.chosen) {
                next = Next::Close;
                actions.push(entry.action());
            }
        }
    });
    next
}

fn row(ui: &mut Ui, state: &State, entry: Entry, chosen: bool, moved: bool) -> bool {
    let (enabled, keys, tooltip) = match entry {
        Entry::Command(c) => (state.can(c), c.keys(ui.ctx()), c.spec().tooltip.to_string()),
        Entry::Preset(_) => (true, String::new(), "Opens the preset; undo brings the document back.".into()),
        Entry::Pattern(name) => {
            (true, String::new(), library::pattern(name).map(|p| p.summary().to_string()).unwrap_or_default())
        }
    };
    let button = egui::Button::selectable(chosen, entry.text()).right_text(RichText::new(keys).weak());
    let response = ui.add_enabled(enabled, button.min_size(egui::vec2(ui.available_width(), 0.0)));
    if chosen && moved {
        response.scroll_to_me(None);
    }
    response.on_hover_text(tooltip).clicked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_find_what_is_meant() {
        let first = |text: &str| found(text).first().map(|e| e.text()).unwrap_or_default();
        for (typed, meant) in [
            ("save", "Save"),
            ("undo", "Undo"),
            ("saveas", "Save as"),
            ("export", "Export"),
            ("pattern alibi", "Add the pattern alibi"),
            ("preset natten 2d", "Open the preset natten 2d"),
        ] {
            assert_eq!(first(typed), meant, "{typed}");
        }
        assert_eq!(found("qqqzzz"), []);
    }
}
