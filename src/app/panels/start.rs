//! The first steps: a sentence about Maskloom, and starting points.
//!
//! Invariant: each step is a command; the row disappears when something is opened and returns from the View menu. Must
//! not know what commands do.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::theme;
use crate::app::widgets::painted;
use egui::{RichText, Sense, Ui, Vec2};

const STEPS: [(Command, &str, &str); 6] = [
    (Command::Gallery, "Gallery", "ready masks with pictures"),
    (Command::PasteCode, "Paste or open FlexAttention code", "mask_mod, score_mod, whole files"),
    (Command::OpenConfig, "Open a trainer's config.json", "fit a mask to its model, export back"),
    (Command::Connect, "Connect a GPU", "ssh, Slurm, a container"),
    (Command::Tour, "Watch a tour", "90 seconds, plays by itself"),
    (Command::ShowLearn, "Show me in two minutes", "what a block is, why it is fast"),
];
/// Height of a step, in points.
const HEIGHT: f32 = 42.0;

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let words = "Maskloom shows which tokens may attend to which, lets you change it, and measures the saved time.";
        ui.add(egui::Label::new(RichText::new(words).strong()).truncate());
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let close = ui.small_button("×").on_hover_text("Hides these first steps; the View menu shows them again.");
            if close.accessible_name("Hide the first steps").clicked() {
                actions.command(Command::StartStrip);
            }
        });
    });
    ui.horizontal(|ui| {
        let gaps = ui.spacing().item_spacing.x * (STEPS.len() - 1) as f32;
        // the longer the words, the wider the card
        let letters = |(_, title, words): &(Command, &str, &str)| title.len().max(words.len() * 5 / 6) as f32;
        let all: f32 = STEPS.iter().map(letters).sum();
        let room = ui.available_width() - gaps;
        for step in STEPS {
            let (command, title, words) = step;
            let width = (room * letters(&step) / all).floor().max(40.0);
            if card(ui, width, title, words).on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
    });
}

fn card(ui: &mut Ui, width: f32, title: &str, words: &str) -> egui::Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, HEIGHT), Sense::click());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, title));
    let colours = theme::palette(ui.visuals());
    let visuals = ui.style().interact(&response);
    ui.painter().rect(rect, 6.0, visuals.weak_bg_fill, visuals.bg_stroke, egui::StrokeKind::Inside);
    let mark = egui::Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height()));
    ui.painter().rect_filled(mark, 2.0, colours.accent);
    let inner = rect.shrink2(Vec2::new(11.0, 4.0));
    painted(ui, inner.left_top(), inner.width(), RichText::new(title).strong());
    painted(ui, inner.left_top() + Vec2::new(0.0, 18.0), inner.width(), RichText::new(words).small().weak());
    response
}
