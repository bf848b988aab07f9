//! Functions of `torch` that create tensors from numbers, or join several.
//!
//! Invariant: shapes, dtypes and refusals are PyTorch's. Must not know methods.

use super::bind::{bind, nested, pack_sizes, spend};
use super::tensor_compute::one;
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::python::machine::Context;
use crate::python::tensors::{self, HostResult, Scalar};
use crate::python::value::typed::dtype_in_name;
use crate::python::value::{Args, Fault, Tensor, TensorCell, Value};

/// Names that [`call`] knows.
pub(super) const NAMES: &[&str] = &[
    "torch.tensor",
    "torch.as_tensor",
    "torch.asarray",
    "torch.from_numpy",
    "torch.scalar_tensor",
    "torch.Tensor",
    "torch.LongTensor",
    "torch.ShortTensor",
    "torch.CharTensor",
    "torch.ByteTensor",
    "torch.DoubleTensor",
    "torch.HalfTensor",
    "torch.BFloat16Tensor",
    "torch.IntTensor",
    "torch.FloatTensor",
    "torch.BoolTensor",
    "torch.zeros",
    "torch.ones",
    "torch.empty",
    "torch.full",
    "torch.zeros_like",
    "torch.ones_like",
    "torch.empty_like",
    "torch.full_like",
    "torch.arange",
    "torch.range",
    "torch.linspace",
    "torch.logspace",
    "torch.eye",
    "torch.tril_indices",
    "torch.triu_indices",
    "torch.meshgrid",
    "torch.cartesian_prod",
    "torch.cat",
    "torch.concat",
    "torch.concatenate",
    "torch.stack",
    "torch.hstack",
    "torch.vstack",
    "torch.where",
    "torch.broadcast_tensors",
    "torch.broadcast_shapes",
    "torch.result_type",
    "torch.promote_types",
    "torch.is_tensor",
    "torch.block_diag",
    "torch.unravel_index",
];

/// Calls one of [`NAMES`]; None for other names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let short = name.strip_prefix("torch.")?;
    NAMES.contains(&name).then(|| make(short, args, cx))
}

fn make(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    match name {
        "tensor" | "as_tensor" | "asarray" | "from_numpy" | "scalar_tensor" => {
            let bound = bind(name, args, &["data", "dtype"])?;
            let data = bound.need("data")?;
            if let (Value::Tensor(t), true) = (data, name != "tensor" && bound.dtype()?.is_none()) {
                // the same storage, though NumPy made it
                return Ok(Value::Tensor(if t.is_numpy() { TensorCell::of(t.handle().clone()) } else { t.clone() }));
            }
            let (data, dtype) = (nested(data, cx)?, bound.dtype()?);
            one(cx, |budget| tensors::tensor(&data, dtype, budget))
        }
        _ if name.ends_with("Tensor") => typed(name, args, cx),
        "zeros" | "ones" | "empty" => {
            let bound = bind(name, &pack_sizes(args, 0), &["size", "dtype"])?;
            let (shape, dtype) = (bound.shape("size")?, bound.dtype()?.unwrap_or_else(tensors::default_float));
            one(cx, |budget| tensors::full(&shape, Scalar::Int(i64::from(name == "ones")), Some(dtype), budget))
        }
        "full" => {
            let bound = bind(name, args, &["size", "fill_value", "dtype"])?;
            let (shape, value, dtype) = (bound.shape("size")?, bound.need_scalar("fill_value")?, bound.dtype()?);
            one(cx, |budget| tensors::full(&shape, value, dtype, budget))
        }
        "zeros_like" | "ones_like" | "empty_like" | "full_like" => like(name, args, cx),
        "arange" | "range" => arange(name, args, cx),
        "linspace" | "logspace" => {
            let bound = bind(
                name,
                args,
                if name == "linspace" {
                    &["start", "end", "steps", "dtype"]
                } else {
                    &["start", "end", "steps", "base", "dtype"]
                },
            )?;
            let (start, end) = (bound.need_scalar("start")?.as_f64(), bound.need_scalar("end")?.as_f64());
            let (steps, base, dtype) = (bound.need_int("steps")?, bound.float("base")?.unwrap_or(10.0), bound.dtype()?);
            one(cx, |budget| match name {
                "linspace" => tensors::linspace(start, end, steps, dtype, budget),
                _ => tensors::logspace(start, end, steps, base, dtype, budget),
            })
        }
        "eye" => {
            let bound = bind(name, args, &["n", "m", "dtype"])?;
            let n = bound.need_int("n")?;
            let (m, dtype) = (bound.int("m")?.unwrap_or(n), bound.dtype()?);
            if n < 0 || m < 0 {
                return Err(Fault::value_error(format!("n and m must be non-negative, got {n} and {m}")));
            }
            one(cx, |budget| tensors::eye(n as usize, m as usize, dtype, budget))
        }
        "tril_indices" | "triu_indices" => {
            let bound = bind(name, args, &["row", "col", "offset", "dtype"])?;
            let (rows, columns) = (bound.need_int("row")?.max(0) as usize, bound.need_int("col")?.max(0) as usize);
            let (offset, dtype) = (bound.int("offset")?.unwrap_or(0), bound.dtype()?.unwrap_or(DType::I64));
            one(cx, |budget| {
                tensors::cast(
                    &tensors::tri_indices(rows, columns, name == "tril_indices", offset, budget)?,
                    dtype,
                    budget,
                )
            })
        }
        "where" => where_(args, cx),
        "is_tensor" => Ok(Value::Bool(bind(name, args, &["obj"])?.get("obj").is_some_and(|v| v.as_tensor().is_some()))),
        "result_type" => {
            let bound = bind(name, args, &["tensor1", "tensor2"])?;
            let (a, b) = (bound.need_number("tensor1")?, bound.need_number("tensor2")?);
            Ok(Value::DType(tensors::result_type(&[a.operand(), b.operand()])))
        }
        "promote_types" => {
            let bound = bind(name, args, &["type1", "type2"])?;
            match (bound.need("type1")?.as_dtype(), bound.need("type2")?.as_dtype()) {
                (Some(a), Some(b)) => Ok(Value::DType(tensors::promote(a, b))),
                _ => Err(Fault::type_error("promote_types() needs two dtypes")),
            }
        }
        "broadcast_shapes" => {
            let mut out = Vec::new();
            for shape in &args.positional {
                let sizes =
                    super::bind::ints(shape).ok_or_else(|| Fault::type_error("broadcast_shapes() needs shapes"))?;
                let sizes: Vec<usize> = sizes.into_iter().map(|n| n.max(0) as usize).collect();
                out = spend(cx, |_| tensors::broadcast_shapes(&out, &sizes))?;
            }
            Ok(Value::ints(out))
        }
        _ => join(name, args, cx),
    }
}

