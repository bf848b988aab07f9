//! A mask as slices: a range of queries by a range of keys, whose ends stay or move on by one key a query.
//!
//! Invariant: no cell is in two slices, each kept cell is in one. Must not know who reads them.

use super::{Lowered, Spans};
use crate::base::Diagnostic;
use crate::base::words::grouped;
use std::collections::HashMap;
use std::ops::Range;

/// Which ends of a slice's rows move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SliceKind {
    /// Neither: every query sees every key.
    Full,
    /// The last key does: the last query sees all keys, each one before it one less.
    Causal,
    /// The first key does: the first query sees all keys, each one after it one less.
    InverseCausal,
    /// Both.
    BiCausal,
}

impl SliceKind {
    fn of(first: bool, last: bool) -> SliceKind {
        match (first, last) {
            (false, false) => SliceKind::Full,
            (false, true) => SliceKind::Causal,
            (true, false) => SliceKind::InverseCausal,
            (true, true) => SliceKind::BiCausal,
        }
    }

    fn moves(self) -> (u32, u32) {
        match self {
            SliceKind::Full => (0, 0),
            SliceKind::Causal => (0, 1),
            SliceKind::InverseCausal => (1, 0),
            SliceKind::BiCausal => (1, 1),
        }
    }
}

/// Some queries over some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Slice {
    pub q: Range<u32>,
    pub k: Range<u32>,
    pub kind: SliceKind,
}

impl Slice {
    /// The keys that a query of it sees.
    pub fn keys(&self, q: u32) -> Range<u32> {
        let (first, last) = self.kind.moves();
        self.k.start + first * (q - self.q.start)..self.k.end - last * (self.q.end - 1 - q)
    }
}

/// Rows that go on from one to the next in one way.
struct Track {
    q: Range<u32>,
    first: Range<u32>,
    last: Range<u32>,
    /// None: it has one row.
    kind: Option<SliceKind>,
}

impl Track {
    fn slice(self) -> Slice {
        Slice { q: self.q, k: self.first.start..self.last.end, kind: self.kind.unwrap_or(SliceKind::Full) }
    }

    /// How it would reach these keys in the next row.
    fn next(&self, keys: &Range<u32>) -> Option<SliceKind> {
        let moved = |from: u32, to: u32| to.checked_sub(from).filter(|n| *n <= 1).map(|n| n == 1);
        let kind = SliceKind::of(moved(self.last.start, keys.start)?, moved(self.last.end, keys.end)?);
        self.kind.is_none_or(|own| own == kind).then_some(kind)
    }
}

impl Lowered {
    /// The slices of a batch entry and head, by their first query. Errors: more than `most`.
    pub fn slices(&self, b: usize, h: usize, most: usize) -> Result<Vec<Slice>, Diagnostic> {
        sliced(self.spans(b, h), most)
    }
}

fn sliced(rows: &Spans, most: usize) -> Result<Vec<Slice>, Diagnostic> {
    let (mut done, mut open): (Vec<Slice>, Vec<Track>) = (Vec::new(), Vec::new());
    for (q, row) in rows.rows().enumerate() {
        let q = q as u32;
        let mut by_start: HashMap<u32, usize> = open.iter().enumerate().map(|(n, t)| (t.last.start, n)).collect();
        let mut taken: Vec<Option<Track>> = open.into_iter().map(Some).collect();
        open = Vec::with_capacity(row.len());
        for keys in row {
            // a track that began at this key, or at the one before
            let candidates = [Some(keys.start), keys.start.checked_sub(1)];
            let found = candidates.into_iter().flatten().find_map(|start| {
                let n = *by_start.get(&start)?;
                let kind = taken[n].as_ref()?.next(keys)?;
                by_start.remove(&start);
                Some((taken[n].take()?, kind))
            });
            open.push(match found {
                Some((mut track, kind)) => {
                    (track.q.end, track.last, track.kind) = (q + 1, keys.clone(), Some(kind));
                    track
                }
                None => Track { q: q..q + 1, first: keys.clone(), last: keys.clone(), kind: None },
            });
        }
        done.extend(taken.into_iter().flatten().map(Track::slice));
        if done.len() > most {
            break;
        }
    }
    done.extend(open.into_iter().map(Track::slice));
    if done.len() > most {
        let message = format!("the mask is more than {} slices", grouped(most as u128));
        return Err(Diagnostic::error("too-many-slices", message));
    }
    done.sort_by_key(|slice| (slice.q.start, slice.k.start));
    Ok(done)
}
