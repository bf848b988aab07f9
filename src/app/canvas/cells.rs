//! The text in a cell that is large enough: its q and k, whether it is kept, and by which layer.
//!
//! Invariant: the values are the interpreter's; their number grows with the screen, never with the lengths. Must not
//! know tiles.

use super::colors::Palette;
use super::hover::{decided_by, keeps, short};
use super::rulers::digits;
use super::view::ScreenFromWorld;
use super::{Picture, Scene};
use crate::ir::cell::{Cell, eval};
use egui::{Align2, Color32, FontId, Painter, Rect};

/// Cells carry their place from this side on, in points, and the reason from the other.
const PLACE: f64 = 58.0;
const REASON: f64 = 112.0;

/// Draws the text of the visible cells, if they are large enough.
pub(super) fn paint(painter: &Painter, map: &ScreenFromWorld, scene: &Scene<'_>, palette: &Palette) {
    let side = map.q.scale.min(map.kv.scale);
    if side < PLACE {
        return;
    }
    let [q0, q1, kv0, kv1] = map.visible(scene.lengths);
    for q in q0 as usize..q1.ceil() as usize {
        for kv in kv0 as usize..kv1.ceil() as usize {
            let rect = map.rect_of([q as f64, q as f64 + 1.0], [kv as f64, kv as f64 + 1.0]);
            one(painter, rect, scene, [q, kv], side >= REASON, palette);
        }
    }
}

fn one(painter: &Painter, rect: Rect, scene: &Scene<'_>, [q, kv]: [usize; 2], reason: bool, palette: &Palette) {
    let cell = Cell { b: scene.b as i64, h: scene.h as i64, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
    let kept = scene.mask.as_ref().is_none_or(|m| keeps(m, &cell));
    let is_plain = matches!(scene.picture, Picture::Blocks | Picture::Mask);
    let ink = ink(kept && is_plain, palette);
    // a token's text is next to its number, as far as the cell is wide
    let room = (rect.width() / 6.5) as usize;
    let named = |side: usize, name: &str, token: usize| {
        let number = format!("{name} {}", digits(token));
        match scene.texts[side].and_then(|texts| texts.at(token)) {
            Some(text) => format!("{number} {text}").chars().take(room).collect(),
            None => number,
        }
    };
    let mut lines = vec![named(0, "q", q), named(1, "k", kv)];
    if reason {
        let by = decided_by(&scene.layers, |m| keeps(m, &cell)).map(|l| l.name).unwrap_or_default();
        lines.push(scene.said.text(if kept { "cell-kept" } else { "cell-dropped" }).into());
        lines.push(by.chars().take(room).collect());
    }
    // where biases are drawn a smaller cell tells its own too
    if let Some(score) = scene.score.as_ref().filter(|_| reason || scene.picture == Picture::Bias) {
        let at = if reason { lines.len() } else { 0 };
        let bias = short(eval(score, &cell).as_float() as f32);
        lines.insert(at, scene.said.with("cell-bias-is", &[("bias", bias.into())]));
    }
    let size = if reason { 12.0 } else { 10.5 };
    let step = size * 1.3;
    let top = rect.center().y - step * lines.len() as f32 / 2.0;
    for (at, line) in lines.iter().enumerate() {
        let place = egui::pos2(rect.center().x, top + step * at as f32);
        let text = painter.layout_no_wrap(line.clone(), FontId::proportional(size), ink);
        let under = Align2::CENTER_TOP.anchor_size(place, text.size());
        // a map's colours are any: words have a ground of their own there
        if !is_plain {
            painter.rect_filled(under.expand(1.0), 2.0, palette.empty);
        }
        painter.galley(under.min, text, ink);
    }
}

/// Words on a kept cell's colour, or on an empty one's.
fn ink(bright: bool, palette: &Palette) -> Color32 {
    match (bright, palette.dark) {
        (true, true) => Color32::from_rgb(0x06, 0x14, 0x20),
        (true, false) => Color32::WHITE,
        (false, _) => palette.boundary,
    }
}
