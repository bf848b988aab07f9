//! The entry of the front: a request (text, entry, arguments) becomes a traced mod and messages.
//!
//! Invariant: never panics and never runs past its limits, whatever the text is. Does no I/O: other modules' source
//! comes from a [`ModuleLoader`].

use super::graph::{Mod, ModKind};
use crate::base::{Diagnostic, HostTensor, Source};
use std::time::Duration;

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

/// An argument for a factory's parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// `None`
    None,
    /// `True` or `False`
    Bool(bool),
    /// A Python int.
    Int(i64),
    /// A Python float.
    Float(f64),
    /// A string.
    Str(String),
    /// A list.
    List(Vec<Arg>),
    /// A tuple.
    Tuple(Vec<Arg>),
    /// A captured tensor.
    Tensor(HostTensor),
    /// A function of another text.
    Mod {
        /// Its text.
        source: Source,
        /// The name in it; empty: the only or last mod.
        entry: String,
        /// Whether the entry is a factory that has to be called with `args` to get the function.
        call: bool,
        /// Keyword arguments for that call.
        args: Vec<(String, Arg)>,
    },
}

/// Whether the entry is the mod itself or a factory that returns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// A function of 4 (mask) or 5 (score) positional parameters is the mod, unless `args` name parameters of it.
    #[default]
    Auto,
    /// The entry is called with `args` and returns the mod.
    Factory,
    /// The entry is the mod.
    Mod,
}

/// What one trace may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Statements and expressions run.
    pub steps: u64,
    /// Wall time.
    pub time: Duration,
    /// Bytes of host tensors alive or made, in total.
    pub tensor_bytes: u64,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Depth of calls.
    pub depth: usize,
    /// Bytes of one source text.
    pub source_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 4_000_000,
            time: Duration::from_secs(2),
            tensor_bytes: 256 << 20,
            nodes: 50_000,
            depth: 100,
            source_bytes: 1 << 20,
        }
    }
}

/// What to trace.
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
    /// What it may spend.
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

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// The mod; None when a diagnostic is an error.
    pub result: Option<Mod>,
    /// Errors and warnings, with their sources.
    pub diagnostics: Vec<Diagnostic>,
}

/// Traces a mod.
pub fn trace(request: &TraceRequest) -> Traced {
    let diagnostic = Diagnostic::error("entry-not-found", format!("there is no `{}` yet", request.entry));
    Traced { result: None, diagnostics: vec![diagnostic] }
}
