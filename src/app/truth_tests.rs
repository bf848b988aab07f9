//! All shown data belong to the open document: races, maps and recorded numbers, pictures and costs after an error.
//!
//! Invariant: results are passed in like the worker's replies; no worker is needed.

use super::act::{self, jobs};
use super::action::Action;
use super::drafts::Dialog;
use super::races::{Race, SmallerCopy};
use super::session::{JobFor, JobKind};
use super::state::State;
use super::tests::{Window, click, command, press_below, settle, state, step_until, window};
use super::widgets::percent;
use super::workspace::Workspace;
use crate::base::{BackendName, Diagnostic};
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::*;
use crate::problem::facts::Busy;
use crate::problem::result::{GradientError, GradientOutcome, GradientReport};
use crate::tasks::plan;
use crate::tasks::recorded;
use crate::tasks::run_file::{CopyOf, RunFile};
use crate::worker::jobs::News;
use crate::worker::protocol::{MapKind, MapRequest};
use egui::Key;
use egui_kittest::kittest::{NodeT, Queryable};
use std::sync::Arc;

fn preset(name: &str) -> Document {
    library::preset(name).unwrap().document().unwrap()
}

fn open(window: &mut Window, name: &str) {
    act::act(&mut window.state_mut().state, Action::OpenPreset(name.into()));
    settle(window);
}

/// A race of the open document, as if it had just begun.
fn begin(state: &mut State) -> u64 {
    let built = state.session.built.clone().unwrap();
    let problem = built.problem.as_ref().unwrap();
    let request = plan::run_request(problem, &built.document.settings, crate::base::Device::Cpu);
    let id = state.session.races.next();
    state.session.race = Some(Race {
        id,
        of: built.problem.as_ref().ok().cloned(),
        whole: Some(built.clone()),
        request: Some((request, built)),
        copy: None,
        reports: Vec::new(),
        report: None,
        stale: false,
        file: None,
    });
    state.session.on_worker = Some(id);
    id
}

/// The worker's answer to that: the numbers of a recorded run.
fn end(state: &mut State, id: u64) {
    let report = recorded::of(&preset("alibi"))[0].report.clone();
    jobs::ended(state, JobFor::Run(id), News::Ran { report: Box::new(report), payloads: Vec::new() });
}

fn edit_window(window: &mut Window, value: ArgValue) {
    let code = CodeRef { name: "sliding_window".into(), args: [("window".to_string(), value)].into() };
    let edit = Edit::SetContent(1, Box::new(MaskContent::Pattern(code)));
    window.state_mut().state.edit(edit);
    settle(window);
}

#[test]
fn a_race_belongs_to_the_document_that_was_raced() {
    let mut window = window(None);
    command(&mut window, Key::Num2);
    // two cards, the best of them in the headline, and the roofline's source
    assert_eq!(window.query_all_by_label_contains("recorded on").count(), 4);
    let id = begin(&mut window.state_mut().state);
    end(&mut window.state_mut().state, id);
    window.run_steps(3);
    // what was recorded elsewhere stands below it, in a section that says so; the headline is of the race
    assert_eq!(window.query_all_by_label("environment").count(), 3);
    assert!(window.query_by_label("Recorded on known cards").is_some());
    assert_eq!(window.query_all_by_label_contains("recorded on").count(), 2);
    // another document: its own recorded numbers, and nothing of the race
    open(&mut window, "alibi");
    assert!(state(&window).session.race.is_none());
    assert_eq!(window.query_all_by_label_contains("recorded on").count(), 4);
    assert!(window.query_by_label("stale").is_none());
    // and back in its tab: the race is there again
    command(&mut window, Key::PageUp);
    settle(&mut window);
    assert_eq!(state(&window).session.race.as_ref().map(|r| (r.id, r.stale)), Some((id, false)));
}

