//! The dtypes of q, k, v and the output.
//!
//! Invariant: reading is exact, writing rounds to nearest once. Must not know attention.

use crate::base::HostTensor;
use crate::base::tensor::Data;
use half::{bf16, f16};

/// An element type of inputs and outputs.
pub(super) trait Element: Copy + Send + Sync + 'static {
    /// The content of an output before a run.
    const POISON: Self;
    fn to_f32(self) -> f32;
    fn from_f32(x: f32) -> Self;
    /// A tensor's elements, if they are of this type.
    fn slice(tensor: &HostTensor) -> Option<&[Self]>;
    fn data(values: Vec<Self>) -> Data;
}

macro_rules! element {
    ($t:ty, $variant:ident, $poison:expr, $to:expr, $from:expr) => {
        impl Element for $t {
            const POISON: Self = $poison;
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $to(self)
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                $from(x)
            }
            fn slice(tensor: &HostTensor) -> Option<&[Self]> {
                match tensor.data() {
                    Data::$variant(v) => Some(v),
                    _ => None,
                }
            }
            fn data(values: Vec<Self>) -> Data {
                Data::$variant(values)
            }
        }
    };
}

element!(f32, F32, f32::NAN, |x| x, |x| x);
element!(bf16, BF16, bf16::NAN, bf16::to_f32, bf16::from_f32);
element!(f16, F16, f16::NAN, f16::to_f32, f16::from_f32);

/// Runs `$body` with `$t` the Rust type of a problem's dtype.
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            crate::base::DType::BF16 => {
                type $t = half::bf16;
                $body
            }
            crate::base::DType::F16 => {
                type $t = half::f16;
                $body
            }
            _ => {
                type $t = f32;
                $body
            }
        }
    };
}
pub(super) use with_element;
