//! Neighbourhood attention, as NATTEN defines it without stride and dilation: on each axis of a grid a window of one
//! size, which stays inside the grid, or ends at the query.
//!
//! Invariant: a mask counts as a neighbourhood only if every cell agrees, determined by exact counts of kept cells. Must
//! not know any library.

use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic};
use crate::ir::cell::{self, Cell};
use crate::ir::graph::Mod;
use crate::ir::passes::compose;
use crate::ir::text::parse;
use crate::problem::Problem;

/// Axes of a grid.
const AXES: std::ops::RangeInclusive<usize> = 1..=3;

/// One axis, from its slowest to its fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Its length.
    pub extent: usize,
    /// Keys of the window.
    pub kernel: usize,
    /// Whether the window ends at the query.
    pub causal: bool,
}

/// The windows on all axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Neighbourhood {
    /// One to three.
    pub axes: Vec<Axis>,
}

/// The mask as a neighbourhood of a grid, or of the plain sequence. Errors: those of [`BlockMask::build`].
pub(super) fn find(
    problem: &Problem,
    grid: Option<&[usize]>,
    control: &Control,
) -> Result<Option<Neighbourhood>, Diagnostic> {
    if problem.q_len != problem.kv_len || problem.mask_per_head() || problem.mask_per_batch() {
        return Ok(None);
    }
    let line = [problem.q_len];
    for grid in grid.into_iter().chain([&line[..]]) {
        let fits = AXES.contains(&grid.len()) && grid.iter().product::<usize>() == problem.q_len;
        if let Some(found) = fits.then(|| guess(problem.mask.as_deref(), grid)).flatten()
            && is_exact(problem, &found, control)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The only neighbourhood that the mask can be, by its first and last row.
fn guess(mask: Option<&Mod>, grid: &[usize]) -> Option<Neighbourhood> {
    let Some(mask) = mask else {
        let whole = |extent: &usize| Axis { extent: *extent, kernel: *extent, causal: false };
        return Some(Neighbourhood { axes: grid.iter().map(whole).collect() });
    };
    let last = grid.iter().product::<usize>() - 1;
    let keeps = |q: usize, kv: usize| {
        let cell = Cell { q_idx: q as i64, kv_idx: kv as i64, ..Cell::default() };
        cell::eval(mask, &cell).as_bool()
    };
    let axis = |at: usize| {
        let (extent, stride) = (grid[at], grid[at + 1..].iter().product::<usize>());
        // the last query keeps the last keys of every axis
        let kept = |back: usize| keeps(last, last - back * stride);
        let kernel = first_false(extent, kept);
        let causal = kernel > 1 && !keeps(0, stride);
        (kernel > 0).then_some(Axis { extent, kernel, causal })
    };
    Some(Neighbourhood { axes: (0..grid.len()).map(axis).collect::<Option<_>>()? })
}

/// The first index below `n` where a falling condition is false; `n` if there is none.
fn first_false(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// |M| = |N| = |M and N|: the same cells.
fn is_exact(problem: &Problem, found: &Neighbourhood, control: &Control) -> Result<bool, Diagnostic> {
    let Some(mask) = &problem.mask else { return Ok(true) };
    let count = |blocks: BlockMask| -> Result<u128, Diagnostic> {
        let stats = blocks.stats_with(control).ok_or_else(|| Diagnostic::error("cancelled", "cancelled"))?;
        Ok(stats.kept_cells)
    };
    let wanted = found.cells();
    let known = problem.plans().known(problem.block_size).is_some();
    let size = if known { problem.block_size } else { BlockSize::DEFAULT };
    if count(problem.block_mask(size, control)?)? != wanted {
        return Ok(false);
    }
    let both = compose::and_masks(&[mask, &found.mask()]);
    let shape = MaskShape::broadcast(problem.lengths());
    Ok(count(BlockMask::build(Some(&both), shape, BlockSize::DEFAULT, control)?)? == wanted)
}

impl Neighbourhood {
    /// Kept cells.
    fn cells(&self) -> u128 {
        let of = |axis: &Axis| {
            let (extent, kernel) = (axis.extent as u128, axis.kernel as u128);
            // the first rows of a causal window keep 1, 2, ... keys
            extent * kernel - if axis.causal { kernel * (kernel - 1) / 2 } else { 0 }
        };
        self.axes.iter().map(of).product()
    }

    /// As a mask.
    fn mask(&self) -> Mod {
        let mut text = "true".to_string();
        let mut stride = 1;
        for axis in self.axes.iter().rev() {
            text = format!("(and {text} {})", axis.condition(stride));
            stride *= axis.extent;
        }
        parse(&text, &[]).expect("a text of known operations")
    }
}

impl Axis {
    /// `start <= key < start + kernel`, with `start = clamp(query - kernel / 2, 0, extent - kernel)`; causal
    /// `query - kernel < key <= query`.
    fn condition(&self, stride: usize) -> String {
        let Axis { extent, kernel, causal } = *self;
        let place = |index: &str| format!("(mod (floor_div {index} {stride}) {extent})");
        let (q, kv) = (place("q_idx"), place("kv_idx"));
        if causal {
            return format!("(and (le {kv} {q}) (lt (sub {q} {kernel}) {kv}))");
        }
        let start = format!("(max 0 (min {} (sub {q} {})))", extent - kernel, kernel / 2);
        format!("(and (le {start} {kv}) (lt {kv} (add {start} {kernel})))")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::{causal, spec, with_mods};

    fn found(mask: Option<&str>, q_len: usize, grid: &[usize]) -> Option<Vec<(usize, bool)>> {
        let mask = mask.map(|text| parse(text, &[]).expect("a mask"));
        let problem = with_mods(spec(1, 2, 2, q_len, q_len, 16), mask, None);
        let found = find(&problem, Some(grid), &Control::new()).expect("not cancelled")?;
        Some(found.axes.iter().map(|axis| (axis.kernel, axis.causal)).collect())
    }

    #[test]
    fn every_neighbourhood_is_found_from_its_mask() {
        let axis = |extent, kernel, causal| Axis { extent, kernel, causal };
        for axes in [
            vec![axis(50, 7, false)],
            vec![axis(50, 8, false)],
            vec![axis(50, 7, true)],
            vec![axis(9, 5, false), axis(14, 3, false)],
            vec![axis(9, 9, false), axis(14, 4, true)],
            vec![axis(3, 2, true), axis(5, 1, false), axis(7, 6, false)],
            vec![axis(4, 3, false), axis(5, 5, false), axis(6, 6, true)],
        ] {
            let of = Neighbourhood { axes };
            let grid: Vec<usize> = of.axes.iter().map(|a| a.extent).collect();
            let problem =
                with_mods(spec(1, 1, 1, grid.iter().product(), grid.iter().product(), 16), Some(of.mask()), None);
            let again = find(&problem, Some(&grid), &Control::new()).expect("not cancelled");
            assert_eq!(again.as_ref(), Some(&of));
            let dense = crate::ir::tiles::dense_mask(&of.mask(), 1, 1, problem.lengths());
            assert_eq!(of.cells(), dense.iter().map(|kept| u128::from(*kept)).sum::<u128>());
        }
    }

    #[test]
    fn causal_masks_and_no_mask_are_neighbourhoods_and_cut_windows_are_not() {
        assert_eq!(found(Some("(ge q_idx kv_idx)"), 60, &[60]), Some(vec![(60, true)]));
        // causal over the sequence, not over the image
        assert_eq!(found(Some("(ge q_idx kv_idx)"), 60, &[6, 10]), Some(vec![(60, true)]));
        assert_eq!(found(None, 60, &[6, 10]), Some(vec![(6, false), (10, false)]));
        let cut = "(lt (abs (sub q_idx kv_idx)) 5)";
        let one_off = "(or (ge q_idx kv_idx) (and (eq q_idx 20) (eq kv_idx 30)))";
        // as many cells as causal
        let swapped =
            "(or (and (ge q_idx kv_idx) (or (ne q_idx 20) (ne kv_idx 10))) (and (eq q_idx 20) (eq kv_idx 30)))";
        for other in [cut, one_off, swapped, "(gt q_idx kv_idx)", "(eq (mod (sub q_idx kv_idx) 3) 0)", "(lt q_idx h)"] {
            assert_eq!(found(Some(other), 60, &[60]), None, "{other}");
        }
        let wide = with_mods(spec(1, 1, 1, 40, 60, 16), Some(causal(0)), None);
        assert_eq!(find(&wide, None, &Control::new()), Ok(None));
    }
}
