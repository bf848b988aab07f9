//! Drawn layers after a change of the axes: painted cells, rectangles, bands, distance curves.
//!
//! Invariant: `Keep` changes no cell inside both canvases, `Scale` keeps proportions to a cell, `Repeat` tiles the
//! painted picture; layers that cannot be scaled are refused. Nothing else of a layer changes. Must not know the
//! window.

use super::edit::Edit;
use super::model::*;
use crate::base::Diagnostic;

/// The treatment of drawn layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Cells keep their positions.
    Keep,
    /// The picture is stretched to the new lengths.
    Scale,
    /// Painted cells are repeated along both axes; rectangles, bands and curves keep their positions.
    Repeat,
}

/// Most rectangles that repeating may make.
const MAX_RECTS: usize = 1 << 20;

/// Whether the document has painted cells or rectangles that new axes would leave behind.
pub fn needs_choice(document: &Document, axes: &Axes) -> bool {
    let lengths = lengths_of(axes);
    let others = lengths_of(&document.axes) != lengths;
    document.layers.iter().any(|l| match &l.content {
        MaskContent::Painted(p) => p.lengths != lengths,
        MaskContent::Rectangle { .. } => others,
        _ => false,
    })
}

fn lengths_of(axes: &Axes) -> [usize; 2] {
    [axes.q.len(), axes.kv().len()]
}

/// The edit that sets new axes and moves everything drawn along: what [`set_axes`] does, and with [`Resize::Scale`]
/// rectangles, bands and distance curves too. Errors: queries and keys are stretched by different factors while there is
/// a band or a curve, which is of distances and would not be one any more.
pub fn follow_axes(document: &Document, axes: Axes, how: Resize) -> Result<Edit, Diagnostic> {
    let (old, new) = (lengths_of(&document.axes), lengths_of(&axes));
    let Edit::Group(mut edits) = set_axes(document, axes, how)? else {
        return Err(Diagnostic::error("internal", "new axes are a group of edits").hint("please report this"));
    };
    if how != Resize::Scale || old == new {
        return Ok(Edit::Group(edits));
    }
    let even = old[0] as u128 * new[1] as u128 == old[1] as u128 * new[0] as u128;
    for layer in &document.layers {
        let content = match &layer.content {
            MaskContent::Rectangle { q, kv } => {
                MaskContent::Rectangle { q: stretched(*q, old[0], new[0]), kv: stretched(*kv, old[1], new[1]) }
            }
            MaskContent::Band { .. } if !even => return Err(uneven(&layer.name, old, new)),
            MaskContent::Band { lo, hi } => {
                let (lo, hi) = stretched_band(*lo, *hi, old[0], new[0]);
                MaskContent::Band { lo, hi }
            }
            _ => continue,
        };
        edits.push(Edit::SetContent(layer.id, Box::new(content)));
    }
    for score in &document.scores {
        let ScoreContent::Curve { points } = &score.content else { continue };
        if !even {
            return Err(uneven(&score.name, old, new));
        }
        let factor = new[0] as f64 / old[0] as f64;
        let points = points.iter().map(|p| (p.0 * factor, p.1)).collect();
        edits.push(Edit::SetScoreContent(score.id, Box::new(ScoreContent::Curve { points })));
    }
    Ok(Edit::Group(edits))
}

fn uneven(layer: &str, old: [usize; 2], new: [usize; 2]) -> Diagnostic {
    let [q, kv] = [0, 1].map(|a| new[a] as f64 / old[a] as f64);
    let message = format!("`{layer}` is drawn by distance and cannot be stretched: queries by {q:.3}, keys by {kv:.3}");
    Diagnostic::error("resize-uneven", message).hint("keep it, or change both axes by the same factor")
}

/// A range of tokens in proportion, rounded; a non-empty range stays at least one token wide.
pub fn stretched([from, to]: [usize; 2], old: usize, new: usize) -> [usize; 2] {
    let place = |v: usize| ((v as u128 * new as u128 + old as u128 / 2) / old.max(1) as u128) as usize;
    let (start, end) = (place(from), place(to));
    if to <= from {
        return [start, start];
    }
    let start = start.min(new.saturating_sub(1));
    [start, end.max(start + 1)]
}

/// A band's ends in proportion. The diagonal stays the diagonal; an end beyond it counts its own distance too, so that a
/// window of 1024 keys (0 to 1023) over half the tokens is one of 512 (0 to 511).
pub fn stretched_band(lo: Option<i64>, hi: Option<i64>, old: usize, new: usize) -> (Option<i64>, Option<i64>) {
    let part = |n: i64| {
        let n = (i128::from(n) * new as i128 + old as i128 / 2) / (old.max(1) as i128);
        i64::try_from(n).unwrap_or(i64::MAX / 2)
    };
    // an end away from the diagonal includes itself; an end that cuts a band off on its near side begins at itself
    let outer = |d: i64| if d == 0 { 0 } else { (part(d.saturating_add(1)) - 1).max(0) };
    let inner = |d: i64| part(d).max(1);
    let high = hi.map(|d| if d >= 0 { outer(d) } else { -inner(-d) });
    let low = lo.map(|d| if d <= 0 { -outer(-d) } else { inner(d) });
    match (low, high) {
        (Some(low), Some(high)) if lo <= hi => (Some(low), Some(high.max(low))),
        ends => ends,
    }
}

