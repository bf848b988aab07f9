//! The measures compared with plain float64 computations over dense matrices.
//!
//! Invariant: the plain computation uses only its own blocks. Only compiled for tests.

use super::*;
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::analysis::examples::Builder;
use crate::base::BlockSize;
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::Mod;
use crate::ir::random;
use crate::quality::head::{Head, Own};
use crate::quality::masses::masses;
use crate::quality::testing::{Dense, dense, dense_under, head};

fn judge_of(head: &Head, block: BlockSize) -> Judge {
    let masses = masses(head, block, false, &Control::new()).unwrap();
    Judge::new(Scorer::new(head), masses, &Control::new()).unwrap()
}

fn kept(mask: &Mod, head: &Head, block: BlockSize) -> Kept {
    Kept::new(BlockMask::build(Some(mask), MaskShape::broadcast(head.lengths()), block, &Control::new()).unwrap())
}

fn near(name: &str, found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 2e-5 * wanted.abs().max(1.0), "{name}: {found}, not {wanted}");
}

/// What the kept cells add to the output of full attention, [q_len][dim_v].
fn part(head: &Head, full: &Dense, keeps: impl Fn(usize, usize) -> bool) -> Vec<f64> {
    let (kv_len, dim) = (head.lengths().kv_len, head.dim_v());
    let mut out = vec![0.0; head.lengths().q_len * dim];
    for (at, out) in out.iter_mut().enumerate() {
        let (q, e) = (at / dim, at % dim);
        // a sink takes its share of the weights
        let sink = head.sink.map_or(0.0, |sink| (f64::from(sink) - full.lse[q]).exp());
        let value = |kv: usize| f64::from(head.v().expect("values")[kv * dim + e]);
        let kept = (0..kv_len).filter(|kv| keeps(q, *kv));
        *out = kept.map(|kv| full.p[q * kv_len + kv] / (1.0 + sink) * value(kv)).sum();
    }
    out
}

