//! The derivative of each operation, as in PyTorch's autograd.
//!
//! Invariant: one formula for each operand, in autograd's form, so that infinities and NaN are the same. Must not know
//! sweeps.

use crate::ir::cell::{self, Value};
use crate::ir::graph::{BinaryOp, Graph, NodeId, Op, Ty, UnaryOp};

/// An operand's gradient from the result's gradient.
pub type Formula = fn(&mut Rule) -> NodeId;

/// How a gradient goes through an operation.
pub enum Derivative {
    /// It ends here: the result has none, or gives none on.
    Ends,
    /// Autograd refuses it; the operation's name.
    Missing(&'static str),
    /// One formula for each operand; None for an operand that gets nothing.
    Of(Vec<Option<Formula>>),
}

/// An operation whose gradient is known, and the graph that the formula goes into.
pub struct Rule<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) op: &'a Op,
    /// Its result.
    pub(super) result: NodeId,
    /// The gradient of its result.
    pub(super) gradient: NodeId,
}

impl Rule<'_> {
    fn operand(&self, at: usize) -> NodeId {
        self.op.operands()[at]
    }

    fn a(&self) -> NodeId {
        self.operand(0)
    }

    fn b(&self) -> NodeId {
        self.operand(1)
    }

    /// A number of the result's own type.
    fn number(&mut self, x: f64) -> NodeId {
        let number = self.graph.float(x);
        match self.graph.ty(self.result) {
            Ty::Double => self.graph.unary(UnaryOp::ToDouble, number),
            _ => number,
        }
    }

    fn one(&mut self, op: UnaryOp, a: NodeId) -> NodeId {
        self.graph.unary(op, a)
    }

    fn two(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.graph.binary(op, a, b)
    }

    fn mul(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.two(BinaryOp::Mul, a, b)
    }

    fn div(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.two(BinaryOp::Div, a, b)
    }

    fn neg(&mut self, a: NodeId) -> NodeId {
        self.one(UnaryOp::Neg, a)
    }

    /// The gradient times `by`.
    fn times(&mut self, by: NodeId) -> NodeId {
        self.mul(self.gradient, by)
    }

    fn zero(&mut self) -> NodeId {
        self.number(0.0)
    }

    fn choose(&mut self, c: NodeId, a: NodeId, b: NodeId) -> NodeId {
        self.graph.add(Op::Where(c, a, b), None)
    }

    /// The gradient where `a op b`, else nothing.
    fn where_(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        let (kept, zero) = (self.two(op, a, b), self.zero());
        self.choose(kept, self.gradient, zero)
    }

    /// Zero where `a op b`, otherwise the gradient: it passes if one is NaN.
    fn unless(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        let (left_out, zero) = (self.two(op, a, b), self.zero());
        self.choose(left_out, zero, self.gradient)
    }

    /// For the larger or smaller of two: halved at a tie, zero where `mine loses other`.
    fn extreme(&mut self, loses: BinaryOp, mine: NodeId, other: NodeId) -> NodeId {
        let rest = self.unless(loses, mine, other);
        let two = self.number(2.0);
        let half = self.div(self.gradient, two);
        let tie = self.two(BinaryOp::Eq, mine, other);
        self.choose(tie, half, rest)
    }
}

/// The derivative of a node of a graph by one of its operands, where all nodes have these values: its formula on a graph of
/// literals.
pub fn slope(graph: &Graph, id: NodeId, values: &[Value], formula: Formula) -> f64 {
    let mut own = Graph::new();
    let literal = |own: &mut Graph, id: NodeId| {
        let node = own.add(values[id.0 as usize].literal(), None);
        if graph.ty(id) == Ty::Double { own.unary(UnaryOp::ToDouble, node) } else { node }
    };
    let op = graph.node(id).op.map_operands(|o| literal(&mut own, o));
    let (result, one) = (literal(&mut own, id), own.float(1.0));
    let gradient = if graph.ty(id) == Ty::Double { own.unary(UnaryOp::ToDouble, one) } else { one };
    let root = formula(&mut Rule { graph: &mut own, op: &op, result, gradient });
    cell::eval_with(&own, root, &Default::default(), Default::default()).as_float()
}

/// How a gradient goes through `op`.
pub fn derivative(op: &Op) -> Derivative {
    match op {
        Op::Unary(op, _) => unary(*op),
        Op::Binary(op, ..) => binary(*op),
        Op::Where(..) => Derivative::Of(vec![
            None,
            Some(|r| {
                let zero = r.zero();
                r.choose(r.operand(0), r.gradient, zero)
            }),
            Some(|r| {
                let zero = r.zero();
                r.choose(r.operand(0), zero, r.gradient)
            }),
        ]),
        Op::Input(_) | Op::Bool(_) | Op::Int(_) | Op::Float(_) => Derivative::Ends,
        Op::UniformInt(_) | Op::UniformFloat(_) | Op::Load(..) => Derivative::Ends,
    }
}

