//! Results of runs: timings, errors against the reference, kernel artefacts, whole run files.
//!
//! Invariant: a timing comes with the error of the same kernel; a timing without a check cannot be built. Plain data,
//! serde.

use super::card::CardStates;
pub use super::doing::Doing;
use super::facts::{Busy, KernelReport};
pub use super::outputs::*;
use crate::base::provenance::Place;
use crate::base::{BackendName, Device, Diagnostic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest score of one head over its batch entries and rows, for QK-clip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeadMaximum(#[serde(with = "crate::base::float")] pub f64);

/// A compiled kernel and what its compiler said of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelArtefact {
    /// Short name of the variant: `flex_sm80 128x64 d128 bf16 mask:formula`.
    pub name: String,
    /// Whole CUDA C++ text as compiled.
    pub source: String,
    /// Text of the emitted mods alone (a part of `source`), for the Code tab.
    pub mods: String,
    /// `sm_80`, `sm_90a`, ...
    pub arch: String,
    /// Registers a thread.
    pub registers: u32,
    /// Static plus dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// Stack frame a thread, bytes.
    pub stack_bytes: u32,
    /// Spill stores plus loads, bytes.
    pub spill_bytes: u32,
    /// Resident blocks per multiprocessor, if a device was queried.
    pub blocks_per_sm: Option<u32>,
    /// NVRTC's log.
    pub log: String,
    /// Milliseconds the compile took; 0 with `cached`.
    pub compile_ms: f64,
    /// Whether the cubin came from the cache.
    pub cached: bool,
    /// Content hash, hexadecimal: the cache key.
    pub key: String,
}

/// The result of one backend in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// It ran and was compared with the reference.
    Done {
        /// Which kernel ran.
        #[serde(flatten)]
        kernel: KernelReport,
        /// Against the f64 reference.
        error: ErrorStats,
        /// A row a phase; no forward passes when only correctness was asked. Version 1 held those alone, as `timing`.
        #[serde(default, alias = "timing")]
        timings: Timings,
        /// Absent for backends without one.
        artefact: Option<Box<KernelArtefact>>,
        /// Milliseconds from the start of preparing (block mask, compiling, tensors to the device) to the first output
        /// on the host, without the reference. Absent in files of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ready_ms: Option<f64>,
        /// If the first output came from a kernel that is ready sooner: milliseconds to the first output of the
        /// kernel that is named and timed here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settled_ms: Option<f64>,
        /// If the rows' largest scores were requested and returned: the largest of each query head.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        max_scores: Vec<HeadMaximum>,
        /// Bytes that a forward pass held at its peak beside q, k and v: output, lse, captured tensors, mask or block lists,
        /// working memory. Absent where it was not counted, and in files of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_bytes: Option<u64>,
    },
    /// It does not support this problem, with the reason and a fix.
    Refused {
        /// The refusal.
        why: Diagnostic,
    },
    /// It should have, and did not.
    Failed {
        /// The error.
        why: Diagnostic,
    },
}

impl Outcome {
    /// The samples of forward passes, if there are any.
    pub fn forward(&self) -> Option<&Timing> {
        match self {
            Outcome::Done { timings, .. } => timings.forward(),
            _ => None,
        }
    }

    /// Bytes held beside q, k and v, if they were counted.
    pub fn memory(&self) -> Option<u64> {
        match self {
            Outcome::Done { memory_bytes, .. } => *memory_bytes,
            _ => None,
        }
    }

    /// The same, only of a result that may be shown as correct.
    pub fn right(&self) -> Option<&Timing> {
        match self {
            Outcome::Done { error, timings, .. } if error.passed() => timings.forward(),
            _ => None,
        }
    }
}

/// One line of a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendReport {
    /// Who.
    pub backend: BackendName,
    /// Its result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The parts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Preparing, running once and comparing.
    #[default]
    Checking,
    /// From the first pass that only warms the machine to the last that is timed.
    Timing,
}

/// How far a run is. A report comes as soon as its backend's outcome is known, and again with its timing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    /// The present work.
    pub what: Doing,
    /// 0..=1; 0 where nothing is known.
    pub fraction: f32,
    /// What this work is a part of.
    #[serde(default)]
    pub stage: Stage,
    /// A backend whose outcome has just become known.
    pub report: Option<Box<BackendReport>>,
    /// Samples of forward passes so far, of backends that are being timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub so_far: Vec<(BackendName, Timing)>,
}

impl RunStep {
    /// A step that brings no report.
    pub fn new(what: Doing, fraction: f32) -> RunStep {
        RunStep { what, fraction, stage: Stage::Checking, report: None, so_far: Vec::new() }
    }
}

/// Share of work that the mask keeps, and the FLOP that follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkStats {
    /// Kept cells over all cells, 0..=1, over batch and heads.
    pub density: f64,
    /// Cells of computed blocks over all cells, at the problem's BLOCK_SIZE.
    pub computed: f64,
    /// PyTorch 2.11's `BlockMask.sparsity()`, percent; negative if blocks reach beyond the lengths.
    pub sparsity: f64,
    /// PyTorch 2.15's, which counts padded lengths; absent in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub padded_sparsity: Option<f64>,
    /// 2 * B * H * kept cells * (head_dim + head_dim_v).
    pub flop: f64,
}

