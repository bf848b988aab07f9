//! A GPU as a guest of another program in this process (PyTorch): its primary context, its streams, its memory.
//!
//! Invariant: it allocates nothing and waits for nothing. Code that was loaded stays loaded, because a captured graph may launch it at any
//! time. Must not know attention: a launch is an entry, a grid and addresses of parameters.
#![allow(unsafe_code)] // contexts, modules and launches of the driver's C interface

use super::errors;
use super::gpu::Grid;
use crate::base::Diagnostic;
use cudarc::driver::sys::{self, CUfunction_attribute_enum as FunctionAttribute};
use cudarc::driver::{DriverError, result};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError};

/// Parameters of a launch at most.
pub(crate) const MOST_PARAMETERS: usize = 12;

/// A handle of the driver's, which any thread may use that has bound the context.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Handle(usize);

/// An entry of loaded code.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    function: Handle,
    context: Handle,
}

/// Loaded code by device and cache key.
static LOADED: Mutex<Option<HashMap<(u32, String), Handle>>> = Mutex::new(None);

/// The primary context of a device, made current in this thread. Errors: the driver's.
fn primary(ordinal: u32) -> Result<Handle, DriverError> {
    let device = result::device::get(ordinal as i32)?;
    // SAFETY: the driver has just given the device. It is held until the process ends, as PyTorch holds it.
    let context = unsafe { result::primary_ctx::retain(device) }?;
    bind(Handle(context as usize))?;
    Ok(Handle(context as usize))
}

/// Makes a context this thread's, if another or none is.
fn bind(context: Handle) -> Result<(), DriverError> {
    if result::ctx::get_current()?.is_some_and(|current| current as usize == context.0) {
        return Ok(());
    }
    // SAFETY: a live context: the primary one of a device, which this process holds.
    unsafe { result::ctx::set_current(context.0 as sys::CUcontext) }
}

/// An entry of machine code on a device, allowed `shared` bytes of dynamic shared memory. Errors: the driver's.
pub(crate) fn load(ordinal: u32, key: &str, cubin: &[u8], entry: &str, shared: usize) -> Result<Entry, Diagnostic> {
    let failed = |e| errors::diagnostic(&format!("loading {entry}"), e);
    let context = primary(ordinal).map_err(failed)?;
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    let place = (ordinal, key.to_string());
    let module = match loaded.get(&place) {
        Some(known) => *known,
        None => {
            // SAFETY: a cubin says how long it is; it comes from NVRTC or a checksummed cache.
            let made = unsafe { result::module::load_data(cubin.as_ptr().cast()) }.map_err(failed)?;
            loaded.insert(place, Handle(made as usize));
            Handle(made as usize)
        }
    };
    let name = CString::new(entry).expect("entries are our own names");
    // SAFETY: the module is live: it is never unloaded.
    let function = unsafe { result::module::get_function(module.0 as sys::CUmodule, name) }.map_err(failed)?;
    if shared > 48 << 10 {
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is live.
        unsafe { result::function::set_function_attribute(function, attribute, shared as i32) }.map_err(failed)?;
    }
    Ok(Entry { function: Handle(function as usize), context })
}

/// Makes the entry's context this thread's. Errors: the driver's.
pub(crate) fn enter(entry: &Entry) -> Result<(), Diagnostic> {
    bind(entry.context).map_err(|e| errors::diagnostic("using the GPU's context", e))
}

/// Enqueues a kernel on a stream of the entry's context, which [`enter`] made current. `at` are the addresses of its parameters in
/// host memory that its caller holds, each at least as long as the kernel declares it.
pub(crate) fn launch(entry: &Entry, grid: Grid, at: &[usize], stream: u64) -> Result<(), Diagnostic> {
    let mut pointers = [std::ptr::null_mut::<c_void>(); MOST_PARAMETERS];
    for (pointer, at) in pointers.iter_mut().zip(at) {
        *pointer = *at as *mut c_void;
    }
    // SAFETY: the driver copies the parameters before it returns and only reads them; a kernel can touch device memory alone. The
    // stream is one of PyTorch's, which it holds while a call runs on it.
    unsafe {
        result::launch_kernel(
            entry.function.0 as sys::CUfunction,
            grid.blocks,
            (grid.threads, 1, 1),
            grid.shared,
            stream as sys::CUstream,
            &mut pointers[..at.len().min(MOST_PARAMETERS)],
        )
    }
    .map_err(|e| errors::diagnostic("launching the kernel", e))
}

/// Enqueues zeros.
pub(crate) fn zero(address: u64, bytes: usize, stream: u64) -> Result<(), Diagnostic> {
    // SAFETY: the range is a tensor's of the caller, who holds it until the stream has come past this.
    unsafe { result::memset_d8_async(address, 0, bytes, stream as sys::CUstream) }
        .map_err(|e| errors::diagnostic("clearing sums", e))
}
