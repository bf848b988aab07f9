//! The error of a backend's output against the f64 reference, NaN-aware, and whether it is allowed.
//!
//! Invariant: an element counts as right only if it was compared; NaN or infinity instead of a number is a mismatch,
//! never a small error. Must not know which backend made the output.

use super::Output;
use super::gate::Bars;
use super::reference::{Reference, Row, rms};
use crate::base::{Diagnostic, HostTensor};
use crate::problem::Problem;
use crate::problem::result::{ErrorStats, OutputError, OutputName, Worst};

/// The rows of an output that are compared, in the reference's order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Got {
    /// `[rows][head_dim_v]`
    pub out: Vec<f64>,
    /// `[rows]`, if passed.
    pub lse: Option<Vec<f64>>,
    /// `[rows]`, if passed.
    pub max_scores: Option<Vec<f64>>,
}

impl Got {
    /// Picks the rows. Errors: an output of another shape.
    fn of(problem: &Problem, output: &Output, rows: &[Row]) -> Result<Got, Diagnostic> {
        let s = problem.spec();
        check_shape("out", &output.out, &[s.batch, s.heads, s.q_len, s.head_dim_v])?;
        for (what, given) in [("lse", &output.lse), ("max_scores", &output.max_scores)] {
            given.iter().try_for_each(|rows| check_shape(what, rows, &[s.batch, s.heads, s.q_len]))?;
        }
        let flat = |row: &Row| (row.b * s.heads + row.h) * s.q_len + row.q;
        let element = |row| {
            let first = flat(row) * s.head_dim_v;
            (first..first + s.head_dim_v).map(|at| output.out.float_at(at))
        };
        let of = |tensor: &HostTensor| rows.iter().map(|row| tensor.float_at(flat(row))).collect();
        Ok(Got {
            out: rows.iter().flat_map(element).collect(),
            lse: output.lse.as_ref().map(of),
            max_scores: output.max_scores.as_ref().map(of),
        })
    }
}

/// Compares the reference's rows with the same rows of `output`. Errors: an output of another shape.
pub fn compare(
    problem: &Problem,
    output: &Output,
    reference: &Reference,
    bars: &Bars,
) -> Result<ErrorStats, Diagnostic> {
    Ok(judge(&Got::of(problem, output, &reference.rows)?, reference, bars))
}

/// The same of rows that were picked.
pub(crate) fn judge(got: &Got, exact: &Reference, bars: &Bars) -> ErrorStats {
    let width = exact.out.len() / exact.rows.len().max(1);
    let mut tally = Tally::default();
    let mut relative = vec![0.0; exact.rows.len()];
    for (i, bar) in bars.rows.iter().enumerate() {
        let range = i * width..(i + 1) * width;
        let (out, want) = (&got.out[range.clone()], &exact.out[range]);
        let place = || place(exact.rows[i]);
        let size = exact.scales[i].rms();
        let mut errors = Vec::with_capacity(width);
        for (e, (g, w)) in out.iter().zip(want).enumerate() {
            let error = tally.sum.add(*g, *w);
            let allowed = bar.element(*w, finite(exact.scales[i].out[e]));
            tally.allowed = tally.allowed.max(finite(allowed));
            tally.see("out", error, allowed, || format!("{}, element {e}", place()));
            errors.push(error);
        }
        let error = rms(&errors);
        tally.see("out", error, bar.rms, place);
        if out.iter().all(|x| *x == 0.0) && want.iter().any(|x| x.abs() > bars.vanishing) {
            tally.see("out, all zeros,", rms(want), 0.0, place);
        }
        relative[i] = if size > 0.0 { error / size } else { 0.0 };
        if let Some(lse) = &got.lse {
            tally.lse.at(lse[i], exact.lse[i], bar.lse);
            tally.see("lse", difference(lse[i], exact.lse[i]), bar.lse, place);
        }
        if let Some(tops) = &got.max_scores {
            tally.tops.at(tops[i], exact.max_scores[i], bar.max_score);
            tally.see("max_scores", difference(tops[i], exact.max_scores[i]), bar.max_score, place);
        }
    }
    for group in &bars.groups {
        let squares: f64 = group.rows.iter().map(|i| relative[*i] * relative[*i]).sum();
        let error = (squares / group.rows.len().max(1) as f64).sqrt();
        tally.see("out, relative to its size,", error, group.relative, || group.name.clone());
    }
    let relative_rms = tally.sum.relative_rms();
    tally.see("out, relative rms,", relative_rms, bars.relative_rms, || "all rows".into());
    let out = OutputError {
        relative_rms: Some(relative_rms),
        relative_rms_allowed: Some(bars.relative_rms).filter(|bar| bar.is_finite()),
        nan_mismatch: tally.sum.mismatch,
        from: bars.from.clone(),
        ..OutputError::plain(OutputName::Out, tally.sum.max_abs, tally.allowed)
    };
    let given = [
        (OutputName::Lse, got.lse.is_some(), &tally.lse),
        (OutputName::MaxScores, got.max_scores.is_some(), &tally.tops),
    ];
    let others = given.into_iter().filter(|(_, given, _)| *given).map(|(name, _, judged)| judged.row(name, &bars.from));
    ErrorStats {
        outputs: std::iter::once(out).chain(others).collect(),
        rows_checked: exact.rows.len() as u64,
        nan_rows: exact.out.chunks(width.max(1)).filter(|row| row.iter().any(|x| x.is_nan())).count() as u64,
        rows_total: exact.rows_total,
        worst: Some(tally.worst),
    }
}

