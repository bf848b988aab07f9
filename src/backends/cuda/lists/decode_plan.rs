//! The division of decoding: block lists of packed heads, split into pieces of equal work, and the bits of their
//! partial tiles.
//!
//! Invariant: the joined pieces of a list equal the list; a tile is full only if every packed head keeps all of it.
//! Plain data, tested without a device. Must not know memory or launches.

use super::bitmap::{self, Bitmaps};
use super::packed::packed;
use super::plan::Plan;
use crate::analysis::block_mask::{BlockKind, BlockMask, MaskShape};
use crate::backends::cuda::variant::spec::{KernelSpec, MaskKind};
use crate::base::{BlockSize, Control, Diagnostic};
use crate::ir::tiles::Program;
use crate::problem::Problem;
use rayon::prelude::*;

/// The cost of filling and draining a block's pipeline and of joining its part, in tiles.
const OVERHEAD_TILES: usize = 4;
/// Parts of a row that are joined at most.
const MOST_SPLITS: usize = 512;

/// Runs of tiles: first, one past the last, whether every cell is kept.
type Runs = Vec<(u32, u32, bool)>;

/// Block lists of a problem's kv heads.
pub(crate) struct PackedLists {
    /// `[batch * heads]`.
    lists: Vec<Runs>,
    /// Distinct batch entries, 1 where all are the same.
    batch: usize,
    /// Distinct kv heads, likewise.
    heads: usize,
}

/// How rows and blocks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    /// Query rows that share a kv head.
    pub rows: usize,
    /// Blocks that they take.
    pub row_tiles: usize,
    /// Parts that a block makes of its keys.
    pub key_warps: usize,
}

impl Packing {
    /// For a variant.
    pub(crate) fn new(problem: &Problem, spec: &KernelSpec) -> Packing {
        let rows = problem.q_len * problem.group();
        Packing { rows, row_tiles: rows.div_ceil(spec.tile_q), key_warps: spec.warps / (spec.tile_q / 16) }
    }
}

/// All host data of a launch.
pub(crate) struct Cut {
    pub packing: Packing,
    /// Pieces of each list.
    pub splits: usize,
    /// Rows are pieces.
    pub plan: Plan,
    /// Where the mask goes in as bits.
    pub bits: Option<Bitmaps>,
}

impl Cut {
    /// For a variant of whose blocks `slots` are resident at a time. Errors: those of the block mask.
    pub(crate) fn new(problem: &Problem, spec: &KernelSpec, slots: usize) -> Result<Cut, Diagnostic> {
        let packing = Packing::new(problem, spec);
        let packed = PackedLists::new(problem, spec, &Control::new())?;
        let splits = packed.splits(problem, packing, slots);
        let plan = packed.cut(splits);
        let bits = (spec.mask == MaskKind::Bitmap).then(|| bitmaps(problem, spec, &plan));
        Ok(Cut { packing, splits, plan, bits })
    }

    /// Parts of a row of the output that are joined.
    pub(crate) fn parts(&self) -> usize {
        self.splits * self.packing.key_warps
    }

    /// Blocks of the first kernel.
    pub(crate) fn blocks(&self, problem: &Problem) -> usize {
        problem.batch * problem.kv_heads * self.splits * self.packing.row_tiles
    }
}

/// Floats of a part.
pub(crate) fn part_width(problem: &Problem) -> usize {
    problem.head_dim_v.next_multiple_of(16)
}

impl PackedLists {
    /// The lists at the variant's tile. Errors: those of the block mask.
    pub(crate) fn new(problem: &Problem, spec: &KernelSpec, control: &Control) -> Result<PackedLists, Diagnostic> {
        let tiles = problem.kv_len.div_ceil(spec.tile_kv);
        if spec.mask == MaskKind::None {
            let whole = (problem.kv_len / spec.tile_kv) as u32;
            let all = vec![(0, whole, true), (whole, tiles as u32, false)];
            return Ok(PackedLists { lists: vec![all], batch: 1, heads: 1 });
        }
        let MaskShape { batch, heads, .. } = problem.mask_shape();
        let size = BlockSize { q: problem.q_len, kv: spec.tile_kv };
        let mask = problem.block_mask(size, control)?;
        let packed = heads.div_ceil(problem.group());
        let group = heads / packed;
        let of =
            |list: usize| packed_runs(&mask, list / packed, list % packed * group..(list % packed + 1) * group, tiles);
        Ok(PackedLists { lists: (0..batch * packed).map(of).collect(), batch, heads: packed })
    }

    /// Tiles of the longest list.
    fn longest(&self) -> usize {
        self.lists.iter().map(tiles_of).max().unwrap_or(0)
    }

