//! Drawing, typing and not losing work, in the window driven by accessible names.
//!
//! Invariant: as in `tests`: every action is a user's action.

use super::act::act;
use super::action::Action;
use super::canvas::Tool;
use super::drafts::Dialog;
use super::state::{State, first_document};
use super::tests::*;
use super::workspace::Workspace;
use crate::document::library;
use crate::document::model::*;
use crate::document::title::Title;
use egui::accesskit::Role;
use egui::{Key, Modifiers, Pos2, Vec2};
use egui_kittest::kittest::Queryable;

fn density(window: &Window) -> f64 {
    let stats = state(window).session.current_stats().cloned().expect("counted");
    stats.result.expect("counts").density
}

fn open_preset(window: &mut Window, name: &str) {
    act(&mut window.state_mut().state, Action::OpenPreset(name.into()));
    settle(window);
}

fn place(window: &Window, x: f32, y: f32) -> Pos2 {
    let canvas = window.get_by_label("Mask canvas").rect();
    canvas.min + Vec2::new(x, y) * canvas.size()
}

fn contents(document: &Document) -> Vec<(Combine, usize)> {
    let strokes = |content: &MaskContent| match content {
        MaskContent::Painted(painted) => painted.strokes.len(),
        _ => 0,
    };
    document.layers.iter().map(|l| (l.combine, strokes(&l.content))).collect()
}

fn said(window: &Window, words: &str) -> bool {
    state(window).notices.all().any(|(_, n)| n.what.message.contains(words))
}

#[test]
fn the_eraser_takes_away_what_one_sees() {
    let mut window = window(None);
    let before = density(&window);
    window.key_press(Key::E);
    window.run_steps(3);
    assert!(window.query_by_label_contains("Removes cells").is_some(), "said before the stroke");
    drag(&mut window, &[(0.4, 0.4), (0.5, 0.5), (0.6, 0.6)]);
    assert_eq!(contents(&state(&window).document), [(Combine::And, 0), (Combine::AndNot, 1)]);
    let erased = density(&window);
    assert!(erased < before, "{erased} of {before}");
    // the same layer is used again, and the brush restores the removed cells
    drag(&mut window, &[(0.3, 0.3), (0.35, 0.35)]);
    assert_eq!(state(&window).document.layers.len(), 2);
    let less = density(&window);
    assert!(less < erased);
    window.key_press(Key::B);
    window.run_steps(2);
    drag(&mut window, &[(0.3, 0.3), (0.35, 0.35)]);
    assert!(density(&window) > less);
    for _ in 0..3 {
        command(&mut window, Key::Z);
    }
    settle(&mut window);
    assert_eq!(state(&window).document, first_document());
}

#[test]
fn the_first_stroke_on_a_new_document_says_what_it_begins() {
    let mut window = window(None);
    command(&mut window, Key::N);
    settle(&mut window);
    assert_eq!(density(&window), 1.0);
    click(&mut window, "Brush");
    assert!(window.query_by_label_contains("starts from an empty mask").is_some());
    drag(&mut window, &[(0.4, 0.4), (0.6, 0.6)]);
    assert!(density(&window) < 0.2 && said(&window, "keeps only what is painted"));
    assert_eq!(contents(&state(&window).document), [(Combine::And, 1)]);
    command(&mut window, Key::Z);
    settle(&mut window);
    // the eraser starts from all cells, and removes some
    click(&mut window, "Eraser");
    drag(&mut window, &[(0.4, 0.4), (0.6, 0.6)]);
    assert!(density(&window) > 0.8 && density(&window) < 1.0, "{}", density(&window));
    assert_eq!(contents(&state(&window).document), [(Combine::AndNot, 1)]);
}

#[test]
fn escape_takes_back_the_stroke_in_work_and_no_other() {
    let mut window = window(None);
    window.key_press(Key::B);
    window.run_steps(2);
    drag(&mut window, &[(0.6, 0.2), (0.7, 0.3)]);
    let drawn = state(&window).document.clone();
    // a stroke outside the mask: it has no effect and no undo point
    let (beside, middle) = (place(&window, 0.01, 0.5), place(&window, 0.5, 0.2));
    for at in [beside, middle] {
        window.hover_at(at);
        window.drag_at(at);
        window.run_steps(3);
        window.key_press(Key::Escape);
        window.run_steps(3);
        assert_eq!(state(&window).document, drawn, "{at:?}");
        window.drop_at(at);
        window.run_steps(3);
    }
    assert_eq!((&state(&window).document, state(&window).history.undo_title()), (&drawn, Some(&Title::Paint)));
}

