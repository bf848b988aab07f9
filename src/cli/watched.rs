//! Progress of a long command on stderr: the finished share and the remaining time.
//!
//! Invariant: quick work prints nothing; a terminal has one line that is overwritten, a file or pipe a line now and
//! then. Ctrl-C ends the command as usual. Must not know the work.

use super::out::{self, Progress};
use crate::base::Control;
use crate::base::control::Left;
use crate::tasks::steps;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The delay of the first line, and the interval of others: on a terminal, and elsewhere.
const TERMINAL: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(250)];
const ELSEWHERE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(15)];

/// Does the work here, while another thread prints its progress.
pub(super) fn watched<T>(what: &str, work: impl FnOnce(&Control) -> T) -> T {
    let control = Control::new();
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        let reported = control.clone();
        // without a thread the work runs without progress
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || tell(what, &reported, &end));
        let _ended = ended;
        work(&control)
    })
}

fn tell(what: &str, control: &Control, end: &Receiver<()>) {
    let began = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let [first, then] = if terminal { TERMINAL } else { ELSEWHERE };
    let progress = Progress::new();
    let mut patience = first;
    while end.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        let line = line(what, began.elapsed(), control.progress());
        if terminal {
            progress.say(&line);
        } else {
            out::note(&line);
        }
        patience = then;
    }
}

fn line(what: &str, waited: Duration, fraction: f64) -> String {
    let said = out::words();
    match Left::of(waited, fraction) {
        Some(left) => {
            let share = format!("{:.0}", 100.0 * fraction);
            said.with(
                "watched-share",
                &[("what", what.into()), ("share", share.into()), ("left", steps::left(said, left).into())],
            )
        }
        None => {
            let waited = format!("{:.0}", waited.as_secs_f64());
            said.with("watched-waited", &[("what", what.into()), ("n", waited.into())])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_and_how_long() {
        let seconds = Duration::from_secs;
        assert_eq!(line("counting", seconds(10), 0.25), "counting: 25%, about 30 s left (Ctrl-C ends it)");
        assert_eq!(line("counting", seconds(3), 0.0), "counting: 3 s so far (Ctrl-C ends it)");
        assert!(!watched("counting", |control| control.is_cancelled()));
    }
}
