//! Methods that compute a new tensor: element-wise, reductions, sorting, gathering.
//!
//! Invariant: the tensor itself never changes here (see `tensor_in_place`). Must not know operators' syntax.

use super::bind::{Bound, Number, bind, pack_sizes, spend};
use super::tensor_move::{moving, placing};
use super::{tensor_table, ties};
use crate::base::{DType, HostTensor};
use crate::ir::ops::UnaryOp;
use crate::python::machine::Context;
use crate::python::tensors::{self, Binary, Dims, Extreme, Fold, Rounding, Scalar, Scan, Unary};
use crate::python::value::{Args, Fault, Value};

/// Names that [`call`] knows beyond the element-wise tables.
pub(super) const NAMES: &[&str] = &[
    "add",
    "sub",
    "subtract",
    "rsub",
    "div",
    "divide",
    "clamp",
    "clip",
    "clamp_min",
    "clamp_max",
    "round",
    "where",
    "nan_to_num",
    "softmax",
    "log_softmax",
    "logsumexp",
    "leaky_relu",
    "sum",
    "nansum",
    "prod",
    "any",
    "all",
    "count_nonzero",
    "mean",
    "var",
    "std",
    "norm",
    "min",
    "max",
    "amin",
    "amax",
    "aminmax",
    "argmin",
    "argmax",
    "median",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "diff",
    "sort",
    "argsort",
    "topk",
    "unique",
    "unique_consecutive",
    "nonzero",
    "argwhere",
    "bincount",
    "histc",
    "searchsorted",
    "bucketize",
    "isin",
    "equal",
    "allclose",
    "tril",
    "triu",
    "diag",
    "diag_embed",
    "trace",
    "repeat",
    "tile",
    "repeat_interleave",
    "roll",
    "flip",
    "fliplr",
    "flipud",
    "rot90",
    "split",
    "chunk",
    "unbind",
    "tensor_split",
    "outer",
    "dot",
    "inner",
    "vdot",
    "matmul",
    "mm",
    "bmm",
    "mv",
    "gather",
    "take_along_dim",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "index_select",
    "index_fill",
    "index_add",
    "index_copy",
    "take",
    "masked_fill",
    "masked_select",
    "masked_scatter",
    "one_hot",
    "pad",
    "dropout",
    "multinomial",
];

/// A new value by the method's name; None for other names.
pub(super) fn call(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if let Some(op) = tensor_table::unary(name) {
        return Some(bind(name, args, &[]).and_then(|_| one(cx, |budget| tensors::unary(op, t, budget))));
    }
    if let Some(op) = tensor_table::binary(name) {
        return Some(two(name, op, Number::Tensor(t.clone()), args, cx));
    }
    elementwise(name, t, args, cx)
        .or_else(|| reduction(name, t, args, cx))
        .or_else(|| ordering(name, t, args, cx))
        .or_else(|| moving(name, t, args, cx))
        .or_else(|| placing(name, t, args, cx))
}

/// One host operation with a new tensor as its result.
pub(super) fn one(cx: &mut Context, f: impl FnOnce(&tensors::Budget) -> tensors::HostResult) -> Result<Value, Fault> {
    spend(cx, f).map(Value::tensor)
}

/// Two tensors as PyTorch's (values, indices).
pub(super) fn pair(
    cx: &mut Context,
    f: impl FnOnce(&tensors::Budget) -> tensors::HostResult<(HostTensor, HostTensor)>,
) -> Result<Value, Fault> {
    let (a, b) = spend(cx, f)?;
    Ok(Value::tuple(vec![Value::tensor(a), Value::tensor(b)]))
}

/// `a op other`.
pub(super) fn two(name: &str, op: Binary, a: Number, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let param = if op == Binary::Pow { "exponent" } else { "other" };
    let b = bind(name, args, &[param])?.need_number(param)?;
    one(cx, |budget| {
        if name == "float_power" {
            let wide = a.operand();
            let wide = tensors::binary(
                Binary::Mul,
                wide,
                tensors::Operand::Tensor(&Scalar::Float(1.0).tensor(DType::F64)?),
                budget,
            )?;
            return tensors::binary(
                op,
                tensors::Operand::Tensor(&tensors::cast(&wide, DType::F64, budget)?),
                b.operand(),
                budget,
            );
        }
        tensors::binary(op, a.operand(), b.operand(), budget)
    })
}

