//! The window driven without a display, by accessible names, without a worker.
//!
//! Invariant: every click and key here is a user's. The run itself needs the program and is tested with it, in
//! `tests/integration/window.rs`.

use super::drafts::Dialog;
use super::state::State;
use super::workspace::{Aside, Workspace};
use super::{Options, Workbench};
use crate::document::model::{Combine, MaskContent, ScoreContent};
use crate::worker::target::Target;
use egui::accesskit::Role;
use egui::{Key, Modifiers, Pos2, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::path::Path;
use std::time::{Duration, Instant};

pub(super) type Window = Harness<'static, Workbench>;

/// A window whose worker cannot start.
pub(super) fn window(folder: Option<&Path>) -> Window {
    let target = Some(Target::new("no-such-program-of-ours"));
    let options = Options { target, folder: folder.map(Path::to_path_buf), ..Options::default() };
    let builder = Harness::builder().with_size(Vec2::new(1500.0, 950.0)).with_step_dt(0.05);
    let mut window = builder.build_eframe(|cc| Workbench::new(&cc.egui_ctx, options));
    settle(&mut window);
    window
}

pub(super) fn state(window: &Window) -> &State {
    &window.state().state
}

/// Steps until the newest document is compiled and counted.
pub(super) fn settle(window: &mut Window) {
    step_until(window, "the document is compiled", |state| {
        let broken = || state.session.built.as_ref().is_some_and(|b| !b.broken().0.is_empty());
        !state.session.is_behind(state.revision) && (state.session.current_stats().is_some() || broken())
    });
    window.run_steps(3);
    assert_eq!(super::mishaps::ours().count(), 0, "no work in the background panics");
}

/// Steps until something holds that another thread brings about; fails after a minute.
pub(super) fn step_until(window: &mut Window, what: &str, holds: impl Fn(&State) -> bool) {
    look_until(window, what, |window| holds(state(window)));
}

/// Steps until the window shows something that another thread brings about; fails after a minute.
pub(super) fn look_until(window: &mut Window, what: &str, holds: impl Fn(&Window) -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        window.step();
        if holds(window) {
            return;
        }
        assert!(Instant::now() < patience, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Carries out commands by their names, typed into the palette.
pub(super) fn by_palette(window: &mut Window, names: &[&str]) {
    for name in names {
        command(window, Key::P);
        window.event(egui::Event::Text(name.to_string()));
        window.run_steps(2);
        window.key_press(Key::Enter);
        window.run_steps(3);
    }
    settle(window);
}

pub(super) fn click(window: &mut Window, name: &str) {
    window.get_by_label(name).click();
    window.run_steps(3);
}

pub(super) fn command(window: &mut Window, key: Key) {
    window.key_press_modifiers(Modifiers::COMMAND, key);
    window.run_steps(3);
}

/// Types a text into a field that has the focus or gets it.
pub(super) fn fill(window: &mut Window, name: &str, text: &str) {
    let field = window.get_by_label(name);
    field.focus();
    window.run_steps(2);
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.run_steps(2);
    window.event(egui::Event::Text(text.into()));
    window.run_steps(2);
}

/// Drags with the primary button through places given as shares of the canvas.
pub(super) fn drag(window: &mut Window, places: &[(f32, f32)]) {
    let canvas = window.get_by_label("Mask canvas").rect();
    let at = |(x, y): (f32, f32)| canvas.min + Vec2::new(x, y) * canvas.size();
    let places: Vec<Pos2> = places.iter().copied().map(at).collect();
    window.hover_at(places[0]);
    window.drag_at(places[0]);
    window.run_steps(1);
    for place in &places[1..] {
        window.hover_at(*place);
        window.run_steps(1);
    }
    window.drop_at(places[places.len() - 1]);
    window.run_steps(2);
    settle(window);
}

#[test]
fn the_first_screen_is_a_live_document_and_four_first_steps() {
    let window = window(None);
    for name in ["Paste or open FlexAttention code", "Open a trainer's config.json", "Connect a GPU", "Gallery"] {
        assert!(window.query_by_label(name).is_some(), "{name}");
    }
    window.check_accessibility();
    let stats = state(&window).session.current_stats().cloned().expect("counted").result.expect("counts");
    assert_eq!(app::widgets::percent(stats.density), "11.7%");
    assert!(window.query_by_label_contains("11.7% of cells").is_some());
    assert!(
        window.query_by_label_contains("x faster, than cudnn.flex_attention 1.32").is_some(),
        "its recorded winner"
    );
    assert!(window.query_by_role_and_label(Role::Slider, "window").is_some(), "its slider");
}

#[test]
fn a_slider_moves_the_mask_and_is_one_undo_point() {
    let mut window = window(None);
    let before = state(&window).session.picture;
    let slider = window.get_by_role_and_label(Role::Slider, "window").rect();
    let along = |share: f32| egui::pos2(slider.left() + 8.0 + share * 60.0, slider.center().y);
    window.hover_at(along(0.2));
    window.drag_at(along(0.2));
    window.run_steps(2);
    for n in 3..9 {
        window.hover_at(along(n as f32 / 10.0));
        window.run_steps(1);
    }
    window.drop_at(along(0.9));
    window.run_steps(2);
    settle(&mut window);
    assert!(state(&window).session.picture > before && state(&window).is_dirty());
    command(&mut window, Key::Z);
    settle(&mut window);
    let first = super::state::first_document();
    assert_eq!(state(&window).document, first);
    assert!(state(&window).history.undo_title().is_none());
}

#[test]
fn a_stroke_is_drawn_taken_back_and_done_again() {
    let mut window = window(None);
    window.key_press(Key::B);
    window.run_steps(2);
    drag(&mut window, &[(0.7, 0.2), (0.72, 0.25), (0.75, 0.3), (0.8, 0.3)]);
    let painted = |window: &Window| match state(window).document.layers.last().map(|l| (&l.content, l.combine)) {
        Some((MaskContent::Painted(painted), combine)) => Some((painted.strokes.len(), combine)),
        _ => None,
    };
    assert_eq!(painted(&window), Some((1, Combine::Or)));
    let drawn = state(&window).document.clone();
    let density = |window: &Window| state(window).session.current_stats().unwrap().result.as_ref().unwrap().density;
    let with = density(&window);
    command(&mut window, Key::Z);
    settle(&mut window);
    assert_eq!(state(&window).document, super::state::first_document());
    assert!(density(&window) < with);
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::Z);
    window.run_steps(3);
    assert_eq!(state(&window).document, drawn);

    // new lengths ask what shall become of the cells
    fill(&mut window, "Query axis", "tokens 4096");
    window.key_press(Key::Enter);
    window.run_steps(3);
    assert!(window.query_by_label("The lengths change").is_some());
    assert_eq!(state(&window).document.axes.q.len(), 8192, "nothing before the choice");
    click(&mut window, "Scale them");
    settle(&mut window);
    let MaskContent::Painted(painted) = &state(&window).document.layers[1].content else { panic!() };
    assert_eq!((painted.lengths, state(&window).document.axes.q.len()), ([4096, 4096], 4096));
    command(&mut window, Key::Z);
    assert_eq!(state(&window).document, drawn);
}

/// Presses a button that may be below the visible part.
pub(super) fn press_below(window: &mut Window, name: &str) {
    window.get_by_label(name).focus();
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(2);
}

#[test]
fn rectangles_and_bands_become_layers() {
    let mut window = window(None);
    window.key_press(Key::R);
    drag(&mut window, &[(0.3, 0.3), (0.5, 0.4), (0.6, 0.6)]);
    window.key_press(Key::D);
    drag(&mut window, &[(0.4, 0.6), (0.5, 0.6), (0.6, 0.6)]);
    let kinds: Vec<_> = state(&window).document.layers.iter().map(|l| format!("{:?}", l.content)).collect();
    assert!(kinds[1].starts_with("Rectangle"), "{kinds:?}");
    assert!(kinds[2].starts_with("Band"), "{kinds:?}");
}

#[test]
fn a_wrong_axis_stays_in_its_field_with_its_error() {
    let mut window = window(None);
    fill(&mut window, "Query axis", "tokens zero");
    assert_eq!(state(&window).document, super::state::first_document());
    assert!(window.query_all_by_label_contains("write segments as").next().is_some());
    for huge in ["tokens 1099511627776", "tokens 0", ""] {
        fill(&mut window, "Query axis", huge);
        window.key_press(Key::Enter);
        window.run_steps(3);
        assert_eq!(state(&window).document.axes.q.len(), 8192, "{huge}");
    }
    fill(&mut window, "Query axis", "text 256 | image 16x16");
    window.key_press(Key::Enter);
    window.run_steps(3);
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.len(), 512);
}

#[test]
fn the_palette_finds_commands_and_patterns() {
    let mut window = window(None);
    command(&mut window, Key::P);
    window.event(egui::Event::Text("pattern natten 2d".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    settle(&mut window);
    assert!(state(&window).dialog.is_none());
    assert_eq!(state(&window).document.layers.last().unwrap().name, "Natten 2d");
    command(&mut window, Key::P);
    window.event(egui::Event::Text("setup".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    assert_eq!(state(&window).view.aside, Some(Aside::Setup));
}

#[test]
fn pasted_code_replaces_the_first_document_and_its_errors_are_told() {
    let mut window = window(None);
    click(&mut window, "Paste or open FlexAttention code");
    window.run_steps(2);
    window.event(egui::Event::Text("def far(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx > 64\n".into()));
    window.run_steps(3);
    assert!(window.query_by_label_contains("Adds the mask far").is_some());
    click(&mut window, "Use this code");
    settle(&mut window);
    assert_eq!(state(&window).document.layers.len(), 1);
    assert!(state(&window).session.built.as_ref().unwrap().problem.is_ok());
    // the tab has the same name
    let editor = window.get_by_role_and_label(Role::MultilineTextInput, "Code");
    editor.focus();
    window.run_steps(2);
    window.key_press_modifiers(Modifiers::COMMAND, Key::End);
    window.event(egui::Event::Text("    return q_idx if q_idx else kv_idx\n".into()));
    window.run_steps(2);
    settle(&mut window);
    // undo in the editor is the document's
    command(&mut window, Key::Z);
    settle(&mut window);
    let MaskContent::Text(code) = &state(&window).document.layers[0].content else { panic!() };
    assert!(code.source.ends_with("> 64\n"));
    window.event(egui::Event::Text("(".into()));
    window.run_steps(2);
    settle(&mut window);
    let built = state(&window).session.built.clone().unwrap();
    assert!(built.problem.is_err());
    assert!(window.query_by_label_contains("Problems: 1 error").is_some());
    command(&mut window, Key::Num8);
    assert!(window.query_all_by_label_contains("error").count() > 1);
}

/// Code that is added to an open document keeps its axes, and one button sets them to the code's; one undo takes them back.
#[test]
fn one_button_sets_the_sizes_that_the_code_is_made_for() {
    let mut window = window(None);
    click(&mut window, "Paste or open FlexAttention code");
    window.run_steps(2);
    let code = "import torch\ndoc_id = torch.arange(2048) // 100\nslopes = torch.ones(4)\ndef packed(b, h, q_idx, kv_idx):\n    \
                return (doc_id[q_idx] == doc_id[kv_idx]) & (slopes[h] > 0)\n";
    window.event(egui::Event::Text(code.into()));
    window.run_steps(3);
    click(&mut window, "Use this code");
    settle(&mut window);
    let sizes = |window: &Window| {
        let document = &state(window).document;
        (document.axes.q.len(), document.axes.kv().len(), document.settings.heads)
    };
    let before = sizes(&window);
    assert_eq!(before, (2048, 2048, 4), "a new document takes them at once");
    let mut axes = state(&window).document.axes.clone();
    axes.q = crate::document::model::Axis::tokens(3072);
    super::act::act(&mut window.state_mut().state, super::action::Action::SetAxes(axes));
    settle(&mut window);
    command(&mut window, Key::Num8);
    window.run_steps(2);
    assert!(window.query_by_label_contains("is made for 2048 x 2048 tokens, 4 heads").is_some());
    click(&mut window, "Use the code's sizes");
    settle(&mut window);
    assert_eq!(sizes(&window), before);
    assert!(window.query_by_label("Use the code's sizes").is_none());
    command(&mut window, Key::Z);
    settle(&mut window);
    assert_eq!(sizes(&window), (3072, 3072, 4));
}

#[test]
fn a_suggested_rewrite_is_applied_and_undone() {
    let mut window = window(None);
    click(&mut window, "Paste or open FlexAttention code");
    window.run_steps(2);
    let body = "return q_idx >= kv_idx and q_idx - kv_idx < 64";
    window.event(egui::Event::Text(format!("def near(b, h, q_idx, kv_idx):\n    {body}\n")));
    window.run_steps(3);
    click(&mut window, "Use this code");
    settle(&mut window);
    assert!(window.query_by_label("Apply the suggestion").is_some(), "beside the layer's error too");
    command(&mut window, Key::Num8);
    window.run_steps(2);
    click(&mut window, "Apply");
    settle(&mut window);
    let holds = |window: &Window, wanted: &str| {
        let MaskContent::Text(code) = &state(window).document.layers[0].content else { panic!() };
        assert!(code.source.ends_with(&format!("    {wanted}\n")), "{}", code.source);
    };
    holds(&window, "return (q_idx >= kv_idx) & (q_idx - kv_idx < 64)");
    assert!(state(&window).session.built.as_ref().unwrap().problem.is_ok());
    command(&mut window, Key::Z);
    settle(&mut window);
    holds(&window, body);
}

#[test]
fn layers_are_enabled_combined_moved_copied_and_deleted() {
    let mut window = window(None);
    by_palette(&mut window, &["Add a rectangle", "Add a distance curve"]);
    assert!(matches!(state(&window).document.scores[0].content, ScoreContent::Curve { .. }));
    click(&mut window, "Enable Sliding window");
    assert!(!state(&window).document.layers[0].enabled);
    // the tool has the same name; the layers are on the left
    let layers = window.get_all_by_label("Rectangle");
    layers.min_by(|a, b| a.rect().left().total_cmp(&b.rect().left())).expect("a layer").click();
    window.run_steps(3);
    window.key_press_modifiers(Modifiers::ALT, Key::ArrowDown);
    window.run_steps(3);
    assert_eq!(state(&window).document.layers[0].name, "Rectangle");
    click(&mut window, "Duplicate");
    assert_eq!(state(&window).document.layers[1].name, "Rectangle copy");
    window.key_press(Key::Delete);
    window.run_steps(3);
    assert_eq!(state(&window).document.layers.len(), 2);
    window.check_accessibility();
}

#[test]
fn documents_are_saved_opened_and_come_back() {
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("kept");
    let path = home.path().join("saved.json");
    let mut first = window(Some(&kept));
    fill(&mut first, "Document name", "My mask");
    let document = state(&first).document.clone();
    assert_eq!(document.name, "My mask");
    command(&mut first, Key::S);
    fill(&mut first, "Path", &home.path().join("no/such/folder/a.json").display().to_string());
    save_button(&mut first);
    step_until(&mut first, "the failure is told", |s| !s.dialog.as_ref().is_some_and(Dialog::saves));
    first.run_steps(2);
    assert!(first.query_by_label("The document could not be saved").is_some());
    assert!(state(&first).is_dirty() && state(&first).document == document);
    click(&mut first, "Close");
    fill(&mut first, "Path", &path.display().to_string());
    save_button(&mut first);
    step_until(&mut first, "the document is saved", |s| s.dialog.is_none());
    first.run_steps(5);
    assert!(!state(&first).is_dirty(), "saved");
    assert_eq!(crate::document::file::from_json(&std::fs::read_to_string(&path).unwrap()).unwrap(), document);
    // changed again, and killed: unsaved work is restored, as unsaved
    fill(&mut first, "Document name", "Unsaved");
    first.run_steps(40);
    let unsaved = state(&first).document.clone();
    assert_eq!(unsaved.name, "Unsaved");
    first.state_mut().state.recovery.finish();
    drop(first);
    let second = window(Some(&kept));
    assert_eq!(state(&second).document, unsaved);
    assert!(state(&second).is_dirty() && state(&second).path.as_deref() == Some(&*path));
}

/// The dialog's own button; the bar has one of the same name.
fn save_button(window: &mut Window) {
    let buttons: Vec<Pos2> = window.query_all_by_label("Save").map(|n| n.rect().center()).collect();
    let lowest = buttons.into_iter().max_by(|a, b| a.y.total_cmp(&b.y)).expect("a button");
    window.hover_at(lowest);
    window.drag_at(lowest);
    window.drop_at(lowest);
    window.run_steps(4);
}

#[test]
fn files_open_by_what_they_hold() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let mut window = window(None);
    let open = |window: &mut Window, path: &str| {
        command(window, Key::O);
        fill(window, "Path", path);
        window.key_press(Key::Enter);
        let patience = Instant::now() + Duration::from_secs(20);
        let now = |window: &Window| (state(window).revision, state(window).dialog.as_ref().map(std::mem::discriminant));
        let before = now(window);
        // a file that could not be opened leaves both as they are
        let is_done =
            |window: &Window| now(window) != before || window.query_by_label_contains("could not be opened").is_some();
        while !is_done(window) && Instant::now() < patience {
            window.step();
        }
        for _ in 0..30 {
            window.step();
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let preset = crate::document::library::preset("alibi").unwrap();
    open(&mut window, &write("alibi.json", preset.text));
    assert_eq!(state(&window).document, preset.document().unwrap());
    open(&mut window, &write("wrong.json", "{\"maskloom\": 1, \"name\": 3}"));
    assert!(window.query_by_label_contains("could not be opened").is_some());
    assert!(window.query_by_label_contains("error[").is_none(), "what happened comes first");
    assert_eq!(state(&window).document, preset.document().unwrap(), "nothing is lost");
    window.key_press(Key::Escape);
    window.run_steps(3);
    open(&mut window, &write("config.json", "{\"model_family\": \"wan\", \"attention_mechanism\": \"diffusers\"}"));
    assert!(window.query_by_label("A trainer's configuration").is_some());
    window.key_press(Key::Escape);
    window.run_steps(3);
    open(&mut window, &write("flux.json", "{\"model_family\": \"flux\", \"attention_mechanism\": \"diffusers\"}"));
    assert_eq!(window.query_all_by_label_contains("has no effect there").count(), 1, "said once");
    window.key_press(Key::Escape);
    window.run_steps(3);
    open(&mut window, &write("mod.py", "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"));
    let last = state(&window).document.layers.last().unwrap();
    assert!(matches!(&last.content, MaskContent::Linked(code) if code.path.ends_with("mod.py")));
    command(&mut window, Key::Z);
    command(&mut window, Key::Z);
    settle(&mut window);
    assert_eq!(state(&window).document, super::state::first_document(), "opening is undone like anything else");
    // beside work it has a tab of its own
    window.state_mut().state.edit(crate::document::edit::Edit::Rename("Work".into()));
    let work = state(&window).document.clone();
    open(&mut window, &home.path().join("mod.py").display().to_string());
    assert_eq!((state(&window).parked.len(), state(&window).document.layers.len()), (1, 1));
    command(&mut window, Key::PageUp);
    assert_eq!(state(&window).document, work);
}

#[test]
fn a_missing_worker_is_told_and_the_rest_works() {
    let mut window = window(None);
    step_until(&mut window, "the worker's failure is told", |s| s.session.worker_error.is_some());
    window.run_steps(3);
    assert!(window.query_by_label_contains("no worker on").is_some());
    assert!(window.query_all_by_label_contains("no-such-program-of-ours").count() >= 1);
    settle(&mut window);
    command(&mut window, Key::Enter);
    // the try fails on its own thread, which may come late on a busy machine
    step_until(&mut window, "the race ends", |s| !s.session.is_racing());
    window.run_steps(10);
    assert!(state(&window).view.is_at(Workspace::Race));
}

#[test]
fn every_tab_dialog_and_theme_draws_with_named_inputs() {
    let mut window = window(None);
    for key in [Key::Num2, Key::Num3, Key::Num4, Key::E, Key::Num6, Key::Num7, Key::Num8, Key::Num9, Key::Num1] {
        command(&mut window, key);
        window.check_accessibility();
    }
    for (modifiers, key) in [
        (Modifiers::COMMAND, Key::O),
        (Modifiers::COMMAND, Key::G),
        (Modifiers::COMMAND, Key::P),
        (Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::G),
        (Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::V),
        (Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::M),
        (Modifiers::NONE, Key::F1),
    ] {
        window.key_press_modifiers(modifiers, key);
        window.run_steps(4);
        assert!(state(&window).dialog.is_some(), "{key:?}");
        window.check_accessibility();
        window.key_press(Key::Escape);
        window.run_steps(3);
        assert!(state(&window).dialog.is_none(), "{key:?}");
    }
    for size in [Vec2::new(760.0, 480.0), Vec2::new(2600.0, 1400.0)] {
        window.set_size(size);
        window.run_steps(3);
    }
    for theme in ["Theme: light", "Theme: dark", "Larger text", "Normal text size"] {
        command(&mut window, Key::P);
        window.event(egui::Event::Text(theme.into()));
        window.run_steps(2);
        window.key_press(Key::Enter);
        window.run_steps(3);
    }
    assert_eq!((state(&window).view.theme, state(&window).view.scale), (super::theme::ThemeChoice::Dark, 1.0));
}

#[test]
fn an_export_is_shown_written_and_asks_before_it_replaces() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("out");
    let mut window = window(None);
    command(&mut window, Key::E);
    click(&mut window, "Everything");
    fill(&mut window, "Folder", &folder.display().to_string());
    for round in 0..2 {
        step_until(&mut window, "the files are made", |s| s.export.is_ready());
        window.run_steps(10);
        press_below(&mut window, "Write the files");
        if round == 1 {
            step_until(&mut window, "the files in the way are asked about", |s| !s.export.existing.is_empty());
            window.run_steps(10);
            assert!(window.query_by_label_contains("would be replaced").is_some());
            press_below(&mut window, "Replace them");
        }
        step_until(&mut window, "the files are written", |s| !s.export.writing && s.export.existing.is_empty());
    }
    assert!(window.query_by_label("Open folder").is_some());
    let names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    for end in ["config.json", ".maskloom.json", ".py", "_blocks.safetensors", ".png"] {
        assert!(names.iter().any(|n| n.ends_with(end)), "{end}: {names:?}");
    }
}

#[test]
fn what_was_written_is_named_inside_the_page_however_long_its_path() {
    let home = tempfile::tempdir().unwrap();
    let deep = "a_rather_long_folder_name_of_some_project/experiments_of_november/flux-regional-attention-masks";
    let folder = home.path().join(deep).join("export_for_the_trainer_of_the_team");
    let mut window = window(None);
    command(&mut window, Key::E);
    click(&mut window, "PyTorch of my own");
    fill(&mut window, "Folder", &folder.display().to_string());
    step_until(&mut window, "the files are made", |s| s.export.is_ready());
    window.run_steps(4);
    // the button is in sight without scrolling
    assert!(window.ctx.content_rect().contains_rect(window.get_by_label("Write the files").rect()));
    click(&mut window, "Write the files");
    step_until(&mut window, "the files are written", |s| s.export.done.is_some());
    window.run_steps(10);
    let page = window.get_by_label("Folder").rect();
    let named = window.get_by_label(&format!("5 files in {}", folder.display())).rect();
    assert!(named.left() >= page.left() && named.right() <= window.ctx.content_rect().right(), "{named:?} {page:?}");
    // said on the page, so in no toast
    assert!(state(&window).notices.toasts(9).iter().all(|(_, n)| !n.what.message.starts_with("Exported")));
}
