//! The keys of one query, not as a row of the matrix but where they stand: patches of an image, of a video's frame, text.
//!
//! Invariant: a key has the colour that the matrix gives its cell, by the same code or from the same numbers; a click moves the
//! query. Must not know documents' layers or panels.

mod grid;
mod parts;

use super::colors::Palette;
use super::heat;
use super::hover;
use super::render::{Row, Source, TileKey, row};
use super::rulers::digits;
use super::{Canvas, CanvasEvent, LINE, Picture, Scene};
use crate::app::background::{Latest, Wake};
use crate::app::origins;
use crate::base::Provenance;
use crate::base::provenance::Looked;
use crate::document::model::{Axis, Segment};
use egui::{Align2, Color32, FontId, Rect, Sense, TextureHandle, Ui, pos2, vec2};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Height of the title, in points.
const TITLE: f32 = 24.0;
/// Share of the height that text takes beside pictures, at most.
const STRIPS: f32 = 0.32;
/// Points between parts.
const GAP: f32 = 8.0;

/// Which row of which picture.
type Of = (TileKey, usize);
/// A row that is asked for, and one that has come.
type Asked = (Arc<Source>, Of);
type Answered = (Of, Row);
/// Numbers as colours: their revision, whether by the logarithm, in a dark window; the colours; the scale.
type Shaded = ((u64, bool, bool), Vec<Color32>, Option<(String, Vec<Color32>)>);

/// The picture's state between frames.
#[derive(Default)]
pub(super) struct Patches {
    /// The document that is drawn, and what was chosen and typed for it; the same of others.
    document: u64,
    own: Own,
    others: BTreeMap<u64, Own>,
    row: Option<Answered>,
    asked: Option<Of>,
    thread: Option<Latest<Asked, Answered>>,
    shaded: Option<Shaded>,
    /// Textures of parts by their first token, and what they show.
    textures: BTreeMap<usize, ((u64, usize), TextureHandle)>,
    /// Changes with the colours.
    version: u64,
    shown: Option<Shows>,
    /// Whether the keyboard is here.
    focused: bool,
}

/// What is one document's.
#[derive(Debug, Default)]
struct Own {
    /// The chosen frame of the segment that begins at a token.
    frames: BTreeMap<usize, usize>,
    /// A grid as it is typed, and why it is none.
    typed: String,
    wrong: Option<String>,
}

/// What the colours are of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shows {
    Row(Of),
    Numbers((u64, bool, bool)),
}

impl std::fmt::Debug for Patches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patches").field("own", &self.own).finish_non_exhaustive()
    }
}

/// A segment of an axis, and whether its tokens are the queries alone.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    start: usize,
    segment: &'a Segment,
    queries: bool,
}

impl Part<'_> {
    /// Frames, rows and columns, if it is a picture.
    fn grid(&self) -> Option<[usize; 3]> {
        match *self.segment.grid.as_slice() {
            [h, w] => Some([1, h, w]),
            [t, h, w] => Some([t, h, w]),
            _ => None,
        }
    }

    fn holds(&self, token: usize) -> bool {
        (self.start..self.start + self.segment.len()).contains(&token)
    }
}

fn parts(axis: &Axis, queries: bool) -> impl Iterator<Item = Part<'_>> {
    let starts = axis.starts();
    axis.segments.iter().zip(starts).map(move |(segment, start)| Part { start, segment, queries })
}

impl Canvas {
    /// Draws the keys of the query over all the room there is. Returns what the user did.
    pub fn show_patches(&mut self, ui: &mut Ui, scene: &Scene<'_>) -> Vec<CanvasEvent> {
        let mut events = Vec::new();
        self.tools.cancel(&mut events);
        (self.key_drawing, self.drawn) = (false, None);
        let (all, _) = ui.allocate_exact_size(ui.available_size().max(vec2(2.0, 2.0)), Sense::hover());
        let source = self.source_of(scene);
        let palette = Palette::of(ui.visuals());
        ui.painter_at(all).rect_filled(all, 0.0, palette.outside);
        let take = std::mem::take(&mut self.takes_focus);
        let q = scene.at[0].min(scene.lengths.q_len - 1);
        self.patches.of_document(scene.document);
        self.patches.follow(ui, scene, &source, q);
        self.patches.focused = false;
        let line = Rect::from_min_max(pos2(all.left(), all.bottom() - LINE), all.max);
        let body = Rect::from_min_max(all.min, pos2(all.right(), line.top())).shrink2(vec2(12.0, 4.0));
        let mut look = parts::Look { scene, q, palette, hovered: None, take, events: &mut events };
        self.patches.show(ui, body, &mut look);
        let hovered = look.hovered;
        (self.focused, self.by_keyboard) = (self.patches.focused, false);
        if hovered != self.hovered {
            self.hovered = hovered;
            events.push(CanvasEvent::Hovered(hovered));
        }
        self.corner = Some((body.right_bottom(), 0.0));
        self.patches.line(ui, line, scene, hovered, &source);
        events
    }
}

