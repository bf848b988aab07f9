//! The attention mass that rows keep, next to the picture of lost mass: a strip, the marked row, the keys that it
//! misses.
//!
//! Invariant: a pixel of the strip is the worst of its rows. Must not know how masses are counted.

use super::Loss;
use super::colors::Palette;
use super::view::ScreenFromWorld;
use crate::base::Lengths;
use egui::{Color32, Painter, Rect, pos2};

/// Width of the strip, in points.
const STRIP: f32 = 12.0;

/// Draws it.
pub(super) fn paint(painter: &Painter, map: &ScreenFromWorld, lengths: Lengths, loss: &Loss<'_>, palette: &Palette) {
    if loss.rows.len() != lengths.q_len {
        return;
    }
    let whole = map.rect_of([0.0, lengths.q_len as f64], [0.0, lengths.kv_len as f64]).intersect(map.rect);
    if let Some(row) = loss.row.filter(|row| *row < lengths.q_len) {
        let line = map.rect_of([row as f64, row as f64 + 1.0], [0.0, lengths.kv_len as f64]);
        painter.rect_stroke(line.expand2(egui::vec2(0.0, 1.0)), 0.0, (1.0, palette.accent), egui::StrokeKind::Outside);
        for (kv, share) in loss.missed.iter().filter(|(kv, _)| *kv < lengths.kv_len) {
            let at = map.pos(row as f64 + 0.5, *kv as f64 + 0.5);
            painter.circle_stroke(at, 3.0 + 8.0 * share.sqrt(), (1.5, palette.accent));
        }
    }
    let left = whole.right().min(map.rect.right() - STRIP);
    let (top, bottom) = (whole.top().floor() as i64, whole.bottom().ceil() as i64);
    for y in top..bottom {
        let edge = |y: f64| (map.q.token(y).max(0.0) as usize).min(lengths.q_len);
        let rows = edge(y as f64)..(edge(y as f64 + 1.0)).max(edge(y as f64) + 1).min(lengths.q_len);
        let least = worst(&loss.rows[rows.start.min(rows.end)..rows.end]);
        let line = Rect::from_min_max(pos2(left, y as f32), pos2(left + STRIP, y as f32 + 1.0));
        painter.rect_filled(line, 0.0, color(least, palette));
    }
    let strip = Rect::from_min_max(pos2(left, whole.top()), pos2(left + STRIP, whole.bottom()));
    painter.rect_stroke(strip, 0.0, (0.5, palette.boundary), egui::StrokeKind::Outside);
}

/// The smallest measured row; NaN if there is none.
fn worst(rows: &[f32]) -> f32 {
    rows.iter().copied().fold(f32::NAN, f32::min)
}

fn color(mass: f32, palette: &Palette) -> Color32 {
    if mass.is_nan() {
        return palette.not_a_number;
    }
    // by the root of the loss, so that a few percent are visible
    let c = colorous::VIRIDIS.eval_continuous(f64::from((1.0 - mass.clamp(0.0, 1.0)).sqrt()));
    Color32::from_rgb(c.r, c.g, c.b)
}

/// The strip's colours, from a row that keeps all its mass to one that keeps nothing.
pub(super) fn bar(palette: &Palette) -> Vec<Color32> {
    (0..24).map(|n| color(1.0 - n as f32 / 23.0, palette)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pixel_shows_its_worst_judged_row() {
        assert_eq!(worst(&[0.9, f32::NAN, 0.2, 0.5]), 0.2);
        assert!(worst(&[f32::NAN]).is_nan() && worst(&[]).is_nan());
    }
}
