//! Small files that apply the exported module to a running model: for diffusers and for transformers.
//!
//! Invariant: each imports the module next to it and the runtime in its folder `sidecar`. Must not know how either is
//! written.

use super::sidecar::identified;
use super::{ExportFile, ExportKind};

const ADAPTER: &str = include_str!("../../assets/python/adapter.py");

/// The differences between the adapters.
struct Library {
    kind: &'static str,
    file: ExportKind,
    model: &'static str,
    object: &'static str,
    layers: &'static str,
    inputs: &'static str,
    about: &'static str,
    what: &'static str,
}

const DIFFUSERS: Library = Library {
    kind: "diffusers",
    file: ExportKind::Diffusers,
    model: "a diffusers model",
    object: "pipe.transformer",
    layers: "\"single_transformer_blocks\"",
    inputs: "inputs",
    about: "Attention over the design's tokens is replaced in the chosen layers, for any set backend. The model keeps its own scale
and its own mask. Calls over other tokens run as before; they are counted and reported. `strict=True` makes them an
error. Several designs can be in one model: a call gets the one for its layer, its tokens and their grid. It works for
models that call diffusers' dispatcher and for those that call PyTorch's scaled_dot_product_attention, forward and backward,
compiled (before or after), with gradient checkpointing.",
    what: "applies the design to a diffusers model: use(pipe.transformer); verify checks it",
};

const TRANSFORMERS: Library = Library {
    kind: "transformers",
    file: ExportKind::Transformers,
    model: "a transformers model",
    object: "model",
    layers: "r\"layers\\\\.(0|2)\\\\.\"",
    inputs: "{\"input_ids\": ids}",
    about: "The design replaces the pattern of the chosen layers (causal, sliding, both ways). The model keeps its padding, packed
sequences (each document has the design for itself), sinks, soft cap (if the design has no score_mod) and position bias.
With a key-value cache the queries keep their positions, and the cache keeps all keys. Unknown features are not changed but
reported; `strict=True` makes them an error. At other lengths the design is used if it means the same: a formula at any, tables
and drawings at shorter ones, as their beginning. Positions count from each row's first token that is no padding. A design
from one sequence to another goes into the layers of cross-attention. It works with transformers 5, and with 4.53 and newer.",
    what: "applies the design to a transformers model: use(model); verify checks it",
};

impl Library {
    fn file(&self, stem: &str) -> ExportFile {
        let mut text = ADAPTER.to_string();
        for (placeholder, value) in [
            ("ADAPTER_MODEL", self.model),
            ("ADAPTER_KIND", self.kind),
            ("ADAPTER_OBJECT", self.object),
            ("ADAPTER_LAYERS", self.layers),
            ("ADAPTER_INPUTS", self.inputs),
            ("ADAPTER_ABOUT", self.about),
            ("DESIGN", stem),
        ] {
            text = text.replace(placeholder, value);
        }
        ExportFile::new(self.file, format!("{stem}_{}.py", self.kind), identified(&text), self.what)
    }
}

/// The adapters for the module `stem`.
pub(super) fn adapters(stem: &str) -> Vec<ExportFile> {
    [DIFFUSERS, TRANSFORMERS].iter().map(|library| library.file(stem)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_stays() {
        let files = adapters("mine");
        assert_eq!(
            files.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
            ["mine_diffusers.py", "mine_transformers.py"]
        );
        for file in files {
            let text = String::from_utf8(file.bytes).expect("text");
            assert!(text.contains("import mine as design\n"), "{text}");
            for placeholder in ["ADAPTER", "DESIGN", "MASKLOOM_VERSION", "MASKLOOM_PACKAGE"] {
                assert!(!text.contains(placeholder), "{placeholder}: {text}");
            }
        }
    }
}
