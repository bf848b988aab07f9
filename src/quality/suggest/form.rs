//! The forms of proposals, and the mask of each.
//!
//! Invariant: the mask of a form is the graph of a document's layer, with the same cells, so that the measured mask
//! equals the drawn one. Must not know how forms are found.

use super::Wanted;
use crate::analysis::examples::Builder;
use crate::base::tensor::Data;
use crate::base::{BlockSize, Diagnostic, HostTensor, Lengths};
use crate::ir::graph::{Input, Mod, NodeId};
use crate::quality::profile::Grid;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Blocks of a head: [q blocks][kv blocks], 1 is kept.
pub type BlockSet = Vec<u8>;

/// A proposed mask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Form {
    /// Keys at most `back` before and `ahead` after the query, and the first `sinks` keys; causal where `causal`.
    Window {
        /// Keys before the query.
        back: usize,
        /// Keys after it.
        ahead: usize,
        /// First keys that all see.
        sinks: usize,
        /// Whether later keys are hidden.
        causal: bool,
    },
    /// Columns and diagonals of whole blocks, both as half-open ranges in blocks of `block` tokens; a diagonal is
    /// `q_idx // block - kv_idx // block`.
    Stripes {
        /// Tokens of a block.
        block: usize,
        /// Ranges of key blocks.
        columns: Vec<[i64; 2]>,
        /// Ranges of diagonals.
        diagonals: Vec<[i64; 2]>,
        /// Whether later keys are hidden.
        causal: bool,
    },
    /// A box of frames, rows and columns around each query, inside the grid; tokens outside the grid attend to all and
    /// all attend to them.
    Box {
        /// The grid.
        grid: Grid,
        /// Odd extents.
        kernel: [usize; 3],
        /// Whether the first frame is seen by all.
        first_frame: bool,
    },
    /// A box of whole tiles around each query's tile, inside the grid; tokens outside the grid attend to all and all
    /// attend to them.
    Tiles {
        /// The grid.
        grid: Grid,
        /// Extents of a tile in tokens.
        tile: [usize; 3],
        /// Extents of the box in tiles.
        kernel: [usize; 3],
        /// Whether the first frame is seen by all.
        first_frame: bool,
    },
    /// Stripes around the same place of every frame, whose half-width halves with every `halving` frames between query
    /// and key. Tokens outside the grid attend to all and all attend to them.
    Radial {
        /// The grid.
        grid: Grid,
        /// Half-width within the frame, in tokens.
        width: usize,
        /// Frames after which it halves.
        halving: usize,
        /// Whether the first frame is seen by all.
        first_frame: bool,
    },
    /// A form with additional kept cells, for queries and keys.
    Beside {
        /// The additional kept cells.
        places: Beside,
        /// The form.
        form: Box<Form>,
    },
    /// A separate form for each group of query heads; heads without a group keep everything.
    PerHead(Vec<(Vec<usize>, Form)>),
    /// A list of blocks, one for all heads or one for each.
    Blocks {
        /// BLOCK_SIZE.
        size: BlockSize,
        /// One, or one for each query head.
        heads: Vec<BlockSet>,
        /// Whether later keys are hidden.
        causal: bool,
    },
}

/// Protected places of a grid, which a mask keeps in addition to its own cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// The grid.
    pub grid: Grid,
    /// Whether tokens outside the grid attend to all and all attend to them.
    pub text: bool,
    /// Whether the first frame is seen by all.
    pub first_frame: bool,
}

impl Beside {
    /// The protected part of a grid; None if it is empty.
    pub(super) fn of(wanted: &Wanted, lengths: Lengths) -> Option<Beside> {
        let (grid, tokens) = (wanted.grid?, lengths.q_len.max(lengths.kv_len));
        let text = wanted.protect.text && grid.tokens() != (0..tokens);
        let first_frame = wanted.protect.first_frame && grid.extents[0] > 1;
        (text || first_frame).then_some(Beside { grid, text, first_frame })
    }

    /// Ranges of keys that all see.
    pub fn keys(&self, kv_len: usize) -> Vec<Range<usize>> {
        let (tokens, [_, h, w]) = (self.grid.tokens(), self.grid.extents);
        let frame = self.first_frame.then(|| tokens.start..tokens.start + h * w);
        self.rows(kv_len).into_iter().chain(frame).collect()
    }

