//! Notes about legal but probably unintended code, found without running it.
//!
//! Invariant: a note never prevents the tracing of a mod, and each is reported once. Must not know values.

use super::syntax::Name;
use super::syntax::ast::*;
use super::syntax::walk::plain_parts as parts;
use crate::base::{Diagnostic, Span};
use std::collections::{HashMap, HashSet};

/// Names that the tracer knows without an import, and the import that PyTorch needs.
const IMPORTS: [(&str, &str); 10] = [
    ("torch", "import torch"),
    ("math", "import math"),
    ("F", "import torch.nn.functional as F"),
    ("functools", "import functools"),
    ("partial", "from functools import partial"),
    ("Tensor", "from torch import Tensor"),
    ("and_masks", "from torch.nn.attention.flex_attention import and_masks"),
    ("or_masks", "from torch.nn.attention.flex_attention import or_masks"),
    ("noop_mask", "from torch.nn.attention.flex_attention import noop_mask"),
    ("create_block_mask", "from torch.nn.attention.flex_attention import create_block_mask"),
];

/// The notes of a text. `given`: names that it gets from outside.
pub(crate) fn notes(module: &Module, given: &[Name]) -> Vec<Diagnostic> {
    let mut walk = Walk { bound: given.iter().cloned().collect(), ..Walk::default() };
    module.body.iter().for_each(|s| walk.statement(s));
    let mut out = std::mem::take(&mut walk.out);
    for (name, import) in IMPORTS {
        let used = walk.used.get(name);
        if let (Some(span), false) = (used, walk.bound.contains(name) || walk.star) {
            let message = format!("`{name}` is not imported: Maskloom knows it, but Python raises a NameError");
            out.push(
                Diagnostic::note("missing-import", message)
                    .at(*span, "")
                    .hint(format!("begin the text with `{import}`")),
            );
        }
    }
    out
}

#[derive(Default)]
struct Walk {
    out: Vec<Diagnostic>,
    bound: HashSet<Name>,
    /// Names that are read, and where first.
    used: HashMap<Name, Span>,
    /// Whether `from x import *` may bind anything.
    star: bool,
    /// Indices of the mods around the place.
    indices: Vec<Name>,
}

/// Parameters of a function that look like a mod's: b, h, q_idx, kv_idx, with a score before them or not.
fn indices(def: &Function) -> Vec<Name> {
    let plain: Vec<&Param> = def.params.iter().filter(|p| p.default.is_none()).collect();
    let four = match plain.len() {
        4 => &plain[..],
        5 => &plain[1..],
        _ => return Vec::new(),
    };
    let like = |p: &Param, first: char| p.name.starts_with(first) || p.name.starts_with('_');
    let q_then_kv = like(four[2], 'q') && like(four[3], 'k');
    let kv_then_q = like(four[2], 'k') && like(four[3], 'q');
    if !(q_then_kv || kv_then_q) {
        return Vec::new();
    }
    four.iter().map(|p| p.name.clone()).collect()
}

impl Walk {
    fn block(&mut self, body: &[Stmt]) {
        body.iter().for_each(|s| self.statement(s));
    }

