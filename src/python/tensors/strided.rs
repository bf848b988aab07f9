//! Views: the mapping of a shape onto flat storage.
//!
//! Invariant: every offset of a [`Strided`] is inside its storage. Must not touch elements except by copying them out.

use super::error::{Budget, HostError, HostResult, shape_text};
use crate::base::HostTensor;
use crate::base::tensor::Data;

/// Shape, strides (in elements) and first offset of a view into flat storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Extent of each dimension.
    pub shape: Vec<usize>,
    /// Elements from one index of a dimension to the next.
    pub strides: Vec<isize>,
    /// Offset of the first element.
    pub offset: usize,
}

impl Strided {
    /// Row-major contiguous storage of `shape`.
    pub fn contiguous(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), strides: contiguous_strides(shape), offset: 0 }
    }

    /// Number of elements. The shape of a view never overflows: expanded views are charged before they are read.
    pub fn numel(&self) -> usize {
        self.shape.iter().fold(1usize, |n, d| n.saturating_mul(*d))
    }

    /// Whether it is row-major without gaps (extents of 1 do not matter).
    pub fn is_contiguous(&self) -> bool {
        let want = contiguous_strides(&self.shape);
        self.numel() == 0 || (0..self.shape.len()).all(|d| self.shape[d] == 1 || self.strides[d] == want[d])
    }

    /// Whether it is all of a storage of `len` elements, in order.
    pub fn is_whole(&self, len: usize) -> bool {
        self.offset == 0 && self.numel() == len && self.is_contiguous()
    }

    /// A dimension, negatives counted from the end. `slack` is 1 if one past the end is allowed.
    pub fn dim(&self, dim: i64, slack: usize) -> HostResult<usize> {
        wrap_dim(dim, self.shape.len() + slack)
    }

    /// One index of a dimension, which vanishes.
    pub fn select(&self, dim: usize, index: i64) -> HostResult<Self> {
        let size = self.shape[dim];
        let wrapped = if index < 0 { index + size as i64 } else { index };
        if wrapped < 0 || wrapped >= size as i64 {
            let message = format!("index {index} is out of bounds for dimension {dim} with size {size}");
            return Err(HostError::index(message));
        }
        let mut out = self.clone();
        out.offset = out.offset.wrapping_add_signed(out.strides[dim] * wrapped as isize);
        out.shape.remove(dim);
        out.strides.remove(dim);
        Ok(out)
    }

    /// `start:stop:step` of a dimension, with Python's clamping. Errors when the step is not positive.
    pub fn slice(&self, dim: usize, start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> HostResult<Self> {
        let step = step.unwrap_or(1);
        if step <= 0 {
            return Err(HostError::index("step must be greater than zero").hint("reverse with `.flip(0)`"));
        }
        let size = self.shape[dim] as i64;
        let clamp = |i: i64| if i < 0 { i.saturating_add(size).max(0) } else { i.min(size) };
        let start = clamp(start.unwrap_or(0));
        let stop = clamp(stop.unwrap_or(size)).max(start);
        let mut out = self.clone();
        out.shape[dim] = ((stop - start) as u64).div_ceil(step as u64) as usize;
        if out.shape[dim] > 0 {
            out.offset = out.offset.wrapping_add_signed(out.strides[dim] * start as isize);
        }
        out.strides[dim] = if out.shape[dim] > 1 { out.strides[dim] * step as isize } else { out.strides[dim] };
        Ok(out)
    }

    /// A new dimension of extent 1 before `dim`.
    pub fn unsqueeze(&self, dim: i64) -> HostResult<Self> {
        let dim = self.dim(dim, 1)?;
        let mut out = self.clone();
        out.shape.insert(dim, 1);
        out.strides.insert(dim, 1);
        Ok(out)
    }

    /// Without the dimensions of extent 1: all of them, or those listed.
    pub fn squeeze(&self, dims: Option<&[i64]>) -> HostResult<Self> {
        let dims = dims.map(|dims| dims.iter().map(|d| self.dim(*d, 0)).collect::<HostResult<Vec<_>>>()).transpose()?;
        let keep = |d: usize| self.shape[d] != 1 || dims.as_ref().is_some_and(|dims| !dims.contains(&d));
        let kept: Vec<usize> = (0..self.shape.len()).filter(|d| keep(*d)).collect();
        Ok(self.take_dims(&kept))
    }

    fn take_dims(&self, dims: &[usize]) -> Self {
        Self {
            shape: dims.iter().map(|d| self.shape[*d]).collect(),
            strides: dims.iter().map(|d| self.strides[*d]).collect(),
            offset: self.offset,
        }
    }

    /// Dimensions in another order.
    pub fn permute(&self, dims: &[i64]) -> HostResult<Self> {
        if dims.len() != self.shape.len() {
            let message = format!(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired \
                 ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
                self.shape.len(),
                dims.len()
            );
            return Err(HostError::shape(message));
        }
        let order = dims.iter().map(|d| self.dim(*d, 0)).collect::<HostResult<Vec<_>>>()?;
        if (0..order.len()).any(|d| !order.contains(&d)) {
            return Err(HostError::shape("permute(): duplicate dims are not allowed."));
        }
        Ok(self.take_dims(&order))
    }

    /// Two dimensions exchanged. A tensor of no dimensions stays as it is.
    pub fn transpose(&self, a: i64, b: i64) -> HostResult<Self> {
        let (a, b) = (wrap_dim(a, self.shape.len().max(1))?, wrap_dim(b, self.shape.len().max(1))?);
        let mut order: Vec<usize> = (0..self.shape.len()).collect();
        if !order.is_empty() {
            order.swap(a, b);
        }
        Ok(self.take_dims(&order))
    }

    /// One dimension moved to another place.
    pub fn movedim(&self, from: i64, to: i64) -> HostResult<Self> {
        let (from, to) = (self.dim(from, 0)?, self.dim(to, 0)?);
        let mut order: Vec<usize> = (0..self.shape.len()).filter(|d| *d != from).collect();
        order.insert(to, from);
        Ok(self.take_dims(&order))
    }

    /// Extents of 1 repeated without copying; -1 keeps an extent.
    pub fn expand(&self, sizes: &[i64]) -> HostResult<Self> {
        let (have, want) = (self.shape.len(), sizes.len());
        if want < have {
            let message = format!(
                "expand(torch.FloatTensor{{{}}}, size={sizes:?}): the number of sizes provided ({want}) must be greater or \
                 equal to the number of dimensions in the tensor ({have})",
                shape_text(&self.shape)
            );
            return Err(HostError::shape(message));
        }
        let lead = want - have;
        let mut out = Self { shape: Vec::with_capacity(want), strides: Vec::with_capacity(want), offset: self.offset };
        for (d, &size) in sizes.iter().enumerate() {
            let own = d.checked_sub(lead).map(|d| (self.shape[d], self.strides[d]));
            let (extent, stride) = match (own, size) {
                (Some((extent, stride)), -1) => (extent, stride),
                (Some((extent, stride)), n) if n >= 0 && n as usize == extent => (extent, stride),
                (Some((1, _)), n) if n >= 0 => (n as usize, 0),
                (None, n) if n >= 0 => (n as usize, 0),
                (Some((extent, _)), n) => {
                    let message = format!(
                        "The expanded size of the tensor ({n}) must match the existing size ({extent}) at non-singleton \
                         dimension {d}.  Target sizes: {sizes:?}.  Tensor sizes: {}",
                        shape_text(&self.shape)
                    );
                    return Err(HostError::shape(message));
                }
                (None, n) => {
                    let message = format!(
                        "expand: the expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {d}"
                    );
                    return Err(HostError::shape(message));
                }
            };
            out.shape.push(extent);
            out.strides.push(stride);
        }
        Ok(out)
    }

    /// The same elements in another shape without copying (`.view`), or None when only a copy can do it.
    pub fn view(&self, shape: &[usize]) -> Option<Self> {
        if self.numel() == 0 || self.is_contiguous() {
            let strides = contiguous_strides(shape);
            return Some(Self { shape: shape.to_vec(), strides, offset: self.offset });
        }
        // Walk runs of dimensions that are contiguous among themselves, each of which splits freely.
        let mut strides = vec![0isize; shape.len()];
        let mut next = shape.len();
        let mut run = 1usize;
        let mut base = *self.strides.last()?;
        for d in (0..self.shape.len()).rev() {
            run *= self.shape[d];
            let ends = d == 0 || (self.shape[d - 1] != 1 && self.strides[d - 1] != run as isize * base);
            if !ends {
                continue;
            }
            let mut filled = 1usize;
            while next > 0 && (filled < run || shape[next - 1] == 1) {
                next -= 1;
                strides[next] = filled as isize * base;
                filled *= shape[next];
            }
            if filled != run {
                return None;
            }
            if d > 0 {
                base = self.strides[d - 1];
                run = 1;
            }
        }
        (next == 0).then(|| Self { shape: shape.to_vec(), strides, offset: self.offset })
    }

    /// The diagonal of two dimensions as a new last dimension.
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> HostResult<Self> {
        let (a, b) = (self.dim(dim1, 0)?, self.dim(dim2, 0)?);
        if a == b {
            return Err(HostError::shape("diagonal dimensions cannot be identical"));
        }
        let (rows, columns) = (self.shape[a] as i64, self.shape[b] as i64);
        let length =
            if offset >= 0 { rows.min(columns - offset) } else { columns.min(rows.saturating_add(offset)) }.max(0);
        let kept: Vec<usize> = (0..self.shape.len()).filter(|d| *d != a && *d != b).collect();
        let mut out = self.take_dims(&kept);
        out.shape.push(length as usize);
        out.strides.push(self.strides[a] + self.strides[b]);
        if length > 0 {
            let (stride, steps) = if offset >= 0 { (self.strides[b], offset) } else { (self.strides[a], -offset) };
            out.offset = out.offset.wrapping_add_signed(stride * steps as isize);
        }
        Ok(out)
    }

    /// Windows of `size` along a dimension, `step` apart, as a new last dimension.
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> HostResult<Self> {
        let dim = self.dim(dim, 0)?;
        let extent = self.shape[dim] as i64;
        if size < 0 || size > extent {
            return Err(HostError::shape(format!(
                "maximum size for tensor at dimension {dim} is {extent} but size is {size}"
            )));
        }
        if step <= 0 {
            return Err(HostError::shape(format!("step is {step} but must be > 0")));
        }
        let mut out = self.clone();
        out.shape[dim] = ((extent - size) / step + 1) as usize;
        out.shape.push(size as usize);
        out.strides.push(self.strides[dim]);
        out.strides[dim] = self.strides[dim].saturating_mul(step as isize);
        Ok(out)
    }

    /// Walks over all storage offsets in row-major order of the view.
    pub fn walk(&self) -> Walk {
        Walk::new(&self.shape, &self.strides, self.offset)
    }

    /// Copies the view out of its storage.
    pub fn read(&self, storage: &HostTensor, budget: &Budget) -> HostResult {
        if self.is_whole(storage.numel()) {
            return storage.reshaped(self.shape.clone()).map_err(|d| HostError::shape(d.message));
        }
        let numel = budget.charge(&self.shape, storage.dtype())?;
        let mut walk = self.walk();
        finish(&self.shape, copy_out(storage.data(), (0..numel).map(|_| walk.next())))
    }
}

