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
    /// Largest error that any element of any row may have. Each is judged by its own row's bar, which is often far
    /// smaller: see `worst`.
    #[serde(with = "crate::base::float")]
    pub allowed: f64,
    /// Largest `relative_rms` allowed; 0 in files of older versions, which did not judge it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub relative_rms_allowed: f64,
    /// Largest lse error that any row may have; 0 stands for [`ErrorStats::LSE_ALLOWED`].
    #[serde(default)]
    pub lse_allowed: f64,
    /// Largest error of the rows' largest scores allowed; 0 stands for [`ErrorStats::LSE_ALLOWED`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_scores_allowed: f64,
    /// Where the bars come from, in words.
    pub allowed_from: String,
    /// The error that is largest beside what is allowed there; None in files of older versions, which judged by the
    /// largest errors alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Worst>,
}

/// An error beside its bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Of what: `out`, `lse`, `max_scores`, with what else must be said.
    pub what: String,
    /// Where: `b 0, h 3, q_idx 8191`, or of which rows together.
    pub place: String,
    /// How far it is off.
    #[serde(with = "crate::base::float")]
    pub error: f64,
    /// How far it may be.
    #[serde(with = "crate::base::float")]
    pub allowed: f64,
    /// One over the other: above 1 the result is wrong.
    #[serde(with = "crate::base::float")]
    pub ratio: f64,
}

impl ErrorStats {
    /// Largest lse error allowed in 16-bit runs of files that do not say it.
    pub const LSE_ALLOWED: f64 = 1e-3;

    /// Whether the result may be shown as correct.
    pub fn passed(&self) -> bool {
        let compared = self.nan_mismatch == 0 && self.rows_checked > 0;
        compared && self.worst.as_ref().map_or_else(|| self.passed_by_largest(), |worst| worst.ratio <= 1.0)
    }

    /// As older versions judged.
    fn passed_by_largest(&self) -> bool {
        let or_usual = |allowed: f64| if allowed > 0.0 { allowed } else { Self::LSE_ALLOWED };
        self.max_abs <= self.allowed
            && self.lse_max_abs.is_none_or(|e| e <= or_usual(self.lse_allowed))
            && self.max_scores_max_abs.is_none_or(|e| e <= or_usual(self.max_scores_allowed))
    }

    /// What is wrong, in words; None where nothing is.
    pub fn fault(&self) -> Option<String> {
        if self.passed() {
            return None;
        }
        Some(match &self.worst {
            _ if self.nan_mismatch > 0 => {
                let n = self.nan_mismatch;
                format!("{n} elements are NaN, infinite or never written where the reference has a number")
            }
            _ if self.rows_checked == 0 => "no row was compared".into(),
            Some(Worst { what, place, error, allowed, .. }) => {
                format!("{what} of {place} is off by {error:.1e}; {allowed:.1e} is allowed there")
            }
            None => format!("off by {:.1e}; {:.1e} is allowed", self.max_abs, self.allowed),
        })
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
    /// PyTorch 2.11's `BlockMask.sparsity()`, percent; below zero where blocks hang over the lengths.
    pub sparsity: f64,
    /// PyTorch 2.15's, which counts padded lengths; absent in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub padded_sparsity: Option<f64>,
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
    /// The median of one backend, if it was timed.
    pub fn median_ms(&self, backend: BackendName) -> Option<f64> {
        self.timing(backend).map(|timing| timing.median_ms)
    }
}
