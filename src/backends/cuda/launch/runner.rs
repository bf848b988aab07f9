//! One prepared backend on the GPU: checked outputs and timed passes for any kernel.
//!
//! Invariant: an output is poisoned before it is computed and checked; timed passes run back to back in the stream, so
//! that no launch latency is counted, and rotate over the copies of the inputs. Must not know which kernel runs.

use crate::backends::cuda::device::gpu::Gpu;
use crate::backends::cuda::device::tensors::{InputSet, Outputs, Rotation, padded};
use crate::backends::{Inputs, Output, Prepared};
use crate::base::Diagnostic;
use crate::problem::Problem;
use crate::problem::facts::KernelReport;
use crate::problem::result::{Clock, KernelArtefact, Timed};
use std::sync::Arc;
use std::time::Instant;

/// Passes that take longer than this need no untimed one before them to hide the launch.
const LONG_MS: f64 = 3.0;

/// Enqueues one forward pass.
pub(crate) trait Pass {
    /// Launches on `set`, writing `outputs`; does not wait.
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic>;

    /// Poisons scratch memory that the pass must write before it reads it.
    fn poison(&self, _gpu: &Gpu) -> Result<(), Diagnostic> {
        Ok(())
    }
}

/// A forward pass whose outputs a backward pass reads where they are.
pub(crate) trait Forward: Prepared {
    /// The output and the lse of a pass over poisoned memory. They stay as they are: further passes write the same.
    fn saved(&mut self) -> Result<Arc<Outputs>, Diagnostic>;
}

/// A pass with its inputs and outputs.
pub(crate) struct Runner<P> {
    // before the GPU in drop order are the buffers: they hold it themselves
    pass: P,
    rotation: Arc<Rotation>,
    outputs: Arc<Outputs>,
    gpu: Arc<Gpu>,
    problem: Problem,
    kernel: KernelReport,
    artefact: Option<KernelArtefact>,
    passes: usize,
    last_ms: Option<f64>,
    /// Bytes of the pass's own buffers and of the outputs.
    memory: u64,
}

impl<P: Pass> Runner<P> {
    /// Uploads the inputs and allocates the output, including `max_scores` if the kernel writes them. `pass` comes with
    /// the bytes of its buffers; `kernel` describes the kernel; there is no artefact if a library provides it.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        problem: &Problem,
        inputs: &Inputs,
        (pass, held): (P, u64),
        (kernel, max_scores): (KernelReport, bool),
        artefact: Option<KernelArtefact>,
    ) -> Result<Runner<P>, Diagnostic> {
        let rotation = Rotation::of(gpu, inputs, problem.layout)?;
        let (outputs, of_outputs) = gpu.counted(|| Outputs::alloc(gpu, problem, max_scores))?;
        let (gpu, problem, outputs) = (gpu.clone(), problem.clone(), Arc::new(outputs));
        let memory = held + of_outputs;
        Ok(Runner { pass, rotation, outputs, gpu, problem, kernel, artefact, passes: 0, last_ms: None, memory })
    }

    fn enqueue(&mut self) -> Result<(), Diagnostic> {
        let set = self.rotation.set(self.passes);
        self.passes = (self.passes + 1) % self.rotation.len();
        self.pass.enqueue(&self.gpu, set, &self.outputs)
    }

    /// One pass over poisoned memory; with zeros in the rows' padding, which no kernel writes, if it is to be read.
    fn run(&mut self, what: &str, padding_is_read: bool) -> Result<(), Diagnostic> {
        self.gpu.finish(what)?;
        self.pass.poison(&self.gpu)?;
        self.outputs.poison(&self.gpu)?;
        if padding_is_read && padded(self.problem.head_dim_v) != self.problem.head_dim_v {
            self.gpu.zero(&self.outputs.out)?;
        }
        self.enqueue()?;
        self.gpu.finish(what)
    }
}

impl<P: Pass> Forward for Runner<P> {
    fn saved(&mut self) -> Result<Arc<Outputs>, Diagnostic> {
        let what = format!("running {}", self.kernel);
        self.run(&what, true)?;
        Ok(self.outputs.clone())
    }
}

impl<P: Pass> Prepared for Runner<P> {
    fn kernel(&self) -> KernelReport {
        self.kernel.clone()
    }

    fn artefact(&self) -> Option<&KernelArtefact> {
        self.artefact.as_ref()
    }

    fn output(&mut self) -> Result<Output, Diagnostic> {
        let what = format!("running {}", self.kernel);
        self.run(&what, false)?;
        self.outputs.download(&self.gpu, &self.problem, &what)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.memory)
    }

    fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
        let what = format!("timing {}", self.kernel);
        self.gpu.finish(&what)?;
        if self.last_ms.is_none_or(|ms| ms < LONG_MS) {
            self.enqueue()?; // the device is busy with this while the timed passes are enqueued
        }
        let mut marks = vec![self.gpu.mark()?];
        for _ in 0..count {
            self.enqueue()?;
            marks.push(self.gpu.mark()?);
        }
        self.gpu.finish(&what)?;
        let times = marks.windows(2).map(|pair| self.gpu.elapsed_ms(&pair[0], &pair[1]));
        let times: Vec<f64> = times.collect::<Result<_, _>>()?;
        self.last_ms = times.last().copied().or(self.last_ms);
        let gpu = self.gpu.clone();
        let calls_ms = calls(&gpu, &what, &times, || self.enqueue())?;
        Ok(Timed { passes_ms: times, calls_ms, clock: Some(Clock::Queue) })
    }
}

/// Calls take about this long together.
const CALLS_MS: f64 = 10.0;

/// Milliseconds of a call as a program makes them one after another, on a GPU without other work; one sample. `times`: those of passes.
pub(crate) fn calls(
    gpu: &Gpu,
    what: &str,
    times: &[f64],
    mut enqueue: impl FnMut() -> Result<(), Diagnostic>,
) -> Result<Vec<f64>, Diagnostic> {
    let Some(pass) = times.iter().copied().reduce(f64::min) else { return Ok(Vec::new()) };
    let count = (CALLS_MS / pass.max(1e-3)).clamp(1.0, 50.0) as usize;
    let begun = Instant::now();
    for _ in 0..count {
        enqueue()?;
    }
    gpu.finish(what)?;
    Ok(vec![begun.elapsed().as_secs_f64() * 1e3 / count as f64])
}
