//! Small tensors on the host: captured tensors of mods, inputs, reference outputs.
//!
//! Invariant: `data` is contiguous, row-major and exactly as long as the shape says. Must not know about devices.

use super::{DType, Diagnostic};
use half::{bf16, f16};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Range;
use std::sync::Arc;

/// Contiguous elements of one dtype. Bools are stored as 0 or 1.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // one variant a dtype
pub enum Data {
    Bool(Vec<u8>),
    U8(Vec<u8>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Runs `$body` with `$v` bound to the typed vector, for any dtype.
macro_rules! each {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::Bool($v) | Data::U8($v) => $body,
            Data::I8($v) => $body,
            Data::I16($v) => $body,
            Data::I32($v) => $body,
            Data::I64($v) => $body,
            Data::F16($v) => $body,
            Data::BF16($v) => $body,
            Data::F32($v) => $body,
            Data::F64($v) => $body,
        }
    };
}

impl Data {
    /// Element type.
    pub fn dtype(&self) -> DType {
        match self {
            Data::Bool(_) => DType::Bool,
            Data::U8(_) => DType::U8,
            Data::I8(_) => DType::I8,
            Data::I16(_) => DType::I16,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::F16(_) => DType::F16,
            Data::BF16(_) => DType::BF16,
            Data::F32(_) => DType::F32,
            Data::F64(_) => DType::F64,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements from little-endian bytes. Errors when the byte count is not a multiple of the element size.
    pub fn from_le_bytes(dtype: DType, bytes: &[u8]) -> Result<Self, Diagnostic> {
        if !bytes.len().is_multiple_of(dtype.size()) {
            let message = format!("{} bytes are not a whole number of {dtype} elements", bytes.len());
            return Err(Diagnostic::error("tensor-bytes", message));
        }
        macro_rules! read {
            ($t:ty) => {
                bytes
                    .chunks_exact(size_of::<$t>())
                    .map(|c| <$t>::from_le_bytes(c.try_into().expect("exact chunk")))
                    .collect()
            };
        }
        Ok(match dtype {
            DType::Bool => Data::Bool(bytes.iter().map(|b| u8::from(*b != 0)).collect()),
            DType::U8 => Data::U8(bytes.to_vec()),
            DType::I8 => Data::I8(read!(i8)),
            DType::I16 => Data::I16(read!(i16)),
            DType::I32 => Data::I32(read!(i32)),
            DType::I64 => Data::I64(read!(i64)),
            DType::F16 => Data::F16(read!(f16)),
            DType::BF16 => Data::BF16(read!(bf16)),
            DType::F32 => Data::F32(read!(f32)),
            DType::F64 => Data::F64(read!(f64)),
        })
    }

    /// Little-endian bytes of all elements.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        self.le_bytes_of(0..self.len())
    }

    /// The same of some elements.
    fn le_bytes_of(&self, part: Range<usize>) -> Vec<u8> {
        match self {
            Data::Bool(v) | Data::U8(v) => v[part].to_vec(),
            Data::I8(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::I16(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::I32(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::I64(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::F16(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::BF16(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::F32(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Data::F64(v) => v[part].iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

/// A contiguous, row-major host tensor; cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    shape: Vec<usize>,
    data: Arc<Data>,
}

impl HostTensor {
    /// A tensor of `shape` over `data`. Errors when the element count differs from the shape's product.
    pub fn new(shape: impl Into<Vec<usize>>, data: Data) -> Result<Self, Diagnostic> {
        let shape = shape.into();
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        if count != Some(data.len()) {
            let message = format!("a tensor of shape {shape:?} cannot hold {} elements", data.len());
            return Err(Diagnostic::error("tensor-shape", message));
        }
        Ok(Self { shape, data: Arc::new(data) })
    }

    /// A 1-D tensor.
    pub fn vector(data: Data) -> Self {
        Self { shape: vec![data.len()], data: Arc::new(data) }
    }

    /// Extent of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Elements, to be written in place; copied first when shared. Their number must stay.
    pub fn data_mut(&mut self) -> &mut Data {
        Arc::make_mut(&mut self.data)
    }

    /// The elements themselves, unless another tensor shares them.
    pub fn into_data(self) -> Option<Data> {
        Arc::try_unwrap(self.data).ok()
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.data.len()
    }

    /// A tensor of no dimensions.
    pub fn scalar(data: Data) -> Result<Self, Diagnostic> {
        Self::new(Vec::new(), data)
    }

    /// The same elements in another shape; shares storage. Errors when the element count differs.
    pub fn reshaped(&self, shape: impl Into<Vec<usize>>) -> Result<Self, Diagnostic> {
        let shape = shape.into();
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        if count != Some(self.numel()) {
            let message = format!("shape {shape:?} is invalid for input of size {}", self.numel());
            return Err(Diagnostic::error("tensor-shape", message));
        }
        Ok(Self { shape, data: self.data.clone() })
    }

    /// Whether two tensors share storage: a cheap test before comparing elements.
    pub fn same_storage(&self, other: &HostTensor) -> bool {
        Arc::ptr_eq(&self.data, &other.data) && self.shape == other.shape
    }

    /// Element at a flat row-major index as an integer; floats truncate. Panics when out of range.
    pub fn int_at(&self, flat: usize) -> i64 {
        match &*self.data {
            Data::Bool(v) | Data::U8(v) => i64::from(v[flat]),
            Data::I8(v) => i64::from(v[flat]),
            Data::I16(v) => i64::from(v[flat]),
            Data::I32(v) => i64::from(v[flat]),
            Data::I64(v) => v[flat],
            Data::F16(v) => v[flat].to_f64() as i64,
            Data::BF16(v) => v[flat].to_f64() as i64,
            Data::F32(v) => v[flat] as i64,
            Data::F64(v) => v[flat] as i64,
        }
    }

    /// Element at a flat row-major index as a float. Panics when out of range.
    pub fn float_at(&self, flat: usize) -> f64 {
        match &*self.data {
            Data::Bool(v) | Data::U8(v) => f64::from(v[flat]),
            Data::I8(v) => f64::from(v[flat]),
            Data::I16(v) => f64::from(v[flat]),
            Data::I32(v) => f64::from(v[flat]),
            Data::I64(v) => v[flat] as f64,
            Data::F16(v) => v[flat].to_f64(),
            Data::BF16(v) => v[flat].to_f64(),
            Data::F32(v) => f64::from(v[flat]),
            Data::F64(v) => v[flat],
        }
    }

    /// Row-major flat index of `index` after wrapping negatives once and clamping into bounds: the read rule that
    /// every backend follows, so that a captured tensor is never read outside its storage. 0 when the tensor is empty.
    pub fn clamped_offset(&self, index: &[i64]) -> usize {
        debug_assert_eq!(index.len(), self.shape.len());
        index.iter().zip(&self.shape).fold(0, |flat, (i, &n)| flat * n + clamp_index(*i, n))
    }

    /// All elements as f32.
    pub fn to_f32_vec(&self) -> Vec<f32> {
        match &*self.data {
            Data::F32(v) => v.clone(),
            Data::F16(v) => v.iter().map(|x| x.to_f32()).collect(),
            Data::BF16(v) => v.iter().map(|x| x.to_f32()).collect(),
            _ => (0..self.numel()).map(|i| self.float_at(i) as f32).collect(),
        }
    }

    /// All elements as i64.
    pub fn to_i64_vec(&self) -> Vec<i64> {
        match &*self.data {
            Data::I64(v) => v.clone(),
            Data::I32(v) => v.iter().map(|x| i64::from(*x)).collect(),
            _ => (0..self.numel()).map(|i| self.int_at(i)).collect(),
        }
    }
}

/// The index rule of all backends: a negative index wraps once, then everything clamps into `0..n`.
pub fn clamp_index(index: i64, n: usize) -> usize {
    let wrapped = if index < 0 { index + n as i64 } else { index };
    wrapped.clamp(0, (n as i64 - 1).max(0)) as usize
}

#[derive(Deserialize)]
struct Wire {
    dtype: DType,
    shape: Vec<usize>,
    /// base64 of the little-endian elements
    data: String,
}

impl Serialize for HostTensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut wire = serializer.serialize_struct("Wire", 3)?;
        wire.serialize_field("dtype", &self.dtype())?;
        wire.serialize_field("shape", &self.shape)?;
        wire.serialize_field("data", &InBase64(&self.data))?;
        wire.end()
    }
}

/// The text of the elements, piece by piece: whoever stops writing has not held the whole of it.
struct InBase64<'t>(&'t Data);

impl InBase64<'_> {
    /// A multiple of three: every piece but the last ends without padding.
    const PIECE: usize = 3 << 12;
}

impl std::fmt::Display for InBase64<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use base64::Engine;
        let all = self.0.len();
        (0..all).step_by(Self::PIECE).try_for_each(|from| {
            let bytes = self.0.le_bytes_of(from..all.min(from + Self::PIECE));
            f.write_str(&base64::engine::general_purpose::STANDARD.encode(bytes))
        })
    }
}

impl Serialize for InBase64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostTensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::Engine;
        use serde::de::Error;
        let wire = Wire::deserialize(deserializer)?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(&wire.data).map_err(D::Error::custom)?;
        let data = Data::from_le_bytes(wire.dtype, &bytes).map_err(|d| D::Error::custom(d.message))?;
        HostTensor::new(wire.shape, data).map_err(|d| D::Error::custom(d.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trip_keeps_every_bit() {
        let tensor = HostTensor::new([2, 2], Data::F32(vec![f32::NAN, -0.0, 1e-40, f32::INFINITY])).unwrap();
        let back: HostTensor = serde_json::from_str(&serde_json::to_string(&tensor).unwrap()).unwrap();
        assert_eq!(back.shape(), [2, 2]);
        assert_eq!(back.data().to_le_bytes(), tensor.data().to_le_bytes());
        assert!(serde_json::from_str::<HostTensor>(r#"{"dtype":"i32","shape":[3],"data":"AAAA"}"#).is_err());
        // pieces meet without a seam
        let n = InBase64::PIECE * 2 + 1;
        let long = HostTensor::new([n], Data::I16((0..n).map(|i| i as i16).collect())).unwrap();
        let back: HostTensor = serde_json::from_value(serde_json::to_value(&long).unwrap()).unwrap();
        assert_eq!(back, long);
        assert_eq!(
            serde_json::to_string(&HostTensor::new([0], Data::U8(Vec::new())).unwrap()).unwrap(),
            r#"{"dtype":"u8","shape":[0],"data":""}"#
        );
    }

    #[test]
    fn indices_wrap_once_then_clamp() {
        assert_eq!([-1, -4, -9, 0, 3, 4, 99].map(|i| clamp_index(i, 4)), [3, 0, 0, 0, 3, 3, 3]);
    }
}
