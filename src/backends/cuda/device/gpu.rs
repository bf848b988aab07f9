//! One GPU: its context, its stream, memory on it, modules loaded into it, launches, events.
//!
//! Invariant: all work runs on one stream, in order; every driver status becomes a diagnostic; memory is checked with a
//! message before it is allocated. Must not know attention: a launch is an entry, a grid and bytes.
#![allow(unsafe_code)] // memory, modules and launches of the driver's C interface

use super::driver::{self, GpuInfo};
use super::{errors, nvml};
use crate::backends::cuda::variant::limits::Limits;
use crate::base::{Device, Diagnostic};
use crate::problem::card::CardState;
use cudarc::driver::sys::{self, CUfunction_attribute_enum as FunctionAttribute};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DeviceRepr, result};
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Kernels kept loaded.
const MODULES: usize = 48;

/// An opened GPU. Shared by its backends; one thread works with it at a time.
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    info: GpuInfo,
    driver: (u32, u32),
    /// Loaded kernels by cache key, the latest last.
    modules: Mutex<Vec<(String, Arc<Module>)>>,
    /// Inputs that backends of one race share.
    pub(crate) uploads: Mutex<Vec<std::sync::Weak<dyn std::any::Any + Send + Sync>>>,
    /// Bytes of all live buffers.
    held: AtomicUsize,
}

impl Gpu {
    /// Opens `cuda:ordinal`. Errors: no driver, no such device, a device that is too old.
    pub fn open(ordinal: u32) -> Result<Arc<Gpu>, Diagnostic> {
        let probe = driver::probe();
        if let Some(why) = probe.problem {
            return Err(why);
        }
        let count = probe.devices.len();
        let Some(info) = probe.devices.into_iter().nth(ordinal as usize) else {
            let message = format!("there is no cuda:{ordinal}; this machine has {count} CUDA devices");
            return Err(Diagnostic::error("gpu-ordinal", message).hint(format!("choose cuda:0 to cuda:{}", count - 1)));
        };
        if let Some(why) = info.unusable {
            return Err(why);
        }
        let opening = |e| errors::diagnostic(&format!("opening cuda:{ordinal}"), e);
        let context = CudaContext::new(ordinal as usize).map_err(opening)?;
        let stream = context.default_stream();
        let driver = probe.driver.unwrap_or_default();
        let (modules, uploads, held) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        Ok(Arc::new(Gpu { context, stream, info, driver, modules, uploads, held }))
    }

    /// How it is named: `cuda:0`.
    pub fn device(&self) -> Device {
        Device::Cuda(self.info.ordinal)
    }

    /// Name, capability, memory.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// The limits for kernels.
    pub fn limits(&self) -> &Limits {
        &self.info.limits
    }

    /// Newest CUDA version that the driver runs.
    pub fn driver(&self) -> (u32, u32) {
        self.driver
    }

    /// Its clocks, power and temperature now; None without NVIDIA's management library.
    pub fn state(&self) -> Option<CardState> {
        nvml::state(&driver::bus(self.info.ordinal)?)
    }

    /// Free and total bytes. Errors: a lost context.
    pub fn memory(&self) -> Result<(usize, usize), Diagnostic> {
        self.context.mem_get_info().map_err(|e| errors::diagnostic("reading the size of free memory", e))
    }

    /// Refuses what does not fit: `what` needs `bytes`.
    pub fn check_memory(&self, what: &str, bytes: u128) -> Result<(), Diagnostic> {
        let (free, total) = self.memory()?;
        if bytes <= free as u128 {
            return Ok(());
        }
        let gib = |b: u128| b as f64 / f64::from(1 << 30);
        let message = format!(
            "{what} needs {:.2} GiB; {} ({}) has {:.2} of {:.2} GiB free",
            gib(bytes),
            self.device(),
            self.info.name,
            gib(free as u128),
            gib(total as u128)
        );
        Err(Diagnostic::error(errors::OUT_OF_MEMORY, message).hint(
            "shorten the sequence, batch or heads, or close other programs that use the GPU (`nvidia-smi` lists them)",
        ))
    }

    /// Makes the context this thread's.
    pub(crate) fn bind(&self) -> Result<(), Diagnostic> {
        self.context.bind_to_thread().map_err(|e| errors::diagnostic("using the GPU's context", e))
    }

