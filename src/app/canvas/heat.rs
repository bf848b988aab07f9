//! A matrix of numbers as a picture: attention maps, scores, differences.
//!
//! Invariant: a pixel of the texture is one number, and the pointer shows that number. NaN is a checkered grey and
//! minus infinity the colour of an empty mask, never a colour of the scale. Must not know where numbers come from.

use super::colors::{Palette, Ramp};
use super::rulers::digits;
use super::view::{ScreenFromWorld, View};
use crate::app::language::{say, say_with, words as words_of};
use crate::app::origins;
use crate::base::{Lengths, Provenance};
use crate::words::Words;
use egui::{Align2, Color32, ColorImage, FontId, Mesh, Rect, Sense, TextureHandle, TextureOptions, Ui, pos2, vec2};
use std::sync::Arc;

/// Width of the colour bar with its numbers, in points.
const BAR: f32 = 78.0;
/// Height of the line with the switch and the value under the pointer.
const LINE: f32 = 22.0;
/// Width and height of the rulers.
const LEFT: f32 = 60.0;
const TOP: f32 = 18.0;
/// Largest side of a texture; larger matrices show the largest number of several.
const LARGEST: usize = 2048;
/// Decades below the largest value that a logarithmic ramp spans.
const DECADES: f32 = 6.0;
/// Colours in a ramp's table.
const SHADES: usize = 1024;

/// A matrix and what its rows and columns mean.
#[derive(Clone, Debug)]
pub struct HeatData {
    /// Rows, at least one.
    pub rows: usize,
    /// Columns, at least one.
    pub cols: usize,
    /// `rows * cols` numbers, row by row.
    pub values: Arc<[f32]>,
    /// Query tokens that the rows cover evenly, half-open.
    pub q: [usize; 2],
    /// Key tokens that the columns cover evenly, half-open.
    pub kv: [usize; 2],
    /// The name of the numbers, such as `probability`.
    pub quantity: String,
    /// Whose they are.
    pub source: Provenance,
    /// Whether masked cells count as zero, as among probabilities. Minus infinity still marks them, so that a kept cell
    /// with value zero stays distinct.
    pub masked_is_zero: bool,
    /// Changes whenever anything above does.
    pub revision: u64,
}

impl HeatData {
    /// What the numbers are, and whose.
    pub(super) fn title(&self, said: &'static Words) -> String {
        let quantity = ("quantity", said.phrase(&self.quantity).into());
        // a legend has little room: the file alone, the rest where the pointer is
        match &self.source {
            Provenance::Inputs { file } => said.with("heat-file", &[quantity, ("file", file.into())]),
            other => said.with("heat-of", &[quantity, ("source", origins::whole_in(said, other).into())]),
        }
    }

    fn value(&self, row: usize, col: usize) -> f32 {
        self.values.get(row * self.cols + col).copied().unwrap_or(f32::NAN)
    }

    /// One of its numbers in few characters.
    pub(super) fn said(&self, value: f32) -> String {
        number(if self.masked_is_zero && value == f32::NEG_INFINITY { 0.0 } else { value })
    }

    /// Tokens that the matrix covers: what its picture takes its proportions from.
    fn extent(&self) -> Option<Lengths> {
        Lengths::new(self.q[1].checked_sub(self.q[0])?, self.kv[1].checked_sub(self.kv[0])?).ok()
    }

    /// The number of a cell, if it is covered.
    pub(super) fn at(&self, [q, kv]: [usize; 2]) -> Option<f32> {
        let inside = |token: usize, [from, to]: [usize; 2]| (from..to).contains(&token).then(|| token - from);
        let [row, col] = self.cell([inside(q, self.q)?, inside(kv, self.kv)?]);
        Some(self.value(row, col))
    }

    /// The row and column that hold a token, counted from the first that is covered.
    fn cell(&self, token: [usize; 2]) -> [usize; 2] {
        let part = |token: usize, [from, to]: [usize; 2], parts: usize| {
            let (all, parts) = ((to - from) as u128, parts as u128);
            // the last part that does not begin behind the token
            (((token as u128 + 1) * parts - 1) / all).min(parts - 1) as usize
        };
        [part(token[0], self.q, self.rows), part(token[1], self.kv, self.cols)]
    }