/// The edit that sets new axes and moves every painted layer along.
pub fn set_axes(document: &Document, axes: Axes, how: Resize) -> Result<Edit, Diagnostic> {
    let lengths = axes.lengths()?;
    let lengths = [lengths.q_len, lengths.kv_len];
    let mut edits = vec![Edit::SetAxes(axes)];
    for layer in &document.layers {
        if let MaskContent::Painted(painted) = &layer.content
            && painted.lengths != lengths
        {
            let content = MaskContent::Painted(resized(painted, lengths, how)?);
            edits.push(Edit::SetContent(layer.id, Box::new(content)));
        }
    }
    Ok(Edit::Group(edits))
}

/// The painted cells on a canvas of other lengths.
pub fn resized(painted: &Painted, lengths: [usize; 2], how: Resize) -> Result<Painted, Diagnostic> {
    let cell = [painted.cell.q.max(1), painted.cell.kv.max(1)];
    let grid = |lengths: [usize; 2]| [lengths[0].div_ceil(cell[0]), lengths[1].div_ceil(cell[1])];
    let (old, new) = (grid(painted.lengths), grid(lengths));
    let mut strokes = painted.strokes.clone();
    match how {
        Resize::Keep => {}
        Resize::Scale => strokes.iter_mut().flat_map(|s| &mut s.rects).for_each(|r| *r = scaled(*r, old, new)),
        Resize::Repeat => {
            let times = [new[0].div_ceil(old[0].max(1)), new[1].div_ceil(old[1].max(1))];
            let rects: usize = strokes.iter().map(|s| s.rects.len()).sum();
            let made = rects.saturating_mul(times[0]).saturating_mul(times[1]);
            if made > MAX_RECTS {
                let message = format!("repeating the painted cells would make {made} rectangles");
                return Err(Diagnostic::error("painted-too-fine", message).hint("scale them instead"));
            }
            strokes.iter_mut().for_each(|s| s.rects = repeated(&s.rects, old, times));
        }
    }
    Ok(Painted { cell: painted.cell, lengths, strokes })
}

/// Ends move in proportion, rounded; a rectangle that was not empty stays at least a cell wide.
fn scaled([q0, q1, kv0, kv1]: [u32; 4], old: [usize; 2], new: [usize; 2]) -> [u32; 4] {
    let span = |lo: u32, hi: u32, axis: usize| {
        let (from, to) = (old[axis].max(1) as u64, new[axis] as u64);
        let place = |v: u32| (u64::from(v) * to + from / 2) / from;
        let (start, end) = (place(lo), place(hi));
        let end = if hi > lo { end.max(start + 1) } else { end };
        (start.min(u64::from(u32::MAX)) as u32, end.min(u64::from(u32::MAX)) as u32)
    };
    let ((a, b), (c, d)) = (span(q0, q1, 0), span(kv0, kv1, 1));
    [a, b, c, d]
}

