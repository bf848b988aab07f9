//! The meaning of an expression on indices, as text: `and` as `&`, a ternary as torch.where, including nested
//! expressions.
//!
//! Invariant: the text has the meaning of the Python in every cell; if this is uncertain, there is no text. Values are
//! looked up or computed only to distinguish truth values from numbers. Must not know statements.

use super::Context;
use crate::base::{DType, Span};
use crate::python::syntax::ast::*;
use crate::python::syntax::walk::plain_parts as parts;
use crate::python::value::Value;
use crate::python::value::scope::Scope;
use std::rc::Rc;

/// The kind of an expression's value, as far as a rewrite needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A truth value that differs from cell to cell.
    Truth,
    /// A number that differs from cell to cell.
    Number,
    /// Python's True or False.
    PlainBool,
    /// A number of Python's.
    PlainNumber,
}

/// Calls within one another that are looked into for recursion.
const MAX_CALLS: usize = 6;

/// Whether any expression inside, or this one, is such.
pub(super) fn any(e: &Expr, is: &mut dyn FnMut(&Expr) -> bool) -> bool {
    is(e) || parts(e).into_iter().any(|p| any(p, is))
}

impl Context<'_> {
    /// The names that the running function sees.
    fn here(&self) -> Option<Rc<Scope>> {
        self.frames.last().cloned()
    }

    /// The value of an expression, computed separately: without messages and without effects.
    pub(super) fn aside(&mut self, e: &Expr) -> Option<Value> {
        let scope = self.here()?;
        let (span, recover, warnings, faults) = (self.span, self.recover, self.warnings.len(), self.faults.len());
        (self.recover, self.trying) = (false, self.trying + 1);
        let value = self.eval(e, &scope).ok();
        (self.span, self.recover, self.trying) = (span, recover, self.trying - 1);
        self.warnings.truncate(warnings);
        self.faults.truncate(faults);
        value
    }

    /// The kind of an expression's value; None if uncertain.
    pub(super) fn kind_of(&mut self, e: &Expr) -> Option<Kind> {
        match &e.kind {
            ExprKind::Compare(_, rest) if rest.iter().any(|(op, _)| matches!(op, CmpOp::Is | CmpOp::IsNot)) => {
                Some(Kind::PlainBool)
            }
            ExprKind::Compare(..) | ExprKind::Unary(UnaryOp::Not, _) => {
                let symbolic = any(e, &mut |part| self.is_symbolic_name(part));
                Some(if symbolic { Kind::Truth } else { Kind::PlainBool })
            }
            ExprKind::And(all) | ExprKind::Or(all) => {
                let kinds: Option<Vec<Kind>> = all.iter().map(|e| self.kind_of(e)).collect();
                let kinds = kinds?;
                let truths = kinds.iter().all(|k| matches!(k, Kind::Truth | Kind::PlainBool));
                truths.then(|| if kinds.contains(&Kind::Truth) { Kind::Truth } else { Kind::PlainBool })
            }
            ExprKind::Binary(BinOp::And | BinOp::Or | BinOp::Xor, a, b) => match (self.kind_of(a)?, self.kind_of(b)?) {
                (Kind::PlainBool, Kind::PlainBool) => Some(Kind::PlainBool),
                (Kind::Truth | Kind::PlainBool, Kind::Truth | Kind::PlainBool) => Some(Kind::Truth),
                (Kind::PlainNumber | Kind::PlainBool, Kind::PlainNumber | Kind::PlainBool) => Some(Kind::PlainNumber),
                _ => Some(Kind::Number),
            },
            ExprKind::Unary(UnaryOp::Invert, inner) => self.kind_of(inner),
            ExprKind::Named(_, inner) => self.kind_of(inner),
            ExprKind::Ternary(all) => match (self.kind_of(&all[1])?, self.kind_of(&all[2])?) {
                (Kind::Truth | Kind::PlainBool, Kind::Truth | Kind::PlainBool) => Some(Kind::Truth),
                _ => Some(Kind::Number),
            },
            ExprKind::Bool(_) => Some(Kind::PlainBool),
            ExprKind::Int(_) | ExprKind::Float(_) => Some(Kind::PlainNumber),
            ExprKind::Call(callee, _) if matches!(&callee.kind, ExprKind::Name(n) if matches!(&**n, "any" | "all" | "bool")) => {
                Some(Kind::Truth)
            }
            ExprKind::Call(callee, arguments) if matches!(&callee.kind, ExprKind::Name(n) if matches!(&**n, "max" | "min" | "int" | "float" | "abs")) =>
            {
                let mut plain = true;
                for argument in arguments {
                    let Argument::Positional(given) = argument else { return None };
                    plain &= matches!(self.kind_of(given)?, Kind::PlainBool | Kind::PlainNumber);
                }
                Some(if plain { Kind::PlainNumber } else { Kind::Number })
            }
            // a list of numbers that is read at an index
            ExprKind::Subscript(container, index) if self.kind_of(index) == Some(Kind::Number) => {
                let table = self.aside(container)?;
                let number = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_));
                let items = match &table {
                    Value::Dict(pairs) => pairs.borrow().0.iter().map(|(_, v)| v.clone()).collect(),
                    Value::List(_) | Value::Tuple(_) => table.as_items().unwrap_or_default(),
                    _ => return self.aside(e).and_then(|value| self.kind_of_value(&value)),
                };
                (!items.is_empty() && items.iter().all(number)).then_some(Kind::Number)
            }
            // arithmetic that cannot be computed here is still a number
            ExprKind::Binary(_, a, b) => match (self.kind_of(a)?, self.kind_of(b)?) {
                (Kind::PlainBool | Kind::PlainNumber, Kind::PlainBool | Kind::PlainNumber) => Some(Kind::PlainNumber),
                _ => Some(Kind::Number),
            },
            _ => self.aside(e).and_then(|value| self.kind_of_value(&value)),
        }
    }

    pub(super) fn kind_of_value(&mut self, value: &Value) -> Option<Kind> {
        match value {
            Value::Bool(_) => Some(Kind::PlainBool),
            Value::Int(_) | Value::Float(_) => Some(Kind::PlainNumber),
            Value::Sym(_) | Value::Array(_) | Value::View(_) => match self.symbolic_attribute(value, "dtype") {
                Some(Value::DType(DType::Bool)) => Some(Kind::Truth),
                _ => Some(Kind::Number),
            },
            Value::Tensor(t) if t.handle().shape().is_empty() => {
                Some(if t.handle().dtype() == DType::Bool { Kind::Truth } else { Kind::Number })
            }
            _ => None,
        }
    }

    /// Whether a name refers to a value that differs from cell to cell.
    fn is_symbolic_name(&mut self, e: &Expr) -> bool {
        match (&e.kind, self.here()) {
            (ExprKind::Name(name), Some(scope)) => {
                scope.get(name).is_none_or(|v| v.is_symbolic() || matches!(v, Value::Tensor(_) | Value::Missing(_)))
            }
            _ => false,
        }
    }

    /// The unchanged source text of a span.
    pub(super) fn source_of(&self, span: Span) -> String {
        self.sources.get(span.source.0 as usize).map_or("", |s| s.slice(span)).to_string()
    }

    /// The meaning of an expression as text; None if uncertain.
    pub(super) fn meaning(&mut self, e: &Expr) -> Option<String> {
        match &e.kind {
            ExprKind::And(_) | ExprKind::Or(_) if self.kind_of(e) == Some(Kind::PlainBool) => {
                Some(self.source_of(e.span))
            }
            ExprKind::And(items) => self.joined(items, "&", false),
            ExprKind::Or(items) => self.joined(items, "|", false),
            ExprKind::Unary(UnaryOp::Not, inner) => self.negated(inner),
            ExprKind::Compare(first, rest) if matches!(rest[..], [(CmpOp::In | CmpOp::NotIn, _)]) => {
                match self.kind_of(first)? {
                    Kind::Truth | Kind::Number => self.membership(first, &rest[0]),
                    _ => Some(self.source_of(e.span)),
                }
            }
            ExprKind::Compare(first, rest) if rest.len() > 1 && self.kind_of(e) == Some(Kind::Truth) => {
                self.comparisons(first, rest)
            }
            ExprKind::Ternary(all) => match self.kind_of(&all[0])? {
                Kind::PlainBool | Kind::PlainNumber => self.spliced(e),
                _ => self.choice(&all[0], &all[1], &all[2]),
            },
            ExprKind::Call(callee, arguments) => match self.call_rewrite(callee, arguments) {
                Some(text) => Some(text),
                None => self.spliced(e),
            },
            _ => self.spliced(e),
        }
    }

    /// The meaning of a test whose truth value alone counts: a number is compared with 0.
    pub(super) fn tested(&mut self, e: &Expr) -> Option<String> {
        match &e.kind {
            ExprKind::And(items) => self.joined(items, "&", true),
            ExprKind::Or(items) => self.joined(items, "|", true),
            _ => match self.kind_of(e)? {
                Kind::Number | Kind::PlainNumber => Some(format!("{} != 0", self.compared_text(e)?)),
                Kind::Truth | Kind::PlainBool => self.meaning(e),
            },
        }
    }

    fn joined(&mut self, items: &[Expr], sign: &str, only_truth: bool) -> Option<String> {
        // of numbers `and` and `or` give one of the two, and not a truth value
        if !only_truth && !items.iter().all(|e| matches!(self.kind_of(e), Some(Kind::Truth | Kind::PlainBool))) {
            return None;
        }
        let mut parts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            // what Python skips, PyTorch computes: it must not fail there
            if at > 0 && !self.is_safe(item) {
                return None;
            }
            let text = if only_truth { self.tested(item)? } else { self.meaning(item)? };
            let negated = matches!(item.kind, ExprKind::Unary(UnaryOp::Not, _)) && text.starts_with('~');
            parts.push(if is_bare(item) || negated { text } else { format!("({text})") });
        }
        Some(parts.join(&format!(" {sign} ")))
    }

    fn negated(&mut self, inner: &Expr) -> Option<String> {
        // for numbers, too, only the truth value counts
        if matches!(inner.kind, ExprKind::And(_) | ExprKind::Or(_)) && self.kind_of(inner).is_none() {
            return Some(format!("~({})", self.tested(inner)?));
        }
        match self.kind_of(inner)? {
            Kind::PlainBool | Kind::PlainNumber => Some(format!("not {}", self.operand_text(inner)?)),
            Kind::Number => Some(format!("{} == 0", self.compared_text(inner)?)),
            Kind::Truth => {
                let text = self.tested(inner)?;
                Some(if is_bare(inner) { format!("~{text}") } else { format!("~({text})") })
            }
        }
    }

    /// `torch.where(test, then, otherwise)`
    pub(super) fn choice(&mut self, test: &Expr, then: &Expr, otherwise: &Expr) -> Option<String> {
        let test = self.tested(test)?;
        let [then, otherwise] = [self.chosen(then)?, self.chosen(otherwise)?];
        Some(format!("torch.where({test}, {then}, {otherwise})"))
    }

    /// A side of a choice: a number that can be computed in every cell.
    pub(super) fn chosen(&mut self, e: &Expr) -> Option<String> {
        if !self.is_safe(e) || self.recurs(e, e.span, MAX_CALLS) {
            return None;
        }
        self.kind_of(e)?;
        self.meaning(e)
    }

    /// Whether computing it in cells that Python would not compute it in does no harm: PyTorch divides ints by nothing.
    fn is_safe(&mut self, e: &Expr) -> bool {
        let divides = |e: &Expr| matches!(e.kind, ExprKind::Binary(BinOp::FloorDiv | BinOp::Mod, ..));
        if !any(e, &mut |e| divides(e)) {
            return true;
        }
        let mut divisors: Vec<&Expr> = Vec::new();
        fn gather<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
            if let ExprKind::Binary(BinOp::FloorDiv | BinOp::Mod, _, by) = &e.kind {
                out.push(by);
            }
            parts(e).into_iter().for_each(|p| gather(p, out));
        }
        gather(e, &mut divisors);
        divisors.iter().all(|by| match &by.kind {
            ExprKind::Int(i) => *i != 0,
            ExprKind::Float(_) => true,
            _ => self.aside(by).is_some_and(|v| v.as_float().is_some_and(|x| x != 0.0)),
        })
    }

    /// Whether a call inside may come back to `place`, so that a choice of both sides never ends.
    fn recurs(&mut self, e: &Expr, place: Span, depth: usize) -> bool {
        let Some(scope) = self.here() else { return true };
        recurs(e, place, &scope, depth)
    }

    /// The text with its nested expressions replaced by their meaning.
    fn spliced(&mut self, e: &Expr) -> Option<String> {
        if matches!(e.kind, ExprKind::Lambda(_) | ExprKind::FString(_) | ExprKind::Yield(_) | ExprKind::YieldFrom(_)) {
            return Some(self.source_of(e.span));
        }
        // names of a comprehension are known inside it only
        if matches!(e.kind, ExprKind::Comprehension(_)) {
            let logic = |e: &Expr| {
                matches!(e.kind, ExprKind::And(_) | ExprKind::Or(_) | ExprKind::Unary(UnaryOp::Not, _))
                    || matches!(&e.kind, ExprKind::Compare(_, rest) if rest.len() > 1)
                    || matches!(e.kind, ExprKind::Ternary(_))
            };
            let ExprKind::Comprehension(given) = &e.kind else { return None };
            return (!any(&given.element, &mut |e| logic(e))).then(|| self.source_of(e.span));
        }
        let mut text = self.source_of(e.span);
        let mut inner = parts(e);
        inner.sort_by_key(|part| part.span.start);
        for part in inner.into_iter().rev() {
            let (start, end) = (part.span.start.checked_sub(e.span.start)?, part.span.end.checked_sub(e.span.start)?);
            let new = self.meaning(part)?;
            if text.get(start as usize..end as usize)? != new {
                // the parentheses around it stay; a choice or a call needs none
                let loose = !is_bare(part) && !self.in_parentheses(part) && new.contains([' ', '~']);
                let new = if loose && !new.starts_with("torch.") { format!("({new})") } else { new };
                text.replace_range(start as usize..end as usize, &new);
            }
        }
        Some(text)
    }

    /// The text of an operand of an arithmetic operator or comparison.
    pub(super) fn operand_text(&mut self, e: &Expr) -> Option<String> {
        use ExprKind::{Attribute, Bool, Call, Float, Int, Name, Subscript};
        let text = self.meaning(e)?;
        let atom = matches!(e.kind, Name(_) | Call(..) | Attribute(..) | Subscript(..) | Bool(_) | Int(_) | Float(_));
        Some(if atom { text } else { format!("({text})") })
    }
}

