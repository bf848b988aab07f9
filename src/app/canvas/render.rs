//! One tile of the picture: from tokens to pixels, on any thread.
//!
//! Invariant: a tile's pixels are those of `analysis::raster`, coloured; if a length is not a multiple of the step, the
//! last row and column cover fewer tokens, not wrong ones. Must not know the window, caches or threads.

use super::Picture;
use super::bias::{self, Span};
use super::colors::{Palette, Ramp};
use crate::analysis::change::Change;
use crate::analysis::classify::Verdict;
use crate::analysis::interval::Cells;
use crate::analysis::raster::{BiasRaster, Effort, Raster, Region};
use crate::base::{BlockSize, Control, Lengths};
use crate::ir::graph::{Input, Mod};
use crate::ir::passes::compose;
use crate::ir::passes::simplify::simplify;
use egui::{Color32, ColorImage};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

/// Pixels along the side of a tile.
pub(super) const SIDE: usize = 256;
/// Pixels along the side of the first impression of a whole mask.
const IMPRESSION: usize = 64;

/// Which tile of which picture. `level` is the binary logarithm of the tokens a pixel covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TileKey {
    /// Revision of the scene.
    pub revision: u64,
    /// Batch entry; 0 if the picture does not depend on it.
    pub b: u32,
    /// Head; 0 if the picture does not depend on it.
    pub h: u32,
    /// The kind of picture.
    pub picture: Picture,
    /// The number of the compared mask; 0 for other pictures.
    pub against: u64,
    /// Blocks, if they colour the picture.
    pub block: Option<BlockSize>,
    /// Theme.
    pub dark: bool,
    /// Tokens a pixel, (q, kv), as powers of two.
    pub level: [u8; 2],
    /// Which tile, (row, column).
    pub at: [u32; 2],
}

/// The source of tiles: one revision's mods, compiled by the first worker that needs them.
#[derive(Debug)]
pub(super) struct Source {
    /// Revision of the scene.
    pub revision: u64,
    /// Region of the mask.
    pub lengths: Lengths,
    mask: Option<Arc<Mod>>,
    score: Option<Arc<Mod>>,
    /// Whether the mask and the score mod read b and h.
    depends: [[bool; 2]; 2],
    /// Batch entries and heads.
    groups: [usize; 2],
    raster: OnceLock<Raster>,
    bias: OnceLock<BiasRaster>,
    /// The range of the bias, over all batch entries and heads.
    span: Mutex<Option<Span>>,
    before: Option<Before>,
    against: Option<Against>,
}

/// Another mask and both ways in which the mask differs from it.
#[derive(Debug)]
struct Against {
    number: u64,
    mask: Option<Arc<Mod>>,
    /// Kept now only, and kept there only.
    ways: [OnceLock<Raster>; 2],
}

/// A revision whose tiles are there already.
#[derive(Clone, Debug)]
struct Before {
    revision: u64,
    mask: Option<Arc<Mod>>,
    score: Option<Arc<Mod>>,
}

/// The very same mod, or none in both cases.
fn same(a: &Option<Arc<Mod>>, b: &Option<Arc<Mod>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether a mod reads b and h.
fn reads(of: &Option<Arc<Mod>>) -> [bool; 2] {
    let depends = of.as_ref().map(|m| m.depends()).unwrap_or_default();
    [depends.on(Input::B), depends.on(Input::H)]
}

/// A finished tile.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// Pixels, as many as the mask has there.
    pub image: ColorImage,
    /// Whether every pixel is exact rather than sampled.
    pub exact: bool,
}

impl Source {
    /// Mods that have not been compiled yet; cheap.
    pub(super) fn new(revision: u64, mask: Option<Arc<Mod>>, score: Option<Arc<Mod>>, lengths: Lengths) -> Source {
        let depends = [reads(&mask), reads(&score)];
        let (raster, bias, span, groups) = (OnceLock::new(), OnceLock::new(), Mutex::default(), [1, 1]);
        Source { revision, lengths, mask, score, depends, groups, raster, bias, span, before: None, against: None }
    }

    /// The same for so many batch entries and heads.
    #[must_use]
    pub(super) fn over(mut self, batch: usize, heads: usize) -> Source {
        self.groups = [batch.max(1), heads.max(1)];
        self
    }

