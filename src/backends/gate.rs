//! The allowed error of an output, row by row: by the row's own scale and by the effect of rounding in similar rows.
//!
//! Invariant: no limit is an absolute number; a limit follows from the exact row, from attention emulated in the dtype
//! on the same rows, and from the dtype's own roundoff, so that values of any size and rows of any length are judged
//! alike. A defect smaller than that rounding is not detected: in a row of n equally weighted keys a missing tile of t
//! keys changes the output by about sqrt(t / n) of its size, and bf16 allows about 0.008 in a single row and 0.005 over
//! many. Must not know which backend made the output.

use super::reference::{Emulated, Reference, Rounding, Row, Sway};
use crate::base::DType;
use crate::ir::graph::{BinaryOp, Mod, Op, UnaryOp};
use crate::ir::ops::rows::LastBit;
use crate::problem::Problem;
use crate::problem::result::LSE_ALLOWED;
use std::collections::BTreeMap;

/// Roundoff of a float32.
const SINGLE: f64 = 1.0 / (1u64 << 24) as f64;
/// How many times what all scores of a row on one side of the exact ones make, scores on both sides may.
const SWAYS: f64 = 4.0;
/// Rows on each side whose emulated errors are averaged with a row's own.
const NEIGHBOURS: usize = 64;
/// How many times as many keys, or as few, a row that is like another may keep.
const ALIKE: f64 = 1.5;

/// How a backend rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// Probabilities and the output alone; scores stay in float32.
    Fused,
    /// All that the textbook formula materialises, scores too.
    Eager,
}

/// The largest errors that count as right, for the rows of one reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub(super) rows: Vec<RowBar>,
    pub(super) groups: Vec<Group>,
    /// For the relative rms over all rows.
    pub(super) relative_rms: f64,
    /// Rows whose numbers are larger than this are not rounded to zero.
    pub(super) vanishing: f64,
    /// In words.
    pub(super) from: String,
}

/// Those of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RowBar {
    /// For the root mean square of the row's error.
    pub rms: f64,
    /// For one element: this times the exact element,
    pub direct: f64,
    /// plus this times the element's scale,
    pub scaled: f64,
    /// plus this.
    pub absolute: f64,
    pub lse: f64,
    pub max_score: f64,
}

impl RowBar {
    /// For one element.
    pub(crate) fn element(&self, want: f64, scale: f64) -> f64 {
        self.direct * want.abs() + self.scaled * scale + self.absolute
    }
}

/// Rows that are judged together: an error that is small in each of them is visible in all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// `all rows`, `b 0, h 3`, `rows of 512 to 1023 keys`.
    pub name: String,
    pub rows: Vec<usize>,
    /// For the root mean square of the rows' errors, each relative to its scale.
    pub relative: f64,
}

impl Bars {
    /// The limits of a problem's reference. `rounds` selects the emulation that measures the backend; score mods that
    /// call functions are always measured by eager's, because kernels approximate those to about its precision.
    pub fn new(problem: &Problem, exact: &Reference, emulated: &Emulated, rounds: Rounds) -> Bars {
        let functions = functions(problem.score.as_deref());
        let rounding = match rounds {
            Rounds::Fused if functions == Functions::None => &emulated.fused,
            _ => &emulated.eager,
        };
        let unit = unit(problem.dtype);
        let sways = |i: usize| emulated.sways.get(i).copied().unwrap_or_default();
        let costs = Costs::new(exact, rounding);
        let lse = smoothed(exact, &emulated.lse);
        let tops = smoothed(exact, &emulated.max_scores);
        let bar = |i: usize| {
            let scale = &exact.scales[i];
            let size = finite(scale.rms());
            let score = finite(scale.score);
            let luck = 1.0 / free(exact, i).sqrt();
            let scores = 8.0 * SINGLE * score;
            let tiny = vanishing(problem.dtype);
            let loose = functions.looseness() * (1.0 + score);
            // scores on both sides of steps move elements against each other
            let sway = sways(i);
            RowBar {
                rms: size * (costs.like[i] * (2.0 + 4.0 * luck) + unit * (0.5 + luck) + scores)
                    + tiny
                    + SWAYS * sway.rms,
                direct: 1.5 * unit,
                scaled: 6.5 * costs.like[i] + unit * (0.5 + 2.0 * luck) + scores,
                absolute: tiny + SWAYS * sway.element,
                lse: SWAYS * sway.lse
                    + 8.0 * lse[i]
                    + SINGLE * (16.0 * (1.0 + score) + 4.0 * (scale.kept as f64).sqrt())
                    + loose,
                max_score: SWAYS * sway.max_score + 8.0 * tops[i] + SINGLE * 16.0 * (1.0 + score) + loose,
            }
        };
        let rows: Vec<RowBar> = (0..exact.rows.len()).map(bar).collect();
        let groups =
            grouped(exact).into_iter().map(|(name, rows)| costs.group(name, rows, exact, unit, &sways)).collect();
        let relative_rms = relative_rms(&rows, exact);
        let from = format!("the effect of rounding to {} in rows with as many keys", problem.dtype);
        Bars { rows, groups, relative_rms, vanishing: 4.0 * vanishing(problem.dtype), from }
    }

