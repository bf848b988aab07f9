//! NVRTC in this process: our own loader, because a missing library or symbol must be a diagnostic, the success log must
//! be read, and the result must be a cubin.
//!
//! Invariant: a library is opened once and never closed; every call's status is checked. Must not know kernels.
#![allow(unsafe_code)] // calls into libnvrtc through its C interface

use super::compile::{Compiled, Compiler, FRUGAL, Form};
use super::library::{Candidate, Places};
use crate::backends::cuda::device::driver::nvrtc_too_new;
use crate::backends::cuda::device::gpu::Gpu;
use crate::base::Diagnostic;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

type Program = *mut c_void;

/// An opened NVRTC.
pub struct Nvrtc {
    path: PathBuf,
    version: (u32, u32),
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    archs: Vec<u32>,
}

impl Nvrtc {
    /// The process's NVRTC, found and opened at the first call.
    pub fn get() -> Result<&'static Nvrtc, Diagnostic> {
        static FOUND: OnceLock<Result<Nvrtc, Diagnostic>> = OnceLock::new();
        FOUND.get_or_init(|| Nvrtc::open_first(&Places::from_environment())).as_ref().map_err(Clone::clone)
    }

    /// Opens the first candidate that works.
    pub fn open_first(places: &Places) -> Result<Nvrtc, Diagnostic> {
        Nvrtc::open_where(places, |_| None)
    }

    /// Opens the first candidate that works and to whose version `refuse` has nothing to say.
    pub(crate) fn open_where(
        places: &Places,
        refuse: impl Fn((u32, u32)) -> Option<Diagnostic>,
    ) -> Result<Nvrtc, Diagnostic> {
        let mut tried = Vec::new();
        let mut refused = None;
        let (candidates, looked) = places.candidates();
        for candidate in candidates {
            match Nvrtc::open(&candidate) {
                Ok(nvrtc) => match refuse(nvrtc.version) {
                    None => return Ok(nvrtc),
                    Some(why) => refused = refused.or(Some(why)),
                },
                Err(why) => tried.push(format!("{}: {why}", candidate.library.display())),
            }
        }
        if let Some(why) = refused {
            return Err(why);
        }
        let found = tried.iter().filter(|t| t.starts_with('/')).cloned().collect::<Vec<_>>().join("; ");
        let detail = if found.is_empty() { String::new() } else { format!(" (tried {found})") };
        let message = format!("NVRTC, NVIDIA's run-time compiler, was not found{detail}{}", looked.told());
        Err(Diagnostic::error("nvrtc-missing", message).hint(
            "install it with `pip install nvidia-cuda-nvrtc`, or set MASKLOOM_NVRTC to libnvrtc.so of a CUDA toolkit",
        ))
    }

    fn open(candidate: &Candidate) -> Result<Nvrtc, String> {
        // an error here is reported by the open that needs it
        let _builtins: Vec<_> = candidate.builtins.iter().filter_map(|b| open_for_good(b).ok()).collect();
        let library = open_for_good(&candidate.library)?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the name is NVRTC's own and the field's type is its documented signature; the library stays
                // open for good.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }.map_err(|e| e.to_string())?
            };
        }
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = symbol!("nvrtcVersion");
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live ints.
        if unsafe { version(&mut major, &mut minor) } != 0 || major < 11 {
            return Err(format!("version {major}.{minor} is too old; 11.2 or newer is needed"));
        }
        Ok(Nvrtc {
            path: candidate.library.clone(),
            version: (major as u32, minor as u32),
            create: symbol!("nvrtcCreateProgram"),
            compile: symbol!("nvrtcCompileProgram"),
            destroy: symbol!("nvrtcDestroyProgram"),
            log_size: symbol!("nvrtcGetProgramLogSize"),
            log: symbol!("nvrtcGetProgramLog"),
            cubin_size: symbol!("nvrtcGetCUBINSize"),
            cubin: symbol!("nvrtcGetCUBIN"),
            error_string: symbol!("nvrtcGetErrorString"),
            archs: supported_archs(library)?,
        })
    }

    /// Which file it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Major and minor version.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    fn check(&self, what: &str, status: c_int) -> Result<(), Diagnostic> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC gives a static C string for any status.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy().into_owned();
        Err(Diagnostic::error("nvrtc-failed", format!("{what} failed in {}: {text}", self.path.display()))
            .hint("run `maskloom doctor`; MASKLOOM_NVRTC selects another NVRTC"))
    }

    fn read(
        &self,
        what: &str,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, Diagnostic> {
        let mut length = 0usize;
        // SAFETY: the program is live and the pointer is to a live usize.
        self.check(what, unsafe { size(program, &mut length) })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: the buffer is as long as NVRTC has just said.
        self.check(what, unsafe { get(program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn run(&self, program: Program, options: &[CString]) -> Result<(Vec<u8>, String), Diagnostic> {
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the program is live; options are NUL-terminated and outlive the call.
        let status = unsafe { (self.compile)(program, pointers.len() as c_int, pointers.as_ptr()) };
        let log = self.read("reading the compile log", program, self.log_size, self.log)?;
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_string();
        if status != 0 {
            let fallback = self.check("compiling", status).err().map(|d| d.message).unwrap_or_default();
            let message = if log.trim().is_empty() { fallback } else { log };
            return Err(Diagnostic::error(super::compile::COMPILE_ERROR, message));
        }
        Ok((self.read("reading the cubin", program, self.cubin_size, self.cubin)?, log))
    }
}

/// An NVRTC whose kernels a GPU's driver can load: the first one found, or an older one next to it. Errors: none is
/// found, or all are newer than the driver, with the wheel to install.
pub fn nvrtc_for(gpu: &Gpu) -> Result<&'static Nvrtc, Diagnostic> {
    nvrtc_for_driver(gpu.driver())
}

/// The same for a driver's version, without opening a GPU.
pub fn nvrtc_for_driver(driver: (u32, u32)) -> Result<&'static Nvrtc, Diagnostic> {
    let refuse = move |version| nvrtc_too_new(driver, version);
    let first = Nvrtc::get()?;
    if refuse(first.version).is_none() {
        return Ok(first);
    }
    static OLDER: OnceLock<Result<Nvrtc, Diagnostic>> = OnceLock::new();
    let older = OLDER.get_or_init(|| Nvrtc::open_where(&Places::from_environment(), refuse));
    older.as_ref().map_err(Clone::clone)
}

/// The oldest version that was seen to take [`FRUGAL`]; kernels of older ones differ in registers only.
const KNOWS_FRUGAL: (u32, u32) = (11, 8);

impl Compiler for Nvrtc {
    fn version(&self) -> String {
        format!("nvrtc {}.{}", self.version.0, self.version.1)
    }

    fn compile(&self, source: &str, arch: &str, form: Form) -> Result<Compiled, Diagnostic> {
        let number: Option<u32> = arch.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().ok();
        if number.is_none_or(|n| !self.archs.contains(&n)) {
            let message = format!("NVRTC {}.{} does not know {arch}", self.version.0, self.version.1);
            return Err(
                Diagnostic::error("nvrtc-arch", message).hint("install a newer one: `pip install nvidia-cuda-nvrtc`")
            );
        }
        let start = Instant::now();
        let nul = |_| {
            Diagnostic::error("nvrtc-source", "the kernel's text contains a NUL character")
                .hint("remove it from the mod")
        };
        let text = CString::new(source).map_err(nul)?;
        let knows = |option: &String| option != FRUGAL || self.version >= KNOWS_FRUGAL;
        let options = super::compile::options(arch, form).into_iter().filter(knows);
        let options = options.map(CString::new).collect::<Result<Vec<_>, _>>().map_err(nul)?;
        let mut program: Program = std::ptr::null_mut();
        // SAFETY: text and name are NUL-terminated; there are no headers.
        let created = unsafe {
            (self.create)(&mut program, text.as_ptr(), c"kernel.cu".as_ptr(), 0, std::ptr::null(), std::ptr::null())
        };
        self.check("creating the program", created)?;
        let result = self.run(program, &options);
        // SAFETY: created above, used nowhere afterwards.
        unsafe { (self.destroy)(&mut program) };
        let (cubin, log) = result?;
        Ok(Compiled { cubin, log, ms: start.elapsed().as_secs_f64() * 1e3 })
    }
}

/// Opens a library and leaks the handle: symbols stay valid until the process ends.
pub(crate) fn open_for_good(path: &Path) -> Result<&'static Library, String> {
    // SAFETY: loading runs the library's initialisers; these are NVIDIA's, named by the user or found in a toolkit.
    let library = unsafe { Library::new(path) }.map_err(|e| e.to_string())?;
    Ok(Box::leak(Box::new(library)))
}

/// The architectures that this NVRTC compiles for, as 80, 90, ...
fn supported_archs(library: &Library) -> Result<Vec<u32>, String> {
    type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
    // SAFETY: documented signatures of NVRTC 11.2 and newer.
    let count: libloading::Symbol<Count> =
        unsafe { library.get(b"nvrtcGetNumSupportedArchs\0") }.map_err(|e| e.to_string())?;
    // SAFETY: as above.
    let list: libloading::Symbol<Count> =
        unsafe { library.get(b"nvrtcGetSupportedArchs\0") }.map_err(|e| e.to_string())?;
    let mut number = 0;
    // SAFETY: the pointer is to a live int.
    if unsafe { count(&mut number) } != 0 {
        return Err("nvrtcGetNumSupportedArchs failed".to_string());
    }
    let mut archs = vec![0 as c_int; number.max(0) as usize];
    // SAFETY: the buffer is as long as NVRTC has just said.
    if unsafe { list(archs.as_mut_ptr()) } != 0 {
        return Err("nvrtcGetSupportedArchs failed".to_string());
    }
    Ok(archs.into_iter().map(|a| a as u32).collect())
}