    /// The same with another mask to compare with, known by its number.
    #[must_use]
    pub(super) fn compared(mut self, number: u64, mask: Option<Arc<Mod>>) -> Source {
        self.against = Some(Against { number, mask, ways: [OnceLock::new(), OnceLock::new()] });
        self
    }

    /// The number of the compared mask.
    pub(super) fn against(&self) -> Option<u64> {
        self.against.as_ref().map(|against| against.number)
    }

    /// Cells kept now only, or there only; None without a comparison. Not for the window's thread.
    fn way(&self, at: usize) -> Option<&Raster> {
        let against = self.against.as_ref()?;
        let everything = || Arc::new(compose::constant_mask(true));
        let made = || {
            let now = self.mask.clone().unwrap_or_else(everything);
            let there = against.mask.clone().unwrap_or_else(everything);
            let [a, b] = if at == 0 { [&now, &there] } else { [&there, &now] };
            Raster::new(Arc::new(simplify(&compose::and_not(a, b))))
        };
        Some(against.ways[at].get_or_init(made))
    }

    /// Whether it is for so many batch entries and heads.
    pub(super) fn is_over(&self, groups: [usize; 2]) -> bool {
        self.groups == groups.map(|n| n.max(1))
    }

    /// The same as what comes after another: tiles that the edit between them leaves as they were can be carried over.
    /// `drawn`: whether there are tiles of that one; otherwise those of the one before it count.
    #[must_use]
    pub(super) fn after(mut self, last: &Source, drawn: bool) -> Source {
        if self.lengths == last.lengths {
            let of = |s: &Source| Before { revision: s.revision, mask: s.mask.clone(), score: s.score.clone() };
            let drawn = drawn && last.revision != self.revision;
            self.before = if drawn { Some(of(last)) } else { last.before.clone() };
        }
        self
    }

    /// The revision whose tiles may be carried over.
    pub(super) fn before(&self) -> Option<u64> {
        self.before.as_ref().map(|before| before.revision)
    }

    /// The tiles of `before` that are unchanged. Not for the window's thread.
    pub(super) fn unchanged(&self, mut tiles: Vec<TileKey>) -> Vec<TileKey> {
        let Some(before) = &self.before else { return Vec::new() };
        // its colours depend on all that the mask keeps
        let bias = same(&before.score, &self.score) && (self.score.is_none() || same(&before.mask, &self.mask));
        let masks = match same(&before.mask, &self.mask) {
            true => (None, None),
            false => (before.mask.as_deref(), self.mask.as_deref()),
        };
        let change = Change::between(masks.0, masks.1);
        let mut asked = change.ask();
        tiles.retain(|key| match key.picture {
            Picture::Bias => bias,
            Picture::Difference => false,
            Picture::Mask | Picture::Blocks | Picture::Map | Picture::Loss => {
                let [q, kv] = key.reach(self.lengths);
                asked.leaves(&Cells::new(key.b as usize, key.h as usize, q, kv))
            }
        });
        tiles
    }

    /// Whether a picture differs by (batch entry, head). That of a bias shows what the mask drops, too.
    pub(super) fn depends(&self, picture: Picture) -> [bool; 2] {
        let [mask, score] = self.depends;
        let either = |other: [bool; 2]| [mask[0] || other[0], mask[1] || other[1]];
        match picture {
            Picture::Bias => either(score),
            Picture::Difference => either(self.against.as_ref().map_or([false; 2], |other| reads(&other.mask))),
            Picture::Mask | Picture::Blocks | Picture::Map | Picture::Loss => mask,
        }
    }

    /// Whether there is nothing to draw: a bias without a score mod, a difference from nothing.
    pub(super) fn is_blank(&self, picture: Picture) -> bool {
        match picture {
            Picture::Bias => self.score.is_none(),
            Picture::Difference => self.against.is_none(),
            // drawn from numbers, not from tiles
            Picture::Map | Picture::Loss => true,
            Picture::Mask | Picture::Blocks => false,
        }
    }

    /// The compiled mask; compiles it if necessary. Not for the window's thread.
    pub(super) fn raster(&self) -> Option<&Raster> {
        self.mask.as_ref().map(|mask| self.raster.get_or_init(|| Raster::new(mask.clone())))
    }

