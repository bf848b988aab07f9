//! A forward pass with a backward pass that is created at its first use.
//!
//! Invariant: the backward pass uses the output and the lse of its own forward pass. Must not know which kernels run.

use super::backward::Backward;
use super::backward_pass::{BackwardPass, Saved};
use super::eager_backward::EagerBackward;
use super::runner::{Forward, calls};
use crate::backends::cuda::device::gpu::Gpu;
use crate::backends::cuda::device::tensors::{Outputs, Rotation};
use crate::backends::cuda::experiment::Experiment;
use crate::backends::cuda::toolchain::backward::BackwardDraft;
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::Compiler;
use crate::backends::cuda::toolchain::eager_backward::EagerDraft;
use crate::backends::cuda::variant::backward::BackwardWays;
use crate::backends::gradients::{Gradients, Seeds};
use crate::backends::{Inputs, Output, Prepared};
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;
use crate::problem::facts::KernelReport;
use crate::problem::result::{Clock, KernelArtefact, Timed};
use std::sync::Arc;

/// The forward pass, and all that the backward pass is made of.
pub(crate) struct Both {
    /// Eager or flex.
    pub name: BackendName,
    pub forward: Box<dyn Forward>,
    /// What a forward pass left on the device; made at the first backward pass.
    pub saved: Option<Arc<Outputs>>,
    pub gpu: Arc<Gpu>,
    pub compiler: Arc<dyn Compiler>,
    pub cache: Option<Cache>,
    pub problem: Problem,
    pub inputs: Inputs,
    /// With the ways that it was made for.
    pub backward: Option<(BackwardWays, Box<dyn BackwardPass>)>,
    /// Bytes of its buffers, those for the gradients included.
    pub held: Option<u64>,
}

impl Both {
    fn make_ready(&mut self, seeds: &Seeds) -> Result<(), Diagnostic> {
        let ways = BackwardWays { deterministic: seeds.deterministic, d_lse: seeds.d_lse.is_some() };
        if self.backward.as_ref().is_some_and(|(made_for, _)| *made_for == ways) {
            return Ok(());
        }
        let limits = self.gpu.limits();
        let (compiler, cache) = (self.compiler.as_ref(), self.cache.as_ref());
        let (gpu, problem, arch) = (&self.gpu, &self.problem, limits.arch());
        // what an earlier one holds goes first
        self.backward = None;
        let make = || -> Result<Box<dyn BackwardPass>, Diagnostic> {
            if self.name == BackendName::Eager {
                let draft = EagerDraft::new(problem, ways.d_lse)?;
                let code = draft.compile(&arch, compiler, cache)?;
                return Ok(Box::new(EagerBackward::new(gpu, problem, draft, &code)?));
            }
            let (draft, code) = if Experiment::Second.is_on() {
                let (draft, _) = BackwardDraft::at(1, problem, limits, ways)?;
                let code = draft.compile(&arch, compiler, cache)?;
                (draft, code)
            } else {
                BackwardDraft::made(problem, limits, ways, &arch, compiler, cache)?
            };
            Ok(Box::new(Backward::new(gpu, problem, &draft, &code)?))
        };
        let (made, held) = gpu.counted(make)?;
        (self.backward, self.held) = (Some((ways, made)), Some(held));
        Ok(())
    }

    /// The backward pass with what a forward pass saved, and the inputs.
    fn start(&mut self, seeds: &Seeds) -> Result<(&dyn BackwardPass, Saved, Arc<Rotation>), Diagnostic> {
        seeds.check(&self.problem)?;
        self.make_ready(seeds)?;
        let outputs = match &self.saved {
            Some(outputs) => outputs.clone(),
            None => self.saved.insert(self.forward.saved()?).clone(),
        };
        let saved = Saved::upload(&self.gpu, &self.problem, outputs, seeds)?;
        let rotation = Rotation::of(&self.gpu, &self.inputs, self.problem.layout)?;
        let (_, backward) = self.backward.as_ref().expect("made ready above");
        Ok((backward.as_ref(), saved, rotation))
    }
}

impl Prepared for Both {
    fn kernel(&self) -> KernelReport {
        self.forward.kernel()
    }

    fn artefact(&self) -> Option<&KernelArtefact> {
        self.forward.artefact()
    }

    fn output(&mut self) -> Result<Output, Diagnostic> {
        // it poisons what a backward pass would read
        self.saved = None;
        self.forward.output()
    }

    fn memory(&self) -> Option<u64> {
        self.forward.memory()
    }

    /// The output and the lse, which the backward pass reads, are the forward pass's.
    fn training_memory(&self) -> Option<u64> {
        Some(self.forward.memory()? + self.held?)
    }

    fn is_provisional(&self) -> bool {
        self.forward.is_provisional()
    }

    fn settle(&mut self) -> Result<(), Diagnostic> {
        self.forward.settle()
    }

    fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
        self.forward.time(count)
    }

    fn gradients(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        let gpu = self.gpu.clone();
        let (backward, saved, rotation) = self.start(seeds)?;
        backward.poison()?;
        backward.enqueue(rotation.set(0), &saved)?;
        gpu.finish("running the backward pass")?;
        backward.download()
    }

    fn orders_gradients(&self) -> bool {
        self.name == BackendName::Flex
    }

    fn time_backward(&mut self, seeds: &Seeds, count: usize) -> Result<Timed, Diagnostic> {
        let (gpu, what) = (self.gpu.clone(), "timing the backward pass");
        let (backward, saved, rotation) = self.start(seeds)?;
        // the device is busy with this while the timed passes are enqueued
        backward.enqueue(rotation.set(0), &saved)?;
        let mut marks = vec![gpu.mark()?];
        for pass in 1..=count {
            backward.enqueue(rotation.set(pass), &saved)?;
            marks.push(gpu.mark()?);
        }
        gpu.finish(what)?;
        let times = marks.windows(2).map(|pair| gpu.elapsed_ms(&pair[0], &pair[1]));
        let times: Vec<f64> = times.collect::<Result<_, _>>()?;
        let mut pass = count;
        let calls_ms = calls(&gpu, what, &times, || {
            pass += 1;
            backward.enqueue(rotation.set(pass), &saved)
        })?;
        Ok(Timed { passes_ms: times, calls_ms, clock: Some(Clock::Queue) })
    }
}
