//! The backward pass on this processor: the texts of its three launches, as NVRTC receives them, on the machine of
//! `machine/hopper.h` and `machine/backward.h`, compared with the f64 reference.
//!
//! Invariant: outputs and scratch are poisoned before a run, inputs are random. It does not test speed, spills, the
//! driver's tensor maps, and GPU behaviour that the machine does not emulate. Prints skipped without a C++ compiler.

use super::backward::BackwardParams;
use super::hopper_tests::{MACHINE, housed, masked, quiet, ragged, scattered};
use crate::analysis::ranges::row_ranges;
use crate::backends::cuda::choose::tests::{causal, make, window};
use crate::backends::cuda::device::tensors::{arrange, padded, tensor};
use crate::backends::cuda::emit::functions;
use crate::backends::cuda::emit::layout::capture_bytes;
use crate::backends::cuda::emit::run_tests::{PRELUDE, compiled};
use crate::backends::cuda::emit::source;
use crate::backends::cuda::emit::tests::soft_cap;
use crate::backends::cuda::lists::bitmap::Bitmaps;
use crate::backends::cuda::lists::schedule::Schedule;
use crate::backends::cuda::lists::words::words as to_words;
use crate::backends::cuda::toolchain::backward::{BackwardDraft, lifted};
use crate::backends::cuda::variant::backward::{BackwardSpec, BackwardWays};
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::backends::given::Given;
use crate::backends::gradient_gate::{Bars, judge};
use crate::backends::gradients::{self, Gradients, Seeds, shapes};
use crate::backends::reference::gradient::{Arithmetic, Sample, gradients as exact, yardsticks};
use crate::backends::reference::{choose_rows, reference};
use crate::backends::{Inputs, inputs};
use crate::base::tensor::Data;
use crate::base::{Control, DType, HostTensor, Layout};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, UnaryOp};
use crate::ir::passes::derive::derive;
use crate::problem::{Problem, ProblemSpec};
use maskloom_testing::needs;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

const MORE: &str = include_str!("../machine/backward.h");
const MAIN: &str = include_str!("../machine/backward_main.h");
/// Files that the machine has words for.
const OWN: &[&str] = &["ptx.cuh", "hopper.cuh", "reduce_sm90.cuh", "words.cuh"];
/// Blocks of Hopper's kernels, which take their work.
const MULTIPROCESSORS: usize = 2;

/// A problem and the variant that runs it.
pub(super) struct Case {
    pub what: &'static str,
    pub spec: ProblemSpec,
    pub mask: MaskKind,
    pub arch: &'static str,
    pub ways: BackwardWays,
    /// Of the variant: 0 is the fastest, those behind it are for mods of which the compiler makes slow code.
    pub rank: usize,
}

/// A case with everything that a run of it takes.
pub(super) struct Ready {
    pub what: &'static str,
    pub problem: Problem,
    pub draft: BackwardDraft,
    /// Blocks at a time: Hopper's take their work.
    pub blocks: usize,
    /// Whether the one order of additions is that of the units, as in launches that are too long for another.
    pub in_units: bool,
    inputs: Inputs,
    seeds: Seeds,
}

impl Case {
    pub(super) fn ready(self, seed: u64) -> Ready {
        let problem = Problem::new(self.spec).expect("a valid problem");
        let limits = Limits::of_arch(self.arch).expect("known");
        let (mut draft, _) = BackwardDraft::at(self.rank, &problem, &limits, self.ways).expect("a draft");
        if draft.spec.mask != self.mask {
            force(&problem, &mut draft, self.mask);
        }
        Ready::new(self.what, problem, draft, seed)
    }
}