    fn bias(&self) -> Option<&BiasRaster> {
        self.score.as_ref().map(|score| self.bias.get_or_init(|| BiasRaster::new(score.clone())))
    }

    /// The range of a bias, once a tile of it has been made.
    pub(super) fn known_span(&self) -> Option<Span> {
        *self.span.lock().ok()?
    }

    fn span(&self, score: &BiasRaster, control: &Control) -> Option<Span> {
        if let Some(known) = self.known_span() {
            return Some(known);
        }
        let [b, h] = self.depends(Picture::Bias);
        let count = |on: bool, all: usize| if on { all } else { 1 };
        let [batch, heads] = [count(b, self.groups[0]), count(h, self.groups[1])];
        let groups: Vec<[usize; 2]> = (0..batch).flat_map(|b| (0..heads).map(move |h| [b, h])).collect();
        let mods = bias::Mods { mask: self.raster(), score, lengths: self.lengths };
        let nothing = Span { ramp: Ramp { lo: 0.0, hi: 0.0 }, exact: true };
        let span = bias::span(&mods, &groups, control);
        if control.is_cancelled() {
            return None;
        }
        let span = span.unwrap_or(nothing);
        if let Ok(mut known) = self.span.lock() {
            *known = Some(span);
        }
        Some(span)
    }
}

impl TileKey {
    /// The first tile of a picture at single tokens.
    pub(super) fn of(source: &Source, group: [usize; 2], picture: Picture, block: BlockSize, dark: bool) -> TileKey {
        let depends = source.depends(picture);
        TileKey {
            revision: source.revision,
            b: if depends[0] { group[0] as u32 } else { 0 },
            h: if depends[1] { group[1] as u32 } else { 0 },
            picture,
            against: source.against().filter(|_| picture == Picture::Difference).unwrap_or(0),
            block: (picture == Picture::Blocks).then_some(block),
            dark,
            level: [0; 2],
            at: [0; 2],
        }
    }

    /// Tokens a pixel, (q, kv).
    pub(super) fn steps(&self) -> [usize; 2] {
        self.level.map(|l| 1usize << l)
    }

    /// Tokens of the tile, (q, kv), clipped to the lengths.
    pub(super) fn tokens(&self, lengths: Lengths) -> [Range<usize>; 2] {
        let side = self.steps().map(|s| s * SIDE);
        let range = |at: usize, len: usize| {
            let start = self.at[at] as usize * side[at];
            start.min(len)..(start + side[at]).min(len)
        };
        [range(0, lengths.q_len), range(1, lengths.kv_len)]
    }

    /// Tokens that the tile's colours depend on: its own and the rest of their blocks.
    fn reach(&self, lengths: Lengths) -> [Range<usize>; 2] {
        let [q, kv] = self.tokens(lengths);
        let Some(block) = self.block else { return [q, kv] };
        let grown = |r: Range<usize>, size: usize, len: usize| {
            r.start / size * size..r.end.div_ceil(size).saturating_mul(size).min(len)
        };
        [grown(q, block.q, lengths.q_len), grown(kv, block.kv, lengths.kv_len)]
    }
}

/// The level at which the whole mask fits into one tile of so many pixels.
pub(super) fn whole(lengths: Lengths, side: usize) -> [u8; 2] {
    [lengths.q_len, lengths.kv_len].map(|len| len.div_ceil(side).next_power_of_two().trailing_zeros() as u8)
}

/// The level of the first impression of a whole mask, which is made with little effort.
pub(super) fn impression(lengths: Lengths) -> [u8; 2] {
    whole(lengths, IMPRESSION)
}

/// Whether a tile shows the whole mask.
pub(super) fn is_whole(key: &TileKey, lengths: Lengths) -> bool {
    let top = whole(lengths, SIDE);
    key.level[0] >= top[0] && key.level[1] >= top[1]
}

/// Makes a tile. None if it was cancelled meanwhile.
pub(super) fn render(source: &Source, key: &TileKey, control: &Control) -> Option<Tile> {
    let area = Area::of(key, source.lengths);
    let size = [area.kv.len().div_ceil(area.steps[1]), area.q.len().div_ceil(area.steps[0])];
    let (pixels, exact) = pixels(source, &area, control);
    (!control.is_cancelled()).then(|| Tile { image: ColorImage::new(size, pixels), exact })
}

