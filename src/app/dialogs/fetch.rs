//! Installing NVRTC: the command is shown, and runs only after consent.
//!
//! Invariant: nothing is installed before the user agrees. Must not know how it is installed.

use super::{Action, Actions, Next, buttons, title};
use crate::app::language::{say, say_with};
use crate::tasks::doctor::mend::FetchPlan;
use egui::{Label, RichText, Ui};

pub(super) fn show(ui: &mut Ui, plan: &FetchPlan, actions: &mut Actions) -> Next {
    title(ui, say(ui, "fetch-title"));
    ui.label(say(ui, "fetch-words"));
    ui.add(Label::new(RichText::new(plan.words()).monospace()).wrap());
    ui.weak(say_with(ui, "fetch-outside", &[("folder", plan.folder().display().to_string().into())]));
    let mut next = Next::Stay;
    if buttons(ui, say(ui, "fetch-yes"), true, &mut next) {
        actions.push(Action::Fetch(plan.clone()));
        next = Next::Close;
    }
    next
}
