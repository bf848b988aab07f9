//! The limits of rows and groups whose errors and scales are given: each limit is worked out by hand from its description.
//!
//! Invariant: no reference is computed here, so that every part of a limit can be set alone.

use super::*;
use crate::backends::reference::Scale;
use crate::backends::testing::{spec, with_mods};
use crate::ir::graph::{Graph, Input, ModKind, NodeId};
use crate::problem::ProblemSpec;

fn near(what: &str, found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{what}: {found:e}, not {wanted:e}");
}

/// So many keys, all of the mass alike, and elements of this size.
fn scale(kept: u64, size: f64, width: usize) -> Scale {
    Scale { kept, effective: kept as f64, out: vec![size; width], score: 0.0 }
}

/// Rows of one head one after the other, with outputs of 1.
fn exact(scales: Vec<Scale>) -> Reference {
    let rows = (0..scales.len()).map(|q| Row { b: 0, h: 0, q }).collect();
    let count = scales.len();
    Reference {
        rows,
        out: scales.iter().flat_map(|s| vec![1.0; s.out.len()]).collect(),
        lse: vec![0.0; count],
        max_scores: vec![0.0; count],
        rows_total: count as u64,
        scales,
    }
}

/// Emulated errors of the rows' outputs, and nothing else.
fn errors(fused: Vec<f64>, eager: Vec<f64>) -> Emulated {
    let none = vec![0.0; fused.len()];
    Emulated {
        fused: Rounding { out: fused },
        eager: Rounding { out: eager },
        lse: none.clone(),
        max_scores: none,
        sways: Vec::new(),
    }
}

fn of(dtype: DType, score: Option<Mod>) -> Problem {
    with_mods(ProblemSpec { dtype, ..spec(1, 1, 1, 4, 4, 8) }, None, score)
}

/// A score mod of one operation on the score.
fn mod_of(build: impl Fn(&mut Graph, NodeId) -> NodeId) -> Option<Mod> {
    let mut graph = Graph::new();
    let score = graph.input(Input::Score);
    let root = build(&mut graph, score);
    Some(Mod { kind: ModKind::Score, graph, root, sources: Vec::new() })
}

const ULP: f64 = 1.0 / 16_777_216.0;

#[test]
fn a_rows_limits_are_the_sums_of_their_parts() {
    // 16 equal keys, four elements of size 2: four independent errors, so that luck is a half
    let exact = exact(vec![scale(16, 2.0, 4)]);
    let (unit, tiny) = (1.0 / 256.0, 2f64.powi(-133));
    let bars = |exact: &Reference, emulated: &Emulated| {
        Bars::new(&of(DType::BF16, None), exact, emulated, Rounds::Fused).rows[0]
    };
    // nothing but the dtype's own rounding: once a half and once the luck, in a row of size 2
    let plain = bars(&exact, &errors(vec![0.0], vec![9.0]));
    near("rms", plain.rms, 2.0 * unit + tiny);
    near("direct", plain.direct, 1.5 * unit);
    near("scaled", plain.scaled, 1.5 * unit);
    near("absolute", plain.absolute, tiny);
    // 16 roundings of a sum of 1, and one for each of the keys that the sum adds, by their root
    near("lse", plain.lse, (16.0 + 4.0 * 4.0) * ULP);
    near("largest score", plain.max_score, 16.0 * ULP);
    // an emulated error of an eighth of the size counts four times in the row and six and a half times in an element
    let rounded = bars(&exact, &errors(vec![0.25], vec![9.0]));
    near("rms", rounded.rms, 2.0 * (0.125 * 4.0) + 2.0 * unit + tiny);
    near("scaled", rounded.scaled, 6.5 * 0.125 + 1.5 * unit);
    assert_eq!((rounded.direct, rounded.absolute, rounded.lse), (plain.direct, plain.absolute, plain.lse));
    // scores of size 3 are rounded to float32
    let mut loud = exact.clone();
    loud.scales[0].score = 3.0;
    let scored = bars(&loud, &errors(vec![0.0], vec![0.0]));
    near("rms", scored.rms, plain.rms + 2.0 * 24.0 * ULP);
    near("scaled", scored.scaled, plain.scaled + 24.0 * ULP);
    near("lse", scored.lse, (16.0 * 4.0 + 4.0 * 4.0) * ULP);
    near("largest score", scored.max_score, 16.0 * 4.0 * ULP);
    // errors of the lse and of the largest score as float32 makes them
    let found = Emulated { lse: vec![1e-3], max_scores: vec![1e-4], ..errors(vec![0.0], vec![0.0]) };
    let measured = bars(&exact, &found);
    near("lse", measured.lse, plain.lse + 8e-3);
    near("largest score", measured.max_score, plain.max_score + 8e-4);
    // scores that fall over a step
    let sway = Sway { rms: 0.5, element: 0.25, lse: 0.125, max_score: 0.0625 };
    let swayed = bars(&exact, &Emulated { sways: vec![sway], ..errors(vec![0.0], vec![0.0]) });
    near("rms", swayed.rms, plain.rms + 4.0 * 0.5);
    near("absolute", swayed.absolute, tiny + 4.0 * 0.25);
    near("lse", swayed.lse, plain.lse + 4.0 * 0.125);
    near("largest score", swayed.max_score, plain.max_score + 4.0 * 0.0625);
    // an element has a share of itself, one of its scale, and what is left
    let bar = RowBar { direct: 0.5, scaled: 0.25, absolute: 0.125, ..RowBar::default() };
    assert_eq!((bar.element(-4.0, 8.0), bar.element(4.0, 8.0)), (2.0 + 2.0 + 0.125, 2.0 + 2.0 + 0.125));
}

