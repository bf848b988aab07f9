//! The figures of a plan and of the divisions of others: times, loads, bytes between ranks.
//!
//! Invariant: all bars of a table have one scale. Must not know how the figures are computed.

use super::picture::{colour, viridis};
use super::work::Seen;
use crate::app::language::{say, say_with, words as words_of};
use crate::app::theme::palette;
use crate::app::widgets::{milliseconds, percent};
use crate::base::words;
use crate::parallel::figures::{Exchange, Figures};
use crate::parallel::paths::{Fate, Path};
use crate::tasks::divisions;
use egui::{Color32, Grid, Rect, RichText, Sense, Ui, Vec2};

/// Ranks beyond which a matrix has no numbers.
const NUMBERS: usize = 12;
/// Units of bytes, the largest first.
const UNITS: [(f64, &str); 3] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
/// Points of the longest bar.
const BAR: f32 = 110.0;

/// The predicted times of all divisions.
pub(super) fn divisions(ui: &mut Ui, seen: &Seen) {
    ui.strong(say(ui, "gpus-predicted"));
    let ours = &seen.plan.figures;
    let others = seen.rivals.iter().filter_map(|rival| rival.figures.as_ref().ok().map(|f| (rival, f)));
    let slowest = others.clone().map(|(_, f)| f.ms()).fold(ours.ms(), f64::max);
    Grid::new("divisions").num_columns(5).striped(true).show(ui, |ui| {
        for title in ["", "", say(ui, "gpus-imbalance"), say(ui, "gpus-received"), say(ui, "gpus-exposed")] {
            ui.weak(title);
        }
        ui.end_row();
        row(ui, (say(ui, "gpus-plan"), say(ui, "gpus-plan.tip")), ours, slowest, true);
        for (rival, figures) in others {
            let about = divisions::about(words_of(ui.ctx()), rival.about);
            row(ui, (rival.name, about), figures, slowest, false);
        }
    });
    if ours.tokens.len() > 1 && !ours.pays() {
        let times = [("alone", ours.alone_ms()), ("divided", ours.ms())];
        let words = say_with(ui, "plan-alone-faster", &times.map(|(name, ms)| (name, format!("{ms:.3}").into())));
        ui.add(egui::Label::new(RichText::new(words).color(ui.visuals().warn_fg_color)).wrap());
    }
    for rival in &seen.rivals {
        if let Err(why) = &rival.figures {
            super::weak(ui, &format!("{}: {}.", rival.name, words_of(ui.ctx()).reported(&why.code, &why.message)));
        }
    }
    ui.add_space(6.0);
}

fn row(ui: &mut Ui, (name, about): (&str, &str), figures: &Figures, slowest: f64, ours: bool) {
    let text = if ours { RichText::new(name).strong() } else { RichText::new(name) };
    ui.label(text).on_hover_text(about);
    let accent = palette(ui.visuals()).accent;
    let fill = if ours { accent } else { ui.visuals().weak_text_color() };
    let words = milliseconds(figures.ms());
    bar(ui, figures.ms() / slowest, fill, &words, &format!("{name}: {words}"));
    ui.label(format!("{:.3}", figures.imbalance)).on_hover_text(say(ui, "gpus-imbalance-tip"));
    let how = match figures.exchange {
        Exchange::AllGather => say(ui, "gpus-all-gather"),
        Exchange::Needed => say(ui, "gpus-needed"),
        Exchange::Heads => say(ui, "gpus-heads"),
    };
    ui.label(percent(figures.received)).on_hover_text(how);
    ui.label(milliseconds(figures.exposed_ms)).on_hover_text(say(ui, "gpus-exposed-tip"));
    ui.end_row();
}

/// A horizontal bar with words behind it.
fn bar(ui: &mut Ui, share: f64, fill: Color32, words: &str, name: &str) {
    ui.horizontal(|ui| {
        let (rect, response) = ui.allocate_exact_size(Vec2::new(BAR, 12.0), Sense::hover());
        let share = if share.is_finite() { share.clamp(0.0, 1.0) as f32 } else { 0.0 };
        let filled = Rect::from_min_size(rect.min, Vec2::new((BAR * share).max(1.0), rect.height()));
        ui.painter().rect_filled(filled, 2.0, fill);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Meter, true, name));
        ui.label(words);
    });
}

