//! Python's own functions of numbers: `int`, `float`, `bool`, `abs`, `round`, `pow`, `divmod`.
//!
//! Invariant: ints stay in 64 bits or there is a fault; a number of a value that is known only inside the mod is
//! refused. Must not know tensors' elements.

use super::python::two;
use crate::python::diagnose;
use crate::python::machine::Context;
use crate::python::syntax::ast::BinOp;
use crate::python::value::{Args, Fault, Value};

pub(super) fn abs(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let value = args.need("abs", 0, "x")?;
    match value {
        Value::Float(f) => Ok(Value::Float(f.abs())),
        Value::Int(_) | Value::Bool(_) => {
            let x = value.as_int().unwrap_or(0);
            let fault = || Fault::new("OverflowError", "int-overflow", "the result of abs() exceeds 64 bits");
            x.checked_abs().map(Value::Int).ok_or_else(fault)
        }
        Value::Tensor(_) | Value::Sym(_) | Value::Array(_) | Value::View(_) => {
            super::method(value, &"abs".into(), Args::default(), cx)
        }
        Value::Instance(instance) => match cx.instance_method(instance, "__abs__") {
            Some(method) => cx.call(&method, Args::default()),
            None => Err(Fault::type_error(format!("abs() of {}", value.type_name()))),
        },
        other => Err(Fault::type_error(format!("abs() of {}", other.type_name()))),
    }
}

pub(super) fn round(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let value = args.need("round", 0, "number")?;
    let digits = args.get(1, "ndigits").and_then(Value::as_int);
    match (value, digits) {
        (Value::Tensor(_) | Value::Sym(_) | Value::Array(_) | Value::View(_), _) => {
            super::method(value, &"round".into(), Args::default(), cx)
        }
        (Value::Int(_) | Value::Bool(_), Some(n)) if n < 0 => {
            // to a multiple of a power of ten, and of two that are as near to the even one
            let x = i128::from(value.as_int().unwrap_or(0));
            let unit = u32::try_from(n.unsigned_abs()).ok().and_then(|n| 10i128.checked_pow(n)).unwrap_or(i128::MAX);
            let (whole, rest) = (x.div_euclid(unit), x.rem_euclid(unit));
            let up = rest > unit - rest || (rest == unit - rest && whole % 2 != 0);
            let fault = || Fault::new("OverflowError", "int-overflow", "the result of round() exceeds 64 bits");
            let rounded = (whole + i128::from(up)).checked_mul(unit).and_then(|x| i64::try_from(x).ok());
            rounded.map(Value::Int).ok_or_else(fault)
        }
        (Value::Int(_) | Value::Bool(_), _) => Ok(Value::Int(value.as_int().unwrap_or(0))),
        (Value::Float(x), None) => float_to_int(x.round_ties_even()),
        // through the decimal text, which rounds as Python does
        (Value::Float(x), Some(n)) if (0..=17).contains(&n) => {
            Ok(Value::Float(format!("{x:.*}", n as usize).parse().unwrap_or(*x)))
        }
        (Value::Float(x), Some(n)) => {
            let unit = 10f64.powi(n.clamp(-300, 300) as i32);
            Ok(Value::Float((x * unit).round_ties_even() / unit))
        }
        (other, _) => Err(Fault::type_error(format!("round() of {}", other.type_name()))),
    }
}

fn float_to_int(x: f64) -> Result<Value, Fault> {
    if x.is_nan() || x.abs() >= 9.2e18 {
        return Err(Fault::new("OverflowError", "int-overflow", format!("{x} does not fit in an int")));
    }
    Ok(Value::Int(x as i64))
}

