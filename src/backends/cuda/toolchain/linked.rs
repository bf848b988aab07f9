//! An edited mod's first kernel: the mods compiled alone and linked to an existing kernel, so that an output does not
//! wait for the unrolled kernel.
//!
//! Invariant: it computes the same as the problem's flex kernel, but slower; the kernel's part is the same for all
//! mods. Must not know the device: the caller links.

use super::cache::Cache;
use super::compile::{Compiler, Form, Obtained, Program, obtain};
use crate::backends::cuda::choose::{self, Choice, Want};
use crate::backends::cuda::emit::{functions, source};
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::KernelSpec;
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;

/// Joins relocatable parts.
pub(crate) type Linker<'a> = &'a dyn Fn(&[&[u8]]) -> Result<Vec<u8>, Diagnostic>;

/// Compiles both parts of flex for a problem, or finds them in the cache, and links them.
pub(crate) fn program(
    problem: &Problem,
    limits: &Limits,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
    link: Linker,
) -> Result<Program, Diagnostic> {
    let choice = choose::choose(problem, BackendName::Flex)?;
    let spec = choose::with_mask_as_data(problem, KernelSpec::linked(&choose::shape(problem), limits, choice.mask));
    choose::check_exact(problem, &spec)?;
    let spec = spec.with_max_scores(problem.max_scores);
    let mods = Choice { want: Want::Flash, mask: spec.mask, ..choice }.mods(problem);
    let emitted = functions::emit(&mods.template());
    let arch = limits.arch();
    let kernel_text = source::assemble(&spec, "");
    let mods_text = source::assemble_mods(&spec, &emitted.text, mods.mask.is_some(), mods.score.is_some());
    let part = |text: &str| obtain(text, &arch, Form::Part, compiler, cache, &mods.sources);
    // first the mods: an error in them is reported at once
    let (of_mods, of_kernel) = (part(&mods_text)?, part(&kernel_text)?);
    let made = Obtained {
        cubin: link(&[&of_kernel.cubin, &of_mods.cubin])?,
        log: of_kernel.log + &of_mods.log,
        ms: of_kernel.ms + of_mods.ms,
        cached: of_kernel.cached && of_mods.cached,
        key: of_kernel.key + &of_mods.key,
    };
    Ok(Program::new(spec, mods, emitted, format!("{kernel_text}\n{mods_text}"), arch, made))
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::Nvrtc;
    use crate::backends::cuda::toolchain::compile::Compiled;
    use crate::backends::cuda::toolchain::linked::*;
    use crate::backends::testing::{spec, with_mods};
    use crate::base::DType;
    use crate::ir::random;
    use crate::problem::ProblemSpec;
    use std::sync::Mutex;

    /// Keeps the texts of the parts; compiles them where NVRTC is.
    struct Watching(Mutex<Vec<(String, Form)>>);

    impl Compiler for Watching {
        fn version(&self) -> String {
            "watching".into()
        }
        fn compile(&self, source: &str, arch: &str, form: Form) -> Result<Compiled, Diagnostic> {
            self.0.lock().unwrap().push((source.to_string(), form));
            match Nvrtc::get() {
                Ok(nvrtc) => nvrtc.compile(source, arch, form),
                Err(_) => Ok(Compiled { cubin: source.as_bytes().to_vec(), ..Compiled::default() }),
            }
        }
    }

    /// The texts of the mods' part and of the kernel's part.
    fn parts(seed: u64, heads: usize, q_len: usize, arch: &str) -> (String, String) {
        let options = random::Options { batch: 2, heads, ..random::Options::new(q_len, 700) };
        let (mask, score) = (random::mask(seed, &options), random::score(seed, &options));
        let shape = ProblemSpec { dtype: DType::BF16, ..spec(2, heads, heads, q_len, 700, 128) };
        let problem = with_mods(shape, Some(mask), Some(score));
        let compiler = Watching(Mutex::default());
        let link = |parts: &[&[u8]]| Ok(parts.concat());
        let limits = Limits::of_arch(arch).unwrap();
        let program = program(&problem, &limits, &compiler, None, &link).unwrap_or_else(|why| panic!("{seed}: {why}"));
        assert!(!program.cubin.is_empty() && !program.artefact.cached);
        let mut texts = compiler.0.into_inner().unwrap();
        assert!(texts.iter().all(|(_, form)| *form == Form::Part));
        let kernel = texts.pop().unwrap().0;
        (texts.pop().unwrap().0, kernel)
    }

    #[test]
    fn every_mod_compiles_as_a_part_and_the_kernels_part_is_the_same_for_all() {
        if Nvrtc::get().is_err() {
            maskloom_testing::needs::missing("nvrtc", "no NVRTC, so the parts are only written");
        }
        for arch in ["sm_80", "sm_90a"] {
            let (mods, kernel) = parts(0, 3, 300, arch);
            for seed in 1..5 {
                let (other, same) = parts(seed, 2, 200 + seed as usize, arch);
                assert!(other != mods && same == kernel, "seed {seed} {arch}");
            }
        }
    }
}
