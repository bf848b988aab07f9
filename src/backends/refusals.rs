//! The refusals of a backend on every device, in one wording, with the library's rule.
//!
//! Invariant: a refusal names the library's rule and a fix. Must not know devices, memory or compilers.

use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;
use crate::problem::pattern::Pattern;

/// Why a backend runs no score mod, by its library's rule; None for those that run every mod.
fn rule(backend: BackendName) -> Option<&'static str> {
    match backend {
        BackendName::Sdpa => Some("scaled_dot_product_attention supports no score_mod, so sdpa cannot run this"),
        BackendName::FlashAttention2 => {
            Some("flash_attention_2 runs no score_mod; flash-attn itself has ALiBi slopes and a soft cap alone")
        }
        _ => None,
    }
}

/// Errors if the problem has a score mod and the backend runs none.
pub(super) fn score_mod(backend: BackendName, problem: &Problem) -> Result<(), Diagnostic> {
    match rule(backend).filter(|_| problem.score.is_some()) {
        None => Ok(()),
        Some(rule) => {
            Err(Diagnostic::error("score-mod-unsupported", rule).hint("use flex or eager, or remove the score mod"))
        }
    }
}

/// flash_attention_2 runs no mask, or a causal one aligned to the bottom right as flash-attn does. Errors if the problem's
/// mask, `found`, is another.
pub(super) fn flash_mask(problem: &Problem, found: Pattern) -> Result<Pattern, Diagnostic> {
    let aligned = problem.kv_len as i64 - problem.q_len as i64;
    match found {
        Pattern::Full => Ok(found),
        Pattern::Causal { offset } if offset == aligned => Ok(found),
        Pattern::Causal { .. } => Err(Diagnostic::error(
            "flash-causal-alignment",
            "flash-attn aligns its causal mask to the bottom right; this one is aligned to the top left",
        )
        .hint("use sdpa or flex, set q_len = kv_len, or use kv_idx <= q_idx + (kv_len - q_len)")),
        Pattern::Other => Err(Diagnostic::error(
            "flash-mask-unsupported",
            "flash_attention_2 runs no mask except causal; flash-attn itself has sliding windows too",
        )
        .hint("use flex (block-sparse) or sdpa (dense mask)")),
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cpu;
    use crate::backends::cuda::choose;
    use crate::backends::testing::{causal, distance_score, modulo_rows, spec, with_mods};
    use crate::base::{BackendName, DType};
    use crate::problem::{Problem, ProblemSpec};

    /// The CPU backend's message, then the GPU backend's.
    fn both(problem: &Problem, backend: BackendName) -> [Option<crate::base::Diagnostic>; 2] {
        let on_cpu = cpu::backend(backend).expect("there is one").support(problem);
        [on_cpu.err(), choose::choose(problem, backend).err()]
    }

    #[test]
    fn both_devices_refuse_the_same_in_the_same_words() {
        let half = |q, kv| ProblemSpec { dtype: DType::BF16, ..spec(1, 2, 2, q, kv, 32) };
        let cases = [
            (with_mods(half(40, 40), None, Some(distance_score())), "score-mod-unsupported"),
            (with_mods(half(40, 48), Some(causal(0)), None), "flash-causal-alignment"),
            (with_mods(half(40, 40), Some(modulo_rows(5, 3)), None), "flash-mask-unsupported"),
        ];
        for (problem, code) in &cases {
            for backend in [BackendName::FlashAttention2, BackendName::Sdpa] {
                let [cpu, cuda] = both(problem, backend);
                assert_eq!(cpu, cuda, "{backend}");
                let refused = backend == BackendName::FlashAttention2 || *code == "score-mod-unsupported";
                assert_eq!(cpu.map(|d| d.code.to_string()), refused.then(|| code.to_string()), "{backend}");
            }
        }
        assert_eq!(both(&with_mods(half(40, 48), Some(causal(8)), None), BackendName::FlashAttention2), [None, None]);
    }
}
