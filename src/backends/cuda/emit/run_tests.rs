//! Emitted text compared with the interpreter: run on this processor, through its C++ compiler if there is one.

use super::functions::emit;
use super::mods::LiftedMods;
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, NodeId, Op, Ty, UnaryOp, load_ty};
use crate::ir::random::{self, Options};
use smallvec::smallvec;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const SIZE: i64 = 23;
const SCORE: f32 = 0.75;

/// CUDA's words in C++, and the header of the mods.
pub(crate) const PRELUDE: &str = r#"
#include <cmath>
#include <cstdio>
#include <cstring>
using namespace std;
typedef unsigned char u8; typedef unsigned u32; typedef long long i64;
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
template <class T> T __ldg(const T *at) { return *at; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float __int_as_float(int i) { float f; memcpy(&f, &i, 4); return f; }
inline float __uint_as_float(unsigned i) { float f; memcpy(&f, &i, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned i; memcpy(&i, &f, 4); return i; }
inline float negative_infinity() { return -INFINITY; }
inline float exp2_fast(float x) { return exp2f(x); }
inline float log2_fast(float x) { return log2f(x); }
inline float reciprocal_fast(float x) { return 1.0f / x; }
inline float tanh_fast(float x) { return tanhf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float erfcxf(float a) { double x = a; return x < 9.0 ? exp(x * x) * erfc(x) : (1 - 0.5 / (x * x) + 0.75 / (x * x * x * x)) / (x * sqrt(M_PI)); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
"#;

/// A namespace with one pair of mods and a function that prints its cells.
fn program(at: usize, lifted: &LiftedMods) -> String {
    let mut text = format!("namespace case{at} {{\n{}\n", emit(&lifted.template()).text);
    let mut fill = String::new();
    for (i, (_, tensor)) in lifted.captures().iter().enumerate() {
        let (class, values): (_, Vec<String>) = match load_ty(tensor.dtype()) {
            Ty::Bool => ("u8", tensor.to_i64_vec().iter().map(i64::to_string).collect()),
            Ty::Int => ("int", tensor.to_i64_vec().iter().map(i64::to_string).collect()),
            Ty::Double => ("double", (0..tensor.numel()).map(|i| format!("{:?}", tensor.float_at(i))).collect()),
            Ty::Float => (
                "float",
                tensor.to_f32_vec().iter().map(|f| format!("__int_as_float({})", f.to_bits() as i32)).collect(),
            ),
        };
        let _ = writeln!(text, "static const {class} capture{i}[] = {{{}}};", values.join(", "));
        let _ = writeln!(fill, "    m.c{i} = capture{i};");
        for (axis, size) in tensor.shape().iter().enumerate() {
            let _ = writeln!(fill, "    m.d{i}_{axis} = {size};");
        }
    }
    fill += &fill_uniforms(lifted);
    let _ = write!(
        text,
        r#"void print() {{
    Mods m;
{fill}
    for (int b = 0; b < 2; ++b) for (int h = 0; h < 3; ++h) {{
        HeadValues head = head_values(m, b, h);
        for (int q = 0; q < {SIZE}; ++q) {{
            RowValues row = row_values(m, head, b, h, q);
            for (int k = 0; k < {SIZE}; ++k) {{
                ColumnValues column = column_values(m, head, b, h, k);
                float raw = {SCORE:?}f * 2.0f;
                float score = (q + k) % 2 ? score_mod(m, 1, raw, 0.5f, head, row, column, b, h, q, k)
                                          : score_mod(m, 0, raw, 0.5f, head, row, column, b, h, q, k);
                printf("%d %.9g\n", mask_mod(m, head, row, column, b, h, q, k), score);
            }}
        }}
    }}
}}
}}
"#
    );
    text
}

/// Statements that give a `Mods m` its uniforms.
pub(crate) fn fill_uniforms(lifted: &LiftedMods) -> String {
    let ints = lifted.ints.iter().enumerate().map(|(i, v)| format!("    m.ui[{i}] = {v};\n"));
    let bits = |v: &f32| v.to_bits() as i32;
    let floats = lifted.floats.iter().enumerate();
    ints.chain(floats.map(|(i, v)| format!("    m.uf[{i}] = __int_as_float({});\n", bits(v)))).collect()
}

