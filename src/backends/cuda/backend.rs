//! The backends on a GPU: eager, sdpa, flash_attention_2 and flex, like those on the CPU.
//!
//! Invariant: each works like its name (eager materialises scores, sdpa skips blocks only with its own causal flag,
//! flex skips blocks that the mask leaves empty) and refuses problems that this method cannot run. Must not know the
//! worker.

use super::choose::{self, Want};
use super::cudnn::sdpa::CudnnSdpa;
use super::device::gpu::Gpu;
use super::experiment::Experiment;
use super::launch::both::Both;
use super::launch::decode::Decode;
use super::launch::eager::{self, Eager};
use super::launch::eager_backward;
use super::launch::flash::Flash;
use super::launch::hopper::Hopper;
use super::launch::runner::{Forward, Pass, Runner};
use super::launch::staged::{self, Staged};
use super::toolchain::backward::BackwardDraft;
use super::toolchain::cache::Cache;
use super::toolchain::compile::{Compiler, Draft, Program};
use super::toolchain::eager_backward::EagerDraft;
use super::toolchain::link::link;
use super::toolchain::linked;
use super::variant::backward::BackwardWays;
use super::variant::spec::{Kernel, MaskKind};
use crate::backends::{Backend, Inputs, Prepared, gradients};
use crate::base::{BackendName, Diagnostic};
use crate::problem::Problem;
use crate::problem::facts::{KernelFacts, KernelReport, Library, MaskRead};
use std::sync::Arc;

/// In the order in which they are shown.
const NAMES: [BackendName; 4] =
    [BackendName::Eager, BackendName::Sdpa, BackendName::FlashAttention2, BackendName::Flex];

/// All backends of a GPU. `compiler` compiles here ([`super::nvrtc_for`]) or in a child that can be killed; kernels are
/// read from and stored in `cache`, if there is one.
pub fn backends(gpu: &Arc<Gpu>, compiler: &Arc<dyn Compiler>, cache: Option<&Cache>) -> Vec<Box<dyn Backend>> {
    let make = |name| -> Box<dyn Backend> {
        Box::new(OnCuda { name, gpu: gpu.clone(), compiler: compiler.clone(), cache: cache.cloned() })
    };
    NAMES.into_iter().map(make).collect()
}

/// The backend of that name, if a GPU has one.
pub fn backend(
    name: BackendName,
    gpu: &Arc<Gpu>,
    compiler: &Arc<dyn Compiler>,
    cache: Option<&Cache>,
) -> Option<Box<dyn Backend>> {
    backends(gpu, compiler, cache).into_iter().find(|b| b.name() == name)
}

#[derive(Clone)]
struct OnCuda {
    name: BackendName,
    gpu: Arc<Gpu>,
    compiler: Arc<dyn Compiler>,
    cache: Option<Cache>,
}

impl Backend for OnCuda {
    fn name(&self) -> BackendName {
        self.name
    }

    fn support(&self, problem: &Problem) -> Result<(), Diagnostic> {
        let choice = choose::choose(problem, self.name)?;
        if choice.want == Want::Eager {
            let spec = choose::spec(problem, &choice, self.gpu.limits());
            let bytes = eager::pair_bytes(problem, spec.tile_kv);
            self.gpu.check_memory("eager attention's scores of a single head", bytes)?;
        }
        Ok(())
    }

    fn supports_gradients(&self, problem: &Problem) -> Result<(), Diagnostic> {
        self.support(problem)?;
        match self.name {
            BackendName::Flex => BackwardDraft::check(problem, self.gpu.limits(), BackwardWays::default()),
            BackendName::Eager => {
                EagerDraft::check(problem)?;
                let choice = choose::choose(problem, self.name)?;
                let spec = choose::spec(problem, &choice, self.gpu.limits());
                eager_backward::check(&self.gpu, problem, spec.tile_kv)
            }
            name => Err(gradients::none(name)),
        }
    }

    fn prepare(&mut self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
        let forward = self.forward(problem, inputs)?;
        if !matches!(self.name, BackendName::Flex | BackendName::Eager) {
            return Ok(forward);
        }
        Ok(Box::new(Both {
            name: self.name,
            forward,
            saved: None,
            gpu: self.gpu.clone(),
            compiler: self.compiler.clone(),
            cache: self.cache.clone(),
            problem: problem.clone(),
            inputs: inputs.clone(),
            backward: None,
            held: None,
        }))
    }
}

impl OnCuda {
    /// The forward pass.
    fn forward(&self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Forward>, Diagnostic> {
        let mut library = String::new();
        if self.name == BackendName::Sdpa {
            match self.through_cudnn(problem, inputs)? {
                Ok(prepared) => return Ok(prepared),
                Err(why_not) => library = why_not,
            }
        }
        let limits = self.gpu.limits();
        if self.name == BackendName::Flex && Experiment::Linked.is_on() {
            return self.linked(problem, inputs);
        }
        let draft = Draft::new(problem, self.name, limits, &limits.arch())?;
        if self.name == BackendName::Flex
            && draft.holds_mods()
            && !draft.is_cached(self.compiler.as_ref(), self.cache.as_ref())
        {
            return self.staged(problem, inputs, draft);
        }
        let program = draft.finish(self.compiler.as_ref(), self.cache.as_ref())?;
        self.ready(problem, inputs, program, &library)
    }
}

impl OnCuda {
    /// A kernel to which the mods are linked gives the first output, while the drafted one compiles.
    fn staged(&self, problem: &Problem, inputs: &Inputs, draft: Draft) -> Result<Box<dyn Forward>, Diagnostic> {
        let (compiler, cache) = (self.compiler.clone(), self.cache.clone());
        let compiling = std::thread::spawn(move || draft.finish(compiler.as_ref(), cache.as_ref()));
        let (own, its_problem, its_inputs) = (self.clone(), problem.clone(), inputs.clone());
        let finish = Box::new(move |program: Program| own.ready(&its_problem, &its_inputs, program, ""));
        match self.linked(problem, inputs) {
            Ok(serving) => Ok(Box::new(Staged::new(serving, compiling, finish))),
            // a mod that does not compile fails in both; else there is only nothing to serve with
            Err(_) => finish(staged::join(compiling)?),
        }
    }

