//! The Quality page driven by a user's actions, on a capture of a small trained model.
//!
//! Invariant: the page's figures are compared with the same measures computed without it. Only compiled for tests.

use crate::app::canvas::Picture;
use crate::app::tests::{click, fill, look_until, settle, state, step_until, window};
use crate::app::workspace::Workspace;
use crate::base::{BlockSize, Control};
use crate::document::compile::{BuiltIn, compile};
use crate::document::edit::Edit;
use crate::document::from_document;
use crate::document::model::{Axes, Axis, Document, Settings};
use crate::quality::loss::Shows;
use crate::quality::suggest::Form;
use crate::tasks::lab;
use crate::tasks::lab::page::look::{Cells, Keeper, Question};
use egui_kittest::kittest::Queryable;
use std::path::PathBuf;

pub(crate) fn capture() -> PathBuf {
    PathBuf::from("../../tests/data/captures/lm.safetensors")
}

/// A causal window over the capture's tokens.
pub(crate) fn document(window: usize) -> Document {
    let mut settings = Settings::new(4, 16);
    settings.block_size = BlockSize::square(32);
    let mut made = Document::new("lab", Axes::same(Axis::tokens(512)), settings);
    let form = Form::Window { back: window, ahead: 0, sinks: 4, causal: true };
    made.layers = lab::layers("window", &form, made.axes.lengths().unwrap(), 1).unwrap();
    made
}

fn question(revision: u64, document: &Document) -> Question {
    let problem = from_document(document, &compile(document, &BuiltIn)).unwrap();
    let problem = Some((revision, problem));
    let (path, shows) = (capture(), Shows::Lost);
    Question { path, call: None, entry: 0, problem, head: None, row: None, shows, cells: None, more: true }
}

#[test]
fn an_edited_mask_gives_the_line_of_a_fresh_one() {
    let mut keeper = Keeper::default();
    let mut lines = Vec::new();
    for window in [40, 200, 90] {
        let answer = keeper.answer(question(1, &document(window)), &Control::new()).unwrap();
        lines.push(answer.result.unwrap().line.unwrap());
    }
    let fresh = Keeper::default().answer(question(1, &document(90)), &Control::new()).unwrap();
    let fresh = fresh.result.unwrap().line.unwrap();
    for (a, b) in lines[2].heads.iter().zip(&fresh.heads) {
        assert!((a.1.mass.mean - b.1.mass.mean).abs() < 1e-6 && a.1.cost == b.1.cost, "{a:?} {b:?}");
    }
    assert!(lines[0].heads[0].1.mass.mean < lines[2].heads[0].1.mass.mean);
    assert!(lines[1].heads[0].1.mass.mean > lines[2].heads[0].1.mass.mean);
    assert!(fresh.error.is_some() && fresh.character.is_some());
    // a window of 90 tokens cuts through blocks of 32
    assert!(fresh.efficiency.is_some_and(|share| 0.5 < share && share < 0.9), "{:?}", fresh.efficiency);
    // the file has block masses alone of the other heads
    assert!(fresh.rest.iter().map(|head| head.number).eq([1, 3]), "{:?}", fresh.rest);
    assert!(fresh.rest.iter().all(|head| 0.0 < head.low && head.low < head.high && head.high < 1.0));
    assert!(fresh.blocks.values.len() == 256 && fresh.lengths == [512, 512]);
    // the picture by cell holds what the rows lose
    let cells = Some(Cells { q: [0, 512], kv: [0, 512], height: 512, width: 512 });
    let asked = Question { cells, head: Some(0), ..question(1, &document(90)) };
    let line = keeper.answer(asked, &Control::new()).unwrap().result.unwrap().line.unwrap();
    for (row, kept) in line.cells.unwrap().values.chunks(512).zip(line.rows.iter()) {
        assert!((row.iter().sum::<f32>() + kept - 1.0).abs() < 1e-4);
    }
    // the missed keys are those of the requested row
    let asked = Question { row: Some(300), head: Some(0), ..question(1, &document(90)) };
    let line = keeper.answer(asked, &Control::new()).unwrap().result.unwrap().line.unwrap();
    assert!(line.row == 300 && line.missed.iter().all(|(kv, _)| *kv >= 4 && 300 - kv > 90));
}

