//! A design's mask as other libraries take it: `export --to-cudnn`, `--to-flashmask`, `--to-magi`, and the verdicts on them.
//!
//! Invariant: what is refused here a verdict refuses in the same words. Nothing is written. Must not know its callers.

use crate::analysis::lowered::{Lowered, Slice};
use crate::backends::torch::rivals;
use crate::base::{Control, Diagnostic};
use crate::export::lowered::{Form, Target, no_score};
use crate::problem::Problem;

/// Slices that are written, at most.
const SLICES: usize = 1 << 16;
/// Hopper, which every one of them takes.
const HOPPER: u32 = 90;

/// The mask in a target's form. Errors: why it has none.
pub fn form(problem: &Problem, target: Target, control: &Control) -> Result<Form, Diagnostic> {
    let refused = |why: Diagnostic| match why.hint.clone() {
        _ if why.code == "cancelled" => why,
        Some(_) => why,
        None => why.hint("export the PyTorch module or a kernel, which take any mask"),
    };
    if problem.score.is_some() {
        return Err(refused(no_score(target)));
    }
    if target == Target::Cudnn {
        rivals::cudnn_flex(problem, HOPPER)?;
        return Ok(Form::Ends(rivals::mask_func(problem, control)?));
    }
    refuse_heads(problem, target).map_err(refused)?;
    let lowered = rivals::ranges(problem, control).map_err(refused)?;
    let made = match target {
        Target::Magi => slices(&lowered).map(Form::Slices),
        _ => lowered.column_bounds().map(Form::Bounds),
    };
    made.map_err(refused)
}

/// The slices of each batch entry that differs. Errors: there are too many.
pub(crate) fn slices(lowered: &Lowered) -> Result<Vec<Vec<Slice>>, Diagnostic> {
    (0..lowered.shape().batch).map(|b| lowered.slices(b, 0, SLICES)).collect()
}

/// Errors: heads differ where the target has one mask for them.
pub(crate) fn refuse_heads(problem: &Problem, target: Target) -> Result<(), Diagnostic> {
    let message = match target {
        _ if problem.mask_shape().heads == 1 => return Ok(()),
        Target::Magi => "MagiAttention has one mask for all heads, and this one differs between them",
        Target::FlashMask if problem.group() > 1 => {
            "FlashMask has a mask for each key head, and this one differs between query heads of one"
        }
        _ => return Ok(()),
    };
    Err(Diagnostic::error("lowered-heads", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{compile, from_document, library};

    fn preset(name: &str) -> Problem {
        let document = library::preset(name).expect("a preset").document().expect("loads");
        from_document(&document, &compile::compile(&document, &compile::BuiltIn)).expect("a problem")
    }

    fn words(name: &str, target: Target) -> Result<String, String> {
        let problem = preset(name);
        form(&problem, target, &Control::new()).map(|form| form.words(problem.batch)).map_err(|why| {
            assert!(why.hint.is_some(), "{name}: {why:?}");
            why.message
        })
    }

    /// Presets whose forms follow from their definitions.
    #[test]
    fn presets_have_the_forms_that_their_masks_imply() {
        let ok = |words: &str| Ok(words.to_string());
        for (name, cudnn, flashmask, magi) in [
            // the keys before the end of each row
            ("causal", "nfunc 1", ok("1 bound a key, causal"), ok("1 slice")),
            // the first keys, then a window
            ("streaming_llm", "nfunc 3", ok("1 bound a key, causal"), ok("3 slices")),
            // a prefix is seen from everywhere
            ("prefix_lm", "nfunc 1", ok("2 bounds a key"), ok("2 slices")),
        ] {
            let found = words(name, Target::Cudnn).expect("it has row ends");
            assert!(found.starts_with(&format!("{cudnn}, ")), "{name}: {found}");
            assert_eq!(words(name, Target::FlashMask), flashmask, "{name}");
            assert_eq!(words(name, Target::Magi), magi, "{name}");
        }
        assert!(words("alibi", Target::Cudnn).unwrap_err().contains("score mod"));
        assert!(words("natten_2d", Target::FlashMask).unwrap_err().contains("more than two ranges"));
        assert!(words("svg_heads", Target::Magi).unwrap_err().contains("differs between them"));
    }
}
