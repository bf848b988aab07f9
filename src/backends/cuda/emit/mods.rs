//! The mods of a problem as one lifted graph, with the values of its uniforms and captures.
//!
//! Invariant: the template (graph and counts) decides the text; the values only fill `Mods`. Divisors stay in the text,
//! other literals are values. Must not know kernels.

use crate::base::{HostTensor, Source, Span};
use crate::ir::graph::{CaptureId, Graph, Input, Mod, NodeId, Op};
use crate::ir::passes::derive::{Derived, ReadGradient};
use crate::ir::passes::difference::follow_the_difference;
use crate::ir::passes::lift::{Lift, lift};

/// The input of the emitter: one lifted graph and its results.
#[derive(Clone, Copy, Debug)]
pub struct Template<'a> {
    /// The lifted graph.
    pub graph: &'a Graph,
    /// Result of the mask mod, Bool.
    pub mask: Option<NodeId>,
    /// Result of the score mod, Float.
    pub score: Option<NodeId>,
    /// Additional parts for the backward pass.
    pub gradient: Option<&'a LiftedGradient>,
    /// How many ints the uniform buffer holds.
    pub ints: usize,
    /// How many floats.
    pub floats: usize,
    /// Texts that the spans point into.
    pub sources: &'a [Source],
}

/// The backward pass's values of a score mod, in the same lifted graph.
#[derive(Clone, Debug, Default)]
pub struct LiftedGradient {
    /// The derivative by the score; None: it is 1, and nothing that is read depends on the score.
    pub score: Option<NodeId>,
    /// For each read with a gradient.
    pub reads: Vec<LiftedRead>,
    /// The captured tensors with a gradient, as the mod numbers them; their pointers in `Mods` have this order.
    pub captures: Vec<CaptureId>,
    /// Whether additions go to bins (`bins.cuh`), so that no order changes the sums; else to floats.
    pub in_bins: bool,
}

impl LiftedGradient {
    /// All that is computed.
    pub fn roots(&self) -> Vec<NodeId> {
        let reads = self.reads.iter().flat_map(|r| std::iter::once(r.value).chain(r.index.iter().copied()));
        self.score.into_iter().chain(reads).collect()
    }
}

/// One read of a captured tensor.
#[derive(Clone, Debug)]
pub struct LiftedRead {
    /// Which of the gradients it adds to.
    pub slot: usize,
    /// The tensor, as the lifted graph numbers it.
    pub capture: CaptureId,
    /// The derivative by the element.
    pub value: NodeId,
    /// Where it is read.
    pub index: Vec<NodeId>,
    /// Whether the element depends on the query token, and on the key token.
    pub by_query: bool,
    /// See `by_query`.
    pub by_key: bool,
    /// Whether it depends on them by `q_idx - kv_idx` alone.
    pub by_difference: bool,
    /// Of batch entry, head, query and key: whether cells that differ in it read distinct elements.
    pub reported: [bool; 4],
    /// Whether no other cell of any batch entry or head reads its element, by this read or another.
    pub alone: bool,
}

impl LiftedRead {
    /// The emitted addition of a value to the gradient of the element at a place.
    pub fn addition(&self, in_bins: bool, place: &str, value: &str) -> String {
        match in_bins {
            true => format!("add_to_element(m.g{}, {place}, {value})", self.slot),
            false => format!("atomicAdd(m.g{} + {place}, {value})", self.slot),
        }
    }
}

/// One graph for the mask mod and the score mod of a kernel.
#[derive(Clone, Debug, Default)]
pub struct LiftedMods {
    /// Both mods' nodes.
    pub graph: Graph,
    /// Result of the mask mod.
    pub mask: Option<NodeId>,
    /// Result of the score mod.
    pub score: Option<NodeId>,
    /// For the backward pass.
    pub gradient: Option<LiftedGradient>,
    /// Values of the int uniforms.
    pub ints: Vec<i32>,
    /// Values of the float uniforms.
    pub floats: Vec<f32>,
    /// Texts that the spans point into.
    pub sources: Vec<Source>,
}

/// Of the batch entry, head, query and key of these numbers: whether cells that differ in it read distinct elements of `shape`.
/// The index must contain the batch entry, because an exported kernel runs with any number of them.
fn reported(derived: &Derived, read: &ReadGradient, shape: &[usize], cells: [usize; 4]) -> [bool; 4] {
    // an index beyond its dimension is clamped, and cells share the last element
    let tells = |input: Input, extent: usize| {
        let mut dims = read.index.iter().zip(shape);
        let own = |(id, dim): (&NodeId, &usize)| derived.graph.node(*id).op == Op::Input(input) && *dim >= extent;
        (extent == 1 && input != Input::B) || dims.any(own)
    };
    let [batch, heads, q_len, kv_len] = cells;
    [tells(Input::B, batch), tells(Input::H, heads), tells(Input::QIdx, q_len), tells(Input::KvIdx, kv_len)]
}

