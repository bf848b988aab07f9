//! Element-wise functions of PyTorch by name.
//!
//! Invariant: names are PyTorch's; each stands for one operation of `python::tensors`. Must not know arguments.

use crate::python::tensors::{Binary, Unary};

/// Functions of one tensor.
pub(super) const UNARY: &[(&str, Unary)] = &[
    ("neg", Unary::Neg),
    ("negative", Unary::Neg),
    ("abs", Unary::Abs),
    ("absolute", Unary::Abs),
    ("sign", Unary::Sign),
    ("sgn", Unary::Sign),
    ("square", Unary::Square),
    ("bitwise_not", Unary::BitwiseNot),
    ("logical_not", Unary::LogicalNot),
    ("floor", Unary::Floor),
    ("ceil", Unary::Ceil),
    ("trunc", Unary::Trunc),
    ("fix", Unary::Trunc),
    ("frac", Unary::Frac),
    ("isnan", Unary::IsNan),
    ("isinf", Unary::IsInf),
    ("isfinite", Unary::IsFinite),
    ("isposinf", Unary::IsPosInf),
    ("isneginf", Unary::IsNegInf),
    ("signbit", Unary::SignBit),
    ("exp", Unary::Exp),
    ("exp2", Unary::Exp2),
    ("expm1", Unary::Expm1),
    ("log", Unary::Log),
    ("log2", Unary::Log2),
    ("log10", Unary::Log10),
    ("log1p", Unary::Log1p),
    ("sqrt", Unary::Sqrt),
    ("rsqrt", Unary::Rsqrt),
    ("reciprocal", Unary::Reciprocal),
    ("sin", Unary::Sin),
    ("cos", Unary::Cos),
    ("tan", Unary::Tan),
    ("asin", Unary::Asin),
    ("arcsin", Unary::Asin),
    ("acos", Unary::Acos),
    ("arccos", Unary::Acos),
    ("atan", Unary::Atan),
    ("arctan", Unary::Atan),
    ("sinh", Unary::Sinh),
    ("cosh", Unary::Cosh),
    ("tanh", Unary::Tanh),
    ("asinh", Unary::Asinh),
    ("acosh", Unary::Acosh),
    ("atanh", Unary::Atanh),
    ("sigmoid", Unary::Sigmoid),
    ("expit", Unary::Sigmoid),
    ("logsigmoid", Unary::LogSigmoid),
    ("silu", Unary::Silu),
    ("gelu", Unary::Gelu),
    ("softplus", Unary::Softplus),
    ("erf", Unary::Erf),
    ("relu", Unary::Relu),
    ("deg2rad", Unary::Deg2Rad),
    ("rad2deg", Unary::Rad2Deg),
    ("lgamma", Unary::Lgamma),
    ("gammaln", Unary::Lgamma),
    ("digamma", Unary::Digamma),
    ("psi", Unary::Digamma),
    ("erfc", Unary::Erfc),
    ("erfinv", Unary::Erfinv),
    ("i0", Unary::I0),
    ("i0e", Unary::I0e),
    ("i1", Unary::I1),
    ("i1e", Unary::I1e),
    ("ndtr", Unary::Ndtr),
    ("entr", Unary::Entr),
];

/// Functions of two operands.
pub(super) const BINARY: &[(&str, Binary)] = &[
    ("mul", Binary::Mul),
    ("multiply", Binary::Mul),
    ("true_divide", Binary::Div),
    ("floor_divide", Binary::FloorDiv),
    ("remainder", Binary::Remainder),
    ("fmod", Binary::Fmod),
    ("pow", Binary::Pow),
    ("float_power", Binary::Pow),
    ("atan2", Binary::Atan2),
    ("arctan2", Binary::Atan2),
    ("hypot", Binary::Hypot),
    ("logaddexp", Binary::LogAddExp),
    ("logaddexp2", Binary::LogAddExp2),
    ("copysign", Binary::CopySign),
    ("bitwise_and", Binary::And),
    ("bitwise_or", Binary::Or),
    ("bitwise_xor", Binary::Xor),
    ("bitwise_left_shift", Binary::Shl),
    ("bitwise_right_shift", Binary::Shr),
    ("eq", Binary::Eq),
    ("ne", Binary::Ne),
    ("not_equal", Binary::Ne),
    ("lt", Binary::Lt),
    ("less", Binary::Lt),
    ("le", Binary::Le),
    ("less_equal", Binary::Le),
    ("gt", Binary::Gt),
    ("greater", Binary::Gt),
    ("ge", Binary::Ge),
    ("greater_equal", Binary::Ge),
    ("logical_and", Binary::LogicalAnd),
    ("logical_or", Binary::LogicalOr),
    ("logical_xor", Binary::LogicalXor),
    ("minimum", Binary::Min),
    ("maximum", Binary::Max),
    ("fmin", Binary::FMin),
    ("fmax", Binary::FMax),
    ("gcd", Binary::Gcd),
    ("lcm", Binary::Lcm),
];

/// The function of one tensor of a name.
pub(super) fn unary(name: &str) -> Option<Unary> {
    UNARY.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
}

/// The function of two operands of a name.
pub(super) fn binary(name: &str) -> Option<Binary> {
    BINARY.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
}

/// Names of [`UNARY`].
pub(super) const UNARY_NAMES: [&str; UNARY.len()] = {
    let mut out = [""; UNARY.len()];
    let mut i = 0;
    while i < out.len() {
        out[i] = UNARY[i].0;
        i += 1;
    }
    out
};

/// Names of [`BINARY`].
pub(super) const BINARY_NAMES: [&str; BINARY.len()] = {
    let mut out = [""; BINARY.len()];
    let mut i = 0;
    while i < out.len() {
        out[i] = BINARY[i].0;
        i += 1;
    }
    out
};

/// How many names some tables have together.
pub(super) const fn total(tables: &[&[&str]]) -> usize {
    let (mut sum, mut i) = (0, 0);
    while i < tables.len() {
        sum += tables[i].len();
        i += 1;
    }
    sum
}

/// The names of some tables one after the other.
pub(super) const fn joined<const N: usize>(tables: &[&'static [&'static str]]) -> [&'static str; N] {
    let mut out = [""; N];
    let (mut at, mut table) = (0, 0);
    while table < tables.len() {
        let mut i = 0;
        while i < tables[table].len() {
            out[at] = tables[table][i];
            at += 1;
            i += 1;
        }
        table += 1;
    }
    out
}
