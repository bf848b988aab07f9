//! Reads heads from a capture: ranges of its tensors as float32.
//!
//! Invariant: a head costs the memory of its own tensors. A shape that differs from the metadata is reported with both
//! shapes.

use super::{Call, Capture};
use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor};
use crate::quality::head::{Head, Own};

/// Most query heads of a call.
const MOST_HEADS: usize = 1 << 16;
/// Largest own mask that is read, in cells.
const MOST_CELLS: usize = 1 << 28;

impl Capture {
    /// Reports tensors of a call that differ from its description.
    pub(super) fn check(&self, call: &Call) -> Result<(), Diagnostic> {
        let i = &call.info;
        let zero = [i.heads, i.kv_heads, i.q_len, i.kv_len, i.head_dim, i.batch].contains(&0);
        if zero || !i.heads.is_multiple_of(i.kv_heads) || i.heads > MOST_HEADS {
            let message = format!(
                "{}: {} has {} heads, {} kv heads, {} x {} tokens of {}: this is not a valid shape of attention",
                self.name(),
                call.key,
                i.heads,
                i.kv_heads,
                i.q_len,
                i.kv_len,
                i.head_dim
            );
            return Err(Diagnostic::error("capture-shape", message).hint("capture the model again"));
        }
        if i.scale.is_some_and(|scale| !scale.is_finite()) {
            let message = format!("{}: the scale of {} is not finite", self.name(), call.key);
            return Err(Diagnostic::error("capture-shape", message).hint("capture the model again"));
        }
        if !i.qkv {
            return Ok(());
        }
        if let Some(captured) = &i.captured_heads {
            let mut seen = std::collections::BTreeSet::new();
            if let Some(head) = captured.iter().find(|h| **h >= i.heads || !seen.insert(**h)) {
                let which = if *head < i.heads { "twice".into() } else { format!("of {} heads", i.heads) };
                let message = format!("{}: {} lists head {head} {which}", self.name(), call.key);
                return Err(Diagnostic::error("capture-shape", message).hint("capture the model again"));
            }
        }
        let (stored_q, stored_kv) = i.captured_heads.as_ref().map_or((i.heads, i.kv_heads), |h| (h.len(), h.len()));
        self.shape(call, "q", &[i.batch, stored_q, i.q_len, i.head_dim])?;
        self.shape(call, "k", &[i.batch, stored_kv, i.kv_len, i.head_dim])?;
        // v may have another head_dim
        match self.tensors.about(&format!("{}.v", call.key)) {
            Some((_, shape)) if shape.len() == 4 && shape[3] > 0 => {
                self.shape(call, "v", &[i.batch, stored_kv, i.kv_len, shape[3]])
            }
            Some(_) => self.shape(call, "v", &[i.batch, stored_kv, i.kv_len, i.head_dim]),
            None => Ok(()),
        }
    }

    fn shape(&self, call: &Call, letter: &str, wanted: &[usize]) -> Result<(), Diagnostic> {
        let tensor = format!("{}.{letter}", call.key);
        match self.tensors.about(&tensor) {
            // files of version 1 do not state the batch
            Some((_, shape)) if shape.len() == 4 && shape[0] > 0 && shape[1..] == wanted[1..] => Ok(()),
            Some((_, shape)) => {
                let message = format!("{}: {tensor} is {shape:?}, where its description says {wanted:?}", self.name());
                Err(Diagnostic::error("capture-shape", message)
                    .hint("capture the model again; the shape must be [batch, heads, tokens, head_dim]"))
            }
            None if self.tensors.names().contains(&tensor) => {
                let message = format!("{}: {tensor} has an unsupported element type", self.name());
                Err(Diagnostic::error("capture-dtype", message)
                    .hint("float64, float32, float16 and bfloat16 are supported; capture before values are quantised"))
            }
            None => {
                let message = format!("{}: {tensor} is missing, but the capture lists it", self.name());
                Err(Diagnostic::error("capture-shape", message).hint("was the capture cut off? capture again"))
            }
        }
    }

    /// Batch entries of a call.
    pub fn batch(&self, call: &Call) -> usize {
        self.tensors.about(&format!("{}.q", call.key)).map_or(call.info.batch, |(_, shape)| shape[0])
    }