/// `torch.Tensor(values)` and the constructors with a dtype in their name; ints are sizes of uninitialised tensors.
fn typed(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let dtype = dtype_in_name(name).unwrap_or_else(tensors::default_float);
    if args.positional.iter().all(|v| matches!(v, Value::Int(_))) {
        let bound = bind(name, &pack_sizes(args, 0), &["size"])?;
        let shape = if bound.given("size") { bound.shape("size")? } else { vec![0] };
        return one(cx, |budget| tensors::full(&shape, Scalar::Int(0), Some(dtype), budget));
    }
    let data = nested(bind(name, args, &["data"])?.need("data")?, cx)?;
    one(cx, |budget| tensors::tensor(&data, Some(dtype), budget))
}

fn like(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let params: &[&'static str] =
        if name == "full_like" { &["input", "fill_value", "dtype"] } else { &["input", "dtype"] };
    let bound = bind(name, args, params)?;
    let input = bound.need_handle("input")?;
    let value = match name {
        "full_like" => bound.need_scalar("fill_value")?,
        _ => Scalar::Int(i64::from(name == "ones_like")),
    };
    let (shape, dtype) = (input.handle().shape().to_vec(), bound.dtype()?.unwrap_or(input.handle().dtype()));
    one(cx, |budget| tensors::full(&shape, value, Some(dtype), budget))
}

/// `t.new_zeros(size)` and the like: the tensor's dtype unless one is given.
pub(super) fn new_like(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let full = name == "new_full";
    let packed = if full { args.clone() } else { pack_sizes(args, 0) };
    let bound = bind(name, &packed, if full { &["size", "fill_value", "dtype"] } else { &["size", "dtype"] })?;
    let value = if full { bound.need_scalar("fill_value")? } else { Scalar::Int(i64::from(name == "new_ones")) };
    let (shape, dtype) = (bound.shape("size")?, bound.dtype()?.unwrap_or(t.handle().dtype()));
    one(cx, |budget| tensors::full(&shape, value, Some(dtype), budget))
}

fn arange(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let one_bound = args.positional.len() == 1 && args.named("end").is_none();
    let bound = bind(
        name,
        args,
        if one_bound && args.named("start").is_none() {
            &["end", "start", "step", "dtype"]
        } else {
            &["start", "end", "step", "dtype"]
        },
    )?;
    let start = bound.scalar("start")?.unwrap_or(Scalar::Int(0));
    let (mut end, step) = (bound.need_scalar("end")?, bound.scalar("step")?.unwrap_or(Scalar::Int(1)));
    let mut dtype = bound.dtype()?;
    if name == "range" {
        // torch.range keeps its end and gives floats.
        dtype = dtype.or_else(|| Some(tensors::default_float()));
        end = Scalar::Float(end.as_f64() + step.as_f64() / 2.0);
    }
    one(cx, |budget| tensors::arange(start, end, step, dtype, budget))
}

fn where_(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind("where", args, &["condition", "input", "other"])?;
    let condition = match bound.need("condition")? {
        Value::Bool(b) => Scalar::Bool(*b).tensor(DType::Bool).map_err(super::bind::fault)?,
        _ => bound.need_tensor("condition")?,
    };
    if !bound.given("input") {
        return super::tensor_compute::nonzero_tuple(&spend(cx, |budget| tensors::nonzero(&condition, budget))?);
    }
    let (a, b) = (bound.need_number("input")?, bound.need_number("other")?);
    one(cx, |budget| tensors::where_(&condition, a.operand(), b.operand(), budget))
}

/// Functions of several tensors.
fn join(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    match name {
        "cat" | "concat" | "concatenate" | "stack" => {
            let bound = bind(name, args, &["tensors", "dim"])?;
            let (tensors, dim) = (bound.tensors("tensors")?, bound.int("dim")?.unwrap_or(0));
            one(cx, |budget| {
                if name == "stack" {
                    tensors::stack(&tensors, dim, budget)
                } else {
                    tensors::cat(&tensors, dim, budget)
                }
            })
        }
        "hstack" | "vstack" => {
            let tensors = bind(name, args, &["tensors"])?.tensors("tensors")?;
            one(cx, |budget| {
                let rank = if name == "hstack" { 1 } else { 2 };
                let wide = tensors.iter().map(|t| at_least(t, rank)).collect::<HostResult<Vec<_>>>()?;
                let flat = wide.iter().all(|t| t.shape().len() == 1);
                tensors::cat(&wide, i64::from(name == "hstack" && !flat), budget)
            })
        }
        "meshgrid" | "cartesian_prod" | "broadcast_tensors" | "block_diag" => several(name, args, cx),
        "unravel_index" => unravel_index(args, cx),
        _ => Err(Fault::unsupported(format!("torch.{name} is not evaluated here"))),
    }
}

/// Row-major coordinates of flat indices: a tensor a dimension.
fn unravel_index(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind("unravel_index", args, &["indices", "shape"])?;
    let (indices, shape) = (bound.need_tensor("indices")?, bound.need_ints("shape")?);
    let cells = shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d).filter(|_| *d >= 0)).unwrap_or(0);
    let flat = indices.to_i64_vec();
    if flat.iter().any(|i| !(-cells..cells).contains(i)) {
        return Err(Fault::value_error(format!("torch.unravel_index(): an index lies outside the shape {shape:?}")));
    }
    let mut stride = cells;
    let mut coordinates = Vec::with_capacity(shape.len());
    for size in &shape {
        stride /= (*size).max(1);
        let along = flat.iter().map(|i| i.rem_euclid(cells) / stride.max(1) % (*size).max(1)).collect();
        coordinates.push(one(cx, |_| {
            HostTensor::new(indices.shape().to_vec(), Data::I64(along))
                .map_err(|d| tensors::HostError::shape(d.message))
        })?);
    }
    Ok(Value::tuple(coordinates))
}

