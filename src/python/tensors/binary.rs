//! Element-wise functions of two or three operands, with broadcasting and promotion.
//!
//! Invariant: both operands are cast to the common dtype before the operation, float32 is computed in single precision,
//! halves in single precision and then rounded, integers wrap. Must not know Python's operators.

use super::elem::{from_bools, from_floats, from_ints, from_singles, singles as in_singles};
use super::error::{Budget, HostError, HostResult};
use super::promote::{Operand, Scalar, default_float, result_type};
use super::shape::{broadcast_shapes, broadcast_walk};
use super::strided::{Walk, finish};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::ir::ops::lanes::int_power;
use crate::ir::ops::{BinaryOp, Lanes2, Tests, Ty, compare, float_binary, int_binary, single_binary};

/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // PyTorch's names
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// True division; integers give floats.
    Div,
    FloorDiv,
    TruncDiv,
    Remainder,
    Fmod,
    Pow,
    Atan2,
    Hypot,
    LogAddExp,
    LogAddExp2,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    Min,
    Max,
    /// The smaller one; NaN only where both are.
    FMin,
    /// The larger one; NaN only where both are.
    FMax,
    Gcd,
    Lcm,
    CopySign,
}

/// `rounding_mode` of `torch.div`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Rounding {
    None,
    Floor,
    Trunc,
}

impl Rounding {
    /// Its kind of division.
    pub fn operation(self) -> Binary {
        match self {
            Rounding::None => Div,
            Rounding::Floor => FloorDiv,
            Rounding::Trunc => TruncDiv,
        }
    }
}

use Binary::*;

/// Applies `op` element by element.
pub fn binary(op: Binary, a: Operand, b: Operand, budget: &Budget) -> HostResult {
    let common = result_type(&[a.clone(), b.clone()]);
    refuse(op, &a, &b, common)?;
    match op {
        Pow => return pow(a, b, budget),
        LogicalAnd | LogicalOr | LogicalXor => return logical(op, a, b, budget),
        _ => {}
    }
    let floats_only = matches!(op, Div | Atan2 | Hypot | LogAddExp | LogAddExp2 | CopySign);
    let common = if floats_only && !common.is_float() { default_float() } else { common };
    let (a, b) = (Side::new(&a, common, op, budget)?, Side::new(&b, common, op, budget)?);
    let shape = broadcast_shapes(a.tensor.shape(), b.tensor.shape())?;
    match common {
        DType::F64 => doubles(op, &a.tensor, &b.tensor, &shape, budget),
        _ if common.is_float() => singles(op, &a, &b, &shape, common, budget),
        _ => integers(op, &a.tensor, &b.tensor, &shape, common, budget),
    }
}

/// `a + alpha * b`, or with `minus` `a - alpha * b`: of floats rounded once, as PyTorch's fused operation.
pub fn scaled_sum(a: Operand, b: Operand, alpha: Scalar, minus: bool, budget: &Budget) -> HostResult {
    let common = result_type(&[a.clone(), b.clone()]);
    if !common.is_float() {
        if matches!(alpha, Scalar::Float(_)) {
            return Err(HostError::new(
                "For integral input tensors, argument alpha must not be a floating point number.",
            ));
        }
        let scaled = binary(Mul, b, alpha.into(), budget)?;
        return binary(if minus { Sub } else { Add }, a, Operand::Tensor(&scaled), budget);
    }
    if matches!(common, DType::F16 | DType::BF16) {
        return Err(HostError::unsupported(format!("alpha= with {common} is not evaluated to its last bit"))
            .hint("write `a + alpha * b`, or compute in float32"));
    }
    refuse(if minus { Sub } else { Add }, &a, &b, common)?;
    let (a, b) = (a.cast(common, budget)?, b.cast(common, budget)?);
    let shape = broadcast_shapes(a.shape(), b.shape())?;
    let n = budget.charge(&shape, common)?;
    let (mut at, mut bt) = walks(&a, &b, &shape);
    let by = if minus { -alpha.as_f64() } else { alpha.as_f64() };
    let data = match common {
        DType::F64 => from_floats(common, n, |_| b.float_at(bt.next()).mul_add(by, a.float_at(at.next()))),
        _ => {
            let (x, y) = (in_singles(a.data()), in_singles(b.data()));
            from_singles(common, n, |_| y[bt.next()].mul_add(by as f32, x[at.next()]))
        }
    };
    finish(&shape, data)
}

