//! The measures in a line, each with its formula and its usual limits; and the selected row.
//!
//! Invariant: a figure of an older mask is marked. Must not know how measures are computed.

use super::small;
use crate::app::action::{Action, Actions};
use crate::app::canvas::Picture;
use crate::app::language::{say, say_with};
use crate::app::origins;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::percent;
use crate::base::Provenance;
use crate::tasks::lab::page::look::Line;
use egui::text::{LayoutJob, TextFormat};
use egui::{Color32, RichText, TextStyle, Ui};

/// Draws them.
pub(super) fn show(ui: &mut Ui, line: &Line, stale: bool) {
    let Some((number, head)) = line.heads.get(line.shown) else { return };
    let colours = palette(ui.visuals());
    let mean = line.heads.iter().map(|(_, h)| h.mass.mean).sum::<f64>() / line.heads.len() as f64;
    let least = line.heads.iter().map(|(_, h)| h.mass.min).fold(f64::INFINITY, f64::min);
    ui.horizontal_wrapped(|ui| {
        let words = say_with(
            ui,
            "measure-all",
            &[("n", line.heads.len().into()), ("mean", percent(mean).into()), ("least", percent(least).into())],
        );
        ui.label(RichText::new(words).strong()).on_hover_text(say(ui, "measure-all-tip"));
        if stale {
            ui.label(RichText::new(say(ui, "measure-stale")).strong().color(colours.warning)).on_hover_text(say_with(
                ui,
                "measure-stale-tip",
                &[("before", origins::whole(ui, &Provenance::Before).into())],
            ));
        }
    });
    ui.horizontal_wrapped(|ui| {
        let m = &head.mass;
        put(
            ui,
            say_with(ui, "measure-mass", &[("number", number.into()), ("mass", percent(m.mean).into())]),
            say(ui, "measure-mass-tip"),
        );
        put(ui, say_with(ui, "measure-p5", &[("mass", percent(m.p5).into())]), say(ui, "measure-p5-tip"));
        put(
            ui,
            say_with(ui, "measure-min", &[("mass", percent(m.min).into()), ("row", m.worst_row.into())]),
            say(ui, "measure-min-tip"),
        );
        put(
            ui,
            say_with(ui, "measure-ceiling", &[("mass", percent(head.ceiling).into())]),
            say(ui, "measure-ceiling-tip"),
        );
        put(
            ui,
            say_with(ui, "measure-regret", &[("mass", small((head.ceiling - m.mean).max(0.0)).into())]),
            say(ui, "measure-regret-tip"),
        );
        put(
            ui,
            say_with(ui, "measure-blocks", &[("share", percent(head.cost.density()).into())]),
            say(ui, "measure-blocks-tip"),
        );
    });
    more(ui, line);
    if head.mass.empty_rows > 0 {
        let first = head.mass.first_empty.unwrap_or(0);
        let words = say_with(ui, "measure-empty-rows", &[("n", head.mass.empty_rows.into()), ("first", first.into())]);
        ui.label(RichText::new(words).color(colours.warning));
    }
    if let Some(words) = &line.troubles {
        ui.label(RichText::new(words).color(colours.warning));
    }
}

/// A measure with its formula: its name is weaker than its figures.
fn put(ui: &mut Ui, text: String, words: &str) {
    ui.label(figures(ui, &text)).on_hover_text(words);
    ui.add_space(4.0);
}

/// A text with emphasised numbers.
fn figures(ui: &Ui, text: &str) -> LayoutJob {
    let mut job = LayoutJob::default();
    for (n, word) in text.split(' ').enumerate() {
        let number = word.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit());
        let color = if number { ui.visuals().strong_text_color() } else { palette(ui.visuals()).weak };
        let format = TextFormat { font_id: TextStyle::Body.resolve(ui.style()), color, ..TextFormat::default() };
        job.append(&format!("{}{word}", if n > 0 { " " } else { "" }), 0.0, format);
    }
    job
}