#[test]
fn an_edit_counts_its_mask_once_and_another_question_about_it_not_again() {
    let mut keeper = Keeper::default();
    let builds = || crate::analysis::block_mask::BlockMask::builds_here().len();
    let before = builds();
    let mut ask = |asked: Question| {
        keeper.answer(asked, &Control::new()).unwrap().result.unwrap().line.unwrap();
        builds() - before
    };
    assert_eq!(ask(question(1, &document(40))), 1);
    // the first one's successors are counted where they differ
    let second = question(2, &document(200));
    assert_eq!(ask(second.clone()), 1);
    let cells = Some(Cells { q: [0, 64], kv: [0, 64], height: 64, width: 64 });
    assert_eq!(ask(Question { cells, row: Some(9), ..second }), 1);
}

#[test]
fn a_question_that_was_stopped_leaves_no_half_measures() {
    let mut keeper = Keeper::default();
    keeper.answer(question(1, &document(40)), &Control::new()).unwrap();
    let stopped = Control::new();
    stopped.cancel();
    assert!(keeper.answer(question(2, &document(200)), &stopped).is_none());
    let of = |keeper: &mut Keeper| {
        let line = keeper.answer(question(3, &document(90)), &Control::new()).unwrap().result.unwrap().line.unwrap();
        line.heads.iter().map(|(_, head)| head.mass.mean).collect::<Vec<_>>()
    };
    let (after, fresh) = (of(&mut keeper), of(&mut Keeper::default()));
    assert!(after.iter().zip(&fresh).all(|(a, b)| (a - b).abs() < 1e-6), "{after:?} {fresh:?}");
}

#[test]
fn other_lengths_are_told_and_nothing_is_lost() {
    let mut other = document(40);
    other.axes = Axes::same(Axis::tokens(256));
    let mut keeper = Keeper::default();
    let answer = keeper.answer(question(1, &other), &Control::new()).unwrap();
    let seen = answer.result.unwrap();
    assert_eq!(seen.file.calls.len(), 2);
    assert_eq!(seen.line.err().unwrap().code, "capture-length");
    assert!(keeper.answer(question(2, &document(40)), &Control::new()).unwrap().result.unwrap().line.is_ok());
}

#[test]
fn a_capture_is_opened_judged_and_a_proposal_taken_and_undone() {
    let mut window = window(None);
    window.state_mut().state.edit(Edit::Replace(Box::new(document(24))));
    settle(&mut window);
    window.state_mut().state.view.show(Workspace::Quality);
    window.run_steps(3);
    fill(&mut window, "Capture file", &capture().display().to_string());
    click(&mut window, "Open");
    let wait = |window: &mut app::tests::Window, what: &str| {
        look_until(window, what, |window| window.query_by_label(what).is_some());
    };
    wait(&mut window, "Head 2");
    assert_eq!(state(&window).focus.picture, Picture::Loss);
    step_until(&mut window, "the headline says it", |state| {
        state.session.loss.as_ref().is_some_and(|loss| loss.value.ends_with("of mass"))
    });
    click(&mut window, "Proposals");
    click(&mut window, "Suggest");
    wait(&mut window, "Lost mass against blocks");
    let before = state(&window).document.clone();
    window.get_all_by_label_contains("Take ").next().expect("a candidate").scroll_to_me();
    window.run_steps(4);
    window.get_all_by_label_contains("Take ").next().expect("a candidate").click();
    window.run_steps(3);
    step_until(&mut window, "taken", |state| state.document.layers.len() > before.layers.len());
    assert!(!state(&window).document.layers[0].enabled);
    assert_eq!(state(&window).history.undo_title(), Some(&crate::document::title::Title::Take));
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::Z);
    step_until(&mut window, "undone", |state| state.document == before);
}

