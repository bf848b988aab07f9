//! The messages for users' mistakes: cause and rewrite, for each usual mistake.
//!
//! Invariant: codes are stable, and every hint says what to write instead. Must not know how code is evaluated.

use super::syntax::ast;
use super::value::{Fault, Value};
use crate::base::{Diagnostic, Span};
use std::cell::Cell;

/// Names that unknown ones are compared with in one trace: a text of thousands of unknown ones is not held up by suggestions.
const MOST_COMPARED: usize = 1 << 18;

thread_local! {
    static COMPARED: Cell<usize> = const { Cell::new(0) };
}

/// Begins to count the compared names anew.
pub(crate) fn forget_compared() {
    COMPARED.set(0);
}

/// Whether names are still compared.
pub(crate) fn may_suggest() -> bool {
    COMPARED.get() < MOST_COMPARED
}

/// The known name that is most like another. None is found once a trace has compared too many.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if !may_suggest() {
        return None;
    }
    crate::base::nearest::nearest(name, known.inspect(|_| COMPARED.set(COMPARED.get() + 1)))
}

/// `if`, `while`, `assert` or bool() of something that depends on an index.
pub(crate) fn branch(word: &str, test: String) -> Fault {
    let what = match word {
        "bool" => "this needs the truth value of an index expression".to_string(),
        _ => format!("`{word} {test}` branches on a value that differs from cell to cell"),
    };
    let hint = match word {
        "assert" => "remove the assertion: indices are always inside the lengths",
        "while" => "loop over a range of a known length instead, and choose with torch.where",
        _ => {
            "compute both sides and choose: `torch.where(condition, a, b)`; for masks combine conditions with `&` and `|`"
        }
    };
    Fault::new("RuntimeError", "branch-on-index", format!("{what}; a mod is traced once for all cells")).hint(hint)
}

/// `a if test else b` on an index.
pub(crate) fn ternary(test: String) -> Fault {
    let message = format!("`{test}` differs from cell to cell, so it cannot choose between two expressions");
    Fault::new("RuntimeError", "branch-on-index", message)
}

/// `a and b` on tensors.
pub(crate) fn and_or(is_or: bool) -> Fault {
    let word = if is_or { "or" } else { "and" };
    let message = format!("`{word}` needs one truth value from each side, but they differ from cell to cell");
    Fault::new("RuntimeError", "bool-op-on-index", message)
}

/// `not a` on a tensor.
pub(crate) fn not() -> Fault {
    let message = "`not` needs one truth value, but it differs from cell to cell";
    Fault::new("RuntimeError", "bool-op-on-index", message)
}

/// `a <= x < b` on tensors.
pub(crate) fn chained() -> Fault {
    let message = "a chained comparison is an `and`, which needs one truth value";
    Fault::new("RuntimeError", "chained-comparison", message)
}

/// `a >= b & c == d`, which Python reads as `a >= (b & c) == d`.
pub(crate) fn bit_precedence_error(operand: String) -> Fault {
    let message = format!("`&`, `|` and `^` bind tighter than comparisons, so `{operand}` is evaluated first");
    Fault::new("RuntimeError", "bit-precedence", message)
}

/// The same for legal code, as a warning.
pub(crate) fn bit_precedence(operand: Span, whole: Span, text: String, rewrite: String) -> Diagnostic {
    Diagnostic::warning("bit-precedence", format!("`{text}` is evaluated before the comparison around it"))
        .at(operand, "binds tighter than the comparison")
        .at(whole, "")
        .hint(format!("write `{rewrite}`; or, if this is meant, put parentheses around `{text}`"))
        .rewrite(whole, rewrite)
}

/// `x in ...` with an index.
pub(crate) fn membership() -> Fault {
    Fault::new("RuntimeError", "branch-on-index", "`in` needs one truth value, but an index differs from cell to cell")
        .hint("write `(x == a) | (x == b)`, or read a bool table: `is_member[x]`")
}

/// int(), float() or bool() of an index.
pub(crate) fn conversion(function: &str) -> Fault {
    let hint = match function {
        "int" => "write `.to(torch.int64)`; for a quotient use `//`",
        "float" => "write `.to(torch.float32)`",
        _ => "remove bool(); comparisons are already truth values, combined with `&`, `|` and `~`",
    };
    let message = format!("{function}() needs one value, but an index differs from cell to cell");
    Fault::new("RuntimeError", "value-of-index", message).hint(hint)
}

/// `.item()` and `.tolist()` of an index.
pub(crate) fn item(method: &str) -> Fault {
    Fault::new(
        "RuntimeError",
        "value-of-index",
        format!(".{method}() needs one value, but this differs from cell to cell"),
    )
    .hint("compute with the tensor itself")
}

