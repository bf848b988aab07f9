//! Converts expressions of ruff's tree into ours.
//!
//! Invariant: total: every node of ruff's tree has a node here, at least an unsupported one. Must not know what runs.

use super::Parsed;
use super::ast::*;
use super::{convert_stmt, kept};
use crate::base::{Diagnostic, Source, SourceId, Span};
use ruff_python_ast as py;
use ruff_text_size::{Ranged, TextRange};
use std::rc::Rc;

pub(super) fn parse(source: &Source, id: SourceId, depth: usize, max_errors: usize) -> Parsed {
    // text copied with its indentation is the body of a definition
    let indented = is_indented(&source.text);
    let wrapped = indented.then(|| format!("{AROUND}{}", source.text));
    let parsed = kept::tree(wrapped.as_deref().unwrap_or(&source.text), depth);
    let shift = if indented { AROUND.len() as u32 } else { 0 };
    let convert = Convert { id, text: &source.text, shift };
    let errors = parsed.errors().iter().take(max_errors).map(|e| convert.error(e)).collect();
    let body = match parsed.syntax() {
        py::Mod::Module(module) => match &module.body[..] {
            [py::Stmt::If(around), rest @ ..] if indented => {
                let mut body = convert.block(&around.body);
                body.extend(convert.block(rest));
                body
            }
            body => convert.block(body),
        },
        py::Mod::Expression(_) => Vec::new(),
    };
    Parsed { module: Module { body }, errors }
}

/// The header before an indented text.
const AROUND: &str = "if 1:\n";

/// Whether the first line of code is indented.
fn is_indented(text: &str) -> bool {
    let code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().find(code).is_some_and(|line| line.starts_with([' ', '\t']))
}

/// Where spans and texts come from.
pub(super) struct Convert<'a> {
    id: SourceId,
    text: &'a str,
    /// Bytes that were parsed before the text's own.
    shift: u32,
}