    /// The same bars for every row, absolute: for tests of exactness.
    #[cfg(any(test, feature = "testing"))]
    pub fn flat(exact: &Reference, out: f64, lse: f64, max_score: f64) -> Bars {
        let bar = RowBar { rms: out, absolute: out, lse, max_score, ..RowBar::default() };
        Bars {
            rows: vec![bar; exact.rows.len()],
            groups: Vec::new(),
            relative_rms: f64::INFINITY,
            vanishing: f64::INFINITY,
            from: "the test".into(),
        }
    }
}

/// Whether the relative rms over all rows is what the rows' bars allow together.
fn relative_rms(rows: &[RowBar], exact: &Reference) -> f64 {
    let width = exact.out.len() / exact.rows.len().max(1);
    let squares: f64 = exact.out.iter().filter(|x| x.is_finite()).map(|x| x * x).sum();
    let allowed: f64 = rows.iter().map(|bar| bar.rms * bar.rms * width as f64).sum();
    if squares > 0.0 { (allowed / squares).sqrt() } else { allowed.sqrt() }
}

/// The effect of rounding on each row, relative to its scale.
struct Costs {
    own: Vec<f64>,
    /// The larger of its own and the root mean square over rows with about as many keys.
    like: Vec<f64>,
}

impl Costs {
    fn new(exact: &Reference, rounding: &Rounding) -> Costs {
        let relative = |(error, scale): (&f64, &super::reference::Scale)| {
            let size = finite(scale.rms());
            if size > 0.0 { error / size } else { 0.0 }
        };
        let own: Vec<f64> = rounding.out.iter().zip(&exact.scales).map(relative).collect();
        Costs { like: smoothed(exact, &own), own }
    }

    fn group(
        &self,
        name: String,
        rows: Vec<usize>,
        exact: &Reference,
        unit: f64,
        sways: &impl Fn(usize) -> Sway,
    ) -> Group {
        let own = mean_square(rows.iter().map(|i| self.own[*i])).sqrt();
        let score = rows.iter().map(|i| finite(exact.scales[*i].score)).fold(0.0, f64::max);
        let luck = 1.0 / rows.iter().map(|i| free(exact, *i)).sum::<f64>().max(1.0).sqrt();
        let moved = |i: &usize| {
            let size = finite(exact.scales[*i].rms());
            if size > 0.0 { sways(*i).rms / size } else { 0.0 }
        };
        let moved = mean_square(rows.iter().map(moved)).sqrt();
        let relative = own * (1.5 + 4.0 * luck) + unit * (0.25 + luck) + 8.0 * SINGLE * score + SWAYS * moved;
        Group { name, rows, relative }
    }
}