/// How far one gradient is off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradientError {
    /// `dq`, `dk`, `dv`, or `dcap.NAME` of a captured tensor.
    pub name: String,
    /// Largest absolute error.
    #[serde(with = "crate::base::float")]
    pub max_abs: f64,
    /// Largest absolute value of the reference.
    #[serde(with = "crate::base::float")]
    pub largest: f64,
    /// Largest error that counts as right.
    #[serde(with = "crate::base::float")]
    pub allowed: f64,
    /// The largest bar of its parts, one a (batch, kv head) pair, of which `max_abs` and `allowed` are of the worst; 0 in files of older
    /// versions.
    #[serde(default)]
    pub widest: f64,
    /// A further fault: an element that is not a number, a row with an error above its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl GradientError {
    /// Whether the gradient counts as right.
    pub fn passed(&self) -> bool {
        self.fault.is_none() && self.max_abs <= self.allowed
    }

    /// The fault, in words; None without one.
    pub fn words(&self) -> Option<String> {
        let by_size = || format!("error {:.1e}; the limit is {:.1e}", self.max_abs, self.allowed);
        let why = self.fault.clone().or_else(|| (self.max_abs > self.allowed).then(by_size))?;
        Some(format!("{}: {why}", self.name))
    }

    /// The one nearest to its limit, or farthest beyond.
    pub fn worst(errors: &[GradientError]) -> Option<&GradientError> {
        let ratio = |e: &&GradientError| if e.passed() { e.max_abs / e.allowed } else { f64::INFINITY };
        errors.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }

    /// The larger of two errors relative to their limits, of one gradient's parts.
    #[must_use]
    pub fn worse(self, other: GradientError) -> GradientError {
        let ratio = |e: &GradientError| if e.fault.is_some() { f64::INFINITY } else { e.max_abs / e.allowed };
        let (largest, widest) = (self.largest.max(other.largest), self.widest.max(other.widest));
        let worse = if ratio(&other) > ratio(&self) { other } else { self };
        GradientError { largest, widest, ..worse }
    }
}

/// The result of one backend's backward pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum GradientOutcome {
    /// It ran and was compared with the reference.
    Done {
        /// Which kernel ran.
        #[serde(flatten)]
        kernel: KernelReport,
        /// One for each gradient.
        errors: Vec<GradientError>,
        /// For the backward pass alone. Absent if only correctness was requested, or a gradient was wrong.
        timing: Option<Timing>,
        /// For the pass that adds in any order, if the one above adds in a fixed order: the difference is the cost of
        /// the order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unordered: Option<Timing>,
        /// Bytes that forward and backward held together at their peak beside q, k, v and the gradient of the output. Absent
        /// where it was not counted, and in files of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_bytes: Option<u64>,
    },
    /// It is not supported, with the reason and a fix.
    Refused {
        /// The refusal.
        why: Diagnostic,
    },
    /// It should have, and did not.
    Failed {
        /// The error.
        why: Diagnostic,
    },
}

impl GradientOutcome {
    /// The time of the pass, if every gradient was right.
    pub fn right(&self) -> Option<&Timing> {
        match self {
            GradientOutcome::Done { errors, timing, .. } if errors.iter().all(GradientError::passed) => timing.as_ref(),
            _ => None,
        }
    }

    /// Bytes that forward and backward held together, if they were counted.
    pub fn memory(&self) -> Option<u64> {
        match self {
            GradientOutcome::Done { memory_bytes, .. } => *memory_bytes,
            _ => None,
        }
    }

    /// What the fixed order of addition costs: milliseconds of the pass in any order, and the additional time in percent. None: no
    /// order was requested, or the backend needs none.
    pub fn order_price(&self) -> Option<(f64, f64)> {
        let GradientOutcome::Done { timing: Some(ordered), unordered: Some(free), .. } = self else { return None };
        Some((free.median_ms, 100.0 * (ordered.median_ms / free.median_ms - 1.0)))
    }
}

/// One line of a race of backward passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientReport {
    /// Who.
    pub backend: BackendName,
    /// Its result.
    #[serde(flatten)]
    pub outcome: GradientOutcome,
}

/// Everything that a race gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Device it ran on, by name: `NVIDIA H200`, `cpu (2 threads)`.
    pub device_name: String,
    /// Device it ran on.
    pub device: Device,
    /// Versions and hardware: driver, NVRTC, torch, cores, host, date.
    pub environment: BTreeMap<String, String>,
    /// The GPU's clocks and power around the timing; absent on a CPU, in older files, and where nothing reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardStates>,
    /// Other programs while it was timed on a CPU, where they took enough to matter. In older files it is a row of
    /// `environment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Busy>,
    /// The kept cells and blocks.
    pub work: WorkStats,
    /// One for each requested backend, in that order.
    pub backends: Vec<BackendReport>,
    /// The backward passes, if requested; in the backends' order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gradients: Vec<GradientReport>,
    /// Remarks that apply to the run as a whole.
    pub notes: Vec<Diagnostic>,
}

impl RunReport {
    /// Where and when it ran.
    pub fn place(&self) -> Place {
        let said = |name: &str| self.environment.get(name).cloned();
        Place { device: self.device_name.clone(), date: said("date"), build: said("maskloom"), copy: false }
    }

    /// Versions, hardware and load for people: names with texts.
    pub fn conditions(&self) -> impl Iterator<Item = (&str, String)> {
        let load = self.load.map(|load| (Busy::KEY, load.to_string()));
        self.environment.iter().map(|(name, value)| (name.as_str(), value.clone())).chain(load)
    }

    /// The median of one backend, if it was timed.
    pub fn median_ms(&self, backend: BackendName) -> Option<f64> {
        self.timing(backend).map(|timing| timing.median_ms)
    }
}
