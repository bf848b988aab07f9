//! Replaces a backend that is not available.
//!
//! Invariant: it refuses every problem with the same reason. Must not know the available backends.

use super::{Backend, Inputs, Prepared};
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;

/// A backend of that name which refuses with `why`.
pub fn absent(name: BackendName, why: Diagnostic) -> Box<dyn Backend> {
    Box::new(Absent { name, why })
}

struct Absent {
    name: BackendName,
    why: Diagnostic,
}

impl Backend for Absent {
    fn name(&self) -> BackendName {
        self.name
    }

    fn support(&self, _: &Problem) -> Result<(), Diagnostic> {
        Err(self.why.clone())
    }

    fn prepare(&mut self, _: &Problem, _: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
        Err(self.why.clone())
    }
}
