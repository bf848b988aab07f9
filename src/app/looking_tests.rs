//! Navigation: zoom, cells by number, the canvas' menu, workspaces, parts of axes, the gallery, presentations.
//!
//! Invariant: as in `tests`: every action is a user's action.

use super::drafts::Dialog;
use super::layout;
use super::tests::*;
use super::theme::ThemeChoice;
use super::workspace::{Aside, Workspace};
use egui::{Key, Modifiers, Vec2};
use egui_kittest::kittest::Queryable;

fn canvas(window: &Window) -> egui::Rect {
    window.get_by_label("Mask canvas").rect()
}

#[test]
fn one_key_leads_into_the_page_and_back_to_the_canvas() {
    let mut window = window(None);
    window.state_mut().state.view.show(Workspace::Export);
    window.state_mut().state.session.canvas.take_focus();
    window.run_steps(3);
    assert!(state(&window).session.canvas.has_focus());
    window.key_press(Key::F6);
    window.run_steps(5);
    assert!(window.get_by_label("SimpleTuner").is_focused());
    window.key_press(Key::Enter);
    window.run_steps(5);
    assert!(state(&window).export.choices().is_some_and(|choices| choices.of.is_some()));
    window.key_press(Key::F6);
    window.run_steps(5);
    assert!(state(&window).session.canvas.has_focus());
}

#[test]
fn the_canvas_keeps_its_share_of_the_real_window_in_every_workspace() {
    let mut window = window(None);
    click(&mut window, "Hide the first steps");
    for size in [Vec2::new(1280.0, 720.0), Vec2::new(1600.0, 1000.0)] {
        window.set_size(size);
        for workspace in Workspace::ALL {
            window.state_mut().state.view.show(workspace);
            window.run_steps(3);
            // with its rulers, which belong to it
            let shown = canvas(&window).size() + Vec2::new(74.0, 54.0);
            let share = shown.x * shown.y / (size.x * size.y);
            assert!(share >= 0.45, "{workspace:?} at {size}: {share}");
        }
    }
}

