//! The worker process and its clients: protocol, launching it here or through a command, jobs, compile children, what a machine has.
//!
//! Invariant: all GPU work happens in the worker; a kernel can neither freeze nor kill the window, and cancelling kills the worker.
//! Must not know the window, the command line or their tasks.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as worker;
use maskloom_backends as backends;
use maskloom_base as base;
use maskloom_document as document;
use maskloom_export as export;
use maskloom_ir as ir;
use maskloom_problem as problem;

pub mod asking;
pub mod browse;
pub mod client;
pub mod descendants;
pub mod detached;
pub mod display;
pub mod examine;
pub mod far;
pub mod faults;
pub mod files;
pub mod folders;
pub mod jobs;
pub mod kin;
pub mod launch;
pub mod leftovers;
pub mod limited;
pub mod machine;
pub mod named;
pub mod npy;
pub mod patience;
pub mod process;
pub mod protocol;
pub mod seen;
pub mod serve;
#[cfg(unix)]
pub mod signals;
pub mod supervisor;
pub mod target;
pub mod tensors;
pub mod transport;
pub mod user_python;
