//! One segment of the keys: a picture or a frame of a video with its slider, or a strip of tokens.
//!
//! Invariant: what the pointer is over is the token that is drawn there; the keyboard moves the query as a click does. Must not
//! know how colours are made.

use super::super::colors::Palette;
use super::super::{CanvasEvent, Scene};
use super::{GAP, Part, Patches};
use crate::app::fields::slider_of;
use crate::app::language::{say, say_with};
use egui::{Align2, Color32, ColorImage, EventFilter, FontId, Key, Mesh, Rect, Response, Sense, Stroke};
use egui::{StrokeKind, TextureOptions, Ui, UiBuilder, Vec2, pos2, vec2};

/// Height of a line of text, in points.
const TEXT: f32 = 18.0;
/// Height of the bars over the frames.
const BARS: f32 = 26.0;
/// The largest patch and the largest token of a strip, in points.
const PATCH: f32 = 40.0;
const TOKEN: f32 = 22.0;
/// Patches from this side on have lines between them.
const LINES: f32 = 10.0;
/// Tokens that are written out, at most.
const WORDS: usize = 400;

/// What a part is drawn of, and what was done on it.
pub(super) struct Look<'a, 's> {
    pub scene: &'a Scene<'s>,
    /// The query.
    pub q: usize,
    pub palette: Palette,
    /// The cell under the pointer.
    pub hovered: Option<[usize; 2]>,
    /// Whether the next part that can have the keyboard takes it.
    pub take: bool,
    pub events: &'a mut Vec<CanvasEvent>,
}

impl Look<'_, '_> {
    /// Whether the query is one of the tokens.
    fn is_marked(&self, part: &Part<'_>) -> bool {
        (part.queries || self.one_axis()) && part.holds(self.q)
    }

    fn one_axis(&self) -> bool {
        std::ptr::eq(self.scene.q_axis, self.scene.kv_axis)
    }

    /// A token was chosen: it becomes the query, or the key where queries have an axis of their own.
    fn choose(&mut self, part: &Part<'_>, token: usize) {
        let cell = if part.queries || self.one_axis() { [token, self.scene.at[1]] } else { [self.q, token] };
        self.events.push(CanvasEvent::Clicked(cell));
    }

    fn point(&mut self, part: &Part<'_>, token: usize) {
        self.hovered = Some(if part.queries { [token, self.scene.at[1]] } else { [self.q, token] });
    }
}

/// Rows and columns of equal cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cells {
    pub rect: Rect,
    pub rows: usize,
    pub columns: usize,
    /// How many there are; the last row may be shorter.
    pub count: usize,
}

impl Cells {
    /// As many columns as fit, each cell as large as the height allows.
    pub(super) fn strip(room: Rect, count: usize) -> Cells {
        let fits = |side: f32| {
            let columns = ((room.width() / side) as usize).clamp(1, count.max(1));
            (columns, count.div_ceil(columns))
        };
        let sizes = (2..=28).rev().map(|n| n as f32 / 28.0 * TOKEN);
        let fitting =
            sizes.map(|side| (side, fits(side))).find(|(side, (_, rows))| *rows as f32 * side <= room.height());
        let (size, (columns, rows)) = fitting.map_or_else(
            || {
                // smaller than a point: as many columns as make it fill the room
                let columns = ((count as f32 * room.width() / room.height().max(1.0)).sqrt().ceil() as usize).max(1);
                let rows = count.div_ceil(columns);
                (vec2(room.width(), room.height()), (columns, rows))
            },
            |(side, (columns, rows))| (vec2(columns as f32, rows as f32) * side, (columns, rows)),
        );
        Cells { rect: Rect::from_min_size(room.min, size), rows, columns, count }
    }

