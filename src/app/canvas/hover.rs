//! The read-out: what the cell under the pointer is, in tokens, blocks and the axes' terms.
//!
//! Invariant: the cell's own truth comes from the interpreter; what its block keeps comes from the workers and may follow a
//! moment later. Must not know how either is drawn.

use super::rulers::digits;
use super::workers::Answer;
use super::{Picture, Scene};
use crate::analysis::classify::Verdict;
use crate::language::graph::Mod;
use crate::language::interpret::{self, Cell};

/// Words about one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOut {
    /// Where: tokens and the axes' terms.
    pub place: String,
    /// The block: indices, kind, share.
    pub block: String,
    /// The cell itself: kept or masked, or its bias.
    pub cell: String,
}

/// Words about the cell at (q, kv) and its block.
pub fn read_out(scene: &Scene<'_>, at: [usize; 2], block: Option<Answer>) -> ReadOut {
    let axis = |axis: &crate::document::model::Axis, token: usize| match axis.place(token) {
        Some(place) if axis.segments.len() > 1 || axis.segments[0].grid.len() > 1 => format!(" = {place}"),
        _ => String::new(),
    };
    let (q, kv) = (axis(scene.q_axis, at[0]), axis(scene.kv_axis, at[1]));
    let place = format!("q {}{q}   kv {}{kv}", digits(at[0]), digits(at[1]));
    let (row, col) = (at[0] / scene.block_size.q, at[1] / scene.block_size.kv);
    let block = format!("block ({row}, {col}) {}", block.map_or_else(|| "\u{2026}".into(), |a| kind(scene, at, a)));
    ReadOut { place, block, cell: cell(scene, at) }
}

/// `full`, `empty`, `partial, 43.2%`.
fn kind(scene: &Scene<'_>, at: [usize; 2], answer: Answer) -> String {
    let over = |at: usize, size: usize, len: usize| (at / size + 1) * size > len;
    let hangs =
        over(at[0], scene.block_size.q, scene.lengths.q_len) || over(at[1], scene.block_size.kv, scene.lengths.kv_len);
    match answer.verdict {
        _ if answer.share.is_nan() => "unknown: the analysis failed".into(),
        Verdict::Empty => "empty".into(),
        Verdict::Full if hangs => "partial (hangs over the end), all kept".into(),
        Verdict::Full => "full".into(),
        Verdict::Mixed => format!("partial, {} kept", percent(answer.share, answer.exact)),
    }
}

/// A share in words; never 0% or 100% of what is neither.
pub fn percent(share: f64, exact: bool) -> String {
    let about = if exact { "" } else { "\u{2248} " };
    match share * 100.0 {
        p if p <= 0.0 => format!("{about}0%"),
        p if p < 0.01 => "< 0.01%".into(),
        p if p >= 100.0 => format!("{about}100%"),
        p if p > 99.99 => "> 99.99%".into(),
        p if p < 1.0 => format!("{about}{p:.2}%"),
        p => format!("{about}{p:.1}%"),
    }
}

fn cell(scene: &Scene<'_>, at: [usize; 2]) -> String {
    let cell = Cell { b: scene.b as i64, h: scene.h as i64, q_idx: at[0] as i64, kv_idx: at[1] as i64, score: 0.0 };
    let kept = |m: &std::sync::Arc<Mod>| interpret::eval(m, &cell).as_bool();
    let kept = if scene.mask.as_ref().is_none_or(kept) { "kept" } else { "masked" };
    match &scene.score {
        Some(score) if scene.picture == Picture::Bias => {
            format!("bias {:+.4}, {kept}", interpret::eval(score, &cell).as_float())
        }
        _ => kept.into(),
    }
}
