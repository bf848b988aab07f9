//! Element types as safetensors files name them.
//!
//! Invariant: the two directions are inverse. Must not know files or tensors.

use super::DType;
use safetensors::Dtype;

/// As a file names it.
pub fn to_file(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

/// Ours; None for types that we have not.
pub fn from_file(dtype: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|ours| to_file(*ours) == dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_goes_to_a_file_and_back() {
        for dtype in DType::ALL {
            assert_eq!(from_file(to_file(dtype)), Some(dtype));
        }
        assert_eq!(from_file(Dtype::U64), None);
    }
}
