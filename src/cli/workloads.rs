//! The workloads of `bench cpu`, and the device that `bench kernels` measures.
//!
//! Invariant: a workload is a document made of library patterns. Must not know how it is measured.

use super::out::Failure;
use super::work::Worker;
use crate::base::{BackendName, DType, Device, Diagnostic};
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::model::*;
use crate::tasks::plan;
use crate::worker::protocol::RunRequest;

/// One row's document.
pub(super) struct Workload {
    pub name: &'static str,
    document: Document,
}

impl Workload {
    /// Its race. Errors: those of its patterns.
    pub(super) fn request(&self) -> Result<RunRequest, Failure> {
        let compiled = compile(&self.document, &BuiltIn);
        let problem = from_document(&self.document, &compiled)?;
        Ok(plan::run_request(&problem, &self.document.settings, Device::Cpu))
    }
}

/// The first usable GPU of a worker, or the reason why there is none.
pub(super) fn gpu(worker: &Worker) -> Result<Device, Failure> {
    let found = worker.info.devices.iter().find(|d| d.compute_capability.is_some() && d.unusable.is_none());
    if let Some(device) = found {
        return Ok(device.device);
    }
    worker.tell_notes();
    Err(Diagnostic::error("no-gpu", "`bench kernels` measures a GPU, and this machine has none")
        .hint("`bench cpu` measures the CPU; --target \"ssh HOST maskloom worker\" measures another machine")
        .into())
}

#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    heads: usize,
    kv_heads: usize,
    tokens: usize,
    head_dim: usize,
    dtype: DType,
}

type Pattern = (&'static str, &'static [(&'static str, f64)]);

fn workload(name: &'static str, shape: Shape, masks: &[Pattern], scores: &[Pattern]) -> Workload {
    let code = |(pattern, args): &Pattern| {
        let value = |x: f64| if x.fract() == 0.0 { ArgValue::Int(x as i64) } else { ArgValue::Float(x) };
        let args = args.iter().map(|(k, v)| (k.to_string(), value(*v))).collect();
        CodeRef { name: pattern.to_string(), args }
    };
    let layer = |(at, pattern): (usize, &Pattern)| Layer {
        id: at as u64 + 1,
        name: pattern.0.into(),
        enabled: true,
        combine: Combine::And,
        heads: None,
        content: MaskContent::Pattern(code(pattern)),
    };
    let score = |(at, pattern): (usize, &Pattern)| ScoreLayer {
        id: at as u64 + 101,
        name: pattern.0.into(),
        enabled: true,
        content: ScoreContent::Pattern(code(pattern)),
    };
    use BackendName::{Eager, FlashAttention2, Flex, Sdpa};
    // eager would materialise tens of gigabytes of scores at these sizes
    let backends =
        if shape.tokens <= 4096 { vec![Eager, Sdpa, FlashAttention2, Flex] } else { vec![Sdpa, FlashAttention2, Flex] };
    let settings = Settings {
        batch: shape.batch,
        kv_heads: shape.kv_heads,
        dtype: shape.dtype,
        backends,
        ..Settings::new(shape.heads, shape.head_dim)
    };
    let document = Document {
        layers: masks.iter().enumerate().map(layer).collect(),
        scores: scores.iter().enumerate().map(score).collect(),
        ..Document::new(name, Axes::same(Axis::tokens(shape.tokens)), settings)
    };
    Workload { name, document }
}

const CAUSAL: Pattern = ("causal", &[]);

/// float32, 1 x 8 heads x 4096 x 64.
pub(super) fn cpu() -> Vec<Workload> {
    let base = Shape { batch: 1, heads: 8, kv_heads: 8, tokens: 4096, head_dim: 64, dtype: DType::F32 };
    vec![
        workload("full", base, &[], &[]),
        workload("causal", base, &[CAUSAL], &[]),
        workload("window 512", base, &[("sliding_window", &[("window", 512.0)])], &[]),
        workload("bf16 full", Shape { dtype: DType::BF16, ..base }, &[], &[]),
    ]
}