/// A C++ program, compiled in `folder` by `compiler` with `options`; or a line in the test's output that there is no
/// compiler.
pub(crate) fn compiled(text: &str, folder: &Path, compiler: &mut Command, options: &[&str]) -> Option<PathBuf> {
    if Command::new("c++").arg("--version").output().is_err() {
        maskloom_testing::needs::missing("cxx", "no C++ compiler");
        return None;
    }
    let (source, binary) = (folder.join("program.cpp"), folder.join("program"));
    std::fs::write(&source, text).expect("written");
    compiler.args(FLAGS).args(options);
    if let Some(headers) = headers(options) {
        compiler.arg("-include").arg(headers);
    }
    let made = compiler.arg("-o").arg(&binary).arg(&source).output().expect("there is a compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(binary)
}

const FLAGS: [&str; 3] = ["-std=c++17", "-w", "-fwrapv"];

/// The standard headers that programs include, compiled once for these options: half a second of each program. A compiler that
/// cannot use them reads the text.
fn headers(options: &[&str]) -> Option<PathBuf> {
    const TEXT: &str = "#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <deque>\n\
                        #include <functional>\n#include <memory>\n#include <vector>\n";
    static MADE: Mutex<()> = Mutex::new(());
    let _one = MADE.lock().ok()?;
    let beside = std::env::current_exe().ok()?.parent()?.join("compiled_headers");
    let folder = beside.join(blake3::hash(format!("{FLAGS:?}{options:?}{TEXT}").as_bytes()).to_hex().as_str());
    let (text, made) = (folder.join("standard.hpp"), folder.join("standard.hpp.gch"));
    if !made.exists() {
        std::fs::create_dir_all(&folder).ok()?;
        std::fs::write(&text, TEXT).ok()?;
        // another process may do the same
        let own = folder.join(format!("{}.gch", std::process::id()));
        let mut compiler = Command::new("c++");
        compiler.args(FLAGS).args(options).args(["-x", "c++-header"]).arg(&text).arg("-o").arg(&own);
        compiler.status().ok().filter(|status| status.success())?;
        std::fs::rename(own, made).ok()?;
    }
    Some(text)
}

/// Output of the C++ program; None without a compiler.
fn run(text: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = compiled(text, folder.path(), &mut Command::new("c++"), &["-O1", "-ffp-contract=off"])?;
    let ran = Command::new(&binary).output().expect("runs");
    Some(String::from_utf8(ran.stdout).expect("text"))
}

/// Numbers of single precision after a few functions.
fn close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 2e-4 * b.abs().max(1.0)
}

/// The form of emitted mods for this processor's registers.
fn header() -> String {
    include_str!("../../../../kernels/mods.cuh").replace("\"+f\"", "\"+x\"")
}

/// Every cell is seen once, in its row and column, for any number of columns in a pass; all scores are back in place.
#[test]
fn scores_that_pass_by_come_back_to_their_places() {
    const PASSES: &str = r#"
template <int WANTED, int TILES, int GROUPS> bool right() {
    float score[TILES][GROUPS][4];
    for (int m = 0; m < TILES; ++m) for (int n = 0; n < GROUPS; ++n) for (int c = 0; c < 4; ++c) score[m][n][c] = m * 1000 + n * 4 + c;
    bool same = true;
    by_columns<WANTED>(score, 7, 600, [&](int q_idx, int kv_idx, int n) {
        int group = (kv_idx - 600) / 8, e = (kv_idx - 600) % 8;
        for (int m = 0; m < TILES; ++m) for (int r = 0; r < 2; ++r) {
            float &s = score[m][n / 2][2 * r + n % 2];
            same = same && q_idx == 7 && e == n % 2 && s == m * 1000 + group * 4 + 2 * r + e;
            s += 1e5f;
        }
    });
    for (int m = 0; m < TILES; ++m) for (int n = 0; n < GROUPS; ++n) for (int c = 0; c < 4; ++c)
        same = same && score[m][n][c] == 1e5f + m * 1000 + n * 4 + c;
    return same;
}
template <int WANTED> bool all() {
    return right<WANTED, 1, 16>() && right<WANTED, 1, 12>() && right<WANTED, 1, 10>() && right<WANTED, 2, 8>() && right<WANTED, 1, 2>();
}
int main() { printf("%d %d %d %d\n", all<64>(), all<4>(), all<3>(), all<1>()); }
"#;
    let Some(out) = run(&format!("{PRELUDE}{}{PASSES}", header())) else { return };
    assert_eq!(out.trim(), "1 1 1 1");
}

