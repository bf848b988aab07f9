//! The gallery: presets with small pictures of their masks.
//!
//! Invariant: opens at once; pictures follow as they are drawn. Must not know how presets are opened.

use super::{Action, Actions, Next, State, title};
use crate::app::canvas::colors::Palette;
use crate::app::opening::Thumbnail;
use crate::app::widgets::painted;
use crate::base::Diagnostic;
use crate::document::library;
use crate::service::recorded;
use egui::{Color32, ColorImage, RichText, ScrollArea, TextureHandle, TextureOptions, Ui, Vec2};
use std::collections::HashMap;

/// Pixels along the longer side of a small picture.
const SIZE: usize = 96;
/// Room of a picture on its card.
const PICTURE: f32 = 112.0;
/// Room of a card.
const CARD: Vec2 = Vec2::new(172.0, 176.0);

/// The draft.
#[derive(Clone)]
pub(crate) struct GalleryDialog {
    filter: String,
    cards: Vec<Card>,
    drawn: HashMap<String, Thumbnail>,
    textures: HashMap<String, TextureHandle>,
    /// Why some have no picture.
    failed: HashMap<String, String>,
    /// Typing filters from the start.
    focused: bool,
}

impl std::fmt::Debug for GalleryDialog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GalleryDialog({:?})", self.filter)
    }
}

#[derive(Clone, Debug)]
struct Card {
    name: &'static str,
    title: String,
    about: String,
    axes: String,
    /// `Recorded on NVIDIA H200, 2026-11-21: flex 0.31 ms, 2.10x cuDNN 9.19 SDPA`, one a card.
    recorded: Vec<String>,
}

impl GalleryDialog {
    /// Starts drawing the pictures.
    pub fn new(state: &mut State) -> Self {
        let card = |preset: &library::Preset| {
            let document = preset.document().ok()?;
            let axes = document.axes.q.to_string();
            let line = |r: &recorded::Recorded| Some(format!("Recorded on {}: {}", r.place(), r.summary()?));
            let recorded = recorded::of(&document).into_iter().filter_map(line).collect();
            Some(Card { name: preset.name, title: document.name, about: document.about, axes, recorded })
        };
        let cards: Vec<Card> = library::presets().iter().filter_map(card).collect();
        state.session.errands.thumbnails(cards.iter().map(|c| c.name.to_string()).collect(), SIZE);
        let (drawn, textures, failed) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { filter: String::new(), cards, drawn, textures, failed, focused: false }
    }

    /// A picture has come, or why there is none.
    pub fn put(&mut self, preset: String, picture: Result<Thumbnail, Diagnostic>) {
        match picture {
            Ok(picture) => drop(self.drawn.insert(preset, picture)),
            Err(why) => drop(self.failed.insert(preset, why.message)),
        }
    }

    /// How many pictures have come, and how many could not be drawn.
    #[cfg(test)]
    pub fn pictures(&self) -> (usize, usize) {
        (self.drawn.len() + self.textures.len(), self.failed.len())
    }

    fn texture(&mut self, ui: &Ui, name: &str) -> Option<TextureHandle> {
        if let Some(pixels) = self.drawn.remove(name) {
            let handle = ui.ctx().load_texture(
                format!("preset {name}"),
                picture(&pixels, &Palette::of(ui.visuals())),
                TextureOptions::LINEAR,
            );
            self.textures.insert(name.to_string(), handle);
        }
        self.textures.get(name).cloned()
    }

    fn matching(&self) -> Vec<Card> {
        let wanted = self.filter.to_lowercase();
        let has = |card: &&Card| {
            let texts = [card.name, &card.title, &card.about, &card.axes].map(str::to_lowercase);
            wanted.split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
        };
        self.cards.iter().filter(has).cloned().collect()
    }
}

/// Kept shares in the colours of the canvas.
fn picture(drawn: &Thumbnail, colours: &Palette) -> ColorImage {
    let [height, width] = drawn.size;
    ColorImage::new([width, height], drawn.pixels.iter().map(|share| colours.blocks(*share)).collect())
}

pub(super) fn show(ui: &mut Ui, dialog: &mut GalleryDialog, actions: &mut Actions) -> Next {
    title(ui, "Gallery");
    let field = egui::TextEdit::singleline(&mut dialog.filter).desired_width(f32::INFINITY);
    let response = ui.add(field.hint_text("Filter by name or description")).accessible_name("Filter");
    if !dialog.focused {
        response.request_focus();
        dialog.focused = true;
    }
    let cards = dialog.matching();
    if cards.is_empty() {
        ui.weak("No preset has these words.");
    }
    ScrollArea::vertical().max_height(super::room(ui, 170.0).min(640.0)).auto_shrink([false, true]).show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            for card in &cards {
                let texture = dialog.texture(ui, card.name);
                let failed = dialog.failed.get(card.name).map(String::as_str);
                if card_ui(ui, card, texture.as_ref(), failed) {
                    actions.push(Action::OpenPreset(card.name.into()));
                }
            }
        });
    });
    ui.add_space(8.0);
    if ui.button("Close").clicked() { Next::Close } else { Next::Stay }
}

fn card_ui(ui: &mut Ui, card: &Card, texture: Option<&TextureHandle>, failed: Option<&str>) -> bool {
    let (rect, response) = ui.allocate_exact_size(CARD, egui::Sense::click());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &card.title));
    let visuals = ui.style().interact(&response);
    ui.painter().rect(rect.shrink(2.0), 6.0, visuals.weak_bg_fill, visuals.bg_stroke, egui::StrokeKind::Inside);
    let corner = rect.min + Vec2::new((CARD.x - PICTURE) / 2.0, 10.0);
    let picture = egui::Rect::from_min_size(corner, Vec2::splat(PICTURE));
    match texture {
        Some(texture) => {
            // in the mask's own proportions, however many pixels they are
            let size = texture.size_vec2();
            let place = egui::Rect::from_center_size(picture.center(), size * (PICTURE / size.max_elem()));
            let whole = egui::Rect::from_min_max(egui::pos2(0.0, 0.0), egui::pos2(1.0, 1.0));
            ui.painter().image(texture.id(), place, whole, Color32::WHITE);
        }
        None => {
            ui.painter().rect_filled(picture, 2.0, ui.visuals().extreme_bg_color);
        }
    }
    if failed.is_some() {
        let (font, colour) = (egui::FontId::proportional(30.0), ui.visuals().error_fg_color);
        ui.painter().text(picture.center(), egui::Align2::CENTER_CENTER, "?", font, colour);
    }
    let text = egui::pos2(rect.left() + 10.0, picture.bottom() + 8.0);
    let width = rect.width() - 20.0;
    painted(ui, text, width, RichText::new(&card.title).strong());
    painted(ui, text + Vec2::new(0.0, 20.0), width, RichText::new(&card.axes).small().weak());
    let response = response.on_hover_ui(|ui| {
        ui.set_max_width(360.0);
        ui.label(&card.about);
        if let Some(why) = failed {
            ui.colored_label(ui.visuals().error_fg_color, format!("No picture: {why}"));
        }
        card.recorded.iter().for_each(|line| drop(ui.weak(line)));
    });
    response.clicked()
}