#[test]
fn the_headline_tells_rows_without_a_key_and_a_mask_that_keeps_nothing() {
    let mut window = window(None);
    let told = |window: &Window| window.query_by_label_contains("rows keep no key").is_some();
    assert!(!told(&window));
    let half = Edit::SetContent(1, Box::new(MaskContent::Rectangle { q: [0, 2048], kv: [0, 64] }));
    window.state_mut().state.edit(half);
    settle(&mut window);
    step_until(&mut window, "it is counted", |s| s.session.current_stats().is_some());
    window.run_steps(2);
    assert!(window.query_by_label_contains("6\u{202f}144 rows keep no key").is_some());
    let nothing = Edit::SetContent(1, Box::new(MaskContent::Band { lo: Some(9000), hi: Some(9001) }));
    window.state_mut().state.edit(nothing);
    settle(&mut window);
    step_until(&mut window, "it is counted", |s| s.session.current_stats().is_some());
    window.run_steps(2);
    assert!(window.query_by_label_contains("no cell is kept: nothing is computed").is_some());
    assert!(window.query_by_label_contains("the same arithmetic").is_none());
}

#[test]
fn what_comes_of_compiling_is_shown() {
    let mut window = window(None);
    window.state_mut().state.view.show(Workspace::Code);
    window.run_steps(2);
    let told = |window: &Window| window.query_by_label_contains("No kernel yet").is_some();
    assert!(!told(&window), "PyTorch is shown first");
    window.state_mut().state.compiles += 1;
    window.run_steps(2);
    assert!(told(&window));
}

#[test]
fn the_headline_says_what_makes_its_ratio_loose() {
    let mut window = window(None);
    let lost = Diagnostic::error("worker-died", "the worker on this machine ended");
    window.state_mut().state.tell(lost);
    let id = begin(&mut window.state_mut().state);
    let mut report = recorded::of(&preset("alibi"))[0].report.clone();
    report.load = Some(Busy { others: 1.5, cores: 2 });
    let news = News::Ran { report: Box::new(report), payloads: Vec::new() };
    jobs::ended(&mut window.state_mut().state, JobFor::Run(id), news);
    window.run_steps(3);
    let card = "x faster, than PyTorch 2.11 FlexAttention; other programs used 1.5 of 2 cores; flex, measured on";
    assert!(window.query_by_label_contains(card).is_some());
    // and a race that ran ends the message about the worker before it
    assert!(state(&window).notices.toasts(9).iter().all(|(_, n)| n.what.code != "worker-died"));
}

#[test]
fn backward_passes_stand_with_their_errors_and_refusals() {
    let mut window = window(None);
    command(&mut window, Key::Num2);
    let id = begin(&mut window.state_mut().state);
    let mut report = recorded::of(&preset("alibi"))[0].report.clone();
    let error = |name: &str, max_abs| GradientError {
        name: name.into(),
        max_abs,
        largest: 1.0,
        allowed: 1e-4,
        ..Default::default()
    };
    let done = |errors, ms: Option<f64>| GradientOutcome::Done {
        kernel: "a kernel".into(),
        errors,
        timing: ms.and_then(|ms| crate::backends::stats::timing(vec![ms])),
        unordered: None,
        memory_bytes: None,
    };
    let why = Diagnostic::error("no-backward", "it has none here").hint("take flex");
    report.gradients = vec![
        GradientReport {
            backend: BackendName::Flex,
            outcome: done(vec![error("dq", 2e-6), error("dk", 7e-6)], Some(4.0)),
        },
        GradientReport { backend: BackendName::Eager, outcome: done(vec![error("dv", 0.5)], None) },
        GradientReport { backend: BackendName::Sdpa, outcome: GradientOutcome::Refused { why } },
    ];
    let news = News::Ran { report: Box::new(report), payloads: Vec::new() };
    jobs::ended(&mut window.state_mut().state, JobFor::Run(id), news);
    window.run_steps(3);
    assert!(window.query_all_by_label("Backward pass").count() > 0 && window.query_by_label("dk 7.0e-6 ok").is_some());
    assert!(window.query_by_label_contains("wrong: dv: error 5.0e-1").is_some());
    assert!(window.query_by_label_contains("sdpa: backward refused: it has none here (take flex)").is_some());
    assert!(window.query_all_by_label("refused").count() > 0);
    act::act(&mut window.state_mut().state, Action::SetBackward(true));
    assert!(state(&window).view.backward);
}