    fn statement(&mut self, s: &Stmt) {
        match &s.kind {
            StmtKind::Function(def) => {
                self.bound.insert(def.name.clone());
                def.decorators.iter().for_each(|d| self.expression(d));
                self.function(def);
            }
            StmtKind::Class(class) => {
                self.bound.insert(class.name.clone());
                class.bases.iter().chain(&class.decorators).for_each(|e| self.expression(e));
                self.block(&class.body);
            }
            StmtKind::Return(e) | StmtKind::Raise(e) => e.iter().for_each(|e| self.expression(e)),
            StmtKind::Delete(all) => all.iter().for_each(|e| self.expression(e)),
            StmtKind::Assign { targets, value } => {
                self.expression(value);
                targets.iter().for_each(|t| self.target(t));
            }
            StmtKind::AugAssign { target, value, .. } => {
                self.expression(value);
                self.target(target);
            }
            StmtKind::AnnAssign { target, value } => {
                value.iter().for_each(|e| self.expression(e));
                self.target(target);
            }
            StmtKind::For { target, iter, body, orelse } => {
                self.expression(iter);
                self.target(target);
                self.block(body);
                self.block(orelse);
            }
            StmtKind::While { test, body, orelse } => {
                self.expression(test);
                self.block(body);
                self.block(orelse);
            }
            StmtKind::If(branches) => {
                for (test, body) in branches {
                    test.iter().for_each(|e| self.expression(e));
                    self.block(body);
                }
            }
            StmtKind::With(with) => {
                for (item, target) in &with.items {
                    self.expression(item);
                    target.iter().for_each(|t| self.target(t));
                }
                self.block(&with.body);
            }
            StmtKind::Try { body, handlers, orelse, finally } => {
                self.block(body);
                for handler in handlers {
                    self.bound.extend(handler.name.clone());
                    self.block(&handler.body);
                }
                self.block(orelse);
                self.block(finally);
            }
            StmtKind::Assert { test, message } => {
                self.expression(test);
                message.iter().for_each(|e| self.expression(e));
            }
            StmtKind::Match { subject, cases } => {
                self.expression(subject);
                cases.iter().for_each(|c| self.block(&c.body));
            }
            StmtKind::Import(names) => {
                for (dotted, alias) in names {
                    let first = dotted.split('.').next().unwrap_or(dotted);
                    self.bound.insert(alias.clone().unwrap_or_else(|| first.into()));
                }
            }
            StmtKind::ImportFrom { names, .. } => {
                for (name, alias, _) in names {
                    self.star |= &**name == "*";
                    self.bound.insert(alias.clone().unwrap_or_else(|| name.clone()));
                }
            }
            StmtKind::Expr(e) => self.expression(e),
            StmtKind::Global(_) | StmtKind::Nonlocal(_) | StmtKind::Pass => {}
            StmtKind::Break | StmtKind::Continue | StmtKind::Unsupported(_) => {}
        }
    }

