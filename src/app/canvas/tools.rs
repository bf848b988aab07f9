//! Drawing on the canvas: brush, eraser, rectangle, band and areas, from pointer positions to shapes.
//!
//! Invariant: a stroke is delivered as rectangles of cells, each cell of a fine brush at most once, without gaps at any
//! pointer speed; a drawn shape stays on the screen until the analysed picture shows it. Must not know widgets or the
//! use of a stroke.

use super::colors::Palette;
use super::outline::Outline;
use super::step::{DRAG, Step};
use super::{CanvasEvent, Tool};
use crate::app::region::{Place, Region};
use crate::base::BlockSize;
use crate::document::model::Stroke;
use crate::words::Words;
use egui::{Color32, Painter, Pos2, Shape, StrokeKind};
use std::collections::BTreeSet;

/// The smallest brush on the screen, in points: a cell that is smaller is painted together with its neighbours.
const SMALLEST_BRUSH: f64 = 4.0;
/// Brushes up to so many cells wide paint cell by cell; wider ones leave stamps.
const FINE: u32 = 8;
/// Seconds after which a stroke that changed nothing is no longer shown.
const FORGET: f64 = 3.0;
/// Seconds after which one new revision is believed to hold a stroke; two always are.
const BELIEVE: f64 = 0.25;

/// A stroke under way.
#[derive(Debug)]
struct Active {
    paint: bool,
    /// Brush width in cells, rows and columns.
    width: [u32; 2],
    /// Cell under the pointer at the last step.
    last: [i64; 2],
    covered: BTreeSet<[u32; 2]>,
    stamps: BTreeSet<[u32; 4]>,
}

/// A rectangle or band under way: where the pointer went down and is now, in tokens (q, kv).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    tool: Tool,
    from: [f64; 2],
    to: [f64; 2],
    /// Where the pointer went down, and how far from there it has been, in points.
    at: Pos2,
    reach: f32,
}

/// Rectangles shown until the picture has them.
#[derive(Debug)]
struct Pending {
    stroke: Stroke,
    cell: BlockSize,
    revision: u64,
    at: f64,
}

/// The shape in progress.
#[derive(Debug)]
pub(super) struct Tools {
    active: Option<Active>,
    span: Option<Span>,
    /// A polygon or lasso under way.
    pub(super) outline: Option<Outline>,
    pending: Vec<Pending>,
    /// Brush width in cells, as the user set it.
    brush: u32,
}

impl Default for Tools {
    fn default() -> Self {
        Tools { active: None, span: None, outline: None, pending: Vec::new(), brush: 1 }
    }
}

impl Tools {
    /// Whether something is being drawn.
    pub(super) fn drawing(&self) -> bool {
        self.active.is_some() || self.span.is_some() || self.outline.is_some()
    }

    /// Whether the pointer has only been pressed: a shape of a click is none.
    pub(super) fn is_click(&self) -> bool {
        let lasso = self.outline.as_ref().is_some_and(Outline::is_click);
        lasso || self.span.is_some_and(|span| span.tool != Tool::Line && span.reach < DRAG)
    }

    /// Whether it is a shape rather than a stroke.
    pub(super) fn spanning(&self) -> bool {
        self.span.is_some() || self.outline.is_some()
    }

    /// Makes the brush wider or narrower.
    pub(super) fn widen(&mut self, by: i32) {
        self.brush = self.brush.saturating_add_signed(by).clamp(1, 1024);
    }

    /// Cells that the brush covers when it is over a cell, wide enough to be seen.
    fn width(&self, step: &Step<'_>) -> [u32; 2] {
        let points = [step.map.q.scale * step.cell.q as f64, step.map.kv.scale * step.cell.kv as f64];
        points.map(|p| self.brush.max((SMALLEST_BRUSH / p).ceil() as u32))
    }

    /// The pointer went down.
    pub(super) fn press(&mut self, tool: Tool, at: Pos2, step: &Step<'_>, events: &mut Vec<CanvasEvent>) {
        let cell = step.cell_at(at);
        match tool {
            Tool::Pan => {}
            Tool::Brush | Tool::Eraser => {
                let paint = tool == Tool::Brush;
                let width = self.width(step);
                let (covered, stamps) = (BTreeSet::new(), BTreeSet::new());
                self.active = Some(Active { paint, width, last: cell, covered, stamps });
                events.push(CanvasEvent::StrokeBegan);
                self.drag(&[at], step, events);
            }
            Tool::Rectangle | Tool::Band | Tool::Line | Tool::Area => {
                let from = step.map.world(at);
                self.span = Some(Span { tool, from, to: from, at, reach: 0.0 });
            }
            Tool::Polygon | Tool::Lasso => self.outline = Some(Outline::new(tool, at, step)),
        }
    }

