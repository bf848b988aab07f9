//! `sdpa` through the user's own cuDNN: scaled dot product attention without a mask or with the causal one, as a graph of
//! products, pointwise operations and reductions that cuDNN's fused engine recognises.
//!
//! Invariant: an unsupported problem (a head dim, a version) is a reason in words, and the caller falls back on our own
//! kernel. It must not receive a mask with fully masked rows.

use super::api::{Cudnn, Descriptor, Handle, Value, id};
use crate::backends::cuda::device::gpu::{Buffer, Gpu};
use crate::backends::cuda::device::tensors::{InputSet, Outputs, Strides};
use crate::backends::cuda::launch::runner::Pass;
use crate::base::{DType, Diagnostic};
use crate::problem::Problem;
use crate::problem::facts::{KernelFacts, KernelReport, Library, MaskRead};
use std::sync::Arc;

/// Numbers that name the tensors of a pass.
const UIDS: [i64; 7] = [Q, K, V, O, STATS, SCALE, LOW];
const Q: i64 = 1;
const K: i64 = 2;
const V: i64 = 3;
const O: i64 = 4;
const STATS: i64 = 5;
const SCALE: i64 = 6;
const LOW: i64 = 7;

const F32: i32 = 0;
const INT32: i32 = 4;
const BOOLEAN: i32 = 11;

/// Pointwise modes.
mod mode {
    pub(super) const ADD: i32 = 0;
    pub(super) const MUL: i32 = 1;
    pub(super) const DIV: i32 = 6;
    pub(super) const SUB: i32 = 9;
    pub(super) const EXP: i32 = 13;
    pub(super) const LOG: i32 = 15;
    pub(super) const CMP_GE: i32 = 303;
    pub(super) const GEN_INDEX: i32 = 501;
    pub(super) const BINARY_SELECT: i32 = 601;
}

/// A finalised plan with its run-time data.
pub(crate) struct CudnnSdpa {
    library: &'static Cudnn,
    handle: Handle,
    plan: Descriptor,
    workspace: Buffer,
    /// The by-value scale and the value of masked scores; boxed, because cuDNN is given their address.
    scalars: Box<[f32; 2]>,
    causal: bool,
}

impl CudnnSdpa {
    /// Builds the plan. The error is the reason why cuDNN does not support it.
    pub(crate) fn new(gpu: &Arc<Gpu>, problem: &Problem, causal: bool) -> Result<CudnnSdpa, Diagnostic> {
        // cuDNN 9.19 on an H200 gives NaN for negative scales
        if problem.scale() <= 0.0 {
            let why = format!("cuDNN's fused attention is wrong for a scale of {}", problem.scale());
            return Err(Diagnostic::error("cudnn-scale", why).hint("Maskloom's own sdpa kernel runs instead"));
        }
        let library = Cudnn::get()?;
        gpu.bind()?;
        let handle = library.handle(gpu.stream_handle())?;
        let operations = Graph::of(library, problem, causal)?.operations;
        let all: Vec<&Descriptor> = operations.iter().collect();
        let graph =
            library.build(id::OPERATIONGRAPH, &[(800, Value::Handle(&handle)), (801, Value::Descriptors(&all))])?;
        // heuristics mode A
        let heuristics =
            library.build(id::ENGINEHEUR, &[(200, Value::Enum(8, 3)), (201, Value::Descriptors(&[&graph]))])?;
        let configurations = heuristics.list(202, id::ENGINECFG, 8)?;
        let plan = first_plan(library, &handle, &configurations)?;
        let workspace = gpu.alloc(plan.int(402)?.max(0) as usize, "cuDNN's workspace")?;
        // older ones want the lowest number instead of -inf
        let low = if library.version() < 91_000 { f32::MIN } else { f32::NEG_INFINITY };
        let scalars = Box::new([problem.scale() as f32, low]);
        Ok(CudnnSdpa { library, handle, plan, workspace, scalars, causal })
    }

