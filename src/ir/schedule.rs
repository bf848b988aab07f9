//! The order and the frequency of a node's computation: the hoisting that every emitter and evaluator shares.
//!
//! Invariant: a node's level covers its operands' levels, and within a level operands come before users. Must not know
//! what runs the result.

use super::graph::{Depends, Graph, Input, NodeId, Op};

/// How often a node changes, from never to with every score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Literals, uniforms and what follows from them: once a launch.
    Uniform,
    /// Depends on the batch entry or the head: once a (b, h).
    BatchHead,
    /// Depends on q_idx and perhaps b and h: once a row.
    Query,
    /// Depends on kv_idx and perhaps b and h: once a column.
    KeyValue,
    /// Depends on q_idx and kv_idx: once a cell.
    Cell,
    /// Depends on the score: once a cell, after the product.
    Score,
}

impl Level {
    /// All of them, in the order in which they are computed.
    pub const ALL: [Level; 6] =
        [Level::Uniform, Level::BatchHead, Level::Query, Level::KeyValue, Level::Cell, Level::Score];

    /// The level of a node with these dependencies.
    pub fn of(depends: Depends) -> Level {
        let on = |input| depends.on(input);
        if on(Input::Score) {
            return Level::Score;
        }
        match (on(Input::QIdx), on(Input::KvIdx)) {
            (true, true) => Level::Cell,
            (true, false) => Level::Query,
            (false, true) => Level::KeyValue,
            (false, false) if on(Input::B) || on(Input::H) => Level::BatchHead,
            (false, false) => Level::Uniform,
        }
    }
}

/// The nodes that some roots need, by level.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    levels: [Vec<NodeId>; 6],
    level_of: Vec<Option<Level>>,
}

impl Schedule {
    /// Groups what `roots` need. Inputs and literals are in the lists too, each at its own level.
    pub fn new(graph: &Graph, roots: &[NodeId]) -> Schedule {
        let depends = graph.depends();
        let mut schedule = Schedule { levels: Default::default(), level_of: vec![None; graph.nodes().len()] };
        for id in needed(graph, roots) {
            let level = Level::of(depends[id.0 as usize]);
            schedule.levels[level as usize].push(id);
            schedule.level_of[id.0 as usize] = Some(level);
        }
        schedule
    }

    /// The nodes of a level, operands before users.
    pub fn at(&self, level: Level) -> &[NodeId] {
        &self.levels[level as usize]
    }

    /// The level of a node; None when no root needs it.
    pub fn level_of(&self, id: NodeId) -> Option<Level> {
        self.level_of[id.0 as usize]
    }

    /// Number of nodes at a level that compute something (not inputs, literals or uniforms).
    pub fn work(&self, graph: &Graph, level: Level) -> usize {
        let computes = |op: &Op| !op.operands().is_empty();
        self.at(level).iter().filter(|id| computes(&graph.node(**id).op)).count()
    }
}

/// The nodes that some roots need, in the graph's own order.
pub fn needed(graph: &Graph, roots: &[NodeId]) -> Vec<NodeId> {
    let mut needed = vec![false; graph.nodes().len()];
    roots.iter().for_each(|root| needed[root.0 as usize] = true);
    for at in (0..needed.len()).rev() {
        if needed[at] {
            graph.nodes()[at].op.operands().iter().for_each(|o| needed[o.0 as usize] = true);
        }
    }
    (0..needed.len()).filter(|at| needed[*at]).map(|at| NodeId(at as u32)).collect()
}

/// The nodes that some roots need in the order in which a reader would evaluate them: left operand first, each just
/// before its first user.
pub fn post_order(graph: &Graph, roots: &[NodeId]) -> Vec<NodeId> {
    let mut out = Vec::new();
    let mut done = vec![false; graph.nodes().len()];
    // an explicit stack: a graph of tens of thousands of nodes may be a chain
    let mut stack: Vec<(NodeId, bool)> = roots.iter().rev().map(|root| (*root, false)).collect();
    while let Some((id, operands_done)) = stack.pop() {
        if done[id.0 as usize] {
            continue;
        }
        if operands_done {
            done[id.0 as usize] = true;
            out.push(id);
            continue;
        }
        stack.push((id, true));
        stack.extend(graph.node(id).op.operands().iter().rev().map(|o| (*o, false)));
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::ir::graph::BinaryOp;
    use crate::ir::schedule::*;

    #[test]
    fn nodes_are_grouped_by_what_they_depend_on() {
        let mut g = Graph::new();
        let (q, k, h) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.input(Input::H));
        let width = g.int(64);
        let (qb, kb) = (g.binary(BinaryOp::FloorDiv, q, width), g.binary(BinaryOp::FloorDiv, k, width));
        let shifted = g.binary(BinaryOp::Add, kb, h);
        let root = g.binary(BinaryOp::Ge, qb, shifted);
        let unused = g.binary(BinaryOp::Mul, q, k);
        let schedule = Schedule::new(&g, &[root]);
        assert_eq!(schedule.at(Level::Uniform), [width]);
        assert_eq!(schedule.at(Level::BatchHead), [h]);
        assert_eq!(schedule.at(Level::Query), [q, qb]);
        assert_eq!(schedule.at(Level::KeyValue), [k, kb, shifted]);
        assert_eq!(schedule.at(Level::Cell), [root]);
        assert_eq!(schedule.level_of(unused), None);
        assert_eq!(schedule.work(&g, Level::KeyValue), 2);
        assert_eq!(post_order(&g, &[root]), [q, width, qb, k, kb, h, shifted, root]);
    }
}
