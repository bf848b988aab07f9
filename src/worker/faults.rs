//! Known issues of PyTorch's FlexAttention that make gradients wrong, NaN or impossible: their symptoms, versions and
//! workarounds.
//!
//! Invariant: an issue is named only if the symptoms match; each row cites an issue of PyTorch. Must not know its
//! callers.

use crate::base::{Diagnostic, Layout};
use crate::ir::graph::Op;
use crate::ir::passes::derive::derive;
use crate::problem::Problem;
use crate::problem::result::{GradientError, GradientOutcome, GradientReport};
use serde::Serialize;

/// The symptoms of a backward pass of PyTorch.
pub struct Seen<'a> {
    /// What ran.
    pub problem: &'a Problem,
    /// Whether on a GPU.
    pub on_gpu: bool,
    /// `2.7.0+cu128`.
    pub torch: Option<&'a str>,
    /// How far they are off.
    pub gradients: &'a [GradientError],
    /// The fault, or the refusal.
    pub wrong: &'a [Diagnostic],
}

/// A known fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Known {
    /// `pytorch#153799`
    pub issue: &'static str,
    /// In which versions.
    pub versions: &'static str,
    /// Its description.
    pub what: &'static str,
    /// The workaround.
    pub way: &'static str,
}

impl Seen<'_> {
    fn differs(&self, name: &str) -> bool {
        self.gradients.iter().any(|e| e.name.starts_with(name) && !e.passed())
    }

    fn nan(&self) -> bool {
        self.gradients.iter().any(|e| e.fault.as_deref().is_some_and(|f| f.contains("NaN") || f.contains("inf")))
    }

    /// Whether PyTorch's words hold one of these.
    fn says(&self, any: &[&str]) -> bool {
        self.wrong.iter().any(|d| any.iter().any(|words| d.message.contains(words)))
    }

    /// Whether the version is below `major.minor`; no if it is unknown.
    fn before(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.torch.unwrap_or("").split(['.', '+']).map(str::parse::<u32>);
        matches!((parts.next(), parts.next()), (Some(Ok(a)), Some(Ok(b))) if (a, b) < (major, minor))
    }

    /// Whether a tensor of so many dimensions gets a gradient.
    fn learns_dims(&self, fits: impl Fn(usize) -> bool) -> bool {
        self.problem.score.as_deref().is_some_and(|score| {
            let read = derive(score, |_| true).map(|d| d.captures()).unwrap_or_default();
            read.iter().any(|id| fits(score.graph.capture(*id).tensor.shape().len()))
        })
    }

    /// Whether one tensor that learns is read at several places.
    fn reads_twice(&self) -> bool {
        self.problem.score.as_deref().is_some_and(|score| {
            let loads: Vec<_> = score
                .graph
                .nodes()
                .iter()
                .filter_map(|n| if let Op::Load(id, _) = n.op { Some(id) } else { None })
                .collect();
            loads.iter().enumerate().any(|(at, id)| loads[..at].contains(id))
        })
    }

    fn ragged(&self) -> bool {
        !self.problem.q_len.is_multiple_of(128) || !self.problem.kv_len.is_multiple_of(128)
    }
}

/// A row: the known issue, and whether the symptoms match it.
type Row = (Known, fn(&Seen) -> bool);

