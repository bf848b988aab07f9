//! The rules of a [`Problem`]: FlexAttention's, in its words, with suggested fixes.
//!
//! Invariant: every rule is checked, so that several mistakes are reported at once. Must not know devices; limits of a
//! single backend are that backend's refusals.

use super::{MaskPlans, Problem, ProblemSpec};
use crate::base::{Diagnostic, Lengths};
use crate::ir::graph::{ModKind, Ty};

/// Largest head_dim of our kernels and reference.
pub(crate) const MAX_HEAD_DIM: usize = 256;

impl Problem {
    /// Checks every rule. Errors: all broken ones.
    pub fn new(spec: ProblemSpec) -> Result<Problem, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let lengths = Lengths::new(spec.q_len, spec.kv_len).map_err(|d| errors.push(d)).ok();
        check_counts(&spec, &mut errors);
        check_heads(&spec, &mut errors);
        check_format(&spec, &mut errors);
        check_mods(&spec, &mut errors);
        match lengths {
            Some(lengths) if errors.is_empty() => Ok(Problem { spec, lengths, plans: MaskPlans::default() }),
            _ => Err(errors),
        }
    }
}

fn check_counts(spec: &ProblemSpec, errors: &mut Vec<Diagnostic>) {
    for (name, value, max) in [
        ("batch", spec.batch, 1 << 16),
        ("heads", spec.heads, 1 << 12),
        ("kv_heads", spec.kv_heads, 1 << 12),
        ("head_dim", spec.head_dim, MAX_HEAD_DIM),
        ("head_dim_v", spec.head_dim_v, MAX_HEAD_DIM),
        ("block_size_q", spec.block_size.q, 1 << 20),
        ("block_size_kv", spec.block_size.kv, 1 << 20),
    ] {
        if value == 0 || value > max {
            errors.push(
                Diagnostic::error("count-out-of-range", format!("{name} is {value}; it must be between 1 and {max}"))
                    .hint(format!("set {name} in the problem settings")),
            );
        }
    }
}

fn check_heads(spec: &ProblemSpec, errors: &mut Vec<Diagnostic>) {
    if spec.kv_heads > 0 && !spec.heads.is_multiple_of(spec.kv_heads) {
        let message = format!(
            "Expect number of query heads to be a multiple of kv heads for GQA but got Hq={} and Hkv={}.",
            spec.heads, spec.kv_heads
        );
        errors.push(Diagnostic::error("gqa-heads", message).hint("choose kv heads that divide the query heads"));
    }
}

fn check_format(spec: &ProblemSpec, errors: &mut Vec<Diagnostic>) {
    use crate::base::DType::{BF16, F16, F32};
    if !matches!(spec.dtype, BF16 | F16 | F32) {
        let message = format!("Query, key, and value must be either bfloat16 or float16, not {}", spec.dtype);
        errors.push(
            Diagnostic::error("dtype", message).hint("set dtype to bfloat16 or float16 (float32 runs on the CPU)"),
        );
    }
    if spec.scale.is_some_and(|s| !s.is_finite()) {
        errors.push(
            Diagnostic::error("scale", "scale must be a finite number")
                .hint("leave the field empty for 1/sqrt(head_dim)"),
        );
    }
}

fn check_mods(spec: &ProblemSpec, errors: &mut Vec<Diagnostic>) {
    let wanted = [(&spec.mask, ModKind::Mask, Ty::Bool), (&spec.score, ModKind::Score, Ty::Float)];
    for (given, kind, ty) in wanted {
        let Some(given) = given else { continue };
        if given.kind != kind || given.graph.ty(given.root) != ty {
            let message = format!("expected a {kind:?} mod, got a {:?} mod", given.kind);
            errors.push(
                Diagnostic::error("mod-kind", message).hint("mask_mod takes 4 indices, score_mod the score first"),
            );
        }
    }
}