    /// Uninitialised memory. Errors: it does not fit, with its purpose `what`.
    pub(crate) fn alloc(self: &Arc<Self>, bytes: usize, what: &str) -> Result<Buffer, Diagnostic> {
        self.bind()?;
        let bytes = bytes.max(16);
        self.check_memory(what, bytes as u128)?;
        // SAFETY: the memory is the buffer's own until its drop, and only kernels and copies touch it.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(|e| errors::diagnostic(what, e))?;
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(Buffer { gpu: self.clone(), address, bytes })
    }

    /// What `make` gives, and the bytes of the buffers that it keeps.
    pub(crate) fn counted<T>(&self, make: impl FnOnce() -> Result<T, Diagnostic>) -> Result<(T, u64), Diagnostic> {
        let before = self.held.load(Ordering::Relaxed);
        let made = make()?;
        Ok((made, self.held.load(Ordering::Relaxed).saturating_sub(before) as u64))
    }

    /// A copy of host values on the device.
    pub(crate) fn upload<T: DeviceRepr>(self: &Arc<Self>, values: &[T], what: &str) -> Result<Buffer, Diagnostic> {
        let buffer = self.alloc(size_of_val(values), what)?;
        // SAFETY: the buffer is at least as long; a copy from pageable memory has left it when the call returns.
        unsafe { result::memcpy_htod_async(buffer.address, values, self.stream.cu_stream()) }
            .map_err(|e| errors::diagnostic(what, e))?;
        Ok(buffer)
    }

    /// Another copy of a buffer.
    pub(crate) fn copy(self: &Arc<Self>, from: &Buffer, what: &str) -> Result<Buffer, Diagnostic> {
        let buffer = self.alloc(from.bytes, what)?;
        // SAFETY: both are `from.bytes` long and live until the stream has come past the copy: dropping synchronises.
        unsafe { result::memcpy_dtod_async(buffer.address, from.address, from.bytes, self.stream.cu_stream()) }
            .map_err(|e| errors::diagnostic(what, e))?;
        Ok(buffer)
    }

    /// The first `count` values of a buffer, after everything that was enqueued before.
    pub(crate) fn download<T: DeviceRepr + Default + Clone>(
        &self,
        from: &Buffer,
        count: usize,
        what: &str,
    ) -> Result<Vec<T>, Diagnostic> {
        assert!(count * size_of::<T>() <= from.bytes, "a download stays inside its buffer");
        self.bind()?;
        let mut values = vec![T::default(); count];
        // SAFETY: checked above; `DeviceRepr` types take any bytes that kernels write here.
        unsafe { result::memcpy_dtoh_async(&mut values, from.address, self.stream.cu_stream()) }
            .map_err(|e| errors::diagnostic(what, e))?;
        self.finish(what)?;
        Ok(values)
    }

    /// Fills a buffer with 0xFF: NaN in every float format.
    pub(crate) fn poison(&self, buffer: &Buffer) -> Result<(), Diagnostic> {
        self.bind()?;
        // SAFETY: the range is the buffer's own.
        unsafe { result::memset_d8_async(buffer.address, 0xff, buffer.bytes, self.stream.cu_stream()) }
            .map_err(|e| errors::diagnostic("poisoning the output", e))
    }

    /// Fills a buffer with zeros.
    pub(crate) fn zero(&self, buffer: &Buffer) -> Result<(), Diagnostic> {
        self.bind()?;
        // SAFETY: the range is the buffer's own.
        unsafe { result::memset_d8_async(buffer.address, 0, buffer.bytes, self.stream.cu_stream()) }
            .map_err(|e| errors::diagnostic("clearing sums", e))
    }

    /// Waits for everything that was enqueued. Errors: what went wrong since the last time.
    pub(crate) fn finish(&self, what: &str) -> Result<(), Diagnostic> {
        self.stream.synchronize().map_err(|e| errors::diagnostic(what, e))?;
        // errors inside drops are only stored; a relevant one appears at the synchronisation
        let _ = self.context.check_err();
        Ok(())
    }

    /// Loads machine code, or finds it loaded.
    pub(crate) fn module(self: &Arc<Self>, key: &str, cubin: &[u8]) -> Result<Arc<Module>, Diagnostic> {
        let mut loaded = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = loaded.iter().position(|(k, _)| k == key) {
            let found = loaded.remove(at);
            let module = found.1.clone();
            loaded.push(found);
            return Ok(module);
        }
        self.bind()?;
        // SAFETY: a cubin says how long it is; it comes from NVRTC or a checksummed cache.
        let handle = unsafe { result::module::load_data(cubin.as_ptr().cast()) }
            .map_err(|e| errors::diagnostic("loading the kernel", e))?;
        let module = Arc::new(Module { handle, context: self.context.clone() });
        if loaded.len() == MODULES {
            loaded.remove(0);
        }
        loaded.push((key.to_string(), module.clone()));
        Ok(module)
    }

