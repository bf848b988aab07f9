//! Pasting FlexAttention code.
//!
//! Invariant: shows what it will add before it does. Must not know how code becomes layers.

use super::{Action, Actions, Next, State, buttons, title};
use crate::app::drafts::paste::{PasteDialog, Seen};
use crate::app::editor::highlight;
use crate::app::hints::in_window;
use crate::app::language::{say, say_with};
use crate::app::literal;
use crate::app::widgets::diagnostic_below;
use crate::document::model::ArgValue;
use crate::document::pasted::{self, Pasted, PastedMod, Sizes};
use crate::python::surroundings;
use egui::{ScrollArea, TextEdit, Ui};

/// Seconds without a change after which an error is told.
const REST: f64 = 0.5;

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut PasteDialog, actions: &mut Actions) -> Next {
    title(ui, say(ui, "paste-title"));
    ui.weak(say(ui, "paste-words"));
    ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
        let mut layouter = highlight::layouter(Vec::new(), Vec::new());
        let field = TextEdit::multiline(&mut dialog.text)
            .code_editor()
            .desired_rows(14)
            .desired_width(f32::INFINITY)
            .hint_text("def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx")
            .layouter(&mut layouter);
        let response = ui.add(field).accessible_name(say(ui, "paste-name"));
        if !dialog.focused {
            response.request_focus();
            dialog.focused = true;
        }
    });
    if !dialog.seen.as_ref().is_some_and(|seen| seen.text == dialog.text && seen.replace == dialog.replace) {
        dialog.seen = Some(see(ui, dialog, state.now));
    }
    if let Some(seen) = &dialog.seen {
        ui.label(&seen.words);
        wrong(ui, seen, state.now);
    }
    ui.horizontal(|ui| {
        ui.radio_value(&mut dialog.replace, true, say(ui, "paste-new"));
        let layers = say_with(ui, "paste-layers", &[("name", (&*state.document.name).into())]);
        ui.radio_value(&mut dialog.replace, false, layers);
    });
    let mut next = Next::Stay;
    if buttons(ui, say(ui, "paste-use"), !dialog.text.trim().is_empty(), &mut next) {
        actions.push(Action::AddCode { text: dialog.text.clone(), replace: dialog.replace });
    }
    next
}

/// The result of the text.
fn see(ui: &Ui, dialog: &PasteDialog, now: f64) -> Seen {
    let (text, replace) = (dialog.text.clone(), dialog.replace);
    if text.trim().is_empty() {
        return Seen { words: say(ui, "paste-nothing").into(), text, replace, wrong: None, since: now };
    }
    let found = pasted::read(&surroundings::bare(&text));
    Seen { words: what(ui, &found, replace), text, replace, wrong: found.wrong.map(in_window), since: now }
}

/// The text's first error, once the typing rests: half of a line is no mistake.
fn wrong(ui: &mut Ui, seen: &Seen, now: f64) {
    let Some(why) = &seen.wrong else { return };
    let rested = now - seen.since;
    if rested < REST {
        ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(REST - rested));
        return;
    }
    if let Some((line, _)) = why.line_column() {
        ui.label(say_with(ui, "paste-wrong", &[("line", line.into())]));
    }
    diagnostic_below(ui, why);
}

/// What is found in the text.
fn what(ui: &Ui, found: &Pasted, replace: bool) -> String {
    if found.mods.is_empty() {
        return say(ui, "paste-no-mod").into();
    }
    let each = found.mods.iter().map(|given| named(ui, given));
    let and = |what: String, more: String| say_with(ui, "paste-and", &[("what", what.into()), ("more", more.into())]);
    let mods = say_with(ui, "paste-adds", &[("what", each.reduce(and).unwrap_or_default().into())]);
    let sizes = match found.sizes {
        Some(Sizes { line, q_len: Some(q), kv_len: Some(kv), .. }) if replace => {
            let figures = [("q", q.into()), ("kv", kv.into()), ("line", line.into())];
            say_with(ui, "paste-tokens-line", &figures)
        }
        Some(Sizes { line, .. }) if replace => say_with(ui, "paste-no-numbers", &[("line", line.into())]),
        None if replace && let Some((len, name)) = found.tables.q_len.as_ref().or(found.tables.kv_len.as_ref()) => {
            say_with(ui, "paste-tokens-of", &[("n", (*len).into()), ("name", (&**name).into())])
        }
        _ => return mods,
    };
    format!("{mods} {sizes}")
}

/// A mod by its kind, its name and its arguments.
fn named(ui: &Ui, given: &PastedMod) -> String {
    let name = [("name", (&*given.entry).into())];
    let what = match (given.entry.is_empty(), given.score) {
        (true, true) => return say(ui, "paste-a-score").into(),
        (true, false) => return say(ui, "paste-a-mask").into(),
        (false, true) => say_with(ui, "paste-the-score", &name),
        (false, false) => say_with(ui, "paste-the-mask", &name),
    };
    if given.args.is_empty() {
        return what;
    }
    let shown = |(name, value): (&String, &ArgValue)| format!("{name}={}", literal::shown(value));
    let args = given.args.iter().map(shown).collect::<Vec<_>>().join(", ");
    say_with(ui, "paste-with", &[("what", what.into()), ("args", args.into())])
}
