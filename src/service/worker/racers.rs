//! Which backends race: those asked for by name, on the device asked for.
//!
//! Invariant: one racer for each name asked, in that order; one that does not exist here refuses in words. Must not know
//! problems or inputs.

use crate::backends::{Backend, Inputs, Prepared, cpu, torch};
use crate::base::{BackendName, Device, Diagnostic};
use crate::problem::Problem;
use crate::service::python;
use std::collections::BTreeMap;

/// The racers and what they race on.
pub(super) struct Found {
    pub backends: Vec<Box<dyn Backend>>,
    /// `NVIDIA H200`, `cpu (2 threads, avx512)`.
    pub device_name: String,
    /// Remarks for the report.
    pub notes: Vec<Diagnostic>,
}

/// Finds the racers; versions that matter for the result go into `environment`. Errors: the device is not there.
pub(super) fn find(
    names: &[BackendName],
    device: Device,
    python: Option<&str>,
    environment: &mut BTreeMap<String, String>,
) -> Result<Found, Diagnostic> {
    let device_name = match device {
        Device::Cpu => cpu::device_name(),
        Device::Cuda(_) => return Err(no_cuda(device)),
    };
    let mut torch = on_torch(names, device, python, environment).into_iter();
    let backends = names
        .iter()
        .map(|name| if name.is_torch() { torch.next() } else { None }.unwrap_or_else(|| on_cpu(*name)))
        .collect();
    Ok(Found { backends, device_name, notes: Vec::new() })
}

fn on_cpu(name: BackendName) -> Box<dyn Backend> {
    cpu::backend(name).unwrap_or_else(|| {
        let why = Diagnostic::error("backend-not-here", format!("{name} does not run on the cpu here"))
            .hint("race eager, sdpa, flash_attention_2 and flex");
        Box::new(Absent { name, why })
    })
}

/// PyTorch's backends among the names, in the Python asked for, else in the first with torch.
fn on_torch(
    names: &[BackendName],
    device: Device,
    python: Option<&str>,
    environment: &mut BTreeMap<String, String>,
) -> Vec<Box<dyn Backend>> {
    if !names.iter().any(|n| n.is_torch()) {
        return Vec::new();
    }
    let found = python.map(String::from).or_else(|| Some(python::find()?.path.display().to_string()));
    let (backends, facts) = torch::backends(names, found.as_deref(), device);
    environment.extend(facts.into_iter().flat_map(|f| f.versions));
    backends
}

fn no_cuda(device: Device) -> Diagnostic {
    Diagnostic::error("no-gpu", format!("there is no {device} on this machine"))
        .hint("run with --device cpu, or let a machine with a GPU do it: --target \"ssh HOST maskloom worker\"")
}

/// Refuses everything.
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
