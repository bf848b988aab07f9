//! From a problem to the machine code of its backward pass: lists, mods with their derivative, texts, the compiler.
//!
//! Invariant: lists, bits and text belong to one variant. Must not touch a device.

use super::cache::Cache;
use super::compile::{Compiler, Form, Obtained, SLOW_CODE, obtain};
use super::ptxas;
use crate::analysis::ranges::row_ranges;
use crate::backends::cuda::choose;
use crate::backends::cuda::emit::functions::{self, Emitted};
use crate::backends::cuda::emit::mods::{LiftedGradient, LiftedMods};
use crate::backends::cuda::emit::source;
use crate::backends::cuda::lists::bitmap::{self, Bitmaps};
use crate::backends::cuda::lists::in_order::{self, Launch};
use crate::backends::cuda::lists::plan::Plan;
use crate::backends::cuda::lists::schedule::Schedule;
use crate::backends::cuda::lists::transposed::{Extent, Transposed};
use crate::backends::cuda::variant::backward::{BackwardMods, BackwardSpec, BackwardWays};
use crate::backends::cuda::variant::exact;
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::ir::graph::Mod;
use crate::ir::passes::derive::{Derived, derive};
use crate::problem::Problem;
use std::ops::Range;

/// Bytes that a kernel spills beyond which the next variant is taken: each tile would store and load them once a thread.
const MOST_SPILLS: u32 = 1 << 14;

/// Bytes that the kernel of the architecture spills; 0 where the compiler does not say.
fn spills(draft: &BackwardDraft, code: &BackwardCode) -> u32 {
    ptxas::resources(&code.main.log, draft.spec.entry()).spill_bytes
}

/// A backward pass that is chosen and written, and not compiled yet.
pub(crate) struct BackwardDraft {
    pub spec: BackwardSpec,
    pub mods: LiftedMods,
    pub emitted: Emitted,
    pub lists: Transposed,
    /// For partial tiles, if the variant takes bits; otherwise empty.
    pub bits: Bitmaps,
    /// A row's first key and the one past the last, if the variant takes ranges.
    pub ranges: Vec<u32>,
    pub q_tiles: usize,
    launch: Launch,
    /// Text of the kernel of the architecture, and of what runs before and after it.
    pub text: String,
    pub rows_text: String,
}

/// Its machine code.
pub(crate) struct BackwardCode {
    pub main: Obtained,
    pub rows: Obtained,
}

impl BackwardDraft {
    /// Whether there is one: nothing is listed or written. Errors: no derivative, no kernel, a mask that cannot go in.
    pub(crate) fn check(problem: &Problem, limits: &Limits, ways: BackwardWays) -> Result<(), Diagnostic> {
        let chosen = Chosen::at(0, problem, limits, ways)?;
        check_mask(problem, &chosen.spec)?;
        check_additions(problem, &chosen.mods, &chosen.spec)
    }

    /// Chooses the fastest variant for a problem, and writes it. Errors: those of [`BackwardDraft::check`].
    #[cfg(test)]
    pub(crate) fn new(problem: &Problem, limits: &Limits, ways: BackwardWays) -> Result<BackwardDraft, Diagnostic> {
        Self::at(0, problem, limits, ways).map(|(draft, _)| draft)
    }

    /// The fastest variant of which the compiler makes good code, with that. Errors: those of [`BackwardDraft::check`], and the
    /// compiler's.
    pub(crate) fn made(
        problem: &Problem,
        limits: &Limits,
        ways: BackwardWays,
        arch: &str,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
    ) -> Result<(BackwardDraft, BackwardCode), Diagnostic> {
        for rank in 0.. {
            let (draft, is_last) = Self::at(rank, problem, limits, ways)?;
            match draft.compile(arch, compiler, cache) {
                Err(why) if why.code == SLOW_CODE && !is_last => {}
                Ok(code) if !is_last && spills(&draft, &code) > MOST_SPILLS => {}
                done => return done.map(|code| (draft, code)),
            }
        }
        unreachable!("the last variant is returned, or its error")
    }

