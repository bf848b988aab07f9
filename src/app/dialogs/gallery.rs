//! The gallery: presets with small pictures of their masks.
//!
//! Invariant: opens at once; pictures follow when they are drawn. Must not know how presets are opened.

use super::{Actions, Next, title};
use crate::app::canvas::colors::Palette;
use crate::app::drafts::gallery::{Card, GalleryDialog, Group};
use crate::app::language::{say, say_with, words};
use crate::app::opening::Thumbnail;
use crate::app::origins;
use crate::app::widgets::painted;
use crate::base::BackendName;
use crate::tasks::ratios;
use crate::tasks::recorded::Recorded;
use egui::{Color32, ColorImage, RichText, ScrollArea, TextureHandle, TextureOptions, Ui, Vec2};

/// Pixels along the longer side of a small picture.
pub(super) const SIZE: usize = 96;
/// Room of a picture on its card.
const PICTURE: f32 = 112.0;
/// Room of a card.
const CARD: Vec2 = Vec2::new(172.0, 176.0);

/// Kept shares in the colours of the canvas.
fn picture(drawn: &Thumbnail, colours: &Palette) -> ColorImage {
    let [height, width] = drawn.size;
    ColorImage::new([width, height], drawn.pixels.iter().map(|share| colours.blocks(*share)).collect())
}

/// The texture of a card, made as its picture has come.
fn texture(dialog: &mut GalleryDialog, ui: &Ui, name: &str) -> Option<TextureHandle> {
    if let Some(pixels) = dialog.drawn.remove(name) {
        let handle = ui.ctx().load_texture(
            format!("preset {name}"),
            picture(&pixels, &Palette::of(ui.visuals())),
            TextureOptions::LINEAR,
        );
        dialog.textures.insert(name.to_string(), handle);
    }
    dialog.textures.get(name).cloned()
}

pub(super) fn show(ui: &mut Ui, dialog: &mut GalleryDialog, actions: &mut Actions) -> Next {
    title(ui, say(ui, "gallery-title"));
    let field = egui::TextEdit::singleline(&mut dialog.filter).desired_width(f32::INFINITY);
    let hint = say(ui, "gallery-hint");
    let response = ui.add(field.hint_text(hint)).accessible_name(say(ui, "gallery-filter"));
    let entered = response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter));
    if !dialog.focused {
        response.request_focus();
        dialog.focused = true;
    }
    groups(ui, dialog);
    let cards = dialog.matching(words(ui.ctx()));
    if cards.is_empty() {
        ui.weak(match (dialog.group, dialog.filter.is_empty()) {
            (Some(Group::Yours), true) => say(ui, "gallery-own"),
            _ => say(ui, "gallery-none"),
        });
    }
    if let (Some(Group::Yours), Some(folder)) = (dialog.group, &dialog.folder) {
        ui.weak(say_with(ui, "gallery-folder", &[("folder", folder.display().to_string().into())]));
    }
    if let Some(meant) = dialog.meant(&cards).filter(|_| entered) {
        actions.push(meant.opens());
    }
    let height = super::room(ui, 200.0);
    ScrollArea::vertical().max_height(height).min_scrolled_height(height).auto_shrink([false, true]).show(ui, |ui| {
        for group in Group::ALL {
            let these: Vec<&Card> = cards.iter().filter(|card| card.group == group).collect();
            if these.is_empty() {
                continue;
            }
            ui.add_space(4.0);
            ui.label(RichText::new(say(ui, group.title())).strong().size(15.0));
            ui.horizontal_wrapped(|ui| {
                for card in these {
                    let texture = texture(dialog, ui, &card.name);
                    let failed = dialog.failed.get(&card.name).map(String::as_str);
                    if card_ui(ui, card, texture.as_ref(), failed) {
                        actions.push(card.opens());
                    }
                }
            });
        }
    });
    ui.add_space(8.0);
    if ui.button(say(ui, "close")).clicked() { Next::Close } else { Next::Stay }
}

/// Which group is shown.
fn groups(ui: &mut Ui, dialog: &mut GalleryDialog) {
    ui.horizontal_wrapped(|ui| {
        ui.selectable_value(&mut dialog.group, None, say(ui, "gallery-all"));
        for group in Group::ALL {
            ui.selectable_value(&mut dialog.group, Some(group), say(ui, group.title()));
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
            // in the mask's own proportions, for any number of pixels
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
        let colours = app::theme::palette(ui.visuals());
        // praised where it is faster, and told as plainly where it is not
        let [fill, ink] = match times.is_faster() {
            true => [colours.accent, colours.on_accent],
            false => [ui.visuals().extreme_bg_color, ui.visuals().text_color()],
        };
        let times = times.told(words(ui.ctx()));
        let text = RichText::new(times).font(egui::FontId::proportional(12.5)).color(ink);
        // a long name of the rival must not lie over the neighbour
        let (wrap, across) = (Some(egui::TextWrapMode::Truncate), rect.width() - 20.0);
        let galley = egui::WidgetText::from(text).into_galley(ui, wrap, across, egui::TextStyle::Body);
        let size = galley.size() + Vec2::new(10.0, 4.0);
        let badge = egui::Rect::from_min_size(egui::pos2(rect.right() - size.x - 7.0, rect.top() + 7.0), size);
        ui.painter().rect_filled(badge, 4.0, fill);
        ui.painter().galley(badge.min + Vec2::new(5.0, 2.0), galley, ink);
    }
    let text = egui::pos2(rect.left() + 10.0, picture.bottom() + 8.0);
    let width = rect.width() - 20.0;
    painted(ui, text, width, RichText::new(&card.title).strong());
    painted(ui, text + Vec2::new(0.0, 20.0), width, RichText::new(&card.axes).small().weak());
    let response = response.on_hover_ui(|ui| {
        ui.set_max_width(360.0);
        match card.told(words(ui.ctx())) {
            Some(told) => {
                ui.label(told);
                ui.weak(&card.about);
            }
            None => drop(ui.label(&card.about)),
        }
        if let Some(why) = failed {
            ui.colored_label(ui.visuals().error_fg_color, say_with(ui, "gallery-no-picture", &[("why", why.into())]));
        }
        for line in card.recorded.iter().filter_map(|run| recorded(ui, run)).collect::<Vec<_>>() {
            ui.weak(line);
        }
    });
    response.clicked()
}

/// `Recorded on NVIDIA H200, 2026-11-21; not measured here: flex 0.31 ms, 2.10x cuDNN 9.19 SDPA`. None: flex was not timed.
fn recorded(ui: &Ui, run: &Recorded) -> Option<String> {
    let ms = format!("{:.2}", run.report.median_ms(BackendName::Flex)?);
    let figures = [("from", origins::title(ui, &run.provenance()).into()), ("ms", ms.into())];
    let Some((base, versus)) = run.report.baseline().zip(run.report.versus(BackendName::Flex)) else {
        return Some(say_with(ui, "gallery-recorded", &figures));
    };
    let than = ratios::versus(words(ui.ctx()), &versus, Some(&base.ran));
    let [from, ms] = figures;
    Some(say_with(ui, "gallery-recorded-than", &[from, ms, ("words", than.into())]))
}
