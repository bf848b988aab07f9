//! The kernels that find a mask's blocks, on this processor: their text, as NVRTC receives it, on the machine of `machine/hopper.h`, with the
//! recipe's parameters and grids; and compiled by the real NVRTC.
//!
//! Invariant: memory is poison before a run; lists are compared entry by entry with `analysis::block_mask`, and masks with the interpreter's by
//! way of it. It tests no speed. Prints skipped without a C++ compiler, and without NVRTC.

use super::Card;
use super::block_mask::{Wanted, recipe};
use super::recipe::{At, CALL, Part, Recipe, SCRATCH, Step};
use super::tests::Echo;
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::backends::cuda::choose::tests::make;
use crate::backends::cuda::emit::run_tests::{PRELUDE, compiled};
use crate::backends::cuda::emit::tests::nvrtc;
use crate::backends::cuda::launch::hopper_tests::{MACHINE, housed, quiet};
use crate::backends::cuda::variant::exact;
use crate::base::tensor::Data;
use crate::base::{BlockSize, Control, HostTensor, Lengths};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, UnaryOp};
use crate::ir::random::{self, Options};
use std::fmt::Write;

struct Case {
    mask: Mod,
    wanted: Wanted,
    made: Recipe,
    /// Blocks of the first entry that spans decide, at least.
    decided: Option<i32>,
}

/// Where the lists of so many rows and columns begin: 16 elements are between them, which nobody may write. And where the last ends.
fn places(pairs: usize, rows: usize, columns: usize, separate: bool) -> ([Option<usize>; 8], usize) {
    let (mut found, mut at) = ([None; 8], 16);
    for (number, place) in found.iter_mut().enumerate() {
        if separate || number % 4 < 2 {
            let own = if number < 4 { rows } else { columns };
            *place = Some(at);
            at += 16 + pairs * if number % 2 == 0 { own } else { rows * columns };
        }
    }
    (found, at)
}

impl Case {
    fn new(mask: Mod, groups: (usize, usize), lengths: (usize, usize), block: (usize, usize), separate: bool) -> Case {
        let (lengths, block) =
            (Lengths::new(lengths.0, lengths.1).expect("lengths"), BlockSize { q: block.0, kv: block.1 });
        let (rows, columns) = (lengths.q_len.div_ceil(block.q), lengths.kv_len.div_ceil(block.kv));
        let wanted = Wanted { groups, lengths, block, places: places(groups.0 * groups.1, rows, columns, separate).0 };
        let card = Card::usual("sm_90a").expect("known");
        let made = recipe(&mask, &wanted, &card, &Echo, None).expect("a mask that the kernel takes");
        Case { mask, wanted, made, decided: None }
    }

    fn grid(&self) -> (usize, usize) {
        let Wanted { lengths, block, .. } = self.wanted;
        (lengths.q_len.div_ceil(block.q), lengths.kv_len.div_ceil(block.kv))
    }

    /// Elements of the lists with what lies between them.
    fn elements(&self) -> usize {
        let (rows, columns) = self.grid();
        places(self.wanted.groups.0 * self.wanted.groups.1, rows, columns, self.wanted.places[2].is_some()).1
    }

