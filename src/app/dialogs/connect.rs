//! Where the worker runs.
//!
//! Invariant: a launch command is checked for its words before it is used. Must not know the worker.

use super::{Action, Actions, Next, State, buttons, title};
use crate::app::session::JobKind;
use crate::app::widgets::diagnostic_below;
use crate::service::target::Target;
use egui::{TextEdit, Ui};

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct ConnectDialog {
    pub command: String,
    pub python: String,
}

const EXAMPLES: [(&str, &str); 4] = [
    ("This machine", ""),
    ("A server by ssh", "ssh gpu1 maskloom worker"),
    ("A Slurm job", "srun --gres=gpu:1 maskloom worker"),
    ("A container", "docker exec -i trainer maskloom worker"),
];

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut ConnectDialog, actions: &mut Actions) -> Next {
    title(ui, "Connect a GPU");
    ui.label("All work on devices is done by a worker. Give the command that starts one; empty means this machine.");
    ui.horizontal(|ui| {
        let label = ui.label("Launch command");
        let field = TextEdit::singleline(&mut dialog.command).desired_width(f32::INFINITY).hint_text("this machine");
        ui.add(field).labelled_by(label.id);
    });
    ui.horizontal_wrapped(|ui| {
        ui.weak("Such as:");
        for (name, command) in EXAMPLES {
            if ui.link(name).on_hover_text(if command.is_empty() { "no command" } else { command }).clicked() {
                dialog.command = command.into();
            }
        }
    });
    ui.add_space(6.0);
    ui.horizontal(|ui| {
        let label = ui.label("Python with PyTorch, there");
        let field = TextEdit::singleline(&mut dialog.python).desired_width(f32::INFINITY);
        ui.add(field.hint_text("found by the worker")).labelled_by(label.id);
    });
    let target = Target::new(&dialog.command);
    let words = target.words();
    if let Err(why) = &words {
        diagnostic_below(ui, why);
    }
    ui.add_space(6.0);
    connection(ui, state);
    let mut next = Next::Stay;
    if buttons(ui, "Connect", words.is_ok(), &mut next) {
        actions.push(Action::SetPython(Some(dialog.python.trim().to_string()).filter(|p| !p.is_empty())));
        actions.push(Action::Connect(target));
    }
    next
}

/// What the worker in force has.
fn connection(ui: &mut Ui, state: &State) {
    if state.session.has(JobKind::Hello) {
        ui.horizontal(|ui| {
            ui.spinner();
            ui.label(format!("Starting a worker on {}", state.view.target));
        });
    }
    if let Some(why) = &state.session.worker_error {
        why.iter().for_each(|d| diagnostic_below(ui, d));
    }
    let Some(info) = &state.session.worker else { return };
    ui.label(format!("Connected to {} (Maskloom {})", info.host, info.version));
    for device in &info.devices {
        ui.label(format!("{}: {}", device.device, device.name));
        if let Some(why) = &device.unusable {
            diagnostic_below(ui, why);
        }
    }
}
