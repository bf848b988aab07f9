//! Methods that rearrange, join, place and pick elements into new tensors.
//!
//! Invariant: as in `tensor_compute`: the tensor itself never changes. Must not know operators' syntax.

use super::bind::{bind, fault, pack_sizes, spend};
use super::tensor_compute::one;
use crate::base::{DType, HostTensor};
use crate::python::machine::Context;
use crate::python::tensors::{self, Budget, Gather, HostResult, Scalar, Strided};
use crate::python::value::{Args, Fault, Tensor, TensorCell, Value};

/// Repeats, rolls, flips, triangles, products; None for other names.
pub(super) fn moving(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    Some(match name {
        "tril" | "triu" => bind(name, args, &["diagonal"]).and_then(|bound| {
            let diagonal = bound.int("diagonal")?.unwrap_or(0);
            one(cx, |budget| tensors::triangle(t, name == "tril", diagonal, budget))
        }),
        "diag" => bind(name, args, &["diagonal"]).and_then(|bound| {
            let diagonal = bound.int("diagonal")?.unwrap_or(0);
            one(cx, |budget| match t.shape().len() {
                1 => tensors::diag_embed(t, diagonal, budget),
                _ => Strided::contiguous(t.shape()).diagonal(diagonal, 0, 1)?.read(t, budget),
            })
        }),
        "diag_embed" if t.shape().len() != 1 => {
            Err(Fault::unsupported("diag_embed of more than a vector is not evaluated here"))
        }
        "diag_embed" => bind(name, args, &["offset"]).and_then(|bound| {
            let offset = bound.int("offset")?.unwrap_or(0);
            one(cx, |budget| tensors::diag_embed(t, offset, budget))
        }),
        "repeat" => bind(name, &pack_sizes(args, 0), &["repeats"]).and_then(|bound| {
            let sizes = bound.need_ints("repeats")?;
            one(cx, |budget| tensors::repeat(t, &sizes, budget))
        }),
        "tile" => bind(name, &pack_sizes(args, 0), &["dims"]).and_then(|bound| {
            let mut sizes = bound.need_ints("dims")?;
            while sizes.len() < t.shape().len() {
                sizes.insert(0, 1);
            }
            one(cx, |budget| tensors::repeat(t, &sizes, budget))
        }),
        "repeat_interleave" => repeat_interleave(t, args, cx),
        "roll" => bind(name, args, &["shifts", "dims"]).and_then(|bound| {
            let (shifts, dims) = (bound.need_ints("shifts")?, bound.ints("dims")?.unwrap_or_default());
            one(cx, |budget| tensors::roll(t, &shifts, &dims, budget))
        }),
        "flip" => bind(name, &pack_sizes(args, 0), &["dims"]).and_then(|bound| {
            let dims = bound.need_ints("dims")?;
            one(cx, |budget| tensors::flip(t, &dims, budget))
        }),
        "fliplr" => one(cx, |budget| tensors::flip(t, &[1], budget)),
        "flipud" => one(cx, |budget| tensors::flip(t, &[0], budget)),
        "rot90" => bind(name, args, &["k", "dims"]).and_then(|bound| {
            let (k, dims) = (bound.int("k")?.unwrap_or(1), bound.ints("dims")?.unwrap_or_else(|| vec![0, 1]));
            let &[a, b] = &dims[..] else { return Err(Fault::value_error("rot90 turns in a plane of two dims")) };
            one(cx, |budget| tensors::rot90(t, k, (a, b), budget))
        }),
        "outer" | "dot" | "inner" | "vdot" | "matmul" | "mm" | "bmm" | "mv" => {
            let param = if matches!(name, "mm" | "bmm") {
                "mat2"
            } else if name == "outer" {
                "vec2"
            } else {
                "other"
            };
            bind(name, args, &[param]).and_then(|bound| {
                let other = bound.need_tensor(param)?;
                one(cx, |budget| product(name, t, &other, budget))
            })
        }
        "pad" => bind(name, args, &["pad", "mode", "value"]).and_then(|bound| {
            if let Some(mode) = bound.text("mode")?.filter(|m| *m != "constant") {
                let given = vec![Value::tensor(t.clone()), bound.need("pad")?.clone(), Value::str(mode)];
                let made = cx.call_shipped("torch.pad_by_place", Args::of(given), false);
                return made.unwrap_or_else(|| Err(Fault::unsupported("pad by place")));
            }
            let (amounts, value) = (bound.need_ints("pad")?, bound.scalar("value")?.unwrap_or(Scalar::Int(0)));
            one(cx, |budget| tensors::pad(t, &amounts, value, budget))
        }),
        "one_hot" => bind(name, args, &["num_classes"]).and_then(|bound| {
            let classes = bound.int("num_classes")?.unwrap_or(-1);
            one(cx, |budget| one_hot(t, classes, budget))
        }),
        "dropout" => {
            let mut given = args.clone();
            given.positional.insert(0, Value::tensor(t.clone()));
            let made = cx.call_shipped("torch.nn.functional.dropout", given, false);
            made.unwrap_or_else(|| Err(Fault::unsupported("dropout")))
        }
        "multinomial" => {
            let message =
                format!("{name} draws random numbers that are not proven equal to PyTorch's, so it is not evaluated");
            Err(Fault::unsupported(message)
                .hint("draw with torch.rand and a seeded generator, or pass the tensor as an argument"))
        }
        _ => return None,
    })
}

