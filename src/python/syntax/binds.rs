//! The names that a statement binds.
//!
//! Invariant: reads only the tree; `:=` inside the statement's own expressions counts. Must not know values.

use super::ast::*;
use super::walk;

/// Names that the statement itself binds, its blocks left out.
pub(crate) fn bound_by(s: &Stmt, out: &mut Vec<Name>) {
    match &s.kind {
        StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| names_of(t, out)),
        StmtKind::AnnAssign { target, .. } | StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => {
            names_of(target, out)
        }
        StmtKind::Function(def) => out.push(def.name.clone()),
        StmtKind::Class(class) => out.push(class.name.clone()),
        StmtKind::With(with) => with.items.iter().filter_map(|i| i.1.as_ref()).for_each(|t| names_of(t, out)),
        StmtKind::Try { handlers, .. } => out.extend(handlers.iter().filter_map(|h| h.name.clone())),
        StmtKind::Match { cases, .. } => cases.iter().for_each(|c| captures(&c.pattern, out)),
        StmtKind::Delete(targets) => targets.iter().for_each(|t| names_of(t, out)),
        StmtKind::Import(names) => out.extend(names.iter().map(|(dotted, alias)| {
            let first = || dotted.split('.').next().unwrap_or(dotted).into();
            alias.clone().unwrap_or_else(first)
        })),
        StmtKind::ImportFrom { names, .. } => {
            out.extend(names.iter().map(|(name, alias, _)| alias.clone().unwrap_or_else(|| name.clone())))
        }
        _ => {}
    }
    walk::own_expressions(s, &mut |e| {
        walk::within(e, &mut |e| {
            if let ExprKind::Named(name, _) = &e.kind {
                out.push(name.clone());
            }
        })
    });
}

/// Names in a target of an assignment.
pub(crate) fn names_of(target: &Expr, out: &mut Vec<Name>) {
    match &target.kind {
        ExprKind::Name(name) => out.push(name.clone()),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|i| names_of(i, out)),
        ExprKind::Starred(inner) => names_of(inner, out),
        _ => {}
    }
}

/// Names that a pattern binds.
fn captures(pattern: &Pattern, out: &mut Vec<Name>) {
    match pattern {
        Pattern::Value(_) | Pattern::Singleton(_) => {}
        Pattern::Star(name) => out.extend(name.clone()),
        Pattern::Sequence(all) | Pattern::Or(all) => all.iter().for_each(|p| captures(p, out)),
        Pattern::Mapping(all, rest) => {
            all.iter().for_each(|(_, p)| captures(p, out));
            out.extend(rest.clone());
        }
        Pattern::Class(_, positional, keyword) => {
            positional.iter().chain(keyword.iter().map(|(_, p)| p)).for_each(|p| captures(p, out))
        }
        Pattern::As(inner, name) => {
            inner.iter().for_each(|p| captures(p, out));
            out.extend(name.clone());
        }
    }
}
