//! Layers of some heads, the difference to an earlier state, and numbers over the canvas, by a user's actions.
//!
//! Invariant: as in `tests`. The run itself needs the program and is tested with it.

use super::canvas::Picture;
use super::state::State;
use super::tests::*;
use crate::document::edit::Edit;
use crate::document::heads::Heads;
use crate::document::model::{ArgValue, Document, MaskContent};
use crate::ir::cell::{Cell, eval};
use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;

/// Whether a cell is kept for a head.
fn keeps(window: &Window, h: i64, [q_idx, kv_idx]: [i64; 2]) -> bool {
    let built = state(window).session.built.clone().expect("compiled");
    built.compiled.mask.as_ref().is_none_or(|mask| eval(mask, &Cell { h, q_idx, kv_idx, ..Cell::default() }).as_bool())
}

#[test]
fn what_is_painted_for_picked_heads_leaves_the_others_alone() {
    let mut window = window(None);
    assert!(window.query_by_label("head 3").is_none(), "all heads are alike: there is no strip");
    click(&mut window, "for all heads");
    click(&mut window, "the first half, 0-15");
    assert_eq!(state(&window).focus.picked, Heads::of(0..16));
    assert!(window.query_by_label("head 3").is_some(), "the strip shows who is picked");
    window.key_press(Key::R);
    window.run_steps(2);
    drag(&mut window, &[(0.7, 0.2), (0.75, 0.3), (0.8, 0.3)]);
    let layer = state(&window).document.layers.last().expect("a rectangle").clone();
    let MaskContent::Rectangle { q, kv } = layer.content else { panic!("{layer:?}") };
    assert_eq!(layer.heads, Heads::of(0..16));
    let cell = [(q[0] + q[1]) as i64 / 2, (kv[0] + kv[1]) as i64 / 2];
    assert_eq!([0, 15, 16, 31].map(|h| keeps(&window, h, cell)), [true, true, false, false]);
    // a click shows a head, Ctrl and a click takes it in
    click(&mut window, "head 4");
    assert_eq!((state(&window).focus.h, state(&window).focus.picked.clone()), (4, Heads::of(0..16)));
    let at = window.get_by_label("head 4").rect().center();
    window.hover_at(at);
    window.event_modifiers(
        egui::Event::PointerButton {
            pos: at,
            button: egui::PointerButton::Primary,
            pressed: true,
            modifiers: Modifiers::COMMAND,
        },
        Modifiers::COMMAND,
    );
    window.event_modifiers(
        egui::Event::PointerButton {
            pos: at,
            button: egui::PointerButton::Primary,
            pressed: false,
            modifiers: Modifiers::COMMAND,
        },
        Modifiers::COMMAND,
    );
    window.run_steps(3);
    assert_eq!(state(&window).focus.picked.as_ref().map(Heads::to_string).as_deref(), Some("0-3, 5-15"));
    // another document is for all heads again
    command(&mut window, Key::N);
    assert_eq!(state(&window).focus.picked, None);
}

#[test]
fn a_layer_is_given_to_some_heads_and_back_to_all() {
    let mut window = window(None);
    click(&mut window, "all heads");
    click(&mut window, "the second half, 16-31");
    settle(&mut window);
    assert_eq!(state(&window).document.layers[0].heads, Heads::of(16..32));
    assert!(keeps(&window, 0, [0, 8000]) && !keeps(&window, 16, [0, 8000]));
    command(&mut window, Key::Z);
    settle(&mut window);
    assert_eq!(state(&window).document, super::state::first_document());
}

#[test]
fn a_mask_is_compared_with_what_it_was() {
    let mut window = window(None);
    let both = Modifiers::COMMAND.plus(Modifiers::SHIFT);
    assert!(window.query_by_label("Difference").is_none());
    window.key_press_modifiers(both, Key::D);
    window.run_steps(3);
    window.key_press(Key::R);
    window.run_steps(2);
    drag(&mut window, &[(0.7, 0.1), (0.75, 0.2), (0.8, 0.2)]);
    click(&mut window, "Difference");
    assert_eq!(state(&window).focus.picture, Picture::Difference);
    assert!(window.query_by_label_contains("against Sliding window: kept 11.7% then").is_some());
    step_until(&mut window, "the difference is drawn", |state| state.session.canvas.settled());
    assert_eq!(state(&window).session.canvas.failure(), None);
    // it stays while another document of these lengths is open
    command(&mut window, Key::N);
    settle(&mut window);
    assert!(state(&window).session.compared.is_some() && window.query_by_label("Difference").is_some());
}

/// The first document with 64 tokens and this window.
fn short(window: i64) -> Document {
    let mut document = super::state::first_document();
    document.axes.q.segments[0].grid = vec![64];
    let MaskContent::Pattern(code) = &mut document.layers[0].content else { panic!("a pattern") };
    code.args.insert("window".into(), ArgValue::Int(window));
    document
}