fn product(name: &str, a: &HostTensor, b: &HostTensor, budget: &Budget) -> HostResult {
    let need = |want: (usize, usize)| {
        let have = (a.shape().len(), b.shape().len());
        if have == want {
            return tensors::matmul(a, b, budget);
        }
        let message =
            format!("{name} expects a {}-D and a {}-D tensor, but got {}-D and {}-D", want.0, want.1, have.0, have.1);
        Err(tensors::HostError::shape(message))
    };
    match name {
        "outer" => tensors::outer(a, b, budget),
        "dot" | "vdot" => tensors::dot(a, b, budget),
        "inner" if a.shape().is_empty() || b.shape().is_empty() => {
            tensors::binary(tensors::Binary::Mul, a.into(), b.into(), budget)
        }
        "inner" if b.shape().len() == 1 => tensors::matmul(a, b, budget),
        "inner" => tensors::matmul(a, &Strided::contiguous(b.shape()).transpose(-1, -2)?.read(b, budget)?, budget),
        "mm" => need((2, 2)),
        "bmm" => need((3, 3)),
        "mv" => need((2, 1)),
        _ => tensors::matmul(a, b, budget),
    }
}

/// `torch.repeat_interleave(t, repeats, dim)`, and with a tensor of repeats alone its own positions.
pub(super) fn repeat_interleave(t: &HostTensor, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind("repeat_interleave", args, &["repeats", "dim", "output_size"])?;
    let Some(repeats) = bound.get("repeats") else {
        return one(cx, |budget| {
            let places = tensors::arange(
                Scalar::Int(0),
                Scalar::Int(t.numel() as i64),
                Scalar::Int(1),
                Some(DType::I64),
                budget,
            )?;
            tensors::repeat_interleave(&places, &t.to_i64_vec(), 0, budget)
        });
    };
    let repeats = match repeats {
        Value::Tensor(r) if r.handle().dtype().is_float() => {
            return Err(Fault::new("RuntimeError", "tensor-dtype", "repeats has to be Long or Int tensor"));
        }
        Value::Tensor(r) => r.get().to_i64_vec(),
        _ => bound.need_ints("repeats")?,
    };
    let dim = bound.int("dim")?;
    one(cx, |budget| match dim {
        Some(dim) => tensors::repeat_interleave(t, &repeats, Strided::contiguous(t.shape()).dim(dim, 0)?, budget),
        None => {
            let flat = t.reshaped([t.numel()]).map_err(|d| tensors::HostError::shape(d.message))?;
            tensors::repeat_interleave(&flat, &repeats, 0, budget)
        }
    })
}

fn one_hot(t: &HostTensor, classes: i64, budget: &Budget) -> HostResult {
    budget.work_each(t.numel(), 24)?;
    let largest = (0..t.numel()).map(|i| t.int_at(i)).max().unwrap_or(-1);
    if t.dtype() != DType::I64 || (0..t.numel()).any(|i| t.int_at(i) < 0) {
        return Err(tensors::HostError::dtype(
            "one_hot is only applicable to index tensor of type LongTensor with non-negative values",
        ));
    }
    let classes = if classes < 0 { largest.saturating_add(1) } else { classes };
    if largest >= classes {
        return Err(tensors::HostError::new("Class values must be smaller than num_classes."));
    }
    let columns = tensors::arange(Scalar::Int(0), Scalar::Int(classes), Scalar::Int(1), Some(DType::I64), budget)?;
    let rows = Strided::contiguous(t.shape()).unsqueeze(-1)?.read(t, budget)?;
    let hot = tensors::binary(tensors::Binary::Eq, (&rows).into(), (&columns).into(), budget)?;
    tensors::cast(&hot, DType::I64, budget)
}

