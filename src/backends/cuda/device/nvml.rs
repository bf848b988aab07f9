//! What NVIDIA's management library says of a GPU: the driver's version, clocks, power, temperature.
//!
//! Invariant: the library comes with the driver, is opened at the first question and never closed; without it, and where a card
//! does not say, a value is absent. Reading changes nothing. Must not know runs.
#![allow(unsafe_code)] // calls into libnvidia-ml through its C interface

use crate::problem::card::CardState;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

type Device = *mut c_void;
type Number = unsafe extern "C" fn(Device, *mut c_uint) -> c_int;
type NumberOf = unsafe extern "C" fn(Device, c_int, *mut c_uint) -> c_int;

/// The library's names, of which one is there with a driver.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "nvml.dll"];
/// `NVML_CLOCK_SM` and `NVML_CLOCK_MEM`.
const CLOCKS: [c_int; 2] = [1, 2];
/// `NVML_TEMPERATURE_GPU`.
const TEMPERATURE: c_int = 0;

/// An opened library.
struct Nvml {
    driver_version: unsafe extern "C" fn(*mut c_char, c_uint) -> c_int,
    by_bus: unsafe extern "C" fn(*const c_char, *mut Device) -> c_int,
    clock: NumberOf,
    temperature: NumberOf,
    power: Number,
    power_limit: Number,
}

/// The driver's own version: `580.95.05`.
pub fn driver_version() -> Option<String> {
    let mut text = [0; 80];
    // SAFETY: the buffer is live and as long as stated; the library ends the text in it.
    let status = unsafe { (nvml()?.driver_version)(text.as_mut_ptr(), text.len() as c_uint) };
    let bytes: Vec<u8> = text.iter().map(|letter| *letter as u8).collect();
    let text = CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?;
    (status == 0 && !text.is_empty()).then(|| text.to_string())
}

/// The state of the card at a PCI address (`0000:19:00.0`).
pub(crate) fn state(bus: &str) -> Option<CardState> {
    let (nvml, name) = (nvml()?, CString::new(bus).ok()?);
    let mut device = std::ptr::null_mut();
    // SAFETY: both pointers are to live values; a device that is given stays valid while the library is open.
    if unsafe { (nvml.by_bus)(name.as_ptr(), &mut device) } != 0 {
        return None;
    }
    let number = |ask: Number| {
        let mut value = 0;
        // SAFETY: the device is the library's, the pointer is to a live int.
        (unsafe { ask(device, &mut value) } == 0).then_some(value)
    };
    let number_of = |ask: NumberOf, of: c_int| {
        let mut value = 0;
        // SAFETY: as above; the kind is one of the header's.
        (unsafe { ask(device, of, &mut value) } == 0).then_some(value)
    };
    let watts = |ask: Number| number(ask).map(|milliwatts| (milliwatts + 500) / 1000);
    let [sm, memory] = CLOCKS.map(|which| number_of(nvml.clock, which));
    Some(CardState {
        sm_mhz: sm,
        memory_mhz: memory,
        power_w: watts(nvml.power),
        power_limit_w: watts(nvml.power_limit),
        temperature_c: number_of(nvml.temperature, TEMPERATURE),
    })
}

/// The process's library, opened at the first call.
fn nvml() -> Option<&'static Nvml> {
    static FOUND: OnceLock<Option<Nvml>> = OnceLock::new();
    FOUND.get_or_init(|| LIBRARIES.iter().find_map(|name| open(name))).as_ref()
}

fn open(name: &str) -> Option<Nvml> {
    // SAFETY: loading runs the library's initialisers; it is NVIDIA's own by its usual name, and is never closed.
    let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(name) }.ok()?));
    macro_rules! symbol {
        ($name:literal) => {
            // SAFETY: the name is NVML's own and the type its documented signature; the library stays open for good.
            *unsafe { library.get(concat!($name, "\0").as_bytes()) }.ok()?
        };
    }
    let start: unsafe extern "C" fn() -> c_int = symbol!("nvmlInit_v2");
    // SAFETY: takes nothing; it may be called several times.
    if unsafe { start() } != 0 {
        return None;
    }
    Some(Nvml {
        driver_version: symbol!("nvmlSystemGetDriverVersion"),
        by_bus: symbol!("nvmlDeviceGetHandleByPciBusId_v2"),
        clock: symbol!("nvmlDeviceGetClockInfo"),
        temperature: symbol!("nvmlDeviceGetTemperature"),
        power: symbol!("nvmlDeviceGetPowerUsage"),
        power_limit: symbol!("nvmlDeviceGetEnforcedPowerLimit"),
    })
}
