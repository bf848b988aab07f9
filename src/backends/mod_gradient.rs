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
    /// Whether the element depends on the query token, on the key token, and on the score before the mod.
    by_query: bool,
    by_key: bool,
    by_score: bool,
    first: usize,
}

/// Elements up to which f32 holds every index.
const EXACT_IN_F32: usize = 1 << 24;

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
        self.by_score.is_some() || self.reads.iter().any(|r| r.value.is_some() || r.by_score)
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
            // the element that the forward pass read, which a score in f64 could miss by a rounding
            let places = read.places(at, |place| {
                if self.elements > EXACT_IN_F32 {
                    return evaluated(place, at, scores.iter().map(|s| f64::from(*s)).collect());
                }
                buffer.clear();
                buffer.extend_from_slice(scores);
                place.score_tile(at.b, at.h, at.q.clone(), at.kv.clone(), buffer);
                buffer.iter().map(|place| f64::from(*place)).collect()
            });
            let factor = read.value.as_ref().map(|value| {
                buffer.clear();
                buffer.extend_from_slice(scores);
                value.score_tile(at.b, at.h, at.q.clone(), at.kv.clone(), buffer);
                &buffer[..]
            });
            read.collect(at, &places, sums, |i| {
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
        let evaluated = |program: &Program| evaluated(program, at, scores.to_vec());
        for read in &self.reads {
            let factor = read.value.as_ref().map(evaluated);
            read.collect(at, &read.places(at, evaluated), sums, |i| {
                let by = factor.as_ref().map_or(1.0, |f| f[i]);
                if gradients[i] == 0.0 { 0.0 } else { gradients[i] * by }
            });
        }
        self.through_f64(at, scores, gradients);
    }

    /// Adds the sizes of a tile's gradients of captured elements to `sums`, where `sizes` are those of its gradients.
    pub(crate) fn apply_sizes(&self, at: &Place, scores: &[f64], sizes: &[f64], sums: &mut [f64]) {
        let evaluated = |program: &Program| evaluated(program, at, scores.to_vec());
        for read in &self.reads {
            let factor = read.value.as_ref().map(evaluated);
            read.collect(at, &read.places(at, evaluated), sums, |i| {
                let size = sizes[i] * factor.as_ref().map_or(1.0, |f| f[i].abs());
                // NaN and infinity are judged separately
                if size.is_finite() { size } else { 0.0 }
            });
        }
    }

    /// Adds to `squares` that of what each captured element moves by if the gradients of a row's cells move by `moved`,
    /// all together.
    pub(crate) fn apply_squares(&self, at: &Place, scores: &[f64], moved: &[f64], squares: &mut [f64]) {
        let evaluated = |program: &Program| evaluated(program, at, scores.to_vec());
        for read in &self.reads {
            let factor = read.value.as_ref().map(evaluated);
            let mut parts = Vec::new();
            read.each(
                at,
                &read.places(at, evaluated),
                |element, x| parts.push((element, x)),
                |i| moved[i] * factor.as_ref().map_or(1.0, |f| f[i]),
            );
            parts.sort_unstable_by_key(|part| part.0);
            for same in parts.chunk_by(|a, b| a.0 == b.0) {
                let square = same.iter().map(|part| part.1).sum::<f64>().powi(2);
                // NaN and infinity are judged separately
                squares[same[0].0] += if square.is_finite() { square } else { 0.0 };
            }
        }
    }

    /// Makes `gradients`, of the modified scores, those of the scores, in f64.
    pub(crate) fn through_f64(&self, at: &Place, scores: &[f64], gradients: &mut [f64]) {
        let Some(by_score) = &self.by_score else { return };
        let by = evaluated(by_score, at, scores.to_vec());
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

/// A program over a tile of scores, in f64.
fn evaluated(program: &Program, at: &Place, mut scores: Vec<f64>) -> Vec<f64> {
    program.score_tile_f64(at.b, at.h, at.q.clone(), at.kv.clone(), &mut scores);
    scores
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
            by_score: depends.on(Input::Score),
            first,
        }
    }

    /// The elements of a tile's cells: one a row, a column or the tile where they share it. `of_scores` evaluates a program
    /// over the tile's scores.
    fn places(&self, at: &Place, of_scores: impl FnOnce(&Program) -> Vec<f64>) -> Vec<f64> {
        if self.by_score {
            return of_scores(&self.place);
        }
        let q = at.q.start..at.q.start + if self.by_query { at.q.len() } else { 1 };
        let kv = at.kv.start..at.kv.start + if self.by_key { at.kv.len() } else { 1 };
        let mut places = vec![0.0; q.len() * kv.len()];
        self.place.score_tile_f64(at.b, at.h, q, kv, &mut places);
        places
    }

    /// Adds what `part` gives each cell of a tile to its element.
    fn collect(&self, at: &Place, places: &[f64], sums: &mut [f64], part: impl Fn(usize) -> f64) {
        self.each(at, places, |element, x| sums[element] += x, part);
    }

    /// Each element of a tile with what `part` gives its cells: summed first where several share one by their row or column.
    fn each(&self, at: &Place, places: &[f64], mut to: impl FnMut(usize, f64), part: impl Fn(usize) -> f64) {
        let (rows, columns) = (at.q.len(), at.kv.len());
        let mut add = |place: f64, x: f64| {
            if x != 0.0 {
                to(self.first + place as usize, x);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::{spec, with_mods};
    use crate::base::HostTensor;
    use crate::base::tensor::Data;
    use crate::ir::random::Rng;
    use crate::ir::text::parse;

    /// The element of every cell is that which the forward pass reads there.
    #[test]
    fn elements_chosen_by_the_score_get_the_gradients_of_their_cells() {
        let table = HostTensor::vector(Data::F32(vec![0.5, -0.25, 2.0]));
        let text = "(add score (load table (where (gt score 0.5) 2 (where (lt score -0.5) 0 1))))";
        let score = parse(text, &[("table", table)]).expect("a graph");
        let made = ModGradient::new(&with_mods(spec(1, 1, 1, 4, 5, 8), None, Some(score))).expect("a derivative");
        assert!(made.needs_scores());
        let mut rng = Rng::new(7);
        let mut drawn = || (0..20).map(|_| rng.unit() * 4.0 - 2.0).collect::<Vec<f64>>();
        let (scores, given) = (drawn(), drawn());
        let mut want = [0.0; 3];
        for (score, gradient) in scores.iter().zip(&given) {
            want[if *score > 0.5 { 2 } else { usize::from(*score >= -0.5) }] += gradient;
        }
        assert!(want.iter().all(|sum| *sum != 0.0));
        let at = Place { b: 0, h: 0, q: 0..4, kv: 0..5 };
        let near = |found: &[f64], by: f64| found.iter().zip(&want).all(|(a, b)| (a - b).abs() < by);
        let (mut exact, mut gradients) = ([0.0; 3], given.clone());
        made.apply_f64(&at, &scores, &mut gradients, &mut exact);
        assert!(near(&exact, 1e-12), "{exact:?} {want:?}");
        let single = |values: &[f64]| values.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let (mut sums, mut gradients) = ([0.0; 3], single(&given));
        made.apply(&at, &single(&scores), &mut gradients, &mut sums, &mut Vec::new());
        assert!(near(&sums, 1e-5), "{sums:?} {want:?}");
        let (mut sizes, mut signs) = ([0.0; 3], given.clone());
        signs.iter_mut().for_each(|x| *x = x.abs());
        made.apply_sizes(&at, &scores, &signs, &mut sizes);
        assert!((sizes.iter().sum::<f64>() - signs.iter().sum::<f64>()).abs() < 1e-12);
        assert!(sizes.iter().zip(&want).all(|(size, sum)| *size >= sum.abs()));
    }
}
