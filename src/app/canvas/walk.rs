//! The walk of a row of query blocks over its kv blocks: the row, the finished part, and the position.
//!
//! Invariant: drawn over the picture, which stays readable. Must not know what the walk computes.

use super::colors::Palette;
use super::view::ScreenFromWorld;
use super::{Scene, Walk};
use egui::{Painter, Rect, StrokeKind};

/// Draws it.
pub(super) fn paint(painter: &Painter, map: &ScreenFromWorld, scene: &Scene<'_>, walk: &Walk<'_>, palette: &Palette) {
    let size = scene.block_size;
    let rows = [(walk.q_block * size.q) as f64, ((walk.q_block + 1) * size.q).min(scene.lengths.q_len) as f64];
    let row = map.rect_of(rows, [0.0, scene.lengths.kv_len as f64]);
    painter.rect_stroke(row, 0.0, (1.0, palette.accent), StrokeKind::Outside);
    let tile = |kv_block: usize| {
        let columns = [(kv_block * size.kv) as f64, ((kv_block + 1) * size.kv).min(scene.lengths.kv_len) as f64];
        at_least(map.rect_of(rows, columns))
    };
    let (done, _) = walk.tiles.split_at(walk.step.min(walk.tiles.len()));
    for kv_block in done {
        painter.rect_filled(tile(*kv_block), 0.0, palette.accent.gamma_multiply(0.35));
    }
    if let Some(now) = done.last() {
        painter.rect_stroke(tile(*now).expand(1.0), 0.0, (2.5, palette.accent), StrokeKind::Outside);
    }
}

/// Large enough to be seen at any zoom.
fn at_least(rect: Rect) -> Rect {
    Rect::from_center_size(rect.center(), rect.size().max(egui::vec2(4.0, 4.0)))
}
