//! Heads as thumbnails of their block masses, those that lose most first; a click shows one.
//!
//! Invariant: the bar beneath a thumbnail is the mass that the mask keeps of it. Must not know how masses are computed.

use super::measures::heat;
use super::work::Line;
use crate::app::theme::palette;
use crate::app::widgets::{percent, section};
use egui::{Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};

/// Side of a thumbnail, in points.
const SIDE: f32 = 56.0;

/// Draws them; gives the one that was clicked, by its place.
pub(super) fn show(ui: &mut Ui, line: &Line) -> Option<usize> {
    section(ui, "Heads, most lost first");
    let mut order: Vec<usize> = (0..line.heads.len()).collect();
    order.sort_by(|a, b| line.heads[*a].1.mass.mean.total_cmp(&line.heads[*b].1.mass.mean));
    let mut chosen = None;
    ui.horizontal_wrapped(|ui| {
        for at in order {
            let (number, head) = &line.heads[at];
            let (rect, response) = ui.allocate_exact_size(vec2(SIDE, SIDE + 8.0), Sense::click());
            let name = format!("Head {number}");
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &name));
            paint(ui, rect, line, at);
            let words = format!(
                "head {number}: keeps {} of its mass, {} in its worst row, in {} of the blocks",
                percent(head.mass.mean),
                percent(head.mass.min),
                percent(head.cost.density())
            );
            if response.on_hover_text(words).clicked() {
                chosen = Some(at);
            }
        }
    });
    chosen
}

fn paint(ui: &Ui, rect: Rect, line: &Line, at: usize) {
    let painter = ui.painter_at(rect.expand(1.0));
    let colours = palette(ui.visuals());
    if let Some((values, columns)) = line.thumbs.get(at) {
        heat(&painter, Rect::from_min_size(rect.min, vec2(SIDE, SIDE)), values, *columns);
    }
    let mass = line.heads[at].1.mass.mean.clamp(0.0, 1.0) as f32;
    let bar = Rect::from_min_max(pos2(rect.left(), rect.bottom() - 6.0), pos2(rect.left() + SIDE, rect.bottom() - 1.0));
    painter.rect_filled(bar, 0.0, colours.warning);
    painter.rect_filled(Rect::from_min_size(bar.min, vec2(bar.width() * mass, bar.height())), 0.0, colours.accent);
    if at == line.shown {
        painter.rect_stroke(rect, 0.0, Stroke::new(2.0, colours.accent), StrokeKind::Outside);
    }
}