    /// A grid in the middle of a room.
    pub(super) fn grid(room: Rect, rows: usize, columns: usize) -> Cells {
        let side = (room.width() / columns as f32).min(room.height() / rows as f32).min(PATCH);
        let rect = Rect::from_center_size(room.center(), vec2(columns as f32, rows as f32) * side);
        Cells { rect, rows, columns, count: rows * columns }
    }

    pub(super) fn side(&self) -> Vec2 {
        vec2(self.rect.width() / self.columns as f32, self.rect.height() / self.rows as f32)
    }

    /// The place of one.
    pub(super) fn place(&self, at: usize) -> Rect {
        let side = self.side();
        let min = self.rect.min + vec2((at % self.columns) as f32, (at / self.columns) as f32) * side;
        Rect::from_min_size(min, side)
    }

    /// The one at a place.
    pub(super) fn at(&self, pos: egui::Pos2) -> Option<usize> {
        let from = (pos - self.rect.min) / self.side();
        if !self.rect.contains(pos) || from.x < 0.0 || from.y < 0.0 {
            return None;
        }
        let (x, y) = ((from.x as usize).min(self.columns - 1), (from.y as usize).min(self.rows - 1));
        Some(y * self.columns + x).filter(|at| *at < self.count)
    }
}

impl Patches {
    /// Tokens without a grid, one after the other. Returns the height that they take.
    pub(super) fn strip(
        &mut self,
        ui: &mut Ui,
        room: Rect,
        part: Part<'_>,
        colors: &[Color32],
        look: &mut Look<'_, '_>,
    ) -> f32 {
        let count = part.segment.len();
        self.label(ui, room, part, 0..count, look);
        let below = Rect::from_min_max(pos2(room.left(), room.top() + TEXT), room.max);
        let colors = &colors[part.start..part.start + count];
        if let Some(height) = self.words(ui, below, part, colors, look) {
            return TEXT + height;
        }
        let cells = Cells::strip(below, count);
        self.cells(ui, cells, part, 0, colors, look);
        TEXT + cells.rect.height()
    }

    /// Tokens whose text is known, written out; None where they are too many.
    fn words(
        &mut self,
        ui: &mut Ui,
        room: Rect,
        part: Part<'_>,
        colors: &[Color32],
        look: &mut Look<'_, '_>,
    ) -> Option<f32> {
        let texts = look.scene.texts[usize::from(!part.queries)].filter(|_| colors.len() <= WORDS)?;
        texts.at(part.start)?;
        let font = FontId::proportional(12.0);
        let mut at = room.min;
        let mut placed = Vec::with_capacity(colors.len());
        for (n, color) in colors.iter().enumerate() {
            let text: String = texts.at(part.start + n).unwrap_or_default().chars().take(24).collect();
            let galley = ui.painter().layout_no_wrap(text, font.clone(), ink(*color));
            let size = galley.size() + vec2(8.0, 4.0);
            if at.x + size.x > room.right() && at.x > room.left() {
                at = pos2(room.left(), at.y + TEXT + 3.0);
            }
            placed.push((Rect::from_min_size(at, vec2(size.x, TEXT)), galley, *color));
            at.x += size.x + 2.0;
        }
        let all = Rect::from_min_max(room.min, pos2(room.right(), at.y + TEXT));
        if all.height() > room.height() {
            return None;
        }
        let response = self.sense(ui, all, &part, look);
        for (rect, galley, color) in &placed {
            ui.painter().rect_filled(*rect, 3.0, *color);
            ui.painter().galley(rect.min + vec2(4.0, (TEXT - galley.size().y) / 2.0), galley.clone(), ink(*color));
        }
        if look.is_marked(&part) {
            let rect = placed[look.q - part.start].0;
            mark(ui, rect, &look.palette);
        }
        let over = response.hover_pos().and_then(|pos| placed.iter().position(|(rect, ..)| rect.contains(pos)));
        self.pointed(&response, &part, over.map(|n| part.start + n), look);
        self.keys(ui, &response, &part, [1, 1], look);
        Some(all.height())
    }

