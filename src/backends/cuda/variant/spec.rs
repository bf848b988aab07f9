//! The forward kernel variant of a problem: tiles, warps, stages, mask and score kinds, chosen by a pure function of
//! the problem's formats and the device's limits.
//!
//! Invariant: a chosen spec's shared memory fits the device's opt-in limit. Must not know mods, memory or compilers.

use super::limits::Limits;
use super::tiles;
use super::tiles::{DECODE, Finer, HOPPER, HopperTiles, LINKED, MIDDLE, NARROW, SHORT, Tiles, WIDE};
use crate::base::DType;

/// How a kernel decides which cells of a partial tile it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskKind {
    /// Only the end of the keys.
    None,
    /// The emitted mask_mod, cell by cell.
    Formula,
    /// Bytes in memory.
    Dense,
    /// `q_idx >= kv_idx`.
    Causal,
    /// Bits evaluated on the host, loaded per tile: the kernel is the same for every mask. flex uses it if few enough
    /// tiles are partial.
    Bitmap,
    /// One range of keys per row, from which the kernel computes a partial tile's bits: the kernel is the same for
    /// every such mask. flex uses it with more partial tiles.
    Interval,
}

/// The treatment of a score before the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScoreKind {
    /// Nothing: the scale is folded into the softmax's exponent. Needs a positive scale.
    Folded,
    /// Times the scale.
    Scaled,
    /// Times the scale, then the emitted score_mod.
    Mod,
    /// Left, like a mask by formula, to a part that is linked to the kernel.
    Linked,
}

/// Which source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// `flex_sm90.cu`: block-sparse attention with Hopper's tensor copies and warpgroup products.
    FlexSm90,
    /// `flex_sm80.cu`: block-sparse flash attention, also behind `sdpa` and `flash_attention_2`.
    FlexSm80,
    /// `decode_sm80.cu`: few query rows over many keys, which are split over blocks.
    DecodeSm80,
    /// `eager.cu`: scores materialised.
    Eager,
}

impl Kernel {
    /// Every one.
    pub const ALL: [Kernel; 4] = [Kernel::FlexSm90, Kernel::FlexSm80, Kernel::DecodeSm80, Kernel::Eager];

    /// Its name in messages and file names.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::FlexSm90 => "flex_sm90",
            Kernel::FlexSm80 => "flex_sm80",
            Kernel::DecodeSm80 => "decode_sm80",
            Kernel::Eager => "eager",
        }
    }

    /// How its tiles get into shared memory.
    pub fn copies(self) -> Copies {
        match self {
            Kernel::FlexSm90 => Copies::Tensors,
            Kernel::FlexSm80 | Kernel::DecodeSm80 | Kernel::Eager => Copies::Threads,
        }
    }

    /// Warpgroups of a block that only copy.
    pub fn producers(self) -> usize {
        match self.copies() {
            Copies::Tensors => 1,
            Copies::Threads => 0,
        }
    }

    /// Whether a block takes one tile after the other until none is left, and the last tiles may be cut into pieces.
    pub fn is_persistent(self) -> bool {
        match self {
            Kernel::FlexSm90 => true,
            Kernel::FlexSm80 | Kernel::DecodeSm80 | Kernel::Eager => false,
        }
    }

    /// The entry whose resources are reported.
    pub fn entry(self) -> &'static str {
        match self {
            Kernel::FlexSm90 => "flex_hopper",
            Kernel::FlexSm80 => "flex_forward",
            Kernel::DecodeSm80 => "decode_forward",
            Kernel::Eager => "eager_scores",
        }
    }
}

/// How tiles get from global into shared memory, on which the layout there depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// By tensor maps: whole tiles, swizzled.
    Tensors,
    /// By each thread's own asynchronous copies, in padded rows.
    Threads,
}

