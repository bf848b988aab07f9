//! Installed and missing software on the worker's machine, with the command for each fix.
//!
//! Invariant: colour is never the only sign: every light has a word. Must not know how checks are made.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::language::{place, say, say_with, words};
use crate::app::session::JobKind;
use crate::app::speaking;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{command_button, id};
use crate::tasks::doctor::{explain, guide};
use crate::worker::protocol::{Check, DoctorReport, Health};
use egui::{Grid, Label, RichText, ScrollArea, Ui};

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        let working = state.session.has(JobKind::Doctor);
        command_button(ui, Command::Examine, !working, actions);
        if working {
            ui.spinner();
        }
        ui.weak(say_with(ui, "setup-on", &[("target", place(ui, &state.view.target).into())]));
        let missing =
            state.session.doctor.as_ref().and_then(|r| r.check("nvrtc")).is_some_and(|c| c.health != Health::Green);
        if missing && state.view.target.is_local() {
            command_button(ui, Command::FetchNvrtc, true, actions);
        }
        flash_attn(ui, state.session.doctor.as_deref());
        explain(ui);
    });
    speaking::field(ui, state, actions);
    let Some(report) = &state.session.doctor else {
        ui.weak(say(ui, "setup-empty"));
        return;
    };
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        checks(ui, report);
        ui.collapsing(say(ui, "setup-versions"), |ui| {
            for (name, value) in &report.environment {
                ui.label(format!("{name}: {value}"));
            }
        });
    });
}

/// The checks: a table, or below each other where a table would leave its last column little.
fn checks(ui: &mut Ui, report: &DoctorReport) {
    let room = ui.available_width();
    if room < TABLE {
        for check in &report.checks {
            ui.horizontal_wrapped(|ui| {
                light(ui, check);
                ui.label(RichText::new(&check.name).strong());
            });
            found(ui, check);
            ui.add_space(6.0);
        }
        return;
    }
    // a grid gives its last column what the words want, not what the panel has
    Grid::new("doctor").num_columns(3).striped(true).max_col_width((room - 150.0).max(120.0)).show(ui, |ui| {
        for check in &report.checks {
            light(ui, check);
            ui.label(&check.name);
            ui.vertical(|ui| found(ui, check));
            ui.end_row();
        }
    });
}

/// How it is, in a word.
fn light(ui: &mut Ui, check: &Check) {
    let colours = palette(ui.visuals());
    let (word, colour) = match check.health {
        Health::Green => ("setup-ok", colours.good),
        Health::Amber => ("setup-missing", colours.warning),
        Health::Red => ("setup-broken", colours.error),
    };
    ui.label(RichText::new(say(ui, word)).strong().color(colour));
}

/// What was found, and what mends it.
fn found(ui: &mut Ui, check: &Check) {
    ui.add(Label::new(words(ui.ctx()).phrase(&check.found)).wrap());
    let Some(mend) = &check.mend else { return };
    let shown = words(ui.ctx()).way_out("", Some(mend)).unwrap_or_else(|| mend.clone());
    ui.add(Label::new(RichText::new(shown).monospace()).wrap());
    let copy = ui.small_button(say(ui, "copy")).on_hover_text(say(ui, "copy.tip"));
    if copy.accessible_name(say_with(ui, "setup-copy-fix", &[("name", (&*check.name).into())])).clicked() {
        ui.ctx().copy_text(mend.clone());
    }
}

/// Points of a panel's width from which on the checks are a table.
const TABLE: f32 = 460.0;

/// Points that a popup of this width has in the window.
fn popup_width(ui: &Ui, wanted: f32) -> f32 {
    wanted.min(ui.ctx().content_rect().width() - 40.0)
}

/// When FlashAttention is worth it, how to install and verify it, how to get back.
fn flash_attn(ui: &mut Ui, report: Option<&DoctorReport>) {
    let response = ui.button(say(ui, "setup-guide")).on_hover_text(say(ui, "setup-guide.tip"));
    egui::Popup::menu(&response).close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside).show(|ui| {
        ui.set_width(popup_width(ui, 640.0));
        let text = guide::guide("flash-attn", report.unwrap_or(&DoctorReport::default())).unwrap_or_default();
        ScrollArea::vertical().max_height(420.0_f32.min(ui.ctx().content_rect().height() - 80.0)).show(ui, |ui| {
            // a menu justifies its lines, which tears commands apart
            ui.with_layout(egui::Layout::top_down(egui::Align::Min), |ui| {
                ui.add(Label::new(RichText::new(&text).monospace().size(12.0)).wrap());
            });
        });
        if ui.button(say(ui, "copy")).clicked() {
            ui.ctx().copy_text(text);
        }
    });
}

/// The meaning of a message from elsewhere.
fn explain(ui: &mut Ui) {
    let memory = id("explain");
    let mut text = ui.data(|d| d.get_temp::<String>(memory)).unwrap_or_default();
    // in the row if it has room, else in one of its own, as wide as the panel
    let whole = ui.max_rect().width() - 10.0;
    let width = (ui.available_width() - 10.0).max(whole.min(240.0));
    let field = egui::TextEdit::singleline(&mut text).desired_width(width);
    let response = ui.add(field.hint_text(say(ui, "setup-explain.hint")));
    let response = response.accessible_name(say(ui, "setup-explain"));
    if !text.trim().is_empty() {
        let shown =
            egui::Popup::from_response(&response).open(true).close_behavior(egui::PopupCloseBehavior::IgnoreClicks);
        shown.show(|ui| {
            ui.set_width(popup_width(ui, 520.0));
            ui.add(Label::new(explain::render(&text, words(ui.ctx()))).wrap());
            if ui.button(say(ui, "done")).clicked() {
                text.clear();
            }
        });
    }
    ui.data_mut(|d| d.insert_temp(memory, text));
}
