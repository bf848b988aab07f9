//! Installing NVRTC: the command is shown, and runs only after consent.
//!
//! Invariant: nothing is installed before the user agrees. Must not know how it is installed.

use super::{Action, Actions, Next, buttons, title};
use crate::tasks::doctor::mend::FetchPlan;
use egui::{Label, RichText, Ui};

pub(super) fn show(ui: &mut Ui, plan: &FetchPlan, actions: &mut Actions) -> Next {
    title(ui, "Fetch NVRTC?");
    ui.label("NVRTC compiles the GPU kernels. This command would install it into Maskloom's own folder:");
    ui.add(Label::new(RichText::new(plan.words()).monospace()).wrap());
    ui.weak(format!("It changes nothing outside {}.", plan.folder().display()));
    let mut next = Next::Stay;
    if buttons(ui, "Fetch it", true, &mut next) {
        actions.push(Action::Fetch(plan.clone()));
        next = Next::Close;
    }
    next
}
