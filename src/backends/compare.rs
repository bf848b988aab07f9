//! How far a backend's output is from the f64 reference, NaN-aware.
//!
//! Invariant: an element counts as right only if it was compared; NaN or infinity where the reference has a number is
//! a mismatch, never a small error. Must not know which backend made the output.

use super::Output;
use super::reference::Reference;
use crate::base::{DType, Diagnostic, HostTensor};
use crate::problem::Problem;
use crate::problem::result::ErrorStats;

/// The largest error that still counts as right, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowed {
    /// Of the output.
    pub out: f64,
    /// Of the lse.
    pub lse: f64,
    /// Of the rows' largest scores.
    pub max_scores: f64,
    /// `torch:eager` or `emulated eager`.
    pub from: String,
}

impl Allowed {
    /// Twice the error that plain eager attention makes in this dtype, plus a floor.
    pub fn from_eager(dtype: DType, eager: &Deviation, from: &str) -> Allowed {
        let (out_floor, lse_floor) = if dtype == DType::F32 { (1e-5, 1e-5) } else { (1e-4, ErrorStats::LSE_ALLOWED) };
        let of =
            |error: Option<f64>| if dtype == DType::F32 { 2.0 * error.unwrap_or(0.0) + lse_floor } else { lse_floor };
        Allowed {
            out: 2.0 * eager.max_abs + out_floor,
            lse: of(eager.lse_max_abs),
            max_scores: of(eager.max_scores_max_abs),
            from: from.to_string(),
        }
    }
}

/// A difference, not yet judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deviation {
    /// Largest absolute difference of the output where both are numbers.
    pub max_abs: f64,
    /// Root mean square of the difference over that of the reference.
    pub relative_rms: f64,
    /// Largest absolute difference of the lse, if there is one.
    pub lse_max_abs: Option<f64>,
    /// Largest absolute difference of the rows' largest scores, if they are given.
    pub max_scores_max_abs: Option<f64>,
    /// Elements of either that are no number where the other is one.
    pub nan_mismatch: u64,
}

/// Compares the reference's rows with the same rows of `output`. Errors: an output of another shape.
pub fn compare(
    problem: &Problem,
    output: &Output,
    reference: &Reference,
    allowed: &Allowed,
) -> Result<ErrorStats, Diagnostic> {
    let d = deviation(problem, output, reference)?;
    Ok(ErrorStats {
        max_abs: d.max_abs,
        relative_rms: d.relative_rms,
        lse_max_abs: d.lse_max_abs,
        max_scores_max_abs: d.max_scores_max_abs,
        nan_mismatch: d.nan_mismatch,
        rows_checked: reference.rows.len() as u64,
        rows_total: reference.rows_total,
        allowed: allowed.out,
        lse_allowed: allowed.lse,
        max_scores_allowed: if d.max_scores_max_abs.is_some() { allowed.max_scores } else { 0.0 },
        allowed_from: allowed.from.clone(),
    })
}

/// The difference alone.
pub fn deviation(problem: &Problem, output: &Output, reference: &Reference) -> Result<Deviation, Diagnostic> {
    let s = problem.spec();
    check_shape("out", &output.out, &[s.batch, s.heads, s.q_len, s.head_dim_v])?;
    for (what, given) in [("lse", &output.lse), ("max_scores", &output.max_scores)] {
        given.iter().try_for_each(|rows| check_shape(what, rows, &[s.batch, s.heads, s.q_len]))?;
    }
    let width = s.head_dim_v;
    let mut sum = Sum::default();
    let (mut lse_sum, mut top_sum) = (Sum::default(), Sum::default());
    for (i, row) in reference.rows.iter().enumerate() {
        let flat = (row.b * s.heads + row.h) * s.q_len + row.q;
        for e in 0..width {
            sum.add(output.out.float_at(flat * width + e), reference.out[i * width + e]);
        }
        if let Some(lse) = &output.lse {
            lse_sum.add(lse.float_at(flat), reference.lse[i]);
        }
        if let Some(tops) = &output.max_scores {
            top_sum.add(tops.float_at(flat), reference.max_scores[i]);
        }
    }
    Ok(Deviation {
        max_abs: sum.max_abs,
        relative_rms: sum.relative_rms(),
        lse_max_abs: output.lse.as_ref().map(|_| lse_sum.max_abs),
        max_scores_max_abs: output.max_scores.as_ref().map(|_| top_sum.max_abs),
        nan_mismatch: sum.mismatch + lse_sum.mismatch + top_sum.mismatch,
    })
}

/// The difference between two computations of the same rows.
pub(crate) fn deviation_of_rows(got: &Reference, exact: &Reference) -> Deviation {
    let [mut sum, mut lse_sum, mut top_sum] = [(); 3].map(|()| Sum::default());
    got.out.iter().zip(&exact.out).for_each(|(g, w)| sum.add(*g, *w));
    got.lse.iter().zip(&exact.lse).for_each(|(g, w)| lse_sum.add(*g, *w));
    got.max_scores.iter().zip(&exact.max_scores).for_each(|(g, w)| top_sum.add(*g, *w));
    Deviation {
        max_abs: sum.max_abs,
        relative_rms: sum.relative_rms(),
        lse_max_abs: Some(lse_sum.max_abs),
        max_scores_max_abs: Some(top_sum.max_abs),
        nan_mismatch: sum.mismatch + lse_sum.mismatch + top_sum.mismatch,
    }
}

