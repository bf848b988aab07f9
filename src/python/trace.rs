//! The entry of the front: from a request (text, entry, arguments) to a traced mod and messages.
//!
//! Invariant: never panics and never exceeds its limits, for any text. Does no I/O: other modules' source comes from a
//! [`ModuleLoader`].

use self::entry::Wanted;
use super::diagnose;
use super::machine::Context;
use super::request::STACK_BYTES;
pub use super::request::{Arg, Call, Chosen, Limits};

use crate::ir::graph::{Graph, Mod, ModKind, NodeId, Op, UnaryOp};

pub use super::met::TextSizes;

use super::syntax::{self, Name};
use super::value::{Fault, TensorCell, Value};
use crate::base::{Diagnostic, HostTensor, Label, Source, SourceId};
use crate::ir::schedule;
use std::sync::mpsc;

/// Finds the source of imported modules (`attn_gym.masks.causal`). Names that it does not know become diagnostics when used.
pub trait ModuleLoader {
    /// The module's text, or None.
    fn load(&self, dotted: &str) -> Option<Source>;
}

/// Knows no module at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModules;

impl ModuleLoader for NoModules {
    fn load(&self, _dotted: &str) -> Option<Source> {
        None
    }
}

/// A request to trace.
pub struct TraceRequest<'a> {
    /// The text.
    pub source: Source,
    /// Name of the function in it; empty: the only or last one of the kind.
    pub entry: String,
    /// Mask or score.
    pub kind: ModKind,
    /// Keyword arguments for a factory.
    pub args: Vec<(String, Arg)>,
    /// Captured tensors that the text reads as global names.
    pub globals: Vec<(String, HostTensor)>,
    /// Whether the entry is called to get the mod.
    pub call: Call,
    /// Source of imported modules.
    pub loader: &'a dyn ModuleLoader,
    /// Its limits.
    pub limits: Limits,
}

impl TraceRequest<'static> {
    /// A request for the mod `entry` of `source`, without arguments or imports.
    pub fn new(source: Source, entry: impl Into<String>, kind: ModKind) -> Self {
        Self {
            source,
            entry: entry.into(),
            kind,
            args: Vec::new(),
            globals: Vec::new(),
            call: Call::Auto,
            loader: &NoModules,
            limits: Limits::default(),
        }
    }
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// The mod; None when a diagnostic is an error.
    pub result: Option<Mod>,
    /// Errors and warnings, with their sources.
    pub diagnostics: Vec<Diagnostic>,
    /// Which function was traced, as far as one was found.
    pub chosen: Option<Chosen>,
    /// The sizes of the text's own block mask of this mask.
    pub sizes: Option<TextSizes>,
    /// For a mask that depends on last bits which differ between processors: its possible masks on others.
    pub doubts: Vec<Mod>,
}

