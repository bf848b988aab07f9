//! The verdicts on the fastest that run in the user's Python beside FlexAttention by Triton: FlashAttention-4 and cudnn.flex_attention,
//! and on libraries that take masks as data.
//!
//! Invariant: what the racers of these names refuse is refused here in the same words. Must not know how the table is shown.

use super::others::Taken;
use super::{Answer, Facts, How, Place, Verdict, Why, digits};
use crate::analysis::lowered::Lowered;
use crate::backends::torch::rivals;
use crate::base::{BackendName, Control, Diagnostic};
use crate::export::lowered::Target;
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
        let takes = |taken: Result<(), Diagnostic>, how: How| match taken {
            Ok(()) => Answer::Takes(how),
            Err(why) => Answer::Refuses(Why::Reported(Box::new(why))),
        };
        let (forward, backward) = match self.place {
            Place::Cpu => {
                let why = Answer::Refuses(Why::CudaOnlyOf("FlashAttention-4"));
                (why.clone(), why)
            }
            Place::Gpu(arch) => match rivals::flash(self.problem, digits(arch)) {
                Ok(()) if !self.learns.is_empty() => (
                    Answer::Refuses(Why::BuffersNeedGradients(self.learns.clone())),
                    Answer::Refuses(Why::Quoted(
                        "NYI: Flex Flash Attention bwd doesn't support captured grads yet.".into(),
                    )),
                ),
                forward => {
                    // PyTorch refuses block lists in a fixed order below compute capability 10
                    let any = self.problem.mask.is_some() && digits(arch) < 100;
                    let how = if any { How::ListsInAnyOrder } else { How::Lists };
                    (takes(forward, How::Lists), takes(rivals::flash_gradients(self.problem, digits(arch)), how))
                }
            },
        };
        let call = call.map(|call| call.replace(')', ", kernel_options={\"BACKEND\": \"FLASH\"})"));
        Verdict { who: BackendName::TorchFlexFlash.to_string(), forward, backward, call, mask_bytes: None }
    }

    /// NVIDIA's flex attention: masks as ranges of keys.
    pub(super) fn cudnn_flex(&self) -> Verdict {
        let refuses = |why: Diagnostic| Answer::Refuses(Why::Reported(Box::new(why)));
        let (forward, backward) = match self.place {
            Place::Cpu => (Answer::Refuses(Why::CudaOnly), Answer::Refuses(Why::CudaOnly)),
            Place::Gpu(arch) => {
                let ends = || rivals::ends_of(self.lowered.as_ref().map_err(Diagnostic::clone)?, self.problem.batch);
                match rivals::cudnn_flex(self.problem, digits(arch)).and_then(|()| ends()) {
                    Err(why) => (refuses(why.clone()), refuses(why)),
                    Ok(ends) => {
                        let how = Answer::Takes(How::Ranges(ends.words(self.problem.batch)));
                        let trains = rivals::cudnn_flex_gradients(self.problem, digits(arch));
                        (how.clone(), trains.map_or_else(refuses, |()| how))
                    }
                }
            }
        };
        let call = forward.takes().then(|| {
            let scale = self.scale("softmax_scale");
            format!("flex_attn_func(q, k, v, mask_plan=create_mask_plan(mask_func, q, k, v){scale}), tensors as [B, S, H, D]; mask_func: `maskloom export --to-cudnn`")
        });
        Verdict { who: BackendName::CudnnFlex.to_string(), forward, backward, call, mask_bytes: None }
    }

    /// A mask as slices.
    pub(super) fn magi(&self) -> Result<Taken, Why> {
        lowering::refuse_heads(self.problem, Target::Magi).map_err(briefly)?;
        let found = lowering::slices(self.as_data()?).map_err(briefly)?;
        let slices = found.iter().map(Vec::len).sum();
        let call =
            "flex_flash_attn_func(q, k, v, q_ranges, k_ranges, attn_type_map); the slices: `maskloom export --to-magi`";
        Ok(Taken::new(How::Slices(slices), call))
    }

    /// A mask as bounds of each key's rows.
    pub(super) fn flashmask(&self) -> Result<Taken, Why> {
        lowering::refuse_heads(self.problem, Target::FlashMask).map_err(briefly)?;
        let found = self.as_data()?.column_bounds().map_err(briefly)?;
        let call = format!(
            "flashmask_attention(q, k, v, startend_row_indices, causal={}); the bounds: `maskloom export --to-flashmask`",
            if found.causal { "True" } else { "False" }
        );
        Ok(Taken::new(How::Bounds(found.count(), found.causal), call))
    }

    /// The mask without a score mod, as ranges.
    fn as_data(&self) -> Result<&Lowered, Why> {
        if self.problem.score.is_some() {
            return Err(Why::NoScoreMod);
        }
        self.lowered.as_ref().map_err(|why| briefly(why.clone()))
    }
}

/// A refusal without its way out, which other commands have.
fn briefly(why: Diagnostic) -> Why {
    Why::Reported(Box::new(Diagnostic { hint: None, ..why }))
}