    /// Ranges of queries that see all.
    pub fn rows(&self, q_len: usize) -> Vec<Range<usize>> {
        let tokens = self.grid.tokens();
        let outside = [0..tokens.start.min(q_len), tokens.end.min(q_len)..q_len];
        outside.into_iter().filter(|range| self.text && !range.is_empty()).collect()
    }

    /// Whether a cell is kept.
    pub(super) fn keeps(&self, q: usize, kv: usize) -> bool {
        self.meets_rows(&(q..q + 1)) || self.meets_keys(&(kv..kv + 1))
    }

    /// Whether one of these queries sees all.
    pub(super) fn meets_rows(&self, q: &Range<usize>) -> bool {
        let tokens = self.grid.tokens();
        self.text && (q.start < tokens.start || q.end > tokens.end)
    }

    /// Whether one of these keys is seen by all.
    pub(super) fn meets_keys(&self, kv: &Range<usize>) -> bool {
        let (start, [_, h, w]) = (self.grid.start, self.grid.extents);
        self.meets_rows(kv) || (self.first_frame && kv.start < start + h * w && kv.end > start)
    }
}

impl Form {
    /// A form with additional kept cells, if there are any.
    pub(super) fn beside(places: Option<Beside>, form: Form) -> Form {
        match places {
            Some(places) => Form::Beside { places, form: Box::new(form) },
            None => form,
        }
    }

    /// Whether the mask hides later keys.
    pub fn causal(&self) -> bool {
        match self {
            Form::Window { causal, .. } | Form::Stripes { causal, .. } | Form::Blocks { causal, .. } => *causal,
            Form::Beside { form, .. } => form.causal(),
            Form::Box { .. } | Form::Tiles { .. } | Form::Radial { .. } | Form::PerHead(_) => false,
        }
    }

    /// Whether heads differ.
    pub fn per_head(&self) -> bool {
        match self {
            Form::Blocks { heads, .. } => heads.len() > 1,
            Form::PerHead(_) => true,
            _ => false,
        }
    }

    /// The same for some query heads alone, renumbered from 0.
    pub fn only(&self, numbers: &[usize]) -> Form {
        match self {
            Form::Blocks { size, heads, causal } if heads.len() > 1 => {
                let heads = numbers.iter().map(|n| heads[(*n).min(heads.len() - 1)].clone()).collect();
                Form::Blocks { size: *size, heads, causal: *causal }
            }
            Form::PerHead(groups) => {
                let of = |heads: &Vec<usize>| {
                    numbers.iter().enumerate().filter(|(_, n)| heads.contains(n)).map(|(at, _)| at).collect()
                };
                let left = groups.iter().map(|(heads, form)| (of(heads), form.clone()));
                Form::PerHead(left.filter(|(heads, _): &(Vec<usize>, Form)| !heads.is_empty()).collect())
            }
            other => other.clone(),
        }
    }

    /// Numbers in words, like those on the layer's sliders.
    pub fn words(&self) -> String {
        let ranges = |of: &[[i64; 2]]| of.iter().map(|[a, b]| format!("{a}..{b}")).collect::<Vec<_>>().join(" ");
        match self {
            Form::Window { back, ahead: 0, sinks, causal: true } => format!("window {}, sinks {sinks}", back + 1),
            Form::Window { back, ahead, sinks, .. } => format!("back {back}, ahead {ahead}, sinks {sinks}"),
            Form::Stripes { block, columns, diagonals, .. } => {
                format!("columns [{}], diagonals [{}] of {block} tokens", ranges(columns), ranges(diagonals))
            }
            Form::Box { kernel: [t, h, w], .. } => format!("kernel {t}x{h}x{w}"),
            Form::Tiles { tile: [t, h, w], kernel: [a, b, c], .. } => format!("{a}x{b}x{c} tiles of {t}x{h}x{w}"),
            Form::Radial { width, halving, .. } => format!("half-width {width}, halved every {halving} frames"),
            Form::Beside { places, form } => {
                let kept = [(places.text, "text"), (places.first_frame, "first frame")];
                let kept: Vec<&str> = kept.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
                format!("{}; {} kept", form.words(), kept.join(" and "))
            }
            Form::PerHead(groups) => {
                let one = |(heads, form): &(Vec<usize>, Form)| {
                    let heads = heads.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                    format!("{heads}: {}", form.words())
                };
                format!("heads {}", groups.iter().map(one).collect::<Vec<_>>().join("; "))
            }
            Form::Blocks { size, heads, .. } => match heads.len() {
                1 => format!("{} blocks of {size}", heads[0].iter().filter(|k| **k != 0).count()),
                n => format!("blocks of {size}, a list for each of {n} heads"),
            },
        }
    }

