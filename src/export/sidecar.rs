//! The runtime sidecar: a Python package and its settings, which load the exported module in a trainer's own process.
//!
//! Invariant: the package is the same for every design; the differences are in `sidecar.json`. Must not know how the
//! module is written.

use super::about;
use super::module::OtherLengths;
use super::{ExportFile, ExportKind};
use crate::base::identity;
use crate::document::model::{Axis, Document};
use crate::problem::Problem;
use serde_json::{Value, json};

/// The folder, next to the module.
const FOLDER: &str = "sidecar";

macro_rules! package {
    ($($name:literal),* $(,)?) => {
        &[
            // the package has this file, too
            ("maskloom_sidecar/divided.py", include_str!("../../python/maskloom/_divided.py")),
            $(($name, include_str!(concat!("../../assets/python/sidecar/", $name)))),*
        ]
    };
}

const PACKAGE: &[(&str, &str)] = package![
    "sitecustomize.py",
    "maskloom_sidecar/__init__.py",
    "maskloom_sidecar/__main__.py",
    "maskloom_sidecar/aliases.py",
    "maskloom_sidecar/applied.py",
    "maskloom_sidecar/attention.py",
    "maskloom_sidecar/cache.py",
    "maskloom_sidecar/calls.py",
    "maskloom_sidecar/construction.py",
    "maskloom_sidecar/counts.py",
    "maskloom_sidecar/designs.py",
    "maskloom_sidecar/difference.py",
    "maskloom_sidecar/grids.py",
    "maskloom_sidecar/hf.py",
    "maskloom_sidecar/kernels.py",
    "maskloom_sidecar/layers.py",
    "maskloom_sidecar/learning.py",
    "maskloom_sidecar/patched.py",
    "maskloom_sidecar/pickled.py",
    "maskloom_sidecar/plan.py",
    "maskloom_sidecar/planning.py",
    "maskloom_sidecar/positions.py",
    "maskloom_sidecar/recording.py",
    "maskloom_sidecar/reference.py",
    "maskloom_sidecar/settings.py",
    "maskloom_sidecar/verified.py",
];

/// The files of the sidecar for the module `stem`.
pub fn sidecar(document: &Document, problem: &Problem, stem: &str) -> Vec<ExportFile> {
    let axes = &document.axes;
    let cross = is_cross(document, problem);
    let any = about::other_lengths(document, problem) == OtherLengths::Any;
    let settings = json!({
        "maskloom": identity::build().to_string(),
        "module": format!("../{stem}.py"),
        "design": document.name,
        "attention": if cross { "cross" } else { "self" },
        "axes": { "q": segments(&axes.q), "kv": segments(axes.kv()) },
        "shapes": if any { "any" } else { "exact" },
        "tables": about::captures(problem),
        "layers": null,
    });
    let settings = format!("{settings:#}\n");
    let what = "the sidecar's settings: which module it loads, for which tokens, and which layers (\"layers\")";
    let mut files = vec![ExportFile::new(ExportKind::Sidecar, format!("{FOLDER}/sidecar.json"), settings, what)];
    let what = |name: &str| match name {
        "sitecustomize.py" => "loads the sidecar into a trainer: PYTHONPATH=.../sidecar, MASKLOOM_SIDECAR=...",
        _ => "the runtime: replaces a model's attention by the design, for the sidecar and the adapters",
    };
    let text = |text: &str| identified(text);
    files.extend(
        PACKAGE.iter().map(|(n, t)| ExportFile::new(ExportKind::Sidecar, format!("{FOLDER}/{n}"), text(t), what(n))),
    );
    files
}

/// Puts the build and the runtime's hash into a text: an adapter and a runtime belong together if their hashes are equal, also
/// where both are of builds with changes that no commit has.
pub(super) fn identified(text: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in PACKAGE.iter().flat_map(|(name, text)| [name, text]) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let hash = hasher.finalize().to_hex();
    text.replace("MASKLOOM_VERSION", &identity::build().to_string()).replace("MASKLOOM_PACKAGE", &hash[..16])
}

/// Whether a design is of attention from one sequence to another.
fn is_cross(document: &Document, problem: &Problem) -> bool {
    document.axes.kv.is_some() || problem.q_len != problem.kv_len
}

/// `[["text", [16]], ["image", [8, 8]]]`
fn segments(axis: &Axis) -> Value {
    axis.segments.iter().map(|s| json!([s.name, s.grid])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::library;

    fn settings(preset: &str) -> Option<Value> {
        let document = library::preset(preset).expect("there").document().expect("loads");
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("compiles");
        let files = sidecar(&document, &problem, "mine");
        let first = files.first()?;
        assert_eq!(files.len(), PACKAGE.len() + 1);
        assert_eq!(first.name, "sidecar/sidecar.json");
        serde_json::from_slice(&first.bytes).ok()
    }

    #[test]
    fn a_formula_over_plain_tokens_holds_at_any_length_and_a_grid_only_at_its_own() {
        for (preset, shapes) in
            [("causal", "any"), ("sliding_window", "any"), ("natten_2d", "exact"), ("painted_blocks", "exact")]
        {
            let settings = settings(preset).expect("made");
            assert_eq!((settings["shapes"].as_str(), settings["module"].as_str()), (Some(shapes), Some("../mine.py")));
        }
        let cross = settings("sdxl_cross").expect("made");
        assert_eq!((cross["attention"].as_str(), cross["axes"]["kv"][0][1][0].as_u64()), (Some("cross"), Some(77)));
    }
}
