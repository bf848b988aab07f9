//! Small pictures of single layers and score mods, as each is by itself.
//!
//! Invariant: a picture is of the mod that was compiled last; one is worked out again only where its mod has changed, and
//! not at every key. Must not know lists.

use crate::app::canvas::colors::{Palette, Ramp};
use crate::app::state::State;
use crate::app::widgets::id;
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::Mod;
use egui::{Color32, ColorImage, TextureHandle, TextureOptions, Ui};
use std::sync::Arc;

/// Cells along each side.
const SIDE: usize = 20;
/// Seconds between two pictures of a layer that keeps changing.
const PAUSE: f64 = 0.3;

/// What a picture is of: the mod by its place in memory, lengths, batch entry, head, dark.
type Key = (usize, [usize; 2], [usize; 2], bool);

#[derive(Clone)]
struct Known {
    key: Key,
    /// Keeps the mod where it is, so that no other has its place.
    _of: Arc<Mod>,
    texture: TextureHandle,
    at: f64,
}

/// The picture of a layer or score mod; None while it has never compiled.
pub(super) fn of(ui: &Ui, state: &State, layer: u64, is_mask: bool) -> Option<TextureHandle> {
    let memory = id("layer thumbnail").with((layer, state.session.number));
    let known = ui.data(|d| d.get_temp::<Known>(memory));
    let built = state.session.built.as_ref()?;
    let made = built.compiled.layers.iter().find(|l| l.id == layer).and_then(|l| l.result.clone());
    let (Some(made), Some(lengths)) = (made, built.lengths) else { return known.map(|k| k.texture) };
    let group = [state.focus.b, state.focus.h];
    let key: Key = (Arc::as_ptr(&made) as usize, [lengths.q_len, lengths.kv_len], group, ui.visuals().dark_mode);
    if let Some(known) = known {
        if known.key == key {
            return Some(known.texture);
        }
        let wait = known.at + PAUSE - state.now;
        if wait > 0.0 {
            ui.ctx().request_repaint_after_secs(wait as f32);
            return Some(known.texture);
        }
    }
    let image = picture(&made, key.1, group, is_mask, &Palette::of(ui.visuals()));
    let texture = ui.ctx().load_texture("layer", image, TextureOptions::NEAREST);
    let known = Known { key, _of: made, texture: texture.clone(), at: state.now };
    ui.data_mut(|d| d.insert_temp(memory, known));
    Some(texture)
}

/// One cell of each part of the mask.
fn picture(of: &Mod, [q_len, kv_len]: [usize; 2], [b, h]: [usize; 2], is_mask: bool, palette: &Palette) -> ColorImage {
    let [rows, columns] = [SIDE.min(q_len), SIDE.min(kv_len)];
    let cell = |at: usize| Cell {
        b: b as i64,
        h: h as i64,
        q_idx: ((at / columns * 2 + 1) * q_len / (2 * rows)) as i64,
        kv_idx: ((at % columns * 2 + 1) * kv_len / (2 * columns)) as i64,
        score: 0.0,
    };
    let values = (0..rows * columns).map(|at| eval(of, &cell(at)));
    let pixels: Vec<Color32> = if is_mask {
        values.map(|v| if v.as_bool() { palette.full } else { palette.empty }).collect()
    } else {
        let values: Vec<f32> = values.map(|v| v.as_float() as f32).collect();
        match Ramp::over(values.iter().copied()) {
            Some(ramp) => values.iter().map(|v| ramp.color(*v, palette)).collect(),
            None => vec![palette.not_a_number; values.len()],
        }
    };
    ColorImage::new([columns, rows], pixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples;

    #[test]
    fn a_causal_layer_is_a_triangle() {
        let palette = Palette::dark(true);
        let image = picture(&examples::causal(), [8192, 8192], [0, 0], true, &palette);
        assert_eq!(image.size, [SIDE, SIDE]);
        let at = |row: usize, column: usize| image.pixels[row * SIDE + column];
        assert_eq!((at(19, 0), at(0, 19), at(7, 7)), (palette.full, palette.empty, palette.full));
        assert_eq!(picture(&examples::causal(), [3, 5], [0, 0], true, &palette).size, [5, 3]);
    }
}
