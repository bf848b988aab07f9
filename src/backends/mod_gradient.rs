//! The derivative of a problem's score mod, prepared for evaluation over tiles.
//!
//! Invariant: the reference and every CPU backend share one evaluation, like that of the mods. A gradient of a captured
//! tensor is summed in float64. Must not know how gradients of scores are computed.

use super::given::Given;
use super::gradients::CaptureGradient;
use super::mods::Place;
use crate::base::Diagnostic;
use crate::ir::graph::{CaptureId, Input, Mod};
use crate::ir::passes::derive::{ReadGradient, derive, flat_index};
use crate::ir::tiles::Program;
use crate::problem::Problem;

/// The use of the gradient of a modified score.
pub(crate) struct ModGradient {
    /// By the score; None: it is 1 everywhere.
    by_score: Option<Program>,
    reads: Vec<Read>,
    /// Tensors that get a gradient: their number, name, shape, and where theirs begins among all elements.
    captures: Vec<(CaptureId, Vec<usize>, usize)>,
    elements: usize,
    given: Given,
}

/// One read of a captured tensor.
struct Read {
    /// By the element; None: it is 1 everywhere.
    value: Option<Program>,
    place: Program,
    /// Whether the element depends on the query token and on the key token.
    by_query: bool,
    by_key: bool,
    first: usize,
}

impl ModGradient {
    /// For a problem, for all captured floats. Errors: no derivative exists.
    pub(crate) fn new(problem: &Problem) -> Result<ModGradient, Diagnostic> {
        let mut made = ModGradient {
            by_score: None,
            reads: Vec::new(),
            captures: Vec::new(),
            elements: 0,
            given: Given::default(),
        };
        let Some(score) = problem.score.as_deref() else { return Ok(made) };
        let derived = derive(score, |_| true)?;
        made.by_score = (derived.constant() != Some(1.0)).then(|| Program::new(&derived.part(derived.score)));
        for id in derived.captures() {
            let held = score.graph.capture(id);
            made.captures.push((id, held.tensor.shape().to_vec(), made.elements));
            made.elements += held.tensor.numel();
        }
        made.given = Given::new(score, &derived.captures());
        for read in &derived.reads {
            let (_, shape, first) = made.captures.iter().find(|c| c.0 == read.capture).expect("one of them").clone();
            if made.elements_of(read.capture, score) > 0 {
                made.reads.push(Read::new(&derived.part(read.value), read, &flat_index(&derived, read, &shape), first));
            }
        }
        Ok(made)
    }

    fn elements_of(&self, capture: CaptureId, score: &Mod) -> usize {
        score.graph.capture(capture).tensor.numel()
    }

    /// How many captured elements get a gradient.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Whether the scores before the mod are needed.
    pub(crate) fn needs_scores(&self) -> bool {
        self.by_score.is_some() || self.reads.iter().any(|r| r.value.is_some())
    }

    /// Adds a tile's gradients of captured elements to `sums`, and converts `gradients` from those of the modified
    /// scores to those of the scores. `scores` are those before the mod.
    pub(crate) fn apply(
        &self,
        at: &Place,
        scores: &[f32],
        gradients: &mut [f32],
        sums: &mut [f64],
        buffer: &mut Vec<f32>,
    ) {
        for read in &self.reads {
            let factor = read.value.as_ref().map(|value| {
                buffer.clear();
                buffer.extend_from_slice(scores);
                value.score_tile(at.b, at.h, at.q.clone(), at.kv.clone(), buffer);
                &buffer[..]
            });
            read.collect(at, sums, |i| {
                let by = factor.map_or(1.0, |f| f64::from(f[i]));
                // a masked cell gives nothing, for any derivative there
                if gradients[i] == 0.0 { 0.0 } else { f64::from(gradients[i]) * by }
            });
        }
        if let Some(by_score) = &self.by_score {
            buffer.clear();
            buffer.extend_from_slice(scores);
            by_score.score_tile(at.b, at.h, at.q.clone(), at.kv.clone(), buffer);
            gradients.iter_mut().zip(&*buffer).filter(|(g, _)| **g != 0.0).for_each(|(g, by)| *g *= by);
        }
    }

