//! Strokes, rectangles and bands from pointer positions.

use super::super::view::{ScreenFromWorld, View};
use super::*;
use crate::base::Lengths;
use egui::{Rect, pos2, vec2};
use std::collections::HashMap;

fn canvas() -> Rect {
    Rect::from_min_size(pos2(10.0, 20.0), vec2(640.0, 640.0))
}

struct Bench {
    tools: Tools,
    map: ScreenFromWorld,
    lengths: Lengths,
    cell: BlockSize,
    events: Vec<CanvasEvent>,
}

impl Bench {
    fn new(len: usize, cell: usize) -> Bench {
        let lengths = Lengths::new(len, len).unwrap();
        let map = View::default().screen_from_world(canvas(), lengths);
        Bench { tools: Tools::default(), map, lengths, cell: BlockSize::square(cell), events: Vec::new() }
    }

    fn step(&self) -> Step<'static> {
        let map: &'static ScreenFromWorld = Box::leak(Box::new(self.map));
        Step { map, lengths: self.lengths, cell: self.cell, axes: None, revision: 7, now: 0.0 }
    }

    /// The middle of a cell of the painted grid.
    fn at(&self, q: i64, kv: i64) -> Pos2 {
        let middle = |n: i64, cell: usize| (n as f64 + 0.5) * cell as f64;
        self.map.pos(middle(q, self.cell.q), middle(kv, self.cell.kv))
    }

    fn draw(&mut self, tool: Tool, way: &[(i64, i64)]) {
        let step = self.step();
        let first = self.at(way[0].0, way[0].1);
        self.tools.press(tool, first, &step, &mut self.events);
        for (q, kv) in &way[1..] {
            let at = self.at(*q, *kv);
            self.tools.drag(&[at], &step, &mut self.events);
        }
        self.tools.release(&step, &mut self.events);
    }

    /// How often each cell was covered by the strokes so far.
    fn covered(&self) -> HashMap<(u32, u32), u32> {
        let mut out = HashMap::new();
        for event in &self.events {
            let CanvasEvent::Stroke(stroke) = event else { continue };
            for [q0, q1, kv0, kv1] in &stroke.rects {
                for q in *q0..*q1 {
                    (*kv0..*kv1).for_each(|kv| *out.entry((q, kv)).or_default() += 1);
                }
            }
        }
        out
    }
}

#[test]
fn a_stroke_covers_the_cells_it_crosses_once_and_without_gaps() {
    let mut bench = Bench::new(64, 4);
    bench.draw(Tool::Brush, &[(1, 1), (1, 12), (9, 14), (9, 1)]);
    assert_eq!(bench.events.first(), Some(&CanvasEvent::StrokeBegan));
    assert_eq!(bench.events.last(), Some(&CanvasEvent::StrokeEnded));
    let covered = bench.covered();
    assert!(covered.values().all(|n| *n == 1));
    assert!((1..=12).all(|kv| covered.contains_key(&(1, kv))) && (1..=14).all(|kv| covered.contains_key(&(9, kv))));
    let near =
        |(q, kv): (u32, u32)| covered.keys().any(|c| *c != (q, kv) && c.0.abs_diff(q) <= 1 && c.1.abs_diff(kv) <= 1);
    assert!(covered.keys().all(|c| near(*c)));
}

#[test]
fn a_straight_stroke_is_one_rectangle_an_event() {
    let mut bench = Bench::new(64, 1);
    bench.draw(Tool::Eraser, &[(5, 3), (5, 60)]);
    let strokes: Vec<_> = bench.events.iter().filter(|e| matches!(e, CanvasEvent::Stroke(_))).collect();
    let erase = |rects| CanvasEvent::Stroke(Stroke { paint: false, rects });
    assert_eq!(strokes, [&erase(vec![[5, 6, 3, 4]]), &erase(vec![[5, 6, 4, 61]])]);
}

#[test]
fn a_wide_brush_stays_in_the_grid() {
    let mut bench = Bench::new(64, 4);
    bench.tools.widen(2);
    bench.draw(Tool::Brush, &[(0, 0), (15, 15), (30, 30)]);
    let covered = bench.covered();
    assert!(covered.contains_key(&(1, 1)) && covered.contains_key(&(15, 15)) && !covered.contains_key(&(0, 3)));
    assert!(covered.keys().all(|(q, kv)| *q < 16 && *kv < 16));
}

#[test]
fn painting_a_million_tokens_from_afar_makes_few_rectangles() {
    let mut bench = Bench::new(1 << 20, 1);
    let way: Vec<(i64, i64)> = (0..60).map(|n| (n * 16_000, (n * n * 280) % (1 << 20))).collect();
    bench.draw(Tool::Brush, &way);
    let mut rects: Vec<[u32; 4]> = Vec::new();
    for event in &bench.events {
        if let CanvasEvent::Stroke(stroke) = event {
            rects.extend(&stroke.rects);
        }
    }
    assert!(rects.len() < 4000, "{}", rects.len());
    let edges: BTreeSet<u32> = rects.iter().flat_map(|r| [r[0], r[1]]).collect();
    assert!(edges.len() < 1800, "{}", edges.len());
    assert!(rects.iter().all(|r| r[1] - r[0] > 2000), "a stroke must be seen from afar");
}

