//! A tensor as in Python: a name for storage that views share and in-place operations change.
//!
//! Invariant: two handles related by views read and write the same elements; an extracted [`HostTensor`] never changes.
//! Must not know Python values.

use super::error::{Budget, HostError, HostResult, check_shape, shape_text};
use super::promote::can_cast;
use super::shape::broadcast_walk;
use super::strided::{Strided, copy_in};
use super::{Operand, cast};
use crate::base::{DType, HostTensor};
use std::cell::RefCell;
use std::rc::Rc;

/// Flat storage; `version` counts the writes.
#[derive(Debug)]
struct Storage {
    flat: HostTensor,
    version: u64,
    /// The function on whose last bit its elements depend, if that differs between processors.
    rough: Option<Rc<str>>,
}

#[derive(Debug)]
struct Inner {
    storage: Rc<RefCell<Storage>>,
    view: Strided,
    /// Whether it blocks gradients (`detach()`): it is read as a separate tensor.
    stopped: bool,
    /// The last extracted copy, with its version. Never storage itself: a second owner would make each write copy it.
    read: RefCell<Option<(u64, HostTensor)>>,
}

/// A shared, mutable tensor; cloning it gives another name for the same one.
#[derive(Clone, Debug)]
pub struct TensorRef(Rc<Inner>);

impl TensorRef {
    /// A new tensor with its own storage.
    pub fn new(t: HostTensor) -> Self {
        let view = Strided::contiguous(t.shape());
        let storage = Rc::new(RefCell::new(Storage { flat: t, version: 0, rough: None }));
        Self(Rc::new(Inner { storage, view, stopped: false, read: RefCell::new(None) }))
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.0.view.shape
    }

    /// Its layout in its storage.
    pub fn layout(&self) -> &Strided {
        &self.0.view
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.storage.borrow().flat.dtype()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.0.view.numel()
    }

    /// All elements of the storage behind it, flat.
    pub(super) fn storage(&self) -> HostTensor {
        self.0.storage.borrow().flat.clone()
    }

    /// Writes `value` over another view of the storage.
    pub(super) fn overwrite_view(&self, view: Strided, value: &Operand, budget: &Budget) -> HostResult<()> {
        self.with_view(view).overwrite(value, budget)
    }

    /// Number of elements of the storage behind it.
    pub fn storage_len(&self) -> usize {
        self.0.storage.borrow().flat.numel()
    }

    /// The same number for all views of one storage, and for nothing else while it lives.
    pub fn storage_identity(&self) -> usize {
        Rc::as_ptr(&self.0.storage) as usize
    }

    /// The function whose last bit its elements follow, where PyTorch's differs between processors.
    pub fn rough(&self) -> Option<Rc<str>> {
        self.0.storage.borrow().rough.clone()
    }

    /// Marks its elements as dependent on the last bit of a function; the first mark stays.
    pub fn mark_rough(&self, function: &Rc<str>) {
        self.0.storage.borrow_mut().rough.get_or_insert_with(|| function.clone());
    }

    /// Whether both names mean the same tensor (`is`).
    pub fn same(&self, other: &TensorRef) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// The elements now. Reading twice without a write between gives the same storage. Views are charged when they are
    /// made (see [`view`](Self::view)), so reading is free.
    pub fn read(&self) -> HostTensor {
        let unlimited = Budget::new(u64::MAX);
        self.copy_out(&unlimited).unwrap_or_else(|_| HostTensor::vector(crate::base::tensor::Data::Bool(Vec::new())))
    }

    fn copy_out(&self, budget: &Budget) -> HostResult {
        let storage = self.0.storage.borrow();
        if let Some((version, t)) = &*self.0.read.borrow()
            && *version == storage.version
        {
            return Ok(t.clone());
        }
        let mut t = self.0.view.read(&storage.flat, budget)?;
        if self.0.stopped && t.same_storage(&storage.flat) {
            t = HostTensor::new(t.shape(), t.data().clone())
                .map_err(|_| HostError::shape("a tensor of its own shape"))?;
        }
        if self.0.stopped || !self.0.view.is_whole(storage.flat.numel()) {
            *self.0.read.borrow_mut() = Some((storage.version, t.clone()));
        }
        Ok(t)
    }

