//! Areas that a line is drawn around: a polygon by its corners, a lasso by the pointer's way.
//!
//! Invariant: the area is made of whole cells, at least [`LEAST`] points large on the screen, and of borders that the line follows.
//! Must not know widgets, or what becomes of the area.

use super::colors::Palette;
use super::step::{DRAG, Step};
use super::view::ScreenFromWorld;
use super::{Canvas, CanvasEvent, Scene, Tool};
use crate::app::region::Region;
use crate::base::BlockSize;
use crate::words::Words;
use egui::{Color32, Mesh, Painter, Pos2, Shape, Stroke};

/// Points of a cell of the area, at least: the line is not drawn more finely.
const LEAST: f64 = 3.0;
/// Points between two places of a lasso.
const APART: f32 = 2.0;
/// A click so near to the first corner closes the polygon, in points.
const CLOSES: f32 = 8.0;
/// Seconds between the presses of a double click, at most.
const AGAIN: f64 = 0.5;

/// A corner (q, kv) in tokens, and whether it went to a border of rows and of columns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Corner {
    at: [f64; 2],
    snapped: [bool; 2],
}

/// A line under way.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    tool: Tool,
    corners: Vec<Corner>,
    /// Where the pointer is.
    to: [f64; 2],
    /// Where it went down, and how far from there it has been, in points.
    at: Pos2,
    reach: f32,
}

impl Outline {
    /// Begins at a place.
    pub(super) fn new(tool: Tool, at: Pos2, step: &Step<'_>) -> Outline {
        let to = step.map.world(at);
        let mut outline = Outline { tool, corners: Vec::new(), to, at, reach: 0.0 };
        outline.corner(at, step);
        outline
    }

    /// Adds a corner, on the borders that it is near to, inside the mask.
    fn corner(&mut self, at: Pos2, step: &Step<'_>) {
        let lengths = [step.lengths.q_len as f64, step.lengths.kv_len as f64];
        let world = step.map.world(at);
        let place = [0, 1].map(|side| world[side].clamp(0.0, lengths[side]));
        let borders = step.borders(place);
        let place = [0, 1].map(|side| borders[side].map_or(place[side], |token| token as f64));
        let corner = Corner { at: place, snapped: borders.map(|border| border.is_some()) };
        if self.corners.last().is_none_or(|last| last.at != place) {
            self.corners.push(corner);
        }
    }

    /// The pointer moved through these places.
    pub(super) fn drag(&mut self, through: &[Pos2], step: &Step<'_>) {
        for at in through {
            self.reach = self.reach.max(at.distance(self.at));
            self.to = step.map.world(*at);
            let last = self.corners.last().map(|last| step.map.pos(last.at[0], last.at[1]));
            if self.tool == Tool::Lasso && last.is_none_or(|last| last.distance(*at) >= APART) {
                self.corner(*at, step);
            }
        }
    }

    /// Whether a lasso has only been pressed.
    pub(super) fn is_click(&self) -> bool {
        self.tool == Tool::Lasso && self.reach < DRAG
    }

    /// The area, if the line goes around a cell.
    pub(super) fn region(&self, step: &Step<'_>) -> Option<Region> {
        let cell = |cell: usize, scale: f64| cell * (LEAST / (cell as f64 * scale)).ceil().max(1.0) as usize;
        let size = BlockSize { q: cell(step.cell.q, step.map.q.scale), kv: cell(step.cell.kv, step.map.kv.scale) };
        let snapped = [0, 1].map(|side| {
            let there = self.corners.iter().filter(|corner| corner.snapped[side]);
            there.map(|corner| corner.at[side] as usize).collect()
        });
        Region::around(self.corners.iter().map(|corner| corner.at).collect(), size, &snapped, step.lengths)
    }

    /// What it is, and how it goes on.
    pub(super) fn words(&self, said: &'static Words) -> String {
        let corners = [("n", self.corners.len().into())];
        match self.tool {
            Tool::Polygon if self.corners.len() < 3 => said.with("tool-corners", &corners),
            Tool::Polygon => said.with("tool-closes", &corners),
            _ => said.text("tool-around").into(),
        }
    }

    /// Draws the line, with a straight one to the pointer.
    pub(super) fn paint(&self, painter: &Painter, palette: &Palette, step: &Step<'_>) {
        let at = |[q, kv]: [f64; 2]| step.map.pos(q, kv);
        let mut line: Vec<Pos2> = self.corners.iter().map(|corner| at(corner.at)).collect();
        line.push(at(self.to));
        let stroke = Stroke::new(1.5, palette.accent);
        painter.extend(Shape::dashed_line(&[line[line.len() - 1], line[0]], stroke, 3.0, 4.0));
        if self.tool == Tool::Polygon {
            line[..line.len() - 1].iter().for_each(|corner| {
                painter.circle_filled(*corner, 3.0, palette.accent);
            });
            painter.circle_stroke(line[0], CLOSES, (1.0, palette.accent));
        }
        painter.add(Shape::line(line, stroke));
    }
}

