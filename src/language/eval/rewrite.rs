//! What to write instead: the user's own text, turned into what works on indices.
//!
//! Invariant: a rewrite means what the text was meant to mean, and traces where its parts do; what is not certain gets
//! none. Must not evaluate.

use super::Context;
use crate::base::{Rewrite, Span};
use crate::language::diagnose;
use crate::language::syntax::ast::*;
use crate::language::value::Fault;

/// Codes of faults that a rewrite of the whole expression around them mends.
const OF_LOGIC: [&str; 2] = ["bool-op-on-index", "chained-comparison"];

impl Context<'_> {
    /// The source text of a span as it stands.
    fn source_of(&self, span: Span) -> String {
        self.sources.get(span.source.0 as usize).map_or("", |s| s.slice(span)).to_string()
    }

    /// `a / b` that was meant to be whole.
    pub(super) fn whole_quotient(&self, a: &Expr, b: &Expr) -> String {
        let [a, b] = [a, b].map(|e| {
            let text = self.source_of(e.span);
            // its own parentheses are no part of an expression's place
            if self.in_parentheses(e) { format!("({text})") } else { text }
        });
        format!("{a} // {b}")
    }

    /// An operand of a comparison.
    fn compared_text(&self, e: &Expr) -> String {
        use ExprKind::{And, Compare, Lambda, Or, Ternary, Unary};
        match e.kind {
            And(_) | Or(_) | Compare(..) | Unary(UnaryOp::Not, _) => format!("({})", self.bitwise(e)),
            Ternary(_) | Lambda(_) => format!("({})", self.source_of(e.span)),
            _ => self.source_of(e.span),
        }
    }

    /// An expression with `&`, `|` and `~` for `and`, `or` and `not`, chained comparisons taken apart.
    pub(super) fn bitwise(&self, e: &Expr) -> String {
        let joined = |items: &[Expr], sign: &str| {
            items.iter().map(|e| self.operand_text(e)).collect::<Vec<_>>().join(&format!(" {sign} "))
        };
        match &e.kind {
            ExprKind::And(items) => joined(items, "&"),
            ExprKind::Or(items) => joined(items, "|"),
            ExprKind::Unary(UnaryOp::Not, inner) => format!("~{}", self.operand_text(inner)),
            ExprKind::Compare(first, rest) if matches!(rest[..], [(CmpOp::In | CmpOp::NotIn, _)]) => {
                self.membership(first, &rest[0]).unwrap_or_else(|| self.source_of(e.span))
            }
            ExprKind::Compare(first, rest) => self.comparisons(first, rest),
            _ => self.source_of(e.span),
        }
    }

    /// The same as an operand of `&`, `|` or `~`.
    fn operand_text(&self, e: &Expr) -> String {
        let text = self.bitwise(e);
        use ExprKind::{Attribute, Bool, Call, Int, Name, Subscript, Unary};
        let bare = matches!(
            &e.kind,
            Name(_)
                | Call(..)
                | Attribute(..)
                | Subscript(..)
                | Bool(_)
                | Int(_)
                | Unary(UnaryOp::Not | UnaryOp::Invert, _)
        );
        if bare { text } else { format!("({text})") }
    }

    /// `a >= b & c < d` as `(a >= b) & (c < d)`, and `a <= b < c` as `(a <= b) & (b < c)`.
    pub(super) fn comparisons(&self, first: &Expr, rest: &[(CmpOp, Expr)]) -> String {
        let mut parts = vec![String::new()];
        let mut signs: Vec<&str> = Vec::new();
        let mut chained = false;
        for (at, e) in std::iter::once(first).chain(rest.iter().map(|(_, e)| e)).enumerate() {
            let (mut operands, mut between) = (Vec::new(), Vec::new());
            self.bit_operands(e, &mut operands, &mut between);
            let texts: Vec<String> = operands.iter().map(|e| self.compared_text(e)).collect();
            if at > 0 {
                let op = rest[at - 1].0.symbol();
                if chained {
                    // the operand in the middle stands on both sides
                    let middle = if at == 1 { first } else { &rest[at - 2].1 };
                    signs.push("&");
                    parts.push(self.compared_text(middle));
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
            return parts.remove(0);
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
        out
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

    /// `x in (1, 2)` as `(x == 1) | (x == 2)`.
    pub(super) fn membership(&self, item: &Expr, (op, container): &(CmpOp, Expr)) -> Option<String> {
        let (ExprKind::Tuple(values) | ExprKind::List(values) | ExprKind::Set(values)) = &container.kind else {
            return None;
        };
        if values.is_empty() || values.iter().any(|v| matches!(v.kind, ExprKind::Starred(_))) {
            return None;
        }
        let item = self.source_of(item.span);
        let equal = |v: &Expr| format!("({item} == {})", self.source_of(v.span));
        let any = values.iter().map(equal).collect::<Vec<_>>().join(" | ");
        Some(if *op == CmpOp::NotIn { format!("~({any})") } else { any })
    }

    /// A fault of `and`, `or` or `not` inside a larger expression of the kind: one rewrite for the whole of it.
    pub(super) fn widened(&mut self, fault: Fault, whole: &Expr) -> Fault {
        if fault.fatal || !OF_LOGIC.contains(&&*fault.diagnostic.code) {
            return fault;
        }
        let inside = |span: Span| {
            span.source == whole.span.source && span.start >= whole.span.start && span.end <= whole.span.end
        };
        let within = |f: &Fault| f.diagnostic.rewrite.as_ref().is_some_and(|r| inside(r.span));
        if !within(&fault) {
            return fault;
        }
        self.faults.retain(|f| !(OF_LOGIC.contains(&&*f.diagnostic.code) && within(f)));
        let mut fault = fault;
        fault.diagnostic.labels.clear();
        fault.at(whole.span).instead(whole.span, self.bitwise(whole))
    }

    /// Python's own function of an index as PyTorch's.
    pub(super) fn call_rewrite(&self, callee: &Expr, arguments: &[Argument]) -> Option<String> {
        let mut given = Vec::new();
        for argument in arguments {
            let Argument::Positional(e) = argument else { return None };
            given.push(e);
        }
        let text = |e: &Expr| self.source_of(e.span);
        let number = |e: &Expr| matches!(e.kind, ExprKind::Int(_) | ExprKind::Float(_));
        let name = match &callee.kind {
            ExprKind::Name(name) => name.to_string(),
            ExprKind::Attribute(of, name) if matches!(&of.kind, ExprKind::Name(n) if &**n == "math") => {
                let known = ["sqrt", "exp", "log", "log2", "floor", "ceil", "sin", "cos", "tanh", "erf", "trunc"];
                let all: Vec<String> = given.iter().map(|e| text(e)).collect();
                return known.contains(&&**name).then(|| format!("torch.{name}({})", all.join(", ")));
            }
            _ => return None,
        };
        match (&*name, &given[..]) {
            ("max" | "min", [a, b]) => {
                let (function, bound) = if name == "max" { ("maximum", "min") } else { ("minimum", "max") };
                Some(match (number(a), number(b)) {
                    (false, true) => format!("torch.clamp({}, {bound}={})", text(a), text(b)),
                    (true, false) => format!("torch.clamp({}, {bound}={})", text(b), text(a)),
                    _ => format!("torch.{function}({}, {})", text(a), text(b)),
                })
            }
            // int() goes towards zero
            ("int", [Expr { kind: ExprKind::Binary(BinOp::Div, a, b), span }]) => {
                Some(match self.source_of(*span).contains('-') {
                    true => format!("torch.div({}, {}, rounding_mode=\"trunc\")", text(a), text(b)),
                    false => format!("({})", self.whole_quotient(a, b)),
                })
            }
            ("int", [x]) => Some(format!("({}).to(torch.int64)", text(x))),
            ("float", [x]) => Some(format!("({}).to(torch.float32)", text(x))),
            ("bool", [x]) => Some(format!("({})", text(x))),
            ("any" | "all", [Expr { kind: ExprKind::List(items) | ExprKind::Tuple(items), .. }])
                if !items.is_empty() =>
            {
                let sign = if name == "any" { " | " } else { " & " };
                Some(format!("({})", items.iter().map(|e| format!("({})", text(e))).collect::<Vec<_>>().join(sign)))
            }
            _ => None,
        }
    }

    /// An `if` on an index whose branches all return, or all set one name: as `torch.where`.
    pub(super) fn branch_rewrite(&self, fault: Fault, statement: &Stmt, next: Option<&Stmt>) -> Fault {
        if fault.diagnostic.code != "branch-on-index" || fault.diagnostic.rewrite.is_some() {
            return fault;
        }
        let StmtKind::If(branches) = &statement.kind else { return fault };
        let here = fault.diagnostic.labels.first().map(|l| l.span);
        if here != branches.first().and_then(|(test, _)| test.as_ref()).map(|t| t.span) {
            return fault;
        }
        match self.as_where(branches, statement.span, next) {
            Some(Rewrite { span, text }) => fault.instead(span, text),
            None => fault,
        }
    }

    fn as_where(&self, branches: &[(Option<Expr>, Vec<Stmt>)], span: Span, next: Option<&Stmt>) -> Option<Rewrite> {
        let mut result: Option<(String, String)> = None;
        let mut span = span;
        let (_, first) = branches.first()?;
        let returns = matches!(first[..], [Stmt { kind: StmtKind::Return(Some(_)), .. }]);
        if !branches.iter().any(|(test, _)| test.is_none()) {
            // what happens otherwise
            result = Some(if returns {
                let next = next?;
                let StmtKind::Return(Some(value)) = &next.kind else { return None };
                span = span.to(next.span);
                (String::new(), self.source_of(value.span))
            } else {
                let (target, _) = self.only_value(first)?;
                (target.clone(), target)
            });
        }
        for (test, body) in branches.iter().rev() {
            let (target, value) = self.only_value(body)?;
            result = Some(match (test, result) {
                (None, None) => (target, value),
                (Some(test), Some((same, otherwise))) if same == target => {
                    (target, format!("torch.where({}, {value}, {otherwise})", self.bitwise(test)))
                }
                _ => return None,
            });
        }
        let (target, value) = result?;
        let text = if returns { format!("return {value}") } else { format!("{target} = {value}") };
        Some(Rewrite { span, text })
    }

    /// What a body of one statement returns (no name) or sets, and its text.
    fn only_value(&self, body: &[Stmt]) -> Option<(String, String)> {
        match body {
            [Stmt { kind: StmtKind::Return(Some(value)), .. }] => Some((String::new(), self.source_of(value.span))),
            [Stmt { kind: StmtKind::Assign { targets, value }, .. }] => match &targets[..] {
                [Expr { kind: ExprKind::Name(name), .. }] => Some((name.to_string(), self.source_of(value.span))),
                _ => None,
            },
            _ => None,
        }
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
        let start =
            if of_method || !text.starts_with("torch.") { callee.span.start + name_at } else { callee.span.start };
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
