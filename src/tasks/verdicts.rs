//! The backends that support a design, forward and backward, before anything is compiled: ours and other known
//! libraries.
//!
//! Invariant: verdicts about our backends are their own; verdicts about other libraries follow the refusals in their
//! sources, in their words if these are fixed, with the versions that were read. Nothing runs. Must not know how the
//! table is shown.

mod answers;
mod arch;
mod known_scores;
mod neighbourhood;
mod others;
mod rivals;
mod sizes;
mod told;

pub use self::answers::{Answer, Dispatched, Given, How, Scored, Why};

use self::known_scores::Known;
use self::neighbourhood::Neighbourhood;
use crate::analysis::lowered::Lowered;
use crate::analysis::ranges::row_ranges;
use crate::backends::cpu;
use crate::backends::cuda::{Limits, verdict};
use crate::base::{BackendName, Control, DType, Diagnostic};
use crate::ir::passes::derive::{Derived, derive};
use crate::problem::Problem;
use crate::problem::pattern::Pattern;
use serde::Serialize;
use std::ops::Range;

/// The PyTorch whose sources the verdicts on it are read from.
pub const READ: &str = "PyTorch 2.15, flash-attn 2.8, flash-attn-4 4.0.0b36, nvidia-cudnn-frontend 1.32, NATTEN 0.21";

/// Where it would run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Place {
    /// Here, without a GPU.
    Cpu,
    /// A GPU of this architecture, such as `sm_90a`.
    Gpu(String),
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Who: `flex`, `torch:sdpa flash`, `flash-attn varlen`.
    pub who: String,
    /// The forward pass.
    pub forward: Answer,
    /// The backward pass, for q, k, v and what the design learns.
    pub backward: Answer,
    /// The exact call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Bytes of the mask that it is given, as lists, bounds or cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_bytes: Option<u64>,
}

/// The form of a mask for programs without block lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Everything is kept.
    Full,
    /// `kv_idx <= q_idx + offset`.
    Causal {
        /// Keys that row 0 sees beyond the first.
        offset: i64,
    },
    /// Each row keeps `left` keys before and `right` behind its diagonal, `kv_idx - q_idx - offset`.
    Window {
        /// Keys before; None: all.
        left: Option<i64>,
        /// Keys behind; None: all.
        right: Option<i64>,
    },
    /// Documents one after the other, each of its queries over its own keys.
    Documents {
        /// Where queries' and keys' documents end.
        ends: Vec<(usize, usize)>,
        /// Whether each is causal.
        causal: bool,
    },
    /// Each row keeps one range of keys.
    Ranges,
    /// None of these, or different for heads or batch entries.
    Other,
}

/// The table for a problem whose tokens are a sequence. Errors: `cancelled`, an unknown architecture.
pub fn verdicts(problem: &Problem, place: &Place, control: &Control) -> Result<Vec<Verdict>, Diagnostic> {
    verdicts_on_grid(problem, None, place, control)
}

/// The same with the extents of the grid of which queries and keys are the tokens, if there is one.
pub fn verdicts_on_grid(
    problem: &Problem,
    grid: Option<&[usize]>,
    place: &Place,
    control: &Control,
) -> Result<Vec<Verdict>, Diagnostic> {
    if let Place::Gpu(name) = place {
        arch::check(name)?;
    }
    let facts = Facts::new(problem, grid, place, control)?;
    let mut all = facts.own()?;
    all.extend(facts.torch());
    all.extend(facts.others());
    for one in &mut all {
        one.mask_bytes = facts.mask_bytes(one);
    }
    Ok(all)
}

/// The form of a problem's mask. Errors: `cancelled`.
pub fn form(problem: &Problem, control: &Control) -> Result<Form, Diagnostic> {
    match problem.pattern(control)? {
        Pattern::Full => return Ok(Form::Full),
        Pattern::Causal { offset } => return Ok(Form::Causal { offset }),
        Pattern::Other => {}
    }
    let (Some(mask), false) = (&problem.mask, problem.mask_per_head() || problem.mask_per_batch()) else {
        return Ok(Form::Other);
    };
    let Some(rows) = row_ranges(mask, 0, 0, problem.lengths()) else { return Ok(Form::Other) };
    Ok(window(&rows, problem).or_else(|| documents(&rows, problem)).unwrap_or(Form::Ranges))
}

