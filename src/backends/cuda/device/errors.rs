//! The driver's error codes as messages: the failure, its cause, a fix.
//!
//! Invariant: every code gives a diagnostic with a suggested fix; errors that destroy the context have one code,
//! [`CONTEXT_LOST`]. Must not call the driver, so that it is tested without one.

use crate::base::Diagnostic;
use cudarc::driver::DriverError;
use cudarc::driver::sys::cudaError_enum as Code;

/// Code of errors after which nothing runs on the device any more until the process is started again.
pub const CONTEXT_LOST: &str = "gpu-context-lost";

/// Code of errors for want of memory on the device.
pub const OUT_OF_MEMORY: &str = "gpu-out-of-memory";

/// A driver's error while doing `what` ("running flex").
pub(crate) fn diagnostic(what: &str, error: DriverError) -> Diagnostic {
    let code = error.0;
    let name = format!("{code:?}");
    match code {
        Code::CUDA_ERROR_OUT_OF_MEMORY => Diagnostic::error(OUT_OF_MEMORY, format!("{what}: the GPU is out of memory"))
            .hint("shorten the sequence, batch or heads, or close other programs that use the GPU (`nvidia-smi` lists them)"),
        Code::CUDA_ERROR_NO_BINARY_FOR_GPU
        | Code::CUDA_ERROR_INVALID_IMAGE
        | Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | Code::CUDA_ERROR_INVALID_PTX => {
            let message = format!("{what}: the driver cannot load the code that NVRTC compiled ({name})");
            Diagnostic::error("gpu-kernel-rejected", message)
                .hint("the driver is older than NVRTC: update it, or `pip install nvidia-cuda-nvrtc-cu12`")
        }
        Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
            let message = format!("{what}: a block needs more registers or shared memory than the GPU has");
            Diagnostic::error("gpu-launch-resources", message)
                .hint("please report the problem's head_dim and the GPU; a smaller head_dim runs")
        }
        _ => fatal(what, code, &name),
    }
}

/// Errors that end the context, and everything else.
fn fatal(what: &str, code: Code, name: &str) -> Diagnostic {
    let lost = |why: &str, hint: &str| {
        Diagnostic::error(CONTEXT_LOST, format!("{what}: {why} ({name})")).hint(hint.to_string())
    };
    let again = "restart the worker; please report the mask with this message";
    match code {
        Code::CUDA_ERROR_ILLEGAL_ADDRESS => lost("the kernel accessed memory outside its allocations", again),
        Code::CUDA_ERROR_MISALIGNED_ADDRESS => lost("the kernel accessed a misaligned address", again),
        Code::CUDA_ERROR_LAUNCH_FAILED
        | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Code::CUDA_ERROR_INVALID_PC
        | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Code::CUDA_ERROR_ASSERT => lost("the kernel failed", again),
        Code::CUDA_ERROR_LAUNCH_TIMEOUT => lost(
            "the kernel ran longer than the display's watchdog allows",
            "use a GPU without a display, or a smaller problem; restart the worker",
        ),
        Code::CUDA_ERROR_ECC_UNCORRECTABLE | Code::CUDA_ERROR_NVLINK_UNCORRECTABLE => {
            lost("the GPU reports a hardware error", "look at `nvidia-smi -q`; the GPU may need a reset")
        }
        Code::CUDA_ERROR_CONTEXT_IS_DESTROYED | Code::CUDA_ERROR_DEINITIALIZED | Code::CUDA_ERROR_INVALID_CONTEXT => {
            lost("the GPU's context is gone", "restart the worker")
        }
        Code::CUDA_ERROR_UNKNOWN | Code::CUDA_ERROR_DEVICE_UNAVAILABLE => lost(
            "the driver has lost the GPU",
            "look at `nvidia-smi` and at Xid in `dmesg`; restart the worker, and if that fails the machine",
        ),
        _ => Diagnostic::error("gpu-driver", format!("{what}: the driver says {name}"))
            .hint("run `maskloom doctor`; if it finds nothing, please report this message"),
    }
}

/// Why the driver did not start.
pub(crate) fn no_driver(error: DriverError) -> Diagnostic {
    let code = error.0;
    let make = |code, message: &str, hint: &str| Diagnostic::error(code, message.to_string()).hint(hint.to_string());
    match code {
        Code::CUDA_ERROR_NO_DEVICE => make(
            "gpu-none",
            "NVIDIA's driver is installed but finds no GPU",
            "check `nvidia-smi -L` and CUDA_VISIBLE_DEVICES; in a container, start it with --gpus all",
        ),
        Code::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => make(
            "gpu-driver-mismatch",
            "the driver's library and its kernel module have different versions",
            "restart the machine after a driver update",
        ),
        Code::CUDA_ERROR_SYSTEM_NOT_READY => make(
            "gpu-not-ready",
            "the GPU system is not ready: on NVSwitch machines the fabric manager must run",
            "sudo systemctl start nvidia-fabricmanager",
        ),
        Code::CUDA_ERROR_STUB_LIBRARY => make(
            "gpu-driver-stub",
            "libcuda.so is the toolkit's stub, not the driver",
            "remove the toolkit's `stubs` folder from LD_LIBRARY_PATH",
        ),
        Code::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => make(
            "gpu-driver-compat",
            "the CUDA compatibility package does not support this GPU",
            "remove cuda-compat from LD_LIBRARY_PATH, or update the driver",
        ),
        _ => diagnostic("starting NVIDIA's driver", error),
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::device::errors::*;

    #[test]
    fn every_code_has_a_way_out_and_faults_are_told_apart() {
        for (code, wanted) in [
            (Code::CUDA_ERROR_OUT_OF_MEMORY, OUT_OF_MEMORY),
            (Code::CUDA_ERROR_ILLEGAL_ADDRESS, CONTEXT_LOST),
            (Code::CUDA_ERROR_LAUNCH_FAILED, CONTEXT_LOST),
            (Code::CUDA_ERROR_LAUNCH_TIMEOUT, CONTEXT_LOST),
            (Code::CUDA_ERROR_NO_BINARY_FOR_GPU, "gpu-kernel-rejected"),
            (Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "gpu-launch-resources"),
            (Code::CUDA_ERROR_INVALID_VALUE, "gpu-driver"),
        ] {
            let why = diagnostic("running flex", DriverError(code));
            assert_eq!(why.code, wanted);
            assert!(why.message.starts_with("running flex: ") && why.hint.is_some(), "{why}");
        }
        for code in [Code::CUDA_ERROR_NO_DEVICE, Code::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, Code::CUDA_ERROR_UNKNOWN] {
            assert!(no_driver(DriverError(code)).hint.is_some());
        }
    }
}
