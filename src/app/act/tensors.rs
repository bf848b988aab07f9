//! Captured tensors from files, which are read off the window's thread.
//!
//! Invariant: an unusable file changes nothing and is reported. Must not know panels.

use crate::app::action::TensorsFor;
use crate::app::state::State;
use crate::base::{Diagnostic, HostTensor};
use crate::document::edit::Edit;
use crate::document::model::*;
use std::collections::BTreeMap;
use std::path::Path;

/// A file's tensors become an argument, or globals of the code.
pub(super) fn loaded(state: &mut State, asked: TensorsFor, tensors: Result<Vec<(String, HostTensor)>, Diagnostic>) {
    let (layer, path) = (asked.layer, asked.path.as_path());
    let edit = tensors.and_then(|tensors| match asked.argument {
        Some((parameter, wanted)) => {
            let tensor = choose(tensors, &parameter, &wanted, path)?;
            Ok(Edit::SetArg(layer, parameter, Some(ArgValue::Tensor { tensor })))
        }
        None => globals(&state.document, layer, tensors),
    });
    match edit {
        Ok(edit) => {
            state.history.seal();
            if state.edit(edit) {
                state.done(state.words().with("done-read", &[("path", path.display().to_string().into())]));
            }
            state.history.seal();
        }
        Err(why) => state.tell(why),
    }
}

fn choose(
    tensors: Vec<(String, HostTensor)>,
    parameter: &str,
    wanted: &str,
    path: &Path,
) -> Result<HostTensor, Diagnostic> {
    let name = if wanted.is_empty() { parameter } else { wanted };
    let names: Vec<String> = tensors.iter().map(|t| t.0.clone()).collect();
    let only = tensors.len() == 1 && wanted.is_empty();
    tensors.into_iter().find(|(n, _)| only || n == name).map(|(_, t)| t).ok_or_else(|| {
        Diagnostic::error("tensor-name", format!("{} contains no tensor named `{name}`", path.display()))
            .hint(format!("it contains: {}", names.join(", ")))
    })
}

/// Adds the tensors to the code's tensors.
fn globals(document: &Document, id: u64, new: Vec<(String, HostTensor)>) -> Result<Edit, Diagnostic> {
    let joined = |old: &BTreeMap<String, HostTensor>| old.clone().into_iter().chain(new.clone()).collect();
    if let Some(layer) = document.layer(id) {
        let content = match &layer.content {
            MaskContent::Text(code) => MaskContent::Text(TextCode { tensors: joined(&code.tensors), ..code.clone() }),
            MaskContent::Linked(code) => {
                MaskContent::Linked(LinkedCode { tensors: joined(&code.tensors), ..code.clone() })
            }
            _ => return Err(no_code()),
        };
        return Ok(Edit::SetContent(id, Box::new(content)));
    }
    let content = match document.score(id).map(|s| &s.content) {
        Some(ScoreContent::Text(code)) => {
            ScoreContent::Text(TextCode { tensors: joined(&code.tensors), ..code.clone() })
        }
        Some(ScoreContent::Linked(code)) => {
            ScoreContent::Linked(LinkedCode { tensors: joined(&code.tensors), ..code.clone() })
        }
        _ => return Err(no_code()),
    };
    Ok(Edit::SetScoreContent(id, Box::new(content)))
}

fn no_code() -> Diagnostic {
    Diagnostic::error("no-code", "this layer has no code that could read tensors").hint("select a layer with code")
}
