//! Maskloom: a workbench for attention masks.
//!
//! Owns the command line and names the crates below it; Cargo is the table of layers: a crate imports only what its
//! Cargo.toml names. `app` (the window) and `cli` never import each other.
//!
//! Work on a target, without waiting for it:
//!
//! ```no_run
//! # use maskloom::{tasks::plan, worker::{jobs::{Jobs, News}, target::Target}};
//! # fn example(document: &maskloom::document::model::Document, env: &dyn maskloom::document::compile::Environment) {
//! let mut jobs = Jobs::new(Target::local(), std::sync::Arc::new(|| ()));
//! let compiled = maskloom::document::compile::compile(document, env);
//! let problem = maskloom::document::from_document(document, &compiled).expect("valid");
//! let request = plan::run_request(&problem, &document.settings, maskloom::base::Device::Cpu);
//! let job = jobs.run(request);
//! for event in jobs.poll() {
//!     match event.news {
//!         News::Progress(step) => { /* a backend's report comes as soon as it is known */ }
//!         News::Ran { report, .. } if event.job == job => { /* everything */ }
//!         News::Failed { why } => { /* diagnostics; the next job starts a new worker if this one died */ }
//!         _ => {}
//!     }
//! }
//! jobs.cancel(job); // kills the worker
//! # }
//! ```

pub mod cli;
pub use maskloom_analysis as analysis;
pub use maskloom_backends as backends;
pub use maskloom_base as base;
pub use maskloom_document as document;
pub use maskloom_export as export;
pub use maskloom_ir as ir;
pub use maskloom_parallel as parallel;
pub use maskloom_problem as problem;
pub use maskloom_python as python;
pub use maskloom_quality as quality;
pub use maskloom_tasks as tasks;
pub use maskloom_trainers as trainers;
pub use maskloom_words as words;
pub use maskloom_worker as worker;
