//! The messages between the window, the command line and the worker.
//!
//! Invariant: a message is one JSON header line followed by its payloads, in bytes; the worker answers every request
//! with exactly one `Done` or `Failed`, after any number of `Progress`. Must not know how it is transported.

use crate::backends::cuda::Form;
use crate::backends::race::RaceOptions;
use crate::base::{BackendName, DType, Device, Diagnostic, Layout, Provenance};
use crate::problem::result::{KernelArtefact, RunReport, RunStep};
use crate::problem::{Problem, ProblemSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub mod detached;
pub mod folder;

/// Raised when either side could no longer understand the other.
pub const PROTOCOL_VERSION: u32 = 5;

/// The code of the refusal of another version.
pub const OTHER_VERSION: &str = "protocol-version";

/// A request with its number, counted up by the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Answers carry it back.
    pub id: u64,
    /// The request.
    pub body: RequestBody,
}

/// The requests of a client. Cancelling kills the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum RequestBody {
    /// First message: versions and devices.
    Hello {
        /// The client's [`PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// Race backends; progress carries each backend's report as it comes.
    Run(Box<RunRequest>),
    /// A picture of scores or probabilities of one head of the last run's inputs.
    Map(MapRequest),
    /// Compile only; works without a GPU where NVRTC is present.
    Compile(Box<CompileRequest>),
    /// NVRTC alone on a kernel's text: a worker's request to a compile child. Answered with the payload `cubin`.
    CompileText {
        /// CUDA C++.
        source: String,
        /// `sm_80`, `sm_90a`, ...
        arch: String,
        /// Whole, or a part to be linked.
        #[serde(default)]
        form: Form,
    },
    /// The installed and the missing software.
    Doctor,
    /// Work that goes on without its client. Answered beside the work in hand.
    Detached(detached::Ask),
    /// The content of a folder there. Answered beside the work in hand.
    Folder(folder::FolderAsk),
    /// A small file there: a document, a run, code. Answered beside the work in hand, with the payload `file`.
    File {
        /// Its path there.
        path: String,
    },
    /// A question about a capture there, in the words of whoever answers it. A newer question ends the one before. Answered beside
    /// the work in hand.
    Desk {
        /// The question.
        about: serde_json::Value,
    },
    /// End in good order.
    Shutdown,
}

impl RequestBody {
    /// Bytes of the tensors that its problems capture.
    pub fn captured_bytes(&self) -> u64 {
        match self {
            RequestBody::Run(request) => request.problem.captured_bytes(),
            RequestBody::Compile(request) => request.problem.captured_bytes(),
            RequestBody::Detached(ask) => ask.captured_bytes(),
            _ => 0,
        }
    }
}

/// Where q, k and v come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum InputSource {
    /// Standard normal values, the same for the same seed and shape on every machine.
    Random {
        /// Seed.
        seed: u64,
    },
    /// A safetensors file on the worker's machine.
    File {
        /// Path there.
        path: String,
        /// Names of the tensors for q, k, v.
        names: [String; 3],
        /// Order of dimensions in the file: `bhsd` or `bshd`.
        layout: Layout,
    },
}

impl InputSource {
    /// Whose q and k numbers are that were computed from these inputs.
    pub fn provenance(&self) -> Provenance {
        match self {
            InputSource::Random { .. } => Provenance::Random,
            InputSource::File { path, .. } => {
                let name = std::path::Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
                Provenance::inputs(name.as_deref().unwrap_or(path))
            }
        }
    }
}

/// A race.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRequest {
    /// The problem; the worker validates it again.
    pub problem: ProblemSpec,
    /// Inputs; they stay on the worker for `Map` until the next run.
    pub inputs: InputSource,
    /// Who races, in order.
    pub backends: Vec<BackendName>,
    /// Where.
    pub device: Device,
    /// Rounds of timing, and how many rows are compared.
    #[serde(flatten)]
    pub options: RaceOptions,
    /// Return each backend's output and lse as payloads `BACKEND.out`, `BACKEND.lse`, and `BACKEND.max_scores` if the
    /// problem requests it and the backend supports it.
    pub keep_outputs: bool,
    /// Python with the user's PyTorch, for `torch:*`; None: found by the worker.
    pub python: Option<String>,
    /// The backward pass, if it is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradients: Option<GradientRequest>,
}

impl RunRequest {
    /// A race of these backends with the usual options; outputs stay on the worker.
    pub fn new(problem: &Problem, inputs: InputSource, backends: Vec<BackendName>, device: Device) -> RunRequest {
        let (problem, options) = (problem.spec().clone(), RaceOptions::default());
        RunRequest { problem, inputs, backends, device, options, keep_outputs: false, python: None, gradients: None }
    }
}

