//! The target layers of a stroke, chosen so that it is visible: the brush keeps cells, the eraser removes them.
//!
//! Invariant: after a stroke its cells have the tool's state, for any layers of the mask; only painted layers are
//! changed, and a new one is created if they do not suffice. Must not know the canvas or undo.

use super::gesture::{Gesture, Plan, Rest};
use super::state::State;
use crate::analysis::classify::{Mask, Verdict};
use crate::analysis::interval::Cells;
use crate::base::BlockSize;
use crate::document::heads::Heads;
use crate::document::joining::{Part, join_masks};
use crate::document::model::*;
use crate::ir::passes::compose;
use crate::words::Words;
use std::sync::Arc;

impl State {
    /// Tokens that a painted cell covers: of the layer that is painted on, or BLOCK_SIZE.
    pub(crate) fn painting_cell(&self) -> BlockSize {
        let heads = &self.focus.picked;
        let cell = |layer: &Layer| match &layer.content {
            MaskContent::Painted(painted) if layer.enabled && layer.heads == *heads => Some(painted.cell),
            _ => None,
        };
        let selected = self.focus.layer.and_then(|id| self.document.layer(id)).and_then(cell);
        let top = || {
            let mut mine = self.document.layers.iter().rev().filter(|l| l.enabled && l.meets(heads.as_ref()));
            mine.next().and_then(cell)
        };
        selected.or_else(top).unwrap_or(self.document.settings.block_size)
    }
}

impl Plan {
    /// The present effect of a stroke.
    pub(crate) fn of(state: &State, keep: bool) -> Plan {
        Plan::in_cells(state, keep, state.painting_cell())
    }

    /// The same of a stroke in other cells.
    fn in_cells(state: &State, keep: bool, cell: BlockSize) -> Plan {
        let heads = state.focus.picked.clone();
        Plan::new(&state.document, state.focus.layer, keep, cell, heads)
    }

    fn new(document: &Document, selected: Option<u64>, keep: bool, cell: BlockSize, heads: Option<Heads>) -> Plan {
        // layers of other heads are ignored; a layer for more heads than these is not drawn on
        let here = document.layers.iter().filter(|l| l.enabled && l.meets(heads.as_ref()));
        let enabled: Vec<&Layer> = here.collect();
        let paints = |l: &Layer| l.heads == heads && matches!(&l.content, MaskContent::Painted(p) if p.cell == cell);
        // painted layers below no other layer: strokes on them are visible
        let covered = enabled.iter().rposition(|l| !paints(l)).map_or(0, |at| at + 1);
        let bottom = enabled.first().map(|l| l.id);
        let takes = |l: &Layer| l.combine == Combine::AndNot;
        let gives = |l: &Layer| match l.combine {
            Combine::Or => true,
            Combine::And => bottom == Some(l.id),
            Combine::AndNot => false,
        };
        let chosen = enabled.iter().position(|l| Some(l.id) == selected && paints(l));
        let topmost = |wanted: &dyn Fn(&Layer) -> bool| {
            let free = enabled.iter().enumerate().skip(covered);
            free.filter(|(_, l)| wanted(l)).map(|(at, _)| at).next_back()
        };
        // a stroke on a layer is visible only where no painted layer above decides
        let above = |at: usize, wanted: &dyn Fn(&Layer) -> bool| -> Vec<(u64, bool)> {
            let over = enabled.iter().enumerate().skip(covered.max(at + 1)).filter(|(_, l)| wanted(l));
            over.map(|(_, l)| (l.id, takes(l) != keep)).collect()
        };
        let plan = |targets, rest| Plan { targets, rest, keep, heads: heads.clone() };
        if keep {
            let gives_at = chosen.filter(|at| !takes(enabled[*at])).or_else(|| topmost(&gives));
            return match (chosen.filter(|at| takes(enabled[*at])), gives_at) {
                // a layer that removes cells restores them; if this is not enough, the cells are kept in a layer above
                // it
                (Some(at), gives_at) => {
                    let mut targets = vec![(enabled[at].id, false)];
                    targets.extend(above(at, &takes));
                    let higher = gives_at.filter(|on| *on > at);
                    plan(targets, higher.map_or(Rest::New(Combine::Or), |on| Rest::Layer(enabled[on].id)))
                }
                (None, Some(at)) => {
                    let mut targets = vec![(enabled[at].id, true)];
                    targets.extend(above(at, &takes));
                    plan(targets, Rest::Nothing)
                }
                (None, None) if enabled.is_empty() => plan(Vec::new(), Rest::Begins(Combine::And)),
                (None, None) => plan(Vec::new(), Rest::Begins(Combine::Or)),
            };
        }
        let gives_at = chosen.filter(|at| !takes(enabled[*at])).or_else(|| topmost(&gives));
        let takes_at = chosen.filter(|at| takes(enabled[*at]) && *at >= covered).or_else(|| topmost(&takes));
        let mut targets: Vec<(u64, bool)> = gives_at.map(|at| (enabled[at].id, false)).into_iter().collect();
        let Some(at) = takes_at else { return plan(targets, Rest::New(Combine::AndNot)) };
        let higher = above(at, &|l| !takes(l)).into_iter().filter(|t| !targets.contains(t)).collect::<Vec<_>>();
        targets.extend(higher);
        plan(targets, Rest::Layer(enabled[at].id))
    }

