//! The race: a bar for each backend, speed-ups against SDPA, errors against the float64 reference.
//!
//! Invariant: a time is shown with its error; a failed check is never shown as a time for comparison. Must not know how
//! a race runs.

mod card;
mod gradients;
mod history;
mod inputs;
mod lines;
mod plots;
mod racers;
mod roof;
mod verdicts;
mod words;

pub(in crate::app) use card::best_time;

use crate::app::action::Actions;
use crate::app::canvas::colors;
use crate::app::command::Command;
use crate::app::dialogs::advice_ui;
use crate::app::language::{say, say_with};
use crate::app::left;
use crate::app::origins;
use crate::app::races::{Race, SmallerCopy};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{command_button, percent, primary_button};
use crate::base::{Device, Provenance};
use crate::problem::result::RunReport;
use crate::tasks::recorded::{Recorded, of_problem};
use crate::tasks::smaller::{self, is_heavy};
use crate::trainers::advice::{Measured, Measuring, Question, advise};
use egui::{Color32, ColorImage, RichText, ScrollArea, TextureHandle, TextureOptions, Ui, Vec2};
use lines::lines;
use words::flops;

/// Longer side of the picture of a smaller copy.
const PICTURE: f32 = 84.0;
/// Passes of a race in addition to the timed ones: warming up, and the checked one.
const MORE_PASSES: u32 = 3;

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        let runs = recorded_runs(ui, state);
        // what runs is in sight
        let sweeps = sweeps(state);
        if sweeps {
            plots::over_lengths(ui, state, actions);
        }
        no_copy(ui, state, actions);
        match &state.session.race {
            Some(race) => raced(ui, state, race, actions),
            None => empty(ui, state, actions),
        }
        ui.add_space(4.0);
        if !sweeps {
            plots::over_lengths(ui, state, actions);
        }
        roof::show(ui, state, &runs);
        verdicts::show(ui, state, actions);
        settings(ui, state, actions);
        history::show(ui, state);
    });
}

/// Whether a race over lengths is running.
fn sweeps(state: &State) -> bool {
    state.session.races.sweep.as_ref().is_some_and(|sweep| !sweep.is_over())
}

fn raced(ui: &mut Ui, state: &State, race: &Race, actions: &mut Actions) {
    // stale results never hide valid ones
    if race.stale && recorded(ui, state) {
        ui.separator();
    }
    header(ui, state, race, actions);
    if let Some(copy) = &race.copy {
        copy_ui(ui, race, copy);
    }
    let raced = race.request.as_ref().map(|(request, _)| &request.problem).or(race.of.as_ref().map(|of| of.spec()));
    let run = raced.zip(race.report.as_deref()).map(|(problem, report)| roof::Run { problem, report });
    lines::show(ui, &lines(&race.reports, race.report.as_deref()), run, race.stale);
    if let Some(report) = &race.report {
        gradients::show(ui, report, race.stale);
        for note in &report.notes {
            app::widgets::refusal(ui, note);
            ui.add(egui::Label::new(RichText::new(&note.message).weak()).wrap());
        }
    }
    advice(ui, state, race);
    // what is measured here and what was recorded elsewhere can be read together
    if !race.stale && !recorded_runs(ui, state).is_empty() {
        let title = say(ui, "race-recorded-cards");
        egui::CollapsingHeader::new(title).id_salt("recorded too").default_open(true).show(ui, |ui| {
            recorded(ui, state);
        });
    }
}

/// Who races, over which inputs, how often.
fn settings(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let names: Vec<_> = state.document.settings.backends.iter().map(|b| b.as_str()).collect();
    let title = say_with(ui, "race-who", &[("names", names.join(", ").into())]);
    egui::CollapsingHeader::new(title).id_salt("who races").show(ui, |ui| {
        racers::show(ui, state, actions);
        ui.strong(say(ui, "race-inputs"));
        inputs::show(ui, state, actions);
    });
}

