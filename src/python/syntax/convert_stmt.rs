//! Converts statements of ruff's tree into ours.
//!
//! Invariant: as in `convert`: total. Must not know what runs.

use super::ast::*;
use super::convert::{Convert, binary};
use ruff_python_ast as py;
use ruff_text_size::Ranged;
use std::rc::Rc;

pub(super) fn statement(to: &Convert<'_>, given: &py::Stmt) -> Stmt {
    Stmt { span: to.span(given.range()), kind: kind(to, given) }
}

fn kind(to: &Convert<'_>, given: &py::Stmt) -> StmtKind {
    let exprs = |given: &[py::Expr]| given.iter().map(|e| to.expr(e)).collect::<Vec<_>>();
    let maybe = |given: &Option<Box<py::Expr>>| given.as_ref().map(|e| to.expr(e));
    match given {
        py::Stmt::FunctionDef(s) => StmtKind::Function(Rc::new(function(to, s))),
        py::Stmt::ClassDef(s) => StmtKind::Class(Rc::new(class(to, s))),
        py::Stmt::Return(s) => StmtKind::Return(maybe(&s.value)),
        py::Stmt::Delete(s) => StmtKind::Delete(exprs(&s.targets)),
        py::Stmt::Assign(s) => StmtKind::Assign { targets: exprs(&s.targets), value: to.expr(&s.value) },
        py::Stmt::AugAssign(s) => {
            StmtKind::AugAssign { target: to.expr(&s.target), op: binary(s.op), value: to.expr(&s.value) }
        }
        py::Stmt::AnnAssign(s) => StmtKind::AnnAssign { target: to.expr(&s.target), value: maybe(&s.value) },
        py::Stmt::For(s) if s.is_async => StmtKind::Unsupported("async for"),
        py::Stmt::For(s) => StmtKind::For {
            target: to.expr(&s.target),
            iter: to.expr(&s.iter),
            body: to.block(&s.body),
            orelse: to.block(&s.orelse),
        },
        py::Stmt::While(s) => {
            StmtKind::While { test: to.expr(&s.test), body: to.block(&s.body), orelse: to.block(&s.orelse) }
        }
        py::Stmt::If(s) => {
            let mut branches = vec![(Some(to.expr(&s.test)), to.block(&s.body))];
            let rest = s.elif_else_clauses.iter().map(|c| (c.test.as_ref().map(|t| to.expr(t)), to.block(&c.body)));
            branches.extend(rest);
            StmtKind::If(branches)
        }
        py::Stmt::With(s) => {
            let items = s.items.iter().map(|i| (to.expr(&i.context_expr), maybe(&i.optional_vars)));
            StmtKind::With(Rc::new(With { items: items.collect(), body: to.block(&s.body) }))
        }
        py::Stmt::Raise(s) => StmtKind::Raise(maybe(&s.exc)),
        py::Stmt::Try(s) if s.is_star => StmtKind::Unsupported("except*"),
        py::Stmt::Try(s) => StmtKind::Try {
            body: to.block(&s.body),
            handlers: s.handlers.iter().map(|h| handler(to, h)).collect(),
            orelse: to.block(&s.orelse),
            finally: to.block(&s.finalbody),
        },
        py::Stmt::Assert(s) => StmtKind::Assert { test: to.expr(&s.test), message: maybe(&s.msg) },
        py::Stmt::Import(s) => {
            let alias = |a: &py::Alias| (a.name.as_str().into(), a.asname.as_ref().map(|n| n.as_str().into()));
            StmtKind::Import(s.names.iter().map(alias).collect())
        }
        py::Stmt::ImportFrom(s) => StmtKind::ImportFrom {
            module: s.module.as_ref().map_or("", |m| m.as_str()).into(),
            level: s.level,
            names: s
                .names
                .iter()
                .map(|a| (a.name.as_str().into(), a.asname.as_ref().map(|n| n.as_str().into()), to.span(a.range)))
                .collect(),
        },
        py::Stmt::Global(s) => StmtKind::Global(s.names.iter().map(|n| n.as_str().into()).collect()),
        py::Stmt::Nonlocal(s) => StmtKind::Nonlocal(s.names.iter().map(|n| n.as_str().into()).collect()),
        py::Stmt::Expr(s) => StmtKind::Expr(to.expr(&s.value)),
        py::Stmt::Pass(_) | py::Stmt::TypeAlias(_) => StmtKind::Pass,
        py::Stmt::Break(_) => StmtKind::Break,
        py::Stmt::Continue(_) => StmtKind::Continue,
        py::Stmt::Match(s) => {
            StmtKind::Match { subject: to.expr(&s.subject), cases: s.cases.iter().map(|c| case(to, c)).collect() }
        }
        py::Stmt::IpyEscapeCommand(_) => StmtKind::Unsupported("an IPython command"),
    }
}

