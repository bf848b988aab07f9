//! Rulers in the axes' own terms, segment borders and the grid of blocks and cells.
//!
//! Invariant: the number of drawn lines grows with the screen, never with the lengths. Must not know masks or tools.

use super::colors::Palette;
use super::texts::Texts;
use super::view::{AxisMap, ScreenFromWorld};
use crate::base::words::grouped;
use crate::base::{BlockSize, Lengths};
use crate::document::model::{Axis, Segment};
use egui::{Align2, Color32, FontId, Mesh, Painter, Rect, Visuals, pos2};

/// Width of the ruler on the left, in points.
pub(super) const LEFT: f32 = 74.0;
/// Height of the ruler on top, in points.
pub(super) const TOP: f32 = 34.0;
/// Block lines appear at this width of a block, in points, and are at full strength at [`GRID_FULL`].
const GRID: f64 = 7.0;
const GRID_FULL: f64 = 24.0;
/// Tokens of at least this many points show their text; columns narrower than [`LEVEL`] show it upright.
const WORDS: f64 = 13.0;
const LEVEL: f32 = 44.0;
/// Segment boundaries closer than this are not drawn, in points.
const CLOSE: f64 = 3.0;

/// A mark of a ruler.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Token.
    pub token: usize,
    /// Its label.
    pub label: String,
}

/// Marks for the tokens of a range, about `gap` points apart, in the coordinates of each segment.
pub(super) fn ticks(axis: &Axis, seen: [f64; 2], scale: f64, gap: f64) -> Vec<Tick> {
    let mut out: Vec<Tick> = Vec::new();
    let mut start = 0usize;
    for segment in &axis.segments {
        let end = start.saturating_add(segment.len());
        let (from, to) = ((start as f64).max(seen[0]), (end as f64).min(seen[1]));
        if to > from
            && (end - start) as f64 * scale >= gap
            && let Some(steps) = Steps::new(segment, scale, gap)
        {
            let room = |at: usize| out.last().is_none_or(|t| (start + at - t.token) as f64 * scale >= gap * 0.8);
            let first = if room(0) { 0 } else { 1 };
            let range = from.floor() as usize - start..(to.ceil() as usize).min(end) - start;
            let marks = steps.within(range, scale, gap).into_iter().filter(|at| *at >= first);
            let marks: Vec<Tick> =
                marks.map(|at| Tick { token: start + at, label: label(segment, at, steps.dim) }).collect();
            out.extend(marks);
        }
        start = end;
    }
    out
}

/// Marks along one dimension of a segment's grid.
struct Steps {
    /// Tokens between marks.
    step: usize,
    /// Which dimension they count.
    dim: usize,
    /// Number of tokens after which that dimension starts again.
    period: usize,
}

impl Steps {
    /// The smallest round step that leaves the gap.
    fn new(segment: &Segment, scale: f64, gap: f64) -> Option<Steps> {
        let mut stride = 1usize;
        for dim in (0..segment.grid.len()).rev() {
            let extent = segment.grid[dim];
            let period = stride.saturating_mul(extent);
            let mut round = 1usize;
            while round < extent || (dim == 0 && round == 1) {
                if stride.saturating_mul(round) as f64 * scale >= gap {
                    return Some(Steps { step: stride * round, dim, period });
                }
                round = next_round(round);
            }
            stride = period;
        }
        None
    }

    /// Marks in a range of the segment's tokens; those too close to the start of the next period are omitted.
    fn within(&self, range: std::ops::Range<usize>, scale: f64, gap: f64) -> Vec<usize> {
        let mut out = Vec::new();
        for period in range.start / self.period..=range.end.saturating_sub(1) / self.period {
            let origin = period * self.period;
            let first = range.start.saturating_sub(origin).div_ceil(self.step) * self.step;
            for at in (first..self.period).step_by(self.step) {
                let crowded = at > 0 && self.dim > 0 && (self.period - at) as f64 * scale < gap * 0.8;
                if !crowded && origin + at < range.end {
                    out.push(origin + at);
                }
            }
        }
        out
    }
}

/// 1, 2, 5, 10, 20, 50, ...
fn next_round(n: usize) -> usize {
    let mut ten = 1;
    while ten * 10 <= n {
        ten *= 10;
    }
    match n / ten {
        1 => 2 * ten,
        2 => 5 * ten,
        _ => 10 * ten,
    }
}

