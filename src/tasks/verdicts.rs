//! The backends that support a design, forward and backward, before anything is compiled: ours and other known
//! libraries.
//!
//! Invariant: verdicts about our backends are their own; verdicts about other libraries follow the refusals in their
//! sources, in their words if these are fixed, with the versions that were read. Nothing runs. Must not know how the
//! table is shown.

mod arch;
mod known_scores;
mod neighbourhood;
mod others;
mod rivals;

use self::known_scores::Known;
use self::neighbourhood::Neighbourhood;
use crate::analysis::lowered::Lowered;
use crate::analysis::ranges::row_ranges;
use crate::backends::cpu;
use crate::backends::cuda::{Limits, verdict};
use crate::base::words::bytes;
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

/// A library's verdict on one pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "answer", content = "words")]
pub enum Answer {
    /// It takes it; how.
    Takes(String),
    /// It takes it at the cost of a dense mask or bias, or of all scores in memory.
    Dense(String),
    /// It refuses, in these words.
    Refuses(String),
}

impl Answer {
    /// Whether it can be run.
    pub fn takes(&self) -> bool {
        !matches!(self, Answer::Refuses(_))
    }

    /// Its words.
    pub fn words(&self) -> &str {
        match self {
            Answer::Takes(words) | Answer::Dense(words) | Answer::Refuses(words) => words,
        }
    }
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
        let refused = |why: Diagnostic| Answer::Refuses(one_line(&why));
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
            BackendName::Flex => ("block lists; masks as bits, mods compiled in".to_string(), false),
            BackendName::Eager => (self.scores_in_memory(), true),
            BackendName::Sdpa if self.is_plain() => ("no mask, or causal".to_string(), false),
            BackendName::Sdpa => ("a dense mask".to_string(), true),
            _ => ("full or causal".to_string(), false),
        };
        let answer = |result: Result<(), Diagnostic>| match result {
            Err(why) => refused(why),
            Ok(()) if dense => Answer::Dense(how.clone()),
            Ok(()) => Answer::Takes(how.clone()),
        };
        Ok(Verdict { who: name.to_string(), forward: answer(forward), backward: answer(backward), call: None })
    }

    /// What materialising the scores costs: 4 bytes each, once more as probabilities, and kept for a backward pass.
    fn scores_in_memory(&self) -> String {
        let s = self.problem.spec();
        let scores = s.batch as f64 * s.heads as f64 * s.q_len as f64 * s.kv_len as f64 * 4.0;
        format!("all scores in memory: {} for each layer, twice that with their softmax", bytes(scores as u64))
    }

    /// Full, or causal from the top left.
    fn is_plain(&self) -> bool {
        matches!(self.form, Form::Full | Form::Causal { offset: 0 })
    }

    /// PyTorch's own.
    fn torch(&self) -> Vec<Verdict> {
        ["flash", "efficient", "cudnn", "math"].map(|part| self.sdpa(part)).into_iter().chain(self.flex()).collect()
    }

    /// A part of scaled_dot_product_attention.
    fn sdpa(&self, part: &str) -> Verdict {
        let who = format!("torch:sdpa {part}");
        let refuse = |words: String| Verdict {
            who: who.clone(),
            forward: Answer::Refuses(words.clone()),
            backward: Answer::Refuses(words),
            call: None,
        };
        let gpu = matches!(self.place, Place::Gpu(_));
        if self.problem.score.is_some() && !self.is_bias() {
            let words = "scaled_dot_product_attention supports no score_mod, and this one is not an additive bias";
            return refuse(words.into());
        }
        if !gpu && matches!(part, "efficient" | "cudnn") {
            return refuse("runs on CUDA only".into());
        }
        if gpu && matches!(part, "flash" | "cudnn") && self.single() {
            return refuse(format!(
                "Expected query, key and value to all be of dtype: {{Half, BFloat16}}. Got Float: {part} does not support float32"
            ));
        }
        let bias = self.problem.score.is_some();
        let plain = self.is_plain() && !bias;
        if gpu && part == "flash" && !plain {
            return refuse("Flash Attention does not support non-null attn_mask.".into());
        }
        let (s, square) = (self.problem.spec(), self.problem.q_len == self.problem.kv_len);
        if gpu && part == "flash" && matches!(self.form, Form::Causal { .. }) && !square {
            return refuse("Flash attention does not support the is_causal flag when seqlen_q != seqlen_k.".into());
        }
        if gpu && part == "flash" && (s.head_dim != s.head_dim_v || s.head_dim > 256) {
            let words =
                "Flash attention requires q,k,v to have the same last dimension and to be less than or equal to 256.";
            return refuse(words.into());
        }
        if part == "efficient" && s.heads != s.kv_heads {
            return refuse("supports no enable_gqa: repeat keys and values, `key.repeat_interleave(group, 1)`".into());
        }
        let gqa = if s.heads == s.kv_heads { "" } else { ", enable_gqa=True" };
        let gqa = format!("{gqa}{}", self.scale("scale"));
        let (mask, call) = match (&self.form, bias) {
            (Form::Full, false) => ("no mask", format!("sdpa(q, k, v{gqa})")),
            (Form::Causal { offset: 0 }, false) => ("causal", format!("sdpa(q, k, v, is_causal=True{gqa})")),
            (_, false) => ("a dense bool mask", format!("sdpa(q, k, v, attn_mask=make_mask(device){gqa})")),
            (_, true) => {
                let call =
                    "bias = score_mod(0, ...) over all cells, -inf outside the mask; sdpa(q, k, v, attn_mask=bias";
                ("a dense bias", format!("{call}{gqa})"))
            }
        };
        let forward = match (plain, part) {
            (_, "math") => Answer::Dense(format!("{}; {mask}", self.scores_in_memory())),
            (true, _) => Answer::Takes(mask.into()),
            (false, _) => Answer::Dense(format!("{mask}: computes every block")),
        };
        let backward = match (bias && !self.learns.is_empty(), part) {
            (true, "cudnn") => {
                Answer::Refuses(format!("computes no gradient of attn_mask: {} would not be trained", self.learnt()))
            }
            (true, _) => Answer::Dense(format!("the gradient of the whole bias, then of {}", self.learnt())),
            _ => forward.clone(),
        };
        Verdict { who, forward, backward, call: Some(call) }
    }

    /// The argument of a scale that is not the usual one; empty otherwise.
    fn scale(&self, name: &str) -> String {
        self.problem.spec().scale.map_or(String::new(), |scale| format!(", {name}={scale:?}"))
    }

    fn learnt(&self) -> String {
        self.learns.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }

    /// FlexAttention by Triton and by FlashAttention 4.
    fn flex(&self) -> Vec<Verdict> {
        let scale = self.scale("scale");
        let call = Some(format!("flex_attention(q, k, v, score_mod=score_mod, block_mask=block_mask{scale})"));
        let compiled = Answer::Takes(format!(
            "block lists, mods compiled in; without torch.compile it keeps {}",
            self.scores_in_memory()
        ));
        let triton = match self.place {
            Place::Cpu => Answer::Refuses(
                "FlexAttention does not support backward on CPU. Please set the input requires_grad to False or use another \
                 device. (pytorch#169224); `maskloom run --pass both` computes it"
                    .into(),
            ),
            Place::Gpu(_) => self.triton_backward(),
        };
        let flash = self.flash_4(call.clone());
        vec![Verdict { who: "torch:flex".into(), forward: compiled, backward: triton, call }, flash, self.cudnn_flex()]
    }

    fn triton_backward(&self) -> Answer {
        let s = self.problem.spec();
        match &self.derived {
            Some(Err(why)) => return Answer::Refuses(one_line(why)),
            _ if s.head_dim > 128 && matches!(self.place, Place::Gpu(arch) if digits(arch) == 120) => {
                let words = "out of shared memory on sm_120 above head_dim 128: 114,688 bytes are needed, 101,376 are available \
                             (pytorch#198224)";
                return Answer::Refuses(words.into());
            }
            _ if s.block_size.q < 128 || s.block_size.kv < 128 => {
                let words = "NoValidChoicesError if every tile of the backward pass is larger than BLOCK_SIZE: pass \
                             kernel_options={\"bwd_BLOCK_M1\": 64, \"bwd_BLOCK_N1\": 64, \"bwd_BLOCK_M2\": 64, \"bwd_BLOCK_N2\": 64} \
                             (from PyTorch 2.13)";
                return Answer::Takes(words.into());
            }
            _ => {}
        }
        if self.learns.is_empty() {
            return Answer::Takes("block lists, mods compiled in".into());
        }
        Answer::Takes(format!("{} by one atomic addition per cell, in no fixed order", self.learnt()))
    }
}

/// `sm_90a` is 90.
fn digits(arch: &str) -> u32 {
    arch.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

fn one_line(why: &Diagnostic) -> String {
    match &why.hint {
        Some(hint) => format!("{}; {hint}", why.message),
        None => why.message.clone(),
    }
}

#[cfg(test)]
#[path = "verdicts_tests.rs"]
mod tests;