#[test]
fn nothing_is_painted_outside() {
    let mut bench = Bench::new(64, 4);
    bench.draw(Tool::Brush, &[(-9, 3), (-4, 20)]);
    assert_eq!(bench.events, [CanvasEvent::StrokeBegan, CanvasEvent::StrokeEnded]);
}

#[test]
fn rectangles_and_bands_are_in_tokens() {
    let mut bench = Bench::new(62, 4);
    bench.draw(Tool::Rectangle, &[(15, 2), (3, 9)]);
    bench.draw(Tool::Rectangle, &[(-5, -5), (99, 0)]);
    bench.draw(Tool::Rectangle, &[(-5, -5), (-2, -1)]);
    bench.draw(Tool::Band, &[(4, 4), (9, 2)]);
    let expected = [
        CanvasEvent::RectangleDrawn { q: [12, 62], kv: [8, 40] },
        CanvasEvent::RectangleDrawn { q: [0, 62], kv: [0, 4] },
        CanvasEvent::BandDrawn { lo: 0, hi: 28 },
    ];
    assert_eq!(bench.events, expected);
    // within one cell tokens count
    let step = bench.step();
    let [from, to] = [bench.map.pos(17.5, 16.5), bench.map.pos(19.5, 16.5)];
    bench.tools.press(Tool::Band, from, &step, &mut bench.events);
    bench.tools.drag(&[to], &step, &mut bench.events);
    bench.tools.release(&step, &mut bench.events);
    assert_eq!(bench.events.last(), Some(&CanvasEvent::BandDrawn { lo: 1, hi: 3 }));
}

#[test]
fn escape_takes_the_stroke_back() {
    let mut bench = Bench::new(64, 4);
    let step = bench.step();
    let at = bench.at(3, 3);
    bench.tools.press(Tool::Brush, at, &step, &mut bench.events);
    bench.tools.cancel(&mut bench.events);
    assert_eq!(bench.events.last(), Some(&CanvasEvent::StrokeCancelled));
    assert!(!bench.tools.drawing() && !bench.tools.waiting());
    bench.events.clear();
    bench.tools.press(Tool::Rectangle, at, &step, &mut bench.events);
    bench.tools.cancel(&mut bench.events);
    bench.tools.release(&step, &mut bench.events);
    assert!(bench.events.is_empty());
}

#[test]
fn strokes_are_shown_until_the_picture_has_them() {
    let mut bench = Bench::new(64, 4);
    bench.draw(Tool::Brush, &[(3, 3)]);
    bench.tools.settle(7, true, 0.1);
    assert!(bench.tools.waiting());
    bench.tools.settle(8, false, 0.2);
    assert!(bench.tools.waiting());
    bench.tools.settle(9, true, 0.2);
    assert!(!bench.tools.waiting());
    bench.draw(Tool::Brush, &[(3, 3)]);
    bench.tools.settle(7, true, 10.0);
    assert!(!bench.tools.waiting(), "a refused stroke is forgotten");
}

#[test]
fn merged_rectangles_cover_the_same_cells() {
    let cells: Vec<[u32; 4]> = (0..200u32)
        .map(|n| n.wrapping_mul(2_654_435_761) >> 20)
        .map(|n| [n % 9, n % 9 + 1, n / 9 % 11, n / 9 % 11 + 1])
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let merged = merge(cells.clone());
    let area = |r: &[u32; 4]| (r[1] - r[0]) * (r[3] - r[2]);
    assert_eq!(merged.iter().map(area).sum::<u32>(), cells.len() as u32);
    assert!(merged.len() < cells.len() / 2);
    let inside = |c: &[u32; 4]| merged.iter().any(|r| r[0] <= c[0] && c[1] <= r[1] && r[2] <= c[2] && c[3] <= r[3]);
    assert!(cells.iter().all(inside));
}

#[test]
fn a_band_is_drawn_where_it_lies() {
    let bench = Bench::new(100, 1);
    let polygon = band_polygon([10, 20], &bench.step());
    assert!(polygon.len() >= 4 && polygon.iter().all(|[q, kv]| (9.4..=20.6).contains(&(q - kv))));
    assert!(band_polygon([200, 300], &bench.step()).is_empty());
}

#[test]
fn a_line_is_one_stroke_over_the_cells_between_its_ends() {
    let mut bench = Bench::new(64, 4);
    bench.draw(Tool::Line, &[(1, 1), (9, 2), (13, 13)]);
    assert_eq!(bench.events.len(), 3, "{:?}", bench.events);
    let covered = bench.covered();
    assert!((1..=13).all(|n| covered.get(&(n, n)) == Some(&1)) && covered.len() == 13, "{covered:?}");
}
