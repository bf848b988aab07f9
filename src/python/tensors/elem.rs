//! Elements: reading any dtype as an integer or a float, creating any dtype from them, casting.
//!
//! Invariant: integers wrap to their width, bools are `!= 0`, halves round through f32, as PyTorch's CPU casts do. Must
//! not know shapes.

use super::error::{Budget, HostResult};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use half::{bf16, f16};
use rayon::prelude::*;
use std::borrow::Cow;

/// Elements from which on a function that costs much is spread over the processors, and the least for each of them.
const SPREAD: usize = 1 << 13;

/// Elements of `dtype` from integers, wrapped to its width.
pub(super) fn from_ints(dtype: DType, n: usize, mut f: impl FnMut(usize) -> i64) -> Data {
    match dtype {
        DType::Bool => Data::Bool((0..n).map(|i| u8::from(f(i) != 0)).collect()),
        DType::U8 => Data::U8((0..n).map(|i| f(i) as u8).collect()),
        DType::I8 => Data::I8((0..n).map(|i| f(i) as i8).collect()),
        DType::I16 => Data::I16((0..n).map(|i| f(i) as i16).collect()),
        DType::I32 => Data::I32((0..n).map(|i| f(i) as i32).collect()),
        DType::I64 => Data::I64((0..n).map(f).collect()),
        DType::F16 => Data::F16((0..n).map(|i| f16::from_f32(f(i) as f32)).collect()),
        DType::BF16 => Data::BF16((0..n).map(|i| bf16::from_f32(f(i) as f32)).collect()),
        DType::F32 => Data::F32((0..n).map(|i| f(i) as f32).collect()),
        DType::F64 => Data::F64((0..n).map(|i| f(i) as f64).collect()),
    }
}

/// Elements of `dtype` from floats of double precision.
pub(super) fn from_floats(dtype: DType, n: usize, mut f: impl FnMut(usize) -> f64) -> Data {
    match dtype {
        DType::F64 => Data::F64((0..n).map(f).collect()),
        DType::F32 => Data::F32((0..n).map(|i| f(i) as f32).collect()),
        DType::F16 => Data::F16((0..n).map(|i| f16::from_f32(f(i) as f32)).collect()),
        DType::BF16 => Data::BF16((0..n).map(|i| bf16::from_f32(f(i) as f32)).collect()),
        DType::Bool => Data::Bool((0..n).map(|i| u8::from(f(i) != 0.0)).collect()),
        _ => from_ints(dtype, n, |i| float_to_int(f(i), dtype)),
    }
}

/// A contiguous tensor of `shape` from floats of double precision; its bytes are charged already.
pub fn from_values(shape: &[usize], dtype: DType, f: impl FnMut(usize) -> f64) -> HostResult {
    let data = from_floats(dtype, shape.iter().product(), f);
    HostTensor::new(shape.to_vec(), data).map_err(|d| super::error::HostError::shape(d.message))
}

/// Elements of `dtype` (a half or f32) from floats of single precision.
pub(super) fn from_singles(dtype: DType, n: usize, mut f: impl FnMut(usize) -> f32) -> Data {
    match dtype {
        DType::F32 => Data::F32((0..n).map(f).collect()),
        DType::F16 => Data::F16((0..n).map(|i| f16::from_f32(f(i))).collect()),
        DType::BF16 => Data::BF16((0..n).map(|i| bf16::from_f32(f(i))).collect()),
        _ => from_floats(dtype, n, |i| f64::from(f(i))),
    }
}

/// The same where `f` costs much: many elements are spread over the processors.
pub(super) fn from_costly_singles(dtype: DType, n: usize, f: impl Fn(usize) -> f32 + Send + Sync) -> Data {
    if n < 2 * SPREAD || dtype != DType::F32 {
        return from_singles(dtype, n, f);
    }
    Data::F32((0..n).into_par_iter().with_min_len(SPREAD).map(f).collect())
}

/// Bools.
pub(super) fn from_bools(n: usize, mut f: impl FnMut(usize) -> bool) -> Data {
    Data::Bool((0..n).map(|i| u8::from(f(i))).collect())
}

/// x86's conversion of a float to an integer: truncation, and the smallest integer if it does not fit.
pub(super) fn float_to_int(x: f64, dtype: DType) -> i64 {
    let t = x.trunc();
    if dtype == DType::I64 {
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&t);
        return if fits { t as i64 } else { i64::MIN };
    }
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&t);
    if fits { t as i64 } else { i64::from(i32::MIN) }
}

/// The elements in single precision; integers round once.
pub(super) fn singles(data: &Data) -> Cow<'_, [f32]> {
    match data {
        Data::F32(v) => Cow::Borrowed(v),
        Data::F16(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::BF16(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F64(v) => v.iter().map(|x| *x as f32).collect(),
        Data::I64(v) => v.iter().map(|x| *x as f32).collect(),
        Data::I32(v) => v.iter().map(|x| *x as f32).collect(),
        Data::I16(v) => v.iter().map(|x| f32::from(*x)).collect(),
        Data::I8(v) => v.iter().map(|x| f32::from(*x)).collect(),
        Data::Bool(v) | Data::U8(v) => v.iter().map(|x| f32::from(*x)).collect(),
    }
}

/// The elements in double precision.
pub(super) fn doubles(data: &Data) -> Cow<'_, [f64]> {
    match data {
        Data::F64(v) => Cow::Borrowed(v),
        Data::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::F16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Data::BF16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Data::I64(v) => v.iter().map(|x| *x as f64).collect(),
        Data::I32(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::I16(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::I8(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::Bool(v) | Data::U8(v) => v.iter().map(|x| f64::from(*x)).collect(),
    }
}

/// The elements of integers, at full width.
pub(super) fn wholes(t: &HostTensor) -> Cow<'_, [i64]> {
    match t.data() {
        Data::I64(v) => Cow::Borrowed(v),
        _ => (0..t.numel()).map(|i| t.int_at(i)).collect(),
    }
}

/// The tensor in another element type. Shares storage when nothing changes.
pub fn cast(t: &HostTensor, dtype: DType, budget: &Budget) -> HostResult {
    if t.dtype() == dtype {
        return Ok(t.clone());
    }
    let n = budget.charge(t.shape(), dtype)?;
    super::strided::finish(t.shape(), cast_data(t, dtype, n))
}

fn cast_data(t: &HostTensor, dtype: DType, n: usize) -> Data {
    if t.dtype().is_float() {
        return from_floats(dtype, n, |i| t.float_at(i));
    }
    from_ints(dtype, n, |i| t.int_at(i))
}

/// A small tensor (a scalar operand) in another element type, without a budget.
pub fn cast_in_place(t: &mut HostTensor, dtype: DType) {
    if t.dtype() != dtype {
        let data = cast_data(t, dtype, t.numel());
        if let Ok(cast) = HostTensor::new(t.shape(), data) {
            *t = cast;
        }
    }
}

/// A one-element `Data`.
pub(super) fn one(dtype: DType, value: super::Scalar) -> Data {
    match value {
        super::Scalar::Bool(b) => from_ints(dtype, 1, |_| i64::from(b)),
        super::Scalar::Int(i) => from_ints(dtype, 1, |_| i),
        super::Scalar::Float(x) => from_floats(dtype, 1, |_| x),
    }
}