    /// Another view of the same storage, charged as if it were copied: an expanded view may be far larger.
    pub fn view(&self, view: Strided, budget: &Budget) -> HostResult<TensorRef> {
        check_shape(&view.shape)?;
        if !view.is_whole(self.storage_len()) {
            budget.charge(&view.shape, self.dtype())?;
        }
        Ok(self.with_view(view))
    }

    fn with_view(&self, view: Strided) -> TensorRef {
        let stopped = self.0.stopped;
        Self(Rc::new(Inner { storage: self.0.storage.clone(), view, stopped, read: RefCell::new(None) }))
    }

    /// The same elements, through which no gradient goes.
    pub fn detached(&self) -> TensorRef {
        let (storage, view) = (self.0.storage.clone(), self.0.view.clone());
        Self(Rc::new(Inner { storage, view, stopped: true, read: RefCell::new(None) }))
    }

    /// Whether no gradient goes through it.
    pub fn is_detached(&self) -> bool {
        self.0.stopped
    }

    /// How often its storage was written.
    pub fn version(&self) -> u64 {
        self.0.storage.borrow().version
    }

    /// Writes `value`, broadcast and cast, into the elements at `offsets` of the storage, which have `shape`.
    pub fn write(
        &self,
        shape: &[usize],
        offsets: &mut dyn Iterator<Item = usize>,
        value: &Operand,
        budget: &Budget,
    ) -> HostResult<()> {
        let dtype = self.dtype();
        if let Operand::Scalar(value) = value {
            value.must_fit(dtype)?;
        }
        let value = value.cast(dtype, budget)?;
        let value = fit(&value, shape)?;
        budget.work_each(shape.iter().product::<usize>(), 12)?;
        let mut from = broadcast_walk(value.shape(), shape);
        *self.0.read.borrow_mut() = None;
        let mut storage = self.0.storage.borrow_mut();
        storage.version += 1;
        copy_in(storage.flat.data_mut(), offsets, value.data(), || from.next());
        Ok(())
    }

    /// Writes the result of an in-place operation (`x += y`, `x.clamp_(0)`) over the whole tensor. Errors when the
    /// result's category is above the dtype's or the shape would grow.
    pub fn assign(&self, result: &HostTensor, budget: &Budget) -> HostResult<()> {
        let dtype = self.dtype();
        if !can_cast(result.dtype(), dtype) {
            let message = format!("result type {} can't be cast to the desired output type {dtype}", result.dtype());
            return Err(
                HostError::dtype(message).hint("write `x = x + y`, which makes a new tensor, instead of `x += y`")
            );
        }
        if result.shape() != self.shape() {
            let message = format!(
                "output with shape {} doesn't match the broadcast shape {}",
                shape_text(self.shape()),
                shape_text(result.shape())
            );
            return Err(HostError::shape(message));
        }
        self.overwrite(&Operand::Tensor(result), budget)
    }

    /// Writes `value`, broadcast and cast to the dtype, over the whole tensor (`copy_`, `fill_`).
    pub fn overwrite(&self, value: &Operand, budget: &Budget) -> HostResult<()> {
        let mut walk = self.0.view.walk();
        let n = self.numel();
        let shape = self.shape().to_vec();
        self.write(&shape, &mut (0..n).map(|_| walk.next()), value, budget)
    }

    /// In another dtype: the same tensor when nothing changes, else a new one.
    pub fn to(&self, dtype: DType, budget: &Budget) -> HostResult<TensorRef> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        Ok(TensorRef::new(cast(&self.read(), dtype, budget)?))
    }
}

impl From<HostTensor> for TensorRef {
    fn from(t: HostTensor) -> Self {
        Self::new(t)
    }
}

/// The value without leading extents of 1 that the target lacks; errors when it does not broadcast to the target.
fn fit(value: &HostTensor, shape: &[usize]) -> HostResult {
    let extra = value.shape().len().saturating_sub(shape.len());
    let (lead, own) = value.shape().split_at(extra);
    let tail = &shape[shape.len() - own.len()..];
    if lead.iter().any(|d| *d != 1) || own.iter().zip(tail).any(|(a, b)| *a != 1 && a != b) {
        let message = format!(
            "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
            shape_text(value.shape()),
            shape_text(shape)
        );
        return Err(HostError::shape(message));
    }
    value.reshaped(own.to_vec()).map_err(|d| HostError::shape(d.message))
}
