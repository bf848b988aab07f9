//! An annotation as text.
//!
//! Invariant: reads only the tree. Must not know what a type means.

use super::ast::{BinOp, Expr, ExprKind};

/// An annotation as text: `torch.Tensor`, `int | None`, whether it is quoted or not.
pub(crate) fn annotation_text(e: &Expr) -> Option<String> {
    Some(match &e.kind {
        ExprKind::Name(name) => name.to_string(),
        ExprKind::Str(text) => text.to_string(),
        ExprKind::None => "None".into(),
        ExprKind::Attribute(object, name) => format!("{}.{name}", annotation_text(object)?),
        ExprKind::Subscript(base, index) => {
            format!("{}[{}]", annotation_text(base)?, annotation_text(index).unwrap_or_default())
        }
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            items.iter().map(|i| annotation_text(i).unwrap_or_default()).collect::<Vec<_>>().join(", ")
        }
        ExprKind::Binary(BinOp::Or, a, b) => format!("{} | {}", annotation_text(a)?, annotation_text(b)?),
        ExprKind::Ellipsis => "...".into(),
        _ => return None,
    })
}
