//! Errors of host operations, and their memory budget.
//!
//! Invariant: no host operation allocates an output before [`Budget::charge`] has accepted it. Must not know spans.

use crate::base::{DType, HostTensor};
use std::cell::Cell;

/// The refusal of a host operation, in PyTorch's words if it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// Stable kebab-case code for the diagnostic.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

/// A host tensor or a refusal.
pub type HostResult<T = HostTensor> = Result<T, HostError>;

impl HostError {
    /// An error that PyTorch would raise as well.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: "tensor-op", message: message.into(), hint: None }
    }

    /// Shapes that do not fit.
    pub fn shape(message: impl Into<String>) -> Self {
        Self { code: "tensor-shape", message: message.into(), hint: None }
    }

    /// An element type that does not fit.
    pub fn dtype(message: impl Into<String>) -> Self {
        Self { code: "tensor-dtype", message: message.into(), hint: None }
    }

    /// An index out of range.
    pub fn index(message: impl Into<String>) -> Self {
        Self { code: "index-out-of-range", message: message.into(), hint: None }
    }

    /// PyTorch can do it, this interpreter does not.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { code: "unsupported-tensor-op", message: message.into(), hint: None }
    }

    /// Adds the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for HostError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}

/// Bytes that host tensors of one trace may still take, all together; work that outgrows its output is charged too.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    left: Cell<u64>,
}

/// Elementary operations that cost as much as one byte.
const WORK_PER_BYTE: u64 = 4;

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self { total: bytes, left: Cell::new(bytes) }
    }

    /// The rest of `bytes` after the used ones.
    pub fn within(bytes: u64, used: u64) -> Self {
        Self { total: bytes, left: Cell::new(bytes.saturating_sub(used)) }
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes the bytes of a tensor of `shape`, and returns its number of elements. Errors, allocating nothing, when the
    /// number overflows or the bytes are not there.
    pub fn charge(&self, shape: &[usize], dtype: DType) -> HostResult<usize> {
        check_shape(shape)?;
        let numel = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let bytes = numel.and_then(|n| n.checked_mul(dtype.size().max(2)));
        match (numel, bytes) {
            (Some(numel), Some(bytes)) if self.take(bytes as u64) => Ok(numel),
            _ => Err(self.refuse(&format!("a tensor of shape {} and dtype {dtype}", shape_text(shape)))),
        }
    }

    /// Takes the cost of `operations` elementary steps that make no output of that size.
    pub fn work(&self, operations: u64) -> HostResult<()> {
        if self.take(operations / WORK_PER_BYTE) { Ok(()) } else { Err(self.refuse("this operation")) }
    }

    fn take(&self, bytes: u64) -> bool {
        let left = self.left.get().checked_sub(bytes);
        left.inspect(|left| self.left.set(*left)).is_some()
    }

    pub(super) fn refuse(&self, what: &str) -> HostError {
        let (budget, used) = (self.total >> 20, (self.total - self.left()) >> 20);
        let message = format!(
            "{what} exceeds the limit of one trace ({budget} MiB of host tensors in all, of which {used} are used)"
        );
        HostError { code: "tensor-too-large", message, hint: None }
            .hint("compute it outside and pass it as a captured tensor, or write it as a formula of the indices")
    }
}

/// Most dimensions of a tensor, as in PyTorch.
pub(super) const MAX_RANK: usize = 64;

/// Refuses shapes whose extents cannot be multiplied safely, even if one of them is 0.
pub(super) fn check_shape(shape: &[usize]) -> HostResult<()> {
    if shape.len() > MAX_RANK {
        return Err(HostError::shape(format!("a tensor has at most {MAX_RANK} dimensions, not {}", shape.len())));
    }
    let product = shape.iter().try_fold(1usize, |n, d| n.checked_mul((*d).max(1)));
    if product.is_none_or(|n| n > usize::MAX >> 4) {
        return Err(HostError {
            code: "tensor-too-large",
            ..HostError::shape(format!("a tensor of shape {shape:?} does not fit in memory"))
        });
    }
    Ok(())
}

/// `[2, 3]`, as PyTorch prints shapes.
pub(super) fn shape_text(shape: &[usize]) -> String {
    format!("{shape:?}")
}