#[test]
fn each_dtype_has_its_roundoff_and_its_smallest_number() {
    let exact = exact(vec![scale(16, 2.0, 4)]);
    let wanted = [
        (DType::BF16, 2f64.powi(-8), 2f64.powi(-131)),
        (DType::F16, 2f64.powi(-11), 2f64.powi(-22)),
        (DType::F32, 2f64.powi(-18), 2f64.powi(-147)),
    ];
    for (dtype, unit, vanishing) in wanted {
        let bars = Bars::new(&of(dtype, None), &exact, &errors(vec![0.0], vec![0.0]), Rounds::Fused);
        near("direct", bars.rows[0].direct, 1.5 * unit);
        assert_eq!(bars.vanishing, vanishing, "{dtype}");
        assert!(bars.from.contains(&dtype.to_string()), "{}", bars.from);
    }
}

/// The emulation that a score mod's kernel is measured by: eager's where it calls a function, with a part of the lse's limit.
#[test]
fn score_mods_with_functions_are_measured_by_eager_attention() {
    let mut exact = exact(vec![scale(16, 2.0, 4)]);
    exact.scales[0].score = 1.0;
    let found = errors(vec![0.25], vec![0.5]);
    let of = |score: Option<Mod>, rounds| {
        let bar = Bars::new(&of(DType::F32, score), &exact, &found, rounds).rows[0];
        let plain = Bars::new(&of(DType::F32, None), &exact, &found, Rounds::Fused).rows[0];
        // the emulated error relative to the size, and what the lse may be off besides
        let eager = match ((bar.scaled - plain.scaled) / 6.5 * 2.0).abs() {
            less if less < 1e-9 => false,
            more => {
                near("eager", more, 0.25);
                true
            }
        };
        assert!((bar.lse - plain.lse - (bar.max_score - plain.max_score)).abs() < 1e-15);
        (eager, ((bar.lse - plain.lse) * 1e6).round() / 1e6)
    };
    let one = |op: UnaryOp| mod_of(move |g, score| g.unary(op, score));
    let two = |op: BinaryOp| {
        mod_of(move |g, score| {
            let two = g.float(2.0);
            g.binary(op, score, two)
        })
    };
    // half a thousandth for scores of size 1: a quarter of LSE_ALLOWED, times 1 + 1
    let (plain, some) = ((false, 0.0), (true, 0.0005));
    assert_eq!((of(None, Rounds::Fused), of(None, Rounds::Eager)), (plain, (true, 0.0)));
    for simple in [one(UnaryOp::Neg), one(UnaryOp::Abs), one(UnaryOp::Floor), one(UnaryOp::Sqrt)] {
        assert_eq!(of(simple, Rounds::Fused), plain);
    }
    for simple in [BinaryOp::Mul, BinaryOp::Add, BinaryOp::Sub, BinaryOp::Min, BinaryOp::Max] {
        assert_eq!(of(two(simple), Rounds::Fused), plain, "{simple:?}");
    }
    for function in [one(UnaryOp::Exp), one(UnaryOp::Tanh), one(UnaryOp::Log), one(UnaryOp::Rsqrt)] {
        assert_eq!(of(function, Rounds::Fused), some);
    }
    for function in [BinaryOp::Div, BinaryOp::Pow, BinaryOp::Atan2] {
        assert_eq!(of(two(function), Rounds::Fused), some, "{function:?}");
    }
    assert_eq!(of(one(UnaryOp::TanhApprox), Rounds::Fused), (true, 0.002));
    // the loosest counts
    let both = mod_of(|g, score| {
        let near = g.unary(UnaryOp::TanhApprox, score);
        g.unary(UnaryOp::Exp, near)
    });
    assert_eq!(of(both, Rounds::Fused), (true, 0.002));
}