#[test]
fn one_goes_to_a_cell_by_its_numbers_and_back_to_the_whole() {
    let mut window = window(None);
    assert!(window.query_by_label_contains("1 px = ").is_some());
    command(&mut window, Key::L);
    window.event(egui::Event::Text("4000, 3500".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(4);
    let focus = &state(&window).focus;
    assert!(focus.is_pinned && focus.pinned == [4000, 3500], "{:?}", focus.pinned);
    assert!(window.query_by_label_contains("cell 69 px").is_some(), "cells are large enough to be read");
    // beyond the end: the last one
    click(&mut window, "Go to");
    window.event(egui::Event::Text("999999 1".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(4);
    assert_eq!(state(&window).focus.pinned, [8191, 1]);
    click(&mut window, "Fit");
    assert!(window.query_by_label_contains("1 px = ").is_some());
    click(&mut window, "Zoom in");
    assert!(!state(&window).session.canvas.is_fit());
}

#[test]
fn the_right_button_offers_what_applies_to_the_cell() {
    let mut window = window(None);
    let at = canvas(&window).min + canvas(&window).size() * Vec2::new(0.5, 0.53);
    window.hover_at(at);
    window.run_steps(2);
    for pressed in [true, false] {
        let (button, modifiers) = (egui::PointerButton::Secondary, Modifiers::NONE);
        window.event(egui::Event::PointerButton { pos: at, button, pressed, modifiers });
        window.run_steps(2);
    }
    assert!(window.query_by_label("Select Sliding window, which decides this cell").is_some());
    click(&mut window, "Show its steps");
    let (view, focus) = (&state(&window).view, &state(&window).focus);
    assert!(view.aside == Some(Aside::Cell) && focus.is_pinned);
}

#[test]
fn a_panel_that_a_small_window_narrowed_has_its_width_again() {
    let mut window = window(None);
    window.state_mut().state.view.widths.left = Some(330.0);
    window.run_steps(3);
    let wide = canvas(&window).left();
    window.set_size(Vec2::new(760.0, 480.0));
    window.run_steps(3);
    assert!(canvas(&window).width() > 200.0);
    window.set_size(Vec2::new(1500.0, 950.0));
    window.run_steps(3);
    assert_eq!(canvas(&window).left(), wide);
    assert!(wide > 330.0 && layout::LEAST < 330.0);
}

#[test]
fn an_axis_is_built_of_parts() {
    let mut window = window(None);
    click(&mut window, "Query axis: + image");
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.to_string(), "tokens 8192 | image 32x32");
    click(&mut window, "Query axis: image up");
    click(&mut window, "Query axis: remove tokens");
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.to_string(), "image 32x32");
    fill(&mut window, "Query axis: name of part 1", "latent");
    settle(&mut window);
    assert_eq!(state(&window).document.axes.q.to_string(), "latent 32x32");
    fill(&mut window, "Query axis: name of part 1", "a|b");
    assert_eq!(state(&window).document.axes.q.to_string(), "latent 32x32", "no name");
}

#[test]
fn enter_opens_the_first_preset_that_the_gallery_finds() {
    let mut window = window(None);
    command(&mut window, Key::G);
    window.event(egui::Event::Text("natten 2-d".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    settle(&mut window);
    assert!(state(&window).dialog.is_none());
    assert_eq!(state(&window).document.name, "NATTEN 2-D");
}

/// Also while it is empty: a folder that nobody names is never found.
#[test]
fn the_gallery_names_the_folder_of_own_presets() {
    let mut window = window(None);
    command(&mut window, Key::G);
    let folder = crate::worker::folders::presets().expect("a folder for data");
    step_until(&mut window, "the folder is known", |state| match &state.dialog {
        Some(Dialog::Gallery(gallery)) => gallery.folder.as_ref() == Some(&folder),
        _ => false,
    });
    click(&mut window, "Yours");
    let words = format!("Presets of yours: .json files in {}", folder.display());
    assert!(window.query_by_label(&words).is_some(), "{words}");
}

#[test]
fn the_gallery_shows_two_dozen_tiles_at_once() {
    let mut window = window(None);
    window.set_size(Vec2::new(1600.0, 960.0));
    command(&mut window, Key::G);
    window.run_steps(4);
    let (close, first) = (window.get_by_label("Close").rect(), window.get_by_label("Prefix LM").rect());
    let nodes = window.query_all_by_role(egui::accesskit::Role::Button);
    let tiles = nodes.map(|node| node.rect()).filter(|rect| rect.size() == first.size() && rect.bottom() < close.top());
    let tiles = tiles.count();
    assert!(tiles >= 24, "{tiles} tiles of {:?} above {close:?}", first.size());
}

#[test]
fn a_presentation_ends_as_it_began() {
    let mut window = window(None);
    window.key_press(Key::F11);
    window.run_steps(3);
    let view = state(&window).view.clone();
    assert!(!view.left && !view.right && view.theme == ThemeChoice::Light && view.scale > 1.3);
    window.key_press(Key::F11);
    window.run_steps(3);
    let view = &state(&window).view;
    assert!(view.left && view.right && view.theme == ThemeChoice::System && view.scale == 1.0);
}

#[test]
fn the_walk_over_tiles_is_of_the_open_mask_and_follows_the_query() {
    let mut window = window(None);
    command(&mut window, Key::Num6);
    click(&mut window, "Start: FlashAttention, tile by tile");
    assert!(window.query_by_label("0 of 9 tiles visited; 55 of 64 are empty and skipped").is_some());
    for _ in 0..3 {
        click(&mut window, "Step");
    }
    assert_eq!(state(&window).focus.step, Some(3));
    assert!(window.query_by_label("3 of 9 tiles visited; 55 of 64 are empty and skipped").is_some());
    assert!(window.query_by_label("kv tile 26, full: no mask is evaluated").is_some());
    // the first query of all has one tile
    window.state_mut().state.focus.pinned = [0, 0];
    window.run_steps(3);
    assert!(window.query_by_label_contains("of 1 tiles visited; 63 of 64").is_some());
    click(&mut window, "All lessons");
    assert_eq!(state(&window).focus.step, None);
}

#[test]
fn a_lesson_drives_the_window() {
    let mut window = window(None);
    click(&mut window, "Lessons, step by step");
    click(&mut window, "Start: What a block is");
    click(&mut window, "Open the sliding window");
    settle(&mut window);
    click(&mut window, "Next");
    click(&mut window, "Blocks of 1024");
    settle(&mut window);
    assert_eq!(state(&window).document.settings.block_size.q, 1024);
    assert!(window.query_by_label("done").is_some() && state(&window).view.is_at(Workspace::Learn));
}

#[test]
fn a_patch_that_is_clicked_becomes_the_query() {
    let mut window = window(None);
    super::act::act(&mut window.state_mut().state, super::action::Action::OpenPreset("natten_2d".into()));
    settle(&mut window);
    super::act::act(&mut window.state_mut().state, super::action::Action::Pin([32 * 64 + 32, 0]));
    command(&mut window, Key::Num7);
    // 13 x 13 neighbours
    assert!(window.query_by_label("image: 169 of 4096 patches").is_some());
    let picture = window.get_by_label("Patches of image").rect();
    let at = picture.min + picture.size() * Vec2::new(0.5 / 64.0, 0.5 / 64.0);
    window.hover_at(at);
    window.drag_at(at);
    window.run_steps(1);
    window.drop_at(at);
    window.run_steps(3);
    assert_eq!(state(&window).focus.pinned[0], 0, "the upper left patch");
}

#[test]
fn the_palette_finds_cells_parameters_and_layers() {
    let mut window = window(None);
    let typed = |window: &mut Window, text: &str| {
        command(window, Key::P);
        window.event(egui::Event::Text(text.into()));
        window.run_steps(2);
        window.key_press(Key::Enter);
        window.run_steps(4);
    };
    typed(&mut window, "120, 70");
    assert_eq!((state(&window).focus.pinned, state(&window).focus.is_pinned), ([120, 70], true));
    assert!(!state(&window).session.canvas.is_fit());
    window.state_mut().state.focus.layer = None;
    command(&mut window, Key::Num2);
    typed(&mut window, "parameter window");
    assert_eq!(state(&window).focus.layer, Some(1));
    assert!(state(&window).view.is_at(Workspace::Design));
}

#[test]
fn a_layer_is_dragged_to_another_place_by_its_picture() {
    let mut window = window(None);
    by_palette(&mut window, &["Add a rectangle", "Add a band"]);
    let names = |window: &Window| state(window).document.layers.iter().map(|l| l.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&window), ["Sliding window", "Rectangle", "Band"]);
    let at = |window: &Window, name: &str| window.get_by_label(&format!("Picture of {name}")).rect().center();
    let (from, to) = (at(&window, "Band"), at(&window, "Sliding window"));
    window.hover_at(from);
    window.drag_at(from);
    window.run_steps(2);
    for share in [0.3, 0.7, 1.0] {
        window.hover_at(from + (to - from) * share);
        window.run_steps(1);
    }
    window.drop_at(to);
    window.run_steps(3);
    assert_eq!(names(&window), ["Band", "Sliding window", "Rectangle"]);
    settle(&mut window);
    command(&mut window, Key::Z);
    assert_eq!(names(&window), ["Sliding window", "Rectangle", "Band"], "one step back");
}

#[test]
fn a_race_over_lengths_makes_each_length_and_tells_why_one_did_not_run() {
    let mut window = window(None);
    by_palette(&mut window, &["Race over lengths"]);
    step_until(&mut window, "every length was tried", |state| {
        state.session.races.sweep.as_ref().is_some_and(|sweep| sweep.is_over())
    });
    let sweep = state(&window).session.races.sweep.as_ref().expect("asked for");
    let tokens: Vec<usize> = sweep.points.iter().map(|point| point.tokens).collect();
    assert!(tokens.len() > 2 && tokens.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{tokens:?}");
    window.run_steps(3);
    assert!(window.query_all_by_label_contains(" tokens: ").count() >= tokens.len(), "each is told of");
    assert!(!state(&window).session.is_racing());
}

#[test]
fn what_passes_by_itself_covers_no_cell_of_the_mask() {
    let mut window = window(None);
    for size in [Vec2::new(700.0, 500.0), Vec2::new(1280.0, 720.0), Vec2::new(1600.0, 960.0)] {
        window.set_size(size);
        window.run_steps(3);
        window.state_mut().state.done("a message of some words, longer than a margin is wide");
        window.run_steps(3);
        let (corner, beside) = state(&window).session.canvas.margin().expect("a canvas");
        let said = window.get_by_label_contains("a message of some words").rect();
        assert!(
            said.left() >= corner.x - beside - 1.0 || said.top() >= corner.y,
            "{size}: {said} at {corner}, {beside}"
        );
        window.state_mut().state.notices.dismiss_last();
        window.run_steps(3);
        assert!(window.query_by_label_contains("a message of some words").is_none(), "{size}: it passes");
    }
}
