//! The mask canvas: one zoomable picture from the whole mask down to a cell, with tools that draw on it.
//!
//! Invariant: drawing a frame never waits for analysis; what is not known yet is shown coarser and follows. The canvas
//! changes no document: it says what the user did, and the caller decides. Must not know documents' layers, commands or
//! panels.

mod view;

pub use view::{AxisMap, ScreenFromWorld, View};

use crate::base::{BlockSize, Lengths};
use crate::document::model::{Axis, Stroke};
use crate::language::graph::Mod;
use std::sync::Arc;

/// What a frame shows.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The mask; None keeps everything.
    pub mask: Option<Arc<Mod>>,
    /// The score mod, drawn by [`Picture::Bias`].
    pub score: Option<Arc<Mod>>,
    /// Rows and columns.
    pub lengths: Lengths,
    /// BLOCK_SIZE of the blocks that are shown.
    pub block_size: BlockSize,
    /// What rows mean.
    pub q_axis: &'a Axis,
    /// What columns mean.
    pub kv_axis: &'a Axis,
    /// Batch entries.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Shown batch entry.
    pub b: usize,
    /// Shown head.
    pub h: usize,
    /// Changes whenever the mask, the score mod or the lengths do, and only then.
    pub revision: u64,
    /// What the primary button does.
    pub tool: Tool,
    /// Cells of the painted layer that the brush would paint on; None: blocks of `block_size`.
    pub painted_cell: Option<BlockSize>,
    /// What is drawn.
    pub picture: Picture,
}

/// What the canvas draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Picture {
    /// Kept share of each pixel.
    Mask,
    /// The same, coloured by full, partial and empty blocks.
    #[default]
    Blocks,
    /// What the score mod makes of a score of zero.
    Bias,
}

/// What the primary button does on the canvas. The middle button, and the primary one with the space bar held, always pan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Moves the picture.
    #[default]
    Pan,
    /// Paints cells.
    Brush,
    /// Erases painted cells.
    Eraser,
    /// Draws a rectangle.
    Rectangle,
    /// Draws a diagonal band.
    Band,
}

/// What the user did on the canvas. A stroke is `StrokeBegan`, then at least one `Stroke` with the rectangles that were
/// added since the last, then `StrokeEnded` or `StrokeCancelled`.
#[derive(Clone, Debug, PartialEq)]
pub enum CanvasEvent {
    /// The pointer went down with the brush or the eraser.
    StrokeBegan,
    /// Rectangles in cell units (of `painted_cell`) that the stroke covers in addition.
    Stroke(Stroke),
    /// The pointer went up.
    StrokeEnded,
    /// Escape: the stroke since `StrokeBegan` is to be taken back.
    StrokeCancelled,
    /// A rectangle was drawn (half-open, tokens).
    RectangleDrawn {
        /// Rows.
        q: [usize; 2],
        /// Columns.
        kv: [usize; 2],
    },
    /// A band was drawn: `lo <= q_idx - kv_idx <= hi`.
    BandDrawn {
        /// Smallest distance.
        lo: i64,
        /// Largest distance.
        hi: i64,
    },
    /// The cell under the pointer (q_idx, kv_idx) changed.
    Hovered(Option<[usize; 2]>),
    /// A cell was clicked with the pan tool.
    Clicked([usize; 2]),
    /// A thumbnail was chosen.
    Chosen {
        /// Batch entry.
        b: usize,
        /// Head.
        h: usize,
    },
}

/// The canvas and what it remembers between frames.
#[derive(Debug, Default)]
pub struct Canvas {
    view: View,
    hovered: Option<[usize; 2]>,
}

impl Canvas {
    /// Draws the canvas over all the room there is. Returns what the user did.
    pub fn show(&mut self, ui: &mut egui::Ui, scene: &Scene<'_>) -> Vec<CanvasEvent> {
        let mut events = Vec::new();
        let (rect, response) = ui.allocate_exact_size(ui.available_size(), egui::Sense::click_and_drag());
        self.view.limit(rect.size(), scene.lengths);
        if response.dragged() {
            self.view.pan(response.drag_delta(), rect, scene.lengths);
        }
        if let Some(at) = response.hover_pos() {
            let scroll = ui.input(|i| i.smooth_scroll_delta().y);
            if scroll != 0.0 {
                self.view.zoom_about(f64::from(scroll * 0.005).exp(), at, rect, scene.lengths);
            }
        }
        let map = self.view.screen_from_world(rect, scene.lengths);
        let hovered = response.hover_pos().and_then(|at| map.cell(at, scene.lengths));
        if hovered != self.hovered {
            self.hovered = hovered;
            events.push(CanvasEvent::Hovered(hovered));
        }
        let (q_len, kv_len) = (scene.lengths.q_len as f64, scene.lengths.kv_len as f64);
        let whole = map.rect_of([0.0, q_len], [0.0, kv_len]);
        ui.painter_at(rect).rect_filled(whole, 0.0, ui.visuals().extreme_bg_color);
        events
    }
}
