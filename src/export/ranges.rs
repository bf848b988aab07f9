//! The possible values of captured tensors' indices on a canvas, so that printed reads are clamped only if they can be
//! outside their tensor.
//!
//! Invariant: sound, by interval analysis over the whole canvas. Must not know text.

use crate::analysis::interval::{Cells, Program, Value};
use crate::ir::graph::{Mod, NodeId, Op};
use crate::ir::schedule;
use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::Arc;

/// Range of every index that the mod reads a captured tensor at.
pub(super) fn index_ranges(of: &Mod, problem: &Problem) -> HashMap<NodeId, (i64, i64)> {
    let last = |n: usize| (0, n as i64 - 1);
    let cells =
        Cells { b: last(problem.batch), h: last(problem.heads), q: last(problem.q_len), kv: last(problem.kv_len) };
    let graph = Arc::new(of.graph.clone());
    let mut out = HashMap::new();
    for id in schedule::needed(&graph, &[of.root]) {
        let Op::Load(_, index) = &graph.node(id).op else { continue };
        for at in index {
            out.entry(*at).or_insert_with(|| {
                let program = Program::of_graph(Arc::clone(&graph), *at);
                match program.evaluate(&cells, &mut program.scratch()) {
                    Value::Int(range) => (range.lo, range.hi),
                    _ => (i64::MIN, i64::MAX),
                }
            });
        }
    }
    out
}
