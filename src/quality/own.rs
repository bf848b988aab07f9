//! The model's own changes of a head's scores as mods, for kernels that take nothing else.
//!
//! Invariant: a kernel with these mods gives the scores that `scores.rs` computes. A sink is no part of them: it has no
//! column, and its share of the weights follows from the lse. Must not know the measured mask.

use super::head::{Head, Own};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, UnaryOp};
use crate::ir::passes::compose::chain_scores;
use crate::ir::schedule;

/// What the model itself hides; None if it hides nothing. Errors: a table of another size.
pub fn mask(head: &Head) -> Result<Option<Mod>, Diagnostic> {
    let mut graph = Graph::new();
    let root = match &head.own {
        Own::None | Own::Bias(_) => return Ok(None),
        Own::Causal => {
            let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
            graph.binary(BinaryOp::Le, kv, q)
        }
        Own::Keep(table) => load(&mut graph, head, "own_mask", Data::Bool(table.to_vec()))?,
    };
    Ok(Some(Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }))
}

/// The softcap, the document's score mod, the model's bias, in that order; None for none of them. Errors: a table of
/// another size.
pub fn score(head: &Head) -> Result<Option<Mod>, Diagnostic> {
    let cap = head.softcap.map(softcap);
    let bias = match &head.own {
        Own::Bias(table) => Some(bias(head, table)?),
        _ => None,
    };
    let parts: Vec<&Mod> = [cap.as_ref(), head.score.as_deref(), bias.as_ref()].into_iter().flatten().collect();
    Ok((!parts.is_empty()).then(|| chain_scores(&parts)))
}

/// A mod as one batch entry and head see it: it reads neither of them any more.
pub fn at_place(of: &Mod, (b, h): (usize, usize)) -> Mod {
    let mut graph = Graph::new();
    let needed = schedule::needed(&of.graph, &[of.root]);
    let map = graph.rewrite(&of.graph, needed, |graph, id, op| match op {
        Op::Input(Input::B) => graph.int(b as i64),
        Op::Input(Input::H) => graph.int(h as i64),
        op => graph.add(op, of.graph.node(id).span),
    });
    Mod { kind: of.kind, graph, root: map[of.root.0 as usize], sources: of.sources.clone() }
}

fn softcap(cap: f32) -> Mod {
    let mut graph = Graph::new();
    let (score, cap) = (graph.input(Input::Score), graph.float(f64::from(cap)));
    let share = graph.binary(BinaryOp::Div, score, cap);
    let bent = graph.unary(UnaryOp::Tanh, share);
    let root = graph.binary(BinaryOp::Mul, bent, cap);
    Mod { kind: ModKind::Score, graph, root, sources: Vec::new() }
}

fn bias(head: &Head, table: &[f32]) -> Result<Mod, Diagnostic> {
    let mut graph = Graph::new();
    let score = graph.input(Input::Score);
    let added = load(&mut graph, head, "own_bias", Data::F32(table.to_vec()))?;
    let root = graph.binary(BinaryOp::Add, score, added);
    Ok(Mod { kind: ModKind::Score, graph, root, sources: Vec::new() })
}

fn load(graph: &mut Graph, head: &Head, name: &str, cells: Data) -> Result<NodeId, Diagnostic> {
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let lengths = head.lengths();
    let table = graph.add_capture(name, HostTensor::new([lengths.q_len, lengths.kv_len], cells)?);
    Ok(graph.add(Op::Load(table, smallvec::smallvec![q, kv]), None))
}
