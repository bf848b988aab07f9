//! The keys of one query on the picture or the frames of a video: the patches that it attends to.
//!
//! Invariant: the interpreter decides each patch; the picture is computed once per query. Must not know layers.

use crate::app::action::{Action, Actions};
use crate::app::canvas::colors::Palette;
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::app::session::Shown;
use crate::app::state::State;
use crate::app::widgets::id;
use crate::document::model::{Axis, Segment};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::Mod;
use egui::{Color32, ColorImage, Rect, RichText, Sense, TextureHandle, TextureOptions, Ui, Vec2, pos2};

/// Patches beyond which a segment is not drawn, so that a frame stays short.
const MOST: usize = 40_000;
/// Points that a picture may take.
const SIDE: f32 = 260.0;
/// Points between frames.
const GAP: f32 = 4.0;

/// The key of a picture: picture, batch entry, head, query, first token, dark.
type Key = (u64, usize, usize, usize, usize, bool);

/// Segments of an axis that are pictures: number, first token, segment.
fn pictures(axis: &Axis) -> Vec<(usize, usize, &Segment)> {
    let starts = axis.starts();
    let all = axis.segments.iter().enumerate().map(|(at, segment)| (at, starts[at], segment));
    all.filter(|(_, _, segment)| segment.grid.len() > 1 && segment.len() <= MOST).collect()
}

/// Draws them, if the keys have a grid. Shows the query and the patches that it attends to.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(Shown { built, .. }) = &state.session.shown else { return };
    let axes = &built.document.axes;
    let segments = pictures(axes.kv());
    let Some(lengths) = built.lengths.filter(|_| !segments.is_empty()) else { return };
    let q = state.focus.pinned[0].min(lengths.q_len - 1);
    let place = axes.q.place(q).map(|p| p.to_string()).unwrap_or_default();
    ui.add_space(4.0);
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(say_with(ui, "cell-patches", &[("place", place.into())])).strong());
        let large = ui.small_button(say(ui, "cell-on-canvas")).on_hover_text(Command::Patches.tooltip(ui.ctx()));
        if !state.focus.patches && large.clicked() {
            actions.command(Command::Patches);
        }
    });
    for (_, start, segment) in segments {
        let same = axes.kv.is_none();
        one(ui, state, built.compiled.mask.as_deref(), (start, segment, q, same), actions);
    }
    ui.add(
        egui::Label::new(
            RichText::new(match axes.kv {
                None => say(ui, "cell-makes-query"),
                Some(_) => say(ui, "cell-makes-key"),
            })
            .small()
            .weak(),
        )
        .wrap(),
    );
}

/// One segment: its frames side by side, row by row.
fn one(ui: &mut Ui, state: &State, mask: Option<&Mod>, of: (usize, &Segment, usize, bool), actions: &mut Actions) {
    let (start, segment, q, same) = of;
    let [frames, height, width] = match *segment.grid.as_slice() {
        [h, w] => [1, h, w],
        [t, h, w] => [t, h, w],
        _ => return,
    };
    let (texture, seen) = texture(ui, state, mask, (start, segment, q));
    let layout = Layout::new(frames, [height, width], ui.available_width().min(SIDE * 2.0));
    ui.weak(say_with(
        ui,
        "cell-patches-seen",
        &[("name", (&*segment.name).into()), ("seen", seen.into()), ("all", segment.len().into())],
    ));
    let (rect, response) = ui.allocate_exact_size(layout.size(), Sense::click());
    let name = say_with(ui, "cell-patches-of", &[("name", (&*segment.name).into())]);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &name));
    let accent = Palette::of(ui.visuals()).accent;
    for frame in 0..frames {
        let place = layout.frame(frame).translate(rect.min.to_vec2());
        let row = |n: usize| n as f32 / frames as f32;
        let part = Rect::from_min_max(pos2(0.0, row(frame)), pos2(1.0, row(frame + 1)));
        ui.painter().image(texture.id(), place, part, Color32::WHITE);
        if same && (start..start + segment.len()).contains(&q) && (q - start) / (height * width) == frame {
            let at = (q - start) % (height * width);
            let cell = Rect::from_min_size(
                place.min + Vec2::new((at % width) as f32, (at / width) as f32) * layout.patch,
                Vec2::splat(layout.patch),
            );
            ui.painter().rect_stroke(cell.expand(1.0), 0.0, (2.0, accent), egui::StrokeKind::Outside);
        }
    }
    let at = response.interact_pointer_pos().or(response.hover_pos());
    let Some(token) = at.and_then(|at| layout.token((at - rect.min).to_pos2())).map(|at| start + at) else { return };
    let words = state.document.axes.kv().place(token).map(|p| p.to_string()).unwrap_or_default();
    if response.clicked() {
        let [old_q, old_kv] = state.focus.pinned;
        actions.push(Action::Pin(if same { [token, old_kv] } else { [old_q, token] }));
    }
    response.on_hover_text_at_pointer(words);
}

