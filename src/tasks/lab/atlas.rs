//! All layers and heads of a capture: where their attention goes, which heads are similar, small pictures of their
//! block masses.
//!
//! Invariant: a head without block masses in the file gets them from its q and k; a head without both is skipped.
//! Memory holds one head and a thumbnail for each. Must not know how the atlas is shown.

use super::pictures::Tile;
use crate::base::{BlockSize, Control, Diagnostic};
use crate::quality::capture::{Call, Capture};
use crate::quality::masses::{Masses, of_scorer};
use crate::quality::profile::profile;
use crate::quality::suggest::medoids;
use serde::{Deserialize, Serialize};

/// Largest side of a thumbnail, in values.
const THUMB: usize = 64;
/// Side of the pictures that heads are compared by.
const COARSE: usize = 16;
/// Most heads that are compared with each other.
const COMPARED: usize = 600;

/// The atlas's data of a head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtlasHead {
    /// Key of its call.
    pub call: String,
    /// Layer's number.
    pub layer: usize,
    /// Step.
    pub step: usize,
    /// Prompt's number.
    pub prompt: usize,
    /// Query head.
    pub head: usize,
    /// Whether its q and k are there.
    pub full: bool,
    /// Mean effective keys, `exp(entropy)`, over keys; None if unknown.
    pub keys: Option<f64>,
    /// Mass in the first key block.
    #[serde(with = "crate::base::float")]
    pub sinks: f64,
    /// Mass on the tokens before the grid; None if there are none or it is unknown.
    pub prefix: Option<f64>,
    /// Mass on the blocks of the diagonal.
    #[serde(with = "crate::base::float")]
    pub local: f64,
    /// Blocks that hold 95% of the mass of each row, over all.
    #[serde(with = "crate::base::float")]
    pub needed: f64,
    /// Number of the group of heads that look at the same blocks; 0 is the largest.
    pub cluster: usize,
    /// Its block masses, made small.
    pub tile: Tile,
    /// The machine that looked at it, where several did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    coarse: Vec<u8>,
}

/// Orders of an atlas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// As captured: layer, step, prompt, head.
    #[default]
    Capture,
    /// Fewest effective keys first.
    Keys,
    /// Most mass on the first block first.
    Sinks,
    /// Most mass on the diagonal first.
    Local,
    /// Fewest blocks for 95% first.
    Needed,
    /// Group by group.
    Cluster,
}

impl Sort {
    /// All, with their names.
    pub const ALL: [(Sort, &'static str); 6] = [
        (Sort::Capture, "capture"),
        (Sort::Keys, "keys"),
        (Sort::Sinks, "sinks"),
        (Sort::Local, "local"),
        (Sort::Needed, "needed"),
        (Sort::Cluster, "cluster"),
    ];
}

impl AtlasHead {
    /// The character of a head, in a word.
    pub fn kind(&self) -> &'static str {
        match () {
            _ if self.sinks > 0.5 => "sinks",
            _ if self.prefix.is_some_and(|p| p > 0.5) => "prefix",
            _ if self.local > 0.5 => "local",
            _ if self.needed < 0.25 => "sparse",
            _ => "spread",
        }
    }
}

/// The heads of some calls, grouped into at most `groups`. `block` is for calls without statistics. Errors: `cancelled`, tensors
/// that cannot be read.
pub fn atlas(
    capture: &Capture,
    calls: &[&Call],
    entry: usize,
    block: BlockSize,
    groups: usize,
    control: &Control,
) -> Result<Vec<AtlasHead>, Diagnostic> {
    let all: usize = calls.iter().map(|c| c.info.heads).sum();
    let mut found: Vec<AtlasHead> = Vec::new();
    let mut done = 0;
    for call in calls {
        for head in 0..call.info.heads {
            found.extend(look(capture, call, entry, head, block, control)?);
            done += 1;
            control.set_progress(done as f64 / all.max(1) as f64);
        }
    }
    cluster(&mut found, groups);
    Ok(found)
}

fn look(
    capture: &Capture,
    call: &Call,
    entry: usize,
    head: usize,
    block: BlockSize,
    control: &Control,
) -> Result<Option<AtlasHead>, Diagnostic> {
    let start = capture.grid().map_or(0, |g| g.start);
    if let Some(of) = capture.statistics(call, entry, head)? {
        let judged: Vec<f64> = of.entropy.iter().map(|h| f64::from(h.exp())).filter(|x| x.is_finite()).collect();
        let keys = (!judged.is_empty()).then(|| judged.iter().sum::<f64>() / (judged.len() * call.info.kv_len) as f64);
        let prefix = (start > 0 && start <= of.columns.len())
            .then(|| of.columns[..start].iter().map(|x| f64::from(*x)).sum::<f64>());
        return Ok(Some(row(call, head, &of.masses, keys, prefix)));
    }
    if !call.info.has_head(head) {
        return Ok(None);
    }
    let scorer = super::scorer(capture, call, entry, head, None)?;
    let found = of_scorer(&scorer, block, false, control)?;
    let of = profile(&scorer, &found, None, control)?;
    let prefix = (start > 0).then(|| of.prefix(start));
    Ok(Some(row(call, head, &found, Some(of.effective_share()), prefix)))
}

