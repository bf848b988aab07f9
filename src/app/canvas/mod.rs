//! The mask canvas: one zoomable picture from the whole mask down to a cell, with tools that draw on it.
//!
//! Invariant: drawing a frame never waits for analysis; unknown parts are drawn coarser and follow later. The canvas
//! changes no document: it reports the user's action, and the caller decides. Must not know documents' layers, commands
//! or panels.

mod bias;
mod cells;
pub mod colors;
mod handles;
pub mod heat;
mod hover;
mod input;
mod legend;
mod loss;
mod marks;
mod minimap;
mod outline;
mod overlay;
mod patches;
mod render;
mod rulers;
mod scene;
mod step;
mod texts;
mod tiles;
mod tools;
mod view;
mod walk;
mod workers;

pub use hover::ReadOut;
pub use overlay::cell_of;
pub use scene::{Against, Loss, Numbers, Picture, Scene, SceneLayer, Walk};
pub use texts::Texts;
pub use view::{AxisMap, ScreenFromWorld, View};

use crate::app::command::Command;
use crate::app::region::Region;
use crate::base::{BlockSize, Lengths};
use crate::document::heads::Heads;
use crate::document::model::{Axis, Stroke};
use colors::Palette;
use egui::{Align2, FontId, Rect, Sense, Ui, pos2, vec2};
use heat::HeatMap;
use marks::{blank, cross, cross_hair, numbers, veil};
use render::Source;
use std::sync::Arc;
use step::Step;
use tiles::{Look, Tiles};
use tools::Tools;
use workers::{Probe, Workers};

/// Height of the line with the read-out, in points.
const LINE: f32 = 20.0;
/// Points that the rulers and the line below take of a canvas.
pub const AROUND: egui::Vec2 = vec2(rulers::LEFT, rulers::TOP + LINE);
/// Points of the mask's height that the strip of heads leaves: heads are chosen above the canvas, too.
const LEAST: f32 = 200.0;
/// The text in place of the bias.
const NO_SCORE: &str = "canvas-no-score";
/// The text in place of a difference.
const NOT_COMPARED: &str = "canvas-not-compared";

/// The effect of the primary button on the canvas. The middle button, and the primary one with the space bar held,
/// always pan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Moves the picture.
    #[default]
    Pan,
    /// Paints cells.
    Brush,
    /// Erases painted cells.
    Eraser,
    /// Draws a rectangle.
    Rectangle,
    /// Draws a diagonal band.
    Band,
    /// Paints the cells of a straight line.
    Line,
    /// Selects a rectangle, whose figures are told.
    Area,
    /// Selects what straight lines between corners go around.
    Polygon,
    /// Selects what the pointer goes around.
    Lasso,
}

/// The user's actions on the canvas. A stroke is `StrokeBegan`, then at least one `Stroke` with the rectangles added
/// since the last, then `StrokeEnded` or `StrokeCancelled`.
#[derive(Clone, Debug, PartialEq)]
pub enum CanvasEvent {
    /// The pointer went down with the brush or the eraser.
    StrokeBegan,
    /// Rectangles in cell units (of `painted_cell`) that the stroke covers in addition.
    Stroke(Stroke),
    /// The pointer went up.
    StrokeEnded,
    /// Escape: the stroke since `StrokeBegan` is to be taken back.
    StrokeCancelled,
    /// A rectangle was drawn (half-open, tokens).
    RectangleDrawn {
        /// Rows.
        q: [usize; 2],
        /// Columns.
        kv: [usize; 2],
    },
    /// The typed cell lies beyond the mask: the nearest one is shown.
    Beyond {
        /// Row and column as typed.
        wanted: [usize; 2],
        /// Row and column of the nearest cell.
        shown: [usize; 2],
    },
    /// An area was selected.
    AreaSelected(Region),
    /// The selected rectangle was dragged by a handle (half-open, tokens).
    Reshaped {
        /// Rows.
        q: [usize; 2],
        /// Columns.
        kv: [usize; 2],
    },
    /// A band was drawn: `lo <= q_idx - kv_idx <= hi`.
    BandDrawn {
        /// Smallest distance.
        lo: i64,
        /// Largest distance.
        hi: i64,
    },
    /// The cell under the pointer (q_idx, kv_idx) changed.
    Hovered(Option<[usize; 2]>),
    /// A cell was clicked with the pan tool.
    Clicked([usize; 2]),
    /// This cell's steps are to be shown.
    Inspected([usize; 2]),
    /// A command of the window was chosen.
    Wished(Command),
    /// The layer that decided a cell is to be selected.
    Selected(u64),
    /// These heads are to be painted on; None: all.
    Picked(Option<Heads>),
    /// What columns mean, with a grid.
    Gridded(Axis),
    /// A thumbnail was chosen.
    Chosen {
        /// Batch entry.
        b: usize,
        /// Head.
        h: usize,
    },
}