    /// The variant at a rank, and whether it is the last.
    pub(crate) fn at(
        rank: usize,
        problem: &Problem,
        limits: &Limits,
        ways: BackwardWays,
    ) -> Result<(BackwardDraft, bool), Diagnostic> {
        let Chosen { derived, mods, spec, is_last } = Chosen::at(rank, problem, limits, ways)?;
        let plan = plan(problem, &spec)?;
        let mut lists = Transposed::of(&plan, problem.kv_len, spec.tile_kv, extent(problem, limits, ways));
        let launch = launch(problem, limits, &spec);
        if ways.deterministic && spec.is_hopper() {
            in_order::arrange(&mut lists, launch);
        }
        let (mask, ranges) = mask_kind(problem, &lists)?;
        let spec = BackwardSpec { mask, together: lists.together(), ..spec };
        check_additions(problem, &mods, &spec)?;
        let with_mask = || lifted(problem, problem.mask.as_deref(), derived.as_ref(), ways);
        let mods = if mask == MaskKind::Formula { with_mask() } else { mods };
        let bits = match mask {
            MaskKind::Bitmap => lists.bits(problem.mask.as_deref(), problem.lengths(), spec.tile_q, spec.tile_kv),
            _ => Bitmaps::default(),
        };
        let emitted = functions::emit(&mods.template());
        let text = source::assemble_backward(&spec, &emitted.text);
        let rows_text = source::assemble_rows(&spec, &emitted.text);
        let q_tiles = plan.q_tiles;
        Ok((BackwardDraft { spec, mods, emitted, lists, bits, ranges, q_tiles, launch, text, rows_text }, is_last))
    }

    /// The lists of a launch of so many blocks, with its units.
    pub(crate) fn schedule(&self, blocks: usize) -> Schedule<'_> {
        let schedule = Schedule::as_they_are(&self.lists, &self.bits, &self.ranges);
        match (self.spec.is_hopper(), self.spec.ways.deterministic) {
            (false, _) => schedule,
            (true, false) => schedule.in_any_order(blocks),
            (true, true) => schedule.in_one_order(Launch { blocks, ..self.launch }),
        }
    }

    /// Asks the cache, else compiles.
    pub(crate) fn compile(
        &self,
        arch: &str,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
    ) -> Result<BackwardCode, Diagnostic> {
        let made = |text: &str| obtain(text, arch, Form::Kernel, compiler, cache, &self.mods.sources);
        Ok(BackwardCode { main: made(&self.text)?, rows: made(&self.rows_text)? })
    }
}

/// The variant at a rank, before lists and texts are made for it. Its mask kind is not the final one.
struct Chosen {
    derived: Option<Derived>,
    mods: LiftedMods,
    spec: BackwardSpec,
    is_last: bool,
}

impl Chosen {
    fn at(rank: usize, problem: &Problem, limits: &Limits, ways: BackwardWays) -> Result<Chosen, Diagnostic> {
        choose::choose(problem, crate::base::BackendName::Flex)?;
        let derived = problem.score.as_deref().map(|score| derive(score, |_| true)).transpose()?;
        let mods = lifted(problem, None, derived.as_ref(), ways);
        let asked = BackwardMods {
            score: problem.score.is_some(),
            grad: mods.gradient.as_ref().is_some_and(|g| g.score.is_some()),
            reads: mods.gradient.as_ref().map_or(0, |g| g.reads.len()),
        };
        let shape = choose::shape(problem);
        let usual = if problem.mask.is_some() { MaskKind::Bitmap } else { MaskKind::None };
        let choices = BackwardSpec::choices(&shape, limits, usual, asked, ways)?;
        let (spec, is_last) = (choices[rank.min(choices.len() - 1)], rank + 1 >= choices.len());
        Ok(Chosen { derived, mods, spec, is_last })
    }
}

/// The mods with their derivative; in the deterministic mode captured tensors' gradients are sums in bins.
pub(crate) fn lifted(
    problem: &Problem,
    mask: Option<&Mod>,
    derived: Option<&Derived>,
    ways: BackwardWays,
) -> LiftedMods {
    let (Some(score), Some(derived)) = (problem.score.as_deref(), derived) else { return LiftedMods::new(mask, None) };
    let mut mods = LiftedMods::with_gradient(mask, score, derived, cells(problem));
    if let Some(gradient) = &mut mods.gradient {
        gradient.in_bins = ways.deterministic;
    }
    mods
}

/// Additions to an element that its bins are sure to hold.
pub(crate) const MOST_ADDITIONS: u128 = 1 << 32;

/// Bytes of an element's bins.
pub(crate) const BIN_BYTES: usize = 32 * 8;

/// Errors: an element of a captured tensor could get more additions than its bins hold.
fn check_additions(problem: &Problem, mods: &LiftedMods, spec: &BackwardSpec) -> Result<(), Diagnostic> {
    let Some(gradient) = mods.gradient.as_ref().filter(|_| spec.has_bins()) else { return Ok(()) };
    let most = most_additions(problem, gradient, spec) * problem.batch as u128;
    if most <= MOST_ADDITIONS {
        return Ok(());
    }
    let message = format!(
        "flex adds up to {most} numbers to one element of a captured tensor's gradient; its sums have the same bits in every \
         run up to {MOST_ADDITIONS}"
    );
    Err(no_fixed_order(message))
}

