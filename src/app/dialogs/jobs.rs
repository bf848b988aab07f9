//! The list of jobs that go on without the window, under their machines.
//!
//! Invariant: it asks for the connected machine's list while it is open, at most once in two seconds, and for those of other targets
//! once in half a minute; a job's end and the removal of results are asked
//! for by their names. Must not know how jobs run.

use super::{Action, Actions, Next, title};
use crate::app::command::Command;
use crate::app::connecting::LIMIT;
use crate::app::far_jobs::{JobWish, can_end, is_race};
use crate::app::language::{place, say, say_with};
use crate::app::left;
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::widgets::{command_button, diagnostic_below};
use crate::tasks::steps;
use crate::worker::protocol::detached::{JobInfo, JobState};
use crate::worker::target::{Target, option};
use egui::{ProgressBar, ScrollArea, Ui};
use std::time::Duration;

pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) -> Next {
    let far = &state.session.far;
    let host = state.session.worker.as_ref().map_or_else(|| place(ui, &state.view.target), |info| info.host.clone());
    title(ui, say(ui, "jobs-title"));
    ui.label(say(ui, "jobs-words"));
    ui.add_space(6.0);
    keep_asking(ui, state, actions);
    ScrollArea::vertical().max_height(360.0).show(ui, |ui| {
        let target = &state.view.target;
        let name = if target.is_local() {
            host.clone()
        } else {
            say_with(ui, "jobs-connected", &[("target", target.to_string().into()), ("host", (&*host).into())])
        };
        ui.strong(name);
        match &far.listed {
            None if far.error.is_none() => drop(ui.spinner()),
            None => {}
            Some(list) if list.is_empty() => drop(ui.weak(say(ui, "there-are-none"))),
            Some(list) => list.iter().for_each(|job| row(ui, state, job, actions)),
        }
        far.error.iter().for_each(|why| diagnostic_below(ui, why));
        others(ui, state, actions);
    });
    ui.add_space(8.0);
    let mut next = Next::Stay;
    ui.horizontal(|ui| {
        command_button(ui, Command::Detach, state.can(Command::Detach), actions);
        let over = far.listed.iter().flatten().any(|job| job.own && job.state.is_over());
        let clear = ui.add_enabled(over, egui::Button::new(say(ui, "jobs-remove")));
        if clear.on_hover_text(say(ui, "jobs-remove.tip")).clicked() {
            actions.push(Action::Job(JobWish::Clear));
        }
        if ui.button(say(ui, "close")).clicked() {
            next = Next::Close;
        }
    });
    next
}

fn keep_asking(ui: &Ui, state: &State, actions: &mut Actions) {
    match state.session.far.rest() {
        Some(rest) => ui.ctx().request_repaint_after(rest),
        None if state.session.has(JobKind::Detached) => ui.ctx().request_repaint_after(Duration::from_millis(200)),
        None => actions.push(Action::Job(JobWish::List)),
    }
    if state.session.far.others.is_due() {
        actions.push(Action::Job(JobWish::Others));
    }
}

/// Jobs of the targets that this window is not connected to.
fn others(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let others = &state.session.far.others;
    for (target, listed) in &others.listed {
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            let title = place(ui, &Target::new(target));
            ui.strong(&title);
            let words = say(ui, "jobs-connect-tip");
            let button = ui.button(say(ui, "connect-go")).on_hover_text(words).accessible_name(say_with(
                ui,
                "jobs-connect-name",
                &[("title", (&*title).into())],
            ));
            if button.clicked() && state.connecting.is_none() {
                // that dialog shows the waiting and its end
                actions.command(Command::Connect);
                actions.push(Action::Connect { target: Target::new(target), python: None, limit: LIMIT });
            }
        });
        match listed {
            Err(why) => drop(ui.label(say_with(ui, "jobs-silent", &[("why", (&*why.message).into())]))),
            Ok(jobs) if jobs.is_empty() => drop(ui.weak(say(ui, "there-are-none"))),
            Ok(jobs) => jobs.iter().for_each(|job| far_row(ui, target, job)),
        }
    }
    if others.is_waiting() {
        ui.horizontal(|ui| {
            ui.spinner();
            ui.weak(say(ui, "jobs-asking"));
        });
    }
}