#[cfg(test)]
impl Canvas {
    /// Whether a row is there.
    pub fn has_row(&self) -> bool {
        self.patches.row.is_some()
    }
}

impl Patches {
    /// What was chosen and typed for another document waits until that is drawn again.
    fn of_document(&mut self, document: u64) {
        if self.document != document {
            let next = self.others.remove(&document).unwrap_or_default();
            let before = std::mem::replace(&mut self.own, next);
            self.others.insert(std::mem::replace(&mut self.document, document), before);
        }
    }

    /// Asks for the row that is to be shown, and takes the one that has come.
    fn follow(&mut self, ui: &Ui, scene: &Scene<'_>, source: &Arc<Source>, q: usize) {
        let dark = ui.visuals().dark_mode;
        // next to numbers the mask says which keys are kept
        let picture = if scene.picture.is_numbers() { Picture::Blocks } else { scene.picture };
        let of = (TileKey::of(source, [scene.b, scene.h], picture, scene.block_size, dark), q);
        if self.asked != Some(of) {
            let thread = self.thread.get_or_insert_with(|| {
                let context = ui.ctx().clone();
                let wake: Wake = Arc::new(move || context.request_repaint());
                Latest::new("patches", true, wake, |(source, of): Asked, control| {
                    Some((of, row(&source, &of.0, of.1, control)?))
                })
            });
            thread.ask((source.clone(), of));
            self.asked = Some(of);
        }
        if let Some(row) = self.thread.as_ref().and_then(Latest::poll) {
            self.row = Some(row);
        }
        // colours of another document, or of other lengths, are of no keys here
        let fits = |(of, row): &Answered| of.0.revision == source.revision && row.kept.len() == scene.lengths.kv_len;
        self.row = self.row.take().filter(fits);
        if let Some(data) = numbers(scene, q) {
            let wanted = (data.revision, scene.map.is_some_and(|map| map.log), dark);
            if self.shaded.as_ref().is_none_or(|shaded| shaded.0 != wanted) {
                let (colors, scale) = heat::shaded(scene.said, data, wanted.1, &Palette::dark(dark));
                self.shaded = Some((wanted, colors, scale));
            }
        }
        let shows = match scene.picture.is_numbers() {
            true => self.shaded.as_ref().map(|shaded| Shows::Numbers(shaded.0)),
            false => self.row.as_ref().map(|(of, _)| Shows::Row(*of)),
        };
        if self.shown != shows {
            (self.shown, self.version) = (shows, self.version + 1);
        }
    }

    /// The colours of the keys; an error says why there are none.
    fn colors(&self, scene: &Scene<'_>, q: usize) -> Result<&[Color32], String> {
        let computing = || scene.said.text("canvas-computing").to_string();
        if !scene.picture.is_numbers() {
            let blank = match scene.picture {
                Picture::Bias if scene.score.is_none() => Some(super::NO_SCORE),
                Picture::Difference if scene.against.is_none_or(|a| a.lengths != scene.lengths) => {
                    Some(super::NOT_COMPARED)
                }
                _ => None,
            };
            if let Some(words) = blank {
                return Err(scene.said.text(words).into());
            }
            return self.row.as_ref().map(|(_, row)| &row.colors[..]).ok_or_else(computing);
        }
        let there = numbers(scene, q).and(self.shaded.as_ref());
        let words = || scene.map.map(|map| map.words).filter(|words| !words.is_empty()).map(String::from);
        there.map(|(_, colors, _)| &colors[..]).ok_or_else(|| words().unwrap_or_else(computing))
    }

