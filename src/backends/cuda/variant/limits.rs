//! A device's limits for kernels, and the usual limits of an architecture's devices.
//!
//! Invariant: plain numbers, the same for an actual device and for a compilation target. Must not know variants of
//! kernels.

use super::arch::{Arch, Card};
use crate::base::Diagnostic;

/// The limits of a device (or of an architecture, without a device) for a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Compute capability, major.
    pub major: u32,
    /// Compute capability, minor.
    pub minor: u32,
    /// Largest dynamic shared memory of one block after opting in, bytes.
    pub shared_per_block: usize,
    /// Shared memory of a multiprocessor, bytes.
    pub shared_per_sm: usize,
    /// Multiprocessors.
    pub multiprocessors: usize,
    /// L2 cache, bytes.
    pub l2_bytes: usize,
    /// The architecture whose kernels may be chosen: the device's own, but in experiments.
    pub arch: Arch,
}

impl Limits {
    /// The usual limits of a compute capability, for compiling without the device. None before 8.0.
    pub fn of_capability(major: u32, minor: u32) -> Option<Limits> {
        let arch = Arch::of_capability(major, minor)?;
        let Card { shared_kb, multiprocessors, l2_mb } = arch.usual_card();
        Some(Limits {
            major,
            minor,
            // the system keeps 1 KB a block
            shared_per_block: (shared_kb - 1) << 10,
            shared_per_sm: shared_kb << 10,
            multiprocessors,
            l2_bytes: l2_mb << 20,
            arch,
        })
    }

    /// The limits behind `sm_80`, `sm_90a`, ...; None when it is no architecture of ours.
    pub fn of_arch(arch: &str) -> Option<Limits> {
        let digits = arch.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
        let number: u32 = digits.parse().ok()?;
        Limits::of_capability(number / 10, number % 10)
    }

    /// The usual limits of a named architecture, and its name for the compiler: Hopper's kernels need the `a` that
    /// `sm_90` lacks. Errors: the kernels do not support it.
    pub fn named(arch: &str) -> Result<(Limits, String), Diagnostic> {
        let limits = Self::of_arch(arch).ok_or_else(|| {
            Diagnostic::error("arch", format!("the kernels do not support the architecture `{arch}`"))
                .hint("sm_80, sm_86, sm_89, sm_90a, sm_100 or sm_120")
        })?;
        let own = limits.arch();
        let name = if own.strip_suffix('a') == Some(arch) { own } else { arch.to_string() };
        Ok((limits, name))
    }

    /// The architecture to compile for: Hopper's own instructions need the `a`.
    pub fn arch(&self) -> String {
        // the device's own suffix, whichever kernels are wanted
        let suffix = Arch::of_capability(self.major, self.minor).map_or("", Arch::suffix);
        format!("sm_{}{}{suffix}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::variant::limits::*;

    #[test]
    fn architectures_are_named_as_the_compiler_wants_them() {
        let name = |arch| Limits::named(arch).map(|(limits, name)| (limits.arch, name)).map_err(|d| d.code);
        for (given, arch, wanted) in [
            ("sm_90", Arch::Sm90, "sm_90a"),
            ("sm_90a", Arch::Sm90, "sm_90a"),
            ("sm_80", Arch::Sm80, "sm_80"),
            ("sm_86", Arch::Sm89, "sm_86"),
            ("sm_100", Arch::Sm100, "sm_100"),
            ("sm_120a", Arch::Sm120, "sm_120a"),
        ] {
            assert_eq!(name(given), Ok((arch, wanted.to_string())));
        }
        for given in ["sm_70", "90", "sm_", "compute_90", ""] {
            assert_eq!(name(given), Err("arch".into()), "{given}");
        }
    }

    #[test]
    fn architectures_before_ampere_are_unknown() {
        assert_eq!(Limits::of_arch("sm_75"), None);
        assert_eq!(Limits::of_arch("sm_90a").unwrap().arch(), "sm_90a");
    }
}