const ROWS: &[Row] = &[
    (
        Known {
            issue: "pytorch#169224",
            versions: "all; reported in a message since 2.10",
            what: "FlexAttention has no backward pass on the CPU",
            way: "train on a GPU, or use torch:sdpa, torch:eager or flex here; the exported module's attend trains on the CPU",
        },
        |s| !s.on_gpu && s.says(&["does not support backward on CPU", "only supports inference"]),
    ),
    (
        Known {
            issue: "pytorch#153799",
            versions: "open; seen with 2.7.0",
            what: "NaN in the backward pass with both a block_mask and a score_mod if a length is not a multiple of 128",
            way: "pad q, k and v to a multiple of 128 and mask the padding out, or return -inf from the score_mod and pass no block_mask",
        },
        |s| s.nan() && s.problem.mask.is_some() && s.problem.score.is_some() && s.ragged(),
    ),
    (
        Known {
            issue: "pytorch#158212",
            versions: "open; seen with 2.7 and 2.8",
            what: "compiled FlexAttention gives wrong or NaN gradients of k and v under some composed masks",
            way: "compare with flex_attention uncompiled, and train with SDPA and the dense mask, or flex, until it is fixed",
        },
        |s| s.on_gpu && s.problem.mask.is_some() && (s.differs("dk") || s.differs("dv")),
    ),
    (
        Known {
            issue: "pytorch#146377",
            versions: "2.6; closed since",
            what: "the gradient of k is garbage if k is not contiguous",
            way: "pass k.contiguous() and v.contiguous(), or a newer PyTorch",
        },
        |s| s.on_gpu && s.differs("dk") && s.problem.spec().layout == Layout::Bshd && s.before(2, 7),
    ),
    (
        Known {
            issue: "pytorch#163677",
            versions: "before 2.9",
            what: "silently wrong gradients of FlexAttention",
            way: "update PyTorch to 2.9 or newer",
        },
        |s| s.on_gpu && s.before(2, 9) && s.gradients.iter().any(|e| !e.passed()),
    ),
    (
        Known {
            issue: "pytorch#145208",
            versions: "open until PR #185988 of June 2026",
            what: "a captured scalar (a tensor without dimensions) gets no gradient, or the backward pass does not compile",
            way: "make it a tensor of one element and read it as t[0], or update PyTorch; compiled scalars also differ in pytorch#188869",
        },
        |s| s.on_gpu && s.learns_dims(|n| n == 0) && (s.differs("dcap") || s.gradients.is_empty()),
    ),
    (
        Known {
            issue: "pytorch#145869",
            versions: "open reports, also #157677",
            what: "the gradient of a whole [B, H, Q, KV] bias fails with an illegal memory access or an assertion",
            way: "give the bias to SDPA as attn_mask, or train a smaller table from which it is computed",
        },
        |s| s.on_gpu && s.learns_dims(|n| n >= 4) && (s.differs("dcap") || s.gradients.is_empty()),
    ),
    (
        Known {
            issue: "pytorch PR #137452",
            versions: "all since 2.6",
            what: "only one read of each captured tensor gets a gradient: several are multiple indexing operations",
            way: "use a separate copy for each read: table.clone()[...]",
        },
        |s| s.says(&["multiple indexing operations"]) || (s.on_gpu && s.differs("dcap") && s.reads_twice()),
    ),
    (
        Known {
            issue: "pytorch#176025",
            versions: "before PR #184797 of May 2026",
            what: "no tile size fits the backward pass: its tiles do not divide BLOCK_SIZE, or dtypes are mixed under autocast",
            way: "BLOCK_SIZE 128, one dtype for q, k and v, or kernel_options for the backward pass (bwd_BLOCK_M1 and the others)",
        },
        |s| s.says(&["NoValidChoices", "No choices to select"]),
    ),
    (
        Known {
            issue: "pytorch#198224",
            versions: "fix in PR #198228, open in September 2026",
            what: "the backward pass takes more shared memory than a consumer Blackwell card has at a head_dim above 128",
            way: "kernel_options with smaller backward tiles, head_dim 128, or flex",
        },
        |s| s.problem.head_dim > 128 && s.says(&["out of resource", "No valid triton configs", "shared memory"]),
    ),
    (
        Known {
            issue: "torchtitan#3814",
            versions: "all with BACKEND=FLASH",
            what: "FlashAttention-4 under FlexAttention computes no gradients of captured tensors and the lse",
            way: "use BACKEND=TRITON (torch:flex) if a captured tensor needs gradients",
        },
        |s| s.says(&["captured", "Captured", "require grad", "logsumexp"]) && s.says(&["FLASH", "flash"]),
    ),
];

