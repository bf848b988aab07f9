//! How long the canvas's frames take on the window's thread.
//!
//! Invariant: real frames of egui with real input events and running workers, at the pace of a 60 Hz screen; only the
//! painter is absent, and what it would be handed is timed apart. Must not know the command line.

use super::{Canvas, Picture, Scene, Tool};
use crate::analysis::examples;
use crate::base::{BlockSize, Lengths};
use crate::document::model::Axis;
use crate::language::graph::Mod;
use egui::{Event, Modifiers, MouseWheelUnit, PointerButton, Pos2, RawInput, Rect, pos2, vec2};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One mask panned and zoomed.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameTimes {
    /// Mask.
    pub name: String,
    /// Tokens of either side.
    pub tokens: usize,
    /// Frames measured.
    pub frames: usize,
    /// Milliseconds of the window's thread without the painter: median, 99th percentile, longest.
    pub median_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Longest.
    pub longest_ms: f64,
    /// Median milliseconds of turning shapes into triangles, which the painter does before drawing.
    pub tessellate_ms: f64,
    /// Mebibytes of textures handed to the painter in all.
    pub uploaded_mib: f64,
    /// Part of the frames in which everything was drawn from finished tiles.
    pub settled: f64,
}

/// Pans and zooms each of the masks of `bench blocks` at these lengths for `seconds` each.
pub fn frame_times(tokens: usize, seconds: f64) -> Vec<FrameTimes> {
    let Ok(lengths) = Lengths::new(tokens, tokens) else { return Vec::new() };
    let rows = examples::rows(lengths).into_iter();
    rows.map(|(name, mask)| Bench::new(mask, lengths).run(name, seconds)).collect()
}

/// How soon a stroke shows and how long its frames take, at these lengths: the longest frame of a fast stroke.
pub fn stroke_frame(tokens: usize) -> Option<FrameTimes> {
    let lengths = Lengths::new(tokens, tokens).ok()?;
    let mut bench = Bench::new(examples::causal(), lengths);
    bench.tool = Tool::Brush;
    Some(bench.run("stroke over causal", 2.0))
}

struct Bench {
    ctx: egui::Context,
    canvas: Canvas,
    mask: Arc<Mod>,
    axis: Axis,
    lengths: Lengths,
    tool: Tool,
    uploaded: usize,
}

const SIZE: egui::Vec2 = vec2(1280.0, 800.0);
const FRAME: Duration = Duration::from_micros(16_667);

impl Bench {
    fn new(mask: Mod, lengths: Lengths) -> Bench {
        let (ctx, axis) = (egui::Context::default(), Axis::tokens(lengths.q_len));
        let canvas = Canvas::default();
        Bench { ctx, canvas, mask: Arc::new(mask), axis, lengths, tool: Tool::Pan, uploaded: 0 }
    }

    fn run(mut self, name: &str, seconds: f64) -> FrameTimes {
        let (mut times, mut painter, mut settled) = (Vec::new(), Vec::new(), 0);
        let frames = (seconds * 60.0).max(30.0) as usize;
        for n in 0..frames + 20 {
            let began = Instant::now();
            let (ui, tessellate) = self.frame(n, n as f64 / 60.0);
            // the first frames lay out fonts and compile nothing that a later frame waits for
            if n >= 20 {
                times.push(ui.as_secs_f64() * 1e3);
                painter.push(tessellate.as_secs_f64() * 1e3);
                settled += usize::from(self.canvas.settled());
            }
            std::thread::sleep(FRAME.saturating_sub(began.elapsed()));
        }
        times.sort_by(f64::total_cmp);
        painter.sort_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
        FrameTimes {
            name: name.into(),
            tokens: self.lengths.q_len,
            frames,
            median_ms: at(0.5),
            p99_ms: at(0.99),
            longest_ms: at(1.0),
            tessellate_ms: painter[painter.len() / 2],
            uploaded_mib: self.uploaded as f64 / f64::from(1 << 20),
            settled: settled as f64 / frames as f64,
        }
    }

    /// One frame: the time of everything but the painter, and of tessellation.
    fn frame(&mut self, n: usize, now: f64) -> (Duration, Duration) {
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SIZE)),
            time: Some(now),
            events: events(n, self.tool),
            ..RawInput::default()
        };
        let (canvas, axis) = (&mut self.canvas, &self.axis);
        let scene = Scene {
            mask: Some(self.mask.clone()),
            layers: Vec::new(),
            score: None,
            lengths: self.lengths,
            block_size: BlockSize::DEFAULT,
            q_axis: axis,
            kv_axis: axis,
            batch: 1,
            heads: 1,
            b: 0,
            h: 0,
            revision: 1,
            tool: self.tool,
            painted_cell: None,
            picture: Picture::Blocks,
        };
        let began = Instant::now();
        let mut output = self.ctx.run_ui(input, |ui| {
            canvas.show(ui, &scene);
        });
        let ui = began.elapsed();
        let began = Instant::now();
        let shapes = std::mem::take(&mut output.shapes);
        let triangles = self.ctx.tessellate(shapes, 1.0);
        let tessellate = began.elapsed();
        drop(triangles);
        self.uploaded += uploaded(&output.textures_delta);
        output.drop_without_applying_deltas();
        (ui, tessellate)
    }
}

/// Bytes of textures handed over.
fn uploaded(delta: &egui::TexturesDelta) -> usize {
    delta.set.values().flatten().map(|d| d.image.width() * d.image.height() * d.image.bytes_per_pixel()).sum()
}

/// Four seconds over and over: zoom in about a wandering point, pan, zoom out again.
fn events(n: usize, tool: Tool) -> Vec<Event> {
    let t = n as f32 / 60.0;
    let at = pos2(640.0 + 300.0 * (t * 1.7).sin(), 400.0 + 220.0 * (t * 2.3).cos());
    let mut events = vec![Event::PointerMoved(at)];
    let button =
        |pressed| Event::PointerButton { pos: at, button: PointerButton::Primary, pressed, modifiers: Modifiers::NONE };
    let wheel = |lines: f32| Event::MouseWheel {
        unit: MouseWheelUnit::Line,
        delta: vec2(0.0, lines),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
        modifiers: Modifiers::NONE,
    };
    if tool != Tool::Pan {
        match n % 60 {
            10 => events.push(button(true)),
            50 => events.push(button(false)),
            _ => {}
        }
        return events;
    }
    match n % 240 {
        0..80 if n.is_multiple_of(2) => events.push(wheel(1.0)),
        80 => events.push(button(true)),
        159 => events.push(button(false)),
        160..240 if n.is_multiple_of(2) => events.push(wheel(-1.0)),
        _ => {}
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_million_tokens_are_measured() {
        let lengths = Lengths::new(1 << 20, 1 << 20).unwrap();
        let times = Bench::new(examples::causal(), lengths).run("causal", 1.0);
        assert_eq!(times.frames, 60);
        assert!(times.median_ms > 0.0 && times.median_ms <= times.p99_ms && times.p99_ms <= times.longest_ms);
        assert!(times.uploaded_mib > 0.1, "{times:?}");
    }
}
