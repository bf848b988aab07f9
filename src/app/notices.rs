//! Messages of the window: toasts, and the list of all messages since the start.
//!
//! Invariant: a message is shown once and stays in the list; errors do not disappear by themselves. Must not know what
//! happened.

use crate::base::{Diagnostic, diagnostic::Severity};
use std::collections::VecDeque;

/// Messages that are kept.
const KEPT: usize = 500;
/// Seconds that a toast without an error stays.
const SECONDS: f64 = 5.0;

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub what: Diagnostic,
    /// When, in seconds of the window's clock.
    pub at: f64,
    /// Whether it is still a toast.
    pub shown: bool,
}

impl Notice {
    /// Seconds until it disappears; None: it waits for the user.
    pub(crate) fn left(&self, now: f64) -> Option<f64> {
        self.passes().then_some(SECONDS - (now - self.at))
    }

    /// Whether it disappears by itself.
    pub(crate) fn passes(&self) -> bool {
        self.what.severity != Severity::Error
    }
}

/// All of them, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    list: VecDeque<Notice>,
}

impl Notices {
    /// Tells something. The same message again only renews the toast.
    pub(crate) fn tell(&mut self, what: Diagnostic, now: f64) {
        if let Some(last) = self.list.back_mut()
            && last.what == what
        {
            (last.at, last.shown) = (now, true);
            return;
        }
        self.list.push_back(Notice { what, at: now, shown: true });
        if self.list.len() > KEPT {
            self.list.pop_front();
        }
    }

    /// Tells that something is done.
    pub(crate) fn done(&mut self, message: impl Into<String>, now: f64) {
        self.tell(Diagnostic::note("done", message), now);
    }

    /// Adds a completed action to the messages, without a toast, because the visible page shows it.
    pub(crate) fn note(&mut self, message: impl Into<String>, now: f64) {
        self.list.push_back(Notice { what: Diagnostic::note("done", message), at: now, shown: false });
        if self.list.len() > KEPT {
            self.list.pop_front();
        }
    }

    /// Ends toasts whose time has come. Returns the seconds until the next one ends.
    pub(crate) fn tick(&mut self, now: f64) -> Option<f64> {
        let mut next: Option<f64> = None;
        for notice in self.list.iter_mut().filter(|n| n.shown) {
            match notice.left(now) {
                Some(left) if left <= 0.0 => notice.shown = false,
                Some(left) => next = Some(next.map_or(left, |n| n.min(left))),
                None => {}
            }
        }
        next
    }

    /// Ends one toast.
    pub(crate) fn dismiss(&mut self, at: usize) {
        if let Some(notice) = self.list.get_mut(at) {
            notice.shown = false;
        }
    }

    /// Ends the newest toast.
    pub(crate) fn dismiss_last(&mut self) {
        if let Some(notice) = self.list.back_mut() {
            notice.shown = false;
        }
    }

    /// Removes toasts with these codes: their cause has been fixed.
    pub(crate) fn dismiss_mended(&mut self, codes: &[&str]) {
        self.list.iter_mut().filter(|n| codes.contains(&&*n.what.code)).for_each(|n| n.shown = false);
    }

    /// All messages with their places, oldest first.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = (usize, &Notice)> {
        self.list.iter().enumerate()
    }

    /// The toasts, newest last, at most `most`.
    pub(crate) fn toasts(&self, most: usize) -> Vec<(usize, &Notice)> {
        let mut out: Vec<_> = self.all().rev().filter(|(_, n)| n.shown).take(most).collect();
        out.reverse();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toasts_end_errors_stay_and_repeats_are_one() {
        let mut notices = Notices::default();
        notices.done("saved", 0.0);
        notices.done("saved", 1.0);
        notices.tell(Diagnostic::error("x", "broken"), 1.0);
        assert_eq!(notices.all().count(), 2);
        assert_eq!(notices.tick(2.0), Some(4.0));
        assert_eq!(notices.tick(60.0), None);
        assert_eq!(notices.toasts(9).len(), 1);
        notices.dismiss(1);
        assert!(notices.toasts(9).is_empty() && notices.all().count() == 2);
    }
}