#[test]
fn rows_with_as_many_keys_lend_each_other_their_errors() {
    let of = |kept: &[u64], values: &[f64]| smoothed(&exact(kept.iter().map(|k| scale(*k, 1.0, 1)).collect()), values);
    // 10 and 15 are alike, 10 and 16 are not; no row falls below its own
    let found = of(&[16, 10, 15], &[4.0, 0.0, 3.0]);
    near("10 keys", found[1], (9.0f64 / 2.0).sqrt());
    assert_eq!((found[0], found[2]), (4.0, 3.0));
    let found = of(&[16, 10, 15], &[0.0, 3.0, 0.0]);
    near("15 keys", found[2], (9.0f64 / 3.0).sqrt());
    assert_eq!((found[0], found[1]), (0.0, 3.0));
    // 64 rows on each side: the row 100 of 200
    let mut values = vec![0.0; 200];
    values[100] = 1.0;
    let found = of(&[7; 200], &values);
    let seen: Vec<usize> = (0..200).filter(|i| found[*i] > 0.0).collect();
    assert_eq!((seen[0], seen.len(), seen[seen.len() - 1]), (36, 129, 164));
    near("the first of 101", found[36], (1.0f64 / 101.0).sqrt());
    near("one of 129", found[80], (1.0f64 / 129.0).sqrt());
    near("the first of 100", found[164], (1.0f64 / 100.0).sqrt());
}

#[test]
fn rows_are_judged_together_by_head_and_by_number_of_keys() {
    let scales = [1u64, 2, 3, 4, 0, 7, 8].map(|kept| scale(kept, 1.0, 2));
    let mut exact = exact(scales.to_vec());
    for (i, (b, h)) in [(0, 0), (0, 0), (0, 0), (0, 0), (0, 1), (1, 0), (1, 0)].into_iter().enumerate() {
        (exact.rows[i].b, exact.rows[i].h) = (b, h);
    }
    // overflowed
    exact.scales[6].out[0] = f64::INFINITY;
    let found = grouped(&exact);
    let wanted = [
        ("all rows", vec![0, 1, 2, 3, 5]),
        ("b 0, h 0", vec![0, 1, 2, 3]),
        ("b 1, h 0", vec![5]),
        ("rows of 1 to 1 keys", vec![0]),
        ("rows of 2 to 3 keys", vec![1, 2]),
        ("rows of 4 to 7 keys", vec![3, 5]),
    ];
    assert_eq!(found, wanted.map(|(name, rows)| (name.to_string(), rows)));
    exact.scales.iter_mut().for_each(|scale| scale.kept = 0);
    assert_eq!(grouped(&exact), []);
}

