//! The backward kernel of a problem: tiles, buffers and macros, chosen by a pure function of the shape and the device's
//! limits.
//!
//! Invariant: a chosen variant's shared memory is its kernel's, and fits the device. Must not know mods, memory or
//! compilers.

use super::limits::Limits;
use super::spec::{MaskKind, Shape};
use crate::base::{DType, Diagnostic};

/// Which source file of the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BackwardKernel {
    /// `backward_sm90.cu`: widths of 64 and 128.
    Hopper,
    /// `backward_wide_sm90.cu`: head dims above 128, those of keys and values each padded to 128, 192 or 256.
    HopperWide,
    /// `backward_sm80.cu`.
    Ampere,
}

/// The score mod's requirements for the backward kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BackwardMods {
    /// Whether there is a score mod.
    pub score: bool,
    /// Whether its derivative is computed; else it is 1.
    pub grad: bool,
    /// Reads in one cell of captured tensors that get gradients.
    pub reads: usize,
}

impl BackwardMods {
    /// Whether captured tensors get gradients.
    pub(crate) fn captures(&self) -> bool {
        self.reads > 0
    }

    /// Whether reads that are alike are done one after the other (`families.cuh`).
    pub(crate) fn in_families(&self) -> bool {
        self.reads > MOST_READS
    }
}

/// The caller's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BackwardWays {
    /// Whether parts of dq are added in one order, and captured tensors' gradients so that no order changes them.
    pub deterministic: bool,
    /// Whether the lse has a gradient.
    pub d_lse: bool,
}

/// All inputs of the backward kernels' text other than the mods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BackwardSpec {
    pub kernel: BackwardKernel,
    pub dtype: DType,
    pub head_dim: usize,
    pub head_dim_v: usize,
    pub tile_q: usize,
    pub tile_kv: usize,
    /// Head dims as the kernel pads them.
    pub qk_width: usize,
    pub v_width: usize,
    /// Per block.
    pub warps: usize,
    /// Ampere's: whether two warps share their keys.
    pub split: bool,
    /// Tiles of queries in shared memory; on Hopper those of d_o and dS.
    pub stages: usize,
    /// Hopper's tiles of q in shared memory.
    pub q_stages: usize,
    /// Whether a thread's four sums are added one by one.
    pub singly: bool,
    pub mask: MaskKind,
    pub mods: BackwardMods,
    pub ways: BackwardWays,
    /// Whether the heads of a group, if they have one list, walk a tile before the next tile.
    pub together: bool,
}

/// Buffers of Hopper's kernels for d_o and dS; k and v have one.
const HOPPER_STAGES: usize = 2;
/// Reads of learned tensors in one cell up to which Hopper's kernels are tried: each wants registers, and with 128 of them ptxas
/// takes minutes for code that spills 86 KB.
pub(crate) const MOST_READS: usize = 32;
/// Buffers of Hopper's kernels for q. With tiles of 128 queries the third gives a copy one more tile's time.
const Q_STAGES: [usize; 2] = [2, 3];

/// A variant of Ampere's kernel.
#[derive(Clone, Copy)]
struct Tiles {
    /// Query rows of a step.
    q: usize,
    /// Warps of a block.
    warps: usize,
    /// Whether two warps share their keys.
    split: bool,
    /// Tiles of queries in shared memory.
    stages: usize,
}

const fn tiles(q: usize, warps: usize, split: bool, stages: usize) -> Tiles {
    Tiles { q, warps, split, stages }
}

/// Ampere's tiles for heads up to 64, up to 128 and wider, best first.
const NARROW: &[Tiles] = &[tiles(64, 4, false, 2), tiles(64, 4, false, 1)];
const MIDDLE: &[Tiles] = &[tiles(64, 8, false, 1), tiles(64, 4, false, 1)];
const WIDE: &[Tiles] = &[tiles(64, 8, true, 1), tiles(32, 4, true, 1)];