    /// An image, or one frame of a video with its slider.
    pub(super) fn picture(
        &mut self,
        ui: &mut Ui,
        room: Rect,
        part: Part<'_>,
        colors: &[Color32],
        look: &mut Look<'_, '_>,
    ) {
        let Some([frames, rows, columns]) = part.grid() else { return };
        let size = rows * columns;
        let of_query = if look.is_marked(&part) { (look.q - part.start) / size } else { 0 };
        let frame = self.own.frames.get(&part.start).copied().unwrap_or(of_query).min(frames - 1);
        let below = if frames > 1 { BARS + TEXT + 2.0 * GAP } else { 0.0 };
        self.label(ui, room, part, frame * size..(frame + 1) * size, look);
        let place = Rect::from_min_max(
            pos2(room.left(), room.top() + TEXT),
            pos2(room.right(), (room.bottom() - below).max(room.top() + TEXT + 8.0)),
        );
        let cells = Cells::grid(place, rows, columns);
        let from = part.start + frame * size;
        if part.queries {
            let none = vec![look.palette.empty; size];
            self.cells(ui, cells, part, frame * size, &none, look);
        } else {
            self.cells(ui, cells, part, frame * size, &colors[from..from + size], look);
        }
        if frames > 1 {
            let room = Rect::from_min_max(pos2(room.left(), place.bottom() + GAP), room.max);
            self.frame(ui, room, part, [frames, size], (frame, of_query), look);
        }
    }

