//! A grid for keys that have none: by the open capture, by their number, or as it is typed.
//!
//! Invariant: the axis stays as long as it is. Must not know documents.

use super::super::CanvasEvent;
use super::Patches;
use super::parts::Look;
use crate::app::language::{say, say_with};
use crate::document::model::{Axis, Segment};
use crate::quality::profile::Grid;
use crate::words::Words;
use egui::{Rect, RichText, TextEdit, Ui, UiBuilder};

/// Height of the offer, in points.
const HEIGHT: f32 = 52.0;

impl Patches {
    /// Says that there is no grid, and offers some. Returns its height.
    pub(super) fn offer(&mut self, ui: &mut Ui, room: Rect, look: &mut Look<'_, '_>) -> f32 {
        let axis = look.scene.kv_axis;
        let place = Rect::from_min_size(room.min, egui::vec2(room.width(), HEIGHT));
        let mut child = ui.new_child(UiBuilder::new().id_salt("no grid").max_rect(place));
        child.horizontal_wrapped(|ui| {
            ui.label(say(ui, "patches-no-grid"));
            for (words, axis) in offers(look.scene.said, axis, look.scene.grid) {
                let button = ui.button(&words).on_hover_text(say_with(
                    ui,
                    "patches-grid-tip",
                    &[("axis", axis.to_string().into())],
                ));
                if button.clicked() {
                    look.events.push(CanvasEvent::Gridded(axis));
                }
            }
            let field =
                TextEdit::singleline(&mut self.own.typed).desired_width(92.0).hint_text(say(ui, "patches-grid-hint"));
            let field = ui.add(field).accessible_name(say(ui, "patches-grid-name"));
            if field.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter)) {
                match typed(look.scene.said, axis, &self.own.typed) {
                    Ok(axis) => {
                        self.own.wrong = None;
                        look.events.push(CanvasEvent::Gridded(axis));
                    }
                    Err(why) => self.own.wrong = Some(why),
                }
            }
            if let Some(why) = &self.own.wrong {
                ui.label(RichText::new(why).color(ui.visuals().error_fg_color));
            }
        });
        place.height()
    }
}

/// Grids that suit an axis, in words: the capture's, then the squarest of its longest segment.
fn offers(said: &'static Words, axis: &Axis, captured: Option<Grid>) -> Vec<(String, Axis)> {
    let mut out = Vec::new();
    if let Some(axis) = captured.and_then(|grid| of_capture(axis, grid)) {
        out.push((said.text("patches-capture").to_string(), axis));
    }
    let Some(at) = longest(axis) else { return out };
    let len = axis.segments[at].len();
    let rows = (1..=len.isqrt()).rev().find(|rows| len.is_multiple_of(*rows)).unwrap_or(1);
    // a number without divisors is no picture
    if rows * 8 >= len / rows {
        out.push((format!("{rows}x{}", len / rows), with(axis, at, vec![rows, len / rows])));
    }
    out
}

fn longest(axis: &Axis) -> Option<usize> {
    (0..axis.segments.len()).max_by_key(|at| axis.segments[*at].len())
}

fn with(axis: &Axis, at: usize, grid: Vec<usize>) -> Axis {
    let mut axis = axis.clone();
    axis.segments[at].grid = grid;
    axis
}

/// The tokens before the grid, the grid, and those behind it.
fn of_capture(axis: &Axis, grid: Grid) -> Option<Axis> {
    let (end, len) = (grid.tokens().end, axis.len());
    if end > len {
        return None;
    }
    let [t, h, w] = grid.extents;
    let mut segments = Vec::new();
    segments.extend((grid.start > 0).then(|| Segment::new("text", [grid.start])));
    let picture = if t > 1 { Segment::new("video", [t, h, w]) } else { Segment::new("image", [h, w]) };
    segments.push(picture);
    segments.extend((end < len).then(|| Segment::new("more", [len - end])));
    Some(Axis { segments })
}

/// A typed grid of the longest segment: `64x64`, `21x30x52`.
fn typed(said: &'static Words, axis: &Axis, text: &str) -> Result<Axis, String> {
    let at = longest(axis).ok_or(said.text("patches-no-keys"))?;
    let len = axis.segments[at].len();
    let grid = Axis::parse(&format!("grid {}", text.replace(' ', ""))).map_err(|why| why.message)?;
    let grid = &grid.segments[0];
    match (grid.len() == len, grid.grid.len()) {
        (true, 2 | 3) => Ok(with(axis, at, grid.grid.clone())),
        (true, _) => Err(said.text("patches-write").into()),
        (false, _) => {
            let name = &*axis.segments[at].name;
            let figures = [("text", text.into()), ("n", grid.len().into()), ("name", name.into()), ("len", len.into())];
            Err(said.with("patches-differ", &figures))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn offered_and_typed_grids_are_as_long_as_the_axis() {
        let said = Words::of(Language::English);
        let axis = Axis::parse("text 512 | tokens 4096").expect("parses");
        let grid = Grid { extents: [1, 64, 64], start: 512 };
        let reported: Vec<_> =
            offers(said, &axis, Some(grid)).into_iter().map(|(words, axis)| (words, axis.to_string())).collect();
        assert_eq!(
            reported,
            [
                ("Take the capture's grid".to_string(), "text 512 | image 64x64".to_string()),
                ("64x64".into(), "text 512 | tokens 64x64".into()),
            ]
        );
        let prime = Axis::parse("tokens 4099").expect("parses");
        assert!(offers(said, &prime, None).is_empty(), "one row is no picture");
        assert_eq!(typed(said, &axis, "4 x 32 x 32").expect("fits").to_string(), "text 512 | tokens 4x32x32");
        assert!(typed(said, &axis, "60x64").expect_err("too few").contains("3840 patches, `tokens` has 4096"));
        assert!(typed(said, &axis, "4096").is_err() && typed(said, &axis, "a").is_err());
        let behind = of_capture(&axis, Grid { extents: [2, 10, 10], start: 0 }).expect("fits");
        assert_eq!(behind.to_string(), "video 2x10x10 | more 4408");
        assert_eq!(of_capture(&axis, Grid { extents: [9, 64, 64], start: 0 }), None);
    }
}
