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

    /// The differences of two tables are those of their cells only where both are read at one place and have one shape.
    #[test]
    fn tables_that_are_read_at_other_places_are_other_masks() {
        use crate::ir::graph::Input;
        let table = |kept: Vec<u8>, shape: [usize; 2], at: [Input; 2]| {
            let mut graph = Graph::new();
            let table = graph.add_capture("kept", HostTensor::new(shape, Data::Bool(kept)).unwrap());
            let at = at.map(|input| graph.input(input));
            let root = graph.add(Op::Load(table, SmallVec::from_slice(&at)), None);
            Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
        };
        let (rows, columns) = ([Input::QIdx, Input::KvIdx], [Input::KvIdx, Input::QIdx]);
        // keys up to the query; queries up to the key
        let kept: Vec<u8> = (0..36).map(|n| u8::from(n % 6 <= n / 6)).collect();
        let mut rng = Rng::new(9);
        let changes = [
            (table(kept.clone(), [6, 6], rows), table(kept.clone(), [6, 6], columns)),
            (table(kept.clone(), [6, 6], rows), table(kept.clone(), [4, 9], rows)),
            (table(kept.clone(), [6, 6], rows), table(kept[..30].to_vec(), [5, 6], rows)),
        ];
        for (old, new) in &changes {
            assert!(!Change::between(Some(old), Some(new)).is_nowhere());
            check("tables", old, new, 6, &mut rng);
        }
        // a true that is stored as another number is true
        let same = table(kept.iter().map(|k| 5 * k).collect(), [6, 6], rows);
        let change = Change::between(Some(&table(kept, [6, 6], rows)), Some(&same));
        assert!(change.ask().leaves(&Cells::new(0, 0, 0..6, 0..6)));
    }

    /// What the layers above or beside an edit say of a box counts for nothing where the edit leaves the box.
    #[test]
    fn an_edit_below_other_operations_touches_its_own_cells_alone() {
        use crate::analysis::examples::Builder;
        // whether the distance is below 100 or 110, beside the causal edge; inside of what `join` does with both
        let made = |width: i64, join: &dyn Fn(&mut Builder, NodeId, NodeId) -> NodeId| {
            let mut g = Builder::new();
            let (causal, distance) = (g.causal(), g.distance());
            let near = g.below(distance, width);
            let root = join(&mut g, causal, near);
            g.mask(root)
        };
        // the diagonal and the cells behind the edge are open in themselves, and the same in both
        let (edge, changed) = (Cells::new(0, 0, 1000..1050, 1000..1050), Cells::new(0, 0, 1000..1050, 890..951));
        let add = |g: &mut Builder, op| g.graph.add(op, None);
        type Join<'a> = &'a dyn Fn(&mut Builder, NodeId, NodeId) -> NodeId;
        let joins: [Join; 6] = [
            &|g, causal, near| g.and(causal, near),
            &|g, _, near| {
                let (far, later) = (g.not(near), g.lt(g.q, g.k));
                g.or(later, far)
            },
            &|g, causal, near| {
                let both = g.and(causal, near);
                add(g, Op::Unary(UnaryOp::Not, both))
            },
            &|g, causal, near| {
                let kept = g.and(causal, near);
                let (first, second) = (g.below(g.q, 1020), g.below(g.k, 1020));
                add(g, Op::Where(first, kept, second))
            },
            &|g, causal, near| {
                let kept = g.and(causal, near);
                let (first, second) = (g.below(g.q, 1020), g.below(g.k, 1020));
                add(g, Op::Where(first, second, kept))
            },
            &|g, causal, near| {
                let (odd, far) = (g.rem_by(g.k, 2), g.not(near));
                let odd = g.at_most(odd, 0);
                let some = g.or(odd, far);
                let all = g.and(causal, some);
                add(g, Op::Unary(UnaryOp::Not, all))
            },
        ];
        for (at, join) in joins.into_iter().enumerate() {
            let (old, new) = (made(100, join), made(110, join));
            let change = Change::between(Some(&old), Some(&new));
            let mut asked = change.ask();
            assert!(asked.leaves(&edge), "{at}");
            assert!(!asked.leaves(&changed), "{at}");
            check("joined", &made(10, join), &made(12, join), 60, &mut Rng::new(at as u64));
        }
        // other conditions are other masks
        let chosen = |limit: i64| {
            let mut g = Builder::new();
            let (first, causal, distance) = (g.below(g.q, limit), g.causal(), g.distance());
            let near = g.below(distance, 5);
            let root = g.graph.add(Op::Where(first, causal, near), None);
            g.mask(root)
        };
        check("other conditions", &chosen(20), &chosen(30), 60, &mut Rng::new(3));
        assert!(!Change::between(Some(&chosen(20)), Some(&chosen(30))).ask().leaves(&Cells::new(0, 0, 20..30, 0..60)));
    }
}
