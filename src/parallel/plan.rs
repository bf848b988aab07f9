//! A plan: the division that was found, what travels, what each rank computes, and its figures.
//!
//! Invariant: the same request gives the same plan; the ranks' numbers of blocks differ by at most one chunk, and no
//! length is padded. Must not know PyTorch.

use crate::base::Diagnostic;
use crate::figures::{self, Exchange, Figures};
use crate::local::{self, Stage};
use crate::needs::{self, Transfers};
use crate::request::{Kind, Request};
use crate::search::{Effort, KindWork, Work, merged, search, sizes};
use crate::split::{Grain, Split};

/// Chunks of a sequence that are divided, at most; longer sequences are divided in larger chunks.
const MOST_CHUNKS: usize = 8192;
/// Above this share of all keys, the all-gather of the whole is the simpler and faster exchange.
const NEARLY_ALL: f64 = 0.95;

/// A plan of one request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which rank has which blocks.
    pub split: Split,
    /// How keys travel.
    pub exchange: Exchange,
    /// What it costs.
    pub figures: Figures,
    /// What its user should know.
    pub notes: Vec<Diagnostic>,
    /// For each kind what travels.
    pub transfers: Vec<Transfers>,
    /// The rank of each chunk of queries.
    chunks: Vec<u16>,
    classes: Vec<Vec<usize>>,
}

impl Plan {
    /// Plans a request.
    pub fn new(request: &Request) -> Plan {
        Self::made(request, None)
    }

    /// Plans a request whose masks have changed a little since `before`: in less than half of the time.
    pub fn after(request: &Request, before: &Plan) -> Plan {
        Self::made(request, Some(before))
    }

    fn made(request: &Request, before: Option<&Plan>) -> Plan {
        let grain = Grain::of(request, MOST_CHUNKS);
        let work = work(request, grain);
        let ranks = request.ranks();
        let known = before.map(|plan| &plan.chunks[..]).filter(|chunks| chunks.len() == work.rows);
        let known = known.filter(|chunks| chunks.iter().all(|rank| (*rank as usize) < ranks));
        let effort = if known.is_some() { Effort::QUICK } else { Effort::WHOLE };
        let q = search(&work, ranks, effort, known);
        let kv = if work.coupled { q.clone() } else { keepers(&work, &q, ranks) };
        let split = Split::of_chunks(request, grain, &q, &kv);
        Self::of_split(request, split, q)
    }

    fn of_split(request: &Request, split: Split, chunks: Vec<u16>) -> Plan {
        let needed = figures::of_split(request, "maskloom", &split, Exchange::Needed, true);
        let all = request.ranks() > 1 && needed.needed >= NEARLY_ALL;
        let exchange = if all { Exchange::AllGather } else { Exchange::Needed };
        let found = match exchange {
            Exchange::AllGather => figures::of_split(request, "maskloom", &split, exchange, true),
            _ => needed,
        };
        let transfers = |kind: &Kind| match exchange {
            Exchange::AllGather => needs::all_gather(&split),
            _ => needs::transfers(&kind.rows, &split),
        };
        Plan {
            transfers: request.kinds().iter().map(transfers).collect(),
            notes: notes(request, &split, &found),
            classes: request.links().classes(),
            split,
            exchange,
            figures: found,
            chunks,
        }
    }

    /// What a rank computes for one kind of layer: own keys first, then those of each exchange. Every rank has the same
    /// number of stages, some of them without keys.
    pub fn stages(&self, request: &Request, kind: usize, rank: usize) -> Vec<Stage> {
        local::stages(&request.kinds()[kind].rows, &self.split, &self.transfers[kind], &self.classes, rank)
    }
}

/// What a search weighs.
fn work(request: &Request, grain: Grain) -> Work {
    let (rows, cols) = grain.chunks(request);
    let blocks = request.block_size().grid(request.lengths()).0;
    let of = |kind: &Kind| {
        let mut needs = vec![Vec::new(); rows];
        let mut weight = vec![0.0; rows];
        for row in 0..blocks {
            let chunk = row / grain.q;
            weight[chunk] += request.row_ns(kind, request.cost().forward, row);
            if request.backward {
                weight[chunk] += request.row_ns(kind, request.cost().backward, row);
            }
            let runs = kind.rows.groups.iter().flat_map(|group| group.row(row));
            needs[chunk].extend(runs.map(|run| ((run.start / grain.kv) as u32, run.end.div_ceil(grain.kv) as u32)));
        }
        let needs: Vec<Vec<(u32, u32)>> = needs.iter_mut().map(|spans| merged(spans)).collect();
        KindWork::new(kind.layers as f64, weight, &needs)
    };
    Work { rows, cols, coupled: request.coupled(), kinds: request.kinds().iter().map(of).collect() }
}

/// The ranks of key chunks that are not those of query chunks.
fn keepers(work: &Work, q: &[u16], ranks: usize) -> Vec<u16> {
    let mut needed = vec![vec![0.0; work.cols]; ranks];
    for kind in &work.kinds {
        let mut seen = vec![vec![false; work.cols]; ranks];
        for (row, rank) in q.iter().enumerate() {
            for (from, to) in kind.needs(row) {
                seen[*rank as usize][*from as usize..*to as usize].fill(true);
            }
        }
        for (sums, seen) in needed.iter_mut().zip(&seen) {
            sums.iter_mut().zip(seen).filter(|(_, seen)| **seen).for_each(|(sum, _)| *sum += kind.layers);
        }
    }
    needs::keepers(&needed, &sizes(work.cols, ranks))
}

fn notes(request: &Request, split: &Split, figures: &Figures) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for (kind, found) in request.kinds().iter().zip(&figures.kinds) {
        let (batch, heads) = kind.rows.distinct;
        if batch * heads > 1 {
            let message = format!(
                "the mask `{}` differs between {batch} batch entries and {heads} heads: a key block travels if any of them needs it",
                kind.name
            );
            out.push(
                Diagnostic::note("parallel-union", message)
                    .hint("heads with masks of their own may be planned as kinds of their own"),
            );
        }
        if figures.exchange == Exchange::AllGather {
            let message = format!(
                "the ranks need {:.0}% of all keys for `{}`, however its blocks are divided: every key is sent to every rank",
                100.0 * found.needed,
                kind.name
            );
            out.push(Diagnostic::note("parallel-all-gather", message).hint("a mask with locality would move less"));
        }
    }
    let idle = (0..split.ranks).filter(|rank| split.q_blocks(*rank).is_empty()).count();
    if idle > 0 {
        let blocks = split.q_rank.len();
        let message = format!("{idle} of {} ranks have no queries: there are {blocks} query blocks", split.ranks);
        out.push(Diagnostic::warning("parallel-idle", message).hint("take fewer ranks or smaller blocks"));
    }
    out
}
