//! Answers for a design in the words of a language.
//!
//! Invariant: the only place where an answer becomes words; JSON has the English ones. Must not know how answers are found.

use super::{Answer, Dispatched, Given, How, Scored, Why};
use crate::base::words::{bytes, grouped};
use crate::words::{Language, Words};
use serde::{Serialize, Serializer};

/// What a tile of Triton's backward pass is set to where BLOCK_SIZE is small.
const OPTIONS: &str =
    "kernel_options={\"bwd_BLOCK_M1\": 64, \"bwd_BLOCK_N1\": 64, \"bwd_BLOCK_M2\": 64, \"bwd_BLOCK_N2\": 64}";
/// PyTorch's words on the backward pass of FlexAttention on the CPU.
const NO_BACKWARD: &str = "FlexAttention does not support backward on CPU. Please set the input requires_grad to False or use another \
                           device. (pytorch#169224)";

impl Answer {
    /// In words.
    pub fn told(&self, said: &'static Words) -> String {
        match self {
            Answer::Takes(how) | Answer::Dense(how) => how.told(said),
            Answer::Refuses(why) => why.told(said),
        }
    }

    /// In English.
    pub fn words(&self) -> String {
        self.told(Words::of(Language::English))
    }
}

impl Serialize for How {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.told(Words::of(Language::English)))
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.told(Words::of(Language::English)))
    }
}

