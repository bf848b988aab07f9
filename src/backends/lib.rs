//! Backends and devices: everything that can compute attention, behind one trait, and the f64 reference for comparison.
//!
//! Invariant: a backend accepts only a validated [`Problem`]; it returns `Refused` before it starts, never a wrong
//! result. Must not know the worker's protocol, files (except the kernel cache) or the window.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as backends;
use maskloom_analysis as analysis;
use maskloom_base as base;
#[cfg(test)]
use maskloom_document as document;
use maskloom_ir as ir;
use maskloom_micro as micro;
use maskloom_problem as problem;

pub mod absent;
pub mod attention_map;
pub mod compare;
pub mod cpu;
pub mod cuda;
pub mod gate;
mod given;
mod gradient_gate;
pub mod gradient_race;
pub mod gradients;
pub mod inputs;
mod mod_gradient;
mod mods;
#[cfg(test)]
mod plan_tests;
pub mod race;
pub mod reference;
mod refusals;
pub mod room;
pub mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod torch;

pub use given::learning;

use crate::base::{BackendName, Diagnostic, HostTensor};
use crate::problem::Problem;
use crate::problem::facts::KernelReport;
use crate::problem::result::{KernelArtefact, Timed};
use gradients::{Gradients, Seeds};

/// Inputs of one run on the host: q [B, Hq, Q, E], k [B, Hkv, KV, E], v [B, Hkv, KV, Ev], contiguous in that order
/// for any layout of the problem (devices lay them out on upload), all of the problem's dtype.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Inputs {
    pub q: HostTensor,
    pub k: HostTensor,
    pub v: HostTensor,
}

/// Result of one run on the host.
#[derive(Clone, Debug)]
pub struct Output {
    /// [B, Hq, Q, Ev], of the problem's dtype.
    pub out: HostTensor,
    /// [B, Hq, Q] F32, natural log, -inf in fully masked rows; None if the backend does not return it.
    pub lse: Option<HostTensor>,
    /// [B, Hq, Q] F32: a row's largest score after scale, score mod and mask, -inf if it keeps nothing and NaN if a
    /// kept score is NaN, like torch.max; None unless the problem requests it and the backend supports it.
    pub max_scores: Option<HostTensor>,
}

/// A way to compute attention on one device. Object-safe; lives in the worker.
pub trait Backend {
    /// Its name.
    fn name(&self) -> BackendName;

    /// Whether it can do this problem; the error is the refusal: why, and what to do.
    fn support(&self, problem: &Problem) -> Result<(), Diagnostic>;

    /// Whether it can give this problem's gradients; the error is the refusal.
    fn supports_gradients(&self, problem: &Problem) -> Result<(), Diagnostic> {
        self.support(problem)?;
        Err(gradients::none(self.name()))
    }

    /// Does everything that is not the forward pass: compile, block lists, upload.
    fn prepare(&mut self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic>;
}

/// One backend ready to run one problem again and again.
pub trait Prepared {
    /// Which kernel runs.
    fn kernel(&self) -> KernelReport;

    /// The compiled kernel, for the Code tab.
    fn artefact(&self) -> Option<&KernelArtefact> {
        None
    }

    /// Poisons the output, runs once and copies the result to the host. Errors: what the device reported.
    fn output(&mut self) -> Result<Output, Diagnostic>;

    /// Bytes that the first pass held at its peak beside q, k and v: the output, lse, captured tensors, the mask or its
    /// block lists, working memory. What preparing needed and gave back is not counted. None: not known.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// The same of the first forward and backward pass together, beside q, k, v and the gradient of the output.
    fn training_memory(&self) -> Option<u64> {
        None
    }

    /// Whether outputs still come from something slower that was ready sooner than the kernel that is timed.
    fn is_provisional(&self) -> bool {
        false
    }

    /// Waits for the kernel that is timed; outputs come from it then. Errors: it could not be made.
    fn settle(&mut self) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Runs forward and backward once. Errors: it has no backward pass; what the device reported.
    fn gradients(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        let _ = seeds;
        Err(gradients::missing(&self.kernel().words))
    }

    /// The gradients of a forward pass whose results were kept elsewhere: the backward pass alone where it can do without another
    /// forward pass. Errors: those of [`gradients`](Self::gradients).
    fn gradients_of(&mut self, output: &Output, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        let _ = output;
        self.gradients(seeds)
    }

    /// Runs the backward pass alone `count` times, on what one forward pass saved.
    fn time_backward(&mut self, seeds: &Seeds, count: usize) -> Result<Timed, Diagnostic> {
        let _ = (seeds, count);
        Err(gradients::missing(&self.kernel().words))
    }

    /// Whether a gradient race may go on with it after a race. Not where memory is measured from its preparation on.
    fn goes_on(&self) -> bool {
        true
    }

    /// Whether gradients in a fixed order of addition take another time than those in any order. Where not, they have the same bits in
    /// every run as they are, or cannot have them.
    fn orders_gradients(&self) -> bool {
        false
    }

    /// Runs `count` times on rotated inputs. On a GPU the times are those of its work, whoever launches it, with those of whole calls
    /// beside them.
    fn time(&mut self, count: usize) -> Result<Timed, Diagnostic>;
}
