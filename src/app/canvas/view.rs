//! The visible part of the canvas: pan, zoom and the transform between tokens and points on the screen.
//!
//! Invariant: all arithmetic is f64; f32 appears only in screen positions. Cells are square, unless a side would be too
//! short to be visible, which the transform reports. The view always shows at least a part of the mask, from the whole
//! of it down to a few cells. Must not know tiles, masks or tools.

use crate::base::Lengths;
use egui::{Pos2, Rect, Vec2, pos2};

/// Part of the view that the whole mask fills at most, so that its edges can be seen.
const FIT: f64 = 0.96;
/// A side that would be shorter in the whole mask's view, in points, is stretched to this: it could not be seen.
const SHORT_SIDE: f64 = 24.0;
/// The largest cell of a stretched short side in the whole mask's view, in points.
const STRETCHED_CELL: f64 = 24.0;
/// The largest cell, as a part of the view's shorter side.
const LARGEST_CELL: f64 = 0.5;
/// How far the view may leave the mask, in points.
const MARGIN: f64 = 48.0;

/// One axis: screen point = `origin + token * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisMap {
    /// Where token 0 begins, in points.
    pub origin: f64,
    /// Points a token.
    pub scale: f64,
}

impl AxisMap {
    /// Position of a token (or a fraction of one) on the screen.
    pub fn screen(&self, token: f64) -> f64 {
        self.origin + token * self.scale
    }

    /// Token at a point, with its fraction.
    pub fn token(&self, point: f64) -> f64 {
        (point - self.origin) / self.scale
    }
}

/// The transform of one frame. Rows are q tokens, columns kv tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreenFromWorld {
    /// The canvas's area on the screen.
    pub rect: Rect,
    /// Rows.
    pub q: AxisMap,
    /// Columns.
    pub kv: AxisMap,
}

impl ScreenFromWorld {
    /// Position of the corner of cell (q, kv).
    pub fn pos(&self, q: f64, kv: f64) -> Pos2 {
        pos2(self.kv.screen(kv) as f32, self.q.screen(q) as f32)
    }

    /// Position of a rectangle of tokens, clipped a little outside the canvas so that f32 suffices.
    pub fn rect_of(&self, q: [f64; 2], kv: [f64; 2]) -> Rect {
        let clip = |v: f64, lo: f32, hi: f32| v.clamp(f64::from(lo) - 64.0, f64::from(hi) + 64.0) as f32;
        let x = |v| clip(self.kv.screen(v), self.rect.left(), self.rect.right());
        let y = |v| clip(self.q.screen(v), self.rect.top(), self.rect.bottom());
        Rect::from_min_max(pos2(x(kv[0]), y(q[0])), pos2(x(kv[1]), y(q[1])))
    }

    /// Which side is stretched, and by how much; None where cells are square.
    pub fn stretched(&self) -> Option<(&'static str, f64)> {
        match self.q.scale / self.kv.scale {
            ratio if ratio > 1.001 => Some(("rows", ratio)),
            ratio if ratio < 0.999 => Some(("columns", 1.0 / ratio)),
            _ => None,
        }
    }

    /// (q, kv) at a point, with fractions.
    pub fn world(&self, pos: Pos2) -> [f64; 2] {
        [self.q.token(f64::from(pos.y)), self.kv.token(f64::from(pos.x))]
    }

    /// The cell under a point, if it is one of the mask's.
    pub fn cell(&self, pos: Pos2, lengths: Lengths) -> Option<[usize; 2]> {
        let [q, kv] = self.world(pos);
        let inside = q >= 0.0 && kv >= 0.0 && q < lengths.q_len as f64 && kv < lengths.kv_len as f64;
        (inside && self.rect.contains(pos)).then_some([q as usize, kv as usize])
    }

    /// Tokens on the screen, [q0, q1, kv0, kv1], clipped to the mask.
    pub fn visible(&self, lengths: Lengths) -> [f64; 4] {
        let [q0, kv0] = self.world(self.rect.min);
        let [q1, kv1] = self.world(self.rect.max);
        let (q_len, kv_len) = (lengths.q_len as f64, lengths.kv_len as f64);
        [q0.clamp(0.0, q_len), q1.clamp(0.0, q_len), kv0.clamp(0.0, kv_len), kv1.clamp(0.0, kv_len)]
    }
}