    /// Tokens of one row or column.
    fn tokens(range: [usize; 2], parts: usize, at: usize) -> [usize; 2] {
        let edge = |n: usize| range[0] + (n as u128 * (range[1] - range[0]) as u128 / parts as u128) as usize;
        [edge(at), edge(at + 1).max(edge(at) + 1)]
    }
}

/// A heat map and its state between frames.
#[derive(Default)]
pub struct HeatMap {
    view: View,
    log: bool,
    texture: Option<TextureHandle>,
    /// Revision, scale and theme of the texture.
    made: Option<(u64, bool, bool)>,
    ramp: Option<Ramp>,
    /// Whether some numbers are above the colour scale.
    clipped: bool,
}

impl std::fmt::Debug for HeatMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeatMap").field("view", &self.view).field("log", &self.log).finish_non_exhaustive()
    }
}

impl HeatMap {
    /// Draws the matrix over all the room there is. Returns the (row, column) under the pointer.
    pub fn show(&mut self, ui: &mut Ui, data: &HeatData) -> Option<[usize; 2]> {
        let fits = data.rows > 0 && data.cols > 0 && data.values.len() == data.rows * data.cols;
        let Some(lengths) = data.extent().filter(|_| fits) else {
            ui.weak(say(ui, "heat-empty"));
            return None;
        };
        let (all, _) = ui.allocate_exact_size(ui.available_size().max(vec2(160.0, 90.0)), Sense::hover());
        let canvas = Rect::from_min_max(all.min + vec2(LEFT, TOP), all.max - vec2(BAR, LINE));
        let palette = Palette::of(ui.visuals());
        self.refresh(ui, data, &palette);
        let response = ui.interact(canvas, ui.scope_id().with("heat map"), Sense::click_and_drag());
        let name = say_with(ui, "heat-name", &[("title", data.title(words_of(ui.ctx())).into())]);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Canvas, true, &name));
        self.input(ui, &response, canvas, lengths);
        let map = self.view.screen_from_world(canvas, lengths);
        let token = response.hover_pos().and_then(|at| map.cell(at, lengths));
        let hovered = token.map(|token| data.cell(token));
        self.paint(ui, &map, lengths, data, hovered, &palette);
        self.bar(ui, Rect::from_min_max(pos2(canvas.right(), canvas.top()), pos2(all.right(), canvas.bottom())));
        self.line(ui, Rect::from_min_max(pos2(all.left(), canvas.bottom()), all.max), data, hovered);
        hovered
    }

    /// Draws the numbers over the cells of a picture with its own rows and columns.
    pub(super) fn over(
        &mut self,
        ui: &Ui,
        painter: &egui::Painter,
        map: &ScreenFromWorld,
        data: &HeatData,
        log: bool,
        palette: &Palette,
    ) {
        if data.rows == 0 || data.cols == 0 || data.values.len() != data.rows * data.cols {
            return;
        }
        self.log = log;
        self.refresh(ui, data, palette);
        let Some(texture) = &self.texture else { return };
        let Some((rect, part)) = visible(map, data.q, data.kv) else { return };
        let mut mesh = Mesh::with_texture(texture.id());
        mesh.add_rect_with_uv(rect, part, Color32::WHITE);
        painter.add(mesh);
    }

    /// The ends of the colours in words, and the colours; None before anything was drawn.
    pub(super) fn scale(&self, said: &'static Words) -> Option<(String, Vec<Color32>)> {
        let ramp = self.ramp?;
        let end = |place: f32| {
            let value = ramp.value(place);
            number(if self.log { 10f32.powf(value) } else { value })
        };
        let id = if self.clipped { "heat-ends-more" } else { "heat-ends" };
        let colors = (0..24).map(|n| ramp.at(n as f32 / 23.0)).collect();
        Some((said.with(id, &[("lo", end(0.0).into()), ("hi", end(1.0).into())]), colors))
    }

    fn input(&mut self, ui: &Ui, response: &egui::Response, rect: Rect, lengths: Lengths) {
        self.view.limit(rect.size(), lengths);
        if response.dragged() {
            self.view.pan(response.drag_delta(), rect, lengths);
        }
        if response.double_clicked() {
            self.view.fit();
        }
        if let Some(at) = response.hover_pos().filter(|_| response.contains_pointer()) {
            let (scroll, zoom) = ui.input(|i| (i.smooth_scroll_delta().y, i.zoom_delta()));
            let factor = f64::from(zoom) * (f64::from(scroll) * 0.0045).exp();
            if factor != 1.0 {
                self.view.zoom_about(factor, at, rect, lengths);
            }
        }
    }

    /// Creates the texture again if the numbers, the scale or the theme changed.
    fn refresh(&mut self, ui: &Ui, data: &HeatData, palette: &Palette) {
        let wanted = (data.revision, self.log, palette.dark);
        if self.made == Some(wanted) {
            return;
        }
        self.made = Some(wanted);
        let ramp = if self.log { log_ramp(&data.values) } else { linear_ramp(data) };
        self.ramp = ramp;
        let top = ramp.filter(|_| !self.log).map_or(f32::INFINITY, |ramp| ramp.hi);
        self.clipped = data.values.iter().any(|v| v.is_finite() && *v > top);
        let image = image(data, self.log, ramp.unwrap_or(Ramp { lo: 0.0, hi: 0.0 }), palette);
        let options = TextureOptions { minification: egui::TextureFilter::Linear, ..TextureOptions::NEAREST };
        match &mut self.texture {
            Some(texture) => texture.set(image, options),
            None => self.texture = Some(ui.ctx().load_texture("heat map", image, options)),
        }
    }

    fn paint(
        &self,
        ui: &Ui,
        map: &ScreenFromWorld,
        lengths: Lengths,
        data: &HeatData,
        hovered: Option<[usize; 2]>,
        palette: &Palette,
    ) {
        let painter = ui.painter_at(map.rect);
        painter.rect_filled(map.rect, 0.0, palette.outside);
        let [q0, q1, kv0, kv1] = map.visible(lengths);
        if let Some(texture) = &self.texture {
            let uv = |v: f64, len: usize| (v / len as f64) as f32;
            let part = Rect::from_min_max(
                pos2(uv(kv0, lengths.kv_len), uv(q0, lengths.q_len)),
                pos2(uv(kv1, lengths.kv_len), uv(q1, lengths.q_len)),
            );
            let mut mesh = Mesh::with_texture(texture.id());
            mesh.add_rect_with_uv(map.rect_of([q0, q1], [kv0, kv1]), part, Color32::WHITE);
            painter.add(mesh);
        }
        if let Some([row, col]) = hovered {
            let edge = |range: [usize; 2], parts: usize, at: usize| {
                HeatData::tokens(range, parts, at).map(|token| (token - range[0]) as f64)
            };
            let rect = map.rect_of(edge(data.q, data.rows, row), edge(data.kv, data.cols, col));
            if rect.width().min(rect.height()) > 3.0 {
                painter.rect_stroke(rect, 0.0, (1.5, palette.accent), egui::StrokeKind::Outside);
            }
        }
        self.rulers(ui, map, lengths, data);
    }

    fn rulers(&self, ui: &Ui, map: &ScreenFromWorld, lengths: Lengths, data: &HeatData) {
        let [q0, q1, kv0, kv1] = map.visible(lengths);
        let painter = ui.painter();
        let (font, color) = (FontId::proportional(10.5), ui.visuals().text_color());
        let marks = |lo: f64, hi: f64, scale: f64, gap: f64| {
            let step = ((gap / scale).ceil() as usize).max(1).next_power_of_two();
            (lo.ceil() as usize..hi.ceil() as usize).filter(move |n| n.is_multiple_of(step))
        };
        for row in marks(q0, q1, map.q.scale, 18.0) {
            let token = data.q[0] + row;
            let at = pos2(map.rect.left() - 4.0, map.q.screen(row as f64) as f32);
            painter.text(at, Align2::RIGHT_TOP, digits(token), font.clone(), color);
        }
        for col in marks(kv0, kv1, map.kv.scale, 62.0) {
            let token = data.kv[0] + col;
            let at = pos2(map.kv.screen(col as f64) as f32, map.rect.top() - 2.0);
            painter.text(at, Align2::LEFT_BOTTOM, digits(token), font.clone(), color);
        }
    }

    /// The colour bar with its numbers.
    fn bar(&self, ui: &Ui, rect: Rect) {
        let Some(ramp) = self.ramp else { return };
        let bar = Rect::from_min_max(rect.min + vec2(8.0, 6.0), pos2(rect.left() + 22.0, rect.bottom() - 6.0));
        let mut mesh = Mesh::default();
        for n in 0..64 {
            let y = |n: usize| bar.bottom() - bar.height() * n as f32 / 64.0;
            let slice = Rect::from_x_y_ranges(bar.x_range(), y(n + 1)..=y(n));
            mesh.add_colored_rect(slice, ramp.at((n as f32 + 0.5) / 64.0));
        }
        ui.painter().add(mesh);
        for n in 0..=4 {
            let part = n as f32 / 4.0;
            let value = ramp.value(part);
            let text = if self.log { number(10f32.powf(value)) } else { number(value) };
            let text = if self.clipped && n == 4 { format!("\u{2265}{text}") } else { text };
            let at = pos2(bar.right() + 4.0, bar.bottom() - bar.height() * part);
            let color = ui.visuals().text_color();
            ui.painter().text(at, Align2::LEFT_CENTER, text, FontId::proportional(10.5), color);
        }
    }

    /// The switch to a logarithmic scale and the value under the pointer.
    fn line(&mut self, ui: &mut Ui, rect: Rect, data: &HeatData, hovered: Option<[usize; 2]>) {
        let mut inside = ui.new_child(egui::UiBuilder::new().max_rect(rect).layout(*ui.layout()));
        inside.horizontal(|ui| {
            ui.checkbox(&mut self.log, say(ui, "heat-log"));
            let words = match hovered {
                None => say(ui, "heat-hint").into(),
                Some([row, col]) => words(words_of(ui.ctx()), data, row, col),
            };
            // beside a narrow picture it is cut where it can be seen that it is
            ui.add(egui::Label::new(words).truncate());
        });
    }
}