    fn target(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Name(name) => drop(self.bound.insert(name.clone())),
            ExprKind::Tuple(all) | ExprKind::List(all) => all.iter().for_each(|e| self.target(e)),
            ExprKind::Starred(inner) => self.target(inner),
            _ => self.expression(e),
        }
    }

    fn function(&mut self, def: &Function) {
        let own = indices(def);
        if let [_, _, third, fourth] = &own[..]
            && third.starts_with('k')
            && fourth.starts_with('q')
        {
            let message = format!(
                "`{}` names its last parameters `{third}, {fourth}`: PyTorch passes q_idx first; it does not look at names",
                def.name
            );
            let note = Diagnostic::warning("swapped-parameters", message).at(def.name_span, "");
            self.out.push(note.hint("write `(b, h, q_idx, kv_idx)`"));
        }
        for param in &def.params {
            param.default.iter().for_each(|e| self.expression(e));
            self.bound.insert(param.name.clone());
        }
        let outer = if own.is_empty() { None } else { Some(std::mem::replace(&mut self.indices, own)) };
        match &def.body {
            Body::Expr(e) => self.expression(e),
            Body::Block(body) => self.block(body),
        }
        if let Some(outer) = outer {
            self.indices = outer;
        }
    }

    fn is_index(&self, e: &Expr) -> bool {
        matches!(&e.kind, ExprKind::Name(name) if self.indices.contains(name))
    }

    fn uses(&mut self, name: &Name, span: Span) {
        self.used.entry(name.clone()).or_insert(span);
    }

    fn expression(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Name(name) => self.uses(name, e.span),
            ExprKind::Lambda(def) => self.function(def),
            ExprKind::Named(name, _) => drop(self.bound.insert(name.clone())),
            ExprKind::Comprehension(given) => given.loops.iter().for_each(|(target, ..)| self.target(target)),
            ExprKind::Binary(BinOp::Xor, a, b) => {
                if let (ExprKind::Int(base @ (2 | 10)), ExprKind::Int(power)) = (&a.kind, &b.kind) {
                    let message = format!("`{base} ^ {power}` is {}: `^` is the exclusive or of bits", base ^ power);
                    let note = Diagnostic::note("xor-of-numbers", message).at(e.span, "");
                    self.out.push(note.hint(format!("a power is written `{base} ** {power}`")));
                }
            }
            ExprKind::Compare(first, rest) => {
                let mut left = &**first;
                for (op, right) in rest {
                    let none = |e: &Expr| matches!(e.kind, ExprKind::None);
                    if matches!(op, CmpOp::Is | CmpOp::IsNot)
                        && (self.is_index(left) || self.is_index(right))
                        && !none(left)
                        && !none(right)
                    {
                        let always = if *op == CmpOp::Is { "False" } else { "True" };
                        let message = format!(
                            "`{}` tests whether both are the same object, which is {always} in every cell",
                            op.symbol()
                        );
                        let equal = if *op == CmpOp::Is { "==" } else { "!=" };
                        let note = Diagnostic::warning("is-of-index", message).at(e.span, "");
                        self.out.push(note.hint(format!("compare values with `{equal}`")));
                    }
                    left = right;
                }
            }
            ExprKind::FString(fstring) => self.fstring(fstring),
            _ => {}
        }
        parts(e).into_iter().for_each(|p| self.expression(p));
    }

    fn fstring(&mut self, fstring: &[FPart]) {
        for part in fstring {
            let FPart::Value { value, .. } = part else { continue };
            if self.is_index(value) {
                let message = "an index in a string has no single value: it differs from cell to cell";
                let note = Diagnostic::warning("text-of-index", message).at(value.span, "");
                self.out.push(note.hint("remove it: PyTorch inserts the name of a batched tensor"));
            }
            self.expression(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Severity, Source, SourceId};
    use crate::python::syntax;

    /// Code, severity and marked text of each note.
    fn reported(text: &str) -> Vec<(String, Severity, String)> {
        let source = Source::new("mod.py", text);
        let parsed = syntax::parse(&source, SourceId(0));
        assert!(parsed.errors.is_empty());
        let reported = notes(&parsed.module, &["given".into()]).into_iter();
        reported.map(|n| (n.code.to_string(), n.severity, source.slice(n.labels[0].span).to_string())).collect()
    }

    #[track_caller]
    fn check(text: &str, code: &str, severity: Severity, marked: &str) {
        assert_eq!(reported(text), [(code.to_string(), severity, marked.to_string())], "{text}");
    }

    #[test]
    fn names_without_an_import_are_told_once() {
        let text = "def mod(b, h, q, k):\n    return torch.abs(q - k) < torch.tensor(3)\n";
        check(text, "missing-import", Severity::Note, "torch");
        assert_eq!(reported(&format!("import torch\n{text}")), []);
        assert_eq!(reported(&format!("from torch_stuff import *\n{text}")), []);
        check("half = partial(print, 2)\n", "missing-import", Severity::Note, "partial");
        assert_eq!(reported("x = given + 1\n"), []);
    }

    #[test]
    fn parameters_in_the_other_order_are_told() {
        let text = "def mod(b, h, kv_idx, q_idx):\n    return q_idx >= kv_idx\n";
        check(text, "swapped-parameters", Severity::Warning, "mod");
        assert_eq!(reported("def mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"), []);
        assert_eq!(reported("def helper(x, y, key, query):\n    return query\n").len(), 1);
    }

    #[test]
    fn a_power_that_is_an_exclusive_or_is_told() {
        check("W = 2 ^ 10\n", "xor-of-numbers", Severity::Note, "2 ^ 10");
        assert_eq!(reported("W = 2 ** 10\nx = 5 ^ 3\n"), []);
    }

    #[test]
    fn is_of_an_index_is_told() {
        let text = |test: &str| format!("def mod(b, h, q, k):\n    return {test}\n");
        check(&text("q is k"), "is-of-index", Severity::Warning, "q is k");
        check(&text("q is not 3"), "is-of-index", Severity::Warning, "q is not 3");
        assert_eq!(reported(&text("q is None")), []);
        assert_eq!(reported("def f(a):\n    return a is 3\n"), []);
    }

    #[test]
    fn an_index_in_a_text_is_told() {
        let text = "def mod(b, h, q, k):\n    name = f'row {q}'\n    return q >= k\n";
        check(text, "text-of-index", Severity::Warning, "q");
        assert_eq!(reported("def mod(b, h, q, k, n=3):\n    name = f'row {n}'\n    return q >= k\n"), []);
    }
}
