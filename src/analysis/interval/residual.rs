//! The rest of a graph over a box after intervals have decided parts of it: equal residuals mean equal cells.
//!
//! Invariant: two boxes of one program with the same key have the same pattern of cells, counted from their own
//! corners. Must not know about blocks.

use super::int::floor_mod;
use super::{Cells, Floats, Form, Ints, Program, Scratch, Truth, Value};
use crate::ir::graph::{BinaryOp, Op};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Remains of a graph over a box, as words that are compared exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key(SmallVec<[i64; 24]>);

/// A quick hasher of integer words; keys are compared in full, so a collision only costs time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A map from keys.
pub type KeyMap<V> = HashMap<Key, V, BuildHasherDefault<Mixer>>;

/// Longest key worth keeping.
const LONGEST: usize = 160;

impl Program {
    /// The residual after `evaluate(cells)` has filled `scratch`, for a box of these extents. None if the cells depend
    /// on more than affine forms (a captured tensor's contents, b or h as ranges) or the residual is long.
    pub fn residual(&self, cells: &Cells, scratch: &mut Scratch) -> Option<Key> {
        self.complete(cells, scratch);
        let mut walk = Walk { program: self, cells, scratch, key: Key::default(), seen: SmallVec::new() };
        walk.key.0.push(cells.q.1 - cells.q.0);
        walk.key.0.push(cells.kv.1 - cells.kv.0);
        walk.node(self.root)?;
        Some(walk.key)
    }
}

struct Walk<'a> {
    program: &'a Program,
    cells: &'a Cells,
    scratch: &'a Scratch,
    key: Key,
    seen: SmallVec<[usize; 32]>,
}

impl Walk<'_> {
    /// Words of one node: its slot, then what decides its value. A constant is its value alone.
    fn node(&mut self, at: usize) -> Option<()> {
        // also the bound on how deep this recurses
        self.push(&[at as i64])?;
        if self.seen.contains(&at) {
            return Some(());
        }
        self.seen.push(at);
        match self.scratch.values[at] {
            Value::Bool(t) if t != Truth::BOTH => self.push(&[-1, i64::from(t.can_true)]),
            Value::Int(Ints { form: Some(f), .. }) => self.form(f),
            Value::Float(f) if f.value().is_some() => self.constant_float(f),
            _ => self.operation(at),
        }
    }

    fn push(&mut self, words: &[i64]) -> Option<()> {
        self.key.0.extend_from_slice(words);
        (self.key.0.len() <= LONGEST).then_some(())
    }

    fn form(&mut self, f: Form) -> Option<()> {
        self.push(&[-2, f.q, f.kv, f.local(self.cells)])
    }

    fn constant_float(&mut self, f: Floats) -> Option<()> {
        self.push(&[-3, f.value()?.to_bits() as i64])
    }

    fn operation(&mut self, at: usize) -> Option<()> {
        match &self.program.ops[at] {
            Op::Unary(_, a) => self.node(a.0 as usize),
            Op::Binary(op, a, b) => self.binary(*op, a.0 as usize, b.0 as usize),
            Op::Where(c, a, b) => self.select(c.0 as usize, a.0 as usize, b.0 as usize),
            Op::Bool(_) | Op::Int(_) | Op::Float(_) => Some(()),
            Op::Input(_) | Op::UniformInt(_) | Op::UniformFloat(_) | Op::Load(..) => None,
        }
    }

    fn int(&self, at: usize) -> Option<Ints> {
        if let Value::Int(i) = self.scratch.values[at] { Some(i) } else { None }
    }

    fn binary(&mut self, op: BinaryOp, a: usize, b: usize) -> Option<()> {
        if let (Some(x), Some(y)) = (self.int(a), self.int(b)) {
            let n = y.value().filter(|n| op == BinaryOp::Mod && *n != 0);
            if let (Some(f), Some(n)) = (x.form, n) {
                // only the phase within the period matters
                let phase = |v: i64| floor_mod(v, n);
                return self.push(&[-4, n, phase(f.q), phase(f.kv), phase(f.local(self.cells))]);
            }
            if let (true, Some(f), Some(g)) = (op.is_comparison(), x.form, y.form) {
                let c = f.local(self.cells).checked_sub(g.local(self.cells))?;
                return self.push(&[-5, f.q.checked_sub(g.q)?, f.kv.checked_sub(g.kv)?, c]);
            }
        }
        self.node(a)?;
        self.node(b)
    }

    fn select(&mut self, c: usize, a: usize, b: usize) -> Option<()> {
        self.node(c)?;
        let Value::Bool(t) = self.scratch.values[c] else { return None };
        if t.can_true {
            self.node(a)?;
        }
        if t.can_false { self.node(b) } else { Some(()) }
    }
}
