//! Another order of mask layers that keeps what the order before meant, where it can.
//!
//! Invariant: the lowest layer's own way of combining has no effect on the mask but as "everything but"; when it leaves the
//! bottom it combines as the layer did that takes its place, so that a union stays a union. Must not know the window.

use super::edit::Edit;
use super::model::{Combine, Document};

/// A move, and whether it may change what the mask keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// To be applied.
    pub edit: Edit,
    /// Whether layers that combine in different ways pass each other.
    pub changes: bool,
}

/// Moves a mask layer or score mod to a place in its own list, counted from the bottom.
pub fn moved(document: &Document, id: u64, to: usize) -> Moved {
    let plain = Moved { edit: Edit::Move(id, to), changes: false };
    let Some(from) = document.layers.iter().position(|layer| layer.id == id) else { return plain };
    let mut order: Vec<(u64, Combine)> = document.layers.iter().map(|layer| (layer.id, layer.combine)).collect();
    let (lowest, own) = order[0];
    let layer = order.remove(from);
    order.insert(to.min(order.len()), layer);
    let (low, high) = (from.min(to), from.max(to).min(order.len() - 1));
    if order[0].0 == lowest {
        let passed = &order[low.max(1)..=high];
        return Moved { changes: passed.iter().any(|(_, combine)| *combine != layer.1), ..plain };
    }
    // the bottom is another: in place of its own way, which did nothing, the old one gets that of the new one
    let combine = order[0].1;
    let both = (own, combine);
    let becomes = match both {
        (Combine::AndNot, _) => own,
        (_, Combine::AndNot) => Combine::And,
        _ => combine,
    };
    for (id, combine) in &mut order {
        if *id == lowest {
            *combine = becomes;
        }
    }
    let uniform = order[1..=high].iter().all(|(_, combine)| *combine == becomes);
    let kept = match both {
        (Combine::AndNot, Combine::And) => high == 1,
        (Combine::AndNot, _) => false,
        (_, Combine::AndNot) => high == 1,
        _ => uniform,
    };
    let edit = Edit::Group(vec![Edit::Move(id, to), Edit::SetCombine(lowest, becomes)]);
    Moved { edit, changes: !kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::edit::apply;
    use crate::document::testing::document;

    /// The mask of layers that each keep some of eight cells, by their ways of combining.
    fn keeps(layers: &[(u8, Combine)]) -> u8 {
        layers.iter().enumerate().fold(0xff, |all, (at, (cells, combine))| match (at, combine) {
            (0, Combine::AndNot) => !cells,
            (0, _) => *cells,
            (_, Combine::And) => all & cells,
            (_, Combine::Or) => all | cells,
            (_, Combine::AndNot) => all & !cells,
        })
    }

    #[test]
    fn a_move_that_is_said_to_keep_the_mask_keeps_it() {
        let (ways, count) = (Combine::ALL, Combine::ALL.len());
        let cells = [0b1010_1010, 0b1100_1100, 0b1111_0000];
        let (mut kept, mut all) = (0, 0);
        for n in 0..count.pow(3) {
            let combine = [ways[n % count], ways[n / count % count], ways[n / count.pow(2)]];
            for from in 0..3 {
                for to in (0..3).filter(|to| *to != from) {
                    let mut of = document();
                    let layer = of.layers[0].clone();
                    of.layers = (0..3)
                        .map(|at| {
                            let mut layer = layer.clone();
                            (layer.id, layer.combine) = (at as u64 + 1, combine[at]);
                            layer
                        })
                        .collect();
                    let read = |of: &Document| -> u8 {
                        let layers = of.layers.iter().map(|l| (cells[l.id as usize - 1], l.combine));
                        keeps(&layers.collect::<Vec<_>>())
                    };
                    let before = read(&of);
                    let made = moved(&of, from as u64 + 1, to);
                    apply(&mut of, made.edit).expect("applies");
                    all += 1;
                    if !made.changes {
                        assert_eq!(read(&of), before, "{combine:?} {from} to {to}");
                        kept += 1;
                    }
                    assert_eq!(of.layers[to].id, from as u64 + 1);
                }
            }
        }
        assert!(kept >= all / 4, "{kept} of {all}");
    }

    #[test]
    fn a_union_stays_one_whichever_layer_leaves_the_bottom() {
        let mut of = document();
        let layer = of.layers[0].clone();
        let made = |id: u64, combine| {
            let mut layer = layer.clone();
            (layer.id, layer.combine) = (id, combine);
            layer
        };
        of.layers = vec![made(1, Combine::And), made(2, Combine::Or), made(3, Combine::Or)];
        let moved = moved(&of, 1, 2);
        assert!(!moved.changes);
        apply(&mut of, moved.edit).expect("applies");
        assert_eq!(
            of.layers.iter().map(|l| (l.id, l.combine)).collect::<Vec<_>>()[1..],
            [(3, Combine::Or), (1, Combine::Or)]
        );
    }
}
