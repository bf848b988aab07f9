//! Looking a symbolic value up in a sorted captured tensor.
//!
//! Invariant: returns torch.searchsorted's result, for any sorted table. Must not know how the call was written.

use crate::base::HostTensor;
use crate::ir::graph::{BinaryOp, NodeId, Op, Ty};
use crate::python::machine::Context;
use crate::python::syntax::Name;
use crate::python::value::Fault;
use smallvec::smallvec;

/// Tables up to this long are counted through; longer ones are searched by halving.
const COUNTED: usize = 16;

impl Context<'_> {
    /// The number of elements of `table` before `x`: below it, or (`right`) not above it.
    pub(super) fn search(&mut self, table: &HostTensor, name: &Name, x: NodeId, right: bool) -> Result<NodeId, Fault> {
        if table.shape().len() != 1 {
            return Err(Fault::runtime_error(format!(
                "inside a mod a value is looked up in a 1-D tensor, not in shape {:?}",
                table.shape()
            ))
            .hint("index its leading dimensions first"));
        }
        let before = if right { BinaryOp::Le } else { BinaryOp::Lt };
        if table.numel() <= COUNTED {
            return self.count(table, x, before);
        }
        let capture = self.graph.add_capture(name, table.clone());
        let n = table.numel();
        let mut found = self.node(Op::Int(0))?;
        let mut step = n.next_power_of_two();
        while step > 0 {
            let by = self.node(Op::Int(step as i64))?;
            let next = self.two(BinaryOp::Add, found, by, Ty::Int)?;
            let end = self.node(Op::Int(n as i64))?;
            let inside = self.two(BinaryOp::Le, next, end, Ty::Int)?;
            let one = self.node(Op::Int(1))?;
            let last = self.two(BinaryOp::Sub, next, one, Ty::Int)?;
            // beyond the end the read gives the last element; `inside` decides
            let value = self.node(Op::Load(capture, smallvec![last]))?;
            let holds = self.emit_compare(before, value, x)?;
            let go = self.two(BinaryOp::And, inside, holds, Ty::Bool)?;
            found = self.choose(go, next, found)?;
            step /= 2;
        }
        Ok(found)
    }

    fn count(&mut self, table: &HostTensor, x: NodeId, before: BinaryOp) -> Result<NodeId, Fault> {
        let mut total = self.node(Op::Int(0))?;
        for at in 0..table.numel() {
            let value = self.element_of(table, at)?;
            let holds = self.two(before, value, x, Ty::Int)?;
            let one = self.cast(holds, Ty::Int)?;
            total = if at == 0 { one } else { self.two(BinaryOp::Add, total, one, Ty::Int)? };
        }
        Ok(total)
    }
}