/// Elements at `offsets`, in order.
pub(super) fn copy_out(data: &Data, offsets: impl Iterator<Item = usize>) -> Data {
    match data {
        Data::Bool(v) => Data::Bool(offsets.map(|i| v[i]).collect()),
        Data::U8(v) => Data::U8(offsets.map(|i| v[i]).collect()),
        Data::I8(v) => Data::I8(offsets.map(|i| v[i]).collect()),
        Data::I16(v) => Data::I16(offsets.map(|i| v[i]).collect()),
        Data::I32(v) => Data::I32(offsets.map(|i| v[i]).collect()),
        Data::I64(v) => Data::I64(offsets.map(|i| v[i]).collect()),
        Data::F16(v) => Data::F16(offsets.map(|i| v[i]).collect()),
        Data::BF16(v) => Data::BF16(offsets.map(|i| v[i]).collect()),
        Data::F32(v) => Data::F32(offsets.map(|i| v[i]).collect()),
        Data::F64(v) => Data::F64(offsets.map(|i| v[i]).collect()),
    }
}

/// Writes the elements of `values` (same dtype) at `offsets`, in order.
pub(super) fn copy_in(
    data: &mut Data,
    offsets: impl Iterator<Item = usize>,
    values: &Data,
    from: impl FnMut() -> usize,
) {
    let mut from = from;
    macro_rules! put {
        ($($variant:ident)*) => {
            match (data, values) {
                $((Data::$variant(to), Data::$variant(v)) => offsets.for_each(|i| to[i] = v[from()]),)*
                _ => debug_assert!(false, "values are cast before they are written"),
            }
        };
    }
    put!(Bool U8 I8 I16 I32 I64 F16 BF16 F32 F64);
}