/// `a + alpha * other` and `a - alpha * other`.
pub(super) fn sum_of(name: &str, a: Number, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind(name, args, &["other", "alpha"])?;
    let (b, alpha) = (bound.need_number("other")?, bound.scalar("alpha")?);
    one(cx, |budget| match (name, alpha) {
        ("add", None) => tensors::binary(Binary::Add, a.operand(), b.operand(), budget),
        ("rsub", None) => tensors::binary(Binary::Sub, b.operand(), a.operand(), budget),
        (_, None) => tensors::binary(Binary::Sub, a.operand(), b.operand(), budget),
        // `rsub(a, b, alpha)` is `b - alpha * a`
        ("rsub", Some(alpha)) => tensors::scaled_sum(b.operand(), a.operand(), alpha, true, budget),
        (_, Some(alpha)) => tensors::scaled_sum(a.operand(), b.operand(), alpha, name != "add", budget),
    })
}

/// `a / other` with its rounding mode.
pub(super) fn quotient(name: &str, a: Number, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind(name, args, &["other", "rounding_mode"])?;
    let rounding = match bound.text("rounding_mode")?.as_deref() {
        None => Rounding::None,
        Some("floor") => Rounding::Floor,
        Some("trunc") => Rounding::Trunc,
        Some(other) => {
            let message =
                format!("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'");
            return Err(Fault::new("RuntimeError", "tensor-op", message));
        }
    };
    let b = bound.need_number("other")?;
    one(cx, |budget| tensors::binary(rounding.operation(), a.operand(), b.operand(), budget))
}

fn elementwise(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let own = || Number::Tensor(t.clone());
    Some(match name {
        "add" | "sub" | "subtract" | "rsub" => sum_of(name, own(), args, cx),
        "div" | "divide" => quotient(name, own(), args, cx),
        "clamp" | "clip" => {
            bind(name, args, &["min", "max"]).and_then(|bound| clamp(t, bound.number("min")?, bound.number("max")?, cx))
        }
        "clamp_min" => bind(name, args, &["min"]).and_then(|bound| clamp(t, Some(bound.need_number("min")?), None, cx)),
        "clamp_max" => bind(name, args, &["max"]).and_then(|bound| clamp(t, None, Some(bound.need_number("max")?), cx)),
        "round" => bind(name, args, &["decimals"]).and_then(|bound| round(t, bound.int("decimals")?.unwrap_or(0), cx)),
        "where" => bind(name, args, &["condition", "other"]).and_then(|bound| {
            let (condition, other) = (bound.need_tensor("condition")?, bound.need_number("other")?);
            one(cx, |budget| tensors::where_(&condition, t.into(), other.operand(), budget))
        }),
        "nan_to_num" => bind(name, args, &["nan", "posinf", "neginf"]).and_then(|bound| nan_to_num(t, &bound, cx)),
        "leaky_relu" => bind(name, args, &["negative_slope"]).and_then(|bound| {
            let slope = bound.float("negative_slope")?.unwrap_or(0.01);
            one(cx, |budget| {
                let low = tensors::binary(Binary::Mul, t.into(), Scalar::Float(slope).into(), budget)?;
                let positive = tensors::binary(Binary::Gt, t.into(), Scalar::Int(0).into(), budget)?;
                tensors::where_(&positive, t.into(), (&low).into(), budget)
            })
        }),
        "allclose" => allclose(t, args, cx),
        "equal" => bind(name, args, &["other"]).and_then(|bound| {
            let other = bound.need_tensor("other")?;
            // it makes no tensor that would be charged
            cx.charge_steps(t.numel() as u64 / 12)?;
            let same = other.shape() == t.shape() && (0..t.numel()).all(|i| t.float_at(i) == other.float_at(i));
            Ok(Value::Bool(same))
        }),
        _ => return None,
    })
}

