//! The window.
//!
//! Invariant: the document (saved) stands apart from the session (derived, rebuildable); views send commands, one place
//! carries them out. Must not know the command line, CUDA or Python.

pub mod canvas;
