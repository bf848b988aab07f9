//! Cuts compared with the cells.

use super::*;
use crate::analysis::classify::{Mask, Verdict};
use crate::analysis::examples::{self, Rng};
use crate::base::Lengths;
use crate::ir::cell::{self, Cell};
use crate::ir::graph::Mod;
use crate::ir::random::{self, Options};
use std::collections::HashMap;
use std::sync::Arc;

/// The interpreter's result for a box: all false, all true, or mixed, and the cells.
fn truth_of(of: &Mod, b: i64, q: (i64, i64), kv: (i64, i64)) -> (Verdict, Vec<bool>) {
    let at = |q_idx, kv_idx| Cell { b, h: 1, q_idx, kv_idx, score: 0.0 };
    let cells: Vec<bool> = (q.0..=q.1)
        .flat_map(|q| (kv.0..=kv.1).map(move |k| (q, k)))
        .map(|(q, k)| cell::eval(of, &at(q, k)).as_bool())
        .collect();
    let verdict = match (cells.contains(&true), cells.contains(&false)) {
        (true, false) => Verdict::Full,
        (false, true) => Verdict::Empty,
        _ => Verdict::Mixed,
    };
    (verdict, cells)
}

fn agrees(reported: Truth, found: Verdict) -> bool {
    reported.value().is_none_or(|v| found == if v { Verdict::Full } else { Verdict::Empty })
}

/// Every decision about every row, compared with the cells; the number of blocks decided without evaluating their
/// cells.
fn check(name: &str, of: &Mod, b: i64, lengths: Lengths, size: [i64; 2]) -> usize {
    let whole = Cells { b: (b, b), h: (1, 1), q: (0, lengths.q_len as i64 - 1), kv: (0, lengths.kv_len as i64 - 1) };
    let along = |end: i64, size: i64| -> Vec<(i64, i64)> {
        (0..=end / size).map(|n| (n * size, ((n + 1) * size - 1).min(end))).collect()
    };
    let (rows, kv) = (along(whole.q.1, size[0]), along(whole.kv.1, size[1]));
    let mask = Mask::new(Arc::new(of.clone()));
    let Some(cuts) = Cuts::new(mask.program(), &whole, &kv) else { return 0 };
    let mut reported = 0;
    let mut cut = cuts.rows(mask.program());
    let mut known: HashMap<_, Vec<bool>> = HashMap::new();
    for q in rows {
        cut.enter(&whole, q);
        let segments = cut.segments();
        assert_eq!(segments.last().map(|s| s.0 as usize), Some(kv.len()), "{name}: {segments:?}");
        let found: Vec<_> = kv.iter().map(|kv| truth_of(of, b, q, *kv)).collect();
        let mut start = 0;
        for (end, truth) in segments {
            assert!(end > start, "{name}: segments rise");
            let right = found[start as usize..end as usize].iter().all(|(verdict, _)| agrees(truth, *verdict));
            assert!(right, "{name}: {q:?} blocks {start}..{end} of {size:?} are not {truth:?}");
            reported += if truth.value().is_some() { (end - start) as usize } else { 0 };
            start = end;
        }
        for level in (0..4).filter(|level| *level == 0 || kv.len() > 1 << (level - 1)) {
            for (n, part) in found.chunks(1 << level).enumerate() {
                let truth = cut.truth(level, n);
                let right = part.iter().all(|(verdict, _)| agrees(truth, *verdict));
                assert!(right, "{name}: {q:?} run {n} of level {level} is not {truth:?}");
            }
        }
        for (block, (_, cells)) in found.into_iter().enumerate() {
            let Some(key) = cut.key(block, kv[block]) else { continue };
            let same = known.entry(key).or_insert_with(|| cells.clone());
            assert_eq!(*same, cells, "{name}: {q:?} block {block} has the key of another");
        }
    }
    reported
}

#[test]
fn what_is_told_of_examples_is_true() {
    let mut rng = Rng::new(17);
    for round in 0..4 {
        let lengths = Lengths::new(1 + rng.below(70), 1 + rng.below(70)).unwrap();
        for (name, of) in examples::all(lengths, &mut rng) {
            let size = [1 + rng.below(9) as i64, 1 + rng.below(9) as i64];
            if let Some(of) = of {
                check(&format!("{name} {round}"), &of, rng.below(2) as i64, lengths, size);
            }
        }
    }
}

#[test]
fn what_is_told_of_random_masks_is_true() {
    let mut rng = Rng::new(23);
    for seed in 0..160 {
        let lengths = Lengths::new(1 + rng.below(40), 1 + rng.below(40)).unwrap();
        let mut options = Options::new(lengths.q_len, lengths.kv_len);
        (options.batch, options.heads, options.depth) = (2, 2, 2 + seed as u32 % 4);
        let of = random::mask(seed + 5000, &options);
        let size = [1 + rng.below(7) as i64, 1 + rng.below(7) as i64];
        check(&format!("random {seed}"), &of, rng.below(2) as i64, lengths, size);
    }
}

#[test]
fn bands_and_documents_are_told_by_their_breakpoints() {
    let lengths = Lengths::new(96, 96).unwrap();
    let blocks = 24 * 24;
    for (name, of) in [
        ("causal", examples::causal()),
        ("window", examples::sliding_window(20)),
        ("prefix", examples::prefix_lm(30)),
        ("documents", examples::documents(&[40, 30, 26])),
    ] {
        let reported = check(name, &of, 0, lengths, [4, 4]);
        assert!(reported * 10 >= blocks * 8, "{name}: {reported} of {blocks} blocks");
    }
}
