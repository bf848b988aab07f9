//! Pasting FlexAttention code.
//!
//! Invariant: says what it will add before it does. Must not know how code becomes layers.

use super::{Action, Actions, Next, buttons, title};
use crate::app::opening;
use crate::app::panels::highlight;
use egui::{ScrollArea, TextEdit, Ui};

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct PasteDialog {
    text: String,
    /// Instead of the layers there are.
    replace: bool,
    focused: bool,
}

impl PasteDialog {
    pub fn new(replace: bool) -> Self {
        Self { text: String::new(), replace, focused: false }
    }
}

pub(super) fn show(ui: &mut Ui, dialog: &mut PasteDialog, actions: &mut Actions) -> Next {
    title(ui, "Paste FlexAttention code");
    ui.weak(
        "A mask_mod, a score_mod, a lambda, or functions that return them, with the constants and tensors they use.",
    );
    ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
        let mut layouter = highlight::layouter(Vec::new());
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
    ui.label(what(&dialog.text));
    ui.horizontal(|ui| {
        ui.radio_value(&mut dialog.replace, true, "Replace the layers");
        ui.radio_value(&mut dialog.replace, false, "Add to the layers");
    });
    let mut next = Next::Stay;
    if buttons(ui, "Use this code", !dialog.text.trim().is_empty(), &mut next) {
        actions.push(Action::AddCode { text: dialog.text.clone(), replace: dialog.replace });
    }
    next
}

/// What the text would become.
fn what(text: &str) -> String {
    if text.trim().is_empty() {
        return "Nothing pasted yet.".into();
    }
    let mods = opening::mods_of(text);
    if mods.is_empty() {
        return "No mod found yet; it is added as a layer, with its errors beside it.".into();
    }
    let words = |(name, score): &(String, bool)| {
        let kind = if *score { "score mod" } else { "mask" };
        if name.is_empty() { format!("a {kind}") } else { format!("the {kind} {name}") }
    };
    format!("Adds {}.", mods.iter().map(words).collect::<Vec<_>>().join(" and "))
}
