//! The Quality page without a capture: small drawings of the measures, and ways to get a capture.
//!
//! Invariant: the pictures illustrate the measures' definitions and are no measurement. Must not know how captures are
//! read.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{primary_button, section};
use egui::{Painter, Pos2, Rect, RichText, Sense, Shape, Stroke, Ui, pos2};

/// Size of a drawing, in points.
const DRAWN: [f32; 2] = [116.0, 54.0];

/// An explanation: the texts of its name and of its words, the drawing.
type Measure = ([&'static str; 2], fn(&Ui, &Painter, Rect));

const MEASURES: [Measure; 3] = [
    (["quality-mass", "quality-mass.words"], mass),
    (["quality-regret", "quality-regret.words"], regret),
    (["quality-error", "quality-error.words"], error),
];

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.add_space(6.0);
    ui.label(RichText::new(say(ui, "quality-question")).heading());
    ui.label(say(ui, "quality-depends"));
    ui.add_space(4.0);
    ui.horizontal_wrapped(|ui| {
        for (command, primary) in [(Command::OpenSample, true), (Command::Open, false)] {
            let text = if command == Command::Open { say(ui, "quality-open-capture") } else { command.text(ui.ctx()) };
            let button = if primary { primary_button(ui, text, true) } else { egui::Button::new(text) };
            if ui.add(button).on_hover_text(command.tip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
    });
    section(ui, say(ui, "quality-then"));
    for (texts, draw) in MEASURES {
        let [name, words] = texts.map(|id| say(ui, id));
        let drawn = say_with(ui, "quality-drawn", &[("name", name.into())]);
        ui.horizontal_top(|ui| {
            let (rect, response) = ui.allocate_exact_size(DRAWN.into(), Sense::hover());
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &drawn));
            draw(ui, &ui.painter_at(rect), rect.shrink(4.0));
            ui.vertical(|ui| {
                ui.strong(name);
                ui.add(egui::Label::new(RichText::new(words).weak()).wrap());
            });
        });
    }
    section(ui, say(ui, "quality-record"));
    ui.label(say(ui, "quality-record-words"));
    let script = state.session.recorder.as_ref().map_or(crate::export::RECORDER.into(), |p| p.display().to_string());
    let line = format!("python {script} --out qkv.safetensors your_script.py");
    ui.horizontal_wrapped(|ui| {
        if ui.button(Command::SaveRecorder.text(ui.ctx())).on_hover_text(Command::SaveRecorder.tip(ui.ctx())).clicked()
        {
            actions.command(Command::SaveRecorder);
        }
        if ui.button(say(ui, "quality-copy-command")).on_hover_text(&line).clicked() {
            ui.ctx().copy_text(line.clone());
        }
    });
    ui.add(egui::Label::new(RichText::new(&line).monospace()).wrap());
}

/// Probabilities of a row: those of kept keys, and the lost ones.
fn mass(ui: &Ui, painter: &Painter, rect: Rect) {
    const ROW: [f32; 14] = [0.62, 0.1, 0.06, 0.04, 0.16, 0.3, 0.08, 0.05, 0.1, 0.22, 0.4, 0.56, 0.8, 1.0];
    let colours = palette(ui.visuals());
    let wide = rect.width() / ROW.len() as f32;
    for (n, height) in ROW.iter().enumerate() {
        let left = rect.left() + n as f32 * wide;
        let bar = Rect::from_min_max(
            pos2(left + 1.0, rect.bottom() - height * rect.height()),
            pos2(left + wide - 1.0, rect.bottom()),
        );
        // a window of the last keys
        let colour = if n >= 8 { colours.accent } else { colours.warning };
        painter.rect_filled(bar, 1.0, colour);
    }
}

/// Mass in the best blocks, and in as many that the mask visits.
fn regret(ui: &Ui, painter: &Painter, rect: Rect) {
    let colours = palette(ui.visuals());
    let high = rect.height() / 2.0 - 4.0;
    let bar = |top: f32, from: f32, to: f32, colour| {
        let x = |share: f32| rect.left() + share * rect.width();
        let bar = Rect::from_min_max(pos2(x(from), top), pos2(x(to) - 1.5, top + high));
        painter.rect_filled(bar, 1.0, colour);
    };
    for [from, to] in [[0.0, 0.42], [0.42, 0.68], [0.68, 0.84], [0.84, 0.95]] {
        bar(rect.top() + 2.0, from, to, colours.bar);
    }
    let below = rect.bottom() - high - 2.0;
    for [from, to] in [[0.0, 0.42], [0.42, 0.58], [0.58, 0.69], [0.69, 0.74]] {
        bar(below, from, to, colours.accent);
    }
    bar(below, 0.74, 0.95, colours.warning);
}

/// The output with and without the mask, and the difference.
fn error(ui: &Ui, painter: &Painter, rect: Rect) {
    let colours = palette(ui.visuals());
    let curve = |masked: bool| -> Vec<Pos2> {
        let point = |n: usize| {
            let t = n as f32 / 40.0;
            let full = 0.5 + 0.32 * (t * 7.0).sin() * (1.0 - 0.4 * t);
            let off = if masked { 0.1 * (t * 11.0 + 1.0).sin() } else { 0.0 };
            pos2(rect.left() + t * rect.width(), rect.bottom() - (full + off) * rect.height())
        };
        (0..=40).map(point).collect()
    };
    let (full, masked) = (curve(false), curve(true));
    for (a, b) in full.iter().zip(&masked) {
        painter.line_segment([*a, *b], Stroke::new(2.0, colours.warning));
    }
    painter.add(Shape::line(full, Stroke::new(1.5, colours.bar)));
    painter.add(Shape::line(masked, Stroke::new(1.8, colours.accent)));
}
