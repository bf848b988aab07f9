//! Every preset's module, and those of the reference cases, run by real PyTorch.

use crate::backends::Inputs;
use crate::backends::reference::{choose_rows, reference};
use crate::base::tensor::Data;
use crate::base::{Control, DType, HostTensor};
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::scaling::Groups;
use crate::document::{library, scaling};
use crate::export::{ModuleOptions, block_mask, file_stem, torch_module_with};
use crate::ir::tiles::dense_mask;
use crate::problem::Problem;
use crate::tasks::conform;
use crate::worker::{files, tensors, user_python};
use maskloom_testing::needs;
use std::path::Path;

/// Query rows compared in each module, about.
const ROWS: usize = 200;
/// Tokens that the copies aim at.
const TOKENS: usize = 192;
/// For the inputs.
const SEED: u64 = 11;

/// A preset's problem at a small length, in float32.
fn problem(preset: &library::Preset, tokens: usize) -> Problem {
    let document = preset.document().expect("it loads");
    let groups = Groups::fewer(&document.settings, 4);
    let lengths = (0..8).map(|n| tokens << n);
    let mut copies = lengths.flat_map(|tokens| scaling::copies(&document, &BuiltIn, tokens, groups));
    let found = copies.find_map(|copy| from_document(&copy, &compile(&copy, &BuiltIn)).ok());
    let mut spec = found.unwrap_or_else(|| panic!("{}", preset.name)).spec().clone();
    spec.dtype = DType::F32;
    Problem::new(spec).expect("valid")
}

/// The same values as `made` of tests/python/modules.py, so that a case need not carry them.
fn made(shape: [usize; 4], stream: u64) -> HostTensor {
    let value = |position: u64| {
        let mut word = (position + (SEED * 4 + stream) * 0x9e37_79b9) as u32;
        for (shift, factor) in [(16, 0x7feb_352d), (15, 0x846c_a68b)] {
            word = (word ^ (word >> shift)).wrapping_mul(factor);
        }
        word ^= word >> 16;
        ((word >> 24) as f32 - 128.0) / 64.0
    };
    let count = shape.iter().product::<usize>() as u64;
    tensor(&shape, Data::F32((0..count).map(value).collect()))
}

fn tensor(shape: &[usize], data: Data) -> HostTensor {
    HostTensor::new(shape, data).expect("the count is the shape's product")
}

/// Writes the module and what its mask and output must be.
fn write_case(folder: &Path, name: &str, problem: &Problem) {
    let p = problem.spec();
    let given = Inputs {
        q: made([p.batch, p.heads, p.q_len, p.head_dim], 0),
        k: made([p.batch, p.kv_heads, p.kv_len, p.head_dim], 1),
        v: made([p.batch, p.kv_heads, p.kv_len, p.head_dim_v], 2),
    };
    let rows = choose_rows(problem, 48);
    let rows: Vec<_> = rows.iter().copied().step_by(rows.len().div_ceil(ROWS)).collect();
    let places = rows.iter().flat_map(|r| [r.b as i64, r.h as i64, r.q as i64]).collect();
    let n = rows.len();
    let exact = reference(problem, &given, rows, &Control::new()).expect("computed");
    let out = exact.out.iter().map(|x| *x as f32).collect();
    let shape = [p.batch, p.heads, p.kv_heads, p.q_len, p.kv_len, p.head_dim, p.head_dim_v, SEED as usize];
    let mut case = vec![
        ("case", HostTensor::vector(Data::I64(shape.iter().map(|n| *n as i64).collect()))),
        ("rows", tensor(&[n, 3], Data::I64(places))),
        ("out", tensor(&[n, p.head_dim_v], Data::F32(out))),
    ];
    let options = ModuleOptions { name: name.into(), title: name.into(), ..ModuleOptions::default() };
    let mut all = torch_module_with(problem, &options);
    if let Some(mask) = &problem.mask {
        let shape = problem.mask_shape();
        let cells = conform::pack(&dense_mask(mask, shape.batch, shape.heads, problem.lengths()));
        case.push(("mask", HostTensor::vector(Data::U8(cells))));
        let blocks = block_mask(&format!("{name}_blocks.safetensors"), problem, &Control::new());
        all.push(blocks.expect("made"));
    }
    for file in all {
        files::save_under(folder, &file.name, &file.bytes).expect("saved");
    }
    let bytes = tensors::write(case.iter().map(|(name, t)| (name.to_string(), t))).expect("written");
    files::save_under(folder, &format!("{name}_case.safetensors"), &bytes).expect("saved");
}

/// Writes every preset's module and those of the reference cases; how many. `cases` name functions of attn-gym.
fn write_all(folder: &Path, tokens: usize, cases: Option<&Path>) -> usize {
    let presets = library::presets().iter().map(|p| (file_stem(p.name), problem(p, tokens)));
    let named = |(name, problem)| (format!("case_{name}"), problem);
    let cases = cases.map(|file| conform::problems(file).expect("traced")).unwrap_or_default();
    let all = needs::taken(presets.chain(cases.into_iter().map(named)));
    for (name, problem) in &all {
        write_case(&folder.join(name), name, problem);
    }
    all.len()
}

/// With `MASKLOOM_MODULES=DIR` the modules are only written, for another machine: with `MASKLOOM_MODULES_TOKENS` tokens or so,
/// and those of the cases of `MASKLOOM_GOLDEN`.
#[test]
fn pytorch_computes_with_every_presets_module_what_the_reference_does() {
    let Some(python) = user_python::find().filter(|p| p.packages.contains_key("torch")) else {
        return needs::missing("torch", "no Python with torch; set MASKLOOM_PYTHON");
    };
    let golden = std::env::var_os("MASKLOOM_GOLDEN").map(Into::into);
    let golden = golden.unwrap_or_else(|| maskloom_testing::repository().join("tests/data/conform.json"));
    let gym = python.packages.contains_key("attn-gym");
    if !gym {
        needs::missing("gym", "no attention-gym beside torch: its cases are left out");
    }
    let cases = gym.then_some(golden.as_path());
    if let Some(folder) = std::env::var_os("MASKLOOM_MODULES") {
        let tokens = std::env::var("MASKLOOM_MODULES_TOKENS").map_or(TOKENS, |n| n.parse().expect("a number"));
        let count = write_all(Path::new(&folder), tokens, cases);
        return eprintln!("{count} modules in {}", folder.display());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let count = write_all(folder.path(), TOKENS, cases);
    let script = maskloom_testing::repository().join("tests/python/modules.py");
    let ran = std::process::Command::new(&python.path).arg(script).arg(folder.path()).output().expect("Python runs");
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(text.contains(&format!("{count} of {count} modules agree")), "{text}");
    eprintln!("{text}");
}