/// Traces a mod.
pub fn trace(request: &TraceRequest) -> Traced {
    // the text runs on a separate stack, large enough for its limits; the loader stays in this thread
    let (asks, asked) = mpsc::channel::<String>();
    let (answers, answered) = mpsc::channel::<Option<Source>>();
    let order = Order::of(request);
    std::thread::scope(|scope| {
        let work = move || {
            let mut load = |dotted: &str| {
                asks.send(dotted.to_string()).ok()?;
                answered.recv().ok().flatten()
            };
            order.run(&mut load)
        };
        let thread = std::thread::Builder::new().name("trace".into()).stack_size(STACK_BYTES);
        let handle = match thread.spawn_scoped(scope, work) {
            Ok(handle) => handle,
            Err(why) => return no_thread(&why),
        };
        // ends when the thread has dropped its end
        while let Ok(dotted) = asked.recv() {
            if answers.send(request.loader.load(&dotted)).is_err() {
                break;
            }
        }
        handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn no_thread(why: &std::io::Error) -> Traced {
    let diagnostics = vec![super::outline::no_thread(why)];
    Traced { result: None, diagnostics, chosen: None, sizes: None, doubts: Vec::new() }
}

/// A request without its loader, which may not change threads.
struct Order<'a> {
    source: &'a Source,
    entry: &'a str,
    kind: ModKind,
    args: &'a [(String, Arg)],
    globals: &'a [(String, HostTensor)],
    call: Call,
    limits: Limits,
}

impl<'a> Order<'a> {
    fn of(request: &'a TraceRequest<'_>) -> Self {
        Self {
            source: &request.source,
            entry: &request.entry,
            kind: request.kind,
            args: &request.args,
            globals: &request.globals,
            call: request.call,
            limits: request.limits,
        }
    }

    fn run(&self, load: &mut dyn FnMut(&str) -> Option<Source>) -> Traced {
        let (mut traced, steps) = self.once(load, None);
        if traced.result.is_some() && traced.diagnostics.iter().any(|d| d.code == "last-bit") {
            let ways = doubts::ways(self.limits.steps, steps);
            traced.doubts = (0..ways).filter_map(|seed| self.once(load, Some(seed)).0.result).collect();
        }
        traced
    }

    /// Traces once; with a seed, as with a processor's last bits. Also the steps that it took.
    fn once(&self, load: &mut dyn FnMut(&str) -> Option<Source>, seed: Option<u64>) -> (Traced, u64) {
        let mut cx = Context::new(&super::library::LIBRARY, self.limits, load);
        cx.shaken = seed;
        let mut sizes = None;
        let mut names = Vec::new();
        let root = self.root(&mut cx, &mut sizes, &mut names).and_then(|root| {
            match too_long_a_chain(&cx.graph, root, self.limits.chain) {
                Some(why) => Err(vec![why]),
                None => Ok(root),
            }
        });
        let sources = cx.users_sources();
        let (result, errors) = match root {
            Ok(root) => (Some(root), Vec::new()),
            Err(errors) => (None, errors),
        };
        let mut diagnostics = errors;
        diagnostics.append(&mut cx.warnings);
        if result.is_some() {
            let main = |d: &&Fault| d.diagnostic.labels.first().is_none_or(|l| l.span.source.0 == 0);
            let mut told: Vec<Diagnostic> = Vec::new();
            for fault in cx.skipped.iter().filter(main) {
                let note = skipped(fault);
                // what reads a missing value fails as the statement did that would have made it
                let place = |d: &Diagnostic| d.labels.first().map(|l| l.span);
                let known = told.iter().any(|d| place(d) == place(&note) && d.message == note.message);
                if told.len() < 3 && !known {
                    told.push(note);
                }
            }
            diagnostics.append(&mut told);
        }
        if let Some(why) = diagnostics.iter_mut().find(|d| d.is_error() && d.message.contains("None")) {
            let of_the_text = |l: &Label| l.span.source == SourceId(0);
            if why.labels.first().is_some_and(of_the_text) {
                unset::ask_for_defaults(why, &syntax::parse(self.source, SourceId(0)).module);
            }
        }
        for diagnostic in &mut diagnostics {
            diagnostic.sources = sources.clone();
            diagnostic.hint.get_or_insert_with(|| diagnose::way_out(&diagnostic.code).to_string());
        }
        cx.tell_origins();
        let graph = std::mem::take(&mut cx.graph);
        let result = result.map(|root| Mod { kind: self.kind, graph, root, sources });
        let result = match seed {
            Some(seed) => result.map(|made| doubts::shaken(&made, &cx.sums, seed)),
            None => result,
        };
        let result = result.map(|made| if self.kind == ModKind::Mask { without_stops(made) } else { made });
        if seed.is_none() && self.kind == ModKind::Mask {
            diagnostics.extend(result.as_ref().and_then(|made| packed::mixed(made, &names)));
        }
        let (chosen, steps) = (cx.chosen.take(), cx.steps());
        (Traced { result, diagnostics, chosen, sizes, doubts: Vec::new() }, steps)
    }

    /// The mod's root, the sizes that the text asks for, and the text's own names.
    fn root(
        &self,
        cx: &mut Context<'_>,
        sizes: &mut Option<TextSizes>,
        names: &mut Vec<(Name, Value)>,
    ) -> Result<NodeId, Vec<Diagnostic>> {
        let globals = self.globals.iter().map(|(name, tensor)| {
            let value = TensorCell::new(tensor.clone());
            let name: Name = name.as_str().into();
            value.name_it(&name);
            (name, Value::Tensor(value))
        });
        let globals: Vec<(Name, Value)> = globals.collect();
        let given = given::values(cx, self.args, &globals)?;
        if self.kind == ModKind::Score {
            cx.learning = true;
            for (name, value) in globals.iter().chain(&given) {
                learns(cx, name, value);
            }
        }
        cx.given = if self.call == Call::Factory { globals.clone() } else { given.clone() };
        let scope = entry::run(cx, self.source.clone(), globals)?;
        *names = scope.names();
        let wanted = Wanted { entry: self.entry, kind: self.kind, call: self.call, args: self.args, given: &given };
        let function = entry::find_mod(cx, &scope, &wanted, 0)?;
        *sizes = super::met::sizes_for(&cx.met, &function);
        if let Some(before) = &cx.unsure {
            return Err(vec![*before.diagnostic.clone()]);
        }
        result::trace_mod(cx, &function, self.kind).map_err(|fault| {
            // a limit may be reached only because something failed before
            cx.remember(fault);
            let mut all: Vec<Diagnostic> = cx.faults.drain(..).map(|f| *f.diagnostic).collect();
            all.sort_by_key(|d| d.labels.first().map(|l| (l.span.source.0, l.span.start)));
            all
        })
    }
}

/// Marks the tensors of a passed value as ones that may need gradients.
fn learns(cx: &mut Context, name: &str, value: &Value) {
    match value {
        Value::Tensor(tensor) => cx.learns(tensor, name),
        Value::List(_) | Value::Tuple(_) => {
            for (at, item) in value.as_items().unwrap_or_default().iter().enumerate() {
                learns(cx, &format!("{name}[{at}]"), item);
            }
        }
        _ => {}
    }
}

/// A mask without marks of where gradients stop: it has none.
fn without_stops(mask: Mod) -> Mod {
    let is_stop = |op: &Op| matches!(op, Op::Unary(UnaryOp::Stop, _));
    if !mask.graph.nodes().iter().any(|node| is_stop(&node.op)) {
        return mask;
    }
    let mut graph = Graph::new();
    let map = graph.rewrite(&mask.graph, mask.graph.ids(), |graph, id, op| match op {
        Op::Unary(UnaryOp::Stop, a) => a,
        op => graph.add(op, mask.graph.node(id).span),
    });
    Mod { root: map[mask.root.0 as usize], graph, ..mask }
}

/// Refuses a mod in which too many operations follow one from another: no compiler takes those.
fn too_long_a_chain(graph: &Graph, root: NodeId, most: usize) -> Option<Diagnostic> {
    let mut lengths = vec![0usize; graph.nodes().len()];
    for id in schedule::needed(graph, &[root]) {
        let node = graph.node(id);
        let before = node.op.operands().iter().map(|o| lengths[o.0 as usize]).max();
        lengths[id.0 as usize] = before.map_or(0, |n| n + 1);
        if lengths[id.0 as usize] > most {
            let message = format!("this chain has more than {most} dependent operations");
            let reported = Diagnostic::error("chain-too-long", message)
                .hint("compute a table in the factory and read the result from it: `table = torch.tensor(values)`, `table[q_idx, kv_idx]`");
            return Some(match node.span {
                Some(span) => reported.at(span, ""),
                None => reported,
            });
        }
    }
    None
}

/// A failed statement of the text that the mod does not need. If Python itself or the text's own `assert` or `raise`
/// fails, Python never reaches the statements after it.
fn skipped(fault: &Fault) -> Diagnostic {
    let reported = &fault.diagnostic;
    let mut note = if fault.python || matches!(&*reported.code, "assertion" | "raised") {
        Diagnostic::warning("skipped", format!("Python stops at this line: {}", reported.message))
            .hint("Python does not reach the lines after it; Maskloom skipped this line")
    } else {
        Diagnostic::note("skipped", format!("this line was skipped: {}", reported.message))
            .hint("the mod does not need it")
    };
    note.labels = reported.labels.clone();
    note
}

mod doubts;
pub(crate) mod entry;
pub(crate) mod given;
mod lists;
mod packed;
pub(crate) mod result;
#[cfg(test)]
mod tests;
mod unset;