/// The raced copy: its own picture, sizes and share.
fn copy_ui(ui: &mut Ui, race: &Race, copy: &SmallerCopy) {
    ui.horizontal_top(|ui| {
        let dark = ui.visuals().dark_mode;
        let memory = app::widgets::id("smaller copy").with((race.id, dark));
        let texture = ui.data(|d| d.get_temp::<TextureHandle>(memory)).unwrap_or_else(|| {
            let made = ui.ctx().load_texture("smaller copy", copy_image(copy, dark), TextureOptions::NEAREST);
            ui.data_mut(|d| d.insert_temp(memory, made.clone()));
            made
        });
        let size = texture.size_vec2();
        let image = egui::Image::new((texture.id(), size * (PICTURE / size.max_elem())));
        ui.add(image.alt_text(say(ui, "race-copy-picture")));
        ui.vertical(|ui| {
            ui.label(&copy.words);
            let shares = say_with(
                ui,
                // the open design is another by now
                if race.stale { "race-copy-shares-then" } else { "race-copy-shares" },
                &[("kept", percent(copy.kept).into()), ("whole", percent(copy.kept_of).into())],
            );
            ui.add(egui::Label::new(RichText::new(shares).weak()).wrap());
        });
    });
}

fn copy_image(copy: &SmallerCopy, dark: bool) -> ColorImage {
    let palette = colors::Palette::dark(dark);
    let Some(picture) = &copy.picture else { return ColorImage::new([1, 1], vec![palette.full]) };
    let pixels: Vec<Color32> = picture.pixels().iter().map(|share| palette.blocks(*share)).collect();
    ColorImage::new([picture.width, pixels.len() / picture.width.max(1)], pixels)
}

/// Why there is no smaller copy to race, and the way out.
fn no_copy(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(none) = state.session.no_copy.as_ref().filter(|none| none.revision == state.revision) else { return };
    ui.horizontal_wrapped(|ui| {
        let colours = palette(ui.visuals());
        app::widgets::refusal(ui, &none.why);
        ui.colored_label(colours.warning, &none.why.message);
        if let Some(time) = time_of_all(ui, state) {
            ui.weak(time);
        }
        command_button(ui, Command::RunWhole, state.can(Command::RunWhole), actions);
    });
}

/// `All of it takes about 3 min`, where all of it is to run on a CPU.
fn time_of_all(ui: &Ui, state: &State) -> Option<String> {
    let problem = state.session.built.as_ref()?.problem.as_ref().ok()?;
    let device = state.session.device(&state.document);
    let threads = |name: &str| name.rsplit_once('(')?.1.split_once(" threads")?.0.parse().ok();
    let info = state.session.worker.as_ref().and_then(|w| w.devices.iter().find(|d| d.device == device));
    let threads: usize = info.and_then(|d| threads(&d.name)).unwrap_or(1);
    let (backends, passes) = (state.document.settings.backends.len(), state.view.rounds + MORE_PASSES);
    let time = smaller::estimate(problem.spec(), device, backends, passes, threads)?;
    Some(say_with(ui, "race-whole-takes", &[("time", smaller::about(time).into()), ("n", threads.into())]))
}

/// The meaning of the race for the opened trainer's configuration.
fn advice(ui: &mut Ui, state: &State, race: &Race) {
    let (Some(config), Some(report)) = (&state.trainer, &race.report) else { return };
    if race.stale || !race.is_whole() || race.request.is_none() {
        return;
    }
    let here = Some(Measured { report, recorded: false });
    let has_design = !state.document.layers.is_empty() || !state.document.scores.is_empty();
    ui.add_space(6.0);
    advice_ui(
        ui,
        &advise(&Question {
            trainer: config.trainer,
            family: config.family.as_deref(),
            current: config.setting.as_deref(),
            precision: config.precision.as_deref(),
            plain: here.filter(|_| !has_design),
            designed: here.filter(|_| has_design),
            has_design,
            measuring: Measuring::OpenAgain,
            ..Question::default()
        }),
    );
}

