//! `maskloom conform`: PyTorch's reference cases, or random problems, compared with our results.
//!
//! Invariant: masks and block masks are exact, outputs within the stated tolerance; a case that panics, fails to trace
//! or kills its worker is a failed case, and the next case runs. Must not know the command line.

mod cases;
mod gradients;
mod masks;
mod outputs;
mod random;
pub mod stack;
mod trace;

use crate::base::{BackendName, Device, Diagnostic};
use crate::problem::result::{BackendReport, GradientReport};
use crate::worker::protocol::{Reply, RequestBody, RunRequest};
use crate::worker::supervisor::Supervisor;
use crate::worker::target::Target;
use crate::worker::transport::Payload;
use crate::worker::{client, files, tensors, user_python};
use cases::{Arrays, Case};
use masks::Ours;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use trace::Packages;

/// 8 cells a byte, lowest bit first.
#[cfg(feature = "testing")]
pub fn pack(cells: &[u8]) -> Vec<u8> {
    masks::pack(cells)
}

/// The checks to run.
#[derive(Clone, Debug)]
pub enum What {
    /// Reference cases.
    Cases {
        /// `CASES.json`; its arrays are in `CASES.safetensors` next to it.
        file: PathBuf,
        /// Folder of the packages that cases name; None: those of the user's Python.
        package: Option<PathBuf>,
        /// Where our own arrays are written, under the same names.
        out: Option<PathBuf>,
    },
    /// Random problems `seed..seed + count`.
    Random {
        /// How many.
        count: u64,
        /// The first one's seed.
        seed: u64,
    },
}

/// How to check it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What.
    pub what: What,
    /// Who computes outputs.
    pub backend: BackendName,
    /// Where; None: the best device there is.
    pub device: Option<Device>,
    /// Who works. Reference cases need their files there.
    pub target: Target,
    /// Python for `torch:*`; None: found.
    pub python: Option<String>,
    /// Who waits for the worker's first answer: it is told by taking this away.
    pub greeted: Arc<Mutex<Option<Sender<()>>>>,
}

impl Options {
    /// With flex on this machine's best device.
    pub fn new(what: What) -> Options {
        let (backend, target, greeted) = (BackendName::Flex, Target::local(), Arc::default());
        Options { what, backend, device: None, target, python: None, greeted }
    }
}

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything listed agrees.
    Pass,
    /// Something does not.
    Fail,
    /// The mask agrees, and the backend refuses the problem with a reason.
    Refused,
}

/// The measurements of an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Which kernel ran.
    pub kernel: String,
    /// Largest absolute error of the output.
    pub out: Option<f64>,
    /// For the lse; None if the backend does not return it.
    pub lse: Option<f64>,
    /// For the rows' largest scores, if requested and returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_scores: Option<f64>,
    /// The largest error of each gradient over the largest value of PyTorch's, by name, where gradients were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gradients: Vec<(String, f64)>,
    /// Largest output error allowed.
    pub allowed: f64,
    /// Where that comes from, on a GPU.
    pub allowed_from: String,
}

/// One case's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Block sizes whose block masks were compared.
    pub blocks: usize,
    /// None: masks only, or it did not come so far.
    pub measured: Option<Measured>,
    /// The fault, or the refusal.
    pub why: Vec<Diagnostic>,
    /// Time it took, with everything.
    pub ms: f64,
}

impl CaseReport {
    fn new(name: String) -> CaseReport {
        CaseReport { name, verdict: Verdict::Pass, blocks: 0, measured: None, why: Vec::new(), ms: 0.0 }
    }

    fn fail(&mut self, why: Diagnostic) {
        self.verdict = Verdict::Fail;
        self.why.push(why);
    }
}

/// All results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Who computed outputs.
    pub backend: BackendName,
    /// Where.
    pub device: String,
    /// In the order of the file, or of seeds.
    pub cases: Vec<CaseReport>,
}

impl Report {
    /// How many ended so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|c| c.verdict == verdict).count()
    }

    /// Whether something was checked and nothing failed.
    pub fn passed(&self) -> bool {
        self.count(Verdict::Fail) == 0 && self.count(Verdict::Pass) > 0
    }
}

/// Checks everything; `on_case` hears of each case as it ends. Errors: the files cannot be read, or no worker starts.
pub fn run(options: &Options, on_case: &mut dyn FnMut(&CaseReport)) -> Result<Report, Vec<Diagnostic>> {
    let mut runner = Runner::start(options)?;
    let mut reports = Vec::new();
    let mut tell = |report: CaseReport| {
        on_case(&report);
        reports.push(report);
    };
    match &options.what {
        What::Random { count, seed } => {
            (0..*count).for_each(|n| tell(random::check(seed.wrapping_add(n), &mut runner)));
        }
        What::Cases { file, package, out } => {
            let cases = cases::read(file).map_err(|d| vec![d])?;
            let arrays = Arrays::beside(file).map_err(|d| vec![d])?;
            let packages = Packages::new(package.as_deref(), &cases);
            let mut ours = Vec::new();
            for case in &cases {
                let (report, arrays) = check_case(case, &arrays, &packages, &mut runner);
                tell(report);
                ours.extend(arrays.into_iter().filter(|_| out.is_some()));
            }
            if let Some(out) = out {
                write(out, &ours).map_err(|d| vec![d])?;
            }
        }
    }
    Ok(Report { backend: options.backend, device: runner.device_name, cases: reports })
}

