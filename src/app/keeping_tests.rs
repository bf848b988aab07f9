//! Documents that files, other programs and other windows share with this one: nothing is lost, driven as by a user.
//!
//! Invariant: every click and key here is a user's.

use super::drafts::Dialog;
use super::state::Outside;
use super::tests::{Window, click, command, fill, settle, state, step_until, window};
use crate::document::file;
use crate::document::model::Document;
use egui::Key;
use egui_kittest::kittest::Queryable;
use std::path::Path;

fn open(window: &mut Window, path: &Path) {
    command(window, Key::O);
    fill(window, "Path", &path.display().to_string());
    window.key_press(Key::Enter);
    step_until(window, "the file is open", |s| s.path.as_deref() == Some(path));
    settle(window);
}

/// A preset in a file of its own folder, which goes with the first value.
fn preset_in(name: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(name);
    std::fs::write(&path, crate::document::library::preset("alibi").unwrap().text).unwrap();
    (home, path)
}

fn on_disk(path: &Path) -> Document {
    file::from_json(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn rename(window: &mut Window, name: &str) {
    fill(window, "Document name", name);
    window.run_steps(2);
}

/// Another program saves the document under another name.
fn changed_by_another(path: &Path, name: &str) {
    let document = Document { name: name.into(), ..on_disk(path) };
    std::fs::write(path, file::to_json(&document)).unwrap();
}

#[test]
fn a_file_that_another_program_changed_is_not_written_over_until_the_user_has_chosen() {
    let (_home, path) = preset_in("shared.json");
    let mut window = window(None);
    open(&mut window, &path);
    rename(&mut window, "Mine");
    changed_by_another(&path, "Theirs");
    // at once, before the change can have been seen
    command(&mut window, Key::S);
    step_until(&mut window, "the save is refused", |s| s.dialog.is_some());
    window.run_steps(2);
    assert!(window.query_by_label("The document could not be saved").is_some());
    assert_eq!(on_disk(&path).name, "Theirs");
    click(&mut window, "Close");
    step_until(&mut window, "the bar is there", |s| s.outside.is_some());
    window.run_steps(3);
    assert!(window.query_by_label("shared.json was changed by another program.").is_some());
    click(&mut window, "Show the difference");
    step_until(&mut window, "the difference is shown", |s| s.dialog.is_some());
    window.run_steps(3);
    let shown = |window: &Window, line: &str| window.query_all_by_label_contains(line).count();
    assert_eq!([shown(&window, "-   \"name\": \"Theirs\""), shown(&window, "+   \"name\": \"Mine\"")], [1, 1]);
    click(&mut window, "Decide later");
    // mine stays: now, and only over this content, a save writes
    click(&mut window, "Keep mine");
    window.run_steps(3);
    assert!(state(&window).outside.is_none() && state(&window).is_dirty());
    changed_by_another(&path, "Theirs again");
    command(&mut window, Key::S);
    step_until(&mut window, "a later change is refused too", |s| s.dialog.is_some());
    window.run_steps(2);
    click(&mut window, "Close");
    step_until(&mut window, "the bar is there again", |s| s.outside.is_some());
    window.run_steps(3);
    click(&mut window, "Keep mine");
    window.run_steps(3);
    command(&mut window, Key::S);
    step_until(&mut window, "it is saved", |s| !s.is_dirty());
    assert_eq!(on_disk(&path).name, "Mine");
    // the next one is taken; undo brings mine back
    changed_by_another(&path, "Theirs at last");
    step_until(&mut window, "a change is seen without a save", |s| s.outside.is_some());
    window.run_steps(3);
    click(&mut window, "Reload");
    step_until(&mut window, "the file is read", |s| s.document.name == "Theirs at last");
    window.run_steps(3);
    assert!(!state(&window).is_dirty() && state(&window).outside.is_none());
    assert_eq!(state(&window).path.as_deref(), Some(&*path));
    command(&mut window, Key::Z);
    window.run_steps(3);
    assert_eq!(state(&window).document.name, "Mine");
    assert!(state(&window).is_dirty() && state(&window).path.as_deref() == Some(&*path), "the file holds another");
    redo(&mut window);
    assert!(!state(&window).is_dirty() && state(&window).document.name == "Theirs at last");
    changed_by_another(&path, "Theirs after all");
    step_until(&mut window, "the file is still looked at", |s| s.outside.is_some());
}

fn redo(window: &mut Window) {
    window.key_press_modifiers(egui::Modifiers::COMMAND.plus(egui::Modifiers::SHIFT), Key::Z);
    window.run_steps(3);
}

/// The document that came back had a file before, and has it again.
#[test]
fn undo_and_redo_across_an_opening_keep_each_documents_file() {
    let (_home, path) = preset_in("mine.json");
    let mut window = window(None);
    open(&mut window, &path);
    rename(&mut window, "Renamed");
    let mut steps = 0;
    while state(&window).path.is_some() {
        click(&mut window, "Undo");
        window.run_steps(3);
        steps += 1;
        assert!(steps < 9, "the first screen's document has no file");
    }
    click(&mut window, "Redo");
    window.run_steps(3);
    assert!(state(&window).path.as_deref() == Some(&*path) && !state(&window).is_dirty());
    for _ in 1..steps {
        click(&mut window, "Redo");
        window.run_steps(3);
    }
    assert_eq!((&*state(&window).document.name, state(&window).is_dirty()), ("Renamed", true));
    command(&mut window, Key::S);
    step_until(&mut window, "it is saved without a question", |s| !s.is_dirty());
    assert!(on_disk(&path).name == "Renamed" && state(&window).dialog.is_none());
}

/// A save would write it over the file of the one before.
#[test]
fn a_document_that_is_made_here_has_no_file_and_work_keeps_its_tab() {
    use super::action::Action;
    let (_home, path) = preset_in("mine.json");
    let mut window = window(None);
    open(&mut window, &path);
    let made = crate::document::library::preset("causal").unwrap().document().unwrap();
    let replace = crate::document::edit::Edit::Replace(Box::new(made));
    super::act::act(&mut window.state_mut().state, Action::Edit(replace));
    window.run_steps(3);
    assert!(state(&window).path.is_none() && state(&window).document.name != "mine");
    click(&mut window, "Undo");
    window.run_steps(3);
    assert_eq!(state(&window).path.as_deref(), Some(&*path));
    // code becomes a document beside changed work, not in its place
    rename(&mut window, "Worked on");
    let text = "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n".to_string();
    super::act::act(&mut window.state_mut().state, Action::AddCode { text, replace: true });
    settle(&mut window);
    assert!(state(&window).parked.iter().any(|tab| tab.document.as_ref().unwrap().name == "Worked on"));
    assert_eq!((state(&window).tabs().len(), state(&window).document.layers.len()), (2, 1));
}

/// A second tab would take the first one's saves for another program's.
#[test]
fn a_file_that_is_open_shows_its_tab() {
    let (_home, path) = preset_in("mine.json");
    let mut window = window(None);
    open(&mut window, &path);
    rename(&mut window, "Renamed");
    for _ in 0..2 {
        command(&mut window, Key::T);
        rename(&mut window, "Another");
    }
    super::act::act(&mut window.state_mut().state, super::action::Action::ShowDocument(1));
    let tabs = state(&window).tabs().len();
    open(&mut window, &path);
    assert_eq!((state(&window).tabs().len(), state(&window).tab), (tabs, 0));
    assert_eq!((&*state(&window).document.name, state(&window).is_dirty()), ("Renamed", true));
}

#[test]
fn all_tabs_come_back_with_their_undo_and_two_windows_share_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut first = window(Some(home.path()));
    rename(&mut first, "one");
    command(&mut first, Key::T);
    first.run_steps(3);
    rename(&mut first, "two");
    assert_eq!(state(&first).parked.len(), 1);
    let mut second = window(Some(home.path()));
    assert!(state(&second).parked.is_empty() && state(&second).document.name != "two");
    rename(&mut second, "other window");
    // both are killed a moment later
    first.run_steps(40);
    second.run_steps(40);
    first.state_mut().state.recovery.finish();
    second.state_mut().state.recovery.finish();
    drop((first, second));
    let mut third = window(Some(home.path()));
    let names =
        |window: &Window| -> Vec<String> { state(window).tabs().iter().map(|tab| tab.document.name.clone()).collect() };
    assert_eq!(names(&third), ["other window", "one", "two"]);
    assert_eq!((state(&third).document.name.as_str(), state(&third).is_dirty()), ("other window", true));
    click(&mut third, "two *");
    third.run_steps(3);
    command(&mut third, Key::Z);
    third.run_steps(3);
    assert_eq!(names(&third), ["other window", "one", "Untitled"]);
    click(&mut third, "one *");
    third.run_steps(3);
    command(&mut third, Key::Z);
    third.run_steps(3);
    assert_ne!(state(&third).document.name, "one");
}

/// A document that somebody has worked on keeps its tab when another is opened; an untouched one makes room.
#[test]
fn opening_takes_a_new_tab_unless_the_current_one_is_untouched() {
    let home = tempfile::tempdir().unwrap();
    let [one, two, three] = ["alibi", "causal", "prefix_lm"].map(|name| {
        let path = home.path().join(format!("{name}.json"));
        std::fs::write(&path, crate::document::library::preset(name).unwrap().text).unwrap();
        path
    });
    let mut window = window(None);
    open(&mut window, &one);
    open(&mut window, &two);
    assert!(state(&window).parked.is_empty(), "nobody touched the first");
    rename(&mut window, "Worked on");
    open(&mut window, &three);
    let tabs = &state(&window).parked;
    let kept = tabs[0].document.as_ref().unwrap();
    assert_eq!((tabs.len(), &*kept.name, tabs[0].dirty, tabs[0].path.as_deref()), (1, "Worked on", true, Some(&*two)));
    assert!(!state(&window).is_dirty() && state(&window).path.as_deref() == Some(&*three));
}

/// The tab that was worked on keeps its place among the others.
#[test]
fn a_new_tab_changes_no_order() {
    let mut window = window(None);
    rename(&mut window, "A");
    for new in ["B", "C"] {
        command(&mut window, Key::T);
        rename(&mut window, new);
    }
    super::act::act(&mut window.state_mut().state, super::action::Action::ShowDocument(1));
    command(&mut window, Key::T);
    let waiting = state(&window).parked.iter().map(|tab| tab.document.as_ref().unwrap().name.clone());
    assert_eq!((waiting.collect::<Vec<_>>(), state(&window).tab), (["A", "B", "C"].map(String::from).to_vec(), 3));
}

/// A file is remembered by its whole path: the next window may start in another folder.
#[test]
fn a_relative_path_is_remembered_whole() {
    let mut window = window(None);
    let relative = Path::new("../../presets/alibi.json");
    let whole = std::path::absolute(relative).unwrap();
    super::act::act(&mut window.state_mut().state, super::action::Action::Open(relative.to_path_buf()));
    step_until(&mut window, "the file is open", |s| s.path.is_some());
    assert_eq!(state(&window).path.as_deref(), Some(&*whole));
}

/// The file was looked at for the tab that had saved it, and not again for the other one.
#[test]
fn what_another_tab_has_saved_into_the_file_is_told_in_this_one() {
    let (_home, path) = preset_in("shared.json");
    let mut window = window(None);
    open(&mut window, &path);
    rename(&mut window, "First");
    command(&mut window, Key::S);
    step_until(&mut window, "it is saved", |s| !s.is_dirty());
    // a second tab of the file, as an earlier window may have left it
    command(&mut window, Key::T);
    settle(&mut window);
    let own = &mut window.state_mut().state;
    (own.path, own.seen) = (Some(path.clone()), own.parked[0].seen.clone());
    rename(&mut window, "Second");
    command(&mut window, Key::S);
    step_until(&mut window, "it is saved", |s| !s.is_dirty());
    settle(&mut window);
    assert!(on_disk(&path).name == "Second" && state(&window).outside.is_none());
    command(&mut window, Key::PageUp);
    step_until(&mut window, "the other tab tells it", |s| s.outside.is_some());
    assert_eq!(state(&window).document.name, "First");
}

/// A document of this name in a file of this folder.
fn document_in(home: &Path, name: &str) -> std::path::PathBuf {
    let path = home.join(format!("{name}.json"));
    std::fs::write(&path, crate::document::library::preset("alibi").unwrap().text).unwrap();
    changed_by_another(&path, name);
    path
}

/// The names of the documents that were kept unsaved below this folder.
fn kept_in(folder: &Path) -> Vec<String> {
    super::unsaved::list(folder).unwrap().into_iter().map(|kept| kept.name).collect()
}

/// There was no word, and closing the tab took the only copy.
#[test]
fn a_document_whose_file_was_deleted_is_told_counts_as_unsaved_and_is_kept_when_its_tab_closes() {
    let (home, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = document_in(home.path(), "only");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut window = window(Some(kept.path()));
    open(&mut window, &path);
    command(&mut window, Key::T);
    settle(&mut window);
    command(&mut window, Key::PageUp);
    settle(&mut window);
    std::fs::remove_file(&path).unwrap();
    step_until(&mut window, "it is gone", |s| s.outside == Some(Outside::Gone));
    window.run_steps(3);
    assert!(state(&window).is_dirty() && window.query_by_label_contains("only.json is gone").is_some());
    // another program writes it anew by deleting it first: nothing has changed
    std::fs::write(&path, &text).unwrap();
    step_until(&mut window, "it is back", |s| s.outside.is_none());
    assert!(!state(&window).is_dirty());
    // a folder in its place is no file of it; undo of a change brings no file back
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    step_until(&mut window, "it is gone again", |s| s.is_dirty());
    rename(&mut window, "renamed");
    click(&mut window, "Undo");
    assert!(state(&window).document.name == "only" && state(&window).is_dirty());
    std::fs::remove_dir(&path).unwrap();
    click(&mut window, "Save it again");
    step_until(&mut window, "it is saved", |s| !s.is_dirty());
    assert!(on_disk(&path).name == "only" && state(&window).outside.is_none());
    // left unsaved it is told once, and a file of another is not written over
    std::fs::remove_file(&path).unwrap();
    step_until(&mut window, "it is gone at last", |s| s.outside.is_some());
    window.run_steps(3);
    click(&mut window, "Keep it unsaved");
    assert!(state(&window).outside.is_none() && state(&window).is_dirty());
    std::fs::write(&path, text.replace("only", "theirs")).unwrap();
    step_until(&mut window, "another's file is told", |s| matches!(s.outside, Some(Outside::Changed(_))));
    std::fs::remove_file(&path).unwrap();
    step_until(&mut window, "that goes, and nothing is told again", |s| s.outside.is_none());
    assert!(state(&window).is_dirty());
    command(&mut window, Key::W);
    window.state_mut().state.recovery.finish();
    assert_eq!(kept_in(kept.path()), ["only"]);
    // no file has an older state of it
    assert!(super::unsaved::list(kept.path()).unwrap()[0].path.is_none());
}

/// The file went a moment before its tab, and nobody has looked at it since.
#[test]
fn a_file_that_is_deleted_as_its_tab_closes_costs_no_document() {
    let (home, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [there, deleted] = ["there", "deleted"].map(|name| document_in(home.path(), name));
    let mut window = window(Some(kept.path()));
    for path in [&there, &deleted] {
        open(&mut window, path);
        command(&mut window, Key::T);
        settle(&mut window);
    }
    for gone in [false, true] {
        super::act::act(&mut window.state_mut().state, super::action::Action::ShowDocument(0));
        settle(&mut window);
        if gone {
            std::fs::remove_file(&deleted).unwrap();
        }
        command(&mut window, Key::W);
        settle(&mut window);
    }
    assert!(state(&window).parked.is_empty());
    window.state_mut().state.recovery.finish();
    assert_eq!(kept_in(kept.path()), ["deleted"], "the file of the other one has it");
}

/// There were none, the window said.
#[test]
fn unsaved_documents_that_cannot_be_listed_are_told_where_they_are_asked_for() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("unsaved"), "no folder").unwrap();
    let mut window = window(Some(home.path()));
    click(&mut window, "File");
    click(&mut window, "Unsaved documents…");
    step_until(&mut window, "it is told", |s| matches!(s.dialog, Some(Dialog::Failure { .. })));
    window.run_steps(2);
    assert!(window.query_all_by_label_contains("cannot be listed").next().is_some());
}
