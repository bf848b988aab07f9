//! The backward passes of a race: time, sum with the forward time, worst gradient, or a refusal with its reason.
//!
//! Invariant: a time is shown with its error; a wrong gradient shows no time. Must not know how gradients are computed.

use crate::app::theme::palette;
use crate::app::widgets::milliseconds;
use crate::base::words;
use crate::problem::result::{GradientError, GradientOutcome, GradientReport, RunReport};
use egui::{Grid, Label, RichText, Ui};

/// Draws them; nothing if none were requested.
pub(super) fn show(ui: &mut Ui, report: &RunReport, stale: bool) {
    if report.gradients.is_empty() {
        return;
    }
    ui.add_space(6.0);
    ui.strong("Backward pass");
    Grid::new("backward passes").num_columns(5).striped(true).show(ui, |ui| {
        for title in ["", "backward", "both", "memory", "worst gradient"] {
            ui.weak(title);
        }
        ui.end_row();
        for of in &report.gradients {
            line(ui, of, report, stale);
            ui.end_row();
        }
    });
    for of in &report.gradients {
        let (word, why) = match &of.outcome {
            GradientOutcome::Done { .. } => continue,
            GradientOutcome::Refused { why } => ("refused", why),
            GradientOutcome::Failed { why } => ("failed", why),
        };
        app::widgets::refusal(ui, why);
        let way_out = why.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        let text = RichText::new(format!("{}: backward {word}: {}{way_out}", of.backend, why.message)).weak();
        ui.add(Label::new(text).wrap());
    }
}

fn line(ui: &mut Ui, of: &GradientReport, report: &RunReport, stale: bool) {
    let GradientOutcome::Done { kernel, errors, timing, .. } = &of.outcome else {
        ui.weak(of.backend.as_str());
        ui.weak(if matches!(of.outcome, GradientOutcome::Refused { .. }) { "refused" } else { "failed" });
        return;
    };
    ui.label(of.backend.as_str()).on_hover_text(&kernel.words);
    let median = timing.as_ref().map(|t| t.median_ms);
    let both = median.zip(report.median_ms(of.backend)).map(|(a, b)| a + b);
    for ms in [median, both] {
        let text = RichText::new(ms.map_or("-".into(), milliseconds));
        let label = ui.label(if stale { text.weak() } else { text.strong() });
        if let Some((free, more)) = of.outcome.order_price() {
            label.on_hover_text(format!(
                "In a fixed order of addition; in any order the backward pass takes {} ({more:+.1}%).",
                milliseconds(free)
            ));
        }
    }
    ui.weak(words::memory(of.outcome.memory()))
        .on_hover_text(format!("Forward and backward together, {}.", words::MEMORY));
    let Some(worst) = GradientError::worst(errors) else { return };
    match worst.words() {
        None => ui
            .colored_label(palette(ui.visuals()).good, format!("{} {:.1e} ok", worst.name, worst.max_abs))
            .on_hover_text(format!("{:.1e} is allowed", worst.allowed)),
        Some(words) => ui.colored_label(palette(ui.visuals()).error, format!("wrong: {words}")),
    };
}
