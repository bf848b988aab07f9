//! NumPy in host code: its functions and array methods, computed by PyTorch's on the same values.
//!
//! Invariant: an array keeps NumPy's dtypes (float64 by default) and NumPy's meaning of a method that differs in
//! PyTorch; NumPy's random numbers are refused. Must not know tensors' elements.

use super::bind::{Number, number, spend};
use super::{functional, host, tensor_methods};
use crate::base::DType;
use crate::python::diagnose;
use crate::python::library::unknown;
use crate::python::machine::Context;
use crate::python::syntax::Name;
use crate::python::tensors;
use crate::python::value::{Args, Fault, Tensor, TensorCell, Value};

/// NumPy's names of dtypes.
pub(super) fn dtype(name: &str) -> Option<DType> {
    Some(match name {
        "bool_" | "bool8" => DType::Bool,
        "uint8" => DType::U8,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" | "intc" => DType::I32,
        "int64" | "int_" | "intp" | "longlong" => DType::I64,
        "float16" | "half" => DType::F16,
        "float32" | "single" => DType::F32,
        "float64" | "double" | "float_" => DType::F64,
        _ => return None,
    })
}

/// NumPy's constants.
pub(super) fn value(name: &str) -> Option<Value> {
    match name {
        "newaxis" => Some(Value::None),
        "pi" | "e" | "inf" | "nan" => host::value(&format!("math.{name}")),
        _ => None,
    }
}

/// `np.float32(x)`: a number or array of that dtype.
pub(crate) fn convert(dtype: DType, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let value = args.positional.first().cloned().unwrap_or(Value::Int(0));
    let made = torch("tensor", vec![value], vec![("dtype", Value::DType(dtype))], cx)?;
    match &made {
        // a scalar is as good as a Python number
        Value::Tensor(t) if t.handle().shape().is_empty() => {
            tensor_methods::call("item", t, &Args::default(), cx).unwrap_or_else(|| Ok(made.clone()))
        }
        _ => Ok(array(made)),
    }
}

/// Marks a result, and tensors in a tuple or list of them, as NumPy's.
pub(super) fn array(value: Value) -> Value {
    match &value {
        Value::Tensor(t) => t.mark_numpy(),
        Value::Tuple(items) => items.0.iter().filter_map(Value::as_tensor).for_each(|t| t.mark_numpy()),
        _ => {}
    }
    value
}

/// Calls a function of `numpy`; None when it is unknown here.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if name.starts_with("random.") {
        return Some(Err(Fault::unsupported(format!("numpy.{name} would draw other numbers here than in NumPy"))
            .hint("draw with torch and a seeded generator, or pass the array as a tensor")));
    }
    // the shipped functions have NumPy's meaning if PyTorch's of the same name differ
    if let Some(result) = cx.call_shipped(&format!("numpy.{name}"), args.clone(), false) {
        return Some(result.map(array));
    }
    // functions of plain numbers are Python's, except those that return a float of a whole number
    let plain = args.positional.iter().all(|v| matches!(v, Value::Int(_) | Value::Float(_)));
    if plain
        && !args.positional.is_empty()
        && args.keyword.is_empty()
        && let Some(result) = of_numbers(name, args)
    {
        return Some(result);
    }
    let mut args = args.clone();
    let given = args.keyword.iter_mut().find(|(n, _)| &**n == "dtype");
    let typed = given.map(|(_, v)| *v = numpy_dtype(v)).is_some();
    made(name, &mut args, typed, cx).or_else(|| of_arrays(name, args, cx)).map(|result| result.map(array))
}