    /// The kernels in a namespace, and a function that prints the lists.
    fn program(&self, at: usize) -> String {
        let text = String::from_utf8(self.made.kernels[0].cubin.clone()).expect("the text");
        // entries of many namespaces would have one name
        let mut text = housed(&format!("case{at}"), &text.replace("extern \"C\" ", ""), &["ptx.cuh"]);
        let _ = writeln!(text, "namespace case{at} {{");
        for (number, captured) in self.mask.graph.captures().iter().enumerate() {
            let tensor = &captured.tensor;
            let (class, values): (_, Vec<String>) = match tensor.data() {
                Data::Bool(values) => ("u8", values.iter().map(u8::to_string).collect()),
                Data::F64(values) => ("double", values.iter().map(|x| format!("{x:?}")).collect()),
                _ if tensor.dtype().is_float() => {
                    let bits = |x: &f32| format!("__int_as_float({})", x.to_bits() as i32);
                    ("float", tensor.to_f32_vec().iter().map(bits).collect())
                }
                _ => ("i64", tensor.to_i64_vec().iter().map(|x| format!("{x}ll")).collect()),
            };
            let _ = writeln!(text, "static const {class} captured{number}[] = {{{}}};", values.join(", "));
        }
        let _ = writeln!(text, "void run() {{\n    vector<u8> classes({}, 77); // and spans", self.made.scratch);
        let _ = writeln!(text, "    vector<int> lists({}, -7);", self.elements());
        for (number, part) in self.made.parts.iter().enumerate() {
            let Part::Bytes(raw, places) = part else { panic!("no maps") };
            let bytes: Vec<String> = raw.iter().map(u8::to_string).collect();
            let class = if number == 0 { "Blocks" } else { "Mods" };
            let _ = writeln!(text, "    static const u8 raw{number}[] = {{{}}};", bytes.join(", "));
            let _ = writeln!(text, "    static_assert(sizeof({class}) == sizeof raw{number});");
            let _ = writeln!(
                text,
                "    {class} part{number};\n    memcpy(&part{number}, raw{number}, sizeof raw{number});"
            );
            for (offset, At { base, offset: further }) in places {
                let base = match *base {
                    SCRATCH => "classes.data()".to_string(),
                    CALL => "lists.data()".to_string(),
                    other => format!("captured{}", other - CALL - 1),
                };
                let _ = writeln!(
                    text,
                    "    {{ const u8 *to = (const u8 *){base} + {further}; memcpy((u8 *)&part{number} + {offset}, &to, 8); }}"
                );
            }
        }
        for step in &self.made.steps {
            let Step::Launch { kernel, parts, grid } = step else { panic!("no zeros") };
            let entry = self.made.kernels[*kernel].entry;
            let given: Vec<String> = parts.iter().map(|part| format!("part{part}")).collect();
            let (x, y, z) = grid.blocks;
            let _ = writeln!(
                text,
                "    run_grid({{{x}, {y}, {z}}}, {}, 16, 1, [&] {{ {entry}({}); }});",
                grid.threads,
                given.join(", ")
            );
        }
        // how many blocks the spans decide
        let (rows, columns) = self.grid();
        let Wanted { lengths: Lengths { q_len, kv_len }, block: BlockSize { q, kv }, .. } = self.wanted;
        let _ = writeln!(
            text,
            "    int decided = 0;\n    for (int row = 0; row < {rows}; ++row) for (int column = 0; column < {columns}; ++column)\n        decided += \
             is_one(mask_span(part1, head_values(part1, 0, 0), row_spans(part0.spans + row * 2 * SPANS), column_spans(part0.spans + ({rows} + \
             column) * 2 * SPANS), 0, 0, {{row * {q}, min(row * {q} + {q}, {q_len}) - 1}}, {{column * {kv}, min(column * {kv} + {kv}, {kv_len}) - 1}}));"
        );
        text + "    here = nullptr;\n    printf(\"%d\\n\", decided);\n    for (int value : lists) printf(\"%d\\n\", value);\n}\n}\n"
    }

    /// The lists as the host finds them, with what lies between them.
    fn expected(&self) -> Vec<i32> {
        let Wanted { groups, lengths, block, places } = self.wanted;
        let shape = MaskShape { batch: groups.0, heads: groups.1, lengths };
        let found = BlockMask::build(Some(&self.mask), shape, block, &Control::new()).expect("blocks");
        let lists = found.torch_lists();
        let mut all = vec![-7; self.elements()];
        for (number, side) in
            [crate::analysis::block_mask::Side::Kv, crate::analysis::block_mask::Side::Q].into_iter().enumerate()
        {
            use crate::analysis::block_mask::Listed::{Both, Full, Partial};
            let kinds = if places[2].is_some() { vec![Partial, Full] } else { vec![Both] };
            for (kind, listed) in kinds.into_iter().enumerate() {
                let (rows, entries) = lists.shapes(side);
                let (mut counts, mut indices) = (vec![0; rows.iter().product()], vec![0; entries.iter().product()]);
                lists.write(side, listed, &mut counts, &mut indices);
                let place = |what: usize| places[4 * number + 2 * kind + what].expect("wanted");
                all[place(0)..place(0) + counts.len()].copy_from_slice(&counts);
                all[place(1)..place(1) + indices.len()].copy_from_slice(&indices);
            }
        }
        all
    }
}

/// A mask of (b, h, q_idx, kv_idx).
fn mask(build: impl FnOnce(&mut Graph, [NodeId; 4]) -> NodeId) -> Mod {
    let made = make(ModKind::Mask, |g| {
        let inputs = [Input::B, Input::H, Input::QIdx, Input::KvIdx].map(|input| g.input(input));
        build(g, inputs)
    });
    (*made).clone()
}