/// The coordinate that steps along `dim`; at its start, the coordinate of the next outer dimension.
fn label(segment: &Segment, at: usize, dim: usize) -> String {
    if segment.grid.len() == 1 {
        return digits(at);
    }
    let names: &[&str] = if segment.grid.len() == 3 { &["t", "y", "x"] } else { &["y", "x"] };
    let stride = |dim: usize| segment.grid[dim + 1..].iter().product::<usize>().max(1);
    let coordinate = |dim: usize| at / stride(dim) % segment.grid[dim];
    let mut shown = dim;
    while shown > 0 && coordinate(shown) == 0 {
        shown -= 1;
    }
    format!("{} {}", names.get(shown).copied().unwrap_or(""), coordinate(shown))
}

/// 1048576 as `1 048 576`; four digits have no space.
pub(super) fn digits(n: usize) -> String {
    if n < 10_000 { n.to_string() } else { grouped(n as u128).replace('\u{202f}', " ") }
}

/// Both rulers around the canvas `map.rect`.
pub(super) struct Rulers<'a> {
    /// The transform of this frame.
    pub map: &'a ScreenFromWorld,
    /// Extent of the mask.
    pub lengths: Lengths,
    /// Rows.
    pub q_axis: &'a Axis,
    /// Columns.
    pub kv_axis: &'a Axis,
    /// The texts of rows and columns.
    pub texts: [Option<Texts<'a>>; 2],
    /// Theme.
    pub visuals: &'a Visuals,
    /// Cell under the pointer.
    pub hovered: Option<[usize; 2]>,
}