impl Convert<'_> {
    fn error(&self, error: &ruff_python_parser::ParseError) -> Diagnostic {
        let mut span = self.span(error.location);
        // errors at the end of a line are on its line break: mark the last character instead
        let bytes = self.text.as_bytes();
        while span.start > 0 && span.start as usize >= bytes.len().min(span.end as usize) {
            span.start -= 1;
        }
        while !self.text.is_char_boundary(span.start as usize) {
            span.start -= 1;
        }
        let message = error.error.to_string();
        let diagnostic = Diagnostic::error("syntax", format!("this is not Python: {}", lower_first(&message)));
        let hint = syntax_hint(&message, self.text.get(..span.end as usize).unwrap_or(""));
        diagnostic.at(span, "").hint(hint)
    }

    pub(super) fn span(&self, range: TextRange) -> Span {
        let own = |at: u32| at.saturating_sub(self.shift);
        Span::new(self.id, own(range.start().to_u32()), own(range.end().to_u32()))
    }

    pub(super) fn expr(&self, expr: &py::Expr) -> Expr {
        Expr { span: self.span(expr.range()), kind: self.kind(expr) }
    }

    fn boxed(&self, expr: &py::Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e py::Expr>) -> Vec<Expr> {
        exprs.into_iter().map(|e| self.expr(e)).collect()
    }

    fn kind(&self, expr: &py::Expr) -> ExprKind {
        match expr {
            py::Expr::NoneLiteral(_) => ExprKind::None,
            py::Expr::EllipsisLiteral(_) => ExprKind::Ellipsis,
            py::Expr::BooleanLiteral(e) => ExprKind::Bool(e.value),
            py::Expr::NumberLiteral(e) => number(&e.value),
            py::Expr::StringLiteral(e) => ExprKind::Str(e.value.to_str().into()),
            py::Expr::BytesLiteral(_) => ExprKind::Unsupported("bytes"),
            py::Expr::FString(e) => ExprKind::FString(self.fstring(e)),
            py::Expr::Name(e) => ExprKind::Name(e.id.as_str().into()),
            py::Expr::Attribute(e) => ExprKind::Attribute(self.boxed(&e.value), e.attr.as_str().into()),
            py::Expr::Subscript(e) => ExprKind::Subscript(self.boxed(&e.value), self.boxed(&e.slice)),
            py::Expr::Slice(e) => {
                let part = |p: &Option<Box<py::Expr>>| p.as_ref().map(|p| self.expr(p));
                ExprKind::Slice(Box::new([part(&e.lower), part(&e.upper), part(&e.step)]))
            }
            py::Expr::Call(e) => ExprKind::Call(self.boxed(&e.func), self.arguments(&e.arguments)),
            py::Expr::UnaryOp(e) => ExprKind::Unary(unary(e.op), self.boxed(&e.operand)),
            py::Expr::BinOp(e) => ExprKind::Binary(binary(e.op), self.boxed(&e.left), self.boxed(&e.right)),
            py::Expr::BoolOp(e) => match e.op {
                py::BoolOp::And => ExprKind::And(self.exprs(&e.values)),
                py::BoolOp::Or => ExprKind::Or(self.exprs(&e.values)),
            },
            py::Expr::Compare(e) => {
                let rest = e.ops.iter().zip(e.comparators.iter()).map(|(op, e)| (compare(*op), self.expr(e)));
                ExprKind::Compare(self.boxed(&e.left), rest.collect())
            }
            py::Expr::Lambda(e) => ExprKind::Lambda(Rc::new(self.lambda(e))),
            py::Expr::If(e) => {
                ExprKind::Ternary(Box::new([self.expr(&e.test), self.expr(&e.body), self.expr(&e.orelse)]))
            }
            py::Expr::Tuple(e) => ExprKind::Tuple(self.exprs(&e.elts)),
            py::Expr::List(e) => ExprKind::List(self.exprs(&e.elts)),
            py::Expr::Set(e) => ExprKind::Set(self.exprs(&e.elts)),
            py::Expr::Dict(e) => {
                let items = e.items.iter().map(|i| (i.key.as_ref().map(|k| self.expr(k)), self.expr(&i.value)));
                ExprKind::Dict(items.collect())
            }
            py::Expr::Starred(e) => ExprKind::Starred(self.boxed(&e.value)),
            py::Expr::Named(e) => match &*e.target {
                py::Expr::Name(name) => ExprKind::Named(name.id.as_str().into(), self.boxed(&e.value)),
                _ => ExprKind::Unsupported("this assignment expression"),
            },
            py::Expr::ListComp(e) => self.comprehension(Collects::List, &e.elt, None, &e.generators),
            py::Expr::SetComp(e) => self.comprehension(Collects::Set, &e.elt, None, &e.generators),
            py::Expr::Generator(e) => self.comprehension(Collects::Generator, &e.elt, None, &e.generators),
            py::Expr::DictComp(e) => match &e.key {
                Some(key) => self.comprehension(Collects::Dict, key, Some(&e.value), &e.generators),
                None => ExprKind::Unsupported("unpacking in a dict comprehension"),
            },
            py::Expr::Await(_) => ExprKind::Unsupported("await"),
            py::Expr::Yield(e) => ExprKind::Yield(e.value.as_ref().map(|v| Box::new(self.expr(v)))),
            py::Expr::YieldFrom(e) => ExprKind::YieldFrom(Box::new(self.expr(&e.value))),
            py::Expr::TString(_) => ExprKind::Unsupported("a t-string"),
            py::Expr::IpyEscapeCommand(_) => ExprKind::Unsupported("an IPython command"),
        }
    }

    fn comprehension(
        &self,
        collects: Collects,
        element: &py::Expr,
        value: Option<&py::Expr>,
        loops: &[py::Comprehension],
    ) -> ExprKind {
        let loops = loops.iter().map(|l| (self.expr(&l.target), self.expr(&l.iter), self.exprs(&l.ifs)));
        let (element, value) = (self.expr(element), value.map(|v| self.expr(v)));
        ExprKind::Comprehension(Box::new(Comprehension { collects, element, value, loops: loops.collect() }))
    }

    pub(super) fn arguments(&self, arguments: &py::Arguments) -> Vec<Argument> {
        let positional = arguments.args.iter().map(|arg| match arg {
            py::Expr::Starred(e) => Argument::Star(self.expr(&e.value)),
            other => Argument::Positional(self.expr(other)),
        });
        let keyword = arguments.keywords.iter().map(|k| match &k.arg {
            Some(name) => Argument::Keyword(name.as_str().into(), self.expr(&k.value)),
            None => Argument::DoubleStar(self.expr(&k.value)),
        });
        positional.chain(keyword).collect()
    }

    fn lambda(&self, e: &py::ExprLambda) -> Function {
        Function {
            name: "<lambda>".into(),
            name_span: self.span(e.range),
            span: self.span(e.range),
            params: e.parameters.as_ref().map_or_else(Vec::new, |p| self.parameters(p)),
            body: Body::Expr(self.expr(&e.body)),
            decorators: Vec::new(),
            returns: None,
            doc: None,
            generator: false,
            is_async: false,
        }
    }

    pub(super) fn parameters(&self, given: &py::Parameters) -> Vec<Param> {
        let plain = |p: &py::Parameter, mode: ParamMode, default: Option<&py::Expr>| Param {
            name: p.name.as_str().into(),
            span: self.span(p.range),
            mode,
            annotation: p.annotation.as_ref().map(|a| self.expr(a)),
            default: default.map(|d| self.expr(d)),
        };
        let with = |p: &py::ParameterWithDefault, mode| plain(&p.parameter, mode, p.default.as_deref());
        let mut out: Vec<Param> = given.posonlyargs.iter().map(|p| with(p, ParamMode::PositionalOnly)).collect();
        out.extend(given.args.iter().map(|p| with(p, ParamMode::Plain)));
        out.extend(given.vararg.iter().map(|p| plain(p, ParamMode::VarArgs, None)));
        out.extend(given.kwonlyargs.iter().map(|p| with(p, ParamMode::KeywordOnly)));
        out.extend(given.kwarg.iter().map(|p| plain(p, ParamMode::KwArgs, None)));
        out
    }

    fn fstring(&self, e: &py::ExprFString) -> Vec<FPart> {
        let mut parts = Vec::new();
        for part in e.value.iter() {
            match part {
                py::FStringPart::Literal(text) => parts.push(FPart::Text(text.as_str().into())),
                py::FStringPart::FString(inner) => parts.extend(self.interpolated(&inner.elements)),
            }
        }
        parts
    }

    fn interpolated(&self, elements: &[py::InterpolatedStringElement]) -> Vec<FPart> {
        let part = |element: &py::InterpolatedStringElement| match element {
            py::InterpolatedStringElement::Literal(text) => FPart::Text((*text.value).into()),
            py::InterpolatedStringElement::Interpolation(given) => FPart::Value {
                value: self.expr(&given.expression),
                conversion: given.conversion.to_byte().map(char::from),
                spec: given.format_spec.as_ref().map_or_else(Vec::new, |s| self.interpolated(&s.elements)),
                debug: given.debug_text.as_ref().map(|d| d.as_str().into()),
            },
        };
        elements.iter().map(part).collect()
    }

    pub(super) fn block(&self, body: &[py::Stmt]) -> Vec<Stmt> {
        body.iter().map(|s| convert_stmt::statement(self, s)).collect()
    }
}

