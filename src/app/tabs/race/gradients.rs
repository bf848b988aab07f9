//! The backward passes of a race: time, sum with the forward time, worst gradient, or a refusal with its reason.
//!
//! Invariant: a time is shown with its error; a wrong gradient shows no time. Must not know how gradients are computed.

use crate::app::language::{say, say_with, words as words_of};
use crate::app::theme::palette;
use crate::app::widgets::milliseconds;
use crate::base::words;
use crate::problem::result::{GradientError, GradientOutcome, GradientReport, RunReport};
use crate::tasks::ratios;
use egui::{Grid, Label, RichText, Ui};

/// Draws them; nothing if none were requested.
pub(super) fn show(ui: &mut Ui, report: &RunReport, stale: bool) {
    if report.gradients.is_empty() {
        return;
    }
    ui.add_space(6.0);
    ui.strong(say(ui, "backward-title"));
    Grid::new("backward passes").num_columns(5).striped(true).show(ui, |ui| {
        for title in [
            "",
            say(ui, "backward-column"),
            say(ui, "backward-both"),
            say(ui, "backward-memory"),
            say(ui, "backward-worst"),
        ] {
            ui.weak(title);
        }
        ui.end_row();
        for of in &report.gradients {
            line(ui, of, report, stale);
            ui.end_row();
        }
    });
    for of in &report.gradients {
        let (id, why) = match &of.outcome {
            GradientOutcome::Done { .. } => continue,
            GradientOutcome::Refused { why } => ("backward-refused", why),
            GradientOutcome::Failed { why } => ("backward-failed", why),
        };
        app::widgets::refusal(ui, why);
        let way_out = app::widgets::english_way_out(ui, why).map_or(String::new(), |hint| format!(" ({hint})"));
        let figures = [("backend", of.backend.as_str().into()), ("why", format!("{}{way_out}", why.message).into())];
        let text = RichText::new(say_with(ui, id, &figures)).weak();
        ui.add(Label::new(text).wrap());
    }
}

fn line(ui: &mut Ui, of: &GradientReport, report: &RunReport, stale: bool) {
    let GradientOutcome::Done { kernel, errors, timing, .. } = &of.outcome else {
        ui.weak(of.backend.as_str());
        let refused = matches!(of.outcome, GradientOutcome::Refused { .. });
        ui.weak(say(ui, if refused { "race-refused" } else { "race-failed" }));
        return;
    };
    ui.label(of.backend.as_str()).on_hover_text(&kernel.words);
    let median = timing.as_ref().map(|t| t.median_ms);
    let both = median.zip(report.median_ms(of.backend)).map(|(a, b)| a + b);
    for ms in [median, both] {
        let text = RichText::new(ms.map_or("-".into(), milliseconds));
        let label = ui.label(if stale { text.weak() } else { text.strong() });
        if let Some((free, more)) = of.outcome.order_price() {
            label.on_hover_text(say_with(
                ui,
                "backward-order",
                &[("time", milliseconds(free).into()), ("more", format!("{:+.1}", more).into())],
            ));
        }
    }
    let held = say_with(ui, "backward-held", &[("how", ratios::memory(words_of(ui.ctx())).into())]);
    ui.weak(words::memory(of.outcome.memory())).on_hover_text(held);
    let Some(worst) = GradientError::worst(errors) else { return };
    match worst.words() {
        None => ui
            .colored_label(
                palette(ui.visuals()).good,
                say_with(
                    ui,
                    "backward-ok",
                    &[("name", (&*worst.name).into()), ("error", format!("{:.1e}", worst.max_abs).into())],
                ),
            )
            .on_hover_text(say_with(ui, "backward-allowed", &[("limit", format!("{:.1e}", worst.allowed).into())])),
        Some(words) => {
            ui.colored_label(palette(ui.visuals()).error, say_with(ui, "backward-wrong", &[("words", words.into())]))
        }
    };
}