impl Rulers<'_> {
    /// Paints them; `painter` may draw over the canvas and its rulers.
    pub(super) fn paint(&self, painter: &Painter) {
        let canvas = self.map.rect;
        let top = Rect::from_min_max(pos2(canvas.left(), canvas.top() - TOP), canvas.right_top());
        let left = Rect::from_min_max(pos2(canvas.left() - LEFT, canvas.top()), canvas.left_bottom());
        let corner = Rect::from_min_max(pos2(left.left(), top.top()), canvas.min);
        for rect in [top, left, corner] {
            painter.rect_filled(rect, 0.0, self.visuals.panel_fill);
        }
        let font = FontId::proportional(10.5);
        let weak = self.visuals.weak_text_color();
        painter.text(corner.right_top() + egui::vec2(-4.0, 4.0), Align2::RIGHT_TOP, "kv", font.clone(), weak);
        painter.text(corner.left_bottom() + egui::vec2(4.0, -2.0), Align2::LEFT_BOTTOM, "q", font, weak);
        self.ruler(painter, top, true);
        self.ruler(painter, left, false);
    }

    fn ruler(&self, painter: &Painter, rect: Rect, horizontal: bool) {
        let painter = painter.with_clip_rect(rect);
        let (axis, map) = if horizontal { (self.kv_axis, self.map.kv) } else { (self.q_axis, self.map.q) };
        let seen = self.map.visible(self.lengths);
        let seen = if horizontal { [seen[2], seen[3]] } else { [seen[0], seen[1]] };
        let color = self.visuals.text_color();
        let line = egui::Stroke::new(1.0, self.visuals.weak_text_color());
        self.segments(&painter, rect, axis, map, horizontal);
        if let Some(cell) = self.hovered {
            let token = cell[usize::from(horizontal)] as f64;
            let (a, b) =
                (map.screen(token) as f32, (map.screen(token + 1.0) as f32).max(map.screen(token) as f32 + 2.0));
            let mark = if horizontal {
                Rect::from_min_max(pos2(a, rect.bottom() - 16.0), pos2(b, rect.bottom()))
            } else {
                Rect::from_min_max(pos2(rect.right() - 52.0, a), pos2(rect.right(), b))
            };
            painter.rect_filled(mark, 0.0, self.visuals.selection.bg_fill);
        }
        let font = FontId::proportional(10.5);
        if let Some(texts) = self.texts[usize::from(horizontal)].filter(|_| map.scale >= WORDS) {
            return self.words(&painter, rect, (texts, axis), (map, seen), horizontal);
        }
        for tick in ticks(axis, seen, map.scale, if horizontal { 62.0 } else { 34.0 }) {
            // a tick is at the token's near edge, or in its middle if the token is wide
            let wide = map.scale > 24.0;
            let at = map.screen(tick.token as f64 + if wide { 0.5 } else { 0.0 }) as f32;
            if horizontal {
                painter.vline(at, rect.bottom() - 5.0..=rect.bottom(), line);
                let align = if wide { Align2::CENTER_BOTTOM } else { Align2::LEFT_BOTTOM };
                let shift = if wide { 0.0 } else { 2.0 };
                painter.text(pos2(at + shift, rect.bottom() - 4.0), align, tick.label, font.clone(), color);
            } else {
                painter.hline(rect.right() - 5.0..=rect.right(), at, line);
                let align = if wide { Align2::RIGHT_CENTER } else { Align2::RIGHT_TOP };
                painter.text(pos2(rect.right() - 7.0, at), align, tick.label, font.clone(), color);
            }
        }
    }

    /// The texts of the visible tokens, one next to each; numbers if there is no text.
    fn words(
        &self,
        painter: &Painter,
        rect: Rect,
        (texts, axis): (Texts<'_>, &Axis),
        (map, seen): (AxisMap, [f64; 2]),
        horizontal: bool,
    ) {
        let color = self.visuals.text_color();
        let line = egui::Stroke::new(1.0, self.visuals.weak_text_color());
        let (font, wide) = (FontId::proportional(10.5), map.scale as f32);
        let upright = horizontal && wide < LEVEL;
        for token in seen[0] as usize..(seen[1].ceil() as usize).min(axis.len()) {
            let (words, color) = match texts.at(token) {
                Some(text) => (text, color),
                None => (digits(token), self.visuals.weak_text_color()),
            };
            let room = match (horizontal, upright) {
                (true, false) => wide - 4.0,
                (true, true) => TOP - 17.0,
                (false, _) => LEFT - 26.0,
            };
            let mut job = egui::text::LayoutJob::simple_singleline(words, font.clone(), color);
            job.wrap = egui::text::TextWrapping::truncate_at_width(room);
            let galley = painter.layout_job(job);
            let (size, at) = (galley.size(), map.screen(token as f64 + 0.5) as f32);
            if upright {
                let from = pos2(at - size.y / 2.0, rect.bottom() - 3.0);
                let text = egui::epaint::TextShape::new(from, galley, color);
                painter.add(text.with_angle(-std::f32::consts::FRAC_PI_2));
            } else if horizontal {
                painter.vline(at, rect.bottom() - 4.0..=rect.bottom(), line);
                painter.galley(pos2(at - size.x / 2.0, rect.bottom() - 4.0 - size.y), galley, color);
            } else {
                painter.hline(rect.right() - 4.0..=rect.right(), at, line);
                painter.galley(pos2(rect.right() - 7.0 - size.x, at - size.y / 2.0), galley, color);
            }
        }
    }

    /// The lane with the segments' names.
    fn segments(&self, painter: &Painter, rect: Rect, axis: &Axis, map: AxisMap, horizontal: bool) {
        let starts = axis.starts();
        let named = axis.segments.len() > 1 || axis.segments[0].name != "tokens" || axis.segments[0].grid.len() > 1;
        if !named {
            return;
        }
        let fills = [self.visuals.faint_bg_color, self.visuals.widgets.inactive.bg_fill];
        for (n, segment) in axis.segments.iter().enumerate() {
            let span = [map.screen(starts[n] as f64), map.screen(starts[n + 1] as f64)];
            let limits = if horizontal { rect.x_range() } else { rect.y_range() };
            let clip = |v: f64| v.clamp(f64::from(limits.min), f64::from(limits.max)) as f32;
            let (a, b) = (clip(span[0]), clip(span[1]));
            if b - a < 2.0 {
                continue;
            }
            let lane = if horizontal {
                Rect::from_min_max(pos2(a, rect.top()), pos2(b, rect.top() + 15.0))
            } else {
                Rect::from_min_max(pos2(rect.left(), a), pos2(rect.left() + 15.0, b))
            };
            painter.rect_filled(lane.shrink(0.5), 2.0, fills[n % 2]);
            self.name(painter, lane, &segment.name, horizontal);
        }
    }

    fn name(&self, painter: &Painter, lane: Rect, name: &str, horizontal: bool) {
        let galley = painter.layout_no_wrap(name.to_string(), FontId::proportional(10.5), self.visuals.text_color());
        let size = galley.size();
        let room = if horizontal { lane.width() } else { lane.height() };
        if size.x + 4.0 > room {
            return;
        }
        if horizontal {
            painter.galley(lane.center() - size / 2.0, galley, Color32::PLACEHOLDER);
            return;
        }
        // reads upwards
        let at = pos2(lane.center().x - size.y / 2.0, lane.center().y + size.x / 2.0);
        let text = egui::epaint::TextShape::new(at, galley, self.visuals.text_color());
        painter.add(text.with_angle(-std::f32::consts::FRAC_PI_2));
    }
}

/// Lines over the picture: cells, blocks, boundaries of segments.
pub(super) fn grid(painter: &Painter, map: &ScreenFromWorld, lengths: Lengths, block: BlockSize, palette: &Palette) {
    let mut mesh = Mesh::default();
    let cell = strength([map.q.scale, map.kv.scale]) * 0.5;
    lines(&mut mesh, map, lengths, BlockSize::square(1), palette.grid.gamma_multiply(cell), 1.0);
    let wide = strength([map.q.scale * block.q as f64, map.kv.scale * block.kv as f64]);
    lines(&mut mesh, map, lengths, block, palette.grid.gamma_multiply(wide), if cell > 0.0 { 2.0 } else { 1.0 });
    painter.add(mesh);
}

