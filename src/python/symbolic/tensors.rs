//! Functions that create, convert, choose among and reshape symbolic tensors.
//!
//! Invariant: arguments are PyTorch's, by position or name. Must not know how nodes are typed.

use super::elementwise::{bounded, hardtanh};
use super::functions::dims_of;
use super::rows::Reduce;
use crate::base::DType;
use crate::ir::graph::{BinaryOp, Op, Ty, UnaryOp};
use crate::python::machine::Context;
use crate::python::syntax::ast::BinOp;
use crate::python::value::typed::dtype_in_name;
use crate::python::value::{Args, Fault, Value, torch_dtype};

pub(super) fn add_sub(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let a = args.need(name, 0, "input")?.clone();
    let mut b = args.need(name, 1, "other")?.clone();
    if let Some(alpha) = args.named("alpha") {
        b = cx.symbolic_binary(BinOp::Mul, &b, alpha)?;
    }
    cx.symbolic_binary(if name == "add" { BinOp::Add } else { BinOp::Sub }, &a, &b)
}

pub(super) fn div(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (a, b) = (args.need(name, 0, "input")?.clone(), args.need(name, 1, "other")?.clone());
    let mode = args.named("rounding_mode").and_then(Value::as_str);
    cx.elementwise(&[&a, &b], |cx, n| cx.divide(n[0], n[1], mode))
}

pub(super) fn where_(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    // as a method the receiver is the kept value: x.where(condition, other)
    let first = args.need(name, 0, "condition")?.clone();
    let (second, third) = match (args.get(1, "input").or_else(|| args.named("self")), args.get(2, "other")) {
        (Some(second), Some(third)) => (second.clone(), third.clone()),
        _ => {
            return Err(Fault::type_error(
                "torch.where(condition) alone returns positions, which a mod cannot compute",
            )
            .hint("pass both results: `torch.where(condition, a, b)`"));
        }
    };
    let is_condition = |cx: &Context<'_>, v: &Value| cx.symbolic_ty(v) == Ty::Bool;
    let (c, a) = if !is_condition(cx, &first) && is_condition(cx, &second) { (second, first) } else { (first, second) };
    cx.elementwise(&[&c, &a, &third], |cx, n| cx.choose(n[0], n[1], n[2]))
}

pub(super) fn clamp(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let mut x = args.need(name, 0, "input")?.clone();
    let given = |at: usize, names: [&str; 2]| {
        let value = args.get(at, names[0]).or_else(|| args.named(names[1]));
        value.filter(|v| !matches!(v, Value::None)).cloned()
    };
    let (lo, hi) = (given(1, ["min", "min_val"]), given(2, ["max", "max_val"]));
    if name == "hardtanh" {
        let (lo, hi) = (lo.unwrap_or(Value::Float(-1.0)), hi.unwrap_or(Value::Float(1.0)));
        return cx.broadcasted(&[&x, &lo, &hi], false, |cx, n| hardtanh(cx, n[0], n[1], n[2]));
    }
    if lo.is_none() && hi.is_none() {
        return Err(Fault::runtime_error("clamp() needs min, max or both"));
    }
    if let Some(lo) = &lo {
        x = cx.broadcasted(&[&x, lo], false, |cx, n| bounded(cx, BinaryOp::Max, n[0], n[1]))?;
    }
    if let Some(hi) = &hi {
        x = cx.broadcasted(&[&x, hi], false, |cx, n| bounded(cx, BinaryOp::Min, n[0], n[1]))?;
    }
    Ok(x)
}

pub(super) fn masked_fill(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let (mask, value) = (args.need(name, 1, "mask")?.clone(), args.need(name, 2, "value")?.clone());
    let dtype = cx.value_dtype(&x);
    cx.elementwise(&[&mask, &value, &x], |cx, n| {
        cx.must_hold(dtype, n[1])?;
        let value = cx.operand_as(n[1], dtype)?;
        cx.choose(n[0], value, n[2])
    })
}

/// `zeros_like`, `full_like`, `new_full` and their kin: constants of the receiver's type and shape.
pub(super) fn filled(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let is_new = name.starts_with("new_");
    let value = if name.ends_with("ones_like") || name == "new_ones" {
        Value::Int(1)
    } else if name.contains("full") {
        args.get(1 + usize::from(is_new), "fill_value")
            .cloned()
            .ok_or_else(|| Fault::type_error(format!("{name}() misses its value")))?
    } else {
        Value::Int(0)
    };
    let shape: Vec<usize> = if is_new {
        let size = args.get(1, "size").map(|s| s.as_items().unwrap_or_else(|| vec![s.clone()])).unwrap_or_default();
        size.iter().filter_map(Value::as_int).filter_map(|n| usize::try_from(n).ok()).collect()
    } else {
        cx.symbolic_shape(&x)
    };
    let dtype = args.named("dtype").and_then(Value::as_dtype).unwrap_or_else(|| cx.value_dtype(&x));
    let node = cx.scalar(&value)?;
    cx.must_hold(dtype, node)?;
    let node = cx.to_dtype(node, dtype)?;
    let count: usize = shape.iter().product();
    if count > super::MAX_ELEMENTS {
        return Err(super::too_many(&shape));
    }
    cx.array(shape, vec![node; count])
}

