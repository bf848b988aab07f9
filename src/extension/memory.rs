//! Memory that belongs to Python's objects, by address.
//!
//! Invariant: the caller in `python/maskloom` holds the objects for the whole call, and nobody else writes to them
//! meanwhile: inputs are read once, into memory of our own; outputs are new. Must not know what is read.

#![allow(unsafe_code)]

use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor};
use half::{bf16, f16};

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
fn copied<T: Copy>(address: usize, count: usize) -> Vec<T> {
    if count == 0 || address == 0 {
        return Vec::new();
    }
    // SAFETY: the caller passed the address of `count` contiguous, aligned elements of this type (torch's data_ptr of a
    // contiguous tensor) and holds the tensor until the call ends; every bit pattern is a value of these types.
    unsafe { std::slice::from_raw_parts(address as *const T, count) }.to_vec()
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