    /// The pointer moved through these points.
    pub(super) fn drag(&mut self, through: &[Pos2], step: &Step<'_>, events: &mut Vec<CanvasEvent>) {
        if let (Some(span), Some(at)) = (&mut self.span, through.last()) {
            span.to = step.map.world(*at);
            span.reach = through.iter().map(|p| p.distance(span.at)).fold(span.reach, f32::max);
        }
        if let Some(outline) = &mut self.outline {
            outline.drag(through, step);
        }
        let Some(active) = &mut self.active else { return };
        let mut rects = Vec::new();
        for at in through {
            active.walk_to(step.cell_at(*at), step.grid(), &mut rects);
        }
        let rects = merge(rects);
        if !rects.is_empty() {
            let stroke = Stroke { paint: active.paint, rects };
            let (cell, revision, at) = (step.cell, step.revision, step.now);
            self.pending.push(Pending { stroke: stroke.clone(), cell, revision, at });
            events.push(CanvasEvent::Stroke(stroke));
        }
    }

    /// The pointer went up.
    pub(super) fn release(&mut self, step: &Step<'_>, events: &mut Vec<CanvasEvent>) {
        if self.active.take().is_some() {
            events.push(CanvasEvent::StrokeEnded);
        }
        if let Some(outline) = self.outline.take() {
            events.extend(outline.region(step).map(CanvasEvent::AreaSelected));
        }
        match self.span.take() {
            Some(span) if span.tool == Tool::Rectangle => {
                if let Some([q, kv]) = span.rectangle(step) {
                    events.push(CanvasEvent::RectangleDrawn { q, kv });
                }
            }
            Some(span) if span.tool == Tool::Area => {
                events.extend(span.rectangle(step).map(Region::rectangle).map(CanvasEvent::AreaSelected));
            }
            Some(span) if span.tool == Tool::Line => self.line(span, step, events),
            Some(span) => {
                let [lo, hi] = span.band(step);
                events.push(CanvasEvent::BandDrawn { lo, hi });
            }
            None => {}
        }
    }

    /// A stroke of the brush along a straight line.
    fn line(&mut self, span: Span, step: &Step<'_>, events: &mut Vec<CanvasEvent>) {
        let (width, covered, stamps) = (self.width(step), BTreeSet::new(), BTreeSet::new());
        let mut along = Active { paint: true, width, last: step.cell_of(span.from), covered, stamps };
        let mut rects = Vec::new();
        along.walk_to(step.cell_of(span.to), step.grid(), &mut rects);
        let rects = merge(rects);
        if rects.is_empty() {
            return;
        }
        let stroke = Stroke { paint: true, rects };
        let (cell, revision, at) = (step.cell, step.revision, step.now);
        self.pending.push(Pending { stroke: stroke.clone(), cell, revision, at });
        events.extend([CanvasEvent::StrokeBegan, CanvasEvent::Stroke(stroke), CanvasEvent::StrokeEnded]);
    }

    /// Escape: nothing has been drawn.
    pub(super) fn cancel(&mut self, events: &mut Vec<CanvasEvent>) {
        (self.span, self.outline) = (None, None);
        if self.active.take().is_some() {
            self.pending.clear();
            events.push(CanvasEvent::StrokeCancelled);
        }
    }

    /// Drops what the picture shows by now. `settled`: the picture is that of `revision`.
    pub(super) fn settle(&mut self, revision: u64, settled: bool, now: f64) {
        self.pending.retain(|p| {
            let shown = settled && (revision > p.revision + 1 || revision > p.revision && now - p.at > BELIEVE);
            !shown && (self.active.is_some() || now - p.at < FORGET)
        });
    }

    /// Whether strokes wait for the picture.
    pub(super) fn waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The rectangle under way, in tokens.
    pub(super) fn rectangle(&self, step: &Step<'_>) -> Option<[[usize; 2]; 2]> {
        self.span.filter(|s| s.tool == Tool::Rectangle)?.rectangle(step)
    }

