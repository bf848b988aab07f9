//! Boxes of frames, rows and columns around each query, from the mass by grid offset.
//!
//! Invariant: among boxes that keep the mass by offset, the one with the fewest tokens is chosen; the box is then
//! measured as drawn, inside the grid. Must not know other forms.

use super::form::Form;
use super::{Candidate, Kind, Material, Reason, Target, Wanted};
use crate::base::{Control, Diagnostic};

/// One proposal if the tokens are a grid; otherwise none.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let Some(grid) = wanted.grid else { return Ok(Vec::new()) };
    if material.causal || material.profiles.iter().any(|p| p.offsets.is_none()) {
        return Ok(Vec::new());
    }
    let sums = cumulative(material, grid.extents);
    let outside = 1.0 - sums.last().copied().unwrap_or(0.0);
    // whether tokens and mass are better than the best's
    type Better = fn(usize, f64, usize, f64) -> bool;
    let [t, h, w] = grid.extents;
    let mut best: Option<([usize; 3], usize, f64)> = None;
    for (at, inside) in sums.iter().enumerate() {
        let half = [at / (h * w), at / w % h, at % w];
        let kernel = half.map(|n| 2 * n + 1);
        let tokens: usize = kernel.iter().zip([t, h, w]).map(|(k, n)| (*k).min(n)).product();
        let mass = inside + outside;
        let (fits, better): (bool, Better) = match wanted.target {
            Target::Mass(target) => (mass >= target - 1e-9, |n, m, bn, bm| n < bn || (n == bn && m > bm)),
            Target::Blocks(share) => {
                (tokens as f64 <= share * grid.count() as f64, |n, m, bn, bm| m > bm || (m == bm && n < bn))
            }
        };
        if fits && best.is_none_or(|(_, n, m)| better(tokens, mass, n, m)) {
            best = Some((kernel, tokens, mass));
        }
    }
    let Some((kernel, ..)) = best else { return Ok(Vec::new()) };
    let first_frame = wanted.protect.first_frame && t > 1;
    let made = |kernel: [usize; 3], why: Reason| {
        material.judge(Kind::Box, why, Form::Box { grid, kernel, first_frame }, control)
    };
    let (kernel, mass) = match wanted.target {
        // boxes stay inside the grid, so that those near its edges keep more than their offsets say
        Target::Mass(target) => {
            let least = |kernel: [usize; 3]| Ok::<_, Diagnostic>(made(kernel, Reason::Part)?.mass >= target - 1e-6);
            let kernel = shrunk(kernel, grid.extents, least)?;
            (kernel, made(kernel, Reason::Part)?.mass)
        }
        Target::Blocks(_) => (kernel, best.map_or(0.0, |(.., mass)| mass)),
    };
    let why = Reason::Box { extents: [kernel[0].min(t), kernel[1].min(h), kernel[2].min(w)], mass };
    Ok(vec![made(kernel, why)?])
}

/// The same box with each side as short as is enough, one side after the other.
fn shrunk(
    mut kernel: [usize; 3],
    extents: [usize; 3],
    enough: impl Fn([usize; 3]) -> Result<bool, Diagnostic>,
) -> Result<[usize; 3], Diagnostic> {
    if !enough(kernel)? {
        return Ok(kernel);
    }
    for (side, extent) in extents.iter().enumerate() {
        let (mut low, mut high) = (0, kernel[side].min(extent | 1) / 2);
        while low < high {
            let middle = usize::midpoint(low, high);
            let mut other = kernel;
            other[side] = 2 * middle + 1;
            if enough(other)? { high = middle } else { low = middle + 1 }
        }
        kernel[side] = 2 * high + 1;
    }
    Ok(kernel)
}

