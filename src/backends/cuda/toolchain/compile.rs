//! From a problem and a backend's name to a cubin: choose the variant, emit the mods, look in the cache, compile, read
//! the report.
//!
//! Invariant: the key covers every input of the cubin: the whole text, options, compiler version and architecture. Must
//! not know the device's memory.

use super::cache::{Cache, Entry};
use super::ptxas::Resources;
use super::{elf, ptxas};
use crate::backends::cuda::choose;
use crate::backends::cuda::choose::Choice;
use crate::backends::cuda::emit::functions::{self, Emitted};
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::backends::cuda::emit::source;
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::{Kernel, KernelSpec};
use crate::base::{BackendName, Diagnostic, Source, SourceId, Span};
use crate::problem::Problem;
use crate::problem::result::KernelArtefact;
use serde::{Deserialize, Serialize};

/// Code of the diagnostic whose message is NVRTC's log; `kernel` turns it into one with a place.
pub const COMPILE_ERROR: &str = "nvrtc-compile";

/// A compiler's result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compiled {
    /// Machine code.
    pub cubin: Vec<u8>,
    /// NVRTC's log, with ptxas's resource report.
    pub log: String,
    /// Milliseconds it took.
    pub ms: f64,
}

/// The form of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Machine code that is loaded as it is.
    #[default]
    Kernel,
    /// The same, made without optimisations that take more registers (ptxas's `--register-usage-level=0`).
    Frugal,
    /// A part that is linked with others before it is loaded.
    Part,
}

/// Compiles CUDA C++ for an architecture: in this process ([`crate::backends::cuda::Nvrtc`]) or in a child that can be killed. Two
/// threads may compile at once.
pub trait Compiler: Send + Sync {
    /// Name and version, a part of the cache key: `nvrtc 13.0`.
    fn version(&self) -> String;

    /// Compiles with [`options`]. An error in the text is a diagnostic of code [`COMPILE_ERROR`] whose message is the log.
    fn compile(&self, source: &str, arch: &str, form: Form) -> Result<Compiled, Diagnostic>;
}

impl<C: Compiler + ?Sized> Compiler for &C {
    fn version(&self) -> String {
        (**self).version()
    }

    fn compile(&self, source: &str, arch: &str, form: Form) -> Result<Compiled, Diagnostic> {
        (**self).compile(source, arch, form)
    }
}

/// NVRTC's options for an architecture.
pub fn options(arch: &str, form: Form) -> Vec<String> {
    let mut options = vec![format!("--gpu-architecture={arch}")];
    // without the last, NVRTC calls setrlimit for the whole process
    let fixed = ["--std=c++17", "-default-device", "--ptxas-options=-v", "--modify-stack-limit=false"];
    options.extend(fixed.map(String::from));
    let own = match form {
        Form::Kernel => None,
        Form::Frugal => Some(FRUGAL),
        Form::Part => Some("--relocatable-device-code=true"),
    };
    options.extend(own.map(String::from));
    options
}

/// The options of [`Form::Frugal`].
pub(crate) const FRUGAL: &str = "--ptxas-options=--register-usage-level=0";

/// The forms of a kernel: the usually faster one, and the one that is also tried if the first spills. On an H200 the
/// frugal form of flex_sm80 takes up to 8% less time, 1.5% in the mean, and that of flex_sm90 1% more (docs/kernels).
fn forms(kernel: Kernel) -> [Form; 2] {
    match kernel {
        Kernel::FlexSm80 => [Form::Frugal, Form::Kernel],
        _ => [Form::Kernel, Form::Frugal],
    }
}

/// A compiled variant and its launch data.
#[derive(Clone, Debug)]
pub struct Program {
    /// For the Code tab and the run file.
    pub artefact: KernelArtefact,
    /// Machine code.
    pub cubin: Vec<u8>,
    /// The variant.
    pub spec: KernelSpec,
    /// The lifted mods with the values that fill `Mods`.
    pub mods: LiftedMods,
    /// Text and layout of the mods.
    pub emitted: Emitted,
}

