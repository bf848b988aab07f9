//! The time of the window's frames on its own thread.
//!
//! Invariant: real frames of the whole window with real input events and its own threads, at the rate of a 60 Hz
//! screen; only the painter is missing, and its input is timed separately. Must not know the command line.

use super::canvas::Tool;
use super::state::empty_document;
use super::workspace::Workspace;
use super::{Options, Workbench, act};
use crate::backends::stats::quantile;
use crate::document::model::{Combine, Document, Layer, MaskContent, TextCode};
use crate::words::{Language, Words};
use egui::{Event, Modifiers, MouseWheelUnit, PointerButton, Pos2, RawInput, Rect, pos2, vec2};
use serde::Serialize;
use std::time::{Duration, Instant};

/// One mask panned and zoomed, or painted on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrameTimes {
    /// Mask.
    pub name: String,
    /// The pointer's action: `pan and zoom` or `stroke`.
    pub work: &'static str,
    /// Tokens of either side.
    pub tokens: usize,
    /// Frames measured.
    pub frames: usize,
    /// Milliseconds of the window's thread without the painter.
    pub median_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Longest.
    pub longest_ms: f64,
    /// Interquartile range over the median.
    pub spread: f64,
    /// Median milliseconds of turning shapes into triangles, which the painter does before drawing.
    pub tessellate_ms: f64,
    /// Mebibytes of textures handed to the painter, a frame.
    pub upload_mib: f64,
    /// Part of the frames in which everything was drawn from finished tiles.
    pub settled: f64,
    /// Frames from the one with the pointer's press to the first that shows the stroke: 0 is the same one.
    pub stroke_shows_after: Option<usize>,
    /// Median milliseconds from the end of a stroke to its block statistics.
    pub counted_ms: Option<f64>,
}

const SIZE: egui::Vec2 = vec2(1400.0, 880.0);
const FRAME: Duration = Duration::from_micros(16_667);
/// After this a count is given up: it is the count that is looked for, not its pace on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Frames before the measured ones: fonts are laid out, the document is compiled.
const FIRST: usize = 30;

/// Masks of the rows, in usual code. `N` is the number of tokens.
const MASKS: [(&str, &str); 6] = [
    ("causal", "def mask_mod(b, h, q, k):\n    return q >= k\n"),
    ("sliding_window", "def mask_mod(b, h, q, k):\n    return (q >= k) & (q - k <= 1024)\n"),
    (
        "documents",
        "doc = torch.arange(N) // 1000\ndef mask_mod(b, h, q, k):\n    return (q >= k) & (doc[q] == doc[k])\n",
    ),
    (
        "natten_2d",
        "W = 1024\ndef mask_mod(b, h, q, k):\n    return ((q // W - k // W).abs() <= 6) & ((q % W - k % W).abs() <= 6)\n",
    ),
    (
        "block_diffusion",
        "L = N // 2\ndef mask_mod(b, h, q, k):\n    n, m = q < L, k < L\n    bq, bk = q % L // 32, k % L // 32\n    return ((bq == bk) & (n == m)) | ((bq > bk) & n & ~m) | ((bq >= bk) & ~n & ~m)\n",
    ),
    ("hash", "def mask_mod(b, h, q, k):\n    return ((q * 37) ^ (k * 91)) % 5 == 0\n"),
];

/// Pans and zooms masks of this length whose name contains a word, for `seconds` each; then paints on the first, and pans and
/// zooms it in every workspace.
pub fn frame_times(tokens: usize, only: &str, seconds: f64) -> Vec<FrameTimes> {
    super::background::calm_pool();
    let wanted: Vec<_> = MASKS.into_iter().filter(|(name, _)| name.contains(only)).collect();
    let run = |(name, text): &(&str, &str), tool| Bench::new(text, tokens, tool).run(name, seconds);
    let mut rows: Vec<FrameTimes> = wanted.iter().map(|mask| run(mask, Tool::Pan)).collect();
    rows.extend(wanted.first().map(|mask| run(mask, Tool::Brush)));
    if let Some((name, text)) = wanted.first() {
        for workspace in Workspace::ALL {
            let mut bench = Bench::new(text, tokens, Tool::Pan);
            bench.window.state.view.show(workspace);
            let title = workspace.command().named(Words::of(Language::English)).to_lowercase();
            rows.push(bench.run(&format!("{name}, {title}"), seconds));
        }
    }
    rows
}