/// All inputs of the variant's text other than the mods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelSpec {
    /// Source file.
    pub kernel: Kernel,
    /// BF16 or F16.
    pub dtype: DType,
    /// For q and k.
    pub head_dim: usize,
    /// For v and the output.
    pub head_dim_v: usize,
    /// Query rows of a block.
    pub tile_q: usize,
    /// Keys of one step.
    pub tile_kv: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Buffers for k.
    pub stages: usize,
    /// Buffers for v; as many but on Hopper.
    pub v_stages: usize,
    /// Buffers for q; 1 but on Hopper.
    pub q_stages: usize,
    /// Hopper: whether the running maximum may lag, so that most tiles rescale nothing.
    pub lag: bool,
    /// Hopper: whether a row's first maximum serves to its end.
    pub bounded: bool,
    /// Blocks a multiprocessor that registers are limited for.
    pub min_blocks: usize,
    /// Mask kind.
    pub mask: MaskKind,
    /// Score kind.
    pub score: ScoreKind,
    /// Whether the rows' largest scores are written too. A row's running maximum is exact then.
    pub max_scores: bool,
}

/// The inputs of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// BF16 or F16.
    pub dtype: DType,
    /// For q and k.
    pub head_dim: usize,
    /// For v and the output.
    pub head_dim_v: usize,
    /// Query tokens.
    pub q_len: usize,
    /// Key and value tokens.
    pub kv_len: usize,
    /// Batch entries times query heads.
    pub pairs: usize,
    /// Query heads a kv head.
    pub group: usize,
    /// The score mod's cost per cell, in instructions, approximately; 0 without one.
    pub score_weight: u32,
    /// Whether its range is so small that a row's first maximum serves to the row's end (`bound.rs`).
    pub score_bounded: bool,
}

/// Words in which Hopper's producers describe a query tile; two tiles are described at a time (`ticket` in
/// pipeline_sm90.cuh).
const TICKET_WORDS: usize = 11;
/// A score mod up to this weight needs almost no registers.
pub(crate) const LIGHT: u32 = 8;
/// From this weight on, per cell and in instructions, a kernel contains a mod's text for some groups of eight columns
/// only, and loops over the scores: unrolling all would give a hundred kilobytes of code, and take many seconds to
/// compile.
pub(crate) const HEAVY: u32 = 96;

/// Query tokens up to which keys are split over blocks, and keys from which that pays.
const DECODE_Q_LEN: usize = 64;
const DECODE_KV_LEN: usize = 256;

impl KernelSpec {
    /// The kernel for few query rows over many keys, if the shape has them. The rows of the query heads of a kv head
    /// are packed: 16, 32 or 64 rows per block.
    pub fn decode(shape: &Shape, limits: &Limits, mask: MaskKind, score: ScoreKind) -> Option<KernelSpec> {
        if shape.q_len > DECODE_Q_LEN || shape.kv_len < DECODE_KV_LEN {
            return None;
        }
        let tile_q = (shape.q_len * shape.group).next_power_of_two().clamp(16, 64);
        // a warp has 16 rows and at least a fragment's 16 keys
        let whole = |rows: usize, tiles: &Tiles| rows <= tiles.warps && tiles.kv * rows >= 16 * tiles.warps;
        let candidates =
            DECODE.iter().filter(|tiles| whole(tile_q / 16, tiles)).map(|tiles| Tiles { q: tile_q, ..*tiles });
        let candidates = candidates.map(|tiles| Self::with_tiles(Kernel::DecodeSm80, shape, tiles, mask, score));
        Some(Self::first_that_fits(candidates, limits))
    }

    /// Hopper's kernel for a shape, if it suits: heads wide enough that padding them to 64 loses little, and more than
    /// one warpgroup of queries.
    pub fn hopper(shape: &Shape, limits: &Limits, mask: MaskKind, score: ScoreKind) -> Option<KernelSpec> {
        let (qk, v) = (shape.head_dim.next_multiple_of(64), shape.head_dim_v.next_multiple_of(64));
        // the output goes through q's buffer
        let suits = limits.arch.has_wgmma() && shape.head_dim.min(shape.head_dim_v) > 32 && v <= qk && shape.q_len > 64;
        let row = HOPPER.iter().find(|row| qk <= row.widest_qk && v <= row.widest_v).filter(|_| suits)?;
        let HopperTiles { consumers, stages, v_stages, q_stages, lag, .. } = *row;
        let Shape { dtype, head_dim, head_dim_v, score_weight, score_bounded, .. } = *shape;
        let tile_kv = if score_weight > LIGHT { row.kv_under_a_mod } else { row.kv };
        let spec = KernelSpec {
            kernel: Kernel::FlexSm90,
            dtype,
            head_dim,
            head_dim_v,
            tile_q: 64 * consumers,
            tile_kv,
            warps: 4 * (consumers + 1),
            stages,
            v_stages,
            q_stages,
            lag,
            bounded: score_bounded && score == ScoreKind::Mod,
            min_blocks: 1,
            mask,
            score,
            max_scores: false,
        };
        (spec.shared_bytes() <= limits.shared_per_block).then_some(spec)
    }

