//! Small files that put the exported module into a running model: for diffusers and for transformers.
//!
//! Invariant: each imports the module beside it and nothing else of ours; one that could never apply is not made. Must not
//! know how the module is written.

use super::ExportFile;
use crate::problem::Problem;

const DIFFUSERS: &str = include_str!("../../assets/python/adapter_diffusers.py");
const TRANSFORMERS: &str = include_str!("../../assets/python/adapter_transformers.py");

/// The adapters that a problem allows, for the module `stem`: both replace self-attention.
pub fn adapters(problem: &Problem, stem: &str) -> Vec<ExportFile> {
    if problem.q_len != problem.kv_len {
        return Vec::new();
    }
    let file = |kind: &str, text: &str, what: &str| {
        ExportFile::new(format!("{stem}_{kind}.py"), text.replace("DESIGN", stem), what)
    };
    vec![
        file("diffusers", DIFFUSERS, "puts the design into a diffusers transformer: use(pipe.transformer)"),
        file("transformers", TRANSFORMERS, "puts the design into a transformers model: use(model)"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_stays() {
        for text in [DIFFUSERS, TRANSFORMERS] {
            let made = text.replace("DESIGN", "mine");
            assert!(made.contains("import mine as design") && !made.contains("DESIGN"));
        }
    }
}
