//! Reads of captured tensors that are alike: the reads of a dot product over captured vectors differ by numbers alone. A
//! loop does one after the other, for all cells of a tile (`families.cuh`).
//!
//! Invariant: the text of a family's first read, with `stride * i` added to the numbers of its uniforms, is the text of its
//! i-th read. Must not know which sums a thread keeps.

use super::functions::{Accuracy, CELL, Emitter, Function, Strides, VALUES};
use super::mods::LiftedRead;
use crate::ir::graph::{CaptureId, Graph, Input, NodeId, Op};
use std::collections::HashMap;
use std::fmt::Write;

/// Reads of one tensor by the query alone or by the key alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Family {
    /// Their numbers among all reads.
    pub reads: Vec<usize>,
    /// Whether their elements follow the query; else the key.
    by_query: bool,
    strides: Strides,
}

/// The families of reads whose derivative follows the other token alone. Other reads are in none.
pub(super) fn families(graph: &Graph, reads: &[LiftedRead]) -> Vec<Family> {
    let depends = graph.depends();
    let follows = |read: &LiftedRead, input| depends[read.value.0 as usize].on(input);
    let fits = |read: &LiftedRead| {
        read.by_query != read.by_key
            && !follows(read, Input::Score)
            && !follows(read, if read.by_query { Input::QIdx } else { Input::KvIdx })
    };
    let mut found: Vec<Family> = Vec::new();
    for (at, read) in reads.iter().enumerate().filter(|(_, read)| fits(read)) {
        // reads of two tensors may stand by turns
        let same = |family: &&mut Family| kind(&reads[family.reads[0]]) == kind(read);
        if found.iter_mut().rev().find(same).is_none_or(|family| !family.takes(graph, reads, at)) {
            found.push(Family { reads: vec![at], by_query: read.by_query, strides: Strides::new() });
        }
    }
    found
}

impl Family {
    /// Adds the next read if it is alike.
    fn takes(&mut self, graph: &Graph, reads: &[LiftedRead], at: usize) -> bool {
        let Some(moved) = distances(graph, &roots(&reads[self.reads[0]]), &roots(&reads[at])) else { return false };
        let steps = self.reads.len() as u32;
        let strides: Strides = moved.iter().map(|(id, by)| (*id, by / steps)).collect();
        let even = moved.values().all(|by| by % steps == 0) && (steps == 1 || strides == self.strides);
        if even {
            self.strides = strides;
            self.reads.push(at);
        }
        even
    }
}

/// What reads of a family share besides their text.
fn kind(read: &LiftedRead) -> (usize, CaptureId, bool, usize) {
    (read.slot, read.capture, read.by_query, read.index.len())
}

fn roots(read: &LiftedRead) -> Vec<NodeId> {
    std::iter::once(read.value).chain(read.index.iter().copied()).collect()
}

/// How much larger the numbers of the uniforms below `others` are than those below `firsts`; None if they differ by more.
fn distances(graph: &Graph, firsts: &[NodeId], others: &[NodeId]) -> Option<Strides> {
    let mut partner: HashMap<NodeId, NodeId> = HashMap::new();
    let mut moved = Strides::new();
    let mut stack: Vec<(NodeId, NodeId)> = firsts.iter().copied().zip(others.iter().copied()).collect();
    while let Some((a, b)) = stack.pop() {
        if let Some(known) = partner.insert(a, b) {
            if known != b {
                return None;
            }
            continue;
        }
        let (first, other) = (&graph.node(a).op, &graph.node(b).op);
        match (first, other) {
            (Op::UniformInt(from), Op::UniformInt(to)) | (Op::UniformFloat(from), Op::UniformFloat(to)) => {
                moved.insert(a, to.0.checked_sub(from.0)?);
            }
            _ => {
                let bare = |op: &Op| op.map_operands(|_| NodeId(0));
                if bare(first) != bare(other) {
                    return None;
                }
                stack.extend(first.operands().into_iter().zip(other.operands()));
            }
        }
    }
    Some(moved)
}

impl Emitter<'_> {
    /// What a family's reads are multiplied by and where they are, by their number.
    pub(super) fn of_families(&self, text: &mut String, reads: &[LiftedRead], families: &[Family]) {
        for (number, family) in families.iter().enumerate() {
            let read = &reads[family.reads[0]];
            self.of_family(text, &format!("float family_value{number}"), family, &[read.value], |f| {
                self.operand(read.value, f)
            });
            self.of_family(text, &format!("int family_place{number}"), family, &read.index, |f| {
                self.offset(read.capture.0, &read.index, f)
            });
        }
    }

    /// No holder keeps values of a family: each read has its own.
    fn of_family(
        &self,
        text: &mut String,
        name: &str,
        family: &Family,
        roots: &[NodeId],
        result: impl Fn(&Function) -> String,
    ) {
        let head = format!("{name}(const Mods &m, int i, int way, float raw, float scale, {VALUES}, {CELL})");
        let strides = Some(&family.strides);
        let function = Function { head: &head, roots, given: &[], accuracy: Accuracy::Fast, strides };
        let result = result(&function);
        self.function(text, &function, &result);
    }
}

/// `CaptureSums::tile`: the families' reads, of all cells of a tile.
pub(super) fn tile(text: &mut String, reads: &[LiftedRead], families: &[Family], in_bins: bool) {
    text.push_str(
        "    __device__ __forceinline__ void tile(const Mods &m, const float (&d_score)[M / 2], int b, int h, int first, int key, int q_len, \
         int kv_len) {\n",
    );
    for (number, family) in families.iter().enumerate() {
        let of = |what: &str, q_idx: &str, kv_idx: &str| {
            format!(
                "family_{what}{number}(m, i, 0, 0.0f, 1.0f, HeadValues(), RowValues(), ColumnValues(), b, h, {q_idx}, {kv_idx})"
            )
        };
        let count = family.reads.len();
        let (by, own, length, value, place) = match family.by_query {
            true => ("kv_idx", "q_idx", "q_len", of("value", "0", "kv_idx"), of("place", "q_idx", "0")),
            false => ("q_idx", "kv_idx", "kv_len", of("value", "q_idx", "0"), of("place", "0", "kv_idx")),
        };
        let add = reads[family.reads[0]].addition(in_bins, &place, "sum");
        let name = if family.by_query { "add_by_query" } else { "add_by_key" };
        let _ = writeln!(
            text,
            "        {name}({count}, d_score, first, key, {length}, [&](int i, int {by}) {{ return {value}; }},\n            \
             [&](int i, int {own}, float sum) {{ {add}; }});"
        );
    }
    text.push_str("    }\n");
}
