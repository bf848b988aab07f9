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
            // a budget that is just met may be a rounding error below its own cost
            Target::Blocks(share) => cost(width + 1, halving) > share * all + 1e-9,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::head::Head;
    use crate::quality::profile::Grid;
    use crate::quality::suggest::Protect;
    use crate::quality::suggest::tests::material;
    use crate::quality::testing::{dense, head};

    /// Mean mass over the grid's queries, from plain attention: [frames apart][tokens aside], and what is outside the grid.
    fn apart(heads: &[Head], grid: Grid) -> (Vec<Vec<f64>>, f64) {
        let [frames, h, w] = grid.extents;
        let (frame, n) = (h * w, heads[0].lengths().kv_len);
        let (mut sums, mut outside) = (vec![vec![0.0; frame]; frames], 0.0);
        for p in heads.iter().map(|head| dense(head).p) {
            for (q, kv) in grid.tokens().flat_map(|q| (0..n).map(move |kv| (q, kv))) {
                let mass = p[q * n + kv] / (grid.count() * heads.len()) as f64;
                if grid.tokens().contains(&kv) {
                    let (a, b) = (q - grid.start, kv - grid.start);
                    sums[(a / frame).abs_diff(b / frame)][(a % frame).abs_diff(b % frame)] += mass;
                } else {
                    outside += mass;
                }
            }
        }
        (sums, outside)
    }

    /// All stripes with their mass and their tokens, the mean over frames of what a query sees if no stripe ends at its frame's edge.
    fn every(heads: &[Head], grid: Grid) -> Vec<(usize, usize, f64, f64)> {
        let ([frames, h, w], (sums, outside)) = (grid.extents, apart(heads, grid));
        let mut all = Vec::new();
        for (halving, width) in (1..=frames).flat_map(|halving| (0..h * w).map(move |width| (halving, width))) {
            let reach = |apart: usize| (apart / halving < HALVINGS).then(|| width >> (apart / halving));
            let mass: f64 = (0..frames).filter_map(|dt| Some(sums[dt].iter().take(reach(dt)? + 1).sum::<f64>())).sum();
            let pairs = (0..frames).flat_map(|a| (0..frames).map(move |b| a.abs_diff(b)));
            let tokens: usize = pairs.filter_map(|dt| Some((2 * reach(dt)? + 1).min(h * w))).sum();
            all.push((width, halving, outside + mass, tokens as f64 / frames as f64));
        }
        all
    }

    fn stripes(heads: &[Head], grid: Grid, target: Target) -> Option<(usize, usize, f64)> {
        let made = material(heads.to_vec(), 8, Some(grid));
        let wanted = Wanted { target, protect: Protect::NONE, grid: Some(grid), most_masks: 2 };
        let found = propose(&made, &wanted, &Control::new()).expect("proposed").pop()?;
        let Form::Radial { width, halving, .. } = found.form else { panic!("{found:?}") };
        let Reason::Radial { mass, .. } = found.why else { panic!("{found:?}") };
        Some((width, halving, mass))
    }

    /// Two heads of tokens with text before and behind the grid.
    fn heads(grid: Grid, sharp: f32) -> Vec<Head> {
        let n = grid.tokens().end + 4;
        (0..2).map(|seed| head(seed + 3, n, n, 6, sharp)).collect()
    }

    #[test]
    fn no_other_stripes_are_better() {
        // more frames than halvings are told apart, too
        for (extents, sharp) in [([4, 3, 5], 1.0), ([5, 2, 4], 3.0), ([14, 1, 3], 2.0)] {
            let grid = Grid { extents, start: 7 };
            let heads = heads(grid, sharp);
            let every = every(&heads, grid);
            let of = |width, halving| every.iter().find(|s| (s.0, s.1) == (width, halving)).expect("one of all");
            for twentieths in 2..20 {
                let mass = f64::from(twentieths) / 20.0;
                let least = |mass: f64| every.iter().filter(|s| s.2 >= mass).map(|s| s.3).fold(f64::INFINITY, f64::min);
                match stripes(&heads, grid, Target::Mass(mass)) {
                    // rounding decides only where the mass of stripes is the target
                    Some((width, halving, told)) => {
                        let (.., kept, tokens) = *of(width, halving);
                        assert!(
                            kept >= mass - 1e-6 && (told - kept).abs() < 1e-6,
                            "{mass}: {width} {halving} {told} {kept}"
                        );
                        let (from, to) = (least(mass - 1e-6), least(mass + 1e-6));
                        assert!(
                            from - 1e-9 <= tokens && tokens <= to + 1e-9,
                            "{mass}: {width} {halving} {tokens}, not {from}"
                        );
                    }
                    None => assert_eq!(least(mass + 1e-6), f64::INFINITY),
                }
                let most = mass * grid.count() as f64;
                let within = every.iter().filter(|s| s.3 <= most + 1e-9).map(|s| s.2).fold(0.0, f64::max);
                let (width, halving, told) = stripes(&heads, grid, Target::Blocks(mass)).expect("some stripes");
                let (.., kept, tokens) = *of(width, halving);
                // a query sees its own place in each frame in any case
                assert!(tokens <= most + 1e-9 || width == 0, "{mass}: {width} {halving} {tokens}");
                assert!(
                    kept >= within - 1e-6 && (told - kept).abs() < 1e-6,
                    "{mass}: {width} {halving} {kept} {within}"
                );
            }
        }
    }

    #[test]
    fn of_equal_stripes_those_of_the_fewest_frames_are_proposed() {
        // a query sees its own place in every frame: nothing halves
        let grid = Grid { extents: [3, 2, 4], start: 0 };
        let keep: Vec<u8> = (0..24 * 24).map(|at| u8::from(at / 24 % 8 == at % 24 % 8)).collect();
        let head = Head { own: quality::head::Own::Keep(keep.into()), ..head(1, 24, 24, 4, 1.0) };
        for target in [Target::Mass(0.9), Target::Mass(1.0), Target::Blocks(0.2)] {
            let (width, halving, mass) = stripes(std::slice::from_ref(&head), grid, target).expect("some stripes");
            assert_eq!((width, halving), (0, 1), "{target:?}");
            assert!((mass - 1.0).abs() < 1e-6, "{mass}");
        }
    }
}
