//! Every preset's module, run by real PyTorch.

use crate::app::smaller;
use crate::backends::inputs;
use crate::backends::reference::{choose_rows, reference};
use crate::base::tensor::Data;
use crate::base::{Control, DType, HostTensor};
use crate::document::library;
use crate::export::{ModuleOptions, block_mask, file_stem, torch_module_with};
use crate::problem::Problem;
use crate::service::{files, python, tensors};
use std::path::Path;

/// Query rows compared in each preset.
const ROWS: u32 = 48;
/// Tokens that the copies aim at.
const TOKENS: usize = 192;

/// A preset's problem at a small length, in float32.
fn problem(preset: &library::Preset) -> Problem {
    let document = preset.document().expect("it loads");
    let built = smaller::smaller_to(&document, None, TOKENS).unwrap_or_else(|| panic!("{}", preset.name));
    let mut spec = built.problem.as_ref().expect("it compiles").spec().clone();
    spec.dtype = DType::F32;
    Problem::new(spec).expect("valid")
}

/// Writes the module and what its output must be.
fn write_case(folder: &Path, name: &str, problem: &Problem) {
    let given = inputs::random(problem, 11);
    let rows = choose_rows(problem, ROWS);
    let places = rows.iter().flat_map(|r| [r.b as i64, r.h as i64, r.q as i64]).collect();
    let n = rows.len();
    let exact = reference(problem, &given, rows, &Control::new()).expect("computed");
    let out = exact.out.iter().map(|x| *x as f32).collect();
    let tensor = |shape: &[usize], data| HostTensor::new(shape, data).expect("a tensor");
    let (places, out) = (tensor(&[n, 3], Data::I64(places)), tensor(&[n, problem.head_dim_v], Data::F32(out)));
    let named = [("q", &given.q), ("k", &given.k), ("v", &given.v), ("rows", &places), ("out", &out)];
    let case = tensors::write(named.map(|(name, t)| (name.to_string(), t))).expect("written");
    let options = ModuleOptions { name: name.into(), title: name.into() };
    let mut all = torch_module_with(problem, &options);
    if problem.mask.is_some() {
        let blocks = block_mask(&format!("{name}_blocks.safetensors"), problem, &Control::new());
        all.push(blocks.expect("made"));
    }
    for file in all {
        files::save_under(folder, &file.name, &file.bytes).expect("saved");
    }
    files::save_under(folder, &format!("{name}_case.safetensors"), &case).expect("saved");
}

#[test]
fn pytorch_computes_with_every_presets_module_what_the_reference_does() {
    let Some(python) = python::find().filter(|p| p.packages.contains_key("torch")) else {
        return eprintln!("skipped: no Python with torch; set MASKLOOM_PYTHON");
    };
    let folder = tempfile::tempdir().expect("a folder");
    for preset in library::presets() {
        let name = file_stem(preset.name);
        write_case(&folder.path().join(&name), &name, &problem(preset));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/modules.py");
    let ran = std::process::Command::new(&python.path).arg(script).arg(folder.path()).output().expect("Python runs");
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(text.lines().count(), library::presets().len(), "{text}");
    eprintln!("{text}");
}
