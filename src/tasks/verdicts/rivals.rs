//! The verdicts on the fastest that run in the user's Python beside FlexAttention by Triton: FlashAttention-4 and cudnn.flex_attention,
//! and on libraries that take masks as data.
//!
//! Invariant: what the racers of these names refuse is refused here in the same words. Must not know how the table is shown.

use super::others::Taken;
use super::{Answer, Facts, Place, Verdict, digits, one_line};
use crate::analysis::lowered::Lowered;
use crate::backends::torch::rivals;
use crate::base::{BackendName, Control, Diagnostic};
use crate::export::lowered::{Form, Target};
use crate::problem::Problem;
use crate::tasks::lowering;

/// The mask as ranges, where somebody takes it. Errors: `cancelled`.
pub(super) fn lowered(
    problem: &Problem,
    place: &Place,
    control: &Control,
) -> Result<Result<Lowered, Diagnostic>, Diagnostic> {
    if *place == Place::Cpu || problem.score.is_some() {
        return Ok(Err(Diagnostic::error("unasked", "nobody takes it as data here")));
    }
    match rivals::ranges(problem, control) {
        Err(why) if why.code == "cancelled" => Err(why),
        found => Ok(found),
    }
}

impl Facts<'_> {
    /// FlashAttention-4 below FlexAttention.
    pub(super) fn flash_4(&self, call: Option<String>) -> Verdict {
        let lists = || Answer::Takes("block lists, mods compiled in".into());
        let both = |words: String| (Answer::Refuses(words.clone()), Answer::Refuses(words));
        let (forward, backward) = match self.place {
            Place::Cpu => both("FlashAttention-4 runs on CUDA only".into()),
            Place::Gpu(arch) => match rivals::flash(self.problem, digits(arch)) {
                Err(why) => both(one_line(&why)),
                Ok(()) if !self.learns.is_empty() => (
                    Answer::Refuses(format!(
                        "Input buffers require gradients (not supported by flash attention): {} needs gradients; `.detach()` it",
                        self.learnt()
                    )),
                    Answer::Refuses("NYI: Flex Flash Attention bwd doesn't support captured grads yet.".into()),
                ),
                Ok(()) => (lists(), lists()),
            },
        };
        let call = call.map(|call| call.replace(')', ", kernel_options={\"BACKEND\": \"FLASH\"})"));
        Verdict { who: BackendName::TorchFlexFlash.to_string(), forward, backward, call }
    }

    /// NVIDIA's flex attention: masks as ranges of keys.
    pub(super) fn cudnn_flex(&self) -> Verdict {
        let refuses = |why: &Diagnostic| Answer::Refuses(one_line(why));
        let (forward, backward) = match self.place {
            Place::Cpu => {
                let words = "runs on CUDA only";
                (Answer::Refuses(words.into()), Answer::Refuses(words.into()))
            }
            Place::Gpu(arch) => {
                let ends = || rivals::ends_of(self.lowered.as_ref().map_err(Diagnostic::clone)?, self.problem.batch);
                match rivals::cudnn_flex(self.problem, digits(arch)).and_then(|()| ends()) {
                    Err(why) => (refuses(&why), refuses(&why)),
                    Ok(ends) => {
                        let how = Answer::Takes(format!("ranges of keys a row: {}", ends.words(self.problem.batch)));
                        let trains = rivals::cudnn_flex_gradients(self.problem, digits(arch));
                        (how.clone(), trains.map_or_else(|why| refuses(&why), |()| how))
                    }
                }
            }
        };
        let call = forward.takes().then(|| {
            let scale = self.scale("softmax_scale");
            format!("flex_attn_func(q, k, v, mask_plan=create_mask_plan(mask_func, q, k, v){scale}), tensors as [B, S, H, D]; mask_func: `maskloom export --to-cudnn`")
        });
        Verdict { who: BackendName::CudnnFlex.to_string(), forward, backward, call }
    }

    /// A mask as slices.
    pub(super) fn magi(&self) -> Result<Taken, String> {
        lowering::refuse_heads(self.problem, Target::Magi).map_err(|why| why.message)?;
        let found = lowering::slices(self.as_data()?).map_err(|why| why.message)?;
        let form = Form::Slices(found).words(self.problem.batch);
        let call =
            "flex_flash_attn_func(q, k, v, q_ranges, k_ranges, attn_type_map); the slices: `maskloom export --to-magi`";
        Ok(Taken::new(form, call))
    }

    /// A mask as bounds of each key's rows.
    pub(super) fn flashmask(&self) -> Result<Taken, String> {
        lowering::refuse_heads(self.problem, Target::FlashMask).map_err(|why| why.message)?;
        let found = self.as_data()?.column_bounds().map_err(|why| why.message)?;
        let call = format!(
            "flashmask_attention(q, k, v, startend_row_indices, causal={}); the bounds: `maskloom export --to-flashmask`",
            if found.causal { "True" } else { "False" }
        );
        Ok(Taken::new(Form::Bounds(found).words(self.problem.batch), call))
    }

    /// The mask without a score mod, as ranges.
    fn as_data(&self) -> Result<&Lowered, String> {
        if self.problem.score.is_some() {
            return Err("supports no score_mod".into());
        }
        self.lowered.as_ref().map_err(|why| why.message.clone())
    }
}