    /// The same in f64.
    pub(crate) fn apply_f64(&self, at: &Place, scores: &[f64], gradients: &mut [f64], sums: &mut [f64]) {
        let evaluated = |program: &Program| {
            let mut values = scores.to_vec();
            program.score_tile_f64(at.b, at.h, at.q.clone(), at.kv.clone(), &mut values);
            values
        };
        for read in &self.reads {
            let factor = read.value.as_ref().map(evaluated);
            read.collect(at, sums, |i| {
                let by = factor.as_ref().map_or(1.0, |f| f[i]);
                if gradients[i] == 0.0 { 0.0 } else { gradients[i] * by }
            });
        }
        self.through_f64(at, scores, gradients);
    }

    /// Adds the sizes of a tile's gradients of captured elements to `sums`, where `sizes` are those of its gradients.
    pub(crate) fn apply_sizes(&self, at: &Place, scores: &[f64], sizes: &[f64], sums: &mut [f64]) {
        for read in &self.reads {
            let factor = read.value.as_ref().map(|program| {
                let mut values = scores.to_vec();
                program.score_tile_f64(at.b, at.h, at.q.clone(), at.kv.clone(), &mut values);
                values
            });
            read.collect(at, sums, |i| {
                let size = sizes[i] * factor.as_ref().map_or(1.0, |f| f[i].abs());
                // NaN and infinity are judged separately
                if size.is_finite() { size } else { 0.0 }
            });
        }
    }

    /// Makes `gradients`, of the modified scores, those of the scores, in f64.
    pub(crate) fn through_f64(&self, at: &Place, scores: &[f64], gradients: &mut [f64]) {
        let Some(by_score) = &self.by_score else { return };
        let mut by = scores.to_vec();
        by_score.score_tile_f64(at.b, at.h, at.q.clone(), at.kv.clone(), &mut by);
        gradients.iter_mut().zip(by).filter(|(g, _)| **g != 0.0).for_each(|(g, by)| *g *= by);
    }

    /// The gradients of the tensors that were given, of the sums, one after the other.
    pub(crate) fn led_back(&self, sums: &[f64]) -> Vec<f64> {
        self.given.led_back(&self.parts(sums))
    }

    /// The same of sizes.
    pub(crate) fn sizes_back(&self, sums: &[f64]) -> Vec<f64> {
        self.given.sizes(&self.parts(sums))
    }

    /// The same as tensors.
    pub(crate) fn tensors(&self, sums: &[f64]) -> Result<Vec<CaptureGradient>, Diagnostic> {
        self.given.tensors(&self.parts(sums))
    }

    fn parts<'a>(&self, sums: &'a [f64]) -> Vec<&'a [f64]> {
        let own = |(_, shape, first): &(CaptureId, Vec<usize>, usize)| &sums[*first..][..shape.iter().product()];
        self.captures.iter().map(own).collect()
    }
}

impl Read {
    fn new(value: &Mod, read: &ReadGradient, place: &Mod, first: usize) -> Read {
        let depends = place.depends();
        let on = |input| depends.on(input) || depends.on(Input::Score);
        let one =
            matches!(value.graph.node(read.value).op, crate::ir::graph::Op::Float(bits) if bits == 1f64.to_bits());
        Read {
            value: (!one).then(|| Program::new(value)),
            place: Program::new(place),
            by_query: on(Input::QIdx),
            by_key: on(Input::KvIdx),
            first,
        }
    }

    /// Adds what `part` gives each cell of a tile to its element: summed first where several cells share one.
    fn collect(&self, at: &Place, sums: &mut [f64], part: impl Fn(usize) -> f64) {
        let (rows, columns) = (at.q.len(), at.kv.len());
        let q = at.q.start..at.q.start + if self.by_query { rows } else { 1 };
        let kv = at.kv.start..at.kv.start + if self.by_key { columns } else { 1 };
        let wide = kv.len();
        let mut places = vec![0.0; q.len() * wide];
        self.place.score_tile_f64(at.b, at.h, q, kv, &mut places);
        let mut add = |place: f64, x: f64| {
            if x != 0.0 {
                sums[self.first + place as usize] += x;
            }
        };
        match (self.by_query, self.by_key) {
            (true, true) => (0..rows * columns).for_each(|i| add(places[i], part(i))),
            (true, false) => (0..rows).for_each(|r| add(places[r], (0..columns).map(|c| part(r * columns + c)).sum())),
            (false, true) => (0..columns).for_each(|c| add(places[c], (0..rows).map(|r| part(r * columns + c)).sum())),
            (false, false) => add(places[0], (0..rows * columns).map(part).sum()),
        }
    }
}
