//! Score mods with a small range, such as soft caps: their softmax needs no running maximum.
//!
//! Invariant: sound. A row's exponentials start from the largest score of the first tile in which the row keeps a cell,
//! but not below the base computed here; then none overflows, the largest of a row never vanishes, and sums and outputs
//! stay far inside float32, for any scores. Must not know kernels.

use crate::analysis::interval::{Cells, Floats, Program, Value};
use crate::base::DType;
use crate::problem::Problem;
use std::f64::consts::LOG2_E;

/// Powers of two that an exponential may reach: float32 ends at 127; the rest is for the number of keys and their values.
const HIGHEST: f64 = 72.0;
/// And to which the largest of a row may fall: float32 ends at -126; the rest is for small values.
const DEEPEST: f64 = 88.0;

/// The lowest base of a row's exponentials, in powers of two, if the score mod's range allows one. Only bfloat16
/// represents such small and large weights as exactly as those near 1.
pub(crate) fn lowest(problem: &Problem) -> Option<f32> {
    let score = problem.score.as_deref().filter(|_| problem.dtype == DType::BF16)?;
    let last = |n: usize| (0, n as i64 - 1);
    let cells =
        Cells { b: last(problem.batch), h: last(problem.heads), q: last(problem.q_len), kv: last(problem.kv_len) };
    let program = Program::new(score);
    match program.evaluate(&cells, &mut program.scratch()) {
        Value::Float(range) => of_range(&range),
        _ => None,
    }
}

fn of_range(range: &Floats) -> Option<f32> {
    // far from zero a float32 score is coarser than the base
    let small = (range.hi - range.lo) * LOG2_E <= HIGHEST + DEEPEST && range.lo >= -1e4 && range.hi <= 1e4;
    (small && range.lo <= range.hi).then_some((range.hi * LOG2_E - HIGHEST) as f32)
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::variant::bound::*;

    fn range(lo: f64, hi: f64) -> Option<f64> {
        of_range(&Floats { lo, hi, nan: true }).map(f64::from)
    }

    /// The base in flex_sm90.cu of a row whose first largest score is `top`.
    fn base(top: f64, lowest: f64) -> f64 {
        top * LOG2_E + (lowest - top * LOG2_E).ceil().max(0.0)
    }

    #[test]
    fn wherever_a_row_begins_its_exponentials_stay_inside_float32() {
        for (lo, hi) in [(-50.0, 50.0), (-30.0, 30.0), (0.0, 1.0), (-5.0, 90.0), (-61.0, 49.5), (9000.0, 9100.0)] {
            let lowest = range(lo, hi).unwrap();
            for step in 0..=100 {
                let first = lo + (hi - lo) * f64::from(step) / 100.0;
                let base = base(first, lowest);
                assert!(hi * LOG2_E - base < HIGHEST + 1e-3, "{lo} {hi} {first}");
                // the largest of the row is at least the first one
                let exact = first * LOG2_E - base;
                assert!(exact > -DEEPEST - 1.001 && (exact - exact.round()).abs() < 1e-9, "{lo} {hi} {first}");
            }
        }
        assert_eq!(range(-80.0, 80.0), None);
        assert_eq!(range(f64::NEG_INFINITY, 0.0), None);
        assert_eq!(range(1.0, f64::INFINITY), None);
        assert_eq!(range(1e6, 1e6 + 1.0), None);
        assert_eq!(range(f64::INFINITY, f64::NEG_INFINITY), None);
    }
}
