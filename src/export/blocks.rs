//! A problem's BlockMask as tensors, under PyTorch's names.
//!
//! Invariant: batch or heads are 1 if the mask does not read them, as with `B=None` or `H=None`. Must not know how
//! blocks are found.

use super::{ExportFile, ExportKind};
use crate::base::{Control, Diagnostic};
use crate::problem::Problem;

/// `kv_num_blocks`, `kv_indices`, `full_kv_num_blocks`, ... as int32 in a safetensors file. Errors: the arrays would not
/// fit in memory, or it was cancelled.
pub fn block_mask(name: &str, problem: &Problem, control: &Control) -> Result<ExportFile, Diagnostic> {
    let mask = problem.block_mask(problem.block_size, control)?;
    let arrays = mask.torch_arrays()?;
    let named: Vec<_> = arrays.fields().map(|(name, tensor)| (name.to_string(), tensor.clone())).into();
    let what = format!("the BlockMask's arrays at BLOCK_SIZE {}: for load_block_mask", problem.block_size);
    let numbers = [
        ("q_len", problem.q_len),
        ("kv_len", problem.kv_len),
        ("block_size_q", problem.block_size.q),
        ("block_size_kv", problem.block_size.kv),
    ];
    // the lists alone do not contain the end of the last block
    let metadata = numbers.map(|(name, n)| (name.to_string(), n.to_string())).into();
    crate::base::tensor_file_with(ExportKind::Blocks, name.to_string(), &named, &metadata, &what)
}
