//! What the ways that people use for attention over several GPUs do with a mask.
//!
//! Invariant: each row names the release in which it was read; nothing is said of a mask whose form a row does not know.
//! Must not know how a plan is made.

use crate::problem::pattern::Pattern;

/// What happens to a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is computed as it is.
    Kept,
    /// The call ends with an error.
    Refused,
    /// The call runs and computes something else.
    Lost,
}

impl Fate {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Fate::Kept => "kept",
            Fate::Refused => "refused",
            Fate::Lost => "LOST",
        }
    }
}

/// How a way treats a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It gathers everything on every rank.
    Gathers,
    /// A ring.
    PlainRing,
    /// A ring that knows causal masks.
    CausalRing,
    /// It has a flag and no mask.
    CausalFlagAlone,
    /// As PyTorch's, with a name for the balanced mask.
    AsPytorchBalanced,
    /// Keys go round.
    KeysGoRound,
    /// The flag is refused.
    CausalRefused,
    /// The first rank's mask masks all.
    MaskOfFirstRank,
    /// The mask becomes the flag.
    BecomesCausal,
    /// One of three ways.
    RingOrUlysses,
    /// Padding and documents alone.
    PaddingAndDocuments,
}

impl How {
    /// All of them.
    pub const ALL: [How; 11] = [
        How::Gathers,
        How::PlainRing,
        How::CausalRing,
        How::CausalFlagAlone,
        How::AsPytorchBalanced,
        How::KeysGoRound,
        How::CausalRefused,
        How::MaskOfFirstRank,
        How::BecomesCausal,
        How::RingOrUlysses,
        How::PaddingAndDocuments,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            How::Gathers => "gathers all keys and values on every rank; one mask decides the balance of all layers",
            How::PlainRing => "a ring without a mask",
            How::CausalRing => "a causal ring",
            How::CausalFlagAlone => "takes is_causal and no mask",
            How::AsPytorchBalanced => "as PyTorch's; `context_parallel_ptrr_mask_key` names the mask that is balanced",
            How::KeysGoRound => "each rank's keys go round",
            How::CausalRefused => "is_causal is refused",
            How::MaskOfFirstRank => {
                "every rank's keys are masked as the first rank's: wrong cells, and no message (diffusers#13545)"
            }
            How::BecomesCausal => {
                "the mask becomes is_causal, so that packed documents see each other (trl#6843); newer releases refuse"
            }
            How::RingOrUlysses => "a ring, Ulysses or an all-gather",
            How::PaddingAndDocuments => {
                "takes right padding and packed documents besides; every other mask is an error"
            }
        }
    }
}

/// Files have the words.
impl serde::Serialize for How {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.words())
    }
}

/// A way to divide attention over GPUs that a library offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Path {
    /// The library and its entry.
    pub name: &'static str,
    /// The release that was read.
    pub release: &'static str,
    /// What it does with these masks.
    pub fate: Fate,
    /// How.
    pub how: How,
}

type Rule = fn(Pattern) -> (Fate, How);

/// The rules, each read in the sources of the release beside it.
const RULES: [(&str, &str, Rule); 6] = [
    ("PyTorch context parallel, FlexAttention", "torch 2.15", |_| (Fate::Kept, How::Gathers)),
    ("PyTorch context parallel, SDPA", "torch 2.15", |mask| match mask {
        Pattern::Full => (Fate::Kept, How::PlainRing),
        Pattern::Causal { offset: 0 } => (Fate::Kept, How::CausalRing),
        _ => (Fate::Refused, How::CausalFlagAlone),
    }),
    ("torchtitan, FlexAttention", "August 2026", |_| (Fate::Kept, How::AsPytorchBalanced)),
    ("diffusers, ring_degree", "diffusers 0.42.1", |mask| match mask {
        Pattern::Full => (Fate::Kept, How::KeysGoRound),
        Pattern::Causal { .. } => (Fate::Refused, How::CausalRefused),
        Pattern::Other => (Fate::Lost, How::MaskOfFirstRank),
    }),
    ("accelerate, transformers' Trainer, TRL: cp_size", "transformers 5.24", |mask| match mask {
        Pattern::Causal { offset: 0 } => (Fate::Kept, How::CausalRing),
        _ => (Fate::Lost, How::BecomesCausal),
    }),
    ("axolotl's ringmaster", "ringmaster 0.2.7", |mask| match mask {
        Pattern::Causal { offset: 0 } => (Fate::Kept, How::RingOrUlysses),
        _ => (Fate::Refused, How::PaddingAndDocuments),
    }),
];

/// What each does with masks of these forms: the worst of them.
pub fn paths(masks: &[Pattern]) -> Vec<Path> {
    let worst = |rule: Rule| {
        let found = masks.iter().map(|mask| rule(*mask));
        found.max_by_key(|(fate, _)| *fate as u8).unwrap_or(rule(Pattern::Other))
    };
    let of = |(name, release, rule): (&'static str, &'static str, Rule)| {
        let (fate, how) = worst(rule);
        Path { name, release, fate, how }
    };
    RULES.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(masks: &[Pattern]) -> Vec<Fate> {
        paths(masks).iter().map(|path| path.fate).collect()
    }

    #[test]
    fn a_causal_mask_is_kept_where_it_is_a_flag() {
        use Fate::{Kept, Refused};
        assert_eq!(fates(&[Pattern::Causal { offset: 0 }]), [Kept, Kept, Kept, Refused, Kept, Kept]);
    }

    #[test]
    fn one_mask_that_is_lost_decides_for_all_layers() {
        use Fate::{Kept, Lost, Refused};
        let mixed = [Pattern::Causal { offset: 0 }, Pattern::Other];
        assert_eq!(fates(&mixed), [Kept, Refused, Kept, Lost, Lost, Refused]);
        assert_eq!(fates(&mixed), fates(&[Pattern::Other]));
    }
}
