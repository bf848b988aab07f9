//! The CUDA devices of this machine and their limits; queried without panics.
//!
//! Invariant: the driver's library is searched before any call, because the bindings panic without it; a missing part
//! is a diagnostic with the command that fixes it. Creates no context, so that it costs no memory on the device.
#![allow(unsafe_code)] // device queries of the driver's C interface

use super::errors;
use crate::backends::cuda::experiment::Experiment;
use crate::backends::cuda::variant::arch::Arch;
use crate::backends::cuda::variant::limits::Limits;
use crate::base::Diagnostic;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{DriverError, result};

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// Newest CUDA version that the driver runs, such as (13, 0).
    pub driver: Option<(u32, u32)>,
    /// In the driver's order.
    pub devices: Vec<GpuInfo>,
    /// Why there is no device at all.
    pub problem: Option<Diagnostic>,
}

/// One device.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuInfo {
    /// N of `cuda:N`.
    pub ordinal: u32,
    /// `NVIDIA H200`.
    pub name: String,
    /// (9, 0).
    pub compute_capability: (u32, u32),
    /// Bytes in all.
    pub memory: u64,
    /// The limits for kernels.
    pub limits: Limits,
    /// Why it cannot be used, if so.
    pub unusable: Option<Diagnostic>,
}

/// Asks the driver.
pub fn probe() -> Probe {
    let missing = |why| Probe { problem: Some(why), ..Probe::default() };
    if !driver_present() {
        return missing(no_library());
    }
    if let Err(error) = result::init() {
        return missing(errors::no_driver(error));
    }
    let driver = version();
    match devices() {
        Ok(devices) if devices.is_empty() => {
            let none = errors::no_driver(DriverError(sys::cudaError_enum::CUDA_ERROR_NO_DEVICE));
            Probe { driver, devices, problem: Some(none) }
        }
        Ok(devices) => Probe { driver, devices, problem: None },
        Err(error) => Probe { driver, devices: Vec::new(), problem: Some(errors::no_driver(error)) },
    }
}

/// Whether the driver's library is there.
pub(crate) fn driver_present() -> bool {
    // SAFETY: opens and closes NVIDIA's own library by its usual names; its initialisers may run at any time.
    unsafe { sys::is_culib_present() }
}

fn no_library() -> Diagnostic {
    Diagnostic::error("gpu-driver-missing", "NVIDIA's driver (libcuda) is not installed on this machine").hint(
        "install NVIDIA's driver, or use another machine as target (`ssh HOST maskloom worker`); without a GPU \
         everything except GPU timing works on the CPU",
    )
}

fn version() -> Option<(u32, u32)> {
    let mut version = 0;
    // SAFETY: the pointer is to a live int.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().ok()?;
    let version = u32::try_from(version).ok()?;
    Some((version / 1000, version % 1000 / 10))
}

/// A device's address on the PCI bus, as NVIDIA's other libraries name it: `0000:19:00.0`.
pub(crate) fn bus(ordinal: u32) -> Option<String> {
    let device = result::device::get(i32::try_from(ordinal).ok()?).ok()?;
    let mut text = [0; 32];
    // SAFETY: the buffer is live and as long as stated; the driver ends the text in it.
    unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as i32, device) }.result().ok()?;
    let bytes: Vec<u8> = text.iter().map(|letter| *letter as u8).collect();
    Some(std::ffi::CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?.to_string())
}

fn devices() -> Result<Vec<GpuInfo>, DriverError> {
    (0..result::device::get_count()?).map(device).collect()
}

fn device(ordinal: i32) -> Result<GpuInfo, DriverError> {
    let device = result::device::get(ordinal)?;
    let name = result::device::get_name(device)?;
    // SAFETY: the driver has just given this device.
    let memory = unsafe { result::device::total_mem(device) }? as u64;
    let get = |attribute| {
        // SAFETY: as above.
        unsafe { result::device::get_attribute(device, attribute) }.map(|v| v.max(0) as usize)
    };
    let major = get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32;
    let minor = get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32;
    // a device that is too old is told as unusable below and runs none
    let arch = Arch::of_capability(major, minor).unwrap_or(Arch::Sm80);
    let limits = Limits {
        major,
        minor,
        shared_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        multiprocessors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        arch: if Experiment::Sm80.is_on() { Arch::Sm80 } else { arch },
    };
    let compute_capability = (limits.major, limits.minor);
    let unusable = too_old(&name, compute_capability);
    Ok(GpuInfo { ordinal: ordinal as u32, name, compute_capability, memory, limits, unusable })
}

/// The refusal of devices that lack bfloat16 tensor cores and cp.async.
fn too_old(name: &str, (major, minor): (u32, u32)) -> Option<Diagnostic> {
    if major >= 8 {
        return None;
    }
    let message = format!("{name} has compute capability {major}.{minor}; the kernels need 8.0 (Ampere) or newer");
    Some(Diagnostic::error("gpu-too-old", message).hint("choose the CPU, or a GPU of another machine as target"))
}

/// The reason why cubins of this NVRTC do not load with this driver, if so: a driver runs cubins of its own major
/// version and older.
pub fn nvrtc_too_new(driver: (u32, u32), nvrtc: (u32, u32)) -> Option<Diagnostic> {
    if nvrtc.0 <= driver.0 {
        return None;
    }
    let message = format!(
        "NVRTC {}.{} is newer than the driver, which runs CUDA {}.{}: it cannot load what NVRTC compiles",
        nvrtc.0, nvrtc.1, driver.0, driver.1
    );
    let wheel = if driver.0 >= 12 { "nvidia-cuda-nvrtc-cu12" } else { "nvidia-cuda-nvrtc-cu11" };
    Some(Diagnostic::error("nvrtc-too-new", message).hint(format!("`pip install {wheel}`, or update the driver")))
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::device::driver::*;

    #[test]
    fn a_machine_without_a_gpu_says_so_in_words() {
        let found = probe();
        if let Some(why) = &found.problem {
            assert!(found.devices.is_empty());
            assert!(why.code.starts_with("gpu-") && why.hint.is_some(), "{why}");
        } else {
            assert!(!found.devices.is_empty() && found.driver.is_some());
        }
    }

    #[test]
    fn old_devices_and_old_drivers_are_told_what_to_do() {
        assert_eq!(too_old("NVIDIA H200", (9, 0)), None);
        let old = too_old("Tesla T4", (7, 5)).unwrap();
        assert!(old.message.contains("Tesla T4 has compute capability 7.5") && old.hint.is_some());
        assert_eq!(nvrtc_too_new((13, 0), (12, 8)), None);
        assert_eq!(nvrtc_too_new((12, 4), (12, 8)), None);
        let why = nvrtc_too_new((12, 8), (13, 0)).unwrap();
        assert!(why.hint.unwrap().contains("nvidia-cuda-nvrtc-cu12"));
    }
}
