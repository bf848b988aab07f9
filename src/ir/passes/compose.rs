//! Combines mods: and, or, not, chained scores.
//!
//! Invariant: the result is built on the merged graphs of the operands, with spans renumbered into the merged sources.
//! It is not simplified here. Must not know documents.

use crate::base::{Source, SourceId, Span};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, UnaryOp};
use crate::ir::schedule;

/// Where every mask keeps; everywhere for no masks, as `and_masks()`.
pub fn and_masks(masks: &[&Mod]) -> Mod {
    fold_masks(masks, BinaryOp::And, true)
}

/// Where any mask keeps; nowhere for no masks, as `or_masks()`.
pub fn or_masks(masks: &[&Mod]) -> Mod {
    fold_masks(masks, BinaryOp::Or, false)
}

/// Where `a` keeps and `b` does not.
pub fn and_not(a: &Mod, b: &Mod) -> Mod {
    let mut merge = Merge::default();
    let a = merge.import(a, None);
    let b = merge.import(b, None);
    let b = merge.graph.unary(UnaryOp::Not, b);
    let root = merge.graph.binary(BinaryOp::And, a, b);
    merge.finish(ModKind::Mask, root)
}

/// Where the mask does not keep.
pub fn not(mask: &Mod) -> Mod {
    let mut merge = Merge::default();
    let a = merge.import(mask, None);
    let root = merge.graph.unary(UnaryOp::Not, a);
    merge.finish(ModKind::Mask, root)
}

/// The mask that keeps everything (`noop_mask`), or nothing.
pub fn constant_mask(keep: bool) -> Mod {
    let mut merge = Merge::default();
    let root = merge.graph.bool(keep);
    merge.finish(ModKind::Mask, root)
}

/// The scores one after the other: each reads what the one before gave. The identity for no mods.
pub fn chain_scores(scores: &[&Mod]) -> Mod {
    let mut merge = Merge::default();
    let start = merge.graph.input(Input::Score);
    let root = scores.iter().fold(start, |score, next| merge.import(next, Some(score)));
    merge.finish(ModKind::Score, root)
}

fn fold_masks(masks: &[&Mod], op: BinaryOp, empty: bool) -> Mod {
    let mut merge = Merge::default();
    let parts: Vec<NodeId> = masks.iter().map(|mask| merge.import(mask, None)).collect();
    let root = match parts.split_first() {
        Some((first, rest)) => rest.iter().fold(*first, |all, part| merge.graph.binary(op, all, *part)),
        None => merge.graph.bool(empty),
    };
    merge.finish(ModKind::Mask, root)
}

/// Graphs and sources being merged.
#[derive(Default)]
pub(crate) struct Merge {
    pub(crate) graph: Graph,
    sources: Vec<Source>,
}

impl Merge {
    /// Copies the nodes that a mod's result needs; `score` replaces its Score input.
    pub(crate) fn import(&mut self, from: &Mod, score: Option<NodeId>) -> NodeId {
        let sources: Vec<SourceId> = from.sources.iter().map(|s| self.source(s)).collect();
        let renumber = |span: Span| Some(Span { source: *sources.get(span.source.0 as usize)?, ..span });
        let needed = schedule::needed(&from.graph, &[from.root]);
        let map = self.graph.rewrite(&from.graph, needed, |graph, id, op| match (op, score) {
            (Op::Input(Input::Score), Some(score)) => score,
            (op, _) => graph.add(op, from.graph.node(id).span.and_then(renumber)),
        });
        map[from.root.0 as usize]
    }

    /// The merged mod.
    pub(crate) fn finish(self, kind: ModKind, root: NodeId) -> Mod {
        debug_assert_eq!(self.graph.verify(), Ok(()));
        Mod { kind, graph: self.graph, root, sources: self.sources }
    }

    fn source(&mut self, source: &Source) -> SourceId {
        let at = self.sources.iter().position(|s| s == source).unwrap_or_else(|| {
            self.sources.push(source.clone());
            self.sources.len() - 1
        });
        SourceId(at as u32)
    }
}