fn of_numbers(name: &str, args: &Args) -> Option<Result<Value, Fault>> {
    let python = match name {
        "abs" | "absolute" => "fabs",
        "power" => "pow",
        "arctan" => "atan",
        "arctan2" => "atan2",
        "sqrt" | "exp" | "log" | "log2" | "log10" | "sin" | "cos" | "tan" | "floor" | "ceil" | "trunc" | "gcd"
        | "lcm" | "hypot" | "isnan" | "isinf" | "isfinite" | "log1p" | "expm1" | "tanh" => name,
        _ => return None,
    };
    let whole = args.positional.iter().all(|v| matches!(v, Value::Int(_)));
    let result = super::math::call(&format!("math.{python}"), args)?;
    let float = matches!(name, "floor" | "ceil" | "trunc");
    let int = whole && matches!(name, "abs" | "absolute" | "power");
    Some(result.map(|value| match value {
        Value::Int(i) if float => Value::Float(i as f64),
        Value::Float(x) if int && x.abs() < 9e15 => Value::Int(x as i64),
        other => other,
    }))
}

/// A dtype as NumPy takes it: `float` is float64, and strings name dtypes.
fn numpy_dtype(value: &Value) -> Value {
    match value {
        Value::Builtin(name) if &**name == "float" => Value::DType(DType::F64),
        Value::Str(name) => {
            dtype(name).or((&**name == "bool").then_some(DType::Bool)).map_or(value.clone(), Value::DType)
        }
        other => other.clone(),
    }
}

fn torch(name: &str, positional: Vec<Value>, keyword: Vec<(&str, Value)>, cx: &mut Context) -> Result<Value, Fault> {
    let keyword = keyword.into_iter().map(|(n, v)| (Name::from(n), v)).collect();
    let name = format!("torch.{name}");
    let args = Args { positional, keyword };
    host::call(&name, &args, cx)
        .or_else(|| functional::call(&name, &args, cx))
        .unwrap_or_else(|| Err(unknown::unknown_function(&name, false)))
}

/// Functions that make arrays: float64 where PyTorch makes float32.
fn made(name: &str, args: &mut Args, typed: bool, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let wide = (Name::from("dtype"), Value::DType(DType::F64));
    let floats = |args: &Args| args.positional.iter().any(holds_floats);
    let torch_name = match name {
        "zeros" | "ones" | "empty" | "eye" | "linspace" => name,
        "identity" => "eye",
        "full" | "arange" => name,
        "array" | "asarray" | "ascontiguousarray" | "asanyarray" => "tensor",
        "zeros_like" | "ones_like" | "empty_like" | "full_like" => name,
        _ => return None,
    };
    let like = name.ends_with("_like");
    if (matches!(name, "zeros" | "ones" | "empty") || torch_name == "tensor") && args.positional.len() > 1 {
        let given = args.positional.remove(1);
        args.keyword.push((wide.0.clone(), numpy_dtype(&given)));
    } else if !typed && !like && (!matches!(name, "full" | "arange" | "array" | "asarray") || floats(args)) {
        let already = torch_name == "tensor" && matches!(args.positional.first(), Some(Value::Tensor(_)));
        if !already && (torch_name != "tensor" || floats(args)) {
            args.keyword.push(wide);
        }
    }
    if like && let Some(Err(fault)) = args.positional.first_mut().map(|v| as_array(v, cx).map(|made| *v = made)) {
        return Some(Err(fault));
    }
    if let (Some(Value::Tensor(t)), "tensor") = (args.positional.first(), torch_name) {
        // without a dtype it stays as it is
        args.positional[0] = Value::Tensor(TensorCell::new(t.get()));
    }
    let keyword = args.keyword.iter().map(|(n, v)| (&**n, v.clone())).collect();
    Some(torch(torch_name, args.positional.clone(), keyword, cx))
}

fn holds_floats(value: &Value) -> bool {
    match value {
        Value::Float(_) => true,
        Value::Tensor(_) => false,
        other => other.as_items().is_some_and(|items| items.iter().any(holds_floats)),
    }
}

/// A list or number as the array that NumPy makes of it.
fn as_array(value: &Value, cx: &mut Context) -> Result<Value, Fault> {
    match value {
        Value::Tensor(_) => Ok(value.clone()),
        other => {
            let wide = holds_floats(other).then_some(("dtype", Value::DType(DType::F64)));
            torch("tensor", vec![other.clone()], wide.into_iter().collect(), cx).map(array)
        }
    }
}

