//! Small files that put the exported module into a running model: for diffusers and for transformers.
//!
//! Invariant: each imports the module beside it and the runtime in its folder `sidecar`. Must not know how either is
//! written.

use super::ExportFile;

const DIFFUSERS: &str = include_str!("../../assets/python/adapter_diffusers.py");
const TRANSFORMERS: &str = include_str!("../../assets/python/adapter_transformers.py");

/// The adapters for the module `stem`. transformers has none for attention from one sequence to another.
pub(super) fn adapters(stem: &str, cross: bool) -> Vec<ExportFile> {
    let file = |kind: &str, text: &str, what: &str| {
        let text = text.replace("DESIGN", stem).replace("MASKLOOM_VERSION", env!("CARGO_PKG_VERSION"));
        ExportFile::new(format!("{stem}_{kind}.py"), text, what)
    };
    let mut files = vec![file(
        "diffusers",
        DIFFUSERS,
        "puts the design into a diffusers model: use(pipe.transformer); verify proves it",
    )];
    if !cross {
        let what = "puts the design into a transformers model: use(model); verify proves it";
        files.push(file("transformers", TRANSFORMERS, what));
    }
    files
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
