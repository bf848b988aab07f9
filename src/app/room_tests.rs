//! Windows with little room: the mask keeps its least, what gave way is in reach, what floats covers nothing that is looked at.
//!
//! Invariant: as in `tests`: every click and key here is a user's. Sizes are points: a window of 1280 x 720 with everything twice as
//! large has 640 x 360 of them.

use super::action::Action;
use super::canvas::CanvasEvent;
use super::region::Region;
use super::tests::{Window, click, command, settle, state, step_until, window};
use super::workspace::{Aside, Workspace};
use crate::base::BlockSize;
use crate::words::Language;
use egui::{Key, Rect, Vec2, vec2};
use egui_kittest::kittest::Queryable;

/// 1280 x 720 twice as large, 700 x 500, the same half as large again, 1600 x 960 twice as large, the smallest window.
const SIZES: [(f32, f32); 5] = [(640.0, 360.0), (700.0, 500.0), (467.0, 333.0), (800.0, 480.0), (640.0, 420.0)];

fn at(window: &mut Window, size: (f32, f32)) {
    window.set_size(vec2(size.0, size.1));
    window.run_steps(4);
}

fn canvas(window: &Window) -> Rect {
    window.get_by_label("Mask canvas").rect()
}

fn screen(window: &Window) -> Rect {
    window.ctx.content_rect()
}

#[test]
fn the_mask_keeps_its_least_in_every_small_window_workspace_and_language() {
    let mut window = window(None);
    // this machine may lack the fonts
    window.ctx.set_missing_glyph_policy(egui::MissingGlyphPolicy::Tofu);
    // a second document takes room, too
    command(&mut window, Key::T);
    settle(&mut window);
    for size in SIZES {
        at(&mut window, size);
        for language in Language::ALL {
            window.state_mut().state.view.language = Some(language);
            for workspace in Workspace::ALL {
                let view = &mut window.state_mut().state.view;
                view.show(workspace);
                view.drawer = false;
                window.run_steps(3);
                let name = super::language::words(&window.ctx).text("canvas-name");
                let mask = window.get_by_label(name).rect();
                let least = vec2(200.0, 200.0_f32.max(size.1 / 3.0));
                let reported = format!("{workspace:?} at {size:?} in {language:?}: {mask:?}");
                assert!(mask.width() >= least.x - 1.0 && mask.height() >= least.y - 1.0, "{reported}");
                assert!(screen(&window).contains_rect(mask), "{reported}");
            }
        }
    }
}

/// The field of the head was out of reach.
#[test]
fn heads_tools_and_figures_are_in_reach_of_the_row_or_its_menu() {
    for size in SIZES {
        let mut window = window(None);
        at(&mut window, size);
        let shown = |window: &Window, name: &str| {
            window.query_all_by_label(name).any(|node| screen(window).contains_rect(node.rect()))
        };
        let reach = |window: &mut Window, name: &str| {
            if !shown(window, name) {
                click(window, "More controls");
                window.run_steps(3);
                assert!(shown(window, name), "{name} at {size:?}");
                window.key_press(Key::Escape);
                window.run_steps(3);
            }
        };
        reach(&mut window, "Shown head");
        reach(&mut window, "for all heads");
        if !shown(&window, "Brush") {
            click(&mut window, "Tools: Pan");
            window.run_steps(3);
            assert!(shown(&window, "Brush"), "{size:?}");
            click(&mut window, "Brush");
            assert_eq!(state(&window).focus.tool, super::canvas::Tool::Brush);
        }
        if state(&window).given_up.headline {
            click(&mut window, "More controls");
            window.run_steps(3);
            window.get_by_label_contains("Problems: ").click();
            window.run_steps(3);
            assert_eq!(state(&window).view.aside, Some(Aside::Problems));
        }
        window.check_accessibility();
    }
}

#[test]
fn every_entry_of_a_menu_is_in_reach_in_a_low_window() {
    let mut window = window(None);
    at(&mut window, SIZES[2]);
    click(&mut window, "Menu");
    click(&mut window, "File");
    window.run_steps(3);
    // the last of many: it scrolls, so that its menu stays inside the window
    let menu = window.get_by_label_contains("Save as…").rect().center();
    window.hover_at(menu);
    window.run_steps(2);
    window.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: vec2(0.0, -2000.0),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
        modifiers: egui::Modifiers::NONE,
    });
    window.run_steps(30);
    let quit = window.get_by_label_contains("Quit").rect();
    assert!(screen(&window).contains_rect(quit), "{quit:?}");
}

