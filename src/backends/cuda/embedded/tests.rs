//! Passes as they are made without a device: parameters, lists and launches beside those of the worker.

use crate::backends::cuda::choose::tests::{make, problem, window};
use crate::backends::cuda::device::tensors::Strides;
use crate::backends::cuda::embedded::block::{Block, bases};
use crate::backends::cuda::embedded::recipe::{At, Map, Part, Step};
use crate::backends::cuda::embedded::{Card, Layouts, Pass};
use crate::backends::cuda::launch::backward::BackwardParams;
use crate::backends::cuda::launch::params::Params;
use crate::backends::cuda::toolchain::compile::{Compiled, Compiler, Form};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use crate::ir::graph::{BinaryOp, Input, Mod, ModKind, Op, UnaryOp};
use crate::problem::{Problem, ProblemSpec};
use smallvec::smallvec;
use std::sync::Arc;

/// Gives back the text as machine code.
pub(super) struct Echo;

impl Compiler for Echo {
    fn version(&self) -> String {
        "echo 1".into()
    }

    fn compile(&self, source: &str, _: &str, _: Form) -> Result<Compiled, Diagnostic> {
        Ok(Compiled { cubin: source.as_bytes().to_vec(), ..Default::default() })
    }
}

/// Strides of tensors [2, heads, 300, 64] in rows of three heads' widths.
fn layouts() -> Layouts {
    let own = |heads: i64| [heads * 300 * 192, 192 * 300, 192];
    Layouts::new(&[own(4), own(2), own(2), [4 * 300 * 64, 300 * 64, 64], own(4)]).expect("multiples of 8")
}

fn forward(problem: &Problem, arch: &str) -> Pass {
    let card = Card::usual(arch).expect("known");
    Pass::forward(problem, &layouts(), true, &card, &Echo, None).expect("a kernel")
}

fn backward(problem: &Problem, arch: &str, ways: (bool, bool)) -> Pass {
    let card = Card::usual(arch).expect("known");
    Pass::backward(problem, &layouts(), ways, &card, &Echo, None).expect("a kernel")
}

/// The bases of a call with tensors at multiples of 1 MB, and where one of them is.
fn call(pass: &Pass) -> (Vec<u64>, impl Fn(usize) -> u64) {
    let tensors: Vec<u64> = (0..pass.recipe.calls as u64).map(|at| (16 + at) << 20).collect();
    (bases(1 << 20, 2 << 20, 3 << 20, &tensors), |at| (16 + at as u64) << 20)
}

/// Bytes of the struct with these places, filled.
fn filled(pass: &Pass, parts: usize) -> Vec<u8> {
    let mut block = Block::new(&pass.recipe);
    block.fill(&call(pass).0).expect("no maps");
    let Part::Bytes(raw, _) = &pass.recipe.parts[parts] else { panic!("a struct is bytes") };
    block.bytes(parts, raw.len())
}

/// A score mod `tanh(score * table[h]) + steps[q_idx]`.
fn reads(table: HostTensor, steps: HostTensor) -> Arc<Mod> {
    make(ModKind::Score, |g| {
        let (table, steps) = (g.add_capture("table", table), g.add_capture("steps", steps));
        let (score, h, q) = (g.input(Input::Score), g.input(Input::H), g.input(Input::QIdx));
        let (factor, step) = (g.add(Op::Load(table, smallvec![h]), None), g.add(Op::Load(steps, smallvec![q]), None));
        let product = g.binary(BinaryOp::Mul, score, factor);
        let bent = g.unary(UnaryOp::Tanh, product);
        let step = g.unary(UnaryOp::ToFloat, step);
        g.binary(BinaryOp::Add, bent, step)
    })
}

fn reading() -> Problem {
    let table = HostTensor::vector(Data::F32(vec![0.5; 4]));
    problem(Some(window()), Some(reads(table, HostTensor::vector(Data::I64((0..300).map(|n| n % 3).collect())))))
}