#[test]
fn only_the_users_own_pytorch_is_asked_for_its_gradients() {
    let mut window = window(None);
    open(&mut window, "tree_decoding");
    command(&mut window, Key::Num2);
    window.run_steps(3);
    assert!(window.query_by_label("backward pass too").is_some(), "the switch is in sight");
    let ticked = state(&window).document.settings.backends.clone();
    act::act(&mut window.state_mut().state, Action::CheckOwnGradients);
    // the next frame would tell that no worker runs here
    let (request, _) = state(&window).session.race.as_ref().and_then(|race| race.request.clone()).expect("a race");
    assert_eq!(request.backends, super::races::OWN);
    assert!(request.gradients.is_some_and(|asked| asked.rounds == state(&window).view.rounds));
    assert_eq!(state(&window).document.settings.backends, ticked);
    assert!(!state(&window).view.backward);
}

#[test]
fn two_races_stand_side_by_side() {
    let mut window = window(None);
    for _ in 0..2 {
        let id = begin(&mut window.state_mut().state);
        end(&mut window.state_mut().state, id);
        window.run_steps(2);
    }
    command(&mut window, Key::Num2);
    press_below(&mut window, "Races so far (2)");
    window.run_steps(6);
    // two of one name are told apart by what they keep, when and where they ran, without a hover
    let past = state(&window).session.races.past();
    let [device, kept] =
        [past[0].report.device_name.clone(), format!("keeps {}", percent(past[0].report.work.density))];
    for words in [device, kept] {
        assert!(window.query_all_by_label_contains(&words).count() >= 2, "{words}");
    }
    let ids: Vec<u64> = state(&window).session.races.past().iter().map(|one| one.id).collect();
    for (id, letter) in ids.iter().zip(["A", "B"]) {
        press_below(&mut window, &format!("Race {id} as {letter}"));
    }
    window.run_steps(3);
    assert!(window.query_by_label("A over B").is_some());
    // the same numbers twice are no difference
    assert!(window.query_all_by_label_contains("1.00x, no difference shown").count() >= 2);
}

#[test]
fn a_stale_race_does_not_hide_what_was_recorded_of_the_open_document() {
    let mut window = window(None);
    edit_window(&mut window, ArgValue::Int(512));
    let id = begin(&mut window.state_mut().state);
    end(&mut window.state_mut().state, id);
    edit_window(&mut window, ArgValue::Int(1024));
    assert!(state(&window).session.race.as_ref().unwrap().stale);
    command(&mut window, Key::Num2);
    assert!(window.query_by_label("stale").is_some());
    assert_eq!(window.query_all_by_label_contains("recorded on").count(), 4);
}

/// A stroke makes a document a frame: none of them is written out to look for its runs.
#[test]
fn recorded_runs_are_of_the_shown_document_while_the_next_one_is_compiled() {
    let mut window = window(None);
    command(&mut window, Key::Num2);
    assert_eq!(window.query_all_by_label_contains("recorded on").count(), 4);
    let code = CodeRef { name: "sliding_window".into(), args: [("window".to_string(), ArgValue::Int(512))].into() };
    window.state_mut().state.session.compile.held = true;
    window.state_mut().state.edit(Edit::SetContent(1, Box::new(MaskContent::Pattern(code))));
    window.run_steps(3);
    assert_eq!(window.query_all_by_label_contains("recorded on").count(), 4);
    window.state_mut().state.session.compile.held = false;
    settle(&mut window);
    assert_eq!(window.query_all_by_label_contains("recorded on").count(), 0);
}