/// The dtype that two arrays meet in: whole numbers of 32 bits and more meet floats in float64, those of 16 in float32.
fn met(a: DType, b: DType) -> DType {
    let (float, whole) = if a.is_float() { (a, b) } else { (b, a) };
    if float.is_float() && whole.is_int() { tensors::promote(float_of(whole), float) } else { tensors::promote(a, b) }
}

/// The floats that whole numbers become.
fn float_of(whole: DType) -> DType {
    match whole {
        DType::I32 | DType::I64 => DType::F64,
        DType::I16 => DType::F32,
        _ => DType::F16,
    }
}

/// The operands of an operation between arrays, in NumPy's dtype for it: a Python float is float64 next to whole
/// numbers, and an array without dimensions counts like any other.
pub(super) fn meeting(a: Number, b: Number, cx: &mut Context) -> Result<(Number, Number), Fault> {
    let to = match (&a, &b) {
        (Number::Tensor(x), Number::Tensor(y)) => met(x.dtype(), y.dtype()),
        (Number::Tensor(x), Number::Scalar(s)) | (Number::Scalar(s), Number::Tensor(x)) => {
            if x.dtype().is_float() || !s.dtype().is_float() {
                return Ok((a, b));
            }
            DType::F64
        }
        _ => return Ok((a, b)),
    };
    let mut cast = |n: Number| match n {
        Number::Tensor(t) if t.dtype() != to => spend(cx, |budget| tensors::cast(&t, to, budget)).map(Number::Tensor),
        other => Ok(other),
    };
    Ok((cast(a)?, cast(b)?))
}

/// The same of values; others stay as they are.
fn met_values(a: &mut Value, b: &mut Value, cx: &mut Context) -> Result<(), Fault> {
    let (Some(x), Some(y)) = (number(a), number(b)) else { return Ok(()) };
    if [&*a, &*b].iter().any(|v| v.as_tensor().is_some_and(|t| !t.is_numpy())) {
        return Ok(());
    }
    let (x, y) = meeting(x, y, cx)?;
    for (value, met) in [(a, x), (b, y)] {
        let Number::Tensor(met) = met else { continue };
        if value.as_tensor().is_some_and(|own| own.handle().dtype() != met.dtype()) {
            *value = array(Value::tensor(met));
        }
    }
    Ok(())
}

/// Functions of two arrays that compute in what both meet in.
const OF_TWO: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "power",
    "mod",
    "fmod",
    "remainder",
    "floor_divide",
    "fmax",
    "fmin",
    "hypot",
    "arctan2",
    "copysign",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "equal",
    "not_equal",
];

/// Functions that make floats of whole numbers.
const OF_FLOATS: &[&str] = &[
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg",
];

/// Functions of arrays: of lists too.
fn of_arrays(name: &str, mut args: Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if matches!(name, "concatenate" | "stack" | "vstack" | "hstack" | "column_stack" | "meshgrid") {
        return Some(join(name, args, cx));
    }
    if name == "where" || name == "minimum" || name == "maximum" || name.starts_with("logical_") {
        for value in args.positional.iter_mut().filter(|v| v.as_items().is_some()) {
            match as_array(value, cx) {
                Ok(made) => *value = made,
                Err(fault) => return Some(Err(fault)),
            }
        }
        let met = match (name, &mut args.positional[..]) {
            ("where", [_, a, b]) | ("minimum" | "maximum", [a, b]) => met_values(a, b, cx),
            _ => Ok(()),
        };
        if let Err(fault) = met {
            return Some(Err(fault));
        }
        let keyword = args.keyword.iter().map(|(n, v)| (&**n, v.clone())).collect();
        return Some(torch(name, args.positional, keyword, cx));
    }
    let known = METHODS.contains(&name) || tensor_methods::NAMES.contains(&name);
    if !known || args.positional.is_empty() {
        return None;
    }
    if name == "array_equal" {
        return Some(as_array(&args.positional[0], cx).and_then(|a| {
            let b = as_array(args.need(name, 1, "a2")?, cx)?;
            torch("equal", vec![a, b], Vec::new(), cx)
        }));
    }
    let first = args.positional.remove(0);
    // `searchsorted(a, v)` and the like take lists there too
    if matches!(name, "searchsorted" | "isin" | "dot" | "outer" | "matmul" | "take")
        && let Some(second) = args.positional.first_mut()
    {
        match as_array(second, cx) {
            Ok(made) => *second = made,
            Err(fault) => return Some(Err(fault)),
        }
    }
    let mut made = match as_array(&first, cx) {
        Ok(made) => made,
        Err(fault) => return Some(Err(fault)),
    };
    if OF_TWO.contains(&name)
        && let Some(second) = args.positional.first_mut()
        && let Err(fault) = met_values(&mut made, second, cx)
    {
        return Some(Err(fault));
    }
    made.as_tensor().map(|t| method(&name.into(), t, args, cx))
}

