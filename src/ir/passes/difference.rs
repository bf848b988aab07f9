//! Whether a value depends on the query token and the key token only by their difference.
//!
//! Invariant: a yes holds for all integers, also after wrapping; a no may be a formula that this analysis does not
//! recognise. Must not know the use of the answer.

use crate::ir::graph::{BinaryOp, Graph, Input, NodeId, Op, UnaryOp};

/// How a value follows q_idx and kv_idx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// Neither of them.
    Neither,
    /// An int: a multiple of q_idx and one of kv_idx, of which the sum is not 0, and what follows neither.
    Sum(i64, i64),
    /// q_idx - kv_idx.
    Difference,
    /// Anything else.
    Both,
}

/// Whether `roots` follow q_idx and kv_idx by `q_idx - kv_idx` alone, and at least one of them does.
pub fn follow_the_difference(graph: &Graph, roots: &[NodeId]) -> bool {
    let mut all: Vec<Follows> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        all.push(follows(graph, &node.op, |id| all[id.0 as usize]));
    }
    let of = |id: &NodeId| all[id.0 as usize];
    roots.iter().all(|id| matches!(of(id), Follows::Neither | Follows::Difference))
        && roots.iter().any(|id| of(id) == Follows::Difference)
}

fn follows(graph: &Graph, op: &Op, of: impl Fn(NodeId) -> Follows) -> Follows {
    match op {
        Op::Input(Input::QIdx) => Follows::Sum(1, 0),
        Op::Input(Input::KvIdx) => Follows::Sum(0, 1),
        Op::Input(Input::Score) => Follows::Both,
        Op::Binary(BinaryOp::Add, a, b) => added(of(*a), of(*b), 1),
        Op::Binary(BinaryOp::Sub, a, b) => added(of(*a), of(*b), -1),
        Op::Unary(UnaryOp::Neg, a) => added(Follows::Neither, of(*a), -1),
        Op::Binary(BinaryOp::Mul, a, b) => match (literal(graph, *a), literal(graph, *b)) {
            (Some(by), _) => added(Follows::Neither, of(*b), by),
            (_, Some(by)) => added(Follows::Neither, of(*a), by),
            _ => function(op, of),
        },
        _ => function(op, of),
    }
}

fn literal(graph: &Graph, id: NodeId) -> Option<i64> {
    match graph.node(id).op {
        Op::Int(value) => Some(value),
        _ => None,
    }
}

/// `a + by * b`
fn added(a: Follows, b: Follows, by: i64) -> Follows {
    let sum = |follows| match follows {
        Follows::Neither => Some((0, 0)),
        Follows::Sum(q, kv) => Some((q, kv)),
        Follows::Difference | Follows::Both => None,
    };
    let total = |(q, kv): (i64, i64), (of_q, of_kv): (i64, i64)| {
        Some((q.checked_add(of_q.checked_mul(by)?)?, kv.checked_add(of_kv.checked_mul(by)?)?))
    };
    match (sum(a), sum(b)) {
        (Some(a), Some(b)) => match total(a, b) {
            Some((0, 0)) => Follows::Neither,
            Some((q, kv)) if q.checked_add(kv) == Some(0) => Follows::Difference,
            Some((q, kv)) => Follows::Sum(q, kv),
            None => Follows::Both,
        },
        _ => of_all([a, b]),
    }
}

/// For a value computed from such values by any operation.
fn of_all(parts: impl IntoIterator<Item = Follows>) -> Follows {
    parts.into_iter().fold(Follows::Neither, |all, part| match (all, part) {
        (Follows::Both | Follows::Sum(..), _) | (_, Follows::Both | Follows::Sum(..)) => Follows::Both,
        (Follows::Neither, Follows::Neither) => Follows::Neither,
        _ => Follows::Difference,
    })
}

fn function(op: &Op, of: impl Fn(NodeId) -> Follows) -> Follows {
    of_all(op.operands().into_iter().map(of))
}

#[cfg(test)]
mod tests {
    use crate::ir::cell::{Cell, eval};
    use crate::ir::passes::difference::follow_the_difference;
    use crate::ir::random::{self, Options};
    use crate::ir::text::parse;

    fn seen(expression: &str) -> bool {
        let of = parse(expression, &[]).expect("a graph");
        follow_the_difference(&of.graph, &[of.root])
    }

    #[test]
    fn differences_are_seen_through_what_is_added_and_computed_of_them() {
        for yes in [
            "(lt (sub q_idx kv_idx) 128)",
            "(lt (sub (add q_idx h) (add kv_idx 7)) 128)",
            "(lt (abs (sub kv_idx q_idx)) 128)",
            "(lt (add (mul 3 q_idx) (mul kv_idx -3)) b)",
            "(lt (add (neg kv_idx) (sub q_idx 5)) 128)",
            "(lt (max (sub q_idx kv_idx) (mul h h)) 128)",
        ] {
            assert!(seen(yes), "{yes}");
        }
        for no in [
            "(lt q_idx kv_idx)",
            "(lt (add q_idx kv_idx) 3)",
            "(lt (sub (mul 2 q_idx) kv_idx) 3)",
            "(lt (sub (abs q_idx) (abs kv_idx)) 3)",
            "(lt (add (sub q_idx kv_idx) kv_idx) 3)",
            "(lt (sub q_idx q_idx) 3)",
            "(lt h 3)",
        ] {
            assert!(!seen(no), "{no}");
        }
    }

    #[test]
    fn what_follows_the_difference_is_the_same_one_token_on() {
        let options = Options { batch: 2, heads: 3, depth: 3, ..Options::new(40, 50) };
        let mut found = 0;
        for seed in 0..4000 {
            let given = random::mask(seed, &options);
            if !follow_the_difference(&given.graph, &[given.root]) {
                continue;
            }
            found += 1;
            let at = |q_idx, kv_idx| eval(&given, &Cell { b: 1, h: 2, q_idx, kv_idx, score: 0.0 });
            for (q, kv) in [(0, 0), (3, 30), (30, 2), (38, 48), (11, 10)] {
                assert_eq!(at(q, kv), at(q + 1, kv + 1), "seed {seed}");
            }
        }
        assert!(found > 20, "{found} of 4000 masks follow the difference");
    }
}
