//! cuDNN's backend interface: descriptors that are created, given attributes, finalised and executed.
//!
//! Invariant: the library is opened once, only after cuBLASLt (cuDNN ends the process without it), and never closed; every
//! status is checked and carries cuDNN's own words. Must not know attention.
#![allow(unsafe_code)] // calls into libcudnn through its C interface

use super::library::{CudnnCandidate, candidates};
use crate::backends::cuda::toolchain::library::Places;
use crate::backends::cuda::toolchain::nvrtc::open_for_good;
use crate::base::Diagnostic;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

type Raw = *mut c_void;

/// Numbers of cuDNN's interface, by the names that its header gives them.
#[allow(missing_docs)]
pub(super) mod id {
    // descriptors
    pub(crate) const POINTWISE: i32 = 0;
    pub(crate) const ENGINECFG: i32 = 3;
    pub(crate) const ENGINEHEUR: i32 = 4;
    pub(crate) const EXECUTION_PLAN: i32 = 5;
    pub(crate) const OPERATION_POINTWISE: i32 = 13;
    pub(crate) const OPERATIONGRAPH: i32 = 15;
    pub(crate) const VARIANT_PACK: i32 = 16;
    pub(crate) const TENSOR: i32 = 17;
    pub(crate) const MATMUL: i32 = 18;
    pub(crate) const OPERATION_MATMUL: i32 = 19;
    pub(crate) const REDUCTION: i32 = 21;
    pub(crate) const OPERATION_REDUCTION: i32 = 22;
}

/// A value of an attribute: cuDNN's type number and the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// Enumerations: the type's number, then the value.
    Enum(i32, i32),
    Bool(bool),
    Ints(&'a [i64]),
    Pointers(&'a [u64]),
    Descriptors(&'a [&'a Descriptor]),
    Handle(&'a Handle),
}

/// An opened cuDNN.
pub(crate) struct Cudnn {
    version: usize,
    create_handle: unsafe extern "C" fn(*mut Raw) -> c_int,
    destroy_handle: unsafe extern "C" fn(Raw) -> c_int,
    set_stream: unsafe extern "C" fn(Raw, Raw) -> c_int,
    create: unsafe extern "C" fn(c_int, *mut Raw) -> c_int,
    destroy: unsafe extern "C" fn(Raw) -> c_int,
    set: unsafe extern "C" fn(Raw, c_int, c_int, i64, *const c_void) -> c_int,
    get: unsafe extern "C" fn(Raw, c_int, c_int, i64, *mut i64, *mut c_void) -> c_int,
    finalize: unsafe extern "C" fn(Raw) -> c_int,
    execute: unsafe extern "C" fn(Raw, Raw, Raw) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Cudnn {
    /// The process's cuDNN, found and opened at the first call. The error is the reason why there is none.
    pub(crate) fn get() -> Result<&'static Cudnn, Diagnostic> {
        static FOUND: OnceLock<Result<Cudnn, Diagnostic>> = OnceLock::new();
        let find = || {
            let user = std::env::var_os("MASKLOOM_CUDNN").filter(|v| !v.is_empty()).map(PathBuf::from);
            let (all, looked) = candidates(user.as_deref(), &Places::from_environment());
            all.iter().find_map(|c| Cudnn::open(c).ok()).ok_or_else(|| {
                let message = format!("cuDNN 9 was not found in any Python environment{}", looked.told());
                Diagnostic::error("cudnn-missing", message)
                    .hint("activate the environment of your PyTorch, or set MASKLOOM_CUDNN to libcudnn.so.9")
            })
        };
        FOUND.get_or_init(find).as_ref().map_err(Clone::clone)
    }

    fn open(candidate: &CudnnCandidate) -> Result<Cudnn, String> {
        candidate.nvrtc.iter().for_each(|n| drop(open_for_good(n)));
        if !candidate.cublas.iter().any(|c| open_for_good(c).is_ok()) {
            return Err("cuBLASLt is missing".to_string());
        }
        let library = open_for_good(&candidate.library)?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the name is cuDNN's own and the field's type its documented signature; the library stays open.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }.map_err(|e| e.to_string())?
            };
        }
        let version: unsafe extern "C" fn() -> usize = symbol!("cudnnGetVersion");
        // SAFETY: takes nothing, gives a number.
        let version = unsafe { version() };
        if version < 90_000 {
            return Err(format!("version {version} is older than 9.0"));
        }
        Ok(Cudnn {
            version,
            create_handle: symbol!("cudnnCreate"),
            destroy_handle: symbol!("cudnnDestroy"),
            set_stream: symbol!("cudnnSetStream"),
            create: symbol!("cudnnBackendCreateDescriptor"),
            destroy: symbol!("cudnnBackendDestroyDescriptor"),
            set: symbol!("cudnnBackendSetAttribute"),
            get: symbol!("cudnnBackendGetAttribute"),
            finalize: symbol!("cudnnBackendFinalize"),
            execute: symbol!("cudnnBackendExecute"),
            error_string: symbol!("cudnnGetErrorString"),
        })
    }

    /// 91900 for 9.19.0.
    pub(crate) fn version(&self) -> usize {
        self.version
    }

    /// `9.19`.
    pub(crate) fn version_text(&self) -> String {
        format!("{}.{}", self.version / 10_000, self.version / 100 % 100)
    }

    fn check(&self, what: &str, status: c_int) -> Result<(), Diagnostic> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: cuDNN gives a static C string for any status.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy().into_owned();
        Err(Diagnostic::error("cudnn-failed", format!("cuDNN {}: {what}: {text}", self.version_text()))
            .hint("race `flex` instead, or use another cuDNN through MASKLOOM_CUDNN"))
    }

    /// A handle that works on `stream` of the context that is bound to this thread.
    pub(crate) fn handle(&'static self, stream: *mut c_void) -> Result<Handle, Diagnostic> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer; a context is bound.
        self.check("creating a handle", unsafe { (self.create_handle)(&mut raw) })?;
        let handle = Handle { library: self, raw };
        // SAFETY: the handle is live; the stream belongs to the bound context.
        self.check("setting the stream", unsafe { (self.set_stream)(raw, stream) })?;
        Ok(handle)
    }

    /// A new descriptor, not yet finalised.
    pub(crate) fn descriptor(&'static self, kind: i32) -> Result<Descriptor, Diagnostic> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        self.check("creating a descriptor", unsafe { (self.create)(kind, &mut raw) })?;
        Ok(Descriptor { library: self, raw })
    }

    /// A finalised descriptor with these attributes.
    pub(crate) fn build(&'static self, kind: i32, attributes: &[(i32, Value<'_>)]) -> Result<Descriptor, Diagnostic> {
        let descriptor = self.descriptor(kind)?;
        attributes.iter().try_for_each(|(name, value)| descriptor.set(*name, *value))?;
        descriptor.finalize(kind)?;
        Ok(descriptor)
    }
}

