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

    /// Of a tensor that no kernel could read either: its index would wrap there without a word.
    fn beyond_32_bits(mut self) -> Self {
        self.message.push_str(
            "; compiled FlexAttention indexes a tensor in 32 bits, which wrap from 2^31 elements on, and computes another mask without a word",
        );
        self.hint(
            "keep the table as bits or block lists (BlockMask.from_kv_blocks, Maskloom's export), or read a flat table with an int64 offset",
        )
    }
}

impl std::fmt::Display for HostError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}

/// Bytes that host tensors of one trace may still take, all together, and the time that making and reading them may take.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    left: Cell<u64>,
    /// Nanoseconds that are left, and that were spent.
    time: Cell<u64>,
    spent: Cell<u64>,
}

/// Nanoseconds that an element of a result takes at least, in a build without optimisation. What costs more says so by
/// [`Budget::work`]: the time of a text is that of its prices.
const MADE: u64 = 10;

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self::within(bytes, 0)
    }

    /// The rest of `bytes` after the used ones.
    pub fn within(bytes: u64, used: u64) -> Self {
        let left = Cell::new(bytes.saturating_sub(used));
        Self { total: bytes, left, time: Cell::new(u64::MAX), spent: Cell::new(0) }
    }

    /// With so much time.
    pub fn nanoseconds(self, time: u64) -> Self {
        Self { time: Cell::new(time), ..self }
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// The time of what was done, by its prices, in nanoseconds.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Takes the bytes of a tensor of `shape`, and returns its number of elements. Errors, allocating nothing, when the
    /// number overflows or the bytes are not there.
    pub fn charge(&self, shape: &[usize], dtype: DType) -> HostResult<usize> {
        check_shape(shape)?;
        let numel = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let bytes = numel.and_then(|n| n.checked_mul(dtype.size().max(2)));
        match (numel, bytes) {
            (Some(numel), Some(bytes)) if self.take(bytes as u64) => {
                self.work((numel as u64).saturating_mul(MADE))?;
                Ok(numel)
            }
            _ => {
                let refused = self.refuse(&format!("a tensor of shape {} and dtype {dtype}", shape_text(shape)));
                Err(if numel.is_some_and(|n| n > i32::MAX as usize) { refused.beyond_32_bits() } else { refused })
            }
        }
    }

    /// Takes the time of work that is not that of a result's elements, in nanoseconds of a build without optimisation.
    pub fn work(&self, nanoseconds: u64) -> HostResult<()> {
        let Some(left) = self.time.get().checked_sub(nanoseconds) else {
            return Err(self.refuse_time());
        };
        self.time.set(left);
        self.spent.set(self.spent.get().saturating_add(nanoseconds));
        Ok(())
    }

    /// The same, of so many elements.
    pub fn work_each(&self, elements: usize, nanoseconds: u64) -> HostResult<()> {
        self.work((elements as u64).saturating_mul(nanoseconds))
    }

    fn take(&self, bytes: u64) -> bool {
        let left = self.left.get().checked_sub(bytes);
        left.inspect(|left| self.left.set(*left)).is_some()
    }

    fn refuse_time(&self) -> HostError {
        let message = "this operation exceeds the limit of one trace: it takes longer than a text may".to_string();
        HostError { code: "too-slow", message, hint: None }
            .hint("compute it outside and pass it as a captured tensor, or write it as a formula of the indices")
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
