//! The read-out: the cell under the pointer, in tokens, blocks and the axes' terms.
//!
//! Invariant: the cell's value comes from the interpreter; its block's share comes from the workers and may arrive a
//! moment later. Must not know how either is drawn.

use super::rulers::digits;
use super::workers::Answer;
use super::{Picture, Scene, SceneLayer};
use crate::analysis::classify::Verdict;
use crate::app::origins;
use crate::document::model::Combine;
use crate::ir::cell::{self, Cell};
use crate::ir::graph::Mod;

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
pub(super) fn read_out(scene: &Scene<'_>, at: [usize; 2], block: Option<Answer>) -> ReadOut {
    let axis = |axis: &crate::document::model::Axis, token: usize| match axis.place(token) {
        Some(place) if axis.segments.len() > 1 || axis.segments[0].grid.len() > 1 => format!(" = {place}"),
        _ => String::new(),
    };
    let said = |side: usize| match scene.texts[side].and_then(|texts| texts.at(at[side])) {
        Some(text) => format!(" \u{201c}{text}\u{201d}"),
        None => String::new(),
    };
    let (q, kv) = (axis(scene.q_axis, at[0]), axis(scene.kv_axis, at[1]));
    let place = format!("q {}{}{q}   kv {}{}{kv}", digits(at[0]), said(0), digits(at[1]), said(1));
    let (row, col) = (at[0] / scene.block_size.q, at[1] / scene.block_size.kv);
    let kind = block.map_or_else(|| "\u{2026}".into(), |a| kind(scene, at, a));
    let figures = [("row", row.into()), ("col", col.into()), ("kind", kind.into())];
    let block = scene.said.with("cell-block", &figures);
    ReadOut { place, block, cell: cell(scene, at) }
}

/// `full`, `empty`, `partial, 43.2%`.
fn kind(scene: &Scene<'_>, at: [usize; 2], answer: Answer) -> String {
    let over = |at: usize, size: usize, len: usize| (at / size + 1) * size > len;
    let hangs =
        over(at[0], scene.block_size.q, scene.lengths.q_len) || over(at[1], scene.block_size.kv, scene.lengths.kv_len);
    let said = scene.said;
    let id = match answer.verdict {
        _ if answer.share.is_nan() => "cell-block-unknown",
        Verdict::Empty => "cell-block-empty",
        Verdict::Full if hangs => "cell-block-beyond",
        Verdict::Full => "cell-block-full",
        Verdict::Mixed => {
            return said.with("cell-block-partial", &[("share", percent(answer.share, answer.exact).into())]);
        }
    };
    said.text(id).into()
}