/// An operand cast to the common dtype; numbers next to halves keep single precision in arithmetic, as in PyTorch.
struct Side {
    tensor: HostTensor,
}

impl Side {
    fn new(operand: &Operand, common: DType, op: Binary, budget: &Budget) -> HostResult<Side> {
        let arithmetic = matches!(op, Add | Sub | Mul | Div);
        let halves = matches!(common, DType::F16 | DType::BF16);
        let tensor = match operand {
            Operand::Scalar(s) if halves && arithmetic => s.tensor(DType::F32)?,
            Operand::Tensor(t) if halves && arithmetic && t.shape().is_empty() => operand.cast(DType::F32, budget)?,
            _ => operand.cast(common, budget)?,
        };
        Ok(Side { tensor })
    }
}

/// The combinations without a kernel in PyTorch.
fn refuse(op: Binary, a: &Operand, b: &Operand, common: DType) -> HostResult<()> {
    let is_bool = |o: &Operand| o.dtype() == DType::Bool;
    match op {
        Sub if common == DType::Bool => {
            let message = "Subtraction, the `-` operator, with two bool tensors is not supported.";
            Err(HostError::dtype(message).hint("use the `^` or `logical_xor()` operator instead"))
        }
        Sub if [a, b].iter().any(|o| is_bool(o)) => {
            let message = "Subtraction, the `-` operator, with a bool tensor is not supported.";
            Err(HostError::dtype(message).hint("to invert a mask use `~`; for 0 and 1, `.int()` first"))
        }
        And | Or | Xor if common.is_float() => {
            let name = format!("{op:?}").to_lowercase();
            let message = format!("\"bitwise_{name}_cpu\" not implemented for dtype {common}");
            Err(HostError::dtype(message).hint("compare first: `(x > 0) & (y > 0)`"))
        }
        Shl | Shr if common.is_float() || common == DType::Bool => {
            Err(HostError::dtype(format!("a shift is not implemented for dtype {common}")))
        }
        Gcd | Lcm if !common.is_int() => Err(HostError::dtype(format!("gcd is not implemented for dtype {common}"))),
        Pow if common == DType::Bool && matches!(b, Operand::Scalar(_)) => Ok(()),
        FloorDiv | TruncDiv | Remainder | Fmod | Pow if common == DType::Bool => {
            let message = format!("\"{}\" not implemented for dtype bool", format!("{op:?}").to_lowercase());
            Err(HostError::dtype(message).hint("`.int()` first"))
        }
        _ => Ok(()),
    }
}

/// What an element of an operation costs beside that of a result, in nanoseconds.
fn price(op: Binary) -> u64 {
    match op {
        // the greatest common divisor of neighbouring Fibonacci numbers takes 90 divisions
        Gcd | Lcm => 900,
        Atan2 | Hypot | LogAddExp | LogAddExp2 | FloorDiv | Remainder | Fmod => 50,
        _ => 12,
    }
}

/// The two offsets of each output element.
fn walks(a: &HostTensor, b: &HostTensor, shape: &[usize]) -> (Walk, Walk) {
    (broadcast_walk(a.shape(), shape), broadcast_walk(b.shape(), shape))
}

fn logical(op: Binary, a: Operand, b: Operand, budget: &Budget) -> HostResult {
    let (a, b) = (a.cast(a.dtype(), budget)?, b.cast(b.dtype(), budget)?);
    let shape = broadcast_shapes(a.shape(), b.shape())?;
    let n = budget.charge(&shape, DType::Bool)?;
    let (mut at, mut bt) = walks(&a, &b, &shape);
    let data = from_bools(n, |_| {
        let (x, y) = (a.float_at(at.next()) != 0.0, b.float_at(bt.next()) != 0.0);
        match op {
            LogicalAnd => x && y,
            LogicalOr => x || y,
            LogicalXor => x != y,
            other => unreachable!("{other:?} of truth values"),
        }
    });
    finish(&shape, data)
}

