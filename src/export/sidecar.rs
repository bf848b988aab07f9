//! The runtime sidecar: a Python package and its settings, which put the exported module into a trainer's own process.
//!
//! Invariant: the package is the same for every design; what differs stands in `sidecar.json`. Must not know how the
//! module is written.

use super::ExportFile;
use crate::document::model::{Axis, Document, MaskContent};
use crate::language::graph::Mod;
use crate::problem::Problem;
use serde_json::json;

/// The folder, beside the module.
const FOLDER: &str = "sidecar";

macro_rules! package {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../assets/python/sidecar/", $name)))),*]
    };
}

const PACKAGE: &[(&str, &str)] = package![
    "sitecustomize.py",
    "maskloom_sidecar/__init__.py",
    "maskloom_sidecar/settings.py",
    "maskloom_sidecar/layers.py",
    "maskloom_sidecar/masks.py",
    "maskloom_sidecar/seams.py",
];

/// The files of the sidecar for the module `stem`. None for a problem that is no self-attention.
pub fn sidecar(document: &Document, problem: &Problem, stem: &str) -> Vec<ExportFile> {
    if problem.q_len != problem.kv_len {
        return Vec::new();
    }
    let settings = json!({
        "module": format!("../{stem}.py"),
        "design": document.name,
        "shapes": if is_scale_free(document, problem) { "any" } else { "exact" },
        "tables": captures(problem),
    });
    let settings = format!("{settings:#}\n");
    let what = "the sidecar's settings: which module it loads, and whether its formula holds at other lengths";
    let mut files = vec![ExportFile::new(format!("{FOLDER}/sidecar.json"), settings, what)];
    let what = |name: &str| match name {
        "sitecustomize.py" => "loads the sidecar into a trainer: PYTHONPATH=.../sidecar, MASKLOOM_SIDECAR=...",
        _ => "the sidecar: puts the design in place of a model's self-attention",
    };
    files.extend(PACKAGE.iter().map(|(name, text)| ExportFile::new(format!("{FOLDER}/{name}"), *text, what(name))));
    files
}

fn captures(problem: &Problem) -> bool {
    let has = |of: &Mod| !of.graph.captures().is_empty();
    [&problem.mask, &problem.score].into_iter().flatten().any(|of| has(of))
}

/// Whether the mods mean the same at other lengths: no tables, no grids and no boundary between segments.
fn is_scale_free(document: &Document, problem: &Problem) -> bool {
    let plain = |axis: &Axis| axis.segments.len() == 1 && axis.segments[0].grid.len() == 1;
    let axes = &document.axes;
    let drawn = document
        .layers
        .iter()
        .any(|layer| matches!(layer.content, MaskContent::Rectangle { .. } | MaskContent::Painted(_)));
    !captures(problem) && !drawn && plain(&axes.q) && axes.kv.as_ref().is_none_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::library;
    use crate::problem::from_document;

    fn settings(preset: &str) -> Option<serde_json::Value> {
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
        assert_eq!(settings("sdxl_cross"), None);
    }
}
