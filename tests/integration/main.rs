//! Tests of the whole crate. They are one binary, because linking is slow on a small machine.

mod advise;
mod blocks;
mod ci;
mod cli;
mod conform;
mod documents;
#[cfg(target_os = "linux")]
mod driver;
mod guide;
mod gym;
mod gym_blocks;
mod layering;
mod manifest;
mod mutation;
mod package;
mod proofs;
mod python_layering;
mod scripts;
mod torch;
mod torch_gradients;
#[cfg(feature = "window")]
mod window;
mod words;
mod worker;