/// Where the canvas looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Token in the middle, (q, kv); None: the middle of the mask.
    center: Option<[f64; 2]>,
    /// Points a token; None: the whole mask.
    zoom: Option<f64>,
}

impl View {
    /// Shows the whole mask.
    pub fn fit(&mut self) {
        *self = View::default();
    }

    /// Whether the whole mask is shown.
    pub fn is_fit(&self) -> bool {
        self.zoom.is_none()
    }

    /// The transform for a canvas of this place and size.
    pub fn screen_from_world(&self, rect: Rect, lengths: Lengths) -> ScreenFromWorld {
        let limits = Limits::new(rect.size(), lengths);
        let scales = limits.scales(self.zoom.unwrap_or(limits.smallest));
        let center = self.center(lengths);
        let middle = rect.center();
        let axis =
            |at: usize, middle: f32| AxisMap { origin: f64::from(middle) - center[at] * scales[at], scale: scales[at] };
        ScreenFromWorld { rect, q: axis(0, middle.y), kv: axis(1, middle.x) }
    }

    /// Points a token on the axis that is not stretched.
    pub fn zoom(&self, size: Vec2, lengths: Lengths) -> f64 {
        let limits = Limits::new(size, lengths);
        self.zoom.unwrap_or(limits.smallest).clamp(limits.smallest, limits.largest)
    }

    /// Moves the visible part by `delta` points.
    pub fn pan(&mut self, delta: Vec2, rect: Rect, lengths: Lengths) {
        let map = self.screen_from_world(rect, lengths);
        let [q, kv] = self.center(lengths);
        self.center = Some([q - f64::from(delta.y) / map.q.scale, kv - f64::from(delta.x) / map.kv.scale]);
        self.limit(rect.size(), lengths);
    }

    /// Zooms by a factor about a point of the screen, which keeps its token as far as the limits allow.
    pub fn zoom_about(&mut self, factor: f64, at: Pos2, rect: Rect, lengths: Lengths) {
        let anchor = self.screen_from_world(rect, lengths).world(at);
        let limits = Limits::new(rect.size(), lengths);
        let zoom = self.zoom(rect.size(), lengths) * factor;
        if zoom <= limits.smallest {
            self.fit();
            return;
        }
        self.zoom = Some(zoom.min(limits.largest));
        let map = self.screen_from_world(rect, lengths);
        let moved = map.world(at);
        let center = self.center(lengths);
        self.center = Some([center[0] + anchor[0] - moved[0], center[1] + anchor[1] - moved[1]]);
        self.limit(rect.size(), lengths);
    }

    /// Brings a token to the middle.
    pub fn look_at(&mut self, q: f64, kv: f64, rect: Rect, lengths: Lengths) {
        self.center = Some([q, kv]);
        self.limit(rect.size(), lengths);
    }

    /// Shows a rectangle of tokens as large as it fits.
    pub fn show_range(&mut self, q: [f64; 2], kv: [f64; 2], rect: Rect, lengths: Lengths) {
        let limits = Limits::new(rect.size(), lengths);
        let wanted =
            (f64::from(rect.height()) / (q[1] - q[0]).max(1.0)).min(f64::from(rect.width()) / (kv[1] - kv[0]).max(1.0));
        self.zoom = Some((wanted * FIT).clamp(limits.smallest, limits.largest));
        self.look_at((q[0] + q[1]) / 2.0, (kv[0] + kv[1]) / 2.0, rect, lengths);
    }

    /// Keeps the view within its limits; call when the canvas or the lengths changed.
    pub fn limit(&mut self, size: Vec2, lengths: Lengths) {
        let limits = Limits::new(size, lengths);
        if let Some(zoom) = self.zoom {
            self.zoom = (zoom > limits.smallest).then_some(zoom.min(limits.largest));
        }
        let (scales, whole) = (limits.scales(self.zoom.unwrap_or(limits.smallest)), limits.scales(limits.smallest));
        let center = self.center(lengths);
        let (q_len, kv_len) = (lengths.q_len as f64, lengths.kv_len as f64);
        let sides = [(f64::from(size.y), q_len), (f64::from(size.x), kv_len)];
        let limited = [0, 1].map(|at| {
            let (side, len) = sides[at];
            // the area of the whole mask stays covered, so that a token under the mouse can stay in its place
            let half = (len * whole[at]).min(side) / 2.0 / scales[at];
            let margin = MARGIN.min(side / 4.0) / scales[at];
            let (lo, hi) = (half - margin, len - half + margin);
            if lo >= hi { len / 2.0 } else { center[at].clamp(lo, hi) }
        });
        self.center = Some(limited);
        if self.zoom.is_none() && limited == [q_len / 2.0, kv_len / 2.0] {
            self.center = None;
        }
    }