fn check_shape(what: &str, got: &HostTensor, want: &[usize]) -> Result<(), Diagnostic> {
    if got.shape() == want {
        return Ok(());
    }
    let message = format!("{what} has shape {:?}, {want:?} was expected", got.shape());
    Err(Diagnostic::error("output-shape", message).hint("this is a bug of the backend; please report it"))
}

#[derive(Default)]
struct Sum {
    max_abs: f64,
    squared_error: f64,
    squared_reference: f64,
    mismatch: u64,
}

impl Sum {
    fn add(&mut self, got: f64, want: f64) {
        if got.is_finite() && want.is_finite() {
            self.max_abs = self.max_abs.max((got - want).abs());
            self.squared_error += (got - want).powi(2);
            self.squared_reference += want * want;
        } else if !(got == want || (got.is_nan() && want.is_nan())) {
            self.mismatch += 1;
        }
    }

    fn relative_rms(&self) -> f64 {
        if self.squared_reference > 0.0 {
            (self.squared_error / self.squared_reference).sqrt()
        } else {
            self.squared_error.sqrt()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::reference::Row;
    use crate::backends::testing::problem;
    use crate::base::tensor::Data;

    fn check(out: [f32; 4], lse: [f32; 2], want: [f64; 4], want_lse: [f64; 2]) -> ErrorStats {
        check_tops((out, lse, None), want, want_lse, [0.0; 2])
    }

    /// The same with the rows' largest scores, where they are given.
    fn check_tops(
        (out, lse, tops): ([f32; 4], [f32; 2], Option<[f32; 2]>),
        want: [f64; 4],
        want_lse: [f64; 2],
        want_tops: [f64; 2],
    ) -> ErrorStats {
        let p = problem(1, 1, 1, 2, 3, 2);
        let output = Output {
            out: HostTensor::new([1, 1, 2, 2], Data::F32(out.to_vec())).expect("a tensor"),
            lse: Some(HostTensor::new([1, 1, 2], Data::F32(lse.to_vec())).expect("a tensor")),
            max_scores: tops.map(|t| HostTensor::new([1, 1, 2], Data::F32(t.to_vec())).expect("a tensor")),
        };
        let rows = vec![Row { b: 0, h: 0, q: 0 }, Row { b: 0, h: 0, q: 1 }];
        let (out, lse, max_scores) = (want.to_vec(), want_lse.to_vec(), want_tops.to_vec());
        let reference = Reference { rows, out, lse, max_scores, rows_total: 2 };
        let allowed = Allowed { out: 1e-3, lse: 1e-3, max_scores: 1e-3, from: "test".into() };
        compare(&p, &output, &reference, &allowed).expect("shapes agree")
    }

    #[test]
    fn a_poisoned_element_is_a_mismatch_and_minus_infinity_equals_itself() {
        let inf = f64::NEG_INFINITY;
        let good = check([1.0, 2.0, 0.0, 0.0], [0.5, f32::NEG_INFINITY], [1.0, 2.0, 0.0, 0.0], [0.5, inf]);
        assert!(good.passed() && good.max_abs == 0.0 && good.lse_max_abs == Some(0.0), "{good:?}");
        let poisoned = check([1.0, f32::NAN, 0.0, 0.0], [0.5, 1.0], [1.0, 2.0, 0.0, 0.0], [0.5, inf]);
        assert_eq!(poisoned.nan_mismatch, 2);
        assert!(!poisoned.passed());
        let honest_nan = check([1.0, f32::NAN, 0.0, 0.0], [0.5, 1.0], [1.0, f64::NAN, 0.0, 0.0], [0.5, 1.0]);
        assert!(honest_nan.passed(), "{honest_nan:?}");
        let off = check([1.0, 2.0, 0.0, 0.002], [0.5, 1.0], [1.0, 2.0, 0.0, 0.0], [0.5, 1.0]);
        assert!(!off.passed() && (off.max_abs - 0.002).abs() < 1e-9, "{off:?}");
    }

    #[test]
    fn the_rows_largest_scores_are_compared_where_they_are_given() {
        let inf = f64::NEG_INFINITY;
        let of = |tops: Option<[f32; 2]>| {
            check_tops(
                ([1.0, 2.0, 0.0, 0.0], [0.5, f32::NEG_INFINITY], tops),
                [1.0, 2.0, 0.0, 0.0],
                [0.5, inf],
                [0.25, inf],
            )
        };
        assert_eq!(of(None).max_scores_max_abs, None);
        let good = of(Some([0.25, f32::NEG_INFINITY]));
        assert!(good.passed() && good.max_scores_max_abs == Some(0.0), "{good:?}");
        assert!(!of(Some([0.252, f32::NEG_INFINITY])).passed());
        // a row that keeps nothing, not written; and one that was given a number
        assert_eq!(of(Some([0.25, f32::NAN])).nan_mismatch, 1);
        assert_eq!(of(Some([0.25, 0.0])).nan_mismatch, 1);
    }
}
