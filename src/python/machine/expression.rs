//! Expressions.
//!
//! Invariant: a fault has the place of the innermost expression that raised it. Must not know how operators and calls
//! work on values.

use super::Context;
use super::Library;
use super::iterator;
use crate::python::diagnose;
use crate::python::syntax::ast::*;
use crate::python::value::scope::{Kind, Scope};
use crate::python::value::{Args, Fault, Items, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::rc::Rc;

impl Context<'_> {
    /// The value of an expression.
    pub(crate) fn eval(&mut self, e: &Expr, scope: &Rc<Scope>) -> Result<Value, Fault> {
        self.charge_steps(1).map_err(|f| f.at(e.span))?;
        // leaves need no deeper stack
        match &e.kind {
            ExprKind::Int(i) => return Ok(Value::Int(*i)),
            ExprKind::Name(name) => return self.name(name, scope).map_err(|f| diagnose::renamed(f.at(e.span), e.span)),
            _ => {}
        }
        self.deeper(|cx| cx.eval_kind(e, scope)).map_err(|f| f.at(e.span))
    }

    fn eval_kind(&mut self, e: &Expr, scope: &Rc<Scope>) -> Result<Value, Fault> {
        match &e.kind {
            ExprKind::None => Ok(Value::None),
            ExprKind::Ellipsis => Ok(Value::Ellipsis),
            ExprKind::Bool(b) => Ok(Value::Bool(*b)),
            ExprKind::Int(i) => Ok(Value::Int(*i)),
            ExprKind::Float(f) => Ok(Value::Float(*f)),
            ExprKind::Str(text) => Ok(Value::Str(text.clone())),
            ExprKind::FString(parts) => Ok(Value::str(self.fstring(parts, scope)?)),
            ExprKind::Name(name) => self.name(name, scope),
            ExprKind::Attribute(object, name) if super::call::is_super(object) => {
                self.span = e.span;
                self.super_attribute(name, scope).map_err(|f| f.at(e.span))
            }
            ExprKind::Attribute(object, name) => {
                let object = self.eval(object, scope)?;
                self.span = e.span;
                self.attribute(&object, name).map_err(|f| self.at_name(f.at(e.span), e))
            }
            ExprKind::Subscript(container, index) => self.eval_subscript(e, container, index, scope),
            ExprKind::Slice(parts) => {
                let mut items = Vec::with_capacity(3);
                for part in parts.iter() {
                    items.push(part.as_ref().map_or(Ok(Value::None), |p| self.eval(p, scope))?);
                }
                Ok(Value::Slice(Rc::new(Items(items))))
            }
            ExprKind::Call(callee, arguments) => self.eval_call(e, callee, arguments, scope),
            ExprKind::Unary(op, operand) => {
                if *op == UnaryOp::Not {
                    return self.not(operand, e, scope);
                }
                let operand = self.eval(operand, scope)?;
                self.span = e.span;
                self.unary(*op, &operand)
            }
            ExprKind::Binary(op, left, right) => {
                let left = match self.eval(left, scope) {
                    Ok(left) => left,
                    Err(fault) => return Err(self.with_others(fault, std::slice::from_ref(&**right), scope)),
                };
                let right = self.eval(right, scope)?;
                self.span = e.span;
                self.binary(*op, &left, &right)
            }
            ExprKind::And(operands) => self.and_or(operands, false, e, scope),
            ExprKind::Or(operands) => self.and_or(operands, true, e, scope),
            ExprKind::Compare(first, rest) => self.comparison(e, first, rest, scope),
            ExprKind::Lambda(def) => self.function(def, scope),
            ExprKind::Ternary(parts) => self.ternary(parts, e, scope),
            ExprKind::Tuple(items) => Ok(Value::tuple(self.elements(items, scope)?)),
            ExprKind::List(items) => Ok(Value::list(self.elements(items, scope)?)),
            ExprKind::Set(items) => {
                let items = self.elements(items, scope)?;
                self.set_of(items)
            }
            ExprKind::Dict(items) => self.dict(items, scope),
            ExprKind::Starred(_) => Err(Fault::type_error("`*` is allowed only in calls, lists and tuples")),
            ExprKind::Named(name, value) => {
                let value = self.eval(value, scope)?;
                scope.outside_comprehensions().set(name, value.clone());
                Ok(value)
            }
            ExprKind::Comprehension(given) => self.comprehension(given, scope),
            ExprKind::Yield(value) => {
                let value = value.as_ref().map_or(Ok(Value::None), |v| self.eval(v, scope))?;
                self.yields(vec![value])
            }
            ExprKind::YieldFrom(values) => {
                let values = self.eval(values, scope)?;
                let values = self.collect(&values)?;
                self.yields(values)
            }
            ExprKind::Unsupported(what) => {
                Err(Fault::unsupported(format!("{what} is not supported here")).hint("write it with plain expressions"))
            }
        }
    }

    /// The value of a name.
    pub(super) fn name(&mut self, name: &Name, scope: &Rc<Scope>) -> Result<Value, Fault> {
        match scope.get(name) {
            Some(value) => {
                if !self.guarded.is_empty() {
                    self.tell_guarded(name);
                }
                self.usable(value)
            }
            None => match builtin_named(self.library, name) {
                Some(builtin) => Ok(Value::Builtin(builtin)),
                None => Err(self.unknown(name, scope)),
            },
        }
    }

    /// That nothing binds the name.
    fn unknown(&mut self, name: &Name, scope: &Rc<Scope>) -> Fault {
        let visible = if self.may_compare(0) { scope.visible() } else { Vec::new() };
        self.may_compare(visible.len());
        diagnose::unknown_name(name, &visible, (self.library.builtins)())
    }

    /// The same for a name found elsewhere.
    pub(crate) fn use_value(&mut self, value: Value) -> Result<Value, Fault> {
        self.usable(value)
    }

    /// Looks up imports; what could not be made faults.
    pub(super) fn usable(&mut self, value: Value) -> Result<Value, Fault> {
        match value {
            Value::Import(import) => self.resolve(&import.0, import.1.as_ref()),
            Value::Builtin(dotted) if dotted.contains('.') => self.class_or_name(&dotted),
            Value::Missing(fault) => Err(Fault::clone(&fault)),
            other => self.untouched(other),
        }
    }

    /// The source text of a span, on one line.
    pub(crate) fn text_of(&self, span: crate::base::Span) -> String {
        let source = self.sources.get(span.source.0 as usize);
        let text = source.map_or("", |s| s.slice(span));
        let one_line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if one_line.chars().count() > 80 { one_line.chars().take(79).chain(['…']).collect() } else { one_line }
    }

    /// Whether an `if`, `while` or ternary test holds.
    pub(super) fn condition(&mut self, test: &Expr, scope: &Rc<Scope>, word: &'static str) -> Result<bool, Fault> {
        let value = self.eval(test, scope).map_err(|fault| self.test_rewrite(fault, test))?;
        if value.is_symbolic() {
            return Err(diagnose::branch(word, self.text_of(test.span)).at(test.span));
        }
        self.truth(&value).map_err(|f| f.at(test.span))
    }

    fn ternary(&mut self, parts: &[Expr; 3], whole: &Expr, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let [test, then, otherwise] = parts;
        let value = self.eval(test, scope)?;
        if value.is_symbolic() {
            let fault = diagnose::ternary(self.text_of(test.span)).at(test.span);
            return Err(match self.choice(test, then, otherwise) {
                Some(text) => fault.rewrite(whole.span, text),
                None => fault.hint("compute both values as numbers and choose: `torch.where(condition, a, b)`"),
            });
        }
        let holds = self.truth(&value).map_err(|f| f.at(test.span))?;
        self.eval(if holds { then } else { otherwise }, scope)
    }

    fn not(&mut self, operand: &Expr, whole: &Expr, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let value = self.eval(operand, scope).map_err(|f| self.widened(f, whole))?;
        if value.is_symbolic() {
            return Err(self.meant(diagnose::not().at(whole.span), whole));
        }
        Ok(Value::Bool(!self.truth(&value)?))
    }

    fn and_or(&mut self, operands: &[Expr], is_or: bool, whole: &Expr, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let mut last = Value::None;
        for (at, operand) in operands.iter().enumerate() {
            last = match self.eval(operand, scope) {
                Ok(value) => value,
                Err(fault) => {
                    let fault = self.widened(fault, whole);
                    return Err(self.with_others(fault, &operands[at + 1..], scope));
                }
            };
            if at + 1 == operands.len() {
                break;
            }
            if last.is_symbolic() {
                let fault = self.meant(diagnose::and_or(is_or).at(whole.span), whole);
                return Err(self.with_others(fault, &operands[at + 1..], scope));
            }
            if self.truth(&last).map_err(|f| f.at(operand.span))? == is_or {
                break;
            }
        }
        Ok(last)
    }

    fn comparison(
        &mut self,
        whole: &Expr,
        first: &Expr,
        rest: &[(CmpOp, Expr)],
        scope: &Rc<Scope>,
    ) -> Result<Value, Fault> {
        let mut left = self.eval(first, scope)?;
        let mut left_expr = first;
        for (at, (op, right_expr)) in rest.iter().enumerate() {
            let right = self.eval(right_expr, scope)?;
            self.span = left_expr.span.to(right_expr.span);
            let result = match self.compare(*op, &left, &right).map_err(|f| f.at(whole.span)) {
                Err(fault) if matches!(op, CmpOp::In | CmpOp::NotIn) && rest.len() == 1 => {
                    let asked = fault.diagnostic.code == "branch-on-index";
                    let rewrite = if asked { self.membership(first, &rest[0]) } else { None };
                    return Err(match rewrite {
                        Some(text) => fault.instead(whole.span, text),
                        None => fault,
                    });
                }
                other => other?,
            };
            if at + 1 == rest.len() {
                if result.is_symbolic() {
                    self.check_bit_precedence(whole, first, rest);
                }
                return Ok(result);
            }
            if result.is_symbolic() {
                return Err(self.chained(whole, first, rest));
            }
            if !self.truth(&result)? {
                return Ok(result);
            }
            (left, left_expr) = (right, right_expr);
        }
        Ok(left)
    }

    /// `a <= x < b` on tensors: the rewrite, or the hint that `&` bound tighter than a comparison.
    fn chained(&mut self, whole: &Expr, first: &Expr, rest: &[(CmpOp, Expr)]) -> Fault {
        let operands: Vec<&Expr> = std::iter::once(first).chain(rest.iter().map(|(_, e)| e)).collect();
        let bare = operands.iter().find(|o| is_bit_operation(o) && !self.in_parentheses(o));
        let fault = match bare {
            Some(bare) => diagnose::bit_precedence_error(self.text_of(bare.span)),
            None => diagnose::chained(),
        };
        let fault = fault.at(whole.span);
        match self.comparisons(first, rest) {
            Some(text) => fault.rewrite(whole.span, text),
            None => fault.hint("write each comparison separately, joined with `&`"),
        }
    }

    /// `a & b >= c`: legal, and nearly always meant otherwise when a side of `&` is itself a truth value.
    fn check_bit_precedence(&mut self, whole: &Expr, first: &Expr, rest: &[(CmpOp, Expr)]) {
        for operand in std::iter::once(first).chain(rest.iter().map(|(_, e)| e)) {
            let ExprKind::Binary(BinOp::And | BinOp::Or | BinOp::Xor, left, right) = &operand.kind else { continue };
            let number = |e: &Expr| matches!(e.kind, ExprKind::Int(_));
            // `x & 1 == 0` tests a bit, as written
            if number(left) || number(right) || self.in_parentheses(operand) {
                continue;
            }
            if let Some(rewrite) = self.comparisons(first, rest) {
                self.warn(diagnose::bit_precedence(operand.span, whole.span, self.text_of(operand.span), rewrite));
            }
        }
    }

    /// Whether an expression has its own parentheses.
    pub(super) fn in_parentheses(&self, e: &Expr) -> bool {
        let Some(source) = self.sources.get(e.span.source.0 as usize) else { return true };
        let before = source.text.get(..e.span.start as usize).unwrap_or("").trim_end();
        let after = source.text.get(e.span.end as usize..).unwrap_or("").trim_start();
        before.ends_with('(') && after.starts_with(')')
    }

    pub(super) fn elements(&mut self, items: &[Expr], scope: &Rc<Scope>) -> Result<Vec<Value>, Fault> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                ExprKind::Starred(inner) => {
                    let value = self.eval(inner, scope)?;
                    let more = self.collect(&value).map_err(|f| f.at(inner.span))?;
                    self.charge_bytes(VALUE_BYTES * more.len() as u64)?;
                    out.extend(more);
                }
                _ => out.push(self.eval(item, scope)?),
            }
        }
        self.charge_bytes(VALUE_BYTES * items.len() as u64)?;
        Ok(out)
    }

    fn dict(&mut self, items: &[(Option<Expr>, Expr)], scope: &Rc<Scope>) -> Result<Value, Fault> {
        let dict = Value::Dict(Rc::new(RefCell::new(Pairs::default())));
        for (key, value) in items {
            match key {
                Some(key) => {
                    let key = self.eval(key, scope)?;
                    let given = self.eval(value, scope)?;
                    self.set_item(&dict, &key, given)?;
                }
                None => {
                    let given = self.eval(value, scope)?;
                    let Value::Dict(more) = &given else {
                        return Err(Fault::type_error(format!("`**` needs a dict, not {}", given.type_name())));
                    };
                    let more = more.borrow().0.clone();
                    for (key, value) in more {
                        self.set_item(&dict, &key, value)?;
                    }
                }
            }
        }
        Ok(dict)
    }

    fn yields(&mut self, values: Vec<Value>) -> Result<Value, Fault> {
        if let [value] = &values[..]
            && let Some(ran) = self.yielded_to_with(value)
        {
            return ran;
        }
        self.charge_bytes(VALUE_BYTES * values.len() as u64)?;
        self.yielded.0.extend(values);
        if self.yielded.0.len() > iterator::MOST {
            return Err(iterator::endless());
        }
        Ok(Value::None)
    }

    fn comprehension(&mut self, given: &Comprehension, scope: &Rc<Scope>) -> Result<Value, Fault> {
        let inner = Scope::new(Kind::Comprehension, Some(scope.clone()));
        let mut found = Vec::new();
        // the first iterable is made outside: in a class body it sees the class's names, the rest does not
        let first = given.loops.first().map(|(_, iter, _)| self.eval(iter, scope).map_err(|f| f.at(iter.span)));
        let ended = match first {
            Some(Err(fault)) => return Err(fault),
            Some(Ok(first)) => self.comprehension_loop(given, 0, Some(first), &inner, &mut found),
            None => Ok(()),
        };
        let keys_only = |found: Vec<(Value, Value)>| found.into_iter().map(|(k, _)| k).collect::<Vec<_>>();
        if given.collects == Collects::Generator {
            return iterator::of_generator(keys_only(found), ended);
        }
        ended?;
        match given.collects {
            Collects::List => Ok(Value::list(keys_only(found))),
            Collects::Generator => Ok(iterator::of(keys_only(found))),
            Collects::Set => self.set_of(keys_only(found)),
            Collects::Dict => {
                let dict = Value::Dict(Rc::new(RefCell::new(Pairs::default())));
                for (key, value) in found {
                    self.set_item(&dict, &key, value)?;
                }
                Ok(dict)
            }
        }
    }

    fn comprehension_loop(
        &mut self,
        given: &Comprehension,
        at: usize,
        first: Option<Value>,
        scope: &Rc<Scope>,
        found: &mut Vec<(Value, Value)>,
    ) -> Result<(), Fault> {
        let Some((target, iter, tests)) = given.loops.get(at) else {
            let element = self.eval(&given.element, scope)?;
            let value = given.value.as_ref().map_or(Ok(Value::None), |v| self.eval(v, scope))?;
            self.charge_bytes(2 * VALUE_BYTES)?;
            found.push((element, value));
            if found.len() > iterator::MOST && given.collects == Collects::Generator {
                return Err(iterator::endless());
            }
            return Ok(());
        };
        let iterable = first.map_or_else(|| self.eval(iter, scope), Ok)?;
        let mut items = self.iterate(&iterable).map_err(|f| f.at(iter.span))?;
        'items: while let Some(item) = items.next(self)? {
            self.charge_steps(1)?;
            self.assign(target, item, scope)?;
            for test in tests {
                if !self.condition(test, scope, "if")? {
                    continue 'items;
                }
            }
            self.comprehension_loop(given, at + 1, None, scope, found)?;
        }
        Ok(())
    }

    /// Evaluates arguments, unpacking `*` and `**`.
    pub(super) fn arguments(&mut self, given: &[Argument], scope: &Rc<Scope>) -> Result<Args, Fault> {
        let mut args = Args::default();
        for argument in given {
            match argument {
                Argument::Positional(e) => args.positional.push(self.eval(e, scope)?),
                Argument::Keyword(name, e) => args.keyword.push((name.clone(), self.eval(e, scope)?)),
                Argument::Star(e) => {
                    let value = self.eval(e, scope)?;
                    let items = self.collect(&value).map_err(|f| f.at(e.span))?;
                    self.charge_bytes(VALUE_BYTES * items.len() as u64).map_err(|f| f.at(e.span))?;
                    args.positional.extend(items);
                }
                Argument::DoubleStar(e) => {
                    let value = self.eval(e, scope)?;
                    let Value::Dict(pairs) = &value else {
                        return Err(
                            Fault::type_error(format!("`**` needs a dict, not {}", value.type_name())).at(e.span)
                        );
                    };
                    self.charge_bytes(2 * VALUE_BYTES * pairs.borrow().0.len() as u64).map_err(|f| f.at(e.span))?;
                    for (key, value) in &pairs.borrow().0 {
                        if let Value::Str(name) = key {
                            args.keyword.push((name.clone(), value.clone()));
                        }
                    }
                }
            }
        }
        Ok(args)
    }
}

/// The meaning of a name that the text does not bind.
pub(super) fn builtin_named(library: &Library, name: &Name) -> Option<Name> {
    if (library.is_builtin)(name) { Some(name.clone()) } else { implied(name).map(Name::from) }
}

/// Names that pasted snippets use without importing them.
fn implied(name: &str) -> Option<&'static str> {
    Some(match name {
        "torch" => "torch",
        "math" => "math",
        "F" => "torch.nn.functional",
        "functools" => "functools",
        "partial" => "functools.partial",
        "Tensor" => "torch.Tensor",
        "and_masks" => "flex.and_masks",
        "or_masks" => "flex.or_masks",
        "noop_mask" => "flex.noop_mask",
        "create_block_mask" => "flex.create_block_mask",
        "flex_attention" => "flex.flex_attention",
        _ => return None,
    })
}

fn is_bit_operation(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Binary(BinOp::And | BinOp::Or | BinOp::Xor, ..))
}
