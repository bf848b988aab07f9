//! `torch.*`, `math.*` and other functions on concrete values.
//!
//! Invariant: nothing here sees a symbolic value; results follow PyTorch's promotion and shapes. Must not know syntax.

use crate::language::eval::Context;
use crate::language::value::{Args, Fault, Value};

/// State that functions keep over one trace.
#[derive(Debug, Default)]
pub struct State {}

/// Names that [`call`] knows, for suggestions.
pub const NAMES: &[&str] = &["math.sqrt", "math.ceil", "math.floor", "math.log", "math.log2", "math.exp"];

/// Calls a function by its dotted name; None when it is unknown.
pub fn call(name: &str, args: &Args, _cx: &mut Context) -> Option<Result<Value, Fault>> {
    let float = |f: fn(f64) -> f64| -> Result<Value, Fault> {
        let x = args.need(name, 0, "x")?;
        let x =
            x.as_float().ok_or_else(|| Fault::type_error(format!("{name} needs a number, not {}", x.type_name())))?;
        Ok(Value::Float(f(x)))
    };
    let int = |f: fn(f64) -> f64| float(f).map(|v| v.as_float().map_or(v, |f| Value::Int(f as i64)));
    Some(match name {
        "math.sqrt" => float(f64::sqrt),
        "math.log" => float(f64::ln),
        "math.log2" => float(f64::log2),
        "math.exp" => float(f64::exp),
        "math.ceil" => int(f64::ceil),
        "math.floor" => int(f64::floor),
        _ => return None,
    })
}

/// An attribute of a module that is a value, such as `math.pi`; None when it is none.
pub fn value(name: &str) -> Option<Value> {
    match name {
        "math.pi" | "torch.pi" => Some(Value::Float(std::f64::consts::PI)),
        "math.inf" | "torch.inf" => Some(Value::Float(f64::INFINITY)),
        "math.e" => Some(Value::Float(std::f64::consts::E)),
        "math.nan" | "torch.nan" => Some(Value::Float(f64::NAN)),
        _ => None,
    }
}