/// [T][H][W]: mass at offsets up to (dt, dh, dw) in any direction, mean over heads.
fn cumulative(material: &Material, [t, h, w]: [usize; 3]) -> Vec<f64> {
    let mut sums = vec![0.0; t * h * w];
    for profile in &material.profiles {
        let Some(offsets) = &profile.offsets else { continue };
        let [_, sh, sw] = offsets.shape();
        for (at, m) in offsets.mass.iter().enumerate() {
            let d = [at / (sh * sw), at / sw % sh, at % sw];
            let [dt, dh, dw] = [d[0].abs_diff(t - 1), d[1].abs_diff(h - 1), d[2].abs_diff(w - 1)];
            sums[(dt * h + dh) * w + dw] += m / material.profiles.len() as f64;
        }
    }
    let strides = [(h * w, t), (w, h), (1, w)];
    for (stride, extent) in strides {
        for at in 0..sums.len() {
            if at / stride % extent > 0 {
                sums[at] += sums[at - stride];
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::head::{Head, Own};
    use crate::quality::profile::Grid;
    use crate::quality::suggest::Protect;
    use crate::quality::suggest::tests::material;
    use crate::quality::testing::{dense, head};

    /// Mean mass of the grid's queries by frames, rows and columns apart, from plain attention, and that outside the grid.
    fn apart(heads: &[Head], grid: Grid) -> (Vec<([usize; 3], f64)>, f64) {
        let n = heads[0].lengths().kv_len;
        let (mut cells, mut outside) = (Vec::new(), 0.0);
        for p in heads.iter().map(|head| dense(head).p) {
            for (q, kv) in grid.tokens().flat_map(|q| (0..n).map(move |kv| (q, kv))) {
                let mass = p[q * n + kv] / (grid.count() * heads.len()) as f64;
                if grid.tokens().contains(&kv) {
                    let (a, b) = (grid.place(q), grid.place(kv));
                    cells.push(([0, 1, 2].map(|n| a[n].abs_diff(b[n])), mass));
                } else {
                    outside += mass;
                }
            }
        }
        (cells, outside)
    }

    fn tokens(kernel: [usize; 3], extents: [usize; 3]) -> usize {
        (0..3).map(|n| kernel[n].min(extents[n])).product()
    }

    /// All boxes with their mass by offset, in the order of their sides.
    fn every(heads: &[Head], grid: Grid) -> Vec<([usize; 3], f64)> {
        let ([t, h, w], (cells, outside)) = (grid.extents, apart(heads, grid));
        let sides = (0..t).flat_map(|a| (0..h).flat_map(move |b| (0..w).map(move |c| [a, b, c])));
        let inside = |half: [usize; 3]| -> f64 {
            cells.iter().filter(|(d, _)| (0..3).all(|n| d[n] <= half[n])).map(|(_, mass)| mass).sum()
        };
        sides.map(|half| (half.map(|n| 2 * n + 1), outside + inside(half))).collect()
    }

    fn wanted(grid: Grid, target: Target) -> Wanted {
        Wanted { target, protect: Protect::NONE, grid: Some(grid), most_masks: 2 }
    }

    #[test]
    fn no_other_box_has_fewer_tokens_or_more_mass() {
        for (extents, sharp) in [([3, 3, 3], 1.0), ([2, 4, 5], 3.0)] {
            let grid = Grid { extents, start: 5 };
            let n = grid.tokens().end + 3;
            let heads: Vec<Head> = (0..2).map(|seed| head(seed + 1, n, n, 6, sharp)).collect();
            let (every, made) = (every(&heads, grid), material(heads, 8, Some(grid)));
            let judged = |kernel: [usize; 3]| {
                let form = Form::Box { grid, kernel, first_frame: false };
                made.judge(Kind::Box, Reason::Part, form, &Control::new()).expect("judged").mass
            };
            for twentieths in 2..20 {
                let target = f64::from(twentieths) / 20.0;
                let found = propose(&made, &wanted(grid, Target::Mass(target)), &Control::new()).expect("proposed");
                // of those that reach it by offset the fewest tokens, then the most mass
                let fitting = every.iter().filter(|(_, mass)| *mass >= target);
                let best =
                    fitting.min_by(|a, b| tokens(a.0, extents).cmp(&tokens(b.0, extents)).then(b.1.total_cmp(&a.1)));
                let Some((mut kernel, _)) = best.copied() else {
                    assert!(found.is_empty(), "{found:?}");
                    continue;
                };
                // then one side after the other as short as is enough, as the box is measured inside the grid
                for side in 0..3 {
                    let mut shorter = (1..=kernel[side].min(extents[side] | 1)).step_by(2).map(|length| {
                        let mut other = kernel;
                        other[side] = length;
                        other
                    });
                    kernel = shorter.find(|other| judged(*other) >= target - 1e-6).expect("the box itself");
                }
                assert_eq!(found[0].form, Form::Box { grid, kernel, first_frame: false }, "{target}");
                let why = Reason::Box { extents: [0, 1, 2].map(|n| kernel[n].min(extents[n])), mass: judged(kernel) };
                assert_eq!(found[0].why, why);
                // a budget of tokens
                let found = propose(&made, &wanted(grid, Target::Blocks(target)), &Control::new()).expect("proposed");
                let most =
                    |(kernel, _): &&([usize; 3], f64)| tokens(*kernel, extents) as f64 <= target * grid.count() as f64;
                let within = every.iter().filter(most).map(|(_, mass)| *mass).fold(0.0, f64::max);
                let Some(found) = found.first() else {
                    assert_eq!(within, 0.0, "{target}");
                    continue;
                };
                let Form::Box { kernel, .. } = found.form else { panic!("{found:?}") };
                let (_, mass) = every.iter().find(|(other, _)| *other == kernel).expect("one of all");
                assert!(most(&&(kernel, *mass)) && *mass >= within - 1e-6, "{target}: {kernel:?} {mass} {within}");
                let Reason::Box { mass: told, .. } = found.why else { panic!("{found:?}") };
                assert!((told - mass).abs() < 1e-6, "{told} {mass}");
            }
        }
    }

    #[test]
    fn a_single_image_has_no_first_frame_to_protect() {
        for (extents, has) in [([1, 4, 4], false), ([2, 4, 4], true)] {
            let grid = Grid { extents, start: 0 };
            let n = grid.count();
            let made = material(vec![head(1, n, n, 6, 1.0)], 8, Some(grid));
            for target in [Target::Mass(0.5), Target::Blocks(0.5)] {
                let protect = Protect { first_frame: true, ..Protect::NONE };
                let wanted = Wanted { protect, ..wanted(grid, target) };
                let found = propose(&made, &wanted, &Control::new()).expect("proposed");
                let Form::Box { first_frame, .. } = found[0].form else { panic!("{found:?}") };
                assert_eq!(first_frame, has, "{extents:?} {target:?}");
            }
        }
    }

    #[test]
    fn of_boxes_with_all_mass_the_smallest_is_proposed() {
        // nothing at all outside of 3 x 1 x 3 tokens
        let grid = Grid { extents: [3, 4, 5], start: 0 };
        let keeps = |q: usize, kv: usize| {
            let (a, b) = (grid.place(q), grid.place(kv));
            (0..3).all(|n| a[n].abs_diff(b[n]) <= [1, 0, 1][n])
        };
        let keep: Vec<u8> = (0..60 * 60).map(|at| u8::from(keeps(at / 60, at % 60))).collect();
        let made = material(vec![Head { own: Own::Keep(keep.into()), ..head(2, 60, 60, 4, 1.0) }], 4, Some(grid));
        for target in [Target::Blocks(1.0), Target::Blocks(0.2), Target::Mass(1.0 - 1e-7)] {
            let found = propose(&made, &wanted(grid, target), &Control::new()).expect("proposed").remove(0);
            assert_eq!(found.form, Form::Box { grid, kernel: [3, 1, 3], first_frame: false }, "{target:?}");
        }
    }

    #[test]
    fn each_side_becomes_as_short_as_is_enough_one_after_the_other() {
        let extents = [4, 5, 7];
        let odd = |most: usize| (1..=most).step_by(2);
        let all: Vec<[usize; 3]> =
            odd(7).flat_map(|a| odd(9).flat_map(move |b| odd(13).map(move |c| [a, b, c]))).collect();
        for kernel in &all {
            // tokens of the box inside the grid, which several boxes share
            for enough in [1, 2, 6, 15, 24, 40, 60, 100, 140] {
                let fits = |kernel: [usize; 3]| tokens(kernel, extents) >= enough;
                let found = shrunk(*kernel, extents, |kernel| Ok(fits(kernel))).expect("no error");
                let mut wanted = *kernel;
                for side in 0..3 {
                    let shorter = odd(wanted[side].min(extents[side] | 1)).find(|length| {
                        let mut other = wanted;
                        other[side] = *length;
                        fits(other)
                    });
                    wanted[side] = shorter.unwrap_or(wanted[side]);
                }
                assert_eq!(found, if fits(*kernel) { wanted } else { *kernel }, "{kernel:?} {enough}");
            }
        }
    }
}
