//! Every file of the folders is embedded, loads, compiles and validates.

use super::*;
use std::collections::BTreeSet;
use std::path::Path;

fn stems(folder: &str, extension: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
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
        assert!(document.about.len() > 40, "{}", preset.name);
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
