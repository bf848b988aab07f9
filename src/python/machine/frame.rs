//! A body analysed without running it: its names, and their possible bindings.
//!
//! Invariant: every binding of a name is listed, at any place in the body. Must not know side effects.

use crate::python::syntax::Name;
use crate::python::syntax::ast::*;
use crate::python::syntax::binds::bound_by;
use crate::python::syntax::walk;
use crate::python::value::Function as FunctionValue;
use crate::python::value::scope::Scope;
use std::collections::HashMap;
use std::rc::Rc;

/// The body that is walked: a function's, or the statement itself.
pub(super) struct Frame<'f> {
    /// Where its free names are.
    pub scope: Rc<Scope>,
    /// All bindings of each of its own names.
    pub sources: HashMap<Name, Vec<&'f Expr>>,
    /// Parameters: their objects are the caller's.
    pub params: Vec<Name>,
    /// Parameters of functions inside: their objects may be any that the body has.
    pub nested: Vec<Name>,
    /// A new object without other references.
    pub fresh: Option<Name>,
    /// Whether its names are its own, and not those of `scope`.
    pub inner: bool,
    /// Whether it changes what its parameters hold.
    pub changes_params: bool,
    /// Whether a function inside changes what its parameters hold.
    pub changes_nested: bool,
}

impl<'f> Frame<'f> {
    pub(super) fn new(scope: Rc<Scope>, body: &'f [Stmt]) -> Frame<'f> {
        let (sources, params, nested, changes_params, changes_nested) = Default::default();
        let fresh = None;
        let mut frame = Frame { scope, sources, params, nested, fresh, inner: false, changes_params, changes_nested };
        body.iter().for_each(|s| frame.gather(s));
        frame
    }

    pub(super) fn of_function(function: &FunctionValue, def: &'f Function) -> Frame<'f> {
        let body = if let Body::Block(body) = &def.body { &body[..] } else { &[] };
        let mut frame = Frame::new(function.scope.clone(), body);
        frame.params.extend(def.params.iter().map(|p| p.name.clone()));
        frame.inner = true;
        frame
    }

    /// The bindings of a statement's names, including nested ones.
    fn gather(&mut self, s: &'f Stmt) {
        walk::statements(s, &mut |s| {
            let from: Vec<&Expr> = match &s.kind {
                StmtKind::Assign { value, .. } | StmtKind::AugAssign { value, .. } => vec![value],
                StmtKind::AnnAssign { value, .. } => value.iter().collect(),
                StmtKind::For { iter, .. } => vec![iter],
                StmtKind::With(with) => {
                    with.items.iter().for_each(|(item, target)| self.gather_target(target.as_ref(), item));
                    Vec::new()
                }
                StmtKind::Match { subject, .. } => vec![subject],
                StmtKind::Function(def) => {
                    // a nested function is analysed at its place: its parameters may be anything
                    self.nested.extend(def.params.iter().map(|p| p.name.clone()));
                    if let Body::Block(body) = &def.body {
                        body.iter().for_each(|s| self.gather(s));
                    }
                    Vec::new()
                }
                StmtKind::Class(class) => {
                    class.body.iter().for_each(|s| self.gather(s));
                    Vec::new()
                }
                _ => Vec::new(),
            };
            let mut names = Vec::new();
            bound_by(s, &mut names);
            for name in names {
                self.sources.entry(name).or_default().extend(from.iter().copied());
            }
            walk::own_expressions(s, &mut |e| walk::within(e, &mut |e| self.gather_expression(e)));
        });
    }

    fn gather_expression(&mut self, e: &'f Expr) {
        match &e.kind {
            ExprKind::Named(name, value) => self.sources.entry(name.clone()).or_default().push(value),
            ExprKind::Lambda(def) => self.nested.extend(def.params.iter().map(|p| p.name.clone())),
            ExprKind::Comprehension(given) => {
                given.loops.iter().for_each(|(target, iter, _)| self.gather_target(Some(target), iter));
            }
            _ => {}
        }
    }

    /// Each name of a target is bound to what this expression gives.
    fn gather_target(&mut self, target: Option<&Expr>, from: &'f Expr) {
        let mut names = Vec::new();
        target.iter().for_each(|target| python::syntax::binds::names_of(target, &mut names));
        for name in names {
            self.sources.entry(name).or_default().push(from);
        }
    }

    /// Whether a name is the body's own, so that the scope does not have its value.
    pub(super) fn is_own(&self, name: &str) -> bool {
        let is = |p: &Name| **p == *name;
        self.nested.iter().any(is) || (self.inner && (self.sources.contains_key(name) || self.params.iter().any(is)))
    }
}

/// Whether an expression creates an object without other references.
pub(super) fn is_fresh(e: &Expr) -> bool {
    const MAKERS: [&str; 26] = [
        "zeros",
        "ones",
        "full",
        "empty",
        "arange",
        "eye",
        "linspace",
        "tensor",
        "rand",
        "randn",
        "randint",
        "randperm",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "cat",
        "stack",
        "clone",
        "list",
        "dict",
        "set",
        "sorted",
        "range",
        "len",
        "deepcopy",
    ];
    match &e.kind {
        ExprKind::Name(_)
        | ExprKind::Attribute(..)
        | ExprKind::Subscript(..)
        | ExprKind::Ternary(_)
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Named(..)
        | ExprKind::Starred(_)
        | ExprKind::Lambda(_)
        | ExprKind::Yield(_)
        | ExprKind::YieldFrom(_)
        | ExprKind::Unsupported(_) => false,
        ExprKind::Call(callee, _) => match &callee.kind {
            ExprKind::Name(name) | ExprKind::Attribute(_, name) => MAKERS.contains(&&**name),
            _ => false,
        },
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Source, SourceId};
    use crate::python::value::scope::Kind;

    #[test]
    fn each_name_of_a_with_is_bound_to_its_own_item() {
        let source = Source::new("t.py", "with a() as x, b() as (y, z), c():\n    pass\n");
        let parsed = python::syntax::parse(&source, SourceId(0));
        let frame = Frame::new(Scope::new(Kind::Module, None), &parsed.module.body);
        let mut bound: Vec<_> = frame.sources.iter().map(|(name, from)| (name.to_string(), from.len())).collect();
        bound.sort();
        assert_eq!(bound, [("x".into(), 1), ("y".into(), 1), ("z".into(), 1)]);
    }
}
