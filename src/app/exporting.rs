//! The files of an export, made from the document and what became of it.
//!
//! Invariant: nothing is written here; an export is made only of a document that compiles. Must not know dialogs.

use super::state::State;
use crate::base::Diagnostic;
use crate::document::file;
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
    if let Err(why) = &built.problem {
        return Err(why.clone());
    }
    let preset = file::to_json(&built.document).into_bytes();
    Ok(vec![Piece { name: "mask.json".into(), bytes: preset, what: "the preset".into() }])
}
