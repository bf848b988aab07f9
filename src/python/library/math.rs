//! Python's `math` module.
//!
//! Invariant: domains and results are Python's, faults are its ValueErrors. Must not know tensors.

use super::bind::bind;
use crate::ir::ops::{UnaryOp, double_function};
use crate::python::value::{Args, Fault, Value};
use std::borrow::Cow;
use std::sync::LazyLock;

/// A name and its function.
type Function = (Cow<'static, str>, Of);
/// A function of one float.
type Of = fn(f64) -> f64;

/// Functions of one float that are no operations of graphs.
const OWN: &[(&str, Of)] = &[
    ("math.log10", f64::log10),
    ("math.tan", f64::tan),
    ("math.atan", f64::atan),
    ("math.fabs", f64::abs),
    ("math.radians", f64::to_radians),
    ("math.degrees", f64::to_degrees),
    ("math.cbrt", f64::cbrt),
    ("math.lgamma", libm::lgamma),
    ("math.gamma", libm::tgamma),
];

/// The other names that [`call`] knows.
const OTHERS: &[&str] = &[
    "math.floor",
    "math.ceil",
    "math.trunc",
    "math.isqrt",
    "math.gcd",
    "math.lcm",
    "math.prod",
    "math.log",
    "math.pow",
    "math.atan2",
    "math.hypot",
    "math.fmod",
    "math.copysign",
    "math.isnan",
    "math.isinf",
    "math.isfinite",
    "math.isclose",
    "math.factorial",
    "math.comb",
    "math.dist",
    "math.fsum",
    "math.perm",
    "math.ldexp",
    "math.sumprod",
];

/// Functions of one float: those above, and the operations of graphs that Python's `math` has and gives floats for.
static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let rows = UnaryOp::all().into_iter().filter(|op| op.row().math);
    let named = rows.filter_map(|op| Some((Cow::from(format!("math.{}", op.row().name)), double_function(op)?)));
    let own = OWN.iter().map(|(name, f)| (Cow::from(*name), *f));
    // log takes a base, and what rounds gives an int
    named.filter(|(name, _)| !OTHERS.contains(&&**name)).chain(own).collect()
});

/// All names that [`call`] knows.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(n, _)| &**n).chain(OTHERS.iter().copied())
}

/// Calls a function of `math`; None when it is unknown.
pub(super) fn call(name: &str, args: &Args) -> Option<Result<Value, Fault>> {
    if let Some((_, f)) = FUNCTIONS.iter().find(|(n, _)| **n == *name) {
        return Some(float(name, args, 0).and_then(|x| checked(name, f(x), &[x])));
    }
    OTHERS.contains(&name).then(|| other(name, args))
}

/// The float at a position.
fn float(name: &str, args: &Args, at: usize) -> Result<f64, Fault> {
    let value = args.need(name, at, "x")?;
    value.as_float().ok_or_else(|| Fault::type_error(format!("{name}() needs a number, not {}", value.type_name())))
}

fn int(name: &str, value: &Value) -> Result<i64, Fault> {
    match value {
        Value::Float(_) => Err(Fault::type_error("'float' object cannot be interpreted as an integer")),
        other => {
            other.as_int().ok_or_else(|| Fault::type_error(format!("{name}() needs an int, not {}", other.type_name())))
        }
    }
}

/// NaN from other values, or infinity from finite ones, is Python's domain or range error.
fn checked(name: &str, y: f64, inputs: &[f64]) -> Result<Value, Fault> {
    let bad =
        (y.is_nan() && !inputs.iter().any(|x| x.is_nan())) || (y.is_infinite() && inputs.iter().all(|x| x.is_finite()));
    if bad { Err(Fault::value_error(format!("math domain error: {name}({inputs:?})"))) } else { Ok(Value::Float(y)) }
}

fn whole(name: &str, x: f64) -> Result<Value, Fault> {
    if !x.is_finite() || x.abs() >= 9.2e18 {
        return Err(Fault::value_error(format!("{name}: cannot convert {x} to an integer")));
    }
    Ok(Value::Int(x as i64))
}

