//! Evaluation of one cell of a mod: the executable definition of every operation.
//!
//! Invariant: ints are i64 and wrap, `//` and `%` floor, int division by zero gives 0; floats are f32, but f64 for
//! values that follow from the score or are Double, and NaN passes through Min and Max; a load wraps a negative index
//! once, then clamps (an empty tensor reads as zero). Every other evaluator is tested against this one. Must not know
//! the other evaluators.

#[cfg(test)]
mod tests;

use super::graph::{BinaryOp, Graph, Input, Mod, NodeId, Op, Ty, UnaryOp, Width, load_ty};
use super::ops::lanes::FloatLane;
use super::ops::{self, One, Two};
use crate::base::HostTensor;

/// Where a mod is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Batch index.
    pub b: i64,
    /// Query head index.
    pub h: i64,
    /// Query token.
    pub q_idx: i64,
    /// Key and value token.
    pub kv_idx: i64,
    /// The score before the mod; ignored by masks.
    pub score: f64,
}

/// A value of a node. A Float and a Double are both floats here.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl PartialEq for Value {
    /// Equal values; NaN equals NaN, and zeros of both signs are equal.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => false,
        }
    }
}

impl Value {
    /// Its type.
    pub fn ty(self) -> Ty {
        match self {
            Value::Bool(_) => Ty::Bool,
            Value::Int(_) => Ty::Int,
            Value::Float(_) => Ty::Float,
        }
    }

    /// The bool. Panics on another type: the graph is typed, so that is a bug.
    pub fn as_bool(self) -> bool {
        match self {
            Value::Bool(x) => x,
            other => panic!("{other:?} is not a bool"),
        }
    }

    /// The int. Panics on another type.
    pub fn as_int(self) -> i64 {
        match self {
            Value::Int(x) => x,
            other => panic!("{other:?} is not an int"),
        }
    }

    /// The float. Panics on another type.
    pub fn as_float(self) -> f64 {
        match self {
            Value::Float(x) => x,
            other => panic!("{other:?} is not a float"),
        }
    }

    /// The value as an operation of this width has it.
    pub fn rounded(self, width: Width) -> Value {
        match (self, width) {
            (Value::Float(x), Width::Single) => Value::Float(f64::from(x as f32)),
            (value, _) => value,
        }
    }

    /// The literal that means this value.
    pub fn literal(self) -> Op {
        match self {
            Value::Bool(x) => Op::Bool(x),
            Value::Int(x) => Op::Int(x),
            Value::Float(x) => Op::Float(x.to_bits()),
        }
    }

    /// The value of a literal node; None for any other operation.
    pub fn of_literal(op: &Op) -> Option<Value> {
        match op {
            Op::Bool(x) => Some(Value::Bool(*x)),
            Op::Int(x) => Some(Value::Int(*x)),
            Op::Float(bits) => Some(Value::Float(f64::from_bits(*bits))),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value {
    /// As Python writes it: `True`, `12`, `0.5`, `-inf`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Bool(true) => f.write_str("True"),
            Value::Bool(false) => f.write_str("False"),
            Value::Int(x) => write!(f, "{x}"),
            Value::Float(x) if x.is_nan() => f.write_str("nan"),
            Value::Float(x) => write!(f, "{x:?}"),
        }
    }
}

/// Values of the uniforms of a lifted graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uniforms<'a> {
    /// For `Op::UniformInt`.
    pub ints: &'a [i32],
    /// For `Op::UniformFloat`.
    pub floats: &'a [f32],
}

/// The result of a mod at one cell. A lifted mod needs [`eval_with`].
pub fn eval(mod_: &Mod, cell: &Cell) -> Value {
    eval_with(&mod_.graph, mod_.root, cell, Uniforms::default())
}

/// The value of one node at one cell, with the uniforms of a lifted graph. Panics when the graph reads a uniform that
/// is not there.
pub fn eval_with(graph: &Graph, root: NodeId, cell: &Cell, uniforms: Uniforms<'_>) -> Value {
    values(graph, root, cell, uniforms)[root.0 as usize]
}