#[test]
fn undo_keeps_what_is_selected() {
    let mut window = window(None);
    let selected = state(&window).focus.layer;
    window.key_press(Key::B);
    window.run_steps(2);
    drag(&mut window, &[(0.6, 0.2), (0.7, 0.3)]);
    let painted = state(&window).focus.layer;
    assert_ne!(painted, selected);
    command(&mut window, Key::Z);
    assert_eq!(state(&window).focus.layer, selected, "what was selected before the stroke");
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::Z);
    window.run_steps(3);
    assert_eq!(state(&window).focus.layer, painted);
}

#[test]
fn a_tool_does_not_paint_on_a_document_that_was_just_opened() {
    let mut window = window(None);
    window.key_press(Key::R);
    window.run_steps(2);
    assert_eq!(state(&window).focus.tool, Tool::Rectangle);
    open_preset(&mut window, "alibi");
    assert_eq!(state(&window).focus.tool, Tool::Pan);
    drag(&mut window, &[(0.3, 0.3), (0.6, 0.6)]);
    assert_eq!(state(&window).document, library::preset("alibi").unwrap().document().unwrap());
}

#[test]
fn keys_draw_only_where_the_canvas_has_the_focus() {
    let mut window = window(None);
    fill(&mut window, "Query axis", "tokens zero");
    window.key_press(Key::Enter);
    window.run_steps(3);
    for key in [Key::E, Key::R, Key::Delete, Key::Enter] {
        window.key_press(key);
        window.run_steps(2);
    }
    assert_eq!((state(&window).focus.tool, state(&window).document.layers.len()), (Tool::Pan, 1));
    // a click on the canvas, and they are its keys again
    let at = place(&window, 0.5, 0.5);
    window.hover_at(at);
    window.drag_at(at);
    window.run_steps(1);
    window.drop_at(at);
    window.run_steps(3);
    window.key_press(Key::E);
    window.run_steps(2);
    assert_eq!(state(&window).focus.tool, Tool::Eraser);
}

#[test]
fn a_clicked_cell_stays_pinned_until_escape() {
    let mut window = window(None);
    let shown = |window: &Window| (state(window).view.workspace, state(window).view.aside);
    let before = shown(&window);
    assert_eq!(before, (Workspace::Design, None));
    let at = place(&window, 0.5, 0.5);
    window.hover_at(at);
    window.drag_at(at);
    window.run_steps(1);
    window.drop_at(at);
    window.run_steps(3);
    let pinned = state(&window).focus.pinned;
    let elsewhere = place(&window, 0.4, 0.3);
    window.hover_at(elsewhere);
    window.run_steps(3);
    let focus = &state(&window).focus;
    assert!(focus.is_pinned && focus.pinned == pinned && focus.hovered.is_some_and(|h| h != pinned));
    assert_eq!(shown(&window), before, "the click steals no page");
    window.key_press(Key::Escape);
    window.run_steps(3);
    window.hover_at(place(&window, 0.42, 0.3));
    window.run_steps(3);
    let focus = &state(&window).focus;
    assert!(!focus.is_pinned && Some(focus.pinned) == focus.hovered);
}

/// As `fill`; the parameter's name is also next to its field.
fn fill_argument(window: &mut Window, name: &str, text: &str) {
    window.get_by_role_and_label(Role::TextInput, name).focus();
    window.run_steps(2);
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.run_steps(2);
    window.event(egui::Event::Text(text.into()));
    window.run_steps(2);
}

#[test]
fn a_presets_own_value_can_be_typed_again() {
    let mut window = window(None);
    open_preset(&mut window, "flux_text_padding");
    let kept = density(&window);
    for (text, wanted) in [("384", 384), ("77", 77), ("[77]", 77), ("77,", 77), ("384", 384)] {
        fill_argument(&mut window, "lengths", text);
        window.key_press(Key::Enter);
        window.run_steps(3);
        settle(&mut window);
        let MaskContent::Pattern(code) = &state(&window).document.layers[0].content else { panic!() };
        assert_eq!(code.args["lengths"], ArgValue::List(vec![ArgValue::Int(wanted)]), "{text}");
        assert!(state(&window).session.built.as_ref().unwrap().problem.is_ok(), "{text}");
    }
    assert_eq!(density(&window), kept);
    // a length beyond the text is reported
    fill_argument(&mut window, "lengths", "5000");
    window.key_press(Key::Enter);
    window.run_steps(3);
    settle(&mut window);
    assert!(window.query_by_label_contains("5000 lies outside").is_some());
}

