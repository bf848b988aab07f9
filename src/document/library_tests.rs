//! Every file of the folders is embedded, loads, compiles and validates.

use super::*;
use std::collections::BTreeSet;

fn stems(folder: &str, extension: &str) -> BTreeSet<String> {
    let folder = maskloom_testing::repository().join(folder);
    let files = std::fs::read_dir(folder).expect("a folder of the repository").map(|e| e.expect("entry").path());
    let wanted = files.filter(|p| p.extension().is_some_and(|e| e == extension));
    wanted.map(|p| p.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn every_file_is_embedded() {
    assert_eq!(stems("assets/patterns", "py"), patterns().map(|p| p.name.to_string()).collect());
    assert_eq!(stems("presets", "json"), presets().iter().map(|p| p.name.to_string()).collect());
}

#[test]
fn every_preset_loads_and_says_where_it_is_from() {
    for preset in presets() {
        let document = preset.document().unwrap_or_else(|e| panic!("{}: {e:?}", preset.name));
        let about = &document.about;
        let from = ["arXiv:", "diffusers'", "transformers'", "attention-gym", "cudnn-frontend", "painted by hand"];
        assert!(about.len() > 40 && from.iter().any(|f| about.contains(f)), "{}: {about}", preset.name);
        let again = file::from_json(&file::to_json(&document)).unwrap();
        assert_eq!(again, document, "{}", preset.name);
    }
}

#[test]
fn every_pattern_has_help_and_a_source() {
    for pattern in patterns() {
        assert!(pattern.text.contains(&format!("def {}(", pattern.name)), "{}", pattern.name);
        assert!(pattern.summary().len() > 20 && pattern.text.contains("Source: "), "{}", pattern.name);
        assert!(pattern.text.contains("    Args:\n"), "{}", pattern.name);
    }
}

#[test]
fn every_preset_compiles_quietly_and_every_pattern_has_one() {
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::model::{ArgValue, CodeRef, MaskContent, ScoreContent};
    fn note(code: &CodeRef, used: &mut BTreeSet<String>) {
        used.insert(code.name.clone());
        let inner = code.args.values().filter_map(|v| if let ArgValue::Mask { mask } = v { Some(mask) } else { None });
        inner.for_each(|mask| note(mask, used));
    }
    assert!(presets().len() >= 60, "{}", presets().len());
    let mut used = BTreeSet::new();
    for preset in presets() {
        let document = preset.document().unwrap();
        let compiled = compile(&document, &BuiltIn);
        let reported: Vec<_> =
            compiled.all_diagnostics().filter(|d| d.severity > crate::base::Severity::Note).collect();
        assert!(reported.is_empty(), "{}: {reported:?}", preset.name);
        for layer in &document.layers {
            if let MaskContent::Pattern(code) = &layer.content {
                note(code, &mut used);
            }
        }
        for score in &document.scores {
            if let ScoreContent::Pattern(code) = &score.content {
                note(code, &mut used);
            }
        }
    }
    assert_eq!(used, patterns().map(|p| p.name.to_string()).collect());
}

#[test]
fn a_slip_finds_its_name_and_nonsense_finds_none() {
    let presets = || presets().iter().map(|p| p.name);
    assert_eq!(did_you_mean("slidingwindow", presets()), "did you mean `sliding_window`? ");
    assert_eq!(did_you_mean("nothere", presets()), "");
}