fn unary(op: UnaryOp) -> Derivative {
    use UnaryOp::*;
    let formula: Formula = match op {
        Neg => |r| r.neg(r.gradient),
        Abs => |r| {
            let zero = r.zero();
            let (above, below) = (r.two(BinaryOp::Gt, r.a(), zero), r.two(BinaryOp::Lt, r.a(), zero));
            let (one, minus) = (r.number(1.0), r.number(-1.0));
            let rest = r.choose(below, minus, zero);
            let sign = r.choose(above, one, rest);
            r.times(sign)
        },
        Exp => |r| r.times(r.result),
        Exp2 => |r| {
            let (scaled, ln_2) = (r.times(r.result), r.number(std::f64::consts::LN_2));
            r.mul(scaled, ln_2)
        },
        Log => |r| r.div(r.gradient, r.a()),
        Log2 => |r| {
            let ln_2 = r.number(std::f64::consts::LN_2);
            let by = r.mul(r.a(), ln_2);
            r.div(r.gradient, by)
        },
        Log1p => |r| {
            let one = r.number(1.0);
            let by = r.two(BinaryOp::Add, r.a(), one);
            r.div(r.gradient, by)
        },
        Expm1 => |r| {
            let one = r.number(1.0);
            let by = r.two(BinaryOp::Add, r.result, one);
            r.times(by)
        },
        Sqrt => |r| {
            let two = r.number(2.0);
            let by = r.mul(two, r.result);
            r.div(r.gradient, by)
        },
        Rsqrt => |r| {
            let half = r.number(-0.5);
            let (scaled, square) = (r.times(half), r.mul(r.result, r.result));
            let cube = r.mul(square, r.result);
            r.mul(scaled, cube)
        },
        Sin => |r| {
            let cos = r.one(Cos, r.a());
            r.times(cos)
        },
        Cos => |r| {
            let sin = r.one(Sin, r.a());
            let sin = r.neg(sin);
            r.times(sin)
        },
        Asinh => |r| {
            let (square, one) = (r.mul(r.a(), r.a()), r.number(1.0));
            let sum = r.two(BinaryOp::Add, square, one);
            let by = r.one(Rsqrt, sum);
            r.times(by)
        },
        Sinh => |r| {
            let by = r.one(Cosh, r.a());
            r.times(by)
        },
        Cosh => |r| {
            let by = r.one(Sinh, r.a());
            r.times(by)
        },
        Asin => |r| {
            let by = arc_slope(r);
            r.times(by)
        },
        Acos => |r| {
            let by = arc_slope(r);
            let by = r.neg(by);
            r.times(by)
        },
        Acosh => |r| {
            let (square, one) = (r.mul(r.a(), r.a()), r.number(1.0));
            let over = r.two(BinaryOp::Sub, square, one);
            let by = r.one(Rsqrt, over);
            r.times(by)
        },
        Erfc => |r| {
            let square = r.mul(r.a(), r.a());
            let square = r.neg(square);
            let (bell, scale) = (r.one(Exp, square), r.number(-std::f64::consts::FRAC_2_SQRT_PI));
            let slope = r.mul(scale, bell);
            r.times(slope)
        },
        Tanh | TanhApprox => |r| {
            let (one, square) = (r.number(1.0), r.mul(r.result, r.result));
            let by = r.two(BinaryOp::Sub, one, square);
            r.times(by)
        },
        Sigmoid => |r| {
            let one = r.number(1.0);
            let rest = r.two(BinaryOp::Sub, one, r.result);
            let scaled = r.times(rest);
            r.mul(scaled, r.result)
        },
        Erf => |r| {
            let square = r.mul(r.a(), r.a());
            let square = r.neg(square);
            let (bell, scale) = (r.one(Exp, square), r.number(std::f64::consts::FRAC_2_SQRT_PI));
            let slope = r.mul(scale, bell);
            r.times(slope)
        },
        Erfcx => |r| {
            let (two, bell) = (r.number(2.0), r.number(std::f64::consts::FRAC_2_SQRT_PI));
            let twice = r.mul(two, r.a());
            let grown = r.mul(twice, r.result);
            let by = r.two(BinaryOp::Sub, grown, bell);
            r.times(by)
        },
        Relu => |r| {
            let zero = r.zero();
            r.unless(BinaryOp::Le, r.result, zero)
        },
        // steps pass a zero on, which an infinite derivative behind them makes NaN
        Floor | Ceil | Round | Trunc => |r| r.zero(),
        ToFloat | ToDouble => |r| {
            let back = if r.graph.ty(r.a()) == Ty::Double { ToDouble } else { ToFloat };
            match r.graph.ty(r.a()) == r.graph.ty(r.gradient) {
                true => r.gradient,
                false => r.one(back, r.gradient),
            }
        },
        // the gradient of a half is a half
        As(_) => |r| match r.op {
            Op::Unary(op, _) => r.one(*op, r.gradient),
            _ => r.gradient,
        },
        Stop | Not | ToInt | ToInt32 | ToBool => return Derivative::Ends,
    };
    Derivative::Of(vec![Some(formula)])
}

