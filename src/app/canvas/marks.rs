//! Marks and words over the picture: the pinned cell, the reason for a missing picture, an outdated picture.
//!
//! Invariant: each is drawn over the picture and changes nothing. Must not know tools or tiles.

use super::Scene;
use super::colors::Palette;
use super::heat::HeatMap;
use super::view::ScreenFromWorld;
use crate::base::Lengths;
use egui::{FontId, Rect, Ui, pos2, vec2};

/// Lines through a cell along its row and its column, so that it is found at any zoom.
pub(super) fn cross_hair(painter: &egui::Painter, map: &ScreenFromWorld, [q, kv]: [usize; 2], color: egui::Color32) {
    let cell = map.rect_of([q as f64, (q + 1) as f64], [kv as f64, (kv + 1) as f64]);
    let line = egui::Stroke::new(1.0, color.gamma_multiply(0.7));
    painter.hline(map.rect.x_range(), cell.center().y, line);
    painter.vline(cell.center().x, map.rect.y_range(), line);
    painter.rect_stroke(cell.expand(2.0), 0.0, (1.5, color), egui::StrokeKind::Outside);
}

/// Numbers of cells, or the reason why there are none.
pub(super) fn numbers(
    heat: &mut HeatMap,
    ui: &Ui,
    painter: &egui::Painter,
    map: &ScreenFromWorld,
    scene: &Scene<'_>,
    palette: &Palette,
) {
    let Some(numbers) = scene.map else { return };
    let Some(data) = numbers.data else { return blank(painter, map, scene.lengths, numbers.words, palette) };
    // the last blocks may reach beyond the tokens
    let whole = map.rect_of([0.0, scene.lengths.q_len as f64], [0.0, scene.lengths.kv_len as f64]);
    let inside = painter.with_clip_rect(whole.intersect(map.rect));
    heat.over(ui, &inside, map, data, numbers.log, palette);
    if !numbers.words.is_empty() {
        caption(painter, pos2(map.rect.center().x, map.rect.bottom() - 24.0), numbers.words, palette);
    }
}

/// A picture of nothing, in words.
pub(super) fn blank(painter: &egui::Painter, map: &ScreenFromWorld, lengths: Lengths, words: &str, palette: &Palette) {
    let whole = map.rect_of([0.0, lengths.q_len as f64], [0.0, lengths.kv_len as f64]);
    painter.rect_filled(whole, 0.0, palette.empty);
    caption(painter, map.rect.intersect(whole).center(), words, palette);
}

/// Says over a picture that it is not of the document as it is now: greyed, striped and named.
pub(super) fn veil(painter: &egui::Painter, map: &ScreenFromWorld, lengths: Lengths, words: &str, palette: &Palette) {
    const GAP: f32 = 14.0;
    let whole = map.rect_of([0.0, lengths.q_len as f64], [0.0, lengths.kv_len as f64]).intersect(map.rect);
    painter.rect_filled(whole, 0.0, palette.veil);
    let inside = painter.with_clip_rect(whole);
    let height = whole.height();
    for n in 0..((whole.width() + height) / GAP) as usize {
        let x = whole.left() - height + n as f32 * GAP;
        let stripe = [pos2(x, whole.bottom()), pos2(x + height, whole.top())];
        inside.line_segment(stripe, (1.5, palette.not_a_number.gamma_multiply(0.5)));
    }
    caption(painter, whole.center(), words, palette);
}

/// Words over the picture.
fn caption(painter: &egui::Painter, at: egui::Pos2, words: &str, palette: &Palette) {
    let galley = painter.layout_no_wrap(words.to_string(), FontId::proportional(15.0), palette.boundary);
    let rect = Rect::from_center_size(at, galley.size());
    painter.rect_filled(rect.expand2(vec2(10.0, 6.0)), 4.0, palette.outside);
    painter.galley(rect.min, galley, palette.boundary);
}

pub(super) fn cross(painter: &egui::Painter, at: egui::Pos2, color: egui::Color32) {
    painter.hline(at.x - 8.0..=at.x + 8.0, at.y, (1.0, color));
    painter.vline(at.x, at.y - 8.0..=at.y + 8.0, (1.0, color));
}
