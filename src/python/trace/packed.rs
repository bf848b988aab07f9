//! Packed samples beside a mask that does not look at them: a text whose positions begin again, and a causal mask.
//!
//! Invariant: told only of a mask that reads no tensor, with the number of cells between samples, counted one by one. Must not know
//! how the mask was found.

use crate::base::{Diagnostic, HostTensor, Lengths};
use crate::ir::graph::{Mod, Op};
use crate::ir::schedule;
use crate::ir::tiles::dense_mask;
use crate::python::value::{Name, Value};

/// Tokens up to which cells are counted.
const MOST: usize = 4096;

/// A warning if a tensor among these values says that the tokens are several samples, and the mask mixes them.
pub(super) fn mixed(of: &Mod, names: &[(Name, Value)]) -> Option<Diagnostic> {
    let reads =
        schedule::needed(&of.graph, &[of.root]).into_iter().any(|id| matches!(of.graph.node(id).op, Op::Load(..)));
    if reads {
        return None;
    }
    names.iter().find_map(|(name, value)| {
        let Value::Tensor(tensor) = value else { return None };
        reported(of, name, &samples(name, &tensor.get())?)
    })
}

/// The sample of each token, from 0 on; None: the tensor does not divide tokens into several samples.
fn samples(name: &str, tensor: &HostTensor) -> Option<Vec<usize>> {
    if tensor.dtype().is_float() || !matches!(tensor.shape().len(), 1 | 2) || !(3..=1 << 20).contains(&tensor.numel()) {
        return None;
    }
    let row = *tensor.shape().last()?;
    let all = tensor.to_i64_vec();
    let found = all.chunks_exact(row).take(16).find_map(|row| {
        let name = name.to_lowercase();
        let named = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if named(&["cu_seq", "cu_len", "offsets"]) { by_offsets(row) } else { by_positions(row) }
            .or_else(|| named(&["doc", "seq", "sample", "segment"]).then(|| by_numbers(row)).flatten())
    });
    found.filter(|samples| samples.len() <= MOST && samples.last().is_some_and(|last| *last > 0))
}

/// 0, 1, 2, 0, 1: each token one further than the one before it, or at the beginning.
fn by_positions(row: &[i64]) -> Option<Vec<usize>> {
    let steps = row.first() == Some(&0) && row.windows(2).all(|pair| pair[1] == 0 || pair[1] == pair[0] + 1);
    let longer = row.windows(2).any(|pair| pair[1] == pair[0] + 1);
    let begun = |sample: &mut usize, at: usize| {
        *sample += usize::from(at > 0 && row[at] == 0);
        Some(*sample)
    };
    (steps && longer).then(|| (0..row.len()).scan(0, |sample, at| begun(sample, at)).collect())
}

/// 0, 6, 10: where each sample begins, and the end.
fn by_offsets(row: &[i64]) -> Option<Vec<usize>> {
    let rising = row.first() == Some(&0) && row.len() > 2 && row.windows(2).all(|pair| pair[0] < pair[1]);
    let lengths = row.windows(2).map(|pair| (pair[1] - pair[0]).min(MOST as i64 + 1) as usize);
    (rising && *row.last()? <= MOST as i64)
        .then(|| lengths.enumerate().flat_map(|(sample, n)| std::iter::repeat_n(sample, n)).collect())
}

/// 0, 0, 1, 1, 1: the number of each token's sample.
fn by_numbers(row: &[i64]) -> Option<Vec<usize>> {
    let rising = row.windows(2).all(|pair| pair[0] <= pair[1]);
    let begun = |sample: &mut usize, at: usize| {
        *sample += usize::from(at > 0 && row[at] != row[at - 1]);
        Some(*sample)
    };
    (rising && row.windows(2).any(|pair| pair[0] == pair[1]))
        .then(|| (0..row.len()).scan(0, |sample, at| begun(sample, at)).collect())
}

fn reported(of: &Mod, name: &str, samples: &[usize]) -> Option<Diagnostic> {
    let n = samples.len();
    let cells = dense_mask(of, 1, 1, Lengths { q_len: n, kv_len: n });
    let kept = cells.iter().filter(|cell| **cell != 0).count();
    let foreign = |at: &usize| cells[*at] != 0 && samples[at / n] != samples[at % n];
    let mixed = (0..n * n).filter(foreign).count();
    let number = samples.last()? + 1;
    let message = format!(
        "`{name}` packs {number} samples into {n} tokens, and this mask lets tokens see other samples: {mixed} of {kept} kept cells"
    );
    let reported = Diagnostic::warning("packed-samples-mixed", message).hint(
        "keep them apart: `& (doc[q_idx] == doc[kv_idx])`, where doc is the sample of each token: (position_ids == 0).cumsum(-1) - 1. \
         transformers finds the samples itself only if it gets no 2-D attention_mask; preset `packed_documents`",
    );
    let reported = match of.graph.node(of.root).span {
        Some(span) => reported.at(span, ""),
        None => reported,
    };
    (mixed > 0).then(|| Diagnostic { sources: of.sources.clone(), ..reported })
}