#[test]
fn a_race_under_way_reports_to_its_own_document() {
    let mut window = window(None);
    let id = begin(&mut window.state_mut().state);
    open(&mut window, "alibi");
    end(&mut window.state_mut().state, id);
    window.run_steps(2);
    assert!(state(&window).session.race.is_none(), "not shown for another document");
    assert!(window.state_mut().state.session.find_race(id).unwrap().report.is_some());
    command(&mut window, Key::PageUp);
    settle(&mut window);
    assert!(state(&window).session.race.as_ref().unwrap().report.is_some());
}

fn map_of(h: usize) -> MapRequest {
    MapRequest { b: 0, h, q: [0, 4096], kv: [0, 4096], height: 2, width: 2, kind: MapKind::Probabilities }
}

fn answer() -> News {
    News::Mapped { height: 2, width: 2, pixels: vec![0.25; 4] }
}

#[test]
fn a_map_is_the_answer_to_its_own_question() {
    let mut window = window(None);
    let state = &mut window.state_mut().state;
    let first = begin(state);
    // head 1 is requested while head 0 is being computed
    state.session.map_asked = Some((first, map_of(1)));
    jobs::ended(state, JobFor::Map(first, map_of(0)), answer());
    assert_eq!(state.session.map.as_ref().map(|m| m.request.h), Some(0));
    let number = state.session.map.as_ref().unwrap().number;
    // a reply to an earlier race, and one that arrives after another document was opened, are ignored
    let second = begin(state);
    state.session.forget_map();
    jobs::ended(state, JobFor::Map(first, map_of(1)), answer());
    assert!(state.session.map.is_none());
    jobs::ended(state, JobFor::Map(second, map_of(0)), answer());
    assert!(state.session.map.as_ref().unwrap().number > number, "numbers never come again");
    open(&mut window, "alibi");
    let state = &mut window.state_mut().state;
    assert!(state.session.map.is_none());
    jobs::ended(state, JobFor::Map(second, map_of(1)), answer());
    assert!(state.session.map.is_none());
}

#[test]
fn a_map_of_another_head_is_not_drawn_for_the_one_that_is_wanted() {
    let mut window = window(None);
    let id = begin(&mut window.state_mut().state);
    end(&mut window.state_mut().state, id);
    command(&mut window, Key::Num3);
    let whole = MapRequest { height: 512, width: 512, q: [0, 8192], kv: [0, 8192], ..map_of(0) };
    let pixels = vec![0.25; 512 * 512];
    let there = || News::Mapped { height: 512, width: 512, pixels: pixels.clone() };
    jobs::ended(&mut window.state_mut().state, JobFor::Map(id, whole.clone()), there());
    window.run_steps(2);
    assert!(window.query_by_label("Heat map: probability, summed over the pixel of random q and k").is_some());
    // for any message of this window's missing worker, the map of head 0 is not shown for head 1
    act::act(&mut window.state_mut().state, Action::SetHead { b: 0, h: 1 });
    window.run_steps(2);
    assert!(window.query_by_label("Heat map: probability, summed over the pixel of random q and k").is_none());
}

#[test]
fn a_document_with_an_error_keeps_its_last_good_picture_and_has_no_cost() {
    let mut window = window(None);
    let before = state(&window).session.shown.clone().unwrap();
    let picture = state(&window).session.picture;
    edit_window(&mut window, ArgValue::Text("wide".into()));
    let session = &state(&window).session;
    assert!(session.built.as_ref().unwrap().problem.is_err());
    let shown = session.shown.clone().unwrap();
    assert_eq!(shown.before, ["Sliding window"]);
    assert!(shown.built.same_picture(&before.built) && session.picture == picture, "the picture has not changed");
    assert!(session.current_stats().is_none());
    let kept = "Kept: \u{2013} of cells, state before the error in Sliding window";
    assert!(window.query_by_label(kept).is_some());
    assert!(window.query_by_label_contains("% of cells").is_none());
    // Run gives the reason
    command(&mut window, Key::Num2);
    assert!(window.query_all_by_label_contains("cannot run: Sliding window: ").next().is_some());
    command(&mut window, Key::Enter);
    assert!(!state(&window).session.is_racing() && state(&window).session.race.is_none());
    assert_eq!(state(&window).view.aside, Some(super::workspace::Aside::Problems));
    let toasts = state(&window).notices.toasts(9);
    assert!(toasts.iter().any(|(_, n)| n.what.code == "cannot-run" && n.left(0.0).is_some()), "it goes by itself");
    // mended, it is counted again
    command(&mut window, Key::Z);
    settle(&mut window);
    assert!(window.query_by_label_contains("11.7% of cells").is_some());
}