fn join(name: &str, mut args: Args, cx: &mut Context) -> Result<Value, Fault> {
    let first = match name {
        "meshgrid" => Value::tuple(std::mem::take(&mut args.positional)),
        _ if args.positional.is_empty() => return args.need(name, 0, "arrays").cloned(),
        _ => args.positional.remove(0),
    };
    let mut arrays = Vec::new();
    for one in cx.collect(&first)? {
        arrays.push(as_array(&one, cx)?);
    }
    let mut keyword: Vec<(&str, Value)> = args.keyword.iter().map(|(n, v)| (&**n, v.clone())).collect();
    if name == "meshgrid" && !keyword.iter().any(|(n, _)| *n == "indexing") {
        keyword.push(("indexing", Value::str("xy")));
    }
    let mut positional = vec![Value::list(arrays)];
    positional.extend(args.positional);
    let name = if name == "concatenate" { "cat" } else { name };
    torch(name, positional, keyword, cx)
}

/// Methods and functions that NumPy has under another name than PyTorch, or with another meaning.
const METHODS: &[&str] = &[
    "astype",
    "copy",
    "repeat",
    "tile",
    "max",
    "min",
    "amax",
    "amin",
    "cumsum",
    "cumprod",
    "mean",
    "std",
    "var",
    "nonzero",
    "transpose",
    "tril",
    "triu",
    "flatnonzero",
    "array_equal",
    "expand_dims",
    "fill",
    "sort",
    "power",
    "absolute",
    "mod",
    "tobytes",
    "count_nonzero",
    "argsort",
    "broadcast_to",
    "round",
    "around",
    "size",
    "ndim",
    "shape",
    "unique",
    "prod",
];

