//! Proposals: a target, a plot of lost mass against blocks, and one click that takes a candidate as layers.
//!
//! Invariant: a candidate is taken in one undoable step; what is shown of it was measured on the capture that is open. Must not know
//! how candidates are found.

use super::work::Seen;
use crate::app::action::{Action, Actions};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{diagnostic_below, percent, section};
use crate::quality::suggest::{Candidate, pareto};
use crate::service::lab;
use egui::{Grid, Slider, Ui};
use egui_plot::{Line, Plot, PlotPoints, Points};

/// Draws them.
pub(super) fn show(ui: &mut Ui, state: &State, seen: &Seen, target: &mut f64, wish: &mut u64, actions: &mut Actions) {
    section(ui, "Masks that lose less");
    if *target == 0.0 {
        *target = 0.95;
    }
    ui.horizontal(|ui| {
        ui.label("mass to keep");
        ui.add(Slider::new(target, 0.5..=0.999).fixed_decimals(3))
            .on_hover_text("Mean over heads and rows. 0.9 to 0.95 is what most methods use.");
        if ui
            .button("Suggest")
            .on_hover_text(
                "Looks for masks that keep this mass with few blocks. Diagonal, sinks, text and first frame stay.",
            )
            .clicked()
        {
            *wish += 1;
        }
        if seen.found.as_ref().map_or(0, |(number, _)| *number) < *wish {
            ui.spinner();
        }
    });
    match &seen.found {
        None => {}
        Some((_, Err(why))) => diagnostic_below(ui, why),
        Some((_, Ok(found))) => candidates(ui, state, seen, found, actions),
    }
}

fn candidates(ui: &mut Ui, state: &State, seen: &Seen, found: &[Candidate], actions: &mut Actions) {
    let front = pareto(found);
    let mut taken = plot(ui, seen, found, &front);
    Grid::new("candidates").striped(true).num_columns(4).show(ui, |ui| {
        for (n, candidate) in found.iter().enumerate() {
            let star = if front[n] { "\u{2605} " } else { "" };
            ui.label(format!("{star}{}", candidate.name)).on_hover_text(format!(
                "{}\n{}",
                candidate.why,
                candidate.form.words()
            ));
            ui.label(percent(candidate.mass)).on_hover_text("Mass kept, mean over heads and rows.");
            ui.label(percent(candidate.density)).on_hover_text("Blocks visited, over all.");
            if ui
                .button("Take")
                .on_hover_text("Puts it in the place of the layers that take part now; undo brings them back.")
                .clicked()
            {
                taken = Some(n);
            }
            ui.end_row();
        }
    });
    if let Some(candidate) = taken.and_then(|n| found.get(n)) {
        match lab::take(&state.document, candidate) {
            Ok(edit) => actions.push(Action::Edit(edit)),
            Err(why) => diagnostic_below(ui, &why),
        }
    }
}

/// Lost mass against blocks; a click gives the nearest candidate.
fn plot(ui: &mut Ui, seen: &Seen, found: &[Candidate], front: &[bool]) -> Option<usize> {
    let colours = palette(ui.visuals());
    let at = |c: &Candidate| [100.0 * c.density, 100.0 * (1.0 - c.mass)];
    let plot = Plot::new("pareto")
        .height(190.0)
        .allow_drag(false)
        .allow_zoom(false)
        .allow_scroll(false)
        .include_x(0.0)
        .include_y(0.0)
        .x_axis_label("blocks, %")
        .y_axis_label("mass lost, %");
    let shown = plot.show(ui, |plot| {
        let mut best: Vec<[f64; 2]> = found.iter().zip(front).filter(|(_, on)| **on).map(|(c, _)| at(c)).collect();
        best.sort_by(|a, b| a[0].total_cmp(&b[0]));
        plot.line(Line::new("best", PlotPoints::from_iter(best.into_iter())).color(colours.accent));
        let all = PlotPoints::from_iter(found.iter().map(at));
        plot.points(Points::new("proposals", all).color(colours.accent).radius(4.0));
        if let Ok(line) = &seen.line {
            let heads = line.heads.len() as f64;
            let mass = line.heads.iter().map(|(_, h)| h.mass.mean).sum::<f64>() / heads;
            let density = line.heads.iter().map(|(_, h)| h.cost.density()).sum::<f64>() / heads;
            let here = PlotPoints::from_iter([[100.0 * density, 100.0 * (1.0 - mass)]]);
            plot.points(Points::new("this document", here).color(colours.warning).radius(5.0));
        }
    });
    let response = shown.response.accessible_name("Lost mass against blocks");
    let pointer = response.hover_pos().or(response.interact_pointer_pos())?;
    let apart = |c: &Candidate| {
        let [x, y] = at(c);
        shown.transform.position_from_point(&egui_plot::PlotPoint::new(x, y)).distance(pointer)
    };
    let nearest = (0..found.len()).min_by(|a, b| apart(&found[*a]).total_cmp(&apart(&found[*b])))?;
    let close = apart(&found[nearest]) < 14.0;
    let clicked = response.clicked();
    if close {
        response.on_hover_text_at_pointer(format!(
            "{}: {}\nA click takes it.",
            found[nearest].name,
            found[nearest].form.words()
        ));
    }
    (close && clicked).then_some(nearest)
}