/// A kind of mask that is chosen for more tiles than this machine would come to the end of.
fn force(problem: &Problem, draft: &mut BackwardDraft, wanted: MaskKind) {
    let mask = problem.mask.as_deref().expect("a mask");
    draft.spec = BackwardSpec { mask: wanted, ..draft.spec };
    draft.bits = Bitmaps::default();
    match wanted {
        MaskKind::Interval => {
            let of_list = |list: usize| {
                let (b, h) = (list / draft.lists.heads, list % draft.lists.heads);
                row_ranges(mask, b, h, problem.lengths()).expect("a range a row")
            };
            let lists = draft.lists.batch * draft.lists.heads;
            draft.ranges = (0..lists).flat_map(of_list).flat_map(|r| [r.start, r.end]).collect();
        }
        MaskKind::Formula => {
            let derived = problem.score.as_deref().map(|score| derive(score, |_| true).expect("a derivative"));
            draft.mods = lifted(problem, Some(mask), derived.as_ref(), draft.spec.ways);
            draft.emitted = functions::emit(&draft.mods.template());
        }
        other => panic!("{other:?} is not forced"),
    }
    draft.text = source::assemble_backward(&draft.spec, &draft.emitted.text);
    draft.rows_text = source::assemble_rows(&draft.spec, &draft.emitted.text);
}

/// The texts of all launches for the machine; `fault` changes those of the kernels.
pub(super) fn program(draft: &BackwardDraft, mut fault: impl FnMut(&str) -> String) -> String {
    let (head, _) = draft.text.split_once("#line 1 \"").expect("parts are marked");
    let entry = draft.spec.entry();
    let hopper = if draft.spec.is_hopper() { format!("#define HOPPER {entry}\n") } else { String::new() };
    let mut text = format!("{head}{hopper}{PRELUDE}{MACHINE}{MORE}");
    text += &housed("text", &fault(&draft.text), OWN);
    text += &housed("rows_text", &fault(&draft.rows_text), OWN);
    text +=
        "void point(text::Mods &m, const u8 *const *from, float *const *to, u64 *const *bins, const int *counts) {\n";
    for i in 0..draft.mods.captures().len() {
        let _ = writeln!(text, "    m.c{i} = decltype(m.c{i})(from[{i}]);");
    }
    let with_bins = draft.mods.gradient.as_ref().map_or(Vec::new(), |g| g.with_bins());
    for i in 0..with_bins.len() {
        let _ = match draft.spec.has_bins() {
            true => writeln!(text, "    m.g{i} = {{to[{i}], bins[{i}], u64(counts[{i}])}};"),
            false => writeln!(text, "    m.g{i} = to[{i}];"),
        };
    }
    let _ = write!(text, "}}\nstatic const vector<bool> with_bins = {{");
    with_bins.iter().for_each(|has| text += &format!("{has}, "));
    text + "};\n" + MAIN
}

impl Ready {
    fn new(what: &'static str, problem: Problem, draft: BackwardDraft, seed: u64) -> Ready {
        let mut seeds = gradients::random(&problem, seed);
        if draft.spec.ways.d_lse {
            let shape = [problem.batch, problem.heads, problem.q_len];
            let wave = (0..shape.iter().product::<usize>()).map(|i| ((i * 37 + 11) % 64) as f32 / 32.0 - 1.0);
            seeds.d_lse = Some(HostTensor::new(shape, Data::F32(wave.collect())).expect("a tensor"));
        }
        let inputs = inputs::random(&problem, seed);
        Ready { what, blocks: MULTIPROCESSORS, in_units: false, inputs, seeds, problem, draft }
    }

    /// Elements of each captured tensor's gradient.
    fn captured(&self) -> Vec<usize> {
        let Some(gradient) = &self.draft.mods.gradient else { return Vec::new() };
        let score = self.problem.score.as_deref().expect("a score mod");
        gradient.captures.iter().map(|id| score.graph.capture(*id).tensor.numel()).collect()
    }

