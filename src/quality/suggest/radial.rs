//! Stripes that narrow with the distance of frames ("radial attention", arXiv:2506.19852), from the mass by grid offset.
//!
//! Invariant: among widths and halvings that keep the mass by offset, the one with the fewest tokens is chosen. Must
//! not know other forms.

use super::form::{Form, HALVINGS};
use super::{Candidate, Kind, Material, Reason, Target, Wanted};
use crate::base::{Control, Diagnostic};

/// One proposal if the tokens are a grid of several frames; otherwise none.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    let Some(grid) = wanted.grid.filter(|g| g.extents[0] > 1) else { return Ok(Vec::new()) };
    if material.causal || material.profiles.iter().any(|p| p.offsets.is_none()) {
        return Ok(Vec::new());
    }
    let [frames, h, w] = grid.extents;
    let (frame, sums) = (h * w, within(material, grid.extents));
    let outside = 1.0 - (0..frames).map(|dt| sums[dt * h * w + frame - 1]).sum::<f64>();
    let width_at = |width: usize, halving: usize, dt: usize| match dt / halving {
        ring if ring < HALVINGS => Some((width >> ring).min(frame - 1)),
        _ => None,
    };
    let mass = |width: usize, halving: usize| -> f64 {
        outside + (0..frames).filter_map(|dt| width_at(width, halving, dt).map(|x| sums[dt * frame + x])).sum::<f64>()
    };
    // a query sees frames on both sides
    let cost = |width: usize, halving: usize| -> f64 {
        let tokens = |dt: usize| width_at(width, halving, dt).map_or(0, |x| (2 * x + 1).min(frame)) as f64;
        (0..frames).map(|dt| tokens(dt) * if dt == 0 { 1.0 } else { 2.0 * (frames - dt) as f64 / frames as f64 }).sum()
    };
    let all = (frames * frame) as f64;
    let mut best: Option<(usize, usize, f64, f64)> = None;
    for halving in 1..=frames {
        let (mut low, mut high) = (0, frame - 1);
        let enough = |width: usize| match wanted.target {
            Target::Mass(target) => mass(width, halving) >= target - 1e-9,
            Target::Blocks(share) => cost(width + 1, halving) > share * all,
        };
        while low < high {
            let middle = usize::midpoint(low, high);
            if enough(middle) { high = middle } else { low = middle + 1 }
        }
        let (kept, tokens) = (mass(low, halving), cost(low, halving));
        let better = match (wanted.target, best) {
            (Target::Mass(target), _) if kept < target - 1e-9 => false,
            (_, None) => true,
            (Target::Mass(_), Some((.., least))) => tokens < least,
            (Target::Blocks(_), Some((_, _, most, _))) => kept > most,
        };
        if better {
            best = Some((low, halving, kept, tokens));
        }
    }
    let Some((width, halving, kept, _)) = best else { return Ok(Vec::new()) };
    let why = Reason::Radial { width, halving, mass: kept };
    let form = Form::Radial { grid, width, halving, first_frame: wanted.protect.first_frame };
    Ok(vec![material.judge(Kind::Radial, why, form, control)?])
}

/// [T][H * W]: mass at so many frames apart, in either direction, and at most so many tokens aside within the frame.
fn within(material: &Material, [t, h, w]: [usize; 3]) -> Vec<f64> {
    let frame = h * w;
    let mut sums = vec![0.0; t * frame];
    for profile in &material.profiles {
        let Some(offsets) = &profile.offsets else { continue };
        let [_, sh, sw] = offsets.shape();
        for (at, m) in offsets.mass.iter().enumerate() {
            let dt = (at / (sh * sw)).abs_diff(t - 1);
            let aside = ((at / sw % sh) as i64 - (h as i64 - 1)) * w as i64 + (at % sw) as i64 - (w as i64 - 1);
            let aside = aside.unsigned_abs() as usize;
            // larger offsets cannot occur within a frame and have no mass
            sums[dt * frame + aside.min(frame - 1)] += m / material.profiles.len() as f64;
        }
    }
    for row in sums.chunks_exact_mut(frame) {
        for x in 1..frame {
            row[x] += row[x - 1];
        }
    }
    sums
}
