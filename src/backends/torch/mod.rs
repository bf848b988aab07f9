//! The user's own PyTorch as backends: SDPA, FlexAttention and plain eager, in a Python process of ours.
//!
//! Invariant: it runs the exported module of a user, so that a difference is our fault; a missing Python, torch or GPU
//! is a refusal in words. It works only on request, so never at the same time as our own kernels. Must not know the
//! worker's protocol or the window.

mod bias;
mod exchange;
mod gradients;
mod group;
mod module;
pub mod rivals;
mod session;
#[cfg(test)]
mod tests;

pub use session::{Facts, Heard};

use super::absent::absent;
use super::gradients::{Gradients, Seeds};
use super::{Backend, Inputs, Output, Prepared};
use crate::analysis::lowered::RowEnds;
use crate::base::{BackendName, Control, Device, Diagnostic};
use crate::problem::Problem;
use crate::problem::facts::KernelReport;
use crate::problem::pattern::Pattern;
use crate::problem::result::{Clock, Timed};
use safetensors::SafeTensors;
use serde::Deserialize;
use serde_json::{Value, json};
use session::{Session, read_answer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// Compiling flex_attention takes a minute on a cold cache.
const PREPARE: Duration = Duration::from_secs(600);
/// Handing tensors over, and one pass.
const PASS: Duration = Duration::from_secs(300);

/// A running Python with PyTorch. Cheap to clone; ends with its last clone and prepared backend.
#[derive(Clone)]
pub struct Torch {
    session: Arc<Mutex<Session>>,
    facts: Facts,
    device: Device,
    module_text: ModuleText,
}

/// Returns the exported module of a problem under a separate name, the module's file first: a user's export. It is
/// passed from above, because exports know documents and the engine does not.
pub type ModuleText = fn(&Problem, &str) -> Vec<(String, Vec<u8>)>;

/// Starts the user's Python (None: `MASKLOOM_PYTHON`, the active environment, `python3`) and imports torch, which takes
/// seconds. Errors: no Python, no torch, torch without CUDA or without that GPU.
pub fn open(python: Option<&str>, device: Device, module_text: ModuleText) -> Result<Torch, Diagnostic> {
    open_heard(python, device, module_text, Heard::default())
}

fn open_heard(
    python: Option<&str>,
    device: Device,
    module_text: ModuleText,
    heard: Heard,
) -> Result<Torch, Diagnostic> {
    let python = python.map_or_else(default_python, PathBuf::from);
    let session = Session::start(python, device, heard)?;
    let facts = session.facts().clone();
    Ok(Torch { session: Arc::new(Mutex::new(session)), facts, device, module_text })
}

/// The last used PyTorch, so that the next race does not wait for `import torch` again.
static KEPT: Mutex<Option<(Option<String>, Torch)>> = Mutex::new(None);

/// As [`open`], but the process stays until another one is requested. `heard` is set with its first line.
pub fn open_kept(
    python: Option<&str>,
    device: Device,
    module_text: ModuleText,
    heard: Heard,
) -> Result<Torch, Diagnostic> {
    let mut kept = locked(&KEPT);
    if let Some((of, torch)) = &*kept
        && (of.as_deref(), torch.device) == (python, device)
    {
        heard.set();
        return Ok(torch.clone());
    }
    // two of them would hold memory of the device for nothing
    *kept = None;
    let torch = open_heard(python, device, module_text, heard)?;
    *kept = Some((python.map(String::from), torch.clone()));
    Ok(torch)
}

/// Versions of torch, triton, flash-attn, diffusers and the rest, by really importing torch.
pub fn probe(python: Option<&str>) -> Result<Facts, Diagnostic> {
    Ok(Session::start(python.map_or_else(default_python, PathBuf::from), Device::Cpu, Heard::default())?
        .facts()
        .clone())
}

/// The `torch:*` backends among `names`, in order, and PyTorch's versions. Where PyTorch could not be started each of them
/// refuses with the reason.
pub fn backends(names: &[BackendName], opened: Result<Torch, Diagnostic>) -> (Vec<Box<dyn Backend>>, Option<Facts>) {
    let wanted = names.iter().copied().filter(|n| n.is_torch());
    match opened {
        Ok(torch) => (wanted.filter_map(|n| torch.backend(n)).collect(), Some(torch.facts)),
        Err(why) => (wanted.map(|name| absent(name, why.clone())).collect(), None),
    }
}

fn default_python() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let inside = |root: PathBuf| root.join(if cfg!(windows) { "python.exe" } else { "bin/python" });
    variable("MASKLOOM_PYTHON")
        .or_else(|| variable("VIRTUAL_ENV").map(inside))
        .or_else(|| variable("CONDA_PREFIX").map(inside))
        .unwrap_or_else(|| "python3".into())
}