impl BackwardSpec {
    /// The variants for a shape on a device, the fastest first; those behind it are for mods of which the compiler makes slow code.
    /// Errors: too little shared memory.
    pub(crate) fn choices(
        shape: &Shape,
        limits: &Limits,
        mask: MaskKind,
        mods: BackwardMods,
        ways: BackwardWays,
    ) -> Result<Vec<BackwardSpec>, Diagnostic> {
        let width = shape.head_dim.max(shape.head_dim_v);
        // the wide kernel computes dS in other threads than the scores, and captured tensors with a derivative need
        // both
        let gated = width > 128 && mods.grad && mods.captures();
        let mut made = Vec::new();
        if limits.arch.has_wgmma() && !gated && mods.reads <= MOST_READS {
            // gradients of captured tensors are made of P in f32, which wants the registers of the smaller tile
            made.push(Self::hopper(shape, mods.captures(), mask, mods, ways));
            made.extend((made[0].tile_q == 128).then(|| Self::hopper(shape, true, mask, mods, ways)));
        }
        made.push(Self::ampere(shape, limits, mask, mods, ways));
        let bytes = made[0].shared_bytes();
        made.retain(|spec| spec.shared_bytes() <= limits.shared_per_block);
        if !made.is_empty() {
            return Ok(made);
        }
        let message = format!(
            "a block of the backward kernel needs {bytes} bytes of shared memory; the GPU has {}",
            limits.shared_per_block
        );
        Err(Diagnostic::error("backward-shared", message)
            .hint("use a smaller head dim, or run the backward pass on the CPU"))
    }

    /// Hopper's kernel. `small`: with tiles of 64 queries for narrow heads too, so that a thread has half of the scores.
    fn hopper(shape: &Shape, small: bool, mask: MaskKind, mods: BackwardMods, ways: BackwardWays) -> BackwardSpec {
        let wider = shape.head_dim.max(shape.head_dim_v);
        let (kernel, tile_q, tile_kv) = match wider {
            ..=64 if !small => (BackwardKernel::Hopper, 128, 128),
            ..=128 => (BackwardKernel::Hopper, 64, 128),
            _ => (BackwardKernel::HopperWide, 64, 64),
        };
        let padded = |dim: usize| match (kernel, wider) {
            // products of the wide kernel are 128, 192 or 256 columns wide
            (BackwardKernel::HopperWide, _) => dim.max(128).next_multiple_of(64),
            // both warpgroups add to the sums of a small tile of 64 columns, in no order
            (_, ..=64) if small && ways.deterministic => 128,
            _ => wider.next_multiple_of(64),
        };
        BackwardSpec {
            kernel,
            dtype: shape.dtype,
            head_dim: shape.head_dim,
            head_dim_v: shape.head_dim_v,
            tile_q,
            tile_kv,
            qk_width: padded(shape.head_dim),
            v_width: padded(shape.head_dim_v),
            warps: 12,
            split: false,
            stages: HOPPER_STAGES,
            q_stages: Q_STAGES[usize::from(tile_q == 128)],
            singly: false,
            mask,
            mods,
            ways,
            together: false,
        }
    }

    fn ampere(shape: &Shape, limits: &Limits, mask: MaskKind, mods: BackwardMods, ways: BackwardWays) -> BackwardSpec {
        let table = match shape.head_dim.max(shape.head_dim_v) {
            0..=64 => NARROW,
            65..=128 => MIDDLE,
            _ => WIDE,
        };
        let made = table.iter().map(|tiles| BackwardSpec {
            kernel: BackwardKernel::Ampere,
            dtype: shape.dtype,
            head_dim: shape.head_dim,
            head_dim_v: shape.head_dim_v,
            tile_q: tiles.q,
            tile_kv: 16 * if tiles.split { tiles.warps / 2 } else { tiles.warps },
            qk_width: shape.head_dim.next_multiple_of(32),
            v_width: shape.head_dim_v.next_multiple_of(32),
            warps: tiles.warps,
            split: tiles.split,
            stages: tiles.stages,
            q_stages: tiles.stages,
            singly: !limits.arch.adds_four_floats(),
            mask,
            mods,
            ways,
            together: false,
        });
        let fits = |spec: &BackwardSpec| spec.shared_bytes() <= limits.shared_per_block;
        made.clone().find(fits).or_else(|| made.clone().next_back()).expect("a table of tiles is not empty")
    }

    /// Whether additions to captured tensors' gradients go to bins, which no order of addition changes.
    pub(crate) fn has_bins(&self) -> bool {
        self.ways.deterministic && self.mods.captures()
    }

    /// Whether it is one of Hopper's.
    pub(crate) fn is_hopper(&self) -> bool {
        match self.kernel {
            BackwardKernel::Hopper | BackwardKernel::HopperWide => true,
            BackwardKernel::Ampere => false,
        }
    }

