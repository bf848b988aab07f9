//! A stroke of the brush or the eraser while it is in work.
//!
//! Invariant: plain data. Must not know how a plan is made.

use crate::analysis::classify::Mask;
use crate::base::BlockSize;
use crate::document::heads::Heads;
use crate::document::model::Combine;
use std::sync::Arc;

/// The effect of a stroke on the layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Painted layers that are drawn on, and whether their cells are painted there or erased.
    pub targets: Vec<(u64, bool)>,
    /// What the other cells are added to.
    pub rest: Rest,
    /// Whether the stroke keeps or removes cells.
    pub keep: bool,
    /// For which heads; None: all.
    pub heads: Option<Heads>,
}

/// Where cells are added that [`Plan::targets`] do not yet make what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There are no layers.
    Nothing,
    /// To a layer there is, painted.
    Layer(u64),
    /// To a new painted layer on top that joins so; made when there are such cells.
    New(Combine),
    /// To a new painted layer, made at once: the mask begins with it.
    Begins(Combine),
}

/// A stroke in work.
#[derive(Clone, Debug)]
pub(crate) struct Gesture {
    pub plan: Plan,
    pub cell: BlockSize,
    /// Layers that this stroke has painted on.
    pub begun: Vec<u64>,
    /// The mask's state where [`Plan::targets`] are drawn on; None: unknown.
    pub base: Option<Arc<Mask>>,
}
