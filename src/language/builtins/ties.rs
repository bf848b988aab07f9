//! Places of equal elements: sort, argsort and topk.
//!
//! Invariant: where PyTorch's CPU leaves the order of equal elements open, their places are left open too: reading them is
//! the refusal. Asked of PyTorch 2.15: lines of up to 16 elements are sorted stably, longer ones are not, and `topk` never
//! is. Equal infinities, which a mask has ruled out before, keep their first places with a warning. Must not know how
//! elements are compared.

use super::bind::{Bound, spend};
use super::tensor_compute::pair;
use crate::base::{Diagnostic, HostTensor};
use crate::language::eval::Context;
use crate::language::host::{self, Ties};
use crate::language::value::{Fault, Value};
use std::rc::Rc;

/// Lines up to this long are sorted stably whether asked or not.
const ALWAYS_STABLE: usize = 16;

/// `torch.sort` and `torch.argsort`.
pub(super) fn sorted(name: &str, t: &HostTensor, bound: &Bound, cx: &mut Context) -> Result<Value, Fault> {
    let (dim, descending) = (bound.int("dim")?.unwrap_or(-1), bound.flag("descending")?);
    let both = pair(cx, |budget| host::sort(t, dim, descending, budget))?;
    let stable = bound.flag("stable")? || longest_line(t, dim) <= ALWAYS_STABLE;
    let open = !stable && is_open(name, t, dim, usize::MAX, descending, cx)?;
    let hint = "write `stable=True`, which PyTorch and Maskloom order alike";
    match (name, open) {
        ("sort", false) => Ok(both),
        ("sort", true) => Ok(places_left_open(both, name, hint)),
        (_, false) => Ok(second(both)),
        (_, true) => Err(left_open(name, hint)),
    }
}

/// `torch.topk`.
pub(super) fn largest(t: &HostTensor, bound: &Bound, cx: &mut Context) -> Result<Value, Fault> {
    let (k, dim) = (bound.need_int("k")?, bound.int("dim")?.unwrap_or(-1));
    let largest = !bound.given("largest") || bound.flag("largest")?;
    let both = pair(cx, |budget| host::topk(t, k, dim, largest, budget))?;
    let first = usize::try_from(k).unwrap_or(0);
    if is_open("topk", t, dim, first, largest, cx)? {
        return Ok(places_left_open(both, "topk", "make the elements distinct, or take `torch.sort(x, stable=True)`"));
    }
    Ok(both)
}

/// Whether places are left open. Warns where only infinities are equal.
fn is_open(
    name: &str,
    t: &HostTensor,
    dim: i64,
    first: usize,
    descending: bool,
    cx: &mut Context,
) -> Result<bool, Fault> {
    let found = spend(cx, |budget| host::ties(t, dim, first, descending, budget))?;
    if found == Ties::Infinite {
        let message = format!("torch.{name} places equal infinities in an order that PyTorch leaves open");
        let warning = Diagnostic::warning("equal-infinities", message).at(cx.span, "the first ones are taken here");
        cx.warn(warning.hint("make sure that the mod drops the elements that are infinite"));
    }
    Ok(found == Ties::Open)
}

fn longest_line(t: &HostTensor, dim: i64) -> usize {
    let rank = t.shape().len() as i64;
    let at = if dim < 0 { dim + rank } else { dim };
    usize::try_from(at).ok().and_then(|at| t.shape().get(at)).copied().unwrap_or(1)
}

fn left_open(name: &str, hint: &str) -> Fault {
    Fault::unsupported(format!("torch.{name} of equal elements gives places that PyTorch leaves open")).hint(hint)
}

fn places_left_open(both: Value, name: &str, hint: &str) -> Value {
    let Value::Tuple(items) = &both else { return both };
    Value::tuple(vec![items.0[0].clone(), Value::Missing(Rc::new(left_open(name, hint)))])
}

fn second(both: Value) -> Value {
    let Value::Tuple(items) = &both else { return both };
    items.0[1].clone()
}