/// Something that needs a known number got an index.
pub(crate) fn not_a_number(what: &'static str, why: &str) -> Fault {
    Fault::new("RuntimeError", "value-of-index", format!("{what}: {why}"))
        .hint("loop over a range of a known length, and choose with torch.where")
}

/// Python's min() and max() of tensors.
pub(crate) fn python_extreme(name: &'static str) -> Fault {
    let torch = if name == "min" { "minimum" } else { "maximum" };
    Fault::new("RuntimeError", "branch-on-index", format!("Python's {name}() compares its arguments one by one"))
        .hint(format!("write `torch.{torch}(a, b)`, or `.clamp(...)` with a number"))
}

/// Python's any() and all() of tensors.
pub(crate) fn python_any_all(any: bool) -> Fault {
    let (name, sign) = if any { ("any", "|") } else { ("all", "&") };
    Fault::new("RuntimeError", "branch-on-index", format!("Python's {name}() needs one truth value from each element"))
        .hint(format!("combine them with `{sign}` in a loop, or use a tensor's .{name}()"))
}

/// A list or tuple indexed by an index.
pub(crate) fn list_index(container: &Value) -> Fault {
    let message = format!("a {} cannot be indexed by something that differs from cell to cell", container.type_name());
    Fault::new("TypeError", "list-by-index", message)
        .hint("make it a tensor outside the mod: `table = torch.tensor(values)`")
}

/// `t[i] = x` inside a mod.
pub(crate) fn write_in_mod() -> Fault {
    Fault::new("RuntimeError", "write-in-mod", "a mod cannot write into a tensor: it is called for every cell")
        .hint("fill the tensor in the factory, outside the mod")
}

/// A name that nothing binds. `builtins`: Python's own names that are known here.
pub(crate) fn unknown_name(name: &str, visible: &[ast::Name], builtins: &[&str]) -> Fault {
    let names = visible.iter().map(|n| &**n).filter(|n| !n.starts_with("__")).chain(builtins.iter().copied());
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None if let Some(import) = usual_import(name) => format!("begin the text with `{import}`"),
        None => format!(
            "define `{name}` in the text, or pass it: `--arg {name}=VALUE`, or a tensor of that name with `--tensors`"
        ),
    };
    let fault = Fault::new("NameError", "unknown-name", format!("`{name}` is not defined")).hint(hint);
    // what Python has and is not known here is no mistake of the text
    if name.starts_with("__") || PYTHONS.contains(&name) { fault } else { fault.python() }
}

/// Names of Python's own that are not known here.
const PYTHONS: [&str; 21] = [
    "globals",
    "locals",
    "exec",
    "eval",
    "compile",
    "open",
    "input",
    "memoryview",
    "bytearray",
    "ascii",
    "bin",
    "hex",
    "oct",
    "delattr",
    "help",
    "breakpoint",
    "aiter",
    "anext",
    "exit",
    "quit",
    "copyright",
];

/// A name that is not known, rewritten to the nearest one.
pub(crate) fn renamed(fault: Fault, name: Span) -> Fault {
    let here = fault.diagnostic.labels.first().is_some_and(|l| l.span == name);
    match suggested(&fault) {
        Some(near) if here && fault.diagnostic.code == "unknown-name" => fault.rewrite(name, near),
        _ => fault,
    }
}

/// The name that a fault suggests instead of an unknown one.
pub(crate) fn suggested(fault: &Fault) -> Option<String> {
    let hint = fault.diagnostic.hint.as_deref()?;
    Some(hint.strip_prefix("did you mean `")?.strip_suffix("`?")?.to_string())
}

/// The import that a name usually comes from.
fn usual_import(name: &str) -> Option<&'static str> {
    Some(match name {
        "np" => "import numpy as np",
        "nn" => "from torch import nn",
        "itertools" => "import itertools",
        "defaultdict" => "from collections import defaultdict",
        "dataclass" => "from dataclasses import dataclass",
        "reduce" => "from functools import reduce",
        "lru_cache" => "from functools import lru_cache",
        "Optional" | "List" | "Tuple" | "Callable" | "Union" | "Sequence" => {
            "from typing import Callable, List, Optional, Sequence, Tuple, Union"
        }
        _ => return None,
    })
}

/// A method that tensors do not have.
pub(crate) fn unknown_method<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Fault {
    let fault = Fault::new("AttributeError", "unknown-function", format!("a tensor's `.{name}` is not supported here"));
    match nearest(name, known) {
        Some(near) => fault.hint(format!("did you mean `.{near}`?")),
        None => fault.hint("write it with arithmetic, torch.where and reads of captured tensors"),
    }
}

