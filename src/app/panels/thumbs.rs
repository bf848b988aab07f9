//! Small pictures of single layers and score mods, each alone.
//!
//! Invariant: a picture shows the last compiled mod; it is drawn again only if its mod has changed, not at every key,
//! and never on the window's thread. Each pixel is the share or the mean of its cells, so that a thin stripe is
//! visible. Must not know lists.

use crate::analysis::raster::{BiasRaster, Effort, Raster, Region};
use crate::app::canvas::colors::{Palette, Ramp};
use crate::app::mishaps::guarded;
use crate::app::state::State;
use crate::app::widgets::id;
use crate::base::{Control, Lengths};
use crate::ir::graph::Mod;
use egui::{Color32, ColorImage, Context, TextureHandle, TextureOptions, Ui};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Pixels along each side.
const SIDE: usize = 40;
/// Seconds between two pictures of a layer that keeps changing.
const PAUSE: f64 = 0.3;

/// Pictures in work, of all windows.
static WORKING: AtomicUsize = AtomicUsize::new(0);

/// Whether no picture is in work.
#[cfg(test)]
pub(crate) fn settled() -> bool {
    WORKING.load(Ordering::SeqCst) == 0
}

/// The key of a picture: the mod by its address, rows and columns, batch entry and head.
type Key = (usize, [usize; 2], [usize; 2]);

/// Shares or means, row by row; None after a panic of the analysis.
type Values = Arc<OnceLock<Option<Vec<f32>>>>;

/// A requested picture.
#[derive(Clone)]
struct Asked {
    key: Key,
    /// Keeps the mod alive, so that no other has its address.
    _of: Arc<Mod>,
    values: Values,
    at: f64,
}

/// A picture that is there.
#[derive(Clone)]
struct Drawn {
    key: Key,
    _of: Arc<Mod>,
    dark: bool,
    texture: TextureHandle,
}

/// The picture of a layer or score mod; None while there has never been one.
pub(super) fn of(ui: &Ui, state: &State, layer: u64, is_mask: bool) -> Option<TextureHandle> {
    let memory = id("layer thumbnail").with((layer, state.session.number));
    let built = state.session.built.as_ref()?;
    let made = built.compiled.layers.iter().find(|l| l.id == layer).and_then(|l| l.result.clone());
    let drawn = ui.data(|d| d.get_temp::<Drawn>(memory));
    let old = drawn.as_ref().map(|d| d.texture.clone());
    let (Some(made), Some(lengths)) = (made, built.lengths) else { return old };
    let group = [state.focus.b, state.focus.h];
    let key: Key = (Arc::as_ptr(&made) as usize, [lengths.q_len, lengths.kv_len], group);
    let dark = ui.visuals().dark_mode;
    if drawn.is_some_and(|d| d.key == key && d.dark == dark) {
        return old;
    }
    let asked = ui.data(|d| d.get_temp::<Asked>(memory));
    if let Some(asked) = asked.as_ref().filter(|asked| asked.key == key) {
        let Some(values) = asked.values.get() else { return old };
        let image = picture(values.as_deref(), sides(lengths), is_mask, &Palette::of(ui.visuals()));
        let options = TextureOptions { minification: egui::TextureFilter::Linear, ..TextureOptions::NEAREST };
        let texture = ui.ctx().load_texture("layer", image, options);
        let drawn = Drawn { key, _of: made, dark, texture: texture.clone() };
        ui.data_mut(|d| d.insert_temp(memory, drawn));
        return Some(texture);
    }
    if let Some(wait) = asked.map(|asked| asked.at + PAUSE - state.now).filter(|wait| *wait > 0.0) {
        ui.ctx().request_repaint_after_secs(wait as f32);
        return old;
    }
    let values = start(ui.ctx(), made.clone(), Region::whole(group, lengths, sides(lengths)), is_mask);
    let asked = Asked { key, _of: made, values, at: state.now };
    ui.data_mut(|d| d.insert_temp(memory, asked));
    old
}

/// Pixels over rows and columns.
fn sides(lengths: Lengths) -> [usize; 2] {
    [SIDE.min(lengths.q_len), SIDE.min(lengths.kv_len)]
}

/// Computes a picture on a separate thread, which then wakes the window.
fn start(ctx: &Context, of: Arc<Mod>, region: Region, is_mask: bool) -> Values {
    let values = Values::default();
    let (made, ctx) = (values.clone(), ctx.clone());
    WORKING.fetch_add(1, Ordering::SeqCst);
    let work = move || {
        let found = guarded("drawing a layer small", || shares(of, &region, is_mask)).ok();
        let _ = made.set(found);
        WORKING.fetch_sub(1, Ordering::SeqCst);
        ctx.request_repaint();
    };
    if std::thread::Builder::new().name("layer picture".into()).spawn(work).is_err() {
        // a system without threads left draws none
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
    values
}

/// Kept shares of a mask, means of a score mod.
fn shares(of: Arc<Mod>, region: &Region, is_mask: bool) -> Vec<f32> {
    match is_mask {
        true => Raster::new(of).picture(region, Effort::SKETCH, &Control::new()).pixels,
        false => BiasRaster::new(of).tile(region, &Control::new()),
    }
}

fn picture(values: Option<&[f32]>, [rows, columns]: [usize; 2], is_mask: bool, palette: &Palette) -> ColorImage {
    let Some(values) = values else { return ColorImage::filled([columns, rows], palette.not_a_number) };
    let pixels: Vec<Color32> = if is_mask {
        values.iter().map(|share| palette.blocks(*share)).collect()
    } else {
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

    fn image(of: Mod, lengths: [usize; 2]) -> ColorImage {
        let lengths = Lengths { q_len: lengths[0], kv_len: lengths[1] };
        let region = Region::whole([0, 0], lengths, sides(lengths));
        picture(Some(&shares(Arc::new(of), &region, true)), sides(lengths), true, &Palette::dark(true))
    }

    #[test]
    fn a_causal_layer_is_a_triangle() {
        let palette = Palette::dark(true);
        let of = image(examples::causal(), [8192, 8192]);
        assert_eq!(of.size, [SIDE, SIDE]);
        let at = |row: usize, column: usize| of.pixels[row * SIDE + column];
        assert_eq!((at(39, 0), at(0, 39)), (palette.blocks(1.0), palette.blocks(0.0)));
        assert_eq!(image(examples::causal(), [3, 5]).size, [5, 3]);
    }

    #[test]
    fn a_stripe_thinner_than_a_pixel_shows() {
        let of = image(examples::sliding_window(3), [65_536, 65_536]);
        let empty = Palette::dark(true).blocks(0.0);
        assert!((0..SIDE).all(|n| of.pixels[n * SIDE + n] != empty), "every pixel of the diagonal has kept cells");
        assert_eq!(of.pixels[SIDE - 1], empty);
    }
}
