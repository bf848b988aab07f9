//! The layers of the Python that users import: the sidecar, the capture and the package `maskloom`.
//!
//! Invariant: no file of a package leads back to itself by its imports, those in functions and those for type checkers
//! included; each file opens with what it owns. Must not know what the files do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::layering::circles;

/// Each folder of Python files that import each other by dots.
const PACKAGES: [&str; 6] = [
    "assets/python/sidecar/maskloom_sidecar",
    "assets/python/maskloom_capturing",
    "python/maskloom",
    "python/maskloom/integrations",
    "python/maskloom/notebook",
    "python/maskloom/distributed",
];

/// The files of one folder that a text imports: `from .name import ..` and `from . import name, ..`.
fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let Some(rest) = line.strip_prefix("from .") else { continue };
        let Some((module, names)) = rest.split_once(" import ") else { continue };
        if module.is_empty() {
            assert!(!names.starts_with('('), "an import over several lines is not read here: {line}");
            let names = names.split('#').next().unwrap_or_default();
            found.extend(names.split(',').filter_map(|name| name.split_whitespace().next()).map(String::from));
        } else if !module.starts_with('.') {
            found.extend(module.split('.').next().map(String::from));
        }
    }
    found
}

/// The imports of each file of a folder among the others.
fn arrows(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let entries = std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("entry").path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "py"));
    let texts: BTreeMap<String, String> = files
        .map(|file| {
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&file).expect("UTF-8"))
        })
        .collect();
    let among = |text: &str| imports(text).into_iter().filter(|name| texts.contains_key(name)).collect();
    texts.iter().map(|(name, text)| (name.clone(), among(text))).collect()
}

#[test]
fn no_file_of_a_python_package_leads_back_to_itself() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in PACKAGES {
        let arrows = arrows(&root.join(folder));
        assert!(arrows.values().any(|of| !of.is_empty()), "{folder} has no imports");
        assert!(circles(&arrows).is_empty(), "{folder}: {:?}", circles(&arrows));
    }
}

#[test]
fn imports_in_functions_and_for_type_checkers_are_seen() {
    let text = "from __future__ import annotations\nfrom . import a, b as c  # d\nif TYPE_CHECKING:\n    from .e import F\n\
                def f():\n    from .g.h import i\n    from ..far import j\n    import k\n";
    assert_eq!(imports(text), ["a", "b", "e", "g"]);
    let folder = tempfile::tempdir().expect("temporary folder");
    for (name, text) in
        [("a.py", "from .b import x\n"), ("b.py", "def f():\n    from . import c\n"), ("c.py", "from . import a\n")]
    {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let circle: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    assert_eq!(circles(&arrows(folder.path())), [circle].into());
}

#[test]
fn every_python_file_says_what_it_owns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in PACKAGES {
        for entry in std::fs::read_dir(root.join(folder)).expect("readable") {
            let path = entry.expect("entry").path();
            if path.extension().is_some_and(|end| end == "py") {
                let text = std::fs::read_to_string(&path).expect("UTF-8");
                let first = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
                assert!(first.starts_with("\"\"\""), "{} opens with {first:?}", path.display());
            }
        }
    }
}

/// A name that is exported is found at its first use and has its type for a checker; a function stands in a page and in a script that
/// tests it.
#[test]
fn every_exported_name_of_the_package_is_at_home_typed_told_and_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).expect("UTF-8");
    let init = read(&root.join("python/maskloom/__init__.py"));
    let between =
        |from: &str, to: &str| init.split_once(from).and_then(|(_, rest)| rest.split_once(to)).expect("a list").0;
    let imported = between("from __future__", "__all__ = [");
    let homes = between("_HOMES = {", "\n}\n");
    let pages: String =
        ["python", "integrations", "notebook"].map(|page| read(&root.join(format!("docs/{page}.md")))).concat();
    let scripts =
        std::fs::read_dir(root.join("tests/python")).expect("readable").map(|entry| entry.expect("entry").path());
    let is_of_package =
        |path: &std::path::PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("package"));
    let scripts: String = scripts.filter(is_of_package).map(|path| read(&path)).collect();
    let is_word =
        |text: &str, name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let is_function = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
    let mut wrong = Vec::new();
    for name in between("__all__ = [", "]").split('"').skip(1).step_by(2).filter(|name| *name != "__version__") {
        let from_errors = imported.lines().any(|line| line.starts_with("from .errors") && is_word(line, name));
        let places = [
            ("the imports for type checkers", is_word(imported, name)),
            ("_HOMES", from_errors || homes.contains(&format!("\"{name}\""))),
            ("docs/python.md, integrations.md or notebook.md", !is_function(name) || is_word(&pages, name)),
            ("tests/python/package_*.py", !is_function(name) || is_word(&scripts, name)),
        ];
        wrong.extend(places.iter().filter(|(_, is)| !is).map(|(place, _)| format!("{name} is not in {place}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
