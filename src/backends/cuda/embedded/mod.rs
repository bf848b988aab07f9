//! Kernels inside another program: passes that are compiled in this process and launched on the program's own stream, in its own memory.
//!
//! Invariant: a pass is what the worker's `flex` launches for the same problem. What a call costs does not depend on the mask: its addresses
//! are written into prepared parameters, and its kernels launched. It waits for nothing and allocates nothing on the device. Must not know
//! PyTorch or Python.

mod backward;
mod block;
mod block_mask;
#[cfg(test)]
mod block_mask_tests;
mod forward;
mod live;
mod merge;
mod recipe;
#[cfg(test)]
mod tests;

pub use backward::Learned;
pub use block_mask::Wanted;

use self::block::{Block, bases};
use self::live::Live;
use self::recipe::Recipe;
use crate::backends::cuda::device::driver::{self, nvrtc_too_new};
use crate::backends::cuda::device::guest::{self, Entry};
use crate::backends::cuda::device::tensors::{Strides, padded};
use crate::backends::cuda::toolchain::backward::BackwardDraft;
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::Compiler;
use crate::backends::cuda::toolchain::library::Places;
use crate::backends::cuda::toolchain::nvrtc::Nvrtc;
use crate::backends::cuda::variant::backward::BackwardWays;
use crate::backends::cuda::variant::limits::Limits;
use crate::base::{DType, Diagnostic};
use crate::ir::graph::Mod;
use crate::problem::Problem;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A device that passes are made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// N of `cuda:N`.
    pub ordinal: u32,
    /// The limits for kernels.
    pub limits: Limits,
    /// Newest CUDA version that the driver runs.
    pub driver: (u32, u32),
}

impl Card {
    /// A device of this machine. Errors: no driver, no such device, a device that is too old.
    pub fn of(ordinal: u32) -> Result<Card, Diagnostic> {
        static PROBE: OnceLock<driver::Probe> = OnceLock::new();
        let probe = PROBE.get_or_init(driver::probe);
        if let Some(why) = &probe.problem {
            return Err(why.clone());
        }
        let missing = || Diagnostic::error("gpu-ordinal", format!("the driver has no cuda:{ordinal}"));
        let found = probe.devices.get(ordinal as usize).ok_or_else(missing)?;
        match &found.unusable {
            Some(why) => Err(why.clone()),
            None => Ok(Card { ordinal, limits: found.limits, driver: probe.driver.unwrap_or_default() }),
        }
    }

    /// An architecture's usual device, such as of `sm_90a`, for passes that are made and not launched. Errors: an unknown one.
    pub fn usual(arch: &str) -> Result<Card, Diagnostic> {
        let (limits, _) = Limits::named(arch)?;
        Ok(Card { ordinal: 0, limits, driver: (99, 0) })
    }

    /// The compiler for this device: the first that is found whose code the driver loads. `packages` are folders of Python's packages,
    /// in which NVIDIA's wheels lie. It is looked for once in a process. Errors: none is found.
    pub fn compiler(&self, packages: &[PathBuf]) -> Result<&'static Nvrtc, Diagnostic> {
        static FOUND: OnceLock<Result<Nvrtc, Diagnostic>> = OnceLock::new();
        let driver = self.driver;
        let places = || Places { packages: packages.to_vec(), ..Places::from_environment() };
        let open = || Nvrtc::open_where(&places(), |version| nvrtc_too_new(driver, version));
        FOUND.get_or_init(open).as_ref().map_err(Clone::clone)
    }
}

/// Strides of a call's tensors, in elements: batch entry, head, token. Each is a multiple of 8, and rows have whole chunks of 8 elements.
/// Results are contiguous in such rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layouts {
    q: Strides,
    k: Strides,
    v: Strides,
    o: Strides,
    d_o: Strides,
}

impl Layouts {
    /// Of q, k and v, and for a backward pass of the output and its gradient. Errors: strides that kernels cannot read.
    pub fn new(strides: &[[i64; 3]]) -> Result<Layouts, Diagnostic> {
        let read = |at: usize| -> Result<Strides, Diagnostic> {
            let own = strides.get(at).copied().unwrap_or([8, 8, 8]);
            if own.iter().any(|n| *n <= 0 || n % 8 != 0) {
                let message = format!("strides {own:?} are no positive multiples of 8 elements");
                return Err(Diagnostic::error("strides", message).hint("pass contiguous tensors"));
            }
            let [b, h, s] = own.map(|n| n as usize);
            Ok(Strides { b, h, s })
        };
        Ok(Layouts { q: read(0)?, k: read(1)?, v: read(2)?, o: read(3)?, d_o: read(4)? })
    }
}

/// Elements of a result's row in memory.
pub fn row(dim: usize) -> usize {
    padded(dim)
}

/// A pass that is compiled and not loaded.
pub struct Pass {
    recipe: Recipe,
    live: Vec<usize>,
    learned: Vec<Learned>,
    kernel: String,
}