fn row(call: &Call, head: usize, masses: &Masses, keys: Option<f64>, prefix: Option<f64>) -> AtlasHead {
    let (rows, columns) = masses.grid();
    let judged: Vec<f64> = (0..rows).map(|i| masses.judged(i) as f64).collect();
    let total = judged.iter().sum::<f64>().max(1.0);
    let mean = |of: &dyn Fn(usize) -> f64| (0..rows).map(|i| judged[i] * of(i)).sum::<f64>() / total;
    let diagonal = |i: usize| -> f64 {
        let q = i * masses.block.q..(i + 1) * masses.block.q;
        let near = |j: &usize| q.start < (j + 1) * masses.block.kv && j * masses.block.kv < q.end;
        (0..columns).filter(near).map(|j| f64::from(masses.row(i)[j])).sum()
    };
    let needed = |i: usize| top(masses.row(i), 0.95).len() as f64 / columns as f64;
    let local = mean(&diagonal);
    let tile = super::pictures::small(&masses.blocks, columns, THUMB, f32::max);
    let coarse = super::pictures::small(&masses.blocks, columns, COARSE, |a, b| a + b);
    let sets = coarse.0.chunks(coarse.1.max(1)).flat_map(|row| {
        let kept = top(row, 0.95);
        (0..row.len()).map(move |j| u8::from(kept.contains(&j)))
    });
    AtlasHead {
        call: call.key.clone(),
        layer: call.info.layer,
        step: call.info.step,
        prompt: call.info.prompt,
        head,
        full: call.info.has_head(head),
        keys,
        sinks: mean(&|i| f64::from(masses.row(i)[0])),
        prefix,
        local,
        needed: mean(&needed),
        cluster: 0,
        tile: Tile { values: tile.0, columns: tile.1, mark: local as f32 },
        machine: None,
        coarse: sets.collect(),
    }
}

/// The fewest columns that hold a share of a row's mass.
fn top(row: &[f32], share: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).filter(|j| row[*j] > 0.0).collect();
    order.sort_unstable_by(|a, b| row[*b].total_cmp(&row[*a]));
    let all: f64 = row.iter().map(|x| f64::from(*x)).sum();
    let mut sum = 0.0;
    let end = order.iter().position(|j| {
        sum += f64::from(row[*j]);
        sum >= share * all - 1e-9
    });
    order.truncate(end.map_or(order.len(), |at| at + 1));
    order
}

/// Numbers the groups of heads whose coarse pictures overlap, the largest first.
pub fn cluster(heads: &mut [AtlasHead], groups: usize) {
    let compared: Vec<usize> = (0..heads.len().min(COMPARED)).collect();
    // pictures of other extents cannot be laid over each other
    let mut extents: Vec<usize> = heads.iter().map(|h| h.coarse.len()).collect();
    extents.sort_unstable();
    extents.dedup();
    let mut found: Vec<Vec<usize>> = Vec::new();
    for extent in extents {
        let of: Vec<usize> = compared.iter().copied().filter(|n| heads[*n].coarse.len() == extent).collect();
        let sets: Vec<Vec<u8>> = of.iter().map(|n| heads[*n].coarse.clone()).collect();
        let around = medoids(&sets, groups);
        let mut names = around.clone();
        names.sort_unstable();
        names.dedup();
        found.extend(
            names.iter().map(|name| {
                of.iter().zip(&around).filter(|(_, a)| *a == name).map(|(n, _)| *n).collect::<Vec<usize>>()
            }),
        );
    }
    found.sort_by_key(|members| std::cmp::Reverse(members.len()));
    for (number, members) in found.iter().enumerate() {
        members.iter().for_each(|n| heads[*n].cluster = number);
    }
    let last = found.len();
    heads.iter_mut().skip(COMPARED).for_each(|h| h.cluster = last);
}

/// Puts heads in order.
pub fn sort(heads: &mut [AtlasHead], by: Sort) {
    match by {
        Sort::Capture => {}
        Sort::Keys => heads.sort_by(|a, b| a.keys.unwrap_or(2.0).total_cmp(&b.keys.unwrap_or(2.0))),
        Sort::Sinks => heads.sort_by(|a, b| b.sinks.total_cmp(&a.sinks)),
        Sort::Local => heads.sort_by(|a, b| b.local.total_cmp(&a.local)),
        Sort::Needed => heads.sort_by(|a, b| a.needed.total_cmp(&b.needed)),
        Sort::Cluster => heads.sort_by_key(|h| h.cluster),
    }
}
