//! What names of Python and PyTorch mean: which part of the tracer answers a call, an attribute, an operator.
//!
//! Invariant: every call ends in one of four tables, asked in this order: `python` (len, range, str and list methods...),
//! `symbolic` when any argument is symbolic, then `host` (functions on concrete values) and `tensor_methods` (methods,
//! operators and indexing of concrete tensors). A table answers None for a name that it does not know, and the nearest
//! known name is suggested. Must not know how calls bind arguments.
//!
//! # The host tables' interface
//!
//! - [`host::call`]`("torch.arange", &args, cx)`: any dotted name of `torch`, `math` and the like, without symbolic
//!   arguments; methods of an [`Opaque`](super::value::Opaque) come as `"Generator.manual_seed"` with it first.
//! - [`host::value`]`("torch.pi")`: an attribute of a module that is a value, not a function.
//! - [`tensor_methods::call`]`("view", &tensor, &args, cx)`: `tensor.view(...)`; a name ending in `_` works in place.
//! - [`tensor_methods::attribute`]`("shape", &tensor, cx)`: attributes that are values.
//! - [`tensor_methods::binary`], [`compare`](tensor_methods::compare), [`unary`](tensor_methods::unary): operators with at
//!   least one concrete tensor among the operands and no symbolic one.
//! - [`tensor_methods::index`], [`set_index`](tensor_methods::set_index): `t[...]` and `t[...] = value`; a tuple index
//!   comes as a tuple, slices as `Value::Slice`, None as `Value::None`.
//!
//! They charge what they allocate through [`Context::charge_bytes`] and long loops through [`Context::charge_steps`], and
//! leave the place of a fault to the caller, who knows it.

mod bind;
mod generator;
pub mod host;
mod making;
mod math;
mod tensor_compute;
mod tensor_in_place;
pub mod tensor_methods;
mod tensor_move;
mod tensor_table;
mod tensor_views;
