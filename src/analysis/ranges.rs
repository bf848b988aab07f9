//! The range of keys of each row, for masks whose rows keep a single range: causal, windows, prefixes, packed
//! documents.
//!
//! Invariant: exact, or None; found from the places along kv where the mask's comparisons change, without evaluating
//! every cell. Must not know blocks or kernels.

use super::interval::{Cells, Cuts, Program, RowCuts};
use super::spread;
use crate::base::Lengths;
use crate::ir::graph::Mod;
use std::ops::Range;

/// Runs of keys of a row whose bounds are evaluated if its comparisons do not decide them.
const LOOKS: usize = 64;
/// Rows of a task.
const ROWS: usize = 256;
/// Rows that are tried before all are.
const TRIED: usize = 16;

/// `[q_len]`: the keys that each row of a batch entry and head keeps, empty if it keeps none. None if a row keeps more
/// than one range, or if the search would evaluate its cells.
pub fn row_ranges(mask: &Mod, b: usize, h: usize, lengths: Lengths) -> Option<Vec<Range<u32>>> {
    let program = Program::new(mask);
    let whole = Cells::new(b, h, 0..lengths.q_len, 0..lengths.kv_len);
    let kv: Vec<(i64, i64)> = (0..lengths.kv_len as i64).map(|n| (n, n)).collect();
    let cuts = Cuts::new(&program, &whole, &kv)?;
    let of = |rows: &mut RowCuts<'_>, q: usize| {
        rows.enter(&whole, (q as i64, q as i64));
        one_range(rows)
    };
    // a mask of another kind shows early
    let mut rows = cuts.rows(&program);
    (0..lengths.q_len).step_by(lengths.q_len.div_ceil(TRIED)).try_for_each(|q| of(&mut rows, q).map(|_| ()))?;
    let of_some = |rows: &mut RowCuts<'_>, at: usize| {
        let own = at * ROWS..lengths.q_len.min((at + 1) * ROWS);
        own.map(|q| of(rows, q)).collect::<Option<Vec<_>>>()
    };
    let parts = spread::in_order(lengths.q_len.div_ceil(ROWS), || cuts.rows(&program), of_some);
    Some(parts.into_iter().collect::<Option<Vec<_>>>()?.concat())
}

/// The range of the row that was entered last.
fn one_range(rows: &mut RowCuts<'_>) -> Option<Range<u32>> {
    let mut kept = One(0..0);
    let (mut start, mut looks) = (0, LOOKS);
    for (end, truth) in rows.segments() {
        match truth.value() {
            Some(true) => kept.add(start..end)?,
            Some(false) => {}
            None => {
                let level = (end - start).ilog2() as usize;
                for n in start as usize >> level..=(end as usize - 1) >> level {
                    look(rows, level, n, &(start..end), &mut looks, &mut kept)?;
                }
            }
        }
        start = end;
    }
    Some(kept.0)
}

/// An aligned run of `1 << level` keys as far as it is in a range: decided by its bounds, or halved.
fn look(
    rows: &RowCuts<'_>,
    level: usize,
    n: usize,
    within: &Range<u32>,
    looks: &mut usize,
    kept: &mut One,
) -> Option<()> {
    let keys = within.start.max((n << level) as u32)..within.end.min(((n + 1) << level) as u32);
    if keys.is_empty() {
        return Some(());
    }
    *looks = looks.checked_sub(1)?;
    match rows.truth(level, n).value() {
        Some(true) => kept.add(keys),
        Some(false) => Some(()),
        None => {
            let half = level.checked_sub(1)?;
            look(rows, half, 2 * n, within, looks, kept)?;
            look(rows, half, 2 * n + 1, within, looks, kept)
        }
    }
}

/// The range so far.
struct One(Range<u32>);

