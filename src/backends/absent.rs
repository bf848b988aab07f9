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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing;

    #[test]
    fn both_passes_are_refused_for_the_true_cause() {
        let why = Diagnostic::error("no-torch", "there is no PyTorch");
        let (backend, problem) = (absent(BackendName::TorchFlex, why.clone()), testing::problem(1, 1, 1, 8, 8, 16));
        assert_eq!(backend.support(&problem), Err(why.clone()));
        assert_eq!(backend.supports_gradients(&problem), Err(why));
    }
}
