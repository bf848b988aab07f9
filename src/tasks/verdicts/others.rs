//! The verdicts on libraries besides PyTorch: flash-attn, MagiAttention, FlashMask, NATTEN, diffusers.
//!
//! Invariant: a library takes a design only if its own parameters express exactly this mask and this score mod. Must not
//! know how forms are found.

use super::{Answer, Dispatched, Facts, Form, Given, How, Known, Place, Scored, Verdict, Why};
use crate::trainers::known::{diffusers_edition, dispatcher};

/// How a library takes a design.
#[derive(Clone)]
pub(super) struct Taken {
    how: How,
    call: String,
    /// Why it gives no gradients, if it gives none.
    untrained: Option<Why>,
}

impl Taken {
    pub(super) fn new(how: How, call: impl Into<String>) -> Taken {
        Taken { how, call: call.into(), untrained: None }
    }
}

/// What flash-attn does to scores, and its arguments.
#[derive(Default)]
struct Arguments {
    scored: Option<Scored>,
    text: String,
    untrained: Option<Why>,
}

impl Facts<'_> {
    /// Other libraries.
    pub(super) fn others(&self) -> Vec<Verdict> {
        vec![
            self.on_gpu("flash-attn", self.half_only(self.flash())),
            self.on_gpu("flash-attn varlen", self.half_only(self.varlen())),
            self.on_gpu("MagiAttention", self.half_only(self.magi())),
            self.on_gpu("FlashMask", self.half_only(self.flashmask())),
            self.on_gpu("NATTEN", self.natten()),
            self.diffusers_flex(),
        ]
    }

    /// diffusers' dispatcher with the backend `flex`. What it does with `is_causal` is read from its release.
    fn diffusers_flex(&self) -> Verdict {
        let keeps_causal = dispatcher("flex").is_some_and(|row| row.causal == "keeps");
        let taken = if self.problem.score.is_some() {
            Err(Why::NoScoreArgument)
        } else if self.form == Form::Full {
            Ok(Dispatched::NoMask)
        } else if self.form == (Form::Causal { offset: 0 }) && !keeps_causal {
            Ok(Dispatched::BlockMaskAlone)
        } else {
            Ok(Dispatched::BlockMask)
        };
        let call = "dispatch_attention_fn(q, k, v, attn_mask=block_mask, backend=\"flex\"), tensors as [B, S, H, D]";
        let (answer, call) = match taken {
            Ok(how) => (Answer::Takes(How::Dispatched(how, diffusers_edition())), Some(call.to_string())),
            Err(why) => (Answer::Refuses(why), None),
        };
        let backward = match (&self.place, &answer) {
            (Place::Cpu, Answer::Takes(_)) => Answer::Refuses(Why::CpuGradients),
            _ => answer.clone(),
        };
        Verdict { who: "diffusers flex".into(), forward: answer, backward, call, mask_bytes: None }
    }

    /// All of them run on GPUs only.
    fn on_gpu(&self, who: &str, taken: Result<Taken, Why>) -> Verdict {
        let taken = match self.place {
            Place::Cpu => Err(Why::CudaOnly),
            Place::Gpu(_) => taken,
        };
        let (forward, backward, call) = match taken {
            Ok(Taken { how, call, untrained }) => {
                let backward = untrained.map_or_else(|| Answer::Takes(how.clone()), Answer::Refuses);
                (Answer::Takes(how), backward, Some(call))
            }
            Err(why) => (Answer::Refuses(why.clone()), Answer::Refuses(why), None),
        };
        Verdict { who: who.into(), forward, backward, call, mask_bytes: None }
    }

    fn half_only(&self, taken: Result<Taken, Why>) -> Result<Taken, Why> {
        if self.single() { Err(Why::HalfOnly) } else { taken }
    }

    fn flash(&self) -> Result<Taken, Why> {
        let aligned = self.problem.kv_len as i64 - self.problem.q_len as i64;
        let (mask_kept, mask) = match &self.form {
            _ if self.problem.score.is_some() && self.known.is_none() => return Err(Why::FlashScores),
            Form::Full => (Given::Everything, String::new()),
            Form::Causal { offset } if *offset == aligned => (Given::Causal, ", causal=True".into()),
            Form::Causal { .. } => return Err(Why::Alignment),
            Form::Window { left, right } => {
                let side = |n: &Option<i64>| n.unwrap_or(-1);
                (Given::Window, format!(", window_size=({}, {})", side(left), side(right)))
            }
            _ => return Err(Why::NoMaskButWindows),
        };
        let backwards = matches!(self.form, Form::Causal { .. } | Form::Window { right: Some(0), .. });
        let Arguments { scored, text: arguments, untrained } = self.flash_scored(backwards)?;
        let scale = self.scale("softmax_scale");
        Ok(Taken {
            how: How::Flash(mask_kept, scored),
            call: format!("flash_attn_func(q, k, v{scale}{mask}{arguments})"),
            untrained,
        })
    }

    fn varlen(&self) -> Result<Taken, Why> {
        if self.problem.score.is_some() && self.known.is_none() {
            return Err(Why::FlashScores);
        }
        let Form::Documents { ends, causal } = &self.form else {
            return Err(Why::NoDocuments);
        };
        if matches!(self.known, Some(Known::Alibi { .. })) && ends.iter().any(|(q, kv)| q != kv) {
            return Err(Why::AlibiOfDocuments);
        }
        let Arguments { scored, text: arguments, untrained } = self.flash_scored(*causal)?;
        let list = |of: fn(&(usize, usize)) -> usize| {
            let all: Vec<String> = ends.iter().map(|e| of(e).to_string()).collect();
            if all.len() > 6 { format!("0, {}, ...", all[..5].join(", ")) } else { format!("0, {}", all.join(", ")) }
        };
        let call = format!(
            "flash_attn_varlen_func(q, k, v, cu_seqlens_q=[{}], cu_seqlens_k=[{}]{}, causal={}{arguments})",
            list(|e| e.0),
            list(|e| e.1),
            self.scale("softmax_scale"),
            if *causal { "True" } else { "False" }
        );
        Ok(Taken { how: How::Documents(ends.len(), scored), call, untrained })
    }

    /// A recognised score mod as arguments of flash-attn, whose ALiBi is `-slope * abs(q_idx + kv_len - q_len - kv_idx)`.
    /// `backwards`: no query sees a later key.
    fn flash_scored(&self, backwards: bool) -> Result<Arguments, Why> {
        let Some(known) = &self.known else { return Ok(Arguments::default()) };
        let untrained = |argument: &'static str| {
            (!self.learns.is_empty()).then(|| Why::NoGradientOf(argument, self.learns.clone()))
        };
        match known {
            Known::SoftCap(cap) => Ok(Arguments {
                scored: Some(Scored::SoftCap(*cap)),
                text: format!(", softcap={cap:?}"),
                untrained: untrained("softcap"),
            }),
            Known::Alibi { shift, .. } if *shift != self.problem.kv_len as f64 - self.problem.q_len as f64 => {
                Err(Why::AlibiOfLast)
            }
            Known::Alibi { signed: true, .. } if !backwards => Err(Why::AlibiOfBothSides),
            Known::Alibi { slopes, tensor, .. } => {
                let values =
                    || slopes.iter().map(|slope| format!("{:?}", *slope as f32)).collect::<Vec<_>>().join(", ");
                let given = tensor.clone().unwrap_or_else(|| format!("torch.tensor([{}], device=\"cuda\")", values()));
                Ok(Arguments {
                    scored: Some(Scored::Alibi),
                    text: format!(", alibi_slopes={given}"),
                    untrained: untrained("alibi_slopes"),
                })
            }
        }
    }

    fn natten(&self) -> Result<Taken, Why> {
        let s = self.problem.spec();
        if self.problem.score.is_some() {
            return Err(Why::NoScoreMod);
        }
        let Some(found) = &self.neighbourhood else { return Err(self.no_neighbourhood()) };
        if !s.head_dim.is_multiple_of(8) || !s.head_dim_v.is_multiple_of(8) {
            return Err(Why::HeadDims);
        }
        let join = |all: Vec<String>| all.join(", ");
        let tuple =
            |all: Vec<String>| if all.len() == 1 { format!("({},)", all[0]) } else { format!("({})", join(all)) };
        let python = |truth: bool| if truth { "True" } else { "False" }.to_string();
        let extents = found.axes.iter().map(|a| a.extent.to_string()).collect::<Vec<_>>();
        let kernel = tuple(found.axes.iter().map(|a| a.kernel.to_string()).collect());
        let causal = match found.axes.iter().any(|a| a.causal) {
            true => format!(", is_causal={}", tuple(found.axes.iter().map(|a| python(a.causal)).collect())),
            false => String::new(),
        };
        let call = format!(
            "na{}d(q, k, v, kernel_size={kernel}{causal}{}), tensors as [{}, {}, heads, head_dim]",
            found.axes.len(),
            self.scale("scale"),
            s.batch,
            join(extents.clone())
        );
        Ok(Taken::new(How::Neighbourhood(extents.join("x")), call))
    }

    /// Why the mask is not offered to NATTEN.
    fn no_neighbourhood(&self) -> Why {
        if self.problem.q_len != self.problem.kv_len {
            return Why::OneGrid;
        }
        if self.problem.mask_per_head() || self.problem.mask_per_batch() {
            return Why::OneWindow;
        }
        if matches!(self.form, Form::Window { left: Some(1..), right: Some(1..) }) {
            return Why::Edges;
        }
        let Some(grid) = self.grid else {
            return Why::NoneOfSequence(self.problem.q_len);
        };
        let extents = grid.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        Why::NoneOfGrid(extents)
    }
}