/// The measures that follow when the mask stops changing: the output error, and the character of the head.
fn more(ui: &mut Ui, line: &Line) {
    ui.horizontal_wrapped(|ui| {
        let has_v = line.has_v;
        match &line.error {
            Some(e) => {
                put(
                    ui,
                    say_with(ui, "measure-error", &[("error", small(e.relative_l1).into())]),
                    say(ui, "measure-error-tip"),
                );
                put(
                    ui,
                    say_with(ui, "measure-cosine", &[("cosine", format!("{:.4}", e.cosine).into())]),
                    say(ui, "measure-cosine-tip"),
                );
                put(
                    ui,
                    say_with(ui, "measure-rmse", &[("rmse", format!("{:.4}", e.rmse).into())]),
                    say(ui, "measure-rmse-tip"),
                );
                put(ui, say_with(ui, "measure-p99", &[("error", small(e.row_p99).into())]), say(ui, "measure-p99-tip"));
                put(
                    ui,
                    say_with(
                        ui,
                        "measure-parts",
                        &[("dropped", small(e.dropped).into()), ("renormalised", small(e.renormalised).into())],
                    ),
                    say(ui, "measure-parts-tip"),
                );
            }
            None if has_v => drop(ui.weak(say(ui, "measure-error-later"))),
            None => drop(ui.weak(say(ui, "measure-error-none"))),
        }
    });
    ui.horizontal_wrapped(|ui| match &line.character {
        Some(c) => {
            put(
                ui,
                say_with(
                    ui,
                    "measure-keys",
                    &[("keys", format!("{:.1}", c.keys).into()), ("share", percent(c.share).into())],
                ),
                say(ui, "measure-keys-tip"),
            );
            put(ui, say_with(ui, "measure-sinks", &[("share", percent(c.sinks).into())]), say(ui, "measure-sinks-tip"));
            if let Some(prefix) = c.prefix {
                put(
                    ui,
                    say_with(ui, "measure-prefix", &[("share", percent(prefix).into())]),
                    say(ui, "measure-prefix-tip"),
                );
            }
            if let Some(efficiency) = line.efficiency {
                put(
                    ui,
                    say_with(ui, "measure-efficiency", &[("share", percent(efficiency).into())]),
                    say(ui, "measure-efficiency-tip"),
                );
            }
            put(
                ui,
                say_with(ui, "measure-distance", &[("tokens", format!("{:.0}", c.distance).into())]),
                say(ui, "measure-distance-tip"),
            );
        }
        None => drop(ui.weak(say(ui, "measure-character-later"))),
    });
}

/// The selected row, and the keys that it misses.
pub(super) fn row(ui: &mut Ui, state: &State, line: &Line, actions: &mut Actions) {
    let Some((number, head)) = line.heads.get(line.shown) else { return };
    let keys: Vec<String> = line.missed.iter().map(|(kv, p)| format!("{kv} ({})", percent(f64::from(*p)))).collect();
    let kept = line.rows.get(line.row).copied().unwrap_or(f32::NAN);
    let id = if keys.is_empty() { "measure-row" } else { "measure-row-misses" };
    let figures = [
        ("row", line.row.into()),
        ("number", number.into()),
        ("kept", percent(f64::from(kept)).into()),
        ("keys", keys.join(", ").into()),
    ];
    ui.horizontal_wrapped(|ui| {
        ui.label(say_with(ui, id, &figures));
        let worst = head.mass.worst_row;
        let words = say(ui, "measure-worst.tip");
        if ui.button(say(ui, "measure-worst")).on_hover_text(words).clicked() {
            let key = line.missed.first().filter(|_| line.row == worst).map_or(0, |(kv, _)| *kv);
            actions.push(Action::SetPicture(Picture::Loss));
            actions.push(Action::Pin([worst, key]));
            actions.push(Action::GoTo([worst, key]));
        }
        if state.focus.is_pinned && state.focus.picture == Picture::Loss && line.row != worst {
            ui.weak(say(ui, "measure-pinned"));
        }
    });
}

/// A share as a colour.
pub(super) fn viridis(share: f32) -> Color32 {
    let c = colorous::VIRIDIS.eval_continuous(f64::from(share.clamp(0.0, 1.0)));
    Color32::from_rgb(c.r, c.g, c.b)
}

/// Block masses as a picture: four decades below 1.
pub(super) fn heat(painter: &egui::Painter, rect: egui::Rect, values: &[f32], columns: usize) {
    let rows = values.len() / columns.max(1);
    let (wide, tall) = (rect.width() / columns.max(1) as f32, rect.height() / rows.max(1) as f32);
    for (n, value) in values.iter().enumerate() {
        let min = rect.min + egui::vec2((n % columns) as f32 * wide, (n / columns) as f32 * tall);
        let share = if *value > 0.0 { 1.0 + value.log10() / 4.0 } else { 0.0 };
        painter.rect_filled(egui::Rect::from_min_size(min, egui::vec2(wide + 0.3, tall + 0.3)), 0.0, viridis(share));
    }
}
