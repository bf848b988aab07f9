//! What a library answers for a design, as facts.
//!
//! Invariant: a fact has the values that its words name, and no words but other programs' own. Must not know languages.

use crate::base::Diagnostic;
use serde::Serialize;
use std::borrow::Cow;

/// A library's verdict on one pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "answer", content = "words")]
pub enum Answer {
    /// It takes it; how.
    Takes(How),
    /// It takes it at the cost of a dense mask or bias, or of all scores in memory.
    Dense(How),
    /// It refuses; why.
    Refuses(Why),
}

impl Answer {
    /// Whether it can be run.
    pub fn takes(&self) -> bool {
        !matches!(self, Answer::Refuses(_))
    }
}

/// How a library takes a design.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// Block lists, the masks of partial blocks as bits, mods compiled in.
    ListsAndBits,
    /// Block lists, mods compiled in.
    Lists,
    /// The same; gradients are added in any order.
    ListsInAnyOrder,
    /// The same as lists; not compiled it keeps scores of so many bytes.
    ListsOrScores(u64),
    /// Scores of so many bytes in memory.
    Scores(u64),
    /// The same, and what it is given as the mask.
    ScoresAnd(u64, Given),
    /// No mask, or the causal one.
    NoMaskOrCausal,
    /// Everything, or the causal mask.
    FullOrCausal,
    /// A dense mask.
    DenseMask,
    /// This mask.
    Given(Given),
    /// This mask, with every block computed.
    EveryBlock(Given),
    /// The gradient of a whole bias, then of these tensors.
    BiasGradient(Vec<String>),
    /// Gradients of these tensors by atomic additions.
    Atomic(Vec<String>),
    /// If the tiles of its backward pass are chosen small enough.
    SmallTiles,
    /// A mask that flash-attn knows, and what it does to scores.
    Flash(Given, Option<Scored>),
    /// So many documents, and what is done to scores.
    Documents(usize, Option<Scored>),
    /// A neighbourhood of a grid such as `64x64`.
    Neighbourhood(String),
    /// By diffusers' dispatcher in a release.
    Dispatched(Dispatched, String),
    /// Ranges of keys a row, in the library's notation: `nfunc 3, 96 KiB`.
    Ranges(String),
    /// Bounds a key; causal or not.
    Bounds(usize, bool),
    /// Slices.
    Slices(usize),
}

/// What a library is given as the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// None.
    Nothing,
    /// None is needed: all is kept.
    Everything,
    /// A flag.
    Causal,
    /// The width of a window.
    Window,
    /// A truth value a cell.
    DenseBool,
    /// A number a cell.
    DenseBias,
}

/// What flash-attn does to scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scored {
    /// ALiBi.
    Alibi,
    /// A soft cap.
    SoftCap(f64),
}

/// How diffusers' `flex` is given a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// There is none.
    NoMask,
    /// A BlockMask, because `is_causal` is lost.
    BlockMaskAlone,
    /// A BlockMask.
    BlockMask,
}

/// Why a library refuses a design.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// In its own words.
    Quoted(Cow<'static, str>),
    /// As one of our backends or racers reports it.
    Reported(Box<Diagnostic>),
    /// It runs on GPUs.
    CudaOnly,
    /// This part of it runs on GPUs.
    CudaOnlyOf(&'static str),
    /// Key heads are as many as query heads there.
    NoGqa,
    /// SDPA knows additive biases.
    SdpaScore,
    /// It computes no gradient of an argument, which these tensors make.
    NoGradientOf(&'static str, Vec<String>),
    /// FlexAttention has no gradients on the CPU.
    CpuGradients,
    /// The same in PyTorch's words, and who has them.
    CpuBackward,
    /// These captured tensors need gradients.
    BuffersNeedGradients(Vec<String>),
    /// Its score mods are ALiBi and a soft cap.
    FlashScores,
    /// Its causal mask is aligned at the other end.
    Alignment,
    /// Its masks are causal and windows.
    NoMaskButWindows,
    /// The mask has no documents.
    NoDocuments,
    /// Its ALiBi counts from the end of each document.
    AlibiOfDocuments,
    /// Its ALiBi counts from the last query.
    AlibiOfLast,
    /// Its ALiBi is symmetric.
    AlibiOfBothSides,
    /// It takes float16 and bfloat16.
    HalfOnly,
    /// It takes no score mod.
    NoScoreMod,
    /// Head dims are multiples of 8.
    HeadDims,
    /// Queries and keys are of one grid.
    OneGrid,
    /// All heads and batch entries have one window.
    OneWindow,
    /// Its windows move inward at edges.
    Edges,
    /// The mask is no neighbourhood of so many tokens.
    NoneOfSequence(usize),
    /// The mask is no neighbourhood of this grid.
    NoneOfGrid(String),
    /// The dispatcher has no argument for a score mod.
    NoScoreArgument,
    /// Triton's backward pass needs more shared memory than sm_120 has.
    SharedMemory,
}
