//! The mask lab with files and documents: opens captures, measures heads under a document's mask, turns proposals into
//! layers.
//!
//! Invariant: the measured mask is the document's own compiled mask at the capture's lengths; other cases are refused
//! in words. Must not know the window or the command line.

mod atlas;
mod doubts;
mod file;
pub mod launched;
mod layers;
mod others;
pub mod page;
mod pictures;
mod plain;
mod routing;
mod sample;
#[cfg(test)]
mod tests;
mod times;
pub mod told;

pub use atlas::{AtlasHead, Sort, atlas, cluster, sort};
pub use doubts::doubts;
pub use file::CaptureFile;
pub use layers::{blank, document, layers, take};
pub use others::{Mask, OfCall, dense_places, on_all, spread};
pub use pictures::{Tile, colour, heat, sheet};
pub use plain::PlainFile;
pub use routing::{RoutedCall, routed, routed_calls, router_layers, router_schedule, settings_of};
pub use sample::{sample, sample_file};
pub use times::times;

use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic, Layout};
use crate::ir::graph::Mod;
use crate::problem::Problem;
use crate::quality::attend::Kept;
use crate::quality::capture::{Call, Capture};
use crate::quality::live::LiveHead;
use crate::quality::masses::{self, Masses, row_bytes};
use crate::quality::measure::{Judge, Judged};
use crate::quality::profile::{Profile, profile};
use crate::quality::scores::Scorer;
use crate::quality::suggest::{Candidate, Form, Material, Target, Wanted, suggest};
use std::path::Path;
use std::sync::Arc;

/// Most memory that the heads of a layer take, in bytes.
const HEAD_MEMORY: usize = 4 << 30;
/// Memory that row masses of a layer may take; beyond it they are counted again where an edit needs them.
pub const ROW_MEMORY: u128 = 1 << 30;

/// Opens a capture, or a plain file with tensors q, k and v, [batch, heads, tokens, head_dim]. Errors: those of [`open_as`].
pub fn open(path: &Path) -> Result<Capture, Diagnostic> {
    open_as(path, None)
}

/// The same of a plain file whose axes are in this order. Errors: no such file, neither of both, a newer format, a truncated file, an
/// order for a capture, which says its own.
pub fn open_as(path: &Path, layout: Option<Layout>) -> Result<Capture, Diagnostic> {
    let plain = || Capture::open(Box::new(PlainFile::open(path, layout.unwrap_or_default())?));
    if path.extension().is_some_and(|ending| ["npz", "npy", "pt", "pth"].iter().any(|e| ending.eq_ignore_ascii_case(e)))
    {
        return plain();
    }
    let file = CaptureFile::open(path)?;
    match (crate::quality::capture::Tensors::metadata(&file, "maskloom"), layout) {
        (None, _) if plain::has_names(&file) => plain(),
        (Some(_), Some(_)) => {
            let message = format!("{} is a capture, which says the order of its own axes", path.display());
            Err(Diagnostic::error("capture-layout", message).hint("leave out --layout"))
        }
        _ => Capture::open(Box::new(file)),
    }
}

/// Whether a safetensors file is marked as a capture; reads its header alone. Errors: it is truncated, or unfinished.
pub fn is_capture(path: &Path) -> Result<bool, Diagnostic> {
    use crate::quality::capture::Tensors;
    match CaptureFile::open(path) {
        Ok(file) => Ok(file.metadata("maskloom").is_some()),
        Err(why) if ["capture-cut-off", "capture-unfinished"].contains(&&*why.code) => Err(why),
        // other code reads it, and reports its errors
        Err(_) => Ok(false),
    }
}

/// A head judged under a mask.
pub struct JudgedHead {
    /// Its number.
    pub head: usize,
    /// The packed head and its masses.
    pub judge: Judge,
    /// The effect of the mask.
    pub judged: Judged,
}

/// Whether a document's problem fits a call. Errors: other lengths, a mask of other heads.
pub fn check(problem: &Problem, capture: &Capture, call: &Call) -> Result<(), Diagnostic> {
    let i = &call.info;
    check_lengths(problem.lengths(), capture, call)?;
    if problem.mask_per_head() && problem.heads != i.heads {
        let message = format!("the mask differs between {} heads, {} has {}", problem.heads, call.key, i.heads);
        return Err(
            Diagnostic::error("capture-heads", message).hint(format!("set the document's heads to {}", i.heads))
        );
    }
    Ok(())
}