fn binary(op: BinaryOp) -> Derivative {
    use BinaryOp::*;
    let (a, b): (Formula, Option<Formula>) = match op {
        Add => (|r| r.gradient, Some(|r| r.gradient)),
        Sub => (|r| r.gradient, Some(|r| r.neg(r.gradient))),
        Mul => (|r| r.times(r.b()), Some(|r| r.times(r.a()))),
        Div => (
            |r| r.div(r.gradient, r.b()),
            Some(|r| {
                let once = r.div(r.a(), r.b());
                let (twice, minus) = (r.div(once, r.b()), r.neg(r.gradient));
                r.mul(minus, twice)
            }),
        ),
        FloorDiv => return Derivative::Missing("`//` of floats"),
        Mod => (
            |r| r.gradient,
            Some(|r| {
                let (whole, minus) = (r.two(FloorDiv, r.a(), r.b()), r.neg(r.gradient));
                r.mul(minus, whole)
            }),
        ),
        Fmod => (
            |r| r.gradient,
            Some(|r| {
                let quotient = r.div(r.a(), r.b());
                let (whole, minus) = (r.one(UnaryOp::Trunc, quotient), r.neg(r.gradient));
                r.mul(minus, whole)
            }),
        ),
        Pow => (power_of_base, Some(power_of_exponent)),
        Atan2 => (
            |r| {
                let by = reciprocal_square(r);
                let scaled = r.times(r.b());
                r.mul(scaled, by)
            },
            Some(|r| {
                let by = reciprocal_square(r);
                let minus = r.neg(r.a());
                let scaled = r.times(minus);
                r.mul(scaled, by)
            }),
        ),
        Max => (|r| r.extreme(Lt, r.a(), r.b()), Some(|r| r.extreme(Lt, r.b(), r.a()))),
        Min => (|r| r.extreme(Gt, r.a(), r.b()), Some(|r| r.extreme(Gt, r.b(), r.a()))),
        // PyTorch 2.15: nothing at the bound itself
        ClampMin => (|r| r.where_(Gt, r.a(), r.b()), None),
        ClampMax => (|r| r.where_(Lt, r.a(), r.b()), None),
        TruncDiv | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge => return Derivative::Ends,
    };
    Derivative::Of(vec![Some(a), b])
}

/// `1 / sqrt(1 - a * a)`.
fn arc_slope(r: &mut Rule) -> NodeId {
    let minus = r.neg(r.a());
    let (square, one) = (r.mul(minus, r.a()), r.number(1.0));
    let rest = r.two(BinaryOp::Add, square, one);
    r.one(UnaryOp::Rsqrt, rest)
}

/// Nothing for an exponent of 0, else `g * (b * a ** (b - 1))`.
fn power_of_base(r: &mut Rule) -> NodeId {
    let (zero, one) = (r.zero(), r.number(1.0));
    let less = r.two(BinaryOp::Sub, r.b(), one);
    let power = r.two(BinaryOp::Pow, r.a(), less);
    let slope = r.mul(r.b(), power);
    let part = r.times(slope);
    let constant = r.two(BinaryOp::Eq, r.b(), zero);
    r.choose(constant, zero, part)
}

/// Nothing for a base of 0 and no negative exponent, else `g * (a ** b * log(a))`.
fn power_of_exponent(r: &mut Rule) -> NodeId {
    let zero = r.zero();
    let log = r.one(UnaryOp::Log, r.a());
    let slope = r.mul(r.result, log);
    let part = r.times(slope);
    let (nothing, rising) = (r.two(BinaryOp::Eq, r.a(), zero), r.two(BinaryOp::Ge, r.b(), zero));
    let left_out = r.two(BinaryOp::And, nothing, rising);
    r.choose(left_out, zero, part)
}

/// `1 / (a * a + b * b)`, nothing at the origin.
fn reciprocal_square(r: &mut Rule) -> NodeId {
    let (a, b) = (r.mul(r.a(), r.a()), r.mul(r.b(), r.b()));
    let (sum, one, zero) = (r.two(BinaryOp::Add, a, b), r.number(1.0), r.zero());
    let (inverse, origin) = (r.div(one, sum), r.two(BinaryOp::Eq, sum, zero));
    r.choose(origin, zero, inverse)
}
