//! Pasting FlexAttention code.
//!
//! Invariant: shows what it will add before it does. Must not know how code becomes layers.

use super::{Action, Actions, Next, State, buttons, title};
use crate::app::drafts::paste::PasteDialog;
use crate::app::editor::highlight;
use crate::app::literal;
use crate::document::model::ArgValue;
use crate::document::pasted::{self, PastedMod, Sizes};
use crate::python::surroundings;
use egui::{ScrollArea, TextEdit, Ui};

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut PasteDialog, actions: &mut Actions) -> Next {
    title(ui, "Paste FlexAttention code");
    ui.weak(
        "A mask_mod, a score_mod, a lambda, or functions that return them, with the constants and tensors they use.",
    );
    ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
        let mut layouter = highlight::layouter(Vec::new(), Vec::new());
        let field = TextEdit::multiline(&mut dialog.text)
            .code_editor()
            .desired_rows(14)
            .desired_width(f32::INFINITY)
            .hint_text("def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx")
            .layouter(&mut layouter);
        let response = ui.add(field).accessible_name("FlexAttention code");
        if !dialog.focused {
            response.request_focus();
            dialog.focused = true;
        }
    });
    let is_seen = |(text, replace, _): &(String, bool, String)| *text == dialog.text && *replace == dialog.replace;
    if !dialog.seen.as_ref().is_some_and(is_seen) {
        dialog.seen = Some((dialog.text.clone(), dialog.replace, what(&dialog.text, dialog.replace)));
    }
    ui.label(dialog.seen.as_ref().map_or("", |(.., words)| words.as_str()));
    ui.horizontal(|ui| {
        ui.radio_value(&mut dialog.replace, true, "As a new document");
        ui.radio_value(&mut dialog.replace, false, format!("As layers of {}", state.document.name));
    });
    let mut next = Next::Stay;
    if buttons(ui, "Use this code", !dialog.text.trim().is_empty(), &mut next) {
        actions.push(Action::AddCode { text: dialog.text.clone(), replace: dialog.replace });
    }
    next
}

/// The result of the text.
fn what(text: &str, replace: bool) -> String {
    if text.trim().is_empty() {
        return "Nothing pasted yet.".into();
    }
    let found = pasted::read(&surroundings::bare(text));
    if found.mods.is_empty() {
        return "No mod found yet; the code is added as a layer with its errors.".into();
    }
    let words = |given: &PastedMod| {
        let kind = if given.score { "score mod" } else { "mask" };
        let shown = |(name, value): (&String, &ArgValue)| format!("{name}={}", literal::shown(value));
        let args: Vec<String> = given.args.iter().map(shown).collect();
        let args = if args.is_empty() { String::new() } else { format!(" with {}", args.join(", ")) };
        if given.entry.is_empty() { format!("a {kind}") } else { format!("the {kind} {}{args}", given.entry) }
    };
    let mods = format!("Adds {}.", found.mods.iter().map(words).collect::<Vec<_>>().join(" and "));
    match found.sizes {
        Some(Sizes { line, q_len: Some(q), kv_len: Some(kv), .. }) if replace => {
            format!("{mods} {q} x {kv} tokens, from line {line}.")
        }
        Some(Sizes { line, .. }) if replace => {
            format!("{mods} The sizes in line {line} are not plain numbers: set the axes afterwards.")
        }
        None if replace && let Some((len, name)) = found.tables.q_len.as_ref().or(found.tables.kv_len.as_ref()) => {
            format!("{mods} {len} tokens, the length of {name}.")
        }
        _ => mods,
    }
}
