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

/// Steps until the figures of the selected area are of the newest design.
fn count(window: &mut Window) {
    step_until(window, "the area is counted", |s| {
        s.focus.area.as_ref().is_some_and(|a| a.figures.as_ref().is_some_and(|f| f.of == s.area_of()))
    });
    window.run_steps(2);
}

#[test]
fn a_lasso_selects_and_its_cells_are_kept_and_removed_as_one_step_each() {
    let mut window = window(None);
    press_over_the_canvas(&mut window, Key::S);
    let before = state(&window).document.clone();
    drag(&mut window, &[(0.6, 0.1), (0.9, 0.12), (0.9, 0.3), (0.75, 0.35), (0.62, 0.3)]);
    assert_eq!(state(&window).document, before, "nothing is drawn");
    count(&mut window);
    let kept =
        |window: &Window| state(window).focus.area.as_ref().and_then(|a| a.figures.clone()).expect("figures").kept;
    assert_eq!(kept(&window), 0.0, "above the diagonal");
    click(&mut window, "Keep these");
    settle(&mut window);
    assert_eq!(layers(&window), before.layers.len() + 1);
    count(&mut window);
    assert_eq!(kept(&window), 1.0);
    click(&mut window, "Remove these");
    settle(&mut window);
    count(&mut window);
    assert_eq!(kept(&window), 0.0);
    command(&mut window, Key::Z);
    command(&mut window, Key::Z);
    settle(&mut window);
    assert_eq!(state(&window).document, before, "two steps");
    window.key_press(Key::Escape);
    window.run_steps(2);
    assert!(state(&window).focus.area.is_none(), "Escape forgets it");
}

#[test]
fn patches_take_the_matrix_s_place_offer_a_grid_and_go_back() {
    let mut window = window(None);
    press_over_the_canvas(&mut window, Key::G);
    assert!(state(&window).focus.patches && window.query_by_label("Mask canvas").is_none());
    window.get_by_label_contains("These keys have no grid");
    click(&mut window, "64x128");
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.to_string(), "tokens 64x128");
    let name = "Keys in tokens";
    step_until(&mut window, "the row is there", |s| s.session.canvas.has_row());
    window.run_steps(2);
    let picture = window.get_by_label(name).rect();
    window.hover_at(picture.left_top() + egui::vec2(2.0, 2.0));
    window.run_steps(2);
    click(&mut window, name);
    assert!(state(&window).focus.is_pinned);
    let before = state(&window).focus.pinned[0];
    window.key_press(Key::ArrowDown);
    window.run_steps(3);
    assert_eq!(state(&window).focus.pinned[0], before + 128);
    command(&mut window, Key::Z);
    assert_eq!(state(&window).document.axes.q.to_string(), "tokens 8192");
    super::tests::by_palette(&mut window, &["Patches"]);
    assert!(!state(&window).focus.patches && window.query_by_label("Mask canvas").is_some());
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

#[test]
fn messages_stand_beside_the_mask_and_cover_neither_layers_nor_heads() {
    let mut window = window(None);
    window.set_size(egui::Vec2::new(1900.0, 950.0));
    command(&mut window, Key::N);
    settle(&mut window);
    let reported = window.get_by_label_contains("A new document.").rect();
    let canvas = window.get_by_label("Mask canvas").rect();
    assert!(canvas.contains_rect(reported), "{reported} in {canvas}");
    assert!(reported.center().x > canvas.center().x && reported.bottom() < canvas.bottom());
}

#[test]
fn a_preset_that_comes_back_by_undo_or_redo_is_no_change() {
    let mut window = window(None);
    super::act::act(&mut window.state_mut().state, super::action::Action::OpenPreset("causal".into()));
    settle(&mut window);
    for (keys, name) in [(Modifiers::COMMAND, "Sliding window"), (Modifiers::COMMAND.plus(Modifiers::SHIFT), "Causal")]
    {
        window.key_press_modifiers(keys, Key::Z);
        settle(&mut window);
        assert!(state(&window).document.name.contains(name), "{}", state(&window).document.name);
        assert!(!state(&window).is_dirty(), "{name}");
    }
    // neither is one whose own changes were taken back
    let mut settings = state(&window).document.settings.clone();
    settings.batch += 1;
    window.state_mut().state.edit(crate::document::edit::Edit::SetSettings(Box::new(settings)));
    settle(&mut window);
    assert!(state(&window).is_dirty());
    command(&mut window, Key::Z);
    settle(&mut window);
    assert!(state(&window).document.name.contains("Causal") && !state(&window).is_dirty());
}

