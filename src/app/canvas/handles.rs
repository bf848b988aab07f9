//! Handles of the selected rectangle: its edges and corners can be dragged, and its middle moves it.
//!
//! Invariant: the rectangle stays inside the mask and at least one cell large, on the lattice of painted cells, or of
//! single tokens with Shift. Must not know documents.

use super::colors::Palette;
use super::step::SNAP;
use super::view::ScreenFromWorld;
use crate::app::region::border;
use crate::base::{BlockSize, Lengths};
use crate::document::model::Axis;
use egui::{Painter, Pos2, Rect, StrokeKind, pos2, vec2};

/// How near the pointer must be, in points.
const NEAR: f32 = 9.0;
/// Side of a handle, in points.
const SIDE: f32 = 8.0;

/// Rows and columns of a rectangle, half-open, in tokens.
pub(super) type Extent = [[usize; 2]; 2];

/// A handle that is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grip {
    /// Which ends move: of the rows, of the columns.
    ends: [[bool; 2]; 2],
    /// Where it was grabbed, (q, kv).
    from: [f64; 2],
    start: Extent,
}

fn on_screen(map: &ScreenFromWorld, of: Extent) -> Rect {
    map.rect_of(of[0].map(|v| v as f64), of[1].map(|v| v as f64))
}

/// The handles: where, and which ends of rows and columns each moves.
fn all(rect: Rect) -> Vec<(Pos2, [[bool; 2]; 2])> {
    let (x, y) = ([rect.left(), rect.center().x, rect.right()], [rect.top(), rect.center().y, rect.bottom()]);
    let ends = |at: usize| [[true, false], [false, false], [false, true]][at];
    let mut out = Vec::new();
    for (row, y) in y.into_iter().enumerate() {
        for (column, x) in x.into_iter().enumerate() {
            let moves = if row == 1 && column == 1 { [[true, true]; 2] } else { [ends(row), ends(column)] };
            out.push((pos2(x, y), moves));
        }
    }
    out
}

/// The handle under the pointer. Corners take precedence over nearby edges.
pub(super) fn grip(map: &ScreenFromWorld, of: Extent, at: Pos2) -> Option<Grip> {
    let near = all(on_screen(map, of)).into_iter().map(|(place, ends)| (place.distance(at), ends));
    let (distance, ends) = near.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (distance <= NEAR).then(|| Grip { ends, from: map.world(at), start: of })
}

impl Grip {
    /// The rectangle with the handle at a place, in steps of a cell; a single edge goes to the border of a segment or frame that
    /// is near, if there are axes.
    pub(super) fn moved(
        &self,
        map: &ScreenFromWorld,
        at: Pos2,
        cell: BlockSize,
        lengths: Lengths,
        axes: Option<[&Axis; 2]>,
    ) -> Extent {
        let now = map.world(at);
        let near = |side: usize, end: usize| {
            let at = self.start[side][end] as f64 + now[side] - self.from[side];
            let reach = SNAP / [map.q.scale, map.kv.scale][side];
            axes.and_then(|axes| border(axes[side], at, reach)).map(|token| token as i64)
        };
        let side = |axis: usize, cell: usize, len: usize| {
            let by = ((now[axis] - self.from[axis]) / cell as f64).round() as i64 * cell as i64;
            let [from, to] = self.start[axis].map(|v| v as i64);
            let (len, least) = (len as i64, (cell as i64).min(to - from));
            match self.ends[axis] {
                [true, true] => {
                    let by = by.clamp(-from, len - to);
                    [from + by, to + by]
                }
                [true, false] => [near(axis, 0).unwrap_or(from + by).clamp(0, to - least), to],
                [false, true] => [from, near(axis, 1).unwrap_or(to + by).clamp(from + least, len.max(to))],
                [false, false] => [from, to],
            }
            .map(|v| v as usize)
        };
        [side(0, cell.q, lengths.q_len), side(1, cell.kv, lengths.kv_len)]
    }
}

/// Draws the outline and its handles.
pub(super) fn paint(painter: &Painter, map: &ScreenFromWorld, of: Extent, palette: &Palette) {
    let rect = on_screen(map, of);
    painter.rect_stroke(rect, 0.0, (1.0, palette.accent), StrokeKind::Outside);
    for (place, _) in all(rect) {
        let handle = Rect::from_center_size(place, vec2(SIDE, SIDE));
        painter.rect(handle, 1.0, palette.outside, (1.5, palette.accent), StrokeKind::Inside);
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::View;
    use super::*;

    #[test]
    fn handles_move_their_own_ends_and_stay_inside() {
        let lengths = Lengths::new(1000, 1000).unwrap();
        let canvas = Rect::from_min_size(pos2(0.0, 0.0), vec2(1000.0, 1000.0));
        let map = View::default().screen_from_world(canvas, lengths);
        let of: Extent = [[200, 400], [500, 800]];
        let cell = BlockSize::square(50);
        let drag = |from: [f64; 2], to: [f64; 2]| {
            let grip = grip(&map, of, map.pos(from[0], from[1])).expect("a handle");
            grip.moved(&map, map.pos(to[0], to[1]), cell, lengths, None)
        };
        assert_eq!(drag([200.0, 500.0], [98.0, 560.0]), [[100, 400], [550, 800]], "a corner");
        assert_eq!(drag([300.0, 800.0], [700.0, 901.0]), [[200, 400], [500, 900]], "an edge");
        assert_eq!(drag([300.0, 650.0], [300.0, 2000.0]), [[200, 400], [700, 1000]], "the middle moves it to the end");
        assert_eq!(drag([400.0, 650.0], [0.0, 650.0]), [[200, 250], [500, 800]], "never less than a cell");
        assert!(grip(&map, of, map.pos(300.0, 550.0)).is_none(), "between the handles the picture is moved");
        let axis = Axis::parse("text 333 | image 667").expect("parses");
        let grip = grip(&map, of, map.pos(300.0, 800.0)).expect("the right edge");
        let to = |kv: f64| grip.moved(&map, map.pos(300.0, kv), cell, lengths, Some([&axis, &axis]))[1];
        assert_eq!((to(996.0), to(760.0)), ([500, 1000], [500, 750]), "to a border where one is near");
        let left = super::grip(&map, of, map.pos(300.0, 500.0)).expect("the left edge");
        let moved = left.moved(&map, map.pos(300.0, 338.0), cell, lengths, Some([&axis, &axis]));
        assert_eq!(moved[1], [333, 800]);
    }
}