fn integers(op: Binary, a: &HostTensor, b: &HostTensor, shape: &[usize], common: DType, budget: &Budget) -> HostResult {
    let (mut at, mut bt) = walks(a, b, shape);
    let row = row(op).filter(|row| has_lane(*row, Ty::Int));
    let tests = row.is_some_and(BinaryOp::is_comparison);
    let n = budget.charge(shape, if tests { DType::Bool } else { common })?;
    budget.work_each(n, price(op))?;
    if matches!(op, FloorDiv | TruncDiv | Remainder | Fmod) && (0..b.numel()).any(|i| b.int_at(i) == 0) && n > 0 {
        return Err(HostError { code: "division-by-zero", message: "ZeroDivisionError".into(), hint: None });
    }
    let pairs = Pairs { dtype: common, n, a: || a.int_at(at.next()), b: || b.int_at(bt.next()) };
    let data = match (op, row) {
        (_, Some(row)) if tests => compare::<i64, _>(row, pairs),
        (_, Some(row)) => int_binary::<i64, _>(row, pairs),
        (Shl | Shr, None) => {
            let bits = common.size() as i64 * 8;
            <_ as Lanes2<i64>>::run(pairs, |x, by| shift(op, x, by, bits))
        }
        (_, None) => <_ as Lanes2<i64>>::run(pairs, int_function(op)),
    };
    finish(shape, data)
}

/// Amounts outside the width give 0, or all sign bits to the right; a uint8 has none.
fn shift(op: Binary, x: i64, by: i64, bits: i64) -> i64 {
    let outside = by < 0 || by >= bits;
    match op {
        Shl if outside => 0,
        Shl => x.wrapping_shl(by as u32),
        Shr if outside => x >> 63,
        Shr => x >> by,
        other => unreachable!("{other:?} is no shift"),
    }
}

/// The graph's operation that is this one of elements; None where PyTorch's tensors do something else.
fn row(op: Binary) -> Option<BinaryOp> {
    Some(match op {
        Add => BinaryOp::Add,
        Sub => BinaryOp::Sub,
        Mul => BinaryOp::Mul,
        Div => BinaryOp::Div,
        FloorDiv => BinaryOp::FloorDiv,
        TruncDiv => BinaryOp::TruncDiv,
        Remainder => BinaryOp::Mod,
        Fmod => BinaryOp::Fmod,
        Atan2 => BinaryOp::Atan2,
        And => BinaryOp::And,
        Or => BinaryOp::Or,
        Xor => BinaryOp::Xor,
        Eq => BinaryOp::Eq,
        Ne => BinaryOp::Ne,
        Lt => BinaryOp::Lt,
        Le => BinaryOp::Le,
        Gt => BinaryOp::Gt,
        Ge => BinaryOp::Ge,
        Min => BinaryOp::Min,
        Max => BinaryOp::Max,
        // shifts know the width of the dtype, powers some exponents, and these are no operations of graphs
        Shl | Shr | Pow | Hypot | LogAddExp | LogAddExp2 | LogicalAnd | LogicalOr | LogicalXor | FMin | FMax | Gcd
        | Lcm | CopySign => return None,
    })
}

/// Whether a row has a lane of elements of this type.
fn has_lane(op: BinaryOp, ty: Ty) -> bool {
    op.row().typed.of(ty).is_some()
}

/// Two operands, element by element: the input of a row's lane.
struct Pairs<A, B> {
    dtype: DType,
    n: usize,
    a: A,
    b: B,
}

impl<A: FnMut() -> i64, B: FnMut() -> i64> Lanes2<i64> for Pairs<A, B> {
    type Out = Data;
    fn run(mut self, f: impl Fn(i64, i64) -> i64) -> Data {
        from_ints(self.dtype, self.n, |_| f((self.a)(), (self.b)()))
    }
}

impl<A: FnMut() -> f64, B: FnMut() -> f64> Lanes2<f64> for Pairs<A, B> {
    type Out = Data;
    fn run(mut self, f: impl Fn(f64, f64) -> f64) -> Data {
        from_floats(self.dtype, self.n, |_| f((self.a)(), (self.b)()))
    }
}

impl<A: FnMut() -> f32, B: FnMut() -> f32> Lanes2<f32> for Pairs<A, B> {
    type Out = Data;
    fn run(mut self, f: impl Fn(f32, f32) -> f32) -> Data {
        from_singles(self.dtype, self.n, |_| f((self.a)(), (self.b)()))
    }
}

impl<T, A: FnMut() -> T, B: FnMut() -> T> Tests<T> for Pairs<A, B> {
    type Out = Data;
    fn run(mut self, f: impl Fn(T, T) -> bool) -> Data {
        from_bools(self.n, |_| f((self.a)(), (self.b)()))
    }
}

