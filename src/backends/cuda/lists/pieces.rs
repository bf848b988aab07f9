//! The order of a launch's tiles, and the last tiles of a persistent launch, cut along their keys if whole tiles would
//! leave multiprocessors idle.
//!
//! Invariant: the pieces of a tile contain each of its kv tiles once, in order. Plain data, so that it is tested
//! without a device. Must not know kernels or memory.

use super::kept::Kept;
use super::plan::Plan;
use super::words::Piece;
use crate::backends::cuda::variant::spec::KernelSpec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The fixed cost of a tile, in kv tiles: the first product waits for memory, and the output is stored.
const START: u64 = 1;
/// Pieces of a tile at most.
const MOST: u64 = 16;
/// Waves of tiles beyond which the last one is lost in the whole.
const WAVES: usize = 64;
/// The gain from which cutting pays: estimates are not closer.
const WORTH: f64 = 0.99;
/// The same for another section: fewer heads find less of their keys in the cache.
const WORTH_A_SECTION: f64 = 0.997;
/// The same if several tiles share a multiprocessor: the last ones are faster alone, so that half of the predicted gain
/// counts.
const WORTH_A_SHARED_SECTION: f64 = 0.97;

/// The fixed cost of pieces, in kv tiles (figures in docs/kernels).
#[derive(Clone, Copy, Debug)]
struct Price {
    /// A piece more than a whole tile: its share of the output leaves as f32.
    leave: u64,
    /// The last piece of a tile, for each of its pieces.
    join: f64,
}

impl Price {
    /// Outputs wider than 128 are twice as long on their way while a kv tile takes hardly longer, and all pieces of a short
    /// launch leave at once.
    fn of(spec: &KernelSpec) -> Price {
        if spec.head_dim_v > 128 { Price { leave: 4, join: 2.0 } } else { Price { leave: 2, join: 0.5 } }
    }
}

/// How to cut the last `tail` units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    tail: usize,
    share: Share,
}

/// Where a cut goes through the tiles of a tail, in kv tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// Each tile into equal pieces of at most so many.
    Equal(u64),
    /// Through all tiles as they follow each other, a piece for every so many: what one multiprocessor is to do.
    Running(u64),
}

impl Share {
    /// The lengths of a tile's pieces, at least one, which may be empty. `before`: kv tiles of the tail in front of it.
    fn lengths(self, work: u64, before: u64, mut piece: impl FnMut(u64)) {
        match self {
            Share::Equal(most) => {
                let count = work.div_ceil(most).max(1);
                (0..count).for_each(|i| piece(work * (i + 1) / count - work * i / count));
            }
            Share::Running(share) => {
                let mut begin = 0;
                let next = share - before % share;
                for end in (next..work).step_by(share as usize) {
                    piece(end - begin);
                    begin = end;
                }
                piece(work - begin);
            }
        }
    }

    /// The pieces of each tile: start and length.
    fn pieces(self, work: &[u64]) -> Vec<Vec<(u64, u64)>> {
        let mut before = 0;
        let of = |work: u64| {
            let (mut begin, mut made) = (0, Vec::new());
            self.lengths(work, before, |length| {
                made.push((begin, length));
                begin += length;
            });
            before += work;
            made
        };
        work.iter().copied().map(of).collect()
    }

    /// The costs of all pieces, and how many a tile has at most.
    fn costs(self, work: &[u64], price: Price, costs: &mut Vec<u64>) -> usize {
        costs.clear();
        let (mut before, mut most) = (0, 0);
        for work in work {
            let first = costs.len();
            self.lengths(*work, before, |length| costs.push(length + START));
            let own = &mut costs[first..];
            most = most.max(own.len());
            if own.len() > 1 {
                own.iter_mut().for_each(|cost| *cost += price.leave);
            }
            before += work;
        }
        most
    }
}