#[test]
fn messages_of_problems_are_no_wider_than_their_page() {
    use crate::document::edit::Edit;
    use crate::document::model::{Combine, Layer, TextCode};
    let mut window = window(None);
    let source = format!(
        "def mask_mod(b, h, q, k):\n    return (q >= k) and {}\n",
        "(q - k <= 1024) and ".repeat(9) + "(k > 1)"
    );
    let content = MaskContent::Text(TextCode { source, ..TextCode::default() });
    let layer = Layer { id: 1, name: "long".into(), enabled: true, combine: Combine::And, heads: None, content };
    let mut document = state(&window).document.clone();
    document.layers = vec![layer];
    window.state_mut().state.edit(Edit::Replace(Box::new(document)));
    settle(&mut window);
    window.get_by_label_contains("Problems (").click();
    window.run_steps(3);
    for words in ["needs one truth value", "write `", "Copy"] {
        let places: Vec<_> = window.query_all_by_label_contains(words).map(|node| node.rect()).collect();
        assert!(!places.is_empty() && places.iter().all(|place| place.right() <= 1500.0), "{words}: {places:?}");
    }
}

#[test]
fn a_race_of_a_lesson_leaves_it_in_front_and_workspaces_lead_back() {
    use super::workspace::Workspace;
    let mut window = window(None);
    click(&mut window, "Learn");
    click(&mut window, "Start: Maskloom in two minutes");
    click(&mut window, "Next");
    click(&mut window, "Go to the slider");
    assert_eq!(state(&window).view.workspace, Workspace::Design);
    click(&mut window, "Back to the lesson");
    let next = |window: &Window| window.get_by_label("Next").rect().min;
    let before = next(&window);
    click(&mut window, "Next");
    click(&mut window, "Next");
    assert_eq!(next(&window), before, "the buttons stay where they are");
    // the step that races
    let races = window.query_all_by_label("Race").map(|node| node.rect()).max_by(|a, b| a.top().total_cmp(&b.top()));
    let race = races.expect("a button").center();
    window.hover_at(race);
    window.drag_at(race);
    window.run_steps(1);
    window.drop_at(race);
    window.run_steps(4);
    assert_eq!(state(&window).view.workspace, Workspace::Learn);
}

/// What stood in a field was cut at the first letter before: `8k` made a document of 8 tokens.
#[test]
fn lengths_are_typed_as_they_are_written() {
    let mut window = window(None);
    for (typed, tokens) in [("8k", 8192), ("1_024", 1024), ("4k5", 1024), ("2K", 2048)] {
        window.get_by_label_contains("extent 1 of").click();
        window.run_steps(2);
        command(&mut window, Key::A);
        window.event(egui::Event::Text(typed.into()));
        window.run_steps(2);
        window.key_press(Key::Enter);
        window.run_steps(3);
        assert_eq!(state(&window).document.axes.q.len(), tokens, "{typed}");
    }
}

/// Types letter by letter, as a person does.
fn type_slowly(window: &mut Window, text: &str) {
    for letter in text.chars() {
        window.event(egui::Event::Text(letter.to_string()));
        window.run_steps(1);
    }
}

/// Begins to type over what stands in the field of the axes.
fn type_axes(window: &mut Window, text: &str) {
    window.get_by_label("Query axis").focus();
    window.run_steps(2);
    command(window, Key::A);
    type_slowly(window, text);
}

#[test]
fn a_text_that_is_being_typed_is_for_the_document_it_was_typed_in() {
    let mut window = window(None);
    type_axes(&mut window, "tokens 777");
    command(&mut window, Key::T);
    settle(&mut window);
    let beside = window.get_by_label("Mask canvas").rect().center();
    window.hover_at(beside);
    window.drag_at(beside);
    window.run_steps(1);
    window.drop_at(beside);
    window.run_steps(4);
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.to_string(), "tokens 4096", "the new one");
    command(&mut window, Key::PageUp);
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.to_string(), "tokens 777", "its own");
    // what is refused is not shown over another document
    type_axes(&mut window, "tokens zero");
    assert!(window.query_all_by_label_contains("write segments as").next().is_some());
    command(&mut window, Key::PageDown);
    settle(&mut window);
    assert!(window.query_all_by_label_contains("write segments as").next().is_none());
    let [here, there] = [0, 1].map(|at| state(&window).tabs()[at].document.axes.q.to_string());
    assert_eq!([here, there], ["tokens 777", "tokens 4096"]);
}