/// `q 128..136  kv 40  probability 0.0123`.
fn words(said: &'static Words, data: &HeatData, row: usize, col: usize) -> String {
    let range = |[from, to]: [usize; 2]| match to - from {
        1 => digits(from),
        _ => format!("{}..{}", digits(from), digits(to)),
    };
    let q = range(HeatData::tokens(data.q, data.rows, row));
    let kv = range(HeatData::tokens(data.kv, data.cols, col));
    let value = data.value(row, col);
    let words = format!("q {q}   kv {kv}   {} {}", said.phrase(&data.quantity), data.said(value));
    match value == f32::NEG_INFINITY {
        true => said.with("heat-masked", &[("words", words.into())]),
        false => words,
    }
}

/// The numbers as colours, one for each, with the scale in words and in colours.
pub(super) fn shaded(
    said: &'static Words,
    data: &HeatData,
    log: bool,
    palette: &Palette,
) -> (Vec<Color32>, Option<(String, Vec<Color32>)>) {
    let ramp = if log { log_ramp(&data.values) } else { linear_ramp(data) };
    let of = ramp.unwrap_or(Ramp { lo: 0.0, hi: 0.0 });
    let table: Vec<Color32> = (0..SHADES).map(|n| of.at(n as f32 / (SHADES - 1) as f32)).collect();
    let colors = data.values.iter().enumerate().map(|(n, v)| color(*v, log, of, &table, palette, n % 2 == 0));
    let clipped = !log && data.values.iter().any(|v| v.is_finite() && *v > of.hi);
    let made = HeatMap { ramp, log, clipped, ..HeatMap::default() };
    (colors.collect(), made.scale(said))
}

