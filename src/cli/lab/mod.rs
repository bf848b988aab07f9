//! The mask lab on the command line: `recorder`, `quality`, `suggest` and `atlas`.
//!
//! Invariant: a missed threshold gives status 1 after everything has been printed. Must not know how measures are
//! computed.

pub(super) mod atlas;
mod atlas_far;
pub(super) mod page;
mod proposed;
pub(super) mod quality;
pub(super) mod recorder;
pub(super) mod suggest;

use super::out::{self, Failure};
use crate::base::{Diagnostic, Layout};
use crate::quality::capture::{Call, Capture};
use crate::tasks::lab;
use crate::words::Words;
use std::path::Path;

/// The selected part of a capture.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Part of the capture")]
pub(super) struct Part {
    /// Layer by name, number or part of a name; the default is the first
    #[arg(long, value_name = "NAME")]
    pub layer: Option<String>,
    /// Step; the default is the first
    #[arg(long, value_name = "N")]
    pub step: Option<usize>,
    /// Prompt by number; the default is the first
    #[arg(long, value_name = "N")]
    pub prompt: Option<usize>,
    /// Batch entry
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub entry: usize,
    /// Query heads: 0,3,5; the default is all that have q and k
    #[arg(long = "only-heads", value_name = "LIST", value_delimiter = ',')]
    pub only_heads: Vec<usize>,
}

/// The line over a call's tables.
pub(super) fn title(said: &'static Words, capture: &Capture, call: &Call) -> String {
    let (name, [q, kv]) =
        (lab::told::call(said, capture, call), [call.info.q_len, call.info.kv_len].map(|n| n.to_string()));
    said.with("call-tokens", &[("call", name.into()), ("q", q.into()), ("kv", kv.into())]) + "\n"
}

impl Part {
    /// The selected heads of a call. Errors: none of them has q and k.
    pub(super) fn heads(&self, capture: &Capture, call: &Call) -> Result<Vec<usize>, Diagnostic> {
        let there = call.info.full_heads();
        let missing: Vec<String> =
            self.only_heads.iter().filter(|h| !there.contains(h)).map(usize::to_string).collect();
        if there.is_empty() || !missing.is_empty() {
            let message = if there.is_empty() {
                format!("{} of {} has statistics only: no head has q and k", call.key, capture.name())
            } else {
                format!("{} of {} has no q and k of head {}", call.key, capture.name(), missing.join(", "))
            };
            let named = there.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let hint = if there.is_empty() {
                "capture with q, k and v of some heads".into()
            } else {
                format!("heads with q and k: {named}")
            };
            return Err(Diagnostic::error("capture-head", message).hint(hint));
        }
        Ok(if self.only_heads.is_empty() { there } else { self.only_heads.clone() })
    }
}

/// The order of axes of a file without it.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Plain {
    /// Order of dimensions of q, k and v in a file that is no capture: bhsd or bshd; a capture says its own
    #[arg(long, value_parser = super::arguments::layout)]
    pub layout: Option<Layout>,
}

/// Opens a capture and prints what is missing from it. Errors: those of [`lab::open_as`].
pub(super) fn open(path: &Path, plain: &Plain) -> Result<Capture, Failure> {
    let capture = lab::open_as(path, plain.layout)?;
    out::diagnostics(&capture.warnings());
    Ok(capture)
}

/// Fails with status 1 if a threshold was missed.
pub(super) fn guarded(missed: Vec<Diagnostic>) -> Result<(), Failure> {
    if missed.is_empty() { Ok(()) } else { Err(Failure::Reported(missed)) }
}
