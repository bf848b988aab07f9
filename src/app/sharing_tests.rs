//! What the window hands on, driven as by a user: pictures, code, pages.
//!
//! Invariant: every click and key here is a user's.

use super::tests::{Window, by_palette, click, command, fill, settle, state, step_until, window};
use crate::document::page;
use egui::{Key, Modifiers, OutputCommand, ViewportCommand};
use egui_kittest::kittest::Queryable;

/// Whether the window was asked for its pixels within a few frames.
fn is_photographed(window: &mut Window) -> bool {
    (0..6).any(|_| {
        window.step();
        let viewports = &window.output().viewport_output;
        viewports.values().any(|v| v.commands.iter().any(|c| matches!(c, ViewportCommand::Screenshot(_))))
    })
}

/// The text that was copied within a few frames.
fn copied(window: &mut Window) -> Option<String> {
    (0..6).find_map(|_| {
        window.step();
        window.output().platform_output.commands.iter().find_map(|c| match c {
            OutputCommand::CopyText(text) => Some(text.clone()),
            _ => None,
        })
    })
}

#[test]
fn pictures_and_code_are_copied_from_canvas_page_and_palette() {
    let mut window = window(None);
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::C);
    assert!(is_photographed(&mut window), "by its keys");
    let controls = |window: &Window| window.query_by_label("Zoom in").is_some();
    assert!(!controls(&window), "the picture is of the mask");
    window.run_steps(2);
    assert!(controls(&window));
    click(&mut window, "Race");
    // one Share for the canvas, one for the page
    let menus = window.get_all_by_label("Share").count();
    assert_eq!(menus, 2);
    window.get_all_by_label("Share").next().expect("the page is drawn first").click();
    window.run_steps(2);
    window.get_by_label("Copy the page as a picture").click();
    assert!(is_photographed(&mut window), "from the page");
    window.run_steps(3);
    window.get_all_by_label("Share").last().expect("the canvas").click();
    window.run_steps(2);
    window.get_by_label("Copy as code").click();
    let text = copied(&mut window).expect("copied");
    assert!(text.contains("def mask_mod(b, h, q_idx, kv_idx):"), "{text}");
    by_palette(&mut window, &["Copy the picture"]);
    assert_eq!(state(&window).sharing, Default::default(), "taken once");
}

#[test]
fn a_saved_page_opens_as_a_document_of_its_own() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("mine.html");
    let mut window = window(None);
    let before = state(&window).document.clone();
    by_palette(&mut window, &["Save as HTML"]);
    fill(&mut window, "Path", &path.display().to_string());
    click(&mut window, "Save");
    step_until(&mut window, "the page is written", |s| s.dialog.is_none());
    let text = std::fs::read_to_string(&path).expect("a page");
    assert_eq!(page::read(&text).expect("a page").expect("a design"), before);
    by_palette(&mut window, &["New"]);
    assert_ne!(state(&window).document.layers, before.layers);
    command(&mut window, Key::O);
    fill(&mut window, "Path", &path.display().to_string());
    window.key_press(Key::Enter);
    step_until(&mut window, "the page is open", |s| s.document == before);
    settle(&mut window);
    // saving it must not write a document over the page
    assert_eq!(state(&window).path, None);
}
