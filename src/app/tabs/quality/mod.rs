//! The Quality page: the loss of the document's mask on a capture, and masks that lose less.
//!
//! Invariant: nothing is computed here; a number is shown only with its meaning, and is marked if it belongs to an
//! older mask. Must not know how measures are computed.

mod atlas;
mod far;
mod heads;
mod measures;
mod proposals;
mod routers;
mod start;
#[cfg(test)]
pub(crate) mod tests;

use super::map::{self, MapCache};
use crate::app::action::{Action, Actions};
use crate::app::area;
use crate::app::background::{Latest, Wake};
use crate::app::canvas::heat::HeatData;
use crate::app::canvas::{Loss, Picture};
use crate::app::captured::Captured;
use crate::app::language::{say, say_with, words as words_of};
use crate::app::numbers::{self, Wanted};
use crate::app::origins;
use crate::app::session::LossFigure;
use crate::app::state::State;
use crate::app::there::CapturePlace;
use crate::app::widgets::{diagnostic_below, percent, primary_button};
use crate::app::workspace::Workspace;
use crate::base::Provenance;
use crate::document::edit::Edit;
use crate::document::model::Document;
use crate::quality::loss::Shows;
use crate::tasks::lab;
use crate::tasks::lab::page::look::{Answer, Cells, Heat, Keeper, Line, Question, Seen};
use crate::tasks::lab::page::studies::{self, Outcome, Study};
use crate::words::Words;
use crate::worker::target::Target;
use egui::{ComboBox, ScrollArea, TextEdit, Ui};
use std::path::PathBuf;
use std::sync::Arc;

/// Most cells that are counted one by one for a picture; above it the picture is by block.
const CELLS: usize = 1 << 22;
/// Pixels of a picture by cell, along each side.
const PIXELS: usize = 512;

/// A loss below the rounding of the measures.
const NOTHING: f64 = 2e-6;

/// The page's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Loss,
    Proposals,
    Routers,
    Atlas,
    /// The attention map of the last run.
    Run,
}

/// The page's state between frames.
#[derive(Default)]
pub(crate) struct QualityPage {
    map: MapCache,
    /// None: the attention map if there is a run and no capture, otherwise the loss.
    part: Option<Part>,
    typed: String,
    path: Option<PathBuf>,
    /// The machine that the file is on; None: this one.
    far: Option<Target>,
    /// What is asked there.
    there: far::There,
    call: Option<String>,
    head: Option<usize>,
    /// The document's head when that was chosen.
    focus: usize,
    shows: Shows,
    asked: Option<Question>,
    answer: Option<Answer>,
    /// Its pictures: by block, and by cell.
    heats: Option<(Arc<HeatData>, Option<Arc<HeatData>>)>,
    thread: Option<Latest<Question, Answer>>,
    proposals: proposals::Proposals,
    routers: routers::Routers,
    atlas: atlas::Atlas,
    studies: Option<Latest<studies::Question, studies::Answer>>,
    /// The number of the newest study, and whether it is under way.
    study: (u64, bool),
    /// Why it came to nothing.
    failed: Option<crate::base::Diagnostic>,
}

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, page: &mut QualityPage, actions: &mut Actions) {
    let run = page.path.is_none() && state.session.race.is_some();
    let part = page.part.unwrap_or(if run { Part::Run } else { Part::Loss });
    ui.horizontal_wrapped(|ui| {
        for (one, name, words) in [
            (Part::Loss, say(ui, "quality-loss"), say(ui, "quality-loss.tip")),
            (Part::Proposals, say(ui, "quality-proposals"), say(ui, "quality-proposals.tip")),
            (Part::Routers, say(ui, "quality-routers"), say(ui, "quality-routers.tip")),
            (Part::Atlas, say(ui, "quality-atlas"), say(ui, "quality-atlas.tip")),
            (Part::Run, say(ui, "quality-map"), say(ui, "quality-map.tip")),
        ] {
            if ui.selectable_label(part == one, name).on_hover_text(words).clicked() {
                page.part = Some(one);
            }
        }
    });
    if part == Part::Run {
        return map::show(ui, state, &mut page.map, actions);
    }
    ScrollArea::vertical().id_salt("quality").auto_shrink([false, false]).show(ui, |ui| {
        page.lab(ui, state, part, actions);
    });
}

