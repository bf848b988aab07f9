//! The whole mask in a corner, with a frame around the visible part; and the strip of heads and batch entries.
//!
//! Invariant: both draw tiles of the common cache and request missing ones. Must not know who creates tiles.

use super::colors::Palette;
use super::render::{Source, TileKey, impression, whole};
use super::tiles::Tiles;
use super::view::{ScreenFromWorld, View};
use super::{CanvasEvent, Scene};
use crate::app::language::say;
use crate::base::Lengths;
use crate::document::heads::Heads;
use egui::{Color32, CursorIcon, FontId, Painter, Rect, Sense, StrokeKind, Ui, pos2, vec2};

/// Side of the minimap, in points.
const SIDE: f32 = 128.0;
/// Height of the strip where there is room, and where there is little, in points.
const STRIP: [f32; 2] = [86.0, LEAST];
/// The least of it.
pub(super) const LEAST: f32 = 44.0;
/// Height below a thumbnail, for its number and the scroll bar, in points.
const BELOW: f32 = 18.0;
/// Height of a thumbnail's number, in points.
const NUMBER: f32 = 13.0;
/// Most heads or batch entries shown in the strip.
const MOST: usize = 128;

/// The tile that shows the whole mask.
fn overview(base: TileKey, lengths: Lengths) -> TileKey {
    TileKey { level: whole(lengths, super::render::SIDE), at: [0; 2], ..base }
}

/// The mask's shape within a square.
fn fitted(square: Rect, lengths: Lengths) -> Rect {
    let (q, kv) = (lengths.q_len as f32, lengths.kv_len as f32);
    // a line at least
    let least = 2.0;
    let side = square.width() / q.max(kv);
    Rect::from_center_size(square.center(), vec2((kv * side).max(least), (q * side).max(least)))
}

/// Height of the strip below a canvas, of the height that both have: the mask keeps four fifths of it if it can.
pub(super) fn strip_height(all: f32) -> f32 {
    (all / 5.0).clamp(STRIP[1], STRIP[0])
}

/// Height that the minimap takes in the lower right corner; nothing where there is none.
pub(super) fn room(view: &View, canvas: Rect) -> f32 {
    let none = view.is_fit() || canvas.width() < 3.0 * SIDE || canvas.height() < 2.5 * SIDE;
    if none { 0.0 } else { SIDE + 6.0 }
}

/// The minimap: shown unless the whole mask is. A click or drag in it moves the view.
pub(super) fn minimap(
    ui: &Ui,
    tiles: &mut Tiles,
    view: &mut View,
    map: &ScreenFromWorld,
    base: TileKey,
    lengths: Lengths,
    palette: &Palette,
) {
    if room(view, map.rect) == 0.0 {
        return;
    }
    let corner = map.rect.right_bottom() - vec2(10.0, 10.0);
    let square = Rect::from_min_max(corner - vec2(SIDE, SIDE), corner);
    let rect = fitted(square, lengths);
    let painter = ui.painter_at(map.rect);
    painter.rect_filled(rect.expand(3.0), 2.0, palette.outside);
    paint(&painter, tiles, &overview(base, lengths), rect, lengths, palette);
    let [q0, q1, kv0, kv1] = map.visible(lengths);
    let x = |kv: f64| rect.left() + (kv / lengths.kv_len as f64) as f32 * rect.width();
    let y = |q: f64| rect.top() + (q / lengths.q_len as f64) as f32 * rect.height();
    let frame = Rect::from_min_max(pos2(x(kv0), y(q0)), pos2(x(kv1), y(q1)));
    let frame = if frame.width().min(frame.height()) < 4.0 {
        Rect::from_center_size(frame.center(), frame.size().max(vec2(4.0, 4.0)))
    } else {
        frame
    };
    painter.rect_stroke(frame, 0.0, (1.5, palette.accent), StrokeKind::Outside);
    painter.rect_stroke(rect.expand(1.0), 0.0, (1.0, palette.boundary), StrokeKind::Outside);
    let response = ui.interact(rect, ui.scope_id().with("minimap"), Sense::click_and_drag());
    let name = say(ui, "canvas-overview");
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Slider, true, name));
    if let Some(at) = response.interact_pointer_pos() {
        let part = |v: f32, lo: f32, size: f32| f64::from(((v - lo) / size).clamp(0.0, 1.0));
        let q = part(at.y, rect.top(), rect.height()) * lengths.q_len as f64;
        let kv = part(at.x, rect.left(), rect.width()) * lengths.kv_len as f64;
        view.look_at(q, kv, map.rect, lengths);
    }
    response.on_hover_cursor(CursorIcon::Crosshair);
}

fn paint(painter: &Painter, tiles: &mut Tiles, key: &TileKey, rect: Rect, lengths: Lengths, palette: &Palette) {
    match tiles.texture(key, lengths) {
        Some((texture, uv)) => {
            painter.image(texture, rect, uv, Color32::WHITE);
        }
        None => {
            painter.rect_filled(rect, 0.0, palette.empty);
        }
    }
}