#[test]
fn values_taken_out_of_the_cell_are_the_cells_own() {
    let options = Options { batch: 2, heads: 3, ..Options::new(SIZE as usize, SIZE as usize) };
    let pairs: Vec<(Mod, Mod)> =
        (0..40).map(|seed| (random::mask(seed, &options), random::score(seed, &options))).collect();
    let mut text = format!("{PRELUDE}{}", header());
    let lifted: Vec<LiftedMods> = pairs.iter().map(|(mask, score)| LiftedMods::new(Some(mask), Some(score))).collect();
    lifted.iter().enumerate().for_each(|(at, mods)| text += &program(at, mods));
    let calls: String = (0..pairs.len()).map(|at| format!("    case{at}::print();\n")).collect();
    text += &format!("int main() {{\n{calls}}}\n");
    assert!(text.contains("head.v") && text.contains("row.v") && text.contains("column.v"), "nothing was taken out");
    let Some(out) = run(&text) else { return };
    let mut lines = out.lines();
    for (seed, (mask, score)) in pairs.iter().enumerate() {
        for (b, h, q_idx, kv_idx) in cells(2, 3) {
            let (keep, value) = lines.next().and_then(|line| line.split_once(' ')).expect("a line a cell");
            let cell = Cell { b, h, q_idx, kv_idx, score: f64::from(SCORE) };
            let expected = eval(score, &cell).as_float();
            assert_eq!(keep == "1", eval(mask, &cell).as_bool(), "seed {seed} {cell:?}");
            assert!(close(value.parse().expect("a float"), expected), "seed {seed} {cell:?}: {value}, not {expected}");
        }
    }
}

/// Floats with all their edges; finite where `finite`.
fn singles(finite: bool) -> Vec<f32> {
    let mut all = vec![
        0.0, -0.0, 1.0, -1.0, 0.1, -0.7, 2.5, -2.5, 3.5, 7.0, -7.25, 1e-3, 6.1e-5, 5.9e-8, -3e-6, 65519.0, 65520.5,
        -70000.0,
    ];
    all.extend(if finite {
        [300.25, -129.5, 128.0, 1e5, -1e5]
    } else {
        [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3e38, -1e-40]
    });
    all
}

fn doubles() -> Vec<f64> {
    singles(true).into_iter().map(|x| f64::from(x) * 1.000_000_000_3).collect()
}

/// A mask that keeps the cells where `value` is what the interpreter makes of it, of operands that differ in every cell.
fn equals_itself(value: impl Fn(&mut Graph, [NodeId; 6]) -> NodeId) -> Mod {
    let build = |expected: Option<HostTensor>| {
        let mut g = Graph::new();
        let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let mut table = |name: &str, data: Data, index: NodeId| {
            let capture = g.add_capture(name, HostTensor::vector(data));
            g.add(Op::Load(capture, smallvec![index]), None)
        };
        let operands = [
            table("fa", Data::F32(singles(false)), q),
            table("fb", Data::F32(singles(false).into_iter().rev().collect()), k),
            table("small", Data::F32(singles(true)), q),
            table("da", Data::F64(doubles()), q),
            table("db", Data::F64(doubles().into_iter().rev().collect()), k),
            table("ints", Data::I32((-11..12).map(|i| i * 37).collect()), q),
        ];
        let root = value(&mut g, operands);
        let root = match expected {
            Some(expected) => {
                let capture = g.add_capture("expected", expected);
                let there = g.add(Op::Load(capture, smallvec![q, k]), None);
                g.binary(BinaryOp::Eq, root, there)
            }
            None => root,
        };
        Mod { kind: ModKind::Mask, graph: g, root, sources: Vec::new() }
    };
    let plain = build(None);
    let ty = plain.graph.ty(plain.root);
    let value = |at: i64| {
        let cell = Cell { q_idx: at / SIZE, kv_idx: at % SIZE, ..Cell::default() };
        eval(&plain, &cell)
    };
    let all = 0..SIZE * SIZE;
    let data = match ty {
        Ty::Float => Data::F32(all.map(|at| value(at).as_float() as f32).collect()),
        Ty::Double => {
            Data::F64(all.map(|at| value(at).as_float()).map(|x| if x.is_finite() { x } else { 0.0 }).collect())
        }
        Ty::Int => Data::I32(all.map(|at| value(at).as_int() as i32).collect()),
        Ty::Bool => Data::Bool(all.map(|at| u8::from(value(at).as_bool())).collect()),
    };
    build(Some(HostTensor::new([SIZE as usize, SIZE as usize], data).expect("a table")))
}

