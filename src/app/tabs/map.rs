//! The attention map of a head: scores or probabilities of the last run's inputs, with values under the mouse.
//!
//! Invariant: a map names its head and is asked for anew when another is wanted; a stale one says so. Must not know how
//! maps are computed.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::session::{JobKind, MapPicture};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{command_button, whole};
use crate::service::protocol::{MapKind, MapRequest};
use egui::{Color32, ColorImage, Rect, RichText, Sense, TextureHandle, TextureOptions, Ui, Vec2, pos2};

/// Pixels that are asked for along each side.
const PIXELS: usize = 512;

/// What the tab keeps between frames: the texture, and what is looked at.
pub(crate) struct MapCache {
    texture: Option<(u64, TextureHandle)>,
    kind: MapKind,
    /// Shown part, in tokens; None: all of it.
    part: Option<([usize; 2], [usize; 2])>,
    drag: Option<(egui::Pos2, egui::Pos2)>,
    /// Logarithmic colours, for probabilities.
    log: bool,
}

impl Default for MapCache {
    fn default() -> Self {
        Self { texture: None, kind: MapKind::Probabilities, part: None, drag: None, log: true }
    }
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, cache: &mut MapCache, actions: &mut Actions) {
    let Some(race) = &state.session.race else {
        return nothing(ui, state, actions, "Run first: a map is of a run's q and k.");
    };
    let Some((request, _)) = &race.request else {
        return nothing(ui, state, actions, "A recorded run has no tensors: run it here for its map.");
    };
    if state.session.is_racing() {
        ui.weak("The map follows when the race is over.");
        return;
    }
    controls(ui, state, cache, actions);
    let problem = &request.problem;
    let (b, h) = (state.focus.b.min(problem.batch - 1), state.focus.h.min(problem.heads - 1));
    let (q, kv) = cache.part.unwrap_or(([0, problem.q_len], [0, problem.kv_len]));
    let (q, kv) = ([q[0], q[1].min(problem.q_len)], [kv[0], kv[1].min(problem.kv_len)]);
    let pixels = |range: [usize; 2]| PIXELS.min(range[1].saturating_sub(range[0])).max(1);
    let wanted = MapRequest { b, h, q, kv, height: pixels(q), width: pixels(kv), kind: cache.kind };
    if let Some(why) = &state.session.map_error
        && state.session.map_asked.as_ref() == Some(&wanted)
    {
        super::told(ui, why);
        ui.weak("The worker keeps the inputs of its last run only: run again.");
        command_button(ui, Command::Run, state.can(Command::Run), actions);
        return;
    }
    if state.session.map_asked.as_ref() != Some(&wanted) {
        actions.push(Action::RequestMap(wanted.clone()));
    }
    match &state.session.map {
        Some(map) => picture(ui, state, map, cache, map.request != wanted || race.stale),
        None => {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label("computing the map");
            });
        }
    }
}

fn nothing(ui: &mut Ui, state: &State, actions: &mut Actions, words: &str) {
    ui.add_space(8.0);
    ui.label(words);
    command_button(ui, Command::Run, state.can(Command::Run), actions);
}

fn controls(ui: &mut Ui, state: &State, cache: &mut MapCache, actions: &mut Actions) {
    let settings = &state.document.settings;
    ui.horizontal_wrapped(|ui| {
        for (kind, name) in [(MapKind::Probabilities, "Probabilities"), (MapKind::Scores, "Scores")] {
            ui.selectable_value(&mut cache.kind, kind, name);
        }
        if cache.kind == MapKind::Probabilities {
            ui.checkbox(&mut cache.log, "logarithmic");
        }
        ui.separator();
        let (b, h) = (state.focus.b, state.focus.h);
        if settings.batch > 1 {
            ui.weak("batch");
            if let Some(b) = whole(ui, "Batch entry of the map", b, 0..=settings.batch - 1) {
                actions.push(Action::SetHead { b, h });
            }
        }
        ui.weak("head");
        if let Some(h) = whole(ui, "Head of the map", h, 0..=settings.heads.saturating_sub(1)) {
            actions.push(Action::SetHead { b, h });
        }
        if cache.part.is_some() && ui.button("Whole map").clicked() {
            cache.part = None;
        }
        if state.session.has(JobKind::Map) {
            ui.spinner();
        }
        if state.session.race.as_ref().is_some_and(|r| r.stale) {
            let colours = palette(ui.visuals());
            ui.label(RichText::new("stale").strong().color(colours.warning))
                .on_hover_text("This is the map of the last run; the document has changed since.");
        }
    });
}