    /// The kernel to which the mods are linked.
    fn linked(&self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Forward>, Diagnostic> {
        let join = |parts: &[&[u8]]| link(&self.gpu, parts);
        let (limits, cache) = (self.gpu.limits(), self.cache.as_ref());
        let program = linked::program(problem, limits, self.compiler.as_ref(), cache, &join)?;
        self.ready(problem, inputs, program, "")
    }

    /// Loads a program with everything that it runs on. `library` is why SDPA's library does not run instead.
    fn ready(
        &self,
        problem: &Problem,
        inputs: &Inputs,
        program: Program,
        library: &str,
    ) -> Result<Box<dyn Forward>, Diagnostic> {
        match program.spec.kernel {
            Kernel::FlexSm90 => {
                let (pass, held) = self.gpu.counted(|| Hopper::new(&self.gpu, problem, &program))?;
                let blocks = pass.occupancy(&self.gpu);
                let share = Some(pass.share());
                let how = how(self.name, program.spec.mask, pass.share()) + &pass.cut();
                self.runner(problem, inputs, (pass, held), (how, share), program, blocks)
            }
            Kernel::FlexSm80 => {
                let (pass, held) = self.gpu.counted(|| Flash::new(&self.gpu, problem, &program))?;
                let blocks = pass.occupancy(&self.gpu);
                let share = Some(pass.share());
                let how = how(self.name, program.spec.mask, pass.share()) + library;
                self.runner(problem, inputs, (pass, held), (how, share), program, blocks)
            }
            Kernel::DecodeSm80 => {
                let (pass, held) = self.gpu.counted(|| Decode::new(&self.gpu, problem, &program))?;
                let blocks = pass.occupancy(&self.gpu);
                let share = Some(pass.share());
                let how = format!("{}, {}", how(self.name, program.spec.mask, pass.share()), pass.cut());
                self.runner(problem, inputs, (pass, held), (how, share), program, blocks)
            }
            Kernel::Eager => {
                let (pass, held) = self.gpu.counted(|| Eager::new(&self.gpu, problem, &program))?;
                let (blocks, how, share) = (pass.occupancy(&self.gpu), pass.cut(), None);
                self.runner(problem, inputs, (pass, held), (how, share), program, blocks)
            }
        }
    }

    /// SDPA like PyTorch's fastest backend, if the user's cuDNN is found and supports the problem; otherwise the
    /// reason.
    fn through_cudnn(
        &self,
        problem: &Problem,
        inputs: &Inputs,
    ) -> Result<Result<Box<dyn Forward>, String>, Diagnostic> {
        let causal = match choose::choose(problem, self.name)?.mask {
            MaskKind::None => false,
            MaskKind::Causal => true,
            _ => return Ok(Err(String::new())),
        };
        match self.gpu.counted(|| CudnnSdpa::new(&self.gpu, problem, causal)) {
            Ok(made) => {
                let kernel = made.0.describe();
                Ok(Ok(Box::new(Runner::new(&self.gpu, problem, inputs, made, (kernel, false), None)?)))
            }
            Err(why) => Ok(Err(format!(" ({})", why.message))),
        }
    }

    fn runner<P: Pass + 'static>(
        &self,
        problem: &Problem,
        inputs: &Inputs,
        made: (P, u64),
        (how, share): (String, Option<f64>),
        program: Program,
        blocks_per_sm: Option<u32>,
    ) -> Result<Box<dyn Forward>, Diagnostic> {
        let mut artefact = program.artefact;
        artefact.blocks_per_sm = blocks_per_sm;
        let words = format!("{} {}, {how}", artefact.name, artefact.arch);
        let mask = mask_read(self.name, program.spec.mask);
        let tiles = share.filter(|_| mask == MaskRead::Blocks);
        let facts = KernelFacts { tiles, ..KernelFacts::ours(Library::Maskloom, mask) };
        let what = (KernelReport { words, facts }, program.spec.max_scores);
        Ok(Box::new(Runner::new(&self.gpu, problem, inputs, made, what, Some(artefact))?))
    }
}

/// What a kernel reads of the mask.
fn mask_read(name: BackendName, mask: MaskKind) -> MaskRead {
    match mask {
        MaskKind::None => MaskRead::Nothing,
        MaskKind::Formula if name == BackendName::FlashAttention2 => MaskRead::Causal,
        MaskKind::Formula | MaskKind::Bitmap | MaskKind::Interval => MaskRead::Blocks,
        MaskKind::Dense => MaskRead::Dense,
        MaskKind::Causal => MaskRead::Causal,
    }
}

/// In words: what the flash kernel does with the mask.
fn how(name: BackendName, mask: MaskKind, share: f64) -> String {
    let own = if name == BackendName::Flex { "" } else { "Maskloom's fused kernel, " };
    let what = match mask {
        MaskKind::None => "no mask".to_string(),
        MaskKind::Formula if name == BackendName::FlashAttention2 => "causal, bottom right".to_string(),
        MaskKind::Formula | MaskKind::Bitmap | MaskKind::Interval => {
            format!("block-sparse, {:.1}% of tiles", share * 100.0)
        }
        MaskKind::Dense => "dense mask, no tile skipped".to_string(),
        MaskKind::Causal => "is_causal".to_string(),
    };
    format!("{own}{what}")
}
