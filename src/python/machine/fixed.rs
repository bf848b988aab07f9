//! Which values a statement can change, and the classes that cannot change through their objects.
//!
//! Invariant: errs on the side of change. Must not know statements that failed.

use super::mro;
use crate::python::syntax::ast::*;
use crate::python::syntax::walk;
use crate::python::value::{Class as ClassValue, Function as FunctionValue, Value};
use std::rc::Rc;

/// The identity of an object; None for immutable values without mutable content.
pub(super) fn identity(value: &Value) -> Option<usize> {
    Some(match value {
        Value::Tuple(items) => Rc::as_ptr(items) as usize,
        Value::List(items) | Value::Set(items) => Rc::as_ptr(items) as usize,
        Value::Dict(pairs) => Rc::as_ptr(pairs) as usize,
        // joined masks are a function, as in PyTorch: who gets it can call it and nothing else
        Value::Partial(partial) if matches!(&partial.function, Value::Builtin(n) if n.ends_with("_masks.call")) => {
            return None;
        }
        Value::Partial(partial) => Rc::as_ptr(partial) as usize,
        Value::Method(method) => Rc::as_ptr(method) as usize,
        Value::Class(class) => Rc::as_ptr(class) as usize,
        // a BlockMask is never written: its mask is a function
        Value::Instance(object) if &*object.class.name == "BlockMask" => return None,
        Value::Instance(object) => Rc::as_ptr(object) as usize,
        Value::Opaque(object) => Rc::as_ptr(object) as usize,
        Value::Tensor(tensor) => tensor.handle().storage_identity(),
        _ => return None,
    })
}

/// Whether nothing can change a class through one of its objects: it holds no list and the like, and none of its methods
/// reaches for the class itself.
pub(super) fn is_fixed(class: &Rc<ClassValue>) -> bool {
    let fixed = |value: &Value| match value {
        Value::Function(function) => !reaches_class(function),
        other => identity(other).is_none(),
    };
    let holds = |class: &ClassValue| class.members.borrow().0.iter().any(|(_, v)| !fixed(v));
    let changes = |base: &Value| matches!(base, Value::Class(base) if holds(base)).then_some(());
    !holds(class) && mro::find_base(class, changes).is_none()
}

/// Whether a method is one of the class, or reads an object's class.
fn reaches_class(function: &FunctionValue) -> bool {
    let def = &function.def;
    let mut found = def.decorators.iter().any(|d| matches!(&d.kind, ExprKind::Name(n) if &**n == "classmethod"));
    let mut look = |e: &Expr| walk::within(e, &mut |e| found |= names_class(e));
    match &def.body {
        Body::Expr(e) => look(e),
        Body::Block(body) => body.iter().for_each(|s| every_expression(s, &mut look)),
    }
    found
}

/// The expressions of a statement, with those of its blocks and of the functions inside.
fn every_expression(s: &Stmt, look: &mut dyn FnMut(&Expr)) {
    walk::statements(s, &mut |s| {
        walk::own_expressions(s, look);
        let body = match &s.kind {
            StmtKind::Function(def) => match &def.body {
                Body::Expr(e) => return look(e),
                Body::Block(body) => body,
            },
            StmtKind::Class(class) => &class.body,
            _ => return,
        };
        body.iter().for_each(|s| every_expression(s, look));
    });
}

/// `type(x)`, `x.__class__`
pub(super) fn names_class(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Call(callee, _) => matches!(&callee.kind, ExprKind::Name(n) if &**n == "type"),
        ExprKind::Attribute(_, name) => &**name == "__class__",
        ExprKind::Name(name) => &**name == "__class__",
        _ => false,
    }
}
