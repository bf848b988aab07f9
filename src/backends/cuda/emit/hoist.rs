//! The values of the mods that are computed ahead of the loop over cells: once per head, per row, per column.
//!
//! Invariant: a hoisted value depends only on its holder's indices, is read at another level, and costs more than the
//! register that holds it. Must not know CUDA's text.

use crate::ir::graph::{Graph, NodeId, Op, Ty};
use crate::ir::schedule::{Level, Schedule};

/// Who keeps a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// Batch entry and head: once a tile of work.
    Head,
    /// q_idx: once a row, before the loop over kv tiles.
    Row,
    /// kv_idx: once a column of a tile, for all rows of a thread.
    Column,
}

/// Words that a holder keeps at most. A thread has two rows or more, and its registers are full of scores.
const MOST_WORDS: usize = 4;

/// From this cost on a value is worth a register: a division or a read, not additions and comparisons.
const COSTLY: u32 = 8;

impl Holder {
    /// All of them; each may read the values of `Head`.
    pub(crate) const ALL: [Holder; 3] = [Holder::Head, Holder::Row, Holder::Column];

    fn of(level: Level) -> Option<Holder> {
        match level {
            Level::Uniform | Level::BatchHead => Some(Holder::Head),
            Level::Query => Some(Holder::Row),
            Level::KeyValue => Some(Holder::Column),
            Level::Cell | Level::Score => None,
        }
    }
}

/// The values that holders keep.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    holder_of: Vec<Option<Holder>>,
}

impl Held {
    /// Chooses among what `roots` need: the costliest values of each holder that others read.
    pub(crate) fn new(graph: &Graph, schedule: &Schedule, roots: &[NodeId]) -> Held {
        let holder = |id: NodeId| schedule.level_of(id).and_then(Holder::of);
        let mut cost = vec![0u32; graph.nodes().len()];
        let mut read_elsewhere = vec![false; graph.nodes().len()];
        roots.iter().for_each(|root| read_elsewhere[root.0 as usize] = true);
        for level in Level::ALL {
            for id in schedule.at(level) {
                let op = &graph.node(*id).op;
                let same = op.operands().into_iter().filter(|o| holder(*o) == holder(*id));
                cost[id.0 as usize] = same.fold(own_cost(graph, op), |sum, o| sum.saturating_add(cost[o.0 as usize]));
                for operand in op.operands().into_iter().filter(|o| holder(*o) != holder(*id)) {
                    read_elsewhere[operand.0 as usize] = true;
                }
            }
        }
        let mut held = Held { holder_of: vec![None; graph.nodes().len()] };
        for of in Holder::ALL {
            let mut worth: Vec<NodeId> = (0..cost.len() as u32)
                .map(NodeId)
                .filter(|id| holder(*id) == Some(of) && cost[id.0 as usize] >= COSTLY)
                .filter(|id| read_elsewhere[id.0 as usize])
                .collect();
            worth.sort_by_key(|id| std::cmp::Reverse(cost[id.0 as usize]));
            worth.iter().take(MOST_WORDS).for_each(|id| held.holder_of[id.0 as usize] = Some(of));
        }
        held
    }

    /// The holder of a value; None if it is computed in the cell.
    pub(crate) fn holder(&self, id: NodeId) -> Option<Holder> {
        self.holder_of[id.0 as usize]
    }

    /// The values of a holder, in the graph's order.
    pub(crate) fn of(&self, holder: Holder) -> Vec<NodeId> {
        let ids = (0..self.holder_of.len() as u32).map(NodeId);
        ids.filter(|id| self.holder(*id) == Some(holder)).collect()
    }
}

/// The cost of a root per cell, with the values that no holder keeps. In instructions, approximately.
pub(crate) fn weight(graph: &Graph, root: NodeId) -> u32 {
    let held = Held::new(graph, &Schedule::new(graph, &[root]), &[root]);
    let (mut seen, mut stack, mut sum) = (vec![false; graph.nodes().len()], vec![root], 0u32);
    while let Some(id) = stack.pop() {
        if held.holder(id).is_none() && !std::mem::replace(&mut seen[id.0 as usize], true) {
            let op = &graph.node(id).op;
            sum = sum.saturating_add(own_cost(graph, op));
            stack.extend(op.operands());
        }
    }
    sum
}

/// Roughly how many instructions an operation takes.
pub(crate) fn own_cost(graph: &Graph, op: &Op) -> u32 {
    match op {
        Op::Input(_) | Op::Bool(_) | Op::Int(_) | Op::Float(_) | Op::UniformInt(_) | Op::UniformFloat(_) => 0,
        Op::Load(..) => 20,
        Op::Unary(op, _) => op.cost(),
        Op::Binary(op, a, b) => match graph.node(*b).op {
            // a shift or a mask
            Op::Int(n) if op.row().divides && graph.ty(*a) == Ty::Int && n > 0 && n.count_ones() == 1 => 1,
            _ => op.row().cost,
        },
        Op::Where(..) => 1,
    }
}
