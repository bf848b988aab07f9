//! From a problem and its document's settings to the requests for a worker.
//!
//! Invariant: a request needs a valid problem, which is built once. Must not know who sends it.

use crate::backends::race::RaceOptions;
use crate::base::{BackendName, Device};
use crate::document::model::{Document, Settings};
use crate::problem::Problem;
use crate::worker::protocol::{CompileRequest, InputSource, RunRequest, WorkerInfo};

/// Rounds of a race unless asked otherwise.
pub const ROUNDS: u32 = RaceOptions::USUAL.rounds;

/// A document's race: its problem, with its own seed and backends.
pub fn run_request(problem: &Problem, settings: &Settings, device: Device) -> RunRequest {
    let inputs = InputSource::Random { seed: settings.seed };
    RunRequest::new(problem, inputs, settings.backends.clone(), device)
}

/// A compile of one backend's kernel. `arch` None: the device's own.
pub fn compile_request(problem: &Problem, backend: BackendName, arch: Option<String>) -> CompileRequest {
    CompileRequest { problem: problem.spec().clone(), backend, arch }
}

/// The device to run on: the requested one, otherwise the document's if available, otherwise the best usable one.
pub fn choose_device(asked: Option<Device>, document: &Document, info: &WorkerInfo) -> Device {
    let usable = |d: &Device| info.devices.iter().any(|x| x.device == *d && x.unusable.is_none());
    let wished = document.settings.device.filter(usable);
    let best = info.devices.iter().find(|d| d.unusable.is_none()).map(|d| d.device);
    asked.or(wished).or(best).unwrap_or(Device::Cpu)
}
