//! What a statement would have bound or changed, had it not failed.
//!
//! Invariant: errs towards more names. Must not know values but by their kind.

use crate::language::syntax::Name;
use crate::language::syntax::ast::*;
use crate::language::value::Value;

/// Names that a statement would have bound.
pub(super) fn bound_names(statement: &Stmt) -> Vec<Name> {
    fn targets(e: &Expr, out: &mut Vec<Name>) {
        match &e.kind {
            ExprKind::Name(name) => out.push(name.clone()),
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|i| targets(i, out)),
            ExprKind::Starred(inner) => targets(inner, out),
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(statement, &mut |s| match &s.kind {
        StmtKind::Assign { targets: given, .. } => given.iter().for_each(|t| targets(t, &mut out)),
        StmtKind::AnnAssign { target, .. } | StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => {
            targets(target, &mut out)
        }
        StmtKind::Function(def) => out.push(def.name.clone()),
        StmtKind::Class(class) => out.push(class.name.clone()),
        _ => {}
    });
    out
}

/// Names whose tensors and containers a statement would have changed in place: `x[i] = 1`, `x.y += 1`, `x.append(1)`,
/// `x[0].fill_(1)`.
pub(super) fn changed_names(statement: &Stmt) -> Vec<Name> {
    fn root(e: &Expr) -> Option<Name> {
        match &e.kind {
            ExprKind::Name(name) => Some(name.clone()),
            ExprKind::Subscript(inner, _) | ExprKind::Attribute(inner, _) | ExprKind::Call(inner, _) => root(inner),
            _ => None,
        }
    }
    let mut out = Vec::new();
    walk(statement, &mut |s| match &s.kind {
        StmtKind::Assign { targets, .. } => {
            out.extend(targets.iter().filter(|t| !matches!(t.kind, ExprKind::Name(_))).filter_map(root))
        }
        StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, value: Some(_) } => out.extend(root(target)),
        StmtKind::Delete(targets) => out.extend(targets.iter().filter_map(root)),
        StmtKind::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) => match &callee.kind {
            ExprKind::Attribute(receiver, name) if changes(name) => out.extend(root(receiver)),
            _ => {}
        },
        _ => {}
    });
    out
}

/// Methods that change their receiver: PyTorch's end in an underscore.
fn changes(method: &str) -> bool {
    const CONTAINERS: [&str; 12] = [
        "append",
        "extend",
        "insert",
        "update",
        "add",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "setdefault",
        "discard",
    ];
    (method.ends_with('_') && !method.starts_with('_')) || CONTAINERS.contains(&method)
}

/// Whether other names may see a change of this value.
pub(super) fn is_changeable(value: &Value) -> bool {
    matches!(value, Value::Tensor(_) | Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Instance(_))
}

/// A statement and those inside it, functions and classes left out.
fn walk(s: &Stmt, visit: &mut dyn FnMut(&Stmt)) {
    visit(s);
    let mut all = |body: &[Stmt]| body.iter().for_each(|s| walk(s, visit));
    match &s.kind {
        StmtKind::For { body, orelse, .. } | StmtKind::While { body, orelse, .. } => (all(body), all(orelse)).0,
        StmtKind::If(branches) => branches.iter().for_each(|(_, body)| all(body)),
        StmtKind::With { body, .. } => all(body),
        StmtKind::Match { cases, .. } => cases.iter().for_each(|case| all(&case.body)),
        StmtKind::Try { body, orelse, .. } => (all(body), all(orelse)).0,
        _ => {}
    }
}
