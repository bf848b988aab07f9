//! Gradients by the user's own PyTorch: autograd of the calls in its forward rows.
//!
//! Invariant: a captured tensor receives its gradient under any name in the exported module; PyTorch's refusals are
//! reported in its words. Must not know how gradients are judged.

use super::{PASS, PREPARE, Run, TimedAnswer, TorchBackend, exchange, locked, read_answer};
use crate::backends::Backend;
use crate::backends::given::Given;
use crate::backends::gradients::{Gradients, Seeds};
use crate::backends::mod_gradient::ModGradient;
use crate::base::{BackendName, Device, Diagnostic, HostTensor};
use crate::ir::graph::{CaptureId, Mod};
use crate::ir::passes::derive::derive;
use crate::ir::passes::simplify::simplify;
use crate::problem::Problem;
use crate::problem::facts::KernelReport;
use crate::problem::result::Timed;
use safetensors::SafeTensors;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;

/// Which of the tensors that learn in the exported module each captured tensor is.
pub(super) struct Learned {
    given: Given,
    /// By the tensors that get a gradient, in order: their size, and the place in the module.
    places: Vec<(usize, Option<usize>)>,
    in_module: usize,
}

impl Learned {
    pub(super) fn new(score: Option<&Mod>) -> Learned {
        let nothing = Learned { given: Given::default(), places: Vec::new(), in_module: 0 };
        let Some(score) = score else { return nothing };
        let simple = simplify(score);
        let read = |of: &Mod| derive(of, |_| true).map(|d| d.captures()).unwrap_or_default();
        let (own, theirs) = (read(score), read(&simple));
        let mut taken: Vec<usize> = Vec::new();
        let mut place = |id: &CaptureId| {
            let tensor = &score.graph.capture(*id).tensor;
            let same =
                |at: &usize| simple.graph.capture(theirs[*at]).tensor.same_storage(tensor) && !taken.contains(at);
            let found = (0..theirs.len()).find(same);
            taken.extend(found);
            (tensor.numel(), found)
        };
        let places = own.iter().map(&mut place).collect();
        Learned { given: Given::new(score, &own), places, in_module: theirs.len() }
    }

    /// The gradients of the tensors that were given; `found` are those of the module's.
    fn tensors(&self, found: &[HostTensor]) -> Result<Vec<backends::gradients::CaptureGradient>, Diagnostic> {
        let parts: Vec<Vec<f64>> = self
            .places
            .iter()
            .map(|(size, place)| match place.and_then(|at| found.get(at)) {
                Some(tensor) => (0..tensor.numel()).map(|i| tensor.float_at(i)).collect(),
                // simplified away: nothing goes there
                None => vec![0.0; *size],
            })
            .collect();
        self.given.tensors(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

impl TorchBackend {
    /// Whether PyTorch gives gradients of this problem.
    pub(super) fn trains(&self, problem: &Problem) -> Result<(), Diagnostic> {
        self.support(problem)?;
        ModGradient::new(problem)?;
        match self.name {
            BackendName::TorchEager => {
                // scores and weights stay until the backward pass, which makes as many
                let bytes = super::dense_bytes(problem, 1) + 2 * super::score_bytes(problem);
                self.refuse_large(problem, "the scores kept for the backward pass", bytes)
            }
            BackendName::TorchFlex | BackendName::TorchFlexFlash if self.torch.device == Device::Cpu => {
                self.refuse_untrained()
            }
            BackendName::TorchFlexFlash => {
                self.torch.facts.capability.map_or(Ok(()), |found| super::rivals::flash_gradients(problem, found))
            }
            BackendName::CudnnFlex => {
                self.torch.facts.capability.map_or(Ok(()), |found| super::rivals::cudnn_flex_gradients(problem, found))
            }
            _ => Ok(()),
        }
    }

    /// Asks PyTorch itself, whose versions differ.
    fn refuse_untrained(&self) -> Result<(), Diagnostic> {
        #[derive(Deserialize)]
        struct Trains {
            why: Option<String>,
        }
        let mut session = locked(&self.torch.session);
        session.ensure()?;
        let found: Trains = read_answer(session.ask("asking PyTorch", "trains", json!({}), PASS)?)?;
        let Some(why) = found.why else { return Ok(()) };
        let version = self.torch.facts.versions.get("torch").map_or("", String::as_str);
        Err(Diagnostic::error("torch-flex-no-backward", format!("FlexAttention of PyTorch {version} refuses gradients on this device: {why}"))
            .hint("pytorch issue #169224: no version has a backward pass on the CPU. Train on a GPU, or use torch:eager, torch:sdpa or flex"))
    }
}

impl Run {
    fn seeds(&self, seeds: &Seeds) -> Result<PathBuf, Diagnostic> {
        let given = [("do", Some(&seeds.d_out)), ("dlse", seeds.d_lse.as_ref())];
        let given: Vec<(&str, &HostTensor)> = given.into_iter().filter_map(|(n, t)| Some((n, t?))).collect();
        locked(&self.session).exchange.write_tensors("seeds.safetensors", &given)
    }

    /// Asks for something of the backward pass, which starts from seeds.
    fn ask_backward<T: for<'de> Deserialize<'de>>(
        &self,
        (doing, kind): (&str, &str),
        seeds: &Seeds,
        count: usize,
    ) -> Result<T, Diagnostic> {
        let path = self.seeds(seeds)?;
        let body = json!({ "path": path, "backend": self.name.as_str(), "count": count });
        // it is compiled at the first
        let limit = PREPARE + PASS * u32::try_from(count).unwrap_or(u32::MAX).clamp(1, 20);
        let asked = self.ask(doing, kind, body, limit);
        let _ = std::fs::remove_file(path);
        read_answer(asked?)
    }

    pub(super) fn gradients_of(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
        #[derive(Deserialize)]
        struct Written {
            path: PathBuf,
            #[serde(flatten)]
            kernel: KernelReport,
            memory_bytes: Option<u64>,
        }
        let written: Written = self.ask_backward(("differentiating", "gradients"), seeds, 1)?;
        (self.kernel, self.training_memory) = (written.kernel, written.memory_bytes);
        let bytes = exchange::take(&written.path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(exchange::broken)?;
        let get = |name: &str| {
            exchange::tensor(&file, name)?
                .ok_or_else(|| Diagnostic::error("torch-protocol", format!("PyTorch's worker returned no {name}")))
        };
        let found: Vec<HostTensor> =
            (0..self.learned.in_module).map(|n| get(&format!("dcap.{n}"))).collect::<Result<_, _>>()?;
        Ok(Gradients { dq: get("dq")?, dk: get("dk")?, dv: get("dv")?, captures: self.learned.tensors(&found)? })
    }

    pub(super) fn times_backward(&self, seeds: &Seeds, count: usize) -> Result<Timed, Diagnostic> {
        let timed: TimedAnswer = self.ask_backward(("timing the backward pass of", "time_backward"), seeds, count)?;
        Ok(timed.into())
    }
}
