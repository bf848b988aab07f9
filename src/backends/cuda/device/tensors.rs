//! q, k, v and the output on the device: with the problem's strides, rows padded to whole 16-byte chunks, and inputs in
//! several copies so that no pass finds them in the L2 cache.
//!
//! Invariant: padding is zero in inputs, so that products over it vanish; the output is NaN before a checked run. Must
//! not know kernels.

use super::gpu::{Buffer, Gpu};
use crate::backends::{Inputs, Output};
use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor, Layout};
use crate::problem::Problem;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rayon::prelude::*;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, Weak};

/// Elements between neighbours along batch, head and token; along the head dimension it is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) struct Strides {
    pub b: usize,
    pub h: usize,
    pub s: usize,
}

/// Elements of a row in memory: 16-byte chunks of 8.
pub(crate) fn padded(dim: usize) -> usize {
    dim.next_multiple_of(8)
}

impl Strides {
    /// The strides of a tensor [batch, heads, tokens, dim] in memory order `layout`.
    pub(crate) fn new(layout: Layout, heads: usize, tokens: usize, dim: usize) -> Strides {
        let row = padded(dim);
        let (h, s) = match layout {
            Layout::Bhsd => (tokens * row, row),
            Layout::Bshd => (row, heads * row),
        };
        Strides { b: heads * tokens * row, h, s }
    }
}

/// The 16-bit patterns of a tensor of the problem's dtype. Errors: another dtype.
fn bits(tensor: &HostTensor) -> Result<&[u16], Diagnostic> {
    match tensor.data() {
        Data::BF16(values) => Ok(values.reinterpret_cast()),
        Data::F16(values) => Ok(values.reinterpret_cast()),
        other => {
            let message = format!("GPU kernels take bfloat16 or float16 inputs, not {}", other.dtype());
            Err(Diagnostic::error("input-dtype", message).hint("pass q, k and v in the problem's dtype"))
        }
    }
}

/// A host tensor [B, H, S, D] in the device's memory order.
pub(crate) fn arrange(tensor: &HostTensor, layout: Layout) -> Result<Cow<'_, [u16]>, Diagnostic> {
    let from = bits(tensor)?;
    let [_, heads, tokens, dim] = dims(tensor)?;
    let row = padded(dim);
    if row == dim && (layout == Layout::Bhsd || heads == 1 || tokens == 1) {
        return Ok(Cow::Borrowed(from));
    }
    let mut to = vec![0u16; from.len() / dim * row];
    to.par_chunks_mut(row).enumerate().for_each(|(at, to)| {
        let source = match layout {
            Layout::Bhsd => at,
            Layout::Bshd => {
                let (head, rest) = (at % heads, at / heads);
                (rest / tokens * heads + head) * tokens + rest % tokens
            }
        };
        to[..dim].copy_from_slice(&from[source * dim..][..dim]);
    });
    Ok(Cow::Owned(to))
}

/// The rows of head `index` of all [B * H], each padded.
pub(crate) fn head_rows(tensor: &HostTensor, index: usize) -> Result<Vec<u16>, Diagnostic> {
    let [_, _, tokens, dim] = dims(tensor)?;
    let from = &bits(tensor)?[index * tokens * dim..(index + 1) * tokens * dim];
    let mut to = vec![0u16; tokens * padded(dim)];
    to.chunks_exact_mut(padded(dim)).zip(from.chunks_exact(dim)).for_each(|(to, from)| to[..dim].copy_from_slice(from));
    Ok(to)
}

/// The inverse of [`arrange`].
fn gather(from: &[u16], [batch, heads, tokens, dim]: [usize; 4], layout: Layout) -> Vec<u16> {
    let strides = Strides::new(layout, heads, tokens, dim);
    let mut to = vec![0u16; batch * heads * tokens * dim];
    to.par_chunks_mut(dim).enumerate().for_each(|(at, to)| {
        let (token, rest) = (at % tokens, at / tokens);
        let source = rest / heads * strides.b + rest % heads * strides.h + token * strides.s;
        to.copy_from_slice(&from[source..][..dim]);
    });
    to
}

fn dims(tensor: &HostTensor) -> Result<[usize; 4], Diagnostic> {
    tensor.shape().try_into().map_err(|_| {
        let message = format!("inputs must have the shape [B, H, S, D], not {:?}", tensor.shape());
        Diagnostic::error("input-rank", message).hint("save them as [batch, heads, tokens, head_dim]")
    })
}

