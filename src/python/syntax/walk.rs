//! Walks the tree: the parts of a statement and of an expression, one level down.
//!
//! Invariant: every sub-expression and every block is visited once; bodies of functions and classes are left to the
//! caller. Must not know any meaning.

use super::ast::*;

/// The expressions directly in a statement, without those of its blocks.
pub(crate) fn own_expressions<'a>(s: &'a Stmt, visit: &mut dyn FnMut(&'a Expr)) {
    match &s.kind {
        StmtKind::Expr(e) => visit(e),
        StmtKind::Return(e) | StmtKind::Raise(e) => e.iter().for_each(visit),
        StmtKind::Delete(all) => all.iter().for_each(visit),
        StmtKind::Assign { targets, value } => targets.iter().chain([value]).for_each(visit),
        StmtKind::AugAssign { target, value, .. } => [target, value].into_iter().for_each(visit),
        StmtKind::AnnAssign { target, value } => [target].into_iter().chain(value).for_each(visit),
        StmtKind::For { target, iter, .. } => [target, iter].into_iter().for_each(visit),
        StmtKind::While { test, .. } => visit(test),
        StmtKind::If(branches) => branches.iter().filter_map(|(test, _)| test.as_ref()).for_each(visit),
        StmtKind::With(with) => with.items.iter().for_each(|(item, name)| {
            visit(item);
            name.iter().for_each(&mut *visit);
        }),
        StmtKind::Try { handlers, .. } => handlers.iter().filter_map(|h| h.class.as_ref()).for_each(visit),
        StmtKind::Assert { test, message } => [test].into_iter().chain(message).for_each(visit),
        StmtKind::Match { subject, cases } => {
            visit(subject);
            cases.iter().filter_map(|c| c.guard.as_ref()).for_each(visit);
        }
        StmtKind::Function(def) => def.decorators.iter().chain(defaults(def)).for_each(visit),
        StmtKind::Class(class) => {
            let keywords = class.keywords.iter().map(|(_, e)| e);
            class.decorators.iter().chain(&class.bases).chain(keywords).for_each(visit)
        }
        StmtKind::Import(_)
        | StmtKind::ImportFrom { .. }
        | StmtKind::Global(_)
        | StmtKind::Nonlocal(_)
        | StmtKind::Pass
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Unsupported(_) => {}
    }
}

/// The defaults of a function's parameters.
pub(crate) fn defaults(def: &Function) -> impl Iterator<Item = &Expr> {
    def.params.iter().filter_map(|p| p.default.as_ref())
}

/// The blocks of statements directly inside a statement, in text order.
pub(crate) fn blocks(s: &Stmt) -> Vec<&[Stmt]> {
    match &s.kind {
        StmtKind::For { body, orelse, .. } | StmtKind::While { body, orelse, .. } => vec![body, orelse],
        StmtKind::If(branches) => branches.iter().map(|(_, body)| &body[..]).collect(),
        StmtKind::With(with) => vec![&with.body],
        StmtKind::Match { cases, .. } => cases.iter().map(|case| &case.body[..]).collect(),
        StmtKind::Try { body, handlers, orelse, finally } => {
            let handled = handlers.iter().map(|h| &h.body[..]);
            [&body[..]].into_iter().chain(handled).chain([&orelse[..], &finally[..]]).collect()
        }
        _ => Vec::new(),
    }
}

