//! A tour of the window that plays by itself: what it says and does, and when.
//!
//! Invariant: it works on a document of its own and plays only when asked to; its clock stands while it is paused. Must not know how
//! it is drawn, or how actions are carried out.

use super::view::View;

/// Seconds of all of it.
pub(crate) const LENGTH: f64 = 90.0;

/// What a step shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// A ready mask, whole.
    Preset,
    /// A stroke of the brush, as it is drawn.
    Stroke,
    /// The area around it, with its blocks.
    Blocks,
    /// The window slider, and the estimate that moves with it.
    Slider,
    /// Who takes the design, or a race where there is a GPU.
    Race,
    /// What is written for other programs.
    Export,
    /// How to go on.
    End,
}

/// A step: when it begins, what it shows, what is said as an id of texts.
#[derive(Debug)]
pub(crate) struct Step {
    pub at: f64,
    pub show: Show,
    pub id: &'static str,
}

const fn step(at: f64, show: Show, id: &'static str) -> Step {
    Step { at, show, id }
}

/// All steps.
pub(crate) const STEPS: [Step; 7] = [
    step(0.0, Show::Preset, "tour-preset"),
    step(13.0, Show::Stroke, "tour-stroke"),
    step(27.0, Show::Blocks, "tour-blocks"),
    step(41.0, Show::Slider, "tour-slider"),
    step(56.0, Show::Race, "tour-race"),
    step(70.0, Show::Export, "tour-export"),
    step(82.0, Show::End, "tour-end"),
];

/// A tour that plays.
#[derive(Debug)]
pub(crate) struct Tour {
    /// Seconds that have played.
    pub played: f64,
    /// The window's clock at the last frame.
    pub seen: f64,
    pub paused: bool,
    /// Steps that were begun.
    pub begun: usize,
    /// Rectangles of the stroke that were drawn.
    pub drawn: usize,
    /// The tour's own document, and the one that was in work before.
    pub own: u64,
    pub home: u64,
    /// The window as it was.
    pub view: View,
    pub first_steps: bool,
}

impl Tour {
    /// Lets the clock go on. Returns whether the tour is over.
    pub(crate) fn tick(&mut self, now: f64) -> bool {
        // a frame that comes late, after a long wait, is no leap
        let passed = (now - self.seen).clamp(0.0, 0.25);
        self.seen = now;
        if !self.paused {
            self.played += passed;
        }
        self.played >= LENGTH
    }

    /// The step that plays.
    pub(crate) fn step(&self) -> usize {
        STEPS.iter().rposition(|step| step.at <= self.played).unwrap_or(0)
    }

    /// How far that step is, 0..=1.
    pub(crate) fn share(&self) -> f64 {
        let at = self.step();
        let end = STEPS.get(at + 1).map_or(LENGTH, |next| next.at);
        ((self.played - STEPS[at].at) / (end - STEPS[at].at)).clamp(0.0, 1.0)
    }

    /// Whether the tour is at what a part of the window shows.
    pub(crate) fn is_at(&self, show: Show) -> bool {
        STEPS[self.step()].show == show
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{Language, Words};

    #[test]
    fn steps_follow_each_other_with_time_to_read_them() {
        let ends = STEPS.iter().skip(1).map(|step| step.at).chain([LENGTH]);
        for (step, end) in STEPS.iter().zip(ends) {
            for language in Language::ALL {
                let text = Words::of(language).text(step.id);
                // three words a second, or six signs of a language without spaces
                let needed = match language {
                    Language::Chinese => text.chars().count() as f64 / 6.0,
                    _ => text.split_whitespace().count() as f64 / 3.5,
                };
                assert!(end - step.at >= needed, "{language:?} {:?}: {} s for {needed} s", step.show, end - step.at);
            }
        }
        assert_eq!(STEPS[0].at, 0.0);
    }
}