/// How visible lines so many points apart are, 0..=1; the closer pair counts.
fn strength(apart: [f64; 2]) -> f32 {
    ((apart[0].min(apart[1]) - GRID) / (GRID_FULL - GRID)).clamp(0.0, 1.0) as f32
}

fn lines(mesh: &mut Mesh, map: &ScreenFromWorld, lengths: Lengths, size: BlockSize, color: Color32, width: f32) {
    if color == Color32::TRANSPARENT {
        return;
    }
    let [q0, q1, kv0, kv1] = map.visible(lengths);
    let whole = map.rect_of([q0, q1], [kv0, kv1]);
    let at = |lo: f64, hi: f64, size: usize| (lo / size as f64).ceil() as usize..=(hi / size as f64) as usize;
    for n in at(q0, q1, size.q) {
        let y = map.q.screen((n * size.q) as f64) as f32;
        mesh.add_colored_rect(Rect::from_x_y_ranges(whole.x_range(), y - width / 2.0..=y + width / 2.0), color);
    }
    for n in at(kv0, kv1, size.kv) {
        let x = map.kv.screen((n * size.kv) as f64) as f32;
        mesh.add_colored_rect(Rect::from_x_y_ranges(x - width / 2.0..=x + width / 2.0, whole.y_range()), color);
    }
}

/// Lines between segments.
pub(super) fn boundaries(
    painter: &Painter,
    map: &ScreenFromWorld,
    lengths: Lengths,
    [q_axis, kv_axis]: [&Axis; 2],
    palette: &Palette,
) {
    let [q0, q1, kv0, kv1] = map.visible(lengths);
    let whole = map.rect_of([q0, q1], [kv0, kv1]);
    let line = egui::Stroke::new(1.0, palette.boundary.gamma_multiply(0.7));
    for y in inner(q_axis, map.q) {
        painter.hline(whole.x_range(), y, line);
    }
    for x in inner(kv_axis, map.kv) {
        painter.vline(x, whole.y_range(), line);
    }
}

/// Screen positions of the boundaries inside an axis, those too close to the last left out.
fn inner(axis: &Axis, map: AxisMap) -> Vec<f32> {
    let mut last = f64::NEG_INFINITY;
    let starts = axis.starts();
    let mut out = Vec::new();
    for start in &starts[1..starts.len() - 1] {
        let at = map.screen(*start as f64);
        if at - last >= CLOSE {
            out.push(at as f32);
            last = at;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &str, seen: [f64; 2], scale: f64, gap: f64) -> Vec<(usize, String)> {
        ticks(&Axis::parse(axis).unwrap(), seen, scale, gap).into_iter().map(|t| (t.token, t.label)).collect()
    }

    #[test]
    fn ticks_are_round_and_apart() {
        let marks = labels("1048576", [0.0, 1_048_576.0], 0.001, 60.0);
        assert_eq!(marks[1], (100_000, "100 000".into()));
        assert_eq!(marks.len(), 11);
        let near = labels("1048576", [500_000.2, 500_003.4], 200.0, 60.0);
        assert_eq!(near.iter().map(|m| m.0).collect::<Vec<_>>(), [500_000, 500_001, 500_002, 500_003]);
        for scale in [1e-4, 0.013, 0.9, 17.0] {
            let all = labels("text 77 | video 21x30x52 | image 64x64", [0.0, 1e9], scale, 40.0);
            assert!(all.windows(2).all(|w| (w[1].0 - w[0].0) as f64 * scale >= 31.9), "{scale}: {all:?}");
        }
    }

    #[test]
    fn ticks_speak_in_the_grid_of_their_segment() {
        let rows = labels("text 8 | image 16x64", [0.0, 2000.0], 0.5, 30.0);
        assert_eq!(rows[0], (8, "y 0".into()));
        assert_eq!(rows[1], (8 + 64, "y 1".into()));
        let cells = labels("image 16x64", [0.0, 130.0], 8.0, 30.0);
        assert_eq!(cells[1], (5, "x 5".into()));
        assert!(cells.contains(&(64, "y 1".into())) && cells.contains(&(69, "x 5".into())), "{cells:?}");
        let frames = labels("video 4x10x10", [0.0, 400.0], 1.0, 30.0);
        assert_eq!(frames[0].1, "t 0");
        assert!(frames.iter().any(|m| m == &(100, "t 1".into())) && frames.iter().any(|m| m == &(150, "y 5".into())));
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(
            (digits(4096), digits(16384), digits(1 << 20)),
            ("4096".into(), "16 384".into(), "1 048 576".into())
        );
    }
}
