//! The kernel that each backend compiles for a problem, with its mods and mask kind, or its refusal.
//!
//! Invariant: a refusal gives the cause and a fix, in the words of the CPU backends; a mask's cells decide whether it
//! is causal, not its text. Must not know devices or compilers.

use super::finer;
use super::variant::limits::Limits;
use super::variant::spec::{KernelSpec, MaskKind, ScoreKind, Shape};
use super::variant::{bound, exact};
use crate::backends::cuda::emit::hoist;
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::backends::cuda::lists::of_problem;
use crate::backends::cuda::lists::ranges::Ranges;
use crate::backends::cuda::lists::{bitmap, decode_plan as decode};
use crate::backends::refusals;
use crate::base::{BackendName, Control, DType, Diagnostic};
use crate::ir::graph::{BinaryOp, Input, Mod, Op};
use crate::problem::Problem;
use crate::problem::pattern::Pattern;

/// What a backend asks for; [`spec`] finds the kernel that suits the device and the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The fastest block-sparse kernel: decoding's, the architecture's own, or `flex_sm80`.
    Flex,
    /// `flex_sm80` on any device: the algorithm of `sdpa` and `flash_attention_2`.
    Flash,
    /// Materialised scores.
    Eager,
}

/// What a backend wants, and the parts that are compiled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Which kernel.
    pub want: Want,
    /// Mask kind.
    pub mask: MaskKind,
    /// Whether the problem's score mod is compiled in.
    pub score: bool,
}

impl Choice {
    /// The mods that this choice compiles in.
    pub(crate) fn mods(&self, problem: &Problem) -> LiftedMods {
        let wants_mask = matches!(self.mask, MaskKind::Formula | MaskKind::Dense);
        let mask = problem.mask.as_deref().filter(|_| wants_mask);
        LiftedMods::new(mask, problem.score.as_deref().filter(|_| self.score))
    }
}

/// `backend`'s choice for a problem, or its refusal.
pub(crate) fn choose(problem: &Problem, backend: BackendName) -> Result<Choice, Diagnostic> {
    if problem.dtype == DType::F32 {
        let message =
            "Query, key, and value must be either bfloat16 or float16, not float32: GPU kernels use tensor cores";
        return Err(Diagnostic::error("gpu-float32", message)
            .hint("set dtype to bfloat16 or float16 in the problem settings, or run float32 on the cpu"));
    }
    let formula = if problem.mask.is_some() { MaskKind::Formula } else { MaskKind::None };
    let score = problem.score.is_some();
    match backend {
        BackendName::Flex => Ok(Choice { want: Want::Flex, mask: formula, score }),
        BackendName::Eager => {
            let exact = problem.mask.as_deref().is_none_or(|mask| exact::by_formula(problem, mask));
            Ok(Choice { want: Want::Eager, mask: if exact { formula } else { MaskKind::Dense }, score })
        }
        BackendName::Sdpa => sdpa(problem),
        BackendName::FlashAttention2 => flash_attention_2(problem),
        BackendName::TorchEager
        | BackendName::TorchSdpa
        | BackendName::TorchFlex
        | BackendName::TorchFlexFlash
        | BackendName::CudnnFlex => {
            Err(Diagnostic::error("backend-not-here", format!("{backend} runs in the user's own PyTorch"))
                .hint("set the Python of your PyTorch environment in the run settings"))
        }
    }
}

fn sdpa(problem: &Problem) -> Result<Choice, Diagnostic> {
    refusals::score_mod(BackendName::Sdpa, problem)?;
    let mask = match pattern_of(problem)? {
        Pattern::Full => MaskKind::None,
        Pattern::Causal { offset: 0 } => MaskKind::Causal,
        Pattern::Causal { .. } | Pattern::Other => MaskKind::Dense,
    };
    Ok(Choice { want: Want::Flash, mask, score: false })
}

/// Full, or causal aligned bottom-right as flash-attn does it.
fn flash_attention_2(problem: &Problem) -> Result<Choice, Diagnostic> {
    refusals::score_mod(BackendName::FlashAttention2, problem)?;
    let mask = match refusals::flash_mask(problem, pattern_of(problem)?)? {
        Pattern::Full => MaskKind::None,
        Pattern::Causal { offset: 0 } => MaskKind::Causal,
        Pattern::Causal { .. } | Pattern::Other => MaskKind::Formula,
    };
    Ok(Choice { want: Want::Flash, mask, score: false })
}

