//! The first steps: a sentence about Maskloom, and starting points.
//!
//! Invariant: each step is a command; the row disappears when something is opened and returns from the View menu. Must
//! not know what commands do.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::language::say;
use crate::app::theme;
use crate::app::widgets::{painted, text_width};
use egui::{RichText, Sense, Ui, Vec2};

/// Commands, with the ids of their texts here.
const STEPS: [(Command, &str, &str); 6] = [
    (Command::Gallery, "start-gallery", "start-gallery.words"),
    (Command::PasteCode, "start-paste", "start-paste.words"),
    (Command::OpenConfig, "start-config", "start-config.words"),
    (Command::Connect, "start-connect", "start-connect.words"),
    (Command::Tour, "start-tour", "start-tour.words"),
    (Command::ShowLearn, "start-learn", "start-learn.words"),
];
/// Height of a step, in points; without the words below its title.
const HEIGHT: f32 = 42.0;
const LOW: f32 = 24.0;
/// Points of a card beside its title.
const BESIDE: f32 = 22.0;
/// Steps in a row where one row is too narrow for the titles.
const FEW: usize = 3;

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, actions: &mut Actions) {
    ui.horizontal(|ui| {
        ui.add(egui::Label::new(RichText::new(say(ui, "start-words")).strong()).truncate());
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let close = ui.small_button("×").on_hover_text(say(ui, "start-hide.tip"));
            if close.accessible_name(say(ui, "start-hide")).clicked() {
                actions.command(Command::StartStrip);
            }
        });
    });
    let steps = STEPS.map(|(command, title, words)| (command, say(ui, title), Some(say(ui, words))));
    let proportional = widths(ui, &steps);
    if steps.iter().zip(&proportional).all(|(step, width)| needed(ui, step) <= *width) {
        return row(ui, &steps, &proportional, actions);
    }
    // titles that are cut tell nothing
    let titles = steps.map(|(command, title, _)| (command, title, None));
    for few in titles.chunks(FEW) {
        let own: Vec<f32> = few.iter().map(|step| needed(ui, step)).collect();
        let rest = ui.available_width() - gaps(ui, few) - own.iter().sum::<f32>();
        // what the titles leave is for all
        let even: Vec<f32> = own.iter().map(|width| (width + rest / few.len() as f32).floor().max(40.0)).collect();
        row(ui, few, &even, actions);
    }
}

/// What a step does, its title and the words below.
type Step = (Command, &'static str, Option<&'static str>);

/// The width that a card needs for its title.
fn needed(ui: &Ui, step: &Step) -> f32 {
    text_width(ui, RichText::new(step.1).strong()) + BESIDE
}

/// The width of each card: the longer the words, the wider.
fn widths(ui: &Ui, steps: &[Step]) -> Vec<f32> {
    let letters = |(_, title, words): &Step| letters(title).max(words.map_or(0, letters) * 5 / 6) as f32;
    let all: f32 = steps.iter().map(letters).sum();
    let room = ui.available_width() - gaps(ui, steps);
    steps.iter().map(|step| (room * letters(step) / all).floor().max(40.0)).collect()
}

/// Points between the cards of a row.
fn gaps(ui: &Ui, steps: &[Step]) -> f32 {
    ui.spacing().item_spacing.x * steps.len().saturating_sub(1) as f32
}

fn row(ui: &mut Ui, steps: &[Step], widths: &[f32], actions: &mut Actions) {
    ui.horizontal(|ui| {
        for ((command, title, words), width) in steps.iter().zip(widths) {
            if card(ui, *width, title, *words).on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(*command);
            }
        }
    });
}

/// About how wide a text is: wide characters count twice, marks on others nothing.
fn letters(text: &str) -> usize {
    let wide = |c: char| match u32::from(c) {
        0x2e80..=0x9fff | 0xac00..=0xd7ff | 0xf900..=0xffff => 2,
        0x93a..=0x94f if !matches!(u32::from(c), 0x93d..=0x940) => 0,
        _ => 1,
    };
    text.chars().map(wide).sum()
}

fn card(ui: &mut Ui, width: f32, title: &str, words: Option<&str>) -> egui::Response {
    let height = if words.is_some() { HEIGHT } else { LOW };
    let (rect, response) = ui.allocate_exact_size(Vec2::new(width, height), Sense::click());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, title));
    let colours = theme::palette(ui.visuals());
    let visuals = ui.style().interact(&response);
    ui.painter().rect(rect, 6.0, visuals.weak_bg_fill, visuals.bg_stroke, egui::StrokeKind::Inside);
    let mark = egui::Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height()));
    ui.painter().rect_filled(mark, 2.0, colours.accent);
    let inner = rect.shrink2(Vec2::new(11.0, 4.0));
    painted(ui, inner.left_top(), inner.width(), RichText::new(title).strong());
    if let Some(words) = words {
        painted(ui, inner.left_top() + Vec2::new(0.0, 18.0), inner.width(), RichText::new(words).small().weak());
    }
    response
}