impl Torch {
    /// Versions and device.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// One of its backends; None for names that are not PyTorch's.
    pub fn backend(&self, name: BackendName) -> Option<Box<dyn Backend>> {
        name.is_torch().then(|| {
            Box::new(TorchBackend { torch: self.clone(), name, mask_func: Mutex::default() }) as Box<dyn Backend>
        })
    }
}

fn locked<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    // a panic in another holder leaves at worst a request without its answer, which `wait` skips
    kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A mask as cudnn.flex_attention takes it, or its refusal.
type MaskFunc = Result<Arc<RowEnds>, Diagnostic>;

struct TorchBackend {
    torch: Torch,
    name: BackendName,
    /// Of the last problem: it is asked for before a race, in it and before its gradients.
    mask_func: Mutex<Option<(Problem, MaskFunc)>>,
}

impl Backend for TorchBackend {
    fn name(&self) -> BackendName {
        self.name
    }

    fn support(&self, problem: &Problem) -> Result<(), Diagnostic> {
        match self.name {
            BackendName::TorchSdpa => {
                refuse_non_bias(problem)?;
                self.refuse_large(problem, "the dense mask", dense_bytes(problem, 8))
            }
            BackendName::TorchEager => {
                self.refuse_large(problem, "the materialised scores", dense_bytes(problem, 1) + score_bytes(problem))
            }
            BackendName::TorchFlexFlash => self.refuse_flash(problem),
            BackendName::CudnnFlex => self.refuse_cudnn(problem),
            _ => Ok(()),
        }
    }

    fn prepare(&mut self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
        let shared = self.torch.session.clone();
        let mut session = locked(&shared);
        session.ensure()?;
        session.give_inputs([&inputs.q, &inputs.k, &inputs.v], PASS)?;
        let spec = match self.name {
            BackendName::CudnnFlex => describe_ranges(problem, &*self.mask_func(problem)?, &mut session)?,
            name => describe(problem, name, self.torch.module_text, &mut session)?,
        };
        let what = format!("preparing {}", self.name);
        let answer = session.ask(&what, "prepare", json!({ "backend": self.name.as_str(), "spec": spec }), PREPARE)?;
        let (generation, answer) = (session.generation(), read_answer::<PreparedAnswer>(answer)?);
        drop(session);
        let PreparedAnswer { handle, kernel } = answer;
        let learned = gradients::Learned::new(problem.score.as_deref());
        let (name, ran, memory, training_memory) = (self.name, false, OnceLock::new(), None);
        Ok(Box::new(Run { session: shared, generation, handle, kernel, name, learned, ran, memory, training_memory }))
    }

    fn supports_gradients(&self, problem: &Problem) -> Result<(), Diagnostic> {
        self.trains(problem)
    }
}

impl TorchBackend {
    fn refuse_flash(&self, problem: &Problem) -> Result<(), Diagnostic> {
        if self.torch.device == Device::Cpu {
            return Err(Diagnostic::error("no-flash-attn-4", "FlashAttention-4 runs on Hopper and newer GPUs only")
                .hint("use torch:flex, or choose a cuda device"));
        }
        if !self.torch.facts.flex_flash {
            let message = "kernel_options BACKEND=FLASH needs FlashAttention-4, which is missing in this Python";
            return Err(Diagnostic::error("no-flash-attn-4", message).hint("pip install flash-attn-4"));
        }
        self.torch.facts.capability.map_or(Ok(()), |capability| rivals::flash(problem, capability))
    }

