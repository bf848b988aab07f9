//! The bars around the mask, and which of them a window has room for.
//!
//! Invariant: the mask keeps its least height in every window that has it: bars give way in one order, from the one that is most
//! easily missed on, and what they had stays in reach of a menu. Must not know what bars show.

/// A bar, the one that stays longest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bar {
    /// A question about the document's file: it waits for an answer.
    Outside,
    /// The open documents.
    Documents,
    /// The mouse's effect, running work, the worker.
    Status,
    /// The figures of the mask.
    Headline,
    /// The first steps.
    Start,
}

impl Bar {
    pub(crate) const ALL: [Bar; 5] = [Bar::Outside, Bar::Documents, Bar::Status, Bar::Headline, Bar::Start];
}

/// Heights of bars that were never drawn, in points.
const FIRST: [f32; 5] = [34.0, 30.0, 28.0, 69.0, 96.0];

/// What the window has no room for, as it was drawn last: views offer it elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub documents: bool,
    pub headline: bool,
    pub status: bool,
    /// The panels at the sides of the mask: they lie over it while they are asked for.
    pub panels: bool,
}

/// The bars of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// As they were drawn last: words of another language, or in a narrow window, take more.
    heights: [f32; 5],
    shown: [bool; 5],
}

impl Default for Bars {
    fn default() -> Self {
        Self { heights: FIRST, shown: [true; 5] }
    }
}

impl Bars {
    /// Which of the wanted ones there are, where the mask leaves so much height to all of them. A question is never left out.
    pub(crate) fn fit(&mut self, mut room: f32, wanted: [bool; 5]) {
        for bar in Bar::ALL {
            let (at, height) = (bar as usize, self.heights[bar as usize]);
            // one that is less than what gave way before it gives way all the same: the order is the same in every window
            let before = Bar::ALL[..at].iter().all(|before| !wanted[*before as usize] || self.shown[*before as usize]);
            self.shown[at] = wanted[at] && (bar == Bar::Outside || before && height <= room);
            room -= if self.shown[at] { height } else { 0.0 };
        }
    }

    /// Whether there is one.
    pub(crate) fn has(&self, bar: Bar) -> bool {
        self.shown[bar as usize]
    }

    /// It was drawn that high.
    pub(crate) fn drawn(&mut self, bar: Bar, height: f32) {
        self.heights[bar as usize] = height;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_give_way_in_one_order_and_a_question_never_does() {
        let mut before = 6;
        for room in (0..30).rev().map(|n| n as f32 * 10.0) {
            let mut bars = Bars::default();
            bars.fit(room, [true; 5]);
            let shown: Vec<bool> = Bar::ALL.iter().map(|bar| bars.has(*bar)).collect();
            let count = shown.iter().filter(|shown| **shown).count();
            assert!(shown[..count].iter().all(|shown| *shown) && shown[0] && count <= before, "{room}: {shown:?}");
            let taken: f32 = FIRST.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(height, _)| height).sum();
            assert!(taken <= room.max(FIRST[0]), "{room}: {shown:?}");
            before = count;
        }
        assert_eq!(before, 1);
    }

    #[test]
    fn what_nobody_wants_takes_no_room_and_a_height_is_the_last_one() {
        let mut bars = Bars::default();
        bars.fit(70.0, [false, false, false, true, false]);
        assert!(bars.has(Bar::Headline) && !bars.has(Bar::Status) && !bars.has(Bar::Outside));
        bars.drawn(Bar::Headline, 71.0);
        bars.fit(70.0, [false, false, false, true, false]);
        assert!(!bars.has(Bar::Headline));
    }
}
