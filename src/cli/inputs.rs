//! Flags for the source of a run's q, k and v.
//!
//! Invariant: a file on this machine sets the heads and dims that no flag sets; changes are reported. Must not know
//! runs.

use super::arguments;
use super::out::{self, Failure};
use super::overrides::Overrides;
use crate::base::{Diagnostic, Layout};
use crate::document::model::Document;
use crate::worker::protocol::{InputSource, SeedSource};
use crate::worker::tensors::{InputShapes, TensorFile};
use std::path::{Path, PathBuf};

/// The flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct InputArgs {
    /// q, k and v from a file on the target's machine; the default is random values from the seed
    #[arg(long, value_name = "F.safetensors")]
    pub inputs: Option<PathBuf>,
    /// Names of the tensors in the file
    #[arg(long, value_name = "Q,K,V", default_value = "q,k,v", value_parser = arguments::names)]
    pub names: [String; 3],
    /// Name of the output's gradient in the file, for --pass backward and both; without it `do` is taken if the file has it, and
    /// random values otherwise
    #[arg(long, value_name = "DO", requires = "inputs")]
    pub grad: Option<String>,
    /// Order of dimensions in the file: bhsd or bshd
    #[arg(long, default_value = "bhsd", value_parser = arguments::layout)]
    pub layout: Layout,
}

impl InputArgs {
    /// The source; fits the document to the file if the file is readable here.
    pub(super) fn source(
        &self,
        document: &mut Document,
        overrides: &Overrides,
        local: bool,
    ) -> Result<InputSource, Failure> {
        let Some(path) = &self.inputs else { return Ok(InputSource::Random { seed: document.settings.seed }) };
        let mut shown = path.clone();
        if local {
            if let Some(shapes) = InputShapes::read(path, &self.names, self.layout)? {
                let changes = shapes.fit(document);
                overrides.apply_settings(document);
                if !changes.is_empty() {
                    out::note(&format!("note[inputs-fit]: set from {}: {}", path.display(), changes.join(", ")));
                }
            }
            // the worker may have another current folder
            shown = std::path::absolute(path).unwrap_or(shown);
        }
        let path = arguments::as_text(&shown)?;
        Ok(InputSource::File { path, names: self.names.clone(), layout: self.layout })
    }

    /// The output's gradient in the same file; None: random values. Errors: the file is here and has no tensor of that name.
    pub(super) fn seeds(&self, source: &InputSource, local: bool) -> Result<Option<SeedSource>, Failure> {
        let InputSource::File { path, layout, .. } = source else { return Ok(None) };
        let names = if local { TensorFile::open(Path::new(path))?.names() } else { Vec::new() };
        let name = self.grad.clone().or_else(|| names.iter().find(|name| *name == "do").cloned());
        let Some(d_out) = name else { return Ok(None) };
        if local && !names.contains(&d_out) {
            let message = format!("{path} has no tensor `{d_out}`");
            let why = Diagnostic::error("no-such-tensor", message).hint(format!("it has: {}", names.join(", ")));
            return Err(why.into());
        }
        Ok(Some(SeedSource::File { path: path.clone(), d_out, d_lse: None, layout: *layout }))
    }
}
