//! Hands on the canvas and in dialogs: keys under the pointer, clicks that draw nothing, areas, names that are typed over.
//!
//! Invariant: every click and key here is a user's.

use super::canvas::Tool;
use super::tests::{Window, click, command, drag, settle, state, step_until, window};
use crate::document::model::MaskContent;
use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;

fn layers(window: &Window) -> usize {
    state(window).document.layers.len()
}

/// A key with the pointer over the picture.
fn press_over_the_canvas(window: &mut Window, key: Key) {
    let canvas = window.get_by_label("Mask canvas").rect();
    window.hover_at(canvas.center());
    window.run_steps(3);
    window.key_press(key);
    window.run_steps(3);
}

#[test]
fn tools_are_taken_under_the_pointer_and_a_click_draws_no_shape() {
    let mut window = window(None);
    // a button has the keyboard, the pointer is over the picture
    click(&mut window, "Blocks");
    press_over_the_canvas(&mut window, Key::D);
    assert_eq!(state(&window).focus.tool, Tool::Band);
    let before = layers(&window);
    drag(&mut window, &[(0.5, 0.5)]);
    assert_eq!(layers(&window), before, "a click is no band");
    drag(&mut window, &[(0.5, 0.5), (0.6, 0.5)]);
    assert_eq!(layers(&window), before + 1);
    assert!(matches!(state(&window).document.layers[before].content, MaskContent::Band { .. }));
}

#[test]
fn an_area_tells_its_figures_and_follows_the_design() {
    let mut window = window(None);
    press_over_the_canvas(&mut window, Key::A);
    assert_eq!(state(&window).focus.tool, Tool::Area);
    let before = layers(&window);
    drag(&mut window, &[(0.3, 0.3), (0.5, 0.6)]);
    assert_eq!(layers(&window), before, "nothing is drawn");
    let counted = |s: &super::state::State| {
        s.focus.area.as_ref().is_some_and(|a| a.figures.as_ref().is_some_and(|f| f.of == s.area_of()))
    };
    step_until(&mut window, "the area is counted", counted);
    window.run_steps(2);
    assert!(window.query_by_label_contains("of the computed cells are dropped").is_some());
    let first = state(&window).focus.area.clone().and_then(|a| a.figures).expect("figures");
    // another mask has other figures
    super::tests::by_palette(&mut window, &["Add a band"]);
    step_until(&mut window, "it is counted again", counted);
    let second = state(&window).focus.area.clone().and_then(|a| a.figures).expect("figures");
    assert_ne!(first.of, second.of);
    click(&mut window, "Forget the area");
    settle(&mut window);
    assert!(state(&window).focus.area.is_none());
}

#[test]
fn save_selects_the_name_so_that_typing_replaces_it_alone() {
    let mut window = window(None);
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::S);
    window.run_steps(3);
    let path = |window: &Window| match &state(window).dialog {
        Some(super::drafts::Dialog::Path(dialog)) => dialog.text.clone(),
        other => panic!("{other:?}"),
    };
    let before = path(&window);
    let folder = &before[..before.rfind('/').expect("a folder") + 1];
    window.event(egui::Event::Text("mine".into()));
    window.run_steps(3);
    assert_eq!(path(&window), format!("{folder}mine.json"));
    // the next dialog has a caret of its own, at its end
    window.key_press(Key::Escape);
    window.run_steps(3);
    command(&mut window, Key::O);
    window.event(egui::Event::Text("abc".into()));
    window.run_steps(3);
    assert_eq!(path(&window), "abc");
}