/// Bottom-right aligned, as flash-attn counts.
fn window(rows: &[Range<u32>], problem: &Problem) -> Option<Form> {
    let (kv_len, shift) = (problem.kv_len as i64, problem.kv_len as i64 - problem.q_len as i64);
    let at = |q: usize| q as i64 + shift;
    let inside = |q: &usize| !rows[*q].is_empty();
    let lefts: Vec<i64> = (0..rows.len())
        .filter(inside)
        .filter(|q| rows[*q].start > 0)
        .map(|q| at(q) - i64::from(rows[q].start))
        .collect();
    let rights: Vec<i64> = (0..rows.len())
        .filter(inside)
        .filter(|q| i64::from(rows[*q].end) < kv_len)
        .map(|q| i64::from(rows[q].end) - 1 - at(q))
        .collect();
    let same = |all: &[i64]| all.windows(2).all(|p| p[0] == p[1]);
    if !same(&lefts) || !same(&rights) {
        return None;
    }
    let (left, right) = (lefts.first().copied(), rights.first().copied());
    let wanted = |q: usize| {
        let start = left.map_or(0, |left| at(q) - left).clamp(0, kv_len);
        let end = right.map_or(kv_len, |right| at(q) + right + 1).clamp(start, kv_len);
        start as u32..end as u32
    };
    let right_everywhere = (0..rows.len()).all(|q| {
        let wanted = wanted(q);
        wanted == rows[q] || (wanted.is_empty() && rows[q].is_empty())
    });
    let possible = left.is_none_or(|l| l >= 0) && right.is_none_or(|r| r >= 0);
    (right_everywhere && possible).then_some(Form::Window { left, right })
}

/// Rows of one range each, or of causal ranges with one start each.
fn documents(rows: &[Range<u32>], problem: &Problem) -> Option<Form> {
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let causal = rows.first().is_some_and(|r| r.end == 1) && problem.q_len == problem.kv_len;
    for (q, row) in rows.iter().enumerate() {
        let first = q == 0 || row.start != rows[q - 1].start;
        if row.is_empty() || (first && row.start as usize != ends.last().map_or(0, |e| e.1)) {
            return None;
        }
        let fits = if causal { row.end as usize == q + 1 } else { first || *row == rows[q - 1] };
        if !fits || (causal && first && row.start as usize != q) {
            return None;
        }
        if first {
            ends.push((q + 1, row.end as usize));
        } else if let Some(last) = ends.last_mut() {
            *last = (q + 1, row.end as usize);
        }
    }
    let whole = ends.last().is_some_and(|e| e.1 == problem.kv_len) && ends.len() > 1;
    whole.then_some(Form::Documents { ends, causal })
}

/// The inputs of verdicts.
struct Facts<'a> {
    problem: &'a Problem,
    place: &'a Place,
    form: Form,
    /// For the score mod, if there is a differentiable one.
    derived: Option<Result<Derived, Diagnostic>>,
    /// Captured float tensors by name.
    learns: Vec<String>,
    /// The score mod, if it is one that libraries without mods know.
    known: Option<Known>,
    /// Extents of the tokens' grid.
    grid: Option<&'a [usize]>,
    /// The mask, if it is a neighbourhood of that grid, or of the sequence.
    neighbourhood: Option<Neighbourhood>,
    /// The mask as ranges, for libraries on GPUs that take it as data; why it has too many.
    lowered: Result<Lowered, Diagnostic>,
}