pub(super) fn number(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let Some(value) = args.positional.first() else {
        return Ok(match name {
            "int" => Value::Int(0),
            "float" => Value::Float(0.0),
            _ => Value::Bool(false),
        });
    };
    if value.is_symbolic() {
        return Err(diagnose::conversion(name));
    }
    let plain = python::machine::enums::plain_enum_value(value);
    let value = plain.as_ref().unwrap_or(value);
    if name == "bool" {
        return cx.truth(value).map(Value::Bool);
    }
    if let Some(text) = value.as_str() {
        cx.charge_steps(text.len() as u64 / 16)?;
        let clean = text.trim().replace('_', "").to_lowercase();
        let shown = || text.chars().take(200).collect::<String>();
        let bad = || Fault::value_error(format!("`{}` is not a valid {name}", shown()));
        return match name {
            "int" => {
                let base = args.get(1, "base").and_then(Value::as_int).unwrap_or(10);
                let (sign, digits) = match clean.strip_prefix('-') {
                    Some(digits) => ("-", digits),
                    None => ("", clean.strip_prefix('+').unwrap_or(&clean)),
                };
                // `0x1f` contains its base, as a base of 0 requires
                let said = [("0x", 16), ("0b", 2), ("0o", 8)];
                let said = said.into_iter().find(|(mark, own)| digits.starts_with(mark) && (base == 0 || base == *own));
                let (base, digits) = match said {
                    Some((mark, own)) => (own, &digits[mark.len()..]),
                    None => (if base == 0 { 10 } else { base }, digits),
                };
                let base = u32::try_from(base).ok().filter(|b| (2..=36).contains(b)).ok_or_else(bad)?;
                let plain = digits.starts_with(|c: char| c.is_ascii_alphanumeric());
                let number = plain.then(|| i64::from_str_radix(&format!("{sign}{digits}"), base).ok()).flatten();
                number.map(Value::Int).ok_or_else(bad)
            }
            _ => clean.parse().map(Value::Float).map_err(|_| bad()),
        };
    }
    let wrong = || {
        let what = match value {
            Value::Tensor(t) => format!("a tensor of shape {:?}", t.borrow().shape()),
            other => other.type_name(),
        };
        let fault = Fault::type_error(format!("{name}() of {what}"));
        if value.is_plain() { fault.python() } else { fault }
    };
    match (name, value) {
        ("int", Value::Float(x)) => float_to_int(x.trunc()),
        ("int", Value::Tensor(_)) if value.as_int().is_none() => {
            float_to_int(value.as_float().ok_or_else(wrong)?.trunc())
        }
        ("int", _) => value.as_int().map(Value::Int).ok_or_else(wrong),
        _ => value.as_float().map(Value::Float).ok_or_else(wrong),
    }
}

/// `pow(a, b)` and `pow(a, b, modulus)`.
pub(super) fn power(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let (a, b) = (args.need("pow", 0, "base")?.clone(), args.need("pow", 1, "exp")?.clone());
    let modulus = match args.get(2, "mod") {
        None | Some(Value::None) => return cx.binary(BinOp::Pow, &a, &b),
        Some(modulus) => modulus,
    };
    let int = |v: &Value| if v.as_tensor().is_some() { None } else { v.as_int().map(i128::from) };
    let (Some(a), Some(b), Some(m)) = (int(&a), int(&b), int(modulus)) else {
        return Err(Fault::type_error("pow() with a modulus needs ints").python());
    };
    if m == 0 {
        return Err(Fault::value_error("pow() 3rd argument cannot be 0"));
    }
    let size = m.abs();
    let mut base = a.rem_euclid(size);
    if b < 0 {
        base = inverse(base, size).ok_or_else(|| Fault::value_error("base is not invertible for the given modulus"))?;
    }
    let (mut left, mut out) = (b.unsigned_abs(), 1 % size);
    while left > 0 {
        if left & 1 == 1 {
            out = out * base % size;
        }
        base = base * base % size;
        left >>= 1;
    }
    // the result has the modulus's sign
    Ok(Value::Int(if m < 0 && out != 0 { out - size } else { out } as i64))
}

/// The inverse of `a` modulo `m`, if it has one.
fn inverse(a: i128, m: i128) -> Option<i128> {
    let (mut r, mut s) = ((m, a), (0i128, 1i128));
    while r.1 != 0 {
        let q = r.0 / r.1;
        r = (r.1, r.0 - q * r.1);
        s = (s.1, s.0 - q * s.1);
    }
    (r.0 == 1).then(|| s.0.rem_euclid(m))
}

pub(super) fn divmod(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let (a, b) = two("divmod", args)?;
    if [&a, &b].iter().any(|v| v.type_name() == "Tensor") {
        let message = format!("unsupported operand type(s) for divmod(): '{}' and '{}'", a.type_name(), b.type_name());
        return Err(Fault::type_error(message).hint("write `a // b` and `a % b`").python());
    }
    let quotient = cx.binary(BinOp::FloorDiv, &a, &b)?;
    let rest = cx.binary(BinOp::Mod, &a, &b)?;
    Ok(Value::tuple(vec![quotient, rest]))
}