fn empty(ui: &mut Ui, state: &State, actions: &mut Actions) {
    if state.session.run_when_built.is_some() || state.session.shrinking.is_some() {
        ui.weak(say(ui, "race-starts"));
        return;
    }
    if state.session.is_racing() && !sweeps(state) {
        ui.weak(say(ui, "race-other-document"));
    }
    ui.add_space(10.0);
    // an overflowing row would widen everything below it
    ui.horizontal_wrapped(|ui| {
        let why = cannot_run(state);
        let can = why.is_none() && state.can(Command::Run);
        let button = primary_button(ui, say(ui, "race-backends"), can).min_size(Vec2::new(150.0, 30.0));
        if ui.add_enabled(can, button).on_hover_text(Command::Run.tooltip(ui.ctx())).clicked() {
            actions.command(Command::Run);
        }
        if let Some(why) = why {
            ui.colored_label(palette(ui.visuals()).error, why);
        }
        let names: Vec<_> = state.document.settings.backends.iter().map(|b| b.as_str()).collect();
        ui.weak(say_with(
            ui,
            "race-names-on",
            &[("names", names.join(", ").into()), ("device", state.session.device(&state.document).to_string().into())],
        ));
        racers::passes(ui, state, actions);
    });
    let heavy = state.session.built.as_ref().and_then(|b| b.problem.as_ref().ok()).is_some_and(|p| is_heavy(p.spec()));
    // a copy that was looked for in vain has said both
    let told = state.session.no_copy.as_ref().is_some_and(|none| none.revision == state.revision);
    if heavy && !told && state.session.device(&state.document) == Device::Cpu {
        ui.horizontal_wrapped(|ui| {
            ui.weak(say(ui, "race-smaller-races"));
            if let Some(time) = time_of_all(ui, state) {
                ui.weak(time);
            }
            command_button(ui, Command::RunWhole, state.can(Command::RunWhole), actions);
        });
    }
    ui.add(
        egui::Label::new(
            RichText::new(say_with(
                ui,
                "race-checked-first",
                &[("reference", origins::whole(ui, &Provenance::Reference).into())],
            ))
            .weak(),
        )
        .wrap(),
    );
    recorded(ui, state);
}

/// Why the document cannot run, in a few words.
pub(in crate::app) fn cannot_run(state: &State) -> Option<String> {
    let built = state.session.built.as_ref()?;
    let why = built.problem.as_ref().err()?.first()?;
    let (layers, _) = built.broken();
    let place = if layers.is_empty() { String::new() } else { format!("{}: ", layers.join(", ")) };
    let words = state.words();
    Some(
        words.with("race-cannot-run", &[("why", format!("{place}{}", words.reported(&why.code, &why.message)).into())]),
    )
}

/// Results of known cards for exactly the document that was compiled last, which is the shown one.
pub(in crate::app) fn recorded_runs(ui: &Ui, state: &State) -> Vec<&'static Recorded> {
    let Some(built) = &state.session.built else { return Vec::new() };
    let Ok(problem) = &built.problem else { return Vec::new() };
    let density = state.session.current_stats().and_then(|c| c.result.as_ref().ok()).map(|stats| stats.density);
    let memory = app::widgets::id("recorded runs");
    type Known = ((u64, u64, Option<u64>), Vec<&'static Recorded>);
    let wanted = (built.number, built.revision, density.map(f64::to_bits));
    if let Some(known) = ui.data(|d| d.get_temp::<Known>(memory)).filter(|k| k.0 == wanted) {
        return known.1;
    }
    // looking a document up means writing it out: once a revision, and when its cells are counted, but not while every frame of a
    // stroke brings another
    if state.session.is_behind(state.revision) {
        return Vec::new();
    }
    let runs = of_problem(&built.document, problem.spec(), density);
    ui.data_mut(|d| d.insert_temp::<Known>(memory, (wanted, runs.clone())));
    runs
}