    /// The launches, as MAIN reads them.
    fn file(&self) -> Vec<u8> {
        let (problem, draft) = (&self.problem, &self.draft);
        let forward =
            reference(problem, &self.inputs, choose_rows(problem, u32::MAX), &Control::new()).expect("forward");
        let shape = [problem.batch, problem.heads, problem.q_len, problem.head_dim_v];
        let out = forward.out.iter().map(|x| *x as f32).collect();
        let out = gradients::rounded(problem.dtype, shape, out).expect("an output");
        let mut file = Vec::new();
        let mut put = |bytes: Vec<u8>| {
            file.extend((bytes.len() as u64).to_le_bytes());
            file.extend(bytes);
        };
        let words = |values: &[u32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let schedule = match self.in_units {
            true => Schedule::as_they_are(&draft.lists, &draft.bits, &draft.ranges).in_order_of_units(self.blocks),
            false => draft.schedule(self.blocks),
        };
        let (items, units) = (schedule.items(), schedule.items().len());
        let shares = schedule.parts.as_ref().map_or_else(Vec::new, |made| to_words(&made.parts));
        let mut params = BackwardParams::new(problem, draft, &schedule).bytes();
        params.resize(params.len().next_multiple_of(8), 0);
        put(params);
        let captures = draft.mods.captures();
        let learned = self.captured();
        let tensors: Vec<&HostTensor> = captures.iter().map(|(_, tensor)| *tensor).collect();
        let layout = &draft.emitted.layout;
        assert!(!layout.by_pointer(), "mods that travel as a parameter");
        put(layout.fill(&vec![0; layout.words()], &tensors, &draft.mods.ints, &draft.mods.floats));
        let (blocks, at_once) = match draft.spec.is_hopper() {
            true => (units.min(self.blocks), self.blocks),
            false => (units, self.blocks),
        };
        let numbers = [blocks, draft.spec.threads(), draft.spec.shared_bytes(), at_once, captures.len()];
        put(words(&numbers.iter().chain(&learned).map(|n| *n as u32).collect::<Vec<_>>()));
        for tensor in [&self.inputs.q, &self.inputs.k, &self.inputs.v, &out, &self.seeds.d_out] {
            put(arrange(tensor, problem.layout).expect("16 bits").iter().flat_map(|v| v.to_le_bytes()).collect());
        }
        let floats = |values: Vec<f32>| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        put(floats(forward.lse.iter().map(|x| *x as f32).collect()));
        put(floats(self.seeds.d_lse.as_ref().map_or(Vec::new(), HostTensor::to_f32_vec)));
        let lists = &schedule.lists;
        put(words(&to_words(items)));
        put(words(&lists.row_start));
        put(words(lists.runs.as_flattened()));
        let bits = &schedule.bits;
        for list in [&bits.start, &bits.ids, &bits.words, &schedule.ranges.to_vec(), &lists.order_start, &lists.order] {
            put(words(list));
        }
        put(words(&shares));
        for (name, tensor) in captures {
            put(capture_bytes(name, tensor).expect("a tensor"));
        }
        file
    }

    /// The output of MAIN.
    fn found(&self, left: &[u8]) -> Gradients {
        let problem = &self.problem;
        let mut left = left;
        let [dq, dk, dv] = taken(problem, &mut left);
        let mut floats = left.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_le_bytes(*b)));
        let sums: Vec<Vec<f64>> = self.captured().iter().map(|n| floats.by_ref().take(*n).collect()).collect();
        let captures = match (&self.draft.mods.gradient, problem.score.as_deref()) {
            (Some(gradient), Some(score)) => {
                let read: Vec<&[f64]> = sums.iter().map(Vec::as_slice).collect();
                Given::new(score, &gradient.captures).tensors(&read).expect("gradients")
            }
            _ => Vec::new(),
        };
        Gradients { dq, dk, dv, captures }
    }

    /// Errors: values that differ from the reference.
    fn judged(&self, found: &Gradients) -> Result<(), String> {
        judged(self.what, &self.problem, (&self.inputs, &self.seeds), found)
    }
}