/// A number in few characters.
pub fn number(value: f32) -> String {
    match value {
        v if v.is_nan() => "NaN".into(),
        v if v == f32::NEG_INFINITY => "-\u{221e}".into(),
        v if v == f32::INFINITY => "\u{221e}".into(),
        0.0 => "0".into(),
        v if v.abs() >= 1e5 || v.abs() < 1e-3 => format!("{v:.2e}"),
        v => format!("{v:.4}"),
    }
}

/// The colour scale of the numbers. If a few are far above the rest, like the first rows of a causal map, it ends at
/// the 99th percentile, because the rest would have one colour.
fn linear_ramp(data: &HeatData) -> Option<Ramp> {
    let ramp = Ramp::over(data.values.iter().copied())?;
    let stride = (data.values.len() / 65_536).max(1);
    let counts = |v: &f32| v.is_finite() && (*v != 0.0 || !data.masked_is_zero);
    let mut some: Vec<f32> = data.values.iter().step_by(stride).copied().filter(counts).collect();
    if some.is_empty() {
        return Some(ramp);
    }
    let at = (some.len() - 1) * 99 / 100;
    let (_, high, _) = some.select_nth_unstable_by(at, f32::total_cmp);
    let far = ramp.lo >= 0.0 && *high > ramp.lo && ramp.hi > 4.0 * *high;
    Some(if far { Ramp { lo: ramp.lo, hi: *high } } else { ramp })
}

