//! What every backward pass is, what it is given (the forward pass's output and lse, and the seeds), and the dq, dk and dv that it
//! writes, on the device.
//!
//! Invariant: seeds have the problem's shapes when they are uploaded. Must not know a kernel.

use crate::backends::cuda::device::gpu::{Buffer, Gpu};
use crate::backends::cuda::device::tensors::{InputSet, Outputs, arrange, padded, tensor};
use crate::backends::gradients::{Gradients, Seeds, shapes};
use crate::base::{Diagnostic, HostTensor};
use crate::problem::Problem;
use std::sync::Arc;

/// A backward pass, loaded, with everything but the inputs and seeds.
pub(crate) trait BackwardPass {
    /// NaN in everything that a pass writes before it is read.
    fn poison(&self) -> Result<(), Diagnostic>;

    /// Enqueues a pass; does not wait.
    fn enqueue(&self, set: &InputSet, saved: &Saved) -> Result<(), Diagnostic>;

    /// The results of the last pass, on the host.
    fn download(&self) -> Result<Gradients, Diagnostic>;
}

/// The forward pass's saved results, and the seeds, on the device.
pub(crate) struct Saved {
    /// The output and the lse.
    pub forward: Arc<Outputs>,
    pub d_o: Buffer,
    pub d_lse: Option<Buffer>,
}

impl Saved {
    /// Uploads the seeds. Errors: seeds of other shapes.
    pub(crate) fn upload(
        gpu: &Arc<Gpu>,
        problem: &Problem,
        forward: Arc<Outputs>,
        seeds: &Seeds,
    ) -> Result<Saved, Diagnostic> {
        seeds.check(problem)?;
        let floats = |tensor: &HostTensor, what| gpu.upload(&tensor.to_f32_vec(), what);
        Ok(Saved {
            forward,
            d_o: gpu.upload(&arrange(&seeds.d_out, problem.layout)?, "the gradient of the output")?,
            d_lse: seeds.d_lse.as_ref().map(|t| floats(t, "the gradient of the lse")).transpose()?,
        })
    }
}

/// Memory for dq, dk and dv, in 16 bits and padded as inputs are.
pub(crate) fn gradient_buffers(gpu: &Arc<Gpu>, problem: &Problem) -> Result<[Buffer; 3], Diagnostic> {
    let [dq, dk, dv] = shapes(problem);
    let take =
        |[batch, heads, tokens, dim]: [usize; 4], what| gpu.alloc(batch * heads * tokens * padded(dim) * 2, what);
    Ok([take(dq, "dq")?, take(dk, "dk")?, take(dv, "dv")?])
}

/// dq, dk and dv on the host; `what` was running, for errors.
pub(crate) fn download(
    gpu: &Arc<Gpu>,
    problem: &Problem,
    buffers: &[Buffer; 3],
    what: &str,
) -> Result<[HostTensor; 3], Diagnostic> {
    let [dq, dk, dv] = [0, 1, 2].map(|at| {
        let raw: Vec<u16> = gpu.download(&buffers[at], buffers[at].bytes() / 2, what)?;
        tensor(problem, &raw, shapes(problem)[at])
    });
    Ok([dq?, dk?, dv?])
}
