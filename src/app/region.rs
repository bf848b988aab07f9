//! An area of the mask: a rectangle, or the cells that a drawn line encloses.
//!
//! Invariant: its parts lie inside the mask and do not overlap; a cell of the lattice is in it exactly if the line goes around the
//! cell's middle. Must not know how it is drawn, or what is counted in it.

use crate::base::{BlockSize, Lengths};
use crate::document::model::Axis;
use std::sync::Arc;

/// Rows and columns of tokens, half open.
pub(crate) type Place = [[usize; 2]; 2];

/// An area.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The smallest rectangle around it.
    pub place: Place,
    /// What it is made of; one part alone: it is that rectangle.
    pub parts: Arc<[Place]>,
    /// The line around it, (q, kv) in tokens.
    pub outline: Arc<[[f64; 2]]>,
}

impl Region {
    /// A rectangle.
    pub fn rectangle(place: Place) -> Region {
        let [q, kv] = place.map(|side| side.map(|token| token as f64));
        let outline = [[q[0], kv[0]], [q[0], kv[1]], [q[1], kv[1]], [q[1], kv[0]]];
        Region { place, parts: [place].into(), outline: outline.into() }
    }

    /// The cells that a closed line goes around. `snapped`: borders that the line follows, where cells end too. None: it goes
    /// around no cell's middle.
    pub fn around(
        outline: Vec<[f64; 2]>,
        cell: BlockSize,
        snapped: &[Vec<usize>; 2],
        lengths: Lengths,
    ) -> Option<Region> {
        let rows = lines(outline.iter().map(|at| at[0]), cell.q, &snapped[0], lengths.q_len);
        let columns = lines(outline.iter().map(|at| at[1]), cell.kv, &snapped[1], lengths.kv_len);
        let mut parts: Vec<Place> = Vec::new();
        // the parts of the row before, which go on while the next row has the same
        let mut before = 0;
        for row in rows.windows(2) {
            let q = [row[0], row[1]];
            let runs = runs(&outline, (q[0] + q[1]) as f64 / 2.0, &columns);
            let above = &mut parts[before..];
            let goes_on = above.len() == runs.len()
                && above.iter().zip(&runs).all(|(part, run)| part[0][1] == q[0] && part[1] == *run);
            if goes_on {
                above.iter_mut().for_each(|part| part[0][1] = q[1]);
            } else {
                before = parts.len();
                parts.extend(runs.into_iter().map(|kv| [q, kv]));
            }
        }
        let place = bounds(&parts)?;
        Some(Region { place, parts: parts.into(), outline: outline.into() })
    }

    /// The same within a mask that has become shorter; None: nothing of it is left.
    pub fn within(&self, lengths: Lengths) -> Option<Region> {
        let ends = [lengths.q_len, lengths.kv_len];
        if [0, 1].iter().all(|side| self.place[*side][1] <= ends[*side]) {
            return Some(self.clone());
        }
        let cut = |part: &Place| [0, 1].map(|side| part[side].map(|token| token.min(ends[side])));
        let parts: Vec<Place> = self.parts.iter().map(cut).filter(|part| part.iter().all(|s| s[0] < s[1])).collect();
        let place = bounds(&parts)?;
        let outline = self.outline.iter().map(|at| [at[0].min(ends[0] as f64), at[1].min(ends[1] as f64)]);
        Some(Region { place, outline: outline.collect(), parts: parts.into() })
    }

    /// Cells that it holds.
    pub fn cells(&self) -> u128 {
        self.parts.iter().map(|part| part.iter().map(|[from, to]| (to - from) as u128).product::<u128>()).sum()
    }

    /// Whether it is a rectangle.
    pub fn is_rectangle(&self) -> bool {
        self.parts.len() == 1
    }

    /// The largest cells, at most this large, of which it is made; those at the end of the mask may be cut.
    pub fn cell(&self, most: BlockSize, lengths: Lengths) -> BlockSize {
        let of = |side: usize, most: usize, len: usize| {
            let ends = self.parts.iter().flat_map(|part| part[side]).filter(|token| *token != len);
            ends.fold(most, divisor)
        };
        BlockSize { q: of(0, most.q, lengths.q_len), kv: of(1, most.kv, lengths.kv_len) }
    }