pub(super) fn new_tensor(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let rest =
        Args { positional: args.positional.get(1..).unwrap_or_default().to_vec(), keyword: args.keyword.clone() };
    as_tensor(cx, name, &rest)
}

pub(super) fn as_tensor(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let data = args.need(name, 0, "data")?.clone();
    let value = match data.as_items() {
        Some(items) => {
            let mut rows = Vec::with_capacity(items.len());
            for item in items {
                let row = if item.as_items().is_some() { as_tensor(cx, name, &Args::of(vec![item]))? } else { item };
                rows.push(row);
            }
            cx.stack(&rows, 0)?
        }
        None => data,
    };
    match args.named("dtype").and_then(Value::as_dtype) {
        Some(dtype) => cx.elementwise(&[&value], |cx, n| cx.to_dtype(n[0], dtype)),
        // a number becomes a tensor's element
        None => cx.elementwise(&[&value], |cx, n| {
            let dtype = cx.dtype(n[0]);
            cx.stored(n[0], dtype)
        }),
    }
}

/// `.to(...)`: only the dtype matters.
pub(super) fn to(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "self")?.clone();
    let given = args.rest(1).iter().chain(args.named("dtype")).chain(args.named("other"));
    let mut target: Option<DType> = None;
    for value in given {
        let text = value.as_str().or(if let Value::Builtin(name) = value { Some(&**name) } else { None });
        let named = text.and_then(|t| t.strip_prefix("torch.").and_then(torch_dtype).or_else(|| dtype_in_name(t)));
        match (value.as_dtype().or(named), value) {
            (Some(dtype), _) => target = Some(dtype),
            (None, Value::Tensor(_)) => target = Some(cx.value_dtype(value)),
            (None, v) if v.is_symbolic() => target = Some(cx.value_dtype(value)),
            _ => {}
        }
    }
    match target {
        Some(dtype) => cx.elementwise(&[&x], |cx, n| cx.to_dtype(n[0], dtype)),
        None => Ok(x),
    }
}

/// `torch.max(a, b)` is elementwise; `x.max()` and `x.max(dim)` reduce.
pub(super) fn extreme(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let (op, how) = if name == "min" { (BinaryOp::Min, Reduce::Min) } else { (BinaryOp::Max, Reduce::Max) };
    let second = args.positional.get(1).or_else(|| args.named("other"));
    match second {
        Some(other) if other.type_name() == "Tensor" => {
            let other = other.clone();
            cx.elementwise(&[&x, &other], |cx, n| cx.two(op, n[0], n[1], Ty::Int))
        }
        _ => {
            let dim = second.or_else(|| args.named("dim")).and_then(dims_of);
            if dim.is_some() {
                let along = format!("torch.{name}_along");
                return cx.call_shipped(&along, args.clone(), true).unwrap_or_else(|| Err(Fault::unsupported(along)));
            }
            cx.reduce(how, &x, None, false)
        }
    }
}

pub(super) fn dot(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (a, b) = (args.need(name, 0, "input")?.clone(), args.need(name, 1, "other")?.clone());
    cx.dot(&a, &b)
}

/// `bucketize(x, boundaries)` and `searchsorted(sorted, x)`.
pub(super) fn bucketize(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (table, x) = if name == "bucketize" {
        (args.get(1, "boundaries"), args.get(0, "input"))
    } else {
        (args.get(0, "sorted_sequence"), args.get(1, "input"))
    };
    let (Some(table), Some(x)) = (table, x.cloned()) else {
        return Err(Fault::type_error(format!("torch.{name} needs a sorted tensor and a value")));
    };
    let side = args.named("side").and_then(Value::as_str) == Some("right");
    let right = side || args.named("right").and_then(Value::as_bool).unwrap_or(false);
    let narrow = args.named("out_int32").and_then(Value::as_bool).unwrap_or(false);
    if args.named("sorter").is_some_and(|s| !matches!(s, Value::None)) {
        return Err(Fault::unsupported(format!("torch.{name} with a `sorter` is not supported inside a mod"))
            .hint("sort in the factory: `sorted_sequence = sorted_sequence[sorter]`"));
    }
    let Value::Tensor(table) = table else {
        return Err(Fault::type_error(format!("torch.{name} needs a sorted tensor created outside the mod"))
            .hint("create the sorted tensor in the factory"));
    };
    let label = table.name().unwrap_or_else(|| "boundaries".into());
    cx.reads(table);
    let table = table.get();
    let found = cx.elementwise(&[&x], |cx, n| cx.search(&table, &label, n[0], right))?;
    if !narrow {
        return Ok(found);
    }
    cx.elementwise(&[&found], |cx, n| cx.to_dtype(n[0], DType::I32))
}

