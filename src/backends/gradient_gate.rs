//! The allowed error of a gradient, and whether an error exceeds it.
//!
//! Invariant: an array is judged by its largest element and each of its rows by its own size, so that a row of small
//! numbers counts too; NaN or infinity instead of a number is never a small error. In 16 bits the measure is eager
//! attention emulated in the dtype. Must not know which backend made the gradients.

use super::gradients::Gradients;
use super::reference::gradient::{GradientReference, Noise, PairGradients};
use super::reference::rms;
use crate::base::{DType, Diagnostic, HostTensor};
use crate::problem::Problem;
use crate::problem::result::GradientError;

/// The allowed float32 error, as a part of an array's largest element; half precision adds the effect on eager.
const OF_LARGEST: f64 = 1e-4;
/// A part of a row's own size, and of the array's largest element, in float32.
const OF_ROW: (f64, f64) = (2e-3, 1e-5);

/// The allowed float32 error of vanishing dq and dk, as a part of dv's largest element: they are differences of
/// products of the output's gradient with v, and dv has the size of that gradient.
const OF_TERMS: f64 = 8.0 * f32::EPSILON as f64;
/// The allowed error of a captured tensor's vanishing gradient, as a part of the sum of its terms' sizes: a tensor that
/// shifts whole rows of scores has gradient zero, and each term has its own rounding, which grows with the score.
const OF_CAPTURED_TERMS: f64 = 64.0 * f32::EPSILON as f64;

/// The right gradients, and their allowed errors.
pub(crate) struct Bars<'a> {
    want: &'a GradientReference,
    coarse: &'a [GradientReference],
    unit: f64,
}

impl<'a> Bars<'a> {
    /// From a problem's reference; `coarse` are those of emulated eager and fused attention, in 16 bits.
    pub(crate) fn new(problem: &Problem, want: &'a GradientReference, coarse: &'a [GradientReference]) -> Bars<'a> {
        let unit = match problem.dtype {
            DType::BF16 => 1.0 / 256.0,
            DType::F16 => 1.0 / 2048.0,
            _ => 0.0,
        };
        Bars { want, coarse, unit }
    }
}

/// One array: the result, the right values, emulated attention's values, and the elements of a row.
struct Array<'a> {
    name: String,
    got: Vec<f64>,
    want: &'a [f64],
    coarse: Vec<&'a [f64]>,
    width: usize,
    /// The error of each row through delta alone.
    noise: &'a [Noise],
    /// The rounding error of cancelling terms.
    floor: f64,
}

/// Judges every gradient: one entry each for dq, dk, dv and captured tensors. Errors: gradients of another shape.
pub(crate) fn judge(problem: &Problem, got: &Gradients, bars: &Bars) -> Result<Vec<GradientError>, Diagnostic> {
    let s = problem.spec();
    let group = problem.group();
    let mut errors = Vec::new();
    type Of = fn(&PairGradients) -> &Vec<f64>;
    let shapes = super::gradients::shapes(problem);
    let named: [(&str, &HostTensor, Of, usize); 3] = [
        ("dq", &got.dq, |p| &p.dq, group * s.q_len * s.head_dim),
        ("dk", &got.dk, |p| &p.dk, s.kv_len * s.head_dim),
        ("dv", &got.dv, |p| &p.dv, s.kv_len * s.head_dim_v),
    ];
    for ((name, tensor, of, each), shape) in named.into_iter().zip(shapes) {
        check_shape(name, tensor, &shape)?;
        let mut all: Option<GradientError> = None;
        for (n, want) in bars.want.pairs.iter().enumerate() {
            let first = (want.pair.b * s.kv_heads + want.pair.kv_head) * each;
            let array = Array {
                name: name.to_string(),
                got: (first..first + each).map(|i| tensor.float_at(i)).collect(),
                want: of(want),
                coarse: bars.coarse.iter().map(|c| &of(&c.pairs[n])[..]).collect(),
                width: shape[3],
                noise: match name {
                    "dq" => &want.noise,
                    "dk" => &want.key_noise,
                    _ => &[],
                },
                floor: if name == "dv" { 0.0 } else { OF_TERMS * largest_of(&want.dv) },
            };
            let found = array.judged(bars.unit);
            all = Some(all.map_or(found.clone(), |before| before.worse(found)));
        }
        errors.extend(all);
    }
    errors.extend(captured(got, bars));
    Ok(errors)
}