/// The canvas and its state between frames.
#[derive(Debug, Default)]
pub struct Canvas {
    view: View,
    tools: Tools,
    source: Option<Arc<Source>>,
    tiles: Option<Tiles>,
    hovered: Option<[usize; 2]>,
    /// Whether the keyboard moved last: the cell in the middle is then the one pointed at.
    by_keyboard: bool,
    /// Whether fingers on a trackpad scrolled last, rather than a wheel.
    fingers: bool,
    /// Whether the tool was put down with Enter.
    key_drawing: bool,
    /// Whether an area is drawn in single tokens, and without its edges going to borders: Shift and Alt are down.
    free: [bool; 2],
    /// Extent for which the view was made.
    lengths: Option<Lengths>,
    /// Whether the keyboard's focus was here in the last frame.
    focused: bool,
    /// Whether the focus is to come here in the next one.
    takes_focus: bool,
    /// Whether its picture is being copied: without controls.
    alone: bool,
    /// Whether it is shown to others: controls that are not asked for stay away.
    bare: bool,
    /// Steps of zoom requested by commands; above zero zooms in.
    zoom_steps: i32,
    /// The cell over which the menu was opened.
    menu_at: Option<[usize; 2]>,
    /// A cell that is to be in the middle of the next frame.
    looks_at: Option<[usize; 2]>,
    /// The handle that is held.
    grip: Option<handles::Grip>,
    /// Colours of the numbers that are drawn over the cells.
    heat: HeatMap,
    /// The visible part of the mask in the last frame: [q0, q1, kv0, kv1] in tokens.
    seen: [f64; 4],
    /// Where it was drawn; None: it is not the matrix that is drawn.
    drawn: Option<ScreenFromWorld>,
    /// When and where a click closed a polygon: the second of a double click begins no other one.
    closed: Option<(f64, egui::Pos2)>,
    /// The lower right corner of the picture in the last frame, above the minimap, and what is free beside the mask there.
    corner: Option<(egui::Pos2, f32)>,
    /// The text typed into the field that goes to a cell, while it is open.
    going: Option<String>,
    /// The keys of one query as a picture.
    patches: patches::Patches,
}

impl Scene<'_> {
    /// Cells that tools work on.
    fn cell(&self) -> BlockSize {
        self.painted_cell.unwrap_or(self.block_size)
    }

    fn step<'a>(&'a self, map: &'a ScreenFromWorld, now: f64, [fine, loose]: [bool; 2]) -> Step<'a> {
        let areas = matches!(self.tool, Tool::Area | Tool::Polygon | Tool::Lasso);
        let cell = if fine && areas { BlockSize::square(1) } else { self.cell() };
        let axes = (!loose).then_some([self.q_axis, self.kv_axis]);
        Step { map, lengths: self.lengths, cell, axes, revision: self.revision, now }
    }
}

/// The positions of the canvas's parts.
struct Places {
    canvas: Rect,
    strip: Option<Rect>,
    line: Rect,
}

