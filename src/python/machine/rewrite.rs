//! Suggested code: comparisons, membership, calls and names, rewritten to code that works on indices.
//!
//! Invariant: a rewrite has the intended meaning of the text, and traces if its parts do; an uncertain case has none.
//! Must not know statements.

use super::Context;
use super::meaning::Kind;
use crate::base::Span;
use crate::ir::ops::UnaryOp as GraphOp;
use crate::python::diagnose;
use crate::python::syntax::ast::*;
use crate::python::value::{Fault, Value};

/// Codes of faults that a rewrite of the whole expression around them mends.
const OF_LOGIC: [&str; 2] = ["bool-op-on-index", "chained-comparison"];

/// Whether torch has this function of `math` under the same name and with the same meaning.
fn is_of_torch(name: &str) -> bool {
    GraphOp::all().into_iter().map(GraphOp::row).any(|row| row.math && row.name == name)
}

impl Context<'_> {
    /// `a / b` that was meant to be whole.
    pub(super) fn whole_quotient(&self, a: &Expr, b: &Expr) -> String {
        let [a, b] = [a, b].map(|e| {
            let text = self.source_of(e.span);
            // its own parentheses are no part of an expression's place
            if self.in_parentheses(e) { format!("({text})") } else { text }
        });
        format!("{a} // {b}")
    }

    /// A fault with suggested code for the whole expression, if it is certain.
    pub(super) fn meant(&mut self, fault: Fault, whole: &Expr) -> Fault {
        match self.meaning(whole) {
            Some(text) => fault.rewrite(whole.span, text),
            None => {
                let hint =
                    "compare each side first, as in `(a != 0) & (b != 0)`, and choose between values with torch.where";
                fault.hint(hint)
            }
        }
    }

    /// An operand of a comparison.
    pub(super) fn compared_text(&mut self, e: &Expr) -> Option<String> {
        use ExprKind::{And, Binary, Compare, Lambda, Named, Or, Ternary, Unary};
        let text = self.meaning(e)?;
        Some(match e.kind {
            And(_) | Or(_) | Compare(..) | Unary(UnaryOp::Not, _) | Ternary(_) | Lambda(_) | Named(..) => {
                format!("({text})")
            }
            Binary(BinOp::And | BinOp::Or | BinOp::Xor, ..) => format!("({text})"),
            _ => text,
        })
    }

    /// `a >= b & c < d` as `(a >= b) & (c < d)`, and `a <= b < c` as `(a <= b) & (b < c)`.
    pub(super) fn comparisons(&mut self, first: &Expr, rest: &[(CmpOp, Expr)]) -> Option<String> {
        let mut parts = vec![String::new()];
        let mut signs: Vec<&str> = Vec::new();
        let mut chained = false;
        for (at, e) in std::iter::once(first).chain(rest.iter().map(|(_, e)| e)).enumerate() {
            let (mut operands, mut between) = (Vec::new(), Vec::new());
            self.bit_operands(e, &mut operands, &mut between);
            let texts: Vec<String> = operands.iter().map(|e| self.compared_text(e)).collect::<Option<_>>()?;
            if at > 0 {
                if matches!(rest[at - 1].0, CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot) {
                    return None;
                }
                let op = rest[at - 1].0.symbol();
                if chained {
                    // the operand in the middle is on both sides; a name that it binds is then bound
                    let middle = if at == 1 { first } else { &rest[at - 2].1 };
                    signs.push("&");
                    parts.push(match &middle.kind {
                        ExprKind::Named(name, _) => name.to_string(),
                        _ => self.compared_text(middle)?,
                    });
                }
                if let Some(last) = parts.last_mut() {
                    *last = format!("{last} {op} {}", texts[0]);
                }
                chained = operands.len() == 1;
            } else {
                parts[0].clone_from(&texts[0]);
            }
            for (sign, text) in between.iter().zip(texts.iter().skip(1)) {
                signs.push(sign);
                parts.push(text.clone());
                chained = false;
            }
        }
        if parts.len() == 1 {
            return Some(parts.remove(0));
        }
        let closed = |text: &String| {
            let simple = text.starts_with('(') && text.ends_with(')') && text.matches('(').count() == 1;
            let plain = text.chars().all(|c| c.is_alphanumeric() || "_.[]".contains(c));
            if simple || plain { text.clone() } else { format!("({text})") }
        };
        let mut out = closed(&parts[0]);
        for (sign, part) in signs.iter().zip(&parts[1..]) {
            out.push_str(&format!(" {sign} {}", closed(part)));
        }
        Some(out)
    }

    /// The operands of bare `&`, `|` and `^` from left to right, and the signs between them.
    fn bit_operands<'e>(&self, e: &'e Expr, operands: &mut Vec<&'e Expr>, signs: &mut Vec<&'static str>) {
        match &e.kind {
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or | BinOp::Xor), left, right) if !self.in_parentheses(e) => {
                self.bit_operands(left, operands, signs);
                signs.push(op.symbol());
                self.bit_operands(right, operands, signs);
            }
            _ => operands.push(e),
        }
    }

    /// `x in (1, 2)` as `(x == 1) | (x == 2)`, and `x in values` as `(x == torch.tensor(values)).any()`.
    pub(super) fn membership(&mut self, item: &Expr, (op, container): &(CmpOp, Expr)) -> Option<String> {
        let item = self.operand_text(item)?;
        let any = match &container.kind {
            ExprKind::Tuple(values) | ExprKind::List(values) | ExprKind::Set(values) if values.len() <= 8 => {
                if values.is_empty() || values.iter().any(|v| matches!(v.kind, ExprKind::Starred(_))) {
                    return None;
                }
                let mut equal = Vec::with_capacity(values.len());
                for value in values {
                    self.kind_of(value)?;
                    equal.push(format!("({item} == {})", self.operand_text(value)?));
                }
                equal.join(" | ")
            }
            _ => {
                let text = self.source_of(container.span);
                let found = self.aside(container)?;
                let listed = match &found {
                    Value::List(_) | Value::Tuple(_) => text,
                    Value::Set(_) | Value::Dict(_) | Value::Range(..) => format!("list({text})"),
                    _ => return None,
                };
                let values = self.collect(&found).ok()?;
                if values.is_empty() || !values.iter().all(|v| matches!(v, Value::Int(_) | Value::Float(_))) {
                    return None;
                }
                format!("({item} == torch.tensor({listed})).any()")
            }
        };
        Some(if *op == CmpOp::NotIn { format!("~({any})") } else { any })
    }

    /// A list, tuple or dict of numbers that is read at an index: as a tensor.
    pub(super) fn table_rewrite(&mut self, fault: Fault, container: &Expr, value: &Value) -> Fault {
        if fault.diagnostic.code != "list-by-index" {
            return fault;
        }
        let text = self.source_of(container.span);
        let number = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        let table = match value {
            Value::List(_) | Value::Tuple(_) | Value::Range(..) => {
                let items = value.as_items().unwrap_or_default();
                let nested = |v: &Value| v.as_items().is_some_and(|row| !row.is_empty() && row.iter().all(number));
                let even = items.iter().filter_map(|v| v.as_items().map(|row| row.len())).collect::<Vec<_>>();
                let rectangular = items.iter().all(nested) && even.windows(2).all(|w| w[0] == w[1]);
                let fits = !items.is_empty() && (items.iter().all(number) || rectangular);
                let listed = if matches!(value, Value::Range(..)) { format!("list({text})") } else { text };
                fits.then(|| format!("torch.tensor({listed})"))
            }
            Value::Dict(pairs) => {
                let pairs = pairs.borrow();
                let mut keys: Vec<i64> = pairs.0.iter().filter_map(|(k, _)| k.as_int()).collect();
                keys.sort_unstable();
                let whole = keys.len() == pairs.0.len() && keys.iter().enumerate().all(|(at, k)| *k == at as i64);
                let fits = !keys.is_empty() && whole && pairs.0.iter().all(|(_, v)| number(v));
                fits.then(|| format!("torch.tensor([{text}[i] for i in range({})])", keys.len()))
            }
            _ => None,
        };
        match table {
            // only read values change
            Some(table) => fault.instead(container.span, table),
            None => fault,
        }
    }

    /// A fault of `and`, `or` or `not` inside a larger expression of the kind: one rewrite for the whole of it.
    pub(super) fn widened(&mut self, fault: Fault, whole: &Expr) -> Fault {
        if fault.fatal || !OF_LOGIC.contains(&&*fault.diagnostic.code) {
            return fault;
        }
        let inside = |span: Span| {
            span.source == whole.span.source && span.start >= whole.span.start && span.end <= whole.span.end
        };
        let place =
            |f: &Fault| f.diagnostic.rewrite.as_ref().map(|r| r.span).or(f.diagnostic.labels.first().map(|l| l.span));
        if !place(&fault).is_some_and(inside) {
            return fault;
        }
        self.faults.retain(|f| !(OF_LOGIC.contains(&&*f.diagnostic.code) && place(f).is_some_and(inside)));
        let mut fault = fault;
        fault.diagnostic.labels.clear();
        fault.diagnostic.rewrite = None;
        fault.diagnostic.hint = None;
        self.meant(fault.at(whole.span), whole)
    }

    /// A fault of `and`, `or` or `not` in a test, where only the truth of numbers counts.
    pub(super) fn test_rewrite(&mut self, fault: Fault, test: &Expr) -> Fault {
        let here = fault.diagnostic.labels.first().map(|l| l.span) == Some(test.span);
        if !here || !OF_LOGIC.contains(&&*fault.diagnostic.code) || fault.diagnostic.rewrite.is_some() {
            return fault;
        }
        let Some(text) = self.tested(test) else { return fault };
        let same = |f: &Fault| {
            f.diagnostic.code == fault.diagnostic.code && f.diagnostic.labels.first() == fault.diagnostic.labels.first()
        };
        let known = self.faults.iter().position(same);
        let fault = fault.instead(test.span, text);
        if let Some(at) = known {
            self.faults[at] = fault.clone();
        }
        fault
    }

    /// Python's own function of an index as PyTorch's.
    pub(super) fn call_rewrite(&mut self, callee: &Expr, arguments: &[Argument]) -> Option<String> {
        let mut given = Vec::new();
        for argument in arguments {
            let Argument::Positional(e) = argument else { return None };
            given.push(e);
        }
        let name = match &callee.kind {
            ExprKind::Name(name) if matches!(&**name, "max" | "min" | "int" | "float" | "bool" | "any" | "all") => {
                name.to_string()
            }
            ExprKind::Attribute(of, name) if matches!(&of.kind, ExprKind::Name(n) if &**n == "math") => {
                let [one] = given[..] else { return None };
                let index = is_of_torch(name) && matches!(self.kind_of(one)?, Kind::Truth | Kind::Number);
                return if index { Some(format!("torch.{name}({})", self.meaning(one)?)) } else { None };
            }
            _ => return None,
        };
        match (&*name, &given[..]) {
            ("max" | "min", items @ [_, _, ..]) => self.extreme_rewrite(&name, items),
            ("any" | "all", [Expr { kind: ExprKind::Comprehension(given), .. }]) => self.all_rewrite(&name, given),
            ("any" | "all", [Expr { kind: ExprKind::List(items) | ExprKind::Tuple(items), .. }])
                if !items.is_empty() =>
            {
                let sign = if name == "any" { " | " } else { " & " };
                let mut parts = Vec::with_capacity(items.len());
                for item in items {
                    parts.push(format!("({})", self.tested(item)?));
                }
                Some(format!("({})", parts.join(sign)))
            }
            (_, [x]) if !matches!(self.kind_of(x)?, Kind::Truth | Kind::Number) => None,
            // int() goes towards zero
            ("int", [Expr { kind: ExprKind::Binary(BinOp::Div, a, b), span }]) => {
                Some(match self.source_of(*span).contains('-') {
                    true => format!("torch.div({}, {}, rounding_mode=\"trunc\")", self.meaning(a)?, self.meaning(b)?),
                    false => format!("({})", self.whole_quotient(a, b)),
                })
            }
            ("int", [x]) => Some(format!("({}).to(torch.int64)", self.meaning(x)?)),
            ("float", [x]) => Some(format!("({}).to(torch.float32)", self.meaning(x)?)),
            ("bool", [x]) => Some(format!("({})", self.tested(x)?)),
            _ => None,
        }
    }

    /// `max(a, b, 3)`: Python's numbers bound, tensors are compared.
    fn extreme_rewrite(&mut self, name: &str, items: &[&Expr]) -> Option<String> {
        let (function, bound) = if name == "max" { ("maximum", "min") } else { ("minimum", "max") };
        let (mut tensors, mut numbers) = (Vec::new(), Vec::new());
        for item in items {
            match self.kind_of(item)? {
                Kind::Number => tensors.push(self.meaning(item)?),
                Kind::PlainNumber => numbers.push(self.source_of(item.span)),
                Kind::Truth | Kind::PlainBool => return None,
            }
        }
        let mut tensors = tensors.into_iter();
        let first = tensors.next()?;
        let first = match &numbers[..] {
            [] => first,
            [one] => format!("torch.clamp({first}, {bound}={one})"),
            all => format!("torch.clamp({first}, {bound}={name}({}))", all.join(", ")),
        };
        Some(tensors.fold(first, |so_far, next| format!("torch.{function}({so_far}, {next})")))
    }

    /// `any(test for x in values)`: the tests side by side.
    fn all_rewrite(&mut self, name: &str, given: &Comprehension) -> Option<String> {
        let [(target, iter, tests)] = &given.loops[..] else { return None };
        if !tests.is_empty() {
            return None;
        }
        // the first element represents all: each has a truth value in its cell
        let values = self.aside(iter)?;
        let first = self.collect(&values).ok()?.into_iter().next()?;
        let scope = self.frames.last()?.clone();
        let inner = python::value::scope::Scope::new(python::value::scope::Kind::Function, Some(scope));
        self.assign(target, first, &inner).ok()?;
        self.frames.push(inner);
        let kind = self.kind_of(&given.element);
        let element = self.tested(&given.element);
        self.frames.pop();
        let element = element.filter(|_| kind == Some(Kind::Truth))?;
        let (target, iter) = (self.source_of(target.span), self.source_of(iter.span));
        Some(format!("torch.stack([{element} for {target} in {iter}]).{name}(0)"))
    }

    /// A fault of a function that is not known: its name alone is marked, and rewritten to the nearest one.
    pub(super) fn at_name(&self, fault: Fault, callee: &Expr) -> Fault {
        let place = fault.diagnostic.labels.first().map(|l| l.span);
        if !matches!(&*fault.diagnostic.code, "unknown-function" | "unknown-attribute")
            || place.is_some_and(|p| !covers(p, callee.span))
        {
            return fault;
        }
        let near = diagnose::suggested(&fault);
        let text = self.source_of(callee.span);
        // methods are suggested with their dot
        let name_at = text.rfind('.').map_or(0, |at| at + 1) as u32;
        let of_method = near.as_deref().is_none_or(|n| n.starts_with('.'));
        let other_module = near.as_deref().is_some_and(|n| n.starts_with("torch."));
        let start = if of_method || !(text.starts_with("torch.") || other_module) {
            callee.span.start + name_at
        } else {
            callee.span.start
        };
        let span = Span::new(callee.span.source, start, callee.span.end);
        let mut fault = fault;
        fault.diagnostic.labels.clear();
        fault = fault.at(span);
        let Some(near) = near else { return fault };
        let new = if span.start == callee.span.start && !of_method {
            near
        } else {
            near.rsplit('.').next().unwrap_or(&near).to_string()
        };
        fault.rewrite(span, new)
    }
}

fn covers(outer: Span, inner: Span) -> bool {
    outer.source == inner.source && outer.start <= inner.start && outer.end >= inner.end
}
