//! Arguments and tensors from outside, as values, and their parameters.
//!
//! Invariant: a passed value goes to the parameter or global of its name, or is refused by name. Must not know what a
//! function computes.

use super::entry::run;
use super::{Arg, Call};
use crate::base::{Diagnostic, Source};
use crate::ir::graph::ModKind;
use crate::python::machine::Context;
use crate::python::machine::inside;
use crate::python::syntax::Name;
use crate::python::syntax::annotation::annotation_text;
use crate::python::syntax::ast;
use crate::python::value::{Args, Fault, Function, TensorCell, Value};
use std::rc::Rc;

/// Patterns may take patterns as arguments, this deep.
const MAX_NESTING: usize = 16;

/// The values passed by name, tensors last; masks of other texts are created on use.
pub(crate) fn values(
    cx: &mut Context,
    args: &[(String, Arg)],
    globals: &[(Name, Value)],
) -> Result<Vec<(Name, Value)>, Vec<Diagnostic>> {
    let mut out = Vec::new();
    for (name, arg) in args.iter().filter(|(_, a)| !matches!(a, Arg::Mod { .. })) {
        out.push((name.as_str().into(), argument(cx, arg, 0)?));
    }
    let more = globals.iter().filter(|(name, _)| !args.iter().any(|(n, _)| **n == **name));
    out.extend(more.cloned());
    Ok(out)
}

/// A request's argument as a value.
pub(crate) fn argument(cx: &mut Context, arg: &Arg, depth: usize) -> Result<Value, Vec<Diagnostic>> {
    let items = |cx: &mut Context, items: &[Arg]| -> Result<Vec<Value>, Vec<Diagnostic>> {
        items.iter().map(|i| argument(cx, i, depth + 1)).collect()
    };
    if depth > MAX_NESTING {
        let message = format!("arguments nest more than {MAX_NESTING} deep");
        return Err(vec![Diagnostic::error("pattern-nesting", message).hint("combine masks as layers instead")]);
    }
    Ok(match arg {
        Arg::None => Value::None,
        Arg::Bool(b) => Value::Bool(*b),
        Arg::Int(i) => Value::Int(*i),
        Arg::Float(f) => Value::Float(*f),
        Arg::Str(text) => Value::str(text.as_str()),
        Arg::List(given) => Value::list(items(cx, given)?),
        Arg::Tuple(given) => Value::tuple(items(cx, given)?),
        Arg::Tensor(tensor) => {
            let tensor = TensorCell::new(tensor.clone());
            cx.learns_again(&tensor);
            Value::Tensor(tensor)
        }
        Arg::Python(text) => expression(cx, text)?,
        Arg::Mod { source, entry, call, args } => {
            let call = if *call { Call::Factory } else { Call::Mod };
            let scope = run(cx, source.clone(), Vec::new())?;
            let chosen = cx.chosen.take();
            let wanted = super::entry::Wanted { entry, kind: ModKind::Mask, call, args, given: &[] };
            let made = super::entry::find_mod(cx, &scope, &wanted, depth + 1);
            cx.chosen = chosen;
            made?
        }
    })
}

/// The value of an argument that was written as an expression.
fn expression(cx: &mut Context, text: &str) -> Result<Value, Vec<Diagnostic>> {
    let whole = format!("import math\nimport torch\nimport numpy as np\nvalue = (\n{text}\n)\n");
    let scope = run(cx, Source::new(format!("the argument `{text}`"), whole), Vec::new());
    let reported = |why: Vec<Diagnostic>| {
        let hint = format!(
            "an argument is a value as Python writes it: [8, 8], {{\"window\": 5}}, torch.arange(40), float(\"inf\"); a text needs \
             quotes: \"{text}\""
        );
        why.into_iter().map(|d| if d.hint.is_some() { d } else { d.hint(hint.clone()) }).collect::<Vec<_>>()
    };
    scope
        .map_err(reported)?
        .own("value")
        .ok_or_else(|| vec![Diagnostic::error("argument-value", format!("the argument `{text}` has no value"))])
}

/// A function behind a callable value, and its parameters that are still open.
pub(crate) struct Open {
    /// The function.
    pub function: Rc<Function>,
    /// Positions that are bound already.
    bound: usize,
    /// Names that are bound already.
    named: Vec<Name>,
}

impl Open {
    /// For a function, a bound method, a partial, a cached function or a callable object.
    pub(crate) fn of(value: &Value) -> Option<Open> {
        let names = |args: &Args| args.keyword.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
        match value {
            // `def wrapper(*args, **kwargs)` takes what the function that it wraps takes
            Value::Function(function) if function.def.params.iter().any(|p| p.mode == ast::ParamMode::VarArgs) => {
                match function.attributes.borrow().named("__wrapped__") {
                    Some(wrapped) => Open::of(&wrapped),
                    None => Some(Open { function: function.clone(), bound: 0, named: Vec::new() }),
                }
            }
            Value::Function(function) => Some(Open { function: function.clone(), bound: 0, named: Vec::new() }),
            Value::Partial(partial) => {
                let args = &partial.args;
                let (inner, from) = match &partial.function {
                    Value::Builtin(name) if &**name == "method" => (args.positional.get(1)?, 2),
                    Value::Builtin(name) if &**name == python::value::CACHED => {
                        return Open::of(args.positional.first()?);
                    }
                    Value::Builtin(_) => return None,
                    function => (function, 0),
                };
                let mut open = Open::of(inner)?;
                open.bound += args.positional.len() - from;
                open.named.extend(names(args));
                Some(open)
            }
            Value::Instance(object) => {
                let method = python::machine::class::member(&object.class, "__call__")
                    .or_else(|| python::machine::class::member(&object.class, "forward"))?;
                let mut open = Open::of(&method)?;
                open.bound += 1;
                Some(open)
            }
            _ => None,
        }
    }

    /// Parameters that may still be given.
    pub(crate) fn params(&self) -> impl Iterator<Item = &ast::Param> {
        let positional = self.function.def.params.iter().skip(self.bound);
        positional.filter(|p| !self.named.contains(&p.name))
    }

    /// Those of them that have to be given.
    pub(crate) fn required(&self) -> impl Iterator<Item = &ast::Param> {
        use ast::ParamMode::{Plain, PositionalOnly};
        self.params().filter(|p| matches!(p.mode, PositionalOnly | Plain) && p.default.is_none())
    }
}

/// The values passed for a callable's parameters, as keyword arguments: arguments by their names and roots, then
/// tensors.
pub(crate) fn for_params(cx: &mut Context, open: &Open, given: &[(Name, Value)]) -> Result<Vec<(Name, Value)>, Fault> {
    let mut out = Vec::new();
    let params: Vec<(Name, bool)> = open.params().map(|p| (p.name.clone(), wants_tensor(p))).collect();
    for (name, tensor) in params {
        let own = given.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        let own = own.or_else(|| inside::namespace(&name, given));
        // a pasted method: its reads of the object's attributes are faults that explain how to pass them
        let own = own.or_else(|| (&*name == "self").then(|| inside::nothing_given(&name)));
        let Some(value) = own else { continue };
        let list = matches!(value, Value::List(_) | Value::Tuple(_));
        let value = if tensor && list {
            cx.call(&Value::Builtin("torch.tensor".into()), Args::of(vec![value]))?
        } else {
            value
        };
        out.push((name, value));
    }
    Ok(out)
}

fn wants_tensor(param: &ast::Param) -> bool {
    let text = param.annotation.as_ref().and_then(annotation_text).unwrap_or_default();
    text.contains("Tensor") && !text.to_lowercase().contains("list[") && !text.contains("Sequence[")
}
