//! PyTorch's arithmetic on small host tensors: the computations of a factory before the mod is traced.
//!
//! Invariant: results (dtype, shape, values) are PyTorch's CPU results; operations without proven equality are refused
//! in words. Every allocation is first charged to a [`Budget`]. Must not know Python values, the graph or its symbols.

mod binary;
mod create;
mod elem;
mod error;
mod gather;
mod handle;
mod index;
mod linear;
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
mod special;
mod strided;
mod text;
mod unary;

pub use self::binary::{Binary, Rounding, binary, clamp, pow, scaled_sum, where_};
pub use self::create::{
    Nested, arange, diag_embed, eye, full, linspace, logspace, meshgrid, tensor, tri_indices, triangle, zeros,
};
pub use self::elem::{cast, cast_in_place, from_values};
pub use self::error::{Budget, HostError, HostResult};
pub use self::gather::{
    gather, index_add, index_fill, index_select, masked_fill, masked_scatter, masked_select, scatter, take,
};
pub use self::handle::TensorRef;
pub use self::index::{Index, Picked, pick, put};
pub use self::linear::{determinant, solve};
pub use self::matmul::{dot, matmul, outer};
pub use self::order::{
    Sorted, Ties, bincount, bucketize, histc, nonzero, searchsorted, sort, topk, unique, unique_consecutive,
};
pub use self::promote::{Operand, Scalar, can_cast, default_float, promote, result_type, set_default_float};
pub use self::python_random::PythonRandom;
pub use self::random::Generator;
pub use self::reduce::{
    Dims, Extreme, Fold, arg_extreme, extreme, extreme_dim, fold, mean, median_dim, norm, variance,
};
pub use self::scan::{Scan, cumulative_extreme, diff, logsumexp, scan, softmax};
pub use self::scatter_reduce::{Gather, scatter_reduce};
pub use self::shape::{
    broadcast_shapes, broadcast_to, cat, chunk_sizes, flip, pad, repeat, repeat_interleave, roll, rot90, split_sizes,
    stack,
};
pub use self::strided::Strided;
pub use self::text::tensor_text;
pub use self::unary::{Unary, unary};