impl Pass {
    /// The forward pass of a problem. A call gives q, k, v, the output, the lse, the largest scores (0: none) and the [`Pass::live`] tensors.
    /// `differentiable`: refuses what has no backward pass. Errors: what the kernels refuse, the compiler's message.
    pub fn forward(
        problem: &Problem,
        layouts: &Layouts,
        differentiable: bool,
        card: &Card,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
    ) -> Result<Pass, Diagnostic> {
        if differentiable {
            BackwardDraft::check(problem, &card.limits, BackwardWays::default())?;
        }
        let (recipe, kernel) = forward::recipe(problem, layouts, card, compiler, cache)?;
        Ok(Pass { recipe, live: Live::of(problem).numbers, learned: Vec::new(), kernel })
    }

    /// The backward pass. A call gives q, k, v, the output and its gradient, the lse and its gradient (0: none), memory for dq, dk and dv, the
    /// [`Pass::live`] tensors, and memory for the gradients of [`Pass::learned`]. `deterministic`: the same bits in every run. Errors: as above.
    pub fn backward(
        problem: &Problem,
        layouts: &Layouts,
        (deterministic, d_lse): (bool, bool),
        card: &Card,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
    ) -> Result<Pass, Diagnostic> {
        let problem = &problem.without_aux();
        let ways = BackwardWays { deterministic, d_lse };
        let (recipe, learned, kernel) = backward::recipe(problem, layouts, ways, card, compiler, cache)?;
        Ok(Pass { recipe, live: Live::of(problem).numbers, learned, kernel })
    }

    /// Merges attention over some keys into that over others, in place: `sizes` are pairs of batch entry and head, rows of the whole and of
    /// the part, elements of a row. A call gives the output and its lse, the part's, and the places of the part's rows, int64 (0: all in
    /// their order). All are contiguous. Errors: rows that it cannot merge, the compiler's message.
    pub fn merge(
        dtype: DType,
        sizes: [usize; 4],
        card: &Card,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
    ) -> Result<Pass, Diagnostic> {
        let recipe = merge::recipe(dtype, sizes, card, compiler, cache)?;
        Ok(Pass { recipe, live: Vec::new(), learned: Vec::new(), kernel: "merge_rows".to_string() })
    }

    /// Finds the blocks of a mask where its captured tensors lie, whatever these hold. A call gives memory for the lists, and the mask's captured
    /// tensors in its order: contiguous, bool, int64, float32 (halves too) or float64. Errors: a mask that the kernel does not take, the
    /// compiler's message.
    pub fn block_mask(
        mask: &Mod,
        wanted: &Wanted,
        card: &Card,
        compiler: &dyn Compiler,
        cache: Option<&Cache>,
    ) -> Result<Pass, Diagnostic> {
        let recipe = block_mask::recipe(mask, wanted, card, compiler, cache)?;
        Ok(Pass { recipe, live: Vec::new(), learned: Vec::new(), kernel: "mark_blocks".to_string() })
    }

    /// Tensors that the score mod captured and whose contents are read at each call: their numbers in it. They are contiguous, float32 or
    /// float64.
    pub fn live(&self) -> &[usize] {
        &self.live
    }

    /// Those that get a gradient.
    pub fn learned(&self) -> &[Learned] {
        &self.learned
    }

    /// Which kernel it is, in words.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Bytes of the lists, of memory that a call needs for itself, and of counters that are zero before the first call. Calls that may run at
    /// the same time need counters of their own.
    pub fn bytes(&self) -> [usize; 3] {
        [self.recipe.arena.len(), self.recipe.scratch, self.recipe.counter]
    }

    /// The bytes of the lists where they lie at this address.
    pub fn image(&self, address: u64) -> Vec<u8> {
        self.recipe.image(address)
    }

    /// Loads the kernels; the lists lie at this address. Errors: the driver's.
    pub fn load(&self, card: &Card, arena: u64) -> Result<Loaded, Diagnostic> {
        let load = |code: &recipe::Code| guest::load(card.ordinal, &code.key, &code.cubin, code.entry, code.shared);
        let entries = self.recipe.kernels.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let (steps, calls) = (self.recipe.steps.clone(), self.recipe.calls);
        Ok(Loaded { entries, steps, calls, arena, block: Mutex::new(Block::new(&self.recipe)) })
    }
}

/// A pass on a device.
pub struct Loaded {
    entries: Vec<Entry>,
    steps: Vec<recipe::Step>,
    calls: usize,
    arena: u64,
    block: Mutex<Block>,
}

impl Loaded {
    /// Enqueues the pass on a stream. Addresses: of memory for the call and its counters, and of its tensors. Errors: another number of
    /// tensors, the driver's.
    pub fn run(&self, stream: u64, scratch: u64, counter: u64, call: &[u64]) -> Result<(), Diagnostic> {
        if call.len() != self.calls {
            let message = format!("a call gives {} tensors, not {}", self.calls, call.len());
            return Err(Diagnostic::error("call", message));
        }
        let bases = bases(self.arena, scratch, counter, call);
        guest::enter(&self.entries[0])?;
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        block.fill(&bases)?;
        block.run(&self.steps, &self.entries, &bases, stream)
    }
}
