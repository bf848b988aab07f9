//! Putting a worker on another machine: a shell there over any pipe, what it finds, and copying a program through it.
//!
//! Invariant: whatever gives a pipe will do; every wait has an end; nothing is written there but one folder of this user's, and
//! nothing is done as root. Must not know the protocol.

pub mod install;
pub mod probe;
pub mod program;
pub mod script;
pub mod shell;
