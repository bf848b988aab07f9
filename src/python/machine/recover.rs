//! Several mistakes at once: a failing statement of a mod is recorded, and the statements after it still run.
//!
//! Invariant: one mistake is reported once; names bound by a failed statement repeat its fault and no other. Only while
//! a mod is traced: a failed factory has no result to continue with. Must not know the mistakes.

use super::Context;
use super::effects::bound_names;
use crate::python::syntax::ast::{Expr, Stmt, StmtKind};
use crate::python::value::scope::Scope;
use crate::python::value::{Fault, Value};
use std::rc::Rc;

/// Largest number of reported mistakes.
const MOST: usize = 8;
/// Steps of a fault's message, which is written anew each time.
const OF_A_FAULT: u64 = 30;

impl Context<'_> {
    /// Goes on after a statement that failed, or hands its fault on.
    pub(super) fn recovered(&mut self, fault: Fault, statement: &Stmt, scope: &Rc<Scope>) -> Result<(), Fault> {
        // an exception raised by the text is meant to end it, and nothing runs after a return
        let ends = matches!(statement.kind, StmtKind::Return(_) | StmtKind::Raise(_) | StmtKind::Assert { .. });
        if !self.recovers(&fault) || ends || matches!(&*fault.diagnostic.code, "raised" | "assertion") {
            return Err(fault);
        }
        let shared = Rc::new(fault.clone());
        for name in bound_names(statement) {
            scope.set(&name, Value::Missing(shared.clone()));
        }
        // a loop goes on after each
        self.charge_steps(OF_A_FAULT)?;
        self.remember(fault);
        Ok(())
    }

    /// After one operand failed: looks for mistakes in the others, and gives the fault back.
    pub(super) fn with_others(&mut self, fault: Fault, others: &[Expr], scope: &Rc<Scope>) -> Fault {
        if !self.recovers(&fault) {
            return fault;
        }
        self.remember(fault.clone());
        for other in others {
            match self.eval(other, scope) {
                Err(more) if self.recovers(&more) => self.remember(more),
                Err(more) if more.fatal => return more,
                _ => {}
            }
        }
        fault
    }

    fn recovers(&self, fault: &Fault) -> bool {
        self.recover && self.trying == 0 && !fault.fatal && self.faults.len() < MOST
    }

    /// Adds a new fault; a fault that has since received its caller replaces itself.
    pub(crate) fn remember(&mut self, fault: Fault) {
        let place = |f: &Fault| (f.diagnostic.code.clone(), f.diagnostic.labels.first().map(|l| l.span));
        match self.faults.iter_mut().find(|f| place(f) == place(&fault)) {
            Some(known) if known.diagnostic.labels.len() < fault.diagnostic.labels.len() => *known = fault,
            Some(_) => {}
            None => self.faults.push(fault),
        }
    }
}
