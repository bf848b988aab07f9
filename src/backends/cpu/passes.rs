//! The two passes of a CPU backend, run and timed: the part that is independent of their computation.
//!
//! Invariant: a backward pass follows its forward pass, which is not part of its time. Must not know how a pass is
//! computed.

use crate::backends::gradients::{Gradients, Seeds};
use crate::backends::{Output, Prepared};
use crate::base::Diagnostic;
use crate::base::memory::Meter;
use crate::problem::facts::KernelReport;
use crate::problem::result::Timed;
use std::time::Instant;

/// One problem's passes with their own buffers.
pub(super) trait Passes {
    /// Which kernel runs.
    fn kernel(&self) -> KernelReport;

    /// Writes NaN over what the last pass left.
    fn poison(&mut self);

    /// One forward pass, packing included. Errors: inputs of another dtype than the problem's.
    fn forward(&mut self) -> Result<(), Diagnostic>;

    /// The results of the last forward pass.
    fn results(&self) -> Result<Output, Diagnostic>;

    /// Comes to the state after a forward pass with these results. Errors: they are of other shapes or dtypes; those of
    /// [`forward`](Self::forward).
    fn restore(&mut self, output: &Output) -> Result<(), Diagnostic> {
        let _ = output;
        self.forward()
    }

    /// One backward pass after a forward pass, packing included. Errors: inputs or seeds of another dtype, no derivative.
    fn backward(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic>;
}

/// Passes as a race takes them, with the memory that the first of each kind held.
pub(super) struct Runner<P> {
    passes: P,
    /// From before the passes had their buffers.
    meter: Meter,
    /// What they read and share with others: captured tensors, block lists.
    shared: u64,
    forward: Option<u64>,
    both: Option<u64>,
}

impl<P: Passes> Runner<P> {
    /// Of passes that `make` gives; they share `shared` bytes with others.
    pub(super) fn new(shared: u64, make: impl FnOnce() -> P) -> Runner<P> {
        let meter = Meter::start();
        Runner { passes: make(), meter, shared, forward: None, both: None }
    }
}

impl<P: Passes> Prepared for Runner<P> {
    fn kernel(&self) -> KernelReport {
        self.passes.kernel()
    }

    fn output(&mut self) -> Result<Output, Diagnostic> {
        self.passes.poison();
        self.meter.forget();
        self.passes.forward()?;
        self.forward = self.forward.or(self.meter.most().map(|own| own + self.shared));
        self.passes.results()
    }

    fn memory(&self) -> Option<u64> {
        self.forward
    }

    /// What the whole process has taken and given back since would count as its own.
    fn goes_on(&self) -> bool {
        false
    }

    fn gradients(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        self.meter.forget();
        self.passes.forward()?;
        let found = self.passes.backward(seeds)?;
        self.both = self.both.or(self.meter.most().map(|own| own + self.shared));
        Ok(found)
    }

    fn gradients_of(&mut self, output: &Output, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        self.passes.restore(output)?;
        self.passes.backward(seeds)
    }

    fn training_memory(&self) -> Option<u64> {
        self.both
    }

    fn time_backward(&mut self, seeds: &Seeds, count: usize) -> Result<Timed, Diagnostic> {
        self.passes.forward()?;
        timed(count, || self.passes.backward(seeds).map(|_| ()))
    }

    fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
        timed(count, || self.passes.forward())
    }
}

/// Milliseconds of each of `count` passes.
fn timed(count: usize, mut pass: impl FnMut() -> Result<(), Diagnostic>) -> Result<Timed, Diagnostic> {
    let one = |_| {
        let start = Instant::now();
        pass()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    (0..count).map(one).collect::<Result<Vec<f64>, _>>().map(Timed::from)
}
