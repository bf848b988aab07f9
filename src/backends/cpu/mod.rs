//! The backends on the CPU: eager, sdpa, flash_attention_2 and flex, all in f32 on all cores.
//!
//! Invariant: outputs are rounded to the problem's dtype once, at the end; each backend works like its name (eager
//! materialises scores, sdpa reads a dense mask, flex skips blocks) and refuses problems that this method cannot run.
//! Must not know devices or files.

mod backward;
mod backward_inputs;
mod eager;
mod eager_backward;
mod element;
mod fused;
pub(crate) mod memory;
mod pack;
mod passes;
mod plan;

use super::mod_gradient::ModGradient;
use super::{Backend, Inputs, Prepared, refusals};
use crate::base::{BackendName, Control, Diagnostic};
use crate::problem::Problem;
use crate::problem::pattern::Pattern;

/// All cpu backends, in the order in which they are shown.
pub fn backends() -> Vec<Box<dyn Backend>> {
    vec![Box::new(Cpu::Eager), Box::new(Cpu::Sdpa), Box::new(Cpu::Flash), Box::new(Cpu::Flex)]
}

/// The cpu backend of that name, if there is one.
pub fn backend(name: BackendName) -> Option<Box<dyn Backend>> {
    backends().into_iter().find(|b| b.name() == name)
}

/// For device lists: `cpu (2 threads, avx512)`.
pub fn device_name() -> String {
    format!("cpu ({} threads, {})", rayon::current_num_threads(), crate::micro::Kernels::detect().level().name())
}

/// The four of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpu {
    Eager,
    Sdpa,
    Flash,
    Flex,
}

impl Backend for Cpu {
    fn name(&self) -> BackendName {
        match self {
            Cpu::Eager => BackendName::Eager,
            Cpu::Sdpa => BackendName::Sdpa,
            Cpu::Flash => BackendName::FlashAttention2,
            Cpu::Flex => BackendName::Flex,
        }
    }

    fn support(&self, problem: &Problem) -> Result<(), Diagnostic> {
        memory::check(self.name(), "its working copies of q, k, v and out", memory::working_bytes(problem))?;
        match self {
            Cpu::Eager => memory::check(
                BackendName::Eager,
                "the materialised scores (B x Hq x Q_LEN x KV_LEN float32)",
                eager::score_bytes(problem) + dense_bytes(problem),
            ),
            Cpu::Sdpa => {
                refusals::score_mod(self.name(), problem)?;
                memory::check(BackendName::Sdpa, "the dense mask", dense_bytes(problem))
            }
            Cpu::Flash => {
                refusals::score_mod(self.name(), problem)?;
                flash_pattern(problem).map(|_| ())
            }
            Cpu::Flex => Ok(()),
        }
    }

    fn supports_gradients(&self, problem: &Problem) -> Result<(), Diagnostic> {
        self.support(problem)?;
        // the same once more, with the copies of the backward pass
        let bytes = 4 * memory::working_bytes(problem);
        memory::check(self.name(), "its working copies of q, k, v, do and their gradients", bytes)?;
        if *self == Cpu::Eager {
            let scores = 3 * eager::score_bytes(problem) + dense_bytes(problem);
            memory::check(BackendName::Eager, "the materialised scores, probabilities and their gradients", scores)?;
        }
        ModGradient::new(problem).map(|_| ())
    }

    fn prepare(&mut self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
        let plan = match self {
            Cpu::Eager => return eager::prepare(problem, inputs),
            Cpu::Sdpa => plan::Plan::dense(problem, problem.pattern(&Control::new())?),
            Cpu::Flash => plan::Plan::dense(problem, flash_pattern(problem)?),
            Cpu::Flex => plan::Plan::blocks(problem)?,
        };
        fused::prepare(problem, inputs, self.name(), plan)
    }
}

/// Bytes of the dense mask, one a cell.
fn dense_bytes(problem: &Problem) -> u128 {
    if problem.mask.is_none() {
        return 0;
    }
    [problem.mask_copies(), problem.q_len, problem.kv_len].iter().map(|n| *n as u128).product()
}

/// Full, or causal aligned bottom-right as flash-attn does it.
fn flash_pattern(problem: &Problem) -> Result<Pattern, Diagnostic> {
    refusals::flash_mask(problem, problem.pattern(&Control::new())?)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod gradient_tests;