    /// What it is.
    pub(crate) fn describe(&self) -> KernelReport {
        let (mask, read) = match self.causal {
            true => ("is_causal", MaskRead::Causal),
            false => ("no mask", MaskRead::Nothing),
        };
        let version = self.library.version_text();
        let words = format!("cuDNN {version} fused attention, {mask}");
        let facts =
            KernelFacts { library: Library::Cudnn, version: Some(version), mask: read, tiles: None, choice: None };
        KernelReport { words, facts }
    }
}

fn first_plan(library: &'static Cudnn, handle: &Handle, found: &[Descriptor]) -> Result<Descriptor, Diagnostic> {
    let mut why = None;
    for configuration in found {
        let attributes = [(400, Value::Handle(handle)), (401, Value::Descriptors(&[configuration]))];
        match library.build(id::EXECUTION_PLAN, &attributes) {
            Ok(plan) => return Ok(plan),
            Err(error) => why = Some(error),
        }
    }
    Err(why.unwrap_or_else(|| {
        let message = format!("cuDNN {} has no engine for this shape", library.version_text());
        Diagnostic::error("cudnn-unsupported", message).hint("race `flex`, which takes any shape")
    }))
}

impl Pass for CudnnSdpa {
    fn enqueue(&self, gpu: &Gpu, set: &InputSet, outputs: &Outputs) -> Result<(), Diagnostic> {
        gpu.bind()?;
        let scalar = |at: usize| (&raw const self.scalars[at]).addr() as u64;
        let pointers = [
            set.q.address(),
            set.k.address(),
            set.v.address(),
            outputs.out.address(),
            outputs.lse.address(),
            scalar(0),
            scalar(1),
        ];
        let used = if self.causal { UIDS.len() } else { UIDS.len() - 1 };
        let variant = self.library.build(
            id::VARIANT_PACK,
            &[
                (1000, Value::Ints(&UIDS[..used])),
                (1001, Value::Pointers(&pointers[..used])),
                (1003, Value::Pointers(&[self.workspace.address()])),
            ],
        )?;
        self.handle.execute(&self.plan, &variant)
    }
}

/// Operations of a graph under construction.
struct Graph {
    library: &'static Cudnn,
    operations: Vec<Descriptor>,
    virtuals: i64,
    /// [batch, heads, q_len, kv_len]
    shape: [i64; 4],
}

impl Graph {
    fn of(library: &'static Cudnn, problem: &Problem, causal: bool) -> Result<Graph, Diagnostic> {
        let p = problem.spec();
        let shape = [p.batch, p.heads, p.q_len, p.kv_len].map(|n| n as i64);
        let mut graph = Graph { library, operations: Vec::new(), virtuals: 100, shape };
        let dtype = if p.dtype == DType::F16 { 2 } else { 9 };
        let (d, dv, kv) = (p.head_dim as i64, p.head_dim_v as i64, p.kv_heads as i64);
        let [b, h, q_len, kv_len] = shape;
        let at = |heads, tokens, dim| {
            let s = Strides::new(p.layout, heads, tokens, dim);
            [s.b as i64, s.h as i64, s.s as i64]
        };
        let [qb, qh, qs] = at(p.heads, p.q_len, p.head_dim);
        let [kb, kh, ks] = at(p.kv_heads, p.kv_len, p.head_dim);
        let [vb, vh, vs] = at(p.kv_heads, p.kv_len, p.head_dim_v);
        let [ob, oh, os] = at(p.heads, p.q_len, p.head_dim_v);
        let q = graph.tensor(Q, [b, h, q_len, d], [qb, qh, qs, 1], dtype)?;
        let k = graph.tensor(K, [b, kv, d, kv_len], [kb, kh, 1, ks], dtype)?; // transposed by its strides
        let v = graph.tensor(V, [b, kv, kv_len, dv], [vb, vh, vs, 1], dtype)?;
        let o = graph.tensor(O, [b, h, q_len, dv], [ob, oh, os, 1], dtype)?;
        let stats = graph.tensor(STATS, [b, h, q_len, 1], [h * q_len, q_len, 1, 1], F32)?;

        let product = graph.square(F32)?;
        graph.product(&q, &k, &product)?;
        let scale = graph.scalar(SCALE)?;
        let mut score = graph.square(F32)?;
        graph.pointwise(mode::MUL, &product, Some(&scale), None, &score, F32)?;
        if causal {
            score = graph.causal(score)?;
        }
        let weight = graph.softmax(&score, &stats, dtype)?;
        graph.product(&weight, &v, &o)?;
        Ok(graph)
    }

