//! What our kernels say of a problem on an architecture, where no GPU is needed.
//!
//! Invariant: the answer is that of the backend itself, whose choice of a kernel and whose refusals are asked. Nothing is
//! compiled and nothing runs. Must not know other libraries.

use super::choose;
use super::toolchain::backward::BackwardDraft;
use super::toolchain::eager_backward::EagerDraft;
use super::variant::backward::BackwardWays;
use super::variant::limits::Limits;
use crate::backends::gradients;
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;

/// Whether a backend has a kernel for the problem's forward pass; the error is its refusal.
pub fn forward(problem: &Problem, name: BackendName) -> Result<(), Diagnostic> {
    choose::choose(problem, name).map(drop)
}

/// Whether a backend has kernels for the problem's gradients on an architecture such as `sm_90a`; the error is its refusal, or that
/// the architecture is unknown.
pub fn backward(problem: &Problem, name: BackendName, arch: &str) -> Result<(), Diagnostic> {
    let (limits, _) = Limits::named(arch)?;
    match name {
        BackendName::Flex => BackwardDraft::new(problem, &limits, BackwardWays::default()).map(drop),
        BackendName::Eager => EagerDraft::new(problem, false).map(drop),
        _ => Err(gradients::none(name)),
    }
}