/// Compiles a backend's kernel for a problem, for an architecture that need not be here. Errors: the backend's refusal,
/// or the compiler's message.
pub fn compile(
    problem: &Problem,
    backend: BackendName,
    arch: &str,
    compiler: &dyn Compiler,
) -> Result<(KernelArtefact, Vec<u8>), Diagnostic> {
    let (limits, arch) = Limits::named(arch)?;
    let program = program(problem, backend, &limits, &arch, compiler, None)?;
    Ok((program.artefact, program.cubin))
}

/// The same, for a device's limits and through a cache.
pub fn program(
    problem: &Problem,
    backend: BackendName,
    limits: &Limits,
    arch: &str,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
) -> Result<Program, Diagnostic> {
    Draft::new(problem, backend, limits, arch)?.finish(compiler, cache)
}

/// A variant that is chosen and written, and not compiled yet.
pub(crate) struct Draft {
    pub spec: KernelSpec,
    pub mods: LiftedMods,
    emitted: Emitted,
    pub text: String,
    arch: String,
}

impl Draft {
    /// Chooses a backend's variant for a problem, and writes it. Errors: the backend's refusal.
    pub(crate) fn new(
        problem: &Problem,
        backend: BackendName,
        limits: &Limits,
        arch: &str,
    ) -> Result<Draft, Diagnostic> {
        let choice = choose::choose(problem, backend)?;
        let spec = choose::spec(problem, &choice, limits);
        choose::check_exact(problem, &spec)?;
        // the variant may have turned the formula into bitmaps
        let mods = Choice { mask: spec.mask, ..choice }.mods(problem);
        Ok(Draft::of(spec, mods, arch))
    }

    /// Writes a variant that is chosen already.
    pub(crate) fn of(spec: KernelSpec, mods: LiftedMods, arch: &str) -> Draft {
        let emitted = functions::emit(&mods.template());
        let text = source::assemble(&spec, &emitted.text);
        Draft { spec, mods, emitted, text, arch: arch.to_string() }
    }

    /// Whether mods are compiled in, so that an edit of them needs another compile.
    pub(crate) fn holds_mods(&self) -> bool {
        self.mods.mask.is_some() || self.mods.score.is_some()
    }

    /// Whether it was compiled before.
    pub(crate) fn is_cached(&self, compiler: &dyn Compiler, cache: Option<&Cache>) -> bool {
        cache.is_some_and(|c| c.has(&key(&self.text, &self.arch, forms(self.spec.kernel)[0], compiler)))
    }

    /// Asks the cache, else compiles.
    pub(crate) fn finish(self, compiler: &dyn Compiler, cache: Option<&Cache>) -> Result<Program, Diagnostic> {
        let made = self.least_spilled(compiler, cache)?;
        Ok(Program::new(self.spec, self.mods, self.emitted, self.text, self.arch, made))
    }

    /// The first form, or the second if that keeps more values in registers.
    fn least_spilled(&self, compiler: &dyn Compiler, cache: Option<&Cache>) -> Result<Obtained, Diagnostic> {
        let entry = self.spec.kernel.entry();
        let [first, second] = forms(self.spec.kernel);
        let made = |form| obtain(&self.text, &self.arch, form, compiler, cache, &self.mods.sources);
        let made_first = made(first)?;
        let spilled = made_first.resources(entry).spill_bytes;
        if spilled == 0 {
            return Ok(made_first);
        }
        let made_second = made(second)?;
        let ms = made_first.ms + made_second.ms;
        let better = if made_second.resources(entry).spill_bytes < spilled { made_second } else { made_first };
        Ok(Obtained { ms, ..better })
    }
}

impl Program {
    /// A variant with what became of its text.
    pub(crate) fn new(
        spec: KernelSpec,
        mods: LiftedMods,
        emitted: Emitted,
        text: String,
        arch: String,
        made: Obtained,
    ) -> Program {
        let found = made.resources(spec.kernel.entry());
        let artefact = KernelArtefact {
            name: spec.name(),
            source: text,
            mods: emitted.text.clone(),
            arch,
            registers: found.registers,
            shared_bytes: found.shared_bytes + spec.shared_bytes() as u32,
            stack_bytes: found.stack_bytes,
            spill_bytes: found.spill_bytes,
            blocks_per_sm: None,
            log: made.log,
            compile_ms: made.ms,
            cached: made.cached,
            key: made.key,
        };
        Program { artefact, cubin: made.cubin, spec, mods, emitted }
    }
}

