//! A smaller copy of a document: what a CPU races in seconds where the whole would take minutes.
//!
//! Invariant: the copy compiles and is a valid problem, with the same layers, head group and formats; only lengths, batch
//! and heads shrink. Must not know how it is run.

use super::compile::{self, Built};
use crate::document::compile::BuiltIn;
use crate::document::controls::controls;
use crate::document::edit;
use crate::document::model::{ArgValue, Axes, Axis, CodeRef, Document, MaskContent};
use crate::document::resize::{self, Resize};
use crate::problem::ProblemSpec;
use std::path::PathBuf;

/// FLOP of one dense pass that a CPU is trusted with.
const LIGHT: f64 = 3e10;
/// Tokens that a smaller copy aims at.
const TOKENS: usize = 1024;
/// Heads of a smaller copy, or one group if that has more.
const HEADS: usize = 4;

/// Whether a dense pass would keep a CPU busy for long.
pub(crate) fn is_heavy(problem: &ProblemSpec) -> bool {
    let cells = problem.batch as f64 * problem.heads as f64 * problem.q_len as f64 * problem.kv_len as f64;
    2.0 * cells * (problem.head_dim + problem.head_dim_v) as f64 > LIGHT
}

/// The copy, compiled; None where nothing smaller compiles. Code that fixes its own lengths keeps them, with fewer heads.
pub(crate) fn smaller(document: &Document, base: Option<PathBuf>) -> Option<Built> {
    smaller_to(document, base, TOKENS)
}

/// The same, aiming at `tokens`.
pub(crate) fn smaller_to(document: &Document, base: Option<PathBuf>, tokens: usize) -> Option<Built> {
    let mut best: Option<Built> = None;
    let heads = fewer_heads(document);
    let tiles = tiles(document);
    for factor in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] {
        let build = |copy: Option<Document>| Some(compile::build(copy?, base.clone())).filter(|b| b.problem.is_ok());
        let plain = || build(divided(&heads, factor, &[]));
        let whole_tiles = || build(divided(&heads, factor, &tiles));
        let shorter_parts = || build(divided(&heads, factor, &[]).map(|copy| with_shorter_parts(copy, factor)));
        // a tile may not divide this grid, but a smaller one again
        let Some(built) = plain().or_else(whole_tiles).or_else(shorter_parts) else { continue };
        let short = built.lengths.is_some_and(|l| l.q_len.max(l.kv_len) <= tokens);
        best = Some(built);
        if short {
            break;
        }
    }
    best
}

fn fewer_heads(document: &Document) -> Document {
    let mut copy = document.clone();
    let settings = &mut copy.settings;
    let group = (settings.heads / settings.kv_heads.max(1)).max(1);
    settings.batch = 1;
    settings.heads = settings.heads.min(HEADS.max(group));
    settings.kv_heads = (settings.heads / group).max(1);
    copy
}

/// Whole arguments of patterns: where one divides a side of a grid it may be a tile's, which must divide the copy's too.
fn tiles(document: &Document) -> Vec<usize> {
    let of_patterns = document.layers.iter().filter_map(|layer| match &layer.content {
        MaskContent::Pattern(code) => Some(code.args.values()),
        _ => None,
    });
    let whole = |value: &ArgValue| match value {
        ArgValue::Int(n) => usize::try_from(*n).ok().filter(|n| *n > 1),
        _ => None,
    };
    of_patterns.flatten().filter_map(whole).collect()
}

/// Axes with about `factor` times fewer tokens, painted cells scaled along, rectangles and bands with them. A side stays a
/// multiple of the largest of `tiles` that divides it.
fn divided(document: &Document, factor: usize, tiles: &[usize]) -> Option<Document> {
    let axes = &document.axes;
    let shorter = |axis: &Axis| shorter(axis, factor, tiles);
    let axes = Axes { q: shorter(&axes.q), kv: axes.kv.as_ref().map(shorter) };
    let mut copy = document.clone();
    edit::apply(&mut copy, resize::set_axes(document, axes, Resize::Scale).ok()?).ok()?;
    for layer in &mut copy.layers {
        scale(&mut layer.content, factor);
    }
    clamp_arguments(&mut copy);
    Some(copy)
}

