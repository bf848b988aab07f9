//! Every form against the interpreter, cell by cell, on usual masks and on random ones.

use super::*;
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::analysis::examples;
use crate::base::{BlockSize, Control, Lengths};
use crate::ir::cell::{self, Cell};
use crate::ir::graph::Mod;
use crate::ir::random;

struct Case {
    blocks: BlockMask,
    kept: Vec<bool>,
}

impl Case {
    /// A mask of one batch entry and head, and its cells.
    fn new(mask: Option<&Mod>, (q_len, kv_len): (usize, usize)) -> Case {
        let lengths = Lengths::new(q_len, kv_len).unwrap();
        let shape = MaskShape::broadcast(lengths);
        let blocks = BlockMask::build(mask, shape, BlockSize { q: 16, kv: 32 }, &Control::new()).unwrap();
        let cell = |q, k| Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: k as i64, score: 0.0 };
        let of = |q, k| mask.is_none_or(|m| cell::eval(m, &cell(q, k)).as_bool());
        let kept = (0..q_len).flat_map(|q| (0..kv_len).map(move |k| (q, k))).map(|(q, k)| of(q, k)).collect();
        Case { blocks, kept }
    }

    fn extent(&self) -> (usize, usize) {
        let lengths = self.blocks.shape().lengths;
        (lengths.q_len, lengths.kv_len)
    }

    /// Compares a form, as a function of a cell.
    fn same(&self, what: &str, of: impl Fn(usize, usize) -> bool) {
        let (q_len, kv_len) = self.extent();
        for (q, k) in (0..q_len).flat_map(|q| (0..kv_len).map(move |k| (q, k))) {
            assert_eq!(of(q, k), self.kept[q * kv_len + k], "{what}: q {q} k {k} of {q_len} x {kv_len}");
        }
    }
}

/// How many of the forms a mask has; all that it has are right.
fn check(case: &Case) -> [bool; 3] {
    let (control, (q_len, kv_len)) = (Control::new(), case.extent());
    let lowered = Lowered::new(&case.blocks, kv_len, &control).expect("few ranges");
    let ends = lowered.row_ends();
    let end = |n: usize, q: usize| ends.ends.int_at(n * q_len + q);
    case.same("row ends", |q, k| {
        let k = k as i64;
        k < end(0, q) || (1..ends.count()).step_by(2).any(|n| (end(n, q)..end(n + 1, q)).contains(&k))
    });
    for q in 0..q_len {
        let row: Vec<i64> = (0..ends.count()).map(|n| end(n, q)).collect();
        assert!(row.is_sorted() && row[0] >= 0 && row[ends.count() - 1] <= kv_len as i64, "{row:?}");
    }
    let columns = lowered.column_bounds();
    if let Ok(columns) = &columns {
        let bound = |k: usize, n: usize| columns.bounds.int_at(k * columns.count() + n);
        case.same("column bounds", |q, k| {
            let (q, at) = (q as i64, |n| bound(k, n));
            let hidden = match (columns.causal, columns.count()) {
                (true, 1) => q >= at(0),
                (true, 2) => (at(0)..at(1)).contains(&q),
                (false, 2) => q >= at(0) || q < at(1),
                _ => (at(0)..at(1)).contains(&q) || (at(2)..at(3)).contains(&q),
            };
            !(hidden || columns.causal && q < k as i64)
        });
    }
    let cut = lowered.slices(0, 0, 200);
    if let Ok(cut) = &cut {
        let holds = |q: usize, k: usize| {
            let (q, k) = (q as u32, k as u32);
            cut.iter().filter(|s| s.q.contains(&q) && s.keys(q).contains(&k)).count()
        };
        case.same("slices", |q, k| holds(q, k) > 0);
        assert!((0..q_len).all(|q| (0..kv_len).all(|k| holds(q, k) <= 1)), "no cell is in two slices");
    }
    [true, columns.is_ok(), cut.is_ok()]
}

#[test]
fn every_form_keeps_the_cells_of_the_mask() {
    for extent in [(50, 50), (70, 40), (40, 70)] {
        let lengths = Lengths::new(extent.0, extent.1).unwrap();
        for (name, mask) in examples::all(lengths, &mut examples::Rng::new(3)) {
            println!("{name} {extent:?}");
            check(&Case::new(mask.as_ref(), extent));
        }
    }
    assert_eq!(check(&Case::new(None, (40, 50))), [true; 3]);
    // two hidden ranges, neither of which begins or ends with the rows
    let mut g = examples::Builder::new();
    let kept = [(3, 5), (10, 12)].map(|(from, end)| {
        let (before, inside) = (g.below(g.q, from), g.below(g.q, end));
        let behind = g.not(inside);
        g.or(before, behind)
    });
    let root = g.and(kept[0], kept[1]);
    let case = Case::new(Some(&g.mask(root)), (20, 24));
    assert!(check(&case)[1]);
    let columns = Lowered::new(&case.blocks, 24, &Control::new()).expect("few ranges").column_bounds().expect("bounds");
    assert_eq!(
        (columns.causal, columns.count(), columns.bounds.to_i64_vec()[..4].to_vec()),
        (false, 4, vec![10, 12, 3, 5])
    );
    let mut of_each = [0; 3];
    for seed in 0..60 {
        let mask = random::mask(seed, &random::Options::new(48, 60));
        let found = check(&Case::new(Some(&mask), (48, 60)));
        of_each.iter_mut().zip(found).for_each(|(n, has)| *n += usize::from(has));
    }
    assert!(of_each[1..].iter().all(|n| (5..60).contains(n)), "some have a form and some have not: {of_each:?}");
}
