//! A block mask of lists without a mask_mod: what older releases of PyTorch take it for.
//!
//! Invariant: told only where the lists leave out blocks, with their number; a mask that keeps every block means the same in every
//! release. Must not know how the lists were read.

use crate::base::{Diagnostic, Span};
use crate::python::value::{Pairs, Value};

/// A warning if the lists alone say which cells are kept.
pub(super) fn alone(attributes: &Pairs, place: Span) -> Option<Diagnostic> {
    let trivial = match attributes.named("mask_mod")? {
        Value::None => true,
        Value::Builtin(name) => &*name == "flex.noop_mask",
        _ => false,
    };
    let count = |name: &str| attributes.named(name)?.as_int();
    let (blocks, left_out) = (count("_blocks")?, count("_left_out")?);
    let message = format!(
        "no mask_mod is beside these lists, which leave out {left_out} of {blocks} blocks: before PyTorch 2.15 BACKEND=\"FLASH\" takes \
         that for no mask and attends to every key"
    );
    let warning = Diagnostic::warning("lists-without-mod", message).at(place, "").hint(
        "PyTorch 2.15 computes the listed blocks alone (pytorch#188484); before it pass a mask_mod that reads an index, which keeps the \
         same cells: `mask_mod=lambda b, h, q_idx, kv_idx: kv_idx >= 0`, or take BACKEND=\"TRITON\"",
    );
    (trivial && left_out > 0).then_some(warning)
}
