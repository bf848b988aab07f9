//! The divisions that others use, by the same figures.
//!
//! Invariant: each follows its source's rule at the plan's grain; where the rule refuses a length or a number of heads,
//! the refusal is said and no figure is given. Must not know how our plan was found.

use crate::base::Diagnostic;
use crate::figures::{self, Exchange, Figures, KindFigures, PassFigures};
use crate::request::{Kind, Request};
use crate::search::sizes;
use crate::split::{Grain, Split, tokens};

/// Tokens of a chunk of the heap's division: the kind of FlashMask's balancer and of MagiAttention's default.
const HEAP_TOKENS: usize = 2048;

/// A division, or why it does not apply.
#[derive(Clone, Debug)]
pub struct Rival {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub about: About,
    /// Its figures.
    pub figures: Result<Figures, Diagnostic>,
}

/// What a division does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Equal parts in order.
    Unbalanced,
    /// The first part with the last.
    HeadTail,
    /// Rows by their blocks.
    Balanced,
    /// The same by the first mask of several.
    BalancedByFirst,
    /// The heaviest chunk to the idlest rank.
    Heap,
    /// Heads are exchanged for tokens.
    HeadsForTokens,
}

impl About {
    /// All of them.
    pub const ALL: [About; 6] = [
        About::Unbalanced,
        About::HeadTail,
        About::Balanced,
        About::BalancedByFirst,
        About::Heap,
        About::HeadsForTokens,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            About::Unbalanced => "PyTorch without a balancer",
            About::HeadTail => "PyTorch's head-tail balancer",
            About::Balanced => "PyTorch's balancer for FlexAttention",
            About::BalancedByFirst => "PyTorch's balancer, which takes one mask: the first",
            About::Heap => "a heap over chunks of 2,048 tokens",
            About::HeadsForTokens => "heads for tokens",
        }
    }
}

/// All of them.
pub fn rivals(request: &Request) -> Vec<Rival> {
    let grain = Grain::of(request, usize::MAX);
    let of = |name, about, exchange, chunks: Result<Vec<u16>, Diagnostic>| {
        let overlapped = exchange == Exchange::Needed;
        let made = |q: Vec<u16>| {
            let kv = if request.coupled() { q.clone() } else { contiguous(grain.chunks(request).1, request.ranks()) };
            let split = Split::of_chunks(request, grain, &q, &kv);
            figures::of_split(request, name, &split, exchange, overlapped)
        };
        Rival { name, about, figures: chunks.map(made) }
    };
    let (rows, ranks) = (grain.chunks(request).0, request.ranks());
    let balanced = match request.kinds() {
        [_] => About::Balanced,
        _ => About::BalancedByFirst,
    };
    vec![
        of("contiguous", About::Unbalanced, Exchange::AllGather, Ok(contiguous(rows, ranks))),
        of("head-tail", About::HeadTail, Exchange::AllGather, Ok(head_tail(rows, ranks))),
        of("PTRR", balanced, Exchange::AllGather, ptrr(request, grain)),
        of("heap", About::Heap, Exchange::Needed, Ok(heap(request, grain))),
        Rival { name: "Ulysses", about: About::HeadsForTokens, figures: ulysses(request) },
    ]
}

fn contiguous(rows: usize, ranks: usize) -> Vec<u16> {
    sizes(rows, ranks).iter().enumerate().flat_map(|(rank, n)| std::iter::repeat_n(rank as u16, *n)).collect()
}

/// Twice as many pieces as ranks: the first with the last, the second with the last but one.
fn head_tail(rows: usize, ranks: usize) -> Vec<u16> {
    let pieces = sizes(rows, 2 * ranks);
    let rank = |piece: usize| piece.min(2 * ranks - 1 - piece) as u16;
    pieces.iter().enumerate().flat_map(|(piece, n)| std::iter::repeat_n(rank(piece), *n)).collect()
}