/// A run's notes about wrong or missing gradients of PyTorch's backends.
pub fn notes(problem: &Problem, on_gpu: bool, torch: Option<&str>, reports: &[GradientReport]) -> Vec<Diagnostic> {
    let of_torch = reports.iter().filter(|r| r.backend.is_torch());
    let reported = of_torch.flat_map(|report| {
        let (gradients, wrong) = match &report.outcome {
            GradientOutcome::Done { errors, .. } => {
                let words = errors.iter().filter_map(GradientError::words);
                (&errors[..], words.map(|words| Diagnostic::error("gradient-differs", words)).collect())
            }
            GradientOutcome::Refused { why } | GradientOutcome::Failed { why } => (&[][..], vec![why.clone()]),
        };
        let found: Vec<Known> = match wrong.is_empty() {
            true => Vec::new(),
            false => known(&Seen { problem, on_gpu, torch, gradients, wrong: &wrong }),
        };
        found.into_iter().map(|k| {
            let message = format!("backward, {} matches {} ({}): {}", report.backend, k.issue, k.versions, k.what);
            Diagnostic::note("known-fault", message).hint(k.way)
        })
    });
    reported.collect()
}

/// The known issues that match the symptoms.
pub fn known(seen: &Seen) -> Vec<Known> {
    ROWS.iter().filter(|(_, looks)| looks(seen)).map(|(known, _)| known.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::{causal, distance_score, spec, with_mods};
    use crate::problem::ProblemSpec;

    fn error(name: &str, fault: Option<&str>) -> GradientError {
        let wrong = if fault.is_some() { 0.0 } else { 1.0 };
        GradientError {
            name: name.into(),
            max_abs: wrong,
            largest: 1.0,
            allowed: 0.01,
            widest: 0.01,
            fault: fault.map(String::from),
        }
    }

    fn issues(
        problem: &Problem,
        on_gpu: bool,
        torch: &str,
        gradients: &[GradientError],
        words: &str,
    ) -> Vec<&'static str> {
        let wrong = [Diagnostic::error("gradient-differs", words.to_string())];
        known(&Seen { problem, on_gpu, torch: Some(torch), gradients, wrong: &wrong }).iter().map(|k| k.issue).collect()
    }

    #[test]
    fn each_fault_is_named_by_what_it_looks_like_and_by_nothing_else() {
        let both = |n| with_mods(spec(1, 2, 2, n, n, 16), Some(causal(0)), Some(distance_score()));
        let nan = [error("dq", Some("element 0 is NaN where 1 is right"))];
        assert_eq!(issues(&both(1025), true, "2.15.0", &nan, "dq: NaN"), ["pytorch#153799"]);
        assert!(issues(&both(1024), true, "2.15.0", &nan, "dq: NaN").is_empty());
        let cpu = "NotImplementedError: FlexAttention does not support backward on CPU.";
        assert_eq!(issues(&both(128), false, "2.15.0", &[], cpu), ["pytorch#169224"]);
        let masked = |layout| with_mods(ProblemSpec { layout, ..spec(1, 2, 2, 256, 256, 16) }, Some(causal(0)), None);
        let dk = [error("dk", None)];
        assert_eq!(issues(&masked(Layout::Bhsd), true, "2.15.0", &dk, "dk"), ["pytorch#158212"]);
        let old = issues(&masked(Layout::Bshd), true, "2.6.0+cu124", &dk, "dk");
        assert_eq!(old, ["pytorch#158212", "pytorch#146377", "pytorch#163677"]);
        assert_eq!(issues(&both(128), true, "2.15.0", &[], "NoValidChoicesError: none"), ["pytorch#176025"]);
        // on the CPU a wrong dv is not an issue of the compiled kernels
        assert!(issues(&masked(Layout::Bhsd), false, "2.15.0", &[error("dv", None)], "dv").is_empty());
    }
}