fn repeated(rects: &[[u32; 4]], old: [usize; 2], times: [usize; 2]) -> Vec<[u32; 4]> {
    let shift = |v: u32, n: usize, axis: usize| (v as usize).min(old[axis]).saturating_add(n * old[axis]) as u32;
    let mut out = Vec::with_capacity(rects.len() * times[0] * times[1]);
    for down in 0..times[0] {
        for across in 0..times[1] {
            let moved = |r: &[u32; 4]| {
                [shift(r[0], down, 0), shift(r[1], down, 0), shift(r[2], across, 1), shift(r[3], across, 1)]
            };
            out.extend(rects.iter().map(moved));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{BlockSize, Lengths};
    use crate::document::edit::apply;
    use crate::document::painted::painted_mask;
    use crate::document::testing::{document, keeps};

    fn painted() -> Painted {
        let stroke = Stroke { paint: true, rects: vec![[0, 1, 0, 1], [2, 4, 1, 2]] };
        Painted { cell: BlockSize::square(2), lengths: [8, 8], strokes: vec![stroke] }
    }

    fn kept(painted: &Painted, q: usize, kv: usize) -> bool {
        let lengths = Lengths::new(painted.lengths[0], painted.lengths[1]).unwrap();
        keeps(&painted_mask(painted, lengths).unwrap(), q as i64, kv as i64)
    }

    #[test]
    fn three_ways_to_resize() {
        let old = painted();
        let keep = resized(&old, [16, 24], Resize::Keep).unwrap();
        let scale = resized(&old, [16, 24], Resize::Scale).unwrap();
        let repeat = resized(&old, [16, 24], Resize::Repeat).unwrap();
        for q in 0..16 {
            for kv in 0..24 {
                assert_eq!(kept(&keep, q, kv), q < 8 && kv < 8 && kept(&old, q, kv));
                assert_eq!(kept(&scale, q, kv), kept(&old, q / 2, kv / 3), "{q} {kv}");
                assert_eq!(kept(&repeat, q, kv), kept(&old, q % 8, kv % 8));
            }
        }
        let smaller = resized(&old, [4, 4], Resize::Scale).unwrap();
        assert!(kept(&smaller, 0, 0), "what was painted does not vanish");
        assert!(resized(&old, [1 << 29, 1 << 29], Resize::Repeat).is_err());
    }

    #[test]
    fn scaling_takes_rectangles_bands_and_curves_along() {
        use crate::document::testing::{layer, score};
        let mut doc = document();
        doc.layers.push(layer(11, MaskContent::Rectangle { q: [8, 16], kv: [0, 31] }));
        doc.layers.push(layer(12, MaskContent::Band { lo: Some(0), hi: Some(7) }));
        doc.layers.push(layer(13, MaskContent::Band { lo: Some(-7), hi: None }));
        doc.scores.push(score(14, ScoreContent::Curve { points: vec![(0.0, 0.0), (8.0, -2.0)] }));
        let old = doc.clone();
        let content = |doc: &Document, id| doc.layer(id).unwrap().content.clone();
        let inverse = apply(&mut doc, follow_axes(&old, Axes::same(Axis::tokens(64)), Resize::Scale).unwrap()).unwrap();
        assert_eq!(content(&doc, 11), MaskContent::Rectangle { q: [16, 32], kv: [0, 62] });
        assert_eq!(content(&doc, 12), MaskContent::Band { lo: Some(0), hi: Some(15) });
        assert_eq!(content(&doc, 13), MaskContent::Band { lo: Some(-15), hi: None });
        assert_eq!(doc.score(14).unwrap().content, ScoreContent::Curve { points: vec![(0.0, 0.0), (16.0, -2.0)] });
        apply(&mut doc, inverse).unwrap();
        assert_eq!(doc, old);
        for how in [Resize::Keep, Resize::Repeat] {
            let mut same = old.clone();
            apply(&mut same, follow_axes(&old, Axes::same(Axis::tokens(64)), how).unwrap()).unwrap();
            assert_eq!((content(&same, 11), content(&same, 12)), (content(&old, 11), content(&old, 12)));
        }
        // queries alone: a band would not stay one
        let crossed = Axes { q: Axis::tokens(64), kv: Some(Axis::tokens(32)) };
        assert_eq!(follow_axes(&old, crossed.clone(), Resize::Scale).unwrap_err().code, "resize-uneven");
        assert!(follow_axes(&old, crossed, Resize::Keep).is_ok());
    }

    #[test]
    fn bands_keep_the_diagonal_and_what_lies_on_which_side() {
        let band = |lo, hi, old, new| stretched_band(lo, hi, old, new);
        assert_eq!(band(Some(0), Some(1023), 8192, 1024), (Some(0), Some(127)));
        assert_eq!(band(Some(-1023), Some(1023), 8192, 4096), (Some(-511), Some(511)));
        assert_eq!(band(Some(512), Some(1023), 8192, 4096), (Some(256), Some(511)));
        assert_eq!(band(Some(0), Some(0), 64, 1024), (Some(0), Some(0)));
        assert_eq!(band(None, Some(-1), 64, 8), (None, Some(-1)));
        // too thin for the new lengths, but not gone
        assert_eq!(band(Some(3), Some(3), 64, 8), (Some(1), Some(1)));
        assert_eq!(
            [stretched([3, 4], 64, 8), stretched([63, 64], 64, 8), stretched([5, 5], 64, 8)],
            [[0, 1], [7, 8], [1, 1]]
        );
        // rectangles alone make the question too
        let mut doc = document::testing::empty("tokens 64");
        doc.layers.push(document::testing::layer(1, MaskContent::Rectangle { q: [0, 4], kv: [0, 4] }));
        assert!(needs_choice(&doc, &Axes::same(Axis::tokens(32))) && !needs_choice(&doc, &doc.axes));
    }

    #[test]
    fn the_edit_is_undone_whole() {
        let mut doc = document();
        let axes = Axes::same(Axis::tokens(64));
        assert!(needs_choice(&doc, &axes));
        let inverse = apply(&mut doc, set_axes(&document(), axes.clone(), Resize::Scale).unwrap()).unwrap();
        assert!(!needs_choice(&doc, &axes) && doc.axes.q.len() == 64);
        apply(&mut doc, inverse).unwrap();
        assert_eq!(doc, document());
        assert!(set_axes(&doc, Axes::same(Axis { segments: vec![] }), Resize::Keep).is_err());
    }
}