/// A window with 10 keys compared with one with 8: the list says where, and a cell of it leads there.
#[test]
fn the_cells_that_differ_are_listed_and_lead_to_their_place() {
    let mut window = window(None);
    window.state_mut().state.edit(Edit::Replace(Box::new(short(8))));
    settle(&mut window);
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::D);
    window.run_steps(3);
    window.state_mut().state.edit(Edit::Replace(Box::new(short(10))));
    settle(&mut window);
    assert!(window.query_by_label_contains("cells differ").is_none(), "it is counted where it is shown");
    click(&mut window, "Difference");
    let counted =
        |state: &State| state.session.differing_of().is_some_and(|of| state.session.differing.of(of).is_some());
    step_until(&mut window, "the cells are counted", counted);
    window.run_steps(3);
    // rows from the 8th on see one key more, from the 9th on two
    let all = (64 - 8) + (64 - 9);
    assert!(window.query_by_label_contains(&format!("{all} cells differ (2.7%)")).is_some());
    assert!(window.query_by_label_contains(&format!("and {} more", all - 40)).is_some());
    click(&mut window, "q 8, kv 0");
    assert_eq!((state(&window).focus.pinned, state(&window).focus.is_pinned), ([8, 0], true));
    // the same mask again: nothing differs
    window.state_mut().state.edit(Edit::Replace(Box::new(short(8))));
    settle(&mut window);
    step_until(&mut window, "the cells are counted again", counted);
    window.run_steps(3);
    assert!(window.query_by_label_contains("keeps the same cells as").is_some());
}

#[test]
fn numbers_without_a_race_say_what_is_missing() {
    let mut window = window(None);
    click(&mut window, "Probabilities");
    assert_eq!(state(&window).focus.picture, Picture::Map);
    let wanted = super::numbers::wanted(state(&window), [0.0, 8192.0, 0.0, 8192.0]);
    assert!(wanted.data.is_none() && wanted.ask.is_none() && wanted.words.starts_with("Run first"), "{wanted:?}");
}

#[test]
fn several_documents_are_open_each_with_its_own_undo() {
    let mut window = window(None);
    let first = state(&window).document.clone();
    window.key_press(Key::R);
    window.run_steps(2);
    drag(&mut window, &[(0.7, 0.2), (0.75, 0.3), (0.8, 0.3)]);
    let drawn = state(&window).document.clone();
    command(&mut window, Key::T);
    settle(&mut window);
    assert_eq!(state(&window).document.name, "Untitled");
    assert!(!state(&window).is_dirty() && state(&window).history.undo_title().is_none());
    command(&mut window, Key::T);
    settle(&mut window);
    assert_eq!((state(&window).parked.len(), state(&window).tab), (2, 2));
    // back to the first by its tab: its change and its undo are there
    click(&mut window, "Sliding window *");
    settle(&mut window);
    assert_eq!((state(&window).document.clone(), state(&window).tab), (drawn.clone(), 0));
    assert!(keeps(&window, 0, [8000, 8000]), "it is compiled anew");
    command(&mut window, Key::Z);
    settle(&mut window);
    assert_eq!(state(&window).document, first);
    command(&mut window, Key::PageDown);
    command(&mut window, Key::PageDown);
    command(&mut window, Key::PageDown);
    settle(&mut window);
    assert_eq!((state(&window).document.clone(), state(&window).tab), (first.clone(), 0), "around the end");
    command(&mut window, Key::W);
    command(&mut window, Key::W);
    settle(&mut window);
    assert_eq!((state(&window).parked.len(), state(&window).document.name.as_str()), (0, "Untitled"));
    command(&mut window, Key::W);
    assert_eq!(state(&window).document.name, "Untitled", "the last one stays");
}

#[test]
fn heads_that_are_picked_are_shown_and_alt_with_the_wheel_is_the_brush() {
    let mut window = window(None);
    click(&mut window, "for all heads");
    click(&mut window, "the second half, 16-31");
    assert_eq!(state(&window).focus.h, 16, "what is painted is seen");
    window.key_press(Key::B);
    window.run_steps(2);
    let width = |window: &mut Window| {
        drag(window, &[(0.5, 0.5), (0.5, 0.5)]);
        let (_, painted) = state(window).painted().expect("a painted layer");
        let wide = painted.strokes.last().and_then(|stroke| stroke.rects.first()).map(|r| r[1] - r[0]);
        wide.expect("a rectangle")
    };
    let narrow = width(&mut window);
    let canvas = window.get_by_label("Mask canvas").rect();
    window.hover_at(canvas.center());
    for _ in 0..8 {
        let wheel = egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Line,
            delta: egui::vec2(0.0, 1.0),
            phase: egui::TouchPhase::Move,
            modifiers: Modifiers::ALT,
            source: egui::MouseWheelSource::Wheel,
        };
        window.event_modifiers(wheel, Modifiers::ALT);
        window.run_steps(1);
    }
    assert!(window.query_by_label_contains("1 px = ").is_some(), "the picture was not zoomed to cells");
    assert!(width(&mut window) > narrow);
}
