//! A mask with its blocks in the colours of the ranks that compute them.
//!
//! Invariant: a colour is one rank's in every part of the page; a partial block is paler than a full one. Must not know
//! plans.

use super::work::Cells;
use egui::{Color32, ColorImage, Sense, TextureHandle, TextureOptions, Ui, Vec2};

/// Eight colours that people with any colour vision tell apart (Okabe and Ito).
const RANKS: [[u8; 3]; 8] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [213, 94, 0],
    [240, 228, 66],
    [130, 130, 130],
];

/// A rank's colour: of eight, or of a scale if there are more.
pub(super) fn colour(rank: usize, ranks: usize) -> Color32 {
    if ranks <= RANKS.len() {
        let [r, g, b] = RANKS[rank % RANKS.len()];
        return Color32::from_rgb(r, g, b);
    }
    let c = colorous::TURBO.eval_rational(rank, ranks);
    Color32::from_rgb(c.r, c.g, c.b)
}

/// A share as a colour.
pub(super) fn viridis(share: f32) -> Color32 {
    let c = colorous::VIRIDIS.eval_continuous(f64::from(share.clamp(0.0, 1.0)));
    Color32::from_rgb(c.r, c.g, c.b)
}

/// A picture and what it is of.
#[derive(Default)]
pub(super) struct Picture {
    texture: Option<TextureHandle>,
    /// The answer's number, and dark.
    of: Option<(u64, bool)>,
}

impl Picture {
    /// Draws it in a square of this width, with its title above.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        (title, width): (&str, f32),
        cells: &Cells,
        (number, ranks): (u64, usize),
    ) {
        let key = (number, ui.visuals().dark_mode);
        if self.of != Some(key) {
            let image = image(cells, ranks, ui.visuals().extreme_bg_color);
            self.texture = Some(ui.ctx().load_texture(title, image, TextureOptions::NEAREST));
            self.of = Some(key);
        }
        let Some(texture) = &self.texture else { return };
        ui.vertical(|ui| {
            // a title of any language stays above its picture
            ui.set_max_width(width);
            ui.label(title);
            let height = width * cells.height as f32 / cells.width.max(1) as f32;
            let (rect, response) = ui.allocate_exact_size(Vec2::new(width, height.clamp(20.0, width)), Sense::hover());
            let whole = egui::Rect::from_min_max(egui::pos2(0.0, 0.0), egui::pos2(1.0, 1.0));
            ui.painter().image(texture.id(), rect, whole, Color32::WHITE);
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, title));
        });
    }
}

fn image(cells: &Cells, ranks: usize, empty: Color32) -> ColorImage {
    let of = |cell: &Option<(u16, bool)>| match cell {
        None => empty,
        Some((rank, true)) => colour(*rank as usize, ranks),
        Some((rank, false)) => colour(*rank as usize, ranks).lerp_to_gamma(empty, 0.45),
    };
    ColorImage::new([cells.width, cells.height], cells.cells.iter().map(of).collect())
}
