//! The mods of a problem as one lifted graph, with the values that its uniforms and captures stand for.
//!
//! Invariant: the template (graph and counts) decides the text; the values only fill `Mods`. Divisors stay in the text,
//! other literals are values. Must not know kernels.

use super::emit::Template;
use crate::base::{HostTensor, Source, Span};
use crate::language::graph::{Graph, Mod, NodeId, Op};
use crate::language::lift::{Lift, lift};

/// One graph for the mask mod and the score mod of a kernel.
#[derive(Clone, Debug, Default)]
pub struct LiftedMods {
    /// Both mods' nodes.
    pub graph: Graph,
    /// Result of the mask mod.
    pub mask: Option<NodeId>,
    /// Result of the score mod.
    pub score: Option<NodeId>,
    /// Values of the int uniforms.
    pub ints: Vec<i32>,
    /// Values of the float uniforms.
    pub floats: Vec<f32>,
    /// Texts that the spans point into.
    pub sources: Vec<Source>,
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

    fn add(&mut self, from: &Mod) -> NodeId {
        let first = self.sources.len() as u32;
        self.sources.extend(from.sources.iter().cloned());
        let mut map: Vec<NodeId> = Vec::with_capacity(from.graph.nodes().len());
        for node in from.graph.nodes() {
            let mut op = node.op.map_operands(|o| map[o.0 as usize]);
            if let Op::Load(capture, _) = &mut op {
                let read = from.graph.capture(*capture);
                *capture = self.graph.add_capture(&read.name, read.tensor.clone());
            }
            let mut span = node.span;
            if let Some(Span { source, .. }) = &mut span {
                source.0 += first;
            }
            map.push(self.graph.add(op, span));
        }
        map[from.root.0 as usize]
    }

    /// What the emitter needs.
    pub fn template(&self) -> Template<'_> {
        Template {
            graph: &self.graph,
            mask: self.mask,
            score: self.score,
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
