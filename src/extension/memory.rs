//! Memory that belongs to Python's objects, by address.
//!
//! Invariant: the caller in `python/maskloom` holds the objects for the whole call, and nobody else writes to them
//! meanwhile: inputs are read once, into memory of our own; outputs are new. Must not know what is read.

#![allow(unsafe_code)]

use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor};
use half::{bf16, f16};
use std::sync::Mutex;

/// A contiguous tensor: its address, shape and PyTorch's name of its dtype.
pub(super) type Given = (usize, Vec<usize>, String);

/// A copy of a tensor. Errors: a dtype that no mask reads, or a tensor of no elements at all.
pub(super) fn tensor((address, shape, dtype): Given) -> Result<HostTensor, Diagnostic> {
    let found = DType::ALL.into_iter().find(|known| known.torch_name() == dtype);
    let found = found.ok_or_else(|| {
        Diagnostic::error("tensor-dtype", format!("a tensor of dtype {dtype} cannot be read by a mask"))
            .hint("convert it before: `tensor.to(torch.int64)`, or `.to(torch.float32)`")
    })?;
    let count = shape.iter().product();
    macro_rules! read {
        ($t:ty) => {
            copied::<$t>(address, count)
        };
    }
    let data = match found {
        DType::Bool => Data::Bool(read!(u8).into_iter().map(|b| u8::from(b != 0)).collect()),
        DType::U8 => Data::U8(read!(u8)),
        DType::I8 => Data::I8(read!(i8)),
        DType::I16 => Data::I16(read!(i16)),
        DType::I32 => Data::I32(read!(i32)),
        DType::I64 => Data::I64(read!(i64)),
        DType::F16 => Data::F16(read!(f16)),
        DType::BF16 => Data::BF16(read!(bf16)),
        DType::F32 => Data::F32(read!(f32)),
        DType::F64 => Data::F64(read!(f64)),
    };
    HostTensor::new(shape, data)
}

/// The elements at an address.
fn copied<T: Spare>(address: usize, count: usize) -> Vec<T> {
    if count == 0 || address == 0 {
        return Vec::new();
    }
    // SAFETY: the caller passed the address of `count` contiguous, aligned elements of this type (torch's data_ptr of a
    // contiguous tensor) and holds the tensor until the call ends; every bit pattern is a value of these types.
    let elements = unsafe { std::slice::from_raw_parts(address as *const T, count) };
    let mut own = T::taken(count);
    own.extend_from_slice(elements);
    own
}

/// Memory of former tensors, at most so many of a type and so many bytes each. To the allocator it would go back page by page, and to fault a
/// page in again takes 0.2 to 2 us: for the ids of 32,768 tokens as long as a quarter of finding the blocks.
const SPARES: usize = 4;
const SPARE_BYTES: usize = 4 << 20;

/// An element type with memory that waits for its next use.
trait Spare: Copy + 'static {
    fn waiting() -> &'static Mutex<Vec<Vec<Self>>>;

    /// Empty memory for so many elements: one that waits, or new. A forked process may find the lock held by a thread that it has not: nobody
    /// waits for it.
    fn taken(count: usize) -> Vec<Self> {
        let mut waiting = Self::waiting().try_lock().ok();
        let fits = |own: &Vec<Self>| own.capacity() >= count && own.capacity() / 2 <= count;
        let found = waiting.as_mut().and_then(|all| all.iter().position(fits).map(|at| all.swap_remove(at)));
        found.unwrap_or_else(|| Vec::with_capacity(count))
    }

    /// Keeps the memory, or gives it back to the allocator.
    fn kept(mut own: Vec<Self>) {
        own.clear();
        if own.capacity() * size_of::<Self>() > SPARE_BYTES || own.capacity() == 0 {
            return;
        }
        if let Ok(mut waiting) = Self::waiting().try_lock() {
            if waiting.len() == SPARES {
                waiting.remove(0);
            }
            waiting.push(own);
        }
    }
}
macro_rules! spares {
    ($($t:ty),*) => { $(
        impl Spare for $t {
            fn waiting() -> &'static Mutex<Vec<Vec<Self>>> {
                static WAITING: Mutex<Vec<Vec<$t>>> = Mutex::new(Vec::new());
                &WAITING
            }
        }
    )* };
}
spares!(u8, i8, i16, i32, i64, f16, bf16, f32, f64);

/// Elements that nobody needs any more.
pub(super) fn spare(data: Data) {
    match data {
        Data::Bool(v) | Data::U8(v) => Spare::kept(v),
        Data::I8(v) => Spare::kept(v),
        Data::I16(v) => Spare::kept(v),
        Data::I32(v) => Spare::kept(v),
        Data::I64(v) => Spare::kept(v),
        Data::F16(v) => Spare::kept(v),
        Data::BF16(v) => Spare::kept(v),
        Data::F32(v) => Spare::kept(v),
        Data::F64(v) => Spare::kept(v),
    }
}

/// New memory of the caller's, to be written.
pub(super) fn to_write<'a>(address: usize, count: usize) -> &'a mut [i32] {
    if count == 0 || address == 0 {
        return &mut [];
    }
    // SAFETY: the caller passed the address of `count` int32 elements of a tensor that it has just made, to which nobody
    // else has a reference, and holds it until the call ends.
    unsafe { std::slice::from_raw_parts_mut(address as *mut i32, count) }
}

/// Writes a tensor's elements to memory that the caller made for exactly these.
pub(super) fn write(tensor: &HostTensor, address: usize) {
    match tensor.data() {
        Data::Bool(v) | Data::U8(v) => copy(v, address),
        Data::I8(v) => copy(v, address),
        Data::I16(v) => copy(v, address),
        Data::I32(v) => copy(v, address),
        Data::I64(v) => copy(v, address),
        Data::F16(v) => copy(v, address),
        Data::BF16(v) => copy(v, address),
        Data::F32(v) => copy(v, address),
        Data::F64(v) => copy(v, address),
    }
}

fn copy<T: Copy>(from: &[T], address: usize) {
    if from.is_empty() || address == 0 {
        return;
    }
    // SAFETY: the caller passed the address of a contiguous tensor of this shape and dtype that it has just made, to which
    // nobody else has a reference, and holds it until the call ends.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut T, from.len()) }
}

/// What was leaked at this address, if anything.
pub(super) fn leaked<T>(at: *mut T) -> Option<&'static T> {
    // SAFETY: it is null or comes from `Box::leak` and is never freed nor written again.
    unsafe { at.as_ref() }
}
