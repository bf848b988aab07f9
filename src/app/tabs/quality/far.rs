//! A capture on the worker's machine: questions go there, measures and pictures come back.
//!
//! Invariant: nothing waits; of the questions about the mask the newest is answered; a capture on a machine that is not connected says
//! so and shows nothing of another. Must not know how measures are drawn.

use super::QualityPage;
use crate::app::action::{Action, Actions};
use crate::app::canvas::heat::HeatData;
use crate::app::language::{place as named, say};
use crate::app::session::JobFor;
use crate::app::state::State;
use crate::app::there::DeskNews;
use crate::base::{Diagnostic, Provenance};
use crate::tasks::lab::page::far::{Client, Heard};
use crate::tasks::lab::page::look::{Answer, Heat, Question};
use crate::tasks::lab::page::studies;
use crate::worker::target::Target;
use crate::worker::transport::Payload;
use egui::Ui;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the pictures.
static PICTURES: AtomicU64 = AtomicU64::new(1);

/// A number that is never given twice.
pub(super) fn next_picture() -> u64 {
    PICTURES.fetch_add(1, Ordering::Relaxed)
}

/// What is asked of the worker's desk.
#[derive(Default)]
pub(super) struct There {
    client: Client,
    /// A study to be asked for.
    pub wished: Option<studies::Question>,
    /// The study that is asked for: a newer question about the mask ends it there, and it is asked for again.
    running: Option<studies::Question>,
    /// Its answer.
    pub studied: Option<studies::Answer>,
    /// The connection that was asked: another one knows nothing of the questions.
    asked_of: Option<Target>,
}

impl QualityPage {
    /// Which machine the path is on, where there are two.
    pub(super) fn place(&mut self, ui: &mut Ui, state: &State) {
        let target = &state.view.target;
        let connected = !target.is_local() && state.session.worker.is_some();
        if !connected && self.far.is_none() {
            return;
        }
        let mut places = vec![None];
        places.extend(connected.then(|| Some(target.clone())));
        if !places.contains(&self.far) {
            places.push(self.far.clone());
        }
        for place in places {
            let name = place.as_ref().map_or(say(ui, "quality-here").into(), |target| named(ui, target));
            let words = say(ui, "quality-machine");
            if ui.selectable_label(self.far == place, name).on_hover_text(words).clicked() && self.far != place {
                let typed = std::mem::take(&mut self.typed);
                *self = QualityPage { far: place, typed, thread: self.thread.take(), ..QualityPage::default() };
            }
        }
    }

    /// Sends the newest question about the mask.
    pub(super) fn ask_there(&mut self, question: Question, state: &mut State) {
        if self.far.as_ref() != Some(&state.view.target) {
            let far = self.far.as_ref().map(Target::to_string).unwrap_or_default();
            let why = Diagnostic::note("capture-elsewhere", format!("the capture is on {far}, which is not connected"));
            let why = why.hint("connect it, or open another capture");
            self.answer = Some(Answer { question, result: Err(why) });
            (self.heats, self.asked) = (None, None);
            return;
        }
        self.there.asked_of = self.far.clone();
        let job = state.session.jobs.desk(self.there.client.look(&question));
        state.session.started(JobFor::Desk(Some(Box::new(question.clone()))), job);
        self.asked = Some(question);
    }

    /// Sends the study that is wished, or the one that a question about the mask ended, once nothing else is asked.
    pub(super) fn study_there(&mut self, state: &mut State) {
        let Some(study) = self.there.wished.take() else { return };
        if self.far.as_ref() != Some(&state.view.target) {
            return;
        }
        let Some(path) = self.path.clone() else { return };
        let problem = self.asked.as_ref().and_then(|asked| asked.problem.as_ref()).map(|(_, problem)| problem);
        let job = state.session.jobs.desk(Client::study(&path, problem, &study));
        state.session.started(JobFor::Desk(None), job);
        self.there.running = Some(study);
    }

    /// No study is wished any more: the next question about the mask ends it there.
    pub(super) fn stop_there(&mut self) {
        (self.there.wished, self.there.running) = (None, None);
        if self.far.is_some() {
            self.asked = None;
        }
    }

    /// Takes what the desk has said. Gives the answer about the mask.
    pub(super) fn hear(&mut self, state: &mut State, actions: &mut Actions) -> Option<Answer> {
        let news = std::mem::take(&mut state.session.desk);
        self.far.as_ref()?;
        let mut answer = None;
        for DeskNews { asked, result } in news {
            match (asked, result) {
                (Some(asked), Ok((reported, payloads))) => {
                    let result = match self.there.client.heard(reported, &payloads, &asked) {
                        Ok(Heard::Look(found)) => found.result,
                        Ok(_) => continue,
                        Err(why) => Err(why),
                    };
                    answer = Some(Answer { question: *asked, result });
                }
                (Some(asked), Err(why)) => answer = self.failed(*asked, why, actions).or(answer),
                (None, Ok((reported, payloads))) => self.heard_other(reported, &payloads, actions),
                (None, Err(why)) => self.study_failed(why),
            }
        }
        answer
    }

    /// A question about the mask came to nothing.
    fn failed(&mut self, asked: Question, why: Vec<Diagnostic>, actions: &mut Actions) -> Option<Answer> {
        let why = why.into_iter().next()?;
        let newest = self.asked.as_ref() == Some(&asked);
        if why.code == "cancelled" {
            // a newer one is on its way, unless the whole worker was stopped
            if newest {
                self.asked = None;
            }
            return None;
        }
        if why.code == "not-a-capture" {
            let path = std::mem::take(&mut self.path).unwrap_or_default();
            self.typed = path.display().to_string();
            actions.push(Action::AskTensors(path));
            return None;
        }
        newest.then_some(Answer { question: asked, result: Err(why) })
    }

    fn heard_other(&mut self, reported: Value, payloads: &[Payload], actions: &mut Actions) {
        let Some(question) = self.asked.clone() else { return };
        match self.there.client.heard(reported, payloads, &question) {
            Ok(Heard::Study(found)) => (self.there.running, self.there.studied) = (None, Some(found)),
            Ok(Heard::Tensors(tensors)) => {
                let names = tensors.into_iter().map(|tensor| tensor.0).collect();
                actions.push(Action::TakeTensors(PathBuf::from(self.typed.trim()), names));
            }
            Ok(Heard::Look(_) | Heard::Header(_) | Heard::Call(_)) => {}
            Err(why) => self.failed = Some(why),
        }
    }

    fn study_failed(&mut self, why: Vec<Diagnostic>) {
        let Some(running) = self.there.running.take() else { return };
        let Some(why) = why.into_iter().next() else { return };
        if why.code == "cancelled" && self.study == (running.number, true) {
            self.there.wished = Some(running);
            return;
        }
        self.study.1 = false;
        self.failed = Some(why);
    }
}

/// A picture as the canvas draws it.
pub(super) fn drawn(heat: &Heat, source: Provenance) -> HeatData {
    HeatData {
        rows: heat.rows,
        cols: heat.cols,
        values: heat.values.clone(),
        q: heat.q,
        kv: heat.kv,
        quantity: heat.quantity.clone(),
        source,
        masked_is_zero: false,
        revision: next_picture(),
    }
}
