//! One GPU: queries, memory, modules, events, tensors on it, and its errors.
//!
//! Invariant: the driver's refusals become diagnostics. Must not know masks.

pub(crate) mod driver;
pub(crate) mod errors;
pub(crate) mod gpu;
pub(crate) mod guest;
pub(crate) mod nvml;
pub(crate) mod tensor_map;
pub(crate) mod tensors;