    /// Which of some keys the mask keeps.
    fn kept(&self, tokens: std::ops::Range<usize>) -> Option<usize> {
        let (_, row) = self.row.as_ref()?;
        Some(row.kept.get(tokens)?.iter().filter(|kept| **kept).count())
    }

    /// Title, text, pictures.
    fn show(&mut self, ui: &mut Ui, body: Rect, look: &mut parts::Look<'_, '_>) {
        let scene = look.scene;
        let same = std::ptr::eq(scene.q_axis, scene.kv_axis);
        self.title(ui, body, look);
        let mut room = Rect::from_min_max(pos2(body.left(), body.top() + TITLE), body.max);
        let keys = parts(scene.kv_axis, false);
        let (pictures, strips): (Vec<_>, Vec<_>) = keys.partition(|part| part.grid().is_some());
        let apart: Vec<_> = parts(scene.q_axis, true).filter(|part| !same && part.grid().is_some()).collect();
        if pictures.is_empty() {
            room.min.y += self.offer(ui, room, look) + GAP;
        }
        match self.colors(scene, look.q) {
            Err(words) => drop(ui.painter_at(room).text(
                room.center(),
                Align2::CENTER_CENTER,
                words,
                FontId::proportional(15.0),
                look.palette.boundary,
            )),
            Ok(colors) => {
                let colors = colors.to_vec();
                let most = if pictures.is_empty() && apart.is_empty() { 1.0 } else { STRIPS };
                let most = room.height() * most / strips.len().max(1) as f32;
                for strip in strips {
                    let height =
                        self.strip(ui, Rect::from_min_size(room.min, vec2(room.width(), most)), strip, &colors, look);
                    room.min.y += height + GAP;
                }
                let all: Vec<_> = apart.into_iter().chain(pictures).collect();
                let wide = (room.width() - GAP * all.len().saturating_sub(1) as f32) / all.len().max(1) as f32;
                for (n, part) in all.into_iter().enumerate() {
                    let left = room.left() + n as f32 * (wide + GAP);
                    let place = Rect::from_min_max(pos2(left, room.top()), pos2(left + wide, room.bottom()));
                    if place.height() > 40.0 {
                        self.picture(ui, place, part, &colors, look);
                    }
                }
            }
        }
    }

    /// Which query, and how many keys it sees.
    fn title(&self, ui: &Ui, body: Rect, look: &parts::Look<'_, '_>) {
        let scene = look.scene;
        let place = scene.q_axis.place(look.q).map(|place| place.to_string()).unwrap_or_default();
        let text = scene.texts[0].and_then(|texts| texts.at(look.q)).map(|text| format!(" \u{201c}{text}\u{201d}"));
        let place = format!("{place}{}", text.unwrap_or_default());
        let said = scene.said;
        let mut words = said.with("patches-query", &[("q", digits(look.q).into()), ("place", place.into())]);
        if scene.heads > 1 {
            words = said.with("patches-head", &[("query", words.into()), ("h", scene.h.into())]);
        }
        if let Some(kept) = self.kept(0..scene.lengths.kv_len) {
            let all = digits(scene.lengths.kv_len);
            let figures = [("query", words.into()), ("n", digits(kept).into()), ("all", all.into())];
            words = said.with("patches-keeps", &figures);
        }
        let color = ui.visuals().strong_text_color();
        ui.painter_at(body).text(
            body.left_top() + vec2(0.0, 4.0),
            Align2::LEFT_TOP,
            words,
            FontId::proportional(14.0),
            color,
        );
    }

