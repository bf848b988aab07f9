//! How a mod reads its captured tensors: by which indices, and whether by their difference only.
//!
//! Invariant: the listed reads include every actual read; an affine form, if given, is the index at every cell. Kernels
//! use this for staging. Must not know kernels.

use super::interval::Form;
use crate::ir::graph::{BinaryOp, CaptureId, Depends, Graph, Input, Mod, NodeId, Op, UnaryOp};

/// One index of one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Which of b, h, q_idx, kv_idx (and the score) it depends on, through other tensors too.
    pub depends: Depends,
    /// Its affine form in q_idx and kv_idx, if it has one; the index is before wrap and clamp.
    pub form: Option<Form>,
}

/// One load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadAccess {
    /// The load.
    pub node: NodeId,
    /// Its indices, outermost first.
    pub dimensions: Vec<Dimension>,
}

/// All loads of one captured tensor that the result needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which tensor.
    pub capture: CaptureId,
    /// Union over the loads' indices.
    pub depends: Depends,
    /// Every index that depends on q_idx or kv_idx is `n * (q_idx - kv_idx) + constant`: a table of distances.
    pub by_distance: bool,
    /// Where it is read.
    pub loads: Vec<LoadAccess>,
}

/// One entry for each captured tensor, in their order; an unused one has no loads.
pub fn access(of: &Mod) -> Vec<Access> {
    let graph = &of.graph;
    let depends = graph.depends();
    let forms = forms(graph);
    let needed = needed(graph, of.root);
    let mut out: Vec<Access> = (0..graph.captures().len() as u32)
        .map(|n| Access { capture: CaptureId(n), depends: Depends::NONE, by_distance: false, loads: Vec::new() })
        .collect();
    for (at, node) in graph.nodes().iter().enumerate().filter(|(at, _)| needed.get(*at) == Some(&true)) {
        let Op::Load(capture, index) = &node.op else { continue };
        let dimension = |i: &NodeId| Dimension { depends: depends[i.0 as usize], form: forms[i.0 as usize] };
        let dimensions: Vec<Dimension> = index.iter().map(dimension).collect();
        let entry = &mut out[capture.0 as usize];
        entry.depends = dimensions.iter().fold(entry.depends, |d, x| d.with(x.depends));
        entry.loads.push(LoadAccess { node: NodeId(at as u32), dimensions });
    }
    for entry in &mut out {
        let moving = || entry.loads.iter().flat_map(|l| &l.dimensions).filter(|d| on_tokens(d.depends));
        let distance = |d: &Dimension| d.form.is_some_and(|f| f.q == -f.kv);
        entry.by_distance = moving().next().is_some() && moving().all(distance);
    }
    out
}

fn on_tokens(d: Depends) -> bool {
    d.on(Input::QIdx) || d.on(Input::KvIdx)
}

fn needed(graph: &Graph, root: NodeId) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes().len()];
    needed[root.0 as usize] = true;
    for at in (0..needed.len()).rev() {
        if needed[at] {
            graph.nodes()[at].op.operands().iter().for_each(|o| needed[o.0 as usize] = true);
        }
    }
    needed
}

/// The affine form of each int node, if it has one that cannot overflow in intermediate steps.
fn forms(graph: &Graph) -> Vec<Option<Form>> {
    let mut out: Vec<Option<Form>> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let get = |id: &NodeId| out[id.0 as usize];
        let form = match &node.op {
            Op::Input(Input::QIdx) => Some(Form { q: 1, kv: 0, c: 0 }),
            Op::Input(Input::KvIdx) => Some(Form { q: 0, kv: 1, c: 0 }),
            Op::Int(v) => Some(Form { q: 0, kv: 0, c: *v }),
            Op::Unary(UnaryOp::Neg, a) => get(a).map(|f| scale(f, -1)),
            Op::Binary(BinaryOp::Add, a, b) => get(a).zip(get(b)).map(|(a, b)| sum(a, b)),
            Op::Binary(BinaryOp::Sub, a, b) => get(a).zip(get(b)).map(|(a, b)| sum(a, scale(b, -1))),
            Op::Binary(BinaryOp::Mul, a, b) => get(a).zip(get(b)).and_then(|(a, b)| product(a, b)),
            _ => None,
        };
        // indices stay below 2^30, so forms this small never leave i64
        let small = |f: &Form| [f.q, f.kv, f.c].iter().all(|x| x.abs() < 1 << 30);
        out.push(form.filter(small));
    }
    out
}

fn scale(f: Form, by: i64) -> Form {
    Form { q: f.q * by, kv: f.kv * by, c: f.c * by }
}

fn sum(a: Form, b: Form) -> Form {
    Form { q: a.q + b.q, kv: a.kv + b.kv, c: a.c + b.c }
}

fn product(a: Form, b: Form) -> Option<Form> {
    match ((a.q, a.kv), (b.q, b.kv)) {
        (_, (0, 0)) => Some(scale(a, b.c)),
        ((0, 0), _) => Some(scale(b, a.c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::examples::Builder;

    #[test]
    fn says_by_what_each_tensor_is_read() {
        let mut g = Builder::new();
        let (doc, bias, unused) =
            (g.table("doc", vec![0; 9]), g.table("bias", vec![1; 9]), g.table("unused", vec![2; 9]));
        let (q, k, d) = (g.q, g.k, g.distance());
        let (a, b) = (g.load(doc, &[q]), g.load(doc, &[k]));
        let four = g.int(4);
        let at = g.add(d, four);
        let near = g.load(bias, &[at]);
        g.load(unused, &[q]);
        let same = g.eq(a, b);
        let inside = g.at_most(near, 0);
        let root = g.and(same, inside);
        let found = access(&g.mask(root));
        assert!(found[0].depends.on(Input::QIdx) && found[0].depends.on(Input::KvIdx) && !found[0].by_distance);
        assert_eq!(found[0].loads[0].dimensions[0].form, Some(Form { q: 1, kv: 0, c: 0 }));
        assert!(found[1].by_distance);
        assert_eq!(found[1].loads[0].dimensions[0].form, Some(Form { q: 1, kv: -1, c: 4 }));
        assert!(found[2].loads.is_empty());
    }
}
