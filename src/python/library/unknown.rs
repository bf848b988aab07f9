//! The message for a function that no table of the library knows, with the nearest known name.
//!
//! Invariant: a suggestion is a callable name. Must not know how functions are called.

use crate::python::diagnose::{may_suggest, nearest};
use crate::python::library::host;
use crate::python::prelude;
use crate::python::symbolic::functions;
use crate::python::value::Fault;

/// A function that no table knows.
pub(crate) fn unknown_function(name: &str, symbolic: bool) -> Fault {
    if let Some(function) = name.strip_prefix("math.").filter(|_| symbolic) {
        return Fault::new(
            "TypeError",
            "value-of-index",
            format!("{name}() needs one number, but an index differs from cell to cell"),
        )
        .hint(format!("write `torch.{function}(...)`"));
    }
    let known: Vec<String> = if !may_suggest() {
        Vec::new()
    } else if symbolic {
        let shipped = prelude::names().map(str::to_string);
        functions::names().map(|n| format!("torch.{n}")).chain(shipped).collect()
    } else {
        let host = host::NAMES.iter().cloned().chain(prelude::names().map(str::to_string));
        host.chain(functions::names().map(|n| format!("torch.{n}"))).collect()
    };
    let torch = name.starts_with("torch.");
    let message = if symbolic && torch {
        format!("`{name}` is not supported inside a mod")
    } else {
        format!("`{name}` is not supported here")
    };
    let fault = Fault::new("AttributeError", "unknown-function", message);
    if let Some(torch) = name.strip_prefix("numpy.").filter(|_| symbolic).and_then(torch_name) {
        return fault.hint(format!("did you mean `{torch}`?"));
    }
    match nearest(name, known.iter().map(|n| &**n)) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None if torch && symbolic => fault.hint("write it with arithmetic, torch.where and reads of captured tensors"),
        None => fault.hint("compute it outside Maskloom, and pass the result as a captured tensor or an argument"),
    }
}

/// PyTorch's name of a function of NumPy's that is known inside a mod.
fn torch_name(short: &str) -> Option<String> {
    let name = match short {
        "absolute" | "fabs" => "abs",
        "mod" => "remainder",
        "power" => "pow",
        "invert" => "bitwise_not",
        "amax" | "amin" | "concatenate" | "asarray" | "array" => return None,
        same => same,
    };
    let known = functions::is_method(name) || prelude::find(&format!("torch.{name}"), true).is_some();
    known.then(|| format!("torch.{name}"))
}
