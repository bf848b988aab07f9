//! The roofline: a race's results under the limits of the card, and of one row what limits it and what other cards would take.
//!
//! Invariant: a point is a checked, timed result of the shown problem; a roof comes from a data sheet, an estimate from other runs,
//! and both say so. Must not know how a race runs.

use super::plots::{colour, plain, power, tens};
use super::words::flops;
use crate::app::language::{say, say_with};
use crate::app::origins;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{id, milliseconds, percent};
use crate::base::provenance::Place;
use crate::base::{BackendName, Provenance};
use crate::problem::ProblemSpec;
use crate::problem::result::RunReport;
use crate::problem::roofs::Roof;
use crate::tasks::estimate::on_cards;
use crate::tasks::limits::Least;
use crate::tasks::recorded::Recorded;
use egui::{RichText, Ui};
use egui_plot::{Line, PlotPoints, PlotUi, Points, Text};

/// A run whose rows can be opened.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub problem: &'a ProblemSpec,
    pub report: &'a RunReport,
}

/// A result in the roofline.
#[derive(Clone, Debug, PartialEq)]
struct Dot {
    backend: BackendName,
    least: Least,
}

impl Run<'_> {
    fn dots(&self) -> Vec<Dot> {
        let dot = |backend| Some(Dot { backend, least: Least::of(self.problem, self.report, backend)? });
        self.report.backends.iter().filter_map(|one| dot(one.backend)).collect()
    }

    fn roof(&self) -> Option<Roof> {
        Roof::of(&self.report.device_name, self.problem.dtype)
    }
}

/// Whether a row is open, remembered for each device.
fn memory(device: &str) -> egui::Id {
    id("limits of").with(device)
}

/// Opens or closes what is said of a row.
pub(super) fn toggle(ui: &Ui, run: Run<'_>, backend: BackendName) {
    let memory = memory(&run.report.device_name);
    let now = ui.data(|d| d.get_temp::<Option<BackendName>>(memory)).flatten();
    ui.data_mut(|d| d.insert_temp(memory, (now != Some(backend)).then_some(backend)));
}

/// Whether that is open.
pub(super) fn is_open(ui: &Ui, run: Run<'_>, backend: BackendName) -> bool {
    ui.data(|d| d.get_temp::<Option<BackendName>>(memory(&run.report.device_name))).flatten() == Some(backend)
}

/// What limits a row, its place under the roofs, and other cards.
pub(super) fn row(ui: &mut Ui, run: Run<'_>, backend: BackendName) {
    let Some(least) = Least::of(run.problem, run.report, backend) else { return };
    egui::Frame::group(ui.style()).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let device = &run.report.device_name;
        match run.roof() {
            Some(roof) => {
                ui.add(egui::Label::new(RichText::new(least.words(&roof)).strong()).wrap());
                plot(ui, &run.dots(), Some(roof), Some(backend));
                let figures = [
                    ("device", device.into()),
                    ("flop", flops(roof.flop, "FLOP/s").into()),
                    ("bytes", flops(roof.bytes, "B/s").into()),
                    ("backend", backend.as_str().into()),
                ];
                let words = say_with(ui, "roof-words", &figures);
                ui.add(egui::Label::new(RichText::new(words).small().weak()).wrap());
            }
            None => {
                let figures = [("device", device.into()), ("flop", flops(least.place()[1], "FLOP/s").into())];
                let words = say_with(ui, "roof-unknown", &figures);
                ui.add(egui::Label::new(words).wrap());
            }
        }
        others(ui, run);
    });
}

/// The same design on other cards: estimates.
fn others(ui: &mut Ui, run: Run<'_>) {
    let work = &run.report.work;
    let here = &run.report.device_name;
    let cards = on_cards(run.problem, work.density, work.computed);
    let cards: Vec<_> = cards.into_iter().filter(|one| one.card != *here).collect();
    if cards.is_empty() {
        return;
    }
    ui.add_space(4.0);
    ui.strong(say(ui, "roof-others"));
    egui::Grid::new("other cards").num_columns(2).show(ui, |ui| {
        for one in &cards {
            ui.label(one.card.trim_start_matches("NVIDIA "));
            let words = RichText::new(format!("\u{2248} {}", milliseconds(one.ms)));
            ui.label(words).on_hover_text(origins::sentence(ui, &one.provenance()));
            ui.end_row();
        }
    });
    let words = say(ui, "roof-others-words");
    ui.add(egui::Label::new(RichText::new(words).small().weak()).wrap());
}

