//! A file to be written: exports and configs return these instead of writing.
//!
//! Invariant: nothing here touches a disk. Must not know folders.

/// A file that an export would write.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportFile {
    /// File name; relative to the export folder, with `/` if it is in a subfolder.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// A short description for the preview.
    pub what: String,
}

impl ExportFile {
    /// A file.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>, what: impl Into<String>) -> ExportFile {
        ExportFile { name: name.into(), bytes: bytes.into(), what: what.into() }
    }
}
