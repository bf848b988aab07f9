//! Tensors with elements that depend on the last bit of a function which differs between processors in PyTorch.
//!
//! Invariant: a value computed from such a tensor is such a tensor; sums are exempt if every order of the terms gives
//! the same. Perturbed results are possible results of another processor: equal arguments give equal results, and
//! values that are exact everywhere stay. Must not know what the functions compute.

use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::python::tensors::Budget;
use crate::python::value::{Args, Tensor, Value, meter};
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

/// Up to this number of floats are added one after another on every processor.
const IN_ORDER: usize = 4;

/// The dependencies of a call's arguments, or of the call itself; computed before it runs.
pub(super) fn of_call(name: &str, receiver: Option<&Value>, args: &Args) -> Option<Rc<str>> {
    let all = || receiver.into_iter().chain(&args.positional).chain(args.keyword.iter().map(|(_, v)| v));
    all().find_map(of_value).or_else(|| own(name, receiver, args).map(Into::into))
}

/// The call itself, where its own result has a last bit that differs.
fn own<'a>(name: &'a str, receiver: Option<&Value>, args: &Args) -> Option<&'a str> {
    // of Python's own functions and operators only these take tensors, or count by floats; `math` computes numbers with
    // the C library, not with the vector libraries of PyTorch
    let is_python = !name.contains('.') && !matches!(name, "sum" | "pow" | "range" | "matmul");
    if receiver.is_none() && (is_python || name.starts_with("math.")) {
        return None;
    }
    let all = || receiver.into_iter().chain(&args.positional).chain(args.keyword.iter().map(|(_, v)| v));
    let short = name.rsplit('.').next().unwrap_or(name).trim_end_matches('_');
    if matches!(short, "arange" | "range") {
        return (!counts_exactly(args)).then_some(short);
    }
    let tensors: Vec<Tensor> = all().flat_map(tensors_of).collect();
    if name == "pow" && tensors.is_empty() {
        return None;
    }
    is_rough(short, &tensors, all().last()).then_some(short)
}

/// A call whose result is to be perturbed: its name, and its arguments before it ran.
pub(super) struct Shaking {
    seed: u64,
    name: String,
    given: Vec<HostTensor>,
}

impl Shaking {
    /// For a call that is about to run; None if nothing is perturbed, or the result is the same everywhere.
    pub(super) fn of(seed: Option<u64>, name: &str, receiver: Option<&Value>, args: &Args) -> Option<Shaking> {
        let (seed, name) = (seed?, own(name, receiver, args)?.to_string());
        let all = receiver.into_iter().chain(&args.positional).chain(args.keyword.iter().map(|(_, v)| v));
        Some(Shaking { seed, name, given: all.flat_map(tensors_of).map(|t| t.get()).collect() })
    }

    /// Shakes what the call gave.
    pub(super) fn shake(self, result: &Value) {
        for tensor in tensors_of(result) {
            if let Some(shaken) = self.shaken(&tensor.get()) {
                // with its own shape and dtype, so that it fits
                let _ = tensor.handle().assign(&shaken, &Budget::new(u64::MAX));
            }
        }
    }

    fn shaken(&self, result: &HostTensor) -> Option<HostTensor> {
        let by = |i: usize, x: f64, last: f64| {
            let up = is_up(self.seed, self.key(i, result.numel()));
            let is_sum = SUMS.contains(&&*self.name);
            let size = match is_sum {
                true => self.terms(result.numel()) * last * 2.0,
                false => x.abs() * last * units(&self.name),
            };
            // sums that every order gives alike do not come here
            match up {
                _ if !is_sum && is_exact(x) => x,
                true => x + size,
                false => x - size,
            }
        };
        let data = match result.data() {
            Data::F32(all) => Data::F32(
                all.iter().enumerate().map(|(i, x)| by(i, f64::from(*x), f64::from(f32::EPSILON)) as f32).collect(),
            ),
            Data::F64(all) => Data::F64(all.iter().enumerate().map(|(i, x)| by(i, *x, f64::EPSILON)).collect()),
            _ => return None,
        };
        HostTensor::new(result.shape(), data).ok()
    }

