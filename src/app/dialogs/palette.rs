//! The palette: every command, setting, preset, pattern, layer, parameter, recent file and cell, found by typing.
//!
//! Invariant: fed by the command table; the keyboard alone suffices. Must not know how commands are carried out.

use super::{Action, Actions, Next, State};
use crate::app::canvas::cell_of;
use crate::app::command::Command;
use crate::document::library;
use egui::{Key, Modifiers, RichText, ScrollArea, TextEdit, Ui};
use std::path::PathBuf;

/// The draft.
#[derive(Clone, Debug, Default)]
pub(crate) struct PaletteDialog {
    text: String,
    chosen: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Command(Command),
    Preset(&'static str),
    Pattern(&'static str),
    /// A cell whose numbers were typed.
    Cell([usize; 2]),
    /// A layer or score mod, by its name.
    Layer(u64, String),
    /// A parameter of one: the layer, its name, the parameter.
    Parameter(u64, String, String),
    Recent(PathBuf),
    /// A setting, and the workspace that has it.
    Setting(&'static str, Command),
}

/// Settings by the names that they have on the screen.
const SETTINGS: [(&str, Command); 15] = [
    ("axes and lengths", Command::ShowDesign),
    ("cross-attention", Command::ShowDesign),
    ("batch", Command::ShowDesign),
    ("heads", Command::ShowDesign),
    ("kv_heads", Command::ShowDesign),
    ("head_dim", Command::ShowDesign),
    ("head_dim_v", Command::ShowDesign),
    ("dtype", Command::ShowDesign),
    ("layout", Command::ShowDesign),
    ("scale", Command::ShowDesign),
    ("BLOCK_SIZE", Command::ShowDesign),
    ("fast math, approximate tanh", Command::ShowDesign),
    ("backends that race", Command::ShowRace),
    ("timing rounds", Command::ShowRace),
    ("inputs of a race, seed", Command::ShowRace),
];

impl Entry {
    fn text(&self) -> String {
        match self {
            Entry::Command(command) => command.text().trim_end_matches('…').to_string(),
            Entry::Preset(name) => format!("Open the preset {}", name.replace('_', " ")),
            Entry::Pattern(name) => format!("Add the pattern {}", name.replace('_', " ")),
            Entry::Cell([q, kv]) => format!("Go to the cell q {q}, kv {kv}"),
            Entry::Layer(_, name) => format!("Select {name}"),
            Entry::Parameter(_, layer, name) => format!("Parameter {name} of {layer}"),
            Entry::Setting(name, _) => format!("Setting {name}"),
            Entry::Recent(path) => {
                format!("Open {}", path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
            }
        }
    }

    fn actions(&self) -> Vec<Action> {
        match self {
            Entry::Command(command) => vec![Action::Command(*command)],
            Entry::Preset(name) => vec![Action::OpenPreset(name.to_string())],
            Entry::Pattern(name) => vec![Action::AddPattern(name.to_string())],
            Entry::Cell(cell) => vec![Action::GoTo(*cell)],
            Entry::Layer(id, _) | Entry::Parameter(id, ..) => {
                vec![Action::Command(Command::ShowDesign), Action::Select(Some(*id))]
            }
            // without a layer the inspector begins with the problem
            Entry::Setting(_, command) => vec![Action::Command(*command), Action::Select(None)],
            Entry::Recent(path) => vec![Action::Open(path.clone())],
        }
    }
}

/// Entries that hold the letters in order, the closest first.
fn found(text: &str, of_document: &[Entry]) -> Vec<Entry> {
    // numbers are no letters of anything: they are a cell
    let cell = cell_of(text).map(Entry::Cell);
    let commands = Command::all().filter(|c| *c != Command::Palette).map(Entry::Command);
    let presets = library::presets().iter().map(|p| Entry::Preset(p.name));
    let patterns = library::patterns().map(|p| Entry::Pattern(p.name));
    let settings = SETTINGS.iter().map(|(name, command)| Entry::Setting(name, *command));
    let all = commands.chain(settings).chain(presets).chain(patterns).chain(of_document.iter().cloned());
    let mut scored: Vec<(u32, Entry)> = all.filter_map(|e| Some((distance(text, &e.text())?, e))).collect();
    scored.sort_by_key(|(score, _)| *score);
    cell.into_iter().chain(scored.into_iter().map(|(_, entry)| entry)).collect()
}

/// What the open document and the last files have that can be found.
fn of_document(state: &State) -> Vec<Entry> {
    let masks = state.document.layers.iter().map(|l| (l.id, l.name.clone()));
    let scores = state.document.scores.iter().map(|s| (s.id, s.name.clone()));
    let mut out = Vec::new();
    for (id, name) in masks.chain(scores) {
        let controls = state.session.built.as_ref().and_then(|b| b.controls.get(&id)?.as_ref().ok());
        let names = controls.into_iter().flat_map(|(_, controls)| controls.iter().map(|c| c.name.clone()));
        out.extend(names.map(|parameter| Entry::Parameter(id, name.clone(), parameter)));
        out.push(Entry::Layer(id, name));
    }
    out.extend(state.view.recent.iter().cloned().map(Entry::Recent));
    out
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
    let field = TextEdit::singleline(&mut dialog.text)
        .desired_width(f32::INFINITY)
        .hint_text("A command, preset, layer, parameter, file, or a cell as q, kv");
    let response = ui.add(field).accessible_name("Command");
    let entered = ui.input(|i| i.key_pressed(Key::Enter));
    if !entered {
        response.request_focus();
    }
    if response.changed() {
        dialog.chosen = 0;
    }
    let found = found(&dialog.text, &of_document(state));
    dialog.chosen = (dialog.chosen + down).saturating_sub(up).min(found.len().saturating_sub(1));
    if found.is_empty() {
        ui.weak("No command has these letters.");
    }
    let mut next = Next::Stay;
    ScrollArea::vertical().max_height(380.0).auto_shrink([false, true]).show(ui, |ui| {
        for (at, entry) in found.iter().enumerate() {
            let clicked = row(ui, state, entry, at == dialog.chosen, up + down > 0);
            if clicked || (entered && at == dialog.chosen) {
                next = Next::Close;
                entry.actions().into_iter().for_each(|action| actions.push(action));
            }
        }
    });
    next
}

fn row(ui: &mut Ui, state: &State, entry: &Entry, chosen: bool, moved: bool) -> bool {
    let (enabled, keys, tooltip) = match entry {
        Entry::Command(c) => (state.can(*c), c.keys(ui.ctx()), c.spec().tooltip.to_string()),
        Entry::Preset(_) => (true, String::new(), "Opens the preset; undo brings the document back.".into()),
        Entry::Pattern(name) => {
            (true, String::new(), library::pattern(name).map(|p| p.summary().to_string()).unwrap_or_default())
        }
        Entry::Cell(_) => (true, String::new(), "Brings it to the middle and pins it.".into()),
        Entry::Layer(..) | Entry::Parameter(..) => (true, String::new(), "Shows it in the inspector.".into()),
        Entry::Setting(..) => (true, String::new(), "Shows where it is set.".into()),
        Entry::Recent(path) => (true, String::new(), path.display().to_string()),
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
        let first = |text: &str| found(text, &[]).first().map(|e| e.text()).unwrap_or_default();
        for (typed, meant) in [
            ("save", "Save"),
            ("undo", "Undo"),
            ("saveas", "Save as"),
            ("export", "Export"),
            ("pattern alibi", "Add the pattern alibi"),
            ("block_size", "Setting BLOCK_SIZE"),
            ("setting head_dim", "Setting head_dim"),
            ("preset natten 2d", "Open the preset natten 2d"),
        ] {
            assert_eq!(first(typed), meant, "{typed}");
        }
        assert_eq!(found("qqqzzz", &[]), []);
    }
}
