//! The racing backends: those requested by name, on the requested device.
//!
//! Invariant: one racer for each requested name, in that order; an unavailable one refuses in words. Opened GPUs stay
//! open between runs. Must not know problems or inputs.

use super::child;
use crate::backends::absent::absent;
use crate::backends::cuda::{self, Cache, Gpu, Nvrtc};
use crate::backends::torch::{Heard, Torch};
use crate::backends::{Backend, cpu, torch};
use crate::base::{BackendName, Device, Diagnostic};
use crate::worker::{machine, user_python};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The racers and their device.
pub(super) struct Found {
    pub backends: Vec<Box<dyn Backend>>,
    /// `NVIDIA H200`, `cpu (2 threads, avx512)`.
    pub device_name: String,
    /// The GPU, if it is one.
    pub card: Option<Arc<Gpu>>,
    /// Remarks for the report.
    pub notes: Vec<Diagnostic>,
    /// PyTorch's backends, while their Python has said nothing yet: the others need not wait for it.
    pub awaited: Option<Awaited>,
}

/// PyTorch that is being started beside the race.
pub(super) struct Awaited {
    names: Vec<BackendName>,
    opening: JoinHandle<Result<Torch, Diagnostic>>,
    /// Set with Python's first line.
    heard: Heard,
}

/// How long a race waits for the first line of a Python before it begins without it.
const SILENT: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(3) };
/// Where only PyTorch races there is nothing to begin with; Python's own limits end the wait.
const FOREVER: Duration = Duration::from_secs(3600);

impl Awaited {
    /// Starts the requested Python, otherwise the first with torch; None if no name is PyTorch's.
    fn start(names: &[BackendName], device: Device, python: Option<&str>) -> Option<Awaited> {
        let names: Vec<BackendName> = names.iter().copied().filter(|n| n.is_torch()).collect();
        if names.is_empty() {
            return None;
        }
        let (heard, asked) = (Heard::default(), python.map(String::from));
        let reported = heard.clone();
        let opening = std::thread::spawn(move || {
            let found = asked.clone().or_else(|| Some(user_python::find()?.path.display().to_string()));
            match user_python::chosen_but_silent().filter(|_| asked.is_none()) {
                Some(why) => Err(why),
                None => torch::open_kept(found.as_deref(), device, crate::export::module_text, reported),
            }
        });
        Some(Awaited { names, opening, heard })
    }

    /// Its backends, once Python has answered or its limits have passed.
    pub(super) fn backends(self, environment: &mut BTreeMap<String, String>) -> Vec<Box<dyn Backend>> {
        let ended =
            || Err(Diagnostic::error("torch-died", "the thread that starts Python has ended").hint("run it again"));
        let (backends, facts) = torch::backends(&self.names, self.opening.join().unwrap_or_else(|_| ended()));
        environment.extend(facts.into_iter().flat_map(|f| f.versions));
        backends
    }

    /// Whether it can be waited for: it has said a line, or has ended, within the patience of the others.
    fn answers(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        let has_answered = || self.heard.is() || self.opening.is_finished();
        while !has_answered() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        has_answered()
    }
}

