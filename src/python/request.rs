//! What a trace is asked for, and what it may spend.
//!
//! Invariant: plain values, so that callers need nothing of the machine. Must not know how a text is run.

use crate::base::{HostTensor, Source};

/// Stack that evaluation needs at most, bytes.
pub(crate) const STACK_BYTES: usize = 192 << 20;

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
    /// An expression of Python, which sees `torch` and `math`.
    Python(String),
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

/// The limits of one trace: steps and bytes, never time, so that a text has the same result on every machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Statements and expressions run.
    pub steps: u64,
    /// Bytes of host tensors made, in total.
    pub tensor_bytes: u64,
    /// Bytes of lists, strings and other containers made, in total.
    pub container_bytes: u64,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Depth of calls.
    pub depth: usize,
    /// Operations of a mod that follow one from another.
    pub chain: usize,
    /// Bytes of one source text.
    pub source_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 30_000_000,
            tensor_bytes: 3 << 29,
            container_bytes: 256 << 20,
            nodes: 50_000,
            depth: 100,
            chain: 2000,
            source_bytes: 1 << 20,
        }
    }
}

/// Which function of a text was taken for the mod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Its name, with those of the functions and classes around it.
    pub entry: String,
    /// Whether it was named in the request.
    pub asked: bool,
    /// The other functions that may be mods or make them.
    pub others: Vec<String>,
    /// The factory whose result the text gives to create_block_mask, if another function was taken because its arguments are not known.
    pub meant: Option<String>,
}
