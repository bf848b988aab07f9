//! Methods that write into a value that exists only in the mod: `(kv_idx - q_idx).abs_()`, `d.clamp_(max=5)`.
//!
//! Invariant: every holder of the value sees the new one, as in PyTorch; if the holders are unknown, there is a fault.
//! Must not know what the methods compute.

use crate::base::Diagnostic;
use crate::ir::graph::{Depends, Input, NodeId, Op};
use crate::python::machine::Context;
use crate::python::tensors::can_cast;
use crate::python::value::{Args, Fault, Value};

/// `x.fill_(v)`, `x.copy_(v)`, `x.zero_()`: the value that x gets.
pub(super) fn filled_with(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let value = match name {
        "zero" => Value::Int(0),
        _ => args.need(name, 1, "value")?.clone(),
    };
    cx.elementwise(&[&x, &value], |_, n| Ok(n[1]))
}

/// The nodes of a symbolic value, which identify it.
fn nodes(value: &Value) -> Option<Vec<NodeId>> {
    match value {
        Value::Sym(sym) => Some(vec![sym.node]),
        Value::Array(array) => Some(array.nodes.clone()),
        _ => None,
    }
}

impl Context<'_> {
    /// After `receiver.method_(...)` gave `changed`: the receiver's holders get it.
    pub(super) fn written_into(&mut self, receiver: &Value, changed: Value, method: &str) -> Result<Value, Fault> {
        let changed = self.in_dtype_of(receiver, changed, method)?;
        self.same_indices(receiver, &changed, method)?;
        let Some(own) = nodes(receiver) else {
            // a captured tensor read in part may be a view of it, which a mod must not change
            return Err(
                python::diagnose::write_in_mod().hint(format!("write `x = x.{}(...)`", method.trim_end_matches('_')))
            );
        };
        if own.iter().any(|n| matches!(self.graph.node(*n).op, Op::Input(_))) {
            if own.len() > 1 {
                return Err(python::diagnose::write_in_mod()
                    .hint(format!("write `x = x.{}(...)`", method.trim_end_matches('_'))));
            }
            let held = self.rebind(receiver, &changed);
            if held > 0 {
                let warning = Diagnostic::warning(
                    "writes-index",
                    "PyTorch writes into the index itself here: all later reads see the new value",
                );
                let place = self.place();
                self.warn(warning.at(place, "").hint("create a new value: `n = n.abs()` instead of `n.abs_()`"));
            }
            return Ok(changed);
        }
        let held = self.holders(receiver);
        if self.rebind(receiver, &changed) < held {
            let message = format!("`{method}` writes into a value inside a container");
            return Err(Fault::unsupported(message)
                .hint(format!("create a new value: `x = x.{}(...)`", method.trim_end_matches('_'))));
        }
        Ok(changed)
    }

    /// A mod runs over all cells at once: what differs from cell to cell does not fit into a value that does not.
    pub(crate) fn same_indices(&mut self, receiver: &Value, changed: &Value, method: &str) -> Result<(), Fault> {
        // all nodes are walked: a long text of such statements comes to its limit
        self.charge_steps(self.graph.nodes().len() as u64 / 16)?;
        let depends = self.graph.depends();
        // every cell has its own score
        let of = |d: Depends| if d.on(Input::Score) { u8::MAX } else { d.0 };
        let bits =
            |value: &Value| nodes(value).unwrap_or_default().iter().fold(0, |all, n| all | of(depends[n.0 as usize]));
        // a value that is the same in all cells may have been created from one that differs: `torch.zeros_like(q - k)`
        let reported = matches!(receiver, Value::Tensor(_)) || bits(receiver) != 0;
        if reported && bits(changed) & !bits(receiver) != 0 {
            let message = format!(
                "vmap: `{method}` writes a value that differs from cell to cell into a value that differs in fewer indices"
            );
            let plain = method.trim_end_matches('_');
            return Err(Fault::runtime_error(message).hint(format!("create a new value: `x = x.{plain}(...)`")));
        }
        Ok(())
    }

    /// The result as the receiver's dtype and shape, which writing in place keeps.
    pub(crate) fn in_dtype_of(&mut self, receiver: &Value, changed: Value, method: &str) -> Result<Value, Fault> {
        let shapes = (self.symbolic_shape(receiver), self.symbolic_shape(&changed));
        if shapes.0 != shapes.1 {
            return Err(Fault::runtime_error(format!(
                "`{method}`: a result of shape {:?} does not fit into a tensor of shape {:?}",
                shapes.1, shapes.0
            )));
        }
        let dtype = |cx: &mut Self, value: &Value| match cx.symbolic_attribute(value, "dtype") {
            Some(Value::DType(dtype)) => Some(dtype),
            _ => None,
        };
        match (dtype(self, receiver), dtype(self, &changed)) {
            (Some(own), Some(new)) if own != new => {
                // fill_ and copy_ convert; arithmetic must fit
                if !can_cast(new, own) && !matches!(method, "fill_" | "copy_" | "zero_") {
                    let (new, own) = (new.torch_name(), own.torch_name());
                    return Err(Fault::runtime_error(format!(
                        "result type {new} can't be cast to the desired output type {own}"
                    ))
                    .hint(format!("create a new value: `x = x.{}(...)`", method.trim_end_matches('_'))));
                }
                self.symbolic_method(&changed, "to", &Args::of(vec![Value::DType(own)]))
            }
            _ => Ok(changed),
        }
    }
}
