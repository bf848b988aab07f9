//! The keys of one query, drawn where they stand.

use super::super::Canvas;
use super::super::scene::Numbers;
use super::parts::Cells;
use super::*;
use crate::app::canvas::heat::HeatData;
use crate::app::canvas::tests::scene;
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::Mod;
use egui::{Key, pos2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use std::time::{Duration, Instant};

struct State {
    canvas: Canvas,
    mask: Arc<Mod>,
    axes: [Axis; 2],
    /// Whether queries and keys share the first.
    same: bool,
    document: u64,
    at: [usize; 2],
    picture: Picture,
    data: Option<HeatData>,
    events: Vec<CanvasEvent>,
}

fn harness(axes: [&str; 2], at: [usize; 2], picture: Picture, data: Option<HeatData>) -> Harness<'static, State> {
    let same = axes[0] == axes[1];
    let axes = axes.map(|axis| Axis::parse(axis).expect("parses"));
    let mask = Arc::new(crate::analysis::examples::sliding_window(9));
    let state =
        State { canvas: Canvas::default(), mask, axes, same, document: 1, at, picture, data, events: Vec::new() };
    let show = |ui: &mut Ui, state: &mut State| {
        let axes = state.axes.clone();
        let kv_axis = if state.same { &axes[0] } else { &axes[1] };
        let scene = Scene {
            document: state.document,
            at: state.at,
            picture: state.picture,
            map: state.data.as_ref().map(|data| Numbers { data: Some(data), words: "", log: false }),
            ..scene(Some(state.mask.clone()), [&axes[0], kv_axis])
        };
        let events = state.canvas.show_patches(ui, &scene);
        for event in &events {
            if let CanvasEvent::Clicked(cell) = event {
                state.at = *cell;
            }
        }
        state.events.extend(events);
    };
    let mut harness = Harness::builder().with_size(vec2(800.0, 700.0)).build_ui_state(show, state);
    let began = Instant::now();
    while harness.state().canvas.patches.row.is_none() {
        harness.step();
        assert!(began.elapsed() < Duration::from_secs(60), "the row never came");
        std::thread::sleep(Duration::from_millis(2));
    }
    harness.run_steps(2);
    harness
}

#[test]
fn each_token_is_found_where_it_is_drawn() {
    let room = Rect::from_min_size(pos2(10.0, 20.0), vec2(400.0, 120.0));
    for count in [1, 5, 77, 512, 4096, 40_000, 1_000_000] {
        let cells = Cells::strip(room, count);
        assert!(room.expand(0.1).contains_rect(cells.rect), "{count}: {cells:?}");
        assert!(cells.rows * cells.columns >= count);
        for at in [0, count / 2, count - 1] {
            assert_eq!(cells.at(cells.place(at).center()), Some(at), "{count}");
        }
        assert_eq!(cells.at(pos2(9.0, 21.0)), None);
    }
    let grid = Cells::grid(room, 30, 52);
    assert_eq!(grid.at(grid.place(29 * 52 + 51).center()), Some(29 * 52 + 51));
    assert!((grid.side().x - grid.side().y).abs() < 1e-4, "patches are square");
}

#[test]
fn keys_have_the_matrix_s_colours_and_a_click_or_an_arrow_moves_the_query() {
    let mut harness = harness(["text 8 | video 3x4x6"; 2], [40, 3], Picture::Mask, None);
    let state = harness.state();
    let palette = Palette::dark(true);
    let (_, row) = state.canvas.patches.row.as_ref().expect("came");
    for kv in 0..80 {
        let kept = eval(&state.mask, &Cell { b: 0, h: 0, q_idx: 40, kv_idx: kv as i64, score: 0.0 }).as_bool();
        assert_eq!((row.kept[kv], row.colors[kv]), (kept, if kept { palette.share(1.0) } else { palette.empty }));
    }
    // 40 is in frame 1, which is shown first
    assert!(harness.query_by_label_contains("Keys in video").is_some());
    let video = harness.get_by_label("Keys in video").rect();
    let cells = Cells { rect: video, rows: 4, columns: 6, count: 24 };
    harness.hover_at(cells.place(7).center());
    harness.run_steps(2);
    let token = 8 + 24 + 7;
    assert!(harness.state().events.contains(&CanvasEvent::Hovered(Some([40, token]))), "{:?}", harness.state().events);
    harness.drag_at(cells.place(7).center());
    harness.run_steps(1);
    harness.drop_at(cells.place(7).center());
    harness.run_steps(2);
    assert_eq!(harness.state().at, [token, 3]);
    harness.key_press(Key::ArrowDown);
    harness.key_press(Key::ArrowRight);
    harness.run_steps(3);
    assert_eq!(harness.state().at, [token + 7, 3]);
    harness.key_press(Key::PageDown);
    harness.run_steps(3);
    assert_eq!(harness.state().at, [token + 7 + 24, 3]);
    // text tokens are queries too
    let text = harness.get_by_label("Keys in text").rect();
    harness.hover_at(text.left_top() + vec2(3.0, 3.0));
    harness.run_steps(1);
    harness.drag_at(text.left_top() + vec2(3.0, 3.0));
    harness.run_steps(1);
    harness.drop_at(text.left_top() + vec2(3.0, 3.0));
    harness.run_steps(2);
    assert_eq!(harness.state().at, [0, 3]);
}