/// The expressions directly inside an expression. For a lambda its defaults, and its body.
pub(crate) fn parts<'a>(e: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    match &e.kind {
        ExprKind::None
        | ExprKind::Ellipsis
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Name(_)
        | ExprKind::Unsupported(_) => {}
        ExprKind::FString(all) => formatted(all, visit),
        ExprKind::Attribute(inner, _)
        | ExprKind::Unary(_, inner)
        | ExprKind::Starred(inner)
        | ExprKind::Named(_, inner)
        | ExprKind::YieldFrom(inner) => visit(inner),
        ExprKind::Yield(inner) => inner.iter().for_each(|e| visit(e)),
        ExprKind::Subscript(a, b) | ExprKind::Binary(_, a, b) => [a, b].into_iter().for_each(|e| visit(e)),
        ExprKind::Slice(all) => all.iter().flatten().for_each(visit),
        ExprKind::Call(callee, arguments) => {
            visit(callee);
            arguments.iter().map(argument).for_each(visit);
        }
        ExprKind::And(all) | ExprKind::Or(all) | ExprKind::Tuple(all) | ExprKind::List(all) | ExprKind::Set(all) => {
            all.iter().for_each(visit)
        }
        ExprKind::Compare(first, rest) => {
            visit(first);
            rest.iter().for_each(|(_, e)| visit(e));
        }
        ExprKind::Lambda(def) => {
            defaults(def).for_each(&mut *visit);
            if let Body::Expr(body) = &def.body {
                visit(body);
            }
        }
        ExprKind::Ternary(all) => all.iter().for_each(visit),
        ExprKind::Dict(all) => all.iter().for_each(|(key, value)| {
            key.iter().for_each(&mut *visit);
            visit(value);
        }),
        ExprKind::Comprehension(given) => {
            visit(&given.element);
            given.value.iter().for_each(&mut *visit);
            for (target, iter, tests) in &given.loops {
                visit(target);
                visit(iter);
                tests.iter().for_each(&mut *visit);
            }
        }
    }
}

/// The expressions directly inside another that are computed at its place; f-strings, lambdas and `yield` have none.
pub(crate) fn plain_parts(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Attribute(inner, _) | ExprKind::Unary(_, inner) | ExprKind::Starred(inner) => vec![inner],
        ExprKind::Named(_, inner) | ExprKind::YieldFrom(inner) => vec![inner],
        ExprKind::Subscript(a, b) | ExprKind::Binary(_, a, b) => vec![a, b],
        ExprKind::Slice(all) => all.iter().flatten().collect(),
        ExprKind::Call(callee, arguments) => std::iter::once(&**callee)
            .chain(arguments.iter().map(|a| match a {
                Argument::Positional(e) | Argument::Star(e) | Argument::Keyword(_, e) | Argument::DoubleStar(e) => e,
            }))
            .collect(),
        ExprKind::And(all) | ExprKind::Or(all) => all.iter().collect(),
        ExprKind::Tuple(all) | ExprKind::List(all) | ExprKind::Set(all) => all.iter().collect(),
        ExprKind::Compare(first, rest) => std::iter::once(&**first).chain(rest.iter().map(|(_, e)| e)).collect(),
        ExprKind::Ternary(all) => all.iter().collect(),
        ExprKind::Dict(all) => all.iter().flat_map(|(k, v)| k.iter().chain([v])).collect(),
        ExprKind::Comprehension(given) => {
            let loops = given.loops.iter().flat_map(|(target, iter, tests)| [target, iter].into_iter().chain(tests));
            std::iter::once(&given.element).chain(&given.value).chain(loops).collect()
        }
        _ => Vec::new(),
    }
}

fn formatted<'a>(all: &'a [FPart], visit: &mut dyn FnMut(&'a Expr)) {
    for part in all {
        if let FPart::Value { value, spec, .. } = part {
            visit(value);
            formatted(spec, visit);
        }
    }
}

/// The expression of an argument.
pub(crate) fn argument(given: &Argument) -> &Expr {
    match given {
        Argument::Positional(e) | Argument::Star(e) | Argument::Keyword(_, e) | Argument::DoubleStar(e) => e,
    }
}

/// Every expression in an expression, itself first.
pub(crate) fn within<'a>(e: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(e);
    parts(e, &mut |part| within(part, visit));
}

/// A statement and those inside it, in text order; functions and classes are given but not entered.
pub(crate) fn statements<'a>(s: &'a Stmt, visit: &mut dyn FnMut(&'a Stmt)) {
    visit(s);
    blocks(s).into_iter().flatten().for_each(|s| statements(s, visit));
}