/// Additions that an element of a captured tensor gets at most of one batch entry.
pub(crate) fn most_additions(problem: &Problem, gradient: &LiftedGradient, spec: &BackwardSpec) -> u128 {
    let [_, heads, q_len, kv_len] = cells(problem);
    gradient.most_additions([heads, q_len, kv_len], (spec.tile_q, spec.tile_kv))
}

/// Gradients of captured tensors that flex does not compute with the same bits in every run.
pub(crate) fn no_fixed_order(message: String) -> Diagnostic {
    Diagnostic::error("no-fixed-order", message)
        .refused()
        .hint("use eager, whose gradients have the same bits in every run, or turn deterministic gradients off")
}

/// Batch entries, query heads, queries and keys.
pub(crate) fn cells(problem: &Problem) -> [usize; 4] {
    [problem.batch, problem.heads, problem.q_len, problem.kv_len]
}

/// The forward's lists at the variant's tile.
fn plan(problem: &Problem, spec: &BackwardSpec) -> Result<Plan, Diagnostic> {
    if problem.mask.is_none() {
        return Ok(Plan::unmasked(problem.q_len.div_ceil(spec.tile_q), problem.kv_len, spec.tile_kv));
    }
    let tile = BlockSize { q: spec.tile_q, kv: spec.tile_kv };
    Ok(Plan::of_mask(&problem.block_mask(tile, &Control::new())?))
}

/// Bytes of q, d_o and sums of dq that blocks find in the L2 cache: it also holds what they write.
fn in_cache(limits: &Limits) -> usize {
    limits.l2_bytes / 8 * 5
}

/// Bytes of a query's q, d_o and sums of dq.
fn query_bytes(problem: &Problem) -> usize {
    6 * problem.head_dim + 2 * problem.head_dim_v
}

fn launch(problem: &Problem, limits: &Limits, spec: &BackwardSpec) -> Launch {
    let cached = in_cache(limits) / (spec.tile_q * query_bytes(problem)).max(1);
    Launch { blocks: limits.multiprocessors, cached, tile_kv: spec.tile_kv }
}

/// Heads of a section share the L2 cache with their q, d_o and sums.
fn extent(problem: &Problem, limits: &Limits, ways: BackwardWays) -> Extent {
    let per_head = problem.group() * problem.q_len * query_bytes(problem);
    Extent {
        batch: problem.batch,
        kv_heads: problem.kv_heads,
        group: problem.group(),
        section: (in_cache(limits) / per_head.max(1)).max(1),
        deterministic: ways.deterministic,
    }
}

/// Whether a mask goes into a variant in one of the forms of [`mask_kind`]: what needs no list is asked first.
fn check_mask(problem: &Problem, spec: &BackwardSpec) -> Result<(), Diagnostic> {
    let Some(mask) = problem.mask.as_deref().filter(|mask| !exact::by_formula(problem, mask)) else { return Ok(()) };
    let partial = plan(problem, spec)?.partial_total();
    if partial <= bitmap::MOST_TILES as u64 || keep_one_range(problem, mask).is_some() {
        return Ok(());
    }
    Err(not_exact(partial))
}

/// The rows' ranges of keys by list, if each row keeps one.
fn keep_one_range(problem: &Problem, mask: &Mod) -> Option<Vec<Vec<Range<u32>>>> {
    let shape = problem.mask_shape();
    let lists = (0..shape.batch).flat_map(|b| (0..shape.heads).map(move |h| (b, h)));
    lists.map(|(b, h)| row_ranges(mask, b, h, problem.lengths())).collect()
}

fn not_exact(partial: u64) -> Diagnostic {
    let message = format!(
        "{partial} partial tiles are too many for bitmaps in the backward pass, and the GPU could round the mask's formula \
         differently than the host"
    );
    Diagnostic::error("mask-not-exact", message)
        .hint("compute a table or a bool tensor in the factory and read it, or shorten the lengths")
}

/// The form of the mask, with ranges if they are used.
fn mask_kind(problem: &Problem, lists: &Transposed) -> Result<(MaskKind, Vec<u32>), Diagnostic> {
    let Some(mask) = problem.mask.as_deref() else { return Ok((MaskKind::None, Vec::new())) };
    let (partial, mut ranges) = (lists.partial_total() as u64, None);
    let keeps_ranges = || {
        ranges = keep_one_range(problem, mask);
        ranges.is_some()
    };
    match bitmap::form(partial, bitmap::LIMITS, keeps_ranges) {
        MaskKind::Formula if !exact::by_formula(problem, mask) => Err(not_exact(partial)),
        form => Ok((form, ranges.iter().flatten().flatten().flat_map(|r| [r.start, r.end]).collect())),
    }
}
