//! Heads as thumbnails of their block masses, the largest loss first; a click shows one.
//!
//! Invariant: the bar beneath a thumbnail is the mass that the mask keeps; with block masses alone, its pale part is
//! uncertain. Must not know how masses are computed.

use super::measures::heat;
use crate::app::language::{say, say_with};
use crate::app::theme::palette;
use crate::app::widgets::{percent, section};
use crate::tasks::lab::page::look::Line;
use egui::{Painter, Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};

/// Side of a thumbnail, in points.
const SIDE: f32 = 56.0;
/// Height of a thumbnail with its bar and its number.
const HEIGHT: f32 = SIDE + 22.0;

/// A head of the line, by its place, or one with block masses alone.
#[derive(Clone, Copy)]
enum Which {
    Measured(usize),
    Bounded(usize),
}

/// Draws them; returns the clicked one, by its position.
pub(super) fn show(ui: &mut Ui, line: &Line) -> Option<usize> {
    section(ui, say(ui, "heads-title"));
    let mut order: Vec<(f64, Which)> =
        line.heads.iter().enumerate().map(|(at, (_, head))| (head.mass.mean, Which::Measured(at))).collect();
    order.extend(line.rest.iter().enumerate().map(|(at, head)| ((head.low + head.high) / 2.0, Which::Bounded(at))));
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut chosen = None;
    if !line.rest.is_empty() {
        let words = say(ui, "heads-pale");
        ui.add(egui::Label::new(egui::RichText::new(words).small().weak()).wrap());
    }
    ui.horizontal_wrapped(|ui| {
        for (_, which) in order {
            match which {
                Which::Measured(at) => {
                    if measured(ui, line, at) {
                        chosen = Some(at);
                    }
                }
                Which::Bounded(at) => bounded(ui, line, at),
            }
        }
    });
    chosen
}

fn measured(ui: &mut Ui, line: &Line, at: usize) -> bool {
    let (number, head) = &line.heads[at];
    let (rect, response) = ui.allocate_exact_size(vec2(SIDE, HEIGHT), Sense::click());
    let name = say_with(ui, "heads-name", &[("number", number.into())]);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &name));
    let painter = ui.painter_at(rect.expand(1.0));
    if let Some(thumb) = line.thumbs.get(at) {
        paint(ui, &painter, rect, (*number, thumb), [head.mass.mean; 2]);
    }
    if at == line.shown {
        let colours = palette(ui.visuals());
        painter.rect_stroke(rect, 0.0, Stroke::new(2.0, colours.accent), StrokeKind::Outside);
    }
    let words = say_with(
        ui,
        "heads-keeps",
        &[
            ("number", number.into()),
            ("mean", percent(head.mass.mean).into()),
            ("min", percent(head.mass.min).into()),
            ("blocks", percent(head.cost.density()).into()),
        ],
    );
    response.on_hover_text(words).clicked()
}

fn bounded(ui: &mut Ui, line: &Line, at: usize) {
    let head = &line.rest[at];
    let (rect, response) = ui.allocate_exact_size(vec2(SIDE, HEIGHT), Sense::hover());
    let words = say_with(
        ui,
        "heads-keeps-bounds",
        &[("number", head.number.into()), ("low", percent(head.low).into()), ("high", percent(head.high).into())],
    );
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &words));
    paint(ui, &ui.painter_at(rect.expand(1.0)), rect, (head.number, &head.thumb), [head.low, head.high]);
    response.on_hover_text(words);
}

fn paint(ui: &Ui, painter: &Painter, rect: Rect, (number, thumb): (usize, &(Vec<f32>, usize)), mass: [f64; 2]) {
    let (values, columns) = thumb;
    let colours = palette(ui.visuals());
    heat(painter, Rect::from_min_size(rect.min, vec2(SIDE, SIDE)), values, *columns);
    let below = rect.top() + SIDE;
    let bar = Rect::from_min_max(pos2(rect.left(), below + 2.0), pos2(rect.left() + SIDE, below + 7.0));
    // bounds apart are both told: the lower one alone is not what the head loses
    let words = match mass.map(|share| (100.0 * share).round()) {
        [low, high] if low != high => format!("{number}: {low:.0}\u{2013}{high:.0}%"),
        _ => format!("{number}: {}", percent(mass[0])),
    };
    let at = pos2(rect.center().x, bar.bottom() + 1.0);
    painter.text(at, egui::Align2::CENTER_TOP, words, egui::FontId::proportional(10.5), ui.visuals().text_color());
    painter.rect_filled(bar, 0.0, colours.warning);
    let part =
        |share: f64| Rect::from_min_size(bar.min, vec2(bar.width() * share.clamp(0.0, 1.0) as f32, bar.height()));
    painter.rect_filled(part(mass[1]), 0.0, colours.accent.gamma_multiply(0.5));
    painter.rect_filled(part(mass[0]), 0.0, colours.accent);
}
