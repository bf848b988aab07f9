//! The Quality page driven as a user drives it, on a capture of a small trained model.
//!
//! Invariant: what the page says is held against the same measures made without it. Only compiled for tests.

use super::work::{Keeper, Question};
use crate::app::tests::{click, fill, settle, state, step_until, window};
use crate::app::workspace::Workspace;
use crate::base::{BlockSize, Control};
use crate::document::compile::{BuiltIn, compile};
use crate::document::edit::Edit;
use crate::document::from_document;
use crate::document::model::{Axes, Axis, Document, Settings};
use crate::quality::suggest::Form;
use crate::service::lab;
use egui_kittest::kittest::Queryable;
use std::path::PathBuf;

fn capture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/captures/lm.safetensors")
}

/// A causal window over the capture's tokens.
fn document(window: usize) -> Document {
    let mut settings = Settings::new(4, 16);
    settings.block_size = BlockSize::square(32);
    let mut made = Document::new("lab", Axes::same(Axis::tokens(512)), settings);
    let form = Form::Window { back: window, ahead: 0, sinks: 4, causal: true };
    made.layers = lab::layers("window", &form, made.axes.lengths().unwrap(), 1).unwrap();
    made
}

fn question(revision: u64, document: &Document) -> Question {
    let problem = from_document(document, &compile(document, &BuiltIn)).unwrap();
    Question { path: capture(), call: None, problem: Some((revision, problem)), head: None, error: true, mass: None }
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
    assert!(fresh.error.is_some() && fresh.lost.len() == 256 && fresh.lengths == [512, 512]);
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
    let wait = |window: &mut crate::app::tests::Window, what: &str| {
        for _ in 0..2000 {
            window.run_steps(1);
            if window.query_by_label(what).is_some() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("never: {what}");
    };
    wait(&mut window, "Head 2");
    assert!(window.query_by_label("Mass kept by row").is_some());
    click(&mut window, "Suggest");
    wait(&mut window, "Lost mass against blocks");
    let before = state(&window).document.clone();
    window.get_all_by_label("Take").next().expect("a candidate").scroll_to_me();
    window.run_steps(4);
    window.get_all_by_label("Take").next().expect("a candidate").click();
    window.run_steps(3);
    step_until(&mut window, "taken", |state| state.document.layers.len() > before.layers.len());
    assert!(!state(&window).document.layers[0].enabled);
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::Z);
    step_until(&mut window, "undone", |state| state.document == before);
}
