//! Attention on the CPU: one problem, forward and backward.
//!
//! Invariant: a problem was validated, and its backend does not refuse it. Tensors are contiguous, [B, H, S, D], of the
//! problem's dtype. Must not know PyTorch's objects nor how gradients are asked for.

use super::guard::computed;
use super::mask::Mask;
use super::memory::{self, Given};
use crate::backends::gradients::Seeds;
use crate::backends::{self, Backend, Inputs, Output};
use crate::base::{BackendName, DType, Diagnostic};
use crate::problem::{Problem, ProblemSpec};
use pyo3::prelude::*;

/// A problem that is ready to run.
#[pyclass(frozen, module = "maskloom._native")]
pub(super) struct Attention {
    problem: Problem,
    /// Tensors of the score mod that get a gradient.
    learned: Vec<String>,
}

/// Extents as [B, Hq, Hkv, Q_LEN, KV_LEN, E, Ev].
pub(super) type Extents = [usize; 7];

/// A dtype by PyTorch's name.
pub(super) fn named(dtype: &str) -> DType {
    DType::ALL.into_iter().find(|known| known.torch_name() == dtype).unwrap_or(DType::F64)
}

/// The problem of two mods.
pub(super) fn problem(
    (mask, score): (Option<&Mask>, Option<&Mask>),
    extents: Extents,
    dtype: &str,
    scale: Option<f64>,
    max_scores: bool,
) -> Result<Problem, Diagnostic> {
    let [batch, heads, kv_heads, q_len, kv_len, head_dim, head_dim_v] = extents;
    let mut spec = ProblemSpec::plain(batch, (heads, kv_heads), (q_len, kv_len), head_dim);
    spec.head_dim_v = head_dim_v;
    spec.dtype = named(dtype);
    spec.scale = scale;
    spec.max_scores = max_scores;
    spec.mask = mask.map(|mask| mask.of.clone());
    spec.score = score.map(|score| score.of.clone());
    Problem::new(spec).map_err(|all| all.into_iter().next().unwrap_or_else(unknown))
}

/// Validates a problem. `differentiable`: whether gradients will be asked for.
#[pyfunction]
#[pyo3(signature = (mask, score, extents, dtype, scale, max_scores, differentiable))]
pub(super) fn prepare(
    py: Python<'_>,
    mask: Option<&Mask>,
    score: Option<&Mask>,
    extents: Extents,
    dtype: &str,
    scale: Option<f64>,
    max_scores: bool,
    differentiable: bool,
) -> PyResult<Attention> {
    computed(py, || {
        let problem = problem((mask, score), extents, dtype, scale, max_scores)?;
        let backend = backend()?;
        backend.support(&problem)?;
        let mut learned = Vec::new();
        if differentiable {
            backend.supports_gradients(&problem)?;
            if let Some(score) = &problem.score {
                learned = backends::learning(score)?.into_iter().map(|(name, _)| name).collect();
            }
        }
        Ok(Attention { problem, learned })
    })
}

fn unknown() -> Diagnostic {
    Diagnostic::error("problem", "this problem is not valid")
}

fn backend() -> Result<Box<dyn Backend>, Diagnostic> {
    backends::cpu::backend(BackendName::Flex).ok_or_else(|| Diagnostic::error("no-backend", "there is no flex here"))
}

fn inputs((q, k, v): (Given, Given, Given)) -> Result<Inputs, Diagnostic> {
    Ok(Inputs { q: memory::tensor(q)?, k: memory::tensor(k)?, v: memory::tensor(v)? })
}

#[pymethods]
impl Attention {
    /// Names of the score mod's tensors that get a gradient, in the order of `backward`.
    fn learned(&self) -> Vec<String> {
        self.learned.clone()
    }

    /// Computes the output, the lse and the largest scores (0: not wanted) into memory at these addresses.
    fn forward(&self, py: Python<'_>, qkv: (Given, Given, Given), out: usize, lse: usize, max: usize) -> PyResult<()> {
        computed(py, || {
            let found = backend()?.prepare(&self.problem, &inputs(qkv)?)?.output()?;
            memory::write(&found.out, out);
            found.lse.iter().for_each(|t| memory::write(t, lse));
            found.max_scores.iter().filter(|_| max != 0).for_each(|t| memory::write(t, max));
            Ok(())
        })
    }

    /// Computes the gradients of q, k, v and of the learned tensors (float32) into memory at these addresses, from the
    /// results of `forward` and their gradients.
    #[pyo3(signature = (qkv, results, d_out, d_lse, gradients, learned))]
    fn backward(
        &self,
        py: Python<'_>,
        qkv: (Given, Given, Given),
        results: (Given, Given),
        d_out: Given,
        d_lse: Option<Given>,
        gradients: (usize, usize, usize),
        learned: Vec<usize>,
    ) -> PyResult<()> {
        computed(py, || {
            let output =
                Output { out: memory::tensor(results.0)?, lse: Some(memory::tensor(results.1)?), max_scores: None };
            let d_lse = d_lse.map(memory::tensor).transpose()?;
            let seeds = Seeds { d_out: memory::tensor(d_out)?, d_lse, deterministic: true };
            let found = backend()?.prepare(&self.problem, &inputs(qkv)?)?.gradients_of(&output, &seeds)?;
            let own = [(&found.dq, gradients.0), (&found.dk, gradients.1), (&found.dv, gradients.2)];
            own.into_iter().for_each(|(t, address)| memory::write(t, address));
            for (name, address) in self.learned.iter().zip(learned) {
                let of = found.captures.iter().find(|c| c.name == *name);
                let of = of.ok_or_else(|| Diagnostic::error("no-gradient", format!("{name} has no gradient")))?;
                memory::write(&of.gradient, address);
            }
            Ok(())
        })
    }
}
