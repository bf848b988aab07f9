//! Which kernel ran and what ran beside it: as facts, and as words for people.
//!
//! Invariant: code decides by facts alone. Words are read here and nowhere else, for files of versions that wrote nothing
//! else. Must not know how a kernel is chosen.

use serde::{Deserialize, Serialize};

/// Whose kernel it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Library {
    /// Ours, on a GPU.
    Maskloom,
    /// Ours, on the processor.
    MaskloomCpu,
    /// cuDNN, called by us.
    Cudnn,
    /// The user's PyTorch.
    Torch,
}

/// What a kernel reads of the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaskRead {
    /// Nothing: it attends to every key.
    Nothing,
    /// That it is causal, as a flag.
    Causal,
    /// Every cell, as a tensor.
    Dense,
    /// Lists of blocks, or the formula itself.
    Blocks,
}

/// What a report's kernel is, for code that decides by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Whose it is.
    pub library: Library,
    /// The library's version as it says it, such as `9.19` or `2.15.0+cu128`; none for ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it reads of the mask.
    pub mask: MaskRead,
    /// The share of tiles that it computes, 0..=1, where it knows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiles: Option<f64>,
    /// Which of the library's kernels, in its own words, such as `efficient` or `Triton`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

impl KernelFacts {
    /// Of one of our own kernels.
    pub fn ours(library: Library, mask: MaskRead) -> KernelFacts {
        KernelFacts { library, version: None, mask, tiles: None, choice: None }
    }
}

/// The kernel of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct KernelReport {
    /// For people: `flex_sm80 128x64`, `cpu flex f32`, `torch 2.11 SDPA flash`.
    #[serde(rename = "kernel")]
    pub words: String,
    /// For code.
    #[serde(rename = "kernel_facts")]
    pub facts: KernelFacts,
}

/// A kernel in a file: without facts where an older version wrote it.
#[derive(Deserialize)]
struct Written {
    kernel: String,
    #[serde(default)]
    kernel_facts: Option<KernelFacts>,
}

impl From<Written> for KernelReport {
    fn from(written: Written) -> KernelReport {
        match written.kernel_facts {
            Some(facts) => KernelReport { words: written.kernel, facts },
            None => KernelReport::from(written.kernel.as_str()),
        }
    }
}

/// Of the words of an older file. They were the only record until version 0.1.0's run files of 2026-11-27.
impl From<&str> for KernelReport {
    fn from(words: &str) -> KernelReport {
        KernelReport { words: words.to_string(), facts: read(words) }
    }
}

impl std::fmt::Display for KernelReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}

fn read(words: &str) -> KernelFacts {
    let mask = |without: MaskRead| match () {
        () if words.contains("dense") => MaskRead::Dense,
        () if words.contains("causal") => MaskRead::Causal,
        () if words.contains("no mask") || words.contains("mask:none") => MaskRead::Nothing,
        () if words.contains("flex") => MaskRead::Blocks,
        () => without,
    };
    let first = |rest: &str| rest.split(' ').next().map(str::to_string);
    if let Some(rest) = words.strip_prefix("cuDNN ") {
        return KernelFacts {
            library: Library::Cudnn,
            version: first(rest),
            mask: mask(MaskRead::Nothing),
            tiles: None,
            choice: None,
        };
    }
    if let Some(rest) = words.strip_prefix("torch ") {
        let mask = mask(MaskRead::Nothing);
        // NVIDIA's, which the user's Python calls as it calls PyTorch's
        let own = rest.split_once("cudnn.flex_attention ").and_then(|(_, own)| own.split(',').next());
        let version = own.map(str::to_string).or_else(|| first(rest));
        return KernelFacts { library: Library::Torch, version, mask, tiles: None, choice: choice(rest) };
    }
    let library = if words.starts_with("cpu ") { Library::MaskloomCpu } else { Library::Maskloom };
    KernelFacts { tiles: tiles(words), ..KernelFacts::ours(library, mask(MaskRead::Blocks)) }
}

/// 0.508 of `block-sparse, 50.8% of tiles`.
fn tiles(words: &str) -> Option<f64> {
    let (before, _) = words.split_once("% of tiles")?;
    Some(before.rsplit([' ', ',']).next()?.parse::<f64>().ok()? / 100.0)
}