    fn refuse_cudnn(&self, problem: &Problem) -> Result<(), Diagnostic> {
        if self.torch.device == Device::Cpu {
            return Err(Diagnostic::error(
                "no-cudnn-flex",
                "cudnn.flex_attention runs on Hopper and Blackwell GPUs only",
            )
            .hint("use torch:flex, or choose a cuda device"));
        }
        if !self.torch.facts.cudnn_flex {
            let message = "cudnn.flex_attention is missing in this Python";
            return Err(Diagnostic::error("no-cudnn-flex", message)
                .hint("pip install 'nvidia-cudnn-frontend>=1.32', which brings nvidia-cutlass-dsl"));
        }
        self.torch.facts.capability.map_or(Ok(()), |capability| rivals::cudnn_flex(problem, capability))?;
        self.mask_func(problem).map(|_| ())
    }

    /// The mask as cudnn.flex_attention takes it. Errors: its refusal.
    fn mask_func(&self, problem: &Problem) -> MaskFunc {
        let mut last = locked(&self.mask_func);
        if let Some((of, made)) = &*last
            && of == problem
        {
            return made.clone();
        }
        let made = rivals::mask_func(problem, &Control::new()).map(Arc::new);
        *last = Some((problem.clone(), made.clone()));
        made
    }

    /// On the CPU, a problem that cannot fit is refused before the system kills the process; a GPU reports it itself.
    fn refuse_large(&self, problem: &Problem, what: &str, bytes: u128) -> Result<(), Diagnostic> {
        if self.torch.device != Device::Cpu {
            return Ok(());
        }
        super::cpu::memory::check(self.name, what, bytes + 2 * super::cpu::memory::working_bytes(problem))
    }
}

fn dense_bytes(problem: &Problem, a_cell: u128) -> u128 {
    if problem.mask.is_none() && problem.score.is_none() {
        return 0;
    }
    // a bias has all batch entries and heads
    let copies = if problem.score.is_none() { problem.mask_copies() } else { problem.batch * problem.heads };
    [copies, problem.q_len, problem.kv_len].iter().map(|n| *n as u128).product::<u128>() * a_cell
}

/// Scores in the dtype, in float32, the weights in both.
fn score_bytes(problem: &Problem) -> u128 {
    let cells: u128 =
        [problem.batch, problem.heads, problem.q_len, problem.kv_len].iter().map(|n| *n as u128).product();
    cells * (8 + 2 * problem.dtype.size() as u128)
}

fn refuse_non_bias(problem: &Problem) -> Result<(), Diagnostic> {
    match &problem.score {
        Some(score) if !bias::is_bias(score) => {
            let message = "SDPA supports only an additive bias, and this score mod is not additive";
            Err(Diagnostic::error("score-mod-unsupported", message).hint("use torch:flex, or flex"))
        }
        _ => Ok(()),
    }
}

/// The problem in the worker's format, with its module written next to it.
fn describe(
    problem: &Problem,
    name: BackendName,
    module_text: ModuleText,
    session: &mut Session,
) -> Result<Value, Diagnostic> {
    let s = problem.spec();
    let kind = match &problem.mask {
        None => Pattern::Full,
        Some(_) => problem.pattern(&Control::new())?,
    };
    let pattern = match kind {
        Pattern::Full => "none",
        Pattern::Causal { offset: 0 } if s.score.is_none() => "causal",
        _ => "dense",
    };
    // SDPA needs no mask that keeps everything
    let has_mask = s.mask.is_some() && (name != BackendName::TorchSdpa || kind != Pattern::Full);
    let module = module::write(problem, module_text, session.next_number(), &session.exchange)?;
    let mut spec = shape(problem);
    spec["pattern"] = json!(pattern);
    (spec["has_mask"], spec["has_score"]) = (json!(has_mask), json!(s.score.is_some()));
    spec["module"] = json!(module);
    Ok(spec)
}

/// What every backend is told.
fn shape(problem: &Problem) -> Value {
    let s = problem.spec();
    json!({
        "batch": s.batch, "heads": s.heads, "kv_heads": s.kv_heads, "q_len": s.q_len, "kv_len": s.kv_len,
        "head_dim_v": s.head_dim_v, "scale": problem.scale(), "dtype": s.dtype.torch_name(), "layout": s.layout,
        "block_size": [s.block_size.q, s.block_size.kv],
        "mask_per_batch": problem.mask_per_batch(), "mask_per_head": problem.mask_per_head(),
    })
}