/// The rows of the lists in the order in which tiles are taken, as in `schedule.cuh`.
fn scheduled_rows(plan: &Plan, batch: usize, heads: usize, section: usize) -> Vec<usize> {
    let all = batch * heads;
    let sections = (0..all).step_by(section).map(|first| first..(first + section).min(all));
    let of = |rank: usize, pair: usize| {
        let list = plan.list(pair / heads, pair % heads);
        list * plan.q_tiles + plan.tile_order[list * plan.q_tiles + rank] as usize
    };
    let inside = |pairs: std::ops::Range<usize>| {
        (0..plan.q_tiles).flat_map(move |rank| pairs.clone().map(move |pair| of(rank, pair)))
    };
    sections.flat_map(inside).collect()
}

/// How the tiles of a launch are taken.
pub(crate) struct Units {
    /// Heads a section.
    pub section: usize,
    /// The last tiles in pieces, taken after the whole ones, the longest first; their own rows are the last of the lists.
    pub pieces: Vec<Piece>,
    /// How many tiles are whole.
    pub whole: usize,
}

impl Units {
    /// No tile is cut.
    pub(crate) fn whole(plan: &Plan, (batch, heads): (usize, usize), section: usize) -> Units {
        Units { section, pieces: Vec::new(), whole: batch * heads * plan.q_tiles }
    }

    /// The units with the earliest end for this number of concurrent tiles, with heads in one of these sections, the
    /// first of equal ones. A kernel that takes its tiles has its last tiles cut if that ends earlier; rows of pieces
    /// are appended to the lists and to `kept`.
    pub(crate) fn shortest(
        spec: &KernelSpec,
        plan: &mut Plan,
        kept: Option<&mut Kept>,
        (batch, heads): (usize, usize),
        sections: &[usize],
        at_once: usize,
    ) -> Units {
        let whole = Units::whole(plan, (batch, heads), sections[0]);
        let price = spec.kernel.is_persistent().then(|| Price::of(spec));
        // nothing to choose, or nothing to gain
        if (price.is_none() && sections.len() == 1) || whole.whole > WAVES * at_once {
            return whole;
        }
        let worth = if price.is_some() { WORTH_A_SECTION } else { WORTH_A_SHARED_SECTION };
        let cut_in = |section: &usize| {
            let rows = scheduled_rows(plan, batch, heads, *section);
            let work: Vec<u64> = rows.iter().map(|row| plan.work(*row)).collect();
            let (end, cut) = match price {
                Some(price) => choose(&work, at_once, price),
                None => (Busy::with(at_once, &work).end() as f64, None),
            };
            (end, *section, cut, rows, work)
        };
        let better =
            |best: (f64, _, _, _, _), next: (f64, _, _, _, _)| if next.0 < worth * best.0 { next } else { best };
        let (_, section, cut, rows, work) = sections.iter().map(cut_in).reduce(better).expect("there is a section");
        let pieces = cut.map_or_else(Vec::new, |cut| pieces(plan, kept, &rows, &work, cut));
        // of the pieces of a tile one is the first
        let cut_tiles = pieces.iter().filter(|piece| piece.part == piece.first).count();
        Units { section, pieces, whole: whole.whole - cut_tiles }
    }
}

/// Memory for a piece's result, in bytes: a thread's share of the output, two maxima and two sums.
pub(crate) fn part_bytes(spec: &KernelSpec) -> usize {
    spec.consumers() * 128 * (spec.head_dim_v.next_multiple_of(64) / 2 + 4) * 4
}

/// The cut that ends soonest, if one ends sooner than none, and when that is. `work`: kv tiles of the units, in their order.
fn choose(work: &[u64], multiprocessors: usize, price: Price) -> (f64, Option<Cut>) {
    let mut busy = Busy::new(multiprocessors);
    let odd = work.len() % multiprocessors;
    let mut tails = vec![odd, odd + multiprocessors, work.len()];
    tails.retain(|tail| (1..=work.len().min(2 * multiprocessors)).contains(tail));
    tails.sort_by_key(|tail| Reverse(*tail));
    let (mut best, mut taken, mut costs) = (None::<(f64, Cut)>, 0, Vec::new());
    for tail in tails {
        let first = work.len() - tail;
        busy.take(work[taken..first].iter().map(|w| w + START));
        taken = first;
        let longest = work[first..].iter().copied().max().unwrap_or(0);
        let a_processor = work[first..].iter().sum::<u64>().div_ceil(multiprocessors as u64).max(1);
        let mut equal: Vec<u64> = (2..=MOST).map(|count| longest.div_ceil(count).max(1)).collect();
        equal.dedup();
        let running = [1, 2].map(|n| Share::Running(a_processor.div_ceil(n)));
        for share in equal.into_iter().map(Share::Equal).chain(running) {
            let least = best.map_or(f64::INFINITY, |(end, _)| end);
            let most = share.costs(&work[first..], price, &mut costs);
            if let Some(end) = busy.sooner(&mut costs, most, price, least) {
                best = Some((end, Cut { tail, share }));
            }
        }
    }
    busy.take(work[taken..].iter().map(|w| w + START));
    let whole = busy.end() as f64;
    best.filter(|(end, _)| *end < WORTH * whole).map_or((whole, None), |(end, cut)| (end, Some(cut)))
}

