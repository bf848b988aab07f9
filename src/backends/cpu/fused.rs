//! Fused attention: tiles of queries sweep over the keys with a running softmax; scores never leave the cache.
//!
//! Invariant: the [`Plan`] alone decides which keys a tile of queries visits and how the mask is applied; the sweep is
//! the same for sdpa, flash_attention_2 and flex. Must not know why a plan was chosen.

use super::backward::Sweep;
use super::backward_inputs::{Extents, Prepped, Rows};
use super::element::{Element, with_element};
use super::pack::{Packed, Shape};
use super::passes::{Passes, Runner};
use super::plan::{Plan, ROWS};
use crate::backends::gradients::{Gradients, Seeds};
use crate::backends::mod_gradient::ModGradient;
use crate::backends::mods::{Mods, Place};
use crate::backends::{Inputs, Output, Prepared};
use crate::base::tensor::Data;
use crate::base::{BackendName, Diagnostic, HostTensor};
use crate::micro::{Kernels, LANE_PAD, PANEL, Running, Tile};
use crate::problem::Problem;
use crate::problem::facts::{KernelFacts, KernelReport, Library};
use rayon::prelude::*;
use std::ops::Range;

/// Keys that one step of the sweep takes at most.
const STEP: usize = 256;

/// Builds the runner of a plan.
pub(super) fn prepare(
    problem: &Problem,
    inputs: &Inputs,
    name: BackendName,
    plan: Plan,
) -> Result<Box<dyn Prepared>, Diagnostic> {
    let shared = problem.captured_bytes() + plan.memory();
    with_element!(problem.dtype, T => Ok(Box::new(Runner::new(shared, || Fused::<T>::new(problem, inputs, name, plan)))))
}

/// Everything of one problem, ready to run.
struct Fused<T> {
    problem: Problem,
    inputs: Inputs,
    name: BackendName,
    plan: Plan,
    mods: Mods,
    kernels: Kernels,
    packed: Packed,
    out: Vec<T>,
    ends: Vec<RowEnd>,
    back: Option<Back>,
}

/// Additional data for a backward pass.
struct Back {
    derivative: ModGradient,
    prepped: Prepped,
}

/// A row's results other than its output.
#[derive(Clone, Copy)]
pub(super) struct RowEnd {
    pub(super) lse: f32,
    max_score: f32,
}

impl RowEnd {
    /// Before a row is computed.
    pub(super) const POISON: RowEnd = RowEnd { lse: f32::NAN, max_score: f32::NAN };

    /// From a row's running maximum, which passes NaN by, and sum, which is NaN only for NaN or +inf among the scores; and
    /// the factor of its output. A row that keeps nothing has factor 0.
    pub(super) fn of(max: f32, sum: f32) -> (RowEnd, f32) {
        let max_score = if sum.is_nan() && max != f32::INFINITY { f32::NAN } else { max };
        let (factor, lse) = if sum == 0.0 { (0.0, f32::NEG_INFINITY) } else { (1.0 / sum, max + sum.ln()) };
        (RowEnd { lse, max_score }, factor)
    }
}

/// Buffers of one thread.
struct Scratch {
    q: Vec<f32>,
    scores: Vec<f32>,
    keep: Vec<u8>,
    out: Vec<f32>,
    max: Vec<f32>,
    sum: Vec<f32>,
    rescale: Vec<f32>,
    spans: Vec<(Range<usize>, bool)>,
}

impl Scratch {
    fn new(shape: Shape) -> Scratch {
        Scratch {
            q: vec![0.0; ROWS * shape.head_dim],
            scores: vec![0.0; ROWS * STEP],
            keep: vec![0; ROWS * STEP],
            out: vec![0.0; ROWS * shape.width()],
            max: vec![0.0; ROWS],
            sum: vec![0.0; ROWS],
            rescale: vec![0.0; ROWS],
            spans: Vec::new(),
        }
    }
}

/// One tile's rows of the result.
struct Task<'a, T> {
    place: Place,
    out: &'a mut [T],
    ends: &'a mut [RowEnd],
}

impl<T: Element> Fused<T> {
    fn new(problem: &Problem, inputs: &Inputs, name: BackendName, plan: Plan) -> Self {
        let s = problem.spec();
        let shape =
            Shape { heads: s.batch * s.kv_heads, kv_len: s.kv_len, head_dim: s.head_dim, head_dim_v: s.head_dim_v };
        let rows = s.batch * s.heads * s.q_len;
        Fused {
            problem: problem.clone(),
            inputs: inputs.clone(),
            name,
            plan,
            mods: Mods::new(problem),
            kernels: Kernels::detect(),
            packed: Packed::new(shape),
            out: vec![T::POISON; rows * s.head_dim_v],
            ends: vec![RowEnd::POISON; rows],
            back: None,
        }
    }