/// Leading extents of 1 up to a rank.
fn at_least(t: &HostTensor, rank: usize) -> HostResult {
    let mut shape = t.shape().to_vec();
    while shape.len() < rank {
        shape.insert(0, 1);
    }
    t.reshaped(shape).map_err(|d| tensors::HostError::shape(d.message))
}

/// Functions that take tensors one by one or as one list.
fn several(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut args = args.clone();
    if args.positional.iter().all(|v| v.as_tensor().is_some()) {
        args.positional = vec![Value::tuple(args.positional)];
    }
    let bound = bind(name, &args, &["tensors", "indexing"])?;
    let tensors = bound.tensors("tensors")?;
    let xy = bound.text("indexing")?.as_deref() == Some("xy");
    let list = |tensors: Vec<HostTensor>| Value::tuple(tensors.into_iter().map(Value::tensor).collect());
    match name {
        "meshgrid" => spend(cx, |budget| tensors::meshgrid(&tensors, xy, budget)).map(list),
        "cartesian_prod" => one(cx, |budget| {
            let grids = tensors::meshgrid(&tensors, false, budget)?;
            let flat = grids.iter().map(|t| t.reshaped([t.numel()]).map_err(|d| tensors::HostError::shape(d.message)));
            let flat = flat.collect::<HostResult<Vec<_>>>()?;
            if flat.len() == 1 { Ok(flat[0].clone()) } else { tensors::stack(&flat, 1, budget) }
        }),
        "broadcast_tensors" => spend(cx, |budget| {
            let mut shape = Vec::new();
            for t in &tensors {
                shape = tensors::broadcast_shapes(&shape, t.shape())?;
            }
            tensors.iter().map(|t| tensors::broadcast_to(t, &shape, budget)).collect::<HostResult<Vec<_>>>()
        })
        .map(list),
        _ => one(cx, |budget| block_diag(&tensors, budget)),
    }
}

fn block_diag(tensors: &[HostTensor], budget: &tensors::Budget) -> HostResult {
    let blocks = tensors.iter().map(|t| at_least(t, 2)).collect::<HostResult<Vec<_>>>()?;
    if blocks.iter().any(|t| t.shape().len() > 2) {
        return Err(tensors::HostError::shape("torch.block_diag: Input tensors must have 2 or fewer dimensions."));
    }
    let columns: usize = blocks.iter().map(|t| t.shape()[1]).sum();
    let (mut left, mut rows) = (0usize, Vec::new());
    for block in &blocks {
        let right = columns - left - block.shape()[1];
        rows.push(tensors::pad(block, &[left as i64, right as i64], Scalar::Int(0), budget)?);
        left += block.shape()[1];
    }
    tensors::cat(&rows, 0, budget)
}