fn picture(ui: &mut Ui, state: &State, map: &MapPicture, cache: &mut MapCache, fading: bool) {
    let scale = Scale::of(map, cache.log);
    let key = map.number * 2 + u64::from(cache.log);
    if cache.texture.as_ref().is_none_or(|(k, _)| *k != key) {
        let image = ColorImage::new([map.width, map.height], map.pixels.iter().map(|v| scale.colour(*v)).collect());
        cache.texture = Some((key, ui.ctx().load_texture("attention map", image, TextureOptions::NEAREST)));
    }
    let Some((_, texture)) = &cache.texture else { return };
    let room = ui.available_size() - Vec2::new(200.0, 4.0);
    let (q_span, kv_span) = (span(map.request.q), span(map.request.kv));
    // the aspect of the tokens, unless that would leave a line
    let ratio = (kv_span / q_span).clamp(0.25, 4.0);
    let height = room.y.min(room.x / ratio).max(40.0);
    let texture = texture.id();
    ui.horizontal_top(|ui| {
        let (rect, response) = ui.allocate_exact_size(Vec2::new(height * ratio, height), Sense::click_and_drag());
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "Attention map"));
        let tint = if fading { Color32::from_gray(150) } else { Color32::WHITE };
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        ui.painter().image(texture, rect, whole, tint);
        select(ui, &response, rect, map, cache);
        ui.vertical(|ui| {
            ui.set_width(185.0);
            legend(ui, &scale, map);
            if let Some(at) = response.hover_pos() {
                under(ui, state, map, rect, at);
            } else {
                ui.weak("Point at the map for values; drag a rectangle to look closer.");
            }
        });
    });
}

fn span([from, to]: [usize; 2]) -> f32 {
    (to - from).max(1) as f32
}

/// Dragging a rectangle asks for that part.
fn select(ui: &Ui, response: &egui::Response, rect: Rect, map: &MapPicture, cache: &mut MapCache) {
    if response.drag_started()
        && let Some(from) = ui.input(|i| i.pointer.press_origin())
    {
        cache.drag = Some((from, from));
    }
    if let (Some((from, to)), Some(at)) = (&mut cache.drag, response.interact_pointer_pos()) {
        *to = at.clamp(rect.min, rect.max);
        let stroke = egui::Stroke::new(1.5, palette(ui.visuals()).accent);
        ui.painter().rect_stroke(Rect::from_two_pos(*from, *to), 0.0, stroke, egui::StrokeKind::Inside);
    }
    if response.drag_stopped()
        && let Some((from, to)) = cache.drag.take()
        && (from - to).abs().min_elem() > 6.0
    {
        let chosen = Rect::from_two_pos(from, to).intersect(rect);
        let part = |lo: f32, hi: f32, start: f32, size: f32, range: [usize; 2]| {
            let place = |v: f32| range[0] + ((v - start) / size * span(range)) as usize;
            let first = place(lo).min(range[1] - 1);
            [first, place(hi).clamp(first + 1, range[1])]
        };
        let q = part(chosen.top(), chosen.bottom(), rect.top(), rect.height(), map.request.q);
        let kv = part(chosen.left(), chosen.right(), rect.left(), rect.width(), map.request.kv);
        cache.part = Some((q, kv));
    }
    if response.double_clicked() {
        cache.part = None;
    }
}

