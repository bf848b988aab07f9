//! What a run does at the moment, as facts.
//!
//! Invariant: the terminal's words of each stand here alone. Must not know who does it.

use crate::base::BackendName;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The present work of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Nothing was told yet.
    #[default]
    Nothing,
    /// It looks for backends.
    Backends,
    /// It makes the inputs.
    Inputs,
    /// It counts blocks.
    Blocks,
    /// It compares the mods with the interpreter.
    Mods,
    /// It computes the reference.
    Reference,
    /// It measures rounding.
    Rounding,
    /// It prepares a backend.
    Preparing(BackendName),
    /// It compiles for a backend.
    Compiling(BackendName),
    /// A backend's outcome is known.
    Done(BackendName),
    /// A backend refused.
    Refused,
    /// It warms up.
    Warming,
    /// It times a round of so many.
    Round(u32, u32),
    /// So many rounds of so many are timed.
    Timed(u32, u32),
    /// It waits for Python.
    Python,
    /// It computes gradients.
    Gradients,
}

/// In English.
impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Nothing => "",
            Doing::Backends => "looking for backends",
            Doing::Inputs => "creating the inputs",
            Doing::Blocks => "counting the mask's blocks",
            Doing::Mods => "checking the mods with the interpreter",
            Doing::Reference => "computing the float64 reference",
            Doing::Rounding => "measuring the effect of rounding",
            Doing::Preparing(name) => return write!(f, "preparing {name}"),
            Doing::Compiling(name) => return write!(f, "compiling {name}"),
            Doing::Done(name) => return write!(f, "{name} is done"),
            Doing::Refused => "refused",
            Doing::Warming => "warming up",
            Doing::Round(n, all) => return write!(f, "timing round {n} of {all}"),
            Doing::Timed(n, all) => return write!(f, "timed {n} of {all} rounds"),
            Doing::Python => "waiting for Python, which has said nothing yet",
            Doing::Gradients => "computing gradients",
        })
    }
}
