//! What is typed and what is unsaved when a document or the window is left, and files that are gone, driven as by a user.
//!
//! Invariant: every click and key here is a user's.

use super::act;
use super::action::Action;
use super::command::Command;
use super::drafts::{Dialog, Leaving};
use super::state::Outside;
use super::tests::{Window, click, command, fill, look_until, settle, state, step_until, window};
use crate::document::file;
use egui::{Key, ViewportCommand, ViewportEvent, ViewportId};
use egui_kittest::kittest::Queryable;
use std::path::{Path, PathBuf};

/// A preset in a file of its own folder, which goes with the first value.
fn preset_in(name: &str) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(name);
    std::fs::write(&path, crate::document::library::preset("alibi").unwrap().text).unwrap();
    (home, path)
}

fn open(window: &mut Window, path: &Path) {
    act::act(&mut window.state_mut().state, Action::Open(path.to_path_buf()));
    step_until(window, "the file is open", |s| s.path.as_deref() == Some(path));
    settle(window);
}

fn names(window: &Window) -> Vec<String> {
    state(window).tabs().iter().map(|tab| tab.document.name.clone()).collect()
}

/// There was a notice, and the only copy was gone.
#[test]
fn a_tab_whose_work_cannot_be_kept_stays_open_until_it_is_saved_or_given_up() {
    let home = tempfile::tempdir().unwrap();
    let mut window = window(Some(home.path()));
    fill(&mut window, "Document name", "Hours of work");
    command(&mut window, Key::T);
    settle(&mut window);
    command(&mut window, Key::PageUp);
    settle(&mut window);
    // nothing can be written there, as where the disk is full
    std::fs::write(home.path().join("unsaved"), "no folder").unwrap();
    command(&mut window, Key::W);
    window.run_steps(3);
    let Some(Dialog::Leave { of: Leaving::Tab, why, names: asked, .. }) = &state(&window).dialog else {
        panic!("a question: {:?}", state(&window).dialog)
    };
    assert_eq!((&*why.code, &asked[..]), ("cannot-write", &["Hours of work".to_string()][..]));
    assert!(window.query_by_label_contains("would be lost with its tab: Hours of work").is_some());
    window.key_press(Key::Escape);
    window.run_steps(3);
    assert_eq!(names(&window), ["Hours of work", "Untitled"]);
    // there is room again: it is kept, and closes without a question
    std::fs::remove_file(home.path().join("unsaved")).unwrap();
    command(&mut window, Key::W);
    window.run_steps(3);
    assert!(state(&window).dialog.is_none() && names(&window) == ["Untitled"]);
    let kept = super::unsaved::list(home.path()).unwrap();
    assert_eq!(kept.into_iter().map(|kept| kept.name).collect::<Vec<_>>(), ["Hours of work"]);
}

#[test]
fn work_that_nobody_can_keep_is_given_up_by_one_button_alone() {
    let mut window = window(None);
    fill(&mut window, "Document name", "Mine");
    command(&mut window, Key::T);
    settle(&mut window);
    command(&mut window, Key::PageUp);
    command(&mut window, Key::W);
    window.run_steps(3);
    assert!(matches!(state(&window).dialog, Some(Dialog::Leave { of: Leaving::Tab, .. })));
    click(&mut window, "Close anyway");
    window.run_steps(3);
    assert!(state(&window).dialog.is_none() && names(&window) == ["Untitled"]);
}

/// After a restart, and in another tab, it was "changed".
#[test]
fn a_deletion_that_was_seen_is_one_after_a_restart_and_in_another_tab() {
    let kept = tempfile::tempdir().unwrap();
    let (_home, path) = preset_in("only.json");
    let text = std::fs::read(&path).unwrap();
    let mut first = window(Some(kept.path()));
    open(&mut first, &path);
    std::fs::remove_file(&path).unwrap();
    step_until(&mut first, "it is gone", |s| s.outside == Some(Outside::Gone));
    command(&mut first, Key::T);
    settle(&mut first);
    // it is back before anybody looks at its tab
    std::fs::write(&path, &text).unwrap();
    command(&mut first, Key::PageUp);
    step_until(&mut first, "it is back", |s| s.outside.is_none());
    assert!(!state(&first).is_dirty(), "nothing else has changed");
    std::fs::remove_file(&path).unwrap();
    step_until(&mut first, "it is gone again", |s| s.outside == Some(Outside::Gone));
    first.run_steps(40);
    first.state_mut().state.recovery.finish();
    drop(first);
    let mut second = window(Some(kept.path()));
    assert!(state(&second).is_dirty() && state(&second).outside == Some(Outside::Gone));
    assert!(second.query_by_label_contains("only.json is gone").is_some());
    std::fs::write(&path, &text).unwrap();
    step_until(&mut second, "it is back", |s| s.outside.is_none());
    assert!(!state(&second).is_dirty(), "the document is as its file has it");
}

/// A field that is typed into and not left.
fn half_typed(window: &mut Window, text: &str) {
    fill(window, "Query axis", text);
    assert!(window.get_by_label("Query axis").is_focused());
}

fn sent(window: &Window, command: &ViewportCommand) -> bool {
    window.output().viewport_output[&ViewportId::ROOT].commands.contains(command)
}