/// Values of all nodes up to `root`, by node, including unused ones before it.
pub fn values(graph: &Graph, root: NodeId, cell: &Cell, uniforms: Uniforms<'_>) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::with_capacity(root.0 as usize + 1);
    for node in &graph.nodes()[..=root.0 as usize] {
        let at = |id: NodeId| values[id.0 as usize];
        let value = match &node.op {
            Op::Input(input) => input_value(*input, cell),
            Op::Bool(x) => Value::Bool(*x),
            Op::Int(x) => Value::Int(*x),
            Op::Float(bits) => Value::Float(f64::from_bits(*bits)),
            // a node that the root does not need may name a uniform that is not there
            Op::UniformInt(id) => Value::Int(uniforms.ints.get(id.0 as usize).map_or(0, |x| i64::from(*x))),
            Op::UniformFloat(id) => Value::Float(uniforms.floats.get(id.0 as usize).map_or(0.0, |x| f64::from(*x))),
            Op::Unary(op, a) => unary(*op, at(*a), graph.width(&node.op)),
            Op::Binary(op, a, b) => binary(*op, at(*a), at(*b), graph.width(&node.op)),
            Op::Where(c, a, b) => {
                let kept = if at(*c).as_bool() { at(*a) } else { at(*b) };
                kept.rounded(graph.width(&node.op))
            }
            Op::Load(capture, index) => {
                let index: Vec<i64> = index.iter().map(|i| at(*i).as_int()).collect();
                load(&graph.capture(*capture).tensor, &index)
            }
        };
        values.push(value);
    }
    values
}

fn input_value(input: Input, cell: &Cell) -> Value {
    match input {
        Input::B => Value::Int(cell.b),
        Input::H => Value::Int(cell.h),
        Input::QIdx => Value::Int(cell.q_idx),
        Input::KvIdx => Value::Int(cell.kv_idx),
        Input::Score => Value::Float(cell.score),
    }
}

/// One element by the read rule; zero (or False) from an empty tensor.
pub fn load(tensor: &HostTensor, index: &[i64]) -> Value {
    let ty = load_ty(tensor.dtype());
    if tensor.numel() == 0 {
        return match ty {
            Ty::Bool => Value::Bool(false),
            Ty::Int => Value::Int(0),
            Ty::Float | Ty::Double => Value::Float(0.0),
        };
    }
    let flat = tensor.clamped_offset(index);
    match ty {
        Ty::Bool => Value::Bool(tensor.int_at(flat) != 0),
        Ty::Int => Value::Int(tensor.int_at(flat)),
        Ty::Float | Ty::Double => Value::Float(tensor.float_at(flat)),
    }
}

/// The operation of one operand, in the precision of [`Graph::width`]. Panics if ill-typed, which [`Graph::add`]
/// prevents.
pub fn unary(op: UnaryOp, a: Value, width: Width) -> Value {
    use UnaryOp::*;
    let a = a.rounded(width);
    match (op, a) {
        (Not, Value::Bool(x)) => Value::Bool(!x),
        (ToInt, Value::Bool(x)) => Value::Int(i64::from(x)),
        (ToFloat | ToDouble, Value::Bool(x)) => Value::Float(f64::from(u8::from(x))),
        // in one rounding
        (ToFloat, Value::Int(x)) => Value::Float(f64::from(x as f32)),
        (ToDouble, Value::Int(x)) => Value::Float(x as f64),
        (ToBool, Value::Int(x)) => Value::Bool(x != 0),
        (ToInt, Value::Float(x)) => Value::Int(FloatLane::to_int(x)),
        (ToInt32, Value::Float(x)) => Value::Int(FloatLane::to_int32(x)),
        (ToBool, Value::Float(x)) => Value::Bool(x != 0.0),
        (ToFloat | ToDouble, Value::Float(_)) => a,
        (op, Value::Int(x)) => Value::Int(ops::int_unary(op, One(x))),
        (op, Value::Float(x)) if width == Width::Single => {
            Value::Float(f64::from(ops::single_unary(op, One(x as f32))))
        }
        (op, Value::Float(x)) => Value::Float(ops::float_unary(op, One(x))),
        (op, a) => panic!("{op:?} of {a:?}"),
    }
}

/// The operation of two operands, in the precision of [`Graph::width`]. Panics if ill-typed, which [`Graph::add`]
/// prevents.
pub fn binary(op: BinaryOp, a: Value, b: Value, width: Width) -> Value {
    match (a.rounded(width), b.rounded(width)) {
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(ops::bool_binary(op, Two(a, b))),
        (Value::Int(a), Value::Int(b)) if op.is_comparison() => Value::Bool(ops::compare(op, Two(a, b))),
        (Value::Int(a), Value::Int(b)) => Value::Int(ops::int_binary(op, Two(a, b))),
        (Value::Float(a), Value::Float(b)) if op.is_comparison() => Value::Bool(ops::compare(op, Two(a, b))),
        (Value::Float(a), Value::Float(b)) if width == Width::Single => {
            Value::Float(f64::from(ops::single_binary(op, Two(a as f32, b as f32))))
        }
        (Value::Float(a), Value::Float(b)) => Value::Float(ops::float_binary(op, Two(a, b))),
        (a, b) => panic!("{op:?} of {a:?} and {b:?}"),
    }
}
