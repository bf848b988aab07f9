//! The row of first steps above the picture.
//!
//! Invariant: each is a command; the row goes away when it is closed and comes back from the View menu. Must not know
//! what they do.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::state::State;
use crate::app::theme;
use crate::app::widgets::painted;
use egui::{RichText, Sense, Ui, Vec2};

const STEPS: [(Command, &str, &str); 4] = [
    (Command::PasteCode, "Paste or open FlexAttention code", "mask_mod, score_mod, whole files"),
    (Command::OpenConfig, "Open a trainer's config.json", "fit a mask to its model, export back"),
    (Command::Connect, "Connect a GPU", "ssh, Slurm, a container"),
    (Command::Gallery, "Gallery", "ready masks with pictures"),
];

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    // in a narrow window the picture needs the room; the same commands are in the menus
    if !state.view.start_strip || ui.available_width() < 520.0 {
        return;
    }
    ui.horizontal(|ui| {
        let room = ui.available_width() - 34.0 - ui.spacing().item_spacing.x * STEPS.len() as f32;
        // the longer the words, the wider the card
        let letters = |(_, title, words): &(Command, &str, &str)| title.len().max(words.len() * 5 / 6) as f32;
        let all: f32 = STEPS.iter().map(letters).sum();
        for step in STEPS {
            let (command, title, words) = step;
            let width = (room * letters(&step) / all).max(90.0);
            if card(ui, width, title, words).on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
        let close = ui.button("×").on_hover_text("Hides these first steps; View brings them back.");
        if close.accessible_name("Hide the start actions").clicked() {
            actions.command(Command::StartStrip);
        }
    });
    ui.add_space(4.0);
}

fn card(ui: &mut Ui, width: f32, title: &str, words: &str) -> egui::Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, 46.0), Sense::click());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, title));
    let colours = theme::palette(ui.visuals());
    let visuals = ui.style().interact(&response);
    ui.painter().rect(rect, 6.0, visuals.weak_bg_fill, visuals.bg_stroke, egui::StrokeKind::Inside);
    let mark = egui::Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height()));
    ui.painter().rect_filled(mark, 2.0, colours.accent);
    let inner = rect.shrink2(Vec2::new(11.0, 5.0));
    painted(ui, inner.left_top(), inner.width(), RichText::new(title).strong());
    painted(ui, inner.left_top() + Vec2::new(0.0, 19.0), inner.width(), RichText::new(words).small().weak());
    response
}