    /// A description of the shape in progress.
    pub(super) fn words(&self, said: &'static Words, step: &Step<'_>) -> Option<String> {
        if let Some(outline) = &self.outline {
            return Some(outline.words(said));
        }
        let span = self.span?;
        if span.tool == Tool::Band {
            let [lo, hi] = span.band(step);
            return Some(format!("{lo} \u{2264} q - kv \u{2264} {hi}"));
        }
        if span.tool == Tool::Line {
            let place = |at: [f64; 2]| {
                let [q, kv] = step.cell_of(at);
                format!("q {} kv {}", q * step.cell.q as i64, kv * step.cell.kv as i64)
            };
            let ends = [("from", place(span.from).into()), ("to", place(span.to).into())];
            return Some(said.with("tool-line", &ends));
        }
        let [q, kv] = span.rectangle(step)?;
        let (rows, cols) = (q[1] - q[0], kv[1] - kv[0]);
        let place = format!("q {}..{} \u{00d7} kv {}..{}", q[0], q[1], kv[0], kv[1]);
        Some(said.with("tool-rectangle", &[("place", place.into()), ("rows", rows.into()), ("cols", cols.into())]))
    }

    /// Paints strokes that the picture does not show yet, the shape in progress, and the brush.
    pub(super) fn paint(&self, painter: &Painter, palette: &Palette, step: &Step<'_>, brush_at: Option<(Tool, Pos2)>) {
        let mut mesh = egui::Mesh::default();
        for pending in &self.pending {
            let color = if pending.stroke.paint { palette.painted } else { palette.erased };
            let step = Step { cell: pending.cell, ..*step };
            for rect in &pending.stroke.rects {
                let [q, kv] = step.tokens(*rect);
                let shown = step.map.rect_of(q.map(|v| v as f64), kv.map(|v| v as f64));
                if shown.intersects(step.map.rect) {
                    mesh.add_colored_rect(shown, color);
                }
            }
        }
        painter.add(mesh);
        if let Some(span) = &self.span {
            span.paint(painter, palette, step, self.width(step));
        }
        if let Some(outline) = &self.outline {
            outline.paint(painter, palette, step);
        }
        if let Some((Tool::Brush | Tool::Eraser, at)) = brush_at {
            let stamp = clip(stamp(step.cell_at(at), self.width(step)), step.grid());
            if stamp[0] < stamp[1] && stamp[2] < stamp[3] {
                let [q, kv] = step.tokens(stamp).map(|r| r.map(|v| v as f64));
                painter.rect_stroke(step.map.rect_of(q, kv), 0.0, (1.5, palette.accent), StrokeKind::Outside);
            }
        }
    }
}

impl Active {
    /// Covers the cells from the last one to this one.
    fn walk_to(&mut self, to: [i64; 2], grid: [u32; 2], rects: &mut Vec<[u32; 4]>) {
        let (from, fine) = (self.last, self.width.iter().all(|w| *w <= FINE));
        // a wide brush leaves a stamp every quarter of its width, on a lattice, so that a stroke has few distinct edges
        let pace = if fine { [1, 1] } else { self.width.map(|w| i64::from((w / 4).max(1))) };
        let steps = [0, 1].map(|a| to[a].abs_diff(from[a]).div_ceil(pace[a] as u64)).into_iter().max().unwrap_or(0);
        for n in 0..=steps {
            let along = |a: usize| match steps {
                0 => to[a],
                _ => from[a] + ((to[a] - from[a]) as f64 * n as f64 / steps as f64).round() as i64,
            };
            let at = [0, 1].map(|a| along(a).div_euclid(pace[a]) * pace[a]);
            let stamp = clip(stamp(at, self.width), grid);
            if stamp[0] >= stamp[1] || stamp[2] >= stamp[3] {
                continue;
            }
            if !fine {
                if self.stamps.insert(stamp) {
                    rects.push(stamp);
                }
                continue;
            }
            for q in stamp[0]..stamp[1] {
                for kv in stamp[2]..stamp[3] {
                    if self.covered.insert([q, kv]) {
                        rects.push([q, q + 1, kv, kv + 1]);
                    }
                }
            }
        }
        self.last = to;
    }
}

/// Cells under a brush with a cell in its middle, [q0, q1, kv0, kv1]; may be outside the grid.
fn stamp(at: [i64; 2], width: [u32; 2]) -> [i64; 4] {
    let start = |a: usize| at[a] - (i64::from(width[a]) - 1) / 2;
    let (q, kv) = (start(0), start(1));
    [q, q + i64::from(width[0]), kv, kv + i64::from(width[1])]
}

fn clip(rect: [i64; 4], grid: [u32; 2]) -> [u32; 4] {
    let clip = |v: i64, end: u32| v.clamp(0, i64::from(end)) as u32;
    [clip(rect[0], grid[0]), clip(rect[1], grid[0]), clip(rect[2], grid[1]), clip(rect[3], grid[1])]
}