impl QualityPage {
    fn lab(&mut self, ui: &mut Ui, state: &State, part: Part, actions: &mut Actions) {
        self.file(ui, state);
        if self.path.is_none() {
            return start::show(ui, state, actions);
        }
        let Some(answer) = self.answer.take() else {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label(say(ui, "quality-reading"));
            });
            return;
        };
        match &answer.result {
            Err(why) => diagnostic_below(ui, why),
            Ok(seen) => {
                calls(ui, seen, &mut self.call);
                seen.file.warnings.iter().for_each(|why| diagnostic_below(ui, why));
                self.seen(ui, state, seen, &answer.question, part, actions);
            }
        }
        self.answer = Some(answer);
    }

    fn seen(&mut self, ui: &mut Ui, state: &State, seen: &Seen, of: &Question, part: Part, actions: &mut Actions) {
        let stale = self.asked.as_ref().is_some_and(|asked| !same_line(asked, of));
        let wished = match (part, &seen.line) {
            (Part::Atlas, _) => {
                let picked = self.atlas.show(ui, seen, self.study.1);
                if let Some((call, head)) = picked.1 {
                    self.call = Some(call.clone());
                    let info = seen.capture.find(Some(&call), None, None).map(|c| c.info.full_heads());
                    self.head = info.ok().and_then(|full| full.iter().position(|h| *h == head));
                    self.part = Some(Part::Loss);
                    actions.push(Action::SetPicture(Picture::Loss));
                }
                picked.0
            }
            (_, Err(why)) => {
                cannot(ui, seen, why, actions);
                None
            }
            (Part::Proposals, Ok(line)) => self.proposals.show(ui, state, seen, line, self.study.1, actions),
            (Part::Routers, Ok(_)) => {
                self.routers.show(ui, state, seen, (self.proposals.found(seen), self.study.1), actions)
            }
            (_, Ok(line)) => {
                if let Ok(call) = seen.capture.find(Some(&seen.call), None, None) {
                    let doubts = lab::doubts(&state.document, &seen.capture, call);
                    doubts.iter().for_each(|why| diagnostic_below(ui, why));
                }
                self.loss(ui, state, line, stale, actions)
            }
        };
        if let Some(study) = wished {
            self.look(ui, seen, study);
        }
        if part == Part::Loss {
            return;
        }
        if self.study.1 {
            let progress = self.studies.as_ref().and_then(Latest::progress).unwrap_or(0.0);
            ui.horizontal(|ui| {
                // parts of a study without progress keep that of the previous part
                if (0.01..0.99).contains(&progress) {
                    ui.add(egui::ProgressBar::new(progress as f32).desired_width(160.0));
                } else {
                    ui.spinner();
                }
                if ui.button(say(ui, "quality-stop")).on_hover_text(say(ui, "quality-stop.tip")).clicked() {
                    self.studies.iter().for_each(Latest::stop);
                    self.stop_there();
                    self.study.1 = false;
                }
            });
        }
        if let Some(why) = &self.failed {
            diagnostic_below(ui, why);
        }
    }

    fn loss(&mut self, ui: &mut Ui, state: &State, line: &Line, stale: bool, actions: &mut Actions) -> Option<Study> {
        measures::show(ui, line, stale);
        let wished = ui
            .horizontal_wrapped(|ui| {
                let shown = state.focus.picture == Picture::Loss;
                let name = say(ui, "quality-canvas");
                let words = say(ui, "quality-canvas.tip");
                if !shown && ui.button(name).on_hover_text(words).clicked() {
                    actions.push(Action::SetPicture(Picture::Loss));
                }
                let (lost, all) = (say(ui, "quality-lost.tip"), say(ui, "quality-all.tip"));
                ui.selectable_value(&mut self.shows, Shows::Lost, say(ui, "quality-lost")).on_hover_text(lost);
                ui.selectable_value(&mut self.shows, Shows::All, say(ui, "quality-all")).on_hover_text(all);
                self.search(ui, line)
            })
            .inner;
        measures::row(ui, state, line, actions);
        if let Some(at) = heads::show(ui, line) {
            (self.head, self.focus) = (Some(at), line.heads[at].0);
            if line.heads[at].0 < state.document.settings.heads {
                actions.push(Action::SetHead { b: state.focus.b, h: line.heads[at].0 });
            }
        }
        wished
    }

    /// Leads on to masks that lose little.
    fn search(&mut self, ui: &mut Ui, line: &Line) -> Option<Study> {
        let lost = line.heads.iter().any(|(_, head)| head.mass.mean < 1.0 - NOTHING);
        let words = match lost {
            true => say(ui, "quality-search-less"),
            false => say(ui, "quality-search-nothing"),
        };
        let button = primary_button(ui, say(ui, "quality-suggest"), !self.study.1);
        let clicked = ui.add_enabled(!self.study.1, button).on_hover_text(words).clicked();
        if !lost {
            ui.weak(say(ui, "quality-nothing-lost"));
        }
        clicked.then(|| {
            self.part = Some(Part::Proposals);
            self.proposals.study(line.heads.len())
        })
    }

    fn file(&mut self, ui: &mut Ui, state: &State) {
        ui.horizontal(|ui| {
            self.place(ui, state);
            let field = TextEdit::singleline(&mut self.typed)
                .hint_text("qkv.safetensors")
                .desired_width(ui.available_width() - 70.0);
            let field = ui.add(field).accessible_name(say(ui, "quality-file"));
            let entered = field.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter));
            let words = say(ui, "quality-open.tip");
            if (ui.button(say(ui, "quality-open")).on_hover_text(words).clicked() || entered)
                && !self.typed.trim().is_empty()
            {
                let far = self.far.clone();
                let path =
                    if far.is_some() { self.typed.trim().into() } else { app::drafts::path::expand(self.typed.trim()) };
                self.open(CapturePlace { path, far });
            }
        });
    }

    fn open(&mut self, CapturePlace { path, far }: CapturePlace) {
        self.typed = path.display().to_string();
        (self.path, self.far, self.there) = (Some(path), far, far::There::default());
        (self.call, self.head, self.answer, self.asked, self.heats) = (None, None, None, None, None);
        (self.proposals, self.routers, self.atlas) = Default::default();
        self.failed = None;
        self.part = Some(Part::Loss);
    }

    /// Must be called before each frame: takes answers, and requests data for the shown part, also while another page
    /// is in front.
    pub(crate) fn follow(&mut self, ctx: &egui::Context, state: &mut State, actions: &mut Actions) {
        if let Some(place) = state.session.capture.take() {
            self.open(place);
        }
        let was_known = self.line().is_some();
        let here = self.thread.as_ref().filter(|_| self.far.is_none()).and_then(Latest::poll);
        if let Some(answer) = here.or_else(|| self.hear(state, actions)) {
            self.heats = heats(&answer);
            self.answer = Some(answer);
            self.make_room(state, actions);
        }
        if !was_known && self.line().is_some() && state.view.is_at(Workspace::Quality) {
            state.focus.picture = Picture::Loss;
        }
        self.lead(state);
        let studied = self.studies.as_ref().and_then(Latest::poll).or_else(|| self.there.studied.take());
        if let Some(answer) = studied.filter(|a| a.number == self.study.0) {
            self.study.1 = false;
            match answer.result {
                Err(why) => self.failed = Some(why),
                Ok(Outcome::Atlas(found)) => self.atlas.found = Some(found),
                Ok(Outcome::Routers(found, layers)) => self.routers.routed = Some((answer.call, found, layers)),
                Ok(Outcome::Orders(found)) => self.routers.ordered = Some((answer.call, found)),
                Ok(Outcome::Others(found)) => self.routers.others = Some((answer.call, found)),
                Ok(Outcome::Proposals(found)) => self.proposals.take(answer.call, found),
                Ok(Outcome::Times(found)) => self.proposals.times = found,
            }
        }
        if state.focus.h != self.focus {
            self.focus = state.focus.h;
            let place = |line: &Line| line.heads.iter().position(|(number, _)| *number == state.focus.h);
            self.head = self.line().and_then(place).or(self.head);
        }
        self.ask(ctx, state);
        self.tell(state);
        state.session.loss = self.figure(state.words());
        if state.session.loss.is_none() && state.focus.picture == Picture::Loss {
            state.focus.picture = Picture::default();
        }
    }

    /// The first screen's document, untouched, makes way for one of the capture's shape.
    fn make_room(&self, state: &mut State, actions: &mut Actions) {
        let Some(Ok(seen)) = self.answer.as_ref().map(|answer| &answer.result) else { return };
        let other = seen.line.as_ref().is_err_and(|why| OF_ANOTHER_SHAPE.contains(&&*why.code));
        if !(other && state.is_pristine() && state.view.is_at(Workspace::Quality)) {
            return;
        }
        if let Ok(made) = fitting(seen) {
            actions.push(Action::Edit(Edit::Replace(Box::new(made))));
            state.done(state.words().text("quality-made-room"));
        }
    }

    /// Until a head is chosen, the one with the largest loss is shown, and the rest of the window follows.
    fn lead(&mut self, state: &mut State) {
        if self.head.is_some() || state.focus.h != self.focus || state.focus.picture != Picture::Loss {
            return;
        }
        let shown = self.line().and_then(|line| line.heads.get(line.shown)).map(|(number, _)| *number);
        if let Some(number) = shown.filter(|number| *number < state.document.settings.heads) {
            (state.focus.h, self.focus) = (number, number);
        }
    }

    /// Says to the rest of the window which call of which file is open.
    fn tell(&self, state: &mut State) {
        let seen = self.answer.as_ref().and_then(|answer| Some((&answer.question.path, answer.result.as_ref().ok()?)));
        let captured = &mut state.session.captured;
        let known =
            |captured: &Captured| seen.is_some_and(|(path, s)| captured.path == *path && captured.call == s.call);
        if !captured.as_deref().is_some_and(known) {
            let call = seen.and_then(|(_, seen)| seen.capture.find(Some(&seen.call), None, None).ok());
            *captured = seen.zip(call).map(|((path, seen), call)| Arc::new(Captured::new(path, &seen.capture, call)));
        }
        // heads that stay on another machine have no mass to be summed here
        let line = seen.and_then(|(_, seen)| Some((seen, seen.line.as_ref().ok()?)));
        let line = line.filter(|(_, line)| !line.live.is_empty());
        let heads = &mut state.session.heads;
        let same =
            |(_, line): &(&Seen, &Line)| heads.as_ref().is_some_and(|known| Arc::ptr_eq(&known.heads, &line.live));
        if line.as_ref().is_none_or(|line| !same(line)) {
            *heads = line.map(|(seen, line)| area::Heads {
                number: far::next_picture(),
                heads: line.live.clone(),
                numbers: line.heads.iter().map(|(number, _)| *number).collect(),
                source: seen.capture.provenance(),
            });
        }
    }

    /// The newest measures, if there are any.
    fn line(&self) -> Option<&Line> {
        self.answer.as_ref()?.result.as_ref().ok()?.line.as_ref().ok()
    }

    /// Requests the data to show, if it differs from the last request.
    fn ask(&mut self, ctx: &egui::Context, state: &mut State) {
        let Some(path) = self.path.clone() else { return };
        let built = state.session.built.as_ref();
        let problem = built.and_then(|b| b.problem.as_ref().ok().map(|p| (b.revision, p.clone())));
        let on_canvas = state.focus.picture == Picture::Loss;
        let row = (on_canvas && state.focus.is_pinned).then_some(state.focus.pinned[0]);
        let (call, entry, head, shows) = (self.call.clone(), state.focus.b, self.head, self.shows);
        let mut question = Question { path, call, entry, problem, head, row, shows, cells: None, more: false };
        // pictures by cell follow after the measures, and slower work when the mask stops changing
        if let Some(answer) = self.answer.as_ref().filter(|a| same_line(&a.question, &question)) {
            question.cells = on_canvas.then(|| self.cells(state)).flatten();
            question.more = answer.question.cells == question.cells;
        }
        if self.asked.as_ref() == Some(&question) {
            return self.study_there(state);
        }
        if self.far.is_some() {
            return self.ask_there(question, state);
        }
        let thread = self.thread.get_or_insert_with(|| {
            let context = ctx.clone();
            let wake: Wake = Arc::new(move || context.request_repaint());
            let mut keeper = Keeper::default();
            Latest::new("quality", false, wake, move |question, control| keeper.answer(question, control))
        });
        thread.ask(question.clone());
        self.asked = Some(question);
    }

    /// Starts a study of the open call.
    fn look(&mut self, ui: &Ui, seen: &Seen, study: Study) {
        let heads = seen.line.as_ref().map(|line| line.live.clone()).unwrap_or_default();
        self.study = (self.study.0 + 1, true);
        self.failed = None;
        let question = studies::Question {
            number: self.study.0,
            capture: seen.capture.clone(),
            call: seen.call.clone(),
            entry: seen.entry,
            heads,
            study,
        };
        if self.far.is_some() {
            self.there.wished = Some(question);
            return ui.ctx().request_repaint();
        }
        let context = ui.ctx().clone();
        let thread = self.studies.get_or_insert_with(|| {
            let wake: Wake = Arc::new(move || context.request_repaint());
            let mut keeper = studies::Keeper::default();
            let work = move |question: studies::Question, control: &_| keeper.answer(&question, control);
            Latest::new("mask studies", true, wake, work)
        });
        thread.ask(question);
    }

    /// The visible cells, if they are few enough to be counted one by one.
    fn cells(&self, state: &State) -> Option<Cells> {
        let [q_len, kv_len] = self.line()?.lengths;
        if state.focus.patches {
            let q = state.focus.pinned[0].min(q_len - 1);
            return Some(Cells { q: [q, q + 1], kv: [0, kv_len], height: 1, width: kv_len });
        }
        let seen = state.session.canvas.seen();
        let (q, kv) = (numbers::part([seen[0], seen[1]], q_len), numbers::part([seen[2], seen[3]], kv_len));
        let (rows, columns) = (q[1] - q[0], kv[1] - kv[0]);
        (rows * columns <= CELLS).then(|| Cells { q, kv, height: rows.min(PIXELS), width: columns.min(PIXELS) })
    }

    /// The canvas's picture of the loss.
    pub(crate) fn numbers(&self, state: &State) -> Wanted {
        let said = state.words();
        let Some(answer) = &self.answer else {
            return Wanted { words: said.text("quality-open-first").into(), ..Wanted::default() };
        };
        let line = match answer.result.as_ref().map(|seen| seen.line.as_ref()) {
            Ok(Ok(line)) => line,
            Err(why) | Ok(Err(why)) => {
                return Wanted { words: said.reported(&why.code, &why.message), ..Wanted::default() };
            }
        };
        let shown = state.session.shown.as_ref().and_then(|shown| shown.built.lengths);
        if shown.is_none_or(|l| [l.q_len, l.kv_len] != line.lengths) {
            return Wanted { words: said.text("quality-other-lengths").into(), ..Wanted::default() };
        }
        let stale = self.asked.as_ref().is_some_and(|asked| !same_line(asked, &answer.question));
        let before =
            || said.with("quality-of-before", &[("before", origins::whole_in(said, &Provenance::Before).into())]);
        let words = if stale { before() } else { String::new() };
        let data = self.heats.as_ref().map(|(blocks, cells)| cells.as_ref().unwrap_or(blocks).clone());
        Wanted { data, words, ask: None }
    }

    /// The mass that rows keep, for the strip next to that picture.
    pub(crate) fn rows(&self, state: &State) -> Option<Loss<'_>> {
        let line = self.line().filter(|_| state.focus.picture == Picture::Loss)?;
        let marked = !line.missed.is_empty() || state.focus.is_pinned;
        Some(Loss { rows: &line.rows, row: marked.then_some(line.row), missed: &line.missed })
    }

    /// The text of the headline.
    fn figure(&self, said: &'static Words) -> Option<LossFigure> {
        let answer = self.answer.as_ref()?;
        let seen = match &answer.result {
            Ok(seen) => seen,
            Err(why) => return Some(untold(said, &said.reported(&why.code, &why.message))),
        };
        let line = match &seen.line {
            Ok(line) => line,
            Err(why) => return Some(untold(said, &said.reported(&why.code, &why.message))),
        };
        let stale = self.asked.as_ref().is_some_and(|asked| !same_line(asked, &answer.question));
        let count = line.heads.len();
        let mean = line.heads.iter().map(|(_, h)| h.mass.mean).sum::<f64>() / count as f64;
        if mean.is_nan() {
            return Some(untold(said, line.troubles.as_deref().unwrap_or(said.text("quality-no-row"))));
        }
        let (worst, row) = line
            .heads
            .iter()
            .map(|(n, h)| (n, h.mass.min))
            .fold((&0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a });
        let of = said.with("quality-heads-of", &[("n", count.into()), ("call", (&*seen.call).into())]);
        let value = if stale { "quality-lost-before" } else { "quality-lost-mass" };
        let from = origins::whole_in(said, &seen.capture.provenance());
        Some(LossFigure {
            value: said.with(value, &[("share", lost(mean).into())]),
            detail: said.with("quality-worst-row", &[("share", lost(row).into()), ("head", worst.into())]),
            more: vec![of, said.with("quality-mean", &[("from", from.into())])],
            weak: stale,
        })
    }
}

