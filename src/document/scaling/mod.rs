//! The same document with fewer tokens: its axes, and all values that count tokens, rows or frames.
//!
//! Invariant: layers, score mods, combines and formats stay; a value is scaled with the things that it counts, and a
//! value that counts other things (blocks, heads, steps) stays. The caller counts whether a copy is still the same
//! mask. Must not know how a copy is judged or run.

mod plans;
mod units;
mod values;

use super::binding::Facts;
use super::compile::Environment;
use super::model::*;
use super::resize::{self, Resize};
use crate::base::BlockSize;
use plans::Plan;
use units::{Parameter, parameters};
use values::Rounding;

/// Copies that are worth compiling, at most.
const MOST: usize = 64;

/// Copies whose longer side has about `tokens` tokens, the likeliest first. A document that is as short already gives itself.
/// `full`: the whole document, which gives heads and batch; `heads` and `batch`: those of the copies.
pub fn copies(document: &Document, env: &dyn Environment, tokens: usize, groups: Groups) -> Vec<Document> {
    let parameters = parameters(document, env);
    let mut found: Vec<(f64, Document)> = Vec::new();
    for plan in plans::plans(&document.axes, tokens) {
        for rounding in Rounding::all(&plan) {
            let scaling = Scaling { document, plan: &plan, rounding, groups };
            let cost = plan.cost + scaling.error(&parameters);
            if found.len() < MOST || found.last().is_some_and(|(most, _)| cost < *most) {
                let Some(copy) = scaling.copy(&parameters) else { continue };
                if found.iter().any(|(_, known)| *known == copy) {
                    continue;
                }
                let at = found.partition_point(|(other, _)| *other <= cost);
                found.insert(at, (cost, copy));
                found.truncate(MOST);
            }
        }
    }
    found.into_iter().map(|(_, copy)| copy).collect()
}

/// Batch entries and heads of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Batch entries.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
}

impl Groups {
    /// Those of a document.
    pub fn of(settings: &Settings) -> Groups {
        Groups { batch: settings.batch, heads: settings.heads, kv_heads: settings.kv_heads }
    }

    /// One batch entry and at most `most` query heads, or one group if that has more.
    pub fn fewer(settings: &Settings, most: usize) -> Groups {
        let group = (settings.heads / settings.kv_heads.max(1)).max(1);
        let heads = settings.heads.min(most.max(group));
        Groups { batch: 1, heads, kv_heads: (heads / group).max(1) }
    }
}

/// One way to make a copy.
struct Scaling<'a> {
    document: &'a Document,
    plan: &'a Plan,
    rounding: Rounding,
    groups: Groups,
}

impl Scaling<'_> {
    /// The deviation of whole values from their exact scale.
    fn error(&self, parameters: &[Parameter]) -> f64 {
        let errors: Vec<f64> = parameters.iter().filter_map(|p| self.scaled(p).map(|s| s.error)).collect();
        errors.iter().sum::<f64>().abs() + 0.25 * errors.iter().map(|e| e.abs()).sum::<f64>()
    }

    fn scaled(&self, parameter: &Parameter) -> Option<values::Scaled> {
        let new = self.settings();
        let old = Facts { axes: &self.document.axes, settings: &self.document.settings };
        let new = Facts { axes: &self.plan.axes, settings: &new };
        values::scaled(parameter, self.plan, &self.rounding, [old, new])
    }

    fn settings(&self) -> Settings {
        let Groups { batch, heads, kv_heads } = self.groups;
        Settings { batch, heads, kv_heads, ..self.document.settings.clone() }
    }

    fn copy(&self, parameters: &[Parameter]) -> Option<Document> {
        let mut copy = Document { axes: self.plan.axes.clone(), settings: self.settings(), ..self.document.clone() };
        for layer in &mut copy.layers {
            self.shape(&mut layer.content)?;
        }
        for score in &mut copy.scores {
            self.curve(&mut score.content);
        }
        for parameter in parameters {
            if let Some(scaled) = self.scaled(parameter) {
                units::set(&mut copy, parameter, scaled.value);
            }
        }
        Some(copy)
    }

    /// Drawn layers and captured tensors.
    fn shape(&self, content: &mut MaskContent) -> Option<()> {
        let plan = self.plan;
        match content {
            MaskContent::Rectangle { q, kv } => {
                *q = plan.q_range(*q);
                *kv = plan.kv_range(*kv);
            }
            MaskContent::Band { lo, hi } => {
                let end = |v: i64| values::distance(v, plan.kv_ratio());
                (*lo, *hi) = (lo.map(end), hi.map(end));
            }
            MaskContent::Painted(painted) => *painted = self.painted(painted)?,
            MaskContent::Text(code) => values::tensors(&mut code.tensors, plan),
            MaskContent::Linked(code) => values::tensors(&mut code.tensors, plan),
            MaskContent::Pattern(_) => {}
        }
        Some(())
    }

    /// Cells shrink with the axes if they stay whole; otherwise strokes are moved.
    fn painted(&self, painted: &Painted) -> Option<Painted> {
        let new = [self.plan.axes.q.len(), self.plan.axes.kv().len()];
        let whole = |cell: usize, old: usize, new: usize| {
            let scaled = cell * new;
            (scaled > 0 && scaled.is_multiple_of(old)).then(|| scaled / old)
        };
        let q = whole(painted.cell.q, painted.lengths[0], new[0]);
        let kv = whole(painted.cell.kv, painted.lengths[1], new[1]);
        match q.zip(kv) {
            Some((q, kv)) => {
                Some(Painted { cell: BlockSize { q, kv }, lengths: new, strokes: painted.strokes.clone() })
            }
            None => resize::resized(painted, new, Resize::Scale).ok(),
        }
    }

    fn curve(&self, content: &mut ScoreContent) {
        match content {
            ScoreContent::Curve { points } => points.iter_mut().for_each(|p| p.0 *= self.plan.kv_ratio()),
            ScoreContent::Text(code) => values::tensors(&mut code.tensors, self.plan),
            ScoreContent::Linked(code) => values::tensors(&mut code.tensors, self.plan),
            ScoreContent::Pattern(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
