//! The dialog for the place where the worker runs.
//!
//! Invariant: the words of a launch command are checked before use; the present worker stays active until the new one
//! answers. Must not know the worker.

use super::{Action, Actions, Next, State, buttons_or, title};
use crate::app::drafts::connect::ConnectDialog;
use crate::app::fields::drag_of;
use crate::app::language::{place, say, say_with};
use crate::app::session::JobKind;
use crate::app::widgets::diagnostic_below;
use crate::worker::target::Target;
use egui::{Key, Response, TextEdit, Ui};
use std::time::Duration;

/// Texts on them, and the commands.
const EXAMPLES: [(&str, &str); 4] = [
    ("connect-this", ""),
    ("connect-ssh", "ssh gpu1 maskloom worker"),
    ("connect-slurm", "srun --gres=gpu:1 maskloom worker"),
    ("connect-container", "docker exec -i trainer maskloom worker"),
];

pub(super) fn show(ui: &mut Ui, state: &State, dialog: &mut ConnectDialog, actions: &mut Actions) -> Next {
    title(ui, say(ui, "connect-title"));
    ui.label(say(ui, "connect-words"));
    let mut entered = false;
    ui.horizontal(|ui| {
        let label = ui.label(say(ui, "connect-command"));
        let field = TextEdit::singleline(&mut dialog.command)
            .desired_width(f32::INFINITY)
            .hint_text(say(ui, "connect-command.hint"));
        let response = ui.add(field).labelled_by(label.id);
        if !dialog.focused {
            response.request_focus();
            dialog.focused = true;
        }
        entered |= enter(ui, &response);
    });
    ui.horizontal_wrapped(|ui| {
        ui.weak(say(ui, "connect-such"));
        for (name, command) in EXAMPLES {
            if ui
                .link(say(ui, name))
                .on_hover_text(if command.is_empty() { say(ui, "connect-no-command") } else { command })
                .clicked()
            {
                dialog.command = command.into();
            }
        }
    });
    known(ui, state, dialog, actions);
    ui.add_space(6.0);
    ui.horizontal(|ui| {
        let label = ui.label(say(ui, "connect-python"));
        let field = TextEdit::singleline(&mut dialog.python).desired_width(f32::INFINITY);
        let response = ui.add(field.hint_text(say(ui, "connect-python.hint"))).labelled_by(label.id);
        entered |= enter(ui, &response);
    });
    ui.horizontal(|ui| {
        ui.label(say(ui, "connect-give-up"));
        let drag = drag_of(&mut dialog.seconds).range(5..=86_400).suffix(" s");
        ui.add(drag).accessible_name(say(ui, "connect-seconds")).on_hover_text(say(ui, "connect-seconds.tip"));
        ui.weak(say(ui, "connect-without"));
    });
    let target = Target::new(&dialog.command);
    let words = target.words();
    if let Err(why) = &words {
        diagnostic_below(ui, why);
    }
    ui.add_space(6.0);
    waiting(ui, state);
    connection(ui, state);
    let mut next = Next::Stay;
    let free = words.is_ok() && state.connecting.is_none();
    let close = say(ui, if state.connecting.is_some() { "cancel" } else { "close" });
    if buttons_or(ui, say(ui, "connect-go"), free, close, &mut next) || (entered && free) {
        actions.push(Action::Connect {
            target,
            python: Some(dialog.python.trim().to_string()).filter(|p| !p.is_empty()),
            limit: Duration::from_secs(dialog.seconds),
        });
    }
    next
}

/// Machines that answered before, and those of the ssh configuration.
fn known(ui: &mut Ui, state: &State, dialog: &mut ConnectDialog, actions: &mut Actions) {
    for host in &state.view.hosts {
        ui.horizontal(|ui| {
            let title = place(ui, &host.target);
            let button = egui::Button::new(&title).truncate();
            let width = ui.available_width() - 34.0;
            if ui.add_sized([width, 22.0], button).on_hover_text(say(ui, "connect-before")).clicked() {
                dialog.command = host.target.command.clone();
                dialog.python = host.python.clone().unwrap_or_default();
            }
            let forget = ui.small_button("\u{d7}").on_hover_text(say(ui, "connect-forget"));
            if forget.accessible_name(say_with(ui, "connect-forget-name", &[("title", title.into())])).clicked() {
                actions.push(Action::ForgetHost(host.target.clone()));
            }
        });
    }
    if !dialog.names.targets.is_empty() {
        ui.horizontal_wrapped(|ui| {
            ui.weak(say(ui, "connect-targets"));
            for (name, words) in dialog.names.targets.clone() {
                if ui.link(&name).on_hover_text(words).clicked() {
                    dialog.command = name;
                }
            }
        });
    }
    if dialog.names.ssh.is_empty() {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        ui.weak(say(ui, "connect-by-ssh"));
        for name in dialog.names.ssh.clone() {
            let words = say_with(ui, "connect-ssh-tip", &[("name", (&*name).into())]);
            if ui.link(&name).on_hover_text(words).clicked() {
                dialog.command = format!("ssh {name} maskloom worker");
            }
        }
    });
}

fn enter(ui: &Ui, response: &Response) -> bool {
    response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter))
}

/// The requested worker: the time so far, and the limit.
fn waiting(ui: &mut Ui, state: &State) {
    if let Some(waiting) = &state.connecting {
        let (waited, limit) = (waiting.since.elapsed().as_secs(), waiting.limit.as_secs());
        ui.horizontal(|ui| {
            ui.spinner();
            ui.label(say_with(
                ui,
                "connect-waiting",
                &[("target", place(ui, &waiting.target).into()), ("waited", waited.into()), ("limit", limit.into())],
            ));
        });
    }
    if let Some(why) = &state.connect_error {
        why.iter().for_each(|d| diagnostic_below(ui, d));
        ui.weak(say_with(ui, "connect-still", &[("target", place(ui, &state.view.target).into())]));
    }
}

/// The devices of the active worker.
fn connection(ui: &mut Ui, state: &State) {
    if state.session.has(JobKind::Hello) {
        ui.horizontal(|ui| {
            ui.spinner();
            ui.label(say_with(ui, "connect-starting", &[("target", place(ui, &state.view.target).into())]));
        });
    }
    if let Some(why) = &state.session.worker_error {
        why.iter().for_each(|d| diagnostic_below(ui, d));
    }
    let Some(info) = &state.session.worker else { return };
    ui.label(say_with(
        ui,
        "connect-connected",
        &[("host", (&*info.host).into()), ("version", (&*info.version).into())],
    ));
    for device in &info.devices {
        ui.label(format!("{}: {}", device.device, device.name));
        if let Some(why) = &device.unusable {
            diagnostic_below(ui, why);
        }
    }
}
