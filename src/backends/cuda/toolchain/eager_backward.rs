//! From a problem to the machine code of eager's backward pass: macros, text, compiler.
//!
//! Invariant: supports every problem of eager's forward pass whose score mod has a derivative. Must not touch a device.

use super::backward::cells;
use super::cache::Cache;
use super::compile::{Compiler, Form, Obtained, obtain};
use crate::backends::cuda::choose;
use crate::backends::cuda::emit::functions::{self, Emitted};
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::backends::cuda::emit::source;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::{BackendName, DType, Diagnostic};
use crate::ir::passes::derive::derive;
use crate::problem::Problem;

/// Rows and columns of a tile of the products, as eager_backward.cu has them.
pub(crate) const TILE: usize = 64;
/// Dynamic shared memory of the products: two tiles whose rows take 16 bytes more than their values.
pub(crate) const SHARED_BYTES: usize = 2 * TILE * (TILE * 2 + 16);

/// A backward pass that is written and not compiled yet.
pub(crate) struct EagerDraft {
    /// None, a formula, or bytes.
    pub mask: MaskKind,
    pub mods: LiftedMods,
    pub emitted: Emitted,
    pub text: String,
    /// `eager_backward 64x64 d128/128`.
    pub name: String,
}

impl EagerDraft {
    /// Whether there is one: nothing is written. Errors: eager's refusal, no derivative.
    pub(crate) fn check(problem: &Problem) -> Result<(), Diagnostic> {
        choose::choose(problem, BackendName::Eager)?;
        problem.score.as_deref().map_or(Ok(()), |score| derive(score, |_| true).map(drop))
    }

    /// Writes it. Errors: those of [`EagerDraft::check`].
    pub(crate) fn new(problem: &Problem, d_lse: bool) -> Result<EagerDraft, Diagnostic> {
        let choice = choose::choose(problem, BackendName::Eager)?;
        let mask = problem.mask.as_deref().filter(|_| choice.mask == MaskKind::Formula);
        let mods = match problem.score.as_deref() {
            Some(score) => LiftedMods::with_gradient(mask, score, &derive(score, |_| true)?, cells(problem)),
            None => LiftedMods::new(mask, None),
        };
        let emitted = functions::emit(&mods.template());
        let gradient = mods.gradient.as_ref();
        let values = [
            ("EAGER", 1),
            ("BF16", usize::from(problem.dtype == DType::BF16)),
            ("HEAD_DIM", problem.head_dim),
            ("HEAD_DIM_V", problem.head_dim_v),
            (
                "MASK",
                match choice.mask {
                    MaskKind::None => 0,
                    MaskKind::Dense => 2,
                    _ => 1,
                },
            ),
            ("SCORE", if problem.score.is_some() { 2 } else { 0 }),
            ("GRAD", usize::from(gradient.is_some_and(|g| g.score.is_some()))),
            ("CAPTURES", gradient.map_or(0, |g| g.captures.len())),
            ("CAPTURE_READS", gradient.map_or(0, |g| g.reads.len())),
            ("DLSE", usize::from(d_lse)),
        ];
        let defines = values.map(|(name, value)| format!("#define ML_{name} {value}\n")).concat();
        let name = format!("eager_backward {TILE}x{TILE} d{}/{}", problem.head_dim, problem.head_dim_v);
        let text = source::assemble_eager_backward(&name, &defines, &emitted.text);
        Ok(EagerDraft { mask: choice.mask, mods, emitted, text, name })
    }

    /// Asks the cache, else compiles.
    pub(crate) fn compile(
        &self,
        arch: &str,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
    ) -> Result<Obtained, Diagnostic> {
        obtain(&self.text, arch, Form::Kernel, compiler, cache, &self.mods.sources)
    }
}