/// The time when each multiprocessor has finished its units, in kv tiles.
#[derive(Clone)]
struct Busy(BinaryHeap<Reverse<u64>>);

impl Busy {
    fn new(multiprocessors: usize) -> Busy {
        Busy(vec![Reverse(0); multiprocessors].into())
    }

    /// After whole tiles of that many kv tiles.
    fn with(at_once: usize, work: &[u64]) -> Busy {
        let mut busy = Busy::new(at_once);
        busy.take(work.iter().map(|w| w + START));
        busy
    }

    /// The first free one takes the next.
    fn take(&mut self, work: impl Iterator<Item = u64>) {
        for w in work {
            let mut first = self.0.peek_mut().expect("there is a multiprocessor");
            first.0 += w;
        }
    }

    fn end(&self) -> u64 {
        self.0.iter().map(|Reverse(at)| *at).max().unwrap_or(0)
    }

    /// The end when pieces of these costs come next, of tiles that have at most `most` of them; None: not before `least`.
    fn sooner(&self, costs: &mut [u64], most: usize, price: Price, least: f64) -> Option<f64> {
        let joined = price.join * if most > 1 { most as f64 } else { 0.0 };
        // no order ends before the mean of all, nor before the longest piece: most cuts are left here
        let all = self.0.iter().map(|Reverse(at)| *at).sum::<u64>() + costs.iter().sum::<u64>();
        let bound = all.div_ceil(self.0.len() as u64).max(costs.iter().copied().max().unwrap_or(0));
        if bound as f64 + joined >= least {
            return None;
        }
        costs.sort_unstable_by_key(|cost| Reverse(*cost));
        let mut after = self.clone();
        after.take(costs.iter().copied());
        let end = after.end() as f64 + joined;
        (end < least).then_some(end)
    }
}

/// The pieces of the last tiles, the longest first.
fn pieces(plan: &mut Plan, mut kept: Option<&mut Kept>, rows: &[usize], work: &[u64], cut: Cut) -> Vec<Piece> {
    let mut known = HashMap::new();
    let mut made: Vec<(u64, Piece)> = Vec::new();
    let whole = rows.len() - cut.tail;
    for (unit, tile) in (whole..).zip(cut.share.pieces(&work[whole..])) {
        let first = made.len() as u32;
        for (begin, length) in &tile {
            let (row, range) = (rows[unit], (*begin, begin + length));
            let own = *known.entry((row, range)).or_insert_with(|| push_piece(plan, kept.as_deref_mut(), row, range));
            let (part, pieces) = (made.len() as u32, tile.len() as u32);
            made.push((*length, Piece { unit: unit as u32, row: own, part, first, pieces }));
        }
    }
    made.sort_by_key(|(length, _)| Reverse(*length));
    made.into_iter().map(|(_, piece)| piece).collect()
}

/// Appends a row that has the kv tiles `from..to` of another.
fn push_piece(plan: &mut Plan, kept: Option<&mut Kept>, row: usize, (from, to): (u64, u64)) -> u32 {
    let (mut at, mut partial_before) = (0, 0);
    let mut own = Vec::new();
    for (start, end, full) in plan.runs_of(row) {
        let past = at + u64::from(end - start);
        let clip = |x: u64| start + (x.clamp(at, past) - at) as u32;
        partial_before += if full { 0 } else { clip(from) - start };
        own.push((clip(from), clip(to), full));
        at = past;
    }
    plan.push_row(own.into_iter());
    if let Some(kept) = kept {
        kept.push_part(row, partial_before);
    }
    plan.rows() as u32 - 1
}

