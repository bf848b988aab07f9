//! What a division of the work costs: loads, bytes, milliseconds, memory.
//!
//! Invariant: every figure is counted from the masks' blocks and the constants of a card; none is measured. The same
//! kernels are assumed for all divisions, so that only the division differs. Must not know how it was found.

use crate::needs::{self, Transfers};
use crate::request::{Kind, Request};
use crate::split::{Split, block_tokens, tokens};
use serde::Serialize;

/// How keys reach the ranks that need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// Every rank receives every key.
    AllGather,
    /// Every rank receives the key blocks that its queries list.
    Needed,
    /// Heads are exchanged for tokens: every rank has all tokens of some heads.
    Heads,
}

/// One pass of one layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassFigures {
    /// Milliseconds of each rank's attention.
    pub compute_ms: Vec<f64>,
    /// Milliseconds of the exchange.
    pub exchange_ms: f64,
    /// Those of them that no computation hides.
    pub exposed_ms: f64,
    /// Milliseconds until the slowest rank has ended.
    pub ms: f64,
}

/// One kind of layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindFigures {
    /// Its name.
    pub name: String,
    /// How many layers there are.
    pub layers: usize,
    /// The slowest rank's work over the mean; 1 is balanced.
    pub imbalance: f64,
    /// Key blocks received of those that an all-gather moves, from 0 to 1.
    pub received: f64,
    /// Key blocks that queries list at ranks that do not own them, of those that an all-gather moves.
    pub needed: f64,
    /// Bytes of keys and values from each rank to each other in a forward pass; backward sends as many back.
    pub bytes: Vec<Vec<u64>>,
    /// The forward pass of one layer.
    pub forward: PassFigures,
    /// The backward pass of one layer, if one was asked for.
    pub backward: Option<PassFigures>,
}

/// A division's figures over all layers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// What it is called.
    pub name: String,
    /// How keys travel.
    pub exchange: Exchange,
    /// Whether the exchange runs beside the computation of own keys.
    pub overlapped: bool,
    /// Query tokens of each rank.
    pub tokens: Vec<usize>,
    /// Each kind of layer.
    pub kinds: Vec<KindFigures>,
    /// The slowest rank over the mean, all layers by their time.
    pub imbalance: f64,
    /// Received keys of all layers' all-gathers.
    pub received: f64,
    /// Needed keys of all layers' all-gathers.
    pub needed: f64,
    /// Milliseconds of all layers' forward passes.
    pub forward_ms: f64,
    /// Milliseconds of all layers' backward passes.
    pub backward_ms: f64,
    /// Milliseconds of exchanges that no computation hides, in both passes.
    pub exposed_ms: f64,
    /// Bytes of each rank's q, k, v, output, received keys and values, and their gradients, in the layer with most.
    pub peak_bytes: Vec<u64>,
}

impl Figures {
    /// Milliseconds of all layers and passes.
    pub fn ms(&self) -> f64 {
        self.forward_ms + self.backward_ms
    }

    /// Milliseconds of all layers and passes on one GPU, by the same constants: it exchanges nothing.
    pub fn alone_ms(&self) -> f64 {
        let pass = |pass: &PassFigures| pass.compute_ms.iter().sum::<f64>();
        let kind = |kind: &KindFigures| pass(&kind.forward) + kind.backward.as_ref().map_or(0.0, pass);
        self.kinds.iter().map(|each| each.layers as f64 * kind(each)).sum()
    }

    /// Whether several GPUs take less time than one alone.
    pub fn pays(&self) -> bool {
        self.ms() < self.alone_ms()
    }
}

/// The figures of a division into blocks. `overlapped`: the exchange runs while own keys are computed.
pub(crate) fn of_split(request: &Request, name: &str, split: &Split, how: Exchange, overlapped: bool) -> Figures {
    let kind = |kind: &Kind| of_kind(request, kind, split, how, overlapped);
    let kinds: Vec<KindFigures> = request.kinds.iter().map(kind).collect();
    let tokens_of = (0..split.ranks).map(|rank| split.q_len(rank)).collect();
    let peak = (0..split.ranks).map(|rank| peak_bytes(request, split, &kinds, rank)).collect();
    summed(request, (name, how, overlapped), kinds, tokens_of, peak)
}

/// Adds up kinds of layers.
pub(crate) fn summed(
    request: &Request,
    (name, exchange, overlapped): (&str, Exchange, bool),
    kinds: Vec<KindFigures>,
    tokens: Vec<usize>,
    peak_bytes: Vec<u64>,
) -> Figures {
    let over = |f: &dyn Fn(&KindFigures) -> f64| kinds.iter().map(|kind| kind.layers as f64 * f(kind)).sum::<f64>();
    let layers = over(&|_| 1.0);
    let of_back = |kind: &KindFigures, f: &dyn Fn(&PassFigures) -> f64| kind.backward.as_ref().map_or(0.0, f);
    let mean = |pass: &PassFigures| pass.compute_ms.iter().sum::<f64>() / request.ranks() as f64;
    let whole = over(&|kind| mean(&kind.forward) + of_back(kind, &mean));
    let slowest = over(&|kind| (mean(&kind.forward) + of_back(kind, &mean)) * kind.imbalance);
    Figures {
        name: name.into(),
        exchange,
        overlapped,
        tokens,
        imbalance: if whole > 0.0 { slowest / whole } else { 1.0 },
        received: over(&|kind| kind.received) / layers,
        needed: over(&|kind| kind.needed) / layers,
        forward_ms: over(&|kind| kind.forward.ms),
        backward_ms: over(&|kind| of_back(kind, &|pass| pass.ms)),
        exposed_ms: over(&|kind| kind.forward.exposed_ms + of_back(kind, &|pass| pass.exposed_ms)),
        peak_bytes,
        kinds,
    }
}