/// Everything computed once more, cell by cell.
fn check(seed: u64, head: &Head, block: BlockSize) {
    let (q_len, kv_len) = (head.lengths().q_len, head.lengths().kv_len);
    let mask = random::mask(seed, &random::Options::new(q_len, kv_len));
    let keeps = |q: usize, kv: usize| {
        eval(&mask, &Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 }).as_bool()
    };
    let judged = judge_of(head, block).judge(&kept(&mask, head, block), &Control::new()).unwrap();
    let (full, masked) = (dense(head), dense_under(head, keeps));
    let rows: Vec<usize> = (0..q_len).filter(|q| full.lse[*q].is_finite()).collect();
    let mass = |q: usize| (0..kv_len).filter(|kv| keeps(q, *kv)).map(|kv| full.p[q * kv_len + kv]).sum::<f64>();
    let mut all: Vec<f64> = rows.iter().map(|q| mass(*q)).collect();
    let m = &judged.measures;
    near("mean", m.mass.mean, all.iter().sum::<f64>() / all.len() as f64);
    all.sort_by(f64::total_cmp);
    near("p5", m.mass.p5, all[(0.05 * all.len() as f64).ceil() as usize - 1]);
    near("min", m.mass.min, all[0]);
    near("worst row", mass(m.mass.worst_row), all[0]);
    // output error
    let dim = head.dim_v();
    let of = |from: &[f64]| -> Vec<f64> { rows.iter().flat_map(|q| from[q * dim..(q + 1) * dim].to_vec()).collect() };
    let (o, p) = (of(&full.out), of(&masked.out));
    let sum = |f: &dyn Fn(f64, f64) -> f64| o.iter().zip(&p).map(|(o, p)| f(*o, *p)).sum::<f64>();
    let e = m.error.as_ref().unwrap();
    near("l1", e.relative_l1, sum(&|o, p| (o - p).abs()) / sum(&|o, _| o.abs()));
    near("rmse", e.rmse, (sum(&|o, p| (o - p) * (o - p)) / o.len() as f64).sqrt());
    let norms = sum(&|o, _| o * o).sqrt() * sum(&|_, p| p * p).sqrt();
    near("cosine", e.cosine, if norms == 0.0 { 0.0 } else { sum(&|o, p| o * p) / norms });
    let mut shares: Vec<f64> = (0..rows.len())
        .map(|at| at * dim..(at + 1) * dim)
        .map(|row| {
            let norm = |f: &dyn Fn(usize) -> f64| row.clone().map(|at| f(at) * f(at)).sum::<f64>().sqrt();
            let error = norm(&|at| o[at] - p[at]);
            if error == 0.0 { 0.0 } else { error / norm(&|at| o[at]) }
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    near("row p99", e.row_p99, shares[(0.99 * shares.len() as f64).ceil() as usize - 1]);
    // the kept part of full attention's output, with all its weights as they are
    let kept_part = part(head, &full, keeps);
    let kept_part = of(&kept_part);
    let parts = |f: &dyn Fn(usize) -> f64| (0..o.len()).map(|at| f(at).abs()).sum::<f64>() / sum(&|o, _| o.abs());
    near("dropped", e.dropped, parts(&|at| o[at] - kept_part[at]));
    near("renormalised", e.renormalised, parts(&|at| p[at] - kept_part[at]));
    // the ceiling: the largest blocks, row of blocks by row of blocks
    let (mut best, mut executed, mut every, mut visited, mut cells_kept) = (0.0, 0, Vec::new(), 0, 0);
    for i in 0..q_len.div_ceil(block.q) {
        let q: Vec<usize> = (i * block.q..((i + 1) * block.q).min(q_len)).collect();
        let cells = |j: usize| j * block.kv..((j + 1) * block.kv).min(kv_len);
        let columns = 0..kv_len.div_ceil(block.kv);
        let count = columns.clone().filter(|j| q.iter().any(|q| cells(*j).any(|kv| keeps(*q, kv)))).count();
        let of = |j: usize| q.iter().map(|q| full.p[q * kv_len..][cells(j)].iter().sum::<f64>()).sum::<f64>();
        for j in columns.clone().filter(|j| q.iter().any(|q| cells(*j).any(|kv| keeps(*q, kv)))) {
            visited += q.len() * cells(j).len();
            cells_kept += q.iter().map(|q| cells(j).filter(|kv| keeps(*q, *kv)).count()).sum::<usize>();
        }
        let mut sums: Vec<f64> = columns.map(of).collect();
        every.extend(sums.iter().copied());
        sums.sort_by(|a, b| b.total_cmp(a));
        best += sums[..count].iter().sum::<f64>();
        executed += count;
    }
    near("ceiling", m.ceiling, best / rows.len() as f64);
    assert_eq!((m.cost.blocks, m.cost.all_blocks), (executed, every.len()));
    near("density", m.cost.density(), executed as f64 / every.len() as f64);
    near("efficiency", m.cost.efficiency, if visited == 0 { 1.0 } else { cells_kept as f64 / visited as f64 });
    every.sort_by(|a, b| b.total_cmp(a));
    near("ceiling anywhere", m.ceiling_anywhere, every[..executed].iter().sum::<f64>() / rows.len() as f64);
    assert!(m.ceiling_anywhere >= m.ceiling - 1e-6 && m.ceiling >= m.mass.mean - 1e-5, "{m:?}");
    near("regret", m.regret, m.ceiling - m.mass.mean);
}

#[test]
fn every_measure_is_that_of_a_plain_computation_in_float64() {
    for seed in 0..8 {
        let (q, kv) = [(60, 90), (96, 96), (33, 130)][seed as usize % 3];
        let block = [BlockSize::square(16), BlockSize { q: 24, kv: 40 }][seed as usize % 2];
        let plain = head(seed, q, kv, 16, 2.5);
        check(seed, &plain, block);
        check(seed + 50, &Head { own: Own::Causal, sink: Some(0.5), ..plain }, block);
    }
}

#[test]
fn dropped_and_renormalised_parts_add_up_to_the_error() {
    let head = head(3, 64, 64, 8, 2.0);
    let block = BlockSize::square(16);
    let window = crate::analysis::examples::sliding_window(9);
    let judged = judge_of(&head, block).judge(&kept(&window, &head, block), &Control::new()).unwrap();
    let e = judged.measures.error.unwrap();
    // o - o' = (o - m o') - (1 - m) o': no part is larger than the others together
    assert!(e.relative_l1 <= e.dropped + e.renormalised + 1e-9 && e.dropped <= e.relative_l1 + e.renormalised + 1e-9);
    assert!(e.dropped > 0.0 && e.renormalised > 0.0);
}

#[test]
fn a_mask_that_keeps_all_loses_nothing_and_an_empty_row_is_named() {
    let head = head(4, 50, 50, 8, 1.0);
    let block = BlockSize::square(16);
    let judge = judge_of(&head, block);
    let all = Kept::new(BlockMask::build(None, MaskShape::broadcast(head.lengths()), block, &Control::new()).unwrap());
    let m = judge.judge(&all, &Control::new()).unwrap().measures;
    assert!(m.mass.min > 1.0 - 1e-5 && m.error.as_ref().unwrap().relative_l1 < 1e-5 && m.regret.abs() < 1e-5);
    let mut graph = crate::ir::graph::Graph::new();
    let root = graph.bool(false);
    let nothing = Mod { kind: crate::ir::graph::ModKind::Mask, graph, root, sources: Vec::new() };
    let m = judge.judge(&kept(&nothing, &head, block), &Control::new()).unwrap().measures;
    assert_eq!((m.ceiling, m.mass.mean, m.mass.empty_rows), (0.0, 0.0, 50));
    let holes = crate::backends::testing::modulo_rows(7, 5);
    let judged = judge.judge(&kept(&holes, &head, block), &Control::new()).unwrap();
    assert_eq!((judged.measures.mass.empty_rows, judged.measures.mass.first_empty), (7, Some(5)));
    assert_eq!((judged.measures.mass.min, judged.rows[12]), (0.0, 0.0));
}

#[test]
fn where_nothing_can_be_judged_no_figure_looks_good() {
    let whole = head(31, 24, 24, 8, 1.0);
    let of = |q: Vec<f32>, v: Vec<f32>| Head::new((24, 24), 8, q, whole.k().to_vec(), Some(v)).unwrap();
    let broken = of(vec![f32::NAN; 24 * 8], whole.v().unwrap().to_vec());
    let mask = random::mask(3, &random::Options::new(24, 24));
    let kept = kept(&mask, &broken, BlockSize::square(8));
    let judge = judge_of(&broken, BlockSize::square(8));
    let m = judge.judge(&kept, &Control::new()).unwrap().measures;
    let e = m.error.unwrap();
    let figures = [m.mass.mean, m.mass.p5, m.mass.min, m.ceiling, m.regret, e.relative_l1, e.cosine, e.rmse, e.row_p99];
    assert!(figures.iter().all(|x| x.is_nan()), "{figures:?}");
    assert!(troubles(&broken, &judge.masses).unwrap().starts_with("24 rows have a NaN"));
    // a value that is not finite spoils the error alone
    let mut v = whole.v().unwrap().to_vec();
    v[5 * 11 + 2] = f32::INFINITY;
    let spoilt = of(whole.q().to_vec(), v);
    let judge = judge_of(&spoilt, BlockSize::square(8));
    let m = judge.judge(&kept, &Control::new()).unwrap().measures;
    assert!(m.mass.mean.is_finite() && !m.error.unwrap().relative_l1.is_finite());
    assert_eq!(
        troubles(&spoilt, &judge.masses).unwrap(),
        "v is NaN or infinite at kv_idx 5: the output error is unknown"
    );
}

#[test]
fn outputs_of_zeros_have_no_error_and_rows_that_lose_all_lose_their_output() {
    let plain = head(8, 40, 40, 8, 1.0);
    let block = BlockSize::square(8);
    let of = |head: &Head, mask: &Mod| {
        judge_of(head, block).judge(&kept(mask, head, block), &Control::new()).unwrap().measures.error.unwrap()
    };
    let zeros =
        Head::new((40, 40), 8, plain.q().to_vec(), plain.k().to_vec(), Some(vec![0.0; 40 * 3])).expect("a head");
    let e = of(&zeros, &crate::analysis::examples::sliding_window(4));
    assert_eq!((e.relative_l1, e.rmse, e.cosine, e.row_p99, e.dropped, e.renormalised), (0.0, 0.0, 1.0, 0.0, 0.0, 0.0));
    let mut graph = crate::ir::graph::Graph::new();
    let root = graph.bool(false);
    let nothing = Mod { kind: crate::ir::graph::ModKind::Mask, graph, root, sources: Vec::new() };
    for sink in [None, Some(0.5)] {
        let e = of(&Head { sink, ..plain.clone() }, &nothing);
        assert_eq!(
            (e.relative_l1, e.cosine, e.row_p99, e.dropped, e.renormalised),
            (1.0, 0.0, 1.0, 1.0, 0.0),
            "{sink:?}"
        );
    }
}

#[test]
fn bounds_enclose_the_exact_mass_and_meet_on_whole_blocks() {
    let head = head(6, 64, 64, 8, 2.0);
    let block = BlockSize::square(16);
    let judge = judge_of(&head, block);
    for seed in 0..5 {
        let mask = kept(&random::mask(seed, &random::Options::new(64, 64)), &head, block);
        let mean = judge.judge(&mask, &Control::new()).unwrap().measures.mass.mean;
        let (low, high) = bounds(&judge.masses, &mask, (0, 0));
        assert!(low <= mean + 1e-5 && mean <= high + 1e-5, "{low} {mean} {high}");
        // some cells of some blocks are cut away
        assert!(high - low > 1e-3, "{low} {high}");
    }
    // every third diagonal of blocks, whole
    let mut g = Builder::new();
    let (q, k) = (g.q, g.k);
    let (q, k) = (g.div_by(q, 16), g.div_by(k, 16));
    let d = g.sub(q, k);
    let d = g.rem_by(d, 3);
    let root = g.at_most(d, 0);
    let mask = kept(&g.mask(root), &head, block);
    let mean = judge.judge(&mask, &Control::new()).unwrap().measures.mass.mean;
    let (low, high) = bounds(&judge.masses, &mask, (0, 0));
    assert!((low - mean).abs() < 1e-5 && (high - mean).abs() < 1e-5, "{low} {mean} {high}");
    assert!(mean > 0.01 && mean < 0.99, "{mean}");
}

/// A capture's masses are rounded to codes; the bounds made of them still hold the exact mass.
#[test]
fn bounds_of_rounded_masses_are_rounded_outwards() {
    let block = BlockSize::square(16);
    for seed in 0..8 {
        let head = head(seed + 20, 64, 64, 8, 2.0);
        let judge = judge_of(&head, block);
        let mut known = Masses::clone(&judge.masses);
        let code = |p: f32| ((255.0 + 12.0 * p.log2()).round().clamp(1.0, 255.0) - 255.0) / 12.0;
        known.blocks.iter_mut().for_each(|p| *p = if *p == 0.0 { 0.0 } else { code(*p).exp2() });
        known.rounding = (0.5f64 / 12.0).exp2();
        let mask = kept(&random::mask(seed, &random::Options::new(64, 64)), &head, block);
        let mean = judge.judge(&mask, &Control::new()).unwrap().measures.mass.mean;
        let (low, high) = bounds(&known, &mask, (0, 0));
        assert!(low <= mean + 1e-6 && mean <= high + 1e-6 && high <= 1.0 && low >= 0.0, "{low} {mean} {high}");
        let mut g = Builder::new();
        let (q, k) = (g.q, g.k);
        let d = g.sub(q, k);
        let root = g.at_most(d, 1000);
        let all = kept(&g.mask(root), &head, block);
        assert_eq!(bounds(&known, &all, (0, 0)).1, 1.0, "nothing is skipped");
    }
}

/// Of masses that may be a quarter larger or smaller: what is kept is known from the full blocks, from what is skipped, and from
/// both sides of a whole of 1.
#[test]
fn bounds_of_rounded_masses_come_from_the_nearer_side() {
    let head = head(9, 16, 48, 8, 1.0);
    let block = BlockSize::square(16);
    let mut g = Builder::new();
    let root = g.below(g.k, 20);
    // one full block, one of which four keys are kept, one that is skipped
    let mask = kept(&g.mask(root), &head, block);
    let of = |blocks: [f32; 3], rounding: f64| {
        let known = masses(&head, block, false, &Control::new()).unwrap();
        bounds(&Masses { blocks: blocks.to_vec(), rounding, ..known }, &mask, (0, 0))
    };
    let near = |(low, high): (f64, f64), wanted: (f64, f64)| {
        assert!((low - wanted.0).abs() < 1e-6 && (high - wanted.1).abs() < 1e-6, "{low} {high}, not {wanted:?}");
    };
    near(of([0.5, 0.25, 0.25], 1.0), (0.5, 0.75));
    near(of([0.5, 0.25, 0.25], 1.25), (0.5 / 1.25, 1.0 - 0.25 / 1.25));
    near(of([0.1, 0.1, 0.8], 1.25), (0.1 / 1.25, 0.2 * 1.25));
    near(of([0.9, 0.05, 0.05], 1.25), (1.0 - 0.1 * 1.25, 1.0 - 0.05 / 1.25));
}

#[test]
fn the_first_of_equally_bad_rows_is_the_worst() {
    let of = MassKept::of(&[0.5, f32::NAN, 0.25, 0.75, 0.25]);
    assert_eq!((of.worst_row, of.min, of.rows, of.first_empty), (2, 0.25, 4, None));
}

#[test]
fn a_spread_leaves_out_what_is_not_finite() {
    let spread = Spread::of([0.5, f64::NAN, 1.0]);
    assert_eq!((spread.mean, spread.min, spread.max, spread.count), (0.75, 0.5, 1.0, 2));
    assert!(Spread::of([]).mean.is_nan());
}