/// The number of independent errors in a row: those of its elements, fewer if few keys share the mass.
fn free(exact: &Reference, row: usize) -> f64 {
    let scale = &exact.scales[row];
    finite(scale.effective).min(scale.out.len() as f64).max(1.0)
}

fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

fn mean_square(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(n, sum), x| (n + 1.0, sum + x * x));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The larger of each row's value and the root mean square over rows that keep about as many keys.
fn smoothed(exact: &Reference, values: &[f64]) -> Vec<f64> {
    let kept = |i: usize| exact.scales[i].kept as f64;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| kept(*a).total_cmp(&kept(*b)));
    let mut out = vec![0.0; values.len()];
    for (at, i) in order.iter().enumerate() {
        let near = order[at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(order.len())].iter();
        let alike = near.filter(|j| kept(**j) <= ALIKE * kept(*i) && kept(*i) <= ALIKE * kept(**j));
        out[*i] = values[*i].max(mean_square(alike.map(|j| values[*j])).sqrt());
    }
    out
}

/// All rows, those of each head, and those with a similar number of keys; fully masked rows are in none.
fn grouped(exact: &Reference) -> Vec<(String, Vec<usize>)> {
    let kept = |i: &usize| exact.scales[*i].kept;
    let rows: Vec<usize> =
        (0..exact.rows.len()).filter(|i| kept(i) > 0 && exact.scales[*i].rms().is_finite()).collect();
    let mut heads: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    let mut sizes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for i in &rows {
        let Row { b, h, .. } = exact.rows[*i];
        heads.entry((b, h)).or_default().push(*i);
        sizes.entry(kept(i).ilog2()).or_default().push(*i);
    }
    let heads = heads.into_iter().map(|((b, h), rows)| (format!("b {b}, h {h}"), rows));
    let sizes = sizes.into_iter().map(|(log, rows)| {
        let from = 1u64 << log;
        (format!("rows of {from} to {} keys", 2 * from - 1), rows)
    });
    let all = std::iter::once(("all rows".to_string(), rows));
    all.chain(heads).chain(sizes).filter(|(_, rows)| !rows.is_empty()).collect()
}

/// Relative roundoff of an output of this dtype. Float32 outputs are sums in an order of the backend's own, of
/// exponentials good to some units in the last place.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 1.0 / 256.0,
        DType::F16 => 1.0 / 2048.0,
        _ => 64.0 * SINGLE,
    }
}

/// The smallest positive number of the dtype.
fn vanishing(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 2f64.powi(-133),
        DType::F16 => 2f64.powi(-24),
        _ => 2f64.powi(-149),
    }
}

/// A score mod's allowance for kernels that a float32 formula does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Functions {
    /// Sums, products, comparisons and reads.
    None,
    /// exp, log, tanh and the like, which kernels approximate.
    Some,
    /// The hardware's tanh, good to eleven bits.
    Approximate,
}

impl Functions {
    /// Its addition to the limits of scores and their sums.
    fn looseness(self) -> f64 {
        match self {
            Functions::None => 0.0,
            Functions::Some => LSE_ALLOWED / 4.0,
            Functions::Approximate => LSE_ALLOWED,
        }
    }
}

fn functions(score: Option<&Mod>) -> Functions {
    let Some(score) = score else { return Functions::None };
    let of = |op: &Op| match op {
        Op::Unary(UnaryOp::TanhApprox, _) => Functions::Approximate,
        Op::Unary(op, _) if is_simple(*op) => Functions::None,
        Op::Unary(..) => Functions::Some,
        // a quotient is rounded correctly here, but kernels multiply by the inverse
        Op::Binary(op, ..) if *op == BinaryOp::Div || op.row().last_bit != LastBit::Same => Functions::Some,
        _ => Functions::None,
    };
    score.graph.nodes().iter().map(|node| of(&node.op)).max().unwrap_or(Functions::None)
}

/// Whether float32 gives the result to its last place.
fn is_simple(op: UnaryOp) -> bool {
    op.row().last_bit == LastBit::Same
}

#[cfg(test)]
#[path = "gate_bar_tests.rs"]
mod bar_tests;
#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
