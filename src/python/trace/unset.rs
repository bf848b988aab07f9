//! Parameters whose default is None and that the mod computes with: named, and asked for.
//!
//! Invariant: only the help of a diagnostic changes, and only where its place reads such a parameter. Must not know how
//! a mod is traced.

use crate::base::{Diagnostic, Span};
use crate::python::syntax::Name;
use crate::python::syntax::ast::*;
use crate::python::syntax::{Module, walk};

/// Asks for the parameters without a value at the place of a fault that names None.
pub(super) fn ask_for_defaults(reported: &mut Diagnostic, module: &Module) {
    let Some(place) = reported.labels.first().map(|l| l.span).filter(|_| reported.message.contains("None")) else {
        return;
    };
    let mut around = Vec::new();
    module.body.iter().for_each(|s| functions_around(s, place, &mut around));
    let mut names = Vec::new();
    module.body.iter().for_each(|s| names_at(s, place, &mut names));
    // the innermost function that has a parameter of the name binds it
    let of = |name: &Name| {
        let def = around.iter().rev().find(|def| def.params.iter().any(|p| p.name == *name))?;
        let param = def.params.iter().find(|p| p.name == *name)?;
        let unset = param.default.as_ref().is_some_and(|d| matches!(d.kind, ExprKind::None));
        unset.then(|| (name.clone(), def.name.clone()))
    };
    let asked: Vec<(Name, Name)> = names.iter().filter_map(of).collect();
    let Some((_, function)) = asked.first() else { return };
    let params: Vec<String> = asked.iter().map(|(name, _)| format!("`{name}`")).collect();
    let values: Vec<String> = asked.iter().map(|(name, _)| format!("--arg {name}=VALUE")).collect();
    let (are, default) =
        if asked.len() == 1 { ("is a parameter", "its default is") } else { ("are parameters", "their default is") };
    reported.message =
        format!("{} {are} of {function}() and {default} None: the mod needs a value", params.join(" and "));
    reported.code = "missing-argument".into();
    reported.hint = Some(format!("pass `{}`, or a tensor of that name with `--tensors`", values.join(" ")));
}

fn contains(outer: Span, inner: Span) -> bool {
    outer.source == inner.source && outer.start <= inner.start && inner.end <= outer.end
}

/// The functions whose definition contains a place, outermost first.
fn functions_around<'a>(statement: &'a Stmt, place: Span, out: &mut Vec<&'a Function>) {
    walk::statements(statement, &mut |s| match &s.kind {
        StmtKind::Function(def) if contains(def.span, place) => {
            out.push(def);
            if let Body::Block(body) = &def.body {
                body.iter().for_each(|s| functions_around(s, place, out));
            }
        }
        StmtKind::Class(class) => class.body.iter().for_each(|s| functions_around(s, place, out)),
        _ => walk::own_expressions(s, &mut |e| {
            walk::within(e, &mut |e| {
                if let ExprKind::Lambda(def) = &e.kind
                    && contains(def.span, place)
                {
                    out.push(def);
                }
            });
        }),
    });
}

/// The names that are read inside a place, in their order.
fn names_at(statement: &Stmt, place: Span, out: &mut Vec<Name>) {
    walk::statements(statement, &mut |s| match &s.kind {
        StmtKind::Function(def) => {
            if let Body::Block(body) = &def.body {
                body.iter().for_each(|s| names_at(s, place, out));
            }
        }
        StmtKind::Class(class) => class.body.iter().for_each(|s| names_at(s, place, out)),
        _ => walk::own_expressions(s, &mut |e| {
            walk::within(e, &mut |e| {
                if let ExprKind::Name(name) = &e.kind
                    && contains(place, e.span)
                    && !out.contains(name)
                {
                    out.push(name.clone());
                }
            });
        }),
    });
}
