//! What runs give back: timings, errors against the reference, kernel artefacts, whole run files.
//!
//! Invariant: a timing stands beside the error of the same kernel; one without a check is not built. Plain data, serde.

use crate::base::{BackendName, Device, Diagnostic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples of one backend's time for one forward pass, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Every sample, in the order measured.
    pub samples_ms: Vec<f64>,
    /// Median.
    #[serde(with = "crate::base::float")]
    pub median_ms: f64,
    /// Interquartile range over the median (0.02 is 2%).
    #[serde(with = "crate::base::float")]
    pub spread: f64,
}

/// Difference from the f64 reference. NaN in either place where the other has a number makes `nan_mismatch` count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorStats {
    /// Largest absolute error of the output.
    #[serde(with = "crate::base::float")]
    pub max_abs: f64,
    /// Root of the mean squared error over the root of the mean squared reference.
    #[serde(with = "crate::base::float")]
    pub relative_rms: f64,
    /// Largest absolute error of the natural-log lse; None where the backend gives none. -inf equals -inf.
    #[serde(default, with = "crate::base::float::option")]
    pub lse_max_abs: Option<f64>,
    /// Largest absolute error of the rows' largest scores; None where the backend gives none or nobody asked.
    #[serde(default, with = "crate::base::float::option", skip_serializing_if = "Option::is_none")]
    pub max_scores_max_abs: Option<f64>,
    /// Elements that are NaN, infinite or still poisoned where the reference has a number.
    pub nan_mismatch: u64,
    /// Query rows compared (over batch and heads), and of how many.
    pub rows_checked: u64,
    /// All query rows.
    pub rows_total: u64,
    /// Largest error allowed: twice that of bf16 eager attention on the same inputs plus 1e-4 (f32: 1e-5).
    #[serde(with = "crate::base::float")]
    pub allowed: f64,
    /// Largest lse error allowed; 0 stands for [`ErrorStats::LSE_ALLOWED`].
    #[serde(default)]
    pub lse_allowed: f64,
    /// Largest error of the rows' largest scores allowed; 0 stands for [`ErrorStats::LSE_ALLOWED`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_scores_allowed: f64,
    /// Where `allowed` comes from: `torch:eager`, or `emulated eager` when no PyTorch was asked.
    pub allowed_from: String,
}

impl ErrorStats {
    /// Largest lse error allowed for a 16-bit run; f32 runs allow 1e-5.
    pub const LSE_ALLOWED: f64 = 1e-3;

    /// Whether the result may be shown as correct.
    pub fn passed(&self) -> bool {
        let or_usual = |allowed: f64| if allowed > 0.0 { allowed } else { Self::LSE_ALLOWED };
        self.nan_mismatch == 0
            && self.max_abs <= self.allowed
            && self.lse_max_abs.is_none_or(|e| e <= or_usual(self.lse_allowed))
            && self.max_scores_max_abs.is_none_or(|e| e <= or_usual(self.max_scores_allowed))
            && self.rows_checked > 0
    }
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

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
    /// Resident blocks a multiprocessor, where a device was asked.
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

/// What one backend did in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// It ran and was compared with the reference.
    Done {
        /// Which kernel ran, in words: `flex_sm80 128x64`, `cpu flex f32`, `torch 2.11 SDPA flash`.
        kernel: String,
        /// Against the f64 reference.
        error: ErrorStats,
        /// Absent when only correctness was asked.
        timing: Option<Timing>,
        /// Absent for backends without one.
        artefact: Option<Box<KernelArtefact>>,
        /// Milliseconds from the start of preparing (block mask, compiling, tensors to the device) to the first output
        /// on the host, without the reference. Absent in files of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ready_ms: Option<f64>,
        /// Where the first output came from a kernel that is ready sooner: milliseconds to the first output of the
        /// kernel that is named and timed here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settled_ms: Option<f64>,
        /// Where the rows' largest scores were asked for and given: the largest of each query head.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        max_scores: Vec<HeadMaximum>,
    },
    /// It cannot do this problem, and says why and what to do.
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

/// One line of a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendReport {
    /// Who.
    pub backend: BackendName,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Share of work that the mask keeps, and the FLOP that follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkStats {
    /// Kept cells over all cells, 0..=1, over batch and heads.
    pub density: f64,
    /// Cells of computed blocks over all cells, at the problem's BLOCK_SIZE.
    pub computed: f64,
    /// PyTorch's `BlockMask.sparsity()`, percent.
    pub sparsity: f64,
    /// 2 * B * H * kept cells * (head_dim + head_dim_v).
    pub flop: f64,
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
    /// What the mask keeps.
    pub work: WorkStats,
    /// One for each backend asked for, in that order.
    pub backends: Vec<BackendReport>,
    /// Remarks that apply to the run as a whole.
    pub notes: Vec<Diagnostic>,
}

impl RunReport {
    /// What the others are compared with; see [`baseline`].
    pub fn baseline(&self) -> Option<(BackendName, f64)> {
        baseline(&self.backends)
    }

    /// The median of one backend, if it ran.
    pub fn median_ms(&self, backend: BackendName) -> Option<f64> {
        self.backends.iter().find(|r| r.backend == backend).and_then(|r| match &r.outcome {
            Outcome::Done { timing: Some(timing), .. } => Some(timing.median_ms),
            _ => None,
        })
    }
}

/// The fastest SDPA that was right, and its median in milliseconds: what a user would have today. Where every SDPA
/// refuses, as for score mods, the fastest eager.
pub fn baseline(reports: &[BackendReport]) -> Option<(BackendName, f64)> {
    use BackendName::{Eager, Sdpa, TorchEager, TorchSdpa};
    let right = |r: &BackendReport| match &r.outcome {
        Outcome::Done { error, timing: Some(timing), .. } if error.passed() => Some((r.backend, timing.median_ms)),
        _ => None,
    };
    [[Sdpa, TorchSdpa], [Eager, TorchEager]].iter().find_map(|names| {
        let of_these = reports.iter().filter(|r| names.contains(&r.backend)).filter_map(right);
        of_these.min_by(|a, b| a.1.total_cmp(&b.1))
    })
}