/// Draws a selected area: its cells, and the line around it.
pub(super) fn paint_area(painter: &Painter, palette: &Palette, map: &ScreenFromWorld, region: &Region) {
    let line = Stroke::new(1.5, palette.accent);
    let mut corners: Vec<Pos2> = if region.is_rectangle() {
        let rect = map.rect_of(region.place[0].map(|v| v as f64), region.place[1].map(|v| v as f64));
        vec![rect.left_top(), rect.right_top(), rect.right_bottom(), rect.left_bottom()]
    } else {
        let accent = palette.accent;
        let fill = Color32::from_rgba_unmultiplied(accent.r(), accent.g(), accent.b(), 46);
        let mut mesh = Mesh::default();
        for [q, kv] in region.parts.iter() {
            let rect = map.rect_of(q.map(|v| v as f64), kv.map(|v| v as f64));
            if rect.intersects(map.rect) {
                mesh.add_colored_rect(rect, fill);
            }
        }
        painter.add(mesh);
        // far beyond the canvas f32 does not suffice
        let near = map.rect.expand(4096.0);
        region.outline.iter().map(|[q, kv]| near.clamp(map.pos(*q, *kv))).collect()
    };
    corners.extend(corners.first().copied());
    painter.extend(Shape::dashed_line(&corners, line, 6.0, 4.0));
}

/// Lines on the borders that a tool at a place goes to.
pub(super) fn paint_borders(painter: &Painter, palette: &Palette, step: &Step<'_>, tool: Tool, at: Pos2) {
    if !matches!(tool, Tool::Rectangle | Tool::Area | Tool::Polygon | Tool::Lasso) {
        return;
    }
    let [q, kv] = step.borders(step.map.world(at));
    let line = Stroke::new(1.0, palette.accent.gamma_multiply(0.8));
    if let Some(q) = q {
        painter.hline(step.map.rect.x_range(), step.map.q.screen(q as f64) as f32, line);
    }
    if let Some(kv) = kv {
        painter.vline(step.map.kv.screen(kv as f64) as f32, step.map.rect.y_range(), line);
    }
}

impl Canvas {
    /// A corner of a polygon under way, or its end where the place is the first or the last corner.
    pub(super) fn corner(&mut self, at: Pos2, step: &Step<'_>, events: &mut Vec<CanvasEvent>) {
        let Some(outline) = &mut self.tools.outline else { return };
        let (corners, place) = (&outline.corners, |corner: &Corner| step.map.pos(corner.at[0], corner.at[1]));
        let first = corners.len() > 2 && place(&corners[0]).distance(at) <= CLOSES;
        let last = corners.last().is_some_and(|last| place(last).distance(at) < 1.0);
        if first || last && self.by_keyboard {
            self.closed = first.then_some((step.now, at));
            return self.close(step, events);
        }
        outline.corner(at, step);
    }

    /// Ends a polygon that has corners enough.
    pub(super) fn close(&mut self, step: &Step<'_>, events: &mut Vec<CanvasEvent>) {
        if self.tools.outline.as_ref().is_some_and(|outline| outline.corners.len() > 2) {
            self.tools.release(step, events);
        }
    }

    /// Whether a press is the second of a double click whose first has closed a polygon.
    pub(super) fn closed_again(&mut self, at: Pos2, now: f64) -> bool {
        self.closed.take().is_some_and(|(then, there)| now - then < AGAIN && there.distance(at) <= CLOSES)
    }

    /// Whether a polygon is under way: it goes on between clicks.
    pub(super) fn has_corners(&self) -> bool {
        self.tools.outline.as_ref().is_some_and(|outline| outline.tool == Tool::Polygon)
    }

    /// Takes the last corner back; the first ends it.
    pub(super) fn uncorner(&mut self, events: &mut Vec<CanvasEvent>) {
        let Some(outline) = &mut self.tools.outline else { return };
        outline.corners.pop();
        if outline.corners.is_empty() {
            self.tools.cancel(events);
        }
    }

    /// Another tool in hand ends a line that was begun with the one before.
    pub(super) fn leave_outline(&mut self, scene: &Scene<'_>, events: &mut Vec<CanvasEvent>) {
        if self.tools.outline.as_ref().is_some_and(|outline| outline.tool != scene.tool) {
            self.key_drawing = false;
            self.tools.cancel(events);
        }
    }
}
