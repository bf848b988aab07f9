//! Combines mask layers into one mask, each for its heads.
//!
//! Invariant: for every head the mask equals the combination of only the layers for that head. Must not know where mods
//! come from.

use super::heads::Heads;
use super::model::Combine;
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId};
use crate::ir::passes::compose::{and_masks, and_not, constant_mask, not, or_masks};
use std::sync::Arc;

/// A layer's mod and how it joins those below.
#[derive(Clone, Debug)]
pub struct Part {
    /// How it joins those below it.
    pub combine: Combine,
    /// For which heads it is; None: all.
    pub heads: Option<Heads>,
    /// Its mask mod.
    pub of: Arc<Mod>,
}

impl Part {
    /// Whether both are the very same.
    pub fn same(&self, other: &Part) -> bool {
        self.combine == other.combine && self.heads == other.heads && Arc::ptr_eq(&self.of, &other.of)
    }
}

/// Heads that have a layer already.
enum Begun {
    None,
    For(Heads),
    All,
}

/// Bottom first. For each head only its layers count: the lowest of them is the start, and `AndNot` there keeps
/// everything else; a head without layers keeps every cell.
pub fn join_masks(parts: &[Part]) -> Mod {
    let (mut below, mut begun) = (None, Begun::None);
    for part in parts {
        below = Some(joined(below, part, &begun));
        begun = match (begun, &part.heads) {
            (Begun::All, _) | (_, None) => Begun::All,
            (Begun::None, Some(heads)) => Begun::For(heads.clone()),
            (Begun::For(before), Some(heads)) => Begun::For(before.with(heads)),
        };
    }
    below.unwrap_or_else(|| constant_mask(true))
}

/// The lower layers with a layer on top. They keep everything for heads without layers so far.
fn joined(below: Option<Mod>, part: &Part, begun: &Begun) -> Mod {
    let here = part.heads.as_ref().map(is_in);
    let takes = part.combine == Combine::AndNot;
    let Some(below) = below else {
        // the lowest layer of its heads
        let alone = if takes { not(&part.of) } else { Mod::clone(&part.of) };
        return here.map_or(alone.clone(), |here| or_masks(&[&not(&here), &alone]));
    };
    let limited = || here.as_ref().map_or_else(|| Mod::clone(&part.of), |here| and_masks(&[here, &part.of]));
    let restricted = |to: &Mod| and_masks(&[&below, &or_masks(&[&not(to), &part.of])]);
    match (part.combine, &here) {
        (Combine::And, None) => and_masks(&[&below, &part.of]),
        (Combine::And, Some(here)) => restricted(here),
        (Combine::AndNot, _) => and_not(&below, &limited()),
        (Combine::Or, _) => match first_for(part, begun) {
            None => or_masks(&[&below, &limited()]),
            Some(first) => or_masks(&[&restricted(&first), &limited()]),
        },
    }
}

/// The first layer that is the lowest of a head and lies above layers of other heads; None: there is none.
fn first_for(part: &Part, begun: &Begun) -> Option<Mod> {
    match (begun, &part.heads) {
        (Begun::All, _) => None,
        (Begun::None, Some(heads)) => Some(is_in(heads)),
        (Begun::None, None) => Some(constant_mask(true)),
        (Begun::For(before), Some(heads)) => heads.without(before).map(|new| is_in(&new)),
        (Begun::For(before), None) => Some(not(&is_in(before))),
    }
}

/// Whether h is one of these heads.
fn is_in(heads: &Heads) -> Mod {
    let mut graph = Graph::new();
    let h = graph.input(Input::H);
    let part = |graph: &mut Graph, [from, to]: [usize; 2]| -> NodeId {
        let first = graph.int(from as i64);
        if to - from == 1 {
            return graph.binary(BinaryOp::Eq, h, first);
        }
        let end = graph.int(to as i64);
        let above = graph.binary(BinaryOp::Ge, h, first);
        let below = graph.binary(BinaryOp::Lt, h, end);
        graph.binary(BinaryOp::And, above, below)
    };
    let parts: Vec<NodeId> = heads.ranges().iter().map(|range| part(&mut graph, *range)).collect();
    let root = parts.into_iter().reduce(|a, b| graph.binary(BinaryOp::Or, a, b));
    let root = root.unwrap_or_else(|| graph.bool(false));
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::cell::{Cell, eval};
    use crate::ir::graph::Op;

    /// Keeps rows whose bit of a number is set.
    fn rows(bits: i64) -> Arc<Mod> {
        let mut graph = Graph::new();
        let q = graph.input(Input::QIdx);
        let bits = graph.int(bits);
        let one = graph.int(1);
        let moved = graph.add(Op::Binary(BinaryOp::Shr, bits, q), None);
        let bit = graph.add(Op::Binary(BinaryOp::And, moved, one), None);
        let root = graph.binary(BinaryOp::Eq, bit, one);
        Arc::new(Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() })
    }

    #[test]
    fn each_head_sees_its_own_layers_only() {
        use Combine::{And, AndNot, Or};
        const WAYS: usize = Combine::ALL.len();
        let some = |heads: &[usize]| Heads::of(heads.iter().copied());
        let scopes = [None, some(&[0, 1]), some(&[1, 2]), some(&[3]), some(&[0, 1, 2, 3])];
        let bits = [0b1100_1010, 0b1010_0110, 0b0110_1100];
        let mut seed = 1u32;
        let mut draw = |n: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % n
        };
        for _ in 0..400 {
            let one = |bits: &i64, scope: usize, combine: usize| (*bits, scopes[scope].clone(), Combine::ALL[combine]);
            let layers: Vec<_> = bits.iter().map(|b| one(b, draw(5), draw(WAYS))).collect();
            let layers = &layers[..1 + draw(3)];
            let part = |(bits, heads, combine): &(i64, Option<Heads>, Combine)| Part {
                combine: *combine,
                heads: heads.clone(),
                of: rows(*bits),
            };
            let mask = join_masks(&layers.iter().map(part).collect::<Vec<_>>());
            for h in 0..4 {
                for q in 0..8 {
                    let mine = layers.iter().filter(|l| l.1.as_ref().is_none_or(|heads| heads.contains(h)));
                    let wanted = mine.fold(None, |below, (bits, _, combine)| {
                        let keeps = bits >> q & 1 == 1;
                        Some(match (below, combine) {
                            (None, AndNot) => !keeps,
                            (None, _) => keeps,
                            (Some(below), And) => below && keeps,
                            (Some(below), Or) => below || keeps,
                            (Some(below), AndNot) => below && !keeps,
                        })
                    });
                    let cell = Cell { h: h as i64, q_idx: q, ..Cell::default() };
                    assert_eq!(eval(&mask, &cell).as_bool(), wanted.unwrap_or(true), "{layers:?} head {h} row {q}");
                }
            }
        }
    }
}
