//! Prepares and runs kernels: their device memory, checked outputs and timed passes.
//!
//! Invariant: outputs are poisoned before a checked pass. Must not choose variants.

pub(crate) mod backward;
#[cfg(test)]
mod backward_fault_tests;
pub(crate) mod backward_pass;
#[cfg(test)]
mod backward_tests;
#[cfg(test)]
mod bins_tests;
pub(crate) mod both;
#[cfg(test)]
mod captured_tests;
pub(crate) mod decode;
pub(crate) mod dense;
pub(crate) mod eager;
pub(crate) mod eager_backward;
#[cfg(test)]
mod eager_backward_tests;
pub(crate) mod flash;
pub(crate) mod hopper;
#[cfg(test)]
pub(super) mod hopper_tests;
pub(crate) mod map;
pub(crate) mod params;
#[cfg(test)]
mod random_tests;
pub(crate) mod runner;
pub(crate) mod staged;