/// One copy of the inputs.
pub(crate) struct InputSet {
    /// [B, Hq, Q, E] by stride.
    pub q: Buffer,
    /// [B, Hkv, KV, E] by stride.
    pub k: Buffer,
    /// [B, Hkv, KV, Ev] by stride.
    pub v: Buffer,
}

impl InputSet {
    fn upload(gpu: &Arc<Gpu>, inputs: &Inputs, layout: Layout) -> Result<InputSet, Diagnostic> {
        let up = |tensor, what| gpu.upload(&arrange(tensor, layout)?, what);
        Ok(InputSet { q: up(&inputs.q, "q")?, k: up(&inputs.k, "k")?, v: up(&inputs.v, "v")? })
    }

    fn copy(&self, gpu: &Arc<Gpu>) -> Result<InputSet, Diagnostic> {
        let copy = |from| gpu.copy(from, "another copy of the inputs");
        Ok(InputSet { q: copy(&self.q)?, k: copy(&self.k)?, v: copy(&self.v)? })
    }

    fn bytes(&self) -> usize {
        self.q.bytes() + self.k.bytes() + self.v.bytes()
    }
}

/// Copies of the same inputs that passes take in turn.
pub(crate) struct Rotation {
    inputs: Inputs,
    layout: Layout,
    sets: Vec<InputSet>,
}

impl Rotation {
    /// Uploads the inputs, or finds what another backend of the race has uploaded.
    pub(crate) fn of(gpu: &Arc<Gpu>, inputs: &Inputs, layout: Layout) -> Result<Arc<Rotation>, Diagnostic> {
        let mut shared = gpu.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|known| known.strong_count() > 0);
        let of_these = |known: &Weak<dyn Any + Send + Sync>| known.upgrade()?.downcast::<Rotation>().ok();
        let known = shared.iter().filter_map(of_these).find(|rotation| rotation.is_of(inputs, layout));
        if let Some(rotation) = known {
            return Ok(rotation);
        }
        let first = InputSet::upload(gpu, inputs, layout)?;
        let (free, _) = gpu.memory()?;
        let count = copies(first.bytes(), gpu.limits().l2_bytes, free);
        let mut sets = vec![first];
        while sets.len() < count {
            sets.push(sets[0].copy(gpu)?);
        }
        let rotation = Arc::new(Rotation { inputs: inputs.clone(), layout, sets });
        let any: Arc<dyn Any + Send + Sync> = rotation.clone();
        shared.push(Arc::downgrade(&any));
        Ok(rotation)
    }

    fn is_of(&self, inputs: &Inputs, layout: Layout) -> bool {
        let pairs = [(&self.inputs.q, &inputs.q), (&self.inputs.k, &inputs.k), (&self.inputs.v, &inputs.v)];
        self.layout == layout && pairs.iter().all(|(a, b)| a.same_storage(b))
    }

    /// How many copies there are.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The copy for the pass of that number.
    pub(crate) fn set(&self, pass: usize) -> &InputSet {
        &self.sets[pass % self.sets.len()]
    }
}

/// How many copies it takes until one is out of the L2 cache again, within a quarter of the free memory.
fn copies(set_bytes: usize, l2_bytes: usize, free: usize) -> usize {
    const MOST: usize = 64;
    if set_bytes >= 3 * l2_bytes {
        return 1; // the end of a pass has evicted its beginning
    }
    let wanted = (3 * l2_bytes).div_ceil(set_bytes.max(1)) + 1;
    let affordable = 1 + free / 4 / set_bytes.max(1);
    wanted.min(affordable).min(MOST)
}

/// Where a backend writes.
pub(crate) struct Outputs {
    /// [B, Hq, Q, Ev] by stride.
    pub out: Buffer,
    /// [B, Hq, Q] F32.
    pub lse: Buffer,
    /// The same, if the rows' largest scores are requested and supported.
    pub max_scores: Option<Buffer>,
}

impl Outputs {
    /// Memory for the problem's output and lse, and for the rows' largest scores if the kernel writes them.
    pub(crate) fn alloc(gpu: &Arc<Gpu>, problem: &Problem, max_scores: bool) -> Result<Outputs, Diagnostic> {
        let rows = problem.batch * problem.heads * problem.q_len;
        let out = gpu.alloc(rows * padded(problem.head_dim_v) * 2, "the output")?;
        let max_scores = max_scores.then(|| gpu.alloc(rows * 4, "the rows' largest scores")).transpose()?;
        Ok(Outputs { out, lse: gpu.alloc(rows * 4, "the lse")?, max_scores })
    }