#[cfg(test)]
mod tests {
    use super::super::bitmap::Bitmaps;
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::backends::cuda::choose;
    use crate::backends::cuda::choose::tests::{problem, window};
    use crate::backends::cuda::lists::pieces::*;
    use crate::backends::cuda::variant::arch::Arch;
    use crate::backends::cuda::variant::limits::Limits;
    use crate::backends::cuda::variant::spec::{MaskKind, ScoreKind};
    use crate::base::{BlockSize, Control, Lengths};

    /// At head_dim 128.
    const USUAL: Price = Price { leave: 2, join: 0.5 };

    /// Hopper's kernel of one head_dim.
    fn spec(head_dim: usize) -> KernelSpec {
        let mut shape = choose::shape(&problem(None, None));
        (shape.head_dim, shape.head_dim_v) = (head_dim, head_dim);
        KernelSpec::hopper(&shape, &Limits::of_arch("sm_90a").unwrap(), MaskKind::Bitmap, ScoreKind::Folded).unwrap()
    }

    /// Kv tiles of a row with what each is: kept whole, or the bitmap of a partial one.
    fn tiles(plan: &Plan, bits: &Bitmaps, row: usize) -> Vec<(u32, Option<u32>)> {
        let mut partial = bits.start[row] as usize;
        let mut kind = |full: bool| (!full).then(|| (bits.ids[partial], partial += 1).0);
        plan.runs_of(row)
            .flat_map(|(start, end, full)| (start..end).map(move |t| (t, full)))
            .map(|(t, full)| (t, kind(full)))
            .collect()
    }

    /// Pieces of a tile together are the tile; whole units and pieces together are every tile once. How many pieces there are.
    fn check(plan: &Plan, bits: &Bitmaps, (batch, heads): (usize, usize), section: usize, sms: usize) -> usize {
        let rows = scheduled_rows(plan, batch, heads, section);
        let (mut cut_plan, mut cut_bits) = (plan.clone(), Kept::Bits(bits.clone()));
        let units = Units::shortest(&spec(128), &mut cut_plan, Some(&mut cut_bits), (batch, heads), &[section], sms);
        let Units { pieces, whole, .. } = units;
        let cut_bits = cut_bits.bits().expect("still bits");
        let mut by_part = pieces.clone();
        by_part.sort_by_key(|piece| piece.part);
        assert!(by_part.iter().enumerate().all(|(at, piece)| piece.part as usize == at));
        let mut units: Vec<u32> = by_part.iter().map(|piece| piece.unit).collect();
        units.dedup();
        assert_eq!(rows.len() - units.len(), whole);
        assert_eq!(units, (whole as u32..rows.len() as u32).collect::<Vec<_>>());
        for tile in by_part.chunk_by(|a, b| a.unit == b.unit) {
            assert!(tile.iter().all(|piece| piece.first == tile[0].part && piece.pieces as usize == tile.len()));
            let joined: Vec<_> = tile.iter().flat_map(|piece| tiles(&cut_plan, cut_bits, piece.row as usize)).collect();
            assert_eq!(joined, tiles(plan, bits, rows[tile[0].unit as usize]));
        }
        let length = |piece: &Piece| cut_plan.work(piece.row as usize);
        assert!(pieces.is_sorted_by_key(|piece| Reverse(length(piece))));
        pieces.len()
    }

    #[test]
    fn pieces_are_their_tiles_whatever_the_mask_and_the_sections() {
        for (mask, per_head) in [(None, false), (Some(window()), false), (Some(window()), true)] {
            for (q_len, kv_len, heads, section) in
                [(300, 300, 1, 1), (1000, 2000, 6, 4), (2500, 700, 3, 3), (129, 4000, 5, 2)]
            {
                let lengths = Lengths::new(q_len, kv_len).unwrap();
                let shape = MaskShape { batch: 1, heads: if per_head { heads } else { 1 }, lengths };
                let blocks =
                    BlockMask::build(mask.as_deref(), shape, BlockSize { q: 128, kv: 128 }, &Control::new()).unwrap();
                let plan = Plan::of_mask(&blocks);
                let keep = window();
                let bits = Bitmaps::build(mask.as_ref().unwrap_or(&keep), lengths, &plan, 128, 128);
                for sms in [7, 16, 132] {
                    check(&plan, &bits, (1, heads), section, sms);
                    check(&plan, &bits, (2, heads), section, sms);
                }
            }
        }
    }