#[test]
fn a_distance_curve_is_drawn_within_its_axes_and_undone_at_once() {
    let mut window = window(None);
    command(&mut window, Key::P);
    window.event(egui::Event::Text("Add a distance curve".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(6);
    settle(&mut window);
    let points = |window: &Window| match &state(window).document.scores[0].content {
        ScoreContent::Curve { points } => points.clone(),
        other => panic!("{other:?}"),
    };
    let drawn = points(&window);
    let plot = window.get_by_label("Distance curve").rect();
    // freehand, from the left to the right, then held far below the plot
    let at = |x: f32, y: f32| plot.min + Vec2::new(x, y) * plot.size();
    window.hover_at(at(0.4, 0.3));
    window.drag_at(at(0.4, 0.3));
    window.run_steps(2);
    for n in 0..10 {
        window.hover_at(at(0.4 + 0.04 * n as f32, 0.3 + 0.05 * n as f32));
        window.run_steps(1);
    }
    for _ in 0..20 {
        window.hover_at(at(0.8, 3.0));
        window.run_steps(1);
    }
    window.drop_at(at(0.8, 3.0));
    window.run_steps(3);
    let now = points(&window);
    assert!(now.len() > drawn.len() && now.iter().all(|p| p.1.abs() < 20.0), "{now:?}");
    command(&mut window, Key::Z);
    assert_eq!(points(&window), drawn, "one step");
}

#[test]
fn a_document_that_was_never_saved_comes_back_after_another_took_its_place() {
    let home = tempfile::tempdir().unwrap();
    let mut first = window(Some(home.path()));
    fill(&mut first, "Document name", "My hours of work");
    let mine = state(&first).document.clone();
    open_preset(&mut first, "alibi");
    // it keeps its tab; closing that is what takes its place
    command(&mut first, Key::PageUp);
    command(&mut first, Key::W);
    settle(&mut first);
    assert!(said(&first, "My hours of work was not saved"));
    // browsing presets stores nothing: they were not edited
    open_preset(&mut first, "causal");
    assert!(!said(&first, "ALiBi"), "{:?}", state(&first).document.name);
    first.state_mut().state.recovery.finish();
    drop(first);
    let mut second = window(Some(home.path()));
    step_until(&mut second, "the list is there", |s| matches!(s.dialog, Some(Dialog::Unsaved(_))));
    second.run_steps(20);
    click(&mut second, "Open My hours of work");
    step_until(&mut second, "it is back", |s| s.dialog.is_none());
    assert_eq!(state(&second).document, mine);
    assert!(state(&second).is_dirty());
    // it was offered once; it stays in the menu
    second.run_steps(40);
    second.state_mut().state.recovery.finish();
    drop(second);
    let third = window(Some(home.path()));
    assert!(state(&third).dialog.is_none() && state(&third).document == mine);
}

#[test]
fn connecting_waits_in_seconds_and_cancel_leaves_everything_as_it_was() {
    let mut window = window(None);
    step_until(&mut window, "the first worker's failure is told", |s| s.session.worker_error.is_some());
    let before = state(&window).view.target.clone();
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::G);
    window.run_steps(3);
    fill(&mut window, "Launch command", "sleep 600");
    window.key_press(Key::Enter);
    window.run_steps(4);
    assert!(state(&window).connecting.is_some(), "Enter connects");
    assert!(window.query_by_label_contains("Waiting for a worker on sleep 600").is_some());
    assert!(window.query_by_label_contains("s of 120 s").is_some());
    assert_eq!(state(&window).view.target, before, "the old one stays until the new one answers");
    click(&mut window, "Cancel");
    window.run_steps(2);
    let state = state(&window);
    assert!(state.connecting.is_none() && state.dialog.is_none() && state.view.target == before);
}

#[test]
fn a_click_beside_a_dialog_keeps_what_was_typed() {
    let mut window = window(None);
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::V);
    window.run_steps(3);
    window.run_steps(2);
    window.event(egui::Event::Text("def far(b, h, q_idx, kv_idx):\n    return q_idx > kv_idx\n".into()));
    window.run_steps(2);
    let beside = Pos2::new(20.0, 900.0);
    window.hover_at(beside);
    window.drag_at(beside);
    window.run_steps(1);
    window.drop_at(beside);
    window.run_steps(3);
    assert!(state(&window).dialog.is_some());
    assert!(window.query_by_label_contains("Adds the mask far").is_some());
}

