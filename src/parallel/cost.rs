//! What a block costs on a card.
//!
//! Invariant: a card's constants reproduce its measured runs; the table names them. A card that was not measured is
//! scaled by its data sheet and says so. Must not know plans.

use serde::{Deserialize, Serialize};

/// Nanoseconds of one pass at head_dim 128 in a 16-bit type, for blocks of 128 x 128, on the whole card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// A full block of one head.
    pub full: f64,
    /// A partial block of one head.
    pub partial: f64,
    /// A row of blocks of one head that keeps something, beside its blocks.
    pub row: f64,
}

/// Both passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The forward pass.
    pub forward: Pass,
    /// The backward pass.
    pub backward: Pass,
    /// Where the constants come from.
    pub source: String,
}
