//! The time to the window's first frame, printed if `MASKLOOM_TIMINGS` is set.
//!
//! Invariant: without the variable nothing is recorded or written; with it one line goes to stderr, once. The set-up of
//! the window system and of GL is separate from our own time. Must not know what is drawn.

use std::time::{Duration, Instant};

/// The variable that enables them.
const VARIABLE: &str = "MASKLOOM_TIMINGS";

/// When what happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timings {
    /// From the start of the process, if the system reports it, until the window was requested.
    before: Duration,
    asked: Instant,
    /// GL and the window are there.
    ready: Option<Instant>,
    /// The first frame's shapes are handed to the painter.
    laid_out: Option<Instant>,
    reported: bool,
}

impl Timings {
    /// Must be called when the window is requested; None if the variable is unset.
    pub(crate) fn begin() -> Option<Timings> {
        std::env::var_os(VARIABLE).filter(|v| !v.is_empty())?;
        let before = age().unwrap_or_default();
        Some(Timings { before, asked: Instant::now(), ready: None, laid_out: None, reported: false })
    }

    /// The window and GL are there.
    pub(crate) fn ready(&mut self) {
        self.ready = Some(Instant::now());
    }

    /// A frame begins: the second one begins when the first is on the screen.
    pub(crate) fn frame(&mut self) {
        let (Some(ready), Some(laid_out), false) = (self.ready, self.laid_out, self.reported) else { return };
        self.reported = true;
        eprintln!("{}", words(self.before, ready - self.asked, laid_out - ready, laid_out.elapsed()));
    }

    /// A frame was laid out. Returns whether another one is wanted, to see this one on the screen.
    pub(crate) fn laid_out(&mut self) -> bool {
        self.laid_out.get_or_insert_with(Instant::now);
        !self.reported
    }
}

/// One line; all times in milliseconds.
fn words(before: Duration, system: Duration, layout: Duration, paint: Duration) -> String {
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let own = before + layout + paint;
    format!(
        "timings: first frame {:.0} ms after process start; window system and GL {:.0} ms, the rest {:.0} ms (start {:.0} ms, \
         documents and layout {:.0} ms, painting {:.0} ms)",
        ms(own + system),
        ms(system),
        ms(own),
        ms(before),
        ms(layout),
        ms(paint)
    )
}

/// The age of this process, to a hundredth of a second; None if the system does not report it.
fn age() -> Option<Duration> {
    let seconds = |text: String| -> Option<f64> { text.split_whitespace().next()?.parse().ok() };
    let up = seconds(std::fs::read_to_string("/proc/uptime").ok()?)?;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // the program's name, in parentheses, may hold spaces; the start is the 22nd field, in hundredths of a second
    let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    Some(Duration::from_secs_f64((up - ticks / 100.0).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_add_up_and_only_the_second_frame_tells() {
        let reported = words(
            Duration::from_millis(20),
            Duration::from_millis(400),
            Duration::from_millis(50),
            Duration::from_millis(30),
        );
        assert!(reported.contains("first frame 500 ms") && reported.contains("the rest 100 ms"), "{reported}");
        let mut timings =
            Timings { before: Duration::ZERO, asked: Instant::now(), ready: None, laid_out: None, reported: false };
        timings.ready();
        timings.frame();
        assert!(timings.laid_out() && !timings.reported);
        timings.frame();
        assert!(timings.reported && !timings.laid_out());
    }

    #[test]
    fn a_process_knows_its_age() {
        if cfg!(target_os = "linux") {
            assert!(age().is_some_and(|age| age < Duration::from_secs(86_400)));
        }
    }
}