    #[test]
    fn shares_run_through_tiles_or_divide_each() {
        let work = [5, 0, 7, 3];
        assert_eq!(Share::Running(4).pieces(&work)[0], [(0, 4), (4, 1)]);
        let of = |share: Share| share.pieces(&work).into_iter().map(|t| t.iter().map(|p| p.1).collect()).collect();
        let lengths: Vec<Vec<u64>> = of(Share::Running(4));
        assert_eq!(lengths, [vec![4, 1], vec![0], vec![3, 4], vec![3]]);
        let lengths: Vec<Vec<u64>> = of(Share::Equal(3));
        assert_eq!(lengths, [vec![2, 3], vec![0], vec![2, 2, 3], vec![3]]);
    }

    #[test]
    fn an_idle_last_wave_is_filled_and_an_even_launch_left_alone() {
        let count = |tiles: usize, work: u64| choose(&vec![work; tiles], 132, USUAL).1;
        // Flux: 864 tiles, 6.5 waves; 31.03 waves; fewer tiles than multiprocessors
        for (tiles, work) in [(864, 36), (4096, 64), (64, 64), (140, 30)] {
            let cut = count(tiles, work).unwrap_or_else(|| panic!("{tiles} tiles of {work} are not cut"));
            assert!(cut.tail <= 264, "{tiles}: {cut:?}");
        }
        assert_eq!(count(132, 64), None);
        assert_eq!(count(1320, 64), None);
        assert_eq!(count(140, 1), None);
        // descending work fills its gaps without pieces
        let causal: Vec<u64> = (0..64).rev().flat_map(|i| [i + 1; 64]).collect();
        assert_eq!(choose(&causal, 132, USUAL).1, None);
        // but not if there is too little of it
        let few: Vec<u64> = (0..64).rev().map(|i| i + 1).collect();
        assert!(choose(&few, 132, USUAL).1.is_some());
    }

    #[test]
    fn short_launches_of_wide_heads_are_left_alone() {
        // causal by heads one section after the other: 2,048 tokens of 8 heads took 1.10 times as long cut; 4,096 of 7 and then
        // of one more took 0.65
        let causal = |tokens: usize, sections: &[usize]| -> Vec<u64> {
            let tiles = |heads| (1..=tokens / 128).rev().flat_map(move |i| vec![(i * 128).div_ceil(80) as u64; heads]);
            sections.iter().flat_map(|heads| tiles(*heads)).collect()
        };
        let [narrow, wide] = [128, 256].map(|dim| Price::of(&spec(dim)));
        assert!(choose(&causal(2048, &[8]), 132, narrow).1.is_some());
        assert_eq!(choose(&causal(2048, &[8]), 132, wide).1, None);
        assert!(choose(&causal(4096, &[7, 1]), 132, wide).1.is_some());
    }

    #[test]
    fn blocks_of_flex_sm80_go_in_the_sections_that_end_first() {
        let mut limits = Limits::of_arch("sm_90a").unwrap();
        limits.arch = Arch::Sm80;
        let mut shape = choose::shape(&problem(None, None));
        (shape.q_len, shape.pairs) = (8192, 16);
        let spec = KernelSpec::flash(&shape, &limits, MaskKind::Bitmap, ScoreKind::Folded);
        assert_eq!((spec.tile_q, spec.tile_kv, spec.min_blocks), (128, 64, 2));
        let units = |plan: Plan, heads, of: &[usize]| {
            let mut own = plan.clone();
            let units = Units::shortest(&spec, &mut own, None, (1, heads), of, 264);
            assert!(units.pieces.is_empty() && units.whole == heads * plan.q_tiles && own.rows() == plan.rows());
            units.section
        };
        let causal = |tokens| Plan::causal(tokens / 128, 128, tokens, 64);
        // H200, 8,192 tokens: 16 heads took 0.817 ms in fours, 0.979 in 7, 7 and 2; 32 in groups of four 1.60 by 16, 1.68 by 28
        assert_eq!(units(causal(8192), 16, &[7, 4]), 4);
        assert_eq!(units(causal(8192), 32, &[28, 16]), 16);
        // 64 heads took 3.18 ms either way
        assert_eq!(units(causal(8192), 64, &[56, 32]), 56);
    }

