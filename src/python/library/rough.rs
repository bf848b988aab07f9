//! Tensors whose elements follow the last bit of a function in which PyTorch's processors differ.
//!
//! Invariant: what is computed of such a tensor is such a tensor; sums are none where every order of the terms gives the same.
//! Must not know what the functions compute.

use crate::base::{DType, HostTensor};
use crate::python::value::{Args, Tensor, Value};
use std::rc::Rc;

/// Functions of PyTorch's vector libraries: they err by a unit in the last place, each processor in other elements.
const LIBRARY: &[&str] = &[
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "arcsin",
    "acos",
    "arccos",
    "atan",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "arcsinh",
    "acosh",
    "arccosh",
    "atanh",
    "arctanh",
    "sigmoid",
    "expit",
    "logsigmoid",
    "silu",
    "gelu",
    "softplus",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "lgamma",
    "gammaln",
    "digamma",
    "psi",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "ndtr",
    "log_ndtr",
    "entr",
    "atan2",
    "arctan2",
    "logaddexp",
    "logaddexp2",
    "softmax",
    "log_softmax",
    "logsumexp",
    "var",
    "norm",
    "logspace",
    "polygamma",
    "logit",
    "xlogy",
    "elu",
    "celu",
    "selu",
    "mish",
];

/// Functions that add or multiply many elements, in an order of the processor's.
const SUMS: &[&str] = &[
    "sum", "nansum", "mean", "prod", "trace", "matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "einsum", "var",
    "std", "cumprod",
];

/// So many floats are added one after the other on every processor.
const IN_ORDER: usize = 4;

/// What a call's arguments follow, or the call itself; asked before it runs.
pub(super) fn of_call(name: &str, receiver: Option<&Value>, args: &Args) -> Option<Rc<str>> {
    let all = || receiver.into_iter().chain(&args.positional).chain(args.keyword.iter().map(|(_, v)| v));
    all().find_map(of_value).or_else(|| {
        let short = name.rsplit('.').next().unwrap_or(name).trim_end_matches('_');
        if matches!(short, "arange" | "range") {
            return (!counts_exactly(args)).then(|| short.into());
        }
        let tensors: Vec<Tensor> = all().flat_map(tensors_of).collect();
        is_rough(short, &tensors, all().last()).then(|| short.into())
    })
}

/// What the operands of an operator follow.
pub(super) fn of_operands(operands: &[&Value]) -> Option<Rc<str>> {
    operands.iter().find_map(|v| of_value(v))
}

fn of_value(value: &Value) -> Option<Rc<str>> {
    tensors_of(value).iter().find_map(|t| t.handle().rough())
}

/// A tensor, or those of a list.
fn tensors_of(value: &Value) -> Vec<Tensor> {
    let listed = |items: &[Value]| items.iter().filter_map(|v| v.as_tensor().cloned()).collect();
    match value {
        Value::Tensor(t) => vec![t.clone()],
        Value::Tuple(items) => listed(&items.0),
        Value::List(items) => listed(&items.borrow().0),
        _ => Vec::new(),
    }
}

/// Marks a result.
pub(super) fn mark(result: &Value, function: Option<&Rc<str>>) {
    if let Some(function) = function {
        tensors_of(result).iter().for_each(|t| t.handle().mark_rough(function));
    }
}

/// Whether a range has the same elements on every processor: each counts from the first of a register, so that a register of
/// another length rounds otherwise, unless float32 holds every element.
fn counts_exactly(args: &Args) -> bool {
    let given = args.positional.iter().chain(args.keyword.iter().map(|(_, v)| v));
    if !given.clone().any(|x| matches!(x, Value::Float(_))) {
        return true;
    }
    let numbers: Vec<f64> = given.filter_map(Value::as_float).filter(|x| *x != 0.0).collect();
    let lowest = numbers.iter().map(|x| last_place(*x)).min().unwrap_or(0).min(0);
    numbers.iter().all(|x| x.abs() < 2f64.powi(lowest + 24))
}

/// The power of two of a number's last digit.
fn last_place(x: f64) -> i32 {
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1075;
    let fraction = x.to_bits() & ((1 << 52) - 1) | 1 << 52;
    exponent + fraction.trailing_zeros() as i32
}

fn is_rough(name: &str, tensors: &[Tensor], last: Option<&Value>) -> bool {
    if LIBRARY.contains(&name) {
        return true;
    }
    let floats = || tensors.iter().filter(|t| t.handle().dtype().is_float());
    match name {
        "pow" | "float_power" => is_rough_power(tensors, last),
        _ if SUMS.contains(&name) => {
            let many = tensors.iter().any(|t| t.handle().numel() > IN_ORDER);
            let product = !matches!(name, "sum" | "nansum" | "mean" | "trace");
            many && floats().any(|t| !sums_exactly(&t.get(), product))
        }
        _ => false,
    }
}

/// Whether a power is computed by the vector library: small whole exponents are multiplied out.
pub(super) fn is_rough_power(tensors: &[Tensor], exponent: Option<&Value>) -> bool {
    let float = tensors.iter().any(|t| t.handle().dtype().is_float());
    match exponent {
        Some(Value::Int(n)) => float && !(-2..=3).contains(n),
        Some(Value::Float(x)) => ![0.0, 1.0, 2.0, 3.0, -1.0, -2.0].contains(x),
        _ => float,
    }
}

/// Whether floats have one sum in every order: all are multiples of one power of two that float32 holds the sum of. Products
/// of two such numbers need twice the digits.
fn sums_exactly(t: &HostTensor, product: bool) -> bool {
    let digits = match (t.dtype() == DType::F64, product) {
        (true, false) => 53,
        (true, true) => 26,
        (false, false) => 24,
        (false, true) => 12,
    };
    let (mut lowest, mut total) = (i32::MAX, 0.0f64);
    for x in (0..t.numel()).map(|i| t.float_at(i)).filter(|x| *x != 0.0) {
        if !x.is_finite() {
            return false;
        }
        lowest = lowest.min(last_place(x));
        total += x.abs();
    }
    total == 0.0 || total < 2f64.powi(lowest.saturating_add(digits).min(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;

    #[test]
    fn sums_of_whole_numbers_are_exact_in_every_order() {
        let of = |all: Vec<f32>| sums_exactly(&HostTensor::vector(Data::F32(all)), false);
        assert!(of(vec![1.0, 2.0, 300.0]) && of(vec![0.25; 100]) && of(vec![0.0; 9]));
        assert!(!of(vec![0.1, 0.2]) && !of(vec![1e8, 1.0]) && !of(vec![f32::INFINITY, 1.0]));
        let ones = HostTensor::vector(Data::F32(vec![1.0; 5000]));
        assert!(sums_exactly(&ones, false) && !sums_exactly(&ones, true));
    }
}
