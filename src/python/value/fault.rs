//! A fault of a running text: a Python exception with its diagnostic.
//!
//! Invariant: a fault says whether Python raises it as well, because the text's own `except` catches only those. Must
//! not know the code that ran.

use super::Value;
use crate::base::{Diagnostic, Span};
use std::borrow::Cow;

/// A fault while running the text: a Python exception with its diagnostic.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Python's class: `ValueError`.
    pub class: Cow<'static, str>,
    /// The message for the user.
    pub diagnostic: Box<Diagnostic>,
    /// Whether the trace ends with it: a limit was reached.
    pub fatal: bool,
    /// Whether Python raises this as well, so that the text's own `except` may catch it. A fault that only means "not
    /// supported here" is never caught.
    pub python: bool,
    /// The exception object, if the text created one.
    pub raised: Option<Raised>,
}

/// An exception object of the text.
#[derive(Clone)]
pub struct Raised(pub Value);

impl std::fmt::Debug for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an exception of the text")
    }
}

/// Codes of faults that Python and PyTorch raise as well.
const RAISED_BY_PYTHON: [&str; 24] = [
    "raised",
    "assertion",
    "assertion-failed",
    "key-error",
    "index-error",
    "index-dtype",
    "index-out-of-range",
    "too-many-indices",
    "zero-division",
    "division-by-zero",
    "value-error",
    "missing-argument",
    "unexpected-argument",
    "too-many-arguments",
    "not-callable",
    "tensor-shape",
    "tensor-dtype",
    "tensor-op",
    "runtime-error",
    "branch-on-index",
    "bool-op-on-index",
    "chained-comparison",
    "value-of-index",
    "not-a-mod",
];

impl Fault {
    /// A fault of a Python class with a diagnostic code and message.
    pub fn new(class: &'static str, code: &'static str, message: impl Into<String>) -> Fault {
        let diagnostic = Box::new(Diagnostic::error(code, message));
        let python = RAISED_BY_PYTHON.contains(&code);
        Fault { class: Cow::Borrowed(class), diagnostic, fatal: false, python, raised: None }
    }

    /// The same, if it is certain that Python raises it as well.
    #[must_use]
    pub fn python(self) -> Fault {
        Fault { python: true, ..self }
    }

    /// The same, where Python may have an answer.
    #[must_use]
    pub fn not_python(self) -> Fault {
        Fault { python: false, ..self }
    }

    /// A `TypeError`.
    pub fn type_error(message: impl Into<String>) -> Fault {
        Fault::new("TypeError", "type-error", message)
    }

    /// A `ValueError`.
    pub fn value_error(message: impl Into<String>) -> Fault {
        Fault::new("ValueError", "value-error", message)
    }

    /// An `IndexError`.
    pub fn index_error(message: impl Into<String>) -> Fault {
        Fault::new("IndexError", "index-error", message)
    }

    /// A `RuntimeError`, PyTorch's usual one.
    pub fn runtime_error(message: impl Into<String>) -> Fault {
        Fault::new("RuntimeError", "runtime-error", message)
    }

    /// Something legal in Python or PyTorch that is not supported here.
    pub fn unsupported(message: impl Into<String>) -> Fault {
        Fault::new("NotImplementedError", "unsupported", message)
    }

    /// A limit was reached; the text cannot catch it.
    pub fn limit(code: &'static str, message: impl Into<String>) -> Fault {
        Fault { fatal: true, ..Fault::new("RuntimeError", code, message) }
    }

    /// Sets the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.diagnostic.hint = Some(hint.into());
        self
    }

    /// Sets what can be pasted in the place of `span`.
    #[must_use]
    pub fn rewrite(mut self, span: Span, text: impl Into<String>) -> Fault {
        *self.diagnostic = self.diagnostic.rewrite(span, text);
        self
    }

    /// The same, replacing the former hint.
    #[must_use]
    pub fn instead(mut self, span: Span, text: impl Into<String>) -> Fault {
        self.diagnostic.hint = None;
        self.rewrite(span, text)
    }

    /// Marks the place, unless one is marked already.
    #[must_use]
    pub fn at(mut self, span: Span) -> Fault {
        if self.diagnostic.labels.is_empty() {
            *self.diagnostic = self.diagnostic.at(span, "");
        }
        self
    }
}

impl From<Diagnostic> for Fault {
    fn from(diagnostic: Diagnostic) -> Fault {
        let diagnostic = Box::new(diagnostic);
        Fault { class: Cow::Borrowed("RuntimeError"), diagnostic, fatal: false, python: false, raised: None }
    }
}