fn clamp(t: &HostTensor, low: Option<Number>, high: Option<Number>, cx: &mut Context) -> Result<Value, Fault> {
    let operand = |n: &Option<Number>| n.clone();
    let (low, high) = (operand(&low), operand(&high));
    one(cx, |budget| tensors::clamp(t, low.as_ref().map(Number::operand), high.as_ref().map(Number::operand), budget))
}

fn round(t: &HostTensor, decimals: i64, cx: &mut Context) -> Result<Value, Fault> {
    one(cx, |budget| {
        if decimals == 0 {
            return tensors::unary(Unary::Rounding(UnaryOp::Round), t, budget);
        }
        let scale = Scalar::Float(10f64.powi(decimals.unsigned_abs().min(300) as i32));
        let (up, down) = if decimals > 0 { (Binary::Mul, Binary::Div) } else { (Binary::Div, Binary::Mul) };
        let scaled = tensors::unary(
            Unary::Rounding(UnaryOp::Round),
            &tensors::binary(up, t.into(), scale.into(), budget)?,
            budget,
        )?;
        tensors::binary(down, (&scaled).into(), scale.into(), budget)
    })
}

fn nan_to_num(t: &HostTensor, bound: &Bound, cx: &mut Context) -> Result<Value, Fault> {
    let largest = match t.dtype() {
        DType::F64 => f64::MAX,
        DType::F16 => 65504.0,
        DType::BF16 => half::bf16::MAX.to_f64(),
        _ => f64::from(f32::MAX),
    };
    let (nan, high) = (bound.float("nan")?.unwrap_or(0.0), bound.float("posinf")?.unwrap_or(largest));
    let low = bound.float("neginf")?.unwrap_or(-largest);
    one(cx, |budget| {
        let mut out = t.clone();
        for (test, value) in [(Unary::IsNan, nan), (Unary::IsPosInf, high), (Unary::IsNegInf, low)] {
            if t.dtype().is_float() {
                let mask = tensors::unary(test, t, budget)?;
                out = tensors::masked_fill(&out, &mask, &Scalar::Float(value).into(), budget)?;
            }
        }
        Ok(out)
    })
}

fn allclose(t: &HostTensor, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut all = vec![Value::tensor(t.clone())];
    all.extend(args.positional.iter().cloned());
    let args = Args { positional: all, keyword: args.keyword.clone() };
    let close = cx.call_shipped("torch.isclose", args, false);
    let close = close.unwrap_or_else(|| Err(Fault::unsupported("allclose")))?;
    let close = close.as_tensor().map(|t| t.get());
    Ok(Value::Bool(close.is_some_and(|c| (0..c.numel()).all(|i| c.int_at(i) != 0))))
}

/// `dim=` and `keepdim=`.
fn dims(bound: &Bound) -> Result<Dims, Fault> {
    Ok(Dims { dims: bound.ints("dim")?, keep: bound.flag("keepdim")? })
}

