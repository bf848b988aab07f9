//! The measures in a line, each with its formula and its usual limits; and the selected row.
//!
//! Invariant: a figure of an older mask is marked. Must not know how measures are computed.

use super::small;
use crate::app::action::{Action, Actions};
use crate::app::canvas::Picture;
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
        let words = format!("{} heads: mass {}, worst row {}", line.heads.len(), percent(mean), percent(least));
        ui.label(RichText::new(words).strong()).on_hover_text(
            "Mass kept of a row: exp(lse masked - lse full), the share of full attention's probability on the keys that the mask keeps. \
             Usual limits are a mean of 0.9 to 0.95 (FlexPrefill, XAttention).",
        );
        if stale {
            ui.label(RichText::new("stale").strong().color(colours.warning))
                .on_hover_text(format!("Of {}; the new mask is being measured.", Provenance::Before));
        }
    });
    ui.horizontal_wrapped(|ui| {
        let m = &head.mass;
        put(ui, format!("head {number}: mass {}", percent(m.mean)), "Mean over rows of exp(lse masked - lse full). Methods aim at 0.9 to 0.95 or more.");
        put(ui, format!("p5 {}", percent(m.p5)), "One row in twenty keeps less: 5th percentile over rows.");
        put(ui, format!("min {} in row {}", percent(m.min), m.worst_row), "The row that keeps the least mass. A row at 0 has output 0.");
        put(ui, format!("ceiling {}", percent(head.ceiling)),
            "The largest mass that the same number of blocks in each row could keep: mean over rows of the sum of the k largest block masses (\"perfect recall\").");
        put(ui, format!("regret {}", small((head.ceiling - m.mean).max(0.0))),
            "Ceiling minus mass: the gain of the best choice of the same number of blocks. Near 0 the pattern is right and only the budget is too small.");
        put(ui, format!("blocks {}", percent(head.cost.density())), "Blocks that a kernel visits, over all blocks.");
    });
    more(ui, line);
    if head.mass.empty_rows > 0 {
        let first = head.mass.first_empty.unwrap_or(0);
        let words =
            format!("{} rows keep no key at all, the first is q_idx {first}: their output is 0.", head.mass.empty_rows);
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
                put(ui, format!("output error {}", small(e.relative_l1)),
                    "Relative L1: sum |o - o'| / sum |o| against full attention with the captured v. 0.06 to 0.08 passes in SpargeAttn.");
                put(ui, format!("cosine {:.4}", e.cosine), "Cosine of the head's dense and masked outputs. Above 0.98 passes in SpargeAttn.");
                put(ui, format!("rmse {:.4}", e.rmse), "sqrt(mean (o - o')^2). Below 0.07 passes in SpargeAttn.");
                put(ui, format!("p99 row {}", small(e.row_p99)), "99th percentile over rows of norm2(o - o') / norm2(o).");
                put(ui, format!("dropped {}, renormalised {}", small(e.dropped), small(e.renormalised)),
                    "o - o' = (o - m o') - (1 - m) o': the contribution of the dropped values, and the effect of sharing their mass among the kept values; \
                     each as sum |.| / sum |o| (SpargeAttention2).");
            }
            None if has_v => drop(ui.weak("output error: follows when the mask stops changing")),
            None => drop(ui.weak("no output error: the capture has no v of this head")),
        }
    });
    ui.horizontal_wrapped(|ui| match &line.character {
        Some(c) => {
            put(ui, format!("{:.1} effective keys ({})", c.keys, percent(c.share)),
                "exp(entropy) of a row: median in keys, and the mean as a share of all keys. Few effective keys suit block lists. With nearly all keys, no sparse mask fits.");
            put(ui, format!("sinks {}", percent(c.sinks)), "Mass on the first four keys.");
            if let Some(prefix) = c.prefix {
                put(ui, format!("prefix {}", percent(prefix)), "Mass on the tokens before the grid, such as text.");
            }
            if let Some(efficiency) = line.efficiency {
                put(ui, format!("efficiency {}", percent(efficiency)),
                    "Kept cells over cells of the visited blocks: 100% if no block is partial. A kernel works on whole blocks.");
            }
            put(ui, format!("mean distance {:.0}", c.distance), "Mean of |q_idx - kv_idx| by mass, in tokens. Short: a window fits.");
        }
        None => drop(ui.weak("character: follows when the mask stops changing")),
    });
}

/// The selected row, and the keys that it misses.
pub(super) fn row(ui: &mut Ui, state: &State, line: &Line, actions: &mut Actions) {
    let Some((number, head)) = line.heads.get(line.shown) else { return };
    let keys: Vec<String> = line.missed.iter().map(|(kv, p)| format!("{kv} ({})", percent(f64::from(*p)))).collect();
    let kept = line.rows.get(line.row).copied().unwrap_or(f32::NAN);
    let missing = if keys.is_empty() { "misses nothing".into() } else { format!("misses keys {}", keys.join(", ")) };
    ui.horizontal_wrapped(|ui| {
        ui.label(format!("Row {} of head {number} keeps {} and {missing}.", line.row, percent(f64::from(kept))));
        let worst = head.mass.worst_row;
        let words = "Centres the row that keeps the least mass on the canvas and marks the keys that it misses.";
        if ui.button("Worst row").on_hover_text(words).clicked() {
            let key = line.missed.first().filter(|_| line.row == worst).map_or(0, |(kv, _)| *kv);
            actions.push(Action::SetPicture(Picture::Loss));
            actions.push(Action::Pin([worst, key]));
            actions.push(Action::GoTo([worst, key]));
        }
        if state.focus.is_pinned && state.focus.picture == Picture::Loss && line.row != worst {
            ui.weak("the pinned cell's row");
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
