//! An `if` on an index, rewritten as choices: `return torch.where(...)`, or names with one value or the other.
//!
//! Invariant: both sides can be computed in every cell, and every name has Python's value in each cell. Must not know
//! expressions beyond their meaning.

use super::Context;
use super::meaning::any;
use crate::base::{Rewrite, Span};
use crate::python::syntax::ast::*;
use crate::python::value::scope::Scope;
use crate::python::value::{Fault, Value};
use std::rc::Rc;

type Branches = [(Option<Expr>, Vec<Stmt>)];

/// Longest text that is suggested, in bytes. Each `if` that both sides go on to doubles it.
const LONGEST: usize = 600;
/// Largest number of statements between an `if` and the result: each is one more call inside the others.
const MOST_AFTER: usize = 16;

impl Context<'_> {
    /// The rewrite of an `if` on an index, with the statements after it.
    pub(super) fn branch_rewrite(&mut self, fault: Fault, statement: &Stmt, rest: &[Stmt], scope: &Rc<Scope>) -> Fault {
        if fault.diagnostic.code != "branch-on-index" || fault.diagnostic.rewrite.is_some() {
            return fault;
        }
        let StmtKind::If(branches) = &statement.kind else { return fault };
        let here = fault.diagnostic.labels.first().map(|l| l.span);
        let tests = branches.iter().filter_map(|(test, _)| test.as_ref().map(|t| t.span));
        if !tests.into_iter().any(|t| Some(t) == here) {
            return fault;
        }
        let found =
            self.as_return(branches, statement.span, rest).or_else(|| self.as_names(branches, statement.span, scope));
        match found {
            Some(Rewrite { span, text }) => fault.instead(span, text),
            None => fault,
        }
    }

    /// Branches that all return, or go on to a return.
    fn as_return(&mut self, branches: &Branches, span: Span, rest: &[Stmt]) -> Option<Rewrite> {
        let closed = branches.iter().any(|(test, _)| test.is_none()) && branches.iter().all(|(_, b)| returns(b));
        let end = if closed { span } else { span.to(rest.last()?.span) };
        let value = self.returned_if(branches, if closed { &[] } else { rest })?;
        Some(Rewrite { span: end, text: format!("return {value}") })
    }

    fn returned_if(&mut self, branches: &Branches, rest: &[Stmt]) -> Option<String> {
        if rest.len() > MOST_AFTER {
            return None;
        }
        let has_else = branches.iter().any(|(test, _)| test.is_none());
        let mut value = if has_else { None } else { Some(self.returned(rest)?) };
        for (test, body) in branches.iter().rev() {
            let own = match returns(body) {
                true => self.returned(body)?,
                // an empty branch continues after the `if`
                false if matches!(body[..], [Stmt { kind: StmtKind::Pass, .. }]) => self.returned(rest)?,
                false => return None,
            };
            value = Some(match (test, value) {
                (None, _) => own,
                (Some(test), Some(otherwise)) => format!("torch.where({}, {own}, {otherwise})", self.tested(test)?),
                (Some(_), None) => return None,
            });
            if value.as_ref().is_some_and(|text| text.len() > LONGEST) {
                return None;
            }
        }
        value
    }

    /// The result of statements that only return.
    fn returned(&mut self, body: &[Stmt]) -> Option<String> {
        match body {
            [Stmt { kind: StmtKind::Return(Some(value)), .. }, ..] => self.chosen(value),
            [Stmt { kind: StmtKind::If(branches), .. }, rest @ ..] => self.returned_if(branches, rest),
            _ => None,
        }
    }

    /// Branches that set names: each name gets one of the values.
    fn as_names(&mut self, branches: &Branches, span: Span, scope: &Rc<Scope>) -> Option<Rewrite> {
        let sets: Vec<Vec<(Name, String)>> =
            branches.iter().map(|(_, body)| self.set_by(body)).collect::<Option<_>>()?;
        let mut names: Vec<Name> = Vec::new();
        for (name, _) in sets.iter().flatten() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let has_else = branches.iter().any(|(test, _)| test.is_none());
        let mut values = Vec::with_capacity(names.len());
        for name in &names {
            // a name that is not set in a branch keeps its value, which it must have
            let kept = match scope.get(name) {
                Some(Value::Missing(_)) | None => None,
                Some(value) => self.kind_of_value(&value).map(|_| name.to_string()),
            };
            let mut value = if has_else { None } else { Some(kept.clone()?) };
            for ((test, _), own) in branches.iter().zip(&sets).rev() {
                let own = own.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).or_else(|| kept.clone())?;
                value = Some(match (test, value) {
                    (None, _) => own,
                    (Some(test), Some(otherwise)) => format!("torch.where({}, {own}, {otherwise})", self.tested(test)?),
                    (Some(_), None) => return None,
                });
            }
            values.push(value?);
        }
        if names.is_empty() {
            return None;
        }
        // all at once: a test or value may read a name that is set
        let text = format!("{} = {}", names.join(", "), values.join(", "));
        Some(Rewrite { span, text })
    }

    /// The names that a body sets once each, and their values, none of which reads one set before it.
    fn set_by(&mut self, body: &[Stmt]) -> Option<Vec<(Name, String)>> {
        let mut out: Vec<(Name, String)> = Vec::new();
        for statement in body {
            let (name, text, value) = match &statement.kind {
                StmtKind::Pass => continue,
                StmtKind::Assign { targets, value } => match &targets[..] {
                    [Expr { kind: ExprKind::Name(name), .. }] => (name, self.chosen(value)?, value),
                    _ => return None,
                },
                StmtKind::AnnAssign { target: Expr { kind: ExprKind::Name(name), .. }, value: Some(value) } => {
                    (name, self.chosen(value)?, value)
                }
                StmtKind::AugAssign { target: Expr { kind: ExprKind::Name(name), .. }, op, value } => {
                    if matches!(op, BinOp::FloorDiv | BinOp::Mod) && !matches!(value.kind, ExprKind::Int(i) if i != 0) {
                        return None;
                    }
                    self.chosen(value)?;
                    (name, format!("{name} {} {}", op.symbol(), self.operand_text(value)?), value)
                }
                _ => return None,
            };
            let reads =
                any(value, &mut |e| matches!(&e.kind, ExprKind::Name(n) if out.iter().any(|(set, _)| set == n)));
            if reads
                || out.iter().any(|(set, _)| set == name)
                || any(value, &mut |e| matches!(e.kind, ExprKind::Named(..)))
            {
                return None;
            }
            out.push((name.clone(), text));
        }
        Some(out)
    }
}

/// Whether a body ends in returns whichever way it goes.
fn returns(body: &[Stmt]) -> bool {
    match body.last().map(|s| &s.kind) {
        Some(StmtKind::Return(Some(_))) => true,
        Some(StmtKind::If(branches)) => {
            branches.iter().any(|(test, _)| test.is_none()) && branches.iter().all(|(_, body)| returns(body))
        }
        _ => false,
    }
}
