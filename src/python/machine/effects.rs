//! What a statement would have bound, had it not failed.
//!
//! Invariant: errs towards more names. Must not know values.

use super::Library;
use crate::python::syntax::Name;
use crate::python::syntax::ast::*;
use crate::python::syntax::walk;

/// Names that a statement would have bound where it stands.
pub(super) fn bound_names(statement: &Stmt) -> Vec<Name> {
    let mut out = Vec::new();
    walk::statements(statement, &mut |s| bound_by(s, &mut out));
    out
}

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
pub(super) fn names_of(target: &Expr, out: &mut Vec<Name>) {
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

/// Methods of Python's containers, of NumPy's arrays and of modules that change their receiver.
const CHANGING: [&str; 42] = [
    "append",
    "appendleft",
    "extend",
    "extendleft",
    "insert",
    "update",
    "add",
    "pop",
    "popleft",
    "popitem",
    "remove",
    "discard",
    "clear",
    "sort",
    "reverse",
    "rotate",
    "setdefault",
    "subtract",
    "intersection_update",
    "difference_update",
    "symmetric_difference_update",
    "move_to_end",
    "fill",
    "put",
    "resize",
    "partition",
    "itemset",
    "byteswap",
    "setflags",
    "shuffle",
    "register_buffer",
    "register_parameter",
    "register_module",
    "add_module",
    "load_state_dict",
    "send",
    "throw",
    "close",
    "__setitem__",
    "__delitem__",
    "__setattr__",
    "__next__",
];

/// Whether a method changes its receiver: PyTorch's end in an underscore.
pub(super) fn changes(method: &str) -> bool {
    (method.ends_with('_') && !method.starts_with('_')) || CHANGING.contains(&method)
}

/// Methods that change nothing of anybody's, whatever they are called on.
pub(super) fn harmless(library: &Library, method: &str) -> bool {
    const NAMES: [&str; 48] = [
        "backward",
        "parameters",
        "named_parameters",
        "modules",
        "named_modules",
        "children",
        "state_dict",
        "buffers",
        "train",
        "eval",
        "item",
        "tolist",
        "numpy",
        "cpu",
        "cuda",
        "to",
        "type",
        "float",
        "half",
        "bfloat16",
        "double",
        "long",
        "int",
        "bool",
        "keys",
        "values",
        "items",
        "get",
        "copy",
        "clone",
        "detach",
        "format",
        "join",
        "split",
        "strip",
        "lower",
        "upper",
        "startswith",
        "endswith",
        "replace",
        "index",
        "count",
        "size",
        "dim",
        "numel",
        "sparsity",
        "to_dense",
        "element_size",
    ];
    NAMES.contains(&method) || (library.is_method)(method)
}
