//! A mask as a PNG: kept, dropped and mixed pixels in colours that are distinct for colour-blind readers and in print.
//!
//! Invariant: a pixel is dark only if every cell under it is kept, and light only if none is. Must not know the
//! window's colours.

use super::{ExportFile, ExportKind};
use crate::analysis::raster::{self, Region};
use crate::base::{Control, Diagnostic, Lengths};
use crate::ir::graph::Mod;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use std::sync::Arc;

/// Fully kept pixels: dark blue.
pub const FULL: [u8; 3] = [0x0b, 0x2f, 0x5b];
/// Fully dropped pixels: nearly white.
pub const EMPTY: [u8; 3] = [0xf4, 0xf3, 0xee];
/// Mixed pixels, from little kept to nearly all: light to strong orange.
pub const MIXED: [[u8; 3]; 2] = [[0xf8, 0xd9, 0xa8], [0xd5, 0x6a, 0x0a]];

/// Which picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PictureOptions {
    /// Batch entry.
    pub b: usize,
    /// Query head.
    pub h: usize,
    /// Pixels along the longer side, at most.
    pub size: usize,
    /// Pixels a cell is drawn with, each way; None: as many as fit into `size`.
    pub scale: Option<usize>,
}

impl Default for PictureOptions {
    fn default() -> Self {
        Self { b: 0, h: 0, size: 1024, scale: None }
    }
}

/// The picture of a mask (None keeps everything) as `name`. Errors: it was cancelled, or cannot be encoded.
pub fn picture(
    name: &str,
    mask: Option<&Arc<Mod>>,
    lengths: Lengths,
    options: &PictureOptions,
    control: &Control,
) -> Result<ExportFile, Diagnostic> {
    let longer = lengths.longer();
    let size = options.size.clamp(1, 16_384);
    let scale = options.scale.unwrap_or(size / longer).clamp(1, 256);
    // tokens of the longer side per pixel, before it is magnified
    let across = (size / scale).clamp(1, longer);
    let [height, width] = lengths.in_pixels(across);
    let region = Region::whole([options.b, options.h], lengths, [height, width]);
    let shares = raster::picture(mask, &region, control).pixels;
    if control.is_cancelled() {
        return Err(Diagnostic::error("cancelled", "the picture was cancelled"));
    }
    let bytes = encoded(&magnified(&shares, width, scale), width * scale, height * scale)?;
    let what = format!("picture of batch {} head {}: blue kept, white dropped, orange mixed", options.b, options.h);
    Ok(ExportFile::new(ExportKind::Page, name, bytes, what))
}

/// The colour of a share.
pub fn colour(share: f32) -> [u8; 3] {
    if share >= 1.0 {
        return FULL;
    }
    if share <= 0.0 {
        return EMPTY;
    }
    let [low, high] = MIXED;
    std::array::from_fn(|i| (f32::from(low[i]) + (f32::from(high[i]) - f32::from(low[i])) * share).round() as u8)
}

fn magnified(shares: &[f32], width: usize, scale: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(shares.len() * scale * scale * 3);
    for row in shares.chunks(width) {
        let line: Vec<u8> = row.iter().flat_map(|s| std::iter::repeat_n(colour(*s), scale).flatten()).collect();
        (0..scale).for_each(|_| out.extend_from_slice(&line));
    }
    out
}

/// Red, green and blue bytes as a PNG. Errors: it cannot be encoded.
pub fn encoded(rgb: &[u8], width: usize, height: usize) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(rgb, width as u32, height as u32, ExtendedColorType::Rgb8)
        .map_err(|e| Diagnostic::error("png", format!("the picture cannot be encoded: {e}")).hint("make it smaller"))?;
    Ok(bytes)
}

/// Bytes packed by zlib.
pub(super) fn packed(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(bytes, 9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::{BinaryOp, Graph, Input, ModKind};

    fn causal() -> Arc<Mod> {
        let mut graph = Graph::new();
        let (q, k) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
        let root = graph.binary(BinaryOp::Ge, q, k);
        Arc::new(Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() })
    }

    fn read(file: &ExportFile) -> image::RgbImage {
        image::load_from_memory_with_format(&file.bytes, image::ImageFormat::Png).expect("a PNG").to_rgb8()
    }

    #[test]
    fn small_masks_are_magnified_and_large_ones_mixed_at_their_edges() {
        let make = |q, kv, options| {
            let lengths = Lengths::new(q, kv).expect("positive");
            read(&picture("m.png", Some(&causal()), lengths, &options, &Control::new()).expect("made"))
        };
        let small = make(4, 8, PictureOptions { size: 100, ..Default::default() });
        assert_eq!(small.dimensions(), (96, 48));
        assert_eq!((small.get_pixel(0, 47).0, small.get_pixel(95, 0).0), (FULL, EMPTY));
        let plain = make(4, 8, PictureOptions { size: 100, scale: Some(1), ..Default::default() });
        assert_eq!(plain.dimensions(), (8, 4));
        let large = make(100_000, 100_000, PictureOptions { size: 64, ..Default::default() });
        assert_eq!(large.dimensions(), (64, 64));
        let pixel = large.get_pixel(10, 10).0;
        assert!(pixel != FULL && pixel != EMPTY && pixel[0] > pixel[2], "{pixel:?}");
        assert_eq!((large.get_pixel(0, 63).0, large.get_pixel(63, 0).0), (FULL, EMPTY));
    }

    #[test]
    fn the_three_colours_differ_in_lightness_alone() {
        let light = |c: [u8; 3]| 0.2126 * f32::from(c[0]) + 0.7152 * f32::from(c[1]) + 0.0722 * f32::from(c[2]);
        let order = [FULL, colour(0.999), colour(0.001), EMPTY].map(light);
        assert!(order.windows(2).all(|w| w[1] - w[0] > 15.0), "{order:?}");
    }

    #[test]
    fn a_cancelled_picture_is_no_picture() {
        let control = Control::new();
        control.cancel();
        let lengths = Lengths::new(9, 9).expect("positive");
        let why = picture("m.png", Some(&causal()), lengths, &PictureOptions::default(), &control).expect_err("none");
        assert_eq!(why.code, "cancelled");
    }
}
