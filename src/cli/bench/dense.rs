//! Dense masks compared with PyTorch's eager create_mask: the same text, the same cores, round by round.
//!
//! Invariant: every cell is evaluated, one byte per cell, without block short cuts; a ratio is printed only if both
//! masks keep the same number of cells in every row and every column. Must not know where texts come from.

use super::gym::{LENGTH, Workload};
use super::peer::Peer;
use super::{Args, row};
use crate::backends::stats;
use crate::base::{Diagnostic, Lengths};
use crate::ir::graph::Mod;
use crate::ir::tiles::dense_mask_into;
use serde_json::{Value, json};
use std::time::Instant;

/// Timing rounds: one mask of each side per round.
const ROUNDS: usize = 9;

/// A row of one mask; with a peer, the ratio of its time to ours.
pub(super) fn compared(workload: &Workload, mask: &Mod, peer: Option<&mut Peer>, args: &Args) -> (Value, Option<f64>) {
    let Ok(lengths) = Lengths::new(LENGTH, LENGTH) else { unreachable!("the length is a good one") };
    // PyTorch's allocator also returns a used buffer
    let mut bytes = vec![2; LENGTH * LENGTH];
    let ours = |bytes: &mut [u8]| {
        let start = Instant::now();
        dense_mask_into(mask, 1, 1, lengths, bytes);
        std::hint::black_box(&bytes);
        start.elapsed().as_secs_f64() * 1e3
    };
    ours(&mut bytes);
    let mut parameters = json!({ "step": "dense", "tokens": LENGTH });
    let mut theirs = Vec::new();
    let mut peer = match peer.map(|p| agrees(workload, &bytes, p)) {
        Some(Ok(peer)) => Some(peer),
        Some(Err(why)) => {
            parameters["torch"] = json!(why.message);
            None
        }
        None => None,
    };
    let rounds = ROUNDS.min((args.budget as usize / 30).max(3));
    let mut samples = Vec::new();
    for _ in 0..rounds {
        samples.push(ours(&mut bytes));
        if let Some(Ok(ms)) = peer.as_mut().map(|p| p.time()) {
            theirs.push(ms);
        }
    }
    let timing = stats::timing(samples).unwrap_or_default();
    let cells = (LENGTH * LENGTH) as f64;
    parameters["Gcells/s"] = json!(cells / timing.median_ms / 1e6);
    let ratio = stats::timing(theirs).map(|theirs| {
        parameters["torch_ms"] = json!(theirs.median_ms);
        let ratio = theirs.median_ms / timing.median_ms;
        parameters["ratio"] = json!(ratio);
        ratio
    });
    (row(workload.name, &timing, parameters), ratio)
}

/// The peer, if its mask is equal to ours.
fn agrees<'a>(workload: &Workload, ours: &[u8], peer: &'a mut Peer) -> Result<&'a mut Peer, Diagnostic> {
    let (rows, columns) = peer.prepare(workload.text, LENGTH)?;
    let (our_rows, our_columns) = counts(ours);
    if rows != our_rows || columns != our_columns {
        return Err(Diagnostic::error("masks-differ", "differs from PyTorch's mask"));
    }
    Ok(peer)
}

/// Kept cells of each row and of each column.
fn counts(mask: &[u8]) -> (Vec<u64>, Vec<u64>) {
    let mut columns = vec![0; LENGTH];
    let mut rows = Vec::with_capacity(LENGTH);
    for row in mask.chunks_exact(LENGTH) {
        rows.push(row.iter().map(|x| u64::from(*x)).sum());
        columns.iter_mut().zip(row).for_each(|(n, x)| *n += u64::from(*x));
    }
    (rows, columns)
}
