//! Races of this and earlier windows, newest first, and two of them side by side.
//!
//! Invariant: each names its design; two races are compared by the samples of both. Must not know how a race runs.

use super::words::flops;
use crate::app::language::{say, say_with, words};
use crate::app::races::Past;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{id, milliseconds, percent};
use crate::base::BackendName;
use crate::problem::verdict::Versus;
use crate::tasks::ratios;
use egui::{Grid, RichText, Ui};

/// The two that are compared, by their numbers.
type Chosen = [Option<u64>; 2];

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State) {
    let past = state.session.races.past();
    if past.is_empty() {
        return;
    }
    egui::CollapsingHeader::new(say_with(ui, "past-title", &[("n", past.len().into())])).id_salt("past").show(
        ui,
        |ui| {
            let memory = id("compared races");
            let mut chosen = ui.data(|d| d.get_temp::<Chosen>(memory)).unwrap_or_default();
            scrolled(ui, "past races", |ui| list(ui, past, &mut chosen));
            ui.data_mut(|d| d.insert_temp(memory, chosen));
            let find = |side: usize| past.iter().find(|one| Some(one.id) == chosen[side]);
            match (find(0), find(1)) {
                (Some(a), Some(b)) if a.id != b.id => scrolled(ui, "two races", |ui| side_by_side(ui, a, b)),
                _ => drop(ui.weak(say(ui, "past-choose"))),
            }
        },
    );
}

/// Columns that are wider than the page: nothing is cut without a way to it.
fn scrolled(ui: &mut Ui, name: &str, add: impl FnOnce(&mut Ui)) {
    egui::ScrollArea::horizontal().id_salt((name, "scrolled")).auto_shrink([false, true]).show(ui, add);
}

/// A row for each race, the newest first.
fn list(ui: &mut Ui, past: &[Past], chosen: &mut Chosen) {
    Grid::new("past races").num_columns(6).striped(true).show(ui, |ui| {
        ui.weak("A");
        ui.weak("B");
        ui.weak(say(ui, "past-of"));
        ui.weak(say(ui, "past-fastest"));
        ui.weak(say(ui, "past-when"));
        ui.weak(say(ui, "past-all"));
        ui.end_row();
        for one in past.iter().rev() {
            for (side, letter) in ["A", "B"].into_iter().enumerate() {
                let on = chosen[side] == Some(one.id);
                let name = say_with(ui, "past-as", &[("id", one.id.into()), ("letter", letter.into())]);
                if ui.radio(on, "").on_hover_text(say(ui, "past-compares")).accessible_name(name).clicked() {
                    chosen[side] = (!on).then_some(one.id);
                }
            }
            let kept = format!("{} {}", say(ui, "past-keeps"), percent(one.report.work.density));
            two_lines(ui, RichText::new(&one.design), &format!("{}, {kept}", one.sizes));
            ui.label(
                one.fastest().map_or(say(ui, "lengths-nothing").into(), |(b, ms)| format!("{b} {}", milliseconds(ms))),
            );
            let passes = if one.report.gradients.is_empty() { "past-forward" } else { "past-both" };
            let figures = [("when", (&*one.at).into()), ("where", (&*one.report.device_name).into())];
            let place = say_with(ui, passes, &figures);
            let when = if one.before { RichText::new(&one.at).weak() } else { RichText::new(&one.at) };
            two_lines(ui, when, &one.report.device_name).on_hover_text(place);
            small_chart(ui, one);
            ui.end_row();
        }
    });
}

/// Most points of a second line, which is cut beyond: the hover has all of it.
const SECOND: f32 = 230.0;

/// A line and what tells it from others of the same name.
fn two_lines(ui: &mut Ui, first: RichText, second: &str) -> egui::Response {
    let lines = ui.vertical(|ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        ui.add(egui::Label::new(first).extend());
        ui.set_max_width(SECOND);
        ui.add(egui::Label::new(RichText::new(second).small().weak()).truncate());
    });
    lines.response
}

/// The times of a race as small bars, each backend's in the order of its name.
fn small_chart(ui: &mut Ui, of: &Past) {
    const SIZE: egui::Vec2 = egui::vec2(56.0, 18.0);
    let timed = of.report.backends.iter().filter_map(|r| Some((r.backend, of.right(r.backend)?.median_ms)));
    let mut timed: Vec<(BackendName, f64)> = timed.collect();
    timed.sort_by_key(|(backend, _)| *backend);
    let (rect, response) = ui.allocate_exact_size(SIZE, egui::Sense::hover());
    let most = timed.iter().map(|(_, ms)| *ms).fold(0.0, f64::max).max(1e-9);
    let (colours, step) = (palette(ui.visuals()), SIZE.y / timed.len().max(1) as f32);
    for (at, (backend, ms)) in timed.iter().enumerate() {
        let top = rect.top() + step * at as f32;
        let size = egui::vec2((SIZE.x * (ms / most) as f32).max(1.0), (step - 1.0).max(1.0));
        let fill = if *backend == BackendName::Flex { colours.accent } else { colours.bar };
        ui.painter().rect_filled(egui::Rect::from_min_size(egui::pos2(rect.left(), top), size), 0.0, fill);
    }
    let words: Vec<String> = timed.iter().map(|(backend, ms)| format!("{backend} {}", milliseconds(*ms))).collect();
    response.on_hover_text(words.join("\n"));
}

fn side_by_side(ui: &mut Ui, a: &Past, b: &Past) {
    let colours = palette(ui.visuals());
    let mut names: Vec<BackendName> = a.report.backends.iter().chain(&b.report.backends).map(|r| r.backend).collect();
    names.sort();
    names.dedup();
    ui.add_space(6.0);
    Grid::new("two races").num_columns(4).striped(true).show(ui, |ui| {
        ui.weak("");
        for one in [a, b] {
            ui.strong(&one.design);
        }
        ui.weak(say(ui, "past-over"));
        ui.end_row();
        ui.weak(say(ui, "past-keeps"));
        for one in [a, b] {
            ui.label(percent(one.report.work.density));
        }
        ui.end_row();
        ui.weak(say(ui, "past-work"));
        for one in [a, b] {
            ui.label(flops(one.report.work.flop, "FLOP"));
        }
        ui.end_row();
        for name in names {
            let (of_a, of_b) = (a.right(name), b.right(name));
            ui.monospace(name.as_str());
            for timing in [of_a, of_b] {
                ui.label(timing.map_or("\u{2013}".into(), |t| milliseconds(t.median_ms)));
            }
            if let (Some(of_a), Some(of_b)) = (of_a, of_b) {
                let versus = Versus::new(of_b, of_a, None);
                let text = RichText::new(ratios::versus(words(ui.ctx()), &versus, None));
                ui.label(if versus.is_clear() { text.color(colours.good) } else { text.weak() });
            }
            ui.end_row();
        }
    });
    if a.report.device_name != b.report.device_name {
        let words = say_with(
            ui,
            "past-places",
            &[("a", (&*a.report.device_name).into()), ("b", (&*b.report.device_name).into())],
        );
        ui.colored_label(colours.warning, words);
    }
}