fn read(g: &mut Graph, name: &str, tensor: HostTensor, index: &[NodeId]) -> NodeId {
    let captured = g.add_capture(name, tensor);
    g.add(Op::Load(captured, index.iter().copied().collect()), None)
}

/// Documents by numbers that no 32 bits hold and that differ in the upper ones alone.
fn documents() -> Mod {
    mask(|g, [_, _, q, k]| {
        let own = HostTensor::vector(Data::I64((0..300).map(|n: i64| (n / 70) << 33).collect()));
        let (a, b) = (read(g, "doc", own.clone(), &[q]), read(g, "doc", own, &[k]));
        let (same, causal) = (g.binary(BinaryOp::Eq, a, b), g.binary(BinaryOp::Ge, q, k));
        g.binary(BinaryOp::And, same, causal)
    })
}

/// A product that wraps in 64 bits, as PyTorch's does, and one of int32 that wraps in 32.
fn wrapping() -> Mod {
    mask(|g, [_, _, q, k]| {
        let long = HostTensor::vector(Data::I64((0..300).map(|n: i64| n << 55).collect()));
        let (a, b) = (read(g, "long", long.clone(), &[q]), read(g, "long", long, &[k]));
        let product = g.binary(BinaryOp::Add, a, b);
        let zero = g.int(0);
        let wrapped = g.binary(BinaryOp::Lt, product, zero);
        let far = g.int(2_000_000_000);
        let short = g.binary(BinaryOp::Mul, q, far);
        let short = g.unary(UnaryOp::As(crate::base::DType::I32), short);
        let negative = g.binary(BinaryOp::Lt, short, k);
        g.binary(BinaryOp::Xor, wrapped, negative)
    })
}

/// Spans by head, lengths by batch entry, a table of blocks, quotients of negative numbers.
fn by_groups() -> Mod {
    mask(|g, [b, h, q, k]| {
        let spans = read(g, "spans", HostTensor::vector(Data::I16(vec![3, 40, 200])), &[h]);
        let ends = read(g, "ends", HostTensor::vector(Data::I32(vec![90, 299])), &[b]);
        let table = HostTensor::new([5, 5], Data::Bool((0..25).map(|n| u8::from(n % 3 > 0)).collect())).expect("5 x 5");
        let size = g.int(60);
        let (row, column) = (g.binary(BinaryOp::FloorDiv, q, size), g.binary(BinaryOp::FloorDiv, k, size));
        let listed = read(g, "table", table, &[row, column]);
        let distance = g.binary(BinaryOp::Sub, q, k);
        let seven = g.int(-7);
        let (step, rest) = (g.binary(BinaryOp::FloorDiv, distance, seven), g.binary(BinaryOp::Mod, distance, seven));
        let (far, few) = (g.unary(UnaryOp::Abs, distance), g.binary(BinaryOp::Min, step, rest));
        let near = g.binary(BinaryOp::Le, far, spans);
        let (inside, low) = (g.binary(BinaryOp::Lt, k, ends), g.binary(BinaryOp::Lt, few, step));
        let kept = g.binary(BinaryOp::And, near, inside);
        let kept = g.binary(BinaryOp::And, kept, listed);
        g.binary(BinaryOp::Or, kept, low)
    })
}

fn floats() -> Mod {
    mask(|g, [_, _, q, k]| {
        let single = HostTensor::vector(Data::F32((0..300).map(|n| (n * 37 % 101) as f32 / 50.0).collect()));
        let double = HostTensor::vector(Data::F64((0..300).map(|n| f64::from(n) / 150.0).collect()));
        let (a, b) = (read(g, "single", single, &[q]), read(g, "double", double, &[k]));
        let a = g.unary(UnaryOp::ToDouble, a);
        g.binary(BinaryOp::Lt, a, b)
    })
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        // above the diagonal, and documents that do not meet
        Case { decided: Some(4), ..Case::new(documents(), (1, 1), (300, 300), (128, 128), true) },
        Case { decided: Some(20), ..Case::new(documents(), (2, 3), (257, 140), (32, 64), false) },
        Case::new(wrapping(), (1, 1), (300, 300), (64, 32), true),
        Case::new(by_groups(), (2, 3), (300, 290), (64, 64), true),
        Case::new(by_groups(), (2, 3), (256, 256), (256, 16), false),
        Case::new(floats(), (1, 2), (300, 200), (48, 80), true),
        Case::new(mask(|g, _| g.bool(true)), (2, 1), (256, 300), (64, 64), true),
        Case::new(mask(|g, _| g.bool(false)), (1, 1), (100, 100), (32, 32), true),
    ];
    let options = Options { batch: 2, heads: 3, ..Options::new(150, 170) };
    let random = (0..40).map(|seed| random::mask(seed, &options)).filter(exact::in_wide_ints);
    let sized = random.enumerate().map(|(at, mask)| {
        let block = [(16, 32), (64, 64), (128, 128)][at % 3];
        Case::new(mask, (2, 3), (150, 170), block, at % 4 != 0)
    });
    cases.extend(sized.take(12));
    cases
}