/// An attribute that something does not have.
pub(crate) fn unknown_attribute<'a>(of: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Fault {
    let fault = Fault::new("AttributeError", "unknown-attribute", format!("`{of}` has no `{name}`"));
    match nearest(name, known) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault.hint("check the spelling, or define it"),
    }
}

/// An import that cannot be found.
pub(crate) fn unknown_module(dotted: &str) -> Fault {
    let hint = match dotted.split('.').next() {
        Some("attn_gym") => {
            "install attn-gym in the first Python that is found, or name its folder: `--package DIR`".to_string()
        }
        _ => format!("name the folder that contains `{}`, or paste the code that is used", dotted.replace('.', "/")),
    };
    Fault::new("ModuleNotFoundError", "unknown-module", format!("the module `{dotted}` is not found")).hint(hint)
}

/// Parameters that a call leaves without a value.
pub(crate) fn missing_arguments(
    def: &ast::Function,
    missing: &[&ast::Param],
    given: usize,
    unknown: &[ast::Name],
) -> Fault {
    let names = missing.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ");
    let s = if missing.len() == 1 { "" } else { "s" };
    let message = format!("{}() misses {} argument{s}: {names} ({given} given by position)", def.name, missing.len());
    let fault = Fault::new("TypeError", "missing-argument", message);
    if !unknown.is_empty() {
        let unknown = unknown.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        return fault.hint(format!("it has no parameter {unknown}: pass {names} instead"));
    }
    let hint = match missing.first().map(|p| annotation_name(p)) {
        Some(Some(kind)) if kind.contains("Tensor") => {
            "pass a tensor of that name: `--tensors F.safetensors` or NAME.npy, or `--arg NAME=torch.tensor([...])`"
        }
        _ => "pass a value, `--arg NAME=VALUE`, or write a default in the signature",
    };
    fault.hint(hint)
}

fn annotation_name(param: &ast::Param) -> Option<String> {
    super::syntax::annotation::annotation_text(param.annotation.as_ref()?)
}

/// More positional arguments than parameters.
pub(crate) fn too_many_arguments(def: &ast::Function, given: usize) -> Fault {
    let positional = |p: &&ast::Param| matches!(p.mode, ast::ParamMode::Plain | ast::ParamMode::PositionalOnly);
    let takes = def.params.iter().filter(positional).count();
    let names = def.params.iter().map(|p| &*p.name).collect::<Vec<_>>().join(", ");
    Fault::new(
        "TypeError",
        "too-many-arguments",
        format!("{}() takes {takes} positional arguments, but got {given}", def.name),
    )
    .hint(format!("its parameters are: {names}"))
}

/// A keyword argument that no parameter takes.
pub(crate) fn unexpected_argument(def: &ast::Function, name: &str) -> Fault {
    let known: Vec<&str> = def.params.iter().map(|p| &*p.name).collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("its parameters are: {}", known.join(", ")),
    };
    Fault::new("TypeError", "unexpected-argument", format!("{}() has no parameter `{name}`", def.name)).hint(hint)
}

/// A mod with neither 4 nor 5 parameters, in PyTorch's words.
pub(crate) fn arity(got: usize, wanted: usize, span: Option<Span>) -> Fault {
    let signature = if wanted == 4 { "mask_mod(b, h, q_idx, kv_idx)" } else { "score_mod(score, b, h, q_idx, kv_idx)" };
    let message = match (got, wanted) {
        (5, 4) => "this takes 5 positional arguments, like a score_mod; a mask_mod takes 4".to_string(),
        (4, 5) => "this takes 4 positional arguments, like a mask_mod; a score_mod takes 5".to_string(),
        _ => format!("Expected 4 or 5 positional args, got {got}"),
    };
    let fault = Fault::new("AssertionError", "wrong-arity", message)
        .hint(format!("its signature is `{signature}`; other values come from a factory or have defaults"));
    match span {
        Some(span) => fault.at(span),
        None => fault,
    }
}

/// The way out of faults that have no better one: by code.
pub(crate) fn way_out(code: &str) -> &'static str {
    match code {
        "type-error" => "check the values of the names: print them in PyTorch, or pass other values for the parameters",
        "index-error" | "key-error" => "check the index against the size of the tensor or list",
        "value-error" => "pass other values for the parameters",
        "unsupported" => "compute this outside, and pass the result as an argument or captured tensor",
        _ => "check the arguments of this call; if PyTorch runs it, compute it in PyTorch and capture the result",
    }
}
