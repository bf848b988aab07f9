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