    /// An entry of a module, allowed `shared` bytes of dynamic shared memory.
    pub(crate) fn function(&self, module: &Arc<Module>, entry: &str, shared: usize) -> Result<Function, Diagnostic> {
        self.bind()?;
        let name = CString::new(entry).expect("entries are our own names");
        let failed = |e| errors::diagnostic(&format!("loading {entry}"), e);
        // SAFETY: the module is live and lives as long as the function.
        let handle = unsafe { result::module::get_function(module.handle, name) }.map_err(failed)?;
        if shared > 48 << 10 {
            let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is live.
            unsafe { result::function::set_function_attribute(handle, attribute, shared as i32) }.map_err(failed)?;
        }
        Ok(Function { handle, _module: module.clone() })
    }

    /// Resident blocks a multiprocessor.
    pub(crate) fn occupancy(&self, function: &Function, threads: u32, shared: usize) -> Option<u32> {
        self.bind().ok()?;
        let mut blocks = 0;
        // SAFETY: the function is live and the pointer is to a live int.
        let status = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, function.handle, threads as i32, shared)
        };
        status.result().ok()?;
        u32::try_from(blocks).ok()
    }

    /// Enqueues a kernel. `arguments` are the bytes of its parameters, in order, each at least as long as the kernel declares it
    /// (`params.rs` and `layout.rs` mirror the declarations; tests hold them together).
    pub(crate) fn launch(&self, function: &Function, grid: Grid, arguments: &[&[u8]]) -> Result<(), Diagnostic> {
        self.bind()?;
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(|a| a.as_ptr().cast_mut().cast()).collect();
        // SAFETY: the driver copies the arguments before it returns and only reads them; a kernel can touch device
        // memory alone, and what it does wrong there ends the context, not this process.
        unsafe {
            result::launch_kernel(
                function.handle,
                grid.blocks,
                (grid.threads, 1, 1),
                grid.shared,
                self.stream.cu_stream(),
                &mut pointers,
            )
        }
        .map_err(|e| errors::diagnostic("launching the kernel", e))
    }

    /// The stream as other NVIDIA libraries take it.
    pub(crate) fn stream_handle(&self) -> *mut c_void {
        self.stream.cu_stream().cast()
    }

    /// An event in the stream, for timing.
    pub(crate) fn mark(&self) -> Result<CudaEvent, Diagnostic> {
        let event = self.stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT));
        event.map_err(|e| errors::diagnostic("recording an event", e))
    }

    /// Milliseconds between two events; waits for the later one.
    pub(crate) fn elapsed_ms(&self, from: &CudaEvent, to: &CudaEvent) -> Result<f64, Diagnostic> {
        from.elapsed_ms(to).map(f64::from).map_err(|e| errors::diagnostic("timing the kernel", e))
    }
}

/// Extent of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Blocks along x, y, z.
    pub blocks: (u32, u32, u32),
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared: u32,
}

/// Memory on the device, freed when dropped (which waits for the device).
pub(crate) struct Buffer {
    gpu: Arc<Gpu>,
    address: u64,
    bytes: usize,
}

impl Buffer {
    /// Where it is, as kernels see it.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let context = &self.gpu.context;
        context.record_err(context.bind_to_thread());
        // SAFETY: allocated by `alloc`, freed once; freeing waits for kernels that still use it.
        context.record_err(unsafe { result::free_sync(self.address) });
        self.gpu.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A loaded cubin.
pub(crate) struct Module {
    handle: sys::CUmodule,
    context: Arc<CudaContext>,
}

// SAFETY: handles of the driver may be used from any thread that has bound the context.
unsafe impl Send for Module {}
// SAFETY: as above; the driver locks by itself.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: loaded once, unloaded once, after every function of it is gone.
        self.context.record_err(unsafe { result::module::unload(self.handle) });
    }
}

/// An entry of a loaded module.
pub(crate) struct Function {
    handle: sys::CUfunction,
    _module: Arc<Module>,
}
