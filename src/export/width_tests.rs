//! No line of generated Python is longer than the library's own.

use super::bundle::code;
use super::lines::WIDTH;
use super::{ExportFile, file_stem};
use crate::backends::cuda::bundle::loader;
use crate::document::compile::{BuiltIn, compile};
use crate::document::model::*;
use crate::document::{from_document, library, testing};

/// The lines of a file that are too long or end with a space.
fn wrong(file: &ExportFile) -> Vec<String> {
    let text = if file.name.ends_with(".py") { std::str::from_utf8(&file.bytes).expect("text") } else { "" };
    let reported = |(at, line): (usize, &str)| {
        let width = line.chars().count();
        (width > WIDTH || line.trim_end() != line).then(|| format!("{}:{} of {width}: {line}", file.name, at + 1))
    };
    text.lines().enumerate().filter_map(reported).collect()
}

/// The same of all code of a design; and whether it follows axes.
fn wrong_of(document: &Document, stem: &str) -> (Vec<String>, bool) {
    let problem = from_document(document, &compile(document, &BuiltIn)).expect("compiles");
    let mut files = code(document, &problem, stem);
    files.extend(loader(stem));
    (files.iter().flat_map(wrong).collect(), files.iter().any(|file| file.name.ends_with("_axes.py")))
}

/// As long as a stem can be.
fn longest() -> String {
    let stem = file_stem(&format!("3{}", "d".repeat(80)));
    assert_eq!(stem.len(), 53);
    stem
}

#[test]
fn no_line_of_a_presets_code_is_too_long() {
    let all = library::presets().iter().map(|preset| wrong_of(&preset.document().expect("loads"), &longest()));
    let (lines, following): (Vec<_>, Vec<_>) = all.unzip();
    let mut lines = lines.concat();
    lines.sort();
    lines.dedup();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    assert!(following.iter().filter(|f| **f).count() >= 10, "{following:?}");
}

#[test]
fn long_titles_and_names_of_layers_are_wrapped() {
    let mut document = testing::empty(
        "text 16 | image 8x10 | another_segment_of_a_long_name 40 | yet_another_segment_of_a_long_name 40 | third_of_a_long_name 4",
    );
    document.name = "A title of very many words ".repeat(12);
    let mut band = testing::layer(1, MaskContent::Band { lo: Some(-16384), hi: Some(16384) });
    band.name = "a layer of a very very very very very long name".into();
    let mut pattern = testing::layer(2, MaskContent::Pattern(testing::pattern("natten_2d", &[])));
    pattern.name = band.name.clone();
    document.layers.extend([band, pattern]);
    assert_eq!(wrong_of(&document, &longest()), (Vec::new(), true));
}
