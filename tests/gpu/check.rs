//! The device under test, simple constructors of problems, and the one check: every backend that supports a problem is
//! right.

use maskloom::backends::attention_map::{Region, Values};
use maskloom::backends::cuda::{self, CONTEXT_LOST, Compiler, Gpu, backends, nvrtc_for, probe};
use maskloom::backends::race::{Race, RaceOptions, race};
use maskloom::backends::{Backend, Inputs, inputs};
use maskloom::base::{BackendName, Control, Diagnostic};
use maskloom::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, UnaryOp};
use maskloom::problem::result::{Outcome, OutputName};
use maskloom::problem::{Problem, ProblemSpec};
use std::cell::Cell;
use std::sync::Arc;

/// An opened GPU with its compiler.
pub(crate) struct Device {
    pub gpu: Arc<Gpu>,
    compiler: Arc<dyn Compiler>,
    lost: Cell<bool>,
}

impl Device {
    pub(crate) fn open() -> Result<Device, Diagnostic> {
        let gpu = Gpu::open(0)?;
        let compiler: Arc<dyn Compiler> = Arc::new(nvrtc_for(&gpu)?);
        Ok(Device { gpu, compiler, lost: Cell::new(false) })
    }

    pub(crate) fn describe(&self) -> String {
        let (info, found) = (self.gpu.info(), probe());
        let (major, minor) = found.driver.unwrap_or_default();
        format!(
            "{} ({}), {} multiprocessors, L2 {} MiB, driver runs CUDA {major}.{minor}, {}",
            info.name,
            info.limits.arch(),
            info.limits.multiprocessors,
            info.limits.l2_bytes >> 20,
            self.compiler.version()
        )
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get()
    }

    pub(crate) fn backends(&self) -> Vec<Box<dyn Backend>> {
        backends(&self.gpu, &self.compiler, None)
    }

    pub(crate) fn race(&self, problem: &Problem, seed: u64, rounds: u32, only: &[BackendName]) -> Race {
        let given = inputs::random(problem, seed);
        let mut backends = self.backends();
        backends.retain(|b| only.is_empty() || only.contains(&b.name()));
        let options = RaceOptions { rounds, passes: 5, warmup: 2, reference_rows: 2048 };
        race(problem, &given, &mut backends, &options, &Control::new(), &mut |_| {}).expect("a race")
    }

    /// The file of a backend's kernel here, or the two possible ones, by docs/kernels.
    fn expected(&self, name: BackendName, problem: &Problem) -> [&'static str; 2] {
        let (qk, v) = (problem.head_dim, problem.head_dim_v);
        let suits_hopper =
            self.gpu.info().limits.arch.has_wgmma() && qk.min(v) > 32 && v.div_ceil(64) <= qk.div_ceil(64);
        match name {
            BackendName::Eager => ["eager"; 2],
            BackendName::Flex if problem.q_len <= 64 && problem.kv_len >= 256 => ["decode_sm80"; 2],
            BackendName::Flex if suits_hopper && problem.q_len > 64 => ["flex_sm90"; 2],
            BackendName::Sdpa => ["flex_sm80", "cuDNN"],
            _ => ["flex_sm80"; 2],
        }
    }

    /// Every backend is right, with the kernel intended for the problem, or refuses in words; returns those that ran.
    pub(crate) fn check(&self, what: &str, problem: &Problem) -> Vec<BackendName> {
        self.check_all(what, problem, &mut Vec::new())
    }

    /// The same, keeping the words of the kernels.
    pub(crate) fn check_all(&self, what: &str, problem: &Problem, kernels: &mut Vec<String>) -> Vec<BackendName> {
        let race = self.race(problem, 17, 0, &[]);
        let mut ran = Vec::new();
        let mut wrong = Vec::new();
        for report in &race.reports {
            match &report.outcome {
                Outcome::Done { error, kernel, .. } => {
                    ran.push(report.backend);
                    kernels.push(kernel.words.clone());
                    let expected = self.expected(report.backend, problem);
                    if !expected.iter().any(|name| kernel.words.starts_with(name)) {
                        wrong.push(format!("{} ran {kernel}, not {}", report.backend, expected.join(" or ")));
                    }
                    if !error.passed() {
                        wrong.push(format!("{} ({kernel}): {error:?}", report.backend));
                    }
                }
                Outcome::Refused { why } => assert!(why.hint.is_some(), "{}: {why}", report.backend),
                Outcome::Failed { why } => {
                    self.lost.set(self.lost.get() || why.code == CONTEXT_LOST);
                    wrong.push(format!("{} failed: {why}", report.backend));
                }
            }
        }
        assert!(wrong.is_empty(), "{what}\n  {}", wrong.join("\n  "));
        ran
    }