fn other(name: &str, args: &Args) -> Result<Value, Fault> {
    match name {
        "math.floor" | "math.ceil" | "math.trunc" => {
            if let Some(i) =
                args.get(0, "x").filter(|v| !matches!(v, Value::Float(_) | Value::Tensor(_))).and_then(Value::as_int)
            {
                return Ok(Value::Int(i));
            }
            let x = float(name, args, 0)?;
            whole(
                name,
                match name {
                    "math.floor" => x.floor(),
                    "math.ceil" => x.ceil(),
                    _ => x.trunc(),
                },
            )
        }
        "math.log" => {
            let x = float(name, args, 0)?;
            match args.positional.len() {
                1 => checked(name, x.ln(), &[x]),
                _ => float(name, args, 1).and_then(|base| checked(name, x.ln() / base.ln(), &[x, base])),
            }
        }
        "math.hypot" if args.positional.len() != 2 => {
            let parts = (0..args.positional.len()).map(|at| float(name, args, at)).collect::<Result<Vec<_>, _>>();
            parts.and_then(|parts| distance(&parts))
        }
        "math.pow" | "math.atan2" | "math.hypot" | "math.fmod" | "math.copysign" => {
            let (x, y) = (float(name, args, 0)?, float(name, args, 1)?);
            let out = match name {
                "math.pow" => x.powf(y),
                "math.atan2" => x.atan2(y),
                "math.hypot" => x.hypot(y),
                "math.fmod" => x % y,
                _ => x.copysign(y),
            };
            checked(name, out, &[x, y])
        }
        "math.isnan" => Ok(Value::Bool(float(name, args, 0)?.is_nan())),
        "math.isinf" => Ok(Value::Bool(float(name, args, 0)?.is_infinite())),
        "math.isfinite" => Ok(Value::Bool(float(name, args, 0)?.is_finite())),
        "math.isclose" => {
            let bound = bind(name, args, &["a", "b", "rel_tol", "abs_tol"])?;
            let (a, b) = (bound.float("a")?.unwrap_or(0.0), bound.float("b")?.unwrap_or(0.0));
            let (relative, absolute) =
                (bound.float("rel_tol")?.unwrap_or(1e-9), bound.float("abs_tol")?.unwrap_or(0.0));
            Ok(Value::Bool(a == b || (a - b).abs() <= (relative * a.abs().max(b.abs())).max(absolute)))
        }
        "math.prod" => product(args),
        "math.fsum" => numbers(name, args, 0).and_then(|all| whole_sum(&all).map(Value::Float)),
        "math.dist" => {
            let (p, q) = (numbers(name, args, 0)?, numbers(name, args, 1)?);
            if p.len() != q.len() {
                return Err(Fault::value_error("both points must have the same number of dimensions"));
            }
            distance(&p.iter().zip(&q).map(|(a, b)| a - b).collect::<Vec<_>>())
        }
        "math.sumprod" => {
            let (p, q) = (numbers(name, args, 0)?, numbers(name, args, 1)?);
            let ints = |at: usize| {
                args.positional[at].as_items().is_some_and(|v| v.iter().all(|v| matches!(v, Value::Int(_))))
            };
            if p.len() != q.len() || !ints(0) || !ints(1) {
                return Err(Fault::unsupported("math.sumprod() is supported for two lists of ints of equal length"));
            }
            let sum = p.iter().zip(&q).map(|(a, b)| a * b).sum::<f64>();
            if sum.abs() < 9e15 {
                Ok(Value::Int(sum as i64))
            } else {
                Err(Fault::value_error("the result of math.sumprod() exceeds 53 bits"))
            }
        }
        "math.ldexp" => {
            let (x, i) = (float(name, args, 0)?, int(name, args.need(name, 1, "i")?)?);
            let y = x * 2f64.powi(i.clamp(-1074, 1023) as i32);
            if i.abs() > 1000 {
                Err(Fault::unsupported("math.ldexp() is supported for exponents up to 1000"))
            } else {
                checked(name, y, &[x])
            }
        }
        _ => integers(name, args),
    }
}

/// The numbers of a list or tuple.
fn numbers(name: &str, args: &Args, at: usize) -> Result<Vec<f64>, Fault> {
    let value = args.need(name, at, "seq")?;
    let items = value.as_items().ok_or_else(|| Fault::type_error(format!("{name}() needs numbers in a list")))?;
    let one = |v: &Value| v.as_float().ok_or_else(|| Fault::type_error(format!("{name}() of {}", v.type_name())));
    items.iter().map(one).collect()
}

