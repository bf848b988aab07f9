//! What to do about missing software and about messages: the doctor's explanations, guides and repairs.
//!
//! Invariant: a repair is asked for, and changes only Maskloom's own folder. Must not know how it is shown.

pub mod explain;
mod flex;
pub mod guide;
mod installs;
mod libraries;
mod matching;
pub mod mend;
mod messages;
mod models;
mod own;
mod reports;
mod training;

pub use crate::worker::examine::examine;
