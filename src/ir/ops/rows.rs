//! The fields of an operation's row.
//!
//! Invariant: plain data, so that printing, intervals, costs and emission are tables over it; an operation that needs
//! code is named here, and its code is next to its reader. Must not know graphs, boxes or devices.

use super::types::Ty;

/// Which types an operation takes (of two operands, both the same) and gives.
#[derive(Clone, Copy, Debug)]
pub enum Typed {
    /// One of these, and gives the same.
    Keeps(&'static [Ty]),
    /// One of these, and gives the first.
    To(Ty, &'static [Ty]),
    /// Ints for int dtypes and floats for float dtypes, and gives the same.
    Stored,
}

impl Typed {
    /// The result's type for operands of type `a`; None if the operation does not support them. [`Typed::Stored`]
    /// accepts any number.
    pub fn of(self, a: Ty) -> Option<Ty> {
        match self {
            Typed::Keeps(takes) => takes.contains(&a).then_some(a),
            Typed::To(gives, takes) => takes.contains(&a).then_some(gives),
            Typed::Stored => matches!(a, Ty::Int | Ty::Float).then_some(a),
        }
    }
}

/// PyTorch's possible last bits of a float32 result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastBit {
    /// One correct rounding at most, everywhere.
    Same,
    /// Several correct roundings, or one to another format: the same everywhere, but not the exact value's nearest.
    Composed,
    /// Its vector libraries err by a unit in the last place, and so do GPUs.
    Library,
}

/// The range of a unary result, from the operand's range.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the names of the operations
pub enum UnaryRange {
    /// `-x`
    Negated,
    /// `|x|`
    Size,
    /// Logical or bitwise not.
    Inverted,
    /// A function that never falls, from a library, so that the ends are widened; and its bounds.
    Rising(fn(f64) -> f64, (f64, f64)),
    /// The same, but in float32 only the bounds hold: it is composed of several roundings.
    RisingInDouble(fn(f64) -> f64, (f64, f64)),
    /// A function that never falls and gives its ends exactly.
    Step(fn(f64) -> f64),
    /// Between bounds for any operand; NaN if the operand may be NaN.
    Within(f64, f64),
    /// The same, and NaN anywhere.
    WithinOrNan(f64, f64),
    /// To float32, float64, int64, int32 by way of int64, bool.
    ToFloat,
    ToDouble,
    ToInt,
    ToInt32,
    ToBool,
    /// The range of a narrower dtype.
    Stored,
}

/// The range of a binary result; each is a rule of ints, of floats or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names of the operations
pub enum BinaryRange {
    Sum,
    Difference,
    Product,
    Quotient,
    FloorQuotient,
    TruncQuotient,
    Modulo,
    Remainder,
    Least,
    Greatest,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// Anything of the type.
    Unknown,
}

/// Python's precedence levels, from loose to tight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names of the operations
pub enum Tight {
    Any,
    Compare,
    Or,
    Xor,
    And,
    Shift,
    Sum,
    Product,
    Sign,
    Power,
    Atom,
}

/// How Python text writes an operation on one operand.
#[derive(Clone, Copy, Debug)]
pub enum UnaryText {
    /// `-x`
    Sign(&'static str),
    /// `torch.name(x)`
    Function(&'static str),
    /// `x.name()`
    Method(&'static str),
    /// A cast, which the printer writes by dtypes.
    Cast,
}

/// How Python text writes an operation on two operands.
#[derive(Clone, Copy, Debug)]
pub enum BinaryText {
    /// `a + b`
    Infix(&'static str, Tight),
    /// `torch.name(a, b)`; whether the second may be a plain number, as the first never may.
    Function(&'static str, bool),
    /// `x.clamp(side=n)` with a number, `torch.name(a, b)` of tensors.
    Bound(&'static str, &'static str),
    /// `a.clamp(side=b)` of any operands.
    Clamp(&'static str),
    /// `torch.div(a, b, rounding_mode="trunc")`
    TruncDiv,
}

/// How CUDA text writes an operation on one operand.
#[derive(Clone, Copy, Debug)]
pub enum UnaryCuda {
    /// `-x`, of every type.
    Sign(&'static str),
    /// A function of floats; of doubles it has the same name without the last f.
    Library(&'static str),
    /// The same, and its replacement if the special-function unit is allowed.
    OrFast(&'static str, &'static str),
    /// By hand in the emitter: it depends on the type or on how closely it is computed.
    Own,
}

/// How CUDA text writes an operation on two operands.
#[derive(Clone, Copy, Debug)]
pub enum BinaryCuda {
    /// The sign if the compiler may fuse, otherwise the function that rounds: of floats, of doubles.
    Rounded(&'static str, &'static str, &'static str),
    /// A function: of ints, of floats, of doubles.
    Call(&'static str, &'static str, &'static str),
    /// The sign, of every type.
    Infix(&'static str),
    /// The sign of bools, and that of ints.
    Logic(&'static str, &'static str),
}

/// How the tracer takes the functions of PyTorch that mean an operation on one operand.
#[derive(Clone, Copy, Debug)]
pub enum UnaryTraced {
    /// Ints become float32.
    Float,
    /// Ints stay as they are.
    Rounding,
}

/// How the tracer takes the functions of PyTorch that mean an operation on two operands.
#[derive(Clone, Copy, Debug)]
pub enum BinaryTraced {
    /// As Python's operator of that meaning.
    Operator,
    /// Operands are promoted, to ints at least.
    Numbers,
    /// Operands are promoted, to floats at least.
    Floats,
    /// A comparison.
    Compared,
    /// For truth values.
    Logical,
}

/// One operation on one operand.
#[derive(Clone, Copy, Debug)]
pub struct UnaryRow {
    /// In graphs that are written as text.
    pub name: &'static str,
    /// The types of its argument and of its result.
    pub typed: Typed,
    /// How its result's interval follows from its argument's.
    pub range: UnaryRange,
    /// Instructions, roughly.
    pub cost: u32,
    /// Its text in PyTorch.
    pub python: UnaryText,
    /// Its text in a kernel.
    pub cuda: UnaryCuda,
    /// Whether its last bit may differ between libraries.
    pub last_bit: LastBit,
    /// Whether PyTorch's vectorised kernels may round it otherwise on another processor.
    pub rough: bool,
    /// Whether random graphs draw it as a function of floats.
    pub drawn: bool,
    /// PyTorch's names of it, as functions and methods.
    pub torch: Option<(UnaryTraced, &'static [&'static str])>,
    /// Whether Python's `math` has it under its name.
    pub math: bool,
}

impl UnaryRow {
    /// A function of floats that PyTorch and CUDA take from their libraries under one name.
    pub const fn function(
        name: &'static str,
        cuda: UnaryCuda,
        torch: &'static [&'static str],
        range: UnaryRange,
    ) -> Self {
        UnaryRow {
            name,
            typed: Typed::Keeps(FLOATS),
            range,
            cost: 8,
            python: UnaryText::Function(name),
            cuda,
            last_bit: LastBit::Library,
            rough: true,
            drawn: true,
            torch: Some((UnaryTraced::Float, torch)),
            math: true,
        }
    }

    /// Floor and its like.
    pub const fn rounding(
        name: &'static str,
        cuda: &'static str,
        torch: &'static [&'static str],
        step: fn(f64) -> f64,
    ) -> Self {
        UnaryRow {
            cost: 1,
            last_bit: LastBit::Same,
            rough: false,
            torch: Some((UnaryTraced::Rounding, torch)),
            ..UnaryRow::function(name, UnaryCuda::Library(cuda), torch, UnaryRange::Step(step))
        }
    }

    /// A change of type.
    pub const fn cast(name: &'static str, typed: Typed, range: UnaryRange, last_bit: LastBit) -> Self {
        UnaryRow {
            name,
            typed,
            range,
            cost: 1,
            python: UnaryText::Cast,
            cuda: UnaryCuda::Own,
            last_bit,
            rough: false,
            drawn: false,
            torch: None,
            math: false,
        }
    }
}

/// One operation on two operands.
#[derive(Clone, Copy, Debug)]
pub struct BinaryRow {
    /// In graphs that are written as text.
    pub name: &'static str,
    /// The types of its arguments and of its result.
    pub typed: Typed,
    /// How its result's interval follows from its arguments'.
    pub range: BinaryRange,
    /// Instructions, roughly; of ints by a power of two it is one where `divides`.
    pub cost: u32,
    /// Whether its second argument is a divisor.
    pub divides: bool,
    /// Its text in PyTorch.
    pub python: BinaryText,
    /// Its text in a kernel.
    pub cuda: BinaryCuda,
    /// Whether its last bit may differ between libraries.
    pub last_bit: LastBit,
    /// Whether operands may be swapped.
    pub commutes: bool,
    /// Whether random graphs that need not be portable draw it of any two ints.
    pub drawn_of_ints: bool,
    /// The same of floats.
    pub drawn_of_floats: bool,
    /// PyTorch's names of it, as functions and methods.
    pub torch: &'static [(BinaryTraced, &'static [&'static str])],
}

impl BinaryRow {
    /// An operator of Python.
    pub const fn infix(
        name: &'static str,
        sign: (&'static str, Tight),
        typed: Typed,
        range: BinaryRange,
        cuda: BinaryCuda,
        torch: &'static [(BinaryTraced, &'static [&'static str])],
    ) -> Self {
        BinaryRow {
            name,
            typed,
            range,
            cost: 1,
            divides: false,
            python: BinaryText::Infix(sign.0, sign.1),
            cuda,
            last_bit: LastBit::Same,
            commutes: false,
            drawn_of_ints: false,
            drawn_of_floats: false,
            torch,
        }
    }

    /// A comparison.
    pub const fn comparison(
        name: &'static str,
        sign: &'static str,
        takes: &'static [Ty],
        range: BinaryRange,
        torch: &'static [(BinaryTraced, &'static [&'static str])],
    ) -> Self {
        let cuda = BinaryCuda::Infix(sign);
        BinaryRow::infix(name, (sign, Tight::Compare), Typed::To(Ty::Bool, takes), range, cuda, torch)
    }
}

/// Both precisions.
pub const FLOATS: &[Ty] = &[Ty::Float, Ty::Double];
/// What has a sign and can be added.
pub const NUMBERS: &[Ty] = &[Ty::Int, Ty::Float, Ty::Double];
/// Ints alone.
pub const INTS: &[Ty] = &[Ty::Int];
/// What has bits.
pub const BITS: &[Ty] = &[Ty::Bool, Ty::Int];
/// Every type.
pub const ANY: &[Ty] = &[Ty::Bool, Ty::Int, Ty::Float, Ty::Double];