/// Thumbnails of a picture that differs by head or batch entry.
pub(super) struct Strip {
    /// (b, h) of each, in order.
    pub groups: Vec<[usize; 2]>,
}

impl Strip {
    /// The strip of a scene; None where all heads and batch entries look alike.
    pub(super) fn of(depends: [bool; 2], batch: usize, heads: usize, [b, h]: [usize; 2]) -> Option<Strip> {
        let groups: Vec<[usize; 2]> = match depends {
            [_, true] if heads > 1 => (0..heads.min(MOST)).map(|h| [b, h]).collect(),
            [true, _] if batch > 1 => (0..batch.min(MOST)).map(|b| [b, h]).collect(),
            _ => return None,
        };
        Some(Strip { groups })
    }

    /// Tiles that it shows.
    pub(super) fn keys(&self, base: TileKey, lengths: Lengths, depends: [bool; 2]) -> Vec<TileKey> {
        let key = |[b, h]: &[usize; 2]| TileKey {
            b: if depends[0] { *b as u32 } else { 0 },
            h: if depends[1] { *h as u32 } else { 0 },
            level: impression(lengths),
            at: [0; 2],
            ..base
        };
        self.groups.iter().map(key).collect()
    }

    /// Draws it. A click shows a thumbnail; with Ctrl or Shift it picks heads to work on.
    pub(super) fn show(
        &self,
        ui: &mut Ui,
        tiles: &mut Tiles,
        keys: &[TileKey],
        scene: &Scene<'_>,
        palette: &Palette,
    ) -> Option<CanvasEvent> {
        let mut clicked = None;
        let (lengths, chosen) = (scene.lengths, [scene.b, scene.h]);
        let thumb = ui.max_rect().height() - BELOW;
        let by_head = self.groups.iter().any(|g| g[1] != self.groups[0][1]);
        egui::ScrollArea::horizontal().id_salt("thumbnails").auto_shrink([false, true]).show(ui, |ui| {
            ui.horizontal(|ui| {
                for (group, key) in self.groups.iter().zip(keys) {
                    let (id, n) = if by_head { ("canvas-head", group[1]) } else { ("canvas-batch", group[0]) };
                    let name = scene.said.with(id, &[("n", n.into())]);
                    let (rect, response) = ui.allocate_exact_size(vec2(thumb, thumb + NUMBER), Sense::click());
                    if !ui.is_rect_visible(rect) {
                        continue;
                    }
                    let square = Rect::from_min_size(rect.min, vec2(thumb, thumb));
                    paint(ui.painter(), tiles, key, fitted(square, lengths), lengths, palette);
                    if *group == chosen {
                        ui.painter().rect_stroke(square, 2.0, (2.0, palette.accent), StrokeKind::Outside);
                    }
                    let picked = by_head && scene.picked.is_some_and(|heads| heads.contains(group[1]));
                    if by_head && scene.picked.is_some() && !picked {
                        ui.painter().rect_filled(square, 0.0, palette.veil);
                    }
                    let color = if picked { palette.accent } else { ui.visuals().text_color() };
                    let at = rect.center_bottom();
                    ui.painter().text(at, egui::Align2::CENTER_BOTTOM, &name, FontId::proportional(10.0), color);
                    response.widget_info(|| {
                        egui::WidgetInfo::selected(egui::Role::RadioButton, true, *group == chosen, &name)
                    });
                    let (clicks, keys) = (response.clicked(), ui.input(|i| i.modifiers));
                    if by_head {
                        response.on_hover_text(say(ui, "canvas-heads-tip"));
                    }
                    if clicks {
                        clicked = Some(self.click(by_head, *group, scene, keys));
                    }
                }
            });
        });
        clicked
    }

    /// The effect of a click on a thumbnail.
    fn click(&self, by_head: bool, [b, h]: [usize; 2], scene: &Scene<'_>, keys: egui::Modifiers) -> CanvasEvent {
        match scene.picked {
            _ if !by_head || !(keys.command || keys.shift) => CanvasEvent::Chosen { b, h },
            picked if keys.shift => {
                let range = Heads::of(h.min(scene.h)..=h.max(scene.h));
                CanvasEvent::Picked(range.map(|range| picked.map_or(range.clone(), |picked| picked.with(&range))))
            }
            Some(picked) => CanvasEvent::Picked(picked.toggled(h)),
            None => CanvasEvent::Picked(Heads::of([h])),
        }
    }
}

/// Whether a source's picture needs a strip: where heads differ, or are picked.
pub(super) fn strip(source: &Source, scene: &Scene<'_>) -> Option<Strip> {
    let [by_batch, by_head] = source.depends(scene.picture);
    Strip::of([by_batch, by_head || scene.picked.is_some()], scene.batch, scene.heads, [scene.b, scene.h])
}