fn number(value: &py::Number) -> ExprKind {
    match value {
        py::Number::Int(i) => match i.as_i64() {
            Some(i) => ExprKind::Int(i),
            None => ExprKind::Unsupported("an integer of more than 64 bits"),
        },
        py::Number::Float(f) => ExprKind::Float(*f),
        py::Number::Complex { .. } => ExprKind::Unsupported("a complex number"),
    }
}

fn unary(op: py::UnaryOp) -> UnaryOp {
    match op {
        py::UnaryOp::Invert => UnaryOp::Invert,
        py::UnaryOp::Not => UnaryOp::Not,
        py::UnaryOp::UAdd => UnaryOp::Plus,
        py::UnaryOp::USub => UnaryOp::Neg,
    }
}

pub(super) fn binary(op: py::Operator) -> BinOp {
    match op {
        py::Operator::Add => BinOp::Add,
        py::Operator::Sub => BinOp::Sub,
        py::Operator::Mult => BinOp::Mul,
        py::Operator::MatMult => BinOp::MatMul,
        py::Operator::Div => BinOp::Div,
        py::Operator::Mod => BinOp::Mod,
        py::Operator::Pow => BinOp::Pow,
        py::Operator::LShift => BinOp::Shl,
        py::Operator::RShift => BinOp::Shr,
        py::Operator::BitOr => BinOp::Or,
        py::Operator::BitXor => BinOp::Xor,
        py::Operator::BitAnd => BinOp::And,
        py::Operator::FloorDiv => BinOp::FloorDiv,
    }
}