/// The same shown paler than a race, and said to be recorded. Returns whether there is any.
fn recorded(ui: &mut Ui, state: &State) -> bool {
    let runs = recorded_runs(ui, state);
    let problem = state.session.built.as_ref().and_then(|built| built.problem.as_ref().ok());
    for run in &runs {
        ui.add_space(8.0);
        ui.horizontal_wrapped(|ui| {
            let from = run.provenance();
            ui.label(RichText::new(origins::brief(ui, &from)).strong());
            let rest = origins::rest(ui, &from);
            ui.weak(match run.report.gradients.is_empty() {
                true => say_with(ui, "race-forward-only", &[("from", rest.into())]),
                false => rest,
            });
            environment(ui, &run.report);
        });
        ui.push_id(&run.report.device_name, |ui| {
            let of = problem.map(|problem| roof::Run { problem: problem.spec(), report: &run.report });
            lines::show(ui, &lines(&run.report.backends, Some(&run.report)), of, true);
            gradients::show(ui, &run.report, true);
        });
    }
    !runs.is_empty()
}

fn header(ui: &mut Ui, state: &State, race: &Race, actions: &mut Actions) {
    ui.horizontal_wrapped(|ui| {
        let colours = palette(ui.visuals());
        if race.stale {
            ui.label(RichText::new(say(ui, "race-stale")).strong().color(colours.warning))
                .on_hover_text(say(ui, "race-stale.tip"));
            let button = egui::Button::new(say(ui, "race-again"));
            let why = cannot_run(state);
            if ui.add_enabled(state.can(Command::Run) && why.is_none(), button).clicked() {
                actions.command(Command::Run);
            }
            if let Some(why) = why {
                ui.colored_label(colours.error, why);
            }
        }
        if let Some(copy) = &race.copy {
            let words =
                say_with(ui, "race-raced-copy", &[("copy", (&*copy.words).into()), ("whole", (&*copy.of).into())]);
            ui.label(RichText::new(say(ui, "race-smaller-copy")).strong().color(colours.warning)).on_hover_text(words);
            ui.weak(say_with(ui, "race-copy-not", &[("copy", (&*copy.words).into()), ("whole", (&*copy.of).into())]));
            command_button(ui, Command::RunWhole, state.can(Command::RunWhole), actions);
        }
        if let Some((path, _)) = &race.file {
            ui.label(RichText::new(say(ui, "race-recorded")).strong()).on_hover_text(path.display().to_string());
        }
        match &race.report {
            Some(report) => {
                ui.strong(&report.device_name);
                ui.weak(say_with(
                    ui,
                    "race-of-cells",
                    &[("share", percent(report.work.density).into()), ("flop", flops(report.work.flop, "FLOP").into())],
                ));
                command_button(ui, Command::SaveRun, true, actions);
                environment(ui, report);
                racers::passes(ui, state, actions);
            }
            None if state.own_run().is_some() => racing(ui, state, actions),
            None => {
                ui.colored_label(colours.warning, say(ui, "race-stopped"));
            }
        }
    });
}

/// How far the race is, when it will be over, and how to stop it.
fn racing(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(running) = state.session.running() else { return };
    let words = left::doing_left(ui, running);
    if running.step.fraction > 0.0 {
        ui.add(egui::ProgressBar::new(running.step.fraction).desired_width(120.0).show_percentage());
    } else {
        ui.spinner();
    }
    ui.label(words);
    command_button(ui, Command::Cancel, true, actions);
}

fn environment(ui: &mut Ui, report: &RunReport) {
    ui.label(RichText::new(say(ui, "race-environment")).weak().underline()).on_hover_ui(|ui| {
        for (name, value) in report.conditions() {
            ui.label(format!("{name}: {value}"));
        }
        if let Some(card) = &report.card {
            ui.label(say_with(ui, "race-before-timing", &[("card", card.start.to_string().into())]));
            ui.label(say_with(ui, "race-after-timing", &[("card", card.end.to_string().into())]));
        }
    });
}