/// The ramp over decimal logarithms of the positive numbers.
fn log_ramp(values: &[f32]) -> Option<Ramp> {
    let ramp = Ramp::over(values.iter().filter(|v| **v > 0.0).map(|v| v.log10()))?;
    Some(Ramp { lo: ramp.lo.max(ramp.hi - DECADES), hi: ramp.hi })
}

fn image(data: &HeatData, log: bool, ramp: Ramp, palette: &Palette) -> ColorImage {
    let table: Vec<Color32> = (0..SHADES).map(|n| ramp.at(n as f32 / (SHADES - 1) as f32)).collect();
    let (height, width) = (data.rows.min(LARGEST), data.cols.min(LARGEST));
    let mut pixels = Vec::with_capacity(height * width);
    for row in 0..height {
        for col in 0..width {
            let value = pooled(data, [row, height], [col, width]);
            pixels.push(color(value, log, ramp, &table, palette, (row + col) % 2 == 0));
        }
    }
    ColorImage::new([width, height], pixels)
}

/// The number of a pixel: the largest of those it covers.
fn pooled(data: &HeatData, [row, height]: [usize; 2], [col, width]: [usize; 2]) -> f32 {
    if height == data.rows && width == data.cols {
        return data.value(row, col);
    }
    let range = |at: usize, parts: usize, len: usize| at * len / parts..(at + 1) * len / parts;
    let cells =
        range(row, height, data.rows).flat_map(|row| range(col, width, data.cols).map(move |col| data.value(row, col)));
    cells.fold(f32::NAN, f32::max)
}

fn color(value: f32, log: bool, ramp: Ramp, table: &[Color32], palette: &Palette, even: bool) -> Color32 {
    if value.is_nan() {
        let grey = palette.not_a_number;
        return if even { grey } else { grey.gamma_multiply(0.6).to_opaque() };
    }
    if value == f32::NEG_INFINITY {
        return palette.empty;
    }
    let value = match (log, value > 0.0) {
        (true, true) => value.log10(),
        (true, false) => ramp.lo,
        (false, _) => value,
    };
    table[(ramp.position(value) * (SHADES - 1) as f32).round() as usize]
}

