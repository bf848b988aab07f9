//! Windows with sinks: the cheapest band and first keys that keep the mass.
//!
//! Invariant: the mean mass of every pair is exact, from the heads' sums by distance. Cost is counted in cells of the band, then the
//! best pairs are judged block by block. Must not know other forms.

use super::form::Form;
use super::{Candidate, Material, Target, Wanted};
use crate::base::{Control, Diagnostic};
use crate::quality::profile::SINKS;

/// A window and its number of sinks in [`SINKS`].
#[derive(Clone, Copy, Debug)]
struct Shape {
    back: usize,
    ahead: usize,
    sinks: usize,
}

/// One proposal: the best window.
pub(super) fn propose(material: &Material, wanted: &Wanted, control: &Control) -> Result<Vec<Candidate>, Diagnostic> {
    Ok(vec![best(material, wanted, control)?])
}

/// The cheapest window of those that reach the target, or the best below the budget.
pub(super) fn best(material: &Material, wanted: &Wanted, control: &Control) -> Result<Candidate, Diagnostic> {
    let mut judged = Vec::new();
    for sinks in 0..SINKS.len() {
        if SINKS[sinks] > material.lengths().kv_len || (wanted.protect.sinks && sinks == 0) {
            continue;
        }
        let shape = match wanted.target {
            Target::Mass(mass) => narrowest(material, sinks, mass),
            Target::Blocks(share) => widest(material, sinks, share),
        };
        let form = form(material, shape);
        judged.push(material.judge("window + sinks", why(material, shape), form, control)?);
    }
    let better = |a: &Candidate, b: &Candidate| match wanted.target {
        Target::Mass(mass) => {
            let missed = |c: &Candidate| c.mass < mass - 1e-6;
            // equals: the fewer sinks, which come first
            missed(a).cmp(&missed(b)).then(a.density.total_cmp(&b.density))
        }
        Target::Blocks(share) => {
            let over = |c: &Candidate| c.density > share + 1e-9;
            over(a).cmp(&over(b)).then(b.mass.total_cmp(&a.mass))
        }
    };
    judged.into_iter().min_by(better).ok_or_else(|| Diagnostic::error("suggest-heads", "there are no keys"))
}

fn form(material: &Material, s: Shape) -> Form {
    Form::Window { back: s.back, ahead: s.ahead, sinks: SINKS[s.sinks], causal: material.causal }
}

fn why(material: &Material, s: Shape) -> String {
    let near = mean(material, Shape { sinks: 0, ..s });
    let first = mean(material, s) - near;
    let reach = if material.causal {
        format!("the last {} keys", s.back + 1)
    } else {
        format!("{} keys before and {} after", s.back, s.ahead)
    };
    format!(
        "{reach} hold {:.1}% of the mass, the first {} keys {:.1}% more",
        100.0 * near,
        SINKS[s.sinks],
        100.0 * first
    )
}

/// Mean mass over heads.
fn mean(material: &Material, s: Shape) -> f64 {
    let of = |p: &crate::quality::profile::Profile| p.window_and_sinks(s.back, s.ahead, s.sinks);
    material.profiles.iter().map(of).sum::<f64>() / material.profiles.len() as f64
}

/// The narrowest window that keeps `mass` together with the sinks: grown token by token where the next one holds more.
fn narrowest(material: &Material, sinks: usize, mass: f64) -> Shape {
    grow(material, sinks, |_, kept| kept >= mass - 1e-9)
}

/// The widest window whose cells are within a share of all cells.
fn widest(material: &Material, sinks: usize, share: f64) -> Shape {
    let lengths = material.lengths();
    // blocks hang over the band by one on either side
    let (n, spill) = (lengths.kv_len as f64, material.block().kv as f64);
    let all = if material.causal { 1.0 } else { 2.0 };
    let most = (share * n - SINKS[sinks] as f64 - spill * all).max(0.0);
    grow(material, sinks, |s, _| (s.back + s.ahead) as f64 >= most)
}

/// Widens a window to the side that gains more until `enough(shape, mass)`.
fn grow(material: &Material, sinks: usize, enough: impl Fn(Shape, f64) -> bool) -> Shape {
    let lengths = material.lengths();
    let (most_back, most_ahead) = (lengths.q_len - 1, if material.causal { 0 } else { lengths.kv_len - 1 });
    let heads = material.profiles.len() as f64;
    let at = |d: i64| -> f64 { material.profiles.iter().map(|p| p.beyond(sinks, d)).sum::<f64>() / heads };
    let mut shape = Shape { back: 0, ahead: 0, sinks };
    let mut kept = mean(material, shape);
    while !enough(shape, kept) && (shape.back < most_back || shape.ahead < most_ahead) {
        let (behind, before) = (shape.back < most_back, shape.ahead < most_ahead);
        let gain_back = if behind { at(shape.back as i64 + 1) } else { f64::NEG_INFINITY };
        let gain_ahead = if before { at(-(shape.ahead as i64) - 1) } else { f64::NEG_INFINITY };
        if gain_back >= gain_ahead {
            shape.back += 1;
            kept += gain_back;
        } else {
            shape.ahead += 1;
            kept += gain_ahead;
        }
    }
    shape
}