/// Errors: values that differ from the reference.
pub(super) fn judged(
    what: &str,
    problem: &Problem,
    (inputs, seeds): (&Inputs, &Seeds),
    found: &Gradients,
) -> Result<(), String> {
    let whole = Sample::whole(problem);
    let made = |how| exact(problem, inputs, seeds, &whole, how, &Control::new()).expect("a derivative");
    let (want, coarse) = (made(Arithmetic::Exact), yardsticks(problem).into_iter().map(made).collect::<Vec<_>>());
    let errors = judge(problem, found, &Bars::new(problem, &want, &coarse)).expect("comparable");
    let words: Vec<String> = errors.iter().filter_map(|e| e.words()).collect();
    if words.is_empty() { Ok(()) } else { Err(format!("{what}: {}", words.join("; "))) }
}

/// Programs by their texts: masks and shapes are no part of these.
#[derive(Default)]
pub(super) struct Programs {
    made: HashMap<String, (TempDir, PathBuf)>,
}

impl Programs {
    /// The folder of a program, with the case's launches in `in`. None: there is no compiler.
    pub(super) fn of(&mut self, ready: &Ready, text: String) -> Option<(&TempDir, &PathBuf)> {
        let (folder, binary) = match self.made.entry(text) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let folder = tempfile::tempdir().expect("a folder");
                // it takes longer to compile most programs than to run them
                let binary = compiled(place.key(), folder.path(), &mut quiet("c++"), &["-Og"])?;
                place.insert((folder, binary))
            }
        };
        std::fs::write(folder.path().join("in"), ready.file()).expect("written");
        Some((&*folder, &*binary))
    }

    /// The gradients' bytes of one run, whose order of threads `seed` decides. None: there is no compiler.
    fn run(&mut self, ready: &Ready, seed: u32) -> Option<Result<Vec<u8>, String>> {
        self.run_text(ready, program(&ready.draft, str::to_string), seed)
    }

    /// The same of a program that was changed.
    pub(super) fn run_text(&mut self, ready: &Ready, text: String, seed: u32) -> Option<Result<Vec<u8>, String>> {
        let (folder, binary) = self.of(ready, text)?;
        let file = |name: &str| folder.path().join(name);
        let ran = quiet(binary).arg(file("in")).arg(file("out")).arg(seed.to_string()).output().expect("runs");
        Some(match ran.status.success() {
            true => Ok(std::fs::read(file("out")).expect("gradients")),
            false => Err(format!("{}: {} {}", ready.what, ran.status, String::from_utf8_lossy(&ran.stderr))),
        })
    }
}

/// The taken cases as they are, each by another order of threads; in one order of addition twice, for the same bits. The number of those in
/// which blocks share key tiles, and of all; `None` without a compiler.
pub(super) fn check(cases: impl IntoIterator<Item = Case>) -> Option<(usize, usize)> {
    let mut programs = Programs::default();
    let mut shares = 0;
    let cases = needs::taken(cases);
    let count = cases.len();
    for (at, case) in cases.into_iter().enumerate() {
        let started = std::time::Instant::now();
        let mut ready = case.ready(11 + at as u64);
        shares += usize::from(ready.draft.schedule(ready.blocks).parts.is_some_and(|made| made.slots > 0));
        let left = programs.run(&ready, at as u32)?;
        let left = left.unwrap_or_else(|why| panic!("{why}"));
        ready.judged(&ready.found(&left)).unwrap_or_else(|why| panic!("{why}"));
        if ready.draft.spec.ways.deterministic {
            let again = programs.run(&ready, at as u32 + 4).expect("there is a compiler");
            assert!(again.unwrap_or_else(|why| panic!("{why}")) == left, "{}: other bits", ready.what);
            ready.in_units = true;
            let left = programs.run(&ready, at as u32 + 2).expect("there is a compiler");
            let left = left.unwrap_or_else(|why| panic!("{why}"));
            ready.judged(&ready.found(&left)).unwrap_or_else(|why| panic!("in order of units: {why}"));
        }
        println!("{}: {} ({:.1} s)", ready.what, ready.draft.spec.name(), started.elapsed().as_secs_f64());
    }
    Some((shares, count))
}