fn function(to: &Convert<'_>, s: &py::StmtFunctionDef) -> Function {
    let body = to.block(&s.body);
    Function {
        name: s.name.as_str().into(),
        name_span: to.span(s.name.range),
        span: to.span(s.range),
        params: to.parameters(&s.parameters),
        doc: docstring(&body),
        generator: body.iter().any(yields),
        is_async: s.is_async,
        body: Body::Block(body),
        decorators: s.decorator_list.iter().map(|d| to.expr(&d.expression)).collect(),
        returns: s.returns.as_ref().map(|r| to.expr(r)),
    }
}

fn docstring(body: &[Stmt]) -> Option<Rc<str>> {
    match &body.first()?.kind {
        StmtKind::Expr(Expr { kind: ExprKind::Str(text), .. }) => Some(text.clone()),
        _ => None,
    }
}

/// Whether a statement of the function itself is a `yield`.
fn yields(s: &Stmt) -> bool {
    let is_yield = |e: &Expr| matches!(e.kind, ExprKind::Yield(_) | ExprKind::YieldFrom(_));
    match &s.kind {
        StmtKind::Expr(e) => is_yield(e),
        StmtKind::Assign { value, .. } => is_yield(value),
        StmtKind::For { body, orelse, .. } | StmtKind::While { body, orelse, .. } => {
            body.iter().chain(orelse).any(yields)
        }
        StmtKind::If(branches) => branches.iter().flat_map(|(_, body)| body).any(yields),
        StmtKind::With(with) => with.body.iter().any(yields),
        StmtKind::Try { body, handlers, orelse, finally } => {
            body.iter().chain(orelse).chain(finally).any(yields) || handlers.iter().any(|h| h.body.iter().any(yields))
        }
        StmtKind::Match { cases, .. } => cases.iter().any(|c| c.body.iter().any(yields)),
        _ => false,
    }
}

fn case(to: &Convert<'_>, given: &py::MatchCase) -> Case {
    Case {
        pattern: pattern(to, &given.pattern),
        guard: given.guard.as_ref().map(|g| to.expr(g)),
        body: to.block(&given.body),
    }
}

fn pattern(to: &Convert<'_>, given: &py::Pattern) -> Pattern {
    let all = |given: &[py::Pattern]| given.iter().map(|p| pattern(to, p)).collect::<Vec<_>>();
    let name = |given: &Option<py::Identifier>| given.as_ref().map(|n| n.as_str().into());
    match given {
        py::Pattern::MatchValue(p) => Pattern::Value(to.expr(&p.value)),
        py::Pattern::MatchSingleton(p) => {
            let kind = match p.value {
                py::Singleton::None => ExprKind::None,
                py::Singleton::True => ExprKind::Bool(true),
                py::Singleton::False => ExprKind::Bool(false),
            };
            Pattern::Singleton(Expr { span: to.span(p.range), kind })
        }
        py::Pattern::MatchSequence(p) => Pattern::Sequence(all(&p.patterns)),
        py::Pattern::MatchStar(p) => Pattern::Star(name(&p.name)),
        py::Pattern::MatchMapping(p) => {
            Pattern::Mapping(p.keys.iter().map(|k| to.expr(k)).zip(all(&p.patterns)).collect(), name(&p.rest))
        }
        py::Pattern::MatchClass(p) => Pattern::Class(
            to.expr(&p.cls),
            all(&p.arguments.patterns),
            p.arguments.keywords.iter().map(|k| (k.attr.as_str().into(), pattern(to, &k.pattern))).collect(),
        ),
        py::Pattern::MatchAs(p) => Pattern::As(p.pattern.as_ref().map(|p| Box::new(pattern(to, p))), name(&p.name)),
        py::Pattern::MatchOr(p) => Pattern::Or(all(&p.patterns)),
    }
}

fn class(to: &Convert<'_>, s: &py::StmtClassDef) -> Class {
    Class {
        name: s.name.as_str().into(),
        bases: s.arguments.as_ref().map_or_else(Vec::new, |a| a.args.iter().map(|e| to.expr(e)).collect()),
        keywords: s.arguments.as_ref().map_or_else(Vec::new, |a| {
            let named =
                |k: &py::Keyword| (k.arg.as_ref().map_or("**".into(), |n| n.as_str().into()), to.expr(&k.value));
            a.keywords.iter().map(named).collect()
        }),
        body: to.block(&s.body),
        decorators: s.decorator_list.iter().map(|d| to.expr(&d.expression)).collect(),
        span: to.span(s.range),
    }
}

fn handler(to: &Convert<'_>, given: &py::ExceptHandler) -> Handler {
    let py::ExceptHandler::ExceptHandler(given) = given;
    Handler {
        class: given.type_.as_ref().map(|t| to.expr(t)),
        name: given.name.as_ref().map(|n| n.as_str().into()),
        body: to.block(&given.body),
    }
}
