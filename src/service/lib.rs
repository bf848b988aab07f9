//! The worker process and its clients: protocol, launching, jobs, compile children, doctor.
//!
//! Invariant: all GPU work happens in the worker; a kernel can neither freeze nor kill the window. Must not know the
//! window or the command line.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as service;
use maskloom_analysis as analysis;
use maskloom_backends as backends;
use maskloom_base as base;
use maskloom_document as document;
use maskloom_export as export;
use maskloom_ir as ir;
use maskloom_problem as problem;
use maskloom_python as python;
use maskloom_quality as quality;
use maskloom_trainers as trainers;

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
mod leftovers;
pub mod lengths;
mod limited;
pub mod machine;
pub mod manifest;
pub(crate) mod npy;
pub mod placing;
pub mod plan;
pub mod process;
pub mod protocol;
pub mod recorded;
pub mod run_file;
pub mod smaller;
pub mod supervisor;
pub mod target;
pub mod tensors;
pub mod transport;
pub mod user_python;
pub mod verdicts;
pub mod worker;