#[test]
fn an_error_by_other_lengths_keeps_the_picture_of_the_old_ones() {
    let mut window = window(None);
    open(&mut window, "packed_documents");
    let before = state(&window).session.shown.clone().unwrap();
    // the documents of the pack no longer fit
    act::act(&mut window.state_mut().state, Action::SetAxes(Axes::same(Axis::tokens(1000))));
    settle(&mut window);
    let session = &state(&window).session;
    assert!(session.built.as_ref().unwrap().problem.is_err(), "{:?}", session.built.as_ref().unwrap().diagnostics());
    let shown = session.shown.clone().unwrap();
    assert!(!shown.before.is_empty() && shown.built.lengths == before.built.lengths);
}

#[test]
fn a_document_that_never_compiled_shows_words_in_place_of_the_rest_of_its_mask() {
    let mut window = window(None);
    let mut broken = preset("sliding_window");
    let MaskContent::Pattern(code) = &mut broken.layers[0].content else { panic!() };
    code.args.insert("window".into(), ArgValue::Text("wide".into()));
    act::replace_document(&mut window.state_mut().state, broken);
    settle(&mut window);
    assert!(state(&window).session.shown.is_none());
    assert!(window.query_by_label("No picture yet: there are errors in Sliding window.").is_some());
    assert!(window.query_by_label_contains("no picture: error in Sliding window").is_some());
    assert!(window.query_by_label_contains("% of cells").is_none());
}

#[test]
fn the_gallery_draws_presets_in_their_own_proportions() {
    let mut window = window(None);
    command(&mut window, Key::G);
    step_until(&mut window, "pictures come", |state| match &state.dialog {
        Some(Dialog::Gallery(gallery)) => gallery.pictures().0 > 4,
        _ => false,
    });
    let Some(Dialog::Gallery(gallery)) = &state(&window).dialog else { panic!() };
    assert_eq!((gallery.pictures().1, super::mishaps::ours().count()), (0, 0));
    // these have fewer tokens than pixels
    let size = |name: &str| super::opening::thumbnail(name, 96).unwrap().size;
    assert_eq!((size("causal"), size("sdxl_cross"), size("tree_decoding")), ([96, 96], [96, 8], [1, 96]));
    assert!(super::opening::thumbnail("no such", 96).is_err());
}

#[test]
fn without_a_score_mod_the_bias_is_words() {
    const NO_SCORE: &str = "No score mod: nothing is added to the scores.";
    let mut window = window(None);
    click(&mut window, "Bias");
    assert!(window.query_by_label(NO_SCORE).is_some());
    open(&mut window, "swin_window");
    assert!(window.query_by_label(NO_SCORE).is_none());
    step_until(&mut window, "the bias is drawn", |state| state.session.canvas.settled());
    assert!(state(&window).session.canvas.failure().is_none());
}

