//! The files of an export, created from the document and its compiled data, off the window's thread.
//!
//! Invariant: nothing is written here; only a document that compiles is exported. Must not know dialogs.

use super::compile::Built;
use crate::base::{BackendName, Diagnostic};
use crate::export::ExportFile;
use crate::problem::result::RunReport;
use crate::tasks::environment::Files;
use crate::tasks::exporting;
use crate::tasks::kernel_files::USUAL_ARCHITECTURES;
use crate::trainers::{ConfigRequest, Trainer};
use std::path::PathBuf;

/// The input of an export.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExportWish {
    /// The compiled document's revision.
    pub revision: u64,
    /// The trainer's file to set the value in; None: a new one.
    pub config: Option<PathBuf>,
    pub trainer: Trainer,
    /// The attention setting; None: the safe one.
    pub backend: Option<BackendName>,
    /// The fastest backend of a race without a mask.
    pub measured: Option<BackendName>,
    /// Whether our kernel goes along, compiled for the usual architectures.
    pub kernels: bool,
    /// The last race, if it belongs to this document.
    pub run: Option<Box<RunReport>>,
    /// Batch entry and head of the picture.
    pub shown: (usize, usize),
    /// The document's folder, where its linked files are.
    pub base: Option<PathBuf>,
}

/// Every file, with notes.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// The configuration comes first.
    pub files: Vec<ExportFile>,
    pub notes: Vec<Diagnostic>,
    /// The trainer's own file, if one was named.
    pub merged: Option<Merged>,
}

/// A configuration before and after the change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Merged {
    pub path: PathBuf,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// The created files, or the reason why there are none.
pub(crate) type Pieces = Result<Made, Vec<Diagnostic>>;

/// Makes them.
pub(crate) fn pieces(built: &Built, wish: &ExportWish) -> Pieces {
    let problem = built.problem.as_ref().map_err(Clone::clone)?;
    let existing = wish.config.as_deref().map(exporting::config_at).transpose().map_err(|why| vec![why])?;
    let config = ConfigRequest {
        trainer: wish.trainer,
        backend: wish.backend,
        measured: wish.measured,
        designed: true,
        existing: existing.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    };
    let asked = exporting::Wish {
        config,
        run: wish.run.as_deref(),
        name: None,
        shown: wish.shown,
        kernels: if wish.kernels { &USUAL_ARCHITECTURES } else { &[] },
        deterministic: false,
        lowered: &[],
    };
    let environment = Files::new(wish.base.clone(), Vec::new());
    let made = exporting::make(&built.document, problem, &environment, &asked).map_err(|why| vec![why])?;
    let mut bundle = made.bundle;
    // the rest is worth having without the kernel
    bundle.notes.extend(made.no_kernel);
    let merged = wish.config.clone().zip(existing).and_then(|(path, (_, before))| {
        let after = bundle.files.first()?.bytes.clone();
        Some(Merged { path, before, after })
    });
    Ok(Made { files: bundle.files, notes: bundle.notes, merged })
}

#[cfg(test)]
#[path = "exporting_tests.rs"]
mod tests;
