//! `torch.vmap` of functions of concrete tensors: called for each element along a dimension, with stacked results.
//!
//! Invariant: every call is charged like any other. Must not know what the function does.

use super::{host, tensor_methods};
use crate::python::machine::Context;
use crate::python::value::{Args, Fault, Value};

/// Makes or calls a vectorised function; None for other names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    match name {
        "torch.vmap" | "torch.func.vmap" => Some(args.need("torch.vmap", 0, "func").map(|function| {
            let option = |at, name: &str| args.get(at, name).cloned().unwrap_or(Value::Int(0));
            let bound = vec![function.clone(), option(1, "in_dims"), option(2, "out_dims")];
            cx.bound(Value::Builtin("torch.vmap.call".into()), Args::of(bound))
        })),
        "torch.vmap.call" => Some(run(args, cx)),
        _ => None,
    }
}

fn run(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let [function, in_dims, out_dims, given @ ..] = &args.positional[..] else {
        return Err(Fault::type_error("torch.vmap() misses its function"));
    };
    if args.any_symbolic() {
        return Err(Fault::unsupported("torch.vmap does not run on indices")
            .hint("a mod is already called for one cell at a time: call the function itself"));
    }
    let dim_of = |at: usize| match in_dims.as_items() {
        Some(dims) => dims.get(at).cloned().unwrap_or(Value::None),
        None => in_dims.clone(),
    };
    let dims: Vec<Option<i64>> = (0..given.len()).map(|at| dim_of(at).as_int()).collect();
    let n = given.iter().zip(&dims).find_map(|(value, dim)| {
        let shape = value.as_tensor()?.handle().shape().to_vec();
        let dim = (*dim)?;
        let at = if dim < 0 { dim + shape.len() as i64 } else { dim };
        shape.get(usize::try_from(at).ok()?).copied()
    });
    let n = n.ok_or_else(|| Fault::value_error("vmap: at least one input must have a dimension to map over"))?;
    let mut results = Vec::with_capacity(n);
    for i in 0..n {
        cx.charge_steps(1)?;
        let mut call = Vec::with_capacity(given.len());
        for (value, dim) in given.iter().zip(&dims) {
            call.push(match (value.as_tensor(), dim) {
                (Some(t), Some(dim)) => {
                    let select = Args::of(vec![Value::Int(*dim), Value::Int(i as i64)]);
                    tensor_methods::call("select", t, &select, cx)
                        .unwrap_or_else(|| Err(Fault::unsupported("torch.vmap needs select()")))?
                }
                _ => value.clone(),
            });
        }
        let result = cx.call(function, Args { positional: call, keyword: args.keyword.clone() })?;
        results.push(match result {
            Value::Tensor(_) => result,
            Value::Tuple(_) | Value::List(_) | Value::Dict(_) => {
                return Err(Fault::unsupported("torch.vmap of a function with several results is not supported here")
                    .hint("use one vmap for each result"));
            }
            number => host::call("torch.tensor", &Args::of(vec![number]), cx).unwrap_or(Ok(Value::None))?,
        });
    }
    let stack = Args::of(vec![Value::list(results), Value::Int(out_dims.as_int().unwrap_or(0))]);
    host::call("torch.stack", &stack, cx).unwrap_or_else(|| Err(Fault::unsupported("torch.vmap needs stack()")))
}
