//! The cells in which two masks can differ: the region of an edit.
//!
//! Invariant: sound. A box for which `leaves` returns yes has the same cells in both masks. Layers that both masks
//! share are removed together with the layers that they hide, so that an edit of a layer changes only the cells where
//! that layer is visible. Must not know layers, documents or blocks.

use super::interval::{Cells, Program, Scratch};
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::graph::{BinaryOp, Graph, Mod, ModKind, NodeId, Op, Ty, UnaryOp};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Nested operations are compared part by part up to this depth; deeper ones count as different if the results differ.
const DEEPEST: usize = 64;

/// The difference between two masks; shared between threads.
#[derive(Debug)]
pub struct Change {
    /// True for cells in which the masks differ; None: nowhere.
    program: Option<Program>,
    /// The same as a graph.
    graph: Option<(Arc<Graph>, NodeId)>,
}

impl Change {
    /// The difference of two masks (None keeps everything).
    pub fn between(old: Option<&Mod>, new: Option<&Mod>) -> Change {
        let mut graph = Graph::new();
        let mut root = |of: Option<&Mod>| match of {
            Some(of) => graph.import(&of.graph, of.root, |_, _| None),
            None => graph.bool(true),
        };
        let (old, new) = (root(old), root(new));
        let root = Difference { graph: &mut graph, known: HashMap::new() }.of(old, new, 0);
        let nowhere = graph.node(root).op == Op::Bool(false);
        let graph = (!nowhere).then(|| (Arc::new(graph), root));
        Change { program: graph.clone().map(|(graph, root)| Program::of_graph(graph, root)), graph }
    }

    /// A mask that keeps the cells in which the two differ; None: nowhere.
    pub fn as_mask(&self) -> Option<Mod> {
        let (graph, root) = self.graph.as_ref()?;
        Some(Mod { kind: ModKind::Mask, graph: (**graph).clone(), root: *root, sources: Vec::new() })
    }

    /// Whether the masks are equal everywhere, according to their graphs.
    pub fn is_nowhere(&self) -> bool {
        self.program.is_none()
    }

    /// For asking about boxes; one a thread.
    pub fn ask(&self) -> Asked<'_> {
        Asked { of: self.program.as_ref().map(|program| (program, program.scratch())) }
    }
}

/// A change and the values of the last box.
pub struct Asked<'a> {
    of: Option<(&'a Program, Scratch)>,
}

impl Asked<'_> {
    /// Whether the change leaves a box as it was. No may be wrong, yes is not.
    pub fn leaves(&mut self, cells: &Cells) -> bool {
        let Some((program, scratch)) = &mut self.of else { return true };
        program.truth(cells, scratch).value() == Some(false)
    }
}

struct Difference<'g> {
    graph: &'g mut Graph,
    /// Pairs that were compared: graphs share nodes.
    known: HashMap<(NodeId, NodeId), NodeId>,
}