impl<'a> Facts<'a> {
    fn new(
        problem: &'a Problem,
        grid: Option<&'a [usize]>,
        place: &'a Place,
        control: &Control,
    ) -> Result<Facts<'a>, Diagnostic> {
        let derived = problem.score.as_deref().map(|score| derive(score, |_| true));
        let learns =
            problem.score.as_deref().and_then(|score| crate::backends::learning(score).ok()).unwrap_or_default();
        let learns = learns.into_iter().map(|(name, _)| name).collect();
        let known = problem.score.as_deref().and_then(|score| known_scores::recognise(score, problem.heads));
        let neighbourhood = neighbourhood::find(problem, grid, control)?;
        let (form, lowered) = (form(problem, control)?, rivals::lowered(problem, place, control)?);
        Ok(Facts { problem, place, form, derived, learns, known, grid, neighbourhood, lowered })
    }

    fn single(&self) -> bool {
        self.problem.dtype == DType::F32
    }

    /// Whether the score mod adds something that does not depend on the score: a bias.
    fn is_bias(&self) -> bool {
        let adds = |d: &Derived| d.constant() == Some(1.0);
        self.derived.as_ref().is_some_and(|d| d.as_ref().is_ok_and(adds))
    }

    fn own(&self) -> Result<Vec<Verdict>, Diagnostic> {
        let names = [BackendName::Eager, BackendName::Sdpa, BackendName::FlashAttention2, BackendName::Flex];
        names.into_iter().map(|name| self.of_own(name)).collect()
    }

    fn of_own(&self, name: BackendName) -> Result<Verdict, Diagnostic> {
        let (forward, backward) = match self.place {
            Place::Cpu => {
                let backend = cpu::backend(name).expect("one of the CPU backends");
                (backend.support(self.problem), backend.supports_gradients(self.problem))
            }
            Place::Gpu(arch) => {
                Limits::named(arch)?;
                let forward = verdict::forward(self.problem, name);
                let derived = || match &self.derived {
                    Some(Err(why)) => Err(why.clone()),
                    _ => verdict::backward(self.problem, name, arch),
                };
                (forward.clone(), forward.and_then(|()| derived()))
            }
        };
        let (how, dense) = match name {
            BackendName::Flex => (How::ListsAndBits, false),
            BackendName::Eager => (How::Scores(self.scores_in_memory()), true),
            BackendName::Sdpa if self.is_plain() => (How::NoMaskOrCausal, false),
            BackendName::Sdpa => (How::DenseMask, true),
            _ => (How::FullOrCausal, false),
        };
        let answer = |result: Result<(), Diagnostic>| match result {
            Err(why) => Answer::Refuses(Why::Reported(Box::new(why))),
            Ok(()) if dense => Answer::Dense(how.clone()),
            Ok(()) => Answer::Takes(how.clone()),
        };
        Ok(Verdict {
            who: name.to_string(),
            forward: answer(forward),
            backward: answer(backward),
            call: None,
            mask_bytes: None,
        })
    }

    /// Bytes of materialised scores, 4 each; twice that with their probabilities, all kept for a backward pass.
    fn scores_in_memory(&self) -> u64 {
        let s = self.problem.spec();
        (s.batch as f64 * s.heads as f64 * s.q_len as f64 * s.kv_len as f64 * 4.0) as u64
    }

    /// Full, or causal from the top left.
    fn is_plain(&self) -> bool {
        matches!(self.form, Form::Full | Form::Causal { offset: 0 })
    }

    /// PyTorch's own.
    fn torch(&self) -> Vec<Verdict> {
        ["flash", "efficient", "cudnn", "math"].map(|part| self.sdpa(part)).into_iter().chain(self.flex()).collect()
    }

    /// Why a part of scaled_dot_product_attention refuses both passes.
    fn sdpa_refuses(&self, part: &str) -> Option<Why> {
        let gpu = matches!(self.place, Place::Gpu(_));
        if self.problem.score.is_some() && !self.is_bias() {
            return Some(Why::SdpaScore);
        }
        if !gpu && matches!(part, "efficient" | "cudnn") {
            return Some(Why::CudaOnly);
        }
        if gpu && matches!(part, "flash" | "cudnn") && self.single() {
            let words = format!(
                "Expected query, key and value to all be of dtype: {{Half, BFloat16}}. Got Float: {part} does not support float32"
            );
            return Some(Why::Quoted(words.into()));
        }
        if gpu && part == "flash" && (!self.is_plain() || self.problem.score.is_some()) {
            return Some(Why::Quoted("Flash Attention does not support non-null attn_mask.".into()));
        }
        let (s, square) = (self.problem.spec(), self.problem.q_len == self.problem.kv_len);
        if gpu && part == "flash" && matches!(self.form, Form::Causal { .. }) && !square {
            let words = "Flash attention does not support the is_causal flag when seqlen_q != seqlen_k.";
            return Some(Why::Quoted(words.into()));
        }
        if gpu && part == "flash" && (s.head_dim != s.head_dim_v || s.head_dim > 256) {
            let words =
                "Flash attention requires q,k,v to have the same last dimension and to be less than or equal to 256.";
            return Some(Why::Quoted(words.into()));
        }
        (part == "efficient" && s.heads != s.kv_heads).then_some(Why::NoGqa)
    }

    /// A part of scaled_dot_product_attention.
    fn sdpa(&self, part: &str) -> Verdict {
        let who = format!("torch:sdpa {part}");
        if let Some(why) = self.sdpa_refuses(part) {
            return Verdict {
                who,
                forward: Answer::Refuses(why.clone()),
                backward: Answer::Refuses(why),
                call: None,
                mask_bytes: None,
            };
        }
        let bias = self.problem.score.is_some();
        let gqa = if self.problem.spec().heads == self.problem.spec().kv_heads { "" } else { ", enable_gqa=True" };
        let gqa = format!("{gqa}{}", self.scale("scale"));
        let (mask, call) = match (&self.form, bias) {
            (Form::Full, false) => (Given::Nothing, format!("sdpa(q, k, v{gqa})")),
            (Form::Causal { offset: 0 }, false) => (Given::Causal, format!("sdpa(q, k, v, is_causal=True{gqa})")),
            (_, false) => (Given::DenseBool, format!("sdpa(q, k, v, attn_mask=make_mask(device){gqa})")),
            (_, true) => {
                let call =
                    "bias = score_mod(0, ...) over all cells, -inf outside the mask; sdpa(q, k, v, attn_mask=bias";
                (Given::DenseBias, format!("{call}{gqa})"))
            }
        };
        let forward = match (self.is_plain() && !bias, part) {
            (_, "math") => Answer::Dense(How::ScoresAnd(self.scores_in_memory(), mask)),
            (true, _) => Answer::Takes(How::Given(mask)),
            (false, _) => Answer::Dense(How::EveryBlock(mask)),
        };
        let backward = match (bias && !self.learns.is_empty(), part) {
            (true, "cudnn") => Answer::Refuses(Why::NoGradientOf("attn_mask", self.learns.clone())),
            (true, _) => Answer::Dense(How::BiasGradient(self.learns.clone())),
            _ => forward.clone(),
        };
        Verdict { who, forward, backward, call: Some(call), mask_bytes: None }
    }

    /// The argument of a scale that is not the usual one; empty otherwise.
    fn scale(&self, name: &str) -> String {
        self.problem.spec().scale.map_or(String::new(), |scale| format!(", {name}={scale:?}"))
    }

    /// FlexAttention by Triton and by FlashAttention 4.
    fn flex(&self) -> Vec<Verdict> {
        let scale = self.scale("scale");
        let call = Some(format!("flex_attention(q, k, v, score_mod=score_mod, block_mask=block_mask{scale})"));
        let compiled = Answer::Takes(How::ListsOrScores(self.scores_in_memory()));
        let triton = match self.place {
            Place::Cpu => Answer::Refuses(Why::CpuBackward),
            Place::Gpu(_) => self.triton_backward(),
        };
        let flash = self.flash_4(call.clone());
        let triton = Verdict { who: "torch:flex".into(), forward: compiled, backward: triton, call, mask_bytes: None };
        vec![triton, flash, self.cudnn_flex()]
    }

    fn triton_backward(&self) -> Answer {
        let s = self.problem.spec();
        match &self.derived {
            Some(Err(why)) => Answer::Refuses(Why::Reported(Box::new(why.clone()))),
            _ if s.head_dim > 128 && matches!(self.place, Place::Gpu(arch) if digits(arch) == 120) => {
                Answer::Refuses(Why::SharedMemory)
            }
            _ if s.block_size.q < 128 || s.block_size.kv < 128 => Answer::Takes(How::SmallTiles),
            _ if self.learns.is_empty() => Answer::Takes(How::Lists),
            _ => Answer::Takes(How::Atomic(self.learns.clone())),
        }
    }
}

/// `sm_90a` is 90.
fn digits(arch: &str) -> u32 {
    arch.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

#[cfg(test)]
#[path = "verdicts_tests.rs"]
mod tests;
