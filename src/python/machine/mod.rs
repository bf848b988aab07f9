//! The interpreter of the Python of mods and factories.
//!
//! Invariant: every statement, expression and loop of a builtin is charged against the request's limits, and nothing in
//! the text can make it panic or overflow the stack. Must not know what an entry is.

pub(crate) mod arity;
mod branches;
mod call;
pub(crate) mod calls;
pub(crate) mod changes;
pub(crate) mod class;
pub(crate) mod context_manager;
mod effects;
pub(crate) mod enums;
pub(crate) mod exception;
mod expression;
mod fixed;
mod format;
mod frame;
mod holders;
mod import;
pub(crate) mod inside;
mod iterate;
pub(crate) mod iterator;
pub(crate) mod keyed;
mod matching;
pub(crate) mod meaning;
mod mro;
pub(crate) mod operators;
pub(crate) mod origins;
mod recover;
mod rewrite;
mod rough;
mod shipped;
mod statement;
pub(crate) mod subscript;
mod taint;
mod touched;
pub(crate) mod version;

pub(crate) use self::calls::{Draws, Library};
pub(crate) use self::format::{formatted, repr, repr_in_message, text};
pub(crate) use self::operators::equal;

use super::request::Limits;
use super::syntax::{self, Name};
use super::tensors::{Budget, set_default_float};
use super::value::scope::{Kind, Scope};
use super::value::{Class, Fault, Instance, Items, ModuleValue, Pairs, Tensor, Value, meter};
use crate::base::{DType, Diagnostic, Source, SourceId, Span};
use crate::ir::graph::{Graph, NodeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Deepest nesting of expressions, statements and calls together; [`STACK_BYTES`] is enough for it.
const MAX_DEPTH: usize = 3000;

/// Nanoseconds of tensors' work that count as a step: all steps together are less than ten seconds of a build without optimisation.
const STEP: u64 = 256;

/// Everything one trace works with.
pub struct Context<'a> {
    /// The graph being built.
    pub graph: Graph,
    /// The place of the expression being evaluated: the place of new nodes and of faults.
    pub span: Span,
    /// State of the host functions: the random generator.
    pub host: Draws,
    /// Warnings so far.
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) sources: Vec<Source>,
    /// The tensors that may need gradients, or depend on such: reads of them stay reads. Empty while a mask is traced.
    pub(crate) origins: origins::Origins,
    /// Whether a score mod is traced, for which tensors may learn.
    pub(crate) learning: bool,
    /// Whether the present computation has no gradient (`torch.no_grad()`).
    pub(crate) no_grad: bool,
    /// The name of the indexed expression, for the capture's name.
    pub(crate) hint: Option<Name>,
    /// Entries of the first text, as far as they are known without running it.
    pub(crate) outlined: Vec<String>,
    /// Statements of modules that failed and were skipped.
    pub(crate) skipped: Vec<Fault>,
    /// Texts that ship with the tracer, their names, and the places of the user's calls.
    shipped: Vec<SourceId>,
    shipped_scopes: Vec<(&'static str, Rc<Scope>)>,
    outside: Option<shipped::Outside>,
    /// A statement that failed and after which nothing is certain.
    pub(crate) unsure: Option<Fault>,
    /// Values from outside, by name: they replace the first text's assignments to those names.
    pub(crate) given: Vec<(Name, Value)>,
    /// Calls of create_block_mask that were met.
    pub(crate) met: Vec<super::met::Met>,
    /// The functions of the first text that may be mods.
    pub(crate) candidates: Vec<super::candidates::Candidate>,
    /// Where the first text last binds each name of its top level.
    pub(crate) bound_last: HashMap<Name, usize>,
    /// Names of functions whose result the user's text gives to create_block_mask.
    pub(crate) makers: Vec<Name>,
    /// The function that was taken, and the others that could have been.
    pub(crate) chosen: Option<super::request::Chosen>,
    /// Names of Python and PyTorch that the text has set to something else.
    patched: Vec<(String, Value)>,
    /// The first function on whose last bit the mod depends, and the place of the read.
    pub(crate) rough: Option<(Rc<str>, Span)>,
    /// Numbers that follow a last bit.
    pub(crate) rough_numbers: rough::RoughNumbers,
    /// Which last bits tensors are computed with: None for ours, else as another processor may have them.
    pub(crate) shaken: Option<u64>,
    /// Sums of many floats that the mod itself makes, and their terms.
    pub(crate) sums: Vec<(NodeId, Vec<NodeId>)>,
    /// Symbolic values created so far: each is a distinct object.
    objects: Cell<u32>,
    /// Names that unknown ones were compared with so far.
    compared: usize,
    /// Where keys stand in large dicts and sets.
    places: keyed::Remembered,
    /// The possible changes of failed statements.
    taint: taint::Taint,
    /// Names that a guarded import decided, and the messages for their reads.
    guarded: Vec<(Name, Diagnostic)>,
    /// The exception that an `except` clause is handling.
    handled: Option<Fault>,
    /// `with` statements whose generators have not yielded yet, or whose bodies are running.
    waiting: Vec<context_manager::Waiting>,
    pub(crate) library: &'static Library,
    load: &'a mut dyn FnMut(&str) -> Option<Source>,
    limits: Limits,
    steps: u64,
    bytes: u64,
    tensor_bytes: u64,
    depth: usize,
    calls: usize,
    /// Whether a statement that fails is remembered and those after it run: while a mod is traced.
    pub(crate) recover: bool,
    /// The skipped failures.
    pub(crate) faults: Vec<Fault>,
    /// The values that the running generator has yielded.
    yielded: Items,
    /// How many `try` statements are open: imports inside must fail at once.
    trying: usize,
    /// Scopes of the calls that are running.
    frames: Vec<Rc<Scope>>,
    /// A dict's default for missing keys: `collections.defaultdict`.
    pub(crate) factories: Vec<(Rc<RefCell<Pairs>>, Value)>,
    modules: HashMap<String, Option<Rc<ModuleValue>>>,
    scopes: Vec<Weak<Scope>>,
    instances: Vec<Weak<Instance>>,
    /// Classes whose members are objects of the class itself: a cycle to break.
    enums: Vec<Rc<Class>>,
}