    /// Variants of Hopper's kernel with smaller tiles, and the time of a cell with each over this one's.
    pub fn finer(&self, limits: &Limits) -> impl Iterator<Item = (KernelSpec, f64)> {
        let (qk, v) = (self.head_dim.next_multiple_of(64), self.head_dim_v.next_multiple_of(64));
        let row = HOPPER.iter().find(|row| qk <= row.widest_qk && v <= row.widest_v);
        let row = row.filter(|_| self.kernel == Kernel::FlexSm90);
        let (own, limits) = (*self, *limits);
        let spec = move |tiles: &Finer| {
            let Finer { consumers, kv, stages: [stages, v_stages, q_stages], blocks, cost } = *tiles;
            let spec = KernelSpec { stages, v_stages, q_stages, min_blocks: blocks, ..own };
            (
                KernelSpec { tile_q: 64 * consumers, tile_kv: kv.min(own.tile_kv), warps: 4 * (consumers + 1), ..spec },
                cost,
            )
        };
        row.into_iter().flat_map(|row| row.finer).map(spec).filter(move |(spec, _)| spec.fits(&limits))
    }

    /// The flash kernel for a shape on a device.
    pub fn flash(shape: &Shape, limits: &Limits, mask: MaskKind, score: ScoreKind) -> KernelSpec {
        let width = shape.head_dim.max(shape.head_dim_v);
        let short = shape.q_len.div_ceil(128) * shape.pairs < limits.multiprocessors && width <= 128;
        // a heavy mod determines the time with any tile, and needs its registers
        let heavy = width <= 128 && shape.score_weight > HEAVY;
        let table = match width {
            _ if short || heavy => SHORT,
            0..=64 => NARROW,
            65..=128 => MIDDLE,
            _ => WIDE,
        };
        let candidates = table.iter().map(|c| Self::with_tiles(Kernel::FlexSm80, shape, *c, mask, score));
        Self::first_that_fits(candidates, limits)
    }

    /// The flash kernel to which mods are linked: small tiles, because a thread's scores wait in memory for the call.
    pub fn linked(shape: &Shape, limits: &Limits, mask: MaskKind) -> KernelSpec {
        let wide = shape.head_dim.max(shape.head_dim_v) > 128;
        let candidates = LINKED.iter().skip(usize::from(wide));
        let made = candidates.map(|c| Self::with_tiles(Kernel::FlexSm80, shape, *c, mask, ScoreKind::Linked));
        Self::first_that_fits(made, limits)
    }

    /// The eager kernels for a shape on a device.
    pub fn eager(shape: &Shape, limits: &Limits, mask: MaskKind, score: ScoreKind) -> KernelSpec {
        let score = if score == ScoreKind::Folded { ScoreKind::Scaled } else { score };
        let wide = shape.head_dim.max(shape.head_dim_v) > 128;
        let candidates = tiles::EAGER.iter().skip(usize::from(wide));
        Self::first_that_fits(candidates.map(|c| Self::with_tiles(Kernel::Eager, shape, *c, mask, score)), limits)
    }

    fn with_tiles(kernel: Kernel, shape: &Shape, tiles: Tiles, mask: MaskKind, score: ScoreKind) -> KernelSpec {
        let Shape { dtype, head_dim, head_dim_v, .. } = *shape;
        Self {
            kernel,
            dtype,
            head_dim,
            head_dim_v,
            tile_q: tiles.q,
            tile_kv: tiles.kv,
            warps: tiles.warps,
            stages: tiles.stages,
            v_stages: tiles.stages,
            q_stages: 1,
            lag: false,
            bounded: false,
            min_blocks: tiles.blocks,
            mask,
            score,
            max_scores: false,
        }
    }

