//! PyTorch's older names of dtypes: `torch.LongTensor`.
//!
//! Invariant: a name and its dtype are PyTorch's, both ways. Must not know tensors.

use crate::base::DType;

/// The last part of each name.
const TYPED: &[(&str, DType)] = &[
    ("LongTensor", DType::I64),
    ("IntTensor", DType::I32),
    ("ShortTensor", DType::I16),
    ("CharTensor", DType::I8),
    ("ByteTensor", DType::U8),
    ("BoolTensor", DType::Bool),
    ("DoubleTensor", DType::F64),
    ("HalfTensor", DType::F16),
    ("BFloat16Tensor", DType::BF16),
    ("FloatTensor", DType::F32),
];

/// The dtype of `torch.LongTensor`, `torch.cuda.LongTensor` and the like.
pub(crate) fn dtype_in_name(name: &str) -> Option<DType> {
    let last = name.rsplit('.').next().unwrap_or(name);
    TYPED.iter().find(|(typed, _)| *typed == last).map(|(_, dtype)| *dtype)
}

/// `t.type()`
pub(crate) fn type_name(dtype: DType) -> String {
    let typed = TYPED.iter().find(|(_, own)| *own == dtype);
    format!("torch.{}", typed.map_or("Tensor", |(name, _)| name))
}