/// A tensor of `shape` over data that was built to fit.
pub(super) fn finish(shape: &[usize], data: Data) -> HostResult {
    HostTensor::new(shape, data).map_err(|d| HostError::shape(d.message))
}

/// Row-major strides.
pub(super) fn contiguous_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].saturating_mul(shape[d].max(1) as isize);
    }
    strides
}

/// A dimension in `0..rank`, negatives counted from the end.
pub(super) fn wrap_dim(dim: i64, rank: usize) -> HostResult<usize> {
    let n = rank as i64;
    if dim < -n || dim >= n {
        let message = match rank {
            0 => format!("Dimension specified as {dim} but tensor has no dimensions"),
            _ => format!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -n, n - 1),
        };
        return Err(HostError { code: "index-out-of-range", message, hint: None });
    }
    Ok(if dim < 0 { dim + n } else { dim } as usize)
}

/// An odometer over the offsets of a view. Past the end it starts again.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Extents and strides of the dimensions around the innermost one, and the place in each.
    outer: Vec<(usize, isize)>,
    at: Vec<usize>,
    /// The innermost dimension: what most steps are along.
    inner: (usize, isize),
    /// Steps that are left in it.
    left: usize,
    offset: usize,
}

impl Walk {
    /// Over `shape` with `strides` from `offset`.
    pub fn new(shape: &[usize], strides: &[isize], offset: usize) -> Self {
        // Neighbours that are contiguous to one another are one longer dimension: fewer carries.
        let mut outer: Vec<(usize, isize)> = Vec::new();
        for (&n, &s) in shape.iter().zip(strides).filter(|(n, _)| **n != 1) {
            match outer.last_mut() {
                Some((extent, stride)) if *stride == s.saturating_mul(n as isize) => {
                    (*extent, *stride) = (extent.saturating_mul(n), s);
                }
                _ => outer.push((n, s)),
            }
        }
        let inner = outer.pop().unwrap_or((1, 0));
        Self { at: vec![0; outer.len()], outer, inner, left: inner.0.saturating_sub(1), offset }
    }

    /// The current offset; then one step on.
    #[inline]
    #[allow(clippy::should_implement_trait)] // endless: the caller counts
    pub fn next(&mut self) -> usize {
        let now = self.offset;
        if self.left > 0 {
            self.left -= 1;
            self.offset = now.wrapping_add_signed(self.inner.1);
        } else {
            self.carry();
        }
        now
    }

    /// From the last element of the innermost dimension to the first one of the next.
    fn carry(&mut self) {
        let back = |(extent, stride): (usize, isize)| -stride.wrapping_mul(extent as isize - 1);
        self.left = self.inner.0.saturating_sub(1);
        self.offset = self.offset.wrapping_add_signed(back(self.inner));
        for (at, dimension) in self.at.iter_mut().zip(&self.outer).rev() {
            *at += 1;
            if *at < dimension.0 {
                self.offset = self.offset.wrapping_add_signed(dimension.1);
                break;
            }
            self.offset = self.offset.wrapping_add_signed(back(*dimension));
            *at = 0;
        }
    }
}