    /// -inf where the row's index is below the column's.
    fn causal(&mut self, score: Descriptor) -> Result<Descriptor, Diagnostic> {
        let (row, column) = (self.square(INT32)?, self.square(INT32)?);
        self.index(&score, &row, 2)?;
        self.index(&score, &column, 3)?;
        let keep = self.square(BOOLEAN)?;
        self.pointwise(mode::CMP_GE, &row, Some(&column), None, &keep, BOOLEAN)?;
        let (low, masked) = (self.scalar(LOW)?, self.square(F32)?);
        self.pointwise(mode::BINARY_SELECT, &score, Some(&low), Some(&keep), &masked, F32)?;
        Ok(masked)
    }

    /// Probabilities in `dtype`, and the lse into `stats`.
    fn softmax(&mut self, score: &Descriptor, stats: &Descriptor, dtype: i32) -> Result<Descriptor, Diagnostic> {
        const MAX: i32 = 3;
        const SUM: i32 = 0;
        let maximum = self.rows()?;
        self.reduce(MAX, score, &maximum)?;
        let shifted = self.square(F32)?;
        self.pointwise(mode::SUB, score, Some(&maximum), None, &shifted, F32)?;
        let power = self.square(F32)?;
        self.pointwise(mode::EXP, &shifted, None, None, &power, F32)?;
        let sum = self.rows()?;
        self.reduce(SUM, &power, &sum)?;
        let logarithm = self.rows()?;
        self.pointwise(mode::LOG, &sum, None, None, &logarithm, F32)?;
        self.pointwise(mode::ADD, &maximum, Some(&logarithm), None, stats, F32)?;
        let weight = self.square(dtype)?;
        self.pointwise(mode::DIV, &power, Some(&sum), None, &weight, F32)?;
        Ok(weight)
    }

    fn tensor(&self, uid: i64, dims: [i64; 4], strides: [i64; 4], dtype: i32) -> Result<Descriptor, Diagnostic> {
        self.any_tensor(uid, dims, strides, dtype, None)
    }

    /// `flag` is the attribute that makes it virtual (907) or by value (908).
    fn any_tensor(
        &self,
        uid: i64,
        dims: [i64; 4],
        strides: [i64; 4],
        dtype: i32,
        flag: Option<i32>,
    ) -> Result<Descriptor, Diagnostic> {
        let mut attributes = vec![
            (901, Value::Enum(1, dtype)),
            (902, Value::Ints(&dims)),
            (903, Value::Ints(&strides)),
            (906, Value::Ints(std::slice::from_ref(&uid))),
            (900, Value::Ints(&[16])),
        ];
        attributes.extend(flag.map(|name| (name, Value::Bool(true))));
        self.library.build(id::TENSOR, &attributes)
    }

    /// An intermediate of [batch, heads, q_len, kv_len].
    fn square(&mut self, dtype: i32) -> Result<Descriptor, Diagnostic> {
        self.virtuals += 1;
        let [_, h, q, kv] = self.shape;
        self.any_tensor(self.virtuals, self.shape, [h * q * kv, q * kv, kv, 1], dtype, Some(907))
    }

    /// An intermediate of [batch, heads, q_len, 1].
    fn rows(&mut self) -> Result<Descriptor, Diagnostic> {
        self.virtuals += 1;
        let [b, h, q, _] = self.shape;
        self.any_tensor(self.virtuals, [b, h, q, 1], [h * q, q, 1, 1], F32, Some(907))
    }

