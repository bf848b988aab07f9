//! Exceptions: Python's own and those that the text derives from them; raising, catching and printing.
//!
//! Invariant: an `except` catches the same exceptions as in Python, by the classes' bases. Must not know causes of
//! failures.

use super::class::is_subclass;
use super::mro;
use crate::base::Diagnostic;
use crate::python::value::{Class as ClassValue, Fault, Instance, Opaque, Raised, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

/// Kind of the [`Opaque`] of Python's own exceptions.
pub(crate) const KIND: &str = "exception";

/// Deepest chain of bases that is walked.
const MAX_BASES: usize = 32;

/// Whether a name is one of Python's exception classes.
pub(crate) fn is_exception(name: &str) -> bool {
    matches!(
        name,
        "Exception"
            | "BaseException"
            | "StopIteration"
            | "StopAsyncIteration"
            | "KeyboardInterrupt"
            | "SystemExit"
            | "GeneratorExit"
    ) || name.ends_with("Error")
        || (name.ends_with("Warning") && name != "Warnings")
}

/// The class that one of Python's exception classes derives from.
fn base_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "BaseException" => return None,
        "Exception" | "KeyboardInterrupt" | "SystemExit" | "GeneratorExit" => "BaseException",
        "ModuleNotFoundError" => "ImportError",
        "IndexError" | "KeyError" => "LookupError",
        "ZeroDivisionError" | "OverflowError" | "FloatingPointError" => "ArithmeticError",
        "NotImplementedError" | "RecursionError" | "OutOfMemoryError" => "RuntimeError",
        "UnboundLocalError" => "NameError",
        "FrozenInstanceError" => "AttributeError",
        "UnicodeError" | "JSONDecodeError" => "ValueError",
        "UnicodeDecodeError" | "UnicodeEncodeError" => "UnicodeError",
        "FileNotFoundError" | "FileExistsError" | "PermissionError" | "TimeoutError" | "ConnectionError"
        | "IsADirectoryError" | "NotADirectoryError" | "InterruptedError" => "OSError",
        "IndentationError" => "SyntaxError",
        name if name.ends_with("Warning") && name != "Warning" => "Warning",
        _ => "Exception",
    })
}

/// Whether one of Python's exception classes is, or derives from, another.
pub(crate) fn derives(name: &str, of: &str) -> bool {
    let short = |n: &str| match n.rsplit('.').next().unwrap_or(n) {
        "IOError" | "EnvironmentError" => "OSError".to_string(),
        n => n.to_string(),
    };
    let of = short(of);
    let mut at = short(name);
    for _ in 0..MAX_BASES {
        if at == of {
            return true;
        }
        match base_of(&at) {
            Some(base) => at = base.to_string(),
            None => return false,
        }
    }
    false
}

/// Python's own exception class that a class of the text derives from.
pub(super) fn builtin_base(class: &ClassValue) -> Option<String> {
    mro::find_base(class, |b| match b {
        Value::Builtin(name) if is_exception(name.rsplit('.').next().unwrap_or(name)) => Some(name.to_string()),
        _ => None,
    })
}

/// An exception object of one of Python's classes.
pub(crate) fn exception(class: &str, message: &str) -> Value {
    let state = RefCell::new(Box::new((class.to_string(), message.to_string())) as Box<dyn std::any::Any>);
    Value::Opaque(Rc::new(Opaque { kind: KIND, state }))
}

/// The class of an exception.
pub(crate) fn exception_class(value: &Value) -> String {
    match value {
        Value::Opaque(opaque) => {
            let state = opaque.state.borrow();
            state.downcast_ref::<(String, String)>().map_or("Exception".into(), |(class, _)| class.clone())
        }
        Value::Builtin(name) => name.to_string(),
        Value::Instance(object) => object.class.name.to_string(),
        other => other.type_name(),
    }
}

/// Class and message of an exception.
pub(crate) fn exception_parts(value: &Value) -> (String, String) {
    let message = match value {
        Value::Opaque(opaque) => {
            opaque.state.borrow().downcast_ref::<(String, String)>().map(|(_, message)| message.clone())
        }
        Value::Instance(object) => message_of(object),
        _ => None,
    };
    (exception_class(value), message.unwrap_or_default())
}

/// `str(e)` of an exception of the text's own class; None for other objects.
pub(crate) fn message_of(object: &Instance) -> Option<String> {
    builtin_base(&object.class)?;
    let args = object.attributes.borrow().named("args")?.as_items()?;
    Some(match &args[..] {
        [] => String::new(),
        [one] => super::text(one),
        more => super::repr(&Value::tuple(more.to_vec())),
    })
}

/// Whether an object is an exception, of a class of the text.
pub(super) fn is_own_exception(object: &Instance) -> bool {
    builtin_base(&object.class).is_some()
}

/// The length of the message of an exception of Python's own classes.
pub(crate) fn message_bytes(opaque: &Opaque) -> u64 {
    opaque.state.borrow().downcast_ref::<(String, String)>().map_or(8, |(_, message)| message.len() as u64)
}

/// The arguments of an exception of Python's own classes.
pub(crate) fn args_of(opaque: &Opaque) -> Option<Value> {
    let (_, message) = opaque.state.borrow().downcast_ref::<(String, String)>()?.clone();
    Some(Value::tuple(if message.is_empty() { Vec::new() } else { vec![Value::str(message)] }))
}

/// The fault that raising a value is. Errors: it is no exception.
pub(super) fn raised(value: Value) -> Result<Fault, Fault> {
    let is_one = match &value {
        Value::Opaque(opaque) => opaque.kind == KIND,
        Value::Builtin(name) => is_exception(name),
        Value::Instance(object) => builtin_base(&object.class).is_some(),
        _ => false,
    };
    if !is_one {
        let message = format!("exceptions must derive from BaseException, not {}", value.type_name());
        return Err(Fault::type_error(message).python());
    }
    let (class, message) = exception_parts(&value);
    let text = if message.is_empty() { class.clone() } else { format!("{class}: {message}") };
    let diagnostic = Box::new(Diagnostic::error("raised", text));
    let raised = Some(Raised(value));
    let fault = Fault { class: Cow::Owned(class), diagnostic, fatal: false, python: true, raised };
    Ok(fault.hint("the code itself raises this: change the arguments"))
}

/// The exception object that `except ... as name` binds.
pub(super) fn caught(fault: &Fault) -> Value {
    match &fault.raised {
        Some(Raised(Value::Builtin(_))) | None => {}
        Some(Raised(value)) => return value.clone(),
    }
    // the arguments of `raise` follow the class
    let message = &fault.diagnostic.message;
    let own = message.strip_prefix(&*fault.class).map(|m| m.strip_prefix(": ").unwrap_or(m));
    exception(&fault.class, own.unwrap_or(message))
}

/// Whether `except class` catches a fault.
pub(super) fn catches(class: &Value, fault: &Fault) -> bool {
    let object = match &fault.raised {
        Some(Raised(Value::Instance(object))) => Some(object),
        _ => None,
    };
    match class {
        Value::Tuple(classes) => classes.0.iter().any(|c| catches(c, fault)),
        Value::Class(class) => object.is_some_and(|o| is_subclass(&o.class, class)),
        Value::Builtin(name) => {
            let own = object.and_then(|o| builtin_base(&o.class));
            derives(own.as_deref().unwrap_or(&fault.class), name)
        }
        _ => false,
    }
}
