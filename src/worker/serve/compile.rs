//! Compiling only: a kernel's facts for an architecture that need not be present.
//!
//! Invariant: it uses the same cache and NVRTC as a run, so that precompiled kernels are found; no GPU context is
//! created. Must not know its callers.

use super::{info, run};
use crate::backends::cuda::{self, Cache, Compiler, Form, Limits, Nvrtc};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use crate::worker::protocol::{CompileRequest, Reply};
use crate::worker::transport::Payload;

type Outcome = Result<(Reply, Vec<Payload>), Vec<Diagnostic>>;

/// Answers a compile request.
pub(super) fn compile(request: CompileRequest) -> Outcome {
    let problem = run::problem(request.problem)?;
    let (limits, arch) = place(request.arch.as_deref()).map_err(|d| vec![d])?;
    let nvrtc = nvrtc().map_err(|d| vec![info::fetchable(d)])?;
    let cache = Cache::user();
    let program = cuda::program(&problem, request.backend, &limits, &arch, nvrtc, cache.as_ref());
    let artefact = program.map_err(|d| vec![d])?.artefact;
    Ok((Reply::Compile(Box::new(artefact)), Vec::new()))
}

/// Answers a compile child's request.
pub(super) fn compile_text(source: &str, arch: &str, form: Form) -> Outcome {
    let compiled = Nvrtc::get().and_then(|nvrtc| nvrtc.compile(source, arch, form)).map_err(|d| vec![d])?;
    let cubin = HostTensor::vector(Data::U8(compiled.cubin));
    Ok((Reply::CompileText { log: compiled.log, ms: compiled.ms }, vec![run::payload("cubin".into(), &cubin)]))
}

/// The target of a compile: the requested architecture, otherwise the first device's own. A device of the requested
/// architecture provides its limits, so that its runs find the kernel.
fn place(arch: Option<&str>) -> Result<(Limits, String), Diagnostic> {
    let devices = cuda::probe().devices;
    let mut usable = devices.into_iter().filter(|d| d.unusable.is_none());
    let Some(arch) = arch else {
        let device = usable.next().ok_or_else(|| {
            Diagnostic::error("no-arch", "this machine has no GPU, so the architecture is unknown")
                .hint("name one: --arch sm_80, sm_89, sm_90a, ...")
        })?;
        let arch = device.limits.arch();
        return Ok((device.limits, arch));
    };
    let (usual, arch) = Limits::named(arch)?;
    let limits = usable.find(|d| d.limits.arch() == arch).map_or(usual, |device| device.limits);
    Ok((limits, arch))
}

/// The NVRTC that runs would use.
fn nvrtc() -> Result<&'static Nvrtc, Diagnostic> {
    match cuda::probe().driver {
        Some(driver) => cuda::nvrtc_for_driver(driver),
        None => Nvrtc::get(),
    }
}
