//! Element-wise functions of PyTorch by name.
//!
//! Invariant: names are PyTorch's; each stands for one operation of `python::tensors`. Must not know arguments.

use crate::ir::ops::UnaryOp;
use crate::ir::ops::rows::UnaryTraced;
use crate::python::tensors::{Binary, Unary};
use std::sync::LazyLock;

/// Functions of one tensor that are no operations of graphs.
const OWN_UNARY: &[(&str, Unary)] = &[
    ("neg", Unary::Neg),
    ("negative", Unary::Neg),
    ("abs", Unary::Abs),
    ("absolute", Unary::Abs),
    ("sign", Unary::Sign),
    ("sgn", Unary::Sign),
    ("square", Unary::Square),
    ("bitwise_not", Unary::BitwiseNot),
    ("logical_not", Unary::LogicalNot),
    ("frac", Unary::Frac),
    ("isnan", Unary::IsNan),
    ("isinf", Unary::IsInf),
    ("isfinite", Unary::IsFinite),
    ("isposinf", Unary::IsPosInf),
    ("isneginf", Unary::IsNegInf),
    ("signbit", Unary::SignBit),
    ("log10", Unary::Log10),
    ("reciprocal", Unary::Reciprocal),
    ("tan", Unary::Tan),
    ("atan", Unary::Atan),
    ("arctan", Unary::Atan),
    ("atanh", Unary::Atanh),
    ("logsigmoid", Unary::LogSigmoid),
    ("silu", Unary::Silu),
    ("gelu", Unary::Gelu),
    ("softplus", Unary::Softplus),
    ("relu", Unary::Relu),
    ("deg2rad", Unary::Deg2Rad),
    ("rad2deg", Unary::Rad2Deg),
    ("lgamma", Unary::Lgamma),
    ("gammaln", Unary::Lgamma),
    ("digamma", Unary::Digamma),
    ("psi", Unary::Digamma),
    ("erfinv", Unary::Erfinv),
    ("i0", Unary::I0),
    ("i0e", Unary::I0e),
    ("i1", Unary::I1),
    ("i1e", Unary::I1e),
    ("ndtr", Unary::Ndtr),
    ("entr", Unary::Entr),
];

/// Functions of two operands.
const BINARY: &[(&str, Binary)] = &[
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

/// Functions of one tensor: those above, and every operation of graphs that has a name of PyTorch.
static UNARY: LazyLock<Vec<(&str, Unary)>> = LazyLock::new(|| {
    let of_rows = UnaryOp::all().into_iter().flat_map(|op| {
        let (how, names) = op.row().torch.unwrap_or((UnaryTraced::Float, &[]));
        let made = match how {
            UnaryTraced::Float => Unary::Function(op),
            UnaryTraced::Rounding => Unary::Rounding(op),
        };
        names.iter().map(move |name| (*name, made))
    });
    OWN_UNARY.iter().copied().chain(of_rows).collect()
});

/// The function of one tensor of a name.
pub(super) fn unary(name: &str) -> Option<Unary> {
    UNARY.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
}

/// The function of two operands of a name.
pub(super) fn binary(name: &str) -> Option<Binary> {
    BINARY.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
}

/// Names that [`unary`] and [`binary`] know.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    UNARY.iter().map(|(name, _)| *name).chain(BINARY.iter().map(|(name, _)| *name))
}