#[test]
fn a_groups_limit_falls_with_the_number_of_its_independent_errors() {
    // 4 and 12 independent errors together: a luck of a quarter
    let mut exact = exact(vec![scale(4, 2.0, 16), scale(12, 4.0, 16)]);
    let group = |exact: &Reference, emulated: &Emulated| {
        let bars = Bars::new(&of(DType::BF16, None), exact, emulated, Rounds::Fused);
        bars.groups.iter().find(|g| g.name == "all rows").expect("all rows").relative
    };
    let unit = 1.0 / 256.0;
    let plain = group(&exact, &errors(vec![0.0; 2], vec![0.0; 2]));
    near("the dtype", plain, unit * 0.5);
    // relative errors of 0.3 and 0.4: together the root of 0.125
    let found = group(&exact, &errors(vec![0.6, 1.6], vec![0.0; 2]));
    near("emulated", found, 0.125f64.sqrt() * 2.5 + unit * 0.5);
    // of steps 0.3 and 0.4, too
    let sway = |rms| Sway { rms, ..Sway::default() };
    let stepped = Emulated { sways: vec![sway(0.6), sway(1.6)], ..errors(vec![0.0; 2], vec![0.0; 2]) };
    near("steps", group(&exact, &stepped), plain + 4.0 * 0.125f64.sqrt());
    // the largest score of all rows
    (exact.scales[0].score, exact.scales[1].score) = (5.0, 2.0);
    near("scores", group(&exact, &errors(vec![0.0; 2], vec![0.0; 2])), plain + 40.0 * ULP);
    // a row without a size has no relative error
    exact.scales[0].out.fill(0.0);
    let found = group(&exact, &errors(vec![0.6, 1.6], vec![0.0; 2]));
    near("one row", found, 0.08f64.sqrt() * 2.5 + unit * 0.5 + 40.0 * ULP);
}

#[test]
fn few_keys_with_most_of_the_mass_are_few_independent_errors() {
    let with = |effective: f64| {
        let mut exact = exact(vec![scale(100, 1.0, 9)]);
        exact.scales[0].effective = effective;
        free(&exact, 0)
    };
    assert_eq!([with(0.5), with(4.0), with(50.0)], [1.0, 4.0, 9.0]);
    assert_eq!([with(f64::NAN), with(f64::INFINITY)], [1.0, 1.0]);
}

#[test]
fn the_error_over_all_rows_may_be_what_the_rows_may_be_together() {
    let mut exact = exact(vec![scale(16, 2.0, 2), scale(16, 6.0, 2)]);
    exact.out = vec![3.0, 4.0, 12.0, f64::INFINITY];
    let bars = Bars::new(&of(DType::F16, None), &exact, &errors(vec![0.5, 0.25], vec![0.0; 2]), Rounds::Fused);
    let (one, other) = (bars.rows[0].rms, bars.rows[1].rms);
    // two elements a row; 3, 4 and 12 are 13 together
    near("relative", bars.relative_rms, (2.0 * one * one + 2.0 * other * other).sqrt() / 13.0);
    exact.out.fill(0.0);
    let bars = Bars::new(&of(DType::F16, None), &exact, &errors(vec![0.5, 0.25], vec![0.0; 2]), Rounds::Fused);
    near("absolute", bars.relative_rms, (2.0 * one * one + 2.0 * other * other).sqrt());
}

#[test]
fn flat_bars_are_absolute() {
    let bars = Bars::flat(&exact(vec![scale(4, 2.0, 3); 2]), 0.125, 0.25, 0.5);
    // an element of any size, and of any scale
    assert_eq!(bars.rows.iter().map(|bar| bar.element(1e6, 1e6)).collect::<Vec<_>>(), [0.125; 2]);
    assert_eq!(
        bars.rows.iter().map(|bar| (bar.rms, bar.lse, bar.max_score)).collect::<Vec<_>>(),
        [(0.125, 0.25, 0.5); 2]
    );
}

#[test]
fn no_values_have_no_mean() {
    assert_eq!(mean_square(std::iter::empty()), 0.0);
    assert_eq!(mean_square([3.0, -4.0].into_iter()), 12.5);
}
