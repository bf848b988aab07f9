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
