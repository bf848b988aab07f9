//! The order of equal elements: sort, argsort and topk.
//!
//! Invariant: if PyTorch's CPU does not define the order of equal elements, their positions are undefined here too:
//! reading them is refused. Observed in PyTorch 2.15: lines of up to 16 elements are sorted stably, longer ones are
//! not, and `topk` never is. Equal infinities, which a mask has excluded before, keep their first positions with a
//! warning. Must not know how elements are compared.

use super::bind::{Bound, spend};
use crate::base::{Diagnostic, HostTensor};
use crate::python::machine::Context;
use crate::python::tensors::{self, Ties};
use crate::python::value::{Fault, Value};
use std::rc::Rc;

/// Lines up to this long are sorted stably whether asked or not.
const ALWAYS_STABLE: usize = 16;

/// `torch.sort` and `torch.argsort`.
pub(super) fn sorted(name: &str, t: &HostTensor, bound: &Bound, cx: &mut Context) -> Result<Value, Fault> {
    let (dim, descending) = (bound.int("dim")?.unwrap_or(-1), bound.flag("descending")?);
    let sorted = spend(cx, |budget| tensors::sort(t, dim, descending, budget))?;
    let stable = bound.flag("stable")? || longest_line(t, dim) <= ALWAYS_STABLE;
    let places = places(name, sorted.places, if stable { Ties::None } else { sorted.ties }, cx);
    match (name, places) {
        ("sort", places) => Ok(Value::tuple(vec![Value::tensor(sorted.values), places])),
        (_, Value::Missing(fault)) => Err(Fault::clone(&fault)),
        (_, places) => Ok(places),
    }
}

/// `torch.topk`.
pub(super) fn largest(t: &HostTensor, bound: &Bound, cx: &mut Context) -> Result<Value, Fault> {
    let (k, dim) = (bound.need_int("k")?, bound.int("dim")?.unwrap_or(-1));
    let largest = !bound.given("largest") || bound.flag("largest")?;
    let top = spend(cx, |budget| tensors::topk(t, k, dim, largest, budget))?;
    let places = places("topk", top.places, top.ties, cx);
    Ok(Value::tuple(vec![Value::tensor(top.values), places]))
}

/// Places, or why they are left open. Warns where only infinities are equal.
fn places(name: &str, places: HostTensor, ties: Ties, cx: &mut Context) -> Value {
    if ties == Ties::Open {
        let hint = match name {
            "topk" => "make the elements distinct, or use `torch.sort(x, stable=True)`",
            _ => "write `stable=True`, which has one defined order",
        };
        let message = format!("torch.{name} of equal elements: PyTorch does not define their order");
        return Value::Missing(Rc::new(Fault::unsupported(message).hint(hint)));
    }
    if ties == Ties::Infinite {
        let message = format!("torch.{name} of equal infinities: PyTorch does not define their order");
        let warning = Diagnostic::warning("equal-infinities", message).at(cx.span, "Maskloom takes the first ones");
        cx.warn(warning.hint("make sure that the mod drops the elements that are infinite"));
    }
    Value::tensor(places)
}

fn longest_line(t: &HostTensor, dim: i64) -> usize {
    let rank = t.shape().len() as i64;
    let at = if dim < 0 { dim + rank } else { dim };
    usize::try_from(at).ok().and_then(|at| t.shape().get(at)).copied().unwrap_or(1)
}
