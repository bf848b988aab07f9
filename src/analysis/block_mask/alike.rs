//! Groups of batch entries and heads with identical masks, such as every second head of a model.
//!
//! Invariant: groups count as alike only if their masks are equal graphs for fixed b and h. Groups that are equal for
//! another reason count as different, which only costs time. Must not know blocks.

use crate::ir::graph::{Graph, Input, Mod, Op};
use crate::ir::passes::simplify::simplify;
use std::time::{Duration, Instant};

/// The time budget of the comparison; groups not compared within it count as different.
const PATIENCE: Duration = Duration::from_millis(20);

/// For each (b, h) the first of the groups with the same mask.
pub(super) fn alike(mask: Option<&Mod>, groups: &[(usize, usize)]) -> Vec<usize> {
    let mut firsts: Vec<(usize, Mod)> = Vec::new();
    let began = Instant::now();
    let mut of = |n: usize| {
        let mask = mask.filter(|_| groups.len() > 1 && began.elapsed() < PATIENCE)?;
        let special = known(mask, groups[n]);
        if let Some((first, _)) = firsts.iter().find(|(_, m)| m.root == special.root && m.graph == special.graph) {
            return Some(*first);
        }
        firsts.push((n, special));
        None
    };
    (0..groups.len()).map(|n| of(n).unwrap_or(n)).collect()
}

/// The mask of one batch entry and head.
fn known(mask: &Mod, (b, h): (usize, usize)) -> Mod {
    let mut graph = Graph::new();
    let root = graph.import(&mask.graph, mask.root, |graph, op| match op {
        Op::Input(Input::B) => Some(graph.int(b as i64)),
        Op::Input(Input::H) => Some(graph.int(h as i64)),
        _ => None,
    });
    simplify(&Mod { graph, root, ..mask.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples::Builder;

    #[test]
    fn heads_that_alternate_are_two_masks() {
        let mut g = Builder::new();
        let h = g.graph.input(Input::H);
        let (even, causal, near) = (g.rem_by(h, 2), g.causal(), g.distance());
        let (even, near) = (g.below(even, 1), g.below(near, 9));
        let root = g.graph.add(Op::Where(even, causal, near), None);
        let heads: Vec<(usize, usize)> = (0..6).map(|h| (0, h)).collect();
        assert_eq!(alike(Some(&g.mask(root)), &heads), [0, 1, 0, 1, 0, 1]);
        assert_eq!(alike(None, &heads[..1]), [0]);
    }
}