/// One problem with random inputs, on the variant that is chosen for it. None: there is no compiler. Errors: the kernel's
/// name, and the values that differ from the reference.
pub(crate) fn on_the_machine(problem: Problem, arch: &str, seed: u64) -> Option<Result<String, String>> {
    let limits = Limits::of_arch(arch).expect("known");
    let draft = BackwardDraft::new(&problem, &limits, BackwardWays::default()).expect("a draft");
    let (name, ready) = (draft.spec.name(), Ready::new("random", problem, draft, seed));
    let left = Programs::default().run(&ready, seed as u32)?;
    Some(match left.and_then(|left| ready.judged(&ready.found(&left))) {
        Ok(()) => Ok(name),
        Err(why) => Err(format!("{name}: {why}")),
    })
}

/// Two query heads of one kv head.
pub(super) fn spec(q_len: usize, kv_len: usize, head_dim: usize) -> ProblemSpec {
    ProblemSpec::plain(1, (2, 1), (q_len, kv_len), head_dim)
}

pub(super) fn case(what: &'static str, spec: ProblemSpec, mask: MaskKind) -> Case {
    Case { what, spec, mask, arch: "sm_90a", ways: BackwardWays::default(), rank: 0 }
}

/// dq, dk and dv at the front of a program's output, removed from it.
pub(super) fn taken(problem: &Problem, left: &mut &[u8]) -> [HostTensor; 3] {
    shapes(problem).map(|shape| {
        let bytes = shape[0] * shape[1] * shape[2] * padded(shape[3]) * 2;
        let (own, rest) = left.split_at(bytes);
        *left = rest;
        let raw: Vec<u16> = own.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
        tensor(problem, &raw, shape).expect("a gradient")
    })
}

pub(super) fn half(spec: ProblemSpec) -> ProblemSpec {
    ProblemSpec { dtype: DType::F16, layout: Layout::Bshd, ..spec }
}

pub(super) fn scored(score: Arc<Mod>, spec: ProblemSpec) -> ProblemSpec {
    ProblemSpec { score: Some(score), ..spec }
}

/// Rows from 70 to 140 keep nothing, no row keeps keys from 128 to 256, the others keep some of every tile.
pub(super) fn with_holes() -> Arc<Mod> {
    make(ModKind::Mask, |g| {
        let (q, kv) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let outside = |g: &mut Graph, x: NodeId, from: i64, to: i64| {
            let (from, to) = (g.int(from), g.int(to));
            let (before, behind) = (g.binary(BinaryOp::Lt, x, from), g.binary(BinaryOp::Ge, x, to));
            g.binary(BinaryOp::Or, before, behind)
        };
        let (rows, keys) = (outside(g, q, 70, 140), outside(g, kv, 128, 256));
        let (sum, five, zero) = (g.binary(BinaryOp::Add, q, kv), g.int(5), g.int(0));
        let rest = g.binary(BinaryOp::Mod, sum, five);
        let some = g.binary(BinaryOp::Ne, rest, zero);
        let both = g.binary(BinaryOp::And, rows, keys);
        g.binary(BinaryOp::And, both, some)
    })
}

/// `score - 0.05 * |q_idx - kv_idx|`
fn alibi() -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let [score, q, kv] = [Input::Score, Input::QIdx, Input::KvIdx].map(|i| g.input(i));
        let distance = g.binary(BinaryOp::Sub, q, kv);
        let distance = g.unary(UnaryOp::Abs, distance);
        let (distance, slope) = (g.unary(UnaryOp::ToFloat, distance), g.float(0.05));
        let penalty = g.binary(BinaryOp::Mul, distance, slope);
        g.binary(BinaryOp::Sub, score, penalty)
    })
}