/// A job of another machine: what is done with it is a command there.
fn far_row(ui: &mut Ui, target: &str, job: &JobInfo) {
    ui.horizontal(|ui| {
        ui.label(&job.title);
        ui.weak(&job.id);
        let command = format!("maskloom attach {}{}", job.id, option(target));
        if ui.button(say(ui, "quality-copy-command")).on_hover_text(&command).clicked() {
            ui.ctx().copy_text(command);
        }
    });
    state_line(ui, job);
}

fn state_line(ui: &mut Ui, job: &JobInfo) {
    ui.horizontal(|ui| {
        if job.state == JobState::Running {
            ui.add(ProgressBar::new(job.fraction as f32).desired_width(120.0).show_percentage());
        }
        ui.weak(words(ui, job));
    });
    ui.add_space(4.0);
}

fn row(ui: &mut Ui, state: &State, job: &JobInfo, actions: &mut Actions) {
    ui.horizontal(|ui| {
        ui.strong(&job.title);
        ui.weak(&job.id);
        let opens = state.session.far.reading.as_ref().is_some_and(|reading| reading.id == job.id);
        if opens {
            ui.spinner();
        } else if is_race(job)
            && ui
                .button(say(ui, "open"))
                .accessible_name(say_with(ui, "jobs-open-name", &[("title", (&*job.title).into())]))
                .clicked()
        {
            actions.push(Action::Job(JobWish::Open(job.id.clone())));
        }
        if can_end(job)
            && ui
                .button(say(ui, "jobs-end"))
                .accessible_name(say_with(ui, "jobs-end-name", &[("title", (&*job.title).into())]))
                .clicked()
        {
            actions.push(Action::Job(JobWish::Cancel(job.id.clone())));
        }
        if !is_race(job) && job.done > 0 {
            let command = format!("maskloom attach {}{}", job.id, option(&state.view.target.command));
            if ui.button(say(ui, "quality-copy-command")).on_hover_text(&command).clicked() {
                ui.ctx().copy_text(command);
            }
        }
    });
    state_line(ui, job);
}

/// How it is with a job, in one line.
fn words(ui: &Ui, job: &JobInfo) -> String {
    let mut state = match job.state {
        JobState::Running => job.now.clone(),
        over => say(ui, steps::job(over)).to_string(),
    };
    if job.steps > 1 {
        let figures = [("state", state.into()), ("done", job.done.into()), ("steps", job.steps.into())];
        state = say_with(ui, "jobs-of", &figures);
    }
    state = match (job.state, job.left()) {
        (JobState::Running, None) => state,
        (JobState::Running, Some(left)) => {
            say_with(ui, "jobs-left", &[("state", state.into()), ("left", left::words(ui, left).into())])
        }
        _ => {
            let seconds = format!("{:.0}", job.seconds);
            say_with(ui, "jobs-seconds", &[("state", state.into()), ("seconds", seconds.into())])
        }
    };
    if job.own { state } else { say_with(ui, "jobs-another", &[("state", state.into())]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::drafts::Dialog;
    use crate::app::far_jobs::job;
    use crate::app::tests::{click, window};
    use crate::base::Diagnostic;
    use egui_kittest::kittest::Queryable;

    #[test]
    fn jobs_stand_under_their_machines_and_one_that_is_silent_says_why() {
        let mut window = window(None);
        window.state_mut().state.dialog = Some(Dialog::Jobs);
        window.run_steps(3);
        let others = &mut window.state_mut().state.session.far.others;
        let running = JobInfo { fraction: 0.25, seconds: 60.0, ..job("a", JobState::Running) };
        others.put(Some("gpu8".into()), Ok(vec![running]));
        others.put(Some("gpu9".into()), Err(Diagnostic::error("worker-died", "no route to host")));
        window.run_steps(3);
        for text in ["gpu8", "run of a", "gpu9", "not reachable: no route to host"] {
            assert!(window.query_by_label(text).is_some(), "{text}");
        }
        assert!(window.query_by_label_contains("about 3 min left").is_some());
        click(&mut window, "Connect gpu8");
        let state = &window.state().state;
        assert!(matches!(state.dialog, Some(Dialog::Connect(_))));
        assert!(state.connecting.is_some() || state.connect_error.is_some(), "there is no program gpu8 here");
    }
}