pub(super) fn isin(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (x, set) = (args.need(name, 0, "elements")?.clone(), args.need(name, 1, "test_elements")?.clone());
    let set = cx.as_array(&set)?;
    let invert = args.named("invert").and_then(Value::as_bool).unwrap_or(false);
    cx.elementwise(&[&x], |cx, n| {
        let mut any = cx.node(Op::Bool(false))?;
        for (at, member) in set.nodes.iter().enumerate() {
            let same = cx.emit_compare(BinaryOp::Eq, n[0], *member)?;
            any = if at == 0 { same } else { cx.node(Op::Binary(BinaryOp::Or, any, same))? };
        }
        if invert { cx.node(Op::Unary(UnaryOp::Not, any)) } else { Ok(any) }
    })
}

pub(super) fn shaped(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let rest = args.rest(1);
    let sizes = || -> Vec<i64> {
        let listed = rest.first().or_else(|| args.named("shape")).or_else(|| args.named("size"));
        let items = listed.and_then(Value::as_items).unwrap_or_else(|| rest.to_vec());
        items.iter().filter_map(Value::as_int).collect()
    };
    match name {
        "unsqueeze" => {
            let dim =
                args.need(name, 1, "dim")?.as_int().ok_or_else(|| Fault::type_error("unsqueeze() needs an int"))?;
            cx.unsqueeze(&x, dim)
        }
        "squeeze" => cx.squeeze(&x, args.get(1, "dim").and_then(Value::as_int)),
        "view" if rest.first().is_some_and(|v| v.as_dtype().is_some()) => {
            Err(Fault::unsupported("reinterpreting bits with .view(dtype) is not supported here")
                .hint("convert with .to(dtype)"))
        }
        "view" | "reshape" => cx.reshape(&x, &sizes()),
        "expand_as" => {
            let other = args.need(name, 1, "other")?.clone();
            let shape: Vec<i64> = cx.symbolic_shape(&other).iter().map(|n| *n as i64).collect();
            cx.expand(&x, &shape)
        }
        _ => cx.expand(&x, &sizes()),
    }
}

pub(super) fn join(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let items = args.need(name, 0, "tensors")?.as_items();
    let items = items.ok_or_else(|| Fault::type_error(format!("torch.{name} needs a list of tensors")))?;
    match name {
        "stack" => cx.stack(&items, args.get(1, "dim").and_then(Value::as_int).unwrap_or(0)),
        _ => cx.concatenated(&items, args.get(1, "dim").and_then(Value::as_int).unwrap_or(0)),
    }
}

/// `table.index_select(dim, i)`.
pub(super) fn select(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let table = args.need(name, 0, "input")?.clone();
    let dim = args.need(name, 1, "dim")?.as_int().unwrap_or(0);
    let n = cx.symbolic_shape(&table).len() as i64;
    let at = if dim < 0 { dim + n } else { dim }.clamp(0, n);
    let index = args.need(name, 2, "index")?.clone();
    let mut places: Vec<Value> =
        (0..at).map(|_| Value::Slice(std::rc::Rc::new(python::value::Items::default()))).collect();
    places.push(index);
    cx.item(&table, &Value::tuple(places))
}

pub(super) fn size(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let shape = cx.symbolic_shape(&x);
    Ok(match name {
        "dim" | "ndimension" => Value::Int(shape.len() as i64),
        "numel" | "nelement" => Value::Int(shape.iter().product::<usize>() as i64),
        "get_device" => Value::Int(-1),
        "is_floating_point" => Value::Bool(cx.value_dtype(&x).is_float()),
        _ => match args.get(1, "dim").and_then(Value::as_int) {
            None => Value::ints(shape),
            Some(dim) => {
                let n = shape.len() as i64;
                let at = usize::try_from(if dim < 0 { dim + n } else { dim }).ok().and_then(|at| shape.get(at));
                let at =
                    at.ok_or_else(|| Fault::index_error(format!("dimension {dim} of a tensor with {n} dimensions")))?;
                Value::Int(*at as i64)
            }
        },
    })
}