/// A box wider than its canvas has become as wide as that, where the pattern states such a range.
fn clamp_arguments(copy: &mut Document) {
    let ids: Vec<u64> = copy.layers.iter().map(|layer| layer.id).collect();
    for id in ids {
        let Ok((_, controls)) = controls(copy, id, &BuiltIn) else { continue };
        let Some(layer) = copy.layers.iter_mut().find(|layer| layer.id == id) else { continue };
        let MaskContent::Pattern(CodeRef { args, .. }) = &mut layer.content else { continue };
        for control in controls {
            if let (Some(ArgValue::Int(value)), Some(range)) = (args.get_mut(&control.name), control.range) {
                *value = (*value).min(range.max as i64);
            }
        }
    }
}

/// The lengths that a pattern lists (documents of a pack), and with them the part that stands before those, `factor` times
/// shorter; the last one takes what is left over.
fn with_shorter_parts(mut copy: Document, factor: usize) -> Document {
    let total = copy.axes.lengths().map_or(0, |l| l.kv_len as i64);
    for layer in &mut copy.layers {
        let MaskContent::Pattern(CodeRef { args, .. }) = &mut layer.content else { continue };
        let Some(ArgValue::List(parts)) = args.get("lengths").cloned() else { continue };
        let shorter = |value: &ArgValue| match value {
            ArgValue::Int(n) => (*n / factor as i64).max(1),
            _ => 1,
        };
        let before = args.get("prefix").map_or(0, shorter);
        let mut parts: Vec<i64> = parts.iter().map(shorter).collect();
        let others = before + parts.iter().rev().skip(1).sum::<i64>();
        if let Some(last) = parts.last_mut() {
            *last = (total - others).max(1);
        }
        if args.contains_key("prefix") {
            args.insert("prefix".into(), ArgValue::Int(before));
        }
        args.insert("lengths".into(), ArgValue::List(parts.into_iter().map(ArgValue::Int).collect()));
    }
    copy
}

fn scale(content: &mut MaskContent, factor: usize) {
    match content {
        MaskContent::Rectangle { q, kv } => {
            for [from, to] in [q, kv] {
                *from /= factor;
                *to = to.div_ceil(factor).max(*from + 1);
            }
        }
        MaskContent::Band { lo, hi } => {
            let less = |bound: &mut Option<i64>| {
                if let Some(b) = bound {
                    *b /= factor as i64;
                }
            };
            less(lo);
            less(hi);
        }
        _ => {}
    }
}

/// Every segment shorter; a grid's longest side first, so that proportions stay. What was a multiple of eight, as tiles
/// want it, stays one while it is longer than that.
fn shorter(axis: &Axis, factor: usize, tiles: &[usize]) -> Axis {
    let mut axis = axis.clone();
    for segment in &mut axis.segments {
        let tile_of =
            |side: &usize| tiles.iter().copied().filter(|tile| side.is_multiple_of(*tile) && side > tile).max();
        let kept: Vec<Option<usize>> = segment.grid.iter().map(tile_of).collect();
        let half = |side: usize, tile: Option<usize>| {
            let half = side.div_ceil(2);
            let eight = if side.is_multiple_of(8) && half > 8 { 8 } else { 1 };
            half.next_multiple_of(tile.unwrap_or(eight))
        };
        let mut left = factor;
        while left > 1 {
            let sides = segment.grid.iter_mut().zip(&kept).filter(|(side, tile)| half(**side, **tile) < **side);
            let Some((longest, tile)) = sides.max_by_key(|(side, _)| **side) else { break };
            *longest = half(*longest, *tile);
            left /= 2;
        }
    }
    axis
}

/// `1024 x 1024 tokens, 4 heads`.
pub(crate) fn words(problem: &ProblemSpec) -> String {
    format!("{} x {} tokens, {} heads", problem.q_len, problem.kv_len, problem.heads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::library;

    #[test]
    fn every_preset_has_a_copy_that_a_cpu_races_in_seconds() {
        for preset in library::presets() {
            let document = preset.document().unwrap();
            let built = smaller(&document, None).unwrap_or_else(|| panic!("{}", preset.name));
            let problem = built.problem.as_ref().unwrap();
            assert!(!is_heavy(problem), "{}: {}", preset.name, words(problem));
            assert!(
                problem.heads <= HEADS.max(document.settings.heads / document.settings.kv_heads),
                "{}",
                preset.name
            );
            assert_eq!(built.document.layers.len(), document.layers.len());
        }
    }
}
