//! The kept cells of partial tiles as launch data: their bits, or their rows' ranges.
//!
//! Invariant: another mask of the same kind runs the same compiled kernel. Must not know launches.

use super::bitmap::Bitmaps;
use super::ranges::Ranges;

/// Data from which a kernel has the cells of partial tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// For [`crate::backends::cuda::variant::spec::MaskKind::Bitmap`].
    Bits(Bitmaps),
    /// For [`crate::backends::cuda::variant::spec::MaskKind::Interval`].
    Ranges(Ranges),
}

impl Kept {
    /// `bitmap_start`, `bitmap_ids` and `bitmaps` of the kernels' parameters. None is empty.
    pub(crate) fn arrays(&self) -> [&[u32]; 3] {
        match self {
            Kept::Bits(bits) => bits.arrays(),
            // the second is not read
            Kept::Ranges(ranges) => [&ranges.start, &[0], &ranges.words],
        }
    }

    /// For a new row of the block lists that is a part of another, before which that one has so many partial tiles.
    pub(crate) fn push_part(&mut self, row: usize, partial_before: u32) {
        match self {
            Kept::Bits(bits) => bits.start.push(bits.start[row] + partial_before),
            Kept::Ranges(ranges) => ranges.start.push(ranges.start[row]),
        }
    }

    /// Where they are bits.
    pub(crate) fn bits(&self) -> Option<&Bitmaps> {
        match self {
            Kept::Bits(bits) => Some(bits),
            Kept::Ranges(_) => None,
        }
    }
}
