//! The script that captures q, k and v of a running model, with the package next to it.
//!
//! Invariant: the files are complete copies of those in `assets/python`, so that the written script runs by itself.
//! Must not know the use of a capture.

use super::{ExportFile, ExportKind};

/// The script's name.
pub const SCRIPT: &str = "maskloom_capture.py";

/// The package that it imports.
const PACKAGE: [(&str, &str); 5] = [
    ("maskloom_capturing/__init__.py", include_str!("../../assets/python/maskloom_capturing/__init__.py")),
    ("maskloom_capturing/calls.py", include_str!("../../assets/python/maskloom_capturing/calls.py")),
    ("maskloom_capturing/file.py", include_str!("../../assets/python/maskloom_capturing/file.py")),
    ("maskloom_capturing/hooks.py", include_str!("../../assets/python/maskloom_capturing/hooks.py")),
    ("maskloom_capturing/statistics.py", include_str!("../../assets/python/maskloom_capturing/statistics.py")),
];

/// The script first, then the package.
pub fn recorder() -> Vec<ExportFile> {
    let script = include_str!("../../assets/python/maskloom_capture.py");
    let script = ExportFile::new(ExportKind::Recorder, SCRIPT, script, "captures q, k and v of a running model");
    let package = PACKAGE
        .iter()
        .map(|(name, text)| ExportFile::new(ExportKind::Recorder, *name, *text, "a part of the capture script"));
    std::iter::once(script).chain(package).collect()
}