/// `array.name(args)`.
pub(super) fn method(name: &Name, t: &Tensor, mut args: Args, cx: &mut Context) -> Result<Value, Fault> {
    let own = |name: &str, args: Args, cx: &mut Context| of_tensor(name, t, args, cx);
    if OF_FLOATS.contains(&&**name) && !t.handle().dtype().is_float() {
        let wide = own("to", Args::of(vec![Value::DType(float_of(t.handle().dtype()))]), cx)?;
        return wide.as_tensor().map_or(Ok(wide.clone()), |wide| of_tensor(name, wide, args, cx));
    }
    let has_axis = args.keyword.iter().any(|(n, _)| &**n == "axis") || !args.positional.is_empty();
    let dim = |n: i64| Args::of(vec![Value::Int(n)]);
    let result = match &**name {
        "astype" => {
            let to = numpy_dtype(args.need("astype", 0, "dtype")?);
            own("to", Args::of(vec![to]), cx)
        }
        "copy" => own("clone", Args::default(), cx),
        // PyTorch's repeat is NumPy's tile
        "repeat" => own("repeat_interleave", args, cx),
        "tile" => own("tile", args, cx),
        "max" | "amax" if has_axis => own("amax", args, cx),
        "min" | "amin" if has_axis => own("amin", args, cx),
        "cumsum" | "cumprod" if !has_axis => {
            let flat = own("flatten", Args::default(), cx)?;
            flat.as_tensor().map_or(Ok(flat.clone()), |flat| of_tensor(name, flat, dim(0), cx))
        }
        "mean" | "std" | "var" => {
            let dtype = t.handle().dtype();
            let wide = if dtype.is_float() { dtype } else { DType::F64 };
            let wide = own("to", Args::of(vec![Value::DType(wide)]), cx)?;
            if &**name != "mean" {
                args.keyword.push(("unbiased".into(), Value::Bool(false)));
            }
            wide.as_tensor().map_or(Ok(wide.clone()), |wide| of_tensor(name, wide, args, cx))
        }
        "nonzero" => {
            own("nonzero", Args { keyword: vec![("as_tuple".into(), Value::Bool(true))], ..Args::default() }, cx)
        }
        "flatnonzero" => {
            let flat = own("flatten", Args::default(), cx)?;
            let at =
                flat.as_tensor().map_or(Ok(flat.clone()), |flat| of_tensor("nonzero", flat, Args::default(), cx))?;
            at.as_tensor().map_or(Ok(at.clone()), |at| of_tensor("flatten", at, Args::default(), cx))
        }
        "transpose" => {
            let axes = match &args.positional[..] {
                [] => (0..t.handle().shape().len() as i64).rev().map(Value::Int).collect(),
                [one] => one.as_items().unwrap_or_else(|| args.positional.clone()),
                all => all.to_vec(),
            };
            own("permute", Args::of(axes), cx)
        }
        "expand_dims" => {
            args.keyword.iter_mut().filter(|(n, _)| &**n == "axis").for_each(|(n, _)| *n = "dim".into());
            own("unsqueeze", args, cx)
        }
        "tril" | "triu" => {
            args.keyword.iter_mut().filter(|(n, _)| &**n == "k").for_each(|(n, _)| *n = "diagonal".into());
            own(name, args, cx)
        }
        "fill" => own("fill_", args, cx),
        "broadcast_to" => own("broadcast_to", args, cx),
        "sort" => {
            let sorted = own("sort", args, cx)?;
            Ok(sorted.as_items().and_then(|pair| pair.first().cloned()).unwrap_or(sorted))
        }
        "argsort" => argsort(t, args, cx),
        "power" => own("pow", args, cx),
        "absolute" => own("abs", args, cx),
        "mod" => own("remainder", args, cx),
        "around" => own("round", args, cx),
        "size" | "ndim" | "shape" => attribute(name, t, cx).unwrap_or(Ok(Value::None)),
        other => own(other, args, cx),
    };
    result.map(array)
}

/// NumPy's default order of equal elements is its own: only a stable one, or one without equal elements, is PyTorch's too.
fn argsort(t: &Tensor, mut args: Args, cx: &mut Context) -> Result<Value, Fault> {
    let stable = args.named("kind").and_then(Value::as_str).is_some_and(|k| matches!(k, "stable" | "mergesort"));
    args.keyword.retain(|(n, _)| !matches!(&**n, "kind" | "stable"));
    if !stable {
        let values = t.get();
        cx.charge_steps(values.numel() as u64)?;
        let mut sorted: Vec<u64> = (0..values.numel()).map(|i| (values.float_at(i) + 0.0).to_bits()).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Fault::unsupported("numpy's argsort() leaves the order of equal elements open")
                .hint("write `np.argsort(x, kind=\"stable\")`, or use torch.argsort(x, stable=True)"));
        }
    }
    args.keyword.push(("stable".into(), Value::Bool(true)));
    of_tensor("argsort", t, args, cx)
}

fn of_tensor(name: &str, t: &Tensor, args: Args, cx: &mut Context) -> Result<Value, Fault> {
    match tensor_methods::call(name, t, &args, cx) {
        Some(result) => result.map(array),
        None => Err(diagnose::unknown_method(name, tensor_methods::NAMES.iter().copied())),
    }
}

/// `array.name`; None when it is a method.
pub(super) fn attribute(name: &str, t: &Tensor, cx: &mut Context) -> Option<Result<Value, Fault>> {
    match name {
        "size" => Some(Ok(Value::Int(t.handle().numel() as i64))),
        _ => tensor_methods::attribute(name, t, cx).map(|value| value.map(array)),
    }
}