/// Tensors that learn, one of each way of reading: by batch entry and head, by query, by key, by their distance, by both, by all four. With `gated` the
/// first multiplies the score.
pub(super) fn learned(q_len: usize, kv_len: usize, gated: bool) -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let [b, h, q, kv, score] = [Input::B, Input::H, Input::QIdx, Input::KvIdx, Input::Score].map(|i| g.input(i));
        let read = |g: &mut Graph, name: &str, shape: &[usize], at: &[NodeId]| {
            let values = (0..shape.iter().product::<usize>()).map(|i| ((i * 29 + 7) % 32) as f32 / 16.0 - 0.9);
            let held = HostTensor::new(shape, Data::F32(values.collect())).expect("a tensor");
            let held = g.add_capture(name, held);
            g.add(Op::Load(held, at.iter().copied().collect()), None)
        };
        let gate = read(g, "gate", &[2, 2], &[b, h]);
        let mut sum = g.binary(if gated { BinaryOp::Mul } else { BinaryOp::Add }, score, gate);
        let distance = g.binary(BinaryOp::Sub, q, kv);
        let most = g.int(kv_len as i64 - 1);
        let distance = g.binary(BinaryOp::Add, distance, most);
        for part in [
            read(g, "rows", &[q_len], &[q]),
            read(g, "keys", &[kv_len], &[kv]),
            read(g, "table", &[q_len + kv_len], &[distance]),
            read(g, "dense", &[q_len, kv_len], &[q, kv]),
            read(g, "whole", &[2, 2, q_len, kv_len], &[b, h, q, kv]),
        ] {
            sum = g.binary(BinaryOp::Add, sum, part);
        }
        sum
    })
}

const LSE: BackwardWays = BackwardWays { deterministic: false, d_lse: true };
pub(super) const IN_ORDER: BackwardWays = BackwardWays { deterministic: true, d_lse: true };

#[test]
fn hoppers_kernel_of_128_gives_the_gradients() {
    check([
        case("d128 holes", masked(with_holes(), spec(150, 300, 128)), MaskKind::Bitmap),
        case("d128 causal", masked(causal(), spec(200, 200, 128)), MaskKind::Bitmap),
        case(
            "d128 window",
            masked(window(), ProblemSpec { layout: Layout::Bshd, ..spec(130, 200, 128) }),
            MaskKind::Bitmap,
        ),
        case("d128 scattered", masked(scattered(), ProblemSpec::plain(2, (2, 2), (70, 140), 128)), MaskKind::Bitmap),
        Case { ways: LSE, ..case("d128 full", half(spec(100, 150, 128)), MaskKind::None) },
        case("d128 ranges", masked(ragged(100, 150), spec(100, 150, 128)), MaskKind::Interval),
        case("d80 formula", masked(scattered(), half(spec(100, 150, 80))), MaskKind::Formula),
        case("d100 soft cap", scored(soft_cap(2.0), masked(with_holes(), spec(150, 150, 100))), MaskKind::Bitmap),
        case("d128 alibi, window", scored(alibi(), masked(window(), half(spec(100, 150, 128)))), MaskKind::Interval),
        Case { ways: IN_ORDER, ..case("d128 in order", masked(scattered(), spec(130, 400, 128)), MaskKind::Bitmap) },
        Case {
            ways: IN_ORDER,
            ..case("d128 in order, heads by turns", masked(causal(), spec(200, 300, 128)), MaskKind::Bitmap)
        },
    ]);
}