#[test]
fn a_number_that_is_being_typed_is_for_the_document_it_was_typed_in() {
    let mut window = window(None);
    command(&mut window, Key::T);
    settle(&mut window);
    window.get_by_label_contains("extent 1 of").click();
    window.run_steps(2);
    command(&mut window, Key::A);
    type_slowly(&mut window, "2,048");
    assert_eq!(state(&window).document.axes.q.len(), 4096, "nothing before its end");
    command(&mut window, Key::T);
    settle(&mut window);
    window.run_steps(4);
    let lengths: Vec<usize> = state(&window).tabs().iter().map(|tab| tab.document.axes.q.len()).collect();
    assert_eq!(lengths, [8192, 2048, 4096]);
}

#[test]
fn keys_without_a_field_are_commands_wherever_the_pointer_is() {
    let mut window = window(None);
    super::tests::by_palette(&mut window, &["Add a rectangle"]);
    let row = window.get_by_label("Enable Rectangle").rect().center();
    // over the list of layers, where a button has the keyboard
    click(&mut window, "Blocks");
    window.hover_at(egui::pos2(row.x, row.y + 200.0));
    window.run_steps(2);
    window.key_press(Key::B);
    window.run_steps(3);
    assert_eq!(state(&window).focus.tool, Tool::Brush);
    let before = layers(&window);
    window.key_press(Key::Delete);
    window.run_steps(3);
    assert_eq!(layers(&window), before - 1);
    // over a field for text they are not, and in it least of all
    window.get_by_label("Blocks").focus();
    window.run_steps(2);
    window.hover_at(window.get_by_label("Query axis").rect().center());
    window.run_steps(2);
    window.key_press(Key::E);
    window.key_press(Key::Delete);
    window.run_steps(3);
    assert_eq!((state(&window).focus.tool, layers(&window)), (Tool::Brush, before - 1));
    window.get_by_label("Query axis").focus();
    window.run_steps(2);
    window.hover_at(egui::pos2(row.x, row.y + 200.0));
    window.key_press(Key::Delete);
    window.key_press(Key::E);
    window.run_steps(3);
    assert_eq!((state(&window).focus.tool, layers(&window)), (Tool::Brush, before - 1));
}

/// Whether a text that begins so is painted whole: inside of the window, and of what clips it.
fn is_painted(window: &Window, begin: &str) -> bool {
    let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(1500.0, 950.0));
    fn places(shape: &egui::Shape, begin: &str) -> Vec<egui::Rect> {
        match shape {
            egui::Shape::Text(text) if text.galley.text().starts_with(begin) => {
                vec![egui::Rect::from_min_size(text.pos, text.galley.size())]
            }
            egui::Shape::Vec(shapes) => shapes.iter().flat_map(|shape| places(shape, begin)).collect(),
            _ => Vec::new(),
        }
    }
    window.output().shapes.iter().any(|painted| {
        let seen =
            |place: &egui::Rect| painted.clip_rect.expand(1.0).contains_rect(*place) && screen.contains_rect(*place);
        let found = places(&painted.shape, begin);
        found.iter().any(seen)
    })
}

#[test]
fn every_message_is_whole_as_long_as_the_window_has_room() {
    let mut window = window(None);
    let begin = |n: usize| format!("Message {n} tells at length");
    for n in 1..=3 {
        let message = format!("{} {}", begin(n), "what went wrong, and why. ".repeat(3));
        window.state_mut().state.tell(crate::base::Diagnostic::error("a-test", message));
        window.run_steps(4);
    }
    for n in 1..=3 {
        assert!(is_painted(&window, &begin(n)), "{n}");
    }
}

#[test]
fn the_list_of_keys_is_whole_in_a_small_window() {
    let mut window = window(None);
    window.set_size(egui::vec2(700.0, 500.0));
    window.run_steps(3);
    window.key_press(Key::F1);
    window.run_steps(4);
    for command in super::command::Command::all() {
        let tip = command.tip(&window.ctx);
        let places: Vec<_> = window.query_all_by_label(tip).map(|node| node.rect()).collect();
        assert!(!places.is_empty() && places.iter().all(|place| place.right() <= 700.0), "{tip}: {places:?}");
    }
}

#[test]
fn a_part_of_an_axis_has_its_buttons_inside_of_a_narrow_panel() {
    let mut window = window(None);
    window.set_size(egui::vec2(1280.0, 720.0));
    type_axes(&mut window, "text 256 | video 16x30x52");
    window.key_press(Key::Enter);
    window.run_steps(3);
    settle(&mut window);
    let buttons = ["Query axis: video up", "Query axis: remove video"].map(|name| window.get_by_label(name).rect());
    assert!(buttons.iter().all(|place| place.right() <= 1272.0), "{buttons:?}");
}