impl One {
    /// None if the keys, which come after all previous ones, do not continue the previous range.
    fn add(&mut self, keys: Range<u32>) -> Option<()> {
        let goes_on = self.0.is_empty() || self.0.end == keys.start;
        let start = if self.0.is_empty() { keys.start } else { self.0.start };
        self.0 = start..keys.end;
        goes_on.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::HostTensor;
    use crate::base::tensor::Data;
    use crate::ir::cell::{self, Cell};
    use crate::ir::graph::{BinaryOp, CaptureId, Graph, Input, ModKind, NodeId, Op, UnaryOp};
    use crate::ir::random;

    fn mask(build: impl FnOnce(&mut Graph, NodeId, NodeId) -> NodeId) -> Mod {
        let mut graph = Graph::new();
        let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
        let root = build(&mut graph, q, kv);
        Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
    }

    fn load(g: &mut Graph, from: CaptureId, index: &[NodeId]) -> NodeId {
        g.add(Op::Load(from, index.iter().copied().collect()), None)
    }

    /// Every row against the interpreter; whether the mask is of the kind.
    fn check(mask: &Mod, q_len: usize, kv_len: usize) -> bool {
        let Some(found) = row_ranges(mask, 1, 2, Lengths::new(q_len, kv_len).unwrap()) else { return false };
        assert_eq!(found.len(), q_len);
        for (q, range) in found.iter().enumerate() {
            for kv in 0..kv_len {
                let cell = Cell { b: 1, h: 2, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
                let wanted = cell::eval(mask, &cell).as_bool();
                assert_eq!(range.contains(&(kv as u32)), wanted, "q {q} kv {kv}");
            }
        }
        true
    }

    #[test]
    fn rows_of_usual_masks_are_one_range() {
        let causal = |g: &mut Graph, q, kv| g.binary(BinaryOp::Ge, q, kv);
        assert!(check(&mask(causal), 150, 130));
        assert!(check(
            &mask(|g, q, kv| {
                let (distance, width) = (g.binary(BinaryOp::Sub, q, kv), g.int(20));
                let distance = g.unary(UnaryOp::Abs, distance);
                g.binary(BinaryOp::Lt, distance, width)
            }),
            150,
            130
        ));
        assert!(check(
            &mask(|g, q, kv| {
                let (prefix, length) = (causal(g, q, kv), g.int(40));
                let first = g.binary(BinaryOp::Lt, kv, length);
                g.binary(BinaryOp::Or, prefix, first)
            }),
            150,
            130
        ));
    }

    /// Documents of a batch entry, one after the other, and ranges that a tensor gives row by row.
    #[test]
    fn captured_tensors_may_say_where_ranges_end() {
        let ids: Vec<i64> = (0..3 * 200).map(|n| (n % 200 * (3 + n / 200)) / 97).collect();
        assert!(check(
            &mask(|g, q, kv| {
                let docs = g.add_capture("docs", HostTensor::new([3, 200], Data::I64(ids)).unwrap());
                let b = g.input(Input::B);
                let [left, right] = [q, kv].map(|at| load(g, docs, &[b, at]));
                let same = g.binary(BinaryOp::Eq, left, right);
                let causal = g.binary(BinaryOp::Ge, q, kv);
                g.binary(BinaryOp::And, causal, same)
            }),
            200,
            200
        ));
        // keys that a table keeps: no comparison says where they begin and end
        for kept in [37..91, 0..130, 64..65, 5..128] {
            assert!(check(
                &mask(|g, _, kv| {
                    let keys = (0..130).map(|n| u8::from(kept.contains(&n))).collect();
                    let keys = g.add_capture("keys", HostTensor::vector(Data::Bool(keys)));
                    load(g, keys, &[kv])
                }),
                20,
                130
            ));
        }
        let ends: Vec<i64> = (0..150).map(|n| n * 7919 % 131).collect();
        assert!(check(
            &mask(|g, q, kv| {
                let ends = g.add_capture("ends", HostTensor::vector(Data::I64(ends)));
                let end = load(g, ends, &[q]);
                g.binary(BinaryOp::Lt, kv, end)
            }),
            150,
            130
        ));
    }

    #[test]
    fn other_masks_are_told_apart() {
        assert!(!check(
            &mask(|g, q, kv| {
                let (distance, step, zero) = (g.binary(BinaryOp::Sub, q, kv), g.int(3), g.int(0));
                let rest = g.binary(BinaryOp::Mod, distance, step);
                g.binary(BinaryOp::Eq, rest, zero)
            }),
            150,
            130
        ));
        // a window, and the first keys too
        assert!(!check(
            &mask(|g, q, kv| {
                let (distance, width) = (g.binary(BinaryOp::Sub, q, kv), g.int(20));
                let distance = g.unary(UnaryOp::Abs, distance);
                let (window, sinks) = (g.binary(BinaryOp::Lt, distance, width), g.int(4));
                let first = g.binary(BinaryOp::Lt, kv, sinks);
                g.binary(BinaryOp::Or, window, first)
            }),
            150,
            130
        ));
        let kept = (0..40).filter(|seed| check(&random::mask(*seed, &random::Options::new(90, 70)), 90, 70)).count();
        assert!((1..40).contains(&kept), "{kept} of 40 random masks keep one range a row");
    }
}
