//! The gallery: presets with small pictures of their masks.
//!
//! Invariant: opens at once; pictures follow as they are drawn. Must not know how presets are opened.

use super::{Action, Actions, Next, State, title};
use crate::app::canvas::colors::Palette;
use crate::app::opening::Thumbnail;
use crate::app::widgets::painted;
use crate::base::{BackendName, Diagnostic};
use crate::document::library;
use crate::service::recorded;
use egui::{Color32, ColorImage, RichText, ScrollArea, TextureHandle, TextureOptions, Ui, Vec2};
use std::collections::HashMap;
use std::path::PathBuf;

/// Pixels along the longer side of a small picture.
const SIZE: usize = 96;
/// Room of a picture on its card.
const PICTURE: f32 = 112.0;
/// Room of a card.
const CARD: Vec2 = Vec2::new(172.0, 176.0);

/// What presets are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Language,
    Image,
    Video,
    Encoders,
    Patterns,
    /// Files of the user's own.
    Yours,
}

impl Group {
    const ALL: [Group; 6] =
        [Group::Language, Group::Image, Group::Video, Group::Encoders, Group::Patterns, Group::Yours];

    fn title(self) -> &'static str {
        match self {
            Group::Language => "Language models",
            Group::Image => "Images",
            Group::Video => "Video",
            Group::Encoders => "Encoders",
            Group::Patterns => "Patterns",
            Group::Yours => "Yours",
        }
    }

    /// Words of a preset's name that put it here; what none has is a pattern.
    fn words(self) -> &'static [&'static str] {
        match self {
            Group::Language => &[
                "gemma",
                "llama",
                "mistral",
                "gpt_oss",
                "qwen3",
                "deepseek",
                "streaming",
                "yarn",
                "packed_doc",
                "packed_prefix",
                "shared_prefix",
                "speculative",
                "tree_decoding",
                "prefix_lm",
                "block_diffusion",
            ],
            Group::Image => {
                &["flux", "sd3", "sdxl", "qwen_image", "image", "swin", "natten_2d", "natten_morton", "natten_tiled"]
            }
            Group::Video => &["wan", "hunyuan", "ltx", "svg"],
            Group::Encoders => &["bigbird", "longformer", "modernbert", "t5", "graphormer"],
            Group::Patterns | Group::Yours => &[],
        }
    }

    fn of(preset: &str) -> Group {
        // a vision model's cross-attention is a language model's
        let has = |group: &Group| group.words().iter().any(|word| preset.contains(word));
        let order = [Group::Video, Group::Encoders, Group::Language, Group::Image];
        order.into_iter().find(has).unwrap_or(Group::Patterns)
    }
}

/// The draft.
#[derive(Clone)]
pub(crate) struct GalleryDialog {
    filter: String,
    /// None: all of them.
    group: Option<Group>,
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
    /// A preset's name, or a path.
    name: String,
    file: Option<PathBuf>,
    title: String,
    about: String,
    axes: String,
    group: Group,
    /// `Recorded on NVIDIA H200, 2026-11-21: flex 0.31 ms, 2.10x cuDNN 9.19 SDPA`, one a card.
    recorded: Vec<String>,
    /// `2.1x`: the first of them, where it is clear.
    times: Option<String>,
}

impl GalleryDialog {
    /// Starts drawing the pictures.
    pub fn new(state: &mut State) -> Self {
        let card = |preset: &library::Preset| {
            let document = preset.document().ok()?;
            let axes = document.axes.q.to_string();
            let line = |r: &recorded::Recorded| Some(format!("Recorded on {}: {}", r.place(), r.summary()?));
            let runs = recorded::of(&document);
            let versus = runs.first().and_then(|run| run.report.versus(BackendName::Flex));
            let times = versus.filter(|v| v.is_clear() && v.ratio > 1.05).map(|v| format!("{:.1}x", v.ratio));
            let recorded = runs.into_iter().filter_map(line).collect();
            let (name, group) = (preset.name.to_string(), Group::of(preset.name));
            let (title, about) = (document.name, document.about);
            Some(Card { name, file: None, title, about, axes, group, recorded, times })
        };
        let mut cards: Vec<Card> = library::presets().iter().filter_map(card).collect();
        cards.sort_by_key(|card| card.group);
        let presets = cards.iter().map(|c| c.name.clone()).collect();
        let own = own_documents(&state.view.recent);
        state.session.errands.thumbnails(presets, own.clone(), SIZE);
        cards.extend(own.into_iter().map(Card::of_file));
        let (drawn, textures, failed) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { filter: String::new(), group: None, cards, drawn, textures, failed, focused: false }
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
            let texts = [&*card.name, &card.title, &card.about, &card.axes, card.group.title()].map(str::to_lowercase);
            let here = self.group.is_none_or(|group| group == card.group);
            here && wanted.split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
        };
        self.cards.iter().filter(has).cloned().collect()
    }
}

/// Documents among the files that were open lately.
fn own_documents(recent: &[PathBuf]) -> Vec<PathBuf> {
    let is_document = |path: &&PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let config = |path: &&PathBuf| path.file_name().is_some_and(|name| name == "config.json");
    recent.iter().filter(|path| is_document(path) && !config(path)).cloned().collect()
}