#[test]
fn the_blocks_are_those_that_the_host_finds() {
    let cases = cases();
    assert_eq!(cases.len(), 20, "random masks that the kernel takes");
    let mut text = format!("#define ML_BF16 1\n#define ML_MAX_SCORES 0\n#define ML_BOUNDED 0\n{PRELUDE}{MACHINE}");
    cases.iter().enumerate().for_each(|(at, case)| text += &case.program(at));
    let calls: String = (0..cases.len()).map(|at| format!("    case{at}::run();\n")).collect();
    text += &format!("int main() {{\n    how.landing = 1;\n{calls}}}\n");
    let folder = tempfile::tempdir().expect("a folder");
    let Some(binary) = compiled(&text, folder.path(), &mut quiet("c++"), &["-O1"]) else { return };
    let ran = quiet(&binary).output().expect("runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let out = String::from_utf8(ran.stdout).expect("text");
    let mut found = out.lines().map(|line| line.parse::<i32>().expect("a number"));
    for (at, case) in cases.iter().enumerate() {
        let decided = found.next().expect("how many blocks spans decide");
        let own: Vec<i32> = found.by_ref().take(case.elements()).collect();
        assert!(own == case.expected(), "case {at}: other lists");
        if let Some(least) = case.decided {
            assert!(decided >= least, "case {at}: spans decide {decided} blocks of the first entry, not {least}");
        }
    }
    assert_eq!(found.count(), 0);
}

#[test]
fn the_struct_is_the_kernels() {
    use crate::backends::cuda::embedded::block_mask::Blocks;
    use crate::backends::cuda::launch::params::declared;
    let text = include_str!("../../../../kernels/block_mask.cu");
    let own: Vec<_> = Blocks::fields().into_iter().map(|(name, size)| (name.to_string(), size)).collect();
    assert_eq!(own, declared(text, "Blocks"));
}

#[test]
fn the_kernels_compile_for_every_architecture() {
    let Some(nvrtc) = nvrtc() else { return };
    for (arch, mask) in [("sm_80", documents()), ("sm_90a", by_groups()), ("sm_100", wrapping()), ("sm_120", floats())]
    {
        let wanted = Case::new(documents(), (2, 3), (300, 300), (128, 128), true).wanted;
        let card = Card::usual(arch).expect("known");
        let made = recipe(&mask, &wanted, &card, &nvrtc, None).unwrap_or_else(|why| panic!("{arch}: {why}"));
        assert!(made.kernels.iter().all(|code| code.cubin.len() > 1000), "{arch}");
    }
}

#[test]
fn what_the_host_finds_sooner_or_otherwise_is_refused() {
    let card = Card::usual("sm_90a").expect("known");
    let wanted = Case::new(documents(), (1, 1), (300, 300), (128, 128), true).wanted;
    let refused = |mask: &Mod, wanted: Wanted| {
        let why = recipe(mask, &wanted, &card, &Echo, None).expect_err("it is not taken");
        assert_eq!(why.code, "block-mask-on-card", "{why}");
        why.message
    };
    let long = Lengths::new(262_144, 262_144).expect("lengths");
    assert!(refused(&documents(), Wanted { lengths: long, ..wanted }).contains("so many cells"));
    assert!(refused(&documents(), Wanted { block: BlockSize { q: 8, kv: 128 }, ..wanted }).contains("small"));
    let bent = mask(|g, [_, _, q, k]| {
        let (q, k) = (g.unary(UnaryOp::ToFloat, q), g.unary(UnaryOp::ToFloat, k));
        let bent = g.unary(UnaryOp::Sin, q);
        g.binary(BinaryOp::Lt, bent, k)
    });
    assert!(refused(&bent, wanted).contains("otherwise"));
}