/// One row, a pixel for each key: what a tile shows of it where cells are largest. None if it was cancelled meanwhile.
pub(super) fn row(source: &Source, key: &TileKey, q: usize, control: &Control) -> Option<Row> {
    let of = Area::of(key, source.lengths);
    let area = Area { q: q..q + 1, kv: 0..source.lengths.kv_len, steps: [1, 1], sketch: false, ..of };
    let (colors, _) = pixels(source, &area, control);
    let (shares, _) = shares_of(source.raster(), &area, control);
    (!control.is_cancelled()).then(|| Row { colors, kept: shares.iter().map(|share| *share > 0.0).collect() })
}

/// The keys of one query.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// As the matrix colours them.
    pub colors: Vec<Color32>,
    /// Whether the mask keeps each.
    pub kept: Vec<bool>,
}

/// What a picture is made of.
#[derive(Clone, Debug)]
struct Area {
    b: usize,
    h: usize,
    q: Range<usize>,
    kv: Range<usize>,
    /// Tokens a pixel, (q, kv).
    steps: [usize; 2],
    picture: Picture,
    /// Blocks, if they colour the picture.
    block: Option<BlockSize>,
    /// Whether little effort is made: a first impression.
    sketch: bool,
    palette: Palette,
}

impl Area {
    fn of(key: &TileKey, lengths: Lengths) -> Area {
        let [q, kv] = key.tokens(lengths);
        let coarse = impression(lengths);
        let sketch = key.level[0] >= coarse[0] && key.level[1] >= coarse[1];
        let (b, h, picture, block) = (key.b as usize, key.h as usize, key.picture, key.block);
        Area { b, h, q, kv, steps: key.steps(), picture, block, sketch, palette: Palette::dark(key.dark) }
    }
}

/// The colours of an area's pixels, and whether each is exact.
fn pixels(source: &Source, area: &Area, control: &Control) -> (Vec<Color32>, bool) {
    match area.picture {
        Picture::Bias => bias_pixels(source, area, control),
        Picture::Difference => difference_pixels(source, area, control),
        Picture::Mask | Picture::Blocks | Picture::Map | Picture::Loss => mask_pixels(source, area, control),
    }
}

fn bias_pixels(source: &Source, area: &Area, control: &Control) -> (Vec<Color32>, bool) {
    let Area { b, h, q, kv, steps, palette, .. } = area;
    let (b, h, steps) = (*b, *h, *steps);
    let width = kv.len().div_ceil(steps[1]);
    let pixels = width * q.len().div_ceil(steps[0]);
    let hatched = |at: usize| bias::dropped(at / width, at % width, palette);
    let span = source.bias().and_then(|score| Some((score, source.span(score, control)?.ramp)));
    let Some((score, ramp)) = span else { return ((0..pixels).map(hatched).collect(), true) };
    let values = stepped(q, kv, steps, |q, kv, height, width| {
        score.tile_of_kept(&Region { b, h, q, kv, height, width }, source.raster(), control)
    });
    let shown = |(at, value): (usize, &Option<f32>)| value.map_or_else(|| hatched(at), |v| ramp.color(v, palette));
    (values.iter().enumerate().map(shown).collect(), steps == [1, 1])
}

fn difference_pixels(source: &Source, area: &Area, control: &Control) -> (Vec<Color32>, bool) {
    let (kept, mut exact) = shares_of(source.raster(), area, control);
    let mut way = |at: usize| {
        let (shares, all) = shares_of(source.way(at), area, control);
        exact &= all;
        shares
    };
    let (now, there) = (way(0), way(1));
    let pixel = |((kept, now), there): ((&f32, &f32), &f32)| area.palette.difference(*kept - *now, *now, *there);
    (kept.iter().zip(&now).zip(&there).map(pixel).collect(), exact)
}

fn mask_pixels(source: &Source, area: &Area, control: &Control) -> (Vec<Color32>, bool) {
    let palette = &area.palette;
    let (shares, exact) = shares_of(source.raster(), area, control);
    let coloured = match kinds(source, area, control) {
        _ if area.picture == Picture::Mask => shares.iter().map(|s| palette.share(*s)).collect(),
        None => shares.iter().map(|s| palette.blocks(*s)).collect(),
        Some(kinds) => kinds.iter().zip(&shares).map(|(kind, share)| color(*kind, *share, palette)).collect(),
    };
    (coloured, exact)
}