/// Gathers, scatters, masks; None for other names.
pub(super) fn placing(name: &str, t: &HostTensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    Some(match name {
        "gather" => bind(name, args, &["dim", "index", "sparse_grad"]).and_then(|bound| {
            let (dim, index) = (bound.need_int("dim")?, bound.need_tensor("index")?);
            one(cx, |budget| tensors::gather(t, dim, &index, budget))
        }),
        "take_along_dim" => bind(name, args, &["indices", "dim"]).and_then(|bound| {
            let (index, dim) = (bound.need_tensor("indices")?, bound.int("dim")?);
            one(cx, |budget| take_along(t, &index, dim, budget))
        }),
        "scatter" | "scatter_add" => bind(name, args, &["dim", "index", "src", "value", "reduce"]).and_then(|bound| {
            let source = bound.number("src")?.or(bound.number("value")?);
            let source = source.ok_or_else(|| Fault::type_error(format!("{name}() misses its argument `src`")))?;
            let (dim, index) = (bound.need_int("dim")?, bound.need_tensor("index")?);
            let Some(reduce) = bound.text("reduce")? else {
                return one(cx, |budget| {
                    tensors::scatter(t, dim, &index, &source.operand(), name == "scatter_add", budget)
                });
            };
            let how = match &*reduce {
                "add" => Gather::Sum,
                "multiply" => Gather::Prod,
                _ => return Err(Fault::runtime_error("reduce argument must be either add or multiply.")),
            };
            one(cx, |budget| tensors::scatter_reduce(t, dim, &index, &source.operand(), how, true, budget))
        }),
        "scatter_reduce" => bind(name, args, &["dim", "index", "src", "reduce", "include_self"]).and_then(|bound| {
            let (dim, index) = (bound.need_int("dim")?, bound.need_tensor("index")?);
            let how = match bound.text("reduce")?.as_deref() {
                Some("sum") => Gather::Sum,
                Some("prod") => Gather::Prod,
                Some("mean") => Gather::Mean,
                Some("amax") => Gather::Max,
                Some("amin") => Gather::Min,
                _ => {
                    let message = "reduce argument must be either sum, prod, mean, amax or amin.";
                    return Err(Fault::runtime_error(message));
                }
            };
            let own = !bound.given("include_self") || bound.flag("include_self")?;
            let source = bound.need_number("src")?;
            one(cx, |budget| tensors::scatter_reduce(t, dim, &index, &source.operand(), how, own, budget))
        }),
        "index_select" => bind(name, args, &["dim", "index"]).and_then(|bound| {
            let (dim, index) = (bound.need_int("dim")?, bound.need_tensor("index")?);
            one(cx, |budget| tensors::index_select(t, dim, &index, budget))
        }),
        "index_fill" => bind(name, args, &["dim", "index", "value"]).and_then(|bound| {
            let (dim, index, value) =
                (bound.need_int("dim")?, bound.need_tensor("index")?, bound.need_scalar("value")?);
            one(cx, |budget| tensors::index_fill(t, dim, &index, value, budget))
        }),
        "index_add" | "index_copy" => bind(name, args, &["dim", "index", "source", "alpha"]).and_then(|bound| {
            let (dim, index) = (bound.need_int("dim")?, bound.need_tensor("index")?);
            let (source, alpha) = (bound.need_tensor("source")?, bound.scalar("alpha")?);
            one(cx, |budget| {
                let scaled = match alpha {
                    Some(alpha) => tensors::binary(tensors::Binary::Mul, (&source).into(), alpha.into(), budget)?,
                    None => source,
                };
                tensors::index_add(t, dim, &index, &scaled, name == "index_copy", budget)
            })
        }),
        "take" => bind(name, args, &["index"]).and_then(|bound| {
            let index = bound.need_tensor("index")?;
            one(cx, |budget| tensors::take(t, &index, budget))
        }),
        "masked_fill" => bind(name, args, &["mask", "value"]).and_then(|bound| {
            let (mask, value) = (bound.need_tensor("mask")?, bound.need_number("value")?);
            one(cx, |budget| tensors::masked_fill(t, &mask, &value.operand(), budget))
        }),
        "masked_select" => bind(name, args, &["mask"]).and_then(|bound| {
            let mask = bound.need_tensor("mask")?;
            one(cx, |budget| tensors::masked_select(t, &mask, budget))
        }),
        "masked_scatter" => bind(name, args, &["mask", "source"]).and_then(|bound| {
            let (mask, source) = (bound.need_tensor("mask")?, bound.need_tensor("source")?);
            one(cx, |budget| tensors::masked_scatter(t, &mask, &source, budget))
        }),
        _ => return None,
    })
}

