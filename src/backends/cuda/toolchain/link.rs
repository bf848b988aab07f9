//! Joins parts of machine code by the driver's linker.
//!
//! Invariant: a link state is always destroyed, and its result is copied before. Must not know what the parts do.
#![allow(unsafe_code)] // the linker of the driver's C interface

use crate::backends::cuda::device::errors;
use crate::backends::cuda::device::gpu::Gpu;
use crate::base::Diagnostic;
use cudarc::driver::sys::{self, CUjitInputType_enum as Input};
use std::ffi::c_void;
use std::ptr::null_mut;

/// A link in progress.
struct Link(sys::CUlinkState);

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: created in `link`, destroyed once.
        let _ = unsafe { sys::cuLinkDestroy(self.0) };
    }
}

/// Joins relocatable cubins into a loadable one. Errors: a symbol is missing or duplicated, a foreign architecture.
pub(crate) fn link(gpu: &Gpu, parts: &[&[u8]]) -> Result<Vec<u8>, Diagnostic> {
    gpu.bind()?;
    let failed = |e| errors::diagnostic("linking the kernel with its mods", e);
    let mut state = null_mut();
    // SAFETY: there are no options; the pointer is to a live state.
    unsafe { sys::cuLinkCreate_v2(0, null_mut(), null_mut(), &mut state) }.result().map_err(failed)?;
    let link = Link(state);
    for part in parts {
        let data: *mut c_void = part.as_ptr().cast_mut().cast();
        let (kind, name) = (Input::CU_JIT_INPUT_CUBIN, c"part");
        // SAFETY: the driver reads `part.len()` bytes of the part during the call, and writes none.
        unsafe { sys::cuLinkAddData_v2(link.0, kind, data, part.len(), name.as_ptr(), 0, null_mut(), null_mut()) }
            .result()
            .map_err(failed)?;
    }
    let (mut cubin, mut size) = (null_mut(), 0);
    // SAFETY: both pointers are to live values.
    unsafe { sys::cuLinkComplete(link.0, &mut cubin, &mut size) }.result().map_err(failed)?;
    // SAFETY: the driver keeps `size` bytes there until the state is destroyed, which is after the copy.
    Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
}
