//! Texts of window and terminal against the sources that name them.
//!
//! Invariant: ids are literals in the sources; a text that no source names is gone from the files. Must not know what texts say.

use maskloom_words::{Language, Words};
use std::collections::BTreeSet;
use std::path::Path;

/// Calls whose next literal is an id.
const ASKS: [&str; 6] =
    ["say(ui, \"", "say_with(ui, \"", "words.text(\"", "said.text(\"", "words.with(\"", "said.with(\""];

/// The sources of crates, tests left out.
fn sources(crates: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    crates.iter().for_each(|own| crate::layering::rust_files(&root.join(own), &mut files));
    let text = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("UTF-8");
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        (path.display().to_string(), text[..end].to_string())
    };
    files.iter().filter(|path| !path.display().to_string().ends_with("tests.rs")).map(text).collect()
}

/// Literals of a source that look like ids.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter(|part| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c))
    })
}

/// The ids that a source asks for by a call.
fn asked(text: &str) -> Vec<&str> {
    let behind = |ask: &&str| text.match_indices(*ask).map(|(at, ask)| at + ask.len()).collect::<Vec<_>>();
    ASKS.iter().flat_map(behind).filter_map(|at| text[at..].split('"').next()).collect()
}

/// Codes of diagnostics that a source makes.
fn codes(text: &str) -> Vec<&str> {
    let calls = ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::note(", "Fault::limit("];
    let first = |call: &&str| text.match_indices(*call).map(|(at, call)| &text[at + call.len()..]).collect::<Vec<_>>();
    let plain = calls.iter().flat_map(first).filter_map(|rest| rest.trim_start().strip_prefix('"'));
    // a fault names Python's class first
    let faults = text.match_indices("Fault::new(").filter_map(|(at, _)| text[at..].splitn(4, '"').nth(3));
    plain
        .chain(faults)
        .filter_map(|rest| rest.split('"').next())
        .filter(|code| literals(&format!("\"{code}\"")).next().is_some())
        .collect()
}

/// Codes without a sentence yet, sorted: the list shrinks. What is shown for them is the English message alone.
const UNSAID: [&str; 0] = [];

/// Sentences over diagnostics: one for each code in each language, and none for a code that is gone.
#[test]
fn every_code_of_a_diagnostic_has_its_sentence() {
    let all = sources(&[
        "app",
        "cli",
        "tasks",
        "worker",
        "backends",
        "python",
        "trainers",
        "document",
        "parallel",
        "analysis",
        "quality",
        "extension",
        "export",
        "base",
        "problem",
        "ir",
    ]);
    let made: BTreeSet<&str> = all.iter().flat_map(|(_, text)| codes(text)).filter(|code| *code != "done").collect();
    assert!(made.len() > 400, "{}", made.len());
    let said: BTreeSet<&str> = all.iter().flat_map(|(_, text)| literals(text)).collect();
    for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
        let words = Words::of(language);
        let missing: Vec<&str> = made.iter().copied().filter(|code| words.refusal(code).is_none()).collect();
        assert_eq!(missing, UNSAID, "left: the codes of which {language:?} says nothing");
        let ids = Words::ids(language);
        let gone: Vec<_> =
            ids.keys().filter_map(|id| id.strip_prefix("refusal-")).filter(|code| !said.contains(code)).collect();
        assert!(gone.is_empty(), "{language:?} speaks of {gone:?}");
    }
}

#[test]
fn every_id_that_a_source_names_has_a_text_and_every_text_is_named() {
    let known = Words::ids(Language::English);
    let mut named = BTreeSet::new();
    for (file, text) in sources(&["app", "cli", "tasks"]) {
        let missing: Vec<&str> = asked(&text).into_iter().filter(|id| !known.contains_key(*id)).collect();
        assert!(missing.is_empty(), "{file} asks for {missing:?}");
        named.extend(literals(&text).filter(|id| known.contains_key(*id)).map(String::from));
    }
    // parts that are asked for by the whole's id
    let part = |id: &str| {
        id.rsplit_once('.')
            .is_some_and(|(whole, part)| ["tip", "about", "button", "does"].contains(&part) && named.contains(whole))
    };
    let unused: Vec<&String> = known.keys().filter(|id| !named.contains(*id) && !part(id)).collect();
    assert!(unused.is_empty(), "no source names {unused:?}");
    // it sees them
    assert_eq!(asked("f(say(ui, \"a-b\"), words.with(\"c\", &[]))"), ["a-b", "c"]);
    assert_eq!(literals("x(\"a-b\", \"Not one\", \"c.tip\")").collect::<Vec<_>>(), ["a-b", "c.tip"]);
}