/// Where a picture of these tokens is visible, and which part of its texture stands there: both are cut at the canvas alike,
/// because f32 does not reach far beyond it. None outside of it.
fn visible(map: &ScreenFromWorld, q: [usize; 2], kv: [usize; 2]) -> Option<(Rect, Rect)> {
    let ([q0, kv0], [q1, kv1]) = (map.world(map.rect.min), map.world(map.rect.max));
    let cut = |range: [usize; 2], seen: [f64; 2]| {
        let [first, end] = range.map(|token| token as f64);
        let (from, to) = (first.max(seen[0]), end.min(seen[1]));
        let share = |token: f64| ((token - first) / (end - first)) as f32;
        (from < to).then(|| ([from, to], [share(from), share(to)]))
    };
    let ((rows, v), (columns, u)) = (cut(q, [q0, q1])?, cut(kv, [kv0, kv1])?);
    Some((map.rect_of(rows, columns), Rect::from_min_max(pos2(u[0], v[0]), pos2(u[1], v[1]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    fn data(rows: usize, cols: usize, values: &[f32]) -> HeatData {
        let (q, kv) = ([0, rows * 8], [100, 100 + cols]);
        HeatData {
            rows,
            cols,
            values: values.into(),
            q,
            kv,
            quantity: "score".into(),
            source: Provenance::Random,
            masked_is_zero: false,
            revision: 1,
        }
    }

    #[test]
    fn numbers_become_colours_and_no_numbers_stay_apart() {
        let palette = Palette::dark(true);
        let data = data(2, 3, &[0.0, 1.0, f32::NAN, f32::NEG_INFINITY, 0.5, f32::NAN]);
        let ramp = Ramp::over(data.values.iter().copied()).unwrap();
        assert_eq!((ramp.lo, ramp.hi), (0.0, 1.0));
        let image = image(&data, false, ramp, &palette);
        assert_eq!(image.size, [3, 2]);
        assert_eq!((image.pixels[0], image.pixels[1]), (ramp.at(0.0), ramp.at(1.0)));
        assert_eq!(image.pixels[2], palette.not_a_number);
        assert_ne!(image.pixels[5], image.pixels[2], "a pattern, not a flat grey");
        assert_eq!(image.pixels[3], palette.empty);
    }

    #[test]
    fn a_few_peaks_leave_colours_to_the_rest_and_masked_cells_are_empty() {
        let mut values = vec![0.0; 2000];
        (0..1000).for_each(|n| values[n] = n as f32 * 1e-6);
        (values[1998], values[1999]) = (f32::NEG_INFINITY, 1.0);
        let peaked = HeatData { masked_is_zero: true, ..data(20, 100, &values) };
        let ramp = linear_ramp(&peaked).unwrap();
        assert!(ramp.lo == 0.0 && (0.9e-3..1.0e-3).contains(&ramp.hi), "{ramp:?}");
        let palette = Palette::dark(true);
        let image = image(&peaked, false, ramp, &palette);
        assert_eq!((image.pixels[1999], image.pixels[1998]), (ramp.at(1.0), palette.empty));
        assert_eq!(image.pixels[1500], ramp.at(0.0), "a kept cell that comes to zero is not masked");
        let even = linear_ramp(&data(1, 3, &[-1.0, 0.0, 9.0])).unwrap();
        assert_eq!((even.lo, even.hi), (-1.0, 9.0), "scores keep their whole range");
    }

    #[test]
    fn a_picture_lies_on_its_cells_however_near_one_is() {
        let lengths = Lengths { q_len: 512, kv_len: 512 };
        let canvas = Rect::from_min_size(pos2(40.0, 30.0), vec2(900.0, 600.0));
        for reach in [512.0, 64.0, 8.0] {
            let mut view = View::default();
            view.show_range([300.0, 300.0 + reach], [120.0, 120.0 + reach], canvas, lengths);
            let map = view.screen_from_world(canvas, lengths);
            let (rect, part) = visible(&map, [0, 512], [0, 512]).expect("a part");
            for token in [301.0, 303.5, 307.0] {
                let at = map.pos(token, token - 180.0);
                let place = (at - rect.min) / rect.size();
                let texel = part.min + place * part.size();
                let expected = vec2((token - 180.0) as f32, token as f32) / 512.0;
                assert!((texel.to_vec2() - expected).length() < 1e-4, "{reach}: {texel:?} {expected:?}");
            }
        }
        let mut view = View::default();
        view.show_range([300.0, 308.0], [120.0, 128.0], canvas, lengths);
        let map = view.screen_from_world(canvas, lengths);
        assert_eq!(visible(&map, [0, 100], [0, 512]), None);
    }

    #[test]
    fn logarithms_span_a_few_decades() {
        let ramp = log_ramp(&[1e-30, 0.0, 1.0, -3.0]).unwrap();
        assert_eq!((ramp.lo, ramp.hi), (-6.0, 0.0));
        assert_eq!(log_ramp(&[0.0, f32::NAN]), None);
    }

    #[test]
    fn every_token_lies_in_the_row_that_covers_it() {
        for (rows, from, to) in [(512, 0, 8192), (7, 3, 24), (512, 100, 612), (512, 0, 999), (1, 5, 9)] {
            let data = HeatData { q: [from, to], rows, ..data(1, 3, &[0.0; 3]) };
            for token in 0..to - from {
                let [row, _] = data.cell([token, 0]);
                let [start, end] = HeatData::tokens([from, to], rows, row);
                assert!((start..end).contains(&(from + token)), "{token} of {from}..{to} in row {row} of {rows}");
            }
        }
    }

    #[test]
    fn words_name_tokens_and_value() {
        let data = data(2, 3, &[0.0, 1.0, f32::NAN, f32::NEG_INFINITY, 0.00012, 7.0]);
        assert_eq!(words(Words::of(Language::English), &data, 0, 1), "q 0..8   kv 101   score 1.0000");
        assert_eq!(words(Words::of(Language::English), &data, 1, 1), "q 8..16   kv 101   score 1.20e-4");
        assert!(words(Words::of(Language::English), &data, 1, 0).ends_with("score -\u{221e} (masked)"));
        let data = HeatData { masked_is_zero: true, ..data };
        assert!(
            words(Words::of(Language::English), &data, 1, 0).ends_with(" 0 (masked)")
                && words(Words::of(Language::English), &data, 0, 0).ends_with(" 0")
        );
    }

    #[test]
    fn large_matrices_keep_their_peaks() {
        let mut values = vec![0.0; 4096 * 2];
        values[4095] = 9.0;
        let data = data(2, 4096, &values);
        assert_eq!(pooled(&data, [0, 2], [2047, 2048]), 9.0);
        let ramp = Ramp { lo: 0.0, hi: 9.0 };
        assert_eq!(image(&data, false, ramp, &Palette::dark(false)).size, [2048, 2]);
    }

    #[test]
    fn the_pointer_shows_the_value_and_the_switch_changes_the_scale() {
        use egui_kittest::kittest::Queryable;
        let data = data(4, 4, &(0..16).map(|n| n as f32).collect::<Vec<_>>());
        let show = move |ui: &mut Ui, state: &mut (HeatMap, Option<[usize; 2]>)| state.1 = state.0.show(ui, &data);
        let mut harness = egui_kittest::Harness::builder()
            .with_size(vec2(500.0, 400.0))
            .build_ui_state(show, (HeatMap::default(), None));
        harness.step();
        let rect = harness.get_by_label("Heat map: score of random q and k").rect();
        // 32 query tokens in 4 rows: the picture has the proportions of the tokens
        let map = View::default().screen_from_world(rect, Lengths::new(32, 4).unwrap());
        harness.hover_at(map.pos(2.5 * 8.0, 1.5));
        harness.step();
        assert_eq!(harness.state().1, Some([2, 1]));
        harness.get_by_label_contains("score 9.0000");
        harness.get_by_label("Logarithmic").click();
        harness.step();
        harness.step();
        assert!(harness.state().0.log && harness.state().0.ramp.unwrap().hi < 1.2);
    }
}