#[test]
fn pasted_code_brings_its_sizes_name_and_arguments() {
    let mut window = window(None);
    open_preset(&mut window, "flux_text_padding");
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::V);
    window.run_steps(3);
    window.run_steps(2);
    let code = "def near_and_sinks(window, sinks=1):\n    def mask_mod(b, h, q_idx, kv_idx):\n        return (q_idx >= kv_idx) & ((q_idx - kv_idx < window) | (kv_idx < sinks))\n    return mask_mod\nblock_mask = create_block_mask(near_and_sinks(window=512, sinks=4), 1, 1, 2048, 2048)\n";
    window.event(egui::Event::Text(code.into()));
    window.run_steps(3);
    assert!(window.query_by_label_contains("2048 x 2048 tokens, from line 5").is_some());
    click(&mut window, "Use this code");
    settle(&mut window);
    let document = &state(&window).document;
    assert_eq!((document.name.as_str(), document.axes.q.to_string()), ("Near and sinks", "tokens 2048".to_string()));
    assert!(state(&window).session.built.as_ref().unwrap().problem.is_ok() && state(&window).is_dirty());
    for slider in ["window", "sinks"] {
        assert!(window.query_by_role_and_label(Role::Slider, slider).is_some(), "{slider}");
    }
    command(&mut window, Key::Z);
    settle(&mut window);
    assert_eq!(state(&window).document, library::preset("flux_text_padding").unwrap().document().unwrap());
}

/// The first error is told once the typing rests; mended in the editor, the code has its arguments as sliders.
#[test]
fn pasted_code_with_an_error_is_told_at_once_and_has_its_sliders_once_it_is_mended() {
    let mut window = window(None);
    open_preset(&mut window, "causal");
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::V);
    window.run_steps(3);
    let good = "def near(window):\n    def mask_mod(b, h, q_idx, kv_idx):\n        return (q_idx >= kv_idx) & (q_idx - kv_idx < window)\n    return mask_mod\nmine = near(window=512)\n";
    let broken = good.replace("< window)", "< window");
    window.event(egui::Event::Text(broken));
    window.run_steps(1);
    let told = |window: &Window| window.query_by_label_contains("Not right yet, line ").is_some();
    assert!(!told(&window), "the typing may go on");
    window.run_steps(12);
    assert!(told(&window));
    click(&mut window, "Use this code");
    settle(&mut window);
    assert!(state(&window).session.built.as_ref().unwrap().problem.is_err());
    let layer = state(&window).document.layers.last().unwrap().id;
    let edit = crate::document::edit::Edit::SetSource(layer, good.into());
    act(&mut window.state_mut().state, Action::Edit(edit));
    settle(&mut window);
    let MaskContent::Text(code) = &state(&window).document.layers.last().unwrap().content else { panic!("no text") };
    assert_eq!((code.entry.as_str(), code.args.get("window")), ("near", Some(&ArgValue::Int(512))));
    assert!(window.query_by_role_and_label(Role::Slider, "window").is_some());
    // one undo takes the mending back, and a text that was whole keeps its function
    command(&mut window, Key::Z);
    settle(&mut window);
    let MaskContent::Text(code) = &state(&window).document.layers.last().unwrap().content else { panic!("no text") };
    assert!(code.entry.is_empty() && code.source.ends_with("< window\n    return mask_mod\nmine = near(window=512)\n"));
}

/// Lengths and heads come from the tensors that the code reads, nothing from the document before.
#[test]
fn pasted_code_has_the_lengths_of_its_tables() {
    let mut window = window(None);
    open_preset(&mut window, "flux_text_padding");
    let heads = state(&window).document.settings.heads;
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::V);
    window.run_steps(5);
    let code = "import torch\ndoc_id = torch.arange(2048) // 256\nslopes = torch.ones(32)\n\
        def mask_mod(b, h, q_idx, kv_idx):\n    return (doc_id[q_idx] == doc_id[kv_idx]) & (slopes[h] > 0)\n";
    window.event(egui::Event::Text(code.into()));
    window.run_steps(3);
    assert!(window.query_by_label_contains("2048 tokens, the length of doc_id").is_some());
    click(&mut window, "Use this code");
    settle(&mut window);
    let document = &state(&window).document;
    assert_eq!(document.axes.q.to_string(), "tokens 2048");
    // each head has its own keys: the code shares none
    let settings = &document.settings;
    assert_eq!((settings.heads, settings.kv_heads, heads == 32), (32, 32, false));
    let built = state(&window).session.built.as_ref().unwrap();
    assert!(built.problem.is_ok());
}