#[test]
fn a_forward_pass_has_the_workers_parameters_on_the_callers_tensors() {
    let problem = problem(Some(window()), None);
    let pass = forward(&problem, "sm_80");
    let [Step::Launch { parts, grid, .. }] = pass.recipe.steps.as_slice() else { panic!("one launch") };
    assert_eq!(grid.blocks.0 as usize % (2 * 4), 0, "tiles of each head");
    let (_, at) = call(&pass);
    let bytes = filled(&pass, parts[0]);
    let lists = pass.recipe.parts[parts[0]].clone();
    let Part::Bytes(_, places) = lists else { panic!("a struct is bytes") };
    let list = |index: usize| (1 << 20) + places[index].1.offset;
    let read = |name: &str| -> i32 {
        let before = Params::fields().into_iter().take_while(|(field, _)| *field != name).map(|f| f.1).sum::<usize>();
        i32::from_le_bytes(bytes[before..before + 4].try_into().unwrap())
    };
    let mut wanted = Params {
        q: at(0),
        k: at(1),
        v: at(2),
        o: at(3),
        lse: at(4),
        tile_order: list(5),
        row_start: list(6),
        runs: list(7),
        bitmap_start: list(8),
        bitmap_ids: list(9),
        bitmaps: list(10),
        q_tiles: read("q_tiles"),
        section: read("section"),
        ..Params::of_problem(&problem)
    };
    let strides = |heads: i64| (heads * 300 * 192, 192 * 300, 192);
    (wanted.q_b, wanted.q_h, wanted.q_s) = strides(4);
    (wanted.k_b, wanted.k_h, wanted.k_s) = strides(2);
    (wanted.v_b, wanted.v_h, wanted.v_s) = strides(2);
    assert_eq!(bytes, wanted.bytes());
    assert!(wanted.q_tiles >= 3 && wanted.section >= 1);
}

#[test]
fn lists_lie_where_the_parameters_say() {
    let problem = problem(Some(window()), None);
    let pass = forward(&problem, "sm_90a");
    let image = pass.image(1 << 20);
    assert_eq!(image.len(), pass.bytes()[0]);
    let [Step::Launch { parts, .. }] = pass.recipe.steps.as_slice() else { panic!("one launch") };
    let Part::Bytes(_, places) = &pass.recipe.parts[parts[5]] else { panic!("parameters follow five maps") };
    let words = |index: usize| -> Vec<u32> {
        let from = places[index].1.offset as usize;
        image[from..].chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    };
    // row_start of five tiles or more, each with its runs
    let (row_start, runs) = (words(6), words(7));
    assert!(row_start[0] == 0 && row_start[1] > 0 && runs[0] & !(1 << 31) == 0, "{row_start:?}");
    // the map of the bitmaps is over their list
    let (Part::Map(_, bits), Part::Map(Map::Halves(_, _, strides, rows), q)) =
        (&pass.recipe.parts[parts[4]], &pass.recipe.parts[parts[0]])
    else {
        panic!("maps come first")
    };
    assert_eq!((*bits, *q), (places[10].1, At::call(0)));
    assert_eq!(*strides, Strides { b: 4 * 300 * 192, h: 192 * 300, s: 192 });
    assert!(*rows >= 64);
    assert!(pass.bytes()[2] >= 8, "the counter from which blocks take");
}

#[test]
fn a_backward_pass_has_the_workers_parameters_on_the_callers_tensors() {
    let problem = problem(Some(window()), None);
    let pass = backward(&problem, "sm_80", (false, true));
    let launches: Vec<_> = pass
        .recipe
        .steps
        .iter()
        .filter_map(|s| if let Step::Launch { parts, .. } = s { Some(parts) } else { None })
        .collect();
    assert_eq!(launches.len(), 3, "rows, the main kernel, queries");
    assert!(launches[0] == launches[2] && launches[1][0] == launches[0][0]);
    let bytes = filled(&pass, launches[0][0]);
    let (_, at) = call(&pass);
    let word = |name: &str| -> u64 {
        let before =
            BackwardParams::fields().into_iter().take_while(|(field, _)| *field != name).map(|f| f.1).sum::<usize>();
        u64::from_le_bytes(bytes[before..before + 8].try_into().unwrap())
    };
    for (index, name) in ["q", "k", "v", "o", "d_o", "lse", "d_lse", "dq", "dk", "dv"].into_iter().enumerate() {
        assert_eq!(word(name), at(index), "{name}");
    }
    for (name, wanted) in [("d_o_s", 192), ("o_s", 64), ("dq_s", 64), ("k_h", 192 * 300), ("dk_b", 2 * 300 * 64)] {
        assert_eq!(word(name), wanted, "{name}");
    }
    let inside = |name: &str, base: u64, bytes: usize| (base..base + bytes as u64).contains(&word(name));
    let [arena, scratch, _] = pass.bytes();
    for name in ["items", "row_start", "runs", "bitmap_start", "bitmap_ids", "bitmaps", "ranges", "order"] {
        assert!(inside(name, 1 << 20, arena), "{name}");
    }
    for name in ["rows", "dq_sum", "turns", "counter"] {
        assert!(inside(name, 2 << 20, scratch), "{name}");
    }
}