    /// The same, with the rows' largest scores where `asked`.
    pub fn with_max_scores(self, asked: bool) -> KernelSpec {
        KernelSpec { max_scores: asked, bounded: self.bounded && !asked, ..self }
    }

    /// Blocks that a device computes at once.
    pub fn at_once(&self, limits: &Limits) -> usize {
        limits.multiprocessors * self.min_blocks
    }

    /// The first candidate whose blocks fit, as many of them as it is tuned for; the last fits one block anywhere.
    fn first_that_fits(candidates: impl Iterator<Item = KernelSpec> + Clone, limits: &Limits) -> KernelSpec {
        candidates.clone().find(|spec| spec.fits(limits)).or(candidates.last()).expect("a table of tiles is not empty")
    }

    /// Whether as many blocks as the variant is tuned for have room on a multiprocessor; the system keeps 1 KB of each.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        let bytes = self.shared_bytes();
        bytes <= limits.shared_per_block && (bytes + 1024) * self.min_blocks <= limits.shared_per_sm
    }

    /// Dynamic shared memory of a block, bytes.
    pub fn shared_bytes(&self) -> usize {
        if self.kernel.copies() == Copies::Tensors {
            let (qk, v) = (self.head_dim.next_multiple_of(64), self.head_dim_v.next_multiple_of(64));
            let of_keys = self.tile_kv * (self.stages * qk + self.v_stages * v);
            let buffers = 2 * (self.q_stages * self.tile_q * qk + of_keys);
            let barriers = 2 * (self.q_stages + self.stages + self.v_stages + self.consumers() + 1);
            let words = self.stages + 2 * TICKET_WORDS + self.consumers();
            // the bits of a partial tile
            let bits = if self.mask == MaskKind::Bitmap { 16 * self.tile_q } else { 0 };
            return buffers + bits + 8 * barriers + 4 * words;
        }
        let (qk, v) = (pitch_bytes(self.head_dim), pitch_bytes(self.head_dim_v));
        self.tile_q * qk.max(v) + self.stages * self.tile_kv * (qk + v)
    }

    /// Warpgroups of a block that compute: on Hopper one copies.
    pub fn consumers(&self) -> usize {
        self.warps / 4 - self.kernel.producers()
    }

    /// Threads of a block.
    pub fn threads(&self) -> usize {
        self.warps * 32
    }

    /// The macros that select the variant.
    pub fn defines(&self) -> String {
        let mask = match self.mask {
            MaskKind::None => 0,
            MaskKind::Formula => 1,
            MaskKind::Dense => 2,
            MaskKind::Causal => 3,
            MaskKind::Bitmap => 4,
            MaskKind::Interval => 5,
        };
        let score = match self.score {
            ScoreKind::Folded => 0,
            ScoreKind::Scaled => 1,
            ScoreKind::Mod => 2,
            ScoreKind::Linked => 3,
        };
        let values = [
            ("BF16", usize::from(self.dtype == DType::BF16)),
            ("HEAD_DIM", self.head_dim),
            ("HEAD_DIM_V", self.head_dim_v),
            ("TILE_Q", self.tile_q),
            ("TILE_KV", self.tile_kv),
            ("WARPS", self.warps),
            ("STAGES", self.stages),
            ("V_STAGES", self.v_stages),
            ("Q_STAGES", self.q_stages),
            ("CONSUMERS", self.consumers()),
            ("QK_WIDTH", self.head_dim.next_multiple_of(64)),
            ("V_WIDTH", self.head_dim_v.next_multiple_of(64)),
            ("LAG", usize::from(self.lag && !self.bounded)),
            ("BOUNDED", usize::from(self.bounded)),
            ("MIN_BLOCKS", self.min_blocks),
            ("MASK", mask),
            ("SCORE", score),
            ("MAX_SCORES", usize::from(self.max_scores)),
        ];
        values.map(|(name, value)| format!("#define ML_{name} {value}\n")).concat()
    }

    /// Short name of the variant: `flex_sm80 128x64 d128 bf16 mask:formula`.
    pub fn name(&self) -> String {
        let dtype = if self.dtype == DType::BF16 { "bf16" } else { "f16" };
        let width = if self.head_dim == self.head_dim_v {
            format!("d{}", self.head_dim)
        } else {
            format!("d{}/{}", self.head_dim, self.head_dim_v)
        };
        let mask = match self.mask {
            MaskKind::None => "none",
            MaskKind::Formula => "formula",
            MaskKind::Dense => "dense",
            MaskKind::Causal => "causal",
            MaskKind::Bitmap => "bitmap",
            MaskKind::Interval => "interval",
        };
        let score = match self.score {
            ScoreKind::Folded | ScoreKind::Scaled => "",
            ScoreKind::Mod if self.bounded => " score:bounded",
            ScoreKind::Mod => " score:mod",
            ScoreKind::Linked => " mods:linked",
        };
        let aux = if self.max_scores { " max_scores" } else { "" };
        format!("{} {}x{} {width} {dtype} mask:{mask}{score}{aux}", self.kernel.name(), self.tile_q, self.tile_kv)
    }
}