/// Whether lengths are those of a call. Errors: they are not, with both lengths.
pub fn check_lengths(of: crate::base::Lengths, capture: &Capture, call: &Call) -> Result<(), Diagnostic> {
    let i = &call.info;
    if (of.q_len, of.kv_len) == (i.q_len, i.kv_len) {
        return Ok(());
    }
    let message = format!(
        "the document has {} x {} tokens, {} of {} has {} x {}",
        of.q_len,
        of.kv_len,
        call.key,
        capture.name(),
        i.q_len,
        i.kv_len
    );
    Err(Diagnostic::error("capture-length", message)
        .hint("set the axes to the capture's lengths (--seq or --axes), or choose a layer of the same lengths"))
}

/// The extent of a problem's mask over all heads of a call. Errors: those of [`check`].
pub fn extent(problem: &Problem, capture: &Capture, call: &Call) -> Result<MaskShape, Diagnostic> {
    check(problem, capture, call)?;
    let heads = if problem.mask_per_head() { call.info.heads } else { 1 };
    let batch = if problem.mask_per_batch() { capture.batch(call) } else { 1 };
    Ok(MaskShape { batch, heads, lengths: problem.lengths() })
}

/// The blocks of a problem's mask for all heads of a call: those that the problem keeps, unless the capture has more batch entries
/// than the problem. Errors: those of [`check`] and of a count.
pub fn blocks(problem: &Problem, capture: &Capture, call: &Call, control: &Control) -> Result<Kept, Diagnostic> {
    let shape = extent(problem, capture, call)?;
    let blocks = match shape == problem.mask_shape() {
        true => problem.block_mask(problem.block_size, control)?,
        false => BlockMask::build(problem.mask.as_deref(), shape, problem.block_size, control)?,
    };
    Ok(Kept::new(blocks))
}

/// A head's scorer with the document's score mod.
pub fn scorer(
    capture: &Capture,
    call: &Call,
    batch: usize,
    head: usize,
    score: Option<&Arc<Mod>>,
) -> Result<Scorer, Diagnostic> {
    let mut found = capture.head(call, batch, head)?;
    found.score = score.cloned();
    Ok(Scorer::new(&found))
}

/// Judges one head. Errors: a head that is not there, `cancelled`.
pub fn judge(
    capture: &Capture,
    call: &Call,
    (batch, head): (usize, usize),
    problem: &Problem,
    kept: &Kept,
    control: &Control,
) -> Result<JudgedHead, Diagnostic> {
    let scorer = scorer(capture, call, batch, head, problem.score.as_ref())?;
    let masses = masses::of_scorer(&scorer, problem.block_size, false, control)?;
    let judge = Judge::new(scorer, masses, control)?;
    let judged = judge.judge(kept, control)?;
    Ok(JudgedHead { head, judge, judged })
}

/// How many heads of a call are held at once, one at least: q, k and v twice in float32 within `HEAD_MEMORY`.
pub fn most_heads(call: &Call) -> usize {
    let i = &call.info;
    let values = (i.q_len.saturating_add(2 * i.kv_len)).saturating_mul(i.head_dim);
    (HEAD_MEMORY / values.saturating_mul(8).max(1)).max(1)
}

/// Heads of a call ready for edits and proposals, with their masses and rows where memory allows. Errors: `cancelled`, more heads
/// than [`most_heads`].
pub fn live_heads(
    capture: &Capture,
    call: &Call,
    batch: usize,
    heads: &[usize],
    block: BlockSize,
    score: Option<&Arc<Mod>>,
    control: &Control,
) -> Result<Vec<LiveHead>, Diagnostic> {
    let lengths = crate::base::Lengths::new(call.info.q_len, call.info.kv_len)?;
    let most = most_heads(call);
    if heads.len() > most {
        let message = format!(
            "{} heads of {} would take more than {} GiB of memory; {most} fit",
            heads.len(),
            call.key,
            HEAD_MEMORY >> 30
        );
        return Err(Diagnostic::error("capture-memory", message).hint("choose heads, such as --only-heads 0,1"));
    }
    let keep_rows = row_bytes(lengths, block, heads.len()) <= ROW_MEMORY;
    let mut made = Vec::new();
    for (n, head) in heads.iter().enumerate() {
        let scorer = scorer(capture, call, batch, *head, score)?;
        let found: Masses = masses::of_scorer(&scorer, block, keep_rows, control)?;
        made.push(LiveHead::new(scorer, found));
        control.set_progress((n + 1) as f64 / heads.len() as f64);
    }
    Ok(made)
}

