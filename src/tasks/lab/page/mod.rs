//! What a page of the lab shows of an open capture: measures of a mask, pictures, long studies; here, or where the capture is.
//!
//! Invariant: the same questions have the same answers on both machines; from another machine come measures and pictures, never a
//! tensor of the capture. Must not know widgets.

pub mod far;
pub mod look;
mod numbers;
pub mod studies;
#[cfg(test)]
mod tests;
