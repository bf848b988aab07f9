//! Tensor maps: descriptions of tensors for Hopper's copy engine, made by the driver.
//!
//! Invariant: four dimensions, innermost first (element, token, head, batch), 64 elements of 16 bits per box row (128
//! bytes, swizzled); elements outside the extents read as zero and are not written. Must not know attention.
#![allow(unsafe_code)] // the map is encoded by the driver's C interface

use super::errors;
use super::tensors::Strides;
use crate::base::{DType, Diagnostic};
use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType_enum as Type, CUtensorMapFloatOOBfill_enum as Fill,
    CUtensorMapInterleave_enum as Interleave, CUtensorMapL2promotion_enum as Promotion,
    CUtensorMapSwizzle_enum as Swizzle,
};
use std::ffi::c_void;

/// Extents of a tensor as the problem has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) struct Extents {
    pub batch: usize,
    pub heads: usize,
    pub tokens: usize,
    pub dim: usize,
}

/// Dimensions, byte strides of all but the innermost, and box, as the driver takes them.
fn geometry(extents: Extents, strides: Strides, rows: usize) -> ([u64; 4], [u64; 3], [u32; 4]) {
    let Extents { batch, heads, tokens, dim } = extents;
    let bytes = |elements: usize| elements as u64 * 2;
    (
        [dim as u64, tokens as u64, heads as u64, batch as u64],
        [bytes(strides.s), bytes(strides.h), bytes(strides.b)],
        [64, rows as u32, 1, 1],
    )
}

/// The 128 bytes of a map over a tensor at `address`, whose boxes are `rows` tokens high. Errors: the driver's.
pub(crate) fn encode(
    address: u64,
    dtype: DType,
    extents: Extents,
    strides: Strides,
    rows: usize,
) -> Result<Vec<u8>, Diagnostic> {
    let ty = match dtype {
        DType::F16 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        _ => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    };
    of_geometry(address, ty, geometry(extents, strides, rows), Swizzle::CU_TENSOR_MAP_SWIZZLE_128B)
}

/// The same over contiguous words, floats or not, without swizzle; boxes are two-dimensional. Errors: the driver's.
pub(crate) fn encode_words(
    address: u64,
    floats: bool,
    dims: [usize; 4],
    boxes: [usize; 2],
) -> Result<Vec<u8>, Diagnostic> {
    let ty = match floats {
        true => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        false => Type::CU_TENSOR_MAP_DATA_TYPE_UINT32,
    };
    let [a, b, c, d] = dims.map(|n| n as u64);
    let geometry = ([a, b, c, d], [4 * a, 4 * a * b, 4 * a * b * c], [boxes[0] as u32, boxes[1] as u32, 1, 1]);
    of_geometry(address, ty, geometry, Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE)
}

fn of_geometry(
    address: u64,
    ty: Type,
    (dims, strides, boxes): ([u64; 4], [u64; 3], [u32; 4]),
    swizzle: Swizzle,
) -> Result<Vec<u8>, Diagnostic> {
    let mut map = CUtensorMap { opaque: [0; 16] };
    // SAFETY: every pointer is to as many values as the rank asks for, and the map is written before it is read.
    let status = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            ty,
            4,
            address as *mut c_void,
            dims.as_ptr(),
            strides.as_ptr(),
            boxes.as_ptr(),
            [1u32; 4].as_ptr(),
            Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    status.result().map_err(|e| errors::diagnostic("describing a tensor to the copy engine", e))?;
    Ok(map.opaque.iter().flat_map(|word| word.to_le_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::device::tensor_map::*;
    use crate::base::Layout;

    #[test]
    fn strides_are_whole_16_byte_chunks_in_both_layouts() {
        for layout in [Layout::Bhsd, Layout::Bshd] {
            for dim in [33, 64, 80, 100, 256] {
                let extents = Extents { batch: 2, heads: 3, tokens: 77, dim };
                let (dims, strides, boxes) = geometry(extents, Strides::new(layout, 3, 77, dim), 128);
                assert_eq!(dims, [dim as u64, 77, 3, 2]);
                assert!(strides.iter().all(|s| s % 16 == 0), "{strides:?}");
                assert_eq!(boxes, [64, 128, 1, 1]);
                assert_eq!(strides[2], 3 * 77 * dim.next_multiple_of(8) as u64 * 2);
            }
        }
    }
}