/// Kept patches as pixels, frames below each other, and how many there are.
fn texture(ui: &Ui, state: &State, mask: Option<&Mod>, of: (usize, &Segment, usize)) -> (TextureHandle, usize) {
    let (start, segment, q) = of;
    let (b, h) = (state.focus.b, state.focus.h);
    let key: Key = (state.session.picture, b, h, q, start, ui.visuals().dark_mode);
    let memory = id("patches").with(start);
    if let Some((_, texture, seen)) =
        ui.data(|d| d.get_temp::<(Key, TextureHandle, usize)>(memory)).filter(|known| known.0 == key)
    {
        return (texture, seen);
    }
    let palette = Palette::of(ui.visuals());
    let keeps = |kv: usize| {
        let cell = Cell { b: b as i64, h: h as i64, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
        mask.is_none_or(|m| eval(m, &cell).as_bool())
    };
    let kept: Vec<bool> = (start..start + segment.len()).map(keeps).collect();
    let seen = kept.iter().filter(|k| **k).count();
    let pixels = kept.iter().map(|k| if *k { palette.full } else { palette.empty }).collect();
    let width = segment.grid[segment.grid.len() - 1];
    let image = ColorImage::new([width, segment.len() / width], pixels);
    let texture = ui.ctx().load_texture("patches", image, TextureOptions::NEAREST);
    ui.data_mut(|d| d.insert_temp(memory, (key, texture.clone(), seen)));
    (texture, seen)
}

/// The positions of frames: in rows as wide as the space.
struct Layout {
    frames: usize,
    grid: [usize; 2],
    columns: usize,
    /// Points of a patch.
    patch: f32,
}

impl Layout {
    fn new(frames: usize, [height, width]: [usize; 2], room: f32) -> Layout {
        let (h, w) = (height as f32, width as f32);
        if frames == 1 {
            let patch = (room.min(SIDE) / w).min(SIDE / h);
            return Layout { frames, grid: [height, width], columns: 1, patch };
        }
        // small multiples, about as wide as high in all
        let columns = ((frames as f32 * h / w).sqrt().ceil() as usize).clamp(1, frames);
        let patch = ((room - GAP * (columns - 1) as f32) / columns as f32 / w).max(0.5);
        Layout { frames, grid: [height, width], columns, patch }
    }

    fn size(&self) -> Vec2 {
        let rows = self.frames.div_ceil(self.columns);
        let of = |n: usize, extent: usize| n as f32 * (extent as f32 * self.patch + GAP) - GAP;
        Vec2::new(of(self.columns, self.grid[1]), of(rows, self.grid[0]))
    }

    fn frame(&self, at: usize) -> Rect {
        let (row, column) = (at / self.columns, at % self.columns);
        let size = Vec2::new(self.grid[1] as f32, self.grid[0] as f32) * self.patch;
        Rect::from_min_size(pos2(column as f32 * (size.x + GAP), row as f32 * (size.y + GAP)), size)
    }

    /// The patch at a point, counted through all frames.
    fn token(&self, at: egui::Pos2) -> Option<usize> {
        let frame = (0..self.frames).find(|n| self.frame(*n).contains(at))?;
        let within = (at - self.frame(frame).min) / self.patch;
        let (y, x) = ((within.y as usize).min(self.grid[0] - 1), (within.x as usize).min(self.grid[1] - 1));
        Some((frame * self.grid[0] + y) * self.grid[1] + x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_is_found_where_it_is_drawn() {
        for (frames, grid) in [(1, [4, 6]), (5, [3, 7]), (21, [30, 52])] {
            let layout = Layout::new(frames, grid, 400.0);
            assert!(layout.size().x <= 400.5, "{:?}", layout.size());
            for token in [0, grid[1] - 1, grid[0] * grid[1] - 1, frames * grid[0] * grid[1] - 1] {
                let (frame, within) = (token / (grid[0] * grid[1]), token % (grid[0] * grid[1]));
                let cell = Vec2::new((within % grid[1]) as f32 + 0.5, (within / grid[1]) as f32 + 0.5);
                let at = layout.frame(frame).min + cell * layout.patch;
                assert_eq!(layout.token(at), Some(token), "{frames} {grid:?}");
            }
            assert_eq!(layout.token(pos2(-1.0, 0.0)), None);
        }
    }

    #[test]
    fn pictures_are_segments_with_a_grid() {
        let axis = Axis::parse("text 8 | image 4x6 | video 2x3x5").unwrap();
        let found: Vec<_> = pictures(&axis).iter().map(|(at, start, _)| (*at, *start)).collect();
        assert_eq!(found, [(1, 8), (2, 32)]);
    }
}