    /// The mask. Errors: block lists that do not cover the lengths.
    pub fn mask(&self, lengths: Lengths) -> Result<Mod, Diagnostic> {
        let mut b = Builder::new();
        let root = self.root(&mut b, lengths)?;
        Ok(b.mask(root))
    }

    fn root(&self, b: &mut Builder, lengths: Lengths) -> Result<NodeId, Diagnostic> {
        let (root, causal) = match self {
            Form::Window { back, ahead, sinks, causal } => (window(b, *back, *ahead, *sinks), *causal),
            Form::Stripes { block, columns, diagonals, causal } => {
                (stripes(b, *block as i64, columns, diagonals), *causal)
            }
            Form::Box { grid, kernel, first_frame } => (boxed(b, *grid, [1; 3], *kernel, *first_frame), false),
            Form::Tiles { grid, tile, kernel, first_frame } => (boxed(b, *grid, *tile, *kernel, *first_frame), false),
            Form::Radial { grid, width, halving, first_frame } => {
                (radial(b, *grid, *width, *halving, *first_frame), false)
            }
            Form::Beside { places, form } => {
                let inner = form.root(b, lengths)?;
                (besides(b, places, inner, lengths), form.causal())
            }
            Form::PerHead(groups) => (by_head(b, groups, lengths)?, false),
            Form::Blocks { size, heads, causal } => (listed(b, *size, heads, lengths)?, *causal),
        };
        if causal {
            let seen = b.causal();
            return Ok(b.and(seen, root));
        }
        Ok(root)
    }
}

/// A mask and the additional kept rows and columns.
fn besides(b: &mut Builder, places: &Beside, mut root: NodeId, lengths: Lengths) -> NodeId {
    let (q, k) = (b.q, b.k);
    let rows = places.rows(lengths.q_len).into_iter().map(|range| (q, range));
    for (of, range) in rows.chain(places.keys(lengths.kv_len).into_iter().map(|range| (k, range))) {
        let start = b.int(range.start as i64);
        let (from, to) = (b.ge(of, start), b.below(of, range.end as i64));
        let inside = b.and(from, to);
        root = b.or(inside, root);
    }
    root
}

/// A head's group's form, or everything for a head without a group.
fn by_head(b: &mut Builder, groups: &[(Vec<usize>, Form)], lengths: Lengths) -> Result<NodeId, Diagnostic> {
    let h = b.graph.input(Input::H);
    let (mut root, mut any) = (b.graph.bool(false), b.graph.bool(false));
    for (heads, form) in groups {
        let mut member = b.graph.bool(false);
        for head in heads {
            let number = b.int(*head as i64);
            let same = b.eq(h, number);
            member = b.or(member, same);
        }
        let inside = form.root(b, lengths)?;
        let part = b.and(member, inside);
        (root, any) = (b.or(root, part), b.or(any, member));
    }
    let other = b.not(any);
    Ok(b.or(root, other))
}

/// Rings of frames are distinguished up to this many halvings.
pub(super) const HALVINGS: usize = 12;

fn radial(b: &mut Builder, grid: Grid, width: usize, halving: usize, first_frame: bool) -> NodeId {
    let [_, h, w] = grid.extents.map(|n| n as i64);
    let frame = h * w;
    let (start, count) = (b.int(grid.start as i64), grid.count() as i64);
    let (q, k) = (b.q, b.k);
    let (q, k) = (b.sub(q, start), b.sub(k, start));
    let (of_q, of_k) = (b.div_by(q, frame), b.div_by(k, frame));
    let apart = b.sub(of_q, of_k);
    let apart = b.abs(apart);
    let ring = b.div_by(apart, halving.max(1) as i64);
    let (at_q, at_k) = (b.rem_by(q, frame), b.rem_by(k, frame));
    let shift = b.sub(at_q, at_k);
    let shift = b.abs(shift);
    let mut near = b.graph.bool(false);
    for step in 0..HALVINGS {
        let number = b.int(step as i64);
        let (here, inside) = (b.eq(ring, number), b.at_most(shift, (width >> step) as i64));
        let part = b.and(here, inside);
        near = b.or(near, part);
    }
    let (zero, end) = (b.int(0), b.int(count));
    for x in [q, k] {
        let (before, after) = (b.lt(x, zero), b.ge(x, end));
        let outside = b.or(before, after);
        near = b.or(outside, near);
    }
    if first_frame {
        let first = b.below(k, frame);
        near = b.or(first, near);
    }
    near
}

