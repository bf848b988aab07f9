//! From a document to the requests that a worker answers.
//!
//! Invariant: a request is made only of a valid problem. Must not know who sends it.

use super::protocol::{CompileRequest, InputSource, RunRequest, WorkerInfo};
use crate::base::{BackendName, Device, Diagnostic};
use crate::document::compile::Compiled;
use crate::document::from_document;
use crate::document::model::Document;

/// Rounds of a race unless asked otherwise.
pub const ROUNDS: u32 = 10;

/// The race that a document asks for, with its own seed and backends. Errors: those of the layers and of the problem.
pub fn run_request(document: &Document, compiled: &Compiled, device: Device) -> Result<RunRequest, Vec<Diagnostic>> {
    let problem = from_document(document, compiled)?;
    Ok(RunRequest {
        problem: problem.spec().clone(),
        inputs: InputSource::Random { seed: document.settings.seed },
        backends: document.settings.backends.clone(),
        device,
        rounds: ROUNDS,
        passes: 1,
        warmup: 2,
        reference_rows: 1024,
        keep_outputs: false,
        python: None,
        gradients: None,
    })
}

/// A compile of one backend's kernel. `arch` None: the device's own.
pub fn compile_request(
    document: &Document,
    compiled: &Compiled,
    backend: BackendName,
    arch: Option<String>,
) -> Result<CompileRequest, Vec<Diagnostic>> {
    let problem = from_document(document, compiled)?;
    Ok(CompileRequest { problem: problem.spec().clone(), backend, arch })
}

/// The device to run on: the one asked for, else the document's if it is there, else the best that can be used.
pub fn choose_device(asked: Option<Device>, document: &Document, info: &WorkerInfo) -> Device {
    let usable = |d: &Device| info.devices.iter().any(|x| x.device == *d && x.unusable.is_none());
    let wished = document.settings.device.filter(usable);
    let best = info.devices.iter().find(|d| d.unusable.is_none()).map(|d| d.device);
    asked.or(wished).or(best).unwrap_or(Device::Cpu)
}
