//! The masks that one rank computes: its own keys first, then the keys of each exchange.
//!
//! Invariant: a stage's mask lists the blocks of the whole mask at these query and key blocks, with their kinds, at
//! their places in the rank's tensors; a block that is not whole is the last one of its tensor. Must not know bytes.

use crate::analysis::block_mask::{BlockKind, BlockRun};
use crate::base::tensor::Data;
use crate::base::{BlockSize, HostTensor, Lengths};
use crate::ir::graph::{Graph, Input, Mod, Op};
use crate::needs::Transfers;
use crate::rows::{Group, MaskRows};
use crate::split::{Split, positions, tokens};
use std::sync::Arc;

/// The keys of one exchange at one rank.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Ranks and their key blocks, in the order of the stage's key tensor. The own keys are those of the rank itself.
    pub sources: Vec<(usize, Vec<u32>)>,
    /// The mask over the rank's queries and these keys.
    pub mask: LocalMask,
}

/// A mask over some query blocks and some key blocks.
#[derive(Clone, Debug)]
pub struct LocalMask {
    /// Tokens of the whole mask.
    pub whole: Lengths,
    /// Tokens of a block.
    pub block_size: BlockSize,
    /// The query blocks of the whole mask, in order.
    pub q_blocks: Arc<Vec<u32>>,
    /// The key blocks of the whole mask, in order.
    pub kv_blocks: Vec<u32>,
    /// Batch entries and heads between which it differs.
    pub distinct: (usize, usize),
    /// For each of them the rows: runs of key blocks.
    pub rows: Vec<Group>,
    /// For each of them the columns: runs of query blocks.
    pub columns: Vec<Group>,
}

impl LocalMask {
    /// Query tokens.
    pub fn q_len(&self) -> usize {
        tokens(&self.q_blocks, self.block_size.q, self.whole.q_len)
    }

    /// Key tokens.
    pub fn kv_len(&self) -> usize {
        tokens(&self.kv_blocks, self.block_size.kv, self.whole.kv_len)
    }

    /// The token of the whole mask at each local query token.
    pub fn q_positions(&self) -> Vec<u32> {
        positions(&self.q_blocks, self.block_size.q, self.whole.q_len)
    }

    /// The token of the whole mask at each local key token.
    pub fn kv_positions(&self) -> Vec<u32> {
        positions(&self.kv_blocks, self.block_size.kv, self.whole.kv_len)
    }

    /// Blocks that are computed, over all of `distinct`.
    pub fn listed(&self) -> usize {
        let row = |group: &Group, row: usize| group.row(row).iter().map(|run| run.end - run.start).sum::<usize>();
        let of = |group: &Group| (0..self.q_blocks.len()).map(|n| row(group, n)).sum::<usize>();
        self.rows.iter().map(of).sum()
    }

    /// The whole mask's mod at the tokens of this one. None without queries or without keys.
    pub fn mask_mod(&self, whole: &Mod) -> Option<Mod> {
        if self.q_blocks.is_empty() || self.kv_blocks.is_empty() {
            return None;
        }
        let mut graph = Graph::new();
        let mut table = |name: &str, input: Input, positions: Vec<u32>| {
            let values = positions.into_iter().map(|at| at as i32).collect();
            let table = graph.add_capture(name, HostTensor::vector(Data::I32(values)));
            let at = graph.input(input);
            graph.add(Op::Load(table, [at].into_iter().collect()), None)
        };
        let q = table("q_positions", Input::QIdx, self.q_positions());
        let kv = table("kv_positions", Input::KvIdx, self.kv_positions());
        let root = graph.import(&whole.graph, whole.root, |_, op| match op {
            Op::Input(Input::QIdx) => Some(q),
            Op::Input(Input::KvIdx) => Some(kv),
            _ => None,
        });
        Some(Mod { graph, root, ..whole.clone() })
    }
}

/// The stages of a rank: its own keys, then those that arrive over each class of links.
pub fn stages(
    rows: &MaskRows,
    split: &Split,
    transfers: &Transfers,
    classes: &[Vec<usize>],
    rank: usize,
) -> Vec<Stage> {
    let count = classes.iter().flatten().max().map_or(0, |most| most + 1);
    let q_blocks = Arc::new(split.q_blocks(rank));
    let own = vec![(rank, split.kv_blocks(rank))];
    let arriving = |class: usize| {
        let of = |from: &usize| *from != rank && classes[*from][rank] == class;
        let sources = (0..split.ranks).filter(of).map(|from| (from, transfers[rank][from].clone()));
        sources.filter(|(_, blocks)| !blocks.is_empty()).collect()
    };
    let all = std::iter::once(own).chain((0..count).filter(|_| split.ranks > 1).map(arriving));
    all.map(|sources| stage(rows, split, &q_blocks, sources)).collect()
}

fn stage(rows: &MaskRows, split: &Split, q_blocks: &Arc<Vec<u32>>, mut sources: Vec<(usize, Vec<u32>)>) -> Stage {
    // the block that is not whole stands last
    let last = split.kv_rank.len() as u32 - 1;
    sources.sort_by_key(|(from, blocks)| (blocks.last() == Some(&last), *from));
    let kv_blocks: Vec<u32> = sources.iter().flat_map(|(_, blocks)| blocks.iter().copied()).collect();
    let mut place = vec![None; split.kv_rank.len()];
    kv_blocks.iter().enumerate().for_each(|(at, block)| place[*block as usize] = Some(at));
    let both = rows.groups.iter().map(|group| select(group, q_blocks, &place, kv_blocks.len()));
    let (rows_of, columns) = both.unzip();
    let mask = LocalMask {
        whole: split.lengths,
        block_size: split.block_size,
        q_blocks: q_blocks.clone(),
        kv_blocks,
        distinct: rows.distinct,
        rows: rows_of,
        columns,
    };
    Stage { sources, mask }
}

/// A group's rows and columns at these query blocks and at the key blocks that have a place.
fn select(group: &Group, q_blocks: &[u32], place: &[Option<usize>], columns: usize) -> (Group, Group) {
    let mut by_column: Vec<Vec<BlockRun>> = vec![Vec::new(); columns];
    let mut by_row = Vec::with_capacity(q_blocks.len());
    for (row, q_block) in q_blocks.iter().enumerate() {
        let runs = group.row(*q_block as usize);
        let blocks = runs.iter().flat_map(|run| (run.start..run.end).map(|block| (block, run.kind)));
        let mut found: Vec<(usize, BlockKind)> =
            blocks.filter_map(|(block, kind)| place[block].map(|at| (at, kind))).collect();
        if !found.is_sorted_by_key(|(at, _)| *at) {
            found.sort_unstable_by_key(|(at, _)| *at);
        }
        found.iter().for_each(|(at, kind)| extend(&mut by_column[*at], row, *kind));
        let mut runs = Vec::new();
        found.iter().for_each(|(at, kind)| extend(&mut runs, *at, *kind));
        by_row.push(runs);
    }
    (Group::of_rows(group.at, &by_row), Group::of_rows(group.at, &by_column))
}

/// Adds a block behind the others.
fn extend(runs: &mut Vec<BlockRun>, at: usize, kind: BlockKind) {
    match runs.last_mut() {
        Some(run) if run.end == at && run.kind == kind => run.end += 1,
        _ => runs.push(BlockRun { start: at, end: at + 1, kind }),
    }
}