    fn scalar(&self, uid: i64) -> Result<Descriptor, Diagnostic> {
        self.any_tensor(uid, [1; 4], [1; 4], F32, Some(908))
    }

    fn product(&mut self, a: &Descriptor, b: &Descriptor, c: &Descriptor) -> Result<(), Diagnostic> {
        let matmul = self.library.build(id::MATMUL, &[(1500, Value::Enum(1, F32))])?;
        let operation = self.library.build(
            id::OPERATION_MATMUL,
            &[
                (1520, Value::Descriptors(&[a])),
                (1521, Value::Descriptors(&[b])),
                (1522, Value::Descriptors(&[c])),
                (1523, Value::Descriptors(&[&matmul])),
            ],
        )?;
        self.operations.push(operation);
        Ok(())
    }

    fn pointwise(
        &mut self,
        mode: i32,
        x: &Descriptor,
        b: Option<&Descriptor>,
        t: Option<&Descriptor>,
        y: &Descriptor,
        precision: i32,
    ) -> Result<(), Diagnostic> {
        let kind = self.library.build(id::POINTWISE, &[(0, Value::Enum(14, mode)), (1, Value::Enum(1, precision))])?;
        self.push_pointwise(&kind, x, b, t, y)
    }

    /// The index along an axis.
    fn index(&mut self, x: &Descriptor, y: &Descriptor, axis: i64) -> Result<(), Diagnostic> {
        let attributes = [(0, Value::Enum(14, mode::GEN_INDEX)), (1, Value::Enum(1, INT32)), (9, Value::Ints(&[axis]))];
        let kind = self.library.build(id::POINTWISE, &attributes)?;
        self.push_pointwise(&kind, x, None, None, y)
    }

    fn push_pointwise(
        &mut self,
        kind: &Descriptor,
        x: &Descriptor,
        b: Option<&Descriptor>,
        t: Option<&Descriptor>,
        y: &Descriptor,
    ) -> Result<(), Diagnostic> {
        let operation = self.library.descriptor(id::OPERATION_POINTWISE)?;
        let given = [(750, Some(kind)), (751, Some(x)), (752, b), (753, Some(y)), (758, t)];
        for (name, tensor) in given {
            if let Some(tensor) = tensor {
                operation.set(name, Value::Descriptors(&[tensor]))?;
            }
        }
        operation.finalize(id::OPERATION_POINTWISE)?;
        self.operations.push(operation);
        Ok(())
    }

    fn reduce(&mut self, operator: i32, x: &Descriptor, y: &Descriptor) -> Result<(), Diagnostic> {
        let kind =
            self.library.build(id::REDUCTION, &[(1600, Value::Enum(18, operator)), (1601, Value::Enum(1, F32))])?;
        let operation = self.library.build(
            id::OPERATION_REDUCTION,
            &[(1610, Value::Descriptors(&[x])), (1611, Value::Descriptors(&[y])), (1612, Value::Descriptors(&[&kind]))],
        )?;
        self.operations.push(operation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::cudnn::sdpa::*;
    use crate::backends::testing::spec;
    use crate::base::Layout;
    use crate::problem::ProblemSpec;

    #[test]
    fn the_graphs_operations_are_accepted_where_cudnn_is_installed() {
        let library = match Cudnn::get() {
            Ok(library) => library,
            Err(why) => return maskloom_testing::needs::missing("cudnn", &why.message),
        };
        for (causal, layout, count) in [(false, Layout::Bhsd, 10), (true, Layout::Bshd, 14)] {
            let spec = ProblemSpec { dtype: DType::BF16, layout, ..spec(2, 4, 2, 300, 300, 64) };
            let graph = Graph::of(library, &Problem::new(spec).expect("valid"), causal).expect("accepted");
            assert_eq!(graph.operations.len(), count);
        }
    }
}