/// The sum rounded once: partial sums that do not overlap, added from the largest.
fn whole_sum(all: &[f64]) -> Result<f64, Fault> {
    if all.iter().any(|x| !x.is_finite()) {
        return Err(Fault::unsupported("math.fsum() of infinities and NaN is not supported here"));
    }
    let mut partials: Vec<f64> = Vec::new();
    for &number in all {
        let mut x = number;
        let mut kept = Vec::new();
        for &partial in &partials {
            let (big, small) = if x.abs() < partial.abs() { (partial, x) } else { (x, partial) };
            let high = big + small;
            let low = small - (high - big);
            if low != 0.0 {
                kept.push(low);
            }
            x = high;
        }
        kept.push(x);
        partials = kept;
    }
    let Some(mut high) = partials.pop() else { return Ok(0.0) };
    let mut low = 0.0;
    while let Some(y) = partials.pop() {
        let x = high;
        high = x + y;
        low = y - (high - x);
        if low != 0.0 {
            break;
        }
    }
    // halfway between two floats, the rest decides
    if let Some(next) = partials.last()
        && ((low < 0.0 && *next < 0.0) || (low > 0.0 && *next > 0.0))
    {
        let doubled = low * 2.0;
        let x = high + doubled;
        if doubled == x - high {
            high = x;
        }
    }
    Ok(high)
}

/// The length of a vector. Python's has less than one unit in the last place of error, as this has.
fn distance(apart: &[f64]) -> Result<Value, Fault> {
    let squares = apart.iter().map(|x| x * x).collect::<Vec<_>>();
    whole_sum(&squares).map(|sum| Value::Float(sum.sqrt()))
}

fn product(args: &Args) -> Result<Value, Fault> {
    let items = args.need("math.prod", 0, "iterable")?;
    let items = items
        .as_items()
        .ok_or_else(|| Fault::type_error(format!("math.prod() needs numbers, not {}", items.type_name())))?;
    let mut whole = Some(1i64);
    let mut wide = 1.0;
    for item in items.iter().chain(args.named("start")) {
        let x = item.as_float().ok_or_else(|| Fault::type_error(format!("math.prod() of {}", item.type_name())))?;
        let int = if matches!(item, Value::Float(_)) { None } else { item.as_int() };
        if let (Some(_), Some(by)) = (whole, int) {
            let more = whole.and_then(|w| w.checked_mul(by));
            whole = Some(more.ok_or_else(|| Fault::value_error("the result of math.prod() exceeds 64 bits"))?);
        } else {
            whole = None;
        }
        wide *= x;
    }
    Ok(whole.map_or(Value::Float(wide), Value::Int))
}

fn integers(name: &str, args: &Args) -> Result<Value, Fault> {
    let values = args.positional.iter().map(|v| int(name, v)).collect::<Result<Vec<_>, _>>()?;
    let too_big = || Fault::value_error(format!("the result of {name}() exceeds 64 bits"));
    let gcd = |a: i64, b: i64| {
        let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let out = match (name, &values[..]) {
        ("math.gcd", values) => values.iter().try_fold(0i64, |a, b| i64::try_from(gcd(a, *b)).ok()),
        ("math.lcm", values) => values.iter().try_fold(1i64, |a, b| match gcd(a, *b) {
            0 => Some(0),
            g => a.checked_div(g as i64)?.checked_mul(*b)?.checked_abs(),
        }),
        ("math.isqrt", [n]) if *n >= 0 => Some((*n as u64).isqrt() as i64),
        ("math.factorial", [n]) if *n >= 0 => (1..=(*n).min(21)).try_fold(1i64, |a, b| a.checked_mul(b)),
        ("math.comb", [n, k]) if *n >= 0 && *k >= 0 => {
            let k = (*k).min(n - k);
            if k < 0 {
                Some(0)
            } else {
                (0..k.min(64))
                    .try_fold(1i128, |a, i| a.checked_mul(i128::from(n - i)).map(|a| a / i128::from(i + 1)))
                    .and_then(|a| i64::try_from(a).ok())
            }
        }
        ("math.perm", [n, k]) if *n >= 0 && *k >= 0 => {
            (0..*k.min(&64)).try_fold(1i64, |a, i| a.checked_mul((n - i).max(0)))
        }
        ("math.isqrt" | "math.factorial" | "math.comb" | "math.perm", [_] | [_, _]) => {
            return Err(Fault::value_error(format!("{name}() needs non-negative integers, not {values:?}")));
        }
        _ => return Err(Fault::type_error(format!("{name}() does not take {} argument(s)", values.len()))),
    };
    out.map(Value::Int).ok_or_else(too_big)
}
