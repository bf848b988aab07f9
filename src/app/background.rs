//! Work off the window's thread of which only the newest request matters: compiling, counting, printing.
//!
//! Invariant: requesting and polling never wait; a replaced request is dropped or cancelled; a result is never older
//! than an earlier one. These threads have a lower priority than the one that draws. Must not know the requests.

use crate::base::Control;
use crate::worker::process::calm_thread;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Calls the window back from another thread.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// Creates this process's pool, whose threads have a lower priority than the one that draws. Must be called before any
/// work in it; later calls do nothing.
pub(crate) fn calm_pool() {
    drop(rayon::ThreadPoolBuilder::new().start_handler(|_| calm_thread()).build_global());
}

/// A thread that answers the newest question.
pub(crate) struct Latest<Q, A> {
    slot: Arc<Slot<Q>>,
    answers: Receiver<A>,
    /// Whether a new question stops the work on the one before.
    interrupts: bool,
    /// A test holds the answers back, to look at the time before one.
    #[cfg(test)]
    pub(crate) held: bool,
}

struct Slot<Q> {
    state: Mutex<SlotState<Q>>,
    changed: Condvar,
}

struct SlotState<Q> {
    question: Option<Q>,
    /// The flag of the running work.
    control: Control,
    busy: bool,
    closed: bool,
}

impl<Q: Send + 'static, A: Send + 'static> Latest<Q, A> {
    /// Starts the thread. `interrupts`: a new question cancels the [`Control`] of the one in work. Without a thread (the
    /// system has no more) every question stays unanswered.
    pub(crate) fn new(
        name: &str,
        interrupts: bool,
        wake: Wake,
        mut work: impl FnMut(Q, &Control) -> Option<A> + Send + 'static,
    ) -> Self {
        let state = SlotState { question: None, control: Control::new(), busy: false, closed: false };
        let slot = Arc::new(Slot { state: Mutex::new(state), changed: Condvar::new() });
        let (sender, answers) = channel();
        let mine = slot.clone();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            calm_thread();
            while let Some((question, control)) = mine.next() {
                let answer = work(question, &control);
                mine.lock().busy = false;
                if let Some(answer) = answer
                    && sender.send(answer).is_err()
                {
                    return;
                }
                wake();
            }
        });
        drop(thread);
        Self {
            slot,
            answers,
            interrupts,
            #[cfg(test)]
            held: false,
        }
    }

    /// Replaces what was asked before.
    pub(crate) fn ask(&self, question: Q) {
        let mut state = self.slot.lock();
        if self.interrupts {
            state.control.cancel();
        }
        state.question = Some(question);
        self.slot.changed.notify_one();
    }

    /// The newest answer that has come since the last poll.
    pub(crate) fn poll(&self) -> Option<A> {
        #[cfg(test)]
        if self.held {
            return None;
        }
        self.answers.try_iter().last()
    }

    /// How far the work on the newest question is, 0..=1; None while none is in work.
    pub(crate) fn progress(&self) -> Option<f64> {
        let state = self.slot.lock();
        (state.busy && state.question.is_none()).then(|| state.control.progress())
    }

    /// Stops the work on the newest question: it stays unanswered.
    pub(crate) fn stop(&self) {
        let mut state = self.slot.lock();
        state.question = None;
        state.control.cancel();
    }

    /// Whether a question is still being worked on.
    #[cfg(test)]
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.slot.lock();
        state.busy || state.question.is_some()
    }
}

impl<Q, A> Drop for Latest<Q, A> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.closed = true;
        state.control.cancel();
        self.slot.changed.notify_one();
    }
}

impl<Q> Slot<Q> {
    fn lock(&self) -> MutexGuard<'_, SlotState<Q>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<(Q, Control)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(question) = state.question.take() {
                state.control = Control::new();
                state.busy = true;
                return Some((question, state.control.clone()));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    fn wait<T>(mut poll: impl FnMut() -> Option<T>) -> T {
        let patience = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(found) = poll() {
                return found;
            }
            assert!(Instant::now() < patience, "nothing came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_newest_question_is_answered_and_stops_the_one_before() {
        let (started, begun) = channel();
        let release = Arc::new(AtomicBool::new(false));
        let free = Arc::clone(&release);
        let latest = Latest::new("test", true, Arc::new(|| ()), move |n: u32, control: &Control| {
            let _ = started.send(n);
            // the last answer does not come before it was looked at
            while (n == 1 && !control.is_cancelled()) || (n == 3 && !free.load(Ordering::SeqCst)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            (!control.is_cancelled()).then_some(n * 10)
        });
        latest.ask(1);
        assert_eq!(begun.recv().unwrap(), 1);
        latest.ask(2);
        latest.ask(3);
        assert!(latest.is_busy());
        release.store(true, Ordering::SeqCst);
        let answer = wait(|| latest.poll());
        assert!(answer == 20 || answer == 30);
        if answer == 20 {
            assert_eq!(wait(|| latest.poll()), 30);
        }
        assert!(!begun.try_iter().any(|n| n == 1));
        wait(|| (!latest.is_busy()).then_some(()));
    }
}