#[cfg(test)]
mod tests {
    use crate::base::HostTensor;
    use crate::base::tensor::Data;
    use crate::ir::cell::{Cell, Value, eval};
    use crate::ir::passes::compose::*;
    use smallvec::smallvec;

    fn compare(op: BinaryOp, source: &str) -> Mod {
        let mut graph = Graph::new();
        let (q, k) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
        let root = graph.add(Op::Binary(op, q, k), Some(Span::new(SourceId(0), 0, 6)));
        Mod { kind: ModKind::Mask, graph, root, sources: vec![Source::new(source, "q >= k")] }
    }

    fn keeps(mask: &Mod, q_idx: i64, kv_idx: i64) -> bool {
        eval(mask, &Cell { q_idx, kv_idx, ..Cell::default() }).as_bool()
    }

    #[test]
    fn masks_combine_cell_by_cell() {
        let (ge, ne) = (compare(BinaryOp::Ge, "a.py"), compare(BinaryOp::Ne, "b.py"));
        for (q, k) in [(0, 0), (0, 1), (1, 0)] {
            assert_eq!(keeps(&and_masks(&[&ge, &ne]), q, k), q > k);
            assert!(keeps(&or_masks(&[&ge, &ne]), q, k));
            assert_eq!(keeps(&and_not(&ge, &ne), q, k), q == k);
            assert_eq!(keeps(&not(&ge), q, k), q < k);
            assert!(
                keeps(&and_masks(&[]), q, k) && !keeps(&or_masks(&[]), q, k) && !keeps(&constant_mask(false), q, k)
            );
        }
    }

    #[test]
    fn spans_point_into_the_merged_sources() {
        let both = and_masks(&[&compare(BinaryOp::Ge, "a.py"), &compare(BinaryOp::Ne, "b.py")]);
        assert_eq!(both.sources.len(), 2);
        let Op::Binary(BinaryOp::And, a, b) = both.graph.node(both.root).op else { panic!("not an and") };
        let source = |id| both.sources[both.graph.node(id).span.expect("span").source.0 as usize].name.clone();
        assert_eq!((source(a), source(b)), ("a.py".into(), "b.py".into()));
        let same = and_masks(&[&compare(BinaryOp::Ge, "a.py"), &compare(BinaryOp::Ge, "a.py")]);
        assert_eq!(same.sources.len(), 1);
    }

    #[test]
    fn a_chain_feeds_each_score_to_the_next() {
        let score = |op, value| {
            let mut graph = Graph::new();
            let (score, value) = (graph.input(Input::Score), graph.float(value));
            let root = graph.binary(op, score, value);
            Mod { kind: ModKind::Score, graph, root, sources: Vec::new() }
        };
        let chain = chain_scores(&[&score(BinaryOp::Add, 3.0), &score(BinaryOp::Mul, 2.0)]);
        assert_eq!(eval(&chain, &Cell { score: 1.0, ..Cell::default() }), Value::Float(8.0));
        assert_eq!(eval(&chain_scores(&[]), &Cell { score: 1.0, ..Cell::default() }), Value::Float(1.0));
    }

    #[test]
    fn captures_of_one_name_stay_apart() {
        let load = |values: Vec<i32>| {
            let mut graph = Graph::new();
            let k = graph.input(Input::KvIdx);
            let table = graph.add_capture("t", HostTensor::vector(Data::I32(values)));
            let read = graph.add(Op::Load(table, smallvec![k]), None);
            let root = graph.unary(UnaryOp::ToBool, read);
            Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
        };
        let both = and_masks(&[&load(vec![0, 1, 1]), &load(vec![1, 1, 0])]);
        assert_eq!(both.graph.captures().iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["t", "t_2"]);
        assert_eq!([0, 1, 2].map(|k| keeps(&both, 0, k)), [false, true, false]);
    }
}
