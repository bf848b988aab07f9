//! What happens to painted cells when the axes change.
//!
//! Invariant: `Keep` changes no cell inside both canvases, `Scale` keeps proportions to a cell, `Repeat` tiles the old
//! picture; nothing else of a layer changes. Must not know the window.

use super::edit::Edit;
use super::model::*;
use crate::base::Diagnostic;

/// What to do with painted cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Cells stay where they are.
    Keep,
    /// The picture is stretched to the new lengths.
    Scale,
    /// The picture is repeated along both axes.
    Repeat,
}

/// Most rectangles that repeating may make.
const MAX_RECTS: usize = 1 << 20;

/// Whether the document has painted cells that new axes would leave behind.
pub fn needs_choice(document: &Document, axes: &Axes) -> bool {
    let lengths = [axes.q.len(), axes.kv().len()];
    document.layers.iter().any(|l| matches!(&l.content, MaskContent::Painted(p) if p.lengths != lengths))
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
