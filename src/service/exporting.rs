//! A document made fit to leave this machine: what it links is held in it.
//!
//! Invariant: the document that leaves compiles to the same mods without the files beside it, or the note says what it
//! needs. Must not know what is exported.

use crate::base::Diagnostic;
use crate::document::compile::{BuiltIn, Environment, compile};
use crate::document::model::*;

/// The document with the text of linked files in it, and a note for each file whose own imports stay outside.
///
/// Errors: a linked file that cannot be read.
pub fn embedded(document: &Document, environment: &dyn Environment) -> Result<(Document, Vec<Diagnostic>), Diagnostic> {
    let mut made = document.clone();
    let (mut linked, mut notes) = (Vec::new(), Vec::new());
    for layer in &mut made.layers {
        if let MaskContent::Linked(code) = &layer.content {
            linked.push(code.path.clone());
            layer.content = MaskContent::Text(held(code, environment)?);
        }
    }
    for score in &mut made.scores {
        if let ScoreContent::Linked(code) = &score.content {
            linked.push(code.path.clone());
            score.content = ScoreContent::Text(held(code, environment)?);
        }
    }
    if !linked.is_empty() && compile(&made, &BuiltIn).has_errors() && !compile(document, environment).has_errors() {
        let message = format!(
            "the exported design holds the text of {}, but that imports modules or patterns of its own",
            linked.join(", ")
        );
        notes.push(
            Diagnostic::warning("export-imports", message)
                .hint("open it where those modules are, or with --package; the PyTorch module beside it needs none"),
        );
    }
    Ok((made, notes))
}

fn held(code: &LinkedCode, environment: &dyn Environment) -> Result<TextCode, Diagnostic> {
    let LinkedCode { path, entry, args, tensors } = code.clone();
    Ok(TextCode { source: environment.linked(&path)?, entry, args, tensors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Source;
    use crate::document::testing;

    struct One(&'static str);

    impl Environment for One {
        fn pattern(&self, name: &str) -> Option<Source> {
            BuiltIn.pattern(name)
        }
        fn linked(&self, _: &str) -> Result<String, Diagnostic> {
            Ok(self.0.to_string())
        }
        fn module(&self, dotted: &str) -> Option<Source> {
            (dotted == "own").then(|| Source::new("own.py", "WIDTH = 3\n"))
        }
    }

    fn linking() -> Document {
        let mut document = testing::empty("tokens 20");
        let code = LinkedCode { path: "mine.py".into(), entry: "near".into(), ..LinkedCode::default() };
        document.layers.push(testing::layer(1, MaskContent::Linked(code)));
        document
    }

    #[test]
    fn linked_code_travels_in_the_document_and_compiles_without_its_file() {
        let env = One("def near(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n");
        let (made, notes) = embedded(&linking(), &env).expect("made");
        assert!(notes.is_empty() && !compile(&made, &BuiltIn).has_errors());
        assert!(matches!(&made.layers[0].content, MaskContent::Text(code) if code.entry == "near"));
    }

    #[test]
    fn code_with_imports_of_its_own_is_told() {
        let env = One("import own\ndef near(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < own.WIDTH\n");
        let (_, notes) = embedded(&linking(), &env).expect("made");
        assert_eq!(notes.iter().map(|n| n.code.to_string()).collect::<Vec<_>>(), ["export-imports"]);
    }
}
