//! The mask lab: the loss of a mask on captured q, k and v, and masks with the least loss.
//!
//! Invariant: every measure is exact over all rows and keys of a head, with f32 scores and f64 sums; an undefined
//! measure is explained in words. Must not know documents, Python, files or windows: bytes come in through a trait,
//! proposals go out as forms.
//!
//! | file | owns |
//! |---|---|
//! | `capture` | the content of a capture file, and its errors |
//! | `head` | one head's tensors and the model's own changes of its scores |
//! | `scores` | tiles of scores, computed only here |
//! | `masses` | attention mass by block and row |
//! | `attend` | outputs with and without a mask |
//! | `measure`, `loss` | the measures of a mask, and its picture |
//! | `own` | the model's own changes of scores as mods, for devices |
//! | `live` | the measures while a mask is edited |
//! | `profile` | the character of a head: entropy, columns, distances, offsets |
//! | `routers` | simulated run-time routers of other frameworks |
//! | `suggest` | masks proposed from a capture |

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as quality;
use maskloom_analysis as analysis;
#[cfg(test)]
use maskloom_backends as backends;
use maskloom_base as base;
use maskloom_ir as ir;
use maskloom_micro as micro;

pub mod attend;
pub mod capture;
pub mod head;
pub mod live;
pub mod loss;
pub mod masses;
pub mod measure;
pub mod own;
pub mod profile;
pub mod routers;
pub mod scores;
pub mod suggest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use crate::base::Diagnostic;

/// Work that was stopped.
pub(crate) fn cancelled() -> Diagnostic {
    Diagnostic::note("cancelled", "stopped")
}