    /// NaN everywhere.
    pub(crate) fn poison(&self, gpu: &Gpu) -> Result<(), Diagnostic> {
        gpu.poison(&self.out)?;
        gpu.poison(&self.lse)?;
        self.max_scores.iter().try_for_each(|rows| gpu.poison(rows))
    }

    /// Copies everything to the host. Errors: all that went wrong on the device since it was last asked.
    pub(crate) fn download(&self, gpu: &Gpu, problem: &Problem, what: &str) -> Result<Output, Diagnostic> {
        let rows = |from: &Buffer| gpu.download::<f32>(from, problem.batch * problem.heads * problem.q_len, what);
        let (lse, max_scores) = (rows(&self.lse)?, self.max_scores.as_ref().map(rows).transpose()?);
        let raw: Vec<u16> = gpu.download(&self.out, self.out.bytes() / 2, what)?;
        output(problem, &raw, lse, max_scores)
    }
}

/// A tensor of the problem's dtype that a kernel left in memory.
pub(crate) fn tensor(problem: &Problem, raw: &[u16], shape: [usize; 4]) -> Result<HostTensor, Diagnostic> {
    let values = gather(raw, shape, problem.layout);
    let data = match problem.dtype {
        DType::F16 => Data::F16(values.into_iter().map(f16::from_bits).collect()),
        _ => Data::BF16(values.into_iter().map(bf16::from_bits).collect()),
    };
    HostTensor::new(shape, data)
}

/// A kernel's results in memory, as tensors.
pub(crate) fn output(
    problem: &Problem,
    raw: &[u16],
    lse: Vec<f32>,
    max_scores: Option<Vec<f32>>,
) -> Result<Output, Diagnostic> {
    let shape = [problem.batch, problem.heads, problem.q_len, problem.head_dim_v];
    let rows = |values| HostTensor::new(&shape[..3], Data::F32(values));
    let max_scores = max_scores.map(rows).transpose()?;
    Ok(Output { out: tensor(problem, raw, shape)?, lse: Some(rows(lse)?), max_scores })
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::device::tensors::*;

    fn tensor(shape: [usize; 4]) -> HostTensor {
        let count: usize = shape.iter().product();
        HostTensor::new(shape, Data::BF16((0..count).map(|i| bf16::from_bits(i as u16 + 1)).collect())).unwrap()
    }

    #[test]
    fn every_element_lies_where_the_strides_say_and_comes_back() {
        for shape in [[2, 3, 5, 8], [2, 3, 5, 20], [1, 1, 7, 16], [3, 4, 1, 9]] {
            for layout in [Layout::Bhsd, Layout::Bshd] {
                let host = tensor(shape);
                let device = arrange(&host, layout).unwrap();
                let [batch, heads, tokens, dim] = shape;
                let strides = Strides::new(layout, heads, tokens, dim);
                assert_eq!(device.len(), batch * strides.b);
                assert_eq!(device.iter().filter(|x| **x != 0).count(), host.numel(), "padding is zero");
                let from = bits(&host).unwrap();
                for (at, wanted) in from.iter().enumerate() {
                    let (d, s, h) = (at % dim, at / dim % tokens, at / dim / tokens % heads);
                    let b = at / dim / tokens / heads;
                    assert_eq!(device[b * strides.b + h * strides.h + s * strides.s + d], *wanted);
                }
                assert_eq!(gather(&device, shape, layout), from);
            }
        }
        let float = HostTensor::new([1, 1, 1, 8], Data::F32(vec![0.0; 8])).unwrap();
        assert_eq!(arrange(&float, Layout::Bhsd).unwrap_err().code, "input-dtype");
    }

    #[test]
    fn a_heads_rows_are_its_own_and_padded() {
        let host = tensor([2, 3, 5, 20]);
        let rows = head_rows(&host, 4).unwrap();
        assert_eq!(rows.len(), 5 * 24);
        let first = 4 * 5 * 20;
        assert_eq!(rows[24..44], bits(&host).unwrap()[first + 20..first + 40]);
        assert_eq!(rows[20..24], [0; 4]);
    }

    #[test]
    fn copies_cover_the_cache_and_stay_within_memory() {
        let mib = 1 << 20;
        assert_eq!(copies(400 * mib, 50 * mib, 100_000 * mib), 1);
        assert_eq!(copies(50 * mib, 50 * mib, 100_000 * mib), 4);
        assert_eq!(copies(mib, 50 * mib, 100_000 * mib), 64);
        assert_eq!(copies(50 * mib, 50 * mib, 400 * mib), 3);
        assert_eq!(copies(50 * mib, 50 * mib, 0), 1);
    }
}
