//! Gradients of one run on the host, and their seeds.
//!
//! Invariant: contiguous, with the shapes of their tensors; a fully masked row has zeros. Must not know how they are
//! computed.

use crate::base::tensor::Data;
use crate::base::{BackendName, DType, Diagnostic, HostTensor};
use crate::problem::Problem;

/// Gradients of the results, given from outside.
#[derive(Clone, Debug)]
pub struct Seeds {
    /// For the output: [B, Hq, Q, Ev], in the problem's dtype.
    pub d_out: HostTensor,
    /// For the lse: [B, Hq, Q] F32; None if nothing was computed from it.
    pub d_lse: Option<HostTensor>,
    /// Whether gradients must have the same bits in every run.
    pub deterministic: bool,
}

impl Seeds {
    /// Checks the shapes. Errors: a tensor with another shape, with both shapes.
    pub fn check(&self, problem: &Problem) -> Result<(), Diagnostic> {
        let s = problem.spec();
        let rows = [s.batch, s.heads, s.q_len];
        let wanted = [("do", Some(&self.d_out), vec![rows[0], rows[1], rows[2], s.head_dim_v])];
        let lse = [("dlse", self.d_lse.as_ref(), rows.to_vec())];
        for (name, given, shape) in wanted.into_iter().chain(lse) {
            if let Some(given) = given.filter(|t| t.shape() != shape) {
                let message = format!("{name} has shape {:?}; its result has {shape:?}", given.shape());
                return Err(Diagnostic::error("seed-shape", message)
                    .hint("pass the gradient of the output in [B, Hq, Q_LEN, Ev], and of the lse in [B, Hq, Q_LEN]"));
            }
        }
        match self.d_out.dtype() == problem.dtype {
            true => Ok(()),
            false => Err(Diagnostic::error(
                "seed-dtype",
                format!("do has dtype {}, and the problem has {}", self.d_out.dtype(), problem.dtype),
            )
            .hint(format!("convert it: do.to(torch.{})", problem.dtype))),
        }
    }
}

/// The gradient of a captured tensor, or of one from which a captured tensor was computed.
#[derive(Clone, Debug)]
pub struct CaptureGradient {
    /// Its name.
    pub name: String,
    /// F32, of the tensor's shape.
    pub gradient: HostTensor,
}

/// A backward pass's results.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Gradients {
    /// In the problem's dtype.
    pub dq: HostTensor,
    pub dk: HostTensor,
    pub dv: HostTensor,
    /// For the float tensors that the score mod reads, by their number.
    pub captures: Vec<CaptureGradient>,
}

impl Gradients {
    /// All of them by name: `dq`, `dk`, `dv`, `dcap.NAME`.
    pub fn named(&self) -> Vec<(String, &HostTensor)> {
        let own = [("dq", &self.dq), ("dk", &self.dk), ("dv", &self.dv)];
        let captured = self.captures.iter().map(|c| (format!("dcap.{}", c.name), &c.gradient));
        own.into_iter().map(|(name, t)| (name.to_string(), t)).chain(captured).collect()
    }
}

/// Whether two runs gave the same bits.
pub fn same_bits(one: &Gradients, other: &Gradients) -> bool {
    let bits = |of: &Gradients| -> Vec<Vec<u8>> { of.named().iter().map(|(_, t)| t.data().to_le_bytes()).collect() };
    bits(one) == bits(other)
}

/// For backends without a backward pass.
pub fn none(name: BackendName) -> Diagnostic {
    missing(name.to_string().as_str())
}

/// The same of a kernel.
pub fn missing(who: &str) -> Diagnostic {
    Diagnostic::error("no-backward", format!("{who} has no backward pass on this device"))
        .hint("run --pass forward, or use flex or eager, which have one on GPUs and on the CPU")
}

/// A tensor of the problem's dtype from floats, each rounded once.
pub(crate) fn rounded(dtype: DType, shape: impl Into<Vec<usize>>, values: Vec<f32>) -> Result<HostTensor, Diagnostic> {
    let data = match dtype {
        DType::BF16 => Data::BF16(values.into_iter().map(half::bf16::from_f32).collect()),
        DType::F16 => Data::F16(values.into_iter().map(half::f16::from_f32).collect()),
        _ => Data::F32(values),
    };
    HostTensor::new(shape, data)
}

/// Shapes of dq, dk and dv.
pub(crate) fn shapes(problem: &Problem) -> [[usize; 4]; 3] {
    let s = problem.spec();
    [
        [s.batch, s.heads, s.q_len, s.head_dim],
        [s.batch, s.kv_heads, s.kv_len, s.head_dim],
        [s.batch, s.kv_heads, s.kv_len, s.head_dim_v],
    ]
}

/// Standard normal seeds for random inputs.
pub fn random(problem: &Problem, seed: u64) -> Seeds {
    Seeds { d_out: super::inputs::random_seed(problem, seed), d_lse: None, deterministic: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_holds_on_every_device() {
        let hint = none(BackendName::Sdpa).hint.expect("a hint");
        assert!(hint.contains("flex or eager") && !hint.contains("sdpa"), "{hint}");
    }
}
