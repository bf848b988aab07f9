//! The mask lab: what a mask loses on captured q, k and v, and which mask loses least.
//!
//! Invariant: every measure is exact over all rows and keys of a head, f32 scores with f64 sums, and is excused in words where
//! it cannot be. Must not know documents, Python, files or windows: bytes come in through a trait, proposals go out as forms.
//!
//! | file | owns |
//! |---|---|
//! | `capture` | what a capture file holds, and what is wrong with it |
//! | `head` | one head's tensors and what the model itself does to its scores |
//! | `scores` | tiles of scores, the one way in which this folder makes them |
//! | `masses` | attention mass by block and row |
//! | `attend` | outputs with and without a mask |
//! | `measure`, `loss` | the measures of a mask, and its picture |
//! | `live` | the measures while a mask is edited |
//! | `profile` | what kind a head is: entropy, columns, distances, offsets |
//! | `routers` | run-time selectors of other frameworks, simulated |
//! | `suggest` | masks proposed from a capture |

pub mod attend;
pub mod capture;
pub mod head;
pub mod live;
pub mod loss;
pub mod masses;
pub mod measure;
pub mod profile;
pub mod routers;
pub mod scores;
pub mod suggest;
#[cfg(test)]
pub(crate) mod testing;

use crate::base::Diagnostic;

/// Work that was stopped.
pub(crate) fn cancelled() -> Diagnostic {
    Diagnostic::note("cancelled", "stopped")
}