fn compare(op: py::CmpOp) -> CmpOp {
    match op {
        py::CmpOp::Eq => CmpOp::Eq,
        py::CmpOp::NotEq => CmpOp::Ne,
        py::CmpOp::Lt => CmpOp::Lt,
        py::CmpOp::LtE => CmpOp::Le,
        py::CmpOp::Gt => CmpOp::Gt,
        py::CmpOp::GtE => CmpOp::Ge,
        py::CmpOp::Is => CmpOp::Is,
        py::CmpOp::IsNot => CmpOp::IsNot,
        py::CmpOp::In => CmpOp::In,
        py::CmpOp::NotIn => CmpOp::NotIn,
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        // names of tokens and keywords stay as they are
        Some(first) if chars.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_string(),
    }
}

/// The way out of the usual slips.
fn syntax_hint(message: &str, before: &str) -> String {
    let line = before.rsplit('\n').find(|l| !l.trim().is_empty()).unwrap_or("").trim();
    let opens = before.matches('(').count() > before.matches(')').count();
    let typeset = [
        ('≥', ">="),
        ('≤', "<="),
        ('≠', "!="),
        ('−', "-"),
        ('×', "*"),
        ('“', "\""),
        ('”', "\""),
        ('‘', "'"),
        ('’', "'"),
    ];
    if let Some((sign, plain)) = typeset.iter().find(|(sign, _)| line.contains(*sign)) {
        return format!("write `{plain}` for `{sign}`");
    }
    let hint = if line.ends_with("else if") || line.contains("else if ") {
        "write `elif`"
    } else if line.contains('?') {
        "choose with `torch.where(condition, a, b)`"
    } else if line.ends_with('!') || line.contains(" !(") {
        "write `~(...)` for not"
    } else if line.starts_with("print ") {
        "write `print(...)`"
    } else if line.starts_with("return") && line.ends_with('=') && !line.ends_with("==") {
        "write `==` to compare"
    } else if line.starts_with("def ") && !line.contains(':') {
        "end the line of a `def` with a colon"
    } else if message.contains("indent") || message.contains("Indent") {
        "indent the body of a function by four spaces, with spaces throughout"
    } else if line.contains("&&") || line.contains("||") {
        "write `&` and `|`, each side in parentheses"
    } else if opens || message.contains("')'") {
        "a parenthesis is not closed"
    } else if message.contains("Expected an expression") || message.contains("expression") {
        "something is missing here: an operand, or the rest of the line"
    } else {
        "paste the whole function, as PyTorch runs it"
    };
    hint.to_string()
}