/// All rows: the last race, otherwise recorded ones; with their device's name.
pub(super) fn show(ui: &mut Ui, state: &State, recorded: &[&'static Recorded]) {
    let problem = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok());
    let Some(problem) = problem else { return };
    let race = state.session.race.as_ref().filter(|race| !race.stale);
    let raced = race.and_then(|race| Some((race, race.report.as_deref()?)));
    let (run, from) = match (raced, recorded.first()) {
        (Some((race, report)), _) => {
            let problem = race.request.as_ref().map_or(problem.spec(), |(request, _)| &request.problem);
            (Run { problem, report }, Provenance::Measured(Place { copy: !race.is_whole(), ..report.place() }))
        }
        (None, Some(run)) => (Run { problem: problem.spec(), report: &run.report }, run.provenance()),
        (None, None) => return,
    };
    let (dots, roof) = (run.dots(), run.roof());
    if dots.is_empty() {
        return;
    }
    let title = say_with(ui, "roof-title", &[("from", origins::whole(ui, &from).into())]);
    egui::CollapsingHeader::new(title).id_salt("roofline").show(ui, |ui| {
        plot(ui, &dots, roof, None);
        for dot in &dots {
            let [intensity, rate] = dot.least.place();
            let share = roof.map(|roof| percent(rate / roof.at(intensity)));
            let id = if share.is_some() { "roof-dot-share" } else { "roof-dot" };
            let figures = [
                ("backend", dot.backend.as_str().into()),
                ("flop", flops(rate, "FLOP/s").into()),
                ("share", share.unwrap_or_default().into()),
            ];
            ui.label(say_with(ui, id, &figures));
        }
        let about = match roof {
            Some(_) => say(ui, "roof-about"),
            None => say(ui, "roof-none"),
        };
        ui.add(egui::Label::new(RichText::new(about).small().weak()).wrap());
    });
}

fn plot(ui: &mut Ui, dots: &[Dot], roof: Option<Roof>, chosen: Option<BackendName>) {
    let colours = palette(ui.visuals());
    let plot = plain("roofline plot")
        .x_axis_label(say(ui, "roof-x"))
        .y_axis_label(say(ui, "roof-y"))
        .x_grid_spacer(tens)
        .y_grid_spacer(tens)
        .x_axis_formatter(|mark, _| power(mark.value, |x| format!("{x}")))
        .y_axis_formatter(|mark, _| power(mark.value, |x| flops(x, "").replace(".00", "").replace(".0", "")));
    let places: Vec<[f64; 2]> = dots.iter().map(|dot| dot.least.place()).collect();
    let far = places.iter().map(|at| at[0]).fold(1.0, f64::max);
    let names = ["roof-memory", "roof-arithmetic"].map(|id| say(ui, id));
    let shown = plot.show(ui, |plot| {
        if let Some(roof) = roof {
            roofs(plot, roof, names, far, colours.weak);
        }
        for (dot, at) in dots.iter().zip(&places) {
            let is_it = chosen.is_none_or(|chosen| chosen == dot.backend);
            let of = colour(dot.backend, &colours);
            let at = PlotPoints::from_iter([at.map(f64::log10)]);
            let radius = if chosen == Some(dot.backend) { 7.0 } else { 5.0 };
            let colour = if is_it { of } else { of.gamma_multiply(0.35) };
            plot.points(Points::new(dot.backend.as_str(), at).color(colour).radius(radius));
        }
    });
    let name = chosen.map_or(say(ui, "roof-name").into(), |chosen| {
        say_with(ui, "roof-name-of", &[("backend", chosen.to_string().into())])
    });
    shown.response.accessible_name(name);
}

/// The roof of memory, which rises, and that of arithmetic.
fn roofs(plot: &mut PlotUi<'_>, roof: Roof, names: [&str; 2], far: f64, colour: egui::Color32) {
    let ridge = roof.ridge();
    let ends = [1.0, ridge, (far * 10.0).max(ridge * 10.0)];
    let line = ends.map(|x| [x.log10(), roof.at(x).log10()]);
    plot.line(Line::new("roof", PlotPoints::from_iter(line)).color(colour).width(2.0));
    let between = |a: [f64; 2], b: [f64; 2]| [(a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0].into();
    for (name, at) in names.into_iter().zip([between(line[0], line[1]), between(line[1], line[2])]) {
        plot.text(Text::new("roof", at, RichText::new(name).small()).color(colour).anchor(egui::Align2::CENTER_BOTTOM));
    }
}
