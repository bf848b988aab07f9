//! The architectures that the kernels know: what each brings, and its usual card.
//!
//! Invariant: every question about an architecture is a match without a catch-all, so that a new one is asked about at
//! each place. Must not know kernels' variants or devices.

/// A generation of GPUs, as far as kernels differ between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// Ampere's data-centre cards and Jetson Orin: 164 KB of shared memory.
    Sm80,
    /// Ampere's and Ada's other cards (8.6, 8.9): 100 KB of shared memory.
    Sm89,
    /// Hopper: tensor copies and warpgroup products.
    Sm90,
    /// Blackwell's data-centre cards. Its own tensor instructions are not used.
    Sm100,
    /// Blackwell's other cards: 100 KB of shared memory.
    Sm120,
}

/// The names that every kernel is compiled for in tests: at least one of each architecture, and of each amount of shared memory.
#[cfg(test)]
pub(crate) const NAMES: [&str; 6] = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"];

/// What an architecture's usual card has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// Shared memory of a multiprocessor, KB.
    pub shared_kb: usize,
    /// Multiprocessors.
    pub multiprocessors: usize,
    /// L2 cache, MB.
    pub l2_mb: usize,
}

impl Arch {
    /// The one whose kernels a compute capability runs; a newer capability than all is taken for the newest.
    /// None before 8.0.
    pub fn of_capability(major: u32, minor: u32) -> Option<Arch> {
        match (major, minor) {
            (..8, _) => None,
            (8, 0 | 7) => Some(Arch::Sm80),
            (8, _) => Some(Arch::Sm89),
            (9, _) => Some(Arch::Sm90),
            (10 | 11, _) => Some(Arch::Sm100),
            (12.., _) => Some(Arch::Sm120),
        }
    }

    /// Whether kernels with Hopper's tensor copies and warpgroup products run.
    pub fn has_wgmma(self) -> bool {
        match self {
            Arch::Sm90 => true,
            // Blackwell has no wgmma, and its successor is no part of the kernels
            Arch::Sm80 | Arch::Sm89 | Arch::Sm100 | Arch::Sm120 => false,
        }
    }

    /// Whether four neighbouring floats are added to memory by one instruction (red.v4.f32).
    pub fn adds_four_floats(self) -> bool {
        match self {
            Arch::Sm80 | Arch::Sm89 => false,
            Arch::Sm90 | Arch::Sm100 | Arch::Sm120 => true,
        }
    }

    /// What the compiler's name of it ends with, so that its own instructions are allowed.
    pub fn suffix(self) -> &'static str {
        match self {
            Arch::Sm90 => "a",
            Arch::Sm80 | Arch::Sm89 | Arch::Sm100 | Arch::Sm120 => "",
        }
    }

    /// The usual card, for compiling without the device. A chosen variant depends on it little: multiprocessors decide
    /// from which work on tiles are large.
    pub(crate) fn usual_card(self) -> Card {
        let (shared_kb, multiprocessors, l2_mb) = match self {
            // A100
            Arch::Sm80 => (164, 108, 40),
            // between RTX 4070 Ti and 4080
            Arch::Sm89 => (100, 80, 48),
            // H100 and H200 as modules
            Arch::Sm90 => (228, 132, 50),
            // B200
            Arch::Sm100 => (228, 148, 126),
            // about an RTX 5080
            Arch::Sm120 => (100, 80, 48),
        };
        Card { shared_kb, multiprocessors, l2_mb }
    }
}