impl Places {
    fn new(all: Rect, strip: bool) -> Places {
        let line = Rect::from_min_max(pos2(all.left(), (all.bottom() - LINE).max(all.top())), all.max);
        // it takes what the least of the mask leaves, if that is enough to see something
        let high = minimap::strip_height(all.height()).min(all.height() - AROUND.y - LEAST);
        let strip = (strip && high >= minimap::LEAST).then(|| {
            let top = (line.top() - high).max(all.top());
            Rect::from_min_max(pos2(all.left(), top), line.right_top())
        });
        let bottom = strip.map_or(line.top(), |s| s.top());
        let corner = (all.min + vec2(rulers::LEFT, rulers::TOP)).min(pos2(all.right() - 1.0, bottom - 1.0));
        Places { canvas: Rect::from_min_max(corner, pos2(all.right(), bottom)), strip, line }
    }
}

impl Canvas {
    /// Draws the canvas over all the room there is. Returns what the user did.
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>) -> Vec<CanvasEvent> {
        let mut events = Vec::new();
        let (all, _) = ui.allocate_exact_size(ui.available_size().max(vec2(2.0, 2.0)), Sense::hover());
        let source = self.source_of(scene);
        let strip = minimap::strip(&source, scene);
        let places = Places::new(all, strip.is_some());
        let response = ui.interact(places.canvas, ui.scope_id().with("canvas"), Sense::click_and_drag());
        let name = scene.said.text("canvas-name");
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Canvas, true, name));
        if std::mem::take(&mut self.takes_focus) {
            response.request_focus();
        }
        self.focused = response.has_focus();
        self.input(ui, &response, places.canvas, scene, &mut events);
        if self.focused {
            let color = Palette::of(ui.visuals()).accent.gamma_multiply(0.6);
            ui.painter().rect_stroke(places.canvas, 0.0, (1.0, color), egui::StrokeKind::Inside);
        }
        let map = self.view.screen_from_world(places.canvas, scene.lengths);
        self.drawn = Some(map);
        self.hover(&response, &map, scene, &mut events);
        self.paint(ui, &map, scene, &source, strip.as_ref());
        if let (Some(rect), Some(strip)) = (places.strip, strip) {
            events.extend(self.strip(ui, rect, scene, &source, &strip));
        }
        self.line(ui, places.line, &map, scene, &source);
        self.menu(&response, &map, scene, &mut events);
        self.overlay(ui, &map, scene, &mut events);
        ui.ctx().output_mut(|o| o.cursor_icon = cursor(o.cursor_icon, &response, scene.tool));
        events
    }

    /// Shows the whole mask.
    pub fn fit(&mut self) {
        self.view.fit();
    }

    /// Zooms about the middle by so many steps in the next frame; above zero is nearer.
    pub fn zoom(&mut self, steps: i32) {
        self.zoom_steps += steps;
    }

    /// Brings a cell to the middle in the next frame, large enough to be read.
    pub fn look_at_cell(&mut self, cell: [usize; 2]) {
        self.looks_at = Some(cell);
    }

    /// Draws no controls over the picture while it is copied.
    pub fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// Shows no control that nobody asks for.
    pub fn set_bare(&mut self, bare: bool) {
        self.bare = bare;
    }

    /// Opens the field that goes to a cell.
    pub fn go_to(&mut self) {
        self.going = Some(String::new());
    }

    /// Whether the whole mask is shown.
    #[cfg(test)]
    pub fn is_fit(&self) -> bool {
        self.view.is_fit()
    }

    /// Why a part of the picture is missing, if one is.
    #[cfg(test)]
    pub fn failure(&self) -> Option<&str> {
        self.tiles.as_ref().and_then(Tiles::failure)
    }

    /// Nothing that was drawn until now stands in for the next document's tiles.
    pub fn another_document(&mut self) {
        self.tiles.iter_mut().for_each(Tiles::forget_stand_ins);
        // a cell that was typed is one of the document before
        self.going = None;
    }

    /// Whether everything visible is drawn from finished tiles of the present revision.
    pub fn settled(&self) -> bool {
        self.tiles.as_ref().is_some_and(Tiles::settled)
    }

    /// Whether the keyboard's focus is here: keys without modifiers then choose tools.
    pub fn has_focus(&self) -> bool {
        self.focused
    }

    /// Brings the keyboard's focus here in the next frame.
    pub fn take_focus(&mut self) {
        self.takes_focus = true;
    }

    /// Whether a stroke, rectangle or band is under way.
    pub fn drawing(&self) -> bool {
        self.tools.drawing()
    }

    /// The mods of a scene, kept while its revision stays.
    fn source_of(&mut self, scene: &Scene<'_>) -> Arc<Source> {
        if self.lengths != Some(scene.lengths) {
            if self.lengths.is_some() {
                self.view.fit();
            }
            self.lengths = Some(scene.lengths);
        }
        let groups = [scene.batch, scene.heads];
        let against = scene.against.filter(|other| other.lengths == scene.lengths);
        let number = against.map(|other| other.number);
        let same = |s: &&Arc<Source>| {
            s.revision == scene.revision && s.lengths == scene.lengths && s.is_over(groups) && s.against() == number
        };
        if let Some(known) = self.source.as_ref().filter(same) {
            return known.clone();
        }
        let source = Source::new(scene.revision, scene.mask.clone(), scene.score.clone(), scene.lengths);
        let mut source = source.over(scene.batch, scene.heads);
        if let Some(other) = against {
            source = source.compared(other.number, other.mask.clone());
        }
        if let (Some(last), Some(tiles)) = (&self.source, &self.tiles) {
            source = source.after(last, tiles.is_carried(last.revision));
        }
        let source = Arc::new(source);
        self.source = Some(source.clone());
        source
    }

    fn hover(
        &mut self,
        response: &egui::Response,
        map: &ScreenFromWorld,
        scene: &Scene<'_>,
        events: &mut Vec<CanvasEvent>,
    ) {
        let at = if self.by_keyboard && response.has_focus() { Some(map.rect.center()) } else { response.hover_pos() };
        let hovered = at.and_then(|at| map.cell(at, scene.lengths));
        if hovered != self.hovered {
            self.hovered = hovered;
            events.push(CanvasEvent::Hovered(hovered));
        }
    }

    fn paint(
        &mut self,
        ui: &Ui,
        map: &ScreenFromWorld,
        scene: &Scene<'_>,
        source: &Arc<Source>,
        strip: Option<&minimap::Strip>,
    ) {
        let palette = Palette::of(ui.visuals());
        let now = ui.input(|i| i.time);
        let look = look(ui, map, scene, now);
        let step = scene.step(map, now, self.free);
        let probe = self.probe(scene, source, &step);
        let pointed = self.pointed(ui, map);
        let tiles = self.tiles.get_or_insert_with(|| start(ui.ctx()));
        let more = tiles.receive(ui.ctx(), source);
        let painter = ui.painter_at(map.rect);
        painter.rect_filled(map.rect, 0.0, palette.outside);
        let base = tiles.key(source, &look);
        let extra = strip.map(|s| s.keys(base, scene.lengths, source.depends(scene.picture))).unwrap_or_default();
        self.seen = map.visible(scene.lengths);
        let corner = map.rect.right_bottom() - vec2(6.0, 10.0 + minimap::room(&self.view, map.rect));
        let mask = map.rect_of([0.0, scene.lengths.q_len as f64], [0.0, scene.lengths.kv_len as f64]);
        self.corner = Some((corner, corner.x - mask.right().max(map.rect.left()) - 6.0));
        if scene.picture.is_numbers() {
            tiles.paint(&painter, source, &look, &extra, probe);
            painter.rect_filled(map.rect, 0.0, palette.outside);
            numbers(&mut self.heat, ui, &painter, map, scene, &palette);
        } else if source.is_blank(scene.picture) {
            let words = scene.said.text(if scene.picture == Picture::Difference { NOT_COMPARED } else { NO_SCORE });
            blank(&painter, map, scene.lengths, words, &palette);
            // painted words are told to nobody who cannot see them
            let corner = Rect::from_min_size(map.rect.min, vec2(1.0, 1.0));
            let reported = ui.interact(corner, ui.scope_id().with("blank"), Sense::hover());
            reported.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, words));
        } else {
            tiles.paint(&painter, source, &look, &extra, probe);
        }
        self.tools.settle(scene.revision, tiles.settled(), now);
        rulers::grid(&painter, map, scene.lengths, scene.block_size, &palette);
        rulers::boundaries(&painter, map, scene.lengths, [scene.q_axis, scene.kv_axis], &palette);
        cells::paint(&painter, map, scene, &palette);
        if let Some(loss) = scene.loss.as_ref().filter(|_| scene.picture == Picture::Loss) {
            loss::paint(&painter, map, scene.lengths, loss, &palette);
        }
        if let Some(walk) = &scene.walk {
            walk::paint(&painter, map, scene, walk, &palette);
        }
        let brush_at = pointed.filter(|_| !self.tools.spanning()).map(|at| (scene.tool, at));
        if let Some(words) = &scene.before {
            veil(&painter, map, scene.lengths, words, &palette);
        }
        self.tools.paint(&painter, &palette, &step, brush_at);
        if let Some(at) = pointed {
            outline::paint_borders(&painter, &palette, &step, scene.tool, at);
        }
        if let Some(of) = scene.selected.filter(|_| scene.tool == Tool::Pan) {
            handles::paint(&painter, map, of, &palette);
        }
        if let Some(area) = scene.area {
            outline::paint_area(&painter, &palette, map, area);
        }
        if let Some(at) = scene.pinned {
            cross_hair(&painter, map, at, palette.accent);
        }
        if self.by_keyboard && self.hovered.is_some() {
            cross(&painter, map.rect.center(), palette.accent);
        }
        minimap::minimap(ui, tiles, &mut self.view, map, base, scene.lengths, &palette);
        let around = map.rect.union(Rect::from_min_max(map.rect.min - vec2(rulers::LEFT, rulers::TOP), map.rect.max));
        let (q_axis, kv_axis) = (scene.q_axis, scene.kv_axis);
        let (lengths, visuals, hovered) = (scene.lengths, ui.visuals(), self.hovered);
        rulers::Rulers { map, lengths, q_axis, kv_axis, texts: scene.texts, visuals, hovered }
            .paint(&ui.painter_at(around));
        if more {
            ui.ctx().request_repaint();
        } else if self.tools.waiting() || !(tiles.settled() || source.is_blank(scene.picture)) {
            // replacement tiles change with time; finished tiles request a frame themselves
            ui.ctx().request_repaint_after_secs(0.1);
        }
    }

    /// Where the tool is, over a cell.
    fn pointed(&self, ui: &Ui, map: &ScreenFromWorld) -> Option<egui::Pos2> {
        self.hovered?;
        if self.by_keyboard { Some(map.rect.center()) } else { ui.input(|i| i.pointer.hover_pos()) }
    }

    /// Where messages cover the least: the lower right corner of the picture, above the minimap; and the points beside the mask there.
    pub fn margin(&self) -> Option<(egui::Pos2, f32)> {
        self.corner
    }

    /// Where rows and columns are on the screen, if any of them are seen.
    pub fn on_screen(&self, [q, kv]: [[usize; 2]; 2]) -> Option<Rect> {
        let map = self.drawn?;
        let rect = map.rect_of(q.map(|v| v as f64), kv.map(|v| v as f64)).intersect(map.rect);
        rect.is_positive().then_some(rect)
    }

    /// The visible part of the mask in the last frame: [q0, q1, kv0, kv1] in tokens.
    pub fn seen(&self) -> [f64; 4] {
        self.seen
    }

    /// The request to the workers: the rectangle being drawn, or the block under the pointer.
    fn probe(&self, scene: &Scene<'_>, source: &Source, step: &Step<'_>) -> Option<Probe> {
        let (revision, b, h) = (scene.revision, scene.b, scene.h);
        if let Some([q, kv]) = self.tools.rectangle(step) {
            return Some(Probe { revision, b, h, q: q[0]..q[1], kv: kv[0]..kv[1] });
        }
        let hovered = self.hovered.filter(|_| !self.tools.drawing())?;
        Some(Probe::block(source, [b, h], hovered, scene.block_size))
    }

    fn strip(
        &mut self,
        ui: &mut Ui,
        rect: Rect,
        scene: &Scene<'_>,
        source: &Arc<Source>,
        strip: &minimap::Strip,
    ) -> Option<CanvasEvent> {
        let palette = Palette::of(ui.visuals());
        let tiles = self.tiles.as_mut()?;
        let map = self.view.screen_from_world(rect, scene.lengths);
        let base = tiles.key(source, &look(ui, &map, scene, 0.0));
        let keys = strip.keys(base, scene.lengths, source.depends(scene.picture));
        let place = egui::UiBuilder::new().max_rect(rect.shrink2(vec2(6.0, 4.0)));
        let mut inside = ui.new_child(place);
        strip.show(&mut inside, tiles, &keys, scene, &palette)
    }

    /// The line below the picture: the cell under the pointer, and the meaning of the colours.
    fn line(&self, ui: &Ui, rect: Rect, map: &ScreenFromWorld, scene: &Scene<'_>, source: &Source) {
        let painter = ui.painter_at(rect);
        let step = scene.step(map, 0.0, self.free);
        let answer = self.tiles.as_ref().and_then(|t| t.answer(&self.probe(scene, source, &step)?));
        let text = match (self.tools.words(scene.said, &step), self.hovered) {
            (Some(words), _) => match answer {
                Some(answer) => {
                    let share = hover::percent(answer.share, answer.exact);
                    scene.said.with("canvas-kept-now", &[("words", words.into()), ("share", share.into())])
                }
                None => words,
            },
            (None, Some(cell)) => {
                let words = hover::read_out(scene, cell, answer);
                format!("{}   |   {}   |   {}", words.place, words.block, words.cell)
            }
            (None, None) => String::new(),
        };
        let failure = self.tiles.as_ref().and_then(Tiles::failure);
        let text = failure.map_or(text, |why| scene.said.with("canvas-incomplete", &[("why", why.to_string().into())]));
        let at = rect.left_center() + vec2(6.0, 0.0);
        let color = ui.visuals().text_color();
        let drawn = painter.text(at, Align2::LEFT_CENTER, text, FontId::proportional(12.0), color);
        let room = Rect::from_min_max(pos2(drawn.right() + 12.0, rect.top()), rect.max);
        self.legend(ui, room, map, scene, source);
    }
}

fn look<'a>(ui: &Ui, map: &'a ScreenFromWorld, scene: &Scene<'_>, now: f64) -> Look<'a> {
    Look {
        map,
        lengths: scene.lengths,
        group: [scene.b, scene.h],
        // thumbnails next to numbers show the mask
        picture: if scene.picture.is_numbers() { Picture::Blocks } else { scene.picture },
        block: scene.block_size,
        dark: ui.visuals().dark_mode,
        pixels_per_point: ui.ctx().pixels_per_point(),
        now,
    }
}

fn start(ctx: &egui::Context) -> Tiles {
    let ctx = ctx.clone();
    Tiles::new(Workers::start(move || ctx.request_repaint()))
}

fn cursor(present: egui::CursorIcon, response: &egui::Response, tool: Tool) -> egui::CursorIcon {
    match tool {
        _ if !response.hovered() && !response.dragged() => present,
        Tool::Pan if response.dragged() => egui::CursorIcon::Grabbing,
        Tool::Pan => egui::CursorIcon::Grab,
        _ => egui::CursorIcon::Crosshair,
    }
}

#[cfg(test)]
mod tests;