/// `2.15.0 SDPA efficient, dense mask` as `efficient`. A backward pass names its own kernel last.
fn choice(rest: &str) -> Option<String> {
    if let Some((_, own)) = rest.rsplit_once(", backward ") {
        return own.split(',').next().map(str::to_string);
    }
    let (_, name) = rest.split_once(' ')?;
    let which = name.strip_prefix("SDPA ").and_then(|which| which.split(',').next());
    which.or_else(|| name.strip_prefix("flex, ")).filter(|which| !which.is_empty()).map(str::to_string)
}

/// Processors that other programs took while backends were timed on the cpu.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// On average, such as 1.2.
    pub others: f64,
    /// Total number.
    pub cores: usize,
}

impl Busy {
    /// Its row among a run's environment; files of older versions have its words there.
    pub const KEY: &str = "busy";
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "other programs used {:.1} of {} cores", self.others, self.cores)
    }
}

/// Of the words in an older file.
impl std::str::FromStr for Busy {
    type Err = ();
    fn from_str(text: &str) -> Result<Busy, ()> {
        let numbers =
            text.strip_prefix("other programs used ").and_then(|rest| rest.strip_suffix(" cores")).ok_or(())?;
        let (others, cores) = numbers.split_once(" of ").ok_or(())?;
        Ok(Busy { others: others.parse().map_err(|_| ())?, cores: cores.parse().map_err(|_| ())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_facts_reads_as_one_with_them() {
        let facts = KernelFacts {
            library: Library::Torch,
            version: Some("2.11.0+cu130".into()),
            mask: MaskRead::Dense,
            tiles: None,
            choice: Some("cudnn".into()),
        };
        let new = KernelReport { words: "torch 2.11.0+cu130 SDPA cudnn, dense bias".into(), facts };
        let written = serde_json::to_value(&new).unwrap();
        assert_eq!(serde_json::from_value::<KernelReport>(written.clone()).unwrap(), new);
        let mut old = written;
        old.as_object_mut().unwrap().remove("kernel_facts");
        assert_eq!(serde_json::from_value::<KernelReport>(old).unwrap(), new);
    }

    #[test]
    fn facts_that_are_written_win_over_the_words() {
        let json = r#"{"kernel": "a causal dream", "kernel_facts": {"library": "maskloom", "mask": "dense"}}"#;
        let read: KernelReport = serde_json::from_str(json).unwrap();
        assert_eq!(read.facts, KernelFacts::ours(Library::Maskloom, MaskRead::Dense));
    }

    #[test]
    fn words_of_older_files_keep_their_meaning() {
        use MaskRead::{Blocks, Causal, Dense, Nothing};
        for (words, mask) in [
            ("eager 128x64 d128 bf16 mask:formula sm_90a, all scores materialised", Blocks),
            ("eager 128x64 d128 bf16 mask:none sm_90a, all scores materialised", Nothing),
            ("flex_sm90 128x128 d128 bf16 mask:bitmap sm_90a, block-sparse, 12.0% of tiles", Blocks),
            ("flex_sm90 d64 bf16 mask:dense sm_90a, Maskloom's fused kernel, dense mask, no tile skipped", Dense),
            ("cuDNN 9.14 fused attention, is_causal", Causal),
            ("cuDNN 9.14 fused attention, no mask", Nothing),
            ("cpu flex avx2 f32 64x16 d64, causal", Causal),
            ("torch 2.11.0 flex, Triton", Blocks),
            ("torch 2.11.0 SDPA cudnn", Nothing),
        ] {
            assert_eq!(KernelReport::from(words).facts.mask, mask, "{words}");
        }
        let sparse = KernelReport::from("flex_sm90 d128 mask:bitmap sm_90a, block-sparse, 12.5% of tiles, in 3 pieces");
        assert_eq!(sparse.facts.tiles, Some(0.125));
        let trained = KernelReport::from("torch 2.11.0 SDPA cudnn, dense bias, backward efficient, dense bias");
        assert_eq!(trained.facts.choice.as_deref(), Some("efficient"));
    }
}
