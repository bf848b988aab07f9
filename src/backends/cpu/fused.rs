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
use crate::micro::{Aligned, Kernels, LANE_PAD, Largest, PANEL, Running, Tile};
use crate::problem::Problem;
use crate::problem::facts::{KernelFacts, KernelReport, Library};
use rayon::prelude::*;
use std::ops::Range;

/// Keys that one step of the sweep takes at most.
const STEP: usize = 256;
/// Tiles of one head that go over the keys together, at most: what one of them brought into the cache serves all.
const TOGETHER: usize = 4;

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
    tiles: Vec<Sweeping>,
    cells: Cells,
}

/// The cells of one step.
struct Cells {
    scores: Aligned,
    largest: Largest,
    keep: Vec<u8>,
}

impl Scratch {
    fn new(shape: Shape) -> Scratch {
        let tiles = (0..TOGETHER).map(|_| Sweeping::new(shape)).collect();
        let (scores, largest) = (Aligned::zeros(ROWS * STEP), Largest::new(ROWS));
        Scratch { tiles, cells: Cells { scores, largest, keep: vec![0; ROWS * STEP] } }
    }
}

/// A tile of queries on its way over the keys.
struct Sweeping {
    q: Aligned,
    out: Aligned,
    max: Vec<f32>,
    sum: Vec<f32>,
    rescale: Vec<f32>,
    spans: Vec<(Range<usize>, bool)>,
    /// The span that the next step begins in, and its first key.
    next: Option<(usize, usize)>,
}

impl Sweeping {
    fn new(shape: Shape) -> Sweeping {
        Sweeping {
            q: Aligned::zeros(ROWS * shape.head_dim),
            out: Aligned::zeros(ROWS * shape.width()),
            max: vec![0.0; ROWS],
            sum: vec![0.0; ROWS],
            rescale: vec![0.0; ROWS],
            spans: Vec::new(),
            next: None,
        }
    }

    /// To the first of the keys that it visits. `q` is of its rows.
    fn begin<T: Element>(&mut self, q: &[T], scale: f32) {
        self.q.iter_mut().zip(q).for_each(|(to, x)| *to = x.to_f32() * scale);
        self.max.fill(f32::NEG_INFINITY);
        self.sum.fill(0.0);
        self.out.fill(0.0);
        self.next = self.spans.first().map(|(span, _)| (0, span.start));
    }