/// The functions of ints that no row is.
fn int_function(op: Binary) -> fn(i64, i64) -> i64 {
    match op {
        FMin => i64::min,
        FMax => i64::max,
        Gcd => gcd,
        Lcm => |x, y| {
            let g = gcd(x, y);
            if g == 0 { 0 } else { (x / g).wrapping_mul(y).wrapping_abs() }
        },
        other => unreachable!("{other:?} of ints"),
    }
}

fn gcd(x: i64, y: i64) -> i64 {
    let (mut x, mut y) = (x.wrapping_abs(), y.wrapping_abs());
    while y != 0 {
        (x, y) = (y, x.wrapping_rem(y));
    }
    x
}

/// The functions of floats that no row is, in both precisions.
macro_rules! float_functions {
    ($name:ident, $t:ident) => {
        fn $name(op: Binary) -> fn($t, $t) -> $t {
            match op {
                TruncDiv => |x, y| (x / y).trunc(),
                Hypot => |x, y| f64::from(x).hypot(f64::from(y)) as $t,
                CopySign => |x, y| x.copysign(y),
                LogAddExp => |x, y| {
                    let (x, y) = (f64::from(x), f64::from(y));
                    if x == y && x.is_infinite() {
                        return x as $t;
                    }
                    if x.is_nan() || y.is_nan() {
                        return $t::NAN;
                    }
                    (x.max(y) + (-(x - y).abs()).exp().ln_1p()) as $t
                },
                LogAddExp2 => |x, y| super::special::logaddexp2(f64::from(x), f64::from(y)) as $t,
                FMin => |x, y| if x.is_nan() || y < x { y } else { x },
                FMax => |x, y| if x.is_nan() || y > x { y } else { x },
                other => unreachable!("{other:?} of floats"),
            }
        }
    };
}
float_functions!(double_function, f64);
float_functions!(single_function, f32);

fn doubles(op: Binary, a: &HostTensor, b: &HostTensor, shape: &[usize], budget: &Budget) -> HostResult {
    let (mut at, mut bt) = walks(a, b, shape);
    let row = row(op).filter(|row| has_lane(*row, Ty::Double));
    let tests = row.is_some_and(BinaryOp::is_comparison);
    let n = budget.charge(shape, if tests { DType::Bool } else { DType::F64 })?;
    budget.work_each(n, price(op))?;
    let pairs = Pairs { dtype: DType::F64, n, a: || a.float_at(at.next()), b: || b.float_at(bt.next()) };
    let data = match row {
        Some(row) if tests => compare::<f64, _>(row, pairs),
        Some(row) => float_binary::<f64, _>(row, pairs),
        None => <_ as Lanes2<f64>>::run(pairs, double_function(op)),
    };
    finish(shape, data)
}

fn singles(op: Binary, a: &Side, b: &Side, shape: &[usize], common: DType, budget: &Budget) -> HostResult {
    let (mut at, mut bt) = walks(&a.tensor, &b.tensor, shape);
    let (x, y) = (in_singles(a.tensor.data()), in_singles(b.tensor.data()));
    let row = row(op).filter(|row| has_lane(*row, Ty::Float));
    let tests = row.is_some_and(BinaryOp::is_comparison);
    let n = budget.charge(shape, if tests { DType::Bool } else { common })?;
    budget.work_each(n, price(op))?;
    let pairs = Pairs { dtype: common, n, a: || x[at.next()], b: || y[bt.next()] };
    let data = match row {
        Some(row) if tests => compare::<f32, _>(row, pairs),
        Some(row) => single_binary(row, pairs),
        None => <_ as Lanes2<f32>>::run(pairs, single_function(op)),
    };
    finish(shape, data)
}

/// `a ** b`. Errors for integers to a negative Python integer.
pub fn pow(a: Operand, b: Operand, budget: &Budget) -> HostResult {
    let common = result_type(&[a.clone(), b.clone()]);
    if let (false, Operand::Scalar(Scalar::Int(e))) = (common.is_float(), &b)
        && *e < 0
    {
        let message = "Integers to negative integer powers are not allowed.";
        return Err(HostError::dtype(message).hint("make the base a float: `x.float()`, `2.0`"));
    }
    let exponent = match &b {
        Operand::Scalar(s) => Some(s.as_f64()),
        Operand::Tensor(_) => None,
    };
    let (x, y) = (a.cast(common, budget)?, b.cast(common, budget)?);
    let shape = broadcast_shapes(x.shape(), y.shape())?;
    let n = budget.charge(&shape, common)?;
    budget.work_each(n, 50)?;
    let (mut at, mut bt) = walks(&x, &y, &shape);
    let data = match common {
        DType::F64 => from_floats(common, n, |_| power(x.float_at(at.next()), y.float_at(bt.next()), exponent)),
        _ if common.is_float() => {
            let (x, y) = (in_singles(x.data()), in_singles(y.data()));
            from_singles(common, n, |_| single_power(x[at.next()], y[bt.next()], exponent))
        }
        _ => from_ints(common, n, |_| int_power(x.int_at(at.next()), y.int_at(bt.next()))),
    };
    finish(&shape, data)
}