/// Blocks of each chunk of queries over these kinds' layers, full and partial alike.
fn blocks(request: &Request, kinds: &[Kind], grain: Grain) -> Vec<f64> {
    let mut out = vec![0.0; grain.chunks(request).0];
    for kind in kinds {
        for row in 0..request.block_size().grid(request.lengths()).0 {
            let of = |group: &crate::rows::Group| {
                let (full, partial) = group.counts(row);
                (full + partial) as f64
            };
            out[row / grain.q] += kind.layers as f64 * kind.rows.groups.iter().map(of).sum::<f64>();
        }
    }
    out
}

/// Rows sorted by the first mask's blocks and dealt out to and fro. PyTorch takes one mask without heads and equal shares.
fn ptrr(request: &Request, grain: Grain) -> Result<Vec<u16>, Diagnostic> {
    let (rows, ranks) = (grain.chunks(request).0, request.ranks());
    let first = &request.kinds()[..1];
    let refusal = match (first[0].rows.distinct.1 > 1, rows % ranks) {
        (true, _) => Some("its mask may not differ between heads".to_string()),
        (_, 1..) => Some(format!("{rows} blocks of queries cannot be shared equally by {ranks} ranks")),
        _ => None,
    };
    if let Some(why) = refusal {
        return Err(Diagnostic::note("parallel-rival", why).hint("the other divisions take this request"));
    }
    let blocks = blocks(request, first, grain);
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|a, b| blocks[*b].total_cmp(&blocks[*a]).then(a.cmp(b)));
    let mut out = vec![0; rows];
    for (at, row) in order.into_iter().enumerate() {
        let (round, place) = (at / ranks, at % ranks);
        out[row] = if round % 2 == 0 { place } else { ranks - 1 - place } as u16;
    }
    Ok(out)
}

/// The heaviest chunk to the rank with the least work so far, equal numbers of chunks each.
fn heap(request: &Request, grain: Grain) -> Vec<u16> {
    let rows = grain.chunks(request).0;
    let each = (HEAP_TOKENS / (grain.q * request.block_size().q)).max(1);
    let blocks = blocks(request, request.kinds(), grain);
    let chunks: Vec<f64> = blocks.chunks(each).map(|rows| rows.iter().sum()).collect();
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    order.sort_by(|a, b| chunks[*b].total_cmp(&chunks[*a]).then(a.cmp(b)));
    let mut left = sizes(chunks.len(), request.ranks());
    let mut load = vec![0.0; request.ranks()];
    let mut of = vec![0u16; chunks.len()];
    for chunk in order {
        let open = (0..load.len()).filter(|rank| left[*rank] > 0);
        let rank = open.reduce(|a, b| if load[b] < load[a] { b } else { a }).unwrap_or(0);
        left[rank] = left[rank].saturating_sub(1);
        load[rank] += chunks[chunk];
        of[chunk] = rank as u16;
    }
    (0..rows).map(|row| of[row / each]).collect()
}

