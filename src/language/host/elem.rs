//! Elements: reading any dtype as an integer or a float, building any dtype from them, casting.
//!
//! Invariant: integers wrap to their width, bools are `!= 0`, halves round through f32, as PyTorch's CPU casts do. Must
//! not know shapes.

use super::error::{Budget, HostResult};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use half::{bf16, f16};

/// Elements of `dtype` from integers, wrapped to its width.
pub(super) fn from_ints(dtype: DType, n: usize, f: &mut dyn FnMut(usize) -> i64) -> Data {
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
pub(super) fn from_floats(dtype: DType, n: usize, f: &mut dyn FnMut(usize) -> f64) -> Data {
    match dtype {
        DType::F64 => Data::F64((0..n).map(f).collect()),
        DType::F32 => Data::F32((0..n).map(|i| f(i) as f32).collect()),
        DType::F16 => Data::F16((0..n).map(|i| f16::from_f32(f(i) as f32)).collect()),
        DType::BF16 => Data::BF16((0..n).map(|i| bf16::from_f32(f(i) as f32)).collect()),
        DType::Bool => Data::Bool((0..n).map(|i| u8::from(f(i) != 0.0)).collect()),
        _ => from_ints(dtype, n, &mut |i| float_to_int(f(i), dtype)),
    }
}

/// A contiguous tensor of `shape` from floats of double precision; its bytes are charged already.
pub fn from_values(shape: &[usize], dtype: DType, mut f: impl FnMut(usize) -> f64) -> HostResult {
    let data = from_floats(dtype, shape.iter().product(), &mut f);
    HostTensor::new(shape.to_vec(), data).map_err(|d| super::error::HostError::shape(d.message))
}

/// Elements of `dtype` (a half or f32) from floats of single precision.
pub(super) fn from_singles(dtype: DType, n: usize, f: &mut dyn FnMut(usize) -> f32) -> Data {
    match dtype {
        DType::F32 => Data::F32((0..n).map(f).collect()),
        DType::F16 => Data::F16((0..n).map(|i| f16::from_f32(f(i))).collect()),
        DType::BF16 => Data::BF16((0..n).map(|i| bf16::from_f32(f(i))).collect()),
        _ => from_floats(dtype, n, &mut |i| f64::from(f(i))),
    }
}

/// Bools.
pub(super) fn from_bools(n: usize, f: &mut dyn FnMut(usize) -> bool) -> Data {
    Data::Bool((0..n).map(|i| u8::from(f(i))).collect())
}

/// What x86 makes of a float that becomes an integer: truncation, and the smallest integer for what does not fit.
pub(super) fn float_to_int(x: f64, dtype: DType) -> i64 {
    let t = x.trunc();
    if dtype == DType::I64 {
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&t);
        return if fits { t as i64 } else { i64::MIN };
    }
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&t);
    if fits { t as i64 } else { i64::from(i32::MIN) }
}

/// Element as single precision; integers round once.
#[inline]
pub(super) fn single_at(data: &Data, i: usize) -> f32 {
    match data {
        Data::F32(v) => v[i],
        Data::F16(v) => v[i].to_f32(),
        Data::BF16(v) => v[i].to_f32(),
        Data::F64(v) => v[i] as f32,
        Data::I64(v) => v[i] as f32,
        Data::I32(v) => v[i] as f32,
        Data::I16(v) => f32::from(v[i]),
        Data::I8(v) => f32::from(v[i]),
        Data::Bool(v) | Data::U8(v) => f32::from(v[i]),
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
        return from_floats(dtype, n, &mut |i| t.float_at(i));
    }
    from_ints(dtype, n, &mut |i| t.int_at(i))
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
        super::Scalar::Bool(b) => from_ints(dtype, 1, &mut |_| i64::from(b)),
        super::Scalar::Int(i) => from_ints(dtype, 1, &mut |_| i),
        super::Scalar::Float(x) => from_floats(dtype, 1, &mut |_| x),
    }
}
