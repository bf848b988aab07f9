//! The parts of the window around the picture and the tabs.
//!
//! Invariant: a view reads the state and pushes actions; it keeps only drafts of texts. Must not know how actions are
//! carried out.

mod add;
pub(super) mod area;
mod args;
mod axes;
mod beside;
mod curve;
pub(super) mod detail;
pub(super) mod differing;
pub(super) mod documents;
mod generate;
pub(super) mod headline;
mod icons;
pub(super) mod layers;
mod more;
mod mouse;
pub(super) mod outside;
pub(super) mod problem;
mod share;
pub(super) mod side;
pub(super) mod start;
pub(super) mod status;
pub(super) mod thumbs;
pub(super) mod toasts;
pub(super) mod tools;
pub(super) mod top;
pub(super) mod tour;
