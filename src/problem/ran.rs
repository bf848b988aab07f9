//! The implementation behind a backend's name, and its English words.
//!
//! Invariant: one function names what ran; every table, chart, card and file uses it. One of our backends is never shown under the name
//! of the library that it replaces. Must not measure.

use super::facts::{KernelFacts, KernelReport, Library, MaskRead};
use crate::base::BackendName;
use std::fmt;

/// Who ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// PyTorch's function, its version, and which kernel it chose.
    Torch(BackendName, String, Option<String>),
    /// cuDNN called by us, and its version.
    Cudnn(String),
    /// One of our kernels, on the CPU or not.
    Ours {
        /// Whether on the CPU.
        cpu: bool,
        /// Which.
        kernel: Own,
    },
}

/// One of our kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// For SDPA with the causal flag.
    Causal,
    /// For SDPA without a mask.
    Maskless,
    /// For SDPA with a dense mask.
    DenseMask,
    /// FlashAttention-2's algorithm.
    FlashAttention2,
    /// All scores in memory.
    Eager,
    /// Block-sparse.
    Flex,
}

/// As part of a name: `dense-mask`.
impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Own::Causal => "causal",
            Own::Maskless => "maskless",
            Own::DenseMask => "dense-mask",
            Own::FlashAttention2 => "FlashAttention-2",
            Own::Eager => "eager",
            Own::Flex => "flex",
        })
    }
}

/// `cuDNN 9.19 SDPA`, `our dense-mask kernel`, `our CPU flex kernel`, `PyTorch 2.15 SDPA, efficient`.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ran::Torch(BackendName::CudnnFlex, version, _) => write!(f, "cudnn.flex_attention {}", short(version)),
            Ran::Torch(backend, version, choice) => {
                let name = match backend {
                    BackendName::TorchSdpa => "SDPA",
                    BackendName::TorchEager => "eager",
                    _ => "FlexAttention",
                };
                write!(f, "PyTorch {} {name}", short(version))?;
                choice.iter().try_for_each(|choice| write!(f, ", {choice}"))
            }
            Ran::Cudnn(version) => write!(f, "cuDNN {version} SDPA"),
            Ran::Ours { cpu, kernel } => write!(f, "our {}{kernel} kernel", if *cpu { "CPU " } else { "" }),
        }
    }
}

/// `2.15` of version `2.15.0+cu128`.
fn short(version: &str) -> String {
    version.split(['.', '+']).take(2).collect::<Vec<_>>().join(".")
}

impl Ran {
    /// Of what a kernel says of itself.
    pub fn of(backend: BackendName, kernel: &KernelReport) -> Ran {
        let KernelFacts { library, version, mask, choice, .. } = &kernel.facts;
        let version = version.clone().unwrap_or_default();
        let cpu = match library {
            Library::Torch => return Ran::Torch(backend, version, choice.clone()),
            Library::Cudnn => return Ran::Cudnn(version),
            Library::MaskloomCpu => true,
            Library::Maskloom => false,
        };
        let kernel = match (backend, mask) {
            (BackendName::Sdpa, MaskRead::Causal) => Own::Causal,
            (BackendName::Sdpa, MaskRead::Nothing) => Own::Maskless,
            (BackendName::Sdpa, MaskRead::Dense | MaskRead::Blocks) => Own::DenseMask,
            (BackendName::FlashAttention2, _) => Own::FlashAttention2,
            (BackendName::Eager, _) => Own::Eager,
            _ => Own::Flex,
        };
        Ran::Ours { cpu, kernel }
    }
}

/// Who ran, in words.
pub fn what_ran(backend: BackendName, kernel: &KernelReport) -> String {
    Ran::of(backend, kernel).to_string()
}
