//! Exporting, for the window and the terminal: makes the document independent of this machine, and creates all its
//! files.
//!
//! Invariant: the exported document compiles to the same mods without linked files, or the note lists its requirements.
//! Nothing is written here. Must not know its callers.

use crate::base::{Control, Diagnostic};
use crate::document::compile::{BuiltIn, Environment, compile};
use crate::document::model::*;
use crate::export::lowered::{Target, lowered};
use crate::export::{Bundle, ExportOptions, export_all, file_stem};
use crate::problem::Problem;
use crate::problem::result::RunReport;
use crate::tasks::kernel_files::kernel_files;
use crate::tasks::lowering;
use crate::tasks::manifest::manifest;
use crate::tasks::recorded;
use crate::trainers::ConfigRequest;
use crate::worker::files;
use crate::worker::machine::day_of_export;
use std::path::Path;

/// The exported part of a document.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The trainer's config; its `designed` is found here.
    pub config: ConfigRequest<'a>,
    /// A race for the report.
    pub run: Option<&'a RunReport>,
    /// Stem of the files' names; None: of the document's name.
    pub name: Option<&'a str>,
    /// Batch entry and head of the picture.
    pub shown: (usize, usize),
    /// Architectures that our kernel is compiled for; none: it stays here.
    pub kernels: &'a [&'a str],
    /// Whether its gradients must have the same bits in every run.
    pub deterministic: bool,
    /// Libraries that the mask is written for as numbers.
    pub lowered: &'a [Target],
}

/// The files, with notes.
#[derive(Debug)]
pub struct Exported {
    /// Every file that could be made.
    pub bundle: Bundle,
    /// Why the kernel is not among them though it was wished for.
    pub no_kernel: Option<Diagnostic>,
}

/// Makes every file. Errors: a linked file or the trainer's config cannot be read, or the mask has not the
/// form of a library that it is written for.
pub fn make(
    document: &Document,
    problem: &Problem,
    environment: &dyn Environment,
    wish: &Wish<'_>,
) -> Result<Exported, Diagnostic> {
    let shipped = recorded::of_problem(document, problem.spec(), None);
    let shipped: Vec<_> = shipped.iter().map(|run| &run.report).collect();
    let day = day_of_export();
    let stem = file_stem(wish.name.unwrap_or(&document.name));
    let mut options = ExportOptions {
        config: wish.config,
        run: wish.run,
        recorded: &shipped,
        date: Some(&day),
        name: wish.name,
        ..ExportOptions::default()
    };
    (options.picture.b, options.picture.h) = wish.shown;
    let (document, notes) = embedded(document, environment)?;
    let mut bundle = export_all(&document, problem, &options, &Control::new())?;
    bundle.notes.extend(notes);
    let no_kernel = if wish.kernels.is_empty() {
        None
    } else {
        match kernel_files(problem, &stem, wish.kernels, wish.deterministic) {
            Ok(files) => {
                bundle.files.extend(files);
                None
            }
            Err(why) => Some(why),
        }
    };
    for target in wish.lowered {
        let form = lowering::form(problem, *target, &Control::new())?;
        let title = format!("The mask of {}", document.name);
        bundle.files.extend(lowered(&stem, &title, problem, &form)?);
    }
    let of = problem.fingerprint().to_string();
    bundle.files.push(manifest(&stem, &document.name, &of, &bundle.files));
    Ok(Exported { bundle, no_kernel })
}

/// The name and the bytes of a trainer's config. Errors: it cannot be read.
pub fn config_at(path: &Path) -> Result<(String, Vec<u8>), Diagnostic> {
    let name = path.file_name().map_or("config.json".into(), |name| name.to_string_lossy().into_owned());
    Ok((name, files::read(path)?))
}

/// The document with the text of linked files in it, and a note for each file whose own imports stay outside.
///
/// Errors: a linked file that cannot be read.
pub(crate) fn embedded(
    document: &Document,
    environment: &dyn Environment,
) -> Result<(Document, Vec<Diagnostic>), Diagnostic> {
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
            "the exported design contains the text of {}, but this text imports other modules or patterns",
            linked.join(", ")
        );
        notes.push(
            Diagnostic::warning("export-imports", message).hint(
                "open it next to those modules, or with --package; the exported PyTorch module needs none of them",
            ),
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
    fn every_file_is_made_of_the_document_with_its_links_held() {
        let env = One("def near(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n");
        let document = linking();
        let problem = crate::document::from_document(&document, &compile(&document, &env)).expect("a problem");
        let wish = Wish {
            config: ConfigRequest::default(),
            run: None,
            name: Some("named"),
            shown: (0, 0),
            kernels: &[],
            deterministic: false,
            lowered: &[],
        };
        let made = make(&document, &problem, &env, &wish).expect("made");
        assert!(made.no_kernel.is_none());
        let held = made.bundle.files.iter().find(|f| f.name == "named.maskloom.json").expect("the document");
        let held = String::from_utf8_lossy(&held.bytes).into_owned();
        assert!(held.contains("q_idx >= kv_idx") && !held.contains("mine.py"), "{held}");
    }

    #[test]
    fn what_each_file_is_can_be_told_in_every_language() {
        use crate::words::{Language, Words};
        for (preset, lowered) in
            [("natten_2d", &[][..]), ("graphormer", &[]), ("causal", &[Target::Cudnn, Target::Magi])]
        {
            let document = crate::document::library::preset(preset).expect("a preset").document().expect("loads");
            let problem = crate::document::from_document(&document, &compile(&document, &BuiltIn)).expect("a problem");
            let (config, run) = (ConfigRequest::default(), None);
            let (name, shown, kernels, deterministic) = (None, (0, 0), &[][..], false);
            let wish = Wish { config, run, name, shown, kernels, deterministic, lowered };
            for file in make(&document, &problem, &BuiltIn, &wish).expect("made").bundle.files {
                for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
                    let told = Words::of(language).phrase(&file.what);
                    assert!(told != file.what && !told.is_empty(), "{language:?} {}: {}", file.name, file.what);
                }
            }
        }
    }

    #[test]
    fn code_with_imports_of_its_own_is_told() {
        let env = One("import own\ndef near(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < own.WIDTH\n");
        let (_, notes) = embedded(&linking(), &env).expect("made");
        assert_eq!(notes.iter().map(|n| n.code.to_string()).collect::<Vec<_>>(), ["export-imports"]);
    }
}
