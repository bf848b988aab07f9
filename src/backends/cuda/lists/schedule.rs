//! What a backward launch is given: its lists, with the units of its blocks.
//!
//! Invariant: the lists of a draft are left as they are, because exported bundles take them for any batch. Plain data, tested without a
//! device. Must not know launches.

use super::bitmap::Bitmaps;
use super::by_arrival;
use super::in_order::{self, Launch};
use super::parts::{self, Parts};
use super::transposed::Transposed;
use super::words::Item;
use std::borrow::Cow;

/// The lists of a launch.
pub(crate) struct Schedule<'a> {
    pub lists: Cow<'a, Transposed>,
    pub bits: Cow<'a, Bitmaps>,
    /// Of each list of `lists` a row's first key and the one past the last, if the variant takes ranges.
    pub ranges: Cow<'a, [u32]>,
    /// None: each item is one unit.
    pub parts: Option<Parts>,
    /// Blocks have units of their own, all as far apart as there are blocks. Otherwise each takes the next when it is done with one.
    pub by_block: bool,
}

impl<'a> Schedule<'a> {
    /// Each item is one unit.
    pub(crate) fn as_they_are(lists: &'a Transposed, bits: &'a Bitmaps, ranges: &'a [u32]) -> Schedule<'a> {
        Schedule {
            lists: Cow::Borrowed(lists),
            bits: Cow::Borrowed(bits),
            ranges: Cow::Borrowed(ranges),
            parts: None,
            by_block: false,
        }
    }

    /// The units.
    pub(crate) fn items(&self) -> &[Item] {
        self.parts.as_ref().map_or(&self.lists.items, |parts| &parts.items)
    }

    /// For so many blocks, where additions have no order.
    pub(crate) fn in_any_order(self, blocks: usize) -> Schedule<'a> {
        Schedule { parts: parts::shared(&self.lists.items, blocks), ..self }
    }

    /// For so many blocks, where they have that of the units.
    pub(crate) fn in_order_of_units(self, blocks: usize) -> Schedule<'a> {
        Schedule { parts: in_order::shared(&self.lists, blocks), ..self }
    }

    /// Where they have that of the units, or that of arrival, whichever takes less time in the model.
    pub(crate) fn in_one_order(self, launch: Launch) -> Schedule<'a> {
        let schedule = self.in_order_of_units(launch.blocks);
        let time = in_order::time(&schedule.lists, schedule.parts.as_ref(), launch);
        let Some(arrival) = by_arrival::arranged(&schedule.lists, &schedule.bits, launch, time) else {
            return schedule;
        };
        let ranges =
            if schedule.ranges.is_empty() { Vec::new() } else { schedule.lists.of_all_heads(&schedule.ranges) };
        Schedule {
            lists: Cow::Owned(arrival.lists),
            bits: Cow::Owned(arrival.bits),
            ranges: Cow::Owned(ranges),
            parts: Some(arrival.parts),
            by_block: true,
        }
    }
}
