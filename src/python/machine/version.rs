//! `torch.__version__`: a text that compares as a version does, so that "2.15.0" is not below "2.5".
//!
//! Invariant: what is no version compares as text, as in PyTorch. Must not know branches.

use crate::python::syntax::Name;
use crate::python::syntax::ast::CmpOp;
use crate::python::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;

thread_local! {
    /// The version with whose values all of this was compared.
    static TORCH: Name = "2.15.0".into();
}

/// `torch.__version__`
pub(crate) fn torch_version() -> Value {
    TORCH.with(|version| Value::Str(version.clone()))
}

/// A comparison with `torch.__version__` itself; None for other texts, and for what is no version.
pub(super) fn compared(op: CmpOp, a: &Value, b: &Value) -> Option<bool> {
    let (Value::Str(a), Value::Str(b)) = (a, b) else { return None };
    TORCH.with(|version| Rc::ptr_eq(a, version) || Rc::ptr_eq(b, version)).then_some(())?;
    let (x, y) = (Version::of(a)?, Version::of(b)?);
    let order = x.order(&y);
    Some(match op {
        CmpOp::Lt => order.is_lt(),
        CmpOp::Le => order.is_le(),
        CmpOp::Gt => order.is_gt(),
        CmpOp::Ge => order.is_ge(),
        CmpOp::Eq => order.is_eq(),
        CmpOp::Ne => order.is_ne(),
        _ => return None,
    })
}

/// `2.5.0.dev20250101`, `2.15`, `2.5.0a0+git1`
struct Version {
    release: Vec<u64>,
    /// Below, at or above its release: `.dev`, `a`, `b` and `rc`, or `.post`.
    stage: Ordering,
}

impl Version {
    fn of(text: &str) -> Option<Version> {
        let text = text.trim().trim_start_matches('v').split('+').next()?;
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (release, stage) = text.split_at(end);
        let stage = match stage.trim_start_matches('.').trim_end_matches(|c: char| c.is_ascii_digit()) {
            "" => Ordering::Equal,
            "dev" | "a" | "b" | "rc" => Ordering::Less,
            "post" => Ordering::Greater,
            _ => return None,
        };
        let release = release.trim_end_matches('.').split('.').map(|n| n.parse().ok());
        Some(Version { release: release.collect::<Option<_>>()?, stage })
    }

    fn order(&self, other: &Version) -> Ordering {
        let parts = self.release.len().max(other.release.len());
        let part = |of: &Version, at: usize| of.release.get(at).copied().unwrap_or(0);
        let release = (0..parts).map(|at| part(self, at).cmp(&part(other, at))).find(|o| o.is_ne());
        release.unwrap_or_else(|| self.stage.cmp(&other.stage))
    }
}