impl Card {
    fn of_file(path: PathBuf) -> Card {
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let title = stem.trim_end_matches(".maskloom").to_string();
        let folder = path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let (name, group) = (path.display().to_string(), Group::Yours);
        let (about, recorded) = (name.clone(), Vec::new());
        Card { name, file: Some(path), title, about, axes: folder, group, recorded, times: None }
    }

    /// What a click does.
    fn opens(&self) -> Action {
        match &self.file {
            Some(path) => Action::Open(path.clone()),
            None => Action::OpenPreset(self.name.clone()),
        }
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
    let hint = "Search names, models and descriptions; Enter opens the first";
    let response = ui.add(field.hint_text(hint)).accessible_name("Filter");
    let entered = response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter));
    if !dialog.focused {
        response.request_focus();
        dialog.focused = true;
    }
    groups(ui, dialog);
    let cards = dialog.matching();
    if cards.is_empty() {
        ui.weak(match (dialog.group, dialog.filter.is_empty()) {
            (Some(Group::Yours), true) => "Documents that you save or open are listed here.",
            _ => "No document matches these words.",
        });
    }
    if let Some(first) = cards.first().filter(|_| entered) {
        actions.push(first.opens());
    }
    let height = super::room(ui, 200.0).min(640.0);
    ScrollArea::vertical().max_height(height).min_scrolled_height(height).auto_shrink([false, true]).show(ui, |ui| {
        for group in Group::ALL {
            let these: Vec<&Card> = cards.iter().filter(|card| card.group == group).collect();
            if these.is_empty() {
                continue;
            }
            ui.add_space(4.0);
            ui.label(RichText::new(group.title()).strong().size(15.0));
            ui.horizontal_wrapped(|ui| {
                for card in these {
                    let texture = dialog.texture(ui, &card.name);
                    let failed = dialog.failed.get(&card.name).map(String::as_str);
                    if card_ui(ui, card, texture.as_ref(), failed) {
                        actions.push(card.opens());
                    }
                }
            });
        }
    });
    ui.add_space(8.0);
    if ui.button("Close").clicked() { Next::Close } else { Next::Stay }
}

/// Which group is shown.
fn groups(ui: &mut Ui, dialog: &mut GalleryDialog) {
    ui.horizontal_wrapped(|ui| {
        ui.selectable_value(&mut dialog.group, None, "All");
        for group in Group::ALL {
            ui.selectable_value(&mut dialog.group, Some(group), group.title());
        }
    });
}

fn card_ui(ui: &mut Ui, card: &Card, texture: Option<&TextureHandle>, failed: Option<&str>) -> bool {
    // as many as fit, and no margin left over
    let gap = ui.spacing().item_spacing.x;
    let all = ui.max_rect().width();
    let columns = ((all + gap) / (CARD.x + gap)).floor().max(1.0);
    let size = Vec2::new(((all + gap) / columns - gap).floor(), CARD.y);
    let (rect, response) = ui.allocate_exact_size(size, egui::Sense::click());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &card.title));
    let visuals = ui.style().interact(&response);
    ui.painter().rect(rect.shrink(2.0), 6.0, visuals.weak_bg_fill, visuals.bg_stroke, egui::StrokeKind::Inside);
    let corner = rect.min + Vec2::new((rect.width() - PICTURE) / 2.0, 10.0);
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
    if let Some(times) = &card.times {
        let colours = crate::app::theme::palette(ui.visuals());
        let galley = ui.painter().layout_no_wrap(times.clone(), egui::FontId::proportional(12.5), colours.on_accent);
        let size = galley.size() + Vec2::new(10.0, 4.0);
        let badge = egui::Rect::from_min_size(egui::pos2(rect.right() - size.x - 7.0, rect.top() + 7.0), size);
        ui.painter().rect_filled(badge, 4.0, colours.accent);
        ui.painter().galley(badge.min + Vec2::new(5.0, 2.0), galley, colours.on_accent);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_presets_and_each_is_where_one_looks_for_it() {
        for group in Group::ALL.into_iter().filter(|group| *group != Yours) {
            assert!(library::presets().iter().any(|p| Group::of(p.name) == group), "{group:?}");
        }
        let of = [
            "flux_joint",
            "wan_radial",
            "svg_heads",
            "qwen3_30b_a3b",
            "qwen_image_joint",
            "llama32_vision_cross",
            "alibi",
        ];
        let groups = of.map(Group::of);
        use Group::*;
        assert_eq!(groups, [Image, Video, Video, Language, Image, Language, Patterns]);
    }

    #[test]
    fn documents_of_ones_own_have_cards_with_pictures_and_a_configuration_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.maskloom.json");
        let document = library::presets()[0].document().expect("loads");
        std::fs::write(&path, crate::document::file::to_json(&document)).unwrap();
        let recent = [path.clone(), folder.path().join("config.json"), folder.path().join("mods.py")];
        assert_eq!(own_documents(&recent), std::slice::from_ref(&path));
        let card = Card::of_file(path.clone());
        assert_eq!((card.title.as_str(), card.group), ("mine", Group::Yours));
        assert!(matches!(card.opens(), Action::Open(opened) if opened == path));
        let drawn = crate::app::opening::thumbnail_of_file(&path, 16).expect("is drawn");
        assert_eq!(drawn.size, [16, 16]);
        assert!(drawn.pixels.contains(&0.0) && drawn.pixels.iter().any(|share| *share > 0.0));
    }
}