    /// The keys of the next step and the spans that they lie in: at most [`STEP`], without a gap.
    fn step(&mut self) -> Option<(Range<usize>, Range<usize>)> {
        let (first, from) = self.next?;
        let (mut at, mut to) = (first, from);
        while let Some((span, _)) = self.spans.get(at).filter(|(span, _)| span.start <= to && to < from + STEP) {
            to = span.end.min(from + STEP);
            if to < span.end {
                break;
            }
            at += 1;
        }
        self.next = self.spans.get(at).map(|(span, _)| (at, span.start.max(to)));
        let begun = self.spans[first..].iter().take_while(|(span, _)| span.start < to).count();
        Some((from..to, first..first + begun))
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

    /// Tiles of one head. Of those that are left, the one whose next keys come first takes a step.
    fn together(&self, q: &[T], scratch: &mut Scratch, tasks: Vec<Task<T>>) {
        let s = self.problem.spec();
        let Scratch { tiles, cells } = scratch;
        for (tile, Task { place, .. }) in tiles.iter_mut().zip(&tasks) {
            let first = ((place.b * s.heads + place.h) * s.q_len + place.q.start) * s.head_dim;
            self.plan.spans(place, s.kv_len, &mut tile.spans);
            tile.begin(&q[first..first + place.q.len() * s.head_dim], self.problem.scale() as f32);
        }
        let tiles = &mut tiles[..tasks.len()];
        let first = |tiles: &[Sweeping]| {
            let next = |(at, tile): (usize, &Sweeping)| Some((tile.next?.1, at));
            tiles.iter().enumerate().filter_map(next).min()
        };
        while let Some((_, at)) = first(tiles) {
            self.step(&mut tiles[at], cells, &tasks[at].place);
        }
        for (tile, task) in tiles.iter().zip(tasks) {
            finish(tile, self.packed.shape().width(), s.head_dim_v, task);
        }
    }

    /// Scores, mods, softmax and values of the next keys of a tile, which start at a panel.
    fn step(&self, of: &mut Sweeping, cells: &mut Cells, place: &Place) {
        let Some((keys, spans)) = of.step() else { return };
        let shape = self.packed.shape();
        let head = place.b * self.problem.kv_heads + place.h / self.problem.group();
        let tile = Tile { rows: place.q.len(), columns: keys.len().next_multiple_of(PANEL) };
        let (panels, kernels) = (self.packed.panels(head, keys.start, tile.columns), self.kernels);
        let (scores, largest) = (&mut cells.scores[..tile.rows * tile.columns], &mut cells.largest);
        let changed =
            self.mods.has_score() || tile.columns > keys.len() || of.spans[spans.clone()].iter().any(|(_, look)| *look);
        if changed {
            kernels.scores(tile, shape.head_dim, &of.q, panels, scores);
            let padded = Place { kv: keys.start..keys.start + tile.columns, ..place.clone() };
            self.mods.score(&padded, scores);
            for (span, _) in of.spans[spans].iter().filter(|(_, look)| *look) {
                let end = span.end.next_multiple_of(PANEL).min(padded.kv.end);
                let looked = Place { kv: span.start.max(keys.start)..end, ..place.clone() };
                self.hide(&looked, &padded, scores, &mut cells.keep);
            }
            if tile.columns > keys.len() {
                scores.chunks_exact_mut(tile.columns).for_each(|row| row[keys.len()..].fill(f32::NEG_INFINITY));
            }
        } else {
            kernels.scores_and_largest(tile, shape.head_dim, (&of.q, panels), scores, largest);
        }
        let mut running = Running { max: &mut of.max, sum: &mut of.sum, rescale: &mut of.rescale };
        kernels.softmax_of(tile, scores, (!changed).then_some(&*largest), &mut running);
        let values = self.packed.values(head, keys.start, tile.columns);
        kernels.values(tile, shape.width(), scores, values, &of.rescale, &mut of.out);
    }

    /// Hides the cells at `looked` that are not kept, among the scores of `at`.
    fn hide(&self, looked: &Place, at: &Place, scores: &mut [f32], keep: &mut [u8]) {
        let columns = looked.kv.len();
        let keep = &mut keep[..looked.q.len() * columns];
        self.plan.keep(&self.mods, looked, keep);
        if columns == at.kv.len() {
            return self.kernels.mask(scores, keep);
        }
        let first = looked.kv.start - at.kv.start;
        for (row, keep) in scores.chunks_exact_mut(at.kv.len()).zip(keep.chunks_exact(columns)) {
            self.kernels.mask(&mut row[first..first + columns], keep);
        }
    }
}

/// Divides by the sums and rounds.
fn finish<T: Element>(tile: &Sweeping, width: usize, head_dim_v: usize, task: Task<T>) {
    for (r, (out, end)) in task.out.chunks_exact_mut(head_dim_v).zip(task.ends).enumerate() {
        let (found, factor) = RowEnd::of(tile.max[r], tile.sum[r]);
        let row = &tile.out[r * width..];
        out.iter_mut().zip(row).for_each(|(to, x)| *to = T::from_f32(x * factor));
        *end = found;
    }
}

/// Cuts the result into tiles of [`ROWS`] query rows, some of one head together.
fn tasks<'a, T>(problem: &Problem, out: &'a mut [T], ends: &'a mut [RowEnd]) -> Vec<Vec<Task<'a, T>>> {
    let s = problem.spec();
    let per_head = s.q_len.div_ceil(ROWS);
    // enough of them for each thread to end with the others
    let together = (s.batch * s.heads * per_head / (4 * rayon::current_num_threads())).clamp(1, TOGETHER);
    let mut tasks = Vec::with_capacity(s.batch * s.heads * per_head.div_ceil(together));
    let heads = out.chunks_mut(s.q_len * s.head_dim_v).zip(ends.chunks_mut(s.q_len)).enumerate();
    for (head, (out, ends)) in heads {
        let tiles = out.chunks_mut(ROWS * s.head_dim_v).zip(ends.chunks_mut(ROWS)).enumerate();
        let mut tiles = tiles.map(|(at, (out, ends))| {
            let q = at * ROWS..at * ROWS + ends.len();
            Task { place: Place { b: head / s.heads, h: head % s.heads, q, kv: 0..0 }, out, ends }
        });
        tasks.extend((0..per_head.div_ceil(together)).map(|_| tiles.by_ref().take(together).collect::<Vec<_>>()));
    }
    tasks
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
        tasks.into_par_iter().for_each_init(|| Scratch::new(shape), |scratch, tiles| self.together(q, scratch, tiles));
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