impl Difference<'_> {
    /// A node that is true for cells in which `a` and `b` differ.
    fn of(&mut self, a: NodeId, b: NodeId, depth: usize) -> NodeId {
        if a == b {
            return self.graph.bool(false);
        }
        if let Some(known) = self.known.get(&(a, b)) {
            return *known;
        }
        let found = self.by_parts(a, b, depth);
        self.known.insert((a, b), found);
        found
    }

    fn by_parts(&mut self, a: NodeId, b: NodeId, depth: usize) -> NodeId {
        if depth < DEEPEST {
            let parts = match (&self.graph.node(a).op, &self.graph.node(b).op) {
                (Op::Unary(UnaryOp::Not, x), Op::Unary(UnaryOp::Not, y)) => Some((None, *x, *y)),
                (Op::Where(c, x, y), Op::Where(d, z, w)) if c == d => Some((Some((*c, *y, *w)), *x, *z)),
                _ => None,
            };
            if let Some((other, x, y)) = parts {
                let first = self.of(x, y, depth + 1);
                let Some((condition, x, y)) = other else { return first };
                let second = self.of(x, y, depth + 1);
                return self.graph.add(Op::Where(condition, first, second), None);
            }
            if let Some(found) = self.of_tables(a, b) {
                return found;
            }
            for op in [BinaryOp::And, BinaryOp::Or] {
                if let Some(found) = self.of_chains(op, a, b, depth) {
                    return found;
                }
            }
        }
        self.graph.binary(BinaryOp::Xor, a, b)
    }

    /// The same of two chains of `and` or of `or` that share operands or have equally many.
    fn of_chains(&mut self, op: BinaryOp, a: NodeId, b: NodeId, depth: usize) -> Option<NodeId> {
        let (all_a, all_b) = (self.chain(op, a), self.chain(op, b));
        let without = |these: &Operands, those: &Operands| -> Operands {
            these.iter().copied().filter(|n| !those.contains(n)).collect()
        };
        let (only_a, only_b) = (without(&all_a, &all_b), without(&all_b, &all_a));
        let shared: Operands = all_a.iter().copied().filter(|n| all_b.contains(n)).collect();
        if shared.is_empty() && (only_a.len() == 1 || only_a.len() != only_b.len()) {
            return None;
        }
        let mut found = if only_a.len() == only_b.len() {
            let pairs: Operands = only_a.iter().zip(&only_b).map(|(a, b)| self.of(*a, *b, depth + 1)).collect();
            self.fold(BinaryOp::Or, &pairs)
        } else {
            let (a, b) = (self.fold(op, &only_a), self.fold(op, &only_b));
            self.graph.binary(BinaryOp::Xor, a, b)
        };
        // if a shared operand decides the chain, the others have no effect
        for operand in shared {
            let open = if op == BinaryOp::And { operand } else { self.graph.unary(UnaryOp::Not, operand) };
            found = self.graph.binary(BinaryOp::And, open, found);
        }
        Some(found)
    }

    /// The same of one place in two tables of bools: the table of their differences.
    fn of_tables(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let (Op::Load(x, at), Op::Load(y, same)) = (&self.graph.node(a).op, &self.graph.node(b).op) else {
            return None;
        };
        let (x, y) = (&self.graph.capture(*x).tensor, &self.graph.capture(*y).tensor);
        if at != same || x.shape() != y.shape() {
            return None;
        }
        let (Data::Bool(old), Data::Bool(new)) = (x.data(), y.data()) else { return None };
        let differs = old.iter().zip(new).map(|(a, b)| u8::from((*a != 0) != (*b != 0))).collect();
        let (table, at) = (HostTensor::new(x.shape(), Data::Bool(differs)).ok()?, at.clone());
        let table = self.graph.add_capture("change", table);
        Some(self.graph.add(Op::Load(table, at), None))
    }

    /// Operands of nested operations of one kind, each once, in order.
    fn chain(&self, op: BinaryOp, root: NodeId) -> Operands {
        let (mut out, mut stack) = (Operands::new(), vec![root]);
        while let Some(at) = stack.pop() {
            match self.graph.node(at).op {
                Op::Binary(found, a, b) if found == op && self.graph.ty(at) == Ty::Bool => stack.extend([b, a]),
                _ if out.len() < MOST && !out.contains(&at) => out.push(at),
                _ if out.contains(&at) => {}
                // a longer chain is compared as one
                _ => return smallvec::smallvec![root],
            }
        }
        out
    }

    fn fold(&mut self, op: BinaryOp, operands: &Operands) -> NodeId {
        match operands.split_first() {
            Some((first, rest)) => rest.iter().fold(*first, |all, one| self.graph.binary(op, all, *one)),
            None => self.graph.bool(op == BinaryOp::And),
        }
    }
}

type Operands = SmallVec<[NodeId; 8]>;

