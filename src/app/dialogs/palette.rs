//! The palette: every command, setting, preset, pattern, layer, parameter, recent file, token and cell, found by typing.
//!
//! Invariant: fed by the command table; usable with the keyboard alone. Must not know how commands are carried out.

use super::{Action, Actions, Next, State};
use crate::app::canvas::{Texts, cell_of};
use crate::app::command::Command;
use crate::app::drafts::palette::PaletteDialog;
use crate::app::language::{say, words};
use crate::document::library;
use crate::words::{Language, Words};
use egui::{Key, Modifiers, RichText, ScrollArea, TextEdit, Ui};
use std::path::PathBuf;

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
    /// A token: the cell to go to, the text on whether it is a query, a key or both, and what it says.
    Token([usize; 2], &'static str, String),
    /// A setting, and the workspace that has it.
    Setting(&'static str, Command),
}

/// Settings: texts on what they are, or names that are the same in all languages.
const SETTINGS: [(&str, Command); 18] = [
    ("palette-axes", Command::ShowDesign),
    ("cross-attention", Command::ShowDesign),
    ("palette-batch", Command::ShowDesign),
    ("palette-heads", Command::ShowDesign),
    ("kv_heads", Command::ShowDesign),
    ("head_dim", Command::ShowDesign),
    ("head_dim_v", Command::ShowDesign),
    ("dtype", Command::ShowDesign),
    ("layout", Command::ShowDesign),
    ("palette-scale", Command::ShowDesign),
    ("BLOCK_SIZE", Command::ShowDesign),
    ("palette-fast", Command::ShowDesign),
    ("palette-backends", Command::ShowRace),
    ("palette-rounds", Command::ShowRace),
    ("palette-inputs", Command::ShowRace),
    ("palette-capture", Command::ShowQuality),
    ("palette-parallel", Command::ShowParallel),
    ("palette-trainer", Command::ShowExport),
];

impl Entry {
    fn text(&self, words: &'static Words) -> String {
        match self {
            Entry::Command(command) => command.named(words).trim_end_matches('…').to_string(),
            Entry::Preset(name) => words.with("palette-preset", &[("name", name.replace('_', " ").into())]),
            Entry::Pattern(name) => words.with("palette-pattern", &[("name", name.replace('_', " ").into())]),
            Entry::Token([q, kv], what, said) => {
                let token = if *what == "palette-key" { kv } else { q };
                words.with(what, &[("said", said.into()), ("token", (*token).into())])
            }
            Entry::Cell([q, kv]) => words.with("palette-cell", &[("q", (*q).into()), ("kv", (*kv).into())]),
            Entry::Layer(_, name) => words.with("palette-layer", &[("name", name.into())]),
            Entry::Parameter(_, layer, name) => {
                words.with("palette-parameter", &[("name", name.into()), ("layer", layer.into())])
            }
            Entry::Setting(name, _) => {
                let name = if name.starts_with("palette-") { words.text(name) } else { name };
                words.with("palette-setting", &[("name", name.into())])
            }
            Entry::Recent(path) => words.with(
                "palette-open",
                &[("name", path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into())],
            ),
        }
    }

    /// What it is found by: its text, and what the menu that it stands in is called.
    fn names(&self, words: &'static Words) -> Vec<String> {
        let text = self.text(words);
        match self {
            Entry::Command(command)
                if Command::SHARE_CANVAS.contains(command) || Command::SHARE_PAGE.contains(command) =>
            {
                let menu = words.text("menu-share");
                vec![menu.into(), format!("{menu} {text}"), text]
            }
            _ => vec![text],
        }
    }

    fn actions(&self) -> Vec<Action> {
        match self {
            Entry::Command(command) => vec![Action::Command(*command)],
            Entry::Preset(name) => vec![Action::OpenPreset(name.to_string())],
            Entry::Pattern(name) => vec![Action::AddPattern(name.to_string())],
            Entry::Cell(cell) | Entry::Token(cell, ..) => vec![Action::GoTo(*cell)],
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
fn found(text: &str, words: &'static Words, of_document: &[Entry]) -> Vec<Entry> {
    // numbers are no letters of anything: they are a cell
    let cell = cell_of(text).map(Entry::Cell);
    let commands = Command::all().filter(|c| *c != Command::Palette).map(Entry::Command);
    let presets = library::presets().iter().map(|p| Entry::Preset(p.name));
    let patterns = library::patterns().map(|p| Entry::Pattern(p.name));
    let settings = SETTINGS.iter().map(|(name, command)| Entry::Setting(name, *command));
    let all = commands.chain(settings).chain(presets).chain(patterns).chain(of_document.iter().cloned());
    // by its English name too, which keyboards of all languages can type
    let spoken = [words, Words::of(Language::English)];
    let near = |e: &Entry| spoken.iter().flat_map(|words| e.names(words)).filter_map(|n| distance(text, &n)).min();
    let mut scored: Vec<(u32, Entry)> = all.filter_map(|e| Some((near(&e)?, e))).collect();
    scored.sort_by_key(|(score, _)| *score);
    cell.into_iter().chain(scored.into_iter().map(|(_, entry)| entry)).collect()
}

/// The findable parts of the open document and the last files.
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

/// Tokens of the open capture that hold the text, the shortest first: `tokens` is what queries and keys say, `at` the cell
/// that is looked at now.
fn tokens(text: &str, texts: [Option<Texts<'_>>; 2], at: [usize; 2]) -> Vec<Entry> {
    const MOST: usize = 40;
    let wanted = text.trim().to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let of = |side: usize| {
        let texts = texts[side];
        let count = texts.map_or(0, |t| t.text.len());
        let start = texts.map_or(0, |t| t.start);
        let said = (start..start + count).filter_map(move |token| Some((token, texts?.at(token)?)));
        said.filter(|(_, said)| said.to_lowercase().contains(&wanted)).collect::<Vec<_>>()
    };
    let (queries, keys) = (of(0), of(1));
    let both = |token: usize| queries.iter().any(|q| q.0 == token) && keys.iter().any(|k| k.0 == token);
    let mut found: Vec<(usize, Entry)> = Vec::new();
    for (side, list) in [(0, &queries), (1, &keys)] {
        for (token, said) in list.iter().take(MOST) {
            let (cell, what) = match (side, both(*token)) {
                (1, true) => continue,
                (_, true) => ([*token, *token], "palette-token"),
                (0, false) => ([*token, at[1]], "palette-query"),
                (_, false) => ([at[0], *token], "palette-key"),
            };
            found.push((said.chars().count(), Entry::Token(cell, what, said.to_string())));
        }
    }
    found.sort_by_key(|(length, _)| *length);
    found.into_iter().map(|(_, entry)| entry).take(MOST).collect()
}

/// The distance of the letters of `wanted` in `text`, with starts of words counting less; None if some are missing.
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
    let field = TextEdit::singleline(&mut dialog.text).desired_width(f32::INFINITY).hint_text(say(ui, "palette-hint"));
    let response = ui.add(field).accessible_name(say(ui, "palette-name"));
    let entered = ui.input(|i| i.key_pressed(Key::Enter));
    if !entered {
        response.request_focus();
    }
    if response.changed() {
        dialog.chosen = 0;
    }
    let mut found = found(&dialog.text, words(ui.ctx()), &of_document(state));
    let texts = tokens(&dialog.text, state.texts(), state.focus.pinned);
    // a cell by its numbers stays first; a token's text is closer than scattered letters
    let at = usize::from(matches!(found.first(), Some(Entry::Cell(_))));
    found.splice(at..at, texts);
    dialog.chosen = (dialog.chosen + down).saturating_sub(up).min(found.len().saturating_sub(1));
    if found.is_empty() {
        ui.weak(say(ui, "palette-none"));
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
        Entry::Command(c) => (state.can(*c), c.keys(ui.ctx()), c.tip(ui.ctx()).to_string()),
        Entry::Preset(_) => (true, String::new(), say(ui, "palette-preset-tip").into()),
        Entry::Pattern(name) => {
            (true, String::new(), library::pattern(name).map(|p| p.summary().to_string()).unwrap_or_default())
        }
        Entry::Cell(_) => (true, String::new(), say(ui, "palette-cell-tip").into()),
        Entry::Token(..) => (true, String::new(), say(ui, "palette-cell-tip").into()),
        Entry::Layer(..) | Entry::Parameter(..) => (true, String::new(), say(ui, "palette-layer-tip").into()),
        Entry::Setting(..) => (true, String::new(), say(ui, "palette-setting-tip").into()),
        Entry::Recent(path) => (true, String::new(), path.display().to_string()),
    };
    let button = egui::Button::selectable(chosen, entry.text(words(ui.ctx()))).right_text(RichText::new(keys).weak());
    let response = ui.add_enabled(enabled, button.min_size(egui::vec2(ui.available_width(), 0.0)));
    if chosen && moved {
        response.scroll_to_me(None);
    }
    response.on_hover_text(tooltip).clicked()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn english() -> &'static Words {
        Words::of(Language::English)
    }

    #[test]
    fn letters_find_what_is_meant() {
        let first = |text: &str| found(text, english(), &[]).first().map(|e| e.text(english())).unwrap_or_default();
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
        assert_eq!(found("qqqzzz", english(), &[]), []);
    }

    #[test]
    fn what_the_share_menu_holds_is_found_by_its_name() {
        let first = |typed: &str, words| found(typed, words, &[]).into_iter().take(4).collect::<Vec<_>>();
        for (typed, language) in
            [("share", Language::English), ("compartir", Language::Spanish), ("share", Language::Chinese)]
        {
            let found = first(typed, Words::of(language));
            for command in Command::SHARE_CANVAS.iter().chain(Command::SHARE_PAGE) {
                assert!(found.contains(&Entry::Command(*command)), "{typed}: {command:?} is not in {found:?}");
            }
        }
    }

    #[test]
    fn tokens_are_found_by_what_they_say() {
        let texts = ["the", "\u{120}cat", " sat", "cats"].map(String::from);
        let texts = Some(Texts { start: 3, text: &texts });
        let words = |text: &str, of| tokens(text, of, [9, 1]).iter().map(|e| e.text(english())).collect::<Vec<_>>();
        assert_eq!(words("CAT", [texts, texts]), ["\u{201c}cat\u{201d}, token 4", "\u{201c}cats\u{201d}, token 6"]);
        assert_eq!(words("sat", [None, texts]), ["\u{201c}sat\u{201d}, key 5"]);
        assert_eq!(tokens("sat", [None, texts], [9, 1])[0].actions().len(), 1);
        assert!(matches!(tokens("sat", [None, texts], [9, 1])[0], Entry::Token([9, 5], ..)));
        assert!(matches!(tokens("sat", [texts, None], [9, 1])[0], Entry::Token([5, 1], ..)));
        assert_eq!((words(" ", [texts, None]), words("dog", [texts, None])), (vec![], vec![]));
    }
}
