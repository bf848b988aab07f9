//! The lessons' texts, and the action of each step.
//!
//! Invariant: every named preset and pattern exists (a test checks). Must not know how a lesson is drawn.

use crate::app::action::Action;
use crate::app::action::settings_edit;
use crate::app::canvas::Picture;
use crate::app::command::Command;
use crate::app::state::State;
use crate::app::sweeps::Sweep;
use crate::base::BlockSize;

/// A lesson.
#[derive(Debug)]
pub(super) struct Lesson {
    /// Of its title; its part `about` says what it is about.
    pub id: &'static str,
    pub steps: &'static [Step],
}

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    /// Of its words; its part `button` is on the button that does it.
    pub id: &'static str,
    pub does: Option<Does>,
}

/// The effect of a step on the window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    Preset(&'static str),
    /// Square blocks of this side.
    Blocks(usize),
    Draw(Picture),
    Command(Command),
    /// Another head.
    Head(usize),
}

impl Does {
    /// The actions that do it; the lesson stays in front.
    pub(super) fn actions(self, state: &State) -> Vec<Action> {
        let settings = &state.document.settings;
        match self {
            Does::Preset(name) => vec![Action::OpenPreset(name.into()), Action::Command(Command::ShowLearn)],
            Does::Blocks(side) => {
                vec![Action::Edit(settings_edit(settings, |s| s.block_size = BlockSize::square(side)))]
            }
            Does::Draw(picture) => vec![Action::SetPicture(picture)],
            // a race runs beside its lesson
            Does::Command(command @ (Command::Run | Command::RaceLengths)) => {
                vec![Action::Command(command), Action::Command(Command::ShowLearn)]
            }
            Does::Command(command) => vec![Action::Command(command)],
            Does::Head(h) => vec![Action::SetHead { b: state.focus.b, h }],
        }
    }

    /// That it holds, as an id of texts: what is so from the start was not done.
    pub(super) fn said(self) -> &'static str {
        match self {
            Does::Preset(_) => "learn-is-open",
            _ => "learn-is-done",
        }
    }

    /// Whether it holds already.
    pub(super) fn holds(self, state: &State) -> bool {
        match self {
            Does::Preset(name) => crate::document::library::preset(name)
                .and_then(|p| p.document().ok())
                .is_some_and(|d| d.name == state.document.name),
            Does::Blocks(side) => state.document.settings.block_size == BlockSize::square(side),
            Does::Draw(picture) => state.focus.picture == picture,
            Does::Command(Command::Run) => {
                state.session.race.as_ref().is_some_and(|race| !race.stale && race.report.is_some())
            }
            Does::Command(Command::RaceLengths) => state.session.races.sweep.as_ref().is_some_and(Sweep::is_over),
            // a workspace that was looked at shows no lesson
            Does::Command(_) => false,
            Does::Head(h) => state.focus.h == h,
        }
    }
}

const fn does(id: &'static str, does: Does) -> Step {
    Step { id, does: Some(does) }
}

/// All lessons, in the order in which one learns.
pub(super) const LESSONS: &[Lesson] = &[
    Lesson {
        id: "lesson-two-minutes",
        steps: &[
            does("lesson-two-minutes-1", Does::Preset("sliding_window")),
            does("lesson-two-minutes-2", Does::Command(Command::ShowDesign)),
            does("lesson-two-minutes-3", Does::Draw(Picture::Blocks)),
            does("lesson-two-minutes-4", Does::Command(Command::Run)),
            does("lesson-two-minutes-5", Does::Command(Command::ShowExport)),
        ],
    },
    Lesson {
        id: "lesson-block",
        steps: &[
            does("lesson-block-1", Does::Preset("sliding_window")),
            does("lesson-block-2", Does::Blocks(1024)),
            does("lesson-block-3", Does::Blocks(128)),
            does("lesson-block-4", Does::Blocks(16)),
        ],
    },
    Lesson {
        id: "lesson-partial",
        steps: &[
            does("lesson-partial-1", Does::Preset("causal")),
            does("lesson-partial-2", Does::Preset("dilated_window")),
            does("lesson-partial-3", Does::Draw(Picture::Blocks)),
            does("lesson-partial-4", Does::Preset("painted_blocks")),
        ],
    },
    Lesson {
        id: "lesson-speed-up",
        steps: &[
            does("lesson-speed-up-1", Does::Preset("sliding_window")),
            does("lesson-speed-up-2", Does::Command(Command::ShowRace)),
            does("lesson-speed-up-3", Does::Command(Command::RaceLengths)),
            does("lesson-speed-up-4", Does::Command(Command::ShowRace)),
        ],
    },
    Lesson {
        id: "lesson-score-mods",
        steps: &[
            does("lesson-score-mods-1", Does::Preset("alibi")),
            does("lesson-score-mods-2", Does::Draw(Picture::Bias)),
            does("lesson-score-mods-3", Does::Head(7)),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::library;
    use crate::words::{Language, Words};

    #[test]
    fn what_lessons_open_exists_and_every_step_says_something() {
        for lesson in LESSONS {
            let words = Words::of(Language::English);
            let about = words.text(&format!("{}.about", lesson.id));
            assert!(!lesson.steps.is_empty() && about.ends_with('.'), "{}", lesson.id);
            for (at, step) in lesson.steps.iter().enumerate() {
                assert_eq!(step.id, format!("{}-{}", lesson.id, at + 1));
                assert!(words.text(step.id).ends_with('.'), "{}", step.id);
                assert_eq!(words.own(&format!("{}.button", step.id)).is_some(), step.does.is_some(), "{}", step.id);
                let Some(does) = step.does else { continue };
                if let Does::Preset(name) = does {
                    let document = library::preset(name).and_then(|p| p.document().ok());
                    assert!(document.is_some(), "{name}");
                }
            }
        }
    }

    #[test]
    fn the_lesson_on_heads_stays_within_the_heads() {
        let document = library::preset("alibi").expect("there").document().expect("loads");
        assert!(document.settings.heads > 7);
    }
}
