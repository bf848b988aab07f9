//! The cells in which the design differs from the mask that it is compared with, counted off the window's thread.
//!
//! Invariant: an answer is of the comparison, document and revision that it names; a newer question ends an older one. Must not know how
//! it is drawn.

use super::background::{Latest, Wake};
use super::mishaps::guarded;
use crate::base::{Control, Diagnostic};
use crate::ir::graph::Mod;
use crate::tasks::comparing::{self, Difference, Part};
use std::sync::Arc;

/// Cells that are listed.
pub(crate) const LISTED: usize = 40;

/// Number of the comparison; number and revision of the document.
pub(crate) type Of = [u64; 3];

/// Two masks of the same lengths.
pub(crate) struct Question {
    pub of: Of,
    /// Now, then.
    pub masks: [Option<Arc<Mod>>; 2],
    /// Batch entries and heads.
    pub extents: [usize; 2],
    /// Of queries, of keys.
    pub parts: [Vec<Part>; 2],
}

/// What was counted.
pub(crate) struct Answer {
    pub of: Of,
    pub found: Result<Difference, Diagnostic>,
}

/// The list and its thread, which begins with the first question.
#[derive(Default)]
pub(crate) struct Differing {
    thread: Option<Latest<Question, Answer>>,
    asked: Option<Of>,
    answer: Option<Answer>,
}

impl Differing {
    /// The list of this comparison, if it was counted.
    pub(crate) fn of(&self, of: Of) -> Option<&Result<Difference, Diagnostic>> {
        self.answer.as_ref().filter(|answer| answer.of == of).map(|answer| &answer.found)
    }

    /// How far the count is, 0..=1.
    pub(crate) fn progress(&self) -> f64 {
        self.thread.as_ref().and_then(Latest::progress).unwrap_or(0.0)
    }

    /// Takes what was counted, and asks for what is shown now, if that is something else.
    pub(crate) fn follow(&mut self, of: Option<Of>, question: impl FnOnce(Of) -> Option<Question>, wake: Wake) {
        if let Some(answer) = self.thread.as_ref().and_then(Latest::poll) {
            self.answer = Some(answer);
        }
        let Some(question) = of.filter(|of| self.asked != Some(*of)).and_then(question) else { return };
        self.asked = Some(question.of);
        let thread = self.thread.get_or_insert_with(|| Latest::new("differences", true, wake, answer));
        thread.ask(question);
    }
}

/// None: another question came.
fn answer(question: Question, control: &Control) -> Option<Answer> {
    let Question { of, masks, extents, parts: [queries, keys] } = question;
    let [now, then] = &masks;
    let count =
        || comparing::difference([now.as_deref(), then.as_deref()], extents, [&queries, &keys], LISTED, control);
    let found = guarded("comparing two masks", count).unwrap_or_else(Err);
    (!control.is_cancelled()).then_some(Answer { of, found })
}