fn place(row: Row) -> String {
    format!("b {}, h {}, q_idx {}", row.b, row.h, row.q)
}

fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

/// For two numbers; 0 if either is not finite, which is a mismatch or equality and counted elsewhere.
fn difference(got: f64, want: f64) -> f64 {
    if got.is_finite() && want.is_finite() { (got - want).abs() } else { 0.0 }
}

/// Everything seen so far.
#[derive(Default)]
struct Tally {
    sum: Sum,
    lse: Judged,
    tops: Judged,
    /// The largest of the elements' bars.
    allowed: f64,
    worst: Worst,
}

/// One number a row.
#[derive(Default)]
struct Judged {
    sum: Sum,
    allowed: f64,
}

impl Judged {
    fn row(&self, name: OutputName, from: &str) -> OutputError {
        let plain = OutputError::plain(name, self.sum.max_abs, self.allowed);
        OutputError { nan_mismatch: self.sum.mismatch, from: from.into(), ..plain }
    }

    fn at(&mut self, got: f64, want: f64, allowed: f64) {
        self.sum.add(got, want);
        self.allowed = self.allowed.max(finite(allowed));
    }
}

impl Tally {
    /// Stores the error with the largest ratio to its limit.
    fn see(&mut self, what: &str, error: f64, allowed: f64, place: impl Fn() -> String) {
        let ratio = if error == 0.0 { 0.0 } else { error / allowed };
        if ratio > self.worst.ratio || ratio.is_nan() {
            self.worst = Worst { what: what.into(), place: place(), error, allowed, ratio };
        }
    }
}