/// The mask kind of a kernel without mods: by its graph if that is sufficient, otherwise by counting its cells.
fn pattern_of(problem: &Problem) -> Result<Pattern, Diagnostic> {
    match problem.mask.as_deref().map(known_mask) {
        None | Some(Known::Full) => Ok(Pattern::Full),
        // at q_len 1 or kv_len 1 causal may keep everything; both are right
        Some(Known::Causal) => Ok(Pattern::Causal { offset: 0 }),
        Some(Known::Other) => problem.pattern(&Control::new()),
    }
}

/// Masks that have a name outside FlexAttention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Keeps everything.
    Full,
    /// `q_idx >= kv_idx`.
    Causal,
    /// Anything else.
    Other,
}

/// Recognises a mask by its graph.
pub(crate) fn known_mask(mask: &Mod) -> Known {
    let input = |id| if let Op::Input(input) = mask.graph.node(id).op { Some(input) } else { None };
    match mask.graph.node(mask.root).op {
        Op::Bool(true) => Known::Full,
        Op::Binary(op, a, b) => match (op, input(a), input(b)) {
            (BinaryOp::Ge, Some(Input::QIdx), Some(Input::KvIdx)) => Known::Causal,
            (BinaryOp::Le, Some(Input::KvIdx), Some(Input::QIdx)) => Known::Causal,
            _ => Known::Other,
        },
        _ => Known::Other,
    }
}

/// Hopper's variant for the flex backend, if it is suitable.
fn hopper(problem: &Problem, choice: &Choice, shape: &Shape, limits: &Limits, score: ScoreKind) -> Option<KernelSpec> {
    let own = with_mask_as_data(problem, KernelSpec::hopper(shape, limits, choice.mask, score)?);
    let finer = finer::variant(problem, &own, limits).map(|spec| with_mask_as_data(problem, spec));
    Some(finer.unwrap_or(own))
}

/// A variant whose mask goes in as data, if it can, so that another mask needs no other kernel.
pub(crate) fn with_mask_as_data(problem: &Problem, spec: KernelSpec) -> KernelSpec {
    KernelSpec { mask: mask_kind(problem, &spec, bitmap::LIMITS), ..spec }
}

/// Errors if a variant would compute the mask by a formula that the device may round differently from the host.
pub(crate) fn check_exact(problem: &Problem, spec: &KernelSpec) -> Result<(), Diagnostic> {
    match problem.mask.as_deref() {
        Some(mask) if spec.mask == MaskKind::Formula && !exact::by_formula(problem, mask) => {
            let message = "this mask has too many partial tiles for bitmaps, and the GPU could round its formula differently \
                           than the host and keep other cells";
            Err(Diagnostic::error("mask-not-exact", message)
                .hint("compute a table or a bool tensor in the factory and read it, or shorten the lengths"))
        }
        _ => Ok(()),
    }
}

/// The form of a variant's mask: bitmaps of few partial tiles, otherwise the rows' ranges if each row keeps one, otherwise
/// bitmaps up to a second limit, otherwise the emitted formula.
fn mask_kind(problem: &Problem, spec: &KernelSpec, limits: [usize; 2]) -> MaskKind {
    let (MaskKind::Formula, Some(mask)) = (spec.mask, problem.mask.as_deref()) else { return spec.mask };
    let Ok(plan) = of_problem::plan(problem, spec, &Control::new()) else { return spec.mask };
    let keeps_ranges = || Ranges::build(mask, problem.lengths(), &plan, spec.tile_q).is_some();
    bitmap::form(plan.partial_total(), limits, keeps_ranges)
}

