//! The interpreter of the Python that mods and factories are written in.
//!
//! Invariant: every statement, expression and loop of a builtin is charged against the request's limits, and nothing in
//! the text can make it panic or overflow the stack. Must not know what an entry is.

pub mod scope;

use super::builtins::host;
use super::graph::Graph;
use super::trace::Limits;
use super::value::Fault;
use crate::base::{Diagnostic, Source, Span};
use std::time::Instant;

/// Everything one trace works with.
pub struct Context<'a> {
    /// The graph being built.
    pub graph: Graph,
    /// Where the expression stands that is being evaluated: the place of new nodes and of faults.
    pub span: Span,
    /// State of the host functions: the random generator.
    pub host: host::State,
    /// Warnings so far.
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) sources: Vec<Source>,
    pub(crate) load: &'a mut dyn FnMut(&str) -> Option<Source>,
    limits: Limits,
    started: Instant,
    steps: u64,
    bytes: u64,
}

impl Context<'_> {
    /// Counts `n` elementary steps. Errors when the text has had its share of steps or time.
    pub fn charge_steps(&mut self, n: u64) -> Result<(), Fault> {
        let before = self.steps >> 10;
        self.steps += n;
        if self.steps > self.limits.steps {
            let message = format!("this runs more than {} steps", self.limits.steps);
            return Err(Fault::limit("too-many-steps", message).hint("make loops shorter, or compute with tensors"));
        }
        if self.steps >> 10 != before && self.started.elapsed() > self.limits.time {
            let message = format!("this takes longer than {:.1} s", self.limits.time.as_secs_f64());
            return Err(Fault::limit("too-slow", message).hint("make loops and tensors smaller"));
        }
        Ok(())
    }

    /// Counts bytes of tensors and containers made. Errors when the text has had its share.
    pub fn charge_bytes(&mut self, n: u64) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(n);
        if self.bytes > self.limits.tensor_bytes {
            let mib = self.limits.tensor_bytes >> 20;
            return Err(Fault::limit("too-large", format!("this makes more than {mib} MiB of tensors and lists"))
                .hint("capture a smaller tensor; a mask needs no [q_len, kv_len] table when a formula does"));
        }
        Ok(())
    }

    /// Bytes of tensors and containers that may still be made.
    pub fn bytes_left(&self) -> u64 {
        self.limits.tensor_bytes.saturating_sub(self.bytes)
    }
}
