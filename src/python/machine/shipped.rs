//! Calls of the Python that ships with the tracer, located at the user's call.
//!
//! Invariant: nodes, warnings and faults of the shipped code point into the user's text only; a user's function called
//! back from it has its own places again. Must not know the functions.

use super::Context;
use crate::base::{Source, SourceId, Span};
use crate::python::prelude::{self, File, Found};
use crate::python::syntax::Name;
use crate::python::value::scope::Scope;
use crate::python::value::{Args, Fault, Value};
use std::rc::Rc;

/// The place of the user's call of shipped code, and whether mistakes were being skipped.
#[derive(Clone, Copy)]
pub(super) struct Outside {
    place: Span,
    recover: bool,
}

impl Context<'_> {
    /// The place that nodes are made at: the user's.
    pub(crate) fn place(&self) -> Span {
        self.outside.map_or(self.span, |o| o.place)
    }

    /// Whether the running code ships with the tracer.
    pub(crate) fn is_inside(&self) -> bool {
        self.outside.is_some()
    }

    /// Whether a text ships with the tracer.
    pub(crate) fn ships(&self, id: SourceId) -> bool {
        self.shipped.contains(&id)
    }

    /// The texts that spans may point into; shipped texts, which no span points into, are left empty.
    pub(crate) fn users_sources(&self) -> Vec<Source> {
        let users = |(at, source): (usize, &Source)| match self.ships(SourceId(at as u32)) {
            true => Source::new(source.name.as_str(), ""),
            false => source.clone(),
        };
        self.sources.iter().enumerate().map(users).collect()
    }

    /// Whether a call of a function written in `source` crosses between the user's text and what ships.
    pub(super) fn crosses(&self, source: SourceId) -> bool {
        self.outside.is_some() != self.ships(source)
    }

    /// Runs a call that crosses.
    pub(super) fn crossing<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        match self.outside.take() {
            // back in the user's text
            Some(outer) => {
                let recover = std::mem::replace(&mut self.recover, outer.recover);
                let result = f(self);
                self.recover = recover;
                self.outside = Some(outer);
                result
            }
            None => {
                let outer = Outside { place: self.span, recover: std::mem::take(&mut self.recover) };
                self.outside = Some(outer);
                let result = f(self);
                self.outside = None;
                self.recover = outer.recover;
                self.span = outer.place;
                result.map_err(|fault| self.told_outside(fault, outer.place))
            }
        }
    }

    /// A fault of what ships, in the words and at the place of the user's call.
    fn told_outside(&self, mut fault: Fault, place: Span) -> Fault {
        fault.diagnostic.labels.retain(|l| !self.ships(l.span.source));
        if fault.diagnostic.rewrite.as_ref().is_some_and(|r| self.ships(r.span.source)) {
            fault.diagnostic.rewrite = None;
        }
        if fault.diagnostic.code == "raised" {
            fault = refusal(fault);
        }
        fault.at(place)
    }

    /// Calls what ships under a dotted name; None when nothing does. `symbolic`: as inside a mod.
    pub(crate) fn call_shipped(&mut self, dotted: &str, args: Args, symbolic: bool) -> Option<Result<Value, Fault>> {
        let found = prelude::find(dotted, symbolic)?;
        Some(self.shipped_value(found).and_then(|function| self.call(&function, args)))
    }

    /// Calls a shipped tensor method; None for unknown names.
    pub(crate) fn call_shipped_method(
        &mut self,
        receiver: &Value,
        name: &str,
        args: &Args,
    ) -> Option<Result<Value, Fault>> {
        let symbolic = receiver.is_symbolic() || args.any_symbolic();
        let found = prelude::find_method(name, symbolic)?;
        let mut all = vec![receiver.clone()];
        all.extend(args.positional.iter().cloned());
        let args = Args { positional: all, keyword: args.keyword.clone() };
        Some(self.shipped_value(found).and_then(|function| self.call(&function, args)))
    }

    /// The class that ships under a dotted name, or the name itself.
    pub(super) fn class_or_name(&mut self, dotted: &Name) -> Result<Value, Fault> {
        match prelude::find_class(dotted) {
            Some(found) => self.shipped_value(found),
            None => Ok(Value::Builtin(dotted.clone())),
        }
    }

    /// The function or class itself.
    fn shipped_value(&mut self, found: Found) -> Result<Value, Fault> {
        let scope = self.shipped_file(found.file)?;
        scope.own(found.name).ok_or_else(|| Fault::unsupported(format!("`{}` is not supported here", found.name)))
    }

    /// The names of a file, which is run when it is first needed.
    pub(super) fn shipped_file(&mut self, file: &'static File) -> Result<Rc<Scope>, Fault> {
        if let Some((_, scope)) = self.shipped_scopes.iter().find(|(name, _)| *name == file.name) {
            return Ok(scope.clone());
        }
        let (span, recover) = (self.span, std::mem::take(&mut self.recover));
        let skipped = self.skipped.len();
        self.shipped.push(SourceId(self.sources.len() as u32));
        let own = |name: &str| (name.into(), Value::Builtin(format!("prelude.{name}").into()));
        let ran = self.deeper(|cx| {
            let names = ["unknown", "members", "wide", "solved", "determinant", "place"];
            Ok(cx.run_source(Source::new(file.name, file.text), "", names.map(own).to_vec()))
        })?;
        debug_assert_eq!(self.skipped.len(), skipped, "{}: {:?}", file.name, self.skipped.last());
        (self.span, self.recover) = (span, recover);
        let scope = ran.map_err(|mut errors| Fault::from(errors.remove(0)))?;
        self.shipped_scopes.push((file.name, scope.clone()));
        Ok(scope)
    }
}

/// An exception of a shipped file, as a fault: `"problem: fix"`.
fn refusal(fault: Fault) -> Fault {
    let class = fault.class.clone();
    let text = &fault.diagnostic.message;
    let text = text.strip_prefix(&*class).and_then(|t| t.strip_prefix(": ")).unwrap_or(text);
    let (message, hint) = match text.rsplit_once(": ") {
        Some((message, hint)) => (message.to_string(), Some(hint.to_string())),
        None => match text.rsplit_once(". ") {
            Some((message, hint)) => (message.to_string(), Some(hint.to_string())),
            None => (text.to_string(), None),
        },
    };
    let mut reported = match &*class {
        "NotImplementedError" => Fault::unsupported(message),
        "TypeError" => Fault::type_error(message),
        "ValueError" => Fault::value_error(message),
        "IndexError" => Fault::index_error(message),
        "KeyError" => Fault::new("KeyError", "key-error", message),
        "AssertionError" => Fault::new("AssertionError", "assertion", message),
        _ => Fault::runtime_error(message),
    };
    reported.diagnostic.labels = fault.diagnostic.labels.clone();
    reported.fatal = fault.fatal;
    match hint {
        Some(hint) => reported.hint(hint),
        None => reported,
    }
}