#[test]
fn a_saved_run_of_a_smaller_copy_opens_with_the_whole_document_and_says_what_ran() {
    let home = tempfile::tempdir().unwrap();
    let whole = preset("sliding_window");
    let mut small = whole.clone();
    small.axes = Axes::same(Axis::tokens(1024));
    let recorded = recorded::of(&whole)[0];
    let run = RunFile {
        maskloom_run: crate::tasks::run_file::RUN_VERSION,
        document: small.clone(),
        conditions: recorded.conditions.clone(),
        report: recorded.report.clone(),
        pictures: Vec::new(),
        fingerprint: None,
        copy_of: Some(Box::new(CopyOf { document: whole.clone(), kept: 0.117 })),
    };
    let path = home.path().join("run.json");
    run.save(&path).unwrap();
    assert_eq!(RunFile::open(&path).unwrap(), run);
    let mut window = window(None);
    open(&mut window, "alibi");
    act::act(&mut window.state_mut().state, Action::Open(path));
    step_until(&mut window, "the run is open", |state| state.session.race.is_some());
    settle(&mut window);
    assert_eq!(state(&window).document, whole);
    let race = state(&window).session.race.as_ref().unwrap();
    assert!(!race.is_whole() && !race.stale);
    assert!(window.query_by_label("smaller copy").is_some());
    assert!(window.query_by_label("1024 x 1024 tokens, 32 heads, not 8192 x 8192 tokens, 32 heads").is_some());
    // a race of the whole opens as before, with its sizes
    let opened = |run: &RunFile, window: &mut Window| {
        let path = home.path().join("other.json");
        run.save(&path).unwrap();
        let before = state(window).revision;
        act::act(&mut window.state_mut().state, Action::Open(path));
        step_until(window, "the run is open", |state| state.revision > before && state.session.built.is_some());
    };
    opened(&RunFile { copy_of: None, ..run }, &mut window);
    assert_eq!(state(&window).document, small);
    assert!(window.query_all_by_label_contains("1024 x 1024 tokens, 32 heads").next().is_some());
}

/// The page showed the numbers of the newer race of the same problem.
#[test]
fn a_run_that_was_opened_last_is_shown_before_a_newer_race_of_the_same_problem() {
    let home = tempfile::tempdir().unwrap();
    let document = preset("alibi");
    let recorded = recorded::of(&document)[0];
    let run = RunFile {
        maskloom_run: crate::tasks::run_file::RUN_VERSION,
        document,
        conditions: recorded.conditions.clone(),
        report: recorded.report.clone(),
        pictures: Vec::new(),
        fingerprint: None,
        copy_of: None,
    };
    let path = home.path().join("run.json");
    run.save(&path).unwrap();
    let mut window = window(None);
    open(&mut window, "alibi");
    let id = begin(&mut window.state_mut().state);
    end(&mut window.state_mut().state, id);
    settle(&mut window);
    act::act(&mut window.state_mut().state, Action::Open(path.clone()));
    step_until(&mut window, "the run is open", |s| s.session.race.as_ref().is_some_and(|race| race.id != id));
    settle(&mut window);
    let race = state(&window).session.race.as_ref().unwrap();
    assert_eq!((race.file.as_ref().map(|(file, _)| file), race.stale), (Some(&path), false));
    assert!(race.of.is_some() && race.id != id);
    // each tab shows its own again
    let opened = race.id;
    for (key, shown) in [(Key::PageUp, id), (Key::PageDown, opened)] {
        command(&mut window, key);
        settle(&mut window);
        assert_eq!(state(&window).session.race.as_ref().map(|race| race.id), Some(shown));
    }
}

/// Its card said that it races, and hid its recorded time.
#[test]
fn only_the_tab_that_races_says_so() {
    let mut window = window(None);
    open(&mut window, "alibi");
    // a job of that number that has ended says nothing any more
    let state_of = &mut window.state_mut().state;
    let job = state_of.session.jobs.hello();
    state_of.session.started(JobFor::Hello, job);
    step_until(&mut window, "there is no worker", |s| !s.session.has(JobKind::Hello));
    let id = begin(&mut window.state_mut().state);
    window.state_mut().state.session.started(JobFor::Run(id), job);
    window.run_steps(2);
    let racing = |window: &Window| window.query_all_by_label_contains("Costs: racing").count();
    assert_eq!(racing(&window), 1);
    open(&mut window, "causal");
    window.run_steps(2);
    assert!(state(&window).session.is_racing() && state(&window).own_run().is_none());
    assert_eq!(racing(&window), 0);
    command(&mut window, Key::PageUp);
    settle(&mut window);
    assert_eq!(racing(&window), 1);
}

