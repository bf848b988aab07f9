//! The worker's description: its version and its devices.
//!
//! Invariant: devices in their order of preference, the best first; the CPU is always listed, and last. A query creates
//! no GPU context. Must not know requests.

use crate::backends::cuda::{self, GpuInfo};
use crate::base::{Device, Diagnostic, Severity, identity};
use crate::worker::machine;
use crate::worker::protocol::{DeviceInfo, PROTOCOL_VERSION, WorkerInfo};

/// Looks at this machine.
pub(super) fn worker_info() -> WorkerInfo {
    let probe = cuda::probe();
    let mut devices: Vec<DeviceInfo> = probe.devices.iter().map(gpu).collect();
    let usable = devices.iter().any(|d| d.unusable.is_none());
    devices.push(DeviceInfo {
        device: Device::Cpu,
        name: machine::cpu_name(),
        compute_capability: None,
        memory: machine::memory(),
        unusable: None,
    });
    let mut notes = Vec::new();
    if let Some(why) = probe.problem {
        notes.push(Diagnostic { severity: Severity::Note, ..why });
    }
    // only a GPU would miss it
    if let (true, Some(driver)) = (usable, probe.driver)
        && let Err(why) = cuda::nvrtc_for_driver(driver)
    {
        notes.push(Diagnostic { severity: Severity::Warning, ..fetchable(why) });
    }
    WorkerInfo {
        protocol: PROTOCOL_VERSION,
        version: identity::build().to_string(),
        host: machine::host(),
        devices,
        notes,
    }
}

fn gpu(info: &GpuInfo) -> DeviceInfo {
    DeviceInfo {
        device: Device::Cuda(info.ordinal),
        name: info.name.clone(),
        compute_capability: Some(info.compute_capability),
        memory: info.memory,
        unusable: info.unusable.clone(),
    }
}

/// A missing NVRTC can be fetched by Maskloom itself.
pub(super) fn fetchable(mut why: Diagnostic) -> Diagnostic {
    if why.code == "nvrtc-missing" {
        let fetch = "let Maskloom fetch it into its own folder: maskloom doctor --fix";
        why.hint = Some(why.hint.map_or(fetch.into(), |hint| format!("{fetch}; or {hint}")));
    }
    why
}