    fn tile(&self, q: &[T], scratch: &mut Scratch, task: Task<T>) {
        let s = self.problem.spec();
        let place = &task.place;
        let rows = place.q.len();
        let first = ((place.b * s.heads + place.h) * s.q_len + place.q.start) * s.head_dim;
        let scale = self.problem.scale() as f32;
        let source = &q[first..first + rows * s.head_dim];
        scratch.q.iter_mut().zip(source).for_each(|(to, x)| *to = x.to_f32() * scale);
        scratch.max.fill(f32::NEG_INFINITY);
        scratch.sum.fill(0.0);
        scratch.out.fill(0.0);
        let mut spans = std::mem::take(&mut scratch.spans);
        self.plan.spans(place, s.kv_len, &mut spans);
        for (span, look) in &spans {
            for from in span.clone().step_by(STEP) {
                let keys = from..(from + STEP).min(span.end);
                self.step(scratch, place, keys, *look);
            }
        }
        scratch.spans = spans;
        finish(scratch, self.packed.shape().width(), s.head_dim_v, task);
    }

    /// Scores, mods, softmax and values of `keys`, which start at a panel.
    fn step(&self, scratch: &mut Scratch, place: &Place, keys: Range<usize>, look: bool) {
        let shape = self.packed.shape();
        let head = place.b * self.problem.kv_heads + place.h / self.problem.group();
        let tile = Tile { rows: place.q.len(), columns: keys.len().next_multiple_of(PANEL) };
        let cells = tile.rows * tile.columns;
        let scores = &mut scratch.scores[..cells];
        let panels = self.packed.panels(head, keys.start, tile.columns);
        self.kernels.scores(tile, shape.head_dim, &scratch.q, panels, scores);
        let padded = Place { kv: keys.start..keys.start + tile.columns, ..place.clone() };
        self.mods.score(&padded, scores);
        if look {
            let keep = &mut scratch.keep[..cells];
            self.plan.keep(&self.mods, &padded, keep);
            self.kernels.mask(scores, keep);
        }
        if tile.columns > keys.len() {
            scores.chunks_exact_mut(tile.columns).for_each(|row| row[keys.len()..].fill(f32::NEG_INFINITY));
        }
        let mut running = Running { max: &mut scratch.max, sum: &mut scratch.sum, rescale: &mut scratch.rescale };
        self.kernels.softmax(tile, scores, &mut running);
        let values = self.packed.values(head, keys.start, tile.columns);
        self.kernels.values(tile, shape.width(), scores, values, &scratch.rescale, &mut scratch.out);
    }
}

/// Divides by the sums and rounds.
fn finish<T: Element>(scratch: &Scratch, width: usize, head_dim_v: usize, task: Task<T>) {
    for (r, (out, end)) in task.out.chunks_exact_mut(head_dim_v).zip(task.ends).enumerate() {
        let (found, factor) = RowEnd::of(scratch.max[r], scratch.sum[r]);
        let row = &scratch.out[r * width..];
        out.iter_mut().zip(row).for_each(|(to, x)| *to = T::from_f32(x * factor));
        *end = found;
    }
}

/// Cuts the result into tiles of [`ROWS`] query rows.
fn tasks<'a, T>(problem: &Problem, out: &'a mut [T], ends: &'a mut [RowEnd]) -> Vec<Task<'a, T>> {
    let s = problem.spec();
    let heads = out.chunks_mut(s.q_len * s.head_dim_v).zip(ends.chunks_mut(s.q_len)).enumerate();
    let tiles = heads.flat_map(|(head, (out, ends))| {
        let tiles = out.chunks_mut(ROWS * s.head_dim_v).zip(ends.chunks_mut(ROWS)).enumerate();
        tiles.map(move |(at, (out, ends))| {
            let q = at * ROWS..at * ROWS + ends.len();
            Task { place: Place { b: head / s.heads, h: head % s.heads, q, kv: 0..0 }, out, ends }
        })
    });
    tiles.collect()
}