/// Whether its meaning needs no parentheses as an operand of `&`, `|` and `~`.
fn is_bare(e: &Expr) -> bool {
    use ExprKind::{Attribute, Bool, Call, Int, Name, Subscript, Unary};
    match &e.kind {
        // `any([a, b])` becomes `a | b`
        Call(callee, _) => !matches!(&callee.kind, Name(n) if matches!(&**n, "any" | "all" | "bool" | "int" | "float")),
        Name(_) | Attribute(..) | Subscript(..) | Bool(_) | Int(_) | Unary(UnaryOp::Invert, _) => true,
        _ => false,
    }
}

fn recurs(e: &Expr, place: Span, scope: &Rc<Scope>, depth: usize) -> bool {
    any(e, &mut |e| {
        let ExprKind::Call(callee, _) = &e.kind else { return false };
        let ExprKind::Name(name) = &callee.kind else { return false };
        let Some(Value::Function(function)) = scope.get(name) else { return false };
        let own = function.def.span;
        if own.source == place.source && own.start <= place.start && place.end <= own.end {
            return true;
        }
        if depth == 0 {
            return true;
        }
        match &function.def.body {
            Body::Expr(body) => recurs(body, place, &function.scope, depth - 1),
            Body::Block(body) => body.iter().any(|s| statement_recurs(s, place, &function.scope, depth - 1)),
        }
    })
}

fn statement_recurs(s: &Stmt, place: Span, scope: &Rc<Scope>, depth: usize) -> bool {
    let e = |e: &Expr| recurs(e, place, scope, depth);
    let all = |body: &[Stmt]| body.iter().any(|s| statement_recurs(s, place, scope, depth));
    match &s.kind {
        StmtKind::Expr(value) | StmtKind::Return(Some(value)) | StmtKind::Assign { value, .. } => e(value),
        StmtKind::AugAssign { value, .. } | StmtKind::AnnAssign { value: Some(value), .. } => e(value),
        StmtKind::If(branches) => branches.iter().any(|(test, body)| test.as_ref().is_some_and(e) || all(body)),
        StmtKind::For { iter, body, orelse, .. } => e(iter) || all(body) || all(orelse),
        StmtKind::While { test, body, orelse } => e(test) || all(body) || all(orelse),
        StmtKind::Return(None) | StmtKind::Pass | StmtKind::AnnAssign { .. } => false,
        // unanalysed values may be returned
        _ => true,
    }
}