fn reduction(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let fold = |op: Fold, cx: &mut Context| -> Result<Value, Fault> {
        let packed = pack_sizes(args, 0);
        let bound = bind(name, if name == "count_nonzero" { &packed } else { args }, &["dim", "keepdim", "dtype"])?;
        let (dims, dtype) = (dims(&bound)?, bound.dtype()?);
        one(cx, |budget| tensors::fold(op, t, &dims, dtype, budget))
    };
    Some(match name {
        "sum" => fold(Fold::Sum, cx),
        "prod" => fold(Fold::Prod, cx),
        "any" => fold(Fold::Any, cx),
        "all" => fold(Fold::All, cx),
        "count_nonzero" => fold(Fold::CountNonzero, cx),
        "nansum" => spend(cx, |budget| match t.dtype().is_float() {
            true => tensors::masked_fill(t, &tensors::unary(Unary::IsNan, t, budget)?, &Scalar::Int(0).into(), budget),
            false => Ok(t.clone()),
        })
        .and_then(|clean| call("sum", &clean, args, cx).unwrap_or_else(|| Err(Fault::unsupported("nansum")))),
        "mean" => bind(name, args, &["dim", "keepdim", "dtype"]).and_then(|bound| {
            let (dims, dtype) = (dims(&bound)?, bound.dtype()?);
            one(cx, |budget| tensors::mean(t, &dims, dtype, budget))
        }),
        "var" | "std" => bind(name, args, &["dim", "unbiased", "keepdim", "correction"])
            .and_then(|bound| variance(name, t, &bound, cx)),
        "norm" => bind(name, args, &["p", "dim", "keepdim", "dtype"]).and_then(|bound| {
            let (dims, p) = (dims(&bound)?, bound.get("p").and_then(Value::as_float).unwrap_or(2.0));
            one(cx, |budget| tensors::norm(t, p, &dims, budget))
        }),
        "logsumexp" => bind(name, args, &["dim", "keepdim"]).and_then(|bound| {
            let dims = dims(&bound)?;
            one(cx, |budget| tensors::logsumexp(t, &dims, budget))
        }),
        "softmax" | "log_softmax" => bind(name, args, &["dim", "dtype"]).and_then(|bound| {
            let (dim, dtype) = (bound.need_int("dim")?, bound.dtype()?);
            one(cx, |budget| tensors::softmax(t, dim, name == "log_softmax", dtype, budget))
        }),
        "min" | "max" => extreme(name, t, args, cx),
        "amin" | "amax" => bind(name, args, &["dim", "keepdim"]).and_then(|bound| {
            let dims = dims(&bound)?;
            one(cx, |budget| tensors::extreme(which(name), t, &dims, budget))
        }),
        "aminmax" => bind(name, args, &["dim", "keepdim"]).and_then(|bound| {
            let dims = dims(&bound)?;
            pair(cx, |budget| {
                Ok((
                    tensors::extreme(Extreme::Min, t, &dims, budget)?,
                    tensors::extreme(Extreme::Max, t, &dims, budget)?,
                ))
            })
        }),
        "argmin" | "argmax" => bind(name, args, &["dim", "keepdim"]).and_then(|bound| {
            let (dim, keep) = (bound.int("dim")?, bound.flag("keepdim")?);
            one(cx, |budget| tensors::arg_extreme(which(name), t, dim, keep, budget))
        }),
        "median" => bind(name, args, &["dim", "keepdim"]).and_then(|bound| {
            let (dim, keep) = (bound.int("dim")?, bound.flag("keepdim")?);
            match dim {
                Some(dim) => pair(cx, |budget| tensors::median_dim(t, dim, keep, budget)),
                None => one(cx, |budget| {
                    let flat = t.reshaped([t.numel()]).map_err(|d| tensors::HostError::shape(d.message))?;
                    Ok(tensors::median_dim(&flat, 0, false, budget)?.0)
                }),
            }
        }),
        "trace" => bind(name, args, &[]).and_then(|_| {
            one(cx, |budget| {
                let diagonal = tensors::Strided::contiguous(t.shape()).diagonal(0, 0, 1)?.read(t, budget)?;
                tensors::fold(Fold::Sum, &diagonal, &Dims::default(), None, budget)
            })
        }),
        _ => return None,
    })
}

fn variance(name: &str, t: &HostTensor, bound: &Bound, cx: &mut Context) -> Result<Value, Fault> {
    // var(unbiased) and var(dim, unbiased, keepdim) share their first position.
    let first_is_flag = matches!(bound.get("dim"), Some(Value::Bool(_)));
    let unbiased = if first_is_flag { bound.get("dim") } else { bound.get("unbiased") }.and_then(Value::as_bool);
    let correction = bound.float("correction")?.unwrap_or(if unbiased == Some(false) { 0.0 } else { 1.0 });
    let dims = if first_is_flag { Dims::default() } else { dims(bound)? };
    one(cx, |budget| tensors::variance(t, &dims, correction, name == "std", budget))
}