    /// Its parts in cells of which it is made, [q0, q1, kv0, kv1].
    pub fn in_cells(&self, cell: BlockSize) -> Vec<[u32; 4]> {
        let part = |[q, kv]: &Place| {
            [q[0] / cell.q, q[1].div_ceil(cell.q), kv[0] / cell.kv, kv[1].div_ceil(cell.kv)].map(|n| n as u32)
        };
        self.parts.iter().map(part).collect()
    }
}

/// The smallest rectangle around some parts.
fn bounds(parts: &[Place]) -> Option<Place> {
    let end = |side: usize, at: usize| parts.iter().map(move |part| part[side][at]);
    let side = |side: usize| Some([end(side, 0).min()?, end(side, 1).max()?]);
    Some([side(0)?, side(1)?])
}

fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a.max(1) } else { divisor(b, a % b) }
}

/// Tokens at which cells begin or end on one side, as far as a line reaches.
fn lines(reached: impl Iterator<Item = f64>, step: usize, snapped: &[usize], len: usize) -> Vec<usize> {
    let (lo, hi) = reached.fold((f64::INFINITY, 0.0_f64), |(lo, hi), at| (lo.min(at), hi.max(at)));
    let (from, to) = ((lo.max(0.0) as usize).min(len) / step, (hi.ceil() as usize).min(len).div_ceil(step));
    let mut out: Vec<usize> = (from..=to).map(|n| (n * step).min(len)).collect();
    out.extend(snapped.iter().copied().filter(|at| *at < to.saturating_mul(step).min(len) && *at > from * step));
    out.sort_unstable();
    out.dedup();
    out
}

/// Columns whose middle a line goes around at the height `q`, joined where they are neighbours.
fn runs(outline: &[[f64; 2]], q: f64, columns: &[usize]) -> Vec<[usize; 2]> {
    // where the line crosses, and whether downwards
    let mut crossings: Vec<(f64, i32)> = Vec::new();
    for (n, a) in outline.iter().enumerate() {
        let b = outline[(n + 1) % outline.len()];
        if (a[0] <= q) != (b[0] <= q) {
            let at = a[1] + (b[1] - a[1]) * (q - a[0]) / (b[0] - a[0]);
            crossings.push((at, if b[0] > a[0] { 1 } else { -1 }));
        }
    }
    crossings.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut next, mut around) = (0, 0);
    let mut out: Vec<[usize; 2]> = Vec::new();
    for column in columns.windows(2) {
        let middle = (column[0] + column[1]) as f64 / 2.0;
        while next < crossings.len() && crossings[next].0 <= middle {
            around += crossings[next].1;
            next += 1;
        }
        match out.last_mut() {
            _ if around == 0 => {}
            Some(last) if last[1] == column[0] => last[1] = column[1],
            _ => out.push([column[0], column[1]]),
        }
    }
    out
}