#[test]
fn key_tiles_that_blocks_share_get_the_gradients() {
    let one = |q_len, kv_len, dim| ProblemSpec::plain(1, (1, 1), (q_len, kv_len), dim);
    let learns = one(900, 128, 64);
    let shares = check([
        case("d128 full", half(one(700, 128, 128)), MaskKind::None),
        case("d128 holes", masked(with_holes(), spec(500, 128, 128)), MaskKind::Bitmap),
        case("d64 scattered", masked(scattered(), one(1900, 128, 64)), MaskKind::Bitmap),
        case("d64 adds", scored(learned(learns.q_len, learns.kv_len, false), learns), MaskKind::None),
        case("d256 holes", masked(with_holes(), spec(400, 64, 256)), MaskKind::Bitmap),
        case("d200 full", half(one(800, 64, 200)), MaskKind::None),
    ]);
    assert!(shares.is_none_or(|(n, all)| n == all), "{shares:?} share");
}

/// Heads that walk a tile together are cut anywhere.
#[test]
fn shared_key_tiles_are_added_in_order() {
    let one = |heads, q_len, kv_len, dim| ProblemSpec::plain(1, (heads, 1), (q_len, kv_len), dim);
    let learns = one(4, 450, 128, 64);
    let shares = check(
        [
            case("d128 in order", half(one(3, 640, 128, 128)), MaskKind::None),
            case("d64 adds in order", scored(learned(450, 128, false), learns), MaskKind::None),
            case("d256 in order", masked(with_holes(), one(4, 450, 64, 256)), MaskKind::Bitmap),
            case("d64 in order", masked(causal(), one(4, 1000, 128, 64)), MaskKind::Bitmap),
        ]
        .map(|case| Case { ways: IN_ORDER, ..case }),
    );
    assert!(shares.is_none_or(|(n, all)| n == all), "{shares:?} share");
}

#[test]
fn hoppers_kernel_of_64_gives_the_gradients() {
    check([
        case("d64 holes", masked(with_holes(), spec(200, 300, 64)), MaskKind::Bitmap),
        case("d64 scattered", masked(scattered(), ProblemSpec::plain(2, (2, 2), (300, 140), 64)), MaskKind::Bitmap),
        case(
            "d64 causal",
            masked(causal(), ProblemSpec { layout: Layout::Bshd, ..spec(500, 500, 64) }),
            MaskKind::Bitmap,
        ),
        Case { ways: LSE, ..case("d64 full", half(spec(300, 200, 64)), MaskKind::None) },
        case("d48 ranges", masked(ragged(200, 150), half(spec(200, 150, 48))), MaskKind::Interval),
        case("d64 soft cap, formula", scored(soft_cap(2.0), masked(window(), spec(200, 150, 64))), MaskKind::Formula),
        Case { ways: IN_ORDER, ..case("d64 in order", masked(scattered(), spec(300, 400, 64)), MaskKind::Bitmap) },
    ]);
}

/// Tiles of 64 queries, in which a warpgroup multiplies dq of its own keys.
#[test]
fn hoppers_small_tiles_of_narrow_heads_give_the_gradients() {
    let small = |case: Case| Case { rank: 1, ..case };
    let ready = small(case("d64", spec(100, 100, 64), MaskKind::None)).ready(1);
    assert_eq!((ready.draft.spec.tile_q, ready.draft.spec.qk_width), (64, 64));
    check([
        small(case("d64 small, holes", masked(with_holes(), spec(200, 300, 64)), MaskKind::Bitmap)),
        small(Case { ways: LSE, ..case("d40 small, full", half(spec(130, 200, 40)), MaskKind::None) }),
        small(case("d64 small, ranges", masked(ragged(200, 150), half(spec(200, 150, 64))), MaskKind::Interval)),
        small(case(
            "d64 small, soft cap",
            scored(soft_cap(2.0), masked(window(), spec(200, 150, 64))),
            MaskKind::Bitmap,
        )),
        small(Case {
            ways: IN_ORDER,
            ..case("d64 as d128, in order", masked(scattered(), spec(200, 300, 64)), MaskKind::Bitmap)
        }),
    ]);
}