fn document(text: &str, tokens: usize) -> Document {
    let source = text.replace('N', &tokens.to_string());
    let content = MaskContent::Text(TextCode { source, ..TextCode::default() });
    let layer = Layer { id: 1, name: "mask".into(), enabled: true, combine: Combine::And, heads: None, content };
    Document { layers: vec![layer], ..empty_document(&format!("tokens {tokens}")) }
}

struct Bench {
    ctx: egui::Context,
    window: Workbench,
    tokens: usize,
    tool: Tool,
    uploaded: usize,
    /// Triangles of the last frame.
    triangles: usize,
    /// Seconds at the last frame: time never goes back, even after a long wait.
    clock: f64,
}

impl Bench {
    fn new(text: &str, tokens: usize, tool: Tool) -> Bench {
        let ctx = egui::Context::default();
        let mut window = Workbench::new(&ctx, Options::default());
        act::replace_document(&mut window.state, document(text, tokens));
        window.state.focus.tool = tool;
        Bench { ctx, window, tokens, tool, uploaded: 0, triangles: 0, clock: 0.0 }
    }

    fn run(mut self, name: &str, seconds: f64) -> FrameTimes {
        let (mut times, mut painter, mut settled) = (Vec::new(), Vec::new(), 0);
        let (mut shows, mut counted) = (None, Vec::new());
        let frames = (seconds * 60.0).max(60.0) as usize;
        self.wait();
        self.uploaded = 0;
        for n in 0..frames {
            let began = Instant::now();
            let before = self.triangles;
            let (ui, tessellate) = self.frame(events(n, self.tool), (FIRST + n) as f64 / 60.0);
            times.push(ui.as_secs_f64() * 1e3);
            painter.push(tessellate.as_secs_f64() * 1e3);
            settled += usize::from(self.window.state.session.canvas.settled());
            if self.tool == Tool::Brush {
                if n % STROKE == DOWN + 1 && shows.is_none() && self.triangles > before {
                    shows = Some(0);
                }
                if n % STROKE == UP {
                    counted.extend(self.counted(n));
                }
            }
            std::thread::sleep(FRAME.saturating_sub(began.elapsed()));
        }
        self.window.state.session.jobs.cancel_all();
        times.sort_by(f64::total_cmp);
        painter.sort_by(f64::total_cmp);
        counted.sort_by(f64::total_cmp);
        let median_ms = quantile(&times, 0.5);
        FrameTimes {
            name: name.into(),
            work: if self.tool == Tool::Brush { "stroke" } else { "pan and zoom" },
            tokens: self.tokens,
            frames,
            median_ms,
            p99_ms: quantile(&times, 0.99),
            longest_ms: quantile(&times, 1.0),
            spread: (quantile(&times, 0.75) - quantile(&times, 0.25)) / median_ms,
            tessellate_ms: quantile(&painter, 0.5),
            upload_mib: self.uploaded as f64 / f64::from(1 << 20) / frames as f64,
            settled: settled as f64 / frames as f64,
            stroke_shows_after: shows,
            counted_ms: (!counted.is_empty()).then(|| quantile(&counted, 0.5)),
        }
    }

