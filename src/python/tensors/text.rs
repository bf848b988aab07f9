//! Printed tensors: `tensor([1, 2])`, for f-strings and messages.
//!
//! Invariant: short and bounded for any size. Must not be parsed back.

use crate::base::{DType, HostTensor};

/// Most elements that are written out.
const SHOWN: usize = 64;

/// `tensor([[1, 2], [3, 4]])`, long ones cut in the middle of nowhere with `...`.
pub fn tensor_text(t: &HostTensor) -> String {
    let mut left = SHOWN;
    let body = nested(t, 0, 0, &mut left);
    let suffix = match t.dtype() {
        DType::Bool | DType::I64 | DType::F32 => String::new(),
        other => format!(", dtype=torch.{other}"),
    };
    format!("tensor({body}{suffix})")
}

fn nested(t: &HostTensor, dim: usize, base: usize, left: &mut usize) -> String {
    if dim == t.shape().len() {
        *left = left.saturating_sub(1);
        return element_text(t, base);
    }
    let inner: usize = t.shape()[dim + 1..].iter().product();
    let mut parts = Vec::new();
    for i in 0..t.shape()[dim] {
        if *left == 0 {
            parts.push("...".to_string());
            break;
        }
        parts.push(nested(t, dim + 1, base + i * inner, left));
    }
    format!("[{}]", parts.join(", "))
}

/// One element as PyTorch prints it.
fn element_text(t: &HostTensor, i: usize) -> String {
    match t.dtype() {
        DType::Bool => if t.int_at(i) != 0 { "True" } else { "False" }.to_string(),
        d if d.is_int() => t.int_at(i).to_string(),
        _ => {
            let x = t.float_at(i);
            let whole = x.is_finite() && x == x.trunc() && x.abs() < 1e8;
            if whole {
                format!("{x:.0}.")
            } else if x.is_finite() {
                format!("{x:.4}")
            } else {
                format!("{x}").to_lowercase()
            }
        }
    }
}