fn write(path: &std::path::Path, ours: &Ours) -> Result<(), Diagnostic> {
    files::save(path, &tensors::write(ours.iter().map(|(name, tensor)| (name.clone(), tensor)))?)
}

fn check_case(case: &Case, arrays: &Arrays, packages: &Packages, runner: &mut Runner) -> (CaseReport, Ours) {
    let start = Instant::now();
    let mut report = CaseReport::new(case.name.clone());
    let mut ours = Ours::new();
    let work = AssertUnwindSafe(|| check_parts(case, arrays, packages, runner, &mut report, &mut ours));
    match catch_unwind(work) {
        Ok(Ok(())) => {}
        Ok(Err(why)) => why.into_iter().for_each(|d| report.fail(d)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let message = format!("the check panicked: {}", text.unwrap_or("without a word"));
            report.fail(Diagnostic::error("panic", message).hint("this is a bug; please report it"));
        }
    }
    report.ms = start.elapsed().as_secs_f64() * 1e3;
    (report, ours)
}

fn check_parts(
    case: &Case,
    arrays: &Arrays,
    packages: &Packages,
    runner: &mut Runner,
    report: &mut CaseReport,
    ours: &mut Ours,
) -> Result<(), Vec<Diagnostic>> {
    let (mask, score) = trace::mods(case, arrays, packages)?;
    let mut wrong = Vec::new();
    if let Some(mask) = &mask {
        ours.extend(masks::check(case, mask, arrays, &mut wrong).map_err(|d| vec![d])?);
        report.blocks = case.blocks.len();
    }
    wrong.drain(..).for_each(|d| report.fail(d));
    if case.head_dim == 0 {
        return Ok(());
    }
    match outputs::check(case, (mask, score), arrays, runner, &mut wrong)? {
        Ok((measured, arrays)) => {
            report.measured = Some(measured);
            ours.extend(arrays);
        }
        Err(refusal) => {
            if report.verdict == Verdict::Pass {
                report.verdict = Verdict::Refused;
            }
            report.why.push(refusal);
        }
    }
    wrong.into_iter().for_each(|d| report.fail(d));
    Ok(())
}

/// The problems of reference cases in float32, by name; what masks alone is left out.
#[cfg(any(test, feature = "testing"))]
pub fn problems(file: &std::path::Path) -> Result<Vec<(String, crate::problem::Problem)>, Vec<Diagnostic>> {
    let cases = cases::read(file).map_err(|d| vec![d])?;
    let arrays = Arrays::beside(file).map_err(|d| vec![d])?;
    let packages = Packages::new(None, &cases);
    let made = |case: &Case| {
        let mods = trace::mods(case, &arrays, &packages)?;
        Ok((case.name.clone(), crate::problem::Problem::new(outputs::spec(case, mods, Device::Cpu))?))
    };
    cases.iter().filter(|case| case.head_dim > 0).map(made).collect()
}

/// The worker that computes outputs.
struct Runner {
    worker: Supervisor,
    backend: BackendName,
    device: Device,
    device_name: String,
    python: Option<String>,
}

impl Runner {
    fn start(options: &Options) -> Result<Runner, Vec<Diagnostic>> {
        let mut worker = Supervisor::new(options.target.clone(), Arc::new(|| ()));
        let hello = RequestBody::Hello { protocol: crate::worker::protocol::PROTOCOL_VERSION };
        let answer = worker.ask(hello, &mut |_| {});
        drop(options.greeted.lock().unwrap_or_else(PoisonError::into_inner).take());
        let info = match answer?.reply {
            Reply::Hello(info) => info,
            other => return Err(vec![client::unexpected(&other)]),
        };
        let usable = |d: &&crate::worker::protocol::DeviceInfo| match options.device {
            Some(asked) => d.device == asked,
            None => d.unusable.is_none(),
        };
        let found = info.devices.iter().find(usable);
        if let Some(why) = found.and_then(|d| d.unusable.clone()) {
            return Err(vec![why]);
        }
        let device = found.map(|d| d.device).or(options.device).unwrap_or(Device::Cpu);
        let device_name = found.map_or_else(|| device.to_string(), |d| format!("{device}, {}", d.name));
        let python = options.python.clone().or_else(|| Some(user_python::find()?.path.display().to_string()));
        Ok(Runner { worker, backend: options.backend, device, device_name, python })
    }

    /// One run: the backend's own report, and payloads.
    fn run(
        &mut self,
        request: RunRequest,
    ) -> Result<(BackendReport, Option<GradientReport>, Vec<Payload>), Vec<Diagnostic>> {
        let answer = self.worker.ask(RequestBody::Run(Box::new(request)), &mut |_| {})?;
        match answer.reply {
            Reply::Run(report) => {
                let gradients = report.gradients.into_iter().find(|r| r.backend == self.backend);
                Ok((outputs::own(report.backends, self.backend)?, gradients, answer.payloads))
            }
            other => Err(vec![client::unexpected(&other)]),
        }
    }
}