fn check_shape(name: &str, tensor: &HostTensor, shape: &[usize]) -> Result<(), Diagnostic> {
    match tensor.shape() == shape {
        true => Ok(()),
        false => {
            let message = format!("{name} has shape {:?} instead of {shape:?}", tensor.shape());
            Err(Diagnostic::error("gradient-shape", message).hint("this is a bug; please report it"))
        }
    }
}

/// For captured tensors with gradients.
fn captured(got: &Gradients, bars: &Bars) -> Vec<GradientError> {
    let want = &bars.want.captures[..];
    let mut first = 0;
    let mut errors = Vec::new();
    for found in &got.captures {
        let count = found.gradient.numel().min(want.len() - first);
        let range = first..first + count;
        let array = Array {
            name: format!("dcap.{}", found.name),
            got: (0..count).map(|i| found.gradient.float_at(i)).collect(),
            want: &want[range.clone()],
            coarse: bars.coarse.iter().map(|c| &c.captures[range.clone()]).collect(),
            width: 0,
            noise: bars.want.capture_noise.get(range.clone()).unwrap_or_default(),
            floor: OF_CAPTURED_TERMS * bars.want.terms.get(range).map_or(0.0, largest_of),
        };
        errors.push(array.judged(bars.unit));
        first += count;
    }
    errors
}

/// The largest finite element by its size.
fn largest_of(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |a: f64, x| if x.is_finite() { a.max(x.abs()) } else { a })
}

impl Array<'_> {
    fn judged(&self, unit: f64) -> GradientError {
        let largest = largest_of(self.want);
        let off = |coarse: &[f64]| largest_of(&coarse.iter().zip(self.want).map(|(a, b)| a - b).collect::<Vec<_>>());
        let rounding = self.coarse.iter().map(|c| off(c)).fold(0.0, f64::max);
        // few keys have few roundings, which emulation may find mild: an error of delta moves a whole row besides
        let noise = self.noise.iter().fold(0.0, |a: f64, row| a.max(row.largest));
        let allowed = rounding + rounding.max(noise) + OF_LARGEST * largest + f64::from(f32::MIN_POSITIVE) + self.floor;
        let mut error = 0.0f64;
        let mut fault = None;
        for (i, (g, w)) in self.got.iter().zip(self.want).enumerate() {
            let same = g == w || (g.is_nan() && w.is_nan());
            if !same && (!g.is_finite() || !w.is_finite()) {
                fault.get_or_insert_with(|| format!("element {i} is {g} instead of {w}"));
            } else if !same {
                error = error.max((g - w).abs());
            }
        }
        let fault = fault.or_else(|| self.bad_row(unit, largest));
        GradientError { name: self.name.clone(), max_abs: error, largest, allowed, widest: allowed, fault }
    }

    /// The first row that is further off than rows of its size may be.
    fn bad_row(&self, unit: f64, largest: f64) -> Option<String> {
        if self.width == 0 {
            return None;
        }
        let rows = self.got.chunks_exact(self.width).zip(self.want.chunks_exact(self.width)).enumerate();
        for (row, (got, want)) in rows {
            let difference: Vec<f64> = got.iter().zip(want).map(|(g, w)| g - w).collect();
            let rounding = self.coarse.iter().map(|c| {
                let c = &c[row * self.width..][..self.width];
                let off = rms(&c.iter().zip(want).map(|(a, b)| a - b).collect::<Vec<_>>());
                if off.is_finite() { off } else { 0.0 }
            });
            let rounding = rounding.fold(self.noise.get(row).map_or(0.0, |noise| noise.rms), f64::max);
            let (own, shared) = if unit > 0.0 { (2.0 * unit, OF_LARGEST) } else { OF_ROW };
            let (error, allowed) = (rms(&difference), 4.0 * rounding + own * rms(want) + shared * largest + self.floor);
            if error > allowed + f64::from(f32::MIN_POSITIVE) {
                return Some(format!("row {row} has an error of {error:.1e}; the limit is {allowed:.1e}"));
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "gradient_gate_tests.rs"]
mod tests;