fn color(kind: Verdict, share: f32, palette: &Palette) -> Color32 {
    match kind {
        Verdict::Empty => palette.empty,
        Verdict::Full => palette.full,
        Verdict::Mixed => palette.partial(share),
    }
}

/// The kept share of each pixel, and whether all are exact.
fn shares_of(raster: Option<&Raster>, area: &Area, control: &Control) -> (Vec<f32>, bool) {
    let Area { b, h, q, kv, steps, .. } = area;
    let Some(raster) = raster else {
        return (vec![1.0; q.len().div_ceil(steps[0]) * kv.len().div_ceil(steps[1])], true);
    };
    let mut exact = true;
    let effort = if area.sketch { Effort::SKETCH } else { Effort::FULL };
    let shares = stepped(q, kv, *steps, |q, kv, height, width| {
        let region = Region { b: *b, h: *h, q, kv, height, width };
        let picture = raster.picture(&region, effort, control);
        exact &= picture.exact;
        picture.pixels
    });
    (shares, exact)
}

/// The block kind of each pixel; None if pixels are at least as large as blocks, because shares then suffice.
fn kinds(source: &Source, area: &Area, control: &Control) -> Option<Vec<Verdict>> {
    let (block, steps, q, kv) = (area.block?, area.steps, &area.q, &area.kv);
    if steps[0] >= block.q && steps[1] >= block.kv {
        return None;
    }
    let (q_cuts, q_of) = cuts(q, steps[0], block.q, source.lengths.q_len);
    let (kv_cuts, kv_of) = cuts(kv, steps[1], block.kv, source.lengths.kv_len);
    let width = kv_cuts.len() - 1;
    let mut found = match source.raster() {
        Some(raster) => raster.kinds(area.b, area.h, &q_cuts, &kv_cuts, control),
        None => vec![Verdict::Full; (q_cuts.len() - 1) * width],
    };
    for (at, kind) in found.iter_mut().enumerate() {
        let hangs =
            |cuts: &[usize], at: usize, block: usize, step: usize| step < block && cuts[at + 1] - cuts[at] < block;
        let over = hangs(&q_cuts, at / width, block.q, steps[0]) || hangs(&kv_cuts, at % width, block.kv, steps[1]);
        if *kind == Verdict::Full && over {
            *kind = Verdict::Mixed;
        }
    }
    Some(q_of.iter().flat_map(|row| kv_of.iter().map(move |col| row * width + col)).map(|at| found[at]).collect())
}

/// Cuts between the blocks that a range touches (between its pixels where those are larger), and each pixel's place
/// between them.
fn cuts(range: &Range<usize>, step: usize, block: usize, len: usize) -> (Vec<usize>, Vec<usize>) {
    let unit = if step < block { block } else { step };
    let first = range.start / unit;
    let last = range.end.div_ceil(unit);
    let cuts = (first..=last).map(|n| (n * unit).min(len)).collect();
    let pixels = range.len().div_ceil(step);
    let middle = |n: usize| (range.start + n * step + (step - 1) / 2).min(range.end - 1);
    (cuts, (0..pixels).map(|n| middle(n) / unit - first).collect())
}

/// Fills pixels of even steps; shorter last rows and columns in separate calls.
fn stepped<T: Copy + Default>(
    q: &Range<usize>,
    kv: &Range<usize>,
    steps: [usize; 2],
    mut part: impl FnMut(Range<usize>, Range<usize>, usize, usize) -> Vec<T>,
) -> Vec<T> {
    let parts = |r: &Range<usize>, step: usize| {
        let whole = r.len() / step;
        let middle = r.start + whole * step;
        [(0, whole, r.start..middle), (whole, usize::from(middle < r.end), middle..r.end)]
    };
    let width = kv.len().div_ceil(steps[1]);
    let mut out = vec![T::default(); width * q.len().div_ceil(steps[0])];
    for (row, height, q) in parts(q, steps[0]) {
        for (col, wide, kv) in parts(kv, steps[1]) {
            if height == 0 || wide == 0 {
                continue;
            }
            for (n, line) in part(q.clone(), kv, height, wide).chunks(wide).enumerate() {
                let at = (row + n) * width + col;
                out[at..at + wide].copy_from_slice(line);
            }
        }
    }
    out
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
