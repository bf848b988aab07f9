//! The inner loops against plain ones in f64, at every level of the machine.
//!
//! Invariant: every test takes each level. Must not know which level a machine picks.

use super::*;

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 40) as f32 / (1u64 << 24) as f32) * 4.0 - 2.0
        })
        .collect()
}

fn naive_product(rows: usize, columns: usize, depth: usize, a: &[f32], b: impl Fn(usize, usize) -> f32) -> Vec<f64> {
    let cell = |r: usize, c: usize| (0..depth).map(|k| f64::from(a[r * depth + k]) * f64::from(b(k, c))).sum();
    (0..rows * columns).map(|i| cell(i / columns, i % columns)).collect()
}

fn close(got: &[f32], want: &[f64], within: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(*g) - w).abs() <= within, "element {i}: {g} against {w}");
    }
}

#[test]
fn products_are_those_of_plain_loops_at_every_level_and_row_count() {
    for level in Level::all() {
        let kernels = Kernels::at(level);
        // Miri interprets the smallest of them
        let sizes = [(1, 64, 5), (7, 128, 16), (13, 192, 80), (64, 64, 33)];
        for (rows, columns, depth) in sizes.into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
            let tile = Tile { rows, columns };
            let (q, panels) = (numbers(rows * depth, 1), numbers(columns * depth, 2));
            let mut scores = vec![f32::NAN; rows * columns];
            kernels.scores(tile, depth, &q, &panels, &mut scores);
            let k = |e: usize, c: usize| panels[(c / PANEL * depth + e) * PANEL + c % PANEL];
            close(&scores, &naive_product(rows, columns, depth, &q, k), 1e-4);
            for width in [16, 64, 80] {
                let v = numbers(columns * width, 3);
                let mut out = vec![2.0; rows * width];
                kernels.values(tile, width, &scores, &v, &vec![0.5; rows], &mut out);
                let want: Vec<f64> = naive_product(rows, width, columns, &scores, |c, e| v[c * width + e]);
                close(&out, &want.iter().map(|x| x + 1.0).collect::<Vec<_>>(), 1e-2);
            }
        }
    }
}

#[test]
fn transposed_products_and_gradients_are_those_of_plain_loops() {
    for level in Level::all() {
        let kernels = Kernels::at(level);
        let sizes = [(1, 64, 16), (37, 64, 64), (64, 128, 80)];
        for (rows, columns, width) in sizes.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
            let tile = Tile { rows, columns };
            let (p, b) = (numbers(rows * columns, 7), numbers(rows * width, 8));
            let mut out = vec![1.0; columns * width];
            kernels.transposed_values(tile, width, &p, &b, &mut out);
            let cell = |c: usize, e: usize| -> f64 {
                (0..rows).map(|r| f64::from(p[r * columns + c]) * f64::from(b[r * width + e])).sum()
            };
            let want: Vec<f64> = (0..columns * width).map(|i| 1.0 + cell(i / width, i % width)).collect();
            close(&out, &want, 1e-4);
            let (lse, delta) = (vec![3.0; rows], numbers(rows, 9));
            let (mut scores, mut gradients) = (p.clone(), numbers(rows * columns, 10));
            let before = gradients.clone();
            kernels.softmax_gradient(tile, &mut scores, &mut gradients, &lse, &delta);
            let probability: Vec<f64> = p.iter().map(|s| (f64::from(*s) - 3.0).exp()).collect();
            close(&scores, &probability, 1e-6);
            let gradient = |i: usize| probability[i] * f64::from(before[i] - delta[i / columns]);
            close(&gradients, &(0..p.len()).map(gradient).collect::<Vec<_>>(), 2e-6);
        }
    }
}

