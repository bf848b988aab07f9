//! How long something still takes, and what the worker does meanwhile, in the language of the window.
//!
//! Invariant: in English these are the words of `base::control`. Must not know what is waited for.

use super::language::{say, say_with, words as spoken};
use super::session::Running;
use crate::base::control::Left;
use crate::problem::result::Doing;
use crate::tasks::steps;
use egui::Ui;
use std::time::Duration;

/// `about 12 s left`
pub(super) fn words(ui: &Ui, left: Left) -> String {
    steps::left(spoken(ui.ctx()), left)
}

/// The same, once there is something to judge by.
pub(super) fn told(ui: &Ui, waited: Duration, fraction: f64) -> Option<String> {
    Left::of(waited, fraction).map(|left| words(ui, left))
}

/// A step with the time that is left.
pub(super) fn step(ui: &Ui, step: &str, waited: Duration, fraction: f64) -> String {
    match told(ui, waited, fraction) {
        Some(left) => say_with(ui, "left-step", &[("step", step.into()), ("left", left.into())]),
        None => step.into(),
    }
}

/// What a job does now by what the worker says, or what it was started for.
pub(super) fn doing(ui: &Ui, running: &Running) -> String {
    match &running.step.what {
        Doing::Nothing => say(ui, running.kind.title()).into(),
        what => steps::doing(spoken(ui.ctx()), what),
    }
}

/// The same, with the time that is left.
pub(super) fn doing_left(ui: &Ui, running: &Running) -> String {
    step(ui, &doing(ui, running), running.since.elapsed(), f64::from(running.step.fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_is_what_the_terminal_says() {
        let ctx = egui::Context::default();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            for (seconds, fraction) in [(1.0, 0.9), (12.0, 0.3), (600.0, 0.5), (40_000.0, 0.2), (5.0, 0.0)] {
                let waited = Duration::from_secs_f64(seconds);
                assert_eq!(told(ui, waited, fraction), Left::of(waited, fraction).map(|left| left.to_string()));
            }
        });
        output.textures_delta.clear();
    }
}