impl<T: Element> Passes for Fused<T> {
    fn kernel(&self) -> KernelReport {
        let s = self.problem.spec();
        let mods = if self.mods.has_score() { ", score mod" } else { "" };
        let level = self.kernels.level().name();
        let words =
            format!("cpu {} {level} f32 {ROWS}x{PANEL} d{}, {}{mods}", self.name, s.head_dim, self.plan.words());
        KernelReport { words, facts: KernelFacts::ours(Library::MaskloomCpu, self.plan.reads()) }
    }

    fn poison(&mut self) {
        self.out.fill(T::POISON);
        self.ends.fill(RowEnd::POISON);
    }

    fn forward(&mut self) -> Result<(), Diagnostic> {
        let wrong = || Diagnostic::error("input-dtype", "q, k and v must be of the problem's dtype");
        let (q, k, v) = (T::slice(&self.inputs.q), T::slice(&self.inputs.k), T::slice(&self.inputs.v));
        let (q, k, v) = (q.ok_or_else(wrong)?, k.ok_or_else(wrong)?, v.ok_or_else(wrong)?);
        self.packed.fill(k, v);
        let (mut out, mut ends) = (std::mem::take(&mut self.out), std::mem::take(&mut self.ends));
        let tasks = tasks(&self.problem, &mut out, &mut ends);
        let shape = self.packed.shape();
        tasks.into_par_iter().for_each_init(|| Scratch::new(shape), |scratch, task| self.tile(q, scratch, task));
        (self.out, self.ends) = (out, ends);
        Ok(())
    }

    fn results(&self) -> Result<Output, Diagnostic> {
        // sdpa and flash_attention_2 have no such output in PyTorch
        let max_scores = self.problem.max_scores && self.name == BackendName::Flex;
        output_tensors(&self.problem, self.out.clone(), &self.ends, max_scores)
    }

    fn restore(&mut self, output: &Output) -> Result<(), Diagnostic> {
        restored(output, &mut self.out, &mut self.ends)
    }

    fn backward(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        seeds.check(&self.problem)?;
        let mut back = match self.back.take() {
            Some(back) => back,
            None => {
                Back { derivative: ModGradient::new(&self.problem)?, prepped: Prepped::new(Extents::of(&self.problem)) }
            }
        };
        let lse: Vec<f32> = self.ends.iter().map(|end| end.lse).collect();
        let rows = Rows::new(&self.out, &lse, seeds, self.problem.scale() as f32)?;
        back.prepped.fill_from(&self.inputs, &rows)?;
        let sweep = Sweep {
            problem: &self.problem,
            plan: &self.plan,
            mods: &self.mods,
            derivative: &back.derivative,
            kernels: self.kernels,
            inputs: &back.prepped,
        };
        let found = sweep.run();
        self.back = Some(back);
        found
    }
}

/// Takes results of an earlier pass for those of this one; a backward pass needs no largest scores. Errors: other sizes or dtypes.
pub(super) fn restored<T: Element>(output: &Output, out: &mut [T], ends: &mut [RowEnd]) -> Result<(), Diagnostic> {
    let lse = output.lse.as_ref().and_then(|t| if let Data::F32(v) = t.data() { Some(v) } else { None });
    match (T::slice(&output.out), lse) {
        (Some(own), Some(lse)) if own.len() == out.len() && lse.len() == ends.len() => {
            out.iter_mut().zip(own).for_each(|(to, x)| *to = *x);
            ends.iter_mut().zip(lse).for_each(|(to, lse)| *to = RowEnd { lse: *lse, max_score: f32::NAN });
            Ok(())
        }
        _ => Err(Diagnostic::error("saved-results", "out and lse are not those of this problem")
            .hint("pass the out and lse of a forward pass over the same inputs")),
    }
}

/// Results in the shapes that every backend gives.
pub(super) fn output_tensors<T: Element>(
    problem: &Problem,
    out: Vec<T>,
    ends: &[RowEnd],
    max_scores: bool,
) -> Result<Output, Diagnostic> {
    let s = problem.spec();
    let out = HostTensor::new([s.batch, s.heads, s.q_len, s.head_dim_v], T::data(out))?;
    let rows =
        |of: fn(&RowEnd) -> f32| HostTensor::new([s.batch, s.heads, s.q_len], Data::F32(ends.iter().map(of).collect()));
    let max_scores = max_scores.then(|| rows(|end| end.max_score)).transpose()?;
    Ok(Output { out, lse: Some(rows(|end| end.lse)?), max_scores })
}

const _: () = assert!(STEP.is_multiple_of(PANEL) && PANEL.is_multiple_of(LANE_PAD));