    /// The kernel's entry.
    pub(crate) fn entry(&self) -> &'static str {
        match self.kernel {
            BackwardKernel::Hopper => "backward_hopper",
            BackwardKernel::HopperWide => "backward_hopper_wide",
            BackwardKernel::Ampere => "backward_ampere",
        }
    }

    /// Columns of dq that one part of its sums holds.
    pub(crate) fn part_width(&self) -> usize {
        match self.kernel {
            // the columns follow one another, however many of them a warpgroup has
            BackwardKernel::Hopper | BackwardKernel::HopperWide => 64,
            BackwardKernel::Ampere => self.qk_width / (self.warps / (self.tile_q / 16)),
        }
    }

    /// Floats of dk and dv that the parts of one item add up.
    pub(crate) fn part_floats(&self) -> usize {
        match self.kernel {
            // one warpgroup has dk, the other dv, each in room for the wider
            BackwardKernel::HopperWide => 2 * self.tile_kv * self.qk_width.max(self.v_width),
            _ => self.tile_kv * (self.qk_width + self.v_width),
        }
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> usize {
        self.warps * 32
    }

    /// Words of one partial tile's bits.
    pub(crate) fn bit_words(&self) -> usize {
        2 * self.tile_kv * if self.tile_q == 128 { 2 } else { 1 }
    }

    /// Dynamic shared memory of a block, bytes.
    pub(crate) fn shared_bytes(&self) -> usize {
        let (m, n) = (self.tile_q, self.tile_kv);
        if !self.is_hopper() {
            let pitch = |width: usize| (width / 8 + 1) * 16;
            let (qk, v) = (pitch(self.qk_width), pitch(self.v_width));
            let shared_weights = if self.split { n * m * 2 } else { 0 };
            return (n + self.stages * m) * (qk + v) + n * pitch(m) + shared_weights + self.stages * m * 8;
        }
        let (stages, q_stages) = (self.stages, self.q_stages);
        let queries = m * 2 * (q_stages * self.qk_width + stages * self.v_width);
        let own = match self.kernel {
            // parts of 64 rows and columns or more, one a warpgroup
            BackwardKernel::Hopper => (m * self.qk_width).max(2 * 64 * self.part_width()) * 4,
            _ => 4 * n * m,
        };
        let bits = if self.mask == MaskKind::Bitmap { n * m / 8 } else { 0 };
        let barriers = 16 * (2 + q_stages + stages) + 16 * (2 + q_stages) + 16;
        let keys = n * 2 * (self.qk_width + self.v_width);
        keys + queries + stages * n * m * 2 + own + q_stages * (m * 8 + bits) + barriers
    }

    /// The macros that select the variant.
    pub(crate) fn defines(&self) -> String {
        let mask = match self.mask {
            MaskKind::None => 0,
            MaskKind::Interval => 5,
            MaskKind::Bitmap => 4,
            MaskKind::Formula | MaskKind::Dense | MaskKind::Causal => 1,
        };
        let values = [
            ("BF16", usize::from(self.dtype == DType::BF16)),
            ("HEAD_DIM", self.head_dim),
            ("HEAD_DIM_V", self.head_dim_v),
            ("TILE_Q", self.tile_q),
            ("TILE_KV", self.tile_kv),
            ("QK_WIDTH", self.qk_width),
            ("V_WIDTH", self.v_width),
            ("WARPS", self.warps),
            ("SPLIT", usize::from(self.split)),
            ("STAGES", self.stages),
            ("MIN_BLOCKS", 1),
            ("K_STAGES", 1),
            ("V_STAGES", 1),
            ("Q_STAGES", self.q_stages),
            ("DO_STAGES", self.stages),
            ("DS_STAGES", self.stages),
            ("DQ_BULK", usize::from(self.kernel == BackwardKernel::Hopper)),
            ("DQ_ORDER", usize::from(self.singly)),
            ("DQ_PART_WIDTH", self.part_width()),
            ("MASK", mask),
            ("SCORE", if self.mods.score { 2 } else { 0 }),
            ("GRAD", usize::from(self.mods.grad)),
            ("CAPTURES", usize::from(self.mods.captures())),
            ("FAMILIES", usize::from(self.mods.in_families())),
            ("DETERMINISTIC", usize::from(self.ways.deterministic)),
            ("TOGETHER", usize::from(self.together)),
            ("DLSE", usize::from(self.ways.d_lse)),
        ];
        values.map(|(name, value)| format!("#define ML_{name} {value}\n")).concat()
    }

    /// Short name of the variant: `backward_hopper 64x128 d128`.
    pub(crate) fn name(&self) -> String {
        let order = if self.ways.deterministic { " deterministic" } else { "" };
        format!("{} {}x{} d{}/{}{order}", self.entry(), self.tile_q, self.tile_kv, self.head_dim, self.head_dim_v)
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::variant::arch::NAMES;
    use crate::backends::cuda::variant::backward::*;

    fn shape(head_dim: usize, head_dim_v: usize) -> Shape {
        Shape {
            dtype: DType::BF16,
            head_dim,
            head_dim_v,
            q_len: 8192,
            kv_len: 8192,
            pairs: 64,
            group: 1,
            score_weight: 0,
            score_bounded: false,
        }
    }

    fn chosen(arch: &str, dim: usize, mods: BackwardMods) -> Result<BackwardSpec, Diagnostic> {
        let limits = Limits::of_arch(arch).expect("an architecture");
        let ways = BackwardWays::default();
        BackwardSpec::choices(&shape(dim, dim), &limits, MaskKind::Bitmap, mods, ways).map(|all| all[0])
    }

    #[test]
    fn hoppers_bytes_are_those_of_its_page() {
        let bytes = |dim| chosen("sm_90a", dim, BackwardMods::default()).expect("fits").shared_bytes();
        assert_eq!([64, 128, 256].map(bytes), [222_416, 199_856, 231_600]);
    }

    #[test]
    fn every_width_fits_every_device_in_whole_fragments() {
        for arch in NAMES {
            let limits = Limits::of_arch(arch).expect("an architecture");
            for dim in 1..=256 {
                let s = chosen(arch, dim, BackwardMods::default()).expect("fits");
                assert!(s.shared_bytes() <= limits.shared_per_block, "{arch} {dim}");
                assert_eq!(s.part_width() % 16, 0, "{arch} {dim}");
                assert!(s.qk_width >= dim && (s.is_hopper() == (arch == "sm_90a")), "{arch} {dim}");
            }
        }
    }

    #[test]
    fn behind_the_fastest_variant_stand_calmer_ones() {
        let names = |arch: &str, dim| -> Vec<String> {
            let (limits, mods) = (Limits::of_arch(arch).expect("an architecture"), BackwardMods::default());
            let ways = BackwardWays::default();
            let all = BackwardSpec::choices(&shape(dim, dim), &limits, MaskKind::None, mods, ways).expect("fits");
            all.iter().map(|s| format!("{} {}", s.entry(), s.tile_q)).collect()
        };
        assert_eq!(names("sm_90a", 64), ["backward_hopper 128", "backward_hopper 64", "backward_ampere 64"]);
        assert_eq!(names("sm_90a", 128), ["backward_hopper 64", "backward_ampere 64"]);
        assert_eq!(names("sm_90a", 256), ["backward_hopper_wide 64", "backward_ampere 64"]);
        assert_eq!(names("sm_89", 64), ["backward_ampere 64"]);
    }

    #[test]
    fn captures_behind_a_derivative_take_hoppers_kernel_up_to_128() {
        let mods = BackwardMods { score: true, grad: true, reads: 1 };
        assert!(!chosen("sm_90a", 192, mods).expect("fits").is_hopper());
        for dim in [64, 128] {
            let spec = chosen("sm_90a", dim, mods).expect("fits");
            assert_eq!((spec.kernel, spec.qk_width, spec.tile_q), (BackwardKernel::Hopper, dim, 64), "{dim}");
        }
        let many = BackwardMods { reads: MOST_READS + 1, ..mods };
        assert!(!chosen("sm_90a", 128, many).expect("fits").is_hopper());
        let adds = BackwardMods { grad: false, ..mods };
        let narrow = chosen("sm_90a", 24, adds).expect("fits");
        assert_eq!((narrow.qk_width, narrow.tile_q, narrow.shared_bytes()), (64, 64, 134_320));
    }

    /// Both warpgroups add to all of a small narrow tile's dq, so that the order would not be fixed.
    #[test]
    fn ordered_sums_have_one_warpgroup_a_part() {
        let (limits, mods) = (Limits::of_arch("sm_90a").expect("an architecture"), BackwardMods::default());
        let of = |deterministic| {
            let ways = BackwardWays { deterministic, d_lse: false };
            let all = BackwardSpec::choices(&shape(64, 64), &limits, MaskKind::None, mods, ways).expect("fits");
            all.iter().map(|s| (s.tile_q, s.qk_width)).collect::<Vec<_>>()
        };
        assert_eq!(of(true)[..2], [(128, 64), (64, 128)]);
        assert_eq!(of(false)[..2], [(128, 64), (64, 64)]);
    }
}