fn window(b: &mut Builder, back: usize, ahead: usize, sinks: usize) -> NodeId {
    let (q, k) = (b.q, b.k);
    let distance = b.sub(q, k);
    let (behind, other) = (b.at_most(distance, back as i64), b.sub(k, q));
    let before = b.at_most(other, ahead as i64);
    let near = b.and(behind, before);
    if sinks == 0 {
        return near;
    }
    let first = b.below(k, sinks as i64);
    b.or(first, near)
}

fn stripes(b: &mut Builder, block: i64, columns: &[[i64; 2]], diagonals: &[[i64; 2]]) -> NodeId {
    let (q, k) = (b.q, b.k);
    let (row, column) = (b.div_by(q, block), b.div_by(k, block));
    let apart = b.sub(row, column);
    let mut root = None;
    let both = columns.iter().map(|r| (column, r)).chain(diagonals.iter().map(|r| (apart, r)));
    for (of, [lo, hi]) in both {
        let low = b.int(*lo);
        let (from, to) = (b.ge(of, low), b.below(of, *hi));
        let inside = b.and(from, to);
        root = Some(root.map_or(inside, |before| b.or(before, inside)));
    }
    root.unwrap_or_else(|| b.graph.bool(false))
}

/// A box of `kernel` tiles; one of an odd number of tokens is a box of tiles of one token.
fn boxed(b: &mut Builder, grid: Grid, tile: [usize; 3], kernel: [usize; 3], first_frame: bool) -> NodeId {
    let [_, h, w] = grid.extents.map(|n| n as i64);
    let (start, count) = (b.int(grid.start as i64), grid.count() as i64);
    let (q, k) = (b.q, b.k);
    let (q, k) = (b.sub(q, start), b.sub(k, start));
    let place = |b: &mut Builder, x: NodeId| {
        let (frame, rest) = (b.div_by(x, h * w), b.rem_by(x, h * w));
        [frame, b.div_by(rest, w), b.rem_by(x, w)]
    };
    let (of_q, of_k) = (place(b, q), place(b, k));
    let mut near = b.graph.bool(true);
    for n in 0..3 {
        let (size, last) = (tile[n] as i64, (grid.extents[n] / tile[n]) as i64 - 1);
        let (left, right) = ((kernel[n] / 2) as i64, ((kernel[n] - 1) / 2) as i64);
        let (at_q, at_k) = match size {
            1 => (of_q[n], of_k[n]),
            _ => (b.div_by(of_q[n], size), b.div_by(of_k[n], size)),
        };
        let centre = b.clamp(at_q, left.min(last), (last - right).max(left.min(last)));
        let (before, after) = (b.sub(centre, at_k), b.sub(at_k, centre));
        let (low, high) = (b.at_most(before, left), b.at_most(after, right));
        let inside = b.and(low, high);
        near = b.and(near, inside);
    }
    let zero = b.int(0);
    let end = b.int(count);
    for x in [q, k] {
        let (before, after) = (b.lt(x, zero), b.ge(x, end));
        let outside = b.or(before, after);
        near = b.or(outside, near);
    }
    if first_frame {
        let first = b.below(k, h * w);
        near = b.or(first, near);
    }
    near
}

fn listed(b: &mut Builder, size: BlockSize, heads: &[BlockSet], lengths: Lengths) -> Result<NodeId, Diagnostic> {
    let (rows, columns) = size.grid(lengths);
    let table: Vec<u8> = heads.iter().flatten().copied().collect();
    let table = HostTensor::new([heads.len(), rows, columns], Data::Bool(table))?;
    let table = b.graph.add_capture("selected_blocks", table);
    let (q, k) = (b.q, b.k);
    let (row, column) = (b.div_by(q, size.q as i64), b.div_by(k, size.kv as i64));
    let head = if heads.len() > 1 { b.graph.input(Input::H) } else { b.int(0) };
    Ok(b.load(table, &[head, row, column]))
}
