//! The worker process and its clients: protocol, launching, jobs, compile children, doctor.
//!
//! Invariant: all GPU work happens in the worker; a kernel can neither freeze nor kill the window. Must not know the
//! window or the command line.

pub mod client;
pub mod conform;
pub mod display;
pub mod doctor;
pub mod environment;
pub mod exporting;
pub mod files;
pub mod folders;
pub mod imports;
pub mod jobs;
pub mod kernel_files;
pub mod lab;
pub mod lengths;
mod limited;
pub mod machine;
pub(crate) mod npy;
pub mod plan;
pub mod predict;
pub(crate) mod process;
pub mod protocol;
pub mod python;
pub mod recorded;
pub mod roofs;
pub mod run_file;
pub mod smaller;
#[cfg(test)]
mod spill_tests;
pub mod supervisor;
pub mod target;
pub mod tensors;
pub mod transport;
pub mod verdicts;
pub mod worker;