/// Joins rectangles that are neighbours in a row, then equal rows below each other.
fn merge(mut rects: Vec<[u32; 4]>) -> Vec<[u32; 4]> {
    let join = |rects: Vec<[u32; 4]>, fits: fn(&[u32; 4], &[u32; 4]) -> bool, end: usize| {
        let mut out: Vec<[u32; 4]> = Vec::with_capacity(rects.len());
        for rect in rects {
            match out.last_mut() {
                Some(last) if fits(last, &rect) => last[end] = rect[end],
                _ => out.push(rect),
            }
        }
        out
    };
    rects.sort_unstable();
    let mut rects = join(rects, |a, b| a[0] == b[0] && a[1] == b[1] && a[3] == b[2], 3);
    rects.sort_unstable_by_key(|r| [r[2], r[3], r[0], r[1]]);
    join(rects, |a, b| a[2] == b[2] && a[3] == b[3] && a[1] == b[0], 1)
}

impl Span {
    /// In tokens; None if it is outside the mask.
    fn rectangle(&self, step: &Step<'_>) -> Option<Place> {
        let side = |a: usize| step.between(a, self.from[a], self.to[a]);
        let place = [side(0), side(1)];
        place.iter().all(|[from, to]| from < to).then_some(place)
    }

    /// Smallest and largest distance between the diagonals through both cells, in tokens.
    fn band(&self, step: &Step<'_>) -> [i64; 2] {
        let distance = |at: [i64; 2]| at[0] * step.cell.q as i64 - at[1] * step.cell.kv as i64;
        let (a, b) = (distance(step.cell_of(self.from)), distance(step.cell_of(self.to)));
        // within a cell's diagonal the tokens count: a single diagonal is hardly meant
        let token = |[q, kv]: [f64; 2]| q.floor() as i64 - kv.floor() as i64;
        let (a, b) = if a == b { (token(self.from), token(self.to)) } else { (a, b) };
        [a.min(b), a.max(b)]
    }

    fn paint(&self, painter: &Painter, palette: &Palette, step: &Step<'_>, width: [u32; 2]) {
        let fill = Color32::from_rgba_unmultiplied(palette.accent.r(), palette.accent.g(), palette.accent.b(), 60);
        let line = egui::Stroke::new(1.5, palette.accent);
        if matches!(self.tool, Tool::Rectangle | Tool::Area) {
            if let Some([q, kv]) = self.rectangle(step) {
                let rect = step.map.rect_of(q.map(|v| v as f64), kv.map(|v| v as f64));
                painter.rect(rect, 0.0, fill, line, StrokeKind::Inside);
            }
            return;
        }
        if self.tool == Tool::Line {
            let middle = |n: i64, cell: usize| (n as f64 + 0.5) * cell as f64;
            let place = |at: [f64; 2]| {
                let [q, kv] = step.cell_of(at);
                step.map.pos(middle(q, step.cell.q), middle(kv, step.cell.kv))
            };
            let wide = (step.map.q.scale * step.cell.q as f64 * f64::from(width[0])).max(2.0) as f32;
            painter.line_segment([place(self.from), place(self.to)], (wide, fill));
            painter.line_segment([place(self.from), place(self.to)], line);
            return;
        }
        let points: Vec<Pos2> =
            band_polygon(self.band(step), step).iter().map(|[q, kv]| step.map.pos(*q, *kv)).collect();
        if points.len() >= 3 {
            painter.add(Shape::convex_polygon(points, fill, line));
        }
    }
}

/// Corners (q, kv) of `lo <= q - kv <= hi` within the visible part of the mask; a cell's area extends to its far
/// corner.
fn band_polygon([lo, hi]: [i64; 2], step: &Step<'_>) -> Vec<[f64; 2]> {
    let [q0, q1, kv0, kv1] = step.map.visible(step.lengths);
    let corners = vec![[q0, kv0], [q0, kv1], [q1, kv1], [q1, kv0]];
    let above = cut(&corners, |p| p[0] - p[1] - (lo as f64 - 0.5));
    cut(&above, |p| hi as f64 + 0.5 - (p[0] - p[1]))
}

/// The part of a convex polygon in which a linear function is not negative.
fn cut(polygon: &[[f64; 2]], side: impl Fn(&[f64; 2]) -> f64) -> Vec<[f64; 2]> {
    let mut out = Vec::with_capacity(polygon.len() + 1);
    for (n, a) in polygon.iter().enumerate() {
        let b = &polygon[(n + 1) % polygon.len()];
        let (sa, sb) = (side(a), side(b));
        if sa >= 0.0 {
            out.push(*a);
        }
        if (sa > 0.0 && sb < 0.0) || (sa < 0.0 && sb > 0.0) {
            let t = sa / (sa - sb);
            out.push([a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t]);
        }
    }
    out
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
