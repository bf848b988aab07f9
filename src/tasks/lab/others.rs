//! A mask on other captures: its mass in every call of its lengths, and the layers and steps that should stay dense.
//!
//! Invariant: a mask is measured unchanged, never fitted again. Must not know where masks come from.

use super::{check_lengths, live_heads};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, Diagnostic, Lengths};
use crate::ir::graph::Mod;
use crate::quality::capture::{Call, Capture};
use crate::quality::live::Live;
use crate::quality::measure::Spread;
use crate::quality::suggest::Form;
use crate::quality::suggest::schedule::{Schedule, Seen, schedule};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A mask that is judged on several calls.
#[derive(Clone, Debug)]
pub struct Mask {
    /// None keeps everything.
    pub of: Option<Arc<Mod>>,
    /// Whether heads differ.
    pub per_head: bool,
    /// Score mod on both sides.
    pub score: Option<Arc<Mod>>,
}

impl Mask {
    /// A form's mask. Errors: a form that makes none.
    pub fn of_form(form: &Form, lengths: Lengths) -> Result<Mask, Diagnostic> {
        Ok(Mask { of: Some(Arc::new(form.mask(lengths)?)), per_head: form.per_head(), score: None })
    }
}

/// The masses that masks keep in a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfCall {
    /// Its key.
    pub key: String,
    /// Layer's number and name.
    pub layer: (usize, String),
    /// Step.
    pub step: usize,
    /// Prompt's number.
    pub prompt: usize,
    /// Mean mass over heads and rows, a value for each mask.
    #[serde(with = "crate::base::float::list")]
    pub mass: Vec<f64>,
    /// Smallest mean of a head, a value for each mask.
    #[serde(with = "crate::base::float::list")]
    pub least: Vec<f64>,
}

/// Judges masks in every call that has the lengths and heads of `like` and q and k of a head. Errors: `cancelled`.
pub fn on_all(
    capture: &Capture,
    like: &Call,
    entry: usize,
    masks: &[Mask],
    block: BlockSize,
    control: &Control,
) -> Result<Vec<OfCall>, Diagnostic> {
    let lengths = Lengths::new(like.info.q_len, like.info.kv_len)?;
    let fits = |call: &&Call| {
        check_lengths(lengths, capture, call).is_ok()
            && call.info.heads == like.info.heads
            && !call.info.full_heads().is_empty()
    };
    let calls: Vec<&Call> = capture.calls().iter().filter(fits).collect();
    let blocks: Vec<BlockMask> = masks
        .iter()
        .map(|mask| {
            let heads = if mask.per_head { like.info.heads } else { 1 };
            let shape = MaskShape { batch: entry + 1, heads, lengths };
            BlockMask::build(mask.of.as_deref(), shape, block, control)
        })
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for (n, call) in calls.iter().enumerate() {
        let score = masks.first().and_then(|m| m.score.as_ref());
        let quiet = Control::new();
        let heads = Arc::new(live_heads(capture, call, entry, &call.info.full_heads(), block, score, &quiet)?);
        let (mut mass, mut least) = (Vec::new(), Vec::new());
        for of in &blocks {
            let line = Live::new(heads.clone(), of.clone(), control)?.line();
            let each: Vec<f64> = line.iter().map(|l| l.mass.mean).filter(|m| m.is_finite()).collect();
            mass.push(each.iter().sum::<f64>() / each.len() as f64);
            least.push(each.iter().copied().fold(f64::NAN, f64::min));
        }
        let i = &call.info;
        found.push(OfCall {
            key: call.key.clone(),
            layer: (i.layer, i.name.clone()),
            step: i.step,
            prompt: i.prompt,
            mass,
            least,
        });
        control.set_progress((n + 1) as f64 / calls.len() as f64);
        if control.is_cancelled() {
            return Err(Diagnostic::note("cancelled", "stopped"));
        }
    }
    Ok(found)
}

/// How far one of the masks holds: the spread of its mean mass over calls.
pub fn spread(of: &[OfCall], mask: usize) -> Spread {
    Spread::of(of.iter().map(|c| c.mass[mask]))
}

/// Which layers and first steps stay dense so that every sparse call keeps `mass` under one of the masks.
pub fn dense_places(of: &[OfCall], mask: usize, mass: f64) -> Schedule {
    let seen: Vec<Seen> =
        of.iter().map(|c| Seen { layer: c.layer.clone(), step: c.step, mass: c.mass[mask] }).collect();
    schedule(&seen, mass)
}
