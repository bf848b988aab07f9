//! Hints of the compiler in the window's words: command-line options have fields here.
//!
//! Invariant: a hint without a command-line option is unchanged. Must not know where hints are shown.

use crate::base::Diagnostic;
use std::borrow::Cow;

/// Phrases about the command line, and their replacements for the window.
const WORDS: [(&str, &str); 11] = [
    (
        "--merge FILE takes a trainer's .json, .jsonc, .yaml or .toml",
        "name the trainer's own file under Where to: .json, .jsonc, .yaml or .toml",
    ),
    ("; --backend sets another", ""),
    ("(`maskloom recorder --to DIR` writes that script)", "(File > Save the capture script writes it)"),
    ("(`maskloom recorder --to DIR` writes it)", "(File > Save the capture script writes it)"),
    ("name one: --arch ", "name one in the Code workspace: "),
    ("(--seq or --axes)", "(Axes in the inspector)"),
    ("run --pass forward, or use", "run without gradients, or use"),
    (", or run them on the cpu: --device cpu --dtype f32", ", or run them on the cpu as fp32"),
    ("`maskloom presets` lists all patterns", "the menu Add of the layers lists all patterns"),
    ("; `maskloom presets` lists the built-in presets", "; the Gallery shows the presets"),
    ("run `maskloom doctor`", "open Setup"),
];

/// A hint with the window's own words.
pub(super) fn words(hint: &str) -> Cow<'_, str> {
    let found = WORDS.iter().find(|(said, _)| hint.contains(said));
    found.map_or(hint.into(), |(said, here)| hint.replace(said, here).into())
}

/// The same with a way out that a window has.
pub(super) fn in_window(mut reported: Diagnostic) -> Diagnostic {
    let Some(hint) = &reported.hint else { return reported };
    if !["`--arg", "`--tensors"].iter().any(|option| hint.contains(option)) {
        return reported;
    }
    let name = hint.split_once("--arg ").and_then(|(_, rest)| rest.split_once('=')).map_or("NAME", |(name, _)| name);
    let new = match &*reported.code {
        "unknown-name" => format!(
            "define `{name}` in the text, or choose a file with a tensor of that name under Captured tensors, below the code"
        ),
        "missing-argument" => {
            "set it in the inspector among the layer's parameters, or write a default in the signature".into()
        }
        _ => {
            format!("write the value of `{name}` into the code, or make it a parameter of the function with a default")
        }
    };
    reported.hint = Some(new);
    reported
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::app::compile::build;
    use crate::app::state::empty_document;
    use crate::document::model::{Combine, Layer, MaskContent, TextCode};

    /// The window's messages about a text.
    fn hints(source: &str, entry: &str) -> Vec<String> {
        let content = MaskContent::Text(TextCode { source: source.into(), entry: entry.into(), ..TextCode::default() });
        let layer = Layer { id: 1, name: "mask".into(), enabled: true, combine: Combine::And, heads: None, content };
        let mut document = empty_document("tokens 64");
        document.layers.push(layer);
        let built = build(document, None);
        let reported = built.diagnostics().into_iter().filter(|(_, d)| d.is_error());
        reported.filter_map(|(_, d)| d.hint.as_ref().map(ToString::to_string)).collect()
    }

    #[test]
    fn what_is_given_on_a_command_line_has_a_place_in_the_window() {
        let unknown = hints("def mask_mod(b, h, q, k):\n    return doc[q] == doc[k]\n", "");
        assert!(
            unknown[0].starts_with("define `doc` in the text") && unknown[0].contains("Captured tensors"),
            "{unknown:?}"
        );
        let factory =
            "def make(ids):\n    def mask_mod(b, h, q, k):\n        return ids[q] == ids[k]\n    return mask_mod\n";
        let missing = hints(factory, "make");
        assert!(missing.iter().any(|hint| hint.contains("in the inspector")), "{missing:?}");
        for hint in unknown.iter().chain(&missing) {
            assert!(!hint.contains("--"), "{hint}");
        }
        assert_eq!(words("it is so; --backend sets another"), "it is so");
        let absent = crate::worker::files::cannot_read("causal".as_ref(), &std::io::ErrorKind::NotFound.into());
        assert_eq!(words(&absent.hint.expect("a way out")), "check the path; the Gallery shows the presets");
        assert_eq!(words("choose a smaller one"), "choose a smaller one");
        // others stay
        let near = hints("docs = torch.arange(64)\ndef mask_mod(b, h, q, k):\n    return doc[q] == doc[k]\n", "");
        assert_eq!(near, ["did you mean `docs`?"]);
    }
}