/// A problem for cudnn.flex_attention: the mask as row ends in a file, and no module.
fn describe_ranges(problem: &Problem, found: &RowEnds, session: &mut Session) -> Result<Value, Diagnostic> {
    let file = format!("mask_func_{}.safetensors", session.next_number());
    let path = session.exchange.write_tensors(&file, &[("mask_func", &found.ends)])?;
    let mut spec = shape(problem);
    (spec["pattern"], spec["has_mask"], spec["has_score"]) = (json!("ranges"), json!(true), json!(false));
    (spec["module"], spec["mask_func"]) = (Value::Null, json!(path));
    spec["mask_words"] = json!(found.words(problem.batch));
    Ok(spec)
}

#[derive(Deserialize)]
struct PreparedAnswer {
    handle: u64,
    #[serde(flatten)]
    kernel: KernelReport,
}

/// Samples of passes, of either direction.
#[derive(Deserialize)]
struct TimedAnswer {
    samples_ms: Vec<f64>,
    calls_ms: Vec<f64>,
    clock: Option<Clock>,
}

impl From<TimedAnswer> for Timed {
    fn from(answer: TimedAnswer) -> Timed {
        Timed { passes_ms: answer.samples_ms, calls_ms: answer.calls_ms, clock: answer.clock }
    }
}

/// A pass that the worker holds.
struct Run {
    session: Arc<Mutex<Session>>,
    generation: u64,
    handle: u64,
    kernel: KernelReport,
    name: BackendName,
    learned: gradients::Learned,
    /// Whether it has given an output.
    ran: bool,
    memory: OnceLock<Option<u64>>,
    training_memory: Option<u64>,
}

impl Run {
    fn ask(&self, doing: &str, kind: &str, mut body: Value, limit: Duration) -> Result<Value, Diagnostic> {
        let mut session = locked(&self.session);
        if session.generation() != self.generation {
            return Err(Diagnostic::error("torch-died", format!("the Python process that had {} is gone", self.name))
                .hint("run it again"));
        }
        body["handle"] = json!(self.handle);
        session.ask(&format!("{doing} {}", self.name), kind, body, limit)
    }
}

impl Prepared for Run {
    fn kernel(&self) -> KernelReport {
        self.kernel.clone()
    }

    fn output(&mut self) -> Result<Output, Diagnostic> {
        #[derive(Deserialize)]
        struct Written {
            path: PathBuf,
        }
        let written: Written = read_answer(self.ask("running", "output", json!({}), PASS)?)?;
        self.ran = true;
        read_output(&written.path)
    }

    /// Measured when it is first wanted, in a pass of its own: a profiled pass is no first output.
    fn memory(&self) -> Option<u64> {
        let measure = || self.ask("measuring the memory of", "memory", json!({}), PASS).ok()?["memory_bytes"].as_u64();
        self.ran.then(|| *self.memory.get_or_init(measure))?
    }

    fn training_memory(&self) -> Option<u64> {
        self.training_memory
    }

    fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
        let limit = PASS * u32::try_from(count).unwrap_or(u32::MAX).clamp(1, 20);
        let timed: TimedAnswer = read_answer(self.ask("timing", "time", json!({ "count": count }), limit)?)?;
        Ok(timed.into())
    }

    fn gradients(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        self.gradients_of(seeds)
    }

    fn time_backward(&mut self, seeds: &Seeds, count: usize) -> Result<Timed, Diagnostic> {
        self.times_backward(seeds, count)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // best effort: a dead process holds nothing
        let _ = self.ask("ending", "drop", json!({}), Duration::from_secs(20));
    }
}

fn read_output(path: &Path) -> Result<Output, Diagnostic> {
    let bytes = exchange::take(path)?;
    let file = SafeTensors::deserialize(&bytes).map_err(exchange::broken)?;
    let out = exchange::tensor(&file, "out")?
        .ok_or_else(|| Diagnostic::error("torch-protocol", "PyTorch's worker returned no output"))?;
    Ok(Output { out, lse: exchange::tensor(&file, "lse")?, max_scores: None })
}
