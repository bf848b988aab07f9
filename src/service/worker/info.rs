//! Who the worker is and what it has.
//!
//! Invariant: devices in the order they are offered, the best first; the cpu is always there, and last. Must not know
//! requests.

use crate::base::Device;
use crate::service::machine;
use crate::service::protocol::{DeviceInfo, PROTOCOL_VERSION, WorkerInfo};

/// Looks at this machine.
pub fn worker_info() -> WorkerInfo {
    let cpu = DeviceInfo {
        device: Device::Cpu,
        name: machine::cpu_name(),
        compute_capability: None,
        memory: machine::memory(),
        unusable: None,
    };
    WorkerInfo {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        host: machine::host(),
        devices: vec![cpu],
        notes: Vec::new(),
    }
}