#[test]
fn queries_of_their_own_axis_are_chosen_on_their_own_picture_and_no_grid_is_offered_one() {
    let mut harness = harness(["image 6x6", "tokens 64"], [20, 3], Picture::Blocks, None);
    let image = harness.get_by_label("Queries of image").rect();
    let cells = Cells { rect: image, rows: 6, columns: 6, count: 36 };
    harness.hover_at(cells.place(9).center());
    harness.run_steps(1);
    harness.drag_at(cells.place(9).center());
    harness.run_steps(1);
    harness.drop_at(cells.place(9).center());
    harness.run_steps(2);
    assert_eq!(harness.state().at, [9, 3]);
    harness.get_by_label("8x8").click();
    harness.run_steps(2);
    let wished = Axis::parse("tokens 8x8").expect("parses");
    assert!(harness.state().events.contains(&CanvasEvent::Gridded(wished)));
}

#[test]
fn numbers_are_those_of_the_query_alone_and_say_whose_they_are() {
    let values: Vec<f32> = (0..36).map(|n| n as f32).collect();
    let data = HeatData {
        rows: 1,
        cols: 36,
        values: values.into(),
        q: [5, 6],
        kv: [0, 36],
        quantity: "probability".into(),
        source: Provenance::inputs("lm.safetensors"),
        masked_is_zero: true,
        revision: 4,
    };
    let mut harness = harness(["image 6x6"; 2], [5, 3], Picture::Map, Some(data));
    harness.run_steps(2);
    let shown = |harness: &Harness<'_, State>| harness.state().canvas.patches.shown;
    assert_eq!(shown(&harness), Some(Shows::Numbers((4, false, true))));
    let (_, colors, scale) = harness.state().canvas.patches.shaded.clone().expect("shaded");
    assert!(colors.len() == 36 && colors[0] != colors[35] && scale.is_some_and(|(ends, _)| ends == "0 to 35.0000"));
    // of another query they are not shown
    harness.state_mut().at = [6, 3];
    harness.run_steps(3);
    assert!(harness.query_by_label("Keys in image").is_none());
}

/// It was in the next document, whose keys are others.
#[test]
fn a_grid_that_is_typed_for_one_document_is_in_no_other() {
    let mut harness = harness(["tokens 4096"; 2], [40, 3], Picture::Mask, None);
    let name = "Grid of the keys";
    harness.get_by_label(name).focus();
    harness.run_steps(2);
    harness.event(egui::Event::Text("64x".into()));
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    harness.run_steps(2);
    let typed = |harness: &Harness<'_, State>| {
        let own = &harness.state().canvas.patches.own;
        (own.typed.clone(), own.wrong.is_some())
    };
    assert_eq!(typed(&harness), ("64x".to_string(), true));
    harness.state_mut().document = 2;
    harness.run_steps(2);
    assert_eq!(typed(&harness), (String::new(), false));
    assert!(harness.query_by_label(name).is_some_and(|field| field.value().unwrap_or_default().is_empty()));
    harness.state_mut().document = 1;
    harness.run_steps(2);
    assert_eq!(typed(&harness), ("64x".to_string(), true), "it waits for its own");
}
