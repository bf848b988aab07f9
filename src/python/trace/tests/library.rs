//! Every pattern of the library traces with its defaults.

use crate::python::outline::{EntryKind, outline};
use crate::python::trace::tests::*;

fn patterns() -> Vec<Source> {
    let folder = maskloom_testing::repository().join("assets/patterns");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("entry").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "py"));
    files.sort();
    let name = |p: &std::path::PathBuf| p.file_stem().expect("a name").to_string_lossy().into_owned();
    files.iter().map(|p| Source::new(name(p), std::fs::read_to_string(p).expect("text"))).collect()
}

#[test]
fn every_pattern_traces_with_its_defaults() {
    let patterns = patterns();
    assert!(patterns.len() > 40);
    let mut failed = Vec::new();
    for source in patterns {
        let entries = outline(&source);
        let entry = entries.entries.iter().find(|e| e.name == source.name).unwrap_or_else(|| panic!("{entries:?}"));
        assert_eq!(entry.kind, EntryKind::Factory, "{}", source.name);
        let kind = if source.text.contains("return score_mod") { ModKind::Score } else { ModKind::Mask };
        let request = TraceRequest { call: Call::Factory, ..TraceRequest::new(source.clone(), &source.name, kind) };
        let started = std::time::Instant::now();
        let traced = trace(&request);
        println!("{:24} {:6.2} ms", source.name, started.elapsed().as_secs_f64() * 1e3);
        match &traced.result {
            Some(made) => assert_eq!(made.graph.verify(), Ok(()), "{}", source.name),
            None => failed.push(format!("{}: {}", source.name, said(&traced))),
        }
        let warned = traced.diagnostics.iter().any(|d| d.severity > crate::base::Severity::Note);
        if warned && traced.result.is_some() {
            failed.push(format!("{} warns: {}", source.name, said(&traced)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