#[test]
fn panels_without_room_lie_over_the_mask_until_they_are_closed() {
    let mut window = window(None);
    at(&mut window, (420.0, 400.0));
    assert!(state(&window).given_up.panels && window.query_by_label("Hide the side page").is_none());
    let before = canvas(&window);
    click(&mut window, "Inspector");
    window.run_steps(3);
    // the layers are inside it, and it does not move the mask
    assert!(window.query_by_label("Enable Sliding window").is_some() && canvas(&window) == before);
    click(&mut window, "Enable Sliding window");
    assert!(!state(&window).document.layers[0].enabled);
    command(&mut window, Key::Num9);
    assert_eq!(state(&window).view.aside, Some(Aside::Setup));
    click(&mut window, "Hide the side page");
    assert!(!state(&window).view.drawer && window.query_by_label("Hide the side page").is_none());
    // with room again the panels are where they were, and no drawer waits
    at(&mut window, (1200.0, 800.0));
    assert!(window.query_by_label("Hide the side page").is_some() && !state(&window).view.drawer);
    at(&mut window, (420.0, 400.0));
    assert!(window.query_by_label("Hide the side page").is_none());
}

/// A cell is gone to where the bar of the canvas has no room.
#[test]
fn one_goes_to_a_cell_on_a_small_canvas() {
    let mut window = window(None);
    at(&mut window, SIZES[2]);
    command(&mut window, Key::L);
    window.event(egui::Event::Text("4000, 3500".into()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(4);
    assert_eq!(state(&window).focus.pinned, [4000, 3500]);
}

#[test]
fn a_presentation_shows_the_mask_alone_and_escape_ends_it() {
    let mut window = window(None);
    window.key_press(Key::F11);
    window.run_steps(4);
    let named = |window: &Window, name: &str| window.query_all_by_label(name).next().is_some();
    for control in ["File", "Menu", "Undo", "Run", "Race", "Brush", "Shown head", "Fit"] {
        assert!(!named(&window, control), "{control}");
    }
    let (mask, all) = (canvas(&window), screen(&window));
    assert!(mask.size().min_elem() > 0.0 && mask.area() > 0.85 * all.area(), "{mask:?} of {all:?}");
    assert!(window.query_by_label_contains("Esc restores the window").is_some());
    // a stroke that Escape ends is one thing, the presentation another
    window.key_press(Key::Escape);
    window.run_steps(4);
    assert!(state(&window).before_present.is_none() && named(&window, "File") && named(&window, "Brush"));
}

/// Selects a polygon, and waits for its figures.
fn select(window: &mut Window, outline: Vec<[f64; 2]>) {
    let lengths = state(window).document.axes.lengths().expect("lengths");
    let area = Region::around(outline, BlockSize::square(64), &[vec![], vec![]], lengths).expect("cells");
    super::act::act(&mut window.state_mut().state, Action::Canvas(CanvasEvent::AreaSelected(area)));
    step_until(window, "counted", |s| s.focus.area.as_ref().is_some_and(|area| area.figures.is_some()));
    window.run_steps(5);
}

#[test]
fn the_figures_of_an_area_stand_beside_it() {
    let mut window = window(None);
    let n = 8192.0;
    for (name, outline) in [
        ("lower left", vec![[0.55 * n, 0.02 * n], [0.98 * n, 0.02 * n], [0.98 * n, 0.4 * n]]),
        ("upper left", vec![[0.02 * n, 0.02 * n], [0.5 * n, 0.02 * n], [0.3 * n, 0.4 * n]]),
        ("lower half", vec![[0.5 * n, 0.0], [n, 0.0], [n, n], [0.5 * n, n]]),
        ("right half", vec![[0.0, 0.5 * n], [n, 0.5 * n], [n, n], [0.0, n]]),
    ] {
        select(&mut window, outline);
        let card = window.get_by_label("Forget the area").rect().union(window.get_by_label("Keep these").rect());
        let parts: Vec<Rect> = {
            let state = state(&window);
            let parts = state.focus.area.as_ref().expect("an area").region.parts.clone();
            parts.iter().filter_map(|part| state.session.canvas.on_screen(*part)).collect()
        };
        assert!(!parts.is_empty() && screen(&window).contains_rect(card), "{name}");
        let covered: Vec<_> = parts.iter().filter(|part| part.shrink(1.0).intersects(card)).collect();
        assert!(covered.is_empty(), "{name}: {card:?} over {covered:?}");
    }
}

/// Every check, and the button beside it, is inside the page.
#[test]
fn the_page_of_the_setup_shows_all_in_a_narrow_panel() {
    use crate::worker::protocol::{Check, DoctorReport, Health};
    let mut window = window(None);
    let check = |name: &str| Check {
        name: name.into(),
        health: Health::Amber,
        found: "a sentence that is as long as those which the examination of a machine gives".into(),
        mend: Some(
            "python3 -m pip install --no-deps --target /a/rather/long/path 'nvidia-cuda-nvrtc>=13.0,<13.1'".into(),
        ),
    };
    let checks = ["NVRTC", "a check with a name of several words", "PyTorch"].map(check).to_vec();
    let report = DoctorReport { checks, ..DoctorReport::default() };
    window.state_mut().state.session.doctor = Some(Box::new(report));
    for (width, size) in [(190.0, vec2(1280.0, 720.0)), (300.0, vec2(1500.0, 950.0)), (640.0, vec2(1900.0, 950.0))] {
        window.set_size(size);
        let view = &mut window.state_mut().state.view;
        view.show_aside(Aside::Setup);
        view.widths.inspector = Some(width);
        window.run_steps(4);
        let hide = window.get_by_label("Hide the side page").rect();
        let inside = |rect: Rect| rect.right() <= hide.right() + 8.0 && rect.width() > 0.0;
        for name in ["NVRTC", "a check with a name of several words", "Explain an error message"] {
            let rect = window.get_by_label(name).rect();
            assert!(inside(rect), "{name} in {width}: {rect:?}, {hide:?}");
        }
        for node in window.query_all_by_label_contains("Copy the fix") {
            assert!(inside(node.rect()), "{width}: {:?}", node.rect());
        }
    }
}

#[test]
fn documents_of_one_name_are_told_apart_in_their_tabs_and_where_they_are_compared() {
    let mut window = window(None);
    super::tests::fill(&mut window, "Document name", "Mine");
    settle(&mut window);
    window.key_press_modifiers(egui::Modifiers::COMMAND.plus(egui::Modifiers::SHIFT), Key::D);
    window.run_steps(3);
    command(&mut window, Key::T);
    settle(&mut window);
    super::tests::fill(&mut window, "Document name", "Mine");
    settle(&mut window);
    for tab in ["Mine (1 of 2) *", "Mine (2 of 2) *"] {
        assert!(window.query_by_label(tab).is_some(), "{tab}");
    }
    let other = state(&window).session.compared.as_ref().expect("compared");
    assert_eq!(state(&window).name_of(other), "Mine (1 of 2)");
    super::tests::fill(&mut window, "Document name", "Another");
    let other = state(&window).session.compared.as_ref().expect("compared");
    assert_eq!(state(&window).name_of(other), "Mine");
}

/// A size is kept as it is wanted, whatever the window gives.
#[test]
fn what_gave_way_comes_back_with_the_room() {
    let mut window = window(None);
    at(&mut window, SIZES[2]);
    let given_up = state(&window).given_up;
    assert!(given_up.headline && given_up.status, "{given_up:?}");
    window.set_size(Vec2::new(1500.0, 950.0));
    window.run_steps(4);
    assert_eq!(state(&window).given_up, Default::default());
    assert!(
        window.query_by_label_contains("Kept").is_some() && window.query_by_label("Hide the first steps").is_some()
    );
}

/// One row had two rates, and nothing said why.
#[test]
fn a_rate_says_which_cells_it_counts() {
    let mut window = window(None);
    command(&mut window, Key::Num2);
    window.run_steps(5);
    assert!(window.query_all_by_label_contains("FLOP/s of kept cells").count() > 1, "the rows");
    window.get_by_label_contains("Roofline: ").focus();
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(20);
    assert!(window.query_all_by_label_contains("FLOP/s of computed cells").count() > 1, "the roofline");
}
