//! PyTorch's arithmetic on small host tensors: what a factory's own code computes before the mod is traced.
//!
//! Invariant: results (dtype, shape, values) are PyTorch's CPU results; what cannot be made equal is refused in words.
//! Every allocation is charged to a [`Budget`] first. Must not know Python values, the graph or its symbols.

mod binary;
mod create;
mod elem;
mod error;
mod gather;
mod handle;
mod index;
mod matmul;
mod mt19937;
mod normal;
mod order;
mod promote;
mod python_random;
mod random;
mod reduce;
mod scan;
mod scatter_reduce;
mod shape;
mod strided;
mod text;
mod unary;

pub use binary::{Binary, Rounding, binary, clamp, pow, where_};
pub use create::{
    Nested, arange, diag_embed, eye, full, linspace, logspace, meshgrid, tensor, tri_indices, triangle, zeros,
};
pub use elem::{cast, cast_in_place, from_values};
pub use error::{Budget, HostError, HostResult};
pub use gather::{
    gather, index_add, index_fill, index_select, masked_fill, masked_scatter, masked_select, scatter, take,
};
pub use handle::TensorRef;
pub use index::{Index, Picked, pick, put};
pub use matmul::{dot, matmul, outer};
pub use order::{
    Ties, bincount, bucketize, histc, nonzero, searchsorted, sort, ties, topk, unique, unique_consecutive,
};
pub use promote::{Operand, Scalar, can_cast, promote, result_type};
pub use python_random::PythonRandom;
pub use random::Generator;
pub use reduce::{Dims, Extreme, Fold, arg_extreme, extreme, extreme_dim, fold, mean, median_dim, norm, variance};
pub use scan::{Scan, cumulative_extreme, diff, logsumexp, scan, softmax};
pub use scatter_reduce::{Gather, scatter_reduce};
pub use shape::{
    broadcast_shapes, broadcast_to, cat, chunk_sizes, flip, pad, repeat, repeat_interleave, roll, rot90, split_sizes,
    stack,
};
pub use strided::Strided;
pub use text::tensor_text;
pub use unary::{Unary, unary};