    fn center(&self, lengths: Lengths) -> [f64; 2] {
        self.center.unwrap_or([lengths.q_len as f64 / 2.0, lengths.kv_len as f64 / 2.0])
    }
}

/// How far one may zoom.
struct Limits {
    /// Points a token when the whole mask is seen.
    smallest: f64,
    largest: f64,
    /// Least scale of each axis, (q, kv): a short side is stretched until the other has caught up.
    floor: [f64; 2],
}

impl Limits {
    fn new(size: Vec2, lengths: Lengths) -> Limits {
        let (height, width) = (f64::from(size.y).max(1.0) * FIT, f64::from(size.x).max(1.0) * FIT);
        let (q_len, kv_len) = (lengths.q_len as f64, lengths.kv_len as f64);
        let whole = (height / q_len).min(width / kv_len);
        let floor = |side: f64, len: f64| whole.max((SHORT_SIDE.min(side) / len).min(STRETCHED_CELL));
        let largest = (height.min(width) * LARGEST_CELL).max(8.0);
        Limits { smallest: whole.min(largest), largest, floor: [floor(height, q_len), floor(width, kv_len)] }
    }

    /// Points a token on each axis, (q, kv).
    fn scales(&self, zoom: f64) -> [f64; 2] {
        let zoom = zoom.clamp(self.smallest, self.largest);
        self.floor.map(|floor| if zoom <= self.smallest { floor.min(self.largest) } else { zoom.max(floor) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::vec2;

    const MILLION: usize = 1 << 20;

    fn canvas() -> Rect {
        Rect::from_min_size(pos2(37.0, 21.0), vec2(800.0, 600.0))
    }

    fn lengths(q: usize, kv: usize) -> Lengths {
        Lengths::new(q, kv).unwrap()
    }

    #[test]
    fn the_whole_mask_fits_and_is_centred() {
        for l in [lengths(MILLION, MILLION), lengths(1, 1), lengths(7, MILLION), lengths(300, 20)] {
            let map = View::default().screen_from_world(canvas(), l);
            let whole = Rect::from_two_pos(map.pos(0.0, 0.0), map.pos(l.q_len as f64, l.kv_len as f64));
            assert!(canvas().contains_rect(whole), "{l:?} {whole:?}");
            assert!((whole.center() - canvas().center()).length() < 0.01, "{l:?}");
            assert!(whole.width().max(whole.height()) > 250.0, "{l:?} {whole:?}");
        }
    }

    #[test]
    fn zooming_keeps_the_token_under_the_mouse() {
        let (l, at) = (lengths(MILLION, MILLION), pos2(500.5, 300.25));
        let mut view = View::default();
        view.zoom_about(40.0, canvas().center(), canvas(), l);
        let token = view.screen_from_world(canvas(), l).world(at);
        for factor in [1.1, 3.0, 0.7, 40.0, 900.0] {
            view.zoom_about(factor, at, canvas(), l);
            let now = view.screen_from_world(canvas(), l).world(at);
            assert!(
                (now[0] - token[0]).abs() < 1e-6 && (now[1] - token[1]).abs() < 1e-6,
                "{factor}: {now:?} {token:?}"
            );
        }
    }

    #[test]
    fn zooming_from_the_whole_mask_keeps_any_token_under_the_mouse() {
        for l in [lengths(MILLION, MILLION), lengths(MILLION, MILLION / 5), lengths(3000, MILLION)] {
            for (q, kv) in [(0.02, 0.97), (0.99, 0.01), (0.5, 0.8)] {
                let mut view = View::default();
                let token = [q * l.q_len as f64, kv * l.kv_len as f64];
                let at = view.screen_from_world(canvas(), l).pos(token[0], token[1]);
                for _ in 0..60 {
                    view.zoom_about(1.2, at, canvas(), l);
                }
                let map = view.screen_from_world(canvas(), l);
                assert!((map.pos(token[0], token[1]) - at).length() < 60.0, "{l:?} {q} {kv} {:?}", map.world(at));
            }
        }
    }

    #[test]
    fn one_zooms_from_the_whole_down_to_a_cell_and_back() {
        let l = lengths(MILLION, MILLION);
        let mut view = View::default();
        let at = pos2(411.0, 333.0);
        for _ in 0..400 {
            view.zoom_about(1.1, at, canvas(), l);
        }
        let map = view.screen_from_world(canvas(), l);
        assert!(map.q.scale > 250.0 && map.q.scale == map.kv.scale, "{map:?}");
        for _ in 0..400 {
            view.zoom_about(1.0 / 1.1, at, canvas(), l);
        }
        assert!(view.is_fit());
        assert_eq!(view, View::default());
    }

    #[test]
    fn panning_moves_the_picture_with_the_mouse_and_stays_with_the_mask() {
        let l = lengths(MILLION, MILLION / 3);
        let mut view = View::default();
        view.zoom_about(100.0, canvas().center(), canvas(), l);
        let token = view.screen_from_world(canvas(), l).world(pos2(300.0, 300.0));
        view.pan(vec2(15.0, -40.0), canvas(), l);
        let now = view.screen_from_world(canvas(), l).world(pos2(315.0, 260.0));
        assert!((now[0] - token[0]).abs() < 1e-6 && (now[1] - token[1]).abs() < 1e-6);
        view.pan(vec2(1e9, 1e9), canvas(), l);
        let map = view.screen_from_world(canvas(), l);
        assert!(canvas().contains(map.pos(0.0, 0.0)));
        view.pan(vec2(-2e9, -2e9), canvas(), l);
        let map = view.screen_from_world(canvas(), l);
        assert!(canvas().contains(map.pos(l.q_len as f64, l.kv_len as f64)));
    }

    #[test]
    fn a_picture_keeps_its_proportions_in_a_canvas_of_any_shape() {
        for size in [vec2(900.0, 95.0), vec2(120.0, 700.0), vec2(800.0, 600.0), vec2(1500.0, 60.0)] {
            for l in [lengths(8192, 8192), lengths(4096, 1024), lengths(1024, 77), lengths(1000, 1007)] {
                let map = View::default().screen_from_world(Rect::from_min_size(pos2(0.0, 0.0), size), l);
                let short = (l.q_len.min(l.kv_len)) as f64 * map.q.scale.min(map.kv.scale);
                let seen = short >= SHORT_SIDE - 0.001;
                assert!(map.stretched().is_none() || !seen, "{l:?} in {size:?}: {:?}", map.stretched());
            }
        }
        // a mask that would be too thin is stretched, and the transform reports it
        let (side, times) = View::default().screen_from_world(canvas(), lengths(15, 4111)).stretched().unwrap();
        assert!(side == "rows" && (8.0..9.0).contains(&times), "{side} {times}");
    }

    #[test]
    fn stretched_sides_become_square_cells_when_one_zooms_in() {
        let l = lengths(16, MILLION);
        let mut view = View::default();
        let map = view.screen_from_world(canvas(), l);
        assert!(map.q.scale > 1000.0 * map.kv.scale);
        for _ in 0..300 {
            view.zoom_about(1.1, canvas().center(), canvas(), l);
        }
        let map = view.screen_from_world(canvas(), l);
        assert_eq!(map.q.scale, map.kv.scale);
    }

    #[test]
    fn cells_are_found_only_inside_the_mask() {
        let l = lengths(10, 20);
        let map = View::default().screen_from_world(canvas(), l);
        assert_eq!(map.cell(map.pos(0.5, 0.5), l), Some([0, 0]));
        assert_eq!(map.cell(map.pos(9.5, 19.5), l), Some([9, 19]));
        assert_eq!(map.cell(map.pos(10.1, 3.0), l), None);
        assert_eq!(map.cell(map.pos(-0.1, 3.0), l), None);
    }
}