/// Ctrl+Q, of which one frame sees that it is pressed.
fn quit(window: &mut Window) {
    let (key, modifiers) = (Key::Q, egui::Modifiers::COMMAND);
    window.event(egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers });
}

fn closes(window: &mut Window) -> bool {
    (0..6).any(|_| {
        window.step();
        sent(window, &ViewportCommand::Close)
    })
}

#[test]
fn what_is_typed_and_not_left_counts_before_the_window_is_left() {
    for by_button in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let mut first = window(Some(home.path()));
        half_typed(&mut first, "text 256 | image 16x16");
        match by_button {
            true => {
                let root = first.input_mut().viewports.get_mut(&ViewportId::ROOT).expect("the window");
                root.events.push(ViewportEvent::Close);
                first.step();
                assert!(sent(&first, &ViewportCommand::CancelClose));
                let root = first.input_mut().viewports.get_mut(&ViewportId::ROOT).expect("the window");
                root.events.clear();
            }
            false => quit(&mut first),
        }
        assert!(closes(&mut first), "by the button: {by_button}");
        assert_eq!(state(&first).document.axes.q.len(), 512);
        drop(first);
        let second = window(Some(home.path()));
        assert_eq!(state(&second).document.axes.q.len(), 512, "by the button: {by_button}");
    }
}

#[test]
fn what_is_typed_and_not_left_is_saved() {
    let (_home, path) = preset_in("mine.json");
    let mut window = window(None);
    open(&mut window, &path);
    half_typed(&mut window, "text 256 | image 16x16");
    command(&mut window, Key::S);
    let saved = |path: &Path| file::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    look_until(&mut window, "it is saved", |_| saved(&path).axes.q.len() == 512);
    // another page takes the field away: what was typed counts, too
    half_typed(&mut window, "tokens 512");
    command(&mut window, Key::Num2);
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.to_string(), "tokens 512");
}

/// What is no value is asked for: the first time the command waits, the second time it goes on.
#[test]
fn what_is_typed_and_is_no_value_holds_the_command_once() {
    let home = tempfile::tempdir().unwrap();
    let (_folder, path) = preset_in("mine.json");
    let mut window = window(Some(home.path()));
    open(&mut window, &path);
    fill(&mut window, "Document name", "Renamed");
    half_typed(&mut window, "tokens zero");
    command(&mut window, Key::S);
    window.run_steps(4);
    assert!(matches!(state(&window).dialog, Some(Dialog::Failure { .. })), "{:?}", state(&window).dialog);
    assert!(window.query_by_label_contains("Query axis: `tokens zero` is not taken").is_some());
    assert!(state(&window).is_dirty());
    window.key_press(Key::Escape);
    window.run_steps(3);
    command(&mut window, Key::S);
    step_until(&mut window, "it is saved", |s| !s.is_dirty());
    // so it is where the window closes
    half_typed(&mut window, "tokens zero");
    quit(&mut window);
    assert!(!closes(&mut window) && matches!(state(&window).dialog, Some(Dialog::Failure { .. })));
    window.key_press(Key::Escape);
    window.run_steps(3);
    quit(&mut window);
    assert!(closes(&mut window));
}

/// The code of a linked layer goes: the layer has an error that names the file, and its last mask stays on the canvas.
#[test]
fn a_linked_file_that_is_deleted_is_told() {
    let home = tempfile::tempdir().unwrap();
    let code = home.path().join("mod.py");
    std::fs::write(&code, "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n").unwrap();
    let mut window = window(None);
    act::act(&mut window.state_mut().state, Action::Open(code.clone()));
    step_until(&mut window, "it is linked", |s| s.document.layers.len() == 1 && s.document.name != "Sliding window");
    settle(&mut window);
    assert!(state(&window).session.built.as_ref().unwrap().problem.is_ok());
    std::fs::remove_file(&code).unwrap();
    step_until(&mut window, "it is told", |s| s.session.built.as_ref().is_some_and(|b| b.problem.is_err()));
    settle(&mut window);
    act::act(&mut window.state_mut().state, Action::Command(Command::ShowProblems));
    window.run_steps(4);
    assert!(window.query_all_by_label_contains("mod.py").next().is_some());
    assert!(window.query_by_label_contains("Problems: 1 error").is_some());
    let with = "from near import near\ndef mask_mod(b, h, q_idx, kv_idx):\n    return near(q_idx, kv_idx)\n";
    let near = home.path().join("near.py");
    std::fs::write(&near, "def near(q, k):\n    return q - k < 64\n").unwrap();
    std::fs::write(&code, with).unwrap();
    // imports are found beside the document
    act::act(&mut window.state_mut().state, Action::SaveTo(home.path().join("document.json")));
    let whole = |s: &super::state::State| s.session.built.as_ref().is_some_and(|b| b.problem.is_ok());
    step_until(&mut window, "it is back, with another that it imports", whole);
    settle(&mut window);
    std::fs::remove_file(&near).unwrap();
    step_until(&mut window, "that is told", |s| !whole(s));
    settle(&mut window);
    assert!(window.query_all_by_label_contains("near").next().is_some());
    std::fs::write(&near, "def near(q, k):\n    return q - k < 32\n").unwrap();
    step_until(&mut window, "that is back", whole);
}