fn which(name: &str) -> Extreme {
    if name.ends_with("min") { Extreme::Min } else { Extreme::Max }
}

/// `max()`, `max(dim)` and `max(other)`.
fn extreme(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    if let Some(other) = args.get(0, "other").and_then(Value::as_tensor) {
        let op = if name == "min" { Binary::Min } else { Binary::Max };
        let other = other.get();
        return one(cx, |budget| tensors::binary(op, t.into(), (&other).into(), budget));
    }
    let bound = bind(name, args, &["dim", "keepdim"])?;
    match bound.int("dim")? {
        None => one(cx, |budget| tensors::extreme(which(name), t, &Dims::default(), budget)),
        Some(dim) => {
            let keep = bound.flag("keepdim")?;
            pair(cx, |budget| tensors::extreme_dim(which(name), t, dim, keep, budget))
        }
    }
}

fn ordering(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    Some(match name {
        "cumsum" | "cumprod" => bind(name, args, &["dim", "dtype"]).and_then(|bound| {
            let (dim, dtype) = (bound.need_int("dim")?, bound.dtype()?);
            one(cx, |budget| {
                tensors::scan(if name == "cumsum" { Scan::Sum } else { Scan::Prod }, t, dim, dtype, budget)
            })
        }),
        "cummax" | "cummin" => bind(name, args, &["dim"]).and_then(|bound| {
            let dim = bound.need_int("dim")?;
            pair(cx, |budget| tensors::cumulative_extreme(name == "cummax", t, dim, budget))
        }),
        "diff" => bind(name, args, &["n", "dim", "prepend", "append"]).and_then(|bound| diff(t, &bound, cx)),
        "sort" | "argsort" => {
            bind(name, args, &["dim", "descending", "stable"]).and_then(|bound| ties::sorted(name, t, &bound, cx))
        }
        "topk" => bind(name, args, &["k", "dim", "largest", "sorted"]).and_then(|bound| ties::largest(t, &bound, cx)),
        "unique" | "unique_consecutive" => unique(name, t, args, cx),
        "nonzero" | "argwhere" => bind(name, args, &["as_tuple"]).and_then(|bound| {
            let places = spend(cx, |budget| tensors::nonzero(t, budget))?;
            if !bound.flag("as_tuple")? {
                return Ok(Value::tensor(places));
            }
            nonzero_tuple(&places)
        }),
        "bincount" => bind(name, args, &["weights", "minlength"]).and_then(|bound| {
            let (weights, least) = (bound.tensor("weights")?, bound.int("minlength")?.unwrap_or(0));
            one(cx, |budget| tensors::bincount(t, weights.as_ref(), least, budget))
        }),
        "histc" => bind(name, args, &["bins", "min", "max"]).and_then(|bound| {
            let bins = bound.int("bins")?.unwrap_or(100);
            let (low, high) = (bound.float("min")?.unwrap_or(0.0), bound.float("max")?.unwrap_or(0.0));
            one(cx, |budget| tensors::histc(t, bins, low, high, budget))
        }),
        "searchsorted" => bind(name, args, &["values", "out_int32", "right", "side"]).and_then(|bound| {
            let (values, int32) = (bound.need_number("values")?, bound.flag("out_int32")?);
            let right = bound.flag("right")? || bound.text("side")?.as_deref() == Some("right");
            one(cx, |budget| tensors::searchsorted(t, &values.operand(), right, int32, budget))
        }),
        "bucketize" => bind(name, args, &["boundaries", "out_int32", "right"]).and_then(|bound| {
            let (edges, int32, right) =
                (bound.need_tensor("boundaries")?, bound.flag("out_int32")?, bound.flag("right")?);
            one(cx, |budget| tensors::bucketize(&t.into(), &edges, right, int32, budget))
        }),
        "isin" => bind(name, args, &["test_elements", "assume_unique", "invert"]).and_then(|bound| {
            let (tests, invert) = (bound.need_number("test_elements")?, bound.flag("invert")?);
            one(cx, |budget| isin(t, &tests, invert, budget))
        }),
        _ => return None,
    })
}

