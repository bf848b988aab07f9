//! A short name of a problem from its content, so that results of different problems are never confused.
//!
//! Invariant: equal problems have equal fingerprints in every process; names of captured tensors, places in the text
//! and unused nodes do not count. Must not know documents, inputs or devices.

use super::{Problem, ProblemSpec};
use crate::ir::graph::{Mod, Op};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The first 16 hexadecimal digits of a hash over shapes, formats and both mods with their captured values.
/// `max_scores` is excluded: it requests one more output of the same problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl ProblemSpec {
    /// Its fingerprint. Reads every captured value: milliseconds for megabytes.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        let s = self;
        let counts = [s.batch, s.heads, s.kv_heads, s.q_len, s.kv_len, s.head_dim, s.head_dim_v];
        let shapes = (counts, s.dtype, s.layout, s.scale.map(f64::to_bits), s.block_size);
        put(&mut hasher, &serde_json::to_vec(&shapes).unwrap_or_default());
        for given in [&s.mask, &s.score] {
            match given {
                Some(given) => put_mod(&mut hasher, given),
                None => put(&mut hasher, b"none"),
            }
        }
        Fingerprint(hasher.finalize().to_hex()[..16].to_string())
    }
}

impl Problem {
    /// That of its origin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.spec().fingerprint()
    }
}

/// Bytes behind their length, so that no two lists of parts look alike.
fn put(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// The operations that the result needs, renumbered in their order, each with its operands.
fn put_mod(hasher: &mut blake3::Hasher, given: &Mod) {
    let nodes = given.graph.nodes();
    let mut needed = vec![false; nodes.len()];
    needed[given.root.0 as usize] = true;
    for at in (0..nodes.len()).rev().filter(|at| *at <= given.root.0 as usize) {
        if needed[at] {
            nodes[at].op.operands().iter().for_each(|o| needed[o.0 as usize] = true);
        }
    }
    let (mut numbers, mut captures) = (HashMap::new(), HashMap::new());
    for (at, node) in nodes.iter().enumerate().filter(|(at, _)| needed[*at]) {
        let next = numbers.len() as u32;
        let mut op = node.op.map_operands(|o| crate::ir::graph::NodeId(numbers[&o.0]));
        numbers.insert(at as u32, next);
        if let Op::Load(capture, _) = &mut op {
            let known = captures.len() as u32;
            let tensor = &given.graph.capture(*capture).tensor;
            let number = *captures.entry(*capture).or_insert_with(|| {
                let about = serde_json::to_vec(&(tensor.dtype(), tensor.shape())).unwrap_or_default();
                put(hasher, &about);
                put(hasher, &tensor.data().to_le_bytes());
                known
            });
            *capture = crate::ir::graph::CaptureId(number);
        }
        put(hasher, &serde_json::to_vec(&op).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;
    use crate::base::{DType, HostTensor};
    use crate::ir::graph::{BinaryOp, Graph, Input, ModKind};
    use std::sync::Arc;

    /// `kv_idx <= q_idx + table[b]`, with an unused node if `spare`.
    fn shifted(values: Vec<i64>, name: &str, spare: bool) -> Mod {
        let mut graph = Graph::new();
        if spare {
            graph.int(77);
        }
        let table = graph.add_capture(name, HostTensor::vector(Data::I64(values)));
        let (b, q, kv) = (graph.input(Input::B), graph.input(Input::QIdx), graph.input(Input::KvIdx));
        let by = graph.add(Op::Load(table, [b].into_iter().collect()), None);
        let limit = graph.binary(BinaryOp::Add, q, by);
        let root = graph.binary(BinaryOp::Le, kv, limit);
        Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
    }

    fn spec(mask: Mod) -> ProblemSpec {
        ProblemSpec { mask: Some(Arc::new(mask)), ..ProblemSpec::plain(2, (4, 2), (64, 96), 32) }
    }

    #[test]
    fn content_counts_and_names_do_not() {
        let first = spec(shifted(vec![1, 2], "t", false)).fingerprint();
        assert_eq!(first, spec(shifted(vec![1, 2], "other", true)).fingerprint());
        assert_eq!(first.as_str().len(), 16);
        let base = || spec(shifted(vec![1, 2], "t", false));
        assert_eq!(first, ProblemSpec { max_scores: true, ..base() }.fingerprint());
        let others = [
            spec(shifted(vec![1, 3], "t", false)),
            ProblemSpec { mask: None, ..base() },
            ProblemSpec { mask: None, score: base().mask, ..base() },
            ProblemSpec { kv_len: 97, ..base() },
            ProblemSpec { dtype: DType::F16, ..base() },
            ProblemSpec { scale: Some(0.25), ..base() },
        ];
        let mut all: Vec<_> = others.iter().map(ProblemSpec::fingerprint).chain([first]).collect();
        all.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        all.dedup();
        assert_eq!(all.len(), 7);
    }
}