/// The pictures of an answer, as the canvas draws them.
fn heats(answer: &Answer) -> Option<(Arc<HeatData>, Option<Arc<HeatData>>)> {
    let seen = answer.result.as_ref().ok()?;
    let line = seen.line.as_ref().ok()?;
    let of = |heat: &Heat| Arc::new(far::drawn(heat, seen.capture.provenance()));
    Some((of(&line.blocks), line.cells.as_deref().map(of)))
}

/// The lost mass.
fn lost(kept: f64) -> String {
    small(1.0 - kept)
}

/// A share of a loss. Masses are sums of float32, so that less than their rounding counts as nothing.
fn small(share: f64) -> String {
    percent(if share < NOTHING { 0.0 } else { share })
}

fn untold(said: &'static Words, why: &str) -> LossFigure {
    LossFigure { value: said.text("card-loses-unknown").into(), detail: why.into(), more: Vec::new(), weak: true }
}

/// Whether two questions lead to the same line.
fn same_line(a: &Question, b: &Question) -> bool {
    (&a.path, &a.call, a.entry, &a.problem, a.head, a.row, a.shows)
        == (&b.path, &b.call, b.entry, &b.problem, b.head, b.row, b.shows)
}

/// The reason why there is no line, the available facts, and a document that fits.
fn cannot(ui: &mut Ui, seen: &Seen, why: &crate::base::Diagnostic, actions: &mut Actions) {
    // a capture of another shape is not a mistake: the suggested action comes first
    let words = say(ui, "quality-replace");
    if OF_ANOTHER_SHAPE.contains(&&*why.code) {
        ui.add_space(4.0);
        app::widgets::refusal(ui, why);
        ui.add(egui::Label::new(&*why.message).wrap());
        let button = primary_button(ui, say(ui, "quality-create"), true);
        if ui.add(button).on_hover_text(words).clicked() {
            match fitting(seen) {
                Ok(made) => actions.push(Action::Edit(Edit::Replace(Box::new(made)))),
                Err(why) => diagnostic_below(ui, &why),
            }
        }
        let told = app::widgets::way_out(words_of(ui.ctx()), why);
        ui.weak(why.hint.as_deref().map_or(String::new(), |hint| {
            let hint = told.unwrap_or_else(|| app::hints::words(hint).into_owned());
            say_with(ui, "quality-or", &[("hint", hint.into())])
        }));
    } else {
        diagnostic_below(ui, why);
    }
    for (head, low, high) in &seen.bounds {
        ui.label(say_with(
            ui,
            "quality-bounds",
            &[("head", head.into()), ("low", percent(*low).into()), ("high", percent(*high).into())],
        ))
        .on_hover_text(say(ui, "quality-bounds-tip"));
    }
}

/// The message if the document has other lengths or heads than the capture.
const OF_ANOTHER_SHAPE: [&str; 2] = ["capture-length", "capture-heads"];

/// A document of the shape of the call that is open.
fn fitting(seen: &Seen) -> Result<Document, crate::base::Diagnostic> {
    seen.capture.find(Some(&seen.call), None, None).and_then(|call| lab::blank(&seen.capture, call))
}

fn calls(ui: &mut Ui, seen: &Seen, chosen: &mut Option<String>) {
    let said = words_of(ui.ctx());
    let of = |key: &str| seen.file.calls.iter().find(|(k, _)| k == key);
    let title = |key: &str| of(key).map_or(key.into(), |(_, title)| said.phrase(title));
    ui.horizontal(|ui| {
        ui.weak(&seen.file.name);
        let combo = ComboBox::from_id_salt("call").selected_text(title(&seen.call)).width(260.0);
        let response = combo.show_ui(ui, |ui| {
            for (key, title) in &seen.file.calls {
                if ui.selectable_label(*key == seen.call, said.phrase(title)).clicked() {
                    *chosen = Some(key.clone());
                }
            }
        });
        response.response.accessible_name(say(ui, "quality-call"));
    });
}