#[test]
fn floats_of_a_score_mod_are_the_callers_and_ints_are_kept() {
    let problem = reading();
    for arch in ["sm_80", "sm_90a"] {
        let pass = forward(&problem, arch);
        assert_eq!(pass.live(), [0], "{arch}");
        assert_eq!(pass.recipe.calls, 7);
        assert!(!pass.kernel().contains("bounded"), "{}", pass.kernel());
        let Part::Bytes(_, places) = &pass.recipe.parts[0] else { panic!("the mods are bytes") };
        assert_eq!(places[0], (0, At::call(6)));
        let image = pass.image(0);
        let kept = &image[places[1].1.offset as usize..][..12];
        assert_eq!(kept, [0i32, 1, 2].map(i32::to_le_bytes).concat(), "steps as the kernel reads them");
        let pass = backward(&problem, arch, (false, false));
        let learned: Vec<_> = pass.learned().iter().map(|own| (own.number, own.elements)).collect();
        assert_eq!(learned, [(0, 4)]);
        assert_eq!(pass.recipe.steps[0], Step::Zero(At::call(11), 16), "the gradient is a sum");
        assert_eq!(pass.recipe.calls, 12);
    }
}

#[test]
fn gradients_in_one_order_go_through_bins() {
    let pass = backward(&reading(), "sm_80", (true, false));
    let zeros = pass.recipe.steps.iter().filter(|step| matches!(step, Step::Zero(..))).count();
    assert_eq!(zeros, 2, "the sum and its bins");
    let entries: Vec<_> = pass.recipe.kernels.iter().map(|code| code.entry).collect();
    assert_eq!(entries.last(), Some(&"backward_captured"));
}

/// Another length, another literal and another window are the same kernel.
#[test]
fn another_length_or_number_is_the_same_code() {
    let of = |length: usize, width: i64, arch: &str| {
        let mask = make(ModKind::Mask, |g| {
            let (q, k, width) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.int(width));
            let distance = g.binary(BinaryOp::Sub, q, k);
            g.binary(BinaryOp::Lt, distance, width)
        });
        let spec = ProblemSpec { mask: Some(mask), ..ProblemSpec::plain(2, (4, 2), (length, length), 64) };
        let problem = Problem::new(spec).expect("valid");
        let keys = |pass: &Pass| pass.recipe.kernels.iter().map(|code| code.key.clone()).collect::<Vec<_>>();
        (keys(&forward(&problem, arch)), keys(&backward(&problem, arch, (false, false))))
    };
    for arch in ["sm_80", "sm_90a"] {
        assert_eq!(of(2048, 50, arch), of(3000, 70, arch), "{arch}");
    }
}

#[test]
fn what_kernels_cannot_read_is_refused() {
    for strides in [[0, 64, 64], [64, 60, 64], [-64, 64, 64]] {
        assert_eq!(Layouts::new(&[strides]).unwrap_err().code, "strides");
    }
    let mut spec = problem(None, None).spec().clone();
    spec.dtype = crate::base::DType::F32;
    let single = Problem::new(spec).expect("valid");
    let card = Card::usual("sm_90").expect("known");
    let why = Pass::forward(&single, &layouts(), false, &card, &Echo, None).err().expect("refused");
    assert_eq!(why.code, "gpu-float32");
    assert!(Card::usual("sm_75").is_err());
}