    /// The layer that is worked on by it.
    pub(crate) fn layer(&self) -> Option<u64> {
        self.targets.first().map(|t| t.0).or(match self.rest {
            Rest::Layer(id) => Some(id),
            _ => None,
        })
    }

    /// The effect of a stroke, in words for the row above the picture.
    pub(crate) fn words(&self, said: &'static Words, document: &Document) -> String {
        let words = self.words_of_all(said, document);
        match &self.heads {
            Some(heads) if heads.count() == 1 => {
                said.with("paint-one-head", &[("heads", heads.to_string().into()), ("words", words.into())])
            }
            Some(heads) => {
                said.with("paint-some-heads", &[("heads", heads.to_string().into()), ("words", words.into())])
            }
            None => words,
        }
    }

    fn words_of_all(&self, said: &'static Words, document: &Document) -> String {
        let name = |id: u64| document.layer(id).map_or("", |l| l.name.as_str()).to_string();
        match (self.keep, &self.targets[..], self.rest) {
            (true, _, Rest::Begins(Combine::And)) => said.text("paint-first").into(),
            (true, [], _) => said.text("paint-new").into(),
            (true, [(id, true), ..], _) => said.with("paint-in", &[("name", name(*id).into())]),
            (true, [(id, false), ..], _) => said.with("paint-restores", &[("name", name(*id).into())]),
            (false, [(id, _), ..], Rest::New(_)) => said.with("paint-removes-new", &[("name", name(*id).into())]),
            (false, _, Rest::Layer(id)) => said.with("paint-removes", &[("name", name(id).into())]),
            (false, ..) => said.text("paint-removes-above").into(),
        }
    }
}

impl Gesture {
    /// A stroke that begins now, in cells of this size.
    pub(crate) fn new(state: &State, keep: bool, cell: BlockSize) -> Gesture {
        let plan = Plan::in_cells(state, keep, cell);
        let base = base(state, &plan).map(|mask| Arc::new(Mask::new(mask)));
        Gesture { plan, cell, begun: Vec::new(), base }
    }

    /// Those of the rectangles (cell units) whose cells are not all as they should be by the plan's targets alone.
    pub(crate) fn left_over(&self, document: &Document, rects: &[[u32; 4]]) -> Vec<[u32; 4]> {
        let (Some(base), Ok(lengths)) = (&self.base, document.axes.lengths()) else { return rects.to_vec() };
        let mut scratch = base.scratch();
        let wanted = if self.plan.keep { Verdict::Full } else { Verdict::Empty };
        let last = |n: usize| n.max(1) as i64 - 1;
        let mut differs = |[q0, q1, kv0, kv1]: [u32; 4]| {
            let side = |lo: u32, hi: u32, cell: usize, len: usize| {
                (lo as i64 * cell as i64, (hi as i64 * cell as i64).min(len as i64) - 1)
            };
            let cells = |h: (i64, i64)| Cells {
                b: (0, last(document.settings.batch)),
                h,
                q: side(q0, q1, self.cell.q, lengths.q_len),
                kv: side(kv0, kv1, self.cell.kv, lengths.kv_len),
            };
            let all = [[0, document.settings.heads.max(1)]];
            let ranges = self.plan.heads.as_ref().map_or(&all[..], |heads| heads.ranges());
            ranges.iter().any(|[from, to]| {
                let cells = cells((*from as i64, *to as i64 - 1));
                cells.q.0 <= cells.q.1 && cells.kv.0 <= cells.kv.1 && base.classify(&cells, &mut scratch) != wanted
            })
        };
        rects.iter().copied().filter(|rect| differs(*rect)).collect()
    }
}

/// The mask where every target is drawn on: those layers are all painted there, or all erased. None while a layer has no
/// mod of this document.
fn base(state: &State, plan: &Plan) -> Option<Arc<crate::ir::graph::Mod>> {
    let built = state.session.built.as_ref()?;
    let part = |layer: &Layer| {
        let drawn = plan.targets.iter().find(|t| t.0 == layer.id).map(|t| Arc::new(compose::constant_mask(t.1)));
        let made = || built.compiled.layers.iter().find(|l| l.id == layer.id)?.result.clone();
        Some(Part { combine: layer.combine, heads: layer.heads.clone(), of: drawn.or_else(made)? })
    };
    let parts: Option<Vec<_>> = state.document.layers.iter().filter(|l| l.enabled).map(part).collect();
    Some(Arc::new(join_masks(&parts?)))
}

#[cfg(test)]
#[path = "painting_tests.rs"]
mod tests;
