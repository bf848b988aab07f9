//! Names that documents, problems, backends and messages share: layouts, backends, devices.
//!
//! Invariant: typed, shown and saved names have one spelling. Must not know what a backend or device can do.

use super::Diagnostic;
use serde::{Deserialize, Serialize};

/// Order of the dimensions of q, k, v and out in device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// [batch, heads, tokens, head_dim], PyTorch's.
    #[default]
    Bhsd,
    /// [batch, tokens, heads, head_dim], flash-attn's and diffusers'.
    Bshd,
}

/// Backends by the names that trainers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub enum BackendName {
    #[serde(rename = "eager")]
    Eager,
    #[serde(rename = "sdpa")]
    Sdpa,
    #[serde(rename = "flash_attention_2")]
    FlashAttention2,
    #[serde(rename = "flex")]
    Flex,
    #[serde(rename = "torch:eager")]
    TorchEager,
    #[serde(rename = "torch:sdpa")]
    TorchSdpa,
    #[serde(rename = "torch:flex")]
    TorchFlex,
    #[serde(rename = "torch:flex-flash")]
    TorchFlexFlash,
    #[serde(rename = "cudnn:flex")]
    CudnnFlex,
}

impl BackendName {
    /// All of them, in the order they are shown.
    pub const ALL: [BackendName; 9] = [
        BackendName::Eager,
        BackendName::Sdpa,
        BackendName::FlashAttention2,
        BackendName::Flex,
        BackendName::TorchEager,
        BackendName::TorchSdpa,
        BackendName::TorchFlex,
        BackendName::TorchFlexFlash,
        BackendName::CudnnFlex,
    ];

    /// The name as typed and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            BackendName::Eager => "eager",
            BackendName::Sdpa => "sdpa",
            BackendName::FlashAttention2 => "flash_attention_2",
            BackendName::Flex => "flex",
            BackendName::TorchEager => "torch:eager",
            BackendName::TorchSdpa => "torch:sdpa",
            BackendName::TorchFlex => "torch:flex",
            BackendName::TorchFlexFlash => "torch:flex-flash",
            BackendName::CudnnFlex => "cudnn:flex",
        }
    }

    /// Other names that are understood: those of the packages that compute.
    const ALIASES: [(&'static str, BackendName); 2] =
        [("fa4", BackendName::TorchFlexFlash), ("flash_attention_4", BackendName::TorchFlexFlash)];

    /// Whether it runs in the user's own PyTorch.
    pub fn is_torch(self) -> bool {
        self.as_str().starts_with("torch:") || self == BackendName::CudnnFlex
    }
}

impl std::fmt::Display for BackendName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for BackendName {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let known = Self::ALL.map(|b| (b.as_str(), b));
        known.into_iter().chain(Self::ALIASES).find(|(name, _)| *name == text).map(|(_, b)| b).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            Diagnostic::error("unknown-backend", format!("there is no backend named `{text}`"))
                .hint(format!("one of: {names}; fa4 is torch:flex-flash"))
        })
    }
}

/// Where a backend runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// All cores of the worker's machine.
    Cpu,
    /// CUDA device by ordinal.
    Cuda(u32),
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(n) => write!(f, "cuda:{n}"),
        }
    }
}

impl std::str::FromStr for Device {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        match text {
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(|n| n.parse().ok()).map(Device::Cuda).ok_or_else(|| {
                Diagnostic::error("unknown-device", format!("`{text}` is not a device")).hint("cpu, cuda or cuda:N")
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_has_every_backend() {
        let variants = maskloom_testing::names::variants::<BackendName>();
        assert_eq!(variants, BackendName::ALL.map(BackendName::as_str), "left: the variants; right: ALL");
    }

    #[test]
    fn packages_name_the_backend_that_they_compute() {
        for name in BackendName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
        }
        assert_eq!("fa4".parse(), Ok(BackendName::TorchFlexFlash));
        let why = "fa5".parse::<BackendName>().unwrap_err();
        assert!(why.hint.is_some_and(|hint| hint.contains("cudnn:flex") && hint.contains("fa4 is torch:flex-flash")));
        assert!(BackendName::CudnnFlex.is_torch() && !BackendName::Flex.is_torch());
    }
}