/// The backward pass of a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientRequest {
    /// Where the gradients of the results come from.
    pub seeds: SeedSource,
    /// Timed passes; 0: correctness only.
    pub rounds: u32,
    /// Return each backend's gradients as payloads `BACKEND.dq`, `.dk`, `.dv` and `.dcap.NAME`.
    pub keep: bool,
    /// Gradients must have the same bits in every run; the race checks this with a second run.
    #[serde(default)]
    pub deterministic: bool,
}

/// Where the gradients of the results come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum SeedSource {
    /// Standard normal values for the output.
    Random {
        /// Seed.
        seed: u64,
    },
    /// A safetensors file on the worker's machine.
    File {
        /// Path there.
        path: String,
        /// Name of the output's gradient, [B, Hq, Q, Ev].
        d_out: String,
        /// Name of the lse's, if there is one.
        d_lse: Option<String>,
        /// Order of the output's dimensions in the file.
        #[serde(default)]
        layout: Layout,
    },
}

/// Which values a map shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapKind {
    /// After scale and score_mod, before softmax; -inf where masked.
    Scores,
    /// After softmax.
    #[default]
    Probabilities,
}

/// A rectangle of one head's attention map, reduced to a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapRequest {
    /// Batch entry.
    pub b: usize,
    /// Query head.
    pub h: usize,
    /// Rows shown, half-open, tokens.
    pub q: [usize; 2],
    /// Columns shown, half-open, tokens.
    pub kv: [usize; 2],
    /// Picture rows; each is one query row when there are fewer rows than this.
    pub height: usize,
    /// Picture columns.
    pub width: usize,
    /// The kind of map: the mean of scores, or the sum of probabilities over a pixel.
    pub kind: MapKind,
}

/// Compile a backend's kernel for a problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompileRequest {
    /// The problem.
    pub problem: ProblemSpec,
    /// `flex`, `sdpa` or `eager`.
    pub backend: BackendName,
    /// `sm_80`, `sm_89`, `sm_90a`, ...; None: the device's own.
    pub arch: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Response {
    /// The request's number.
    pub id: u64,
    /// Its result.
    pub body: ResponseBody,
    /// Payloads that follow this header, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payloads: Vec<PayloadInfo>,
}

/// A tensor that follows a header as raw little-endian bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PayloadInfo {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

/// Progress, success or failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
pub enum ResponseBody {
    /// The worker lives, whatever it is doing; of request 0.
    Alive,
    /// On the way.
    Progress(RunStep),
    /// The request is done.
    Done(Reply),
    /// The request failed; the worker lives on.
    Failed {
        /// Why.
        why: Vec<Diagnostic>,
    },
}

/// Result by kind of request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reply")]
pub enum Reply {
    /// To `Hello`.
    Hello(WorkerInfo),
    /// To `Run`.
    Run(Box<RunReport>),
    /// To `Map`: payload `map`, F32 [height, width]; masked pixels are -inf, rows that keep nothing NaN.
    Map {
        /// Rows really given.
        height: usize,
        /// Columns really given.
        width: usize,
    },
    /// To `Compile`.
    Compile(Box<KernelArtefact>),
    /// To `CompileText`.
    CompileText {
        /// The compiler's log.
        log: String,
        /// Milliseconds it took.
        ms: f64,
    },
    /// To `Doctor`.
    Doctor(DoctorReport),
    /// To `Detached`.
    Detached(detached::JobAnswer),
    /// To `Folder`.
    Folder(Box<folder::Listing>),
    /// To `File`.
    File {
        /// Its whole path there.
        path: String,
    },
    /// To `Desk`.
    Desk {
        /// The answer, whose numbers follow as payloads.
        reported: serde_json::Value,
    },
    /// To `Shutdown`.
    Bye {},
}

/// The worker's version and devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Its [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// Its package version.
    pub version: String,
    /// Host name.
    pub host: String,
    /// CUDA devices first, then the cpu.
    pub devices: Vec<DeviceInfo>,
    /// Missing requirements, each with the command that fixes it.
    pub notes: Vec<Diagnostic>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// How to name it.
    pub device: Device,
    /// `NVIDIA H200`, `cpu (2 threads, avx512)`.
    pub name: String,
    /// (9, 0); None for the cpu.
    pub compute_capability: Option<(u32, u32)>,
    /// Bytes in all.
    pub memory: u64,
    /// Why it cannot be used, if so.
    pub unusable: Option<Diagnostic>,
}

/// Traffic light of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// In order.
    Green,
    /// Something is missing that only some work needs.
    Amber,
    /// Work is impossible until it is mended.
    Red,
}

/// One check of the doctor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// `driver`, `nvrtc`, `display`, ...
    pub name: String,
    /// Light.
    pub health: Health,
    /// The result.
    pub found: String,
    /// The one command or step that mends it.
    pub mend: Option<String>,
}

/// All checks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// In the order to be shown.
    pub checks: Vec<Check>,
    /// Versions by name, for run files.
    pub environment: BTreeMap<String, String>,
}
