//! Ways over several GPUs, and divisions of attention over them, in the words of a language.
//!
//! Invariant: in English these are the words of `parallel`. Must not know what a plan is.

use crate::parallel::paths::{Fate, How};
use crate::parallel::rivals::About;
use crate::words::Words;

/// What happens to a mask.
pub fn fate(said: &'static Words, of: Fate) -> &'static str {
    match of {
        Fate::Kept => said.text("path-kept"),
        Fate::Refused => said.text("path-refused"),
        Fate::Lost => said.text("path-lost"),
    }
}

/// How a way treats a mask.
pub fn how(said: &'static Words, of: How) -> &'static str {
    match of {
        How::Gathers => said.text("path-gathers"),
        How::PlainRing => said.text("path-ring-plain"),
        How::CausalRing => said.text("path-ring-causal"),
        How::CausalFlagAlone => said.text("path-no-mask"),
        How::AsPytorchBalanced => said.text("path-torchtitan"),
        How::KeysGoRound => said.text("path-keys-round"),
        How::CausalRefused => said.text("path-causal-refused"),
        How::MaskOfFirstRank => said.text("path-first-rank"),
        How::BecomesCausal => said.text("path-documents"),
        How::RingOrUlysses => said.text("path-ringmaster"),
        How::PaddingAndDocuments => said.text("path-ringmaster-refuses"),
    }
}

/// What a division does.
pub fn about(said: &'static Words, of: About) -> &'static str {
    match of {
        About::Unbalanced => said.text("rival-contiguous"),
        About::HeadTail => said.text("rival-head-tail"),
        About::Balanced => said.text("rival-ptrr"),
        About::BalancedByFirst => said.text("rival-ptrr-first"),
        About::Heap => said.text("rival-heap"),
        About::HeadsForTokens => said.text("rival-ulysses"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn every_way_is_told_in_every_language() {
        let all = |said: &'static Words| {
            let fates = [Fate::Kept, Fate::Refused, Fate::Lost].map(|of| (of.word(), fate(said, of)));
            let hows = How::ALL.map(|of| (of.words(), how(said, of)));
            let abouts = About::ALL.map(|of| (of.words(), about(said, of)));
            fates.into_iter().chain(hows).chain(abouts).collect::<Vec<_>>()
        };
        for (words, told) in all(Words::of(Language::English)) {
            assert_eq!(words, told);
        }
        for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
            for (words, told) in all(Words::of(language)) {
                assert_ne!(words, told, "{language:?}");
            }
        }
    }
}
