//! The files of an export, made from the document and what became of it.
//!
//! Invariant: nothing is written here; an export is made only of a document that compiles. Must not know dialogs.

use super::state::State;
use crate::base::Diagnostic;
use crate::document::file;
use crate::export::torch_module;
use std::path::Path;

/// A file that would be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub name: String,
    pub bytes: Vec<u8>,
    /// What it is, for the preview.
    pub what: String,
}

/// Every file, or why there are none.
pub(crate) fn pieces(state: &State, _config: Option<&Path>) -> Result<Vec<Piece>, Vec<Diagnostic>> {
    let Some(built) = &state.session.built else { return Ok(Vec::new()) };
    let problem = built.problem.as_ref().map_err(Clone::clone)?;
    let preset = file::to_json(&built.document).into_bytes();
    let mut pieces = vec![Piece { name: "maskloom_preset.json".into(), bytes: preset, what: "the preset".into() }];
    let module = torch_module(problem).into_iter();
    pieces.extend(module.map(|file| Piece { name: file.name, bytes: file.bytes, what: file.what }));
    Ok(pieces)
}