    /// How many keys each frame has, and which one is shown.
    fn frame(
        &mut self,
        ui: &mut Ui,
        room: Rect,
        part: Part<'_>,
        [frames, size]: [usize; 2],
        (frame, of_query): (usize, usize),
        look: &mut Look<'_, '_>,
    ) {
        let bars = Rect::from_min_size(room.min, vec2(room.width(), BARS));
        let wide = bars.width() / frames as f32;
        let response = ui.interact(bars, ui.scope_id().with(("frames", part.start, part.queries)), Sense::click());
        let name = say_with(ui, "patches-frames-of", &[("name", (&*part.segment.name).into())]);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &name));
        let kept = |n: usize| {
            let from = part.start + n * size;
            self.kept(from..from + size).filter(|_| !part.queries).unwrap_or(0)
        };
        let kept: Vec<usize> = (0..frames).map(kept).collect();
        let most = kept.iter().copied().max().unwrap_or(0).max(1);
        for (n, kept) in kept.iter().enumerate() {
            let share = *kept as f32 / most as f32;
            let slot = Rect::from_min_size(bars.min + vec2(n as f32 * wide, 0.0), vec2((wide - 1.0).max(0.5), BARS));
            ui.painter().rect_filled(slot, 0.0, look.palette.empty);
            let height = if share > 0.0 { (share * BARS).max(1.5) } else { 0.0 };
            let bar = Rect::from_min_max(pos2(slot.left(), slot.bottom() - height), slot.max);
            ui.painter().rect_filled(bar, 0.0, look.palette.full);
            if n == frame {
                ui.painter().rect_stroke(slot, 0.0, (2.0, look.palette.accent), StrokeKind::Outside);
            }
        }
        let mut chosen = None;
        let at = |pos: egui::Pos2| (((pos.x - bars.left()) / wide) as usize).min(frames - 1);
        if let Some(pos) = response.interact_pointer_pos().filter(|_| response.clicked()) {
            chosen = Some(at(pos));
        }
        response.on_hover_text_at_pointer(say(ui, "patches-frames-tip"));
        let line =
            Rect::from_min_max(pos2(room.left(), bars.bottom() + 4.0), pos2(room.right(), bars.bottom() + 4.0 + TEXT));
        let mut child = ui.new_child(UiBuilder::new().id_salt(("frame", part.start, part.queries)).max_rect(line));
        child.horizontal(|ui| {
            let mut now = frame;
            ui.spacing_mut().slider_width = (line.width() - 220.0).clamp(60.0, 360.0);
            let name = say_with(ui, "patches-frame-of", &[("name", (&*part.segment.name).into())]);
            if ui.add(slider_of(&mut now, 0..=frames - 1).text(&name)).changed() {
                chosen = Some(now);
            }
            let elsewhere = look.is_marked(&part) && of_query != frame;
            if elsewhere
                && ui
                    .small_button(say(ui, "patches-query-frame"))
                    .on_hover_text(say(ui, "patches-query-frame.tip"))
                    .clicked()
            {
                chosen = Some(of_query);
            }
        });
        if let Some(frame) = chosen {
            self.own.frames.insert(part.start, frame);
        }
    }

    /// The part's name, and how many of its keys are kept.
    fn label(&self, ui: &Ui, room: Rect, part: Part<'_>, shown: std::ops::Range<usize>, look: &Look<'_, '_>) {
        let tokens = part.start + shown.start..part.start + shown.end;
        let kept = self.kept(tokens.clone()).filter(|_| !part.queries);
        let words = match (part.queries, kept) {
            (true, _) => say_with(ui, "patches-queries", &[("segment", part.segment.to_string().into())]),
            (false, Some(kept)) if shown.len() < part.segment.len() => {
                let all = self.kept(part.start..part.start + part.segment.len()).unwrap_or(0);
                say_with(
                    ui,
                    "patches-kept-frame",
                    &[
                        ("segment", part.segment.to_string().into()),
                        ("n", kept.into()),
                        ("all", shown.len().into()),
                        ("whole", all.into()),
                    ],
                )
            }
            (false, Some(kept)) => say_with(
                ui,
                "patches-kept",
                &[("segment", part.segment.to_string().into()), ("n", kept.into()), ("all", shown.len().into())],
            ),
            (false, None) => part.segment.to_string(),
        };
        let painter = ui.painter_at(room);
        painter.text(room.min, Align2::LEFT_TOP, words, FontId::proportional(12.0), look.palette.boundary);
    }

    /// Equal cells with their colours, the query's marked. `from`: the first of them within the part.
    fn cells(
        &mut self,
        ui: &mut Ui,
        cells: Cells,
        part: Part<'_>,
        from: usize,
        colors: &[Color32],
        look: &mut Look<'_, '_>,
    ) {
        let first = part.start + from;
        let response = self.sense(ui, cells.rect, &part, look);
        let texture = self.texture(ui, part, from, cells, colors, look);
        let mut mesh = Mesh::with_texture(texture);
        mesh.add_rect_with_uv(cells.rect, Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0)), Color32::WHITE);
        ui.painter().add(mesh);
        if cells.side().min_elem() >= LINES {
            let line = Stroke::new(1.0, look.palette.grid);
            for n in 1..cells.columns {
                ui.painter().vline(cells.place(n).left(), cells.rect.y_range(), line);
            }
            for n in 1..cells.rows {
                ui.painter().hline(cells.rect.x_range(), cells.place(n * cells.columns).top(), line);
            }
        }
        ui.painter().rect_stroke(cells.rect, 0.0, (1.0, look.palette.grid), StrokeKind::Outside);
        if look.is_marked(&part) && (first..first + colors.len()).contains(&look.q) {
            let place = cells.place(look.q - first);
            mark(ui, place, &look.palette);
        }
        let over = response.hover_pos().and_then(|pos| cells.at(pos));
        if let Some(n) = over {
            ui.painter().rect_stroke(cells.place(n), 0.0, (1.0, look.palette.boundary), StrokeKind::Outside);
        }
        self.pointed(&response, &part, over.map(|n| first + n), look);
        self.keys(ui, &response, &part, [cells.columns, cells.count], look);
    }

    fn texture(
        &mut self,
        ui: &Ui,
        part: Part<'_>,
        from: usize,
        cells: Cells,
        colors: &[Color32],
        look: &Look<'_, '_>,
    ) -> egui::TextureId {
        // queries have textures of their own beside the keys
        let key = part.start * 2 + usize::from(part.queries);
        let wanted = (self.version, from * 2 + usize::from(look.palette.dark));
        if let Some((_, known)) =
            self.textures.get(&key).filter(|known| known.0 == wanted && known.1.size() == [cells.columns, cells.rows])
        {
            return known.id();
        }
        let mut pixels = colors.to_vec();
        pixels.resize(cells.rows * cells.columns, look.palette.outside);
        let image = ColorImage::new([cells.columns, cells.rows], pixels);
        let options = TextureOptions { minification: egui::TextureFilter::Linear, ..TextureOptions::NEAREST };
        let made = ui.ctx().load_texture("patches", image, options);
        let id = made.id();
        self.textures.insert(key, (wanted, made));
        id
    }

    fn sense(&mut self, ui: &Ui, rect: Rect, part: &Part<'_>, look: &mut Look<'_, '_>) -> Response {
        let response = ui.interact(rect, ui.scope_id().with(("part", part.start, part.queries)), Sense::click());
        let id = if part.queries { "patches-queries-of" } else { "patches-keys-in" };
        let name = say_with(ui, id, &[("name", (&*part.segment.name).into())]);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Canvas, true, &name));
        if std::mem::take(&mut look.take) {
            response.request_focus();
        }
        if response.has_focus() {
            self.focused = true;
            ui.painter().rect_stroke(
                rect.expand(3.0),
                0.0,
                (1.0, look.palette.accent.gamma_multiply(0.6)),
                StrokeKind::Outside,
            );
        }
        response
    }

    fn pointed(&mut self, response: &Response, part: &Part<'_>, token: Option<usize>, look: &mut Look<'_, '_>) {
        let Some(token) = token else { return };
        look.point(part, token);
        if response.clicked() {
            response.request_focus();
            look.choose(part, token);
        }
    }

    /// Arrows move the query by a patch, page keys by a frame.
    fn keys(
        &mut self,
        ui: &Ui,
        response: &Response,
        part: &Part<'_>,
        [row, frame]: [usize; 2],
        look: &mut Look<'_, '_>,
    ) {
        if !response.has_focus() {
            return;
        }
        let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, escape: false, tab: false };
        ui.memory_mut(|m| m.set_focus_lock_filter(response.id, filter));
        let pressed = |key: Key| ui.input(|i| i.num_presses(key) as i64);
        let pages = pressed(Key::PageDown) - pressed(Key::PageUp);
        let way = pressed(Key::ArrowRight) - pressed(Key::ArrowLeft)
            + (pressed(Key::ArrowDown) - pressed(Key::ArrowUp)) * row as i64
            + pages * frame as i64;
        if way == 0 {
            return;
        }
        let now = if part.queries || look.one_axis() { look.q } else { look.scene.at[1] };
        let now = if part.holds(now) { now } else { part.start };
        let to = (now as i64 + way).clamp(part.start as i64, (part.start + part.segment.len() - 1) as i64) as usize;
        if pages != 0 {
            // the frame goes with it
            self.own.frames.remove(&part.start);
        }
        look.choose(part, to);
    }
}

/// Frames the query, on any colour.
fn mark(ui: &Ui, rect: Rect, palette: &Palette) {
    ui.painter().rect_stroke(rect.expand(0.5), 0.0, (4.0, palette.outside), StrokeKind::Outside);
    ui.painter().rect_stroke(rect.expand(1.5), 0.0, (2.0, palette.accent), StrokeKind::Outside);
}

/// What can be read on a colour.
fn ink(on: Color32) -> Color32 {
    let light = 0.299 * f32::from(on.r()) + 0.587 * f32::from(on.g()) + 0.114 * f32::from(on.b());
    if light > 140.0 { Color32::BLACK } else { Color32::WHITE }
}
