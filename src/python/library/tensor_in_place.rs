//! Methods that change their tensor: `fill_`, `add_`, `masked_fill_`, and any other out-of-place method with `_`.
//!
//! Invariant: storage is written, so every view sees the change; shape and dtype stay. Must not know operators' syntax.

use super::bind::{bind, spend};
use super::tensor_compute;
use crate::python::machine::Context;
use crate::python::tensors::{Index, Operand, Scalar};
use crate::python::value::{Args, Fault, Tensor, Value};

/// Names that [`call`] knows beyond the out-of-place methods with `_` behind.
pub(super) const NAMES: &[&str] = &[
    "fill_",
    "zero_",
    "copy_",
    "fill_diagonal_",
    "index_put_",
    "requires_grad_",
    "masked_fill_",
    "scatter_",
    "index_fill_",
    "add_",
    "sub_",
    "mul_",
    "div_",
    "clamp_",
    "random_",
    "uniform_",
    "normal_",
    "bernoulli_",
];

/// Runs an in-place method; None for unknown names.
pub(super) fn call(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let plain = name.strip_suffix('_').filter(|n| !n.is_empty() && !n.ends_with('_'))?;
    let done = match plain {
        "requires_grad" => Ok(()),
        "fill" | "copy" => bind(name, args, &["value", "non_blocking"]).and_then(|bound| {
            let value = bound.need_number("value")?;
            spend(cx, |budget| t.handle().overwrite(&value.operand(), budget))
        }),
        "zero" => spend(cx, |budget| t.handle().overwrite(&Operand::Scalar(Scalar::Int(0)), budget)),
        "fill_diagonal" => fill_diagonal(t, args, cx),
        "index_put" => index_put(t, args, cx),
        "random" | "uniform" | "normal" | "bernoulli" | "exponential" | "cauchy" | "log_normal" | "geometric" => {
            super::generator::in_place(plain, t, args, cx)
        }
        _ => {
            let value = match tensor_compute::call(plain, &t.get(), args, cx)? {
                Ok(value) => value,
                Err(fault) => return Some(Err(fault)),
            };
            match value.as_tensor() {
                Some(result) => spend(cx, |budget| t.handle().assign(&result.get(), budget)),
                None => Err(Fault::unsupported(format!("{name} does not work in place"))),
            }
        }
    };
    if done.is_ok() && plain == "requires_grad" {
        if cx.learning && args.get(0, "requires_grad").is_none_or(|v| v.as_bool() != Some(false)) {
            let name = t.name().or_else(|| cx.hint.clone());
            cx.learns(t, name.as_deref().unwrap_or("parameter"));
        }
    } else if done.is_ok() {
        let given: Vec<&Value> = args.positional.iter().chain(args.keyword.iter().map(|(_, v)| v)).collect();
        cx.written(t, name, &given);
    }
    Some(done.map(|()| Value::Tensor(t.clone())))
}

fn fill_diagonal(t: &Tensor, args: &Args, cx: &mut Context) -> Result<(), Fault> {
    let bound = bind("fill_diagonal_", args, &["fill_value", "wrap"])?;
    let value = bound.need_scalar("fill_value")?;
    let layout = t.handle().layout();
    if layout.shape.len() != 2 || bound.flag("wrap")? {
        return Err(Fault::unsupported("fill_diagonal_ is evaluated for matrices without wrap"));
    }
    spend(cx, |budget| {
        let diagonal = t.handle().view(layout.diagonal(0, 0, 1)?, budget)?;
        diagonal.overwrite(&value.into(), budget)
    })
}

fn index_put(t: &Tensor, args: &Args, cx: &mut Context) -> Result<(), Fault> {
    let bound = bind("index_put_", args, &["indices", "values", "accumulate"])?;
    if bound.flag("accumulate")? {
        let given = vec![Value::Tensor(t.clone()), bound.need("indices")?.clone(), bound.need("values")?.clone()];
        let added = cx.call_shipped("torch.index_put_added", Args::of(given), false);
        let added = added.unwrap_or_else(|| Err(Fault::unsupported("index_put_ with accumulate")))?;
        let added = added.as_tensor().map(|t| t.get()).unwrap_or_else(|| t.get());
        return spend(cx, |budget| t.handle().assign(&added, budget));
    }
    let index: Vec<Index> = bound.tensors("indices")?.into_iter().map(Index::Tensor).collect();
    let value = bound.need_number("values")?;
    spend(cx, |budget| python::tensors::put(t.handle(), &index, &value.operand(), budget))
}
