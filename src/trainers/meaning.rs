//! What a value of a trainer's attention setting means, as facts.
//!
//! Invariant: the English sentence of each stands here alone, and hints have it. Must not know languages, nor how facts are found.

use std::fmt;

/// What a setting does today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The default that stands for a setting that is not there.
    pub unset: Option<Unset>,
    /// What the value does, one fact after the other.
    pub facts: Vec<Fact>,
}

/// A setting that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unset {
    /// The default.
    pub value: String,
    /// In which release, where that matters.
    pub edition: Option<String>,
}

/// A fact about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// PyTorch's SDPA with its choice of kernels.
    Sdpa,
    /// SDPA with cuDNN's kernel.
    Cudnn,
    /// All scores in memory.
    Math,
    /// One of SDPA's kernels.
    OneKernel,
    /// flash-attn under SimpleTuner; what it does with masks.
    Flash(Masks),
    /// flash-attn under transformers.
    FlashPackage,
    /// FlexAttention.
    Flex,
    /// Kohaku's kernels.
    Kohaku,
    /// Approximations.
    Quantised,
    /// Apple's kernels.
    Metal,
    /// xFormers' kernel.
    Xformers,
    /// A value that none of these releases of SimpleTuner has.
    Unknown(String, Vec<String>),
    /// A value that transformers does not have.
    NotOwn(String),
    /// A family that does not read the setting.
    NoEffect(String),
    /// A family that reads it in fused projections.
    Reads(String),
    /// A family whose SDPA is restricted to the kernel.
    Steers(String),
    /// It acts in UNets.
    Unets,
    /// A family of no release.
    UnknownFamily(String),
    /// The trainer puts it in the place of SDPA; perhaps.
    Replaces(When, bool),
    /// It ignores masks.
    Ignores,
    /// The trainer warns that layers stay untrained.
    Warns,
    /// The release of SimpleTuner and its day.
    Release(String, String),
}

/// What is done with masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masks {
    /// They are refused.
    Refused,
    /// Their padding is read.
    Padding,
    /// They are kept.
    Kept,
    /// It is unknown.
    Unknown,
}

/// When the trainer replaces SDPA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Both,
    /// In training.
    Training,
    /// In validation.
    Validation,
}

/// What all kernels without block masks compute.
const DENSE: &str = "dense attention without a designed mask";

impl fmt::Display for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Masks::Refused => "masks are refused",
            Masks::Padding => "of masks it reads the padding only",
            Masks::Kept => "masks are kept",
            Masks::Unknown => "what it does with masks is unknown",
        })
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            When::Both => "in training and validation",
            When::Training => "in training, not in validation",
            When::Validation => "in validation, not in training",
        })
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let itself = |f: &mut fmt::Formatter<'_>, family: &str, rest: &str| {
            write!(f, "The `{family}` family calls PyTorch's SDPA itself{rest}")
        };
        match self {
            Fact::Sdpa => {
                write!(f, "PyTorch's SDPA, which chooses its flash, cuDNN or memory-efficient kernel: {DENSE}.")
            }
            Fact::Cudnn => write!(f, "SDPA with cuDNN's fused kernel alone: {DENSE}."),
            Fact::Math => f.write_str(
                "unfused attention that materialises all scores: the slowest choice, useful for comparison.",
            ),
            Fact::OneKernel => {
                write!(f, "one of PyTorch's SDPA kernels alone, which refuses unsupported inputs: {DENSE}.")
            }
            Fact::Flash(masks) => write!(f, "the flash-attn package or its hub kernels: {DENSE}; {masks}."),
            Fact::FlashPackage => {
                f.write_str("the flash-attn package: full, causal and window attention; other masks are refused.")
            }
            Fact::Flex => f.write_str(
                "FlexAttention: uncompiled it materialises all scores; compiled it is fast with a block mask, but the \
                 model itself passes no block mask of a design.",
            ),
            Fact::Kohaku => f.write_str(
                "Kohaku's fused kernels, for boolean masks, bfloat16 and float16, on L40S, H100 and Blackwell.",
            ),
            Fact::Quantised => f.write_str(
                "quantised or sparse attention: an approximation that changes results, mainly for inference.",
            ),
            Fact::Metal => f.write_str("Apple's Metal kernels."),
            Fact::Xformers => write!(f, "xFormers' memory-efficient kernel: {DENSE}."),
            Fact::Unknown(value, versions) => write!(
                f,
                "`{value}` is unknown to Maskloom: the releases of SimpleTuner that were read ({}) do not have it.",
                versions.join(", ")
            ),
            Fact::NotOwn(value) => write!(f, "`{value}` is not one of transformers' own choices."),
            Fact::NoEffect(family) => itself(f, family, ", so the setting has no effect there."),
            Fact::Reads(family) => itself(
                f,
                family,
                ", so the setting has no effect there, except where its own code reads it (fused projections).",
            ),
            Fact::Steers(family) => itself(f, family, "; the trainer restricts SDPA to this kernel."),
            Fact::Unets => f.write_str("It acts in UNets alone; other models go back to `diffusers`."),
            Fact::UnknownFamily(family) => write!(
                f,
                "The `{family}` family is in none of the releases that were read: its effect there is unknown."
            ),
            Fact::Replaces(when, perhaps) => {
                let place = if *perhaps { " where its packages and card are there" } else { "" };
                write!(
                    f,
                    "The trainer puts it in the place of PyTorch's SDPA {when}{place}, in every family that calls SDPA."
                )
            }
            Fact::Ignores => f.write_str("It ignores masks that a model passes."),
            Fact::Warns => f.write_str("The trainer itself warns that attention layers will not be trained."),
            Fact::Release(version, day) => write!(f, "(As of SimpleTuner {version}, {day}.)"),
        }
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Unset { value, edition }) = &self.unset {
            let edition = edition.as_ref().map(|edition| format!(" in {edition}")).unwrap_or_default();
            write!(f, "not set, which is `{value}`{edition}: ")?;
        }
        for (n, fact) in self.facts.iter().enumerate() {
            write!(f, "{}{fact}", if n == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}