    fn partial_total(&self) -> usize {
        self.lists.iter().flatten().filter(|run| !run.2).map(|run| (run.1 - run.0) as usize).sum()
    }

    /// Cuts every list into `splits` pieces, the rows of the plan: piece s of list l is row `l * splits + s`.
    pub(crate) fn cut(&self, splits: usize) -> Plan {
        let mut plan = Plan::empty(splits, self.batch, self.heads);
        for runs in &self.lists {
            let total = tiles_of(runs);
            for piece in 0..splits {
                plan.push_row(between(runs, total * piece / splits, total * (piece + 1) / splits));
            }
        }
        plan.finish()
    }

    /// How many pieces keep `slots` resident blocks busy.
    pub(crate) fn splits(&self, problem: &Problem, packing: Packing, slots: usize) -> usize {
        splits(self.longest(), problem.batch * problem.kv_heads * packing.row_tiles, slots)
    }
}

fn tiles_of(runs: &Runs) -> usize {
    runs.iter().map(|(start, end, _)| (end - start) as usize).sum()
}

/// The runs of several heads as one list.
fn packed_runs(mask: &BlockMask, b: usize, heads: std::ops::Range<usize>, tiles: usize) -> Runs {
    let (mut any, mut full) = (vec![false; tiles], vec![0usize; tiles]);
    for h in heads.clone() {
        for run in mask.runs(b, h, 0) {
            any[run.start..run.end].fill(true);
            if run.kind == BlockKind::Full {
                full[run.start..run.end].iter_mut().for_each(|count| *count += 1);
            }
        }
    }
    let mut runs: Runs = Vec::new();
    for tile in (0..tiles).filter(|tile| any[*tile]) {
        let is_full = full[tile] == heads.len();
        match runs.last_mut() {
            Some((_, end, kind)) if *end == tile as u32 && *kind == is_full => *end += 1,
            _ => runs.push((tile as u32, tile as u32 + 1, is_full)),
        }
    }
    runs
}

/// Tiles `from..to` of a list, counted along its runs.
fn between(runs: &Runs, from: usize, to: usize) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
    let mut before = 0;
    runs.iter().filter_map(move |(start, end, full)| {
        let (first, past) = (before, before + (end - start) as usize);
        before = past;
        let (cut_first, cut_past) = (first.max(from), past.min(to));
        (cut_first < cut_past).then(|| (start + (cut_first - first) as u32, end - (past - cut_past) as u32, *full))
    })
}

/// Pieces of a list of `tiles`, where `blocks` blocks each work on one piece at a time and `slots` of them are resident:
/// the number that ends first.
fn splits(tiles: usize, blocks: usize, slots: usize) -> usize {
    let cost = |pieces: &usize| (blocks * pieces).div_ceil(slots.max(1)) * (tiles.div_ceil(*pieces) + OVERHEAD_TILES);
    (1..=tiles.clamp(1, MOST_SPLITS)).min_by_key(cost).unwrap_or(1)
}

/// Whether the bits of the partial tiles stay as small as those of the other kernels.
pub(crate) fn bitmaps_are_small(problem: &Problem, spec: &KernelSpec) -> bool {
    let padded = Packing::new(problem, spec).row_tiles * spec.tile_q;
    let lists = PackedLists::new(problem, spec, &Control::new());
    lists.is_ok_and(|lists| lists.partial_total() * padded <= bitmap::FEW_TILES * 128)
}

