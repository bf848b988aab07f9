//! Installed and missing software, each problem with the one command that fixes it.
//!
//! Invariant: an examination changes nothing and takes seconds at most; software that may be absent on purpose (no GPU)
//! is amber, because the rest works without it. Must not know how the checks are shown.

mod checks;
mod settings;

use crate::worker::protocol::{Check, DoctorReport, Health};

/// Runs every check of the machine this process runs on.
pub fn examine() -> DoctorReport {
    checks::all()
}

impl DoctorReport {
    /// The worst light.
    pub fn worst(&self) -> Health {
        self.checks.iter().map(|c| c.health).max().unwrap_or(Health::Green)
    }

    /// One check by name.
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|c| c.name == name)
    }
}
