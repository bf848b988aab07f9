//! The number of arguments that a callable still needs.
//!
//! Invariant: None if unknown, never a guess. Must not know the use of the call.

use crate::python::syntax::ast::ParamMode;
use crate::python::value::{CACHED, Value};

/// Positional parameters that a callable still needs; None if unknown.
pub(crate) fn required(value: &Value) -> Option<usize> {
    match value {
        // `def wrapper(*args, **kwargs)` takes what the function that it wraps takes
        Value::Function(function) if function.def.params.iter().any(|p| p.mode == ParamMode::VarArgs) => {
            function.attributes.borrow().named("__wrapped__").and_then(|of| required(&of))
        }
        Value::Function(function) => Some(function.def.required().count()),
        Value::Partial(partial) => match &partial.function {
            Value::Builtin(name) if name.starts_with("flex.") => Some(4),
            Value::Builtin(name) if &**name == CACHED => required(partial.args.positional.first()?),
            Value::Builtin(name) if &**name == "method" => match &partial.args.positional[..] {
                [_, function, ..] => required(function).map(|n| n.saturating_sub(1)),
                _ => None,
            },
            Value::Function(function) => {
                let bound = partial.args.positional.len();
                let left = function.def.required().skip(bound);
                Some(left.filter(|p| partial.args.named(&p.name).is_none()).count())
            }
            other => required(other).map(|n| n.saturating_sub(partial.args.positional.len())),
        },
        Value::Builtin(name) if &**name == "flex.noop_mask" => Some(4),
        Value::Instance(instance) => {
            let members = instance.class.members.borrow();
            let method = members.named("__call__").or_else(|| members.named("forward"))?;
            required(&method).map(|n| n.saturating_sub(1))
        }
        _ => None,
    }
}