impl<'a> Context<'a> {
    /// A fresh one; `load` finds the source of imported modules.
    pub(crate) fn new(
        library: &'static Library,
        limits: Limits,
        load: &'a mut dyn FnMut(&str) -> Option<Source>,
    ) -> Context<'a> {
        set_default_float(DType::F32);
        // what another text has left
        meter::steps();
        super::diagnose::forget_compared();
        Context {
            graph: Graph::new(),
            span: Span::default(),
            host: Draws::default(),
            warnings: Vec::new(),
            sources: Vec::new(),
            origins: origins::Origins::default(),
            learning: false,
            no_grad: false,
            hint: None,
            outlined: Vec::new(),
            skipped: Vec::new(),
            shipped: Vec::new(),
            shipped_scopes: Vec::new(),
            outside: None,
            unsure: None,
            given: Vec::new(),
            met: Vec::new(),
            candidates: Vec::new(),
            bound_last: HashMap::new(),
            makers: Vec::new(),
            chosen: None,
            patched: Vec::new(),
            rough: None,
            rough_numbers: rough::RoughNumbers::default(),
            shaken: None,
            sums: Vec::new(),
            objects: Cell::new(0),
            compared: 0,
            places: keyed::Remembered::default(),
            taint: taint::Taint::default(),
            guarded: Vec::new(),
            handled: None,
            waiting: Vec::new(),
            library,
            load,
            limits,
            steps: 0,
            bytes: 0,
            tensor_bytes: 0,
            depth: 0,
            calls: 0,
            recover: false,
            faults: Vec::new(),
            yielded: Items::default(),
            trying: 0,
            frames: Vec::new(),
            factories: Vec::new(),
            modules: HashMap::new(),
            scopes: Vec::new(),
            instances: Vec::new(),
            enums: Vec::new(),
        }
    }

    /// Counts `n` elementary steps. Errors when the text has had its share of steps.
    pub fn charge_steps(&mut self, n: u64) -> Result<(), Fault> {
        let Some(done) = meter::steps() else {
            return Err(Fault::limit("too-slow", "this looks at more than 60 million elements at once")
                .hint("use shorter lists, or compute with tensors"));
        };
        self.steps = self.steps.saturating_add(n).saturating_add(done);
        if self.steps > self.limits.steps {
            let message = format!("this runs more than {} steps", self.limits.steps);
            return Err(Fault::limit("too-many-steps", message).hint("make loops shorter, or compute with tensors"));
        }
        Ok(())
    }

    /// The steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts elements that move up when one before them goes: many at a step.
    pub fn charge_move(&mut self, elements: usize) -> Result<(), Fault> {
        self.charge_steps(elements as u64 / 64)
    }

    /// Whether an unknown name may be compared with so many others, to suggest one: all of a long text with all have no end.
    pub(super) fn may_compare(&mut self, names: usize) -> bool {
        /// A text of 300 names may have as many unknown ones.
        const MOST: usize = 100_000;
        self.compared = self.compared.saturating_add(names);
        self.compared < MOST
    }

    /// Counts bytes of containers made. Errors when the text has had its share.
    pub fn charge_bytes(&mut self, n: u64) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(n);
        if self.bytes > self.limits.container_bytes {
            let mib = self.limits.container_bytes >> 20;
            return Err(Fault::limit("too-large", format!("this makes more than {mib} MiB of lists and strings"))
                .hint("use tensors instead of lists, or a formula instead of a [q_len, kv_len] table"));
        }
        Ok(())
    }

    /// The remaining budget of tensors.
    pub fn tensor_budget(&self) -> Budget {
        let steps = self.limits.steps.saturating_sub(self.steps);
        Budget::within(self.limits.tensor_bytes, self.tensor_bytes).nanoseconds(steps.saturating_mul(STEP))
    }

    /// Counts what tensors have taken: their bytes, and the steps of their time.
    pub fn spent(&mut self, budget: &Budget) -> Result<(), Fault> {
        self.tensor_bytes = self.limits.tensor_bytes.saturating_sub(budget.left());
        self.charge_steps(1 + budget.spent() / STEP)
    }

    /// Most calls within one another.
    fn call_limit(&self) -> usize {
        self.limits.depth
    }

    /// Most nodes the graph may have.
    pub(crate) fn node_limit(&self) -> usize {
        self.limits.nodes
    }

    /// Runs `f` one level deeper.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::limit("too-deep", "this nests too deeply")
                .hint("assign parts of the expression to names, or replace recursion by a loop"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Adds a warning, once for each code and place.
    pub(crate) fn warn(&mut self, warning: Diagnostic) {
        if self.warnings.len() < 20 && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Remembers that the mod reads a tensor that follows some function's last bit.
    pub(crate) fn reads(&mut self, tensor: &Tensor) {
        self.reads_origin(tensor);
        if let Some(function) = tensor.handle().rough() {
            self.follows(&function);
        }
    }

    /// Remembers that the mod depends on the last bit of a function.
    pub(crate) fn follows(&mut self, function: &Rc<str>) {
        let place = self.place();
        self.rough.get_or_insert_with(|| (function.clone(), place));
    }

    /// Adds a text that spans may point into.
    pub(crate) fn add_source(&mut self, source: Source) -> Result<SourceId, Fault> {
        if source.text.len() > self.limits.source_bytes {
            let diagnostic = Box::new(super::outline::too_long(&source, self.limits.source_bytes));
            return Err(Fault { diagnostic, ..Fault::limit("source-too-long", "") });
        }
        self.sources.push(source);
        Ok(SourceId(self.sources.len() as u32 - 1))
    }

    /// Parses a text and runs it as a module with these globals. Failing statements are skipped and recorded; only
    /// limits and syntax errors stop it.
    pub(crate) fn run_source(
        &mut self,
        source: Source,
        module: &str,
        globals: Vec<(Name, Value)>,
    ) -> Result<Rc<Scope>, Vec<Diagnostic>> {
        let one = |fault: Fault| vec![*fault.diagnostic];
        let package = source.name.ends_with("__init__.py");
        let id = self.add_source(source).map_err(one)?;
        let parsed = syntax::parse(&self.sources[id.0 as usize], id);
        if !parsed.errors.is_empty() {
            return Err(parsed.errors);
        }
        if id.0 == 0 {
            self.outlined = super::outline::entries(&parsed.module).into_iter().map(|e| e.name).collect();
            let given: Vec<Name> = globals.iter().map(|(name, _)| name.clone()).collect();
            super::notes::notes(&parsed.module, &given).into_iter().for_each(|note| self.warn(note));
            self.candidates = super::candidates::candidates(&parsed.module);
            self.bound_last = super::candidates::last_bound(&parsed.module);
            self.makers = super::candidates::makers(&parsed.module);
            let open = super::candidates::open_names(&parsed.module);
            let params = super::candidates::params(&parsed.module);
            // a name that a function takes is given to the function
            self.given.retain(|(name, _)| {
                let root = name.split('.').next().unwrap_or(name);
                let found = open.iter().find(|(n, _)| **n == *root);
                found.is_some_and(|(_, bound)| !bound || !params.iter().any(|p| **p == *root))
            });
        }
        let scope = Scope::new(Kind::Module, None);
        self.register(&scope);
        scope.set(&"__name__".into(), Value::str(module));
        scope.set(&"__package__".into(), Value::Bool(package));
        for (name, value) in globals {
            scope.set(&name, value);
        }
        if id.0 == 0 {
            self.bind_given_globals(&scope);
        }
        if !module.is_empty() {
            let value = ModuleValue { name: module.into(), scope: scope.clone() };
            self.modules.insert(module.to_string(), Some(Rc::new(value)));
        }
        self.run_module(&parsed.module.body, &scope).map_err(one)?;
        Ok(scope)
    }

    /// What makes a defaultdict's missing values. The dict that is asked is mostly among the last ones made.
    pub(crate) fn factory_of(&self, pairs: &Rc<RefCell<Pairs>>) -> Option<&Value> {
        let mut looked = 0;
        let of_pairs = |(of, _): &&(Rc<RefCell<Pairs>>, Value)| {
            looked += 1;
            Rc::ptr_eq(of, pairs)
        };
        let found = self.factories.iter().rev().find(of_pairs);
        meter::work(looked / 4);
        found.map(|(_, factory)| factory)
    }

    /// Remembers an object that may be part of a cycle.
    pub(crate) fn remember_instance(&mut self, instance: &Rc<Instance>) {
        self.instances.push(Rc::downgrade(instance));
    }

    /// Binds values from outside to names of the first text.
    fn bind_given_globals(&mut self, scope: &Rc<Scope>) {
        let given = std::mem::take(&mut self.given);
        for (name, value) in &given {
            match name.split_once('.') {
                None => {
                    statement::name_value(value, name);
                    scope.set(name, value.clone());
                }
                Some((root, _)) => {
                    if let (None, Some(object)) = (scope.own(root), inside::namespace(root, &given)) {
                        scope.set(&root.into(), object);
                    }
                }
            }
        }
        self.given = given;
    }

    /// Remembers a scope that may be part of a cycle.
    fn register(&mut self, scope: &Rc<Scope>) {
        if !scope.registered.replace(true) {
            self.scopes.push(Rc::downgrade(scope));
        }
    }
}

impl Drop for Context<'_> {
    /// Breaks the cycles between functions and the scopes that they close over.
    fn drop(&mut self) {
        self.taint.clear();
        self.patched.clear();
        self.modules.clear();
        self.shipped_scopes.clear();
        self.factories.clear();
        for scope in self.scopes.drain(..).filter_map(|s| s.upgrade()) {
            scope.clear();
        }
        for instance in self.instances.drain(..).filter_map(|i| i.upgrade()) {
            drop(instance.attributes.take());
        }
        for class in self.enums.drain(..) {
            drop(class.members.take());
        }
    }
}