fn check_shape(what: &str, got: &HostTensor, want: &[usize]) -> Result<(), Diagnostic> {
    if got.shape() == want {
        return Ok(());
    }
    let message = format!("{what} has shape {:?} instead of {want:?}", got.shape());
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
    /// The absolute error; 0 where either is no number.
    fn add(&mut self, got: f64, want: f64) -> f64 {
        if got.is_finite() && want.is_finite() {
            self.max_abs = self.max_abs.max((got - want).abs());
            self.squared_error += (got - want).powi(2);
            self.squared_reference += want * want;
        } else if !(got == want || (got.is_nan() && want.is_nan())) {
            self.mismatch += 1;
        }
        difference(got, want)
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
    use crate::backends::reference::Scale;
    use crate::backends::testing::problem;
    use crate::base::tensor::Data;

    fn check(out: [f32; 4], lse: [f32; 2], want: [f64; 4], want_lse: [f64; 2]) -> ErrorStats {
        check_tops((out, lse, None), want, want_lse, [0.0; 2])
    }

    /// The same with the rows' largest scores, if passed.
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
        let scales = vec![Scale { kept: 1, effective: 1.0, out: vec![1.0; 2], score: 1.0 }; 2];
        let reference = Reference { rows, out, lse, max_scores, scales, rows_total: 2 };
        let bars = Bars::flat(&reference, 1e-3, 1e-3, 1e-3);
        compare(&p, &output, &reference, &bars).expect("shapes agree")
    }

    #[test]
    fn a_poisoned_element_is_a_mismatch_and_minus_infinity_equals_itself() {
        let inf = f64::NEG_INFINITY;
        let good = check([1.0, 2.0, 0.0, 0.0], [0.5, f32::NEG_INFINITY], [1.0, 2.0, 0.0, 0.0], [0.5, inf]);
        assert!(good.passed() && good.max_abs() == 0.0 && good.max_abs_of(&OutputName::Lse) == Some(0.0), "{good:?}");
        let poisoned = check([1.0, f32::NAN, 0.0, 0.0], [0.5, 1.0], [1.0, 2.0, 0.0, 0.0], [0.5, inf]);
        assert_eq!(poisoned.nan_mismatch(), 2);
        assert!(!poisoned.passed());
        let honest_nan = check([1.0, f32::NAN, 0.0, 0.0], [0.5, 1.0], [1.0, f64::NAN, 0.0, 0.0], [0.5, 1.0]);
        assert!(honest_nan.passed() && honest_nan.nan_rows == 1 && good.nan_rows == 0, "{honest_nan:?}");
        assert!(honest_nan.nan_words().is_some_and(|words| words.contains("NaN in 1 of 2 compared rows")));
        let off = check([1.0, 2.0, 0.0, 0.002], [0.5, 1.0], [1.0, 2.0, 0.0, 0.0], [0.5, 1.0]);
        assert!(!off.passed() && (off.max_abs() - 0.002).abs() < 1e-9, "{off:?}");
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
        assert_eq!(of(None).max_abs_of(&OutputName::MaxScores), None);
        let good = of(Some([0.25, f32::NEG_INFINITY]));
        assert!(good.passed() && good.max_abs_of(&OutputName::MaxScores) == Some(0.0), "{good:?}");
        assert!(!of(Some([0.252, f32::NEG_INFINITY])).passed());
        // a fully masked row that was not written; and one with a number
        assert_eq!(of(Some([0.25, f32::NAN])).nan_mismatch(), 1);
        assert_eq!(of(Some([0.25, 0.0])).nan_mismatch(), 1);
    }

    /// Two rows of two elements, each 1 in the reference, whose scales are 1 and 2.
    fn exact() -> Reference {
        let scale = |size| Scale { kept: 1, effective: 1.0, out: vec![size; 2], score: 1.0 };
        Reference {
            rows: vec![Row { b: 0, h: 0, q: 4 }, Row { b: 2, h: 1, q: 7 }],
            out: vec![1.0; 4],
            lse: vec![0.5; 2],
            max_scores: vec![0.25; 2],
            scales: vec![scale(1.0), scale(2.0)],
            rows_total: 96,
        }
    }

    /// Judged with limits of an eighth for rows, a quarter for elements, the lse and the largest scores.
    fn judged(out: [f64; 4], change: impl Fn(&mut Bars), (lse, tops): ([f64; 2], [f64; 2])) -> ErrorStats {
        let exact = exact();
        let mut bars = Bars::flat(&exact, 0.125, 0.25, 0.25);
        bars.rows.iter_mut().for_each(|bar| bar.absolute = 0.25);
        change(&mut bars);
        judge(&Got { out: out.to_vec(), lse: Some(lse.to_vec()), max_scores: Some(tops.to_vec()) }, &exact, &bars)
    }

    const RIGHT: ([f64; 2], [f64; 2]) = ([0.5; 2], [0.25; 2]);

    fn worst(of: &ErrorStats) -> (&str, &str, f64, f64, f64) {
        let worst = of.worst.as_ref().expect("judged");
        (&worst.what, &worst.place, worst.error, worst.allowed, worst.ratio)
    }

    #[test]
    fn the_error_nearest_to_its_limit_is_named_with_its_place() {
        let plain = |_: &mut Bars| {};
        assert_eq!(worst(&judged([1.0; 4], plain, RIGHT)), ("", "", 0.0, 0.0, 0.0));
        let far = "b 2, h 1, q_idx 7";
        // a row's two elements off by 0.0625 each are half of what the row may be
        let row = judged([1.0, 1.0, 1.0625, 0.9375], plain, RIGHT);
        assert_eq!(worst(&row), ("out", far, 0.0625, 0.125, 0.5));
        assert!(row.passed());
        let element = judged([1.0, 1.0, 1.0, 1.5], |bars| bars.rows[1].rms = 1.0, RIGHT);
        assert_eq!(worst(&element), ("out", "b 2, h 1, q_idx 7, element 1", 0.5, 0.25, 2.0));
        assert!(!element.passed());
        let lse = judged([1.0; 4], plain, ([0.5, 0.4375], [0.25, 0.375]));
        assert_eq!(worst(&lse), ("max_scores", far, 0.125, 0.25, 0.5));
        let lse = judged([1.0; 4], plain, ([0.5, 0.25], [0.25, 0.375]));
        assert_eq!(worst(&lse), ("lse", far, 0.25, 0.25, 1.0));
        assert!(lse.passed(), "at its limit");
        // where nothing may be off, what is off is beyond any limit, and what is not off is right
        let none = judged([1.0, 1.0, 1.0, 1.5], |bars| bars.rows.iter_mut().for_each(|b| b.absolute = 0.0), RIGHT);
        assert_eq!((worst(&none).1, worst(&none).4), ("b 2, h 1, q_idx 7, element 1", f64::INFINITY));
        let broken = judged([1.0, 1.5, 1.0, 1.0], |bars| bars.rows[0].rms = f64::NAN, RIGHT);
        assert!(worst(&broken).4.is_nan() && !broken.passed(), "{broken:?}");
    }

    #[test]
    fn a_row_of_zeros_is_wrong_where_the_reference_is_not_too_small() {
        let zeros = |vanishing: f64| {
            judged(
                [1.0, 1.0, 0.0, 0.0],
                |bars| {
                    bars.vanishing = vanishing;
                    bars.rows.iter_mut().for_each(|bar| (bar.rms, bar.absolute) = (10.0, 10.0));
                },
                RIGHT,
            )
        };
        let found = zeros(0.5);
        assert_eq!(worst(&found), ("out, all zeros,", "b 2, h 1, q_idx 7", 1.0, 0.0, f64::INFINITY));
        assert!(zeros(1.0).passed());
        // one element that is not zero
        let most = judged(
            [1.0, 1.0, 0.0, 1e-9],
            |bars| {
                bars.vanishing = 0.5;
                bars.rows.iter_mut().for_each(|bar| (bar.rms, bar.absolute) = (10.0, 10.0));
            },
            RIGHT,
        );
        assert!(most.passed(), "{most:?}");
    }

    #[test]
    fn rows_are_judged_together_by_their_errors_relative_to_their_scales() {
        use crate::backends::gate::Group;
        let grouped = |rows: Vec<usize>| {
            judged(
                [1.0, 1.0, 1.0625, 0.9375],
                |bars| {
                    bars.groups = vec![Group { name: "b 2, h 1".into(), rows: rows.clone(), relative: 0.03125 }];
                    bars.rows.iter_mut().for_each(|bar| (bar.rms, bar.absolute) = (10.0, 10.0));
                },
                RIGHT,
            )
        };
        // an error of 0.0625 in a row of scale 2
        assert_eq!(worst(&grouped(vec![1])), ("out, relative to its size,", "b 2, h 1", 0.03125, 0.03125, 1.0));
        let (_, _, error, _, ratio) = worst(&grouped(vec![0, 1]));
        assert!((error - 0.03125 / 2f64.sqrt()).abs() < 1e-15 && (ratio - 0.5f64.sqrt()).abs() < 1e-15);
        // two errors of a quarter beside four ones
        let all = judged(
            [1.0, 1.0, 1.25, 0.75],
            |bars| {
                bars.relative_rms = 0.125;
                bars.rows.iter_mut().for_each(|bar| (bar.rms, bar.absolute) = (10.0, 10.0));
            },
            RIGHT,
        );
        let wanted = (0.125f64 / 4.0).sqrt();
        let found = worst(&all);
        assert_eq!((found.0, found.1, found.3), ("out, relative rms,", "all rows", 0.125));
        assert!((found.2 - wanted).abs() < 1e-15 && (found.4 - wanted / 0.125).abs() < 1e-12);
        let row = all.output(&OutputName::Out).expect("out");
        assert_eq!((row.relative_rms, row.relative_rms_allowed), (Some(found.2), Some(0.125)));
    }

    /// Values of v that are zero: no error of such a row is relative to anything.
    #[test]
    fn a_row_without_a_size_counts_as_right_among_others() {
        use crate::backends::gate::Group;
        let mut exact = exact();
        (exact.out, exact.scales[0].out) = (vec![0.0; 4], vec![0.0; 2]);
        let mut bars = Bars::flat(&exact, 10.0, 10.0, 10.0);
        bars.groups = vec![Group { name: "b 0, h 0".into(), rows: vec![0, 1], relative: 0.25 }];
        let got = |out: [f64; 4]| judge(&Got { out: out.to_vec(), lse: None, max_scores: None }, &exact, &bars);
        let right = got([0.0; 4]);
        assert!(right.passed() && worst(&right).4 == 0.0, "{right:?}");
        // the root mean square of 0 and 1 / 2
        let off = got([0.0, 0.0, 1.0, -1.0]);
        assert_eq!((worst(&off).0, worst(&off).1), ("out, relative to its size,", "b 0, h 0"));
        assert!((worst(&off).2 - 0.125f64.sqrt()).abs() < 1e-15, "{off:?}");
    }

    #[test]
    fn every_output_has_a_row_with_its_largest_error_and_limit() {
        let found = judged(
            [1.0, 1.125, 1.0, 0.9375],
            |bars| {
                (bars.rows[0].direct, bars.rows[0].scaled) = (0.5, 0.25);
                (bars.rows[1].lse, bars.rows[0].max_score) = (0.375, 0.5);
                bars.from = "a rule".into();
            },
            ([0.5, 0.75], [0.1875, 0.25]),
        );
        let row = |name: OutputName| {
            let row = found.output(&name).expect("given");
            (row.max_abs, row.allowed, row.nan_mismatch, row.from.as_str())
        };
        // the first row's elements may be off by 0.5 x 1 + 0.25 x 1 + 0.25
        assert_eq!(row(OutputName::Out), (0.125, 1.0, 0, "a rule"));
        assert_eq!(row(OutputName::Lse), (0.25, 0.375, 0, "a rule"));
        assert_eq!(row(OutputName::MaxScores), (0.0625, 0.5, 0, "a rule"));
        assert_eq!((found.rows_checked, found.rows_total, found.nan_rows), (2, 96, 0));
        assert_eq!(found.outputs.iter().map(|row| row.relative_rms_allowed).collect::<Vec<_>>(), [None; 3]);
        // a limit that overflowed is no limit to show
        let overflowed = judged([1.0; 4], |bars| bars.rows[0].absolute = f64::INFINITY, RIGHT);
        assert_eq!(overflowed.allowed(), 0.25);
        let got = Got { out: vec![1.0; 4], lse: None, max_scores: None };
        assert_eq!(judge(&got, &exact(), &Bars::flat(&exact(), 1.0, 1.0, 1.0)).outputs.len(), 1);
    }

    #[test]
    fn another_infinity_is_a_mismatch_and_counts_in_no_sum() {
        let inf = f64::INFINITY;
        let mut sum = Sum::default();
        assert_eq!([sum.add(inf, inf), sum.add(-inf, inf), sum.add(1.0, inf), sum.add(inf, 1.0)], [0.0; 4]);
        assert_eq!((sum.mismatch, sum.max_abs, sum.relative_rms()), (3, 0.0, 0.0));
        assert_eq!([sum.add(f64::NAN, f64::NAN), sum.add(f64::NAN, 1.0), sum.add(1.0, f64::NAN)], [0.0; 3]);
        assert_eq!(sum.mismatch, 5);
        assert_eq!((sum.add(1.0, 4.0), sum.add(8.0, 4.0), sum.max_abs), (3.0, 4.0, 4.0));
        // 3 and 4 of 4 and 4
        assert!((sum.relative_rms() - 5.0 / 32f64.sqrt()).abs() < 1e-15);
        let mut zeros = Sum::default();
        assert_eq!((zeros.add(3.0, 0.0), zeros.add(4.0, 0.0), zeros.relative_rms()), (3.0, 4.0, 5.0));
    }

    #[test]
    fn the_compared_rows_are_picked_from_their_places() {
        let p = problem(2, 3, 1, 4, 5, 2);
        let numbers = |shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            HostTensor::new(shape, Data::F32((0..count).map(|n| n as f32).collect())).expect("a tensor")
        };
        let output = |out: &[usize], lse: &[usize], tops: &[usize]| Output {
            out: numbers(out),
            lse: Some(numbers(lse)),
            max_scores: Some(numbers(tops)),
        };
        let rows = [Row { b: 0, h: 0, q: 1 }, Row { b: 1, h: 2, q: 3 }, Row { b: 1, h: 0, q: 2 }];
        let (whole, by_row) = ([2, 3, 4, 2], [2, 3, 4]);
        let got = Got::of(&p, &output(&whole, &by_row, &by_row), &rows).expect("right shapes");
        assert_eq!(got.out, [2.0, 3.0, 46.0, 47.0, 28.0, 29.0]);
        assert_eq!((got.lse, got.max_scores), (Some(vec![1.0, 23.0, 14.0]), Some(vec![1.0, 23.0, 14.0])));
        let refused = |output: &Output| {
            let why = Got::of(&p, output, &rows).expect_err("another shape");
            (why.code.into_owned(), why.message)
        };
        let other = |message: &str| ("output-shape".to_string(), message.to_string());
        assert_eq!(
            refused(&output(&[2, 3, 2, 4], &by_row, &by_row)),
            other("out has shape [2, 3, 2, 4] instead of [2, 3, 4, 2]")
        );
        assert_eq!(
            refused(&output(&whole, &[2, 4, 3], &by_row)),
            other("lse has shape [2, 4, 3] instead of [2, 3, 4]")
        );
        assert_eq!(
            refused(&output(&whole, &by_row, &[6, 4])),
            other("max_scores has shape [6, 4] instead of [2, 3, 4]")
        );
    }
}