/// What the ways of other libraries do with these masks.
pub(super) fn paths(ui: &mut Ui, paths: &[Path]) {
    ui.add_space(6.0);
    ui.strong(say(ui, "gpus-others"));
    let colours = palette(ui.visuals());
    let said = words_of(ui.ctx());
    Grid::new("paths").num_columns(3).striped(true).show(ui, |ui| {
        for path in paths {
            ui.label(path.name).on_hover_text(say_with(ui, "gpus-read-in", &[("release", path.release.into())]));
            let word = RichText::new(divisions::fate(said, path.fate));
            ui.label(if path.fate == Fate::Kept { word } else { word.strong().color(colours.warning) });
            let how = divisions::how(said, path.how);
            ui.add(egui::Label::new(how).truncate()).on_hover_text(how);
            ui.end_row();
        }
    });
    ui.add_space(4.0);
}

/// What each rank computes.
pub(super) fn loads(ui: &mut Ui, seen: &Seen, kind: usize) {
    let figures = &seen.plan.figures;
    let Some(kind) = figures.kinds.get(kind) else { return };
    let back = |rank: usize| kind.backward.as_ref().map_or(0.0, |pass| pass.compute_ms[rank]);
    let times: Vec<f64> = kind.forward.compute_ms.iter().enumerate().map(|(rank, ms)| ms + back(rank)).collect();
    let most = times.iter().copied().fold(0.0, f64::max);
    ui.add_space(6.0);
    ui.strong(say(ui, "gpus-each"));
    Grid::new("loads").num_columns(4).show(ui, |ui| {
        for (rank, ms) in times.iter().enumerate() {
            ui.label(format!("GPU {rank}"));
            let words = milliseconds(*ms);
            bar(ui, ms / most, colour(rank, times.len()), &words, &format!("GPU {rank}: {words}"));
            ui.label(say_with(ui, "gpus-tokens", &[("n", figures.tokens[rank].into())]));
            let received: u64 = kind.bytes.iter().map(|row| row[rank]).sum();
            ui.label(say_with(ui, "gpus-receives", &[("bytes", words::bytes(received).into())]));
            ui.end_row();
        }
    });
}

/// Bytes from each rank to each other.
pub(super) fn sent(ui: &mut Ui, seen: &Seen, kind: usize) {
    let Some(kind) = seen.plan.figures.kinds.get(kind) else { return };
    let ranks = kind.bytes.len();
    if ranks < 2 {
        return;
    }
    ui.add_space(6.0);
    let most = kind.bytes.iter().flatten().copied().max().unwrap_or(0).max(1);
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| most as f64 >= *unit).unwrap_or((1.0, "B"));
    ui.strong(say_with(ui, "gpus-sent", &[("unit", name.into())]));
    let side = if ranks <= NUMBERS { 34.0 } else { (400.0 / ranks as f32).max(3.0) };
    let size = Vec2::new(side * ranks as f32, side.min(22.0) * ranks as f32);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let name = say(ui, "gpus-bytes");
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, name));
    let cell = Vec2::new(rect.width() / ranks as f32, rect.height() / ranks as f32);
    for (from, row) in kind.bytes.iter().enumerate() {
        for (to, bytes) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            let place = Rect::from_min_size(rect.min + Vec2::new(to as f32 * cell.x, from as f32 * cell.y), cell);
            let share = *bytes as f32 / most as f32;
            ui.painter().rect_filled(place.shrink(0.5), 0.0, viridis(share));
            if ranks <= NUMBERS {
                let ink = if share > 0.6 { Color32::BLACK } else { Color32::WHITE };
                let text = format!("{:.1}", *bytes as f64 / unit);
                let font = egui::TextStyle::Small.resolve(ui.style());
                ui.painter().text(place.center(), egui::Align2::CENTER_CENTER, text, font, ink);
            }
        }
    }
    ui.add_space(4.0);
}