/// The value of the pixel under the pointer, and which tokens it stands for.
fn under(ui: &mut Ui, state: &State, map: &MapPicture, rect: Rect, at: egui::Pos2) {
    let share = (at - rect.min) / rect.size();
    let pixel = |share: f32, n: usize| ((share * n as f32) as usize).min(n - 1);
    let (row, col) = (pixel(share.y, map.height), pixel(share.x, map.width));
    let value = map.pixels[row * map.width + col];
    let tokens = |at: usize, n: usize, range: [usize; 2]| {
        let place = |at: usize| range[0] + at * (range[1] - range[0]) / n;
        (place(at), place(at + 1).max(place(at) + 1))
    };
    let words = |(from, to): (usize, usize)| if to == from + 1 { from.to_string() } else { format!("{from}..{to}") };
    let (q, kv) = (tokens(row, map.height, map.request.q), tokens(col, map.width, map.request.kv));
    ui.strong(value_words(value, map.request.kind));
    ui.label(format!("q {}", words(q)));
    ui.label(format!("kv {}", words(kv)));
    let axes = &state.document.axes;
    for (axis, at) in [(&axes.q, q.0), (axes.kv(), kv.0)] {
        if let Some(place) = axis.place(at) {
            ui.weak(place.to_string());
        }
    }
}

fn value_words(value: f32, kind: MapKind) -> String {
    match kind {
        _ if value.is_nan() => "keeps nothing".into(),
        _ if value == f32::NEG_INFINITY => "masked".into(),
        MapKind::Probabilities => format!("{value:.4e}"),
        MapKind::Scores => format!("{value:.4}"),
    }
}

fn legend(ui: &mut Ui, scale: &Scale, map: &MapPicture) {
    let (rect, _) = ui.allocate_exact_size(Vec2::new(180.0, 12.0), Sense::hover());
    let steps = 60;
    for n in 0..steps {
        let width = rect.width() / steps as f32;
        let cell = Rect::from_min_size(rect.min + Vec2::new(n as f32 * width, 0.0), Vec2::new(width + 0.5, 12.0));
        ui.painter().rect_filled(cell, 0.0, ramp(n as f64 / f64::from(steps - 1)));
    }
    ui.horizontal(|ui| {
        ui.weak(value_words(scale.low, map.request.kind));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            ui.weak(value_words(scale.high, map.request.kind));
        });
    });
    let kept = map.pixels.iter().filter(|v| v.is_finite() && **v != 0.0).count();
    ui.weak(format!("b {}, head {}: {kept} of {} pixels", map.request.b, map.request.h, map.pixels.len()));
}

/// How values become colours.
struct Scale {
    low: f32,
    high: f32,
    log: bool,
}

impl Scale {
    fn of(map: &MapPicture, log: bool) -> Scale {
        let log = log && map.request.kind == MapKind::Probabilities;
        let values = || map.pixels.iter().copied().filter(|v| v.is_finite() && (!log || *v > 0.0));
        let (low, high) = values().fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            return Scale { low: 0.0, high: 1.0, log: false };
        }
        // six decades tell enough
        Scale { low: if log { low.max(high * 1e-6) } else { low }, high, log }
    }

    fn colour(&self, value: f32) -> Color32 {
        if value.is_nan() || value == f32::NEG_INFINITY || (self.log && value <= 0.0) {
            return Color32::from_rgb(0x10, 0x12, 0x18);
        }
        let place = |v: f32| if self.log { f64::from(v.max(1e-30)).ln() } else { f64::from(v) };
        let (low, high) = (place(self.low), place(self.high));
        ramp(if high > low { (place(value) - low) / (high - low) } else { 1.0 })
    }
}

fn ramp(share: f64) -> Color32 {
    let c = colorous::VIRIDIS.eval_continuous(share.clamp(0.0, 1.0));
    Color32::from_rgb(c.r, c.g, c.b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_stand_any_values() {
        let request =
            MapRequest { b: 0, h: 0, q: [0, 2], kv: [0, 2], height: 2, width: 2, kind: MapKind::Probabilities };
        for pixels in [
            vec![f32::NAN; 4],
            vec![0.0; 4],
            vec![0.0, 1.0, f32::NAN, 1e-30],
            vec![f32::NEG_INFINITY, f32::INFINITY, -3.0, 2.0],
        ] {
            for (log, kind) in [(true, MapKind::Probabilities), (false, MapKind::Scores)] {
                let request = MapRequest { kind, ..request.clone() };
                let map = MapPicture { request, height: 2, width: 2, pixels: pixels.clone(), number: 0 };
                let scale = Scale::of(&map, log);
                pixels.iter().for_each(|v| assert_eq!(scale.colour(*v).a(), 255));
                assert!(scale.low <= scale.high);
            }
        }
    }
}