/// A share in words; never 0% or 100% for a share in between.
pub(super) fn percent(share: f64, exact: bool) -> String {
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

/// A bias in few digits.
pub(super) fn short(value: f32) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn cell(scene: &Scene<'_>, at: [usize; 2]) -> String {
    let cell = Cell { b: scene.b as i64, h: scene.h as i64, q_idx: at[0] as i64, kv_idx: at[1] as i64, score: 0.0 };
    let kept = scene.mask.as_ref().is_none_or(|m| keeps(m, &cell));
    let said = scene.said;
    let by = decided_by(&scene.layers, |m| keeps(m, &cell)).filter(|_| scene.layers.len() > 1);
    let words = match by.map(|layer| [("layer", layer.name.into())]) {
        Some(layer) => said.with(if kept { "cell-kept-by" } else { "cell-masked-by" }, &layer),
        None => said.text(if kept { "cell-kept" } else { "cell-masked" }).to_string(),
    };
    if let Some(against) = scene.against.filter(|a| scene.picture == Picture::Difference && a.lengths == scene.lengths)
    {
        let there = against.mask.as_ref().is_none_or(|m| keeps(m, &cell));
        let id = match there {
            there if there == kept => "cell-as-in",
            true => "cell-kept-in",
            false => "cell-masked-in",
        };
        return said.with(id, &[("words", words.into()), ("name", against.name.into())]);
    }
    if let Some(data) = scene.map.and_then(|numbers| numbers.data).filter(|_| scene.picture.is_numbers())
        && let Some(value) = data.at(at)
    {
        let source = origins::whole_in(said, &data.source);
        let figures = [
            ("quantity", said.phrase(&data.quantity).into()),
            ("value", data.said(value).into()),
            ("source", source.into()),
            ("words", words.into()),
        ];
        return said.with("cell-number", &figures);
    }
    match &scene.score {
        Some(score) if scene.picture == Picture::Bias => {
            let bias = format!("{:+.4}", cell::eval(score, &cell).as_float());
            said.with("cell-bias", &[("bias", bias.into()), ("words", words.into())])
        }
        _ => words,
    }
}

/// Whether a mod keeps a cell.
pub(super) fn keeps(of: &Mod, cell: &Cell) -> bool {
    cell::eval(of, cell).as_bool()
}

/// The layer that last changed whether a cell is kept; the bottom one if none did.
pub(super) fn decided_by<'a>(layers: &[SceneLayer<'a>], keeps: impl Fn(&Mod) -> bool) -> Option<SceneLayer<'a>> {
    let (bottom, above) = layers.split_first()?;
    let (mut kept, mut by) = (keeps(bottom.mask) != (bottom.combine == Combine::AndNot), *bottom);
    let begun = kept;
    let mut changed = false;
    for layer in above {
        let now = match layer.combine {
            Combine::And => kept && keeps(layer.mask),
            Combine::Or => kept || keeps(layer.mask),
            Combine::AndNot => kept && !keeps(layer.mask),
        };
        if now != kept {
            (kept, by, changed) = (now, *layer, true);
        }
    }
    // where others could have kept it, it is no single layer that does not
    let asked = bottom.combine != Combine::AndNot && above.iter().any(|layer| layer.combine == Combine::Or);
    (begun || changed || !asked).then_some(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples;
    use std::sync::Arc;

    #[test]
    fn the_layer_that_changed_a_cell_decided_it() {
        let (causal, window) = (Arc::new(examples::causal()), Arc::new(examples::sliding_window(2)));
        let layer = |name, combine, mask| SceneLayer { id: 0, name, combine, mask };
        let by = |layers: &[SceneLayer<'static>], q, kv_idx| {
            let cell = Cell { b: 0, h: 0, q_idx: q, kv_idx, score: 0.0 };
            decided_by(layers, |m| keeps(m, &cell)).map(|layer| layer.name)
        };
        let (causal, window): (&'static Arc<Mod>, &'static Arc<Mod>) =
            (Box::leak(Box::new(causal)), Box::leak(Box::new(window)));
        let near = [layer("causal", Combine::And, causal), layer("window", Combine::And, window)];
        assert_eq!(
            (by(&near, 5, 5), by(&near, 9, 1), by(&near, 1, 9)),
            (Some("causal"), Some("window"), Some("causal"))
        );
        let far = [layer("causal", Combine::AndNot, causal), layer("window", Combine::Or, window)];
        assert_eq!((by(&far, 5, 5), by(&far, 9, 1), by(&far, 1, 9)), (Some("window"), Some("causal"), Some("causal")));
        // kept by none of two
        let either = [layer("causal", Combine::And, causal), layer("window", Combine::Or, window)];
        assert_eq!((by(&either, 1, 9), by(&either, 9, 1)), (None, Some("causal")));
        assert_eq!(by(&[], 1, 1), None);
    }

    #[test]
    fn shares_are_never_rounded_to_all_or_nothing() {
        assert_eq!(percent(0.999_999, true), "> 99.99%");
        assert_eq!(percent(1e-9, true), "< 0.01%");
        assert_eq!((percent(0.0, true), percent(1.0, false)), ("0%".into(), "\u{2248} 100%".into()));
        assert_eq!((percent(0.004, true), percent(0.1234, true)), ("0.40%".into(), "12.3%".into()));
    }
}