fn of_kind(request: &Request, kind: &Kind, split: &Split, how: Exchange, overlapped: bool) -> KindFigures {
    let needed = needs::transfers(&kind.rows, split);
    let everything = (split.kv_rank.len() * (split.ranks - 1)).max(1) as f64;
    let share = |transfers: &Transfers| needs::blocks(transfers) as f64 / everything;
    let moved = if how == Exchange::AllGather { needs::all_gather(split) } else { needed.clone() };
    let bytes = bytes(request, split, &moved);
    let own = own_part(kind, split);
    let pass = |of| {
        let mut compute = vec![0.0; split.ranks];
        for (row, rank) in split.q_rank.iter().enumerate() {
            compute[*rank as usize] += request.row_ns(kind, of, row) / 1e6;
        }
        pass_figures(compute, &own, request.links.exchange_ms(&bytes), overlapped)
    };
    let forward = pass(request.cost.forward);
    let backward = request.backward.then(|| pass(request.cost.backward));
    KindFigures {
        name: kind.name.clone(),
        layers: kind.layers,
        imbalance: imbalance(&forward, backward.as_ref()),
        received: share(&moved),
        needed: share(&needed),
        bytes,
        forward,
        backward,
    }
}

/// The slowest rank of each pass over the mean, both passes by their time.
pub(crate) fn imbalance(forward: &PassFigures, backward: Option<&PassFigures>) -> f64 {
    let passes = || std::iter::once(forward).chain(backward);
    let slowest: f64 = passes().map(|pass| pass.compute_ms.iter().copied().fold(0.0, f64::max)).sum();
    let mean: f64 = passes().map(|pass| pass.compute_ms.iter().sum::<f64>() / pass.compute_ms.len() as f64).sum();
    if mean > 0.0 { slowest / mean } else { 1.0 }
}

/// An exchange runs beside the part of a rank's work that needs only its own keys.
fn pass_figures(compute_ms: Vec<f64>, own: &[f64], exchange_ms: f64, overlapped: bool) -> PassFigures {
    let hidden = |rank: usize| if overlapped { compute_ms[rank] * own[rank] } else { 0.0 };
    let ends = |rank: usize| compute_ms[rank] + (exchange_ms - hidden(rank)).max(0.0);
    let ms = (0..compute_ms.len()).map(ends).fold(0.0, f64::max);
    let alone = compute_ms.iter().copied().fold(0.0, f64::max);
    PassFigures { exposed_ms: ms - alone, compute_ms, exchange_ms, ms }
}

/// For each rank the part of its blocks whose keys it owns.
fn own_part(kind: &Kind, split: &Split) -> Vec<f64> {
    let (mut own, mut all) = (vec![0usize; split.ranks], vec![0usize; split.ranks]);
    // owned blocks before each column, for each rank that has rows
    let mut before: Vec<Option<Vec<u32>>> = vec![None; split.ranks];
    for group in &kind.rows.groups {
        for (row, rank) in split.q_rank.iter().enumerate() {
            let rank = *rank as usize;
            let sums = before[rank].get_or_insert_with(|| owned_before(split, rank));
            for run in group.row(row) {
                all[rank] += run.end - run.start;
                own[rank] += (sums[run.end] - sums[run.start]) as usize;
            }
        }
    }
    own.iter().zip(&all).map(|(own, all)| *own as f64 / (*all).max(1) as f64).collect()
}

fn owned_before(split: &Split, rank: usize) -> Vec<u32> {
    let mut sums = vec![0];
    split.kv_rank.iter().for_each(|of| sums.push(sums[sums.len() - 1] + u32::from(*of as usize == rank)));
    sums
}

/// Bytes of keys and values `[from][to]`.
fn bytes(request: &Request, split: &Split, transfers: &Transfers) -> Vec<Vec<u64>> {
    let (size, length) = (split.block_size.kv, split.lengths.kv_len);
    let of = |from: usize, to: usize| -> u64 {
        let tokens: usize = transfers[to][from].iter().map(|block| block_tokens(*block as usize, size, length)).sum();
        tokens as u64 * request.shape.kv_bytes()
    };
    (0..split.ranks).map(|from| (0..split.ranks).map(|to| of(from, to)).collect()).collect()
}

fn peak_bytes(request: &Request, split: &Split, kinds: &[KindFigures], rank: usize) -> u64 {
    let kv = tokens(&split.kv_blocks(rank), split.block_size.kv, split.lengths.kv_len) as u64;
    let own = split.q_len(rank) as u64 * request.shape.qo_bytes() + kv * request.shape.kv_bytes();
    let received = |kind: &KindFigures| kind.bytes.iter().map(|row| row[rank]).sum::<u64>();
    let most = kinds.iter().map(received).max().unwrap_or(0);
    (own + most) * if request.backward { 2 } else { 1 }
}