/// All that proposals are made from. Errors: those of [`live_heads`], heads that do not belong together.
pub fn material(
    capture: &Capture,
    call: &Call,
    batch: usize,
    heads: &[usize],
    block: BlockSize,
    score: Option<&Arc<Mod>>,
    control: &Control,
) -> Result<Material, Diagnostic> {
    let made = live_heads(capture, call, batch, heads, block, score, control)?;
    let fits = |g: &crate::quality::profile::Grid| g.tokens().end <= call.info.q_len.min(call.info.kv_len);
    let grid = capture.grid().filter(fits);
    let profiles: Vec<Profile> =
        made.iter().map(|h| profile(&h.scorer, &h.masses, grid, control)).collect::<Result<_, _>>()?;
    Ok(Material { model_heads: call.info.heads, ..Material::new(Arc::new(made), profiles)? })
}

/// Mean relative L1 error of a form over the heads of a material. Errors: no v, `cancelled`.
pub fn form_error(material: &Material, form: &Form, control: &Control) -> Result<f64, Diagnostic> {
    let kept = Kept::new(material.blocks(form, control)?);
    let mut sum = 0.0;
    for head in material.heads.iter() {
        let judge = Judge::new(head.scorer.clone(), head.masses.clone(), control)?;
        let error = judge.judge(&kept, control)?.measures.error;
        sum += error
            .ok_or_else(|| Diagnostic::error("capture-no-v", "the output error needs v, which the capture lacks"))?
            .relative_l1;
    }
    Ok(sum / material.heads.len() as f64)
}

/// Proposals that `flex` runs within `ms` on this CPU, and the request: a share of the blocks, lowered until the
/// proposals fit. Errors: nothing fits, `cancelled`.
pub fn suggest_for_time(
    material: &Material,
    wanted: &Wanted,
    ms: f64,
    control: &Control,
) -> Result<(Wanted, Vec<Candidate>), Diagnostic> {
    let dense = times(material, &[], control)?[0];
    let mut share = (ms / dense).min(1.0);
    for _ in 0..4 {
        let wanted = Wanted { target: Target::Blocks(share.max(1e-4)), ..*wanted };
        let found = suggest(material, &wanted, control)?;
        let forms: Vec<&Form> = found.iter().map(|c| &c.form).collect();
        let taken = times(material, &forms, control)?;
        let fitting: Vec<Candidate> =
            found.into_iter().zip(&taken).filter(|(_, taken)| **taken <= ms).map(|(c, _)| c).collect();
        if !fitting.is_empty() {
            return Ok((wanted, fitting));
        }
        share *= 0.6;
    }
    let message = format!("no mask of this head count runs within {ms} ms here; without a mask it takes {dense:.2} ms");
    Err(Diagnostic::error("time-budget", message).hint("use a larger --ms, or fewer heads"))
}

/// Proposals whose best keeps the output's relative L1 error at `error`: the least mass at which it does, found by halving. Errors:
/// no v, `cancelled`.
pub fn suggest_for_error(
    material: &Material,
    wanted: &Wanted,
    error: f64,
    control: &Control,
) -> Result<Vec<Candidate>, Diagnostic> {
    let (mut low, mut high) = (0.5, 1.0);
    let mut best = None;
    for _ in 0..6 {
        let mass = 0.5 * (low + high);
        let found = suggest(material, &Wanted { target: Target::Mass(mass), ..*wanted }, control)?;
        let reached = match found.first() {
            Some(first) => form_error(material, &first.form, control)? <= error,
            None => false,
        };
        if reached {
            high = mass;
            best = Some(found);
        } else {
            low = mass;
        }
    }
    match best {
        Some(found) => Ok(found),
        None => suggest(material, &Wanted { target: Target::Mass(1.0), ..*wanted }, control),
    }
}