    #[test]
    fn heads_go_in_the_sections_that_end_first() {
        let section = |mut plan: Plan, heads, of: [usize; 2], dim| {
            Units::shortest(&spec(dim), &mut plan, None, (1, heads), &of, 132).section
        };
        // causal, 4,096 tokens, head_dim 256: 0.099 ms in 4 and 4 (uncut), 0.107 in 7 and 1 (cut)
        assert_eq!(section(Plan::causal(32, 128, 4096, 80), 8, [7, 4], 256), 4);
        // 8,192 tokens, head_dim 128: 0.355 ms in fours, 0.363 in 7, 7 and 2 (cut)
        assert_eq!(section(Plan::causal(64, 128, 8192, 128), 16, [7, 4], 128), 4);
        // where all tiles are alike the first will do
        assert_eq!(section(Plan::unmasked(64, 8192, 128), 64, [7, 4], 128), 7);
    }

    /// The end of whole tiles and of tiles in pieces behind them, each piece at USUAL's price.
    fn end_of(whole: &[u64], tiles: &[Vec<(u64, u64)>], sms: usize) -> f64 {
        let extra = |tile: &[_]| if tile.len() > 1 { START + USUAL.leave } else { START };
        let mut costs: Vec<u64> = tiles.iter().flat_map(|t| t.iter().map(|(_, length)| length + extra(t))).collect();
        costs.sort_unstable_by_key(|cost| Reverse(*cost));
        let mut busy = Busy::with(sms, whole);
        busy.take(costs.into_iter());
        let most = tiles.iter().map(Vec::len).max().filter(|count| *count > 1).unwrap_or(0);
        busy.end() as f64 + USUAL.join * most as f64
    }

    #[test]
    fn no_plan_is_made_longer_than_it_was() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut cuts = 0;
        for _ in 0..200 {
            let (tiles, most, sms) = (1 + random(400) as usize, 1 + random(90), 1 + random(140) as usize);
            let work: Vec<u64> = (0..tiles).map(|_| random(most + 1)).collect();
            let whole = Busy::with(sms, &work);
            let (reported, cut) = choose(&work, sms, USUAL);
            // no cut that ends sooner was left out
            for tail in
                [tiles % sms, tiles % sms + sms, tiles].into_iter().filter(|n| (1..=tiles.min(2 * sms)).contains(n))
            {
                let (before, last) = work.split_at(tiles - tail);
                let longest = last.iter().copied().max().unwrap_or(0);
                for share in (2..=MOST).map(|count| Share::Equal(longest.div_ceil(count).max(1))) {
                    let end = end_of(before, &share.pieces(last), sms);
                    assert!(end >= WORTH * whole.end() as f64 || end >= reported, "{share:?}: {end} < {reported}");
                }
            }
            if let Some(cut) = cut {
                cuts += 1;
                let first = tiles - cut.tail;
                let end = end_of(&work[..first], &cut.share.pieces(&work[first..]), sms);
                assert!(end == reported && end < whole.end() as f64);
            }
        }
        assert!(cuts > 50, "{cuts} of 200 plans are cut");
    }

    #[test]
    fn a_problem_of_few_heads_is_cut() {
        let problem = problem(None, None);
        let plan = Plan::unmasked(8, 2048, 128);
        let mut own = plan.clone();
        let pairs = (problem.batch, problem.heads);
        let pieces = Units::shortest(&spec(128), &mut own, None, pairs, &[4], 132).pieces;
        assert!(pieces.len() > problem.batch * problem.heads * 8 && own.rows() > plan.rows());
    }
}