/// Every rank takes all tokens of some heads. Two exchanges a pass, which nothing hides.
fn ulysses(request: &Request) -> Result<Figures, Diagnostic> {
    let (ranks, shape) = (request.ranks(), request.shape());
    if !shape.heads.is_multiple_of(ranks) || !shape.kv_heads.is_multiple_of(ranks) {
        let why =
            format!("{} query heads and {} key heads cannot be shared by {ranks} ranks", shape.heads, shape.kv_heads);
        return Err(Diagnostic::note("parallel-rival", why).hint("the other divisions take this request"));
    }
    let rows = request.block_size().grid(request.lengths()).0;
    let q = contiguous(rows, ranks);
    let lengths = request.lengths();
    let size = request.block_size();
    let of = |rank: usize| (0..rows as u32).filter(|row| q[*row as usize] as usize == rank).collect::<Vec<_>>();
    let q_tokens: Vec<usize> = (0..ranks).map(|rank| tokens(&of(rank), size.q, lengths.q_len)).collect();
    let kv_tokens = |rank: usize| {
        lengths.kv_len as u64 * (rank as u64 + 1) / ranks as u64 - lengths.kv_len as u64 * rank as u64 / ranks as u64
    };
    // each rank's tokens of the other's heads: q, k and v there, the output back
    let sent = |from: usize| {
        (q_tokens[from] as u64 * shape.qo_bytes() / 2 + kv_tokens(from) * shape.kv_bytes()) / ranks as u64
    };
    let back = |to: usize| q_tokens[to] as u64 * shape.qo_bytes() / 2 / ranks as u64;
    let pairs = |f: &dyn Fn(usize, usize) -> u64| -> Vec<Vec<u64>> {
        let row = |from| (0..ranks).map(|to| if to == from { 0 } else { f(from, to) }).collect();
        (0..ranks).map(row).collect()
    };
    let bytes = pairs(&|from, to| sent(from) + back(to));
    let exchange_ms = request.links().exchange_ms(&pairs(&|from, _| sent(from)))
        + request.links().exchange_ms(&pairs(&|_, to| back(to)));
    let kinds: Vec<KindFigures> =
        request.kinds().iter().map(|kind| by_heads(request, kind, &bytes, exchange_ms)).collect();
    let own = |rank: usize| q_tokens[rank] as u64 * shape.qo_bytes() + kv_tokens(rank) * shape.kv_bytes();
    let whole = (lengths.q_len as u64 * shape.qo_bytes() + lengths.kv_len as u64 * shape.kv_bytes()) / ranks as u64;
    let peak = (0..ranks).map(|rank| (own(rank) + whole) * if request.backward { 2 } else { 1 }).collect();
    Ok(figures::summed(request, ("Ulysses", Exchange::Heads, false), kinds, q_tokens, peak))
}

fn by_heads(request: &Request, kind: &Kind, bytes: &[Vec<u64>], exchange_ms: f64) -> KindFigures {
    let (ranks, shape) = (request.ranks(), request.shape());
    let rows = request.block_size().grid(request.lengths()).0;
    let (batch, heads) = kind.rows.distinct;
    let group_of = |b: usize, h: usize| &kind.rows.groups[(b % batch) * heads + h % heads];
    let pass = |of: crate::cost::Pass| {
        let one = |b: usize, h: usize| -> f64 {
            let row = |row| {
                let (full, partial) = group_of(b, h).counts(row);
                let any = if full + partial > 0 { of.row } else { 0.0 };
                full as f64 * of.full + partial as f64 * of.partial + any
            };
            (0..rows).map(row).sum()
        };
        let times: Vec<f64> = (0..heads)
            .map(|h| (0..batch).map(|b| one(b, h)).sum::<f64>() * shape.batch as f64 / batch as f64)
            .collect();
        let per_rank = shape.heads / ranks;
        let rank = |rank: usize| (rank * per_rank..(rank + 1) * per_rank).map(|h| times[h % heads]).sum::<f64>() / 1e6;
        let compute_ms: Vec<f64> = (0..ranks).map(rank).collect();
        let slowest = compute_ms.iter().copied().fold(0.0, f64::max);
        PassFigures { ms: slowest + exchange_ms, exposed_ms: exchange_ms, exchange_ms, compute_ms }
    };
    let forward = pass(request.cost().forward);
    let backward = request.backward.then(|| pass(request.cost().backward));
    let sent: u64 = bytes.iter().flatten().sum();
    let gathered = request.lengths().kv_len as u64 * request.shape().kv_bytes() * (ranks as u64 - 1).max(1);
    KindFigures {
        name: kind.name.clone(),
        layers: kind.layers,
        imbalance: figures::imbalance(&forward, backward.as_ref()),
        // in bytes of an all-gather of keys and values: q and the output travel too
        received: sent as f64 / gathered as f64,
        needed: sent as f64 / gathered as f64,
        bytes: bytes.to_vec(),
        forward,
        backward,
    }
}
