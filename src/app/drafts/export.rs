//! The draft of the export page: the request, the files to write, and the written files.
//!
//! Invariant: the shown files belong to the stored request. Must not know file formats, nor how it is shown.

use super::path::expand;
use super::uses::Use;
use crate::app::exporting::{ExportWish, Pieces};
use crate::app::writing::Changed;
use crate::base::BackendName;
use crate::export::{ExportFile, ExportKind};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The file of the runtime that stands for all of them.
pub(crate) const SIDECAR: &str = "sidecar/sidecar.json";

/// The user's request; stored while the document is open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExportChoices {
    /// None: not asked yet.
    pub of: Option<Use>,
    pub folder: String,
    pub config: String,
    /// Whether the configuration is changed in its place; otherwise a changed copy is written into the folder.
    pub in_place: bool,
    pub backend: Option<BackendName>,
    /// Files that the user has ticked or unticked against their use.
    pub ticked: BTreeMap<String, bool>,
}

impl ExportChoices {
    /// The trainer's file.
    pub(crate) fn config_path(&self) -> Option<PathBuf> {
        let sets = self.of.is_some_and(|of| of.trainer().is_some());
        Some(self.config.trim()).filter(|c| sets && !c.is_empty()).map(expand)
    }

    /// Whether a copy in the folder would be the very file.
    pub(crate) fn beside(&self) -> bool {
        let folder = self.config_path().and_then(|c| c.parent().map(PathBuf::from));
        folder.is_some_and(|f| f == expand(&self.folder))
    }

    /// Whether the configuration is changed in its place.
    pub(crate) fn changes_file(&self) -> bool {
        self.config_path().is_some() && (self.in_place || self.beside())
    }

    /// Whether a file is to be written.
    pub(crate) fn takes(&self, file: &ExportFile) -> bool {
        let by_use = self.of.is_some_and(|of| of.takes(file.kind, self.config_path().is_some()));
        // the runtime is one thing of many files, with one tick
        let ticked = if file.kind == ExportKind::Sidecar { SIDECAR } else { &file.name };
        self.ticked.get(ticked).copied().unwrap_or(by_use)
    }
}

/// The last written files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Done {
    pub of: Use,
    pub files: usize,
    pub folder: PathBuf,
    /// The name that the files have of the document.
    pub stem: String,
    pub config: Option<Changed>,
}

/// The page's draft.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportPage {
    pub choices: Option<ExportChoices>,
    /// The source of the present or future pieces.
    pub wish: Option<ExportWish>,
    pub pieces: Option<Pieces>,
    /// Files are being made, perhaps for an older wish: one export at a time.
    pub making: bool,
    /// Their source has changed: they stay visible but cannot be written until the new ones exist.
    pub anew: bool,
    pub shown: Option<String>,
    /// The picture that was shown last.
    pub picture: Option<Picture>,
    /// Files that would be replaced; the user is asked.
    pub existing: Vec<String>,
    /// It is being written.
    pub writing: bool,
    /// Which field a native dialog fills.
    pub picking_config: bool,
    pub done: Option<Done>,
    /// Whether the last written files have been scrolled into view.
    pub reported: bool,
}

impl ExportPage {
    /// Whether the files are there, or why they cannot be.
    #[cfg(test)]
    pub(crate) fn is_ready(&self) -> bool {
        self.pieces.is_some() && !self.making && !self.anew
    }

    /// The files that they are made of have changed: what would be written is made again.
    pub(crate) fn make_anew(&mut self) {
        self.anew = true;
        self.existing.clear();
    }

    /// The files are written.
    pub(crate) fn finish(&mut self, done: Done) {
        (self.done, self.reported) = (Some(done), false);
    }

    /// The present request.
    pub(crate) fn choices(&self) -> Option<&ExportChoices> {
        self.choices.as_ref()
    }

    /// A native dialog has answered.
    pub(crate) fn pick(&mut self, picked: PathBuf) {
        if let Some(choices) = &mut self.choices {
            let field = if self.picking_config { &mut choices.config } else { &mut choices.folder };
            *field = picked.display().to_string();
        }
    }

    /// The files have been made.
    pub(crate) fn put(&mut self, wish: &ExportWish, pieces: Pieces) {
        self.making = false;
        if self.wish.as_ref() == Some(wish) {
            self.pieces = Some(pieces);
        }
    }
}

/// A picture of the export on the graphics card.
#[derive(Clone)]
pub(crate) struct Picture {
    pub bytes: Vec<u8>,
    pub texture: egui::TextureHandle,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({} bytes)", self.bytes.len())
    }
}

impl Picture {
    /// Reads it.
    pub(crate) fn decode(ctx: &egui::Context, file: &ExportFile) -> Option<Picture> {
        let image = image::load_from_memory_with_format(&file.bytes, image::ImageFormat::Png).ok()?.to_rgba8();
        let size = [image.width() as usize, image.height() as usize];
        let pixels = egui::ColorImage::from_rgba_unmultiplied(size, &image);
        let texture = ctx.load_texture(&file.name, pixels, egui::TextureOptions::LINEAR);
        Some(Picture { bytes: file.bytes.clone(), texture })
    }
}