fn power(x: f64, y: f64, exponent: Option<f64>) -> f64 {
    match exponent {
        Some(2.0) => x * x,
        Some(3.0) => x * x * x,
        Some(0.5) => x.sqrt(),
        Some(-0.5) => 1.0 / x.sqrt(),
        Some(-1.0) => 1.0 / x,
        Some(-2.0) => 1.0 / (x * x),
        _ => x.powf(y),
    }
}

fn single_power(x: f32, y: f32, exponent: Option<f64>) -> f32 {
    match exponent {
        Some(2.0) => x * x,
        Some(3.0) => x * x * x,
        Some(0.5) => x.sqrt(),
        Some(-0.5) => 1.0 / x.sqrt(),
        Some(-1.0) => 1.0 / x,
        Some(-2.0) => 1.0 / (x * x),
        _ => f64::from(x).powf(f64::from(y)) as f32,
    }
}

/// `torch.where(condition, a, b)`.
pub fn where_(condition: &HostTensor, a: Operand, b: Operand, budget: &Budget) -> HostResult {
    if !matches!(condition.dtype(), DType::Bool | DType::U8) {
        let message = format!(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            condition.dtype()
        );
        return Err(HostError::dtype(message).hint("compare: `torch.where(x != 0, ...)`"));
    }
    let common = result_type(&[a.clone(), b.clone()]);
    let (a, b) = (a.cast(common, budget)?, b.cast(common, budget)?);
    let shape = broadcast_shapes(&broadcast_shapes(condition.shape(), a.shape())?, b.shape())?;
    let n = budget.charge(&shape, common)?;
    let mut ct = broadcast_walk(condition.shape(), &shape);
    let (mut at, mut bt) = walks(&a, &b, &shape);
    let data = if common.is_float() {
        from_floats(common, n, |_| {
            let (c, x, y) = (ct.next(), at.next(), bt.next());
            if condition.int_at(c) != 0 { a.float_at(x) } else { b.float_at(y) }
        })
    } else {
        from_ints(common, n, |_| {
            let (c, x, y) = (ct.next(), at.next(), bt.next());
            if condition.int_at(c) != 0 { a.int_at(x) } else { b.int_at(y) }
        })
    };
    finish(&shape, data)
}

/// `torch.clamp`: bounds broadcast; if they cross, the upper one wins; NaN stays.
pub fn clamp(t: &HostTensor, low: Option<Operand>, high: Option<Operand>, budget: &Budget) -> HostResult {
    if low.is_none() && high.is_none() {
        return Err(HostError::new("torch.clamp: At least one of 'min' or 'max' must not be None"));
    }
    let operands: Vec<Operand> = [Some(Operand::Tensor(t)), low.clone(), high.clone()].into_iter().flatten().collect();
    let common = result_type(&operands);
    if common == DType::Bool {
        return Err(HostError::dtype("clamp is not implemented for dtype bool"));
    }
    let mut out = super::cast(t, common, budget)?;
    for (op, bound) in [(Max, low), (Min, high)] {
        let Some(bound) = bound else { continue };
        // a number that the dtype does not hold bounds nothing on its side, and is an error on the other
        if let Operand::Scalar(number @ Scalar::Int(x)) = bound
            && common.is_int()
            && (!number.fits(common) || (common == DType::U8 && x < 0))
        {
            if (op == Max) == (x < 0) {
                continue;
            }
            let which = if op == Max { "min" } else { "max" };
            let message = format!("Clamp {which} value {x} is outside the representable range of {common}");
            return Err(HostError::new(message));
        }
        let bound = bound.cast(common, budget)?;
        out = binary(op, Operand::Tensor(&out), Operand::Tensor(&bound), budget)?;
    }
    Ok(out)
}