    /// A head's q, k and (if present) v, with the model's own changes of its scores. Errors: a missing head, unreadable
    /// values.
    pub fn head(&self, call: &Call, batch: usize, head: usize) -> Result<Head, Diagnostic> {
        let i = &call.info;
        let place = match &i.captured_heads {
            None => (head < i.heads).then_some((head, head / (i.heads / i.kv_heads))),
            Some(captured) => captured.iter().position(|h| *h == head).map(|at| (at, at)),
        };
        let Some((q_head, kv_head)) = place.filter(|_| i.qkv && batch < self.batch(call)) else {
            let there = i.full_heads().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let message =
                format!("{} holds no q and k of head {head}, batch entry {batch}, of {}", self.name(), call.key);
            let hint = if there.is_empty() {
                "it has statistics only; capture with --qkv for full heads".to_string()
            } else {
                format!("heads with q and k: {there}")
            };
            return Err(Diagnostic::error("capture-head", message).hint(hint));
        };
        let one = |letter: &str, at: usize| self.one_head(&format!("{}.{letter}", call.key), batch, at);
        let q = one("q", q_head)?.0;
        let k = one("k", kv_head)?.0;
        let v = match self.tensors.about(&format!("{}.v", call.key)) {
            Some(_) => Some(one("v", kv_head)?.0),
            None => None,
        };
        let mut found = Head::new((i.q_len, i.kv_len), i.head_dim, q, k, v)?;
        found.scale = i.scale.unwrap_or(found.scale);
        // 0 means none, as in FlashAttention
        found.softcap = i.softcap.filter(|cap| *cap > 0.0);
        found.own = self.own(call, batch, head, q_head)?;
        found.sink = self.sink(call, head, q_head)?;
        found.place = (batch, head);
        Ok(found)
    }

    /// One head of a 4-D tensor, and its last extents.
    fn one_head(&self, tensor: &str, batch: usize, head: usize) -> Result<(Vec<f32>, [usize; 2]), Diagnostic> {
        let (dtype, shape) = self.tensors.about(tensor).filter(|(_, s)| s.len() == 4).ok_or_else(|| {
            let message = format!("{}: {tensor} is missing or not [batch, heads, tokens, head_dim]", self.name());
            Diagnostic::error("capture-shape", message).hint("capture the model again")
        })?;
        let count = shape[2] * shape[3];
        let b = batch.min(shape[0] - 1);
        Ok((self.floats(tensor, dtype, (b * shape[1] + head) * count, count)?, [shape[2], shape[3]]))
    }

    /// A stretch of a tensor as float32.
    pub(super) fn floats(&self, tensor: &str, dtype: DType, from: usize, count: usize) -> Result<Vec<f32>, Diagnostic> {
        let bytes = self.tensors.bytes(tensor, from, count)?;
        Ok(match Data::from_le_bytes(dtype, &bytes)? {
            Data::F32(values) => values,
            other => HostTensor::vector(other).to_f32_vec(),
        })
    }

    fn own(&self, call: &Call, batch: usize, head: usize, stored: usize) -> Result<Own, Diagnostic> {
        let i = &call.info;
        let Some(tensor) = &i.mask_tensor else { return Ok(if i.is_causal { Own::Causal } else { Own::None }) };
        let about = self.tensors.about(tensor);
        let fits = |s: &[usize]| s.len() == 4 && s[0] > 0 && s[1] > 0 && s[2..] == [i.q_len, i.kv_len];
        let Some((dtype, shape)) = about.filter(|(_, s)| fits(s)) else {
            let message = format!("{}: the model's own mask {tensor} is not {} x {}", self.name(), i.q_len, i.kv_len);
            return Err(Diagnostic::error("capture-shape", message).hint("capture the model again"));
        };
        let cells = i.q_len * i.kv_len;
        if cells > MOST_CELLS {
            let message =
                format!("{}: the model's own mask {tensor} has {cells} cells a head, too many to hold", self.name());
            return Err(Diagnostic::error("capture-mask-size", message)
                .hint("capture without the dense mask, and draw it in the document"));
        }
        let h = if shape[1] == i.heads { head } else { stored.min(shape[1] - 1) };
        let from = (batch.min(shape[0] - 1) * shape[1] + h) * cells;
        if dtype == DType::Bool {
            let mut keep = self.tensors.bytes(tensor, from, cells)?;
            if i.is_causal {
                keep.iter_mut().enumerate().filter(|(at, _)| at % i.kv_len > at / i.kv_len).for_each(|(_, k)| *k = 0);
            }
            return Ok(Own::Keep(keep.into()));
        }
        Ok(Own::Bias(self.floats(tensor, dtype, from, cells)?.into()))
    }

    fn sink(&self, call: &Call, head: usize, stored: usize) -> Result<Option<f32>, Diagnostic> {
        let tensor = format!("{}.sinks", call.key);
        let Some((dtype, shape)) = self.tensors.about(&tensor) else { return Ok(None) };
        let count: usize = shape.iter().product();
        let at = if count == call.info.heads { head } else { stored };
        if at >= count {
            return Ok(None);
        }
        Ok(self.floats(&tensor, dtype, at, 1)?.first().copied())
    }
}
