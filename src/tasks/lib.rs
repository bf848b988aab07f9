//! What the window and the command line both do: doctor, conformance, the lab, imports, verdicts, recorded runs, exporting.
//!
//! Invariant: a task reads and writes what it is asked to, and runs nothing on a GPU itself: the worker does. Must not know the window
//! or the command line.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as tasks;
use maskloom_analysis as analysis;
use maskloom_backends as backends;
use maskloom_base as base;
use maskloom_document as document;
use maskloom_export as export;
use maskloom_ir as ir;
use maskloom_parallel as parallel;
use maskloom_problem as problem;
use maskloom_python as python;
use maskloom_quality as quality;
use maskloom_trainers as trainers;
use maskloom_words as words;
use maskloom_worker as worker;

pub mod advising;
pub mod comparing;
pub mod conform;
pub mod detached;
pub mod divisions;
pub mod doctor;
pub mod environment;
pub mod estimate;
pub mod exporting;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod imports;
pub mod journal;
pub mod kernel_files;
pub mod lab;
pub mod lengths;
pub mod licences;
pub mod limits;
pub mod lowering;
pub mod machines;
pub mod manifest;
pub mod origins;
pub mod pages;
pub mod placing;
pub mod plan;
pub mod ratios;
pub mod recorded;
pub mod run_file;
pub mod settings;
pub mod sharing;
pub mod smaller;
pub mod steps;
pub mod verdicts;
pub mod why;