/// The border of a segment or of a frame nearest to a place on an axis, within reach. Frames that lie closer than can be told
/// apart have none.
pub(crate) fn border(axis: &Axis, at: f64, reach: f64) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    let mut offer = |token: usize| {
        let distance = (token as f64 - at).abs();
        if distance <= reach && best.is_none_or(|(known, _)| distance < known) {
            best = Some((distance, token));
        }
    };
    let mut start = 0usize;
    for segment in &axis.segments {
        let end = start.saturating_add(segment.len());
        offer(start);
        offer(end);
        if at > start as f64 && at < end as f64 && segment.grid.len() == 3 {
            let frame: usize = segment.grid[1..].iter().product();
            if frame as f64 >= 3.0 * reach {
                offer(start + ((at - start as f64) / frame as f64).round() as usize * frame);
            }
        }
        start = end;
    }
    best.map(|(_, token)| token)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [Vec<usize>; 2] = [Vec::new(), Vec::new()];

    fn lengths(n: usize) -> Lengths {
        Lengths::new(n, n).expect("lengths")
    }

    fn holds(region: &Region, q: usize, kv: usize) -> usize {
        let inside = |part: &&Place| (part[0][0]..part[0][1]).contains(&q) && (part[1][0]..part[1][1]).contains(&kv);
        region.parts.iter().filter(inside).count()
    }

    #[test]
    fn a_line_holds_the_cells_whose_middle_it_goes_around_each_once() {
        // a triangle, and a lasso that crosses itself
        let triangle = vec![[3.0, 2.0], [60.0, 5.0], [30.0, 62.0]];
        let bow = vec![[0.0, 0.0], [64.0, 64.0], [64.0, 0.0], [0.0, 64.0]];
        for (outline, cell) in [(&triangle, 1), (&triangle, 8), (&bow, 1), (&bow, 4)] {
            let size = BlockSize::square(cell);
            let region = Region::around(outline.clone(), size, &NONE, lengths(64)).expect("cells");
            let mut cells = 0;
            for (q, kv) in (0..64).flat_map(|q| (0..64).map(move |kv| (q, kv))) {
                let middle = [q, kv].map(|n: usize| (n / cell * cell) as f64 + cell as f64 / 2.0);
                // by the angle that the line turns through, seen from there
                let angle = |at: &[f64; 2]| (at[0] - middle[0]).atan2(at[1] - middle[1]);
                let turn = |a: f64| (a + std::f64::consts::PI).rem_euclid(std::f64::consts::TAU) - std::f64::consts::PI;
                let all = (0..outline.len()).map(|n| angle(&outline[(n + 1) % outline.len()]) - angle(&outline[n]));
                let turned: f64 = all.map(turn).sum();
                let wanted = usize::from(turned.abs() > 3.0);
                let on_line = outline == &bow && (middle[0] == middle[1] || middle[0] + middle[1] == 64.0);
                if !on_line {
                    assert_eq!(holds(&region, q, kv), wanted, "{q}, {kv} of {outline:?} in cells of {cell}");
                }
                cells += holds(&region, q, kv) as u128;
            }
            assert_eq!(region.cells(), cells);
            assert_eq!(region.cell(size, lengths(64)), size);
        }
    }

    #[test]
    fn cells_end_where_the_line_follows_a_border_and_at_the_end_of_the_mask() {
        let square = vec![[0.0, 30.0], [0.0, 70.0], [100.0, 70.0], [100.0, 30.0]];
        let region =
            Region::around(square, BlockSize::square(16), &[vec![], vec![30, 70]], lengths(100)).expect("cells");
        assert_eq!((region.place, region.parts.len()), ([[0, 100], [30, 70]], 1));
        let cell = region.cell(BlockSize::square(16), lengths(100));
        assert_eq!(cell, BlockSize { q: 16, kv: 2 });
        assert_eq!(region.in_cells(cell), [[0, 7, 15, 35]]);
        assert!(
            Region::around(vec![[1.0, 1.0], [2.0, 1.0], [2.0, 2.0]], BlockSize::square(64), &NONE, lengths(100))
                .is_none()
        );
        assert!(
            Region::around(vec![[150.0, 0.0], [150.0, 9.0], [170.0, 9.0]], BlockSize::square(4), &NONE, lengths(100))
                .is_none()
        );
    }

    #[test]
    fn segments_and_frames_have_borders_and_frames_too_close_have_none() {
        let axis = Axis::parse("text 100 | video 4x10x20 | tail 50").expect("parses");
        for (at, reach, found) in [
            (103.0, 8.0, Some(100)),
            (310.0, 8.0, None),
            (306.0, 8.0, Some(300)),
            (895.0, 8.0, Some(900)),
            (306.0, 90.0, None),
            (150.0, 90.0, Some(100)),
            (949.0, 3.0, Some(950)),
            (50.0, 8.0, None),
        ] {
            assert_eq!(border(&axis, at, reach), found, "{at} within {reach}");
        }
    }
}