/// Opens Export for SimpleTuner, fills it in and waits for the files.
fn export(window: &mut Window, folder: &str, config: Option<&str>) {
    command(window, Key::E);
    click(window, "SimpleTuner");
    fill(window, "Folder", folder);
    if let Some(config) = config {
        fill(window, "The trainer's config.json", config);
    }
    step_until(window, "the files are made", |s| s.export.is_ready());
    window.run_steps(10);
}

#[test]
fn exporting_into_a_trainers_file_changes_that_file_and_keeps_a_copy() {
    let home = tempfile::tempdir().unwrap();
    let (config, out) = (home.path().join("config.json"), home.path().join("out"));
    let text = "{\n  \"model_family\": \"wan\",\n  \"attention_mechanism\": null\n}\n";
    std::fs::write(&config, text).unwrap();
    let mut window = window(None);
    export(&mut window, &out.display().to_string(), Some(&config.display().to_string()));
    assert!(window.query_by_label_contains("-   \"attention_mechanism\": null").is_some());
    assert!(window.query_by_label_contains("+   \"attention_mechanism\": \"diffusers\"").is_some());
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text, "nothing before the decision");
    press_below(&mut window, "Write the files");
    step_until(&mut window, "the files are written", |s| s.export.done.is_some());
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text.replace("null", "\"diffusers\""));
    assert_eq!(std::fs::read_to_string(home.path().join("config.json.bak")).unwrap(), text);
    assert!(!out.join("config.json").exists() && said(&window, "config.json.bak"));
    assert!(out.join("sidecar/sidecar.json").exists() && !out.join("sliding_window_diffusers.py").exists());
    // what to do next names the real folder
    window.run_steps(3);
    let sidecar = out.join("sidecar").display().to_string();
    assert!(window.query_all_by_label_contains(&sidecar).next().is_some());
    // the file as it is now is shown, so that writing once more is no dead end
    step_until(&mut window, "the files are made", |s: &State| s.export.is_ready());
    window.run_steps(3);
    assert!(window.query_by_label_contains("The file already has the setting").is_some());
    press_below(&mut window, "Write the files");
    step_until(&mut window, "it is asked", |s| !s.export.existing.is_empty());
    press_below(&mut window, "Replace them");
    step_until(&mut window, "the files are written", |s| {
        s.export.done.as_ref().is_some_and(|d| d.config.as_ref().is_some_and(|c| c.backup.is_none()))
    });
    // another workspace and back: the choices stay; a copy is labelled
    command(&mut window, Key::Num1);
    command(&mut window, Key::E);
    step_until(&mut window, "the files are made", |s: &State| s.export.is_ready());
    window.run_steps(10);
    let copy = format!("Write a changed copy: {}", out.join("config.json").display());
    press_below(&mut window, &copy);
    let choices = state(&window).export.choices().expect("asked");
    assert_eq!(choices.config_path(), Some(config));
}

/// It was called by the first of its edits, and the document of a shape counted as changed after undo.
#[test]
fn a_taken_proposal_is_one_step_and_undo_leaves_a_new_document_as_untouched_as_before() {
    use crate::document::edit::Edit;
    let mut window = window(None);
    command(&mut window, Key::N);
    let content = MaskContent::Band { lo: Some(0), hi: None };
    let first = Edit::AddLayer(0, Box::new(layer(1, "first", content.clone())));
    assert!(window.state_mut().state.edit(first));
    // as a document is that was made here and that nobody has touched
    let made = state(&window).document.clone();
    super::act::open_document(&mut window.state_mut().state, made.clone());
    settle(&mut window);
    assert!(!state(&window).is_dirty());
    let second = Edit::AddLayer(1, Box::new(layer(2, "proposed", content)));
    let steps = vec![Edit::SetEnabled(1, false), second];
    act(&mut window.state_mut().state, Action::TakeProposal(Edit::Group(steps)));
    settle(&mut window);
    assert_eq!(state(&window).history.undo_title(), Some(&Title::Take));
    assert!(state(&window).document.layers.len() == 2 && state(&window).is_dirty());
    command(&mut window, Key::Z);
    settle(&mut window);
    assert!(state(&window).document == made && !state(&window).is_dirty());
    window.key_press_modifiers(Modifiers::COMMAND.plus(Modifiers::SHIFT), Key::Z);
    settle(&mut window);
    assert!(state(&window).document.layers.len() == 2 && state(&window).is_dirty());
}

fn layer(id: u64, name: &str, content: MaskContent) -> Layer {
    Layer { id, name: name.into(), enabled: true, combine: Combine::And, content, heads: None }
}
