//! A file to be written: exports and configs return these instead of writing.
//!
//! Invariant: nothing here touches a disk. Must not know folders.

/// What a file of an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// The document: it opens in Maskloom again.
    Design,
    /// The list of all files with their hashes.
    Manifest,
    /// A trainer's or a library's configuration.
    Config,
    /// The PyTorch module, what it reads, and what checks it.
    Module,
    /// One call that puts the mask into a diffusers model.
    Diffusers,
    /// The same for transformers.
    Transformers,
    /// What replaces attention inside a trainer, and the adapters' own runtime.
    Sidecar,
    /// The block lists.
    Blocks,
    /// A picture or a page for people.
    Page,
    /// The compiled kernel and its launcher.
    Kernel,
    /// The script that captures q, k and v of a running model.
    Recorder,
}

/// A file that an export would write.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportFile {
    /// File name; relative to the export folder, with `/` if it is in a subfolder.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it is.
    pub kind: ExportKind,
    /// A short description for the preview.
    pub what: String,
}

impl ExportFile {
    /// A file.
    pub fn new(
        kind: ExportKind,
        name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
        what: impl Into<String>,
    ) -> ExportFile {
        let (name, mut bytes) = (name.into(), bytes.into());
        // Python reads no source with a NUL in it, wherever the NUL of a name or a text has come to
        if name.ends_with(".py") && bytes.contains(&0) {
            bytes = bytes.split(|byte| *byte == 0).collect::<Vec<_>>().join(&b"\\x00"[..]);
        }
        ExportFile { name, bytes, kind, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::{ExportFile, ExportKind};

    #[test]
    fn python_has_no_nul() {
        let file = ExportFile::new(ExportKind::Module, "a.py", "NAME = \"a\0b\"\n# c\0\n", "");
        assert_eq!(file.bytes, b"NAME = \"a\\x00b\"\n# c\\x00\n");
        assert_eq!(ExportFile::new(ExportKind::Blocks, "a.safetensors", "a\0b", "").bytes, b"a\0b");
    }
}
