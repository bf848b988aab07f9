//! The canvas driven without a display.

use super::*;
use crate::analysis::examples;
use crate::document::model::Axis;
use crate::ir::graph::Mod;
use crate::words::{Language, Words};
use egui::{Event, Key, Modifiers, MouseWheelUnit, PointerButton, Pos2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::time::{Duration, Instant};

struct State {
    canvas: Canvas,
    mask: Option<Arc<Mod>>,
    axis: Axis,
    revision: u64,
    heads: usize,
    tool: Tool,
    painted_cell: Option<BlockSize>,
    picture: Picture,
    events: Vec<CanvasEvent>,
}

fn state(mask: Option<Mod>, axis: &str) -> State {
    State {
        canvas: Canvas::default(),
        mask: mask.map(Arc::new),
        axis: Axis::parse(axis).unwrap(),
        revision: 1,
        heads: 1,
        tool: Tool::Pan,
        painted_cell: None,
        picture: Picture::Blocks,
        events: Vec::new(),
    }
}

/// What the canvas is given where a test says nothing else.
pub(super) fn scene<'a>(mask: Option<Arc<Mod>>, axes: [&'a Axis; 2]) -> Scene<'a> {
    Scene {
        said: Words::of(Language::English),
        document: 1,
        walk: None,
        mask,
        layers: Vec::new(),
        score: None,
        lengths: Lengths::new(axes[0].len(), axes[1].len()).unwrap(),
        block_size: BlockSize::square(16),
        q_axis: axes[0],
        kv_axis: axes[1],
        texts: [None, None],
        batch: 1,
        heads: 1,
        b: 0,
        h: 0,
        picked: None,
        revision: 1,
        tool: Tool::Pan,
        painted_cell: None,
        at: [0, 0],
        grid: None,
        pinned: None,
        area: None,
        selected: None,
        picture: Picture::Blocks,
        before: None,
        against: None,
        loss: None,
        map: None,
    }
}

fn harness(state: State) -> Harness<'static, State> {
    let show = |ui: &mut Ui, state: &mut State| {
        let axis = state.axis.clone();
        let scene = Scene {
            heads: state.heads,
            revision: state.revision,
            tool: state.tool,
            painted_cell: state.painted_cell,
            picture: state.picture,
            ..scene(state.mask.clone(), [&axis; 2])
        };
        let events = state.canvas.show(ui, &scene);
        state.events.extend(events);
    };
    Harness::builder().with_size(vec2(800.0, 700.0)).with_step_dt(1.0 / 60.0).build_ui_state(show, state)
}