    /// Frames until the document is compiled and shown, at least the first ones.
    fn wait(&mut self) {
        let began = Instant::now();
        for n in 0.. {
            self.frame(vec![Event::PointerMoved(place(0.0))], n as f64 / 60.0);
            let ready = self.window.state.session.built.is_some() && self.window.state.session.canvas.settled();
            if n >= FIRST && (ready || began.elapsed() > Duration::from_secs(10)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Milliseconds until the statistics are those of the document as the last frame left it.
    fn counted(&mut self, n: usize) -> Option<f64> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.frame(Vec::new(), (FIRST + n) as f64 / 60.0);
            let state = &self.window.state;
            if !state.session.is_behind(state.revision) && state.session.current_stats().is_some() {
                return Some(began.elapsed().as_secs_f64() * 1e3);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// One frame: the time of everything but the painter, and of tessellation.
    fn frame(&mut self, events: Vec<Event>, now: f64) -> (Duration, Duration) {
        let screen_rect = Some(Rect::from_min_size(Pos2::ZERO, SIZE));
        self.clock = now.max(self.clock + 1.0 / 60.0);
        let input = RawInput { screen_rect, time: Some(self.clock), events, ..RawInput::default() };
        let window = &mut self.window;
        let began = Instant::now();
        let mut output = self.ctx.run_ui(input, |ui| {
            let ctx = ui.ctx().clone();
            window.before(&ctx);
            window.draw(ui);
        });
        let ui = began.elapsed();
        let began = Instant::now();
        let shapes = std::mem::take(&mut output.shapes);
        let meshes = self.ctx.tessellate(shapes, 1.0);
        let tessellate = began.elapsed();
        self.triangles = meshes.iter().map(|m| triangles(&m.primitive)).sum();
        self.uploaded += uploaded(&output.textures_delta);
        output.drop_without_applying_deltas();
        (ui, tessellate)
    }
}

fn triangles(primitive: &egui::epaint::Primitive) -> usize {
    if let egui::epaint::Primitive::Mesh(mesh) = primitive { mesh.indices.len() / 3 } else { 0 }
}

/// Bytes of textures handed over.
fn uploaded(delta: &egui::TexturesDelta) -> usize {
    delta.set.values().flatten().map(|d| d.image.width() * d.image.height() * d.image.bytes_per_pixel()).sum()
}

/// The pointer's path over the canvas, by seconds.
fn place(t: f32) -> Pos2 {
    pos2(690.0 + 200.0 * (t * 1.7).sin(), 400.0 + 110.0 * (t * 2.3).cos())
}

/// Frames of a stroke and the pause after it; the frames with the press and the release.
const STROKE: usize = 60;
const DOWN: usize = 10;
const UP: usize = 50;

/// Four seconds over and over: zoom in about a wandering point, pan, zoom out again. Or a stroke every second.
fn events(n: usize, tool: Tool) -> Vec<Event> {
    let at = place(n as f32 / 60.0);
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
    match (tool, n % STROKE, n % 240) {
        (Tool::Pan, _, 0..80 | 160..240) if n.is_multiple_of(2) => {
            events.push(wheel(if n % 240 < 80 { 1.0 } else { -1.0 }));
        }
        (Tool::Pan, _, 80) => events.push(button(true)),
        (Tool::Pan, _, 159) => events.push(button(false)),
        (Tool::Pan, ..) => {}
        (_, DOWN, _) => events.push(button(true)),
        (_, UP, _) => events.push(button(false)),
        _ => {}
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_million_tokens_are_measured() {
        let times = Bench::new(MASKS[0].1, 1 << 20, Tool::Pan).run("causal", 1.0);
        assert_eq!(times.frames, 60);
        assert!(times.median_ms > 0.0 && times.median_ms <= times.p99_ms && times.p99_ms <= times.longest_ms);
        assert!(times.upload_mib > 0.001, "{times:?}");
    }

    #[test]
    fn a_stroke_shows_at_once_and_is_counted_soon_after() {
        let times = Bench::new(MASKS[0].1, 131_072, Tool::Brush).run("causal", 1.0);
        assert_eq!(times.stroke_shows_after, Some(0), "{times:?}");
        assert!(times.counted_ms.is_some(), "{times:?}");
    }
}