    /// The inputs of an element: equal arguments give equal results, of odd and even functions too.
    fn key(&self, i: usize, all: usize) -> u64 {
        let own = self.given.iter().filter(|t| t.numel() == all && t.dtype().is_float());
        own.map(|t| t.float_at(i).abs().to_bits()).reduce(mixed).unwrap_or(i as u64)
    }

    /// About the sum of the sizes of the terms of one element.
    fn terms(&self, results: usize) -> f64 {
        let mean = |t: &HostTensor| {
            let sizes = (0..t.numel()).map(|i| t.float_at(i).abs()).filter(|x| x.is_finite());
            sizes.sum::<f64>() / t.numel().max(1) as f64
        };
        let floats = || self.given.iter().filter(|t| t.dtype().is_float());
        match (floats().next(), floats().nth(1)) {
            (Some(a), Some(b)) => mean(a) * mean(b) * a.shape().last().copied().unwrap_or(1) as f64,
            (Some(a), None) if matches!(&*self.name, "mean" | "var" | "std") => mean(a),
            (Some(a), None) => mean(a) * (a.numel() / results.max(1)).max(1) as f64,
            _ => 0.0,
        }
    }
}

/// The largest observed error of PyTorch in units in the last place: one for elementary functions, more for
/// compositions.
fn units(name: &str) -> f64 {
    match name {
        "digamma" | "psi" | "polygamma" => 16.0,
        "sinh" | "erfinv" | "lgamma" | "gammaln" | "logit" | "xlogy" | "entr" | "mish" | "gelu" | "softplus" => 2.0,
        "softmax" | "log_softmax" | "logsumexp" | "var" | "norm" | "logspace" | "log_ndtr" | "erfcx" => 4.0,
        _ => 1.0,
    }
}

/// Whether a result is the same on every processor: it has few digits, like those of exact function values.
fn is_exact(x: f64) -> bool {
    let whole = x.fract() == 0.0 && x.abs() < 16384.0;
    whole || !x.is_finite() || f64::from(half::bf16::from_f64(x)) == x
}

/// The first two seeds go one way each, the others by chance.
pub(crate) fn is_up(seed: u64, key: u64) -> bool {
    match seed {
        0 => true,
        1 => false,
        _ => mixed(seed, key) & 1 == 1,
    }
}

fn mixed(a: u64, b: u64) -> u64 {
    crate::base::rng::Rng::new(a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b).next_u64()
}

/// The dependencies of an operator's operands.
pub(super) fn of_operands(operands: &[&Value]) -> Option<Rc<str>> {
    operands.iter().find_map(|v| of_value(v))
}

fn of_value(value: &Value) -> Option<Rc<str>> {
    tensors_of(value).iter().find_map(|t| t.handle().rough())
}

/// A tensor, or those of a list.
fn tensors_of(value: &Value) -> Vec<Tensor> {
    let listed = |items: &[Value]| -> Vec<Tensor> {
        meter::work(items.len());
        items.iter().filter_map(|v| v.as_tensor().cloned()).collect()
    };
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

    #[test]
    fn sums_of_whole_numbers_are_exact_in_every_order() {
        let of = |all: Vec<f32>| sums_exactly(&HostTensor::vector(Data::F32(all)), false);
        assert!(of(vec![1.0, 2.0, 300.0]) && of(vec![0.25; 100]) && of(vec![0.0; 9]));
        assert!(!of(vec![0.1, 0.2]) && !of(vec![1e8, 1.0]) && !of(vec![f32::INFINITY, 1.0]));
        let ones = HostTensor::vector(Data::F32(vec![1.0; 5000]));
        assert!(sums_exactly(&ones, false) && !sums_exactly(&ones, true));
    }
}