/// The variant for few query rows over many keys, if the problem has them; its masks are bitmaps if those are small.
fn decode(problem: &Problem, choice: &Choice, shape: &Shape, limits: &Limits, score: ScoreKind) -> Option<KernelSpec> {
    let spec = KernelSpec::decode(shape, limits, choice.mask, score)?;
    let as_bits = |mask: &Mod| decode::bitmaps_are_small(problem, &spec) || !exact::by_formula(problem, mask);
    let small = choice.mask == MaskKind::Formula && problem.mask.as_deref().is_some_and(as_bits);
    Some(KernelSpec { mask: if small { MaskKind::Bitmap } else { spec.mask }, ..spec })
}

/// The inputs of the choice of a variant.
pub(crate) fn shape(problem: &Problem) -> Shape {
    Shape {
        dtype: problem.dtype,
        head_dim: problem.head_dim,
        head_dim_v: problem.head_dim_v,
        q_len: problem.q_len,
        kv_len: problem.kv_len,
        pairs: problem.batch * problem.heads,
        group: problem.group(),
        score_weight: problem.score.as_deref().map_or(0, |score| hoist::weight(&score.graph, score.root)),
        score_bounded: bound::lowest(problem).is_some(),
    }
}

/// The variant for a problem.
pub(crate) fn spec(problem: &Problem, choice: &Choice, limits: &Limits) -> KernelSpec {
    let score = match (choice.score, problem.scale() > 0.0) {
        (true, _) => ScoreKind::Mod,
        (false, true) => ScoreKind::Folded,
        (false, false) => ScoreKind::Scaled,
    };
    let shape = shape(problem);
    let spec = match choice.want {
        Want::Flex => decode(problem, choice, &shape, limits, score)
            .or_else(|| hopper(problem, choice, &shape, limits, score))
            .unwrap_or_else(|| with_mask_as_data(problem, KernelSpec::flash(&shape, limits, choice.mask, score))),
        Want::Flash => KernelSpec::flash(&shape, limits, choice.mask, score),
        Want::Eager => KernelSpec::eager(&shape, limits, choice.mask, score),
    };
    // sdpa and flash_attention_2 have no such output in PyTorch
    spec.with_max_scores(problem.max_scores && choice.want != Want::Flash)
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::backends::cuda::choose::*;
    use crate::ir::graph::{Graph, ModKind, UnaryOp};
    use crate::problem::ProblemSpec;
    use std::sync::Arc;

    /// A mod from a function that builds its graph.
    pub(crate) fn make(kind: ModKind, build: impl FnOnce(&mut Graph) -> crate::ir::graph::NodeId) -> Arc<Mod> {
        let mut graph = Graph::new();
        let root = build(&mut graph);
        Arc::new(Mod { kind, graph, root, sources: Vec::new() })
    }

    pub(crate) fn causal() -> Arc<Mod> {
        make(ModKind::Mask, |g| {
            let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
            g.binary(BinaryOp::Ge, q, k)
        })
    }

    pub(crate) fn window() -> Arc<Mod> {
        make(ModKind::Mask, |g| {
            let (q, k, width) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(50));
            let distance = g.binary(BinaryOp::Sub, q, k);
            let distance = g.unary(UnaryOp::Abs, distance);
            g.binary(BinaryOp::Lt, distance, width)
        })
    }

    pub(crate) fn problem(mask: Option<Arc<Mod>>, score: Option<Arc<Mod>>) -> Problem {
        Problem::new(ProblemSpec { mask, score, ..ProblemSpec::plain(2, (4, 2), (300, 300), 64) })
            .expect("a valid problem")
    }

    #[test]
    fn refusals_say_what_to_do() {
        let window = make(ModKind::Mask, |g| {
            let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
            g.binary(BinaryOp::Eq, q, k)
        });
        let refused = |p: &Problem, b| {
            let why = choose(p, b).unwrap_err();
            assert!(why.hint.is_some());
            why.code.to_string()
        };
        assert_eq!(
            refused(&problem(Some(window.clone()), None), BackendName::FlashAttention2),
            "flash-mask-unsupported"
        );
        let score = make(ModKind::Score, |g| g.input(Input::Score));
        let scored = problem(None, Some(score));
        assert_eq!(refused(&scored, BackendName::Sdpa), "score-mod-unsupported");
        let mut spec = problem(Some(causal()), None).spec().clone();
        spec.kv_len = 301;
        let uneven = Problem::new(spec.clone()).unwrap();
        assert_eq!(refused(&uneven, BackendName::FlashAttention2), "flash-causal-alignment");
        spec.dtype = DType::F32;
        assert_eq!(refused(&Problem::new(spec).unwrap(), BackendName::Flex), "gpu-float32");
        let chosen = choose(&problem(Some(window), None), BackendName::Sdpa).unwrap();
        assert_eq!(chosen.mask, MaskKind::Dense);
        assert_eq!(choose(&problem(Some(causal()), None), BackendName::Sdpa).unwrap().mask, MaskKind::Causal);
    }

    #[test]
    fn masks_go_in_as_data_where_they_can() {
        let every_third = make(ModKind::Mask, |g| {
            let (q, k, three, zero) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(3), g.int(0));
            let sum = g.binary(BinaryOp::Add, q, k);
            let rest = g.binary(BinaryOp::Mod, sum, three);
            g.binary(BinaryOp::Eq, rest, zero)
        });
        // with as many bitmaps as tiles are partial, with so many for masks without ranges alone, and with one fewer
        let kinds = |mask: Option<Arc<Mod>>| {
            let p = problem(mask, None);
            let choice = choose(&p, BackendName::Flex).unwrap();
            let limits = Limits::of_arch("sm_90a").unwrap();
            let spec = KernelSpec::hopper(&shape(&p), &limits, choice.mask, ScoreKind::Folded).unwrap();
            let partial = of_problem::plan(&p, &spec, &Control::new()).unwrap().partial_total() as usize;
            [[partial; 2], [partial - 1, partial], [partial - 1; 2]].map(|most| mask_kind(&p, &spec, most))
        };
        let ranges = [MaskKind::Bitmap, MaskKind::Interval, MaskKind::Interval];
        assert_eq!(kinds(Some(causal())), ranges);
        assert_eq!(kinds(Some(window())), ranges);
        assert_eq!(kinds(Some(every_third)), [MaskKind::Bitmap, MaskKind::Bitmap, MaskKind::Formula]);
        assert_eq!(kinds(None), [MaskKind::None; 3]);
    }

    #[test]
    fn a_formula_that_a_device_rounds_otherwise_goes_in_as_the_hosts_cells() {
        let bent = |op: UnaryOp| {
            make(ModKind::Mask, |g| {
                let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
                let distance = g.binary(BinaryOp::Sub, q, k);
                let single = g.unary(UnaryOp::ToFloat, distance);
                let (bent, zero) = (g.unary(op, single), g.float(0.5));
                g.binary(BinaryOp::Gt, bent, zero)
            })
        };
        let (exact, inexact) = (problem(Some(bent(UnaryOp::Abs)), None), problem(Some(bent(UnaryOp::Sin)), None));
        let of = |p: &Problem, backend| choose(p, backend).unwrap().mask;
        assert_eq!(of(&exact, BackendName::Eager), MaskKind::Formula);
        assert_eq!(of(&inexact, BackendName::Eager), MaskKind::Dense);
        assert_eq!(of(&inexact, BackendName::Sdpa), MaskKind::Dense);
        let limits = Limits::of_arch("sm_90a").unwrap();
        let formula = |p: &Problem| KernelSpec::flash(&shape(p), &limits, MaskKind::Formula, ScoreKind::Folded);
        assert!(check_exact(&exact, &formula(&exact)).is_ok());
        let why = check_exact(&inexact, &formula(&inexact)).unwrap_err();
        assert!(why.code == "mask-not-exact" && why.hint.is_some());
        let chosen = with_mask_as_data(&inexact, formula(&inexact));
        assert!(chosen.mask == MaskKind::Bitmap && check_exact(&inexact, &chosen).is_ok());
    }

    #[test]
    fn causal_is_recognised_however_it_is_written() {
        use crate::backends::testing;
        let of = |q_len, kv_len, offset, backend| {
            let spec = ProblemSpec { dtype: DType::BF16, ..testing::spec(1, 2, 2, q_len, kv_len, 64) };
            let p = testing::with_mods(spec, Some(testing::causal(offset)), None);
            choose(&p, backend).map(|c| c.mask).map_err(|d| d.code.to_string())
        };
        assert_eq!(of(300, 300, 0, BackendName::Sdpa), Ok(MaskKind::Causal));
        assert_eq!(of(300, 300, 0, BackendName::FlashAttention2), Ok(MaskKind::Causal));
        assert_eq!(of(200, 300, 100, BackendName::FlashAttention2), Ok(MaskKind::Formula));
        assert_eq!(of(200, 300, 100, BackendName::Sdpa), Ok(MaskKind::Dense));
        assert_eq!(of(200, 300, 0, BackendName::FlashAttention2), Err("flash-causal-alignment".into()));
    }

    /// Blocks of `size` tokens, of which each row keeps one in eight, here and there.
    fn scattered(size: i64) -> Arc<Mod> {
        make(ModKind::Mask, |g| {
            let (q, k, size) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(size));
            let (row, column) = (g.binary(BinaryOp::FloorDiv, q, size), g.binary(BinaryOp::FloorDiv, k, size));
            let (three, five, eight, zero) = (g.int(3), g.int(5), g.int(8), g.int(0));
            let (row, column) = (g.binary(BinaryOp::Mul, row, three), g.binary(BinaryOp::Mul, column, five));
            let sum = g.binary(BinaryOp::Add, row, column);
            let rest = g.binary(BinaryOp::Mod, sum, eight);
            g.binary(BinaryOp::Eq, rest, zero)
        })
    }

    /// Documents of `size` tokens.
    fn diagonal(size: i64) -> Arc<Mod> {
        make(ModKind::Mask, |g| {
            let (q, k, size) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(size));
            let (row, column) = (g.binary(BinaryOp::FloorDiv, q, size), g.binary(BinaryOp::FloorDiv, k, size));
            g.binary(BinaryOp::Eq, row, column)
        })
    }

    /// Tiles and blocks of a multiprocessor.
    fn tiles(mask: Option<Arc<Mod>>, head_dim: usize, arch: &str) -> (usize, usize, usize) {
        tiles_of(ProblemSpec { mask, ..ProblemSpec::plain(1, (16, 16), (4096, 4096), head_dim) }, arch)
    }

    fn tiles_of(of: ProblemSpec, arch: &str) -> (usize, usize, usize) {
        let problem = Problem::new(of).expect("a valid problem");
        let choice = choose(&problem, BackendName::Flex).expect("flex takes it");
        let limits = Limits::of_arch(arch).expect("an architecture");
        let spec = spec(&problem, &choice, &limits);
        assert!((spec.shared_bytes() + 1024) * spec.min_blocks <= limits.shared_per_sm, "{}", spec.name());
        (spec.tile_q, spec.tile_kv, spec.min_blocks)
    }

    #[test]
    fn masks_of_small_blocks_take_small_tiles_and_others_large_ones() {
        let of = |mask: Arc<Mod>, head_dim| tiles(Some(mask), head_dim, "sm_90a");
        // one block in eight is kept: of tiles of 128 rows and 128 keys nearly half have one
        assert_eq!(of(scattered(64), 128), (64, 64, 2));
        assert_eq!(of(scattered(64), 64), (64, 64, 2));
        assert_eq!(of(scattered(128), 128), (128, 128, 1));
        // 192 rows meet two documents of 256
        assert_eq!(of(diagonal(256), 64), (64, 128, 2));
        assert_eq!(of(diagonal(256), 128), (128, 128, 1));
        for head_dim in [64, 128] {
            let whole = (if head_dim == 64 { 192 } else { 128 }, 128, 1);
            assert_eq!(of(causal(), head_dim), whole);
            assert_eq!(tiles(None, head_dim, "sm_90a"), whole);
        }
        // a launch that hardly takes time
        let short = ProblemSpec { mask: Some(scattered(64)), ..ProblemSpec::plain(1, (1, 1), (1024, 1024), 128) };
        assert_eq!(tiles_of(short, "sm_90a"), (128, 128, 1));
        // wide heads and other architectures have no smaller ones
        assert_eq!(of(scattered(64), 256), (128, 80, 1));
        assert_eq!(tiles(Some(scattered(64)), 128, "sm_80"), (128, 64, 2));
    }
}