/// Frames until the picture is finished; the workers have their own time.
fn settle(harness: &mut Harness<'_, State>) {
    let began = Instant::now();
    loop {
        harness.step();
        if harness.state().canvas.settled() {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the picture never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn canvas_rect(harness: &Harness<'_, State>) -> Rect {
    harness.get_by_label("Mask canvas").rect()
}

/// Position of the middle of a cell.
fn at(harness: &Harness<'_, State>, q: usize, kv: usize) -> Pos2 {
    let state = harness.state();
    let lengths = state.canvas.lengths.unwrap();
    let map = state.canvas.view.screen_from_world(canvas_rect(harness), lengths);
    map.pos(q as f64 + 0.5, kv as f64 + 0.5)
}

fn button(harness: &Harness<'_, State>, pos: Pos2, pressed: bool) {
    harness.event(Event::PointerButton { pos, button: PointerButton::Primary, pressed, modifiers: Modifiers::NONE });
}

fn drag(harness: &mut Harness<'_, State>, way: &[(usize, usize)]) {
    let points: Vec<Pos2> = way.iter().map(|(q, kv)| at(harness, *q, *kv)).collect();
    harness.hover_at(points[0]);
    harness.step();
    button(harness, points[0], true);
    harness.step();
    for point in &points[1..] {
        harness.hover_at(*point);
        harness.step();
    }
    button(harness, points[points.len() - 1], false);
    harness.step();
}

fn strokes(events: &[CanvasEvent]) -> Vec<[u32; 4]> {
    let rects = events.iter().filter_map(|e| match e {
        CanvasEvent::Stroke(stroke) => Some(stroke.rects.clone()),
        _ => None,
    });
    rects.flatten().collect()
}

#[test]
fn painting_gives_the_cells_under_the_pointer() {
    let mut harness = harness(State { tool: Tool::Brush, ..state(None, "text 128") });
    settle(&mut harness);
    drag(&mut harness, &[(40, 8), (40, 100)]);
    let events = &harness.state().events;
    assert!(events.contains(&CanvasEvent::StrokeBegan) && events.contains(&CanvasEvent::StrokeEnded));
    let rects = strokes(events);
    assert!(rects.iter().all(|r| r[0] == 2 && r[1] == 3), "{rects:?}");
    assert_eq!(rects.iter().map(|r| r[3] - r[2]).sum::<u32>(), 7, "{rects:?}");
    assert!(harness.state().canvas.tools.waiting(), "the stroke is shown before anyone has analysed it");
    harness.state_mut().painted_cell = Some(BlockSize::square(1));
    harness.state_mut().events.clear();
    drag(&mut harness, &[(3, 5), (3, 9)]);
    assert_eq!(strokes(&harness.state().events), [[3, 4, 5, 6], [3, 4, 6, 10]]);
}

#[test]
fn rectangles_bands_and_escape() {
    let mut harness = harness(State { tool: Tool::Rectangle, ..state(None, "text 128") });
    settle(&mut harness);
    drag(&mut harness, &[(20, 20), (40, 70)]);
    assert!(harness.state().events.contains(&CanvasEvent::RectangleDrawn { q: [16, 48], kv: [16, 80] }));
    harness.state_mut().tool = Tool::Band;
    harness.state_mut().painted_cell = Some(BlockSize::square(1));
    drag(&mut harness, &[(20, 20), (40, 30)]);
    assert!(harness.state().events.contains(&CanvasEvent::BandDrawn { lo: 0, hi: 10 }));
    harness.state_mut().events.clear();
    let from = at(&harness, 5, 5);
    harness.hover_at(from);
    harness.step();
    button(&harness, from, true);
    harness.step();
    assert!(harness.state().canvas.drawing());
    harness.key_press(Key::Escape);
    harness.step();
    button(&harness, from, false);
    harness.step();
    let drawn = |e: &CanvasEvent| matches!(e, CanvasEvent::BandDrawn { .. });
    assert!(!harness.state().events.iter().any(drawn) && !harness.state().canvas.drawing());
}

#[test]
fn the_keyboard_alone_suffices() {
    let mut harness = harness(State { tool: Tool::Brush, ..state(Some(examples::causal()), "text 4096") });
    settle(&mut harness);
    harness.get_by_label("Mask canvas").focus();
    harness.step();
    harness.step();
    for _ in 0..20 {
        harness.key_press(Key::Plus);
        harness.step();
    }
    assert!(!harness.state().canvas.view.is_fit());
    let before = harness.state().canvas.hovered;
    harness.key_press(Key::ArrowRight);
    harness.step();
    harness.key_press(Key::ArrowDown);
    harness.step();
    let after = harness.state().canvas.hovered;
    assert!(after.unwrap()[0] > before.unwrap()[0] && after.unwrap()[1] > before.unwrap()[1], "{before:?} {after:?}");
    harness.key_press(Key::Enter);
    harness.step();
    harness.key_press(Key::ArrowRight);
    harness.step();
    harness.key_press(Key::Enter);
    harness.step();
    assert!(!strokes(&harness.state().events).is_empty());
    assert_eq!(harness.state().events.last(), Some(&CanvasEvent::StrokeEnded));
    harness.key_press(Key::Home);
    harness.step();
    assert!(harness.state().canvas.view.is_fit());
}

#[test]
fn a_wheel_zooms_about_the_pointer_and_a_drag_pans() {
    let mut harness = harness(state(Some(examples::causal()), "text 100000"));
    settle(&mut harness);
    let point = at(&harness, 40_000, 60_000);
    harness.hover_at(point);
    harness.step();
    for _ in 0..10 {
        let delta = vec2(0.0, 3.0);
        harness.event(Event::MouseWheel {
            unit: MouseWheelUnit::Line,
            delta,
            phase: egui::TouchPhase::Move,
            source: egui::MouseWheelSource::Wheel,
            modifiers: Modifiers::NONE,
        });
        harness.step();
    }
    (0..60).for_each(|_| harness.step());
    let near = at(&harness, 40_000, 60_000);
    assert!(!harness.state().canvas.view.is_fit() && (near - point).length() < 3.0, "{near:?} {point:?}");
    let cell = harness.state().canvas.hovered.unwrap();
    let to = point + vec2(50.0, -30.0);
    button(&harness, point, true);
    harness.step();
    harness.hover_at(to);
    harness.step();
    button(&harness, to, false);
    harness.step();
    let now = harness.state().canvas.hovered.unwrap();
    assert!(cell[0].abs_diff(now[0]) < 200 && cell[1].abs_diff(now[1]) < 200, "{cell:?} {now:?}");
}

#[test]
fn clicks_and_hovers_name_the_cell() {
    let mut harness = harness(state(Some(examples::causal()), "text 28 | image 10x10"));
    settle(&mut harness);
    let point = at(&harness, 77, 20);
    harness.hover_at(point);
    harness.step();
    assert!(harness.state().events.contains(&CanvasEvent::Hovered(Some([77, 20]))));
    button(&harness, point, true);
    button(&harness, point, false);
    harness.step();
    assert!(harness.state().events.contains(&CanvasEvent::Clicked([77, 20])));
}

#[test]
fn a_cell_beyond_the_mask_is_the_nearest_and_told() {
    let mut harness = harness(state(Some(examples::causal()), "text 128"));
    settle(&mut harness);
    harness.state_mut().canvas.go_to();
    harness.step();
    harness.step();
    harness.event(Event::Text("999, 3".into()));
    harness.step();
    harness.key_press(Key::Enter);
    harness.step();
    let [wanted, shown] = [[999, 3], [127, 3]];
    assert!(harness.state().events.contains(&CanvasEvent::Beyond { wanted, shown }), "{:?}", harness.state().events);
    harness.state_mut().events.clear();
    // the palette goes there by itself
    harness.state_mut().canvas.look_at_cell([5, 999]);
    harness.step();
    harness.state_mut().canvas.look_at_cell([127, 127]);
    harness.step();
    let beyond = harness.state().events.iter().filter(|event| matches!(event, CanvasEvent::Beyond { .. }));
    assert_eq!(beyond.collect::<Vec<_>>(), [&CanvasEvent::Beyond { wanted: [5, 999], shown: [5, 127] }]);
}

#[test]
fn thumbnails_appear_where_heads_differ_and_choose() {
    let mut g = examples::Builder::new();
    let h = g.graph.input(crate::ir::graph::Input::H);
    let d = g.distance();
    let root = g.le(d, h);
    let mask = g.mask(root);
    let mut harness = harness(State { heads: 4, ..state(Some(mask), "text 64") });
    settle(&mut harness);
    harness.get_by_label("head 3").click();
    harness.step();
    harness.step();
    assert!(harness.state().events.contains(&CanvasEvent::Chosen { b: 0, h: 3 }));
    let height = |harness: &Harness<'_, State>| harness.get_by_label("head 3").rect().height();
    assert_eq!(height(&harness), 73.0);
    // where there is little room, the room is the mask's
    harness.set_size(vec2(400.0, 330.0));
    harness.step();
    harness.step();
    assert!((26.0..60.0).contains(&height(&harness)), "{}", height(&harness));
    // and all of it where that is the least
    harness.set_size(vec2(400.0, 200.0));
    harness.step();
    harness.step();
    assert!(harness.query_by_label("head 3").is_none());
}

/// A mask whose every cell must be looked at.
fn scattered() -> Mod {
    let mut g = examples::Builder::new();
    let (q, k) = (g.q, g.k);
    let mut x = g.mul(q, k);
    for n in 0..60 {
        let (shifted, times) = (g.div_by(x, 7 + n), g.int(31 + n));
        let y = g.mul(q, times);
        x = g.add(shifted, y);
    }
    let phase = g.rem_by(x, 3);
    let root = g.at_most(phase, 0);
    g.mask(root)
}

#[test]
fn the_view_never_waits_for_its_workers() {
    let mut harness = harness(state(Some(scattered()), "text 1048576"));
    for n in 0..40 {
        harness.key_press(if n % 2 == 0 { Key::Plus } else { Key::ArrowRight });
        harness.state_mut().revision += 1;
        harness.step();
        // a frame that waits for the tiles of its revision ends with all of them
        assert!(!harness.state().canvas.settled(), "frame {n}");
    }
}

#[test]
fn an_edit_keeps_the_tiles_that_it_leaves_alone() {
    let mut harness = harness(state(Some(examples::sliding_window(5000)), "text 100000"));
    settle(&mut harness);
    // zoomed in, so that several tiles are seen
    (0..3).for_each(|_| harness.key_press(Key::Plus));
    settle(&mut harness);
    for (n, window) in [5000, 5200, 300].into_iter().enumerate() {
        let state = harness.state_mut();
        state.mask = Some(Arc::new(examples::sliding_window(window)));
        state.revision += 1;
        settle(&mut harness);
        let tiles = harness.state().canvas.tiles.as_ref().unwrap();
        assert!(tiles.is_carried(n as u64 + 2), "after {window}");
    }
}

fn click(harness: &mut Harness<'_, State>, pos: Pos2) {
    harness.hover_at(pos);
    harness.step();
    button(harness, pos, true);
    harness.step();
    button(harness, pos, false);
    harness.step();
    // two clicks are no double click
    (0..40).for_each(|_| harness.step());
}

fn selected(harness: &Harness<'_, State>) -> Vec<Region> {
    let areas = harness.state().events.iter().filter_map(|event| match event {
        CanvasEvent::AreaSelected(region) => Some(region.clone()),
        _ => None,
    });
    areas.collect()
}

#[test]
fn a_polygon_is_clicked_corner_by_corner_closed_by_enter_or_its_first_corner_and_left_by_escape() {
    let mut state = state(Some(examples::causal()), "tokens 256");
    (state.tool, state.painted_cell) = (Tool::Polygon, Some(BlockSize::square(16)));
    let mut harness = harness(state);
    settle(&mut harness);
    let corners = [(32, 32), (32, 160), (160, 160)];
    let clicks = |harness: &mut Harness<'_, State>| {
        for (q, kv) in corners {
            let pos = at(harness, q, kv);
            click(harness, pos);
        }
    };
    clicks(&mut harness);
    assert!(selected(&harness).is_empty() && harness.state().canvas.drawing());
    harness.key_press(Key::Enter);
    harness.step();
    let first = selected(&harness);
    assert_eq!(first.len(), 1);
    assert!(first[0].parts.len() > 4 && !harness.state().canvas.drawing(), "{:?}", first[0]);
    assert!(first[0].parts.iter().flatten().flatten().all(|token| token % 16 == 0), "whole cells");
    clicks(&mut harness);
    let start = at(&harness, corners[0].0, corners[0].1);
    click(&mut harness, start);
    assert_eq!(selected(&harness), [first[0].clone(), first[0].clone()], "the same by its first corner");
    // the second click of a double click begins no other one
    clicks(&mut harness);
    harness.hover_at(start);
    harness.step();
    for down in [true, false, true, false] {
        button(&harness, start, down);
        harness.step();
    }
    assert!(!harness.state().canvas.drawing() && selected(&harness).len() == 3);
    (0..40).for_each(|_| harness.step());
    clicks(&mut harness);
    harness.key_press(Key::Backspace);
    harness.step();
    harness.key_press(Key::Enter);
    harness.step();
    assert!(harness.state().canvas.drawing(), "two corners enclose nothing");
    harness.key_press(Key::Escape);
    harness.step();
    assert!(!harness.state().canvas.drawing() && selected(&harness).len() == 3);
}

#[test]
fn a_polygon_is_drawn_by_the_keyboard_alone() {
    let mut state = state(Some(examples::causal()), "tokens 256");
    (state.tool, state.painted_cell) = (Tool::Polygon, Some(BlockSize::square(16)));
    state.canvas.take_focus();
    let mut harness = harness(state);
    settle(&mut harness);
    // nearer, so that arrows move by less than the picture
    (0..4).for_each(|_| harness.key_press(Key::Plus));
    harness.step();
    for (arrow, times) in [(Key::ArrowRight, 0), (Key::ArrowRight, 3), (Key::ArrowDown, 3), (Key::ArrowLeft, 3)] {
        (0..times).for_each(|_| harness.key_press(arrow));
        harness.step();
        harness.key_press(Key::Enter);
        harness.step();
    }
    // a second time at the same place
    harness.key_press(Key::Enter);
    harness.step();
    let areas = selected(&harness);
    assert_eq!(areas.len(), 1);
    assert!(areas[0].is_rectangle() && areas[0].cells() > 16 * 16, "{:?}", areas[0]);
}

#[test]
fn a_lasso_and_a_rectangle_go_to_the_borders_of_segments_and_frames() {
    let mut state = state(Some(examples::causal()), "text 72 | video 3x6x10");
    (state.tool, state.painted_cell) = (Tool::Area, Some(BlockSize::square(16)));
    let mut harness = harness(state);
    settle(&mut harness);
    // near the borders at 72, 132 and 192
    drag(&mut harness, &[(73, 71), (100, 100), (131, 191)]);
    assert_eq!(selected(&harness)[0].place, [[72, 132], [72, 192]]);
    harness.state_mut().tool = Tool::Lasso;
    harness.step();
    drag(&mut harness, &[(72, 73), (72, 130), (72, 190), (130, 191), (131, 130), (132, 72), (100, 72)]);
    let lasso = &selected(&harness)[1];
    assert_eq!((lasso.place, lasso.is_rectangle()), ([[72, 132], [72, 192]], true));
    drag(&mut harness, &[(40, 40)]);
    assert_eq!(selected(&harness).len(), 2, "a click selects nothing");
}