/// Machine code from the cache or the compiler.
pub(crate) struct Obtained {
    /// Machine code.
    pub cubin: Vec<u8>,
    /// The compiler's log.
    pub log: String,
    /// Milliseconds it took now; 0 from the cache.
    pub ms: f64,
    /// Whether it came from the cache.
    pub cached: bool,
    /// The cache's key.
    pub key: String,
}

impl Obtained {
    /// The resources of its kernel.
    fn resources(&self, entry: &str) -> Resources {
        match ptxas::resources(&self.log, entry) {
            // some compilers keep their report to themselves
            silent if silent.registers == 0 => elf::resources(&self.cubin, entry),
            reported => reported,
        }
    }
}

/// Asks the cache, else compiles and fills it. `sources` are what errors point into.
pub(crate) fn obtain(
    text: &str,
    arch: &str,
    form: Form,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
    sources: &[Source],
) -> Result<Obtained, Diagnostic> {
    let key = key(text, arch, form, compiler);
    if let Some(Entry { cubin, log }) = cache.and_then(|c| c.get(&key)) {
        slow(&log)?;
        return Ok(Obtained { cubin, log, ms: 0.0, cached: true, key });
    }
    let Compiled { cubin, log, ms } = compiler.compile(text, arch, form).map_err(|why| locate(why, sources))?;
    // slow code is stored, too: the next run requests another variant at once
    if let Some(cache) = cache {
        cache.put(&key, &Entry { cubin: cubin.clone(), log: log.clone() });
    }
    slow(&log)?;
    Ok(Obtained { cubin, log, ms, cached: false, key })
}

/// The error's code if a compiler could not overlap products.
pub(crate) const SLOW_CODE: &str = "kernel-slow-code";

/// Errors: the log reports code that the compiler serialised.
fn slow(log: &str) -> Result<(), Diagnostic> {
    let Some(line) = ptxas::performance_loss(log) else { return Ok(()) };
    Err(Diagnostic::error(SLOW_CODE, format!("the compiler serialised the kernel: {line}"))
        .hint("another NVRTC version may avoid this; `maskloom doctor` lists the installed versions"))
}