    /// The line below: the key under the pointer, or where the colours come from; and what they mean.
    fn line(&self, ui: &Ui, rect: Rect, scene: &Scene<'_>, hovered: Option<[usize; 2]>, source: &Source) {
        let painter = ui.painter_at(rect);
        let (font, color) = (FontId::proportional(12.0), ui.visuals().text_color());
        let mut right = rect.right() - 6.0;
        for (text, colors) in self.legend(scene, ui.visuals().dark_mode, source) {
            let galley = painter.layout_no_wrap(text, FontId::proportional(11.0), color);
            let width = 14.0_f32.max(3.0 * colors.len() as f32);
            let left = right - galley.size().x - width - 4.0;
            if left < rect.center().x {
                break;
            }
            let bar = Rect::from_min_size(pos2(left, rect.center().y - 5.0), vec2(width, 10.0));
            for (n, color) in colors.iter().enumerate() {
                let part = |n: usize| bar.left() + width * n as f32 / colors.len() as f32;
                painter.rect_filled(Rect::from_x_y_ranges(part(n)..=part(n + 1), bar.y_range()), 0.0, *color);
            }
            let edge = ui.visuals().widgets.noninteractive.bg_stroke;
            painter.rect_stroke(bar, 0.0, edge, egui::StrokeKind::Outside);
            painter.galley(pos2(bar.right() + 4.0, rect.center().y - galley.size().y / 2.0), galley, color);
            right = left - 10.0;
        }
        let words = match hovered {
            Some(cell) => {
                let words = hover::read_out(scene, cell, None);
                format!("{}   |   {}", words.place, words.cell)
            }
            None => origins::sentence_in(scene.said, &provenance(scene)),
        };
        let room = Rect::from_min_max(rect.min, pos2(right, rect.bottom()));
        let at = rect.left_center() + vec2(6.0, 0.0);
        ui.painter_at(room).text(at, Align2::LEFT_CENTER, words, font, color);
    }

    /// What colours mean, the last first.
    fn legend(&self, scene: &Scene<'_>, dark: bool, source: &Source) -> Vec<(String, Vec<Color32>)> {
        let (palette, said) = (Palette::dark(dark), scene.said);
        let one = |id: &str, color: Color32| (said.text(id).to_string(), vec![color]);
        match scene.picture {
            Picture::Blocks => vec![
                one("legend-dropped", palette.partial(0.0)),
                one("legend-kept-partial", palette.partial(1.0)),
                one("legend-kept-full", palette.full),
                one("legend-in-empty", palette.empty),
            ],
            Picture::Mask => vec![one("legend-dropped", palette.empty), one("legend-kept", palette.share(1.0))],
            Picture::Difference => vec![
                one("legend-both", palette.both()),
                one("legend-there", palette.partial[1]),
                one("legend-now", palette.full),
            ],
            Picture::Bias => {
                let span = source.known_span().map(|span| {
                    let ends = [0.0, 1.0].map(|end| hover::short(span.ramp.value(end)));
                    let bar = (0..24).map(|n| span.ramp.color(span.ramp.value(n as f32 / 23.0), &palette)).collect();
                    let [lo, hi] = ends;
                    (said.with("legend-bias", &[("lo", lo.into()), ("hi", hi.into())]), bar)
                });
                [Some(one("legend-dropped", palette.dropped[1])), span].into_iter().flatten().collect()
            }
            Picture::Map | Picture::Loss => {
                let title = scene.map.and_then(|map| map.data).map(|data| said.phrase(&data.quantity));
                let scale = self.shaded.as_ref().and_then(|(.., scale)| scale.clone());
                let scale = title.zip(scale).map(|(title, (ends, bar))| {
                    (said.with("legend-numbers", &[("title", title.into()), ("ends", ends.into())]), bar)
                });
                [Some(one("legend-masked", palette.empty)), scale].into_iter().flatten().collect()
            }
        }
    }
}

/// The numbers of the query's keys, if these are they.
fn numbers<'a>(scene: &Scene<'a>, q: usize) -> Option<&'a heat::HeatData> {
    let data = scene.map.filter(|_| scene.picture.is_numbers())?.data?;
    let whole = data.q == [q, q + 1] && data.kv == [0, scene.lengths.kv_len];
    (whole && data.values.len() == scene.lengths.kv_len).then_some(data)
}

/// Where the colours come from.
fn provenance(scene: &Scene<'_>) -> Provenance {
    let row = [1, scene.lengths.kv_len];
    let numbers = scene.map.filter(|_| scene.picture.is_numbers()).and_then(|map| map.data);
    numbers.map_or_else(|| Provenance::design([scene.b, scene.h], row, row, Looked::All), |data| data.source.clone())
}

#[cfg(test)]
#[path = "patches_tests.rs"]
mod tests;