#[test]
fn hoppers_wide_kernel_gives_the_gradients() {
    check([
        case("d256 holes", masked(with_holes(), spec(150, 260, 256)), MaskKind::Bitmap),
        case(
            "d256 window",
            masked(window(), ProblemSpec { layout: Layout::Bshd, ..spec(130, 140, 256) }),
            MaskKind::Bitmap,
        ),
        Case { ways: LSE, ..case("d256 full", half(spec(70, 100, 256)), MaskKind::None) },
        case("d200 soft cap", scored(soft_cap(2.0), masked(scattered(), half(spec(100, 100, 200)))), MaskKind::Bitmap),
        Case { ways: IN_ORDER, ..case("d256 in order", masked(scattered(), spec(70, 200, 256)), MaskKind::Bitmap) },
        case("d192 ranges", masked(ragged(100, 70), spec(100, 70, 192)), MaskKind::Interval),
    ]);
}

/// As in multi-head latent attention, whose values are narrower than its keys.
#[test]
fn hoppers_wide_kernel_takes_keys_and_values_of_unequal_dims() {
    let of = |q_len, kv_len, head_dim, head_dim_v| ProblemSpec { head_dim_v, ..spec(q_len, kv_len, head_dim) };
    let learns = |s: ProblemSpec| scored(learned(s.q_len, s.kv_len, false), s);
    let one = ProblemSpec { head_dim_v: 128, ..ProblemSpec::plain(1, (1, 1), (800, 64), 192) };
    let shares = check([
        case("d192/128 holes", masked(with_holes(), of(150, 260, 192, 128)), MaskKind::Bitmap),
        Case { ways: LSE, ..case("d192/128 full", half(of(70, 100, 192, 128)), MaskKind::None) },
        case("d192/128 parts", one, MaskKind::None),
        case("d176/72 soft cap", scored(soft_cap(2.0), half(of(100, 100, 176, 72))), MaskKind::None),
        Case {
            ways: IN_ORDER,
            ..case("d192/128 in order", masked(scattered(), of(70, 200, 192, 128)), MaskKind::Bitmap)
        },
        case("d256/128 adds", learns(masked(causal(), of(100, 100, 256, 128))), MaskKind::Bitmap),
        case("d64/160 ranges", masked(ragged(100, 70), of(100, 70, 64, 160)), MaskKind::Interval),
        case("d128/256 window", masked(window(), half(of(130, 140, 128, 256))), MaskKind::Bitmap),
    ]);
    assert!(shares.is_none_or(|(n, _)| n >= 1), "no key tile was shared");
}

#[test]
fn amperes_kernel_gives_the_gradients() {
    let cases = [
        case("d64 holes", masked(with_holes(), spec(150, 300, 64)), MaskKind::Bitmap),
        case("d64 scattered", masked(scattered(), ProblemSpec::plain(2, (2, 2), (70, 140), 64)), MaskKind::Bitmap),
        Case { ways: LSE, ..case("d128 full", half(spec(100, 150, 128)), MaskKind::None) },
        case("d100 soft cap", scored(soft_cap(2.0), masked(ragged(100, 150), spec(100, 150, 100))), MaskKind::Interval),
        case("d256 window", masked(window(), spec(70, 100, 256)), MaskKind::Formula),
        Case { ways: IN_ORDER, ..case("d64 in order", masked(scattered(), spec(130, 200, 64)), MaskKind::Bitmap) },
        Case { ways: IN_ORDER, ..case("d256 in order", masked(scattered(), spec(70, 200, 256)), MaskKind::Bitmap) },
        Case {
            ways: IN_ORDER,
            ..case("d64 in order, heads by turns", masked(causal(), spec(130, 200, 64)), MaskKind::Bitmap)
        },
    ];
    check(cases.map(|case| Case { arch: "sm_80", ..case }));
}
