//! Tests that see the crate as a whole. One binary, because linking is what a small machine waits for.

mod advise;
mod blocks;
mod cli;
mod conform;
mod documents;
mod gym;
mod gym_blocks;
mod layering;
mod manifest;
mod mutation;
mod torch;
mod window;
mod worker;