/// Marks and remarks are no code: a mod that was only moved in its file, or whose file was renamed, is the same kernel.
fn key(text: &str, arch: &str, form: Form, compiler: &dyn Compiler) -> String {
    let mut hasher = blake3::Hasher::new();
    let code = text.lines().filter(|line| !line.starts_with("#line ") && !line.starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    for part in [code.as_str(), arch, &compiler.version(), &options(arch, form).join(" ")] {
        // lengths keep neighbouring parts apart
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Maps a compile error into the user's text if it came from there.
fn locate(why: Diagnostic, sources: &[Source]) -> Diagnostic {
    if why.code != COMPILE_ERROR {
        return why;
    }
    let Some(error) = ptxas::first_error(&why.message) else {
        return Diagnostic::error("kernel-compile", format!("the kernel does not compile: {}", why.message.trim()))
            .hint("this is a bug of Maskloom's emitter: please report the mod and this message");
    };
    let message = format!("the kernel does not compile: {} ({}:{})", error.message, error.file, error.line);
    let located = Diagnostic::error("kernel-compile", message)
        .hint("rewrite the marked line, and please report it: a mod that traces should compile");
    let Some((at, source)) = functions::source_of_file(error.file).and_then(|i| Some((i, sources.get(i)?))) else {
        return located;
    };
    let start: usize = source.text.split_inclusive('\n').take(error.line - 1).map(str::len).sum();
    let length = source.text[start.min(source.text.len())..].lines().next().map_or(0, str::len);
    let span = Span::new(SourceId(at as u32), start as u32, (start + length) as u32);
    located.at(span, "this line").with_sources(sources)
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::toolchain::compile::*;

    #[test]
    fn a_moved_mod_is_the_same_kernel_and_another_is_not() {
        struct None;
        impl Compiler for None {
            fn version(&self) -> String {
                "none".into()
            }
            fn compile(&self, _: &str, _: &str, _: Form) -> Result<Compiled, Diagnostic> {
                unreachable!("keys compile nothing")
            }
        }
        let of = |text: &str| key(text, "sm_80", Form::Kernel, &None);
        let text = "// a\n#line 7 \"mod_source_0\"\nreturn q >= k;\n// mod_source_0 is a.py\n";
        assert_eq!(of(text), of("// b\n#line 9 \"mod_source_0\"\nreturn q >= k;\n// mod_source_0 is b.py\n"));
        assert_ne!(of(text), of(&text.replace(">=", ">")));
        assert_ne!(of("a\nb"), of("ab"));
        assert_ne!(of(text), key(text, "sm_80", Form::Part, &None));
    }

    /// Bytes that the usual form and the frugal one spill; None is no report. Records the requests.
    struct Spilling([Option<u32>; 2], std::sync::Mutex<Vec<Form>>);

    impl Compiler for Spilling {
        fn version(&self) -> String {
            "spilling".into()
        }
        fn compile(&self, _: &str, _: &str, form: Form) -> Result<Compiled, Diagnostic> {
            self.1.lock().unwrap().push(form);
            let spilled = self.0[usize::from(form == Form::Frugal)];
            let log = spilled.map_or_else(String::new, |bytes| {
                let entry = Kernel::FlexSm80.entry();
                format!(
                    "ptxas info : Compiling entry function '{entry}' for 'sm_80'\n 8 bytes stack frame, {bytes} bytes \
                     spill stores, 0 bytes spill loads\nptxas info : Used 255 registers, 0 bytes smem\n"
                )
            });
            Ok(Compiled { cubin: vec![form as u8], log, ms: 2.0 })
        }
    }

    #[test]
    fn a_kernel_that_spills_is_tried_in_the_other_form() {
        let problem = choose::tests::problem(None, None);
        // what the two forms spill, and which is taken after which
        let check = |spilled: [Option<u32>; 2], taken: Form, asked: &[Form]| {
            let compiler = Spilling(spilled, Default::default());
            let program =
                Draft::new(&problem, BackendName::FlashAttention2, &Limits::of_arch("sm_80").unwrap(), "sm_80");
            let program = program.unwrap().finish(&compiler, None).unwrap();
            assert_eq!(program.cubin, [taken as u8], "{spilled:?}");
            assert_eq!(program.artefact.key, key(&program.artefact.source, "sm_80", taken, &compiler));
            assert_eq!(program.artefact.compile_ms, 2.0 * asked.len() as f64);
            assert_eq!(compiler.1.into_inner().unwrap(), asked);
        };
        let both = [Form::Frugal, Form::Kernel];
        check([Some(0), Some(0)], Form::Frugal, &[Form::Frugal]);
        check([Some(40), Some(0)], Form::Frugal, &[Form::Frugal]);
        check([Some(0), Some(8)], Form::Kernel, &both);
        check([Some(24), Some(52)], Form::Kernel, &both);
        check([Some(24), Some(24)], Form::Frugal, &both);
        check([None, None], Form::Frugal, &[Form::Frugal]);
    }

    #[test]
    fn only_a_frugal_kernel_is_asked_to_be() {
        let asked = |form| options("sm_80", form).iter().any(|option| option == FRUGAL);
        assert_eq!([Form::Kernel, Form::Frugal, Form::Part].map(asked), [false, true, false]);
    }

    #[test]
    fn an_error_in_emitted_code_points_into_the_users_text() {
        let sources = [Source::new("mine.py", "def f(b, h, q, k):\n    return q >= k\n")];
        let log = "mod_source_0(2): error: identifier \"v9\" is undefined\n";
        let found = locate(Diagnostic::error(COMPILE_ERROR, log), &sources);
        assert_eq!(found.code, "kernel-compile");
        assert_eq!(found.line_column(), Some((2, 1)));
        assert!(found.render().contains("return q >= k"), "{}", found.render());
        let own = locate(Diagnostic::error(COMPILE_ERROR, "attend.cuh(7): error: oh"), &sources);
        assert!(own.labels.is_empty() && own.message.contains("attend.cuh:7"));
    }
}