#[test]
fn a_capture_of_other_lengths_offers_a_document_and_its_atlas_opens_heads() {
    let mut window = window(None);
    // the user's own work is never replaced without a request
    window.state_mut().state.edit(Edit::Rename("mine".into()));
    settle(&mut window);
    app::act::act(&mut window.state_mut().state, app::action::Action::Open(capture()));
    step_until(&mut window, "told", |state| {
        state.session.loss.as_ref().is_some_and(|loss| loss.detail.contains("tokens"))
    });
    assert!(state(&window).view.is_at(Workspace::Quality));
    window.run_steps(3);
    click(&mut window, "Create a document of this shape");
    step_until(&mut window, "judged", |state| {
        state.session.loss.as_ref().is_some_and(|loss| loss.value == "0% of mass")
    });
    assert_eq!(state(&window).document.layers.len(), 1, "the model is causal");
    click(&mut window, "Atlas");
    let card = "blocks.2.attn.step0 head 2";
    look_until(&mut window, card, |window| window.query_by_label(card).is_some());
    click(&mut window, card);
    step_until(&mut window, "open", |state| {
        state.session.loss.as_ref().is_some_and(|loss| loss.more[0].contains("blocks.2.attn"))
    });
    click(&mut window, "Worst row");
    step_until(&mut window, "pinned", |state| state.focus.is_pinned);
}

#[test]
fn the_first_screen_makes_way_and_leads_to_a_mask_for_each_head() {
    let mut window = window(None);
    settle(&mut window);
    app::act::act(&mut window.state_mut().state, app::action::Action::Open(capture()));
    step_until(&mut window, "a document of its shape", |state| {
        state.session.loss.as_ref().is_some_and(|loss| loss.value == "0% of mass")
    });
    assert_eq!(state(&window).document.axes.lengths().unwrap().q_len, 512);
    settle(&mut window);
    assert_eq!(window.query_all_by_label_contains("This mask loses nothing").count(), 1);
    click(&mut window, "Suggest masks");
    look_until(&mut window, "proposals", |window| window.query_all_by_label_contains("Take ").next().is_some());
    // the second row: heads have different masks
    assert!(window.query_all_by_label_contains(" masks").next().is_some());
    window.get_all_by_label_contains("Take ").nth(1).expect("a candidate").scroll_to_me();
    window.run_steps(4);
    window.get_all_by_label_contains("Take ").nth(1).expect("a candidate").click();
    window.run_steps(3);
    step_until(&mut window, "judged", |state| {
        state.session.loss.as_ref().is_some_and(|loss| loss.value != "0% of mass")
    });
    settle(&mut window);
    // the strip of heads marks the head whose loss is drawn
    let shown = state(&window).focus.h;
    assert!(state(&window).document.layers.iter().any(|layer| layer.heads.is_some()) && [0, 2].contains(&shown));
    window.get_by_label("export it").scroll_to_me();
    window.run_steps(4);
    click(&mut window, "export it");
    click(&mut window, "PyTorch of my own");
    step_until(&mut window, "the files are made", |state| state.export.is_ready());
    window.run_steps(4);
    assert!(window.query_by_label_contains("with a mask for each of 4 heads").is_some());
    // no word about a configuration that is not written
    assert!(window.query_by_label_contains("attention_mechanism` selects").is_none());
}

#[test]
fn without_a_capture_the_page_says_what_to_do_and_the_script_is_saved() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("record.py");
    let mut window = window(None);
    window.state_mut().state.view.show(Workspace::Quality);
    window.run_steps(3);
    for name in ["Open the sample capture", "Open a capture…", "Copy the command", "Regret, drawn"] {
        assert!(window.query_by_label(name).is_some(), "{name}");
    }
    click(&mut window, "Save the capture script…");
    fill(&mut window, "Path", &script.display().to_string());
    click(&mut window, "Save");
    step_until(&mut window, "saved", |state| state.session.recorder.is_some());
    window.run_steps(3);
    assert!(script.exists() && home.path().join("maskloom_capturing/hooks.py").exists());
    let line = format!("python {} --out qkv.safetensors your_script.py", script.display());
    assert!(window.query_by_label(&line).is_some());
}
