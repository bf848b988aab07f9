//! The search's books against a count by hand, on random work.

use super::*;
use crate::base::rng::Rng;

/// Random needs: runs near the diagonal, and some far away.
fn work(seed: u64, rows: usize, cols: usize, kinds: usize) -> Work {
    let mut rng = Rng::new(seed);
    let coupled = rows == cols;
    let kind = |rng: &mut Rng| {
        let row = |rng: &mut Rng| {
            let mut spans: Vec<(u32, u32)> = (0..rng.below(4))
                .map(|_| {
                    let from = rng.below(cols);
                    (from as u32, (from + 1 + rng.below(6)).min(cols) as u32)
                })
                .collect();
            merged(&mut spans)
        };
        let needs: Vec<Vec<(u32, u32)>> = (0..rows).map(|_| row(rng)).collect();
        let weight = needs.iter().map(|spans| spans.iter().map(|(a, b)| f64::from(b - a)).sum()).collect();
        KindWork::new(1.0 + rng.below(3) as f64, weight, &needs)
    };
    Work { rows, cols, coupled, kinds: (0..kinds).map(|_| kind(&mut rng)).collect() }
}

/// Columns that ranks need and do not own, over all layers.
fn remote(work: &Work, ranks: usize, owner: &[u16]) -> f64 {
    let mut sum = 0.0;
    for kind in &work.kinds {
        for rank in 0..ranks as u16 {
            let mut needed = vec![false; work.cols];
            for row in (0..work.rows).filter(|row| owner[*row] == rank) {
                kind.needs(row).iter().for_each(|(a, b)| needed[*a as usize..*b as usize].fill(true));
            }
            let own = |col: usize| work.coupled && owner[col] == rank;
            sum += kind.layers * (0..work.cols).filter(|col| needed[*col] && !own(*col)).count() as f64;
        }
        sum -= if work.coupled { 0.0 } else { kind.layers * work.cols as f64 };
    }
    sum
}

#[test]
fn moves_are_counted_as_a_fresh_count_does() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let (rows, ranks) = (5 + rng.below(40), 2 + rng.below(4));
        let cols = if seed % 3 == 0 { 5 + rng.below(40) } else { rows };
        let work = work(seed, rows, cols, 1 + seed as usize % 3);
        let owner: Vec<u16> = (0..rows).map(|_| rng.below(ranks) as u16).collect();
        let mut state = State::new(&work, ranks, owner);
        for _ in 0..30 {
            let (row, to) = (rng.below(rows), rng.below(ranks));
            if state.owner[row] as usize == to {
                continue;
            }
            let of = (state.sums(state.owner[row] as usize), state.sums(to));
            let (before, delta) = (remote(&work, ranks, &state.owner), state.delta(row, to, (&of.0, &of.1)));
            state.shift(row, to);
            let after = remote(&work, ranks, &state.owner);
            assert_eq!(after - before, delta, "seed {seed}, row {row} to {to}");
            let fresh = State::new(&work, ranks, state.owner.clone());
            assert_eq!((&fresh.remote, &fresh.size), (&state.remote, &state.size), "seed {seed}");
            for (a, b) in fresh.load.iter().flatten().zip(state.load.iter().flatten()) {
                assert!((a - b).abs() < 1e-9, "seed {seed}");
            }
        }
    }
}

#[test]
fn every_rank_has_its_rows_and_a_search_repeats_itself() {
    for seed in 0..60 {
        let mut rng = Rng::new(1000 + seed);
        let (rows, ranks) = (1 + rng.below(700), 1 + rng.below(12));
        let cols = if seed % 4 == 0 { 1 + rng.below(90) } else { rows };
        let work = work(seed, rows, cols, 1 + seed as usize % 2);
        let effort = if seed % 2 == 0 { Effort::WHOLE } else { Effort::QUICK };
        let owner = search(&work, ranks, effort, None);
        let mut counts = vec![0; ranks];
        owner.iter().for_each(|rank| counts[*rank as usize] += 1);
        assert_eq!(counts, sizes(rows, ranks), "seed {seed}: {rows} rows, {ranks} ranks");
        assert_eq!(owner, search(&work, ranks, effort, None), "seed {seed}");
        let again = search(&work, ranks, Effort::QUICK, Some(&owner));
        let value = |owner: &[u16]| refine::objective(&State::new(&work, ranks, owner.to_vec()), LEVEL);
        assert!(value(&again) <= value(&owner) + 1e-9, "a plan at hand is never made worse, seed {seed}");
    }
}

#[test]
fn work_that_is_all_zero_is_still_divided() {
    let work =
        Work { rows: 9, cols: 9, coupled: true, kinds: vec![KindWork::new(1.0, vec![0.0; 9], &vec![vec![]; 9])] };
    let owner = search(&work, 4, Effort::WHOLE, None);
    assert_eq!((0..4).map(|r| owner.iter().filter(|o| **o == r).count()).collect::<Vec<_>>(), [3, 2, 2, 2]);
}
