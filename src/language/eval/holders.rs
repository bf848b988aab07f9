//! Who holds a symbolic value: the names of the calls that are running, and the containers that these hold.
//!
//! Invariant: counts every holder that the running text could read it from. Must not know why it is asked.

use super::Context;
use crate::language::graph::NodeId;
use crate::language::value::Value;

/// Containers within one another that are looked into.
const MAX_DEPTH: usize = 4;

fn is(value: &Value, nodes: &[NodeId]) -> bool {
    match value {
        Value::Sym(sym) => *nodes == [sym.node],
        Value::Array(array) => array.nodes == nodes,
        _ => false,
    }
}

fn count(value: &Value, nodes: &[NodeId], depth: usize) -> usize {
    if is(value, nodes) {
        return 1;
    }
    if depth == 0 {
        return 0;
    }
    let all = |items: &[Value]| items.iter().map(|v| count(v, nodes, depth - 1)).sum();
    let pairs = |pairs: &[(Value, Value)]| pairs.iter().map(|(_, v)| count(v, nodes, depth - 1)).sum();
    match value {
        Value::Tuple(items) => all(&items.0),
        Value::List(items) | Value::Set(items) => all(&items.borrow().0),
        Value::Dict(given) => pairs(&given.borrow().0),
        Value::Instance(object) => pairs(&object.attributes.borrow().0),
        _ => 0,
    }
}

impl Context<'_> {
    /// How many names and containers hold the value of these nodes.
    pub(crate) fn holders(&self, nodes: &[NodeId]) -> usize {
        self.frames.iter().flat_map(|f| f.names()).map(|(_, v)| count(&v, nodes, MAX_DEPTH)).sum()
    }

    /// Names that hold the value of these nodes get another; how many there were.
    pub(crate) fn rebind(&mut self, nodes: &[NodeId], to: &Value) -> usize {
        self.frames.iter().filter(|f| f.replace(|v| is(v, nodes), to)).count()
    }
}
