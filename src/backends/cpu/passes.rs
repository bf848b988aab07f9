//! The two passes of a CPU backend, run and timed: the part that is independent of their computation.
//!
//! Invariant: a backward pass follows its forward pass, which is not part of its time. Must not know how a pass is
//! computed.

use crate::backends::gradients::{Gradients, Seeds};
use crate::backends::{Output, Prepared};
use crate::base::Diagnostic;
use std::time::Instant;

/// One problem's passes with their own buffers.
pub(super) trait Passes {
    /// Which kernel runs, in words.
    fn kernel(&self) -> String;

    /// Writes NaN over what the last pass left.
    fn poison(&mut self);

    /// One forward pass, packing included. Errors: inputs of another dtype than the problem's.
    fn forward(&mut self) -> Result<(), Diagnostic>;

    /// The results of the last forward pass.
    fn results(&self) -> Result<Output, Diagnostic>;

    /// One backward pass after a forward pass, packing included. Errors: inputs or seeds of another dtype, no derivative.
    fn backward(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic>;
}

/// Passes as a race takes them.
pub(super) struct Runner<P>(pub P);

impl<P: Passes> Prepared for Runner<P> {
    fn kernel(&self) -> String {
        self.0.kernel()
    }

    fn output(&mut self) -> Result<Output, Diagnostic> {
        self.0.poison();
        self.0.forward()?;
        self.0.results()
    }

    fn gradients(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        self.0.forward()?;
        self.0.backward(seeds)
    }

    fn time_backward(&mut self, seeds: &Seeds, count: usize) -> Result<Vec<f64>, Diagnostic> {
        self.0.forward()?;
        timed(count, || self.0.backward(seeds).map(|_| ()))
    }

    fn time(&mut self, count: usize) -> Result<Vec<f64>, Diagnostic> {
        timed(count, || self.0.forward())
    }
}

/// Milliseconds of each of `count` passes.
fn timed(count: usize, mut pass: impl FnMut() -> Result<(), Diagnostic>) -> Result<Vec<f64>, Diagnostic> {
    let one = |_| {
        let start = Instant::now();
        pass()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    (0..count).map(one).collect()
}