impl LiftedMods {
    /// Joins and lifts the mods that a kernel compiles in.
    pub fn new(mask: Option<&Mod>, score: Option<&Mod>) -> LiftedMods {
        let mut lifted = LiftedMods::default();
        let roots: Vec<NodeId> = [mask, score].into_iter().flatten().map(|m| lifted.add(m)).collect();
        let made = lift(&lifted.graph, &roots, Lift::KeepDivisors);
        let mut roots = made.roots.into_iter();
        (lifted.mask, lifted.score) = (mask.and_then(|_| roots.next()), score.and_then(|_| roots.next()));
        (lifted.graph, lifted.ints, lifted.floats) = (made.graph, made.ints, made.floats);
        lifted
    }

    /// The same for the backward pass: with the derivative of the score mod. `cells`: batch entries, query heads, queries and keys.
    pub fn with_gradient(mask: Option<&Mod>, score: &Mod, derived: &Derived, cells: [usize; 4]) -> LiftedMods {
        let mut lifted = LiftedMods::default();
        let mut roots: Vec<NodeId> = mask.map(|m| lifted.add(m)).into_iter().collect();
        let first = lifted.sources.len() as u32;
        roots.push(lifted.add(score));
        let map = lifted.add_nodes(&derived.graph, first);
        let at = |id: NodeId| map[id.0 as usize];
        roots.push(at(derived.score));
        let follows = |id: NodeId, input| derived.part(id).depends().on(input);
        let mut gradient = LiftedGradient { captures: derived.captures(), ..LiftedGradient::default() };
        let mut score_is_read = derived.constant() != Some(1.0);
        for read in &derived.reads {
            roots.push(at(read.value));
            roots.extend(read.index.iter().map(|id| at(*id)));
            score_is_read |= follows(read.value, Input::Score);
            let on = |input| read.index.iter().any(|id| follows(*id, input) || follows(*id, Input::Score));
            score_is_read |= read.index.iter().any(|id| follows(*id, Input::Score));
            let held = score.graph.capture(read.capture);
            let reported = reported(derived, read, held.tensor.shape(), cells);
            let reads = derived.reads.iter().filter(|other| other.capture == read.capture).count();
            gradient.reads.push(LiftedRead {
                slot: gradient.captures.iter().position(|c| *c == read.capture).expect("one of them"),
                capture: lifted.graph.add_capture(&held.name, held.tensor.clone()),
                value: NodeId(0),
                index: vec![NodeId(0); read.index.len()],
                by_query: on(Input::QIdx),
                by_key: on(Input::KvIdx),
                by_difference: follow_the_difference(&derived.graph, &read.index),
                reported,
                alone: reads == 1 && reported == [true; 4],
            });
        }
        let tensors: Vec<_> = gradient.reads.iter().map(|r| lifted.graph.capture(r.capture).clone()).collect();
        let made = lift(&lifted.graph, &roots, Lift::KeepDivisors);
        let mut roots = made.roots.into_iter();
        let mut next = || roots.next().expect("as many as were given");
        lifted.mask = mask.map(|_| next());
        lifted.score = Some(next());
        let by_score = next();
        gradient.score = score_is_read.then_some(by_score);
        (lifted.graph, lifted.ints, lifted.floats) = (made.graph, made.ints, made.floats);
        for (read, held) in gradient.reads.iter_mut().zip(tensors) {
            read.value = next();
            read.index.iter_mut().for_each(|index| *index = next());
            // lifting renumbers captured tensors
            read.capture = lifted.graph.add_capture(&held.name, held.tensor);
        }
        lifted.gradient = Some(gradient);
        lifted
    }

    fn add(&mut self, from: &Mod) -> NodeId {
        let first = self.sources.len() as u32;
        self.sources.extend(from.sources.iter().cloned());
        self.add_nodes(&from.graph, first)[from.root.0 as usize]
    }

    /// Adds a graph whose spans point into the sources from `first` on.
    fn add_nodes(&mut self, from: &Graph, first: u32) -> Vec<NodeId> {
        self.graph.rewrite(from, from.ids(), |graph, id, op| {
            let mut span = from.node(id).span;
            if let Some(Span { source, .. }) = &mut span {
                source.0 += first;
            }
            graph.add(op, span)
        })
    }

    /// The emitter's input.
    pub fn template(&self) -> Template<'_> {
        Template {
            graph: &self.graph,
            mask: self.mask,
            score: self.score,
            gradient: self.gradient.as_ref(),
            ints: self.ints.len(),
            floats: self.floats.len(),
            sources: &self.sources,
        }
    }

    /// Captured tensors in the order of the struct `Mods`.
    pub fn captures(&self) -> Vec<(&str, &HostTensor)> {
        self.graph.captures().iter().map(|c| (c.name.as_str(), &c.tensor)).collect()
    }
}
