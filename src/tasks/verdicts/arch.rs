//! The architectures of GPUs that exist, by the compiler's names.
//!
//! Invariant: a name is accepted only if NVRTC 13 compiles for it, and not before Ampere. Must not know kernels.

use crate::base::Diagnostic;

/// From Ampere on, without suffix.
const NUMBERS: [u32; 11] = [80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// Errors: no GPU of ours has this architecture; the known ones are listed.
pub(super) fn check(name: &str) -> Result<(), Diagnostic> {
    if NUMBERS.iter().any(|number| is_named(*number, name)) {
        return Ok(());
    }
    let all: Vec<String> = NUMBERS.iter().map(|number| format!("sm_{number}")).collect();
    Err(Diagnostic::error("arch", format!("`{name}` is no known architecture"))
        .hint(format!("known ones: {}, with an `a` from sm_90 on", all.join(", "))))
}

/// `sm_89`, `sm_90a`, `sm_120f`
fn is_named(number: u32, name: &str) -> bool {
    match name.strip_prefix(&format!("sm_{number}")) {
        Some("") => true,
        Some("a") => number >= 90,
        Some("f") => number >= 100,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_architectures_that_exist_are_accepted() {
        for name in ["sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120f", "sm_121"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in ["sm_999", "hopper", "sm_75", "sm_9", "sm_901", "sm_80a", "sm_90f", "sm_90aa", "90a", ""] {
            let why = check(name).expect_err(name);
            assert_eq!(why.code, "arch");
            assert!(why.hint.is_some_and(|hint| hint.contains("sm_80, sm_86") && hint.contains("sm_121")), "{name}");
        }
    }
}