    /// A picture of one head.
    pub(crate) fn map(&self, problem: &Problem, given: &Inputs, region: &Region, values: Values) -> Vec<f32> {
        cuda::map(&self.gpu, (self.compiler.as_ref(), None), problem, given, region, values).expect("a picture")
    }

    /// Every backend is right, and flex and eager give the rows' largest scores.
    pub(crate) fn check_max_scores(&self, what: &str, problem: &Problem) {
        let own = [BackendName::Flex, BackendName::Eager];
        let ran = self.check(what, problem);
        assert!(own.iter().all(|name| ran.contains(name)), "{what}: {ran:?}");
        for report in self.race(problem, 18, 0, &own).reports {
            let Outcome::Done { error, max_scores, kernel, .. } = &report.outcome else { panic!("{what}: {report:?}") };
            let given = error.output(&OutputName::MaxScores).is_some() && max_scores.len() == problem.heads;
            assert!(given && error.passed(), "{what}: {} ({kernel}): {error:?}", report.backend);
        }
    }
}

/// bf16, [B, H, S, D], no mods.
pub(crate) fn spec(
    batch: usize,
    heads: usize,
    kv_heads: usize,
    q_len: usize,
    kv_len: usize,
    head_dim: usize,
) -> ProblemSpec {
    ProblemSpec::plain(batch, (heads, kv_heads), (q_len, kv_len), head_dim)
}

pub(crate) fn problem(spec: ProblemSpec) -> Problem {
    Problem::new(spec).expect("a valid problem")
}

pub(crate) fn make(kind: ModKind, build: impl FnOnce(&mut Graph) -> NodeId) -> Arc<Mod> {
    let mut graph = Graph::new();
    let root = build(&mut graph);
    Arc::new(Mod { kind, graph, root, sources: Vec::new() })
}

/// `kv_idx <= q_idx + offset`
pub(crate) fn causal(offset: i64) -> Arc<Mod> {
    make(ModKind::Mask, |g| {
        let (q, kv, by) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(offset));
        let limit = g.binary(BinaryOp::Add, q, by);
        g.binary(BinaryOp::Le, kv, limit)
    })
}

/// `q_idx >= kv_idx` alone.
pub(crate) fn plain_causal() -> Arc<Mod> {
    make(ModKind::Mask, |g| {
        let (q, kv) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        g.binary(BinaryOp::Ge, q, kv)
    })
}

/// `abs(q_idx - kv_idx) < width`
pub(crate) fn window(width: i64) -> Arc<Mod> {
    make(ModKind::Mask, |g| {
        let (q, kv, width) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(width));
        let distance = g.binary(BinaryOp::Sub, q, kv);
        let distance = g.unary(UnaryOp::Abs, distance);
        g.binary(BinaryOp::Lt, distance, width)
    })
}

/// Causal but for every third row, which keeps nothing; and in head 1 the rows beyond 200 keep nothing.
pub(crate) fn empty_rows() -> Arc<Mod> {
    make(ModKind::Mask, |g| {
        let (q, kv, h) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.input(Input::H));
        let (three, zero, one, limit) = (g.int(3), g.int(0), g.int(1), g.int(200));
        let below = g.binary(BinaryOp::Ge, q, kv);
        let rest = g.binary(BinaryOp::Mod, q, three);
        let kept = g.binary(BinaryOp::Ne, rest, zero);
        let first = g.binary(BinaryOp::Ne, h, one);
        let early = g.binary(BinaryOp::Lt, q, limit);
        let allowed = g.binary(BinaryOp::Or, first, early);
        let both = g.binary(BinaryOp::And, below, kept);
        g.binary(BinaryOp::And, both, allowed)
    })
}

/// `score - 0.03 * (h + 1) * abs(q_idx - kv_idx)`
pub(crate) fn alibi() -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let (q, kv, h) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.input(Input::H));
        let (score, one, slope) = (g.input(Input::Score), g.int(1), g.float(0.03));
        let distance = g.binary(BinaryOp::Sub, q, kv);
        let distance = g.unary(UnaryOp::Abs, distance);
        let head = g.binary(BinaryOp::Add, h, one);
        let product = g.binary(BinaryOp::Mul, distance, head);
        let product = g.unary(UnaryOp::ToFloat, product);
        let penalty = g.binary(BinaryOp::Mul, product, slope);
        g.binary(BinaryOp::Sub, score, penalty)
    })
}

/// `20 * tanh(score / 20)`
pub(crate) fn soft_cap() -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let (score, cap) = (g.input(Input::Score), g.float(20.0));
        let ratio = g.binary(BinaryOp::Div, score, cap);
        let squashed = g.unary(UnaryOp::Tanh, ratio);
        g.binary(BinaryOp::Mul, squashed, cap)
    })
}
