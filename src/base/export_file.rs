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
        let (name, mut bytes) = (name.into(), bytes.into());
        // Python reads no source with a NUL in it, wherever the NUL of a name or a text has come to
        if name.ends_with(".py") && bytes.contains(&0) {
            bytes = bytes.split(|byte| *byte == 0).collect::<Vec<_>>().join(&b"\\x00"[..]);
        }
        ExportFile { name, bytes, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::ExportFile;

    #[test]
    fn python_has_no_nul() {
        let file = ExportFile::new("a.py", "NAME = \"a\0b\"\n# c\0\n", "");
        assert_eq!(file.bytes, b"NAME = \"a\\x00b\"\n# c\\x00\n");
        assert_eq!(ExportFile::new("a.safetensors", "a\0b", "").bytes, b"a\0b");
    }
}
