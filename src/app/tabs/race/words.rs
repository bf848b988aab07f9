//! Arithmetic in words.
//!
//! Invariant: a unit is given. Must not know what is counted.

/// `1.25 TFLOP/s`, `310 GFLOP`.
pub(super) fn flops(flop: f64, unit: &str) -> String {
    match flop {
        f if f >= 1e14 => format!("{:.0} T{unit}", f / 1e12),
        f if f >= 1e12 => format!("{:.2} T{unit}", f / 1e12),
        f if f >= 1e9 => format!("{:.1} G{unit}", f / 1e9),
        f => format!("{:.1} M{unit}", f / 1e6),
    }
}