/// A cuDNN handle.
pub(crate) struct Handle {
    library: &'static Cudnn,
    raw: Raw,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cudnn handle")
    }
}

impl Handle {
    /// Enqueues a plan.
    pub(crate) fn execute(&self, plan: &Descriptor, variant: &Descriptor) -> Result<(), Diagnostic> {
        // SAFETY: all three are live and finalised; the device pointers in the variant pack outlive the stream's work,
        // because buffers are freed only after the device is done.
        let status = unsafe { (self.library.execute)(self.raw, plan.raw, variant.raw) };
        self.library.check("running", status)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.library.destroy_handle)(self.raw) };
    }
}

/// A descriptor of cuDNN's backend interface.
pub(crate) struct Descriptor {
    library: &'static Cudnn,
    raw: Raw,
}

impl std::fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cudnn descriptor")
    }
}

impl Descriptor {
    const INT64: i32 = 3;
    const DESCRIPTOR: i32 = 15;

    /// Sets an attribute.
    pub(crate) fn set(&self, name: i32, value: Value<'_>) -> Result<(), Diagnostic> {
        match value {
            Value::Enum(ty, value) => self.set_raw(name, ty, 1, (&raw const value).cast()),
            Value::Bool(value) => self.set_raw(name, 2, 1, (&raw const value).cast()),
            Value::Ints(values) => self.set_raw(name, Self::INT64, values.len(), values.as_ptr().cast()),
            Value::Pointers(values) => self.set_raw(name, 6, values.len(), values.as_ptr().cast()),
            Value::Descriptors(all) => {
                let raws: Vec<Raw> = all.iter().map(|d| d.raw).collect();
                self.set_raw(name, Self::DESCRIPTOR, raws.len(), raws.as_ptr().cast())
            }
            Value::Handle(handle) => self.set_raw(name, 0, 1, (&raw const handle.raw).cast()),
        }
    }

    fn set_raw(&self, name: i32, ty: i32, count: usize, values: *const c_void) -> Result<(), Diagnostic> {
        // SAFETY: `values` are `count` live values of the type that `ty` stands for; cuDNN copies them.
        let status = unsafe { (self.library.set)(self.raw, name, ty, count as i64, values) };
        self.library.check(&format!("setting attribute {name}"), status)
    }

    /// Ends the setting of attributes.
    pub(crate) fn finalize(&self, kind: i32) -> Result<(), Diagnostic> {
        // SAFETY: the descriptor is live.
        let status = unsafe { (self.library.finalize)(self.raw) };
        self.library.check(&format!("finalising descriptor {kind}"), status)
    }

    /// An int attribute.
    pub(crate) fn int(&self, name: i32) -> Result<i64, Diagnostic> {
        let (mut value, mut count) = (0i64, 0i64);
        // SAFETY: both pointers are to live ints, and one is asked for.
        let status = unsafe { (self.library.get)(self.raw, name, Self::INT64, 1, &mut count, (&raw mut value).cast()) };
        self.library.check(&format!("reading attribute {name}"), status)?;
        Ok(value)
    }

    /// Up to `most` descriptors that an attribute lists, each of `kind`.
    pub(crate) fn list(&self, name: i32, kind: i32, most: usize) -> Result<Vec<Descriptor>, Diagnostic> {
        let mut made = (0..most).map(|_| self.library.descriptor(kind)).collect::<Result<Vec<_>, _>>()?;
        let mut raws: Vec<Raw> = made.iter().map(|d| d.raw).collect();
        let mut count = 0i64;
        // SAFETY: the array holds `most` live descriptors, which cuDNN fills.
        let status = unsafe {
            (self.library.get)(self.raw, name, Self::DESCRIPTOR, most as i64, &mut count, raws.as_mut_ptr().cast())
        };
        self.library.check(&format!("reading attribute {name}"), status)?;
        made.truncate(usize::try_from(count).unwrap_or(0));
        Ok(made)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.library.destroy)(self.raw) };
    }
}
