//! Which names `torch` and FlexAttention's module have, for `hasattr`, `getattr` with a default and imports inside `try`.
//!
//! Invariant: the lists are those of PyTorch 2.15 without CUDA; of other modules every name may be there. Must not know values.

use std::collections::HashSet;
use std::sync::LazyLock;

/// `dir(torch)` without names that begin with an underscore, a line each.
static TORCH: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("torch_names.txt").lines().collect());

const FLEX: &str = "torch.nn.attention.flex_attention.";

/// The names of FlexAttention's module that texts import.
const OF_FLEX: &[&str] = &[
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "_DEFAULT_SPARSE_BLOCK_SIZE",
    "_LARGE_SPARSE_BLOCK_SIZE",
    "_ModificationType",
    "_adjust_num_blocks_and_indices",
    "_broadcast_to_dim",
    "_convert_block_mask_to_mask",
    "_convert_mask_to_block_mask",
    "_create_empty_block_mask",
    "_create_sparse_block_from_block_mask",
    "_dense_to_ordered",
    "_get_mod_type",
    "_identity",
    "_mask_mod_signature",
    "_ordered_to_dense",
    "_round_up_to_multiple",
    "_score_mod_signature",
    "_transpose_ordered",
    "_vmap_for_bhqkv",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "flex_attention_hop",
    "noop_mask",
    "or_masks",
];

/// Whether PyTorch may have this, by its whole name; `flex.` is the module's short name here.
pub(crate) fn may_exist(dotted: &str) -> bool {
    if let Some(name) = dotted.strip_prefix(FLEX).or_else(|| dotted.strip_prefix("flex.")) {
        return name.contains('.') || OF_FLEX.contains(&name);
    }
    match dotted.strip_prefix("torch.") {
        Some(name) if !name.starts_with('_') && !name.contains('.') => TORCH.contains(name),
        _ => true,
    }
}