/// Every operation that a formula may decide by, to the last bit: casts, both precisions, quotients, remainders, powers.
#[test]
fn each_operation_of_a_mask_is_the_hosts_to_the_last_bit() {
    use BinaryOp::{Add, Div, FloorDiv, Fmod, Max, Min, Mod as Remainder, Mul, Pow, Sub};
    use UnaryOp::{Abs, As, Ceil, Floor, Neg, Round, Rsqrt, Sqrt, ToDouble, ToFloat, ToInt, ToInt32, Trunc};
    let mut masks: Vec<(String, Mod)> = Vec::new();
    let of_two = [Add, Sub, Mul, Div, FloorDiv, Remainder, Fmod, Min, Max];
    for op in of_two {
        masks.push((format!("{op:?} of floats"), equals_itself(|g, [a, b, ..]| g.binary(op, a, b))));
        masks.push((format!("{op:?} of doubles"), equals_itself(|g, [_, _, _, a, b, _]| g.binary(op, a, b))));
    }
    for op in [FloorDiv, Remainder, Fmod, Pow, BinaryOp::TruncDiv] {
        let of_ints = equals_itself(|g, [.., a]| {
            let (k, seven) = (g.input(Input::KvIdx), g.int(7));
            let b = g.binary(if op == Pow { Remainder } else { Sub }, k, seven);
            let three = g.int(3);
            let a = if op == Pow { g.binary(Remainder, a, three) } else { a };
            g.binary(op, a, b)
        });
        masks.push((format!("{op:?} of ints"), of_ints));
    }
    masks.push(("Pow of doubles".into(), equals_itself(|g, [_, _, _, a, b, _]| g.binary(Pow, a, b))));
    for op in
        [Neg, Abs, Floor, Ceil, Round, Trunc, Sqrt, Rsqrt, ToDouble, As(DType::F16), As(DType::BF16), As(DType::F32)]
    {
        masks.push((format!("{op:?} of floats"), equals_itself(|g, [a, ..]| g.unary(op, a))));
    }
    for op in [Neg, Abs, Floor, Ceil, Round, Trunc, Sqrt, ToFloat, ToInt] {
        masks.push((format!("{op:?} of doubles"), equals_itself(|g, [_, _, _, a, ..]| g.unary(op, a))));
    }
    for op in [ToInt, ToInt32, UnaryOp::ToBool] {
        masks.push((format!("{op:?} of floats"), equals_itself(|g, [_, _, a, ..]| g.unary(op, a))));
    }
    for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64] {
        let cast = equals_itself(|g, [_, _, a, ..]| {
            let whole = g.unary(ToInt32, a);
            g.unary(As(dtype), whole)
        });
        masks.push((format!("{dtype} of floats"), cast));
    }
    let mut score = Graph::new();
    let root = score.input(Input::Score);
    let score = Mod { kind: ModKind::Score, graph: score, root, sources: Vec::new() };
    let mut text = format!("{PRELUDE}{}", header());
    for (at, (_, mask)) in masks.iter().enumerate() {
        text += &program(at, &LiftedMods::new(Some(mask), Some(&score)));
    }
    let calls: String = (0..masks.len()).map(|at| format!("    case{at}::print();\n")).collect();
    text += &format!("int main() {{\n{calls}}}\n");
    let Some(out) = run(&text) else { return };
    let mut lines = out.lines();
    for (name, mask) in &masks {
        let (mut kept, mut all) = (0, 0);
        for (b, h, q_idx, kv_idx) in cells(2, 3) {
            let keep = lines.next().and_then(|line| line.split_once(' ')).expect("a line a cell").0 == "1";
            let wanted = eval(mask, &Cell { b, h, q_idx, kv_idx, score: 0.0 }).as_bool();
            assert_eq!(keep, wanted, "{name} at q {q_idx} kv {kv_idx}");
            (kept, all) = (kept + u32::from(keep), all + 1);
        }
        assert!(2 * kept > all, "{name}: {kept} of {all} cells could be compared");
    }
}

fn cells(batch: i64, heads: i64) -> impl Iterator<Item = (i64, i64, i64, i64)> {
    let pairs = (0..batch).flat_map(move |b| (0..heads).map(move |h| (b, h)));
    pairs.flat_map(|(b, h)| (0..SIZE).flat_map(move |q| (0..SIZE).map(move |k| (b, h, q, k))))
}