/// Finds the racers; versions that matter for the result go into `environment`. Errors: the device is not there.
pub(super) fn find(
    names: &[BackendName],
    device: Device,
    python: Option<&str>,
    gpus: &mut Gpus,
    environment: &mut BTreeMap<String, String>,
) -> Result<Found, Diagnostic> {
    let (mut notes, mut card) = (Vec::new(), None);
    let mut made: Vec<(BackendName, Box<dyn Backend>)> = Vec::new();
    let own: Vec<BackendName> = names.iter().copied().filter(|n| !n.is_torch()).collect();
    let started = Awaited::start(names, device, python);
    let device_name = match device {
        Device::Cpu => {
            made.extend(own.iter().map(|n| (*n, on_cpu(*n))));
            cpu::device_name()
        }
        Device::Cuda(ordinal) => {
            let gpu = gpus.open(ordinal)?;
            card = Some(Arc::clone(&gpu));
            describe(&gpu, environment);
            made.extend(own.iter().zip(on_cuda(&own, &gpu, environment, &mut notes)).map(|(n, b)| (*n, b)));
            gpu.info().name.clone()
        }
    };
    let mut awaited = None;
    if let Some(started) = started {
        if started.answers(if own.is_empty() { FOREVER } else { SILENT }) {
            made.extend(started.backends(environment).into_iter().map(|b| (b.name(), b)));
        } else {
            awaited = Some(started);
        }
    }
    let mut take = |name: &BackendName| {
        let at = made.iter().position(|(n, _)| n == name)?;
        Some(made.swap_remove(at).1)
    };
    let later = |name: &BackendName| awaited.is_some() && name.is_torch();
    let now = names.iter().filter(|name| !later(name));
    let backends = now.map(|name| take(name).unwrap_or_else(|| absent(*name, not_here(*name)))).collect();
    Ok(Found { backends, device_name, card, notes, awaited })
}

/// GPUs by ordinal, opened on first use.
#[derive(Default)]
pub(super) struct Gpus {
    opened: BTreeMap<u32, Arc<Gpu>>,
}

impl Gpus {
    pub(super) fn open(&mut self, ordinal: u32) -> Result<Arc<Gpu>, Diagnostic> {
        if let Some(gpu) = self.opened.get(&ordinal) {
            return Ok(gpu.clone());
        }
        let gpu = Gpu::open(ordinal)?;
        self.opened.insert(ordinal, gpu.clone());
        Ok(gpu)
    }
}

fn describe(gpu: &Gpu, environment: &mut BTreeMap<String, String>) {
    let info = gpu.info();
    let (driver, capability) = (gpu.driver(), info.compute_capability);
    let memory = info.memory as f64 / (1u64 << 30) as f64;
    let words = format!("{} (compute capability {}.{}, {memory:.0} GiB)", info.name, capability.0, capability.1);
    environment.insert("gpu".into(), words);
    let cuda = format!("CUDA {}.{}", driver.0, driver.1);
    let version = cuda::driver_version().or_else(machine::nvidia_driver);
    environment.insert("driver".into(), version.map_or(cuda.clone(), |version| format!("{version} ({cuda})")));
}

/// The backends of a GPU; without NVRTC each of them refuses.
fn on_cuda(
    names: &[BackendName],
    gpu: &Arc<Gpu>,
    environment: &mut BTreeMap<String, String>,
    notes: &mut Vec<Diagnostic>,
) -> Vec<Box<dyn Backend>> {
    let nvrtc: &'static Nvrtc = match cuda::nvrtc_for(gpu) {
        Ok(nvrtc) => nvrtc,
        Err(why) => return names.iter().map(|n| absent(*n, super::info::fetchable(why.clone()))).collect(),
    };
    let (major, minor) = nvrtc.version();
    environment.insert("nvrtc".into(), format!("{major}.{minor}"));
    let cache = Cache::user();
    if cache.is_none() {
        let why = Diagnostic::note("no-cache", "no home folder: kernels are compiled again in every process");
        notes.push(why.hint("set MASKLOOM_CACHE to a folder"));
    }
    let compiler: Arc<dyn cuda::Compiler> = child::compiler(nvrtc);
    let make = |name: &BackendName| {
        let found = cuda::backend(*name, gpu, &compiler, cache.as_ref());
        found.unwrap_or_else(|| absent(*name, not_here(*name)))
    };
    names.iter().map(make).collect()
}

fn on_cpu(name: BackendName) -> Box<dyn Backend> {
    cpu::backend(name).unwrap_or_else(|| absent(name, not_here(name)))
}

fn not_here(name: BackendName) -> Diagnostic {
    Diagnostic::error("backend-not-here", format!("{name} does not run on this device"))
        .hint("race eager, sdpa, flash_attention_2 and flex")
}