/// Bytes of a row in shared memory: padded to 16 elements, plus one chunk so that the chunk count is odd.
fn pitch_bytes(width: usize) -> usize {
    (width.next_multiple_of(16) / 8 + 1) * 16
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::variant::arch::NAMES;
    use crate::backends::cuda::variant::spec::*;

    fn shape(head_dim: usize, head_dim_v: usize, q_len: usize) -> Shape {
        Shape {
            dtype: DType::BF16,
            head_dim,
            head_dim_v,
            q_len,
            kv_len: 8192,
            pairs: 64,
            group: 4,
            score_weight: 0,
            score_bounded: false,
        }
    }

    fn suits_hopper(d: usize, dv: usize, q_len: usize) -> bool {
        d > 32 && dv > 32 && q_len > 64 && dv.div_ceil(64) <= d.div_ceil(64)
    }

    #[test]
    fn every_choice_fits_its_device() {
        for arch in NAMES.into_iter().chain(["sm_87"]) {
            let limits = Limits::of_arch(arch).unwrap();
            for d in 1..=256 {
                for dv in [1, 16, 64, 96, 128, 200, 256, d] {
                    for q_len in [1, 128, 8192] {
                        let shape = shape(d, dv, q_len);
                        let flash = KernelSpec::flash(&shape, &limits, MaskKind::Formula, ScoreKind::Folded);
                        let eager = KernelSpec::eager(&shape, &limits, MaskKind::Formula, ScoreKind::Folded);
                        let hopper = KernelSpec::hopper(&shape, &limits, MaskKind::Bitmap, ScoreKind::Folded);
                        assert!(hopper.is_none() || arch == "sm_90a");
                        assert_eq!(
                            hopper.is_some(),
                            arch == "sm_90a" && suits_hopper(d, dv, q_len),
                            "d{d}/{dv} q {q_len}"
                        );
                        let decode = KernelSpec::decode(&shape, &limits, MaskKind::Bitmap, ScoreKind::Folded);
                        assert_eq!(decode.is_some(), q_len == 1);
                        if let Some(spec) = decode {
                            let (rows, keys) = (spec.tile_q / 16, spec.tile_kv);
                            assert!(spec.shared_bytes() <= limits.shared_per_block, "{arch} {}", spec.name());
                            assert!(spec.warps % rows == 0 && keys * rows % (16 * spec.warps) == 0 && spec.stages > 1);
                        }
                        for spec in [flash, eager] {
                            assert!(spec.shared_bytes() <= limits.shared_per_block, "{arch} {}", spec.name());
                            assert_eq!(spec.tile_q % (16 * spec.warps), 0);
                        }
                    }
                }
            }
        }
    }

    /// Consumer cards give a block 99 KB; every variant of every kernel stays within that, for any shape.
    #[test]
    fn consumer_cards_never_need_more_than_99_kilobytes() {
        for arch in ["sm_86", "sm_89", "sm_120"] {
            let limits = Limits::of_arch(arch).unwrap();
            assert_eq!((limits.shared_per_block, limits.arch.has_wgmma()), (99 << 10, false));
            let widths = (1..=256).flat_map(|d| [1, 32, 64, 96, 128, 192, 255, 256, d].map(|dv| (d, dv)));
            for (head_dim, head_dim_v) in widths {
                for (q_len, group) in [(1, 1), (1, 8), (5, 4), (30, 1), (64, 2), (65, 1), (8192, 4)] {
                    let shape = Shape { q_len, group, ..shape(head_dim, head_dim_v, q_len) };
                    for (mask, score) in [
                        (MaskKind::None, ScoreKind::Folded),
                        (MaskKind::Formula, ScoreKind::Mod),
                        (MaskKind::Dense, ScoreKind::Scaled),
                    ] {
                        let decode = KernelSpec::decode(&shape, &limits, mask, score);
                        let (flash, eager) = (
                            KernelSpec::flash(&shape, &limits, mask, score),
                            KernelSpec::eager(&shape, &limits, mask, score),
                        );
                        let linked = KernelSpec::linked(&shape, &limits, mask);
                        for spec in [flash, eager, linked].into_iter().chain(decode) {
                            assert!(spec.shared_bytes() <= 99 << 10, "{arch} {}: {}", spec.name(), spec.shared_bytes());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn hoppers_tickets_are_as_long_as_the_kernel_says() {
        let text = include_str!("../../../../kernels/pipeline_sm90.cuh");
        let (_, ticket) = text.split_once("namespace ticket {").expect("tickets are declared");
        assert!(ticket.contains(&format!("constexpr int WORDS = {TICKET_WORDS};")));
    }

    #[test]
    fn hoppers_tiles_leave_room_for_bitmaps() {
        let limits = Limits::of_arch("sm_90a").unwrap();
        for row in HOPPER {
            let shape = shape(row.widest_qk, row.widest_v, 8192);
            let spec = KernelSpec::hopper(&shape, &limits, MaskKind::Formula, ScoreKind::Folded).expect("suits");
            let with = KernelSpec { mask: MaskKind::Bitmap, ..spec };
            assert!(with.shared_bytes() <= limits.shared_per_block, "{}: {}", with.name(), with.shared_bytes());
            assert_eq!(with.shared_bytes() - spec.shared_bytes(), spec.tile_q * 16, "the bits of a row's tile");
        }
    }

    #[test]
    fn few_rows_over_many_keys_are_split_and_packed() {
        let of = |arch: &str, q_len: usize, kv_len: usize, group: usize, d: usize| {
            let shape = Shape { kv_len, group, ..shape(d, d, q_len) };
            let spec = KernelSpec::decode(&shape, &Limits::of_arch(arch).unwrap(), MaskKind::None, ScoreKind::Folded);
            spec.map(|s| (s.tile_q, s.tile_kv, s.warps, s.stages, s.min_blocks))
        };
        assert_eq!(of("sm_90a", 1, 32_768, 4, 128), Some((16, 64, 4, 3, 2)));
        assert_eq!(of("sm_90a", 1, 32_768, 4, 64), Some((16, 64, 4, 4, 2)));
        assert_eq!(of("sm_90a", 8, 32_768, 8, 128), Some((64, 64, 4, 2, 2)));
        assert_eq!(of("sm_80", 1, 32_768, 1, 128), Some((16, 64, 4, 2, 2)));
        assert_eq!(of("sm_89", 1, 32_768, 1, 256), Some((16, 32, 2, 2, 1)));
        assert_eq!(of("sm_90a", 65, 32_768, 1, 128), None);
        assert_eq!(of("sm_90a", 1, 255, 1, 128), None);
    }

    #[test]
    fn measured_best_tiles_are_chosen_on_hopper_and_smaller_ones_on_ada() {
        let name = |arch: &str, d: usize, q_len: usize| {
            let limits = Limits::of_arch(arch).unwrap();
            let spec = KernelSpec::flash(&shape(d, d, q_len), &limits, MaskKind::None, ScoreKind::Folded);
            (spec.tile_q, spec.tile_kv, spec.warps, spec.stages)
        };
        assert_eq!(name("sm_90a", 128, 8192), (128, 64, 4, 2));
        assert_eq!(name("sm_90a", 64, 8192), (128, 64, 4, 2));
        assert_eq!(name("sm_80", 128, 8192), (128, 64, 4, 1));
        assert_eq!(name("sm_89", 128, 8192), (128, 64, 8, 1));
        assert_eq!(name("sm_89", 256, 8192), (64, 64, 4, 1));
        assert_eq!(name("sm_90a", 128, 1).0, 64);
    }
}
