//! The number of arguments that a callable still needs.
//!
//! Invariant: None if unknown, never a guess. Must not know the use of the call.

use crate::python::syntax::Name;
use crate::python::syntax::ast::ParamMode;
use crate::python::value::{CACHED, Value};

/// Positional parameters that a callable still needs; None if unknown.
pub(crate) fn required(value: &Value) -> Option<usize> {
    left(value, 0, &mut Vec::new())
}

/// The same of a callable that gets `bound` arguments by position and those of `named` by name.
fn left(value: &Value, bound: usize, named: &mut Vec<Name>) -> Option<usize> {
    match value {
        // `def wrapper(*args, **kwargs)` takes what the function that it wraps takes
        Value::Function(function) if function.def.params.iter().any(|p| p.mode == ParamMode::VarArgs) => {
            let wrapped = function.attributes.borrow().named("__wrapped__")?;
            left(&wrapped, bound, named)
        }
        Value::Function(function) => {
            let open = function.def.required().skip(bound);
            Some(open.filter(|p| !named.contains(&p.name)).count())
        }
        Value::Partial(partial) => {
            let args = &partial.args;
            let (of, more) = match &partial.function {
                Value::Builtin(name) if name.starts_with("flex.") => return Some(4),
                Value::Builtin(name) if &**name == CACHED => (args.positional.first()?, 0),
                // class, function, object
                Value::Builtin(name) if &**name == "method" => (args.positional.get(1)?, args.positional.len() - 2),
                function => (function, args.positional.len()),
            };
            named.extend(args.keyword.iter().map(|(name, _)| name.clone()));
            left(of, bound + more, named)
        }
        Value::Builtin(name) if &**name == "flex.noop_mask" => Some(4usize.saturating_sub(bound)),
        Value::Instance(instance) => {
            let members = instance.class.members.borrow();
            let method = members.named("__call__").or_else(|| members.named("forward"))?;
            left(&method, bound + 1, named)
        }
        _ => None,
    }
}