/// The bits of every partial tile of every piece: rows as they are packed, those beyond the last keep nothing.
fn bitmaps(problem: &Problem, spec: &KernelSpec, plan: &Plan) -> Bitmaps {
    let mask = problem.mask.as_deref().expect("bitmaps are only chosen where there is a mask");
    let program = Program::new(mask);
    let (packing, group, q_len) = (Packing::new(problem, spec), problem.group(), problem.q_len);
    let tile_kv = spec.tile_kv;
    let words_of = |row: usize| {
        let (b, kv_head, _) = plan.place(row);
        let words = |tile: u32| {
            let first = tile as usize * tile_kv;
            let keys = first..(first + tile_kv).min(problem.kv_len);
            let mut cells = vec![0u8; packing.row_tiles * spec.tile_q * tile_kv];
            for (g, cells) in cells.chunks_mut(q_len * tile_kv).take(group).enumerate() {
                program.mask_rows(b, kv_head * group + g, 0..q_len, keys.clone(), cells, tile_kv);
            }
            packed(&cells, tile_kv)
        };
        plan.partial_tiles(row).map(words).collect()
    };
    let rows: Vec<Vec<Vec<u32>>> = (0..plan.rows()).into_par_iter().map(words_of).collect();
    Bitmaps::join(&rows)
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::lists::decode_plan::*;
    use crate::backends::cuda::variant::limits::Limits;
    use crate::backends::cuda::variant::spec::ScoreKind;
    use crate::backends::testing::{spec, with_mods};
    use crate::base::DType;
    use crate::ir::cell::{Cell, eval};
    use crate::ir::random;
    use crate::problem::ProblemSpec;

    fn variant(problem: &Problem, arch: &str) -> KernelSpec {
        let shape = backends::cuda::choose::shape(problem);
        let mask = if problem.mask.is_some() { MaskKind::Bitmap } else { MaskKind::None };
        KernelSpec::decode(&shape, &Limits::of_arch(arch).unwrap(), mask, ScoreKind::Folded).expect("few rows")
    }

    /// Every cell is kept by exactly one piece if the mask keeps it, and by none otherwise.
    fn check(problem: &Problem, arch: &str, splits: usize) {
        let spec = variant(problem, arch);
        let lists = PackedLists::new(problem, &spec, &Control::new()).unwrap();
        let plan = lists.cut(splits);
        assert_eq!(plan.rows(), lists.lists.len() * splits);
        let bits = problem.mask.is_some().then(|| bitmaps(problem, &spec, &plan));
        let packing = Packing::new(problem, &spec);
        let padded = packing.row_tiles * spec.tile_q;
        for (b, h, q) in places(problem) {
            let (kv_head, row) = (h / problem.group(), h % problem.group() * problem.q_len + q);
            let list = plan.list(b, kv_head);
            let mut kept = vec![0; problem.kv_len];
            for piece in list * splits..(list + 1) * splits {
                let mut partial = bits.as_ref().map_or(0, |bits| bits.start[piece] as usize);
                let runs = &plan.runs[plan.row_start[piece] as usize..plan.row_start[piece + 1] as usize];
                for (tile, full) in runs.iter().flat_map(|[s, e]| (*s..e & !(1 << 31)).map(move |t| (t, e >> 31 == 1)))
                {
                    for column in 0..spec.tile_kv {
                        let kv = tile as usize * spec.tile_kv + column;
                        let keep = match &bits {
                            _ if full => true,
                            None => kv < problem.kv_len,
                            Some(bits) => {
                                let word = bits.words[(bits.ids[partial] as usize * padded + row) * 4 + column / 2 % 4];
                                word >> (2 * (column / 8) + column % 2) & 1 == 1
                            }
                        };
                        assert!(!keep || kv < problem.kv_len);
                        if keep {
                            kept[kv] += 1;
                        }
                    }
                    partial += usize::from(!full);
                }
            }
            for (kv, kept) in kept.into_iter().enumerate() {
                let [b, h, q_idx, kv_idx] = [b, h, q, kv].map(|x| x as i64);
                let cell = Cell { b, h, q_idx, kv_idx, score: 0.0 };
                let wanted = problem.mask.as_deref().is_none_or(|mask| eval(mask, &cell).as_bool());
                assert_eq!(kept, usize::from(wanted), "b {b} h {h} q {q} kv {kv}");
            }
        }
    }

    fn places(problem: &Problem) -> impl Iterator<Item = (usize, usize, usize)> {
        let (heads, q_len) = (problem.heads, problem.q_len);
        (0..problem.batch * heads * q_len).map(move |i| (i / q_len / heads, i / q_len % heads, i % q_len))
    }

    #[test]
    fn pieces_keep_what_the_mask_keeps() {
        for (seed, (group, q_len, kv_len)) in
            [(1, 1, 300), (4, 1, 513), (2, 7, 400), (3, 30, 256), (1, 64, 290)].into_iter().enumerate()
        {
            let shape = spec(2, 2 * group, 2, q_len, kv_len, 128);
            let options = random::Options { batch: 2, heads: 2 * group, ..random::Options::new(q_len, kv_len) };
            let mask = random::mask(seed as u64, &options);
            let masked = with_mods(ProblemSpec { dtype: DType::BF16, ..shape.clone() }, Some(mask), None);
            let plain = with_mods(ProblemSpec { dtype: DType::BF16, ..shape }, None, None);
            for (arch, splits) in [("sm_90a", 1), ("sm_89", 3), ("sm_80", 9)] {
                check(&masked, arch, splits);
                check(&plain, arch, splits);
            }
        }
    }

    #[test]
    fn splits_fill_the_device_and_no_more() {
        assert_eq!(splits(2048, 8, 264), 33);
        assert_eq!(splits(512, 64, 264), 4);
        assert_eq!(splits(512, 1024, 264), 1);
        assert_eq!(splits(0, 1, 264), 1);
        assert!(splits(4, 1, 264) <= 4);
    }
}