/// Operands of a chain that are compared one by one.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples::Rng;
    use crate::ir::cell::{Cell, eval};
    use crate::ir::passes::compose;
    use crate::ir::random::{self, Options};

    /// Both masks cell by cell, and every box of a coarse grid that the change leaves.
    fn check(name: &str, old: &Mod, new: &Mod, n: usize, rng: &mut Rng) -> usize {
        let change = Change::between(Some(old), Some(new));
        let mut asked = change.ask();
        let mut left = 0;
        for _ in 0..60 {
            let (q, kv) = (rng.below(n), rng.below(n));
            let (q, kv) = (q..q + 1 + rng.below(n - q), kv..kv + 1 + rng.below(n - kv));
            if !asked.leaves(&Cells::new(0, 0, q.clone(), kv.clone())) {
                continue;
            }
            left += q.len() * kv.len();
            for (q, k) in q.flat_map(|q| kv.clone().map(move |k| (q, k))) {
                let cell = Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: k as i64, score: 0.0 };
                assert_eq!(eval(old, &cell).as_bool(), eval(new, &cell).as_bool(), "{name}: {q},{k}");
            }
        }
        left
    }

    fn joined(parts: &[Mod], how: &[usize]) -> Mod {
        parts[1..].iter().zip(how).fold(parts[0].clone(), |below, (layer, how)| match how {
            0 => compose::and_masks(&[&below, layer]),
            1 => compose::or_masks(&[&below, layer]),
            _ => compose::and_not(&below, layer),
        })
    }

    #[test]
    fn what_a_change_leaves_is_the_same() {
        let mut rng = Rng::new(77);
        let mut left = 0;
        for seed in 0..60 {
            let n = 8 + rng.below(50);
            let options = Options::new(n, n);
            let mask = |seed: u64| random::mask(seed, &options);
            let mut parts: Vec<Mod> = (0..1 + rng.below(5)).map(|i| mask(seed * 100 + i as u64)).collect();
            let mut how: Vec<usize> = parts[1..].iter().map(|_| rng.below(3)).collect();
            let old = joined(&parts, &how);
            let at = rng.below(parts.len());
            match rng.below(4) {
                0 if parts.len() > 1 => {
                    parts.remove(at);
                    how.remove(at.min(how.len() - 1));
                }
                1 => {
                    parts.insert(at, mask(seed * 100 + 50));
                    how.insert(at.min(how.len()), rng.below(3));
                }
                _ => parts[at] = mask(seed * 100 + 60),
            }
            left += check(&format!("seed {seed}"), &old, &joined(&parts, &how), n, &mut rng);
        }
        assert!(left > 1000, "{left}");
    }

    #[test]
    fn painted_tables_differ_where_their_cells_do() {
        use crate::ir::graph::{Input, ModKind};
        let mut rng = Rng::new(5);
        for _ in 0..20 {
            let (cells, cell) = (4 + rng.below(8), 1 + rng.below(5));
            let mut kept: Vec<u8> = (0..cells * cells).map(|_| rng.below(2) as u8).collect();
            let table = |kept: &[u8]| {
                let mut graph = Graph::new();
                let tensor = HostTensor::new([cells, cells], Data::Bool(kept.to_vec())).unwrap();
                let table = graph.add_capture("painted", tensor);
                let size = graph.int(cell as i64);
                let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
                let at = [q, kv].map(|i| graph.binary(BinaryOp::FloorDiv, i, size));
                let root = graph.add(Op::Load(table, SmallVec::from_slice(&at)), None);
                Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
            };
            let old = table(&kept);
            let at = rng.below(kept.len());
            kept[at] ^= 1;
            let new = table(&kept);
            check("painted", &old, &new, cells * cell, &mut rng);
            // all but the one cell is left
            let (row, col) = (at / cells * cell, at % cells * cell);
            let change = Change::between(Some(&old), Some(&new));
            let mut asked = change.ask();
            let all = 0..cells * cell;
            assert!(row == 0 || asked.leaves(&Cells::new(0, 0, 0..row, all.clone())));
            assert!(row + cell == all.end || asked.leaves(&Cells::new(0, 0, row + cell..all.end, all.clone())));
            assert!(!asked.leaves(&Cells::cell(0, 0, row, col)));
        }
    }

    #[test]
    fn a_moved_window_touches_its_edge_alone() {
        use crate::analysis::examples::Builder;
        let window = |w: i64| {
            let mut g = Builder::new();
            let (q, k) = (g.q, g.k);
            let (causal, d) = (g.ge(q, k), g.distance());
            let near = g.below(d, w);
            let root = g.and(causal, near);
            g.mask(root)
        };
        let change = Change::between(Some(&window(100)), Some(&window(110)));
        let mut asked = change.ask();
        assert!(asked.leaves(&Cells::new(0, 0, 1000..1050, 951..1050)));
        assert!(asked.leaves(&Cells::new(0, 0, 1000..1050, 0..890)));
        assert!(!asked.leaves(&Cells::new(0, 0, 1000..1050, 890..951)));
        assert!(Change::between(Some(&window(5)), Some(&window(5))).is_nowhere());
    }
}
