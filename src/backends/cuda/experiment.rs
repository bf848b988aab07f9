//! Which kernels are left out for comparing the others on one card: `MASKLOOM_KERNELS`, read in one place.
//!
//! Invariant: without the variable nothing is left out. Must not know kernels.

/// What the variable says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Experiment {
    /// `linked`: flex never compiles mods in.
    Linked,
    /// `second`: flex takes its second backward variant.
    Second,
    /// `whole`: no tile of Hopper's forward kernel is cut into pieces.
    Whole,
    /// `coarse`: Hopper's forward kernel keeps its large tiles, whatever the mask.
    Coarse,
    /// `sm80`: every architecture runs Ampere's kernels.
    Sm80,
}

impl Experiment {
    const ALL: [(&str, Experiment); 5] = [
        ("linked", Experiment::Linked),
        ("second", Experiment::Second),
        ("whole", Experiment::Whole),
        ("coarse", Experiment::Coarse),
        ("sm80", Experiment::Sm80),
    ];

    /// Whether this one is asked for.
    pub(super) fn is_on(self) -> bool {
        std::env::var("MASKLOOM_KERNELS").is_ok_and(|said| Self::of(&said) == Some(self))
    }

    fn of(said: &str) -> Option<Experiment> {
        Self::ALL.iter().find(|(name, _)| *name == said).map(|(_, experiment)| *experiment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_experiments_and_others_none() {
        for (name, experiment) in Experiment::ALL {
            assert_eq!(Experiment::of(name), Some(experiment));
        }
        assert_eq!((Experiment::of(""), Experiment::of("Linked")), (None, None));
    }
}
