//! x
pub(crate) mod micro;
pub(crate) mod simd;