/// It said so of the open design, which keeps another share.
#[test]
fn a_stale_race_of_a_copy_tells_what_the_design_kept_then() {
    let mut window = window(None);
    command(&mut window, Key::Num2);
    race_a_copy(&mut window);
    window.run_steps(3);
    let told = |window: &Window, words: &str| window.query_all_by_label_contains(words).count();
    let now_and_then = ["the whole design keeps 11.7%", "the whole design kept 11.7% when it was raced"];
    assert_eq!(now_and_then.map(|words| told(&window, words)), [1, 0]);
    edit_window(&mut window, ArgValue::Int(256));
    window.run_steps(3);
    assert!(state(&window).session.race.as_ref().unwrap().stale);
    assert_eq!(now_and_then.map(|words| told(&window, words)), [0, 1]);
}

/// Races a smaller copy of the document.
fn race_a_copy(window: &mut Window) {
    let id = begin(&mut window.state_mut().state);
    let race = window.state_mut().state.session.race.as_mut().unwrap();
    race.copy = Some(Arc::new(SmallerCopy {
        words: "1024 x 1024 tokens, 4 heads".into(),
        of: "8192 x 8192 tokens, 32 heads".into(),
        kept: 0.1177,
        kept_of: 0.1172,
        picture: None,
    }));
    end(&mut window.state_mut().state, id);
}

#[test]
fn the_race_of_a_smaller_copy_leaves_the_estimate() {
    let mut window = window(None);
    edit_window(&mut window, ArgValue::Int(512));
    settle(&mut window);
    let estimate = |window: &Window| {
        let costs = window.query_all_by_label_contains("Costs: \u{2248}").next();
        costs.and_then(|node| node.accesskit_node().label()).expect("an estimate")
    };
    let before = estimate(&window);
    race_a_copy(&mut window);
    window.run_steps(3);
    assert!(!state(&window).session.race.as_ref().unwrap().is_whole());
    assert_eq!(estimate(&window), before);
}

#[test]
fn a_smaller_copy_shows_its_own_picture_and_a_mask_without_one_says_why() {
    let mut window = window(None);
    race_a_copy(&mut window);
    command(&mut window, Key::Num2);
    assert!(window.query_by_label("Picture of the smaller copy").is_some());
    assert!(window.query_by_label("keeps 11.8% of its cells; the whole design keeps 11.7%").is_some());
    // on a cpu: a copy is made off the window's thread, or refused in words with the way out
    open(&mut window, "strided");
    act::act(&mut window.state_mut().state, Action::Command(super::command::Command::Run));
    step_until(&mut window, "there is no copy", |state| state.session.no_copy.is_some());
    window.run_steps(3);
    assert!(window.query_all_by_label_contains("no smaller copy is the same mask").next().is_some());
    assert!(window.query_all_by_label_contains("takes about").next().is_some());
    assert!(state(&window).session.race.is_none());
}

#[test]
fn who_takes_the_design_is_found_for_the_open_document_alone() {
    let mut window = window(None);
    open(&mut window, "alibi");
    command(&mut window, Key::Num2);
    let recorded = window.query_all_by_label("torch:flex").count();
    press_below(&mut window, "Who takes it, forward and backward");
    let found = |state: &State| state.session.verdicts.as_ref().is_some_and(|v| matches!(v.answer, Some(Ok(_))));
    step_until(&mut window, "verdicts", found);
    window.run_steps(3);
    // beside the recorded runs, which name it too
    let asked = || window.query_all_by_label("torch:flex").count() > recorded;
    assert!(asked() && window.query_all_by_label("refuses").count() > 0);
    // another document is looked up again
    open(&mut window, "causal");
    command(&mut window, Key::Num2);
    window.run_steps(2);
    step_until(&mut window, "verdicts", found);
    let state = state(&window);
    let (built, verdicts) = (state.session.built.as_ref().unwrap(), state.session.verdicts.as_ref().unwrap());
    assert_eq!(verdicts.of, [built.number, built.revision]);
    assert_eq!(built.document.name, preset("causal").name);
}