#[test]
fn softmax_in_pieces_is_softmax_at_once() {
    for level in Level::all() {
        let kernels = Kernels::at(level);
        let (rows, columns) = (3, 128);
        let mut parts = [numbers(rows * columns, 4), numbers(rows * columns, 5)];
        parts[1].iter_mut().for_each(|x| *x *= 9.0);
        // row 0: nothing kept in the first part; row 2: nothing kept at all
        parts[0][..columns].fill(f32::NEG_INFINITY);
        parts.iter_mut().for_each(|p| p[2 * columns..].fill(f32::NEG_INFINITY));
        let all = parts.clone();
        let (mut max, mut sum, mut rescale) = ([f32::NEG_INFINITY; 3], [0.0; 3], [0.0; 3]);
        for part in &mut parts {
            let mut running = Running { max: &mut max, sum: &mut sum, rescale: &mut rescale };
            kernels.softmax(Tile { rows, columns }, part, &mut running);
        }
        for r in 0..2 {
            let scores: Vec<f64> =
                all.iter().flat_map(|p| &p[r * columns..(r + 1) * columns]).map(|x| f64::from(*x)).collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|x| (x - top).exp()).sum();
            assert_eq!(f64::from(max[r]), top);
            assert!((f64::from(sum[r]) / total - 1.0).abs() < 1e-6, "{level:?} {} {total}", sum[r]);
            for (got, want) in parts[1][r * columns..].iter().zip(&scores[columns..]) {
                assert!((f64::from(*got) - (want - top).exp()).abs() < 4e-7);
            }
        }
        assert_eq!((max[2], sum[2]), (f32::NEG_INFINITY, 0.0));
        assert!(parts[1][2 * columns..].iter().all(|p| *p == 0.0));
    }
}

#[test]
fn the_largest_scores_that_fall_out_of_the_products_are_those_of_the_rows() {
    for level in Level::all() {
        let kernels = Kernels::at(level);
        for (rows, columns, depth) in
            [(1, 64, 16), (13, 192, 40), (64, 256, 16)].into_iter().take(if cfg!(miri) { 1 } else { 3 })
        {
            let tile = Tile { rows, columns };
            let (mut q, panels) = (numbers(rows * depth, 11), numbers(columns * depth, 12));
            // passed by, as by the search through a row
            q[0] = f32::NAN;
            let (mut plain, mut scores) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
            let mut largest = Largest::new(rows);
            // what an earlier tile left
            largest.0.fill(1e9);
            kernels.scores(tile, depth, &q, &panels, &mut plain);
            kernels.scores_and_largest(tile, depth, (&q, &panels), &mut scores, &mut largest);
            assert_eq!(bits(&scores), bits(&plain));
            let run = |scores: &mut [f32], of: Option<&Largest>| {
                let (mut max, mut sum, mut rescale) = (vec![-1.0; rows], vec![1.0; rows], vec![0.0; rows]);
                let mut running = Running { max: &mut max, sum: &mut sum, rescale: &mut rescale };
                kernels.softmax_of(tile, scores, of, &mut running);
                [bits(scores), bits(&max), bits(&sum), bits(&rescale)]
            };
            assert!(run(&mut plain, None) == run(&mut scores, Some(&largest)), "{level:?}");
        }
    }
}

fn bits(of: &[f32]) -> Vec<u32> {
    of.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn powers_are_exact_to_a_rounding_and_zero_where_none_is_normal() {
    for level in Level::all() {
        let (kernels, columns) = (Kernels::at(level), 128);
        for part in (0..100).take(if cfg!(miri) { 1 } else { 100 }) {
            // the row's largest is 0
            let mut scores: Vec<f32> = (0..columns).map(|i| (part * columns + i) as f32 * -0.009).collect();
            scores[0] = 0.0;
            let before = scores.clone();
            let (mut max, mut sum, mut rescale) = ([0.0], [0.0], [0.0]);
            let mut running = Running { max: &mut max, sum: &mut sum, rescale: &mut rescale };
            kernels.softmax(Tile { rows: 1, columns }, &mut scores, &mut running);
            for (got, x) in scores.iter().zip(before) {
                let want = f64::from(x).exp();
                let near = (f64::from(*got) / want - 1.0).abs() < 2e-7 * (1.0 + f64::from(x.abs()));
                let right = if x < -88.0 { *got == 0.0 } else { x < -87.0 || near };
                assert!(right, "{level:?} exp({x}) = {got}");
            }
        }
    }
}

#[test]
fn nan_scores_stay_nan_and_masked_ones_do_not() {
    for level in Level::all() {
        let kernels = Kernels::at(level);
        let mut scores = vec![1.0f32; 64];
        scores[3] = f32::NAN;
        scores[9] = f32::NAN;
        let mut keep = vec![1u8; 64];
        keep[9] = 0;
        kernels.mask(&mut scores, &keep);
        assert!(scores[3].is_nan() && scores[9] == f32::NEG_INFINITY);
        let (mut max, mut sum, mut rescale) = ([f32::NEG_INFINITY], [0.0], [0.0]);
        let mut running = Running { max: &mut max, sum: &mut sum, rescale: &mut rescale };
        kernels.softmax(Tile { rows: 1, columns: 64 }, &mut scores, &mut running);
        assert!(sum[0].is_nan(), "{level:?}");
    }
}