/// The columns of `torch.nonzero` one by one.
pub(super) fn nonzero_tuple(places: &HostTensor) -> Result<Value, Fault> {
    let &[count, rank] = places.shape() else { return Err(Fault::unsupported("nonzero of this shape")) };
    let column = |d: usize| (0..count).map(|row| places.int_at(row * rank + d)).collect();
    let columns = (0..rank).map(|d| Value::tensor(HostTensor::vector(crate::base::tensor::Data::I64(column(d)))));
    Ok(Value::tuple(columns.collect()))
}

fn diff(t: &HostTensor, bound: &Bound, cx: &mut Context) -> Result<Value, Fault> {
    let (n, dim) = (bound.int("n")?.unwrap_or(1), bound.int("dim")?.unwrap_or(-1));
    let parts = [bound.tensor("prepend")?, Some(t.clone()), bound.tensor("append")?];
    let parts: Vec<HostTensor> = parts.into_iter().flatten().collect();
    one(cx, |budget| {
        let joined = if parts.len() == 1 { t.clone() } else { tensors::cat(&parts, dim, budget)? };
        tensors::diff(&joined, n, dim, budget)
    })
}

fn unique(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let sorted = bind(name, args, &["sorted", "return_inverse", "return_counts", "dim"]);
    let bound = if name == "unique" { sorted? } else { bind(name, args, &["return_inverse", "return_counts", "dim"])? };
    if let Some(dim) = bound.get("dim").filter(|_| t.shape().len() != 1) {
        let flags = [bound.flag("return_inverse")?, bound.flag("return_counts")?].map(Value::Bool);
        let [inverse, counts] = flags;
        let given = vec![Value::tensor(t.clone()), dim.clone(), Value::Bool(name == "unique"), inverse, counts];
        let found = cx.call_shipped("torch.unique_rows", Args::of(given), false);
        return found.unwrap_or_else(|| Err(Fault::unsupported("unique along a dimension")));
    }
    let (values, inverse, counts) =
        spend(
            cx,
            |budget| if name == "unique" { tensors::unique(t, budget) } else { tensors::unique_consecutive(t, budget) },
        )?;
    let mut out = vec![Value::tensor(values)];
    if bound.flag("return_inverse")? {
        out.push(Value::tensor(inverse));
    }
    if bound.flag("return_counts")? {
        out.push(Value::tensor(counts));
    }
    Ok(if out.len() == 1 { out.remove(0) } else { Value::tuple(out) })
}

fn isin(t: &HostTensor, tests: &Number, invert: bool, budget: &tensors::Budget) -> tensors::HostResult {
    let dtype = tensors::result_type(&[t.into(), tests.operand()]);
    let tests = match tests {
        Number::Tensor(x) => tensors::cast(x, dtype, budget)?,
        Number::Scalar(s) => s.tensor(dtype)?,
    };
    let own = tensors::cast(t, dtype, budget)?;
    budget.charge(tests.shape(), DType::I64)?;
    let mut known: Vec<u64> = (0..tests.numel()).map(|i| bits(&tests, i)).collect();
    let levels = u64::from(usize::BITS - known.len().leading_zeros());
    budget.work_each(known.len(), 20 * levels)?;
    known.sort_unstable();
    budget.charge(t.shape(), DType::Bool)?;
    budget.work_each(own.numel(), 20 * levels)?;
    let found = (0..own.numel()).map(|i| u8::from(known.binary_search(&bits(&own, i)).is_ok() != invert)).collect();
    HostTensor::new(t.shape(), crate::base::tensor::Data::Bool(found)).map_err(|d| tensors::HostError::shape(d.message))
}

/// An element as something to look up; -0.0 is 0.0.
fn bits(t: &HostTensor, i: usize) -> u64 {
    if t.dtype().is_float() { (t.float_at(i) + 0.0).to_bits() } else { t.int_at(i) as u64 }
}
