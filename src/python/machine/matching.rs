//! `match` on values that are known during tracing.
//!
//! Invariant: patterns are tried in order and bind like in Python; an index as the subject is refused. Must not know
//! what the cases do.

use super::Context;
use super::class::{attribute_names, is_known_class};
use super::operators::equal;
use super::statement::Flow;
use crate::python::diagnose;
use crate::python::syntax::ast::*;
use crate::python::value::scope::Scope;
use crate::python::value::{Fault, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

impl Context<'_> {
    pub(super) fn match_statement(&mut self, subject: &Expr, cases: &[Case], scope: &Rc<Scope>) -> Result<Flow, Fault> {
        let value = self.eval(subject, scope)?;
        if value.is_symbolic() {
            return Err(diagnose::branch("match", self.text_of(subject.span)).at(subject.span));
        }
        for case in cases {
            if !self.matches(&case.pattern, &value, scope)? {
                continue;
            }
            let holds = match &case.guard {
                Some(guard) => self.condition(guard, scope, "if")?,
                None => true,
            };
            if holds {
                return self.block(&case.body, scope);
            }
        }
        Ok(Flow::Next)
    }

    fn matches(&mut self, pattern: &Pattern, value: &Value, scope: &Rc<Scope>) -> Result<bool, Fault> {
        self.charge_steps(1)?;
        Ok(match pattern {
            Pattern::Value(wanted) => {
                let wanted = self.eval(wanted, scope)?;
                equal(&wanted, value)
            }
            Pattern::Singleton(wanted) => {
                let wanted = self.eval(wanted, scope)?;
                wanted.type_name() == value.type_name() && equal(&wanted, value)
            }
            Pattern::As(inner, name) => {
                if let Some(inner) = inner
                    && !self.matches(inner, value, scope)?
                {
                    return Ok(false);
                }
                if let Some(name) = name {
                    scope.set(name, value.clone());
                }
                true
            }
            Pattern::Or(ways) => {
                for way in ways {
                    if self.matches(way, value, scope)? {
                        return Ok(true);
                    }
                }
                false
            }
            Pattern::Sequence(parts) => match value {
                Value::Tuple(_) | Value::List(_) | Value::Range(..) => {
                    let items = self.collect(value)?;
                    self.matches_sequence(parts, &items, scope)?
                }
                _ => false,
            },
            Pattern::Star(_) => true,
            Pattern::Mapping(parts, rest) => self.matches_mapping(parts, rest.as_ref(), value, scope)?,
            Pattern::Class(class, positional, keyword) => {
                self.matches_class(class, positional, keyword, value, scope)?
            }
        })
    }

    fn matches_sequence(&mut self, parts: &[Pattern], items: &[Value], scope: &Rc<Scope>) -> Result<bool, Fault> {
        let Some(star) = parts.iter().position(|p| matches!(p, Pattern::Star(_))) else {
            return if parts.len() == items.len() { self.all_match(parts, items, scope) } else { Ok(false) };
        };
        let after = parts.len() - star - 1;
        if items.len() < star + after {
            return Ok(false);
        }
        let (before, rest) = items.split_at(star);
        let (middle, last) = rest.split_at(rest.len() - after);
        if !self.all_match(&parts[..star], before, scope)? || !self.all_match(&parts[star + 1..], last, scope)? {
            return Ok(false);
        }
        if let Pattern::Star(Some(name)) = &parts[star] {
            scope.set(name, Value::list(middle.to_vec()));
        }
        Ok(true)
    }

    fn all_match(&mut self, parts: &[Pattern], items: &[Value], scope: &Rc<Scope>) -> Result<bool, Fault> {
        for (part, item) in parts.iter().zip(items) {
            if !self.matches(part, item, scope)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn matches_mapping(
        &mut self,
        parts: &[(Expr, Pattern)],
        rest: Option<&Name>,
        value: &Value,
        scope: &Rc<Scope>,
    ) -> Result<bool, Fault> {
        let Value::Dict(pairs) = value else { return Ok(false) };
        let mut taken = HashSet::new();
        for (key, part) in parts {
            let key = self.eval(key, scope)?;
            let found = self.place_in_dict(pairs, &key)?.filter(|at| taken.insert(*at));
            let item = found.and_then(|at| Some(pairs.borrow().0.get(at)?.1.clone()));
            let Some(item) = item else { return Ok(false) };
            if !self.matches(part, &item, scope)? {
                return Ok(false);
            }
        }
        if let Some(rest) = rest {
            let all = pairs.borrow().0.clone().into_iter().enumerate();
            let left: Vec<_> = all.filter(|(at, _)| !taken.contains(at)).map(|(_, pair)| pair).collect();
            self.charge_bytes(2 * VALUE_BYTES * left.len() as u64)?;
            scope.set(rest, Value::Dict(Rc::new(RefCell::new(Pairs(left)))));
        }
        Ok(true)
    }

    fn matches_class(
        &mut self,
        class: &Expr,
        positional: &[Pattern],
        keyword: &[(Name, Pattern)],
        value: &Value,
        scope: &Rc<Scope>,
    ) -> Result<bool, Fault> {
        let class = self.eval(class, scope)?;
        if !self.is_instance(value, &class) {
            return Ok(false);
        }
        // `int(n)`: the only positional pattern of Python's own classes is the value itself
        if let ([only], true) = (positional, is_known_class(&class)) {
            return self.matches(only, value, scope);
        }
        let names = attribute_names(&class);
        for (at, part) in positional.iter().enumerate() {
            let name = names.get(at).ok_or_else(|| {
                Fault::type_error(format!("{} takes {} positional patterns", class.type_name(), names.len()))
                    .hint("name the attributes: `Class(name=pattern)`")
            })?;
            let item = self.attribute(value, name)?;
            if !self.matches(part, &item, scope)? {
                return Ok(false);
            }
        }
        for (name, part) in keyword {
            let item = match self.attribute(value, name) {
                Ok(item) => item,
                Err(fault) if fault.fatal || !fault.python => return Err(fault),
                Err(_) => return Ok(false),
            };
            if !self.matches(part, &item, scope)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