/// Names as code, one after the other.
fn code(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Given {
    fn told(self, said: &'static Words) -> &'static str {
        match self {
            Given::Nothing => said.text("takes-no-mask"),
            Given::Everything => said.text("takes-full"),
            Given::Causal => said.text("takes-causal"),
            Given::Window => said.text("takes-window"),
            Given::DenseBool => said.text("takes-dense-bool"),
            Given::DenseBias => said.text("takes-dense-bias"),
        }
    }
}

/// What is kept, and what is done to scores.
fn scored(said: &'static Words, how: String, scored: Option<Scored>) -> String {
    match scored {
        None => how,
        Some(Scored::Alibi) => said.with("takes-alibi", &[("how", how.into())]),
        Some(Scored::SoftCap(cap)) => {
            said.with("takes-soft-cap", &[("how", how.into()), ("cap", cap.to_string().into())])
        }
    }
}

impl How {
    fn told(&self, said: &'static Words) -> String {
        let plain = |id: &'static str| said.text(id).to_string();
        match self {
            How::ListsAndBits => plain("takes-lists-bits"),
            How::Lists => plain("takes-lists"),
            How::ListsInAnyOrder => plain("takes-lists-any-order"),
            How::ListsOrScores(size) => {
                said.with("takes-lists-scores", &[("scores", How::Scores(*size).told(said).into())])
            }
            How::Scores(size) => said.with("takes-scores", &[("bytes", bytes(*size).into())]),
            How::ScoresAnd(size, mask) => {
                said.with("takes-scores-mask", &[("bytes", bytes(*size).into()), ("mask", mask.told(said).into())])
            }
            How::NoMaskOrCausal => plain("takes-plain"),
            How::FullOrCausal => plain("takes-full-causal"),
            How::DenseMask => plain("takes-dense-mask"),
            How::Given(mask) => mask.told(said).into(),
            How::EveryBlock(mask) => said.with("takes-every-block", &[("mask", mask.told(said).into())]),
            How::BiasGradient(names) => said.with("takes-bias-gradient", &[("names", code(names).into())]),
            How::Atomic(names) => said.with("takes-atomic", &[("names", code(names).into())]),
            How::SmallTiles => said.with("takes-no-valid-choices", &[("options", OPTIONS.into())]),
            How::Flash(mask, score) => scored(said, mask.told(said).into(), *score),
            How::Documents(count, score) => {
                scored(said, said.with("takes-documents", &[("n", count.to_string().into())]), *score)
            }
            How::Neighbourhood(grid) => said.with("takes-neighbourhood", &[("grid", grid.as_str().into())]),
            How::Dispatched(how, edition) => {
                let edition = [("edition", edition.as_str().into())];
                match how {
                    Dispatched::NoMask => said.with("takes-no-mask-of", &edition),
                    Dispatched::BlockMaskAlone => said.with("takes-block-mask-alone", &edition),
                    Dispatched::BlockMask => said.with("takes-block-mask", &edition),
                }
            }
            How::Ranges(words) => said.with("takes-ranges", &[("words", words.as_str().into())]),
            How::Bounds(count, causal) => {
                let count_of = [("n", count.to_string().into())];
                match (count, causal) {
                    (1, true) => said.with("takes-bound-causal", &count_of),
                    (_, true) => said.with("takes-bounds-causal", &count_of),
                    (1, false) => said.with("takes-bound", &count_of),
                    (_, false) => said.with("takes-bounds", &count_of),
                }
            }
            How::Slices(count) => {
                let number = [("n", grouped(*count as u128).into())];
                if *count == 1 { said.with("takes-slice", &number) } else { said.with("takes-slices", &number) }
            }
        }
    }
}

impl Why {
    fn told(&self, said: &'static Words) -> String {
        let plain = |id: &'static str| said.text(id).to_string();
        match self {
            Why::Quoted(words) => words.to_string(),
            Why::Reported(why) => {
                // figures stand in the English message, and in an English way out that is not told whole
                let (own, english) = said.ways_out(&why.code, why.hint.as_deref());
                let rest = english.map_or(String::new(), |hint| format!("; {hint}"));
                let reported = said.reported(&why.code, &format!("{}{rest}", why.message));
                let [open, close] = if said.language() == Language::Chinese { ["（", "）"] } else { [" (", ")"] };
                match own {
                    None => reported,
                    Some(way_out) => format!("{reported}{open}{way_out}{close}"),
                }
            }
            Why::CudaOnly => plain("refuses-cuda-only"),
            Why::CudaOnlyOf(name) => said.with("refuses-cuda-only-of", &[("name", (*name).into())]),
            Why::NoGqa => said.with("refuses-gqa", &[("call", "`key.repeat_interleave(group, 1)`".into())]),
            Why::SdpaScore => plain("refuses-score-mod-sdpa"),
            Why::NoGradientOf(what, names) => {
                said.with("refuses-no-gradient", &[("what", (*what).into()), ("names", code(names).into())])
            }
            Why::CpuGradients => plain("refuses-cpu-gradients"),
            Why::CpuBackward => said.with("refuses-cpu-backward", &[("message", NO_BACKWARD.into())]),
            Why::BuffersNeedGradients(names) => format!(
                "Input buffers require gradients (not supported by flash attention): {} needs gradients; `.detach()` it",
                code(names)
            ),
            Why::FlashScores => plain("refuses-flash-scores"),
            Why::Alignment => plain("refuses-alignment"),
            Why::NoMaskButWindows => plain("refuses-masks"),
            Why::NoDocuments => plain("refuses-documents"),
            Why::AlibiOfDocuments => plain("refuses-alibi-documents"),
            Why::AlibiOfLast => plain("refuses-alibi-last"),
            Why::AlibiOfBothSides => plain("refuses-alibi-sides"),
            Why::HalfOnly => plain("refuses-single"),
            Why::NoScoreMod => plain("refuses-score-mod"),
            Why::HeadDims => plain("refuses-head-dims"),
            Why::OneGrid => plain("refuses-one-grid"),
            Why::OneWindow => plain("refuses-one-window"),
            Why::Edges => plain("refuses-edges"),
            Why::NoneOfSequence(tokens) => said.with("refuses-neighbourhood-line", &[("n", tokens.to_string().into())]),
            Why::NoneOfGrid(grid) => said.with("refuses-neighbourhood", &[("grid", grid.as_str().into())]),
            Why::NoScoreArgument => plain("refuses-dispatcher"),
            Why::SharedMemory => said.with(
                "refuses-shared-memory",
                &[("needed", "114,688".into()), ("there", "101,376".into()), ("issue", "pytorch#198224".into())],
            ),
        }
    }
}
