//! Pictures of masses and losses: one large head, or all heads of a capture as a sheet of thumbnails.
//!
//! Invariant: a pixel's lightness increases with its mass on a logarithmic scale over four decades; nothing is black.
//! Must not know the window's colours.

use crate::base::Diagnostic;
use crate::export::picture::encoded;
use serde::{Deserialize, Serialize};

/// One thumbnail: block masses `[rows][columns]`, and its mark 0..=1 (1 is good) drawn as a bar beneath.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tile {
    /// Row by row.
    pub values: Vec<f32>,
    /// Values a row.
    pub columns: usize,
    /// Length of the bar.
    pub mark: f32,
}

impl Tile {
    /// Its values as red, green and blue bytes, and the pixels across and down.
    pub fn colours(&self) -> (Vec<u8>, [usize; 2]) {
        let across = self.columns.max(1);
        (self.values.iter().flat_map(|value| colour(*value)).collect(), [across, self.values.len() / across])
    }
}

/// A value's colour: viridis over four decades below 1.
pub fn colour(value: f32) -> [u8; 3] {
    let share = if value > 0.0 { 1.0 + f64::from(value).log10() / 4.0 } else { 0.0 };
    let c = colorous::VIRIDIS.eval_continuous(share.clamp(0.0, 1.0));
    [c.r, c.g, c.b]
}

/// Values [rows][columns] in at most `side` rows and columns, those under one joined by `join`; with the columns.
pub(super) fn small(values: &[f32], columns: usize, side: usize, join: impl Fn(f32, f32) -> f32) -> (Vec<f32>, usize) {
    let rows = values.len() / columns.max(1);
    let (high, wide) = (rows.min(side), columns.min(side));
    let span = |at: usize, parts: usize, count: usize| at * count / parts..(at + 1) * count / parts;
    let cell = |at: usize| {
        let of = span(at / wide, high, rows).flat_map(|r| span(at % wide, wide, columns).map(move |c| r * columns + c));
        of.map(|n| values[n]).reduce(&join).unwrap_or(0.0)
    };
    ((0..high * wide).map(cell).collect(), wide)
}

/// Values `[rows][columns]` as a PNG whose longer side is about `size` pixels.
pub fn heat(values: &[f32], columns: usize, size: usize) -> Result<Vec<u8>, Diagnostic> {
    let rows = values.len() / columns.max(1);
    let scale = (size / rows.max(columns).max(1)).max(1);
    let mut rgb = vec![0; rows * columns * scale * scale * 3];
    paint(&mut rgb, columns * scale, [0, 0], values, columns, [rows * scale, columns * scale]);
    encoded(&rgb, columns * scale, rows * scale)
}

/// Thumbnails of `side` pixels, `across` a line, with a gap between. Thumbnails that are not there stay blank.
pub fn sheet(tiles: &[Option<Tile>], across: usize, side: usize) -> Result<Vec<u8>, Diagnostic> {
    let (gap, bar) = (4, 4);
    let (cell_w, cell_h) = (side + gap, side + gap + bar);
    let lines = tiles.len().div_ceil(across.max(1)).max(1);
    let (width, height) = (across * cell_w + gap, lines * cell_h + gap);
    let mut rgb = vec![0xf4u8; width * height * 3];
    for (n, tile) in tiles.iter().enumerate() {
        let Some(tile) = tile else { continue };
        let (x, y) = (gap + n % across * cell_w, gap + n / across * cell_h);
        paint(&mut rgb, width, [y, x], &tile.values, tile.columns, [side, side]);
        let length = (tile.mark.clamp(0.0, 1.0) * side as f32) as usize;
        for row in 0..bar - 1 {
            for column in 0..side {
                let ink = if column < length { [0x0b, 0x2f, 0x5b] } else { [0xd5, 0x6a, 0x0a] };
                let at = ((y + side + row) * width + x + column) * 3;
                rgb[at..at + 3].copy_from_slice(&ink);
            }
        }
    }
    encoded(&rgb, width, height)
}

/// Paints values into a box of `extent` [height, width] pixels: a pixel takes the largest value under it, so that thin lines stay.
fn paint(rgb: &mut [u8], width: usize, [y, x]: [usize; 2], values: &[f32], columns: usize, [h, w]: [usize; 2]) {
    let rows = values.len() / columns.max(1);
    let span = |at: usize, pixels: usize, count: usize| {
        let from = at * count / pixels;
        from..((at + 1) * count).div_ceil(pixels).clamp(from + 1, count.max(from + 1))
    };
    for row in 0..h {
        for column in 0..w {
            let cells = span(row, h, rows).flat_map(|r| span(column, w, columns).map(move |c| r * columns + c));
            let value = cells.filter_map(|at| values.get(at)).copied().fold(0.0, f32::max);
            let at = ((y + row) * width + x + column) * 3;
            rgb[at..at + 3].copy_from_slice(&colour(value));
        }
    }
}