fn take_along(t: &HostTensor, index: &HostTensor, dim: Option<i64>, budget: &Budget) -> HostResult {
    let Some(dim) = dim else { return tensors::take(t, index, budget) };
    let d = Strided::contiguous(t.shape()).dim(dim, 0)?;
    let (mut own, mut wanted) = (t.shape().to_vec(), index.shape().to_vec());
    if own.len() != wanted.len() {
        return Err(tensors::HostError::shape(
            "torch.take_along_dim(): input and indices should have the same number of dimensions",
        ));
    }
    let (rows, picks) = (own[d], wanted[d]);
    (own[d], wanted[d]) = (1, 1);
    let mut common = tensors::broadcast_shapes(&own, &wanted)?;
    common[d] = rows;
    let wide = tensors::broadcast_to(t, &common, budget)?;
    common[d] = picks;
    tensors::gather(&wide, dim, &tensors::broadcast_to(index, &common, budget)?, budget)
}

/// `split`, `chunk`, `tensor_split`, `unbind`: views along a dimension; None for other names.
pub(super) fn parts(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let params: &[&'static str] = match name {
        "split" => &["split_size_or_sections", "dim"],
        "chunk" => &["chunks", "dim"],
        "tensor_split" => &["indices_or_sections", "dim"],
        "unbind" => &["dim"],
        _ => return None,
    };
    Some(bind(name, args, params).and_then(|bound| {
        let layout = t.handle().layout();
        let dim = layout.dim(bound.int("dim")?.unwrap_or(0), 0).map_err(fault)?;
        let extent = layout.shape[dim];
        if name == "unbind" {
            let rows = (0..extent as i64).map(|i| layout.select(dim, i));
            return views(t, rows.collect::<Result<_, _>>().map_err(fault)?, cx).map(Value::tuple);
        }
        let sizes = match (name, bound.need(params[0])?) {
            ("chunk", v) => tensors::chunk_sizes(extent, v.as_int().unwrap_or(0)).map_err(fault)?,
            ("split", v) if v.as_int().is_some() => {
                tensors::split_sizes(extent, v.as_int().unwrap_or(0)).map_err(fault)?
            }
            ("split", _) => sections(&bound.need_ints(params[0])?, extent)?,
            (_, v) if v.as_int().is_some() => even_sections(v.as_int().unwrap_or(0), extent)?,
            _ => between(&bound.need_ints(params[0])?, extent),
        };
        cx.charge_steps(sizes.len() as u64)?;
        let mut start = 0;
        let mut out = Vec::with_capacity(sizes.len());
        for size in sizes {
            out.push(layout.slice(dim, Some(start as i64), Some((start + size) as i64), None).map_err(fault)?);
            start += size;
        }
        views(t, out, cx).map(Value::tuple)
    }))
}

fn views(t: &Tensor, layouts: Vec<Strided>, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    cx.charge_bytes(layouts.len() as u64 * 128)?;
    layouts
        .into_iter()
        .map(|view| Ok(Value::Tensor(TensorCell::of(spend(cx, |budget| t.handle().view(view, budget))?))))
        .collect()
}

fn sections(sizes: &[i64], extent: usize) -> Result<Vec<usize>, Fault> {
    let fits = sizes.iter().all(|n| *n >= 0) && sizes.iter().map(|n| *n as u128).sum::<u128>() == extent as u128;
    if fits {
        return Ok(sizes.iter().map(|n| *n as usize).collect());
    }
    let message = format!(
        "split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's size at this dimension), but got split_sizes={sizes:?}"
    );
    Err(Fault::new("RuntimeError", "tensor-shape", message))
}

fn even_sections(n: i64, extent: usize) -> Result<Vec<usize>, Fault> {
    let n = usize::try_from(n).ok().filter(|n| *n > 0 && *n <= 1 << 20);
    let n = n.ok_or_else(|| Fault::new("RuntimeError", "tensor-shape", "number of sections must be larger than 0"))?;
    Ok((0..n).map(|i| extent / n + usize::from(i < extent % n)).collect())
}

fn between(cuts: &[i64], extent: usize) -> Vec<usize> {
    let clamp = |i: i64| if i < 0 { i + extent as i64 } else { i }.clamp(0, extent as i64) as usize;
    let mut at = 0;
    let mut out = Vec::new();
    for cut in cuts.iter().map(|c| clamp(*c)).chain([extent]) {
        out.push(cut.saturating_sub(at));
        at = cut.max(at);
    }
    out
}
